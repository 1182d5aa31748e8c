//! What stands between a client and an agent: one of each, and the sessions of both.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tine_core::{ErrorKind, Json, Reference};

use super::capabilities::Native;
use super::link::{Fault, Link};
use super::session::{Session, Sessions};
use super::{Recorder, agent};
use crate::lines::Out;
use crate::wire::{NO_REQUEST, Refusal};

/// Everything that both sides share.
pub(super) struct Relay {
    pub recorder: Recorder,
    /// The way to the client.
    pub out: Out,
    pub sessions: Sessions,
    /// What the client said of itself; nothing before the beginning.
    hello: Mutex<Option<Json>>,
    link: Mutex<Option<(Arc<Link>, JoinHandle<()>)>>,
    /// Where the first new session begins.
    from: Mutex<Option<Reference>>,
    /// Sessions that have ended before all they said could be stored.
    left: Mutex<Vec<Arc<Session>>>,
    /// Held while the metadata of a conversation is read and written.
    pub noting: Mutex<()>,
}

impl Relay {
    pub(super) fn new(mut recorder: Recorder, output: impl Write + Send + 'static) -> Self {
        let from = Mutex::new(recorder.from.take());
        let (sessions, hello, link, left, noting) = Default::default();
        Relay { recorder, out: Out::new(output), sessions, hello, link, from, left, noting }
    }

    /// Where the next new session begins; only the first begins anywhere.
    pub(super) fn take_from(&self) -> Option<Reference> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives it back, for a session that did not come to be.
    pub(super) fn give_back_from(&self, from: Reference) {
        *self.from.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
    }

    pub(super) fn left(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, Option<(Arc<Link>, JoinHandle<()>)>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent that runs, if one does.
    pub(super) fn running(&self) -> Option<Arc<Link>> {
        self.links().as_ref().map(|(link, _)| Arc::clone(link)).filter(|link| !link.is_gone())
    }

    /// Begins: the agent is started, and hears the client's own words. Answers its own.
    pub(super) fn begin(self: &Arc<Self>, params: Json) -> Result<Json, Refusal> {
        let link = match self.running() {
            Some(link) => link,
            None => self.start()?,
        };
        let hello = link.ask("initialize", &params).map_err(refusal)?;
        *self.hello.lock().unwrap_or_else(PoisonError::into_inner) = Some(params);
        let _ = link.hello.set(hello.clone());
        Ok(hello)
    }

    /// The agent; one that ended is started again.
    pub(super) fn link(self: &Arc<Self>) -> Result<Arc<Link>, Refusal> {
        if let Some(link) = self.running() {
            return Ok(link);
        }
        let params = self.hello.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let params =
            params.ok_or_else(|| Refusal::new(NO_REQUEST, "nothing goes before `initialize`"))?;
        self.begin(params)?;
        self.running().ok_or_else(|| refusal(Fault::Gone))
    }

    fn start(self: &Arc<Self>) -> Result<Arc<Link>, Refusal> {
        let mut running = self.links();
        if let Some((link, _)) = running.as_ref().filter(|(link, _)| !link.is_gone()) {
            return Ok(Arc::clone(link));
        }
        let (link, output) = Link::start(&self.recorder.command).map_err(|error| {
            let program = self.recorder.command.first();
            let program = program.map(|it| it.to_string_lossy()).unwrap_or_default();
            Refusal::of(ErrorKind::Internal, format!("`{program}` cannot be started: {error}"))
        })?;
        let link = Arc::new(link);
        let (relay, heard) = (Arc::clone(self), Arc::clone(&link));
        let listening = thread::spawn(move || agent::listen(&relay, &heard, output));
        *running = Some((Arc::clone(&link), listening));
        Ok(link)
    }

    /// The client is gone: lets the agent end, and waits until all it said is stored.
    pub(super) fn end(&self) {
        let running = self.links().take();
        if let Some((link, listening)) = running {
            link.end();
            if listening.join().is_err() {
                tracing::error!("listening to the agent broke off");
            }
        }
        if let Err(refusal) = self.settle_left() {
            tracing::error!("the end of what was said is lost: {refusal}");
        }
    }

    /// What the agent can do by itself.
    pub(super) fn native(&self) -> Native {
        let link = self.running();
        link.and_then(|link| link.hello.get().map(Native::of)).unwrap_or_default()
    }

    /// The agent's name: its own, or that of its program.
    pub(super) fn agent(&self) -> String {
        let told = self.links().as_ref().and_then(|(link, _)| {
            Some(link.hello.get()?.at(&["agentInfo", "name"])?.as_str()?.to_owned())
        });
        told.filter(|name| !name.is_empty()).unwrap_or_else(|| {
            let program = self.recorder.command.first().map(Path::new);
            let name = program.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        })
    }

    /// Who the client says that it is.
    pub(super) fn client_info(&self) -> Json {
        let hello = self.hello.lock().unwrap_or_else(PoisonError::into_inner);
        hello.as_ref().and_then(|hello| hello.get("clientInfo")).cloned().unwrap_or_default()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// An agent's fault as the client is told it.
pub(super) fn refusal(fault: Fault) -> Refusal {
    match fault {
        Fault::Refused(error) => Refusal::passed(&error),
        Fault::Gone => {
            let why = "the agent ended before it answered; what it said is kept: load the session \
                       again to go on";
            Refusal::of(ErrorKind::Internal, why)
        }
    }
}

//! The state shared between the client's side and the agent's side.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use tine_core::{ErrorKind, Json, Reference};

use super::agent_process::{AgentError, AgentProcess};
use super::capabilities::AgentCapabilities;
use super::recorded_sessions::{RecordedSession, RecordedSessions};
use super::{Recorder, agent_messages};
use crate::json_rpc::{INVALID_REQUEST, RpcError, RpcResult};
use crate::line_io::LineWriter;
use crate::lock;

/// The state shared by both sides.
pub(super) struct Relay {
    pub recorder: Recorder,
    pub out: LineWriter,
    pub sessions: RecordedSessions,
    /// The client's `initialize` parameters; `None` before `initialize`.
    initialize_params: Mutex<Option<Json>>,
    process: Mutex<Option<(Arc<AgentProcess>, JoinHandle<()>)>>,
    /// The turn that the first new session continues from.
    from: Mutex<Option<Reference>>,
    /// Closed sessions with turns that could not be stored.
    unfinished: Mutex<Vec<Arc<RecordedSession>>>,
    /// Held while the metadata of a conversation is read and written.
    pub metadata_lock: Mutex<()>,
}

impl Relay {
    pub(super) fn new(mut recorder: Recorder, output: impl Write + Send + 'static) -> Self {
        let from = Mutex::new(recorder.from.take());
        let (sessions, initialize_params, process, unfinished, metadata_lock) = Default::default();
        Relay {
            recorder,
            out: LineWriter::new(output),
            sessions,
            initialize_params,
            process,
            from,
            unfinished,
            metadata_lock,
        }
    }

    /// Takes the turn to continue from; only the first new session gets it.
    pub(super) fn take_start(&self) -> Option<Reference> {
        lock(&self.from).take()
    }

    /// Puts the turn back after a session failed to open.
    pub(super) fn restore_start(&self, from: Reference) {
        *lock(&self.from) = Some(from);
    }

    pub(super) fn unfinished(&self) -> MutexGuard<'_, Vec<Arc<RecordedSession>>> {
        lock(&self.unfinished)
    }

    fn lock_process(&self) -> MutexGuard<'_, Option<(Arc<AgentProcess>, JoinHandle<()>)>> {
        lock(&self.process)
    }

    /// Returns the running agent, if there is one.
    pub(super) fn running_process(&self) -> Option<Arc<AgentProcess>> {
        self.lock_process()
            .as_ref()
            .map(|(process, _)| Arc::clone(process))
            .filter(|process| !process.is_gone())
    }

    /// Starts the agent if necessary and sends it the client's `initialize`. Returns its response.
    pub(super) fn initialize(self: &Arc<Self>, params: Json) -> RpcResult<Json> {
        let process = match self.running_process() {
            Some(process) => process,
            None => self.start()?,
        };
        let result = process.request("initialize", &params).map_err(agent_error)?;
        *lock(&self.initialize_params) = Some(params);
        let _ = process.initialize_result.set(result.clone());
        Ok(result)
    }

    /// Returns the agent, restarting one that has ended.
    pub(super) fn process(self: &Arc<Self>) -> RpcResult<Arc<AgentProcess>> {
        if let Some(process) = self.running_process() {
            return Ok(process);
        }
        let params = lock(&self.initialize_params).clone();
        let params =
            params.ok_or_else(|| RpcError::new(INVALID_REQUEST, "`initialize` must come first"))?;
        self.initialize(params)?;
        self.running_process().ok_or_else(|| agent_error(AgentError::Gone))
    }

    fn start(self: &Arc<Self>) -> RpcResult<Arc<AgentProcess>> {
        let mut running = self.lock_process();
        if let Some((process, _)) = running.as_ref().filter(|(process, _)| !process.is_gone()) {
            return Ok(Arc::clone(process));
        }
        let (process, output) = AgentProcess::start(&self.recorder.command).map_err(|error| {
            let program = self.recorder.command.first();
            let program = program.map(|it| it.to_string_lossy()).unwrap_or_default();
            RpcError::of(ErrorKind::Internal, format!("cannot start `{program}`: {error}"))
        })?;
        let process = Arc::new(process);
        let (relay, heard) = (Arc::clone(self), Arc::clone(&process));
        let listening = thread::spawn(move || agent_messages::listen(&relay, &heard, output));
        *running = Some((Arc::clone(&process), listening));
        Ok(process)
    }

    /// Stops the agent after the client has gone, and waits until everything is stored.
    pub(super) fn end(&self) {
        let running = self.lock_process().take();
        if let Some((process, listening)) = running {
            process.stop();
            if listening.join().is_err() {
                tracing::error!("the thread that reads from the agent panicked");
            }
        }
        if let Err(error) = self.store_unfinished() {
            tracing::error!("turns could not be stored and are lost: {error}");
        }
    }

    /// Returns the capabilities of the agent itself.
    pub(super) fn capabilities(&self) -> AgentCapabilities {
        let process = self.running_process();
        process
            .and_then(|process| process.initialize_result.get().map(AgentCapabilities::of))
            .unwrap_or_default()
    }

    /// Returns the agent's own name, or the name of its program.
    pub(super) fn agent(&self) -> String {
        let name = self.lock_process().as_ref().and_then(|(process, _)| {
            Some(process.initialize_result.get()?.at(&["agentInfo", "name"])?.as_str()?.to_owned())
        });
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
            let program = self.recorder.command.first().map(Path::new);
            let name = program.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        })
    }

    /// Returns the client's `clientInfo`.
    pub(super) fn client_info(&self) -> Json {
        let params = lock(&self.initialize_params);
        params.as_ref().and_then(|params| params.get("clientInfo")).cloned().unwrap_or_default()
    }

    pub(super) fn is_initialized(&self) -> bool {
        lock(&self.initialize_params).is_some()
    }
}

/// Converts an error of the agent to the client's response.
pub(super) fn agent_error(fault: AgentError) -> RpcError {
    match fault {
        AgentError::Refused(error) => RpcError::from_agent(&error),
        AgentError::Gone => {
            let why = "the agent ended before it answered; its output was kept. Load the session \
                       again to continue";
            RpcError::of(ErrorKind::Internal, why)
        }
    }
}

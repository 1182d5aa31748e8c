//! What comes from the client: the methods of sessions, and all else, which passes through.
//!
//! What must reach the agent in the order in which it comes passes on the loop itself, prompts
//! among it; what has to wait for the agent is done on a thread.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};
use tine_core::{Json, Reference, Status};
use tine_engine::{
    BranchView, Clock as _, Error, Fork, ForkPoint, NewConversation, SystemClock, TurnRef,
};

use super::capabilities;
use super::events::From;
use super::keep::settled;
use super::link::Waiting;
use super::policy::Opened;
use super::relay::{Relay, refusal};
use super::session::{Session, State, Wanted};
use crate::lines::{self, Line};
use crate::wire::{self, Incoming, NO_REQUEST, Refusal};
use crate::{anchor, branches, listing, show};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Hears all that a client says, until it closes its output.
pub(super) fn listen(relay: &Arc<Relay>, input: impl Read) -> io::Result<()> {
    let mut input = BufReader::with_capacity(READ_BYTES, input);
    let mut working = Vec::new();
    let ended = loop {
        let most = relay.recorder.line_bytes;
        let line = match lines::read(&mut input, most) {
            Ok(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Line::Whole(line)) => line,
            Ok(Line::TooLong { bytes, outline }) => {
                let answer = wire::answer(&outline["id"], Err(Refusal::too_long(bytes, most)));
                match (outline.get("method"), relay.running()) {
                    // The agent waits for it.
                    (None, Some(link)) if !outline["id"].is_null() => link.send(&answer),
                    _ => relay.out.send(&answer),
                }
                continue;
            }
            Ok(Line::End) => break Ok(()),
            Err(error) => break Err(error),
        };
        let message: Value = match Incoming::read(&line) {
            Ok(_) => serde_json::from_slice(&line).unwrap_or_default(),
            Err((id, refusal)) => {
                relay.out.send(&wire::answer(&id, Err(refusal)));
                continue;
            }
        };
        working.retain(|worker: &thread::JoinHandle<()>| !worker.is_finished());
        working.extend(hear(relay, message));
    };
    relay.end();
    for worker in working {
        if worker.join().is_err() {
            tracing::error!("a request broke off");
        }
    }
    ended
}

/// Takes a message; what has to wait for the agent goes on elsewhere.
fn hear(relay: &Arc<Relay>, message: Value) -> Option<thread::JoinHandle<()>> {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(id) = message.get("id").cloned().filter(|_| !method.is_empty()) else {
        pass(relay, message);
        return None;
    };
    let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
    if method == "initialize" {
        let hello = relay.begin(params).map(capabilities::completed);
        relay.out.send(&wire::answer(&id, hello));
        return None;
    }
    if !relay.has_begun() {
        let refusal = Refusal::new(NO_REQUEST, "nothing goes before `initialize`");
        relay.out.send(&wire::answer(&id, Err(refusal)));
        return None;
    }
    let work: fn(&Arc<Relay>, &Value, &Value) -> Result<(), Refusal> = match method.as_str() {
        "session/prompt" => {
            if let Err(refusal) = relay.prompt(&id, message) {
                relay.out.send(&wire::answer(&id, Err(refusal)));
            }
            return None;
        }
        "session/new" => Relay::new_session,
        "session/load" => Relay::load,
        "session/resume" => Relay::resume,
        "session/fork" => Relay::fork,
        "session/list" => Relay::list,
        "session/close" => Relay::close,
        "session/delete" => Relay::delete,
        _ => {
            pass_request(relay, id, message);
            return None;
        }
    };
    let relay = Arc::clone(relay);
    Some(thread::spawn(move || {
        if let Err(refusal) = work(&relay, &id, &params) {
            relay.out.send(&wire::answer(&id, Err(refusal)));
        }
    }))
}

/// Passes what nobody waits for: notifications, and answers to what the agent asked.
fn pass(relay: &Relay, mut message: Value) {
    let Some(link) = relay.running() else { return };
    if let Some(asked) = message.pointer("/params/requestId")
        && let Some(id) = link.id_of(asked)
    {
        message["params"]["requestId"] = id.into();
    }
    if let Some(session) = to_theirs(relay, &mut message) {
        session.lock().events.add(SystemClock.now(), From::Client, message.clone());
    }
    link.send(&message);
}

fn pass_request(relay: &Arc<Relay>, id: Value, mut message: Value) {
    let link = match relay.link() {
        Ok(link) => link,
        Err(refusal) => return relay.out.send(&wire::answer(&id, Err(refusal))),
    };
    if let Some(session) = to_theirs(relay, &mut message) {
        session.lock().events.add(SystemClock.now(), From::Client, message.clone());
    }
    let waiting = Waiting::Client { id: id.clone(), prompt: None };
    if link.pass(waiting, message).is_err() {
        let gone = refusal(super::link::Fault::Gone);
        relay.out.send(&wire::answer(&id, Err(gone)));
    }
}

/// Puts the agent's id of the session in the place of the client's.
fn to_theirs(relay: &Relay, message: &mut Value) -> Option<Arc<Session>> {
    let id = message.pointer_mut("/params/sessionId")?;
    let session = relay.sessions.ours(id.as_str()?)?;
    *id = session.theirs.id.as_str().into();
    Some(session)
}

impl Relay {
    fn prompt(self: &Arc<Self>, id: &Value, mut message: Value) -> Result<(), Refusal> {
        let text = wire::text(&message["params"], "sessionId")?;
        let unknown = || Refusal::no_session(text, " that is open here; load or resume it first");
        let session = self.sessions.ours(text).ok_or_else(unknown)?;
        let question = message.pointer("/params/prompt").and_then(Value::as_array);
        let question = question.filter(|blocks| !blocks.is_empty()).cloned().ok_or_else(|| {
            Refusal::invalid("`prompt` must be an array of at least one content block")
        })?;
        let sent = {
            let mut state = session.lock();
            let before = state.derivation.close(Status::Complete);
            self.store(&session, &mut state, before);
            settled(&state)?;
            state.events.add(SystemClock.now(), From::Client, message.clone());
            let first = state.branch.tip.is_none();
            let turn = self.store_question(&session, &mut state, &question)?;
            for block in &question {
                let echo = show::chunk(show::USER, &turn.to_string(), block.clone());
                self.out.send(&wire::update(&session.id, echo));
            }
            if first {
                self.show_title(&session, &state)?;
            }
            state.running += 1;
            let blocks = self.seeded(&session, &mut state, question);
            if let Some(asked) = &mut state.asked {
                asked.blocks.clone_from(&blocks);
            }
            blocks
        };
        message["params"]["sessionId"] = session.theirs.id.as_str().into();
        message["params"]["prompt"] = sent.into();
        let link = Arc::clone(&session.link);
        let waiting = Waiting::Client { id: id.clone(), prompt: Some(session) };
        link.pass(waiting, message).map_err(|_| refusal(super::link::Fault::Gone))
    }

    /// The question as the agent gets it: behind the seed, if there is one.
    fn seeded(&self, session: &Session, state: &mut State, question: Vec<Value>) -> Vec<Value> {
        let Some(seed) = state.seed.take() else { return question };
        let label = show::chunk(
            show::THINKING,
            &format!("context-{}", session.id),
            show::text(&seed.label()),
        );
        self.out.send(&wire::update(&session.id, label));
        let mut blocks = vec![show::text(&seed.text)];
        blocks.extend(question);
        blocks
    }

    fn show_title(&self, session: &Session, state: &State) -> Result<(), Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let conversation = engine.conversation(call, &state.branch.conversation)?;
        let title = listing::title(engine, call, &conversation, &state.branch)?;
        let update = json!({ "sessionUpdate": "session_info_update", "title": title });
        self.out.send(&wire::update(&session.id, update));
        Ok(())
    }

    fn new_session(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let cwd = wire::folder(params)?;
        if let Some(from) = self.take_from() {
            let opened = self.new_from(&from, cwd, params);
            if opened.is_err() {
                self.give_back_from(from);
            }
            return self.announce(id, opened?.named());
        }
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        // The agent first: what it refuses leaves nothing in the store.
        let begun = self.begin_session(params)?;
        let client = wire::exact(&self.client_info(), engine.limits()).unwrap_or(Json::Null);
        let metadata = listing::began(cwd, client, Some(&self.agent()));
        let new = NewConversation { metadata, ..NewConversation::default() };
        let made = engine.create_conversation(call, new)?;
        let main = engine.branch(call, &made.id, "main")?;
        let opened = self.as_it_is(Wanted::of(main, cwd), begun, "new")?;
        self.announce(id, opened.named())
    }

    /// A new session that goes on from a turn of any conversation.
    fn new_from(
        self: &Arc<Self>,
        from: &Reference,
        cwd: &str,
        params: &Value,
    ) -> Result<Opened, Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let turn = engine.turn(call, TurnRef::of(from.clone()))?;
        let fork = Fork {
            conversation: Some(turn.conversation),
            point: ForkPoint::At(turn.id.into()),
            name: None,
        };
        let branch = engine.fork(call, fork)?;
        let opened = self.open(Wanted::of(branch.clone(), cwd), params);
        match opened {
            Ok(_) => self.note_fork(&branch, cwd)?,
            Err(_) => branches::delete(engine, call, branch.id)?,
        }
        opened
    }

    fn note_fork(&self, branch: &BranchView, cwd: &str) -> Result<(), Refusal> {
        let _noting = self.noting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        Ok(listing::forked(engine, call, branch, cwd, Some(&self.agent()))?)
    }

    fn load(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let opened = self.opened(params)?;
        let branch = opened.session.lock().branch.clone();
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        branches::replay(engine, call, &opened.session.id, &branch, &self.out)?;
        self.announce(id, opened)
    }

    fn resume(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let opened = self.opened(params)?;
        self.announce(id, opened)
    }

    /// The session that the parameters name. One that is open already stays as it is, unless
    /// others have written to its branch: the agent knows nothing of that.
    fn opened(self: &Arc<Self>, params: &Value) -> Result<Opened, Refusal> {
        let (text, cwd) = (wire::text(params, "sessionId")?, wire::folder(params)?);
        let open = self.settled(text)?;
        let branch = match self.branch_of(text) {
            Ok(branch) => branch,
            Err(unknown) => return self.adopted(cwd, params, unknown),
        };
        if let Some(session) = open {
            let kept = {
                let state = session.lock();
                state.running > 0 || state.holds(&branch)
            };
            if kept {
                let context = json!({ "context": { "kind": "open" } });
                return Ok(Opened { session, answer: json!({ "_meta": { "tine": context } }) });
            }
            self.shut(&session)?;
        }
        self.open(Wanted { id: text.to_owned(), branch, cwd: cwd.to_owned() }, params)
    }

    /// The open session with that id, once all that was said is stored: its branch is then where
    /// the session is.
    fn settled(&self, id: &str) -> Result<Option<Arc<Session>>, Refusal> {
        self.settle_left()?;
        let open = self.sessions.ours(id);
        if let Some(session) = &open {
            self.settle(session)?;
        }
        Ok(open)
    }

    fn fork(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let (text, cwd) = (wire::text(params, "sessionId")?, wire::folder(params)?);
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let open = self.settled(text)?;
        let parent = self.branch_of(text)?;
        let at = match anchor::read(params)? {
            Some(message) => Some(branches::message_of(engine, call, &parent, message)?),
            None => None,
        };
        // The agent first: what it refuses leaves nothing in the store.
        let natively = match open {
            Some(open) => self.fork_natively(&open, &parent, at, params)?,
            None => None,
        };
        let is_native = natively.is_some();
        let begun = match natively {
            Some(begun) => begun,
            None => self.begin_session(params)?,
        };
        let point = match at {
            Some(turn) => turn.into(),
            None => Reference::parse(&parent.id.to_string()).map_err(Error::from)?,
        };
        let conversation = Some(parent.conversation);
        let fork = Fork { conversation, point: ForkPoint::At(point), name: None };
        let branch = engine.fork(call, fork)?;
        self.note_fork(&branch, cwd)?;
        let opened = match is_native {
            true => self.as_it_is(Wanted::of(branch, cwd), begun, "native")?,
            false => self.reconstructed(Wanted::of(branch, cwd), begun)?,
        };
        self.announce(id, opened.named())
    }

    fn list(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let page = self.all_sessions(params)?;
        self.out.send(&wire::answer(id, Ok(page)));
        Ok(())
    }

    fn close(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let text = wire::text(params, "sessionId")?;
        match self.sessions.ours(text) {
            Some(session) => self.shut(&session)?,
            None => drop(self.branch_of(text)?),
        }
        self.out.send(&wire::answer(id, Ok(json!({}))));
        Ok(())
    }

    fn delete(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Refusal> {
        let text = wire::text(params, "sessionId")?;
        let branch = self.branch_of(text).ok();
        let theirs = match self.sessions.ours(text) {
            Some(session) => {
                self.shut(&session)?;
                Some(session.theirs.id.clone())
            }
            // One that only the agent has.
            None if branch.is_none() && self.last_of(text)?.is_none() => Some(text.to_owned()),
            None => None,
        };
        if let Some(theirs) = theirs.filter(|_| self.native().delete) {
            let gone = self.link()?.ask("session/delete", &json!({ "sessionId": theirs }));
            if let Err(fault) = gone {
                tracing::info!(?fault, "the agent did not delete its session");
            }
        }
        if let Some(branch) = branch {
            branches::delete(&self.recorder.engine, &self.recorder.call, branch.id)?;
        }
        self.out.send(&wire::answer(id, Ok(json!({}))));
        Ok(())
    }

    /// Ends what runs in a session, stores what it said, and forgets it. One that holds what cannot
    /// be stored stays open.
    fn shut(&self, session: &Arc<Session>) -> Result<(), Refusal> {
        self.settle(session)?;
        let named = json!({ "sessionId": session.theirs.id });
        if session.lock().running > 0 {
            let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": named });
            session.link.send(&cancel);
        }
        if self.native().close {
            let _ = session.link.ask("session/close", &named);
        }
        self.sessions.close(session);
        self.finish(session, "the session was closed");
        Ok(())
    }

    /// Answers with a session, and then lets it speak.
    fn announce(&self, id: &Value, opened: Opened) -> Result<(), Refusal> {
        let Opened { session, answer } = opened;
        let mut state = session.lock();
        self.out.send(&wire::answer(id, Ok(answer)));
        for message in state.held.take().unwrap_or_default() {
            self.hear(&session, &mut state, message);
        }
        Ok(())
    }
}

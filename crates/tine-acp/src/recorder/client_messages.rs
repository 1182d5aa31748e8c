//! Messages from the client: the session methods, and everything else, which is forwarded.
//!
//! Messages that must reach the agent in order of arrival, such as prompts, are forwarded by the
//! loop itself. Requests that wait for the agent run on a thread.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use tine_core::{Json, Limits, Reference, Status};
use tine_engine::{
    BranchView, Clock as _, Error, Fork, ForkPoint, NewConversation, SystemClock, TurnRef,
};

use super::agent_process::PendingRequest;
use super::capabilities;
use super::event_lines::EventSender;
use super::gap;
use super::json_splice;
use super::raw_message::RawMessage;
use super::recorded_sessions::{RecordedSession, SessionState, SessionTarget};
use super::relay::{Relay, agent_error};
use super::session_opening::OpenedSession;
use super::turn_storage::check_stored;
use crate::json_macro::json;
use crate::json_rpc::{self, INVALID_REQUEST, PARSE_ERROR, RpcError, RpcResult, UnreadableLine};
use crate::line_io::{InputLine, LineReader};
use crate::lock;
use crate::session_updates::{THOUGHT_CHUNK, USER_CHUNK, message_chunk, text_content};
use crate::{fork_point, prompt, session_branches, session_list};

/// The path of a message's session id.
const SESSION: &[&str] = &["params", "sessionId"];

/// The path of the request id in a cancellation.
const REQUEST: &[&str] = &["params", "requestId"];

/// Methods that the recorder handles itself and therefore has to read.
const OWN: [&str; 8] = [
    "initialize",
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
    "session/list",
    "session/close",
    "session/delete",
];

/// Handles everything the client writes until it closes its output.
pub(super) fn listen(relay: &Arc<Relay>, input: impl Read) -> io::Result<()> {
    let most = relay.recorder.line_bytes;
    let mut lines = LineReader::new(input, most);
    let mut working = Vec::new();
    let ended = loop {
        let line = match lines.next_line() {
            Ok(Some(InputLine::Whole(line))) => line,
            Ok(Some(InputLine::TooLong { bytes, outline })) => {
                let id = outline.get("id").unwrap_or(&Json::Null);
                let error = RpcError::too_long(bytes, most);
                match (outline.get("method"), relay.running_process()) {
                    // The agent waits for this response.
                    (None, Some(process)) if !id.is_null() => process.respond(id, Err(error)),
                    _ => relay.out.respond(id, Err(error)),
                }
                continue;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let message = match read(line, relay.recorder.engine.limits()) {
            Ok(message) => message,
            Err(unreadable) => {
                relay.out.refuse(unreadable);
                continue;
            }
        };
        working.retain(|worker: &thread::JoinHandle<()>| !worker.is_finished());
        working.extend(handle(relay, message));
    };
    relay.end();
    for worker in working {
        if worker.join().is_err() {
            tracing::error!("a request panicked");
        }
    }
    ended
}

fn read(line: Vec<u8>, limits: &Limits) -> Result<RawMessage, UnreadableLine> {
    let message = RawMessage::read(line, limits)?;
    // The outline of a line that breaks a rule may lack members that the line has.
    match message.broken_rule {
        None => json_rpc::check(&message.json).map(|()| message),
        Some(_) => Ok(message),
    }
}

/// Handles a message. Returns the thread of a request that waits for the agent.
fn handle(relay: &Arc<Relay>, message: RawMessage) -> Option<thread::JoinHandle<()>> {
    let method = message.text(&["method"]).unwrap_or_default().to_owned();
    let Some(id) = message.json.get("id").cloned().filter(|_| !method.is_empty()) else {
        forward(relay, message);
        return None;
    };
    let unreadable = message.broken_rule.as_ref().filter(|_| OWN.contains(&method.as_str()));
    if let Some(rule) = unreadable {
        relay.out.respond(&id, Err(RpcError::new(PARSE_ERROR, rule)));
        return None;
    }
    let params = message.json.get("params").filter(|params| !params.is_null());
    let params = params.cloned().unwrap_or_else(|| json!({}));
    if method == "initialize" {
        let hello = relay.initialize(params).map(capabilities::completed);
        relay.out.respond(&id, hello);
        return None;
    }
    if !relay.is_initialized() {
        let error = RpcError::new(INVALID_REQUEST, "`initialize` must come first");
        relay.out.respond(&id, Err(error));
        return None;
    }
    let work: fn(&Arc<Relay>, &Json, &Json) -> RpcResult<()> = match method.as_str() {
        "session/prompt" => {
            if let Err(error) = relay.prompt(&id, message) {
                relay.out.respond(&id, Err(error));
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
            forward_request(relay, id, message);
            return None;
        }
    };
    let relay = Arc::clone(relay);
    Some(thread::spawn(move || {
        if let Err(error) = work(&relay, &id, &params) {
            relay.out.respond(&id, Err(error));
        }
    }))
}

/// Forwards a notification, or a response to the agent.
fn forward(relay: &Relay, message: RawMessage) {
    let Some(process) = relay.running_process() else { return };
    let mut members: Vec<(&[&str], Json)> = Vec::new();
    let asked = message.json.at(REQUEST);
    if let Some(id) = asked.and_then(|asked| process.forwarded_id(asked)) {
        members.push((REQUEST, id.into()));
    }
    let session = session_of(relay, &message);
    members.extend(session.iter().map(|session| agent_session_member(session)));
    let line = message.with(&members);
    if let Some(session) = session {
        session.lock().events.add(SystemClock.now(), EventSender::Client, message);
    }
    process.send_line(line);
}

fn forward_request(relay: &Arc<Relay>, id: Json, message: RawMessage) {
    let process = match relay.process() {
        Ok(process) => process,
        Err(error) => return relay.out.respond(&id, Err(error)),
    };
    let session = session_of(relay, &message);
    let line = message.with(&session.iter().map(|it| agent_session_member(it)).collect::<Vec<_>>());
    if let Some(session) = session {
        session.lock().events.add(SystemClock.now(), EventSender::Client, message);
    }
    let waiting = PendingRequest::Client { id: id.clone(), prompt: None };
    if process.forward(waiting, line).is_err() {
        let gone = agent_error(super::agent_process::AgentError::Gone);
        relay.out.respond(&id, Err(gone));
    }
}

/// Returns the open session that a message names.
fn session_of(relay: &Relay, message: &RawMessage) -> Option<Arc<RecordedSession>> {
    relay.sessions.by_client_id(message.text(SESSION)?)
}

/// Returns the agent's session id, which replaces the client's.
fn agent_session_member(session: &RecordedSession) -> (&'static [&'static str], Json) {
    (SESSION, session.agent_session.id.as_str().into())
}

impl Relay {
    fn prompt(self: &Arc<Self>, id: &Json, message: RawMessage) -> RpcResult<()> {
        let params = message.json.get("params").unwrap_or(&Json::Null);
        let text = json_rpc::required_text(params, "sessionId")?;
        let unknown = || RpcError::no_session(text, " open here; load or resume it first");
        let session = self.sessions.by_client_id(text).ok_or_else(unknown)?;
        let question = match &message.broken_rule {
            None => prompt::question_blocks(params)?.to_vec(),
            Some(rule) => vec![gap::unread_block(rule)],
        };
        let mut line = message.with(&[agent_session_member(&session)]);
        {
            let mut state = session.lock();
            let before = state.turns.close(Status::Complete);
            self.store(&session, &mut state, before);
            check_stored(&state)?;
            state.events.add(SystemClock.now(), EventSender::Client, message);
            let first = state.branch.tip.is_none();
            let turn = self.store_question(&session, &mut state, &question)?;
            for block in &question {
                let echo = message_chunk(USER_CHUNK, &turn.to_string(), block.clone());
                self.out.send_update(&session.id, echo);
            }
            if first {
                let (engine, call) = (&self.recorder.engine, &self.recorder.call);
                let title = session_list::title_update(engine, call, &state.branch)?;
                self.out.send_update(&session.id, title);
            }
            state.running_prompts += 1;
            let mut blocks = question;
            if let Some(seed) = self.take_seed(&session, &mut state) {
                json_splice::prepend(&mut line, &["params", "prompt"], seed.to_canonical());
                blocks.insert(0, seed);
            }
            if let Some(asked) = &mut state.last_prompt {
                asked.blocks = blocks;
            }
        }
        let process = Arc::clone(&session.process);
        let waiting = PendingRequest::Client { id: id.clone(), prompt: Some(session) };
        process
            .forward(waiting, line)
            .map_err(|_| agent_error(super::agent_process::AgentError::Gone))
    }

    /// Takes the seed for the question, and shows its label to the client.
    fn take_seed(&self, session: &RecordedSession, state: &mut SessionState) -> Option<Json> {
        let seed = state.seed.take()?;
        let label = message_chunk(
            THOUGHT_CHUNK,
            &format!("context-{}", session.id),
            text_content(&seed.label()),
        );
        self.out.send_update(&session.id, label);
        Some(text_content(&seed.text))
    }

    fn new_session(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let cwd = json_rpc::cwd(params)?;
        if let Some(from) = self.take_start() {
            let opened = self.new_from(&from, cwd, params);
            if opened.is_err() {
                self.restore_start(from);
            }
            return self.respond_with_session(id, opened?.named());
        }
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        // The agent is asked first, so that its error leaves nothing in the store.
        let begun = self.start_agent_session(params)?;
        let client = self.client_info();
        let metadata = session_list::new_session_metadata(cwd, client, Some(&self.agent()));
        let new = NewConversation { metadata, ..NewConversation::default() };
        let made = engine.create_conversation(call, new)?;
        let main = engine.branch(call, &made.id, "main")?;
        let opened = self.open_as_is(SessionTarget::of(main, cwd), begun, "new")?;
        self.respond_with_session(id, opened.named())
    }

    /// Opens a new session that continues from a turn of any conversation.
    fn new_from(
        self: &Arc<Self>,
        from: &Reference,
        cwd: &str,
        params: &Json,
    ) -> RpcResult<OpenedSession> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let turn = engine.turn(call, TurnRef::of(from.clone()))?;
        let fork = Fork {
            conversation: Some(turn.conversation),
            point: ForkPoint::At(turn.id.into()),
            name: None,
        };
        let branch = engine.fork(call, fork)?;
        let opened = self.open_branch(SessionTarget::of(branch.clone(), cwd), params);
        match opened {
            Ok(_) => self.note_fork(&branch, cwd)?,
            Err(_) => session_branches::delete(engine, call, branch.id)?,
        }
        opened
    }

    fn note_fork(&self, branch: &BranchView, cwd: &str) -> RpcResult<()> {
        let _noting = lock(&self.metadata_lock);
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        Ok(session_list::record_fork(engine, call, branch, cwd, Some(&self.agent()))?)
    }

    fn load(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let opened = self.open_named(params)?;
        let branch = opened.session.lock().branch.clone();
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        session_branches::replay(engine, call, &opened.session.id, &branch, &self.out)?;
        self.respond_with_session(id, opened)
    }

    fn resume(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let opened = self.open_named(params)?;
        self.respond_with_session(id, opened)
    }

    /// Opens the session that the parameters name. An open session stays as it is, unless others
    /// have written to its branch, which the agent cannot know.
    fn open_named(self: &Arc<Self>, params: &Json) -> RpcResult<OpenedSession> {
        let (text, cwd) = (json_rpc::required_text(params, "sessionId")?, json_rpc::cwd(params)?);
        let open = self.stored_session(text)?;
        let branch = match self.branch_of(text) {
            Ok(branch) => branch,
            Err(unknown) => return self.open_unrecorded(cwd, params, unknown),
        };
        if let Some(session) = open {
            let kept = {
                let state = session.lock();
                state.running_prompts > 0 || state.holds(&branch)
            };
            if kept {
                let context = json!({ "context": { "kind": "open" } });
                return Ok(OpenedSession {
                    session,
                    answer: json!({ "_meta": { "tine": context } }),
                });
            }
            self.close_session(&session)?;
        }
        self.open_branch(SessionTarget { id: text.to_owned(), branch, cwd: cwd.to_owned() }, params)
    }

    /// Returns the open session with this id, after storing what is pending, so that its branch is
    /// current.
    fn stored_session(&self, id: &str) -> RpcResult<Option<Arc<RecordedSession>>> {
        self.store_unfinished()?;
        let open = self.sessions.by_client_id(id);
        if let Some(session) = &open {
            self.store_pending(session)?;
        }
        Ok(open)
    }

    fn fork(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let (text, cwd) = (json_rpc::required_text(params, "sessionId")?, json_rpc::cwd(params)?);
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let open = self.stored_session(text)?;
        let parent = self.branch_of(text)?;
        let at = match fork_point::message_id(params)? {
            Some(message) => Some(session_branches::message_turn(engine, call, &parent, message)?),
            None => None,
        };
        // The agent is asked first, so that its error leaves nothing in the store.
        let natively = match open {
            Some(open) => self.fork_natively(&open, &parent, at, params)?,
            None => None,
        };
        let is_native = natively.is_some();
        let begun = match natively {
            Some(begun) => begun,
            None => self.start_agent_session(params)?,
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
            true => self.open_as_is(SessionTarget::of(branch, cwd), begun, "native")?,
            false => self.open_with_seed(SessionTarget::of(branch, cwd), begun)?,
        };
        self.respond_with_session(id, opened.named())
    }

    fn list(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let page = self.all_sessions(params)?;
        self.out.respond(id, Ok(page));
        Ok(())
    }

    fn close(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let text = json_rpc::required_text(params, "sessionId")?;
        match self.sessions.by_client_id(text) {
            Some(session) => self.close_session(&session)?,
            None => drop(self.branch_of(text)?),
        }
        self.out.respond(id, Ok(json!({})));
        Ok(())
    }

    fn delete(self: &Arc<Self>, id: &Json, params: &Json) -> RpcResult<()> {
        let text = json_rpc::required_text(params, "sessionId")?;
        let branch = self.branch_of(text).ok();
        let agent_session_id = match self.sessions.by_client_id(text) {
            Some(session) => {
                self.close_session(&session)?;
                Some(session.agent_session.id.clone())
            }
            // A session that only the agent has.
            None if branch.is_none() && self.latest_session(text)?.is_none() => {
                Some(text.to_owned())
            }
            None => None,
        };
        if let Some(agent_session_id) = agent_session_id.filter(|_| self.capabilities().delete) {
            let gone = self
                .process()?
                .request("session/delete", &json!({ "sessionId": agent_session_id.as_str() }));
            if let Err(fault) = gone {
                tracing::info!(?fault, "the agent did not delete its session");
            }
        }
        if let Some(branch) = branch {
            session_branches::delete(&self.recorder.engine, &self.recorder.call, branch.id)?;
        }
        self.out.respond(id, Ok(json!({})));
        Ok(())
    }

    /// Cancels what runs in a session, stores its pending turns and closes it. A session whose
    /// turns cannot be stored stays open.
    fn close_session(&self, session: &Arc<RecordedSession>) -> RpcResult<()> {
        self.store_pending(session)?;
        let named = json!({ "sessionId": session.agent_session.id.as_str() });
        if session.lock().running_prompts > 0 {
            let cancel =
                json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": named.clone() });
            session.process.send(&cancel);
        }
        if self.capabilities().close {
            let _ = session.process.request("session/close", &named);
        }
        self.sessions.close(session);
        self.finish(session, "the session was closed");
        Ok(())
    }

    /// Responds with a session, then sends what was held back for it.
    fn respond_with_session(&self, id: &Json, opened: OpenedSession) -> RpcResult<()> {
        let OpenedSession { session, answer } = opened;
        let mut state = session.lock();
        self.out.respond(id, Ok(answer));
        for message in state.held_back.take().unwrap_or_default() {
            self.handle(&session, &mut state, message);
        }
        Ok(())
    }
}

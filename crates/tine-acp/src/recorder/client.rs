//! What comes from the client: the methods of sessions, and all else, which passes through.
//!
//! What must reach the agent in the order in which it comes passes on the loop itself, prompts
//! among it; what has to wait for the agent is done on a thread.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::thread;

use tine_core::{Json, Limits, Reference, Status};
use tine_engine::{
    BranchView, Clock as _, Error, Fork, ForkPoint, NewConversation, SystemClock, TurnRef,
};

use super::capabilities;
use super::events::From;
use super::gap;
use super::keep::settled;
use super::link::Waiting;
use super::message::Message;
use super::policy::Opened;
use super::relay::{Relay, refusal};
use super::session::{Session, State, Wanted};
use super::splice;
use crate::json::json;
use crate::lines::{self, Line};
use crate::wire::{self, NO_JSON, NO_REQUEST, Refusal, Unreadable};
use crate::{anchor, branches, listing, show};

/// Where a message has the id of its session.
const SESSION: &[&str] = &["params", "sessionId"];

/// Where the cancellation of a request has the request's id.
const REQUEST: &[&str] = &["params", "requestId"];

/// Methods that the recorder answers itself, and so has to read.
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
                let id = outline.get("id").unwrap_or(&Json::Null);
                let answer = wire::answer(id, Err(Refusal::too_long(bytes, most)));
                match (outline.get("method"), relay.running()) {
                    // The agent waits for it.
                    (None, Some(link)) if !id.is_null() => link.send(&answer),
                    _ => relay.out.send(&answer),
                }
                continue;
            }
            Ok(Line::End) => break Ok(()),
            Err(error) => break Err(error),
        };
        let message = match read(line, relay.recorder.engine.limits()) {
            Ok(message) => message,
            Err(Unreadable { answer_to: Some(id), refusal }) => {
                relay.out.send(&wire::answer(&id, Err(refusal)));
                continue;
            }
            Err(Unreadable { answer_to: None, refusal }) => {
                tracing::warn!("the client wrote a line that is no message: {refusal}");
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

fn read(line: Vec<u8>, limits: &Limits) -> Result<Message, Unreadable> {
    let message = Message::read(line, limits)?;
    // The outline of a line that breaks a rule may lack members that the line has.
    match message.broken_rule {
        None => wire::check(&message.json).map(|()| message),
        Some(_) => Ok(message),
    }
}

/// Takes a message; what has to wait for the agent goes on elsewhere.
fn hear(relay: &Arc<Relay>, message: Message) -> Option<thread::JoinHandle<()>> {
    let method = message.text(&["method"]).unwrap_or_default().to_owned();
    let Some(id) = message.json.get("id").cloned().filter(|_| !method.is_empty()) else {
        pass(relay, message);
        return None;
    };
    let unreadable = message.broken_rule.as_ref().filter(|_| OWN.contains(&method.as_str()));
    if let Some(rule) = unreadable {
        relay.out.send(&wire::answer(&id, Err(Refusal::new(NO_JSON, rule))));
        return None;
    }
    let params = message.json.get("params").filter(|params| !params.is_null());
    let params = params.cloned().unwrap_or_else(|| json!({}));
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
    let work: fn(&Arc<Relay>, &Json, &Json) -> Result<(), Refusal> = match method.as_str() {
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

/// Forwards what expects no answer: notifications, and answers to what the agent asked.
fn pass(relay: &Relay, message: Message) {
    let Some(link) = relay.running() else { return };
    let mut members: Vec<(&[&str], Json)> = Vec::new();
    let asked = message.json.at(REQUEST);
    if let Some(id) = asked.and_then(|asked| link.id_of(asked)) {
        members.push((REQUEST, id.into()));
    }
    let session = session_of(relay, &message);
    members.extend(session.iter().map(|session| to_theirs(session)));
    let line = message.with(&members);
    if let Some(session) = session {
        session.lock().events.add(SystemClock.now(), From::Client, message);
    }
    link.send_line(line);
}

fn pass_request(relay: &Arc<Relay>, id: Json, message: Message) {
    let link = match relay.link() {
        Ok(link) => link,
        Err(refusal) => return relay.out.send(&wire::answer(&id, Err(refusal))),
    };
    let session = session_of(relay, &message);
    let line = message.with(&session.iter().map(|it| to_theirs(it)).collect::<Vec<_>>());
    if let Some(session) = session {
        session.lock().events.add(SystemClock.now(), From::Client, message);
    }
    let waiting = Waiting::Client { id: id.clone(), prompt: None };
    if link.pass(waiting, line).is_err() {
        let gone = refusal(super::link::Fault::Gone);
        relay.out.send(&wire::answer(&id, Err(gone)));
    }
}

/// Returns the open session that a message is about.
fn session_of(relay: &Relay, message: &Message) -> Option<Arc<Session>> {
    relay.sessions.ours(message.text(SESSION)?)
}

/// Returns the agent's id of a session, to be put in the place of the client's.
fn to_theirs(session: &Session) -> (&'static [&'static str], Json) {
    (SESSION, session.theirs.id.as_str().into())
}

impl Relay {
    fn prompt(self: &Arc<Self>, id: &Json, message: Message) -> Result<(), Refusal> {
        let params = message.json.get("params").unwrap_or(&Json::Null);
        let text = wire::text(params, "sessionId")?;
        let unknown = || Refusal::no_session(text, " that is open here; load or resume it first");
        let session = self.sessions.ours(text).ok_or_else(unknown)?;
        let question = match &message.broken_rule {
            None => params.get("prompt").and_then(Json::as_array).map(<[Json]>::to_vec),
            Some(rule) => Some(vec![gap::unread_block(rule)]),
        };
        let question = question.filter(|blocks| !blocks.is_empty()).ok_or_else(|| {
            Refusal::invalid("`prompt` must be an array of at least one content block")
        })?;
        let mut line = message.with(&[to_theirs(&session)]);
        {
            let mut state = session.lock();
            let before = state.derivation.close(Status::Complete);
            self.store(&session, &mut state, before);
            settled(&state)?;
            state.events.add(SystemClock.now(), From::Client, message);
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
            let mut blocks = question;
            if let Some(seed) = self.take_seed(&session, &mut state) {
                splice::prepend(&mut line, &["params", "prompt"], seed.to_canonical());
                blocks.insert(0, seed);
            }
            if let Some(asked) = &mut state.asked {
                asked.blocks = blocks;
            }
        }
        let link = Arc::clone(&session.link);
        let waiting = Waiting::Client { id: id.clone(), prompt: Some(session) };
        link.pass(waiting, line).map_err(|_| refusal(super::link::Fault::Gone))
    }

    /// Takes the seed that goes in front of the question, and shows the client its label.
    fn take_seed(&self, session: &Session, state: &mut State) -> Option<Json> {
        let seed = state.seed.take()?;
        let label = show::chunk(
            show::THINKING,
            &format!("context-{}", session.id),
            show::text(&seed.label()),
        );
        self.out.send(&wire::update(&session.id, label));
        Some(show::text(&seed.text))
    }

    fn show_title(&self, session: &Session, state: &State) -> Result<(), Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let conversation = engine.conversation(call, &state.branch.conversation)?;
        let title = listing::title(engine, call, &conversation, &state.branch)?;
        let update = json!({ "sessionUpdate": "session_info_update", "title": title });
        self.out.send(&wire::update(&session.id, update));
        Ok(())
    }

    fn new_session(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
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
        let client = self.client_info();
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
        params: &Json,
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

    fn load(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
        let opened = self.opened(params)?;
        let branch = opened.session.lock().branch.clone();
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        branches::replay(engine, call, &opened.session.id, &branch, &self.out)?;
        self.announce(id, opened)
    }

    fn resume(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
        let opened = self.opened(params)?;
        self.announce(id, opened)
    }

    /// The session that the parameters name. One that is open already stays as it is, unless
    /// others have written to its branch: the agent knows nothing of that.
    fn opened(self: &Arc<Self>, params: &Json) -> Result<Opened, Refusal> {
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

    fn fork(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
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

    fn list(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
        let page = self.all_sessions(params)?;
        self.out.send(&wire::answer(id, Ok(page)));
        Ok(())
    }

    fn close(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
        let text = wire::text(params, "sessionId")?;
        match self.sessions.ours(text) {
            Some(session) => self.shut(&session)?,
            None => drop(self.branch_of(text)?),
        }
        self.out.send(&wire::answer(id, Ok(json!({}))));
        Ok(())
    }

    fn delete(self: &Arc<Self>, id: &Json, params: &Json) -> Result<(), Refusal> {
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
            let gone = self.link()?.ask("session/delete", &json!({ "sessionId": theirs.as_str() }));
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
        let named = json!({ "sessionId": session.theirs.id.as_str() });
        if session.lock().running > 0 {
            let cancel =
                json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": named.clone() });
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
    fn announce(&self, id: &Json, opened: Opened) -> Result<(), Refusal> {
        let Opened { session, answer } = opened;
        let mut state = session.lock();
        self.out.send(&wire::answer(id, Ok(answer)));
        for message in state.held.take().unwrap_or_default() {
            self.hear(&session, &mut state, message);
        }
        Ok(())
    }
}

//! Storing: each turn with the lines that it was made of, in one transaction.
//!
//! What cannot be stored stays in memory, in order, and is tried again with whatever comes next;
//! until it is stored, no prompt is answered with success.

use std::sync::Arc;

use tine_core::json::{Json, Object};
use tine_core::{Body, Message, Metadata, Reference, Role, Status, TurnId};
use tine_engine::{
    Append, Clock as _, Interpret, MoveBranch, NewSource, OnConflict, SystemClock, TurnRef,
};
use tine_formats::redact;

use super::derive::Ready;
use super::events::{From, MIME};
use super::message::Message as Line;
use super::relay::Relay;
use super::session::{Asked, Session, State};
use crate::json::json;
use crate::wire::{self, Refusal};
use crate::{open_calls, show};

/// What stands for a turn that is too large or otherwise cannot be stored.
const NOT_STORABLE: &str = "[this could not be stored as it came; the recorded lines have it]";

/// What is known of a turn besides what it says.
#[derive(Default)]
struct About<'a> {
    /// The agent's own id of the message.
    theirs: Option<&'a str>,
    /// How a call ended.
    outcome: Option<&'a str>,
    context: Option<Json>,
    usage: Option<&'a Json>,
    /// Whether it was said before the session was recorded, and the agent told it again.
    history: bool,
}

impl<'a> About<'a> {
    fn of(ready: &'a Ready) -> Self {
        let (theirs, outcome) = (ready.theirs.as_deref(), ready.outcome.as_deref());
        About { theirs, outcome, ..About::default() }
    }
}

impl Relay {
    /// Stores turns that are whole. What fails is told at once, and with the answer to the prompt.
    pub(super) fn store(&self, session: &Session, state: &mut State, turns: Vec<Ready>) {
        self.store_with(session, state, turns, None);
    }

    /// The same, with what the last one cost.
    pub(super) fn store_with(
        &self,
        session: &Session,
        state: &mut State,
        turns: Vec<Ready>,
        usage: Option<&Json>,
    ) {
        state.unstored.extend(turns);
        while !state.unstored.is_empty() {
            let ready = state.unstored.remove(0);
            let last = state.unstored.is_empty();
            match self.store_one(session, state, &ready, usage.filter(|_| last)) {
                Ok(()) if last => self.recovered(session, state),
                Ok(()) => {}
                Err(refusal) => {
                    state.unstored.insert(0, ready);
                    return self.failed(session, state, refusal);
                }
            }
        }
    }

    /// Stores lines that led to no turn beside the last one there is.
    pub(super) fn store_events(&self, session: &Session, state: &mut State) {
        let Some(tip) = state.branch.tip else { return };
        if state.events.is_empty() || !state.unstored.is_empty() {
            return;
        }
        let (bytes, redacted) = state.events.bytes(self.recorder.redact, false);
        let call = self.recorder.call.clone().with_redacted(redacted);
        match self.recorder.engine.attach_source(&call, TurnRef::of(tip), lines(bytes, session)) {
            Ok(_) => {
                state.events.clear();
                self.recovered(session, state);
            }
            Err(error) => self.failed(session, state, error.into()),
        }
    }

    /// Tells the client that what it is shown is not recorded from here on.
    fn failed(&self, session: &Session, state: &mut State, why: Refusal) {
        tracing::error!(session = session.id, "what was said could not be stored: {why}");
        let told = format!(
            "Not recorded: {why}. What the agent says is still shown and held in memory, and is \
             recorded as soon as it can be; until then a crash would lose it.\n"
        );
        if state.fault.replace(why).is_none() {
            self.tell(session, &told, true);
        }
    }

    /// Takes it back: everything is recorded again.
    fn recovered(&self, session: &Session, state: &mut State) {
        if state.fault.take().is_some() {
            self.tell(
                session,
                "Recorded again: nothing that was said until here is missing.\n",
                false,
            );
        }
    }

    fn tell(&self, session: &Session, words: &str, unrecorded: bool) {
        let id = format!("record-{}", session.branch);
        let mut notice = show::chunk(show::THINKING, &id, show::text(words));
        wire::note(&mut notice, json!({ "unrecorded": unrecorded }));
        self.out.send(&wire::update(&session.id, notice));
    }

    /// Stores what could not be stored before, and refuses while that still fails.
    pub(super) fn settle(&self, session: &Session) -> Result<(), Refusal> {
        let mut state = session.lock();
        self.store(session, &mut state, Vec::new());
        settled(&state)
    }

    fn store_one(
        &self,
        session: &Session,
        state: &mut State,
        ready: &Ready,
        usage: Option<&Json>,
    ) -> Result<(), Refusal> {
        if !says_something(ready) {
            return Ok(());
        }
        let about = About { usage, ..About::of(ready) };
        self.append(session, state, Some(ready.id), vec![(self.message(ready), Some(about))])?;
        if ready.role == Role::Assistant {
            state.said = Some(ready.id);
        }
        Ok(())
    }

    /// Stores what an agent tells again of a session that it had before us, as far as it may be
    /// in one append all of it or nothing.
    pub(super) fn store_history(
        &self,
        session: &Session,
        state: &mut State,
        turns: &[Ready],
    ) -> Result<(), Refusal> {
        let turns: Vec<&Ready> = turns.iter().filter(|ready| says_something(ready)).collect();
        for turns in turns.chunks(self.recorder.engine.limits().messages_per_append) {
            let about = |ready| Some(About { history: true, ..About::of(ready) });
            let messages = turns.iter().map(|ready| (self.message(ready), about(*ready)));
            self.append(session, state, None, messages.collect())?;
        }
        Ok(())
    }

    fn message(&self, ready: &Ready) -> Message {
        Message {
            role: ready.role,
            body: self.body(&ready.content, ready.role),
            tool_call_id: ready.tool_call.clone(),
            created_at: None,
            status: ready.status,
            metadata: Metadata::default(),
        }
    }

    /// Stores a question, and before it results for calls that were left open.
    pub(super) fn store_question(
        &self,
        session: &Session,
        state: &mut State,
        blocks: &[Json],
    ) -> Result<TurnId, Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let limits = engine.limits();
        let body = Body::from_content(Json::Array(blocks.to_vec()), Role::User, limits)
            .map_err(|error| Refusal::invalid(format!("`prompt`: {error}")))?;
        let question = Message {
            role: Role::User,
            body,
            tool_call_id: None,
            created_at: None,
            status: Status::Complete,
            metadata: Metadata::default(),
        };
        let answered = open_calls::answered(engine, call, &state.branch)?;
        let context = state.seed.as_ref().map(|seed| seed.told());
        let about = About { context, ..About::default() };
        let mut messages: Vec<_> = answered.into_iter().map(|result| (result, None)).collect();
        messages.push((question, Some(about)));
        let before = state.branch.tip;
        let turn = self.append(session, state, None, messages)?;
        state.asked = Some(Asked { turn, before, blocks: Vec::new(), theirs: None });
        state.said = None;
        self.recovered(session, state);
        Ok(turn)
    }

    /// Appends messages to the session's branch; those that something is known about are what the
    /// lines led to.
    fn append(
        &self,
        session: &Session,
        state: &mut State,
        promised: Option<TurnId>,
        messages: Vec<(Message, Option<About<'_>>)>,
    ) -> Result<TurnId, Refusal> {
        let (mut messages, known): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
        let (engine, redacts) = (&self.recorder.engine, self.recorder.redact);
        let mut redacted = match redacts {
            true => redact::messages(&mut messages),
            false => redact::Redacted::new(),
        };
        let (bytes, more) = state.events.bytes(redacts, !redacted.is_empty());
        more.into_iter().for_each(|(kind, count)| *redacted.entry(kind).or_default() += count);
        let call = self.recorder.call.clone().with_redacted(redacted);
        if !state.events.is_empty() {
            let source = engine.source_id_of(&call, &bytes).to_string();
            state.part = json!({ "source_id": source, "lines": state.events.len() });
        }
        for (message, about) in messages.iter_mut().zip(&known) {
            if let Some(about) = about {
                message.metadata = self.metadata(session, state, message.role, about);
            }
        }
        let request = Append {
            branch: Some(state.branch.id.to_string()),
            expected_tip: match state.branch.tip {
                Some(tip) => Some(tip.into()),
                None => Reference::parse("root").ok(),
            },
            on_conflict: OnConflict::Fork,
            ..Append::to(state.branch.conversation.clone(), messages)
        };
        // A line that led to two turns is stored with the first.
        let done = match promised {
            Some(id) if state.events.is_empty() => engine.append_as(&call, id, request)?,
            _ => engine.append_with_source(&call, promised, request, lines(bytes, session))?,
        };
        state.events.clear();
        if done.forked {
            tracing::warn!(session = session.id, branch = %done.branch.name,
                "others wrote to the session; it goes on in a branch of its own");
        }
        state.branch = done.branch;
        let last = done.turns.last().map(|turn| turn.id);
        last.ok_or_else(|| Refusal::of(tine_core::ErrorKind::Internal, "nothing was appended"))
    }

    fn metadata(
        &self,
        session: &Session,
        state: &State,
        role: Role,
        about: &About<'_>,
    ) -> Metadata {
        let mut acp = Object::new();
        acp.insert("agent", self.agent().into());
        acp.insert("session", session.theirs.id.as_str().into());
        acp.insert("uses_before", session.theirs.uses_before.into());
        if let Some(theirs) = about.theirs {
            acp.insert("message", theirs.into());
        }
        let asked = state.asked.as_ref().filter(|_| role != Role::User);
        if let Some(question) = asked.and_then(|asked| asked.theirs.as_deref()) {
            acp.insert("question", question.into());
        }
        if about.history {
            acp.insert("history", true.into());
        }
        let mut known = Object::new();
        known.insert("workspace", json!({ "cwd": session.cwd.as_str() }));
        known.insert("client", self.client_info());
        known.insert("acp", acp.into());
        known.insert("events", state.part.clone());
        if role == Role::Assistant {
            known.insert("provider", self.agent().into());
        }
        if let Some(usage) = about.usage {
            known.insert("usage", usage.clone());
        }
        let mut custom = Object::new();
        if let Some(outcome) = about.outcome {
            custom.insert("status", outcome.into());
        }
        if let Some(context) = &about.context {
            custom.insert("context", context.clone());
        }
        let custom_data = (!custom.is_empty()).then(|| json!({ "acp": custom }));
        Metadata { source_info: Some(known.into()), custom_data, ..Metadata::default() }
    }

    /// Content as a body; what the store refuses is told of.
    fn body(&self, content: &[Json], role: Role) -> Body {
        let limits = self.recorder.engine.limits();
        let body = Body::from_content(Json::Array(content.to_vec()), role, limits);
        body.unwrap_or_else(|error| {
            tracing::warn!("what was said cannot be stored as it came: {error}");
            Body::Text(NOT_STORABLE.to_owned())
        })
    }

    /// What was refused is not part of what is asked next: the branch goes back to before the
    /// question. The turns stay.
    pub(super) fn take_back(&self, state: &mut State) -> Result<(), Refusal> {
        let Some(asked) = &state.asked else { return Ok(()) };
        let to = match asked.before {
            Some(turn) => turn.into(),
            None => Reference::parse("root").map_err(tine_engine::Error::from)?,
        };
        let request = MoveBranch {
            conversation: state.branch.conversation.clone(),
            branch: state.branch.id.to_string(),
            to: Some(to),
            expected_tip: state.branch.tip.map(Reference::from),
        };
        state.branch = self.recorder.engine.revert(&self.recorder.call, request)?;
        Ok(())
    }

    /// Stores all that a session has said, at its end; what cannot be stored is left for later.
    pub(super) fn finish(&self, session: &Arc<Session>, why: &str) {
        let mut state = session.lock();
        let status = if state.running > 0 { Status::Partial } else { Status::Complete };
        let turns = state.derivation.close(status);
        if !turns.is_empty() || !state.events.is_empty() {
            let now = SystemClock.now();
            state.events.add(now, From::Recorder, Line::own(json!({ "ended": why })));
        }
        self.store(session, &mut state, turns);
        self.store_events(session, &mut state);
        if !state.unstored.is_empty() {
            self.left().push(Arc::clone(session));
        }
    }

    /// Stores what sessions left that have ended meanwhile.
    pub(super) fn settle_left(&self) -> Result<(), Refusal> {
        let mut left = self.left();
        while let Some(session) = left.last() {
            self.settle(session)?;
            left.pop();
        }
        Ok(())
    }
}

/// Whether a turn is worth storing: an agent may begin one and say nothing.
fn says_something(ready: &Ready) -> bool {
    let empty = |block: &Json| {
        let text = block.get("text").and_then(Json::as_str);
        block.get("type").and_then(Json::as_str) == Some("text") && text == Some("")
    };
    ready.role == Role::Tool || !ready.content.iter().all(empty)
}

/// Refuses while turns of a session are not stored.
pub(super) fn settled(state: &State) -> Result<(), Refusal> {
    match state.fault.as_ref().filter(|_| !state.unstored.is_empty()) {
        Some(fault) => Err(unstored(fault)),
        None => Ok(()),
    }
}

/// Why a session takes no more.
pub(super) fn unstored(fault: &Refusal) -> Refusal {
    let why = "it is held in memory, and recorded as soon as it can be";
    fault.put(format!("what was said could not be recorded: {fault}; {why}"))
}

fn lines(bytes: Vec<u8>, session: &Session) -> NewSource {
    NewSource {
        content: Arc::new(bytes),
        mime_type: MIME.to_owned(),
        original_filename: Some(format!("{}.jsonl", session.branch)),
        interpret: Interpret::None,
        interpreter: None,
    }
}

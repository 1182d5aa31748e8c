//! Storing: each turn with the lines that it was made of, in one transaction.
//!
//! What cannot be stored stays in memory, in order, and is tried again with whatever comes next;
//! until it is stored, no prompt is answered with success.

use std::sync::Arc;

use serde_json::{Value, json};
use tine_core::json::Json;
use tine_core::{Body, Message, Metadata, Reference, Role, Status, TurnId};
use tine_engine::{
    Append, Clock as _, Interpret, MoveBranch, NewSource, OnConflict, SystemClock, TurnRef,
};
use tine_formats::redact;

use super::derive::Ready;
use super::events::{From, MIME};
use super::relay::Relay;
use super::session::{Asked, Session, State};
use crate::open_calls;
use crate::wire::{self, Refusal};

/// What stands for a turn that is too large or otherwise cannot be stored.
const NOT_STORABLE: &str = "[this could not be stored as it came; the recorded lines have it]";

/// What is known of a turn besides what it says.
#[derive(Default)]
struct About<'a> {
    theirs: Option<&'a str>,
    outcome: Option<&'a str>,
    context: Option<Value>,
    usage: Option<&'a Value>,
}

impl Relay {
    /// Stores turns that are whole. What fails is told with the answer to the prompt.
    pub(super) fn store(&self, session: &Session, state: &mut State, turns: Vec<Ready>) {
        self.store_with(session, state, turns, None);
    }

    /// The same, with what the last one cost.
    pub(super) fn store_with(
        &self,
        session: &Session,
        state: &mut State,
        turns: Vec<Ready>,
        usage: Option<&Value>,
    ) {
        state.unstored.extend(turns);
        while !state.unstored.is_empty() {
            let ready = state.unstored.remove(0);
            let last = state.unstored.is_empty();
            match self.store_one(session, state, &ready, usage.filter(|_| last)) {
                Ok(()) => state.fault = None,
                Err(refusal) => {
                    tracing::error!(session = session.id, "{refusal}");
                    state.fault = Some(refusal.to_string());
                    state.unstored.insert(0, ready);
                    return;
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
        match self.recorder.engine.keep_beside(&call, TurnRef::of(tip), lines(bytes, session)) {
            Ok(_) => state.events.clear(),
            Err(error) => {
                tracing::error!(session = session.id, %error, "lines could not be stored");
                state.fault = Some(error.to_string());
            }
        }
    }

    fn store_one(
        &self,
        session: &Session,
        state: &mut State,
        ready: &Ready,
        usage: Option<&Value>,
    ) -> Result<(), Refusal> {
        let empty = |block: &Value| {
            let text = block.get("text").and_then(Value::as_str);
            block.get("type") == Some(&"text".into()) && text == Some("")
        };
        if ready.role != Role::Tool && ready.content.iter().all(empty) {
            return Ok(());
        }
        let body = self.body(&ready.content, ready.role);
        let about = About {
            theirs: ready.theirs.as_deref(),
            outcome: ready.outcome.as_deref(),
            usage,
            context: None,
        };
        let message = Message {
            role: ready.role,
            body,
            tool_call_id: ready.tool_call.clone(),
            created_at: None,
            status: ready.status,
            metadata: Metadata::default(),
        };
        self.append(session, state, Some(ready.id), vec![message], &about)?;
        if ready.role == Role::Assistant {
            state.said = Some(ready.id);
        }
        Ok(())
    }

    /// Stores a question, and before it results for calls that were left open.
    pub(super) fn store_question(
        &self,
        session: &Session,
        state: &mut State,
        blocks: &[Value],
    ) -> Result<TurnId, Refusal> {
        self.store(session, state, Vec::new());
        if let Some(fault) = state.fault.as_ref().filter(|_| !state.unstored.is_empty()) {
            return Err(unstored(fault));
        }
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let limits = engine.limits();
        let exact = blocks.iter().map(|block| wire::exact(block, limits));
        let content = Json::Array(exact.collect::<Result<_, _>>()?);
        let body = Body::from_content(content, Role::User, limits)
            .map_err(|error| Refusal::invalid(format!("`prompt`: {error}")))?;
        let question = Message {
            role: Role::User,
            body,
            tool_call_id: None,
            created_at: None,
            status: Status::Complete,
            metadata: Metadata::default(),
        };
        let mut messages = open_calls::answered(engine, call, &state.branch)?;
        messages.push(question);
        let before = state.branch.tip;
        let context = state.seed.as_ref().map(|seed| seed.told());
        let about = About { context, ..About::default() };
        let turn = self.append(session, state, None, messages, &about)?;
        state.asked = Some(Asked { turn, before, blocks: Vec::new() });
        state.said = None;
        Ok(turn)
    }

    /// Appends messages to the session's branch; the last of them is what the lines led to.
    fn append(
        &self,
        session: &Session,
        state: &mut State,
        promised: Option<TurnId>,
        mut messages: Vec<Message>,
        about: &About<'_>,
    ) -> Result<TurnId, Refusal> {
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
        let lines_of = state.part.clone();
        if let Some(last) = messages.last_mut() {
            last.metadata = self.metadata(session, last.role, lines_of, about)?;
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
            _ => engine.append_read_from(&call, promised, request, lines(bytes, session))?,
        };
        state.events.clear();
        if done.forked {
            tracing::warn!(session = session.id, branch = %done.branch.name,
                "others wrote to the session; it goes on in a branch of its own");
        }
        state.branch = done.branch;
        let last = done.turns.last().map(|(turn, _)| turn.id);
        last.ok_or_else(|| Refusal::of(tine_core::Kind::Internal, "nothing was appended"))
    }

    fn metadata(
        &self,
        session: &Session,
        role: Role,
        lines_of: Value,
        about: &About<'_>,
    ) -> Result<Metadata, Refusal> {
        let mut acp = json!({
            "agent": self.agent(),
            "session": session.theirs,
            "opened_at": session.opened_at.to_string(),
        });
        if let Some(theirs) = about.theirs {
            acp["message"] = theirs.into();
        }
        let mut known = json!({
            "workspace": { "cwd": session.cwd },
            "client": self.client_info(),
            "acp": acp,
            "events": lines_of,
        });
        if role == Role::Assistant {
            known["provider"] = self.agent().into();
        }
        if let Some(usage) = about.usage {
            known["usage"] = usage.clone();
        }
        let mut custom = json!({});
        if let Some(outcome) = about.outcome {
            custom["status"] = outcome.into();
        }
        if let Some(context) = &about.context {
            custom["context"] = context.clone();
        }
        let limits = self.recorder.engine.limits();
        let custom_data = match custom.as_object().is_some_and(|it| !it.is_empty()) {
            true => Some(wire::exact(&json!({ "acp": custom }), limits)?),
            false => None,
        };
        let source_info = Some(wire::exact(&known, limits)?);
        Ok(Metadata { source_info, custom_data, ..Metadata::default() })
    }

    /// Content as a body; what the store refuses is told of.
    fn body(&self, content: &[Value], role: Role) -> Body {
        let limits = self.recorder.engine.limits();
        let blocks = content.iter().map(|block| wire::exact(block, limits).ok());
        let body = blocks
            .collect::<Option<Vec<_>>>()
            .and_then(|blocks| Body::from_content(Json::Array(blocks), role, limits).ok());
        body.unwrap_or_else(|| {
            tracing::warn!("what was said cannot be stored as it came");
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

    /// Stores all that a session has said, at its end.
    pub(super) fn finish(&self, session: &Arc<Session>, why: &str) {
        let mut state = session.lock();
        let status = if state.running > 0 { Status::Partial } else { Status::Complete };
        let turns = state.derivation.close(status);
        if !turns.is_empty() || !state.events.is_empty() {
            let now = SystemClock.now();
            state.events.add(now, From::Recorder, json!({ "ended": why }));
        }
        self.store(session, &mut state, turns);
        self.store_events(session, &mut state);
    }
}

/// Why a session takes no more.
pub(super) fn unstored(fault: &str) -> Refusal {
    let why =
        format!("what was said could not be recorded: {fault}; it is kept here and tried again");
    Refusal::of(tine_core::Kind::Internal, why)
}

fn lines(bytes: Vec<u8>, session: &Session) -> NewSource {
    NewSource {
        content: Arc::new(bytes),
        mime_type: MIME.to_owned(),
        original_filename: Some(format!("{}.jsonl", session.id)),
        interpret: Interpret::None,
        interpreter: None,
    }
}

//! Stores each turn with the lines it was built from, in one transaction.
//!
//! What cannot be stored stays in memory, in order, and is retried with the next message. Until it
//! is stored, no prompt gets a successful response.

use std::sync::Arc;

use tine_core::json::{Json, Object};
use tine_core::{Body, Message, Metadata, Role, Status, TurnId};
use tine_engine::{Append, Clock as _, Interpret, NewSource, OnConflict, SystemClock, TurnRef};
use tine_formats::redact;

use super::event_lines::{EventSender, MIME};
use super::raw_message::RawMessage;
use super::recorded_sessions::{RecordedSession, SentPrompt, SessionState};
use super::relay::Relay;
use super::turn_builder::BuiltTurn;
use crate::json_macro::json;
use crate::json_rpc::{self, RpcError, RpcResult};
use crate::session_updates::{THOUGHT_CHUNK, message_chunk, text_content};
use crate::{prompt, session_branches, unanswered_calls};

/// The content of a turn that cannot be stored.
const NOT_STORABLE: &str = "[the content could not be stored; the recorded lines have it]";

/// What is recorded about a turn besides its content.
#[derive(Default)]
struct TurnDetails<'a> {
    /// The agent's own id of the message.
    agent_message_id: Option<&'a str>,
    /// The final status of a call.
    outcome: Option<&'a str>,
    context: Option<Json>,
    usage: Option<&'a Json>,
    /// Whether it was replayed by the agent, from before the session was recorded.
    history: bool,
}

impl<'a> TurnDetails<'a> {
    fn of(ready: &'a BuiltTurn) -> Self {
        let (agent_message_id, outcome) =
            (ready.agent_message_id.as_deref(), ready.outcome.as_deref());
        TurnDetails { agent_message_id, outcome, ..TurnDetails::default() }
    }
}

impl Relay {
    /// Stores complete turns. A failure is reported at once, and in the response to the prompt.
    pub(super) fn store(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        turns: Vec<BuiltTurn>,
    ) {
        self.store_with(session, state, turns, None);
    }

    /// Stores complete turns, the last one with its usage.
    pub(super) fn store_with(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        turns: Vec<BuiltTurn>,
        usage: Option<&Json>,
    ) {
        state.unstored.extend(turns);
        while !state.unstored.is_empty() {
            let ready = state.unstored.remove(0);
            let last = state.unstored.is_empty();
            match self.store_one(session, state, &ready, usage.filter(|_| last)) {
                Ok(()) if last => self.report_recovery(session, state),
                Ok(()) => {}
                Err(error) => {
                    state.unstored.insert(0, ready);
                    return self.report_store_failure(session, state, error);
                }
            }
        }
    }

    /// Stores lines that led to no turn, attached to the last turn.
    pub(super) fn store_events(&self, session: &RecordedSession, state: &mut SessionState) {
        let Some(tip) = state.branch.tip else { return };
        if state.events.is_empty() || !state.unstored.is_empty() {
            return;
        }
        let (bytes, redacted) = state.events.bytes(self.recorder.redact, false);
        let call = self.recorder.call.clone().with_redacted(redacted);
        match self.recorder.engine.attach_source(&call, TurnRef::of(tip), lines(bytes, session)) {
            Ok(_) => {
                state.events.clear();
                self.report_recovery(session, state);
            }
            Err(error) => self.report_store_failure(session, state, error.into()),
        }
    }

    /// Notifies the client that output is not being recorded.
    fn report_store_failure(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        why: RpcError,
    ) {
        tracing::error!(session = session.id, "a turn could not be stored: {why}");
        let notice = format!(
            "Not recorded: {why}. Output is still shown and kept in memory, and will be recorded as \
             soon as possible; until then, a crash would lose it.\n"
        );
        if state.store_error.replace(why).is_none() {
            self.notify_client(session, &notice, true);
        }
    }

    /// Notifies the client that everything is recorded again.
    fn report_recovery(&self, session: &RecordedSession, state: &mut SessionState) {
        if state.store_error.take().is_some() {
            self.notify_client(
                session,
                "Recorded again: nothing that was said until here is missing.\n",
                false,
            );
        }
    }

    fn notify_client(&self, session: &RecordedSession, words: &str, unrecorded: bool) {
        let id = format!("record-{}", session.branch);
        let mut notice = message_chunk(THOUGHT_CHUNK, &id, text_content(words));
        json_rpc::add_note(&mut notice, json!({ "unrecorded": unrecorded }));
        self.out.send_update(&session.id, notice);
    }

    /// Retries what could not be stored, and fails if that fails again.
    pub(super) fn store_pending(&self, session: &RecordedSession) -> RpcResult<()> {
        let mut state = session.lock();
        self.store(session, &mut state, Vec::new());
        check_stored(&state)
    }

    fn store_one(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        ready: &BuiltTurn,
        usage: Option<&Json>,
    ) -> RpcResult<()> {
        if !has_content(ready) {
            return Ok(());
        }
        let about = TurnDetails { usage, ..TurnDetails::of(ready) };
        self.append(session, state, Some(ready.id), vec![(self.message(ready), Some(about))])?;
        if ready.role == Role::Assistant {
            state.last_answer = Some(ready.id);
        }
        Ok(())
    }

    /// Stores the replay of a session, in as few appends as the limits allow.
    pub(super) fn store_history(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        turns: &[BuiltTurn],
    ) -> RpcResult<()> {
        let turns: Vec<&BuiltTurn> = turns.iter().filter(|ready| has_content(ready)).collect();
        for turns in turns.chunks(self.recorder.engine.limits().messages_per_append) {
            let about = |ready| Some(TurnDetails { history: true, ..TurnDetails::of(ready) });
            let messages = turns.iter().map(|ready| (self.message(ready), about(*ready)));
            self.append(session, state, None, messages.collect())?;
        }
        Ok(())
    }

    fn message(&self, ready: &BuiltTurn) -> Message {
        Message {
            body: self.body(&ready.content, ready.role),
            tool_call_id: ready.tool_call.clone(),
            status: ready.status,
            ..Message::text(ready.role, "")
        }
    }

    /// Stores a question, preceded by placeholder results for unanswered calls.
    pub(super) fn store_question(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        blocks: &[Json],
    ) -> RpcResult<TurnId> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let question = prompt::question_message(blocks, engine.limits())?;
        let answered = unanswered_calls::placeholder_results(engine, call, &state.branch)?;
        let context = state.seed.as_ref().map(|seed| seed.to_json());
        let about = TurnDetails { context, ..TurnDetails::default() };
        let mut messages: Vec<_> = answered.into_iter().map(|result| (result, None)).collect();
        messages.push((question, Some(about)));
        let before = state.branch.tip;
        let turn = self.append(session, state, None, messages)?;
        state.last_prompt =
            Some(SentPrompt { turn, before, blocks: Vec::new(), agent_message_id: None });
        state.last_answer = None;
        self.report_recovery(session, state);
        Ok(turn)
    }

    /// Appends messages to the session's branch. Those with details were built from the pending
    /// lines.
    fn append(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        promised: Option<TurnId>,
        messages: Vec<(Message, Option<TurnDetails<'_>>)>,
    ) -> RpcResult<TurnId> {
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
            state.event_range = json!({ "source_id": source, "lines": state.events.len() });
        }
        for (message, about) in messages.iter_mut().zip(&known) {
            if let Some(about) = about {
                message.metadata = self.metadata(session, state, message.role, about);
            }
        }
        let request = Append {
            on_conflict: OnConflict::Fork,
            ..session_branches::append_at_tip(&state.branch, messages)
        };
        // A line that led to two turns is stored with the first.
        let done = match promised {
            Some(id) if state.events.is_empty() => engine.append_as(&call, id, request)?,
            _ => engine.append_with_source(&call, promised, request, lines(bytes, session))?,
        };
        state.events.clear();
        if done.forked {
            tracing::warn!(session = session.id, branch = %done.branch.name,
                "others wrote to the session; it continues on a new branch");
        }
        state.branch = done.branch;
        let last = done.turns.last().map(|turn| turn.id);
        last.ok_or_else(|| RpcError::of(tine_core::ErrorKind::Internal, "nothing was appended"))
    }

    fn metadata(
        &self,
        session: &RecordedSession,
        state: &SessionState,
        role: Role,
        about: &TurnDetails<'_>,
    ) -> Metadata {
        let mut acp = Object::new();
        acp.insert("agent", self.agent().into());
        acp.insert("session", session.agent_session.id.as_str().into());
        acp.insert("uses_before", session.agent_session.uses_before.into());
        if let Some(id) = about.agent_message_id {
            acp.insert("message", id.into());
        }
        let asked = state.last_prompt.as_ref().filter(|_| role != Role::User);
        if let Some(question) = asked.and_then(|asked| asked.agent_message_id.as_deref()) {
            acp.insert("question", question.into());
        }
        if about.history {
            acp.insert("history", true.into());
        }
        let mut known = Object::new();
        known.insert("workspace", json!({ "cwd": session.cwd.as_str() }));
        known.insert("client", self.client_info());
        known.insert("acp", acp.into());
        known.insert("events", state.event_range.clone());
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

    /// Returns content as a body, or a placeholder if it cannot be stored.
    fn body(&self, content: &[Json], role: Role) -> Body {
        let limits = self.recorder.engine.limits();
        let body = Body::from_content(Json::Array(content.to_vec()), role, limits);
        body.unwrap_or_else(|error| {
            tracing::warn!("the content of a turn cannot be stored: {error}");
            Body::Text(NOT_STORABLE.to_owned())
        })
    }

    pub(super) fn revert_refused_prompt(&self, state: &mut SessionState) -> RpcResult<()> {
        let Some(asked) = &state.last_prompt else { return Ok(()) };
        let before = session_branches::turn_or_root(asked.before);
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        state.branch =
            session_branches::revert_refused_question(engine, call, &state.branch, before)?;
        Ok(())
    }

    /// Stores everything pending in a session that ends. What cannot be stored is kept for later.
    pub(super) fn finish(&self, session: &Arc<RecordedSession>, why: &str) {
        let mut state = session.lock();
        let status = if state.running_prompts > 0 { Status::Partial } else { Status::Complete };
        let turns = state.turns.close(status);
        if !turns.is_empty() || !state.events.is_empty() {
            let now = SystemClock.now();
            state.events.add(now, EventSender::Recorder, RawMessage::own(json!({ "ended": why })));
        }
        self.store(session, &mut state, turns);
        self.store_events(session, &mut state);
        if !state.unstored.is_empty() {
            self.unfinished().push(Arc::clone(session));
        }
    }

    /// Stores what closed sessions could not store.
    pub(super) fn store_unfinished(&self) -> RpcResult<()> {
        let mut left = self.unfinished();
        while let Some(session) = left.last() {
            self.store_pending(session)?;
            left.pop();
        }
        Ok(())
    }
}

/// Returns whether a turn has content: an agent may begin one and add nothing.
fn has_content(ready: &BuiltTurn) -> bool {
    let empty = |block: &Json| {
        let text = block.get("text").and_then(Json::as_str);
        block.get("type").and_then(Json::as_str) == Some("text") && text == Some("")
    };
    ready.role == Role::Tool || !ready.content.iter().all(empty)
}

/// Fails while a session has turns that are not stored.
pub(super) fn check_stored(state: &SessionState) -> RpcResult<()> {
    match state.store_error.as_ref().filter(|_| !state.unstored.is_empty()) {
        Some(fault) => Err(not_stored_error(fault)),
        None => Ok(()),
    }
}

/// Returns the error for a session whose turns could not be stored.
pub(super) fn not_stored_error(fault: &RpcError) -> RpcError {
    let why = "it is held in memory and will be recorded as soon as possible";
    fault.with_message(format!("a turn could not be recorded: {fault}; {why}"))
}

fn lines(bytes: Vec<u8>, session: &RecordedSession) -> NewSource {
    NewSource {
        content: Arc::new(bytes),
        mime_type: MIME.to_owned(),
        original_filename: Some(format!("{}.jsonl", session.branch)),
        interpret: Interpret::None,
        interpreter: None,
    }
}

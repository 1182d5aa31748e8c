//! Messages from the agent: updates, requests to the client, and responses.

use std::io::Read;
use std::sync::Arc;

use tine_core::json::Object;
use tine_core::{ErrorKind, Json, Status};
use tine_engine::{Clock as _, SystemClock};

use super::agent_process::{AgentProcess, PendingRequest};
use super::event_lines::EventSender;
use super::gap;
use super::raw_message::RawMessage;
use super::recorded_sessions::{RecordedSession, SessionState};
use super::relay::Relay;
use super::turn_storage::{check_stored, not_stored_error};
use crate::json_macro::json;
use crate::json_rpc::{self, RpcError, UnreadableLine};
use crate::line_io::{InputLine, LineReader};
use crate::session_updates::{AGENT_CHUNK, THOUGHT_CHUNK, USER_CHUNK};

/// The path of an update's kind.
const KIND: &[&str] = &["params", "update", "sessionUpdate"];

/// The path of the notes in the response to a prompt.
const META: &[&str] = &["result", "_meta"];

/// Handles everything the agent writes until it ends, then stores what is unfinished.
pub(super) fn listen(relay: &Arc<Relay>, process: &Arc<AgentProcess>, output: impl Read) {
    let limits = relay.recorder.engine.limits();
    let most = relay.recorder.line_bytes;
    let mut lines = LineReader::new(output, most);
    loop {
        match lines.next_line() {
            Ok(Some(InputLine::Whole(line))) => match RawMessage::read(line, limits) {
                Ok(message) if message.json.as_object().is_some() => {
                    handle(relay, process, message);
                }
                Ok(_) => tracing::warn!("dropped a line of the agent that is not an object"),
                Err(UnreadableLine { error, .. }) => {
                    tracing::warn!("dropped a line of the agent that is not a message: {error}");
                }
            },
            Ok(Some(InputLine::TooLong { bytes, outline })) => {
                tracing::warn!(bytes, most, "the agent wrote an oversized line");
                if let Some(asked) = gap::dropped_request_id(&outline) {
                    process.respond(asked, Err(RpcError::too_long(bytes, most)));
                }
                if let Some(message) = gap::replacement(&outline, bytes, most) {
                    handle(relay, process, RawMessage::own(message));
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "cannot read the agent's output");
                break;
            }
        }
    }
    let waiting = process.mark_gone();
    let why = process.exit_description();
    tracing::info!("{why}");
    for session in relay.sessions.close_all_of(process) {
        relay.finish(&session, &why);
    }
    for waiting in waiting {
        if let PendingRequest::Client { id, prompt } = waiting {
            let advice = "its output was kept; load the session again to continue";
            let mut error = RpcError::of(ErrorKind::Internal, format!("{why}; {advice}"));
            if let Some(session) = prompt {
                let state = session.lock();
                if let Err(unstored) = check_stored(&state) {
                    error = unstored.with_message(format!("{why}; {unstored}"));
                }
                let asked = state.last_prompt.as_ref().map(|asked| asked.turn.to_string());
                let data = json!({ "sessionId": session.id.as_str(), "userMessageId": asked });
                error = error.with_data(data);
            }
            relay.out.respond(&id, Err(error));
        }
    }
}

fn handle(relay: &Arc<Relay>, process: &AgentProcess, message: RawMessage) {
    if message.json.get("method").is_none() {
        return answer(relay, process, message);
    }
    let session = message.text(&["params", "sessionId"]).map(str::to_owned);
    let Some(id) = session else { return relay.out.send_line(message.with(&[])) };
    if !is_update(&message) && relay.sessions.by_agent_id(&id).is_none() {
        return relay.out.send_line(message.with(&[]));
    }
    if let Some((session, message)) = relay.sessions.route(&id, message) {
        let mut state = session.lock();
        let passed_over = match &mut state.muted_replay {
            Some(questions) if is_history(&message) => {
                questions.push_str(question_text(&message));
                true
            }
            _ => false,
        };
        // Requests are not held back: the agent may need the response to create the session.
        let asks = message.json.get("id").is_some();
        match &mut state.held_back {
            Some(_) if passed_over => {}
            Some(held_back) if !asks => held_back.push(message),
            _ => relay.handle(&session, &mut state, message),
        }
    }
}

fn is_update(message: &RawMessage) -> bool {
    message.text(&["method"]) == Some("session/update")
}

/// Returns whether an update is part of the conversation, rather than about the session's state.
pub(super) fn is_history(message: &RawMessage) -> bool {
    let said = [USER_CHUNK, AGENT_CHUNK, THOUGHT_CHUNK, "tool_call", "tool_call_update", "plan"];
    message.json.at(&["params", "update"]).is_some_and(|update| said.contains(&kind_of(update)))
}

/// Returns the update in a message, for deriving turns.
pub(super) fn update_of(message: &RawMessage) -> Json {
    match &message.broken_rule {
        None => message.json.at(&["params", "update"]).cloned().unwrap_or_default(),
        Some(rule) => gap::unread_update(&message.json, rule),
    }
}

fn kind_of(update: &Json) -> &str {
    update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default()
}

/// Returns the text of an update that shows a question.
fn question_text(message: &RawMessage) -> &str {
    let is_question = message.text(&["params", "update", "sessionUpdate"]) == Some(USER_CHUNK);
    let text = message.text(&["params", "update", "content", "text"]);
    text.filter(|_| is_question).unwrap_or_default()
}

/// Handles a response, to the recorder's own request or the client's.
fn answer(relay: &Arc<Relay>, process: &AgentProcess, message: RawMessage) {
    let Some(waiting) = message.json.get("id").and_then(|id| process.take_pending(id)) else {
        return tracing::warn!("ignored a response of the agent that matches no request");
    };
    match waiting {
        PendingRequest::Own(asked) => {
            let answer = match &message.broken_rule {
                None => match (message.json.get("error"), message.json.get("result")) {
                    (Some(error), _) => Err(error.clone()),
                    (None, result) => Ok(result.cloned().unwrap_or_default()),
                },
                Some(rule) => Err(json!({ "message": format!("the agent's response: {rule}") })),
            };
            // The requester may have given up.
            let _ = asked.send(answer);
        }
        PendingRequest::Client { id, prompt: Some(session) } => {
            relay.answer_prompt(&session, id, message);
        }
        PendingRequest::Client { id, prompt: None } => {
            relay.out.send_line(message.with(&[(&["id"], id)]));
        }
    }
}

impl Relay {
    /// Records a message in a session and forwards it.
    pub(super) fn handle(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        message: RawMessage,
    ) {
        if is_update(&message) {
            self.handle_update(session, state, message);
        } else {
            if message.json.get("id").is_some() {
                let turns = state.turns.close_calls();
                self.store(session, state, turns);
            }
            let session_id = session.id.as_str().into();
            self.out.send_line(message.with(&[(&["params", "sessionId"], session_id)]));
            state.events.add(SystemClock.now(), EventSender::Agent, message);
        }
    }

    fn handle_update(
        &self,
        session: &RecordedSession,
        state: &mut SessionState,
        message: RawMessage,
    ) {
        let update = &update_of(&message);
        if self.hides(state, update) {
            if let Some(asked) =
                state.last_prompt.as_mut().filter(|_| kind_of(update) == USER_CHUNK)
            {
                let agent_message_id =
                    update.get("messageId").and_then(Json::as_str).map(str::to_owned);
                asked.agent_message_id = asked.agent_message_id.take().or(agent_message_id);
            }
            state.events.add(SystemClock.now(), EventSender::Agent, message);
            return;
        }
        let due = state.turns.due(update);
        self.store(session, state, due);
        let promise = || self.recorder.engine.promise_turn_id();
        let mut ids: Vec<(&[&str], Json)> =
            vec![(&["params", "sessionId"], session.id.as_str().into())];
        let shown_as = state.turns.take(update, &promise);
        // A plan that could not be read becomes part of a message, but is shown as a plan.
        if let Some(id) = shown_as.filter(|_| message.text(KIND) == Some(kind_of(update))) {
            ids.push((&["params", "update", "messageId"], id.into()));
        }
        self.out.send_line(message.with(&ids));
        let calls = state.turns.started_calls(update);
        let result = state.turns.result(update, &promise);
        let from =
            if gap::is_gap(&message.json) { EventSender::Recorder } else { EventSender::Agent };
        // The line of a result belongs to the result; one that has the whole call belongs to the
        // call.
        if state.events.is_empty() || calls.is_empty() {
            state.events.add(SystemClock.now(), from, message);
            self.store(session, state, calls);
        } else {
            self.store(session, state, calls);
            state.events.add(SystemClock.now(), from, message);
        }
        self.store(session, state, result.into_iter().collect());
    }

    /// Returns whether an update is hidden from the client: an echo of its question, or a title
    /// that may repeat the seed.
    fn hides(&self, state: &SessionState, update: &Json) -> bool {
        match kind_of(update) {
            USER_CHUNK => {
                let content = update.get("content").unwrap_or(&Json::Null);
                state.last_prompt.as_ref().is_some_and(|asked| asked.is_echo(content))
            }
            "session_info_update" => state.seeded && update.get("title").is_some(),
            _ => false,
        }
    }

    /// Handles the response to a prompt. Everything is stored before the client gets it.
    fn answer_prompt(&self, session: &Arc<RecordedSession>, id: Json, message: RawMessage) {
        let mut state = session.lock();
        state.running_prompts = state.running_prompts.saturating_sub(1);
        state.events.add(SystemClock.now(), EventSender::Agent, message.clone());
        let reason = message.text(&["result", "stopReason"]);
        let status = match reason {
            Some("end_turn" | "refusal") => Status::Complete,
            _ => Status::Partial,
        };
        let refused = reason == Some("refusal");
        let turns = state.turns.close(status);
        let usage = message.json.at(&["result", "usage"]);
        let usage = usage.filter(|it| it.as_object().is_some() && message.broken_rule.is_none());
        self.store_with(session, &mut state, turns, usage);
        self.store_events(session, &mut state);
        if refused && let Err(error) = self.revert_refused_prompt(&mut state) {
            tracing::warn!(session = session.id, "cannot revert a refused question: {error}");
        }
        if let Some(fault) = &state.store_error {
            self.out.respond(&id, Err(not_stored_error(fault)));
            return;
        }
        let mut members: Vec<(&[&str], Json)> = vec![(&["id"], id)];
        // In a line that breaks a rule, a member is not replaced if it may have more than was read.
        if message.broken_rule.is_none() || !message.has(META) {
            let mut note = Object::new();
            let asked = state.last_prompt.as_ref().map(|asked| asked.turn.to_string());
            note.insert("userMessageId", asked.into());
            if let Some(said) = state.last_answer {
                note.insert("messageId", said.to_string().into());
            }
            if state.branch.id != session.branch {
                note.insert("sessionId", state.branch.id.to_string().into());
            }
            members.push((META, json_rpc::with_note(message.json.at(META).cloned(), note.into())));
        }
        self.out.send_line(message.with(&members));
    }
}

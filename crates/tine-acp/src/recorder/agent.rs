//! What comes from the agent: updates, requests to the client, and answers.

use std::io::{BufReader, Read};
use std::sync::Arc;

use tine_core::json::Object;
use tine_core::{ErrorKind, Json, Status};
use tine_engine::{Clock as _, SystemClock};

use super::events::From;
use super::gap;
use super::keep::{settled, unstored};
use super::link::{Link, Waiting};
use super::message::Message;
use super::relay::Relay;
use super::session::{Session, State};
use crate::json::json;
use crate::lines::{self, Line};
use crate::show;
use crate::wire::{self, Refusal, Unreadable};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Where a message has the kind of its update.
const KIND: &[&str] = &["params", "update", "sessionUpdate"];

/// Where the answer to a prompt has notes.
const META: &[&str] = &["result", "_meta"];

/// Hears all that an agent says, until it ends; then stores what it had not finished.
pub(super) fn listen(relay: &Arc<Relay>, link: &Arc<Link>, output: impl Read) {
    let mut output = BufReader::with_capacity(READ_BYTES, output);
    loop {
        match lines::read(&mut output, relay.recorder.line_bytes) {
            Ok(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
            Ok(Line::Whole(line)) => match Message::read(line, relay.recorder.engine.limits()) {
                Ok(message) if message.json.as_object().is_some() => hear(relay, link, message),
                Ok(_) => tracing::warn!("the agent wrote a line that is no message; it is dropped"),
                Err(Unreadable { refusal, .. }) => {
                    tracing::warn!("the agent wrote a line that is no message: {refusal}");
                }
            },
            Ok(Line::TooLong { bytes, outline }) => {
                let most = relay.recorder.line_bytes;
                tracing::warn!(bytes, most, "the agent wrote a line that is too long");
                if let Some(asked) = gap::asked(&outline) {
                    link.send(&wire::answer(asked, Err(Refusal::too_long(bytes, most))));
                }
                if let Some(message) = gap::too_long(&outline, bytes, most) {
                    hear(relay, link, Message::own(message));
                }
            }
            Ok(Line::End) => break,
            Err(error) => {
                tracing::warn!(%error, "the agent cannot be heard");
                break;
            }
        }
    }
    let waiting = link.gone();
    let why = link.ending();
    tracing::info!("{why}");
    for session in relay.sessions.close_of(link) {
        relay.finish(&session, &why);
    }
    for waiting in waiting {
        if let Waiting::Client { id, prompt } = waiting {
            let told = "what it said is kept: load the session again to go on";
            let mut refusal = Refusal::of(ErrorKind::Internal, format!("{why}; {told}"));
            if let Some(session) = prompt {
                let state = session.lock();
                if let Err(unstored) = settled(&state) {
                    refusal = unstored.put(format!("{why}; {unstored}"));
                }
                let asked = state.asked.as_ref().map(|asked| asked.turn.to_string());
                let data = json!({ "sessionId": session.id.as_str(), "userMessageId": asked });
                refusal = refusal.with(data);
            }
            relay.out.send(&wire::answer(&id, Err(refusal)));
        }
    }
}

fn hear(relay: &Arc<Relay>, link: &Link, message: Message) {
    if message.json.get("method").is_none() {
        return answer(relay, link, message);
    }
    let session = message.text(&["params", "sessionId"]).map(str::to_owned);
    let Some(id) = session else { return relay.out.send_line(message.with(&[])) };
    if !is_update(&message) && relay.sessions.theirs(&id).is_none() {
        return relay.out.send_line(message.with(&[]));
    }
    if let Some((session, message)) = relay.sessions.heard(&id, message) {
        let mut state = session.lock();
        let passed_over = match &mut state.hushed {
            Some(questions) if is_history(&message) => {
                questions.push_str(question_in(&message));
                true
            }
            _ => false,
        };
        // What the agent asks for is not held back: it may need the answer to begin at all.
        let asks = message.json.get("id").is_some();
        match &mut state.held {
            Some(_) if passed_over => {}
            Some(held) if !asks => held.push(message),
            _ => relay.hear(&session, &mut state, message),
        }
    }
}

fn is_update(message: &Message) -> bool {
    message.text(&["method"]) == Some("session/update")
}

/// Whether an update tells what was said, and not how the session stands.
pub(super) fn is_history(message: &Message) -> bool {
    let said = [show::USER, show::AGENT, show::THINKING, "tool_call", "tool_call_update", "plan"];
    message.json.at(&["params", "update"]).is_some_and(|update| said.contains(&kind_of(update)))
}

/// Returns the update in a message as turns are derived from it.
pub(super) fn update_of(message: &Message) -> Json {
    match &message.broken_rule {
        None => message.json.at(&["params", "update"]).cloned().unwrap_or_default(),
        Some(rule) => gap::unread_update(&message.json, rule),
    }
}

fn kind_of(update: &Json) -> &str {
    update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default()
}

/// What an update says of a question.
fn question_in(message: &Message) -> &str {
    let is_question = message.text(&["params", "update", "sessionUpdate"]) == Some(show::USER);
    let text = message.text(&["params", "update", "content", "text"]);
    text.filter(|_| is_question).unwrap_or_default()
}

/// An answer: ours, or the client's.
fn answer(relay: &Arc<Relay>, link: &Link, message: Message) {
    let Some(waiting) = message.json.get("id").and_then(|id| link.answered(id)) else {
        return tracing::warn!("the agent answered what nobody asked");
    };
    match waiting {
        Waiting::Own(asked) => {
            let answer = match &message.broken_rule {
                None => match (message.json.get("error"), message.json.get("result")) {
                    (Some(error), _) => Err(error.clone()),
                    (None, result) => Ok(result.cloned().unwrap_or_default()),
                },
                Some(rule) => Err(json!({ "message": format!("the agent's answer: {rule}") })),
            };
            // Whoever asked may have given up.
            let _ = asked.send(answer);
        }
        Waiting::Client { id, prompt: Some(session) } => {
            relay.answer_prompt(&session, id, message);
        }
        Waiting::Client { id, prompt: None } => {
            relay.out.send_line(message.with(&[(&["id"], id)]));
        }
    }
}

impl Relay {
    /// Takes in what the agent says in a session, and shows it.
    pub(super) fn hear(&self, session: &Session, state: &mut State, message: Message) {
        if is_update(&message) {
            self.hear_update(session, state, message);
        } else {
            if message.json.get("id").is_some() {
                let turns = state.derivation.close_calls();
                self.store(session, state, turns);
            }
            let session_id = session.id.as_str().into();
            self.out.send_line(message.with(&[(&["params", "sessionId"], session_id)]));
            state.events.add(SystemClock.now(), From::Agent, message);
        }
    }

    fn hear_update(&self, session: &Session, state: &mut State, message: Message) {
        let update = &update_of(&message);
        if self.passes_over(state, update) {
            if let Some(asked) = state.asked.as_mut().filter(|_| kind_of(update) == show::USER) {
                let theirs = update.get("messageId").and_then(Json::as_str).map(str::to_owned);
                asked.theirs = asked.theirs.take().or(theirs);
            }
            state.events.add(SystemClock.now(), From::Agent, message);
            return;
        }
        let due = state.derivation.due(update);
        self.store(session, state, due);
        let promise = || self.recorder.engine.promise_turn_id();
        let mut ids: Vec<(&[&str], Json)> =
            vec![(&["params", "sessionId"], session.id.as_str().into())];
        let shown_as = state.derivation.take(update, &promise);
        // A plan that could not be read is part of a message, but is shown as a plan.
        if let Some(id) = shown_as.filter(|_| message.text(KIND) == Some(kind_of(update))) {
            ids.push((&["params", "update", "messageId"], id.into()));
        }
        self.out.send_line(message.with(&ids));
        let calls = state.derivation.under_way(update);
        let result = state.derivation.result(update, &promise);
        let from = if gap::is_one(&message.json) { From::Recorder } else { From::Agent };
        // The line of a result belongs to the result; that of a whole call in one to the call.
        if state.events.is_empty() || calls.is_empty() {
            state.events.add(SystemClock.now(), from, message);
            self.store(session, state, calls);
        } else {
            self.store(session, state, calls);
            state.events.add(SystemClock.now(), from, message);
        }
        self.store(session, state, result.into_iter().collect());
    }

    /// Whether the client is not shown an update: what it said itself, and what tells a seed.
    fn passes_over(&self, state: &State, update: &Json) -> bool {
        match kind_of(update) {
            show::USER => {
                let content = update.get("content").unwrap_or(&Json::Null);
                state.asked.as_ref().is_some_and(|asked| asked.is_echo(content))
            }
            "session_info_update" => state.seeded && update.get("title").is_some(),
            _ => false,
        }
    }

    /// The end of a prompt: everything is stored before the client hears of it.
    fn answer_prompt(&self, session: &Arc<Session>, id: Json, message: Message) {
        let mut state = session.lock();
        state.running = state.running.saturating_sub(1);
        state.events.add(SystemClock.now(), From::Agent, message.clone());
        let reason = message.text(&["result", "stopReason"]);
        let status = match reason {
            Some("end_turn" | "refusal") => Status::Complete,
            _ => Status::Partial,
        };
        let refused = reason == Some("refusal");
        let turns = state.derivation.close(status);
        let usage = message.json.at(&["result", "usage"]);
        let usage = usage.filter(|it| it.as_object().is_some() && message.broken_rule.is_none());
        self.store_with(session, &mut state, turns, usage);
        self.store_events(session, &mut state);
        if refused && let Err(error) = self.take_back(&mut state) {
            tracing::warn!(session = session.id, "a refused question stays: {error}");
        }
        if let Some(fault) = &state.fault {
            self.out.send(&wire::answer(&id, Err(unstored(fault))));
            return;
        }
        let mut members: Vec<(&[&str], Json)> = vec![(&["id"], id)];
        // Of a line that breaks a rule, no member is rewritten that may hold more than was read.
        if message.broken_rule.is_none() || !message.has(META) {
            let mut note = Object::new();
            let asked = state.asked.as_ref().map(|asked| asked.turn.to_string());
            note.insert("userMessageId", asked.into());
            if let Some(said) = state.said {
                note.insert("messageId", said.to_string().into());
            }
            if state.branch.id != session.branch {
                note.insert("sessionId", state.branch.id.to_string().into());
            }
            members.push((META, wire::noted(message.json.at(META).cloned(), note.into())));
        }
        self.out.send_line(message.with(&members));
    }
}

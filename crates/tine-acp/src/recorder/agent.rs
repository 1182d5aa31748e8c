//! What comes from the agent: updates, requests to the client, and answers.

use std::io::{BufReader, Read};
use std::sync::Arc;

use serde_json::{Value, json};
use tine_core::{Kind, Status};
use tine_engine::{Clock as _, SystemClock};

use super::events::From;
use super::gap;
use super::keep::{settled, unstored};
use super::link::{Link, Waiting};
use super::relay::Relay;
use super::session::{Session, State};
use crate::lines::{self, Line};
use crate::show;
use crate::wire::{self, Refusal};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Hears all that an agent says, until it ends; then stores what it had not finished.
pub(super) fn listen(relay: &Arc<Relay>, link: &Arc<Link>, output: impl Read) {
    let mut output = BufReader::with_capacity(READ_BYTES, output);
    loop {
        match lines::read(&mut output, relay.recorder.line_bytes) {
            Ok(Line::Whole(line)) => match serde_json::from_slice(&line) {
                Ok(message @ Value::Object(_)) => hear(relay, link, message),
                _ if line.iter().all(u8::is_ascii_whitespace) => {}
                _ => tracing::warn!("the agent wrote a line that is no message; it is dropped"),
            },
            Ok(Line::TooLong { bytes, outline }) => {
                let most = relay.recorder.line_bytes;
                tracing::warn!(bytes, most, "the agent wrote a line that is too long");
                if let Some(asked) = gap::asked(&outline) {
                    link.send(&wire::answer(asked, Err(Refusal::too_long(bytes, most))));
                }
                if let Some(message) = gap::instead(outline, bytes, most) {
                    hear(relay, link, message);
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
            let mut refusal = Refusal::of(Kind::Internal, format!("{why}; {told}"));
            if let Some(session) = prompt {
                let state = session.lock();
                if let Err(unstored) = settled(&state) {
                    refusal = unstored.put(format!("{why}; {unstored}"));
                }
                let asked = state.asked.as_ref().map(|asked| asked.turn.to_string());
                let data = json!({ "sessionId": session.id, "userMessageId": asked });
                refusal = refusal.with(data);
            }
            relay.out.send(&wire::answer(&id, Err(refusal)));
        }
    }
}

fn hear(relay: &Arc<Relay>, link: &Link, message: Value) {
    if message.get("method").is_none() {
        return answer(relay, link, message);
    }
    let session = message.pointer("/params/sessionId").and_then(Value::as_str).map(str::to_owned);
    let Some(id) = session else { return relay.out.send(&message) };
    if !is_update(&message) && relay.sessions.theirs(&id).is_none() {
        return relay.out.send(&message);
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
        let asks = message.get("id").is_some();
        match &mut state.held {
            Some(_) if passed_over => {}
            Some(held) if !asks => held.push(message),
            _ => relay.hear(&session, &mut state, message),
        }
    }
}

fn is_update(message: &Value) -> bool {
    message.get("method").and_then(Value::as_str) == Some("session/update")
}

/// Whether an update tells what was said, and not how the session stands.
pub(super) fn is_history(message: &Value) -> bool {
    let said = [show::USER, show::AGENT, show::THINKING, "tool_call", "tool_call_update", "plan"];
    message.pointer("/params/update").is_some_and(|update| said.contains(&kind_of(update)))
}

fn kind_of(update: &Value) -> &str {
    update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default()
}

/// What an update says of a question.
fn question_in(message: &Value) -> &str {
    let update = message.pointer("/params/update").unwrap_or(&Value::Null);
    let text = update.pointer("/content/text").and_then(Value::as_str);
    text.filter(|_| kind_of(update) == show::USER).unwrap_or_default()
}

/// An answer: ours, or the client's.
fn answer(relay: &Arc<Relay>, link: &Link, mut message: Value) {
    let Some(waiting) = message.get("id").and_then(|id| link.answered(id)) else {
        return tracing::warn!("the agent answered what nobody asked");
    };
    match waiting {
        Waiting::Own(asked) => {
            let error = message.get_mut("error").map(Value::take);
            let result = message.get_mut("result").map(Value::take).unwrap_or_default();
            // Whoever asked may have given up.
            let _ = asked.send(error.map_or(Ok(result), Err));
        }
        Waiting::Client { id, prompt: Some(session) } => {
            relay.answer_prompt(&session, id, message);
        }
        Waiting::Client { id, prompt: None } => {
            message["id"] = id;
            relay.out.send(&message);
        }
    }
}

impl Relay {
    /// Takes in what the agent says in a session, and shows it.
    pub(super) fn hear(&self, session: &Session, state: &mut State, message: Value) {
        let mut shown = message.clone();
        shown["params"]["sessionId"] = session.id.as_str().into();
        if is_update(&message) {
            self.hear_update(session, state, message, shown);
        } else {
            if message.get("id").is_some() {
                let turns = state.derivation.close_calls();
                self.store(session, state, turns);
            }
            self.out.send(&shown);
            state.events.add(SystemClock.now(), From::Agent, message);
        }
    }

    fn hear_update(&self, session: &Session, state: &mut State, message: Value, mut shown: Value) {
        let update = &message["params"]["update"];
        if self.passes_over(state, update) {
            if let Some(asked) = state.asked.as_mut().filter(|_| kind_of(update) == show::USER) {
                let theirs = update.get("messageId").and_then(Value::as_str).map(str::to_owned);
                asked.theirs = asked.theirs.take().or(theirs);
            }
            state.events.add(SystemClock.now(), From::Agent, message);
            return;
        }
        let due = state.derivation.due(update);
        self.store(session, state, due);
        let promise = || self.recorder.engine.promise_turn_id();
        if let Some(id) = state.derivation.take(update, &promise) {
            shown["params"]["update"]["messageId"] = id.into();
        }
        self.out.send(&shown);
        let calls = state.derivation.under_way(update);
        let result = state.derivation.result(update, &promise);
        let from = if gap::is_one(&message) { From::Recorder } else { From::Agent };
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
    fn passes_over(&self, state: &State, update: &Value) -> bool {
        match kind_of(update) {
            show::USER => {
                let content = update.get("content").unwrap_or(&Value::Null);
                state.asked.as_ref().is_some_and(|asked| asked.is_echo(content))
            }
            "session_info_update" => state.seeded && update.get("title").is_some(),
            _ => false,
        }
    }

    /// The end of a prompt: everything is stored before the client hears of it.
    fn answer_prompt(&self, session: &Arc<Session>, id: Value, mut message: Value) {
        let mut state = session.lock();
        state.running = state.running.saturating_sub(1);
        state.events.add(SystemClock.now(), From::Agent, message.clone());
        let reason = message.pointer("/result/stopReason").and_then(Value::as_str);
        let status = match reason {
            Some("end_turn" | "refusal") => Status::Complete,
            _ => Status::Partial,
        };
        let refused = reason == Some("refusal");
        let turns = state.derivation.close(status);
        let usage = message.pointer("/result/usage").filter(|usage| usage.is_object()).cloned();
        self.store_with(session, &mut state, turns, usage.as_ref());
        self.store_events(session, &mut state);
        if refused && let Err(error) = self.take_back(&mut state) {
            tracing::warn!(session = session.id, "a refused question stays: {error}");
        }
        if let Some(fault) = &state.fault {
            self.out.send(&wire::answer(&id, Err(unstored(fault))));
            return;
        }
        message["id"] = id;
        if message.get("result").is_some_and(Value::is_object) {
            let asked = state.asked.as_ref().map(|asked| asked.turn.to_string());
            let mut told = json!({ "userMessageId": asked });
            if let Some(said) = state.said {
                told["messageId"] = said.to_string().into();
            }
            if state.branch.id != session.branch {
                told["sessionId"] = state.branch.id.to_string().into();
            }
            wire::note(&mut message["result"], told);
        }
        self.out.send(&message);
    }
}

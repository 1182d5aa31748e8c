//! Conversations that look like chats: different messages of about a kilobyte.

use tine_core::{ConversationId, Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation};

use crate::Error;

const WORDS: [&str; 24] = [
    "the", "budget", "of", "and", "travel", "model", "that", "function", "answer", "is", "for",
    "with", "temple", "request", "please", "explain", "why", "this", "test", "fails", "on",
    "Monday", "spring", "again",
];

/// Returns about a kilobyte of words that depend on the number.
pub(crate) fn message(number: usize) -> Message {
    let mut text = format!("{number}:");
    let mut state = number as u64;
    while text.len() < 1_000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(' ');
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
    }
    let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
    Message::text(role, text)
}

pub(crate) fn conversation(
    engine: &Engine,
    call: &Call,
    name: &str,
) -> Result<ConversationId, Error> {
    Ok(engine.create_conversation(call, NewConversation::named(name)?)?.id)
}

/// Appends turns, a thousand per call.
pub(crate) fn fill(
    engine: &Engine,
    call: &Call,
    conversation: &ConversationId,
    turns: usize,
) -> Result<(), Error> {
    let mut from = 0;
    while from < turns {
        let to = turns.min(from + 1_000);
        let messages = (from..to).map(message).collect();
        let mut append = Append::to(conversation.clone(), messages);
        append.reuse = false;
        engine.append(call, append)?;
        from = to;
    }
    Ok(())
}

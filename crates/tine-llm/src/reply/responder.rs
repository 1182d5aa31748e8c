//! Produces answers: a provider's model, or an echo for tests and demos.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use crate::{Completion, Delta, Finish, ModelError, ToolCall};
use tine_core::Usage;

use super::transcript::ReplyPrompt;

/// The maximum number of pieces of an echo.
const ECHO_PIECES: usize = 256;

/// The pause before each piece: short, but long enough to see a stream and to stop it.
const ECHO_PAUSE: Duration = Duration::from_millis(10);

/// Receives each piece of an answer, and can stop it.
type Listener<'a> = &'a mut dyn FnMut(Delta<'_>) -> ControlFlow<()>;

/// A model, or an echo.
#[derive(Clone, Debug)]
pub enum Responder {
    /// Repeats the question, piece by piece, without a model.
    Echo,
    /// A model of a provider.
    Provider(crate::Model),
}

/// How an answer ended.
#[derive(Debug)]
pub struct ReplyEnd {
    /// Why it ended.
    pub finish: Finish,
    /// Tokens and cost.
    pub usage: Usage,
    /// The model name that the endpoint reported.
    pub model_answered: Option<String>,
    /// Tool calls that the model requests; empty if no tools were offered.
    pub calls: Vec<ToolCall>,
}

impl Responder {
    /// Returns the name under which the provider is configured.
    pub fn provider(&self) -> &str {
        match self {
            Responder::Echo => "tine",
            Responder::Provider(model) => model.provider().name(),
        }
    }

    /// Returns the name of the model.
    pub fn name(&self) -> &str {
        match self {
            Responder::Echo => "echo",
            Responder::Provider(model) => model.provider().model(),
        }
    }

    /// Answers a prompt and passes each piece to `each` as it arrives.
    pub(crate) fn answer(
        &self,
        prompt: &ReplyPrompt,
        each: Listener<'_>,
    ) -> Result<ReplyEnd, ModelError> {
        match self {
            Responder::Echo => Ok(echo(&prompt.question, each)),
            Responder::Provider(model) => {
                let Completion { finish, usage, model_answered, refusal, mut calls, .. } =
                    model.stream(&prompt.chat, each)?;
                let finish = if refusal.is_some() { Finish::Refused } else { finish };
                if prompt.chat.tools.is_empty() {
                    calls.clear();
                }
                Ok(ReplyEnd { finish, usage, model_answered, calls })
            }
        }
    }
}

fn echo(text: &str, each: Listener<'_>) -> ReplyEnd {
    let mut finish = Finish::Stop;
    for piece in pieces(text) {
        thread::sleep(ECHO_PAUSE);
        if each(Delta::Text(piece)).is_break() {
            finish = Finish::Cancelled;
            break;
        }
    }
    ReplyEnd { finish, usage: Usage::default(), model_answered: None, calls: Vec::new() }
}

/// Splits a text after spaces.
fn pieces(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let mut at = 0;
    let each = words.len().div_ceil(ECHO_PIECES).max(1);
    let ends = words.chunks(each).map(|words| words.iter().map(|word| word.len()).sum::<usize>());
    ends.map(|bytes| {
        let piece = &text[at..at + bytes];
        at += bytes;
        piece
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_contain_the_whole_text_and_are_few() {
        assert_eq!(pieces("one two  three"), ["one ", "two ", " ", "three"]);
        assert_eq!(pieces(""), [""; 0]);
        let long = "wörter ".repeat(1_000);
        assert!(pieces(&long).len() <= ECHO_PIECES);
        assert_eq!(pieces(&long).concat(), long);
    }
}

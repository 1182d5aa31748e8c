//! Who answers.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use crate::{Completion, Delta, Finish, ModelError, ToolCall};
use tine_core::Usage;

use super::transcript::Asked;

/// Pieces of which an echo consists at most.
const ECHO_PIECES: usize = 256;

/// The pause before each: so short that nobody waits, and long enough to see a stream and to stop
/// it.
const ECHO_PAUSE: Duration = Duration::from_millis(10);

/// What is given each piece of an answer as it comes, and can end it.
type Listener<'a> = &'a mut dyn FnMut(Delta<'_>) -> ControlFlow<()>;

/// Who answers.
#[derive(Clone, Debug)]
pub enum Model {
    /// Says again what it is told, piece by piece. Needs nothing and nobody.
    Echo,
    /// A model of a provider.
    Provider(crate::Model),
}

/// How an answer ended, besides what it says.
#[derive(Debug)]
pub struct Ended {
    /// Why.
    pub finish: Finish,
    /// What it cost.
    pub usage: Usage,
    /// The model that answered, in its own words.
    pub model_answered: Option<String>,
    /// Tools that it wants to be called before it goes on; none were, if none were offered.
    pub calls: Vec<ToolCall>,
}

impl Model {
    /// The name under which the provider is configured.
    pub fn provider(&self) -> &str {
        match self {
            Model::Echo => "tine",
            Model::Provider(model) => model.provider().name(),
        }
    }

    /// The model that is asked for.
    pub fn name(&self) -> &str {
        match self {
            Model::Echo => "echo",
            Model::Provider(model) => model.provider().model(),
        }
    }

    /// Answers, and gives each piece to `each` as it comes.
    pub(crate) fn answer(&self, asked: &Asked, each: Listener<'_>) -> Result<Ended, ModelError> {
        match self {
            Model::Echo => Ok(echo(&asked.question, each)),
            Model::Provider(model) => {
                let Completion { finish, usage, model_answered, refusal, mut calls, .. } =
                    model.stream(&asked.chat, each)?;
                let finish = if refusal.is_some() { Finish::Refused } else { finish };
                if asked.chat.tools.is_empty() {
                    calls.clear();
                }
                Ok(Ended { finish, usage, model_answered, calls })
            }
        }
    }
}

fn echo(text: &str, each: Listener<'_>) -> Ended {
    let mut finish = Finish::Stop;
    for piece in pieces(text) {
        thread::sleep(ECHO_PAUSE);
        if each(Delta::Text(piece)).is_break() {
            finish = Finish::Cancelled;
            break;
        }
    }
    Ended { finish, usage: Usage::default(), model_answered: None, calls: Vec::new() }
}

/// A text in pieces that end behind a space.
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
    fn pieces_say_all_of_a_text_and_are_few() {
        assert_eq!(pieces("one two  three"), ["one ", "two ", " ", "three"]);
        assert_eq!(pieces(""), [""; 0]);
        let long = "wörter ".repeat(1_000);
        assert!(pieces(&long).len() <= ECHO_PIECES);
        assert_eq!(pieces(&long).concat(), long);
    }
}

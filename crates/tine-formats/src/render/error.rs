//! Why a path cannot be rendered.

use tine_api::TurnOpenCalls;
use tine_core::json::JsonError;
use tine_core::{ErrorKind, TurnId};

/// Why a path cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message explains the fields")]
pub enum RenderError {
    /// There are open tool calls, and the caller wants them reported.
    #[error(
        "tool calls without results: {}; add the results, or render with open calls closed or kept",
        format_open_calls(.0)
    )]
    OpenCalls(Vec<TurnOpenCalls>),
    /// Even the shortest end of the path is too long.
    #[error("the end of the path takes {needed} tokens; at most {limit} are allowed")]
    TooLong { limit: u64, needed: u64 },
    /// A stored body is not JSON.
    #[error("the turn {turn} cannot be read: {error}")]
    Corrupt { turn: TurnId, error: JsonError },
}

impl RenderError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            RenderError::OpenCalls(_) => ErrorKind::Unsupported,
            RenderError::TooLong { .. } => ErrorKind::TooLarge,
            RenderError::Corrupt { .. } => ErrorKind::Corrupt,
        }
    }
}

fn format_open_calls(open: &[TurnOpenCalls]) -> String {
    let one = |it: &TurnOpenCalls| format!("{} of turn {}", it.calls.join(", "), it.turn);
    open.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl From<RenderError> for tine_api::Error {
    fn from(error: RenderError) -> Self {
        let mut refusal = tine_api::Error::new(error.kind(), error.to_string());
        match error {
            RenderError::OpenCalls(open) => refusal.details.open_calls = open,
            RenderError::TooLong { needed, .. } => refusal.details.needed_tokens = Some(needed),
            RenderError::Corrupt { .. } => {}
        }
        refusal
    }
}

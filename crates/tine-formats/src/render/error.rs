//! Why a path is not rendered.

use tine_api::TurnOpenCalls;
use tine_core::json::JsonError;
use tine_core::{ErrorKind, TurnId};

/// A rendering that was refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// There are open tool calls, and they were to be reported.
    #[error(
        "tool calls without results: {}; add the results, or render with open calls closed or kept",
        listed(.0)
    )]
    OpenCalls(Vec<TurnOpenCalls>),
    /// Not even the end of the path fits.
    #[error("the end of the path takes {needed} tokens; at most {limit} are allowed")]
    TooLong {
        /// The limit.
        limit: u64,
        /// What would do.
        needed: u64,
    },
    /// The path could not be read.
    #[error(transparent)]
    Read(#[from] tine_api::Error),
    /// A stored body is not JSON.
    #[error("the turn {turn} cannot be read: {error}")]
    Corrupt {
        /// The turn.
        turn: TurnId,
        /// What the reader said.
        error: JsonError,
    },
}

impl RenderError {
    /// The kind that surfaces report.
    pub fn kind(&self) -> ErrorKind {
        match self {
            RenderError::OpenCalls(_) => ErrorKind::Unsupported,
            RenderError::TooLong { .. } => ErrorKind::TooLarge,
            RenderError::Read(error) => error.kind(),
            RenderError::Corrupt { .. } => ErrorKind::Corrupt,
        }
    }
}

fn listed(open: &[TurnOpenCalls]) -> String {
    let one = |it: &TurnOpenCalls| format!("{} of turn {}", it.calls.join(", "), it.turn);
    open.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl From<RenderError> for tine_api::Error {
    fn from(error: RenderError) -> Self {
        if let RenderError::Read(error) = error {
            return error;
        }
        let mut refusal = tine_api::Error::new(error.kind(), error.to_string());
        match error {
            RenderError::OpenCalls(open) => refusal.details.open_calls = open,
            RenderError::TooLong { needed, .. } => refusal.details.needed_tokens = Some(needed),
            RenderError::Read(_) | RenderError::Corrupt { .. } => {}
        }
        refusal
    }
}

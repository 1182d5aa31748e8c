//! The states of a run of an interpreter over a source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, with = "String")]
pub enum RunStatus {
    /// Waiting.
    Queued,
    /// Running.
    Running,
    /// Finished.
    Completed,
    /// Ended without a result.
    Failed,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [RunStatus; 4] =
        [RunStatus::Queued, RunStatus::Running, RunStatus::Completed, RunStatus::Failed];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
        }
    }

    /// Returns the status with this name.
    pub fn parse(name: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Returns whether the run is queued or running.
    pub fn is_open(self) -> bool {
        matches!(self, RunStatus::Queued | RunStatus::Running)
    }
}

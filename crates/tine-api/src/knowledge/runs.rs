//! Runs of interpreters over sources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use tine_core::facts::RunStatus;
use tine_core::json::{self, Object};
use tine_core::{InterpretationId, ObservationId, SourceId, Timestamp};

use super::ObservationView;

/// The most characters of an error in a short answer.
const BRIEF_CHARS: usize = 300;

/// One run of an interpreter over a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Interpretation")]
pub struct InterpretationView {
    /// The id of the run.
    #[serde(rename = "interpretation_id")]
    pub id: InterpretationId,
    /// The source.
    #[serde(rename = "source_id")]
    pub source: SourceId,
    /// `queued`, `running`, `completed` or `failed`.
    pub status: RunStatus,
    /// The requested interpreter.
    pub interpreter: String,
    /// When it was requested.
    pub queued_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How often it was started.
    pub attempts: u32,
    /// The failed run that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<InterpretationId>,
    /// The observations of the run.
    pub observations: Vec<ObservationId>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// Findings that could not be used, one sentence each.
    pub notes: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it worked: version, kind, provider, model, parameters, seed, prompt_hash, input_hash,
    /// model_answered, usage, tries, duration_ms; with `request` and `response` on request.
    #[serde(with = "json::exact::object")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub detail: Object,
}

impl InterpretationView {
    /// Removes the bytes of the request and the response.
    pub fn without_bytes(mut self) -> Self {
        self.detail.remove("request");
        self.detail.remove("response");
        self
    }
}

/// A run as the answer to a store has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunInBrief")]
pub struct RunSummary {
    /// The id of the run.
    pub interpretation_id: InterpretationId,
    /// `queued`, `running`, `completed` or `failed`.
    pub status: RunStatus,
    /// The requested interpreter.
    pub interpreter: String,
    /// How many observations it made.
    pub observations: usize,
    /// The beginning of why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<&InterpretationView> for RunSummary {
    fn from(run: &InterpretationView) -> Self {
        RunSummary {
            interpretation_id: run.id,
            status: run.status,
            interpreter: run.interpreter.clone(),
            observations: run.observations.len(),
            error: run.error.as_ref().map(|error| error.chars().take(BRIEF_CHARS).collect()),
        }
    }
}

/// How two runs over one source differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// The earlier run.
    pub before: InterpretationId,
    /// The later run.
    pub after: InterpretationId,
    /// Found only by the later one.
    pub gained: Vec<ObservationView>,
    /// Found only by the earlier one.
    pub lost: Vec<ObservationView>,
    /// Found by both, with differences.
    pub changed: Vec<ChangedFinding>,
    /// How many were found by both without a difference.
    pub same: usize,
}

/// One finding of two runs that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFinding {
    /// In the earlier run.
    pub before: ObservationView,
    /// In the later run.
    pub after: ObservationView,
    /// The fields that differ.
    pub fields: Vec<String>,
}

/// How many runs are in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueStatus {
    /// Waiting.
    pub queued: usize,
    /// Running.
    pub running: usize,
    /// The available interpreters, with a description of each.
    pub interpreters: BTreeMap<String, String>,
    /// The default interpreter.
    pub default: String,
}

/// A prompt that was sent to a model.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// The hash of the prompt, as runs name it.
    pub prompt_hash: String,
    /// The prompt.
    pub prompt: String,
}

//! Runs of interpreters over sources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::json::{Json, Object};
use tine_engine as engine;

use super::Observation;
use crate::view::reading::{self, Unreadable, count, each, parse, parse_all, parse_option};
use crate::view::{Raw, raw, text, texts};

/// Of an error's text, characters that a short answer has.
const BRIEF_CHARS: usize = 300;

/// One run of an interpreter over a source.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Interpretation {
    /// Its id.
    pub interpretation_id: String,
    /// The source.
    pub source_id: String,
    /// `queued`, `running`, `completed` or `failed`.
    pub status: String,
    /// The interpreter that was asked for.
    pub interpreter: String,
    /// When it was asked for.
    pub queued_at: String,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub finished_at: Option<String>,
    /// How often it was begun.
    pub attempts: u32,
    /// The failed run that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// What it observed.
    pub observations: Vec<String>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// What was found and could not be used, one sentence each.
    pub notes: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it worked: version, kind, provider, model, parameters, seed, prompt_hash, input_hash,
    /// model_answered, usage, tries, duration_ms; with `request` and `response` when the bytes
    /// are asked for.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub detail: Raw,
}

impl Interpretation {
    /// The same without the bytes of its request and response.
    pub fn without_bytes(mut view: engine::InterpretationView) -> Self {
        view.detail.remove("request");
        view.detail.remove("response");
        view.into()
    }
}

impl From<engine::InterpretationView> for Interpretation {
    fn from(view: engine::InterpretationView) -> Self {
        Interpretation {
            interpretation_id: text(view.id),
            source_id: text(view.source),
            status: view.status.as_str().to_owned(),
            interpreter: view.interpreter,
            queued_at: text(view.queued_at),
            started_at: view.started_at.map(text),
            finished_at: view.finished_at.map(text),
            attempts: view.attempts,
            retry_of: view.retry_of.map(text),
            observations: texts(view.observations),
            unknown_fields: view.unknown_fields,
            notes: view.notes,
            error: view.error,
            detail: raw(&Json::Object(view.detail)),
        }
    }
}

impl TryFrom<Interpretation> for engine::InterpretationView {
    type Error = Unreadable;

    fn try_from(view: Interpretation) -> Result<Self, Unreadable> {
        let status = engine::RunStatus::parse(&view.status);
        Ok(engine::InterpretationView {
            id: parse("interpretation_id", &view.interpretation_id)?,
            source: parse("source_id", &view.source_id)?,
            status: status.ok_or_else(|| Unreadable::new("status", "it is unknown"))?,
            interpreter: view.interpreter,
            queued_at: parse("queued_at", &view.queued_at)?,
            started_at: parse_option("started_at", view.started_at)?,
            finished_at: parse_option("finished_at", view.finished_at)?,
            attempts: view.attempts,
            retry_of: parse_option("retry_of", view.retry_of)?,
            observations: parse_all("observations", view.observations)?,
            unknown_fields: view.unknown_fields,
            notes: view.notes,
            error: view.error,
            detail: object("detail", &view.detail)?,
        })
    }
}

/// An object that is passed on as bytes.
pub(super) fn object(field: &'static str, raw: &Raw) -> Result<Object, Unreadable> {
    match reading::json(field, raw)? {
        Json::Object(members) => Ok(members),
        _ => Err(Unreadable::new(field, "it is no object")),
    }
}

/// A run as the answer to a store has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunInBrief {
    /// Its id, by which the rest can be had.
    pub interpretation_id: String,
    /// `queued`, `running`, `completed` or `failed`.
    pub status: String,
    /// The interpreter that was asked for.
    pub interpreter: String,
    /// How much it observed.
    pub observations: u64,
    /// The beginning of why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<&engine::InterpretationView> for RunInBrief {
    fn from(view: &engine::InterpretationView) -> Self {
        RunInBrief {
            interpretation_id: text(view.id),
            status: view.status.as_str().to_owned(),
            interpreter: view.interpreter.clone(),
            observations: view.observations.len() as u64,
            error: view.error.as_ref().map(|error| error.chars().take(BRIEF_CHARS).collect()),
        }
    }
}

/// How two runs over one source differ.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// The earlier run.
    pub before: String,
    /// The later run.
    pub after: String,
    /// Found only by the later one.
    pub gained: Vec<Observation>,
    /// Found only by the earlier one.
    pub lost: Vec<Observation>,
    /// Found by both, and not the same.
    pub changed: Vec<ChangedFinding>,
    /// Found by both alike.
    pub same: u64,
}

/// One finding of two runs that differs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFinding {
    /// As the earlier run had it.
    pub before: Observation,
    /// As the later run has it.
    pub after: Observation,
    /// The fields that differ.
    pub fields: Vec<String>,
}

impl From<engine::RunComparison> for RunComparison {
    fn from(found: engine::RunComparison) -> Self {
        let all = |views: Vec<engine::ObservationView>| {
            views.into_iter().map(Observation::from).collect()
        };
        let changed = found.changed.into_iter().map(|one| ChangedFinding {
            before: one.before.into(),
            after: one.after.into(),
            fields: one.fields,
        });
        RunComparison {
            before: text(found.before),
            after: text(found.after),
            gained: all(found.gained),
            lost: all(found.lost),
            changed: changed.collect(),
            same: found.same as u64,
        }
    }
}

impl TryFrom<RunComparison> for engine::RunComparison {
    type Error = Unreadable;

    fn try_from(view: RunComparison) -> Result<Self, Unreadable> {
        let changed = view.changed.into_iter().map(|one| {
            Ok(engine::ChangedFinding {
                before: one.before.try_into()?,
                after: one.after.try_into()?,
                fields: one.fields,
            })
        });
        Ok(engine::RunComparison {
            before: parse("before", &view.before)?,
            after: parse("after", &view.after)?,
            gained: each(view.gained)?,
            lost: each(view.lost)?,
            changed: changed.collect::<Result<_, Unreadable>>()?,
            same: count("same", view.same)?,
        })
    }
}

/// How many runs are where.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueStatus {
    /// Waiting.
    pub queued: u64,
    /// At work.
    pub running: u64,
    /// The interpreters that can be asked for, and what each is.
    pub interpreters: BTreeMap<String, String>,
    /// The one that is asked when none is named.
    pub default: String,
}

impl From<engine::QueueStatus> for QueueStatus {
    fn from(status: engine::QueueStatus) -> Self {
        QueueStatus {
            queued: status.queued as u64,
            running: status.running as u64,
            interpreters: status.interpreters,
            default: status.default,
        }
    }
}

impl TryFrom<QueueStatus> for engine::QueueStatus {
    type Error = Unreadable;

    fn try_from(view: QueueStatus) -> Result<Self, Unreadable> {
        Ok(engine::QueueStatus {
            queued: count("queued", view.queued)?,
            running: count("running", view.running)?,
            interpreters: view.interpreters,
            default: view.default,
        })
    }
}

/// A prompt that a model was asked with.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Its hash, as runs name it.
    pub prompt_hash: String,
    /// The prompt.
    pub prompt: String,
}

//! Where something comes from, since when it holds, and how far a branch has moved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_engine as engine;

use crate::view::reading::{self, Unreadable, count, parse, parse_option};
use crate::view::{Raw, Turn, raw, text};
use crate::wire::given;

/// Where something comes from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Blamed {
    /// The turn that said it.
    pub turn_hash: Option<String>,
    /// The id of that turn.
    pub turn_id: Option<String>,
    /// Who said it.
    pub role: Option<String>,
    /// When.
    pub said_at: Option<String>,
    /// Where in the turn's text, in Unicode scalar values: from, and up to.
    pub span: Option<[u64; 2]>,
    /// The words.
    pub quote: Option<String>,
    /// What it says, of a field.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<Raw>,
    /// The observation, of a field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation_id: Option<String>,
    /// The first commit that covers the turn.
    pub commit_hash: Option<String>,
    /// The merge that brought it, when the turn does not lie on the path.
    pub merge_hash: Option<String>,
}

impl From<engine::Blamed> for Blamed {
    fn from(found: engine::Blamed) -> Self {
        Blamed {
            turn_hash: found.turn.map(text),
            turn_id: found.turn_id.map(text),
            role: found.role.map(|role| role.as_str().to_owned()),
            said_at: found.said_at.map(text),
            span: found.span.map(Into::into),
            quote: found.quote,
            value: found.value.as_ref().map(raw),
            observation_id: found.observation.map(text),
            commit_hash: found.commit.map(text),
            merge_hash: found.merge.map(text),
        }
    }
}

impl TryFrom<Blamed> for engine::Blamed {
    type Error = Unreadable;

    fn try_from(view: Blamed) -> Result<Self, Unreadable> {
        let value = view.value.as_ref().map(|value| reading::json("value", value));
        Ok(engine::Blamed {
            turn: parse_option("turn_hash", view.turn_hash)?,
            turn_id: parse_option("turn_id", view.turn_id)?,
            role: view.role.map(|role| reading::role(&role)).transpose()?,
            said_at: parse_option("said_at", view.said_at)?,
            span: view.span.map(Into::into),
            quote: view.quote,
            value: value.transpose()?,
            observation: parse_option("observation_id", view.observation_id)?,
            commit: parse_option("commit_hash", view.commit_hash)?,
            merge: parse_option("merge_hash", view.merge_hash)?,
        })
    }
}

/// The first turn for which something holds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Bisected {
    /// The turn.
    pub turn: Turn,
    /// Turns of the path.
    pub path: u64,
    /// Turns that were looked at.
    pub tested: u64,
}

impl From<engine::Bisected> for Bisected {
    fn from(found: engine::Bisected) -> Self {
        Bisected { turn: found.turn.into(), path: found.path as u64, tested: found.tested as u64 }
    }
}

impl TryFrom<Bisected> for engine::Bisected {
    type Error = Unreadable;

    fn try_from(view: Bisected) -> Result<Self, Unreadable> {
        Ok(engine::Bisected {
            turn: view.turn.try_into()?,
            path: count("path", view.path)?,
            tested: count("tested", view.tested)?,
        })
    }
}

/// How far a commit has moved from others.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The commit.
    pub commit_hash: String,
    /// Its message.
    pub message: String,
    /// When it was made.
    pub created_at: String,
    /// From its first parent: 0 for the same words, 1 for none in common.
    pub from_parent: Option<f64>,
    /// From the first commit of the branch.
    pub from_first: Option<f64>,
}

impl From<engine::Drift> for Drift {
    fn from(drift: engine::Drift) -> Self {
        Drift {
            commit_hash: text(drift.hash),
            message: drift.message,
            created_at: text(drift.created_at),
            from_parent: drift.from_parent,
            from_first: drift.from_first,
        }
    }
}

impl TryFrom<Drift> for engine::Drift {
    type Error = Unreadable;

    fn try_from(view: Drift) -> Result<Self, Unreadable> {
        Ok(engine::Drift {
            hash: parse("commit_hash", &view.commit_hash)?,
            message: view.message,
            created_at: parse("created_at", &view.created_at)?,
            from_parent: view.from_parent,
            from_first: view.from_first,
        })
    }
}

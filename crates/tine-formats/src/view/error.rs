//! Why a call was refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Kind, Name};
use tine_engine as engine;

use super::reading::{Unreadable, parse_option};
use super::text;
use crate::render::{OpenCall, RenderError};

/// Why a call was refused, with what a caller needs to go on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Error {
    /// The stable code of its kind.
    pub code: String,
    /// A sentence that says what to do.
    pub message: String,
    /// What a caller needs to go on.
    #[serde(flatten)]
    pub particulars: Particulars,
}

/// What a caller needs to go on after a refusal; each field is there only where it says something.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Particulars {
    /// Position of the refused message in the call, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_index: Option<usize>,
    /// All that an ambiguous reference could mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Where the branch of a lost race ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_tip: Option<ActualTip>,
    /// What points at the thing that should go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Pointer>,
    /// Later operations that build on the one that should be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depended_on_by: Vec<u64>,
    /// The operation that deleted the turn that was named: undoing it brings the turn back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<u64>,
    /// The title that is set already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present_title: Option<String>,
    /// Whether the root was named where a turn was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_root: bool,
    /// Tool calls without results that keep a path from being rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_calls: Vec<OpenCalls>,
    /// The limit on tokens that the end of a path would fit in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_tokens: Option<u64>,
}

/// A turn with calls that nobody answered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OpenCalls {
    /// The turn.
    pub turn_id: String,
    /// The ids of its open calls.
    pub call_ids: Vec<String>,
}

/// One of several things that a reference could mean.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The conversation it lies in.
    pub conversation_id: String,
    /// The turn; `null` is the root.
    pub turn_id: Option<String>,
    /// The turn's hash.
    pub turn_hash: Option<String>,
    /// The commit, where commits were looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_hash: Option<String>,
}

/// Where a branch ends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ActualTip {
    /// The branch.
    pub branch: String,
    /// The turn; `null` is the root.
    pub turn_id: Option<String>,
    /// The turn's hash.
    pub turn_hash: Option<String>,
}

/// Something that points at a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pointer {
    /// What sort of thing.
    pub what: String,
    /// Its name or id.
    pub name: String,
}

impl Error {
    /// An error of a kind, with a sentence and nothing else.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            code: kind.code().to_owned(),
            message: message.into(),
            particulars: Particulars::default(),
        }
    }
}

impl From<&engine::Error> for Error {
    fn from(error: &engine::Error) -> Self {
        let mut view = Error::new(error.kind(), error.to_string());
        view.particulars = error.particulars().into();
        view
    }
}

impl From<engine::Particulars> for Particulars {
    fn from(found: engine::Particulars) -> Self {
        let pointer = |it: engine::ReferenceFound| Pointer { what: it.what, name: it.name };
        Particulars {
            message_index: found.message_index,
            candidates: found.candidates.iter().map(Candidate::from).collect(),
            actual_tip: found.actual_tip.map(|tip| ActualTip {
                branch: text(tip.branch),
                turn_id: tip.turn.map(text),
                turn_hash: tip.hash.map(text),
            }),
            references: found.references.into_iter().map(pointer).collect(),
            depended_on_by: found.depended_on_by,
            deleted_by: found.deleted_by,
            present_title: found.present_title,
            is_root: found.is_root,
            open_calls: Vec::new(),
            needed_tokens: None,
        }
    }
}

impl TryFrom<Particulars> for engine::Particulars {
    type Error = Unreadable;

    fn try_from(view: Particulars) -> Result<Self, Unreadable> {
        let candidate = |it: Candidate| {
            Ok(engine::Candidate {
                conversation: ConversationId::from_stored(it.conversation_id),
                turn: parse_option("turn_id", it.turn_id)?,
                hash: parse_option("turn_hash", it.turn_hash)?,
                commit: parse_option("commit_hash", it.commit_hash)?,
            })
        };
        let tip = |it: ActualTip| {
            Ok(engine::ActualTip {
                branch: Name::from_stored(it.branch),
                turn: parse_option("turn_id", it.turn_id)?,
                hash: parse_option("turn_hash", it.turn_hash)?,
            })
        };
        let found = |it: Pointer| engine::ReferenceFound { what: it.what, name: it.name };
        Ok(engine::Particulars {
            message_index: view.message_index,
            candidates: view.candidates.into_iter().map(candidate).collect::<Result<_, _>>()?,
            actual_tip: view.actual_tip.map(tip).transpose()?,
            references: view.references.into_iter().map(found).collect(),
            depended_on_by: view.depended_on_by,
            deleted_by: view.deleted_by,
            present_title: view.present_title,
            is_root: view.is_root,
        })
    }
}

impl From<&RenderError> for Error {
    fn from(error: &RenderError) -> Self {
        let mut view = Error::new(error.kind(), error.to_string());
        match error {
            RenderError::OpenCalls(open) => {
                let calls = |it: &OpenCall| OpenCalls {
                    turn_id: text(it.turn),
                    call_ids: it.calls.clone(),
                };
                view.particulars.open_calls = open.iter().map(calls).collect();
            }
            RenderError::TooLong { needed, .. } => view.particulars.needed_tokens = Some(*needed),
            _ => {}
        }
        view
    }
}

impl From<&engine::Candidate> for Candidate {
    fn from(candidate: &engine::Candidate) -> Self {
        Candidate {
            conversation_id: text(&candidate.conversation),
            turn_id: candidate.turn.map(text),
            turn_hash: candidate.hash.map(text),
            commit_hash: candidate.commit.map(text),
        }
    }
}

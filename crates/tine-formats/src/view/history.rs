//! The operation log, undoing, and erasing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tine_core::{ConversationId, ProjectId, TurnId};
use tine_engine as engine;
use tine_store::FeedPosition;

use super::reading::{Unreadable, parse, parse_all};
use super::{Raw, text, texts};

/// One entry of the operation log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Its conversation.
    pub conversation_id: String,
    /// Its place in that conversation's log, from 1: `undo` takes it.
    pub seq: u64,
    /// What was done.
    pub kind: String,
    /// By whom.
    pub actor: String,
    /// When.
    pub at: String,
    /// A line for people.
    pub summary: String,
    /// What exactly; `null` once it was purged.
    pub detail: Option<Raw>,
    /// The chain hash.
    pub hash: String,
    /// Whether it is undone at present.
    pub undone: bool,
}

impl From<engine::OperationView> for Operation {
    fn from(view: engine::OperationView) -> Self {
        Operation {
            conversation_id: text(view.conversation),
            seq: view.seq,
            kind: view.kind,
            actor: view.actor,
            at: text(view.at),
            summary: view.summary,
            // A damaged detail must not keep the rest of the log from being shown.
            detail: view.detail.and_then(|detail| RawValue::from_string(detail).ok()),
            hash: text(view.hash),
            undone: view.undone,
        }
    }
}

impl TryFrom<Operation> for engine::OperationView {
    type Error = Unreadable;

    fn try_from(view: Operation) -> Result<Self, Unreadable> {
        Ok(engine::OperationView {
            conversation: ConversationId::from_stored(view.conversation_id),
            seq: view.seq,
            kind: view.kind,
            actor: view.actor,
            at: parse("at", &view.at)?,
            summary: view.summary,
            detail: view.detail.map(|detail| detail.get().to_owned()),
            hash: parse("hash", &view.hash)?,
            undone: view.undone,
        })
    }
}

/// One entry of the change feed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its place in the feed of the whole store.
    pub position: u64,
    /// Its project.
    pub project_id: String,
    /// What was done.
    #[serde(flatten)]
    pub operation: Operation,
}

impl From<engine::FeedEntry> for Event {
    fn from(entry: engine::FeedEntry) -> Self {
        Event {
            position: entry.position.0,
            project_id: text(entry.project),
            operation: entry.operation.into(),
        }
    }
}

impl Event {
    /// Reads an entry as it was sent. In two steps, because what is flattened cannot be passed on
    /// byte for byte by a reader that takes the fields one by one.
    pub fn from_text(text: &str) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Place {
            position: u64,
            project_id: String,
        }
        let unreadable = |error| Unreadable::new("event", error);
        let place: Place = serde_json::from_str(text).map_err(unreadable)?;
        let operation = serde_json::from_str(text).map_err(unreadable)?;
        Ok(Event { position: place.position, project_id: place.project_id, operation })
    }
}

impl TryFrom<Event> for engine::FeedEntry {
    type Error = Unreadable;

    fn try_from(view: Event) -> Result<Self, Unreadable> {
        Ok(engine::FeedEntry {
            position: FeedPosition(view.position),
            project: ProjectId::from_stored(view.project_id),
            operation: view.operation.try_into()?,
        })
    }
}

/// What an undo or redo did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The operation that was undone or redone.
    pub target: u64,
    /// What that one was.
    pub kind: String,
    /// The new entry of the log.
    pub seq: u64,
}

impl From<engine::Undone> for Undone {
    fn from(done: engine::Undone) -> Self {
        Undone { target: done.target, kind: done.kind, seq: done.seq }
    }
}

impl From<Undone> for engine::Undone {
    fn from(view: Undone) -> Self {
        engine::Undone { target: view.target, kind: view.kind, seq: view.seq }
    }
}

/// What an erasure did, or would do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Purged {
    /// Turns whose content is erased.
    pub turns: Vec<String>,
    /// Other turns that say the same and keep it.
    pub other_holders: Vec<Holder>,
    /// Entries of the log whose detail is erased.
    pub operations: u64,
    /// Sources whose bytes are erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Observations that are erased with them.
    #[serde(default)]
    pub observations: u64,
    /// The word to confirm with; nothing was erased yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

/// A turn that holds the same text as an erased one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Its conversation.
    pub conversation_id: String,
    /// Its id.
    pub turn_id: String,
}

impl From<engine::Purged> for Purged {
    fn from(done: engine::Purged) -> Self {
        let holder = |(conversation, turn): (ConversationId, TurnId)| Holder {
            conversation_id: text(conversation),
            turn_id: text(turn),
        };
        Purged {
            turns: texts(done.turns),
            other_holders: done.other_holders.into_iter().map(holder).collect(),
            operations: done.operations,
            sources: texts(done.sources),
            observations: done.observations,
            confirm: done.confirm,
        }
    }
}

impl TryFrom<Purged> for engine::Purged {
    type Error = Unreadable;

    fn try_from(view: Purged) -> Result<Self, Unreadable> {
        let holder = |it: Holder| {
            Ok((ConversationId::from_stored(it.conversation_id), parse("turn_id", &it.turn_id)?))
        };
        Ok(engine::Purged {
            turns: parse_all("turns", view.turns)?,
            other_holders: view.other_holders.into_iter().map(holder).collect::<Result<_, _>>()?,
            operations: view.operations,
            sources: parse_all("sources", view.sources)?,
            observations: view.observations,
            confirm: view.confirm,
        })
    }
}

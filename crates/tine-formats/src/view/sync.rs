//! How far logs have come, and what was taken in from another store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name};
use tine_engine as engine;

use super::reading::{Unreadable, parse, parse_all};
use super::text;

/// A place in a log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogMark {
    /// The number of an entry.
    pub seq: u64,
    /// Its hash, which stands for all before it.
    pub hash: String,
}

impl From<engine::LogMark> for LogMark {
    fn from(mark: engine::LogMark) -> Self {
        LogMark { seq: mark.seq, hash: text(mark.hash) }
    }
}

impl TryFrom<LogMark> for engine::LogMark {
    type Error = Unreadable;

    fn try_from(view: LogMark) -> Result<Self, Unreadable> {
        Ok(engine::LogMark { seq: view.seq, hash: parse("hash", &view.hash)? })
    }
}

/// How far the log of a conversation has come.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogEnd {
    /// The conversation.
    pub conversation_id: String,
    /// Its last entry.
    #[serde(flatten)]
    pub end: LogMark,
}

impl From<engine::LogEnd> for LogEnd {
    fn from(found: engine::LogEnd) -> Self {
        LogEnd { conversation_id: text(found.conversation), end: found.end.into() }
    }
}

impl TryFrom<LogEnd> for engine::LogEnd {
    type Error = Unreadable;

    fn try_from(view: LogEnd) -> Result<Self, Unreadable> {
        let conversation = ConversationId::from_stored(view.conversation_id);
        Ok(engine::LogEnd { conversation, end: view.end.try_into()? })
    }
}

/// Hashes of entries of a log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogHashes {
    /// In the order in which they were asked for; `null` for an entry that the log has not.
    pub hashes: Vec<Option<String>>,
}

/// An entry that brought turns of another log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogMerge {
    /// Its number.
    pub seq: u64,
    /// How far the other log had come.
    pub of: LogMark,
}

/// What stands in a log about other logs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogMerges {
    /// The entries that brought turns of others, oldest first.
    pub merges: Vec<LogMerge>,
    /// How far other logs were looked through that had nothing new; no entry tells of it, `seq` is
    /// where this log ended then.
    #[serde(default)]
    pub compared: Vec<LogMerge>,
    /// The last entry that took something back or brought it back; 0 without one.
    pub turned: u64,
    /// The turns that its entries erased.
    #[serde(default)]
    pub erased: Vec<String>,
}

impl From<engine::LogMerges> for LogMerges {
    fn from(told: engine::LogMerges) -> Self {
        let all = |told: Vec<engine::LogMerge>| {
            told.into_iter().map(|it| LogMerge { seq: it.seq, of: it.of.into() }).collect()
        };
        let (merges, compared) = (all(told.merges), all(told.compared));
        let erased = told.erased.iter().map(ToString::to_string).collect();
        LogMerges { merges, compared, turned: told.turned, erased }
    }
}

impl TryFrom<LogMerges> for engine::LogMerges {
    type Error = Unreadable;

    fn try_from(view: LogMerges) -> Result<Self, Unreadable> {
        let merge = |it: LogMerge| Ok(engine::LogMerge { seq: it.seq, of: it.of.try_into()? });
        let all = |view: Vec<LogMerge>| view.into_iter().map(merge).collect();
        let all = |view| -> Result<Vec<engine::LogMerge>, Unreadable> { all(view) };
        let (merges, compared) = (all(view.merges)?, all(view.compared)?);
        let erased = parse_all("erased", view.erased)?;
        Ok(engine::LogMerges { merges, compared, turned: view.turned, erased })
    }
}

/// A bookmark that arrived under another name, since its own means another turn here.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Renamed {
    /// Its name where it comes from.
    pub from: String,
    /// Its name here.
    pub to: String,
}

/// What was done with what came from another store.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pulled {
    /// The conversation was not here.
    pub new: bool,
    /// Both sides had gone on by themselves.
    pub diverged: bool,
    /// Turns that are new here.
    pub turns: u64,
    /// Operations that are new here.
    pub operations: u64,
    /// Turns that were not taken over because they, or something above them, is gone here.
    pub withheld: u64,
    /// Bookmarks whose names mean other turns here.
    #[serde(default)]
    pub renamed: Vec<Renamed>,
    /// Idempotency keys that mean something else here, and were not taken over.
    #[serde(default)]
    pub keys: u64,
    /// How many bytes came.
    pub bytes: u64,
}

impl From<engine::Pulled> for Pulled {
    fn from(done: engine::Pulled) -> Self {
        let engine::Pulled { new, diverged, turns, operations, withheld, .. } = done;
        let engine::Pulled { renamed, keys, bytes, .. } = done;
        let each = |it: engine::Renamed| Renamed { from: text(it.from), to: text(it.to) };
        let renamed = renamed.into_iter().map(each).collect();
        Pulled { new, diverged, turns, operations, withheld, renamed, keys, bytes }
    }
}

impl From<Pulled> for engine::Pulled {
    fn from(view: Pulled) -> Self {
        let Pulled { new, diverged, turns, operations, withheld, renamed, keys, bytes } = view;
        let each = |it: Renamed| {
            let (from, to) = (Name::from_stored(it.from), Name::from_stored(it.to));
            engine::Renamed { from, to }
        };
        let renamed = renamed.into_iter().map(each).collect();
        let unerased = 0;
        engine::Pulled {
            new,
            diverged,
            turns,
            operations,
            withheld,
            unerased,
            renamed,
            keys,
            bytes,
        }
    }
}

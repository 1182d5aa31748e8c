//! The changes of an operation, in a form that can be undone and redone.
//!
//! A change names its record and holds it before and after. Turns themselves never change: an
//! operation that makes turns is undone by hiding them.
//!
//! In the log a change is JSON; turns and conversations are named by id, never by a store's
//! handles, so that a log means the same in every store.

use tine_core::hash::{Hasher, from_hex, to_hex};
use tine_core::json::{Json, Object};
use tine_core::metadata::MetadataKey;
use tine_core::{
    BranchId, ConversationId, Digest, Name, ObservationId, Timestamp, TurnHash, TurnId,
};
use tine_store::{Family, RecordKey, Turn};

use tine_core::json::text_fields::optional;
pub(crate) use tine_core::json::text_fields::{parsed, text, texts};

use crate::log::canonical_writer::{ObjectWriter, canonicalize, write_array};

/// One record before and after an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoggedChange {
    /// A branch appeared, moved, was renamed or removed.
    Branch { id: BranchId, before: Option<BranchImage>, after: Option<BranchImage> },
    /// A bookmark appeared, moved or was removed.
    Bookmark { name: Name, before: Option<BookmarkImage>, after: Option<BookmarkImage> },
    /// A key of a turn's metadata changed.
    Metadata { turn: TurnId, key: MetadataKey, before: Json, after: Json },
    /// A field of the conversation changed.
    Conversation { field: ConversationField, before: Json, after: Json },
    /// Turns were made: a chain that begins with this one. The hash of the last covers all of them,
    /// so the log seals the content. Ids are in no hash; those of a longer chain are sealed
    /// separately.
    Created { first: TurnId, count: u64, last_hash: TurnHash, ids: Option<Digest> },
    /// A turn was hidden, with all below or alone.
    Hidden { root: TurnId, cascade: bool },
    /// A turn is shown as two.
    Split { whole: TurnId, left: TurnId, right: TurnId },
    /// An observation was added. It is retracted, never removed.
    Observed { id: ObservationId, digest: Digest },
    /// A record of a family was added, changed or removed. In the log it is an `entry`.
    Record { key: RecordKey, before: Option<Json>, after: Option<Json> },
}

/// Returns the digest that seals the ids of a chain: all of them, concatenated.
pub(crate) fn ids_digest<'i>(ids: impl Iterator<Item = &'i TurnId>) -> Digest {
    let mut hasher = Hasher::default();
    ids.for_each(|id| hasher.update(id.as_bytes()));
    hasher.finish()
}

/// The mutable fields of a branch, and what is needed to restore a removed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BranchImage {
    pub name: Name,
    pub tip: Option<TurnId>,
    pub forked_from: Option<TurnId>,
    pub created_at: Timestamp,
    pub version: u64,
}

/// What may change of a bookmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BookmarkImage {
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub created_at: Timestamp,
}

/// The fields of a conversation that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConversationField {
    Title,
    Metadata,
    Visibility,
}

impl ConversationField {
    const ALL: [(ConversationField, &'static str); 3] = [
        (ConversationField::Title, "title"),
        (ConversationField::Metadata, "metadata"),
        (ConversationField::Visibility, "visibility"),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(field, _)| *field)
    }
}

impl LoggedChange {
    /// Returns a chain of turns that was just made.
    pub(crate) fn created(turns: &[Turn]) -> Option<LoggedChange> {
        let (first, last) = (turns.first()?, turns.last()?);
        let count = u64::try_from(turns.len()).unwrap_or(u64::MAX);
        let ids = (count > 1).then(|| ids_digest(turns.iter().map(|turn| &turn.id)));
        Some(LoggedChange::Created { first: first.id, count, last_hash: last.hash, ids })
    }

    /// Returns whether two operations wrote the same record.
    pub(crate) fn same_record(&self, other: &LoggedChange) -> bool {
        match (self, other) {
            (LoggedChange::Branch { id: a, .. }, LoggedChange::Branch { id: b, .. }) => a == b,
            (LoggedChange::Bookmark { name: a, .. }, LoggedChange::Bookmark { name: b, .. }) => {
                a == b
            }
            (
                LoggedChange::Metadata { turn: a, key: x, .. },
                LoggedChange::Metadata { turn: b, key: y, .. },
            ) => a == b && x == y,
            (
                LoggedChange::Conversation { field: a, .. },
                LoggedChange::Conversation { field: b, .. },
            ) => a == b,
            (LoggedChange::Split { whole: a, .. }, LoggedChange::Split { whole: b, .. }) => a == b,
            (LoggedChange::Record { key: a, .. }, LoggedChange::Record { key: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Replaces the `after` state with that of a later change of the same record.
    pub(crate) fn then(&mut self, later: LoggedChange) {
        match (self, later) {
            (LoggedChange::Branch { after, .. }, LoggedChange::Branch { after: last, .. }) => {
                *after = last
            }
            (LoggedChange::Bookmark { after, .. }, LoggedChange::Bookmark { after: last, .. }) => {
                *after = last
            }
            (LoggedChange::Metadata { after, .. }, LoggedChange::Metadata { after: last, .. })
            | (
                LoggedChange::Conversation { after, .. },
                LoggedChange::Conversation { after: last, .. },
            ) => {
                *after = last;
            }
            (LoggedChange::Record { after, .. }, LoggedChange::Record { after: last, .. }) => {
                *after = last
            }
            _ => {}
        }
    }

    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        match self {
            LoggedChange::Branch { id, before, after } => {
                object.optional("after", after.as_ref(), BranchImage::write);
                object.optional("before", before.as_ref(), BranchImage::write);
                object.unescaped("branch_id", Some(id));
            }
            LoggedChange::Bookmark { name, before, after } => {
                object.optional("after", after.as_ref(), BookmarkImage::write);
                object.optional("before", before.as_ref(), BookmarkImage::write);
                object.text("name", Some(name.as_str()));
            }
            LoggedChange::Metadata { key, before, after, .. } => {
                object.json("after", after);
                object.json("before", before);
                object.text("key", Some(key.as_str()));
            }
            LoggedChange::Conversation { field, before, after } => {
                object.json("after", after);
                object.json("before", before);
                object.text("field", Some(field.as_str()));
            }
            LoggedChange::Created { first, count, last_hash, ids } => {
                object.literal("count", count);
                object.unescaped("first", Some(first));
                if ids.is_some() {
                    object.unescaped("ids", ids.as_ref());
                }
                object.unescaped("last_hash", Some(last_hash));
            }
            LoggedChange::Hidden { cascade, .. } => object.literal("cascade", cascade),
            LoggedChange::Split { left, .. } => object.unescaped("left", Some(left)),
            LoggedChange::Observed { id, digest } => {
                object.unescaped("digest", Some(digest.to_hex()));
                object.unescaped("observation_id", Some(id));
            }
            LoggedChange::Record { key, before, after } => {
                object.json("after", after.as_ref().unwrap_or(&Json::Null));
                object.json("before", before.as_ref().unwrap_or(&Json::Null));
                object.unescaped("key", Some(to_hex(&key.to_bytes())));
                object.literal("kind", key.family().code());
            }
        }
        object.text("record", Some(self.record()));
        // Members that sort after `record`.
        match self {
            LoggedChange::Metadata { turn, .. } => object.unescaped("turn_id", Some(turn)),
            LoggedChange::Hidden { root, .. } => object.unescaped("turn_id", Some(root)),
            LoggedChange::Split { whole, right, .. } => {
                object.unescaped("right", Some(right));
                object.unescaped("turn_id", Some(whole));
            }
            _ => {}
        }
        object.end();
    }

    /// Returns which kind of record it is.
    fn record(&self) -> &'static str {
        match self {
            LoggedChange::Branch { .. } => "branch",
            LoggedChange::Bookmark { .. } => "bookmark",
            LoggedChange::Metadata { .. } => "metadata",
            LoggedChange::Conversation { .. } => "conversation",
            LoggedChange::Created { .. } => "turns",
            LoggedChange::Hidden { .. } => "hidden",
            LoggedChange::Split { .. } => "split",
            LoggedChange::Observed { .. } => "observation",
            LoggedChange::Record { .. } => "entry",
        }
    }

    pub(crate) fn from_json(json: &Json) -> Option<Self> {
        let member = |name: &str| json.get(name).cloned().unwrap_or(Json::Null);
        Some(match json.get("record")?.as_str()? {
            "branch" => LoggedChange::Branch {
                id: parsed(json, "branch_id")?,
                before: image(json, "before", BranchImage::from_json)?,
                after: image(json, "after", BranchImage::from_json)?,
            },
            "bookmark" => LoggedChange::Bookmark {
                name: Name::from_stored(json.get("name")?.as_str()?),
                before: image(json, "before", BookmarkImage::from_json)?,
                after: image(json, "after", BookmarkImage::from_json)?,
            },
            "metadata" => LoggedChange::Metadata {
                turn: parsed(json, "turn_id")?,
                key: MetadataKey::parse(json.get("key")?.as_str()?)?,
                before: member("before"),
                after: member("after"),
            },
            "conversation" => LoggedChange::Conversation {
                field: ConversationField::parse(json.get("field")?.as_str()?)?,
                before: member("before"),
                after: member("after"),
            },
            "turns" => LoggedChange::Created {
                first: parsed(json, "first")?,
                count: json.get("count")?.as_u64()?,
                last_hash: parsed(json, "last_hash")?,
                ids: optional(json, "ids")?,
            },
            "hidden" => LoggedChange::Hidden {
                root: parsed(json, "turn_id")?,
                cascade: json.get("cascade")?.as_bool()?,
            },
            "split" => LoggedChange::Split {
                whole: parsed(json, "turn_id")?,
                left: parsed(json, "left")?,
                right: parsed(json, "right")?,
            },
            "observation" => LoggedChange::Observed {
                id: parsed(json, "observation_id")?,
                digest: parsed(json, "digest")?,
            },
            "entry" => {
                let code = u8::try_from(json.get("kind")?.as_u64()?).ok()?;
                let key = from_hex(json.get("key")?.as_str()?)?;
                LoggedChange::Record {
                    key: RecordKey::from_bytes(Family::from_code(code)?, &key),
                    before: Some(member("before")).filter(|value| !value.is_null()),
                    after: Some(member("after")).filter(|value| !value.is_null()),
                }
            }
            _ => return None,
        })
    }
}

impl BranchImage {
    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.unescaped("created_at", Some(self.created_at));
        object.unescaped("forked_from", self.forked_from);
        object.text("name", Some(self.name.as_str()));
        object.unescaped("tip", self.tip);
        object.literal("version", self.version);
        object.end();
    }

    fn from_json(json: &Json) -> Option<Self> {
        Some(BranchImage {
            name: Name::from_stored(json.get("name")?.as_str()?),
            tip: optional(json, "tip")?,
            forked_from: optional(json, "forked_from")?,
            created_at: parsed(json, "created_at")?,
            version: json.get("version")?.as_u64()?,
        })
    }
}

impl BookmarkImage {
    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.text("conversation_id", Some(self.conversation.as_str()));
        object.unescaped("created_at", Some(self.created_at));
        object.unescaped("turn_id", Some(self.turn));
        object.end();
    }

    fn from_json(json: &Json) -> Option<Self> {
        Some(BookmarkImage {
            conversation: ConversationId::from_stored(json.get("conversation_id")?.as_str()?),
            turn: parsed(json, "turn_id")?,
            created_at: parsed(json, "created_at")?,
        })
    }
}

/// The detail of an operation: its changes, what it depends on, and what people want to read.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationDetail {
    pub changes: Vec<LoggedChange>,
    /// Operations of the same conversation whose records this one read.
    pub depends_on: Vec<u64>,
    /// Further facts, such as the target of an undo.
    pub facts: Object,
}

impl OperationDetail {
    /// As canonical JSON.
    pub(crate) fn to_canonical(&self) -> String {
        let mut out = String::with_capacity(1024);
        let mut object = ObjectWriter::begin(&mut out);
        write_array(object.key("changes"), &self.changes, |out, change| change.write(out));
        write_array(object.key("depends_on"), &self.depends_on, |out, seq| {
            out.push_str(&seq.to_string());
        });
        self.facts.write_canonical(object.key("facts"));
        object.end();
        debug_assert_eq!(canonicalize(&out).as_ref(), Some(&out));
        out
    }

    pub(crate) fn from_json(json: &Json) -> Option<Self> {
        let changes = json.get("changes")?.as_array()?;
        let depends_on = json.get("depends_on")?.as_array()?;
        Some(OperationDetail {
            changes: changes.iter().map(LoggedChange::from_json).collect::<Option<_>>()?,
            depends_on: depends_on.iter().map(Json::as_u64).collect::<Option<_>>()?,
            facts: json.get("facts")?.as_object()?.clone(),
        })
    }

    /// Returns the target of an undo or redo.
    pub(crate) fn target_operation(&self) -> Option<u64> {
        self.facts.get("operation").and_then(Json::as_u64)
    }

    /// Returns the ids recorded under a fact's name.
    pub(crate) fn ids_in_fact<T: std::str::FromStr>(&self, name: &str) -> Vec<T> {
        let ids = match self.facts.get(name) {
            None => &[],
            Some(Json::Array(several)) => several.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        ids.iter().filter_map(|id| id.as_str()?.parse().ok()).collect()
    }
}

fn image<T>(json: &Json, name: &str, read: impl Fn(&Json) -> Option<T>) -> Option<Option<T>> {
    match json.get(name) {
        None | Some(Json::Null) => Some(None),
        Some(value) => read(value).map(Some),
    }
}

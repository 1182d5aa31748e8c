//! What an operation wrote, in a form that can be taken back and done again.
//!
//! A change names its record and holds it before and after. Turns themselves never change: an
//! operation that makes turns is taken back by hiding them.
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

pub(crate) use tine_core::json::text_fields::{all_parsed, optional, parsed, text, texts};

use crate::log::canonical_writer::{Members, canonical, write_array};

/// One record before and after an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A branch appeared, moved, was renamed or removed.
    Branch { id: BranchId, before: Option<BranchImage>, after: Option<BranchImage> },
    /// A bookmark appeared, moved or was removed.
    Bookmark { name: Name, before: Option<BookmarkImage>, after: Option<BookmarkImage> },
    /// A key of a turn's metadata changed.
    Metadata { turn: TurnId, key: MetadataKey, before: Json, after: Json },
    /// A field of the conversation changed.
    Conversation { field: ConversationField, before: Json, after: Json },
    /// Turns were made: a chain that begins with this one. The hash of the last covers all of
    /// them, so that the log seals what was said; ids are in no hash, so that those of several
    /// are sealed beside it.
    Created { first: TurnId, count: u64, last_hash: TurnHash, ids: Option<Digest> },
    /// A turn was hidden, with all below or alone.
    Hidden { root: TurnId, cascade: bool },
    /// A turn is shown as two.
    Split { whole: TurnId, left: TurnId, right: TurnId },
    /// Something was observed. It is taken back by a retraction, never removed.
    Observed { id: ObservationId, digest: Digest },
    /// A record of a family was added, changed or removed. In the log it is an `entry`.
    Record { key: RecordKey, before: Option<Json>, after: Option<Json> },
}

/// What seals the ids of a chain: all of them, one behind the other.
pub(crate) fn ids_digest<'i>(ids: impl Iterator<Item = &'i TurnId>) -> Digest {
    let mut hasher = Hasher::default();
    ids.for_each(|id| hasher.update(id.as_bytes()));
    hasher.finish()
}

/// What may change of a branch, and what is needed to bring a removed one back.
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

impl Change {
    /// A chain of turns that was just made.
    pub(crate) fn created(turns: &[Turn]) -> Option<Change> {
        let (first, last) = (turns.first()?, turns.last()?);
        let count = u64::try_from(turns.len()).unwrap_or(u64::MAX);
        let ids = (count > 1).then(|| ids_digest(turns.iter().map(|turn| &turn.id)));
        Some(Change::Created { first: first.id, count, last_hash: last.hash, ids })
    }

    /// Whether two operations wrote the same record.
    pub(crate) fn same_record(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::Branch { id: a, .. }, Change::Branch { id: b, .. }) => a == b,
            (Change::Bookmark { name: a, .. }, Change::Bookmark { name: b, .. }) => a == b,
            (
                Change::Metadata { turn: a, key: x, .. },
                Change::Metadata { turn: b, key: y, .. },
            ) => a == b && x == y,
            (Change::Conversation { field: a, .. }, Change::Conversation { field: b, .. }) => {
                a == b
            }
            (Change::Split { whole: a, .. }, Change::Split { whole: b, .. }) => a == b,
            (Change::Record { key: a, .. }, Change::Record { key: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Takes over how a later change of the same record left it.
    pub(crate) fn then(&mut self, later: Change) {
        match (self, later) {
            (Change::Branch { after, .. }, Change::Branch { after: last, .. }) => *after = last,
            (Change::Bookmark { after, .. }, Change::Bookmark { after: last, .. }) => *after = last,
            (Change::Metadata { after, .. }, Change::Metadata { after: last, .. })
            | (Change::Conversation { after, .. }, Change::Conversation { after: last, .. }) => {
                *after = last;
            }
            (Change::Record { after, .. }, Change::Record { after: last, .. }) => *after = last,
            _ => {}
        }
    }

    fn write(&self, out: &mut String) {
        let mut members = Members::begin(out);
        match self {
            Change::Branch { id, before, after } => {
                members.of("after", after.as_ref(), BranchImage::write);
                members.of("before", before.as_ref(), BranchImage::write);
                members.plain("branch_id", Some(id));
            }
            Change::Bookmark { name, before, after } => {
                members.of("after", after.as_ref(), BookmarkImage::write);
                members.of("before", before.as_ref(), BookmarkImage::write);
                members.text("name", Some(name.as_str()));
            }
            Change::Metadata { key, before, after, .. } => {
                members.json("after", after);
                members.json("before", before);
                members.text("key", Some(key.as_str()));
            }
            Change::Conversation { field, before, after } => {
                members.json("after", after);
                members.json("before", before);
                members.text("field", Some(field.as_str()));
            }
            Change::Created { first, count, last_hash, ids } => {
                members.literal("count", count);
                members.plain("first", Some(first));
                if ids.is_some() {
                    members.plain("ids", ids.as_ref());
                }
                members.plain("last_hash", Some(last_hash));
            }
            Change::Hidden { cascade, .. } => members.literal("cascade", cascade),
            Change::Split { left, .. } => members.plain("left", Some(left)),
            Change::Observed { id, digest } => {
                members.plain("digest", Some(digest.to_hex()));
                members.plain("observation_id", Some(id));
            }
            Change::Record { key, before, after } => {
                members.json("after", after.as_ref().unwrap_or(&Json::Null));
                members.json("before", before.as_ref().unwrap_or(&Json::Null));
                members.plain("key", Some(to_hex(&key.to_bytes())));
                members.literal("kind", key.family().code());
            }
        }
        members.text("record", Some(self.record()));
        // What comes behind the record's name.
        match self {
            Change::Metadata { turn, .. } => members.plain("turn_id", Some(turn)),
            Change::Hidden { root, .. } => members.plain("turn_id", Some(root)),
            Change::Split { whole, right, .. } => {
                members.plain("right", Some(right));
                members.plain("turn_id", Some(whole));
            }
            _ => {}
        }
        members.end();
    }

    /// Which kind of record it is.
    fn record(&self) -> &'static str {
        match self {
            Change::Branch { .. } => "branch",
            Change::Bookmark { .. } => "bookmark",
            Change::Metadata { .. } => "metadata",
            Change::Conversation { .. } => "conversation",
            Change::Created { .. } => "turns",
            Change::Hidden { .. } => "hidden",
            Change::Split { .. } => "split",
            Change::Observed { .. } => "observation",
            Change::Record { .. } => "entry",
        }
    }

    pub(crate) fn from_json(json: &Json) -> Option<Self> {
        let member = |name: &str| json.get(name).cloned().unwrap_or(Json::Null);
        Some(match json.get("record")?.as_str()? {
            "branch" => Change::Branch {
                id: parsed(json, "branch_id")?,
                before: image(json, "before", BranchImage::from_json)?,
                after: image(json, "after", BranchImage::from_json)?,
            },
            "bookmark" => Change::Bookmark {
                name: Name::from_stored(json.get("name")?.as_str()?),
                before: image(json, "before", BookmarkImage::from_json)?,
                after: image(json, "after", BookmarkImage::from_json)?,
            },
            "metadata" => Change::Metadata {
                turn: parsed(json, "turn_id")?,
                key: MetadataKey::parse(json.get("key")?.as_str()?)?,
                before: member("before"),
                after: member("after"),
            },
            "conversation" => Change::Conversation {
                field: ConversationField::parse(json.get("field")?.as_str()?)?,
                before: member("before"),
                after: member("after"),
            },
            "turns" => Change::Created {
                first: parsed(json, "first")?,
                count: json.get("count")?.as_u64()?,
                last_hash: parsed(json, "last_hash")?,
                ids: optional(json, "ids")?,
            },
            "hidden" => Change::Hidden {
                root: parsed(json, "turn_id")?,
                cascade: json.get("cascade")?.as_bool()?,
            },
            "split" => Change::Split {
                whole: parsed(json, "turn_id")?,
                left: parsed(json, "left")?,
                right: parsed(json, "right")?,
            },
            "observation" => Change::Observed {
                id: parsed(json, "observation_id")?,
                digest: parsed(json, "digest")?,
            },
            "entry" => {
                let code = u8::try_from(json.get("kind")?.as_u64()?).ok()?;
                let key = from_hex(json.get("key")?.as_str()?)?;
                Change::Record {
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
        let mut members = Members::begin(out);
        members.plain("created_at", Some(self.created_at));
        members.plain("forked_from", self.forked_from);
        members.text("name", Some(self.name.as_str()));
        members.plain("tip", self.tip);
        members.literal("version", self.version);
        members.end();
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
        let mut members = Members::begin(out);
        members.text("conversation_id", Some(self.conversation.as_str()));
        members.plain("created_at", Some(self.created_at));
        members.plain("turn_id", Some(self.turn));
        members.end();
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
    pub changes: Vec<Change>,
    /// Operations of the same conversation whose records this one read.
    pub depends_on: Vec<u64>,
    /// Further facts, such as the operation that an undo took back.
    pub facts: Object,
}

impl OperationDetail {
    /// As canonical JSON.
    pub(crate) fn to_canonical(&self) -> String {
        let mut out = String::with_capacity(1024);
        let mut members = Members::begin(&mut out);
        write_array(members.name("changes"), &self.changes, |out, change| change.write(out));
        write_array(members.name("depends_on"), &self.depends_on, |out, seq| {
            out.push_str(&seq.to_string());
        });
        self.facts.write_canonical(members.name("facts"));
        members.end();
        debug_assert_eq!(canonical(&out).as_ref(), Some(&out));
        out
    }

    pub(crate) fn from_json(json: &Json) -> Option<Self> {
        let changes = json.get("changes")?.as_array()?;
        let depends_on = json.get("depends_on")?.as_array()?;
        Some(OperationDetail {
            changes: changes.iter().map(Change::from_json).collect::<Option<_>>()?,
            depends_on: depends_on.iter().map(Json::as_u64).collect::<Option<_>>()?,
            facts: json.get("facts")?.as_object()?.clone(),
        })
    }

    /// The operation that an undo took back, or a redo did again.
    pub(crate) fn turned(&self) -> Option<u64> {
        self.facts.get("operation").and_then(Json::as_u64)
    }

    /// The ids that it tells under a name: none, one or several.
    pub(crate) fn told<T: std::str::FromStr>(&self, name: &str) -> Vec<T> {
        let told = match self.facts.get(name) {
            None => &[],
            Some(Json::Array(several)) => several.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        told.iter().filter_map(|id| id.as_str()?.parse().ok()).collect()
    }
}

fn image<T>(json: &Json, name: &str, read: impl Fn(&Json) -> Option<T>) -> Option<Option<T>> {
    match json.get(name) {
        None | Some(Json::Null) => Some(None),
        Some(value) => read(value).map(Some),
    }
}

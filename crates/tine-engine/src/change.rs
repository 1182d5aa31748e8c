//! What an operation wrote, in a form that can be taken back and done again.
//!
//! A change names its record and holds it before and after. Turns themselves never change: an
//! operation that makes turns is taken back by hiding them.
//!
//! In the log a change is JSON; turns and conversations are named by id, never by a store's
//! handles, so that a log means the same in every store.

use tine_core::hash::Hasher;
use tine_core::json::{Json, Object, object};
use tine_core::metadata::MetadataKey;
use tine_core::{
    BranchId, ConversationId, Digest, Name, ObservationId, Timestamp, TurnHash, TurnId,
};
use tine_store::{EntryKind, Turn};

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
    /// An entry of the ledger appeared, changed or was removed.
    Entry { kind: EntryKind, key: Vec<u8>, before: Option<Json>, after: Option<Json> },
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
            (Change::Entry { kind: a, key: x, .. }, Change::Entry { kind: b, key: y, .. }) => {
                a == b && x == y
            }
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
            (Change::Entry { after, .. }, Change::Entry { after: last, .. }) => *after = last,
            _ => {}
        }
    }

    pub(crate) fn to_json(&self) -> Json {
        match self {
            Change::Branch { id, before, after } => object([
                ("record", "branch".into()),
                ("branch_id", text(id)),
                ("before", before.as_ref().map(BranchImage::to_json).into()),
                ("after", after.as_ref().map(BranchImage::to_json).into()),
            ]),
            Change::Bookmark { name, before, after } => object([
                ("record", "bookmark".into()),
                ("name", text(name)),
                ("before", before.as_ref().map(BookmarkImage::to_json).into()),
                ("after", after.as_ref().map(BookmarkImage::to_json).into()),
            ]),
            Change::Metadata { turn, key, before, after } => object([
                ("record", "metadata".into()),
                ("turn_id", text(turn)),
                ("key", key.as_str().into()),
                ("before", before.clone()),
                ("after", after.clone()),
            ]),
            Change::Conversation { field, before, after } => object([
                ("record", "conversation".into()),
                ("field", field.as_str().into()),
                ("before", before.clone()),
                ("after", after.clone()),
            ]),
            Change::Created { first, count, last_hash, ids } => {
                let mut told = object([
                    ("record", "turns".into()),
                    ("first", text(first)),
                    ("count", (*count).into()),
                    ("last_hash", text(last_hash)),
                ]);
                if let (Json::Object(members), Some(ids)) = (&mut told, ids) {
                    members.insert("ids", text(ids));
                }
                told
            }
            Change::Hidden { root, cascade } => object([
                ("record", "hidden".into()),
                ("turn_id", text(root)),
                ("cascade", (*cascade).into()),
            ]),
            Change::Split { whole, left, right } => object([
                ("record", "split".into()),
                ("turn_id", text(whole)),
                ("left", text(left)),
                ("right", text(right)),
            ]),
            Change::Observed { id, digest } => object([
                ("record", "observation".into()),
                ("observation_id", text(id)),
                ("digest", digest.to_hex().into()),
            ]),
            Change::Entry { kind, key, before, after } => object([
                ("record", "entry".into()),
                ("kind", u32::from(kind.code()).into()),
                ("key", hex(key).into()),
                ("before", before.clone().into()),
                ("after", after.clone().into()),
            ]),
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
            "entry" => Change::Entry {
                kind: u8::try_from(json.get("kind")?.as_u64()?)
                    .ok()
                    .and_then(EntryKind::from_code)?,
                key: from_hex(json.get("key")?.as_str()?)?,
                before: Some(member("before")).filter(|value| !value.is_null()),
                after: Some(member("after")).filter(|value| !value.is_null()),
            },
            _ => return None,
        })
    }
}

impl BranchImage {
    fn to_json(&self) -> Json {
        object([
            ("name", text(&self.name)),
            ("tip", self.tip.map(|tip| text(&tip)).into()),
            ("forked_from", self.forked_from.map(|turn| text(&turn)).into()),
            ("created_at", text(&self.created_at)),
            ("version", self.version.into()),
        ])
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
    fn to_json(&self) -> Json {
        object([
            ("conversation_id", text(&self.conversation)),
            ("turn_id", text(&self.turn)),
            ("created_at", text(&self.created_at)),
        ])
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
    pub(crate) fn to_json(&self) -> Json {
        object([
            ("changes", Json::Array(self.changes.iter().map(Change::to_json).collect())),
            ("depends_on", Json::Array(self.depends_on.iter().map(|seq| (*seq).into()).collect())),
            ("facts", Json::Object(self.facts.clone())),
        ])
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(pair).collect()
}

pub(crate) fn text(value: &impl ToString) -> Json {
    Json::String(value.to_string())
}

pub(crate) fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Json {
    Json::Array(values.into_iter().map(|value| text(&value)).collect())
}

pub(crate) fn all_parsed<T: std::str::FromStr>(json: &Json, name: &str) -> Option<Vec<T>> {
    json.get(name)?.as_array()?.iter().map(|value| value.as_str()?.parse().ok()).collect()
}

pub(crate) fn parsed<T: std::str::FromStr>(json: &Json, name: &str) -> Option<T> {
    json.get(name)?.as_str()?.parse().ok()
}

/// An absent or null member is `Some(None)`; a malformed one is `None`.
pub(crate) fn optional<T: std::str::FromStr>(json: &Json, name: &str) -> Option<Option<T>> {
    match json.get(name) {
        None | Some(Json::Null) => Some(None),
        Some(Json::String(text)) => text.parse().ok().map(Some),
        Some(_) => None,
    }
}

fn image<T>(json: &Json, name: &str, read: impl Fn(&Json) -> Option<T>) -> Option<Option<T>> {
    match json.get(name) {
        None | Some(Json::Null) => Some(None),
        Some(value) => read(value).map(Some),
    }
}

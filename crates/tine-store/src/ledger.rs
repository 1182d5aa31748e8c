//! What was learned, as a store keeps it: small texts under keys, in order, and blobs in pieces.
//!
//! Entities, observations, runs, relationships and the look-ups between them differ in their
//! keys alone; what a key and a text mean is the rules' affair. A store keeps each kind in the
//! order of its keys, so that whatever belongs together is one range.

/// What an entry is. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// An entity.
    Entity = 1,
    /// An entity under its type, by the time of its first observation.
    EntityOfType = 2,
    /// An entity under the one that it was merged into.
    MergedInto = 3,
    /// The entity that an observation was moved to.
    Moved = 4,
    /// An observation under the entity that it was moved to.
    MovedHere = 5,
    /// An observation, under its entity, in order.
    Observation = 6,
    /// An observation under the turn that it is about.
    ObservationOfTurn = 7,
    /// An observation with a date, under that date.
    Dated = 8,
    /// The entity of a slot, under its conversation.
    Slot = 9,
    /// A source.
    Source = 10,
    /// A source by the time at which it came.
    SourceByTime = 11,
    /// A run of an interpreter.
    Run = 12,
    /// A run under its source.
    RunOfSource = 13,
    /// A run that waits or works, by the time at which it is due.
    RunQueued = 14,
    /// A prompt under its hash.
    Prompt = 15,
    /// A relationship, under its source.
    Relationship = 16,
    /// A relationship under its target.
    RelationshipTo = 17,
    /// A schema.
    Schema = 18,
    /// A commit, under its hash.
    Commit = 19,
    /// A commit that is there, under its conversation, by time.
    CommitListed = 20,
    /// The last commit of a branch.
    CommitHead = 21,
    /// The signature of a commit.
    CommitSignature = 22,
    /// What a turn is about, computed before.
    Rings = 23,
    /// How far other logs were looked through that had nothing new, under the conversation.
    Compared = 24,
    /// An erasure whose traces were not swept out of the files yet, under its conversation.
    Unswept = 25,
}

impl EntryKind {
    /// All of them.
    pub const ALL: [EntryKind; 25] = [
        EntryKind::Entity,
        EntryKind::EntityOfType,
        EntryKind::MergedInto,
        EntryKind::Moved,
        EntryKind::MovedHere,
        EntryKind::Observation,
        EntryKind::ObservationOfTurn,
        EntryKind::Dated,
        EntryKind::Slot,
        EntryKind::Source,
        EntryKind::SourceByTime,
        EntryKind::Run,
        EntryKind::RunOfSource,
        EntryKind::RunQueued,
        EntryKind::Prompt,
        EntryKind::Relationship,
        EntryKind::RelationshipTo,
        EntryKind::Schema,
        EntryKind::Commit,
        EntryKind::CommitListed,
        EntryKind::CommitHead,
        EntryKind::CommitSignature,
        EntryKind::Rings,
        EntryKind::Compared,
        EntryKind::Unswept,
    ];

    /// Its name, in bundles and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Entity => "entity",
            EntryKind::EntityOfType => "entity_of_type",
            EntryKind::MergedInto => "merged_into",
            EntryKind::Moved => "moved",
            EntryKind::MovedHere => "moved_here",
            EntryKind::Observation => "observation",
            EntryKind::ObservationOfTurn => "observation_of_turn",
            EntryKind::Dated => "dated",
            EntryKind::Slot => "slot",
            EntryKind::Source => "source",
            EntryKind::SourceByTime => "source_by_time",
            EntryKind::Run => "interpretation",
            EntryKind::RunOfSource => "interpretation_of_source",
            EntryKind::RunQueued => "interpretation_queued",
            EntryKind::Prompt => "prompt",
            EntryKind::Relationship => "relationship",
            EntryKind::RelationshipTo => "relationship_to",
            EntryKind::Schema => "schema",
            EntryKind::Commit => "commit",
            EntryKind::CommitListed => "commit_listed",
            EntryKind::CommitHead => "commit_head",
            EntryKind::CommitSignature => "commit_signature",
            EntryKind::Rings => "rings",
            EntryKind::Compared => "compared",
            EntryKind::Unswept => "unswept",
        }
    }

    /// The kind with a name.
    pub fn parse(name: &str) -> Option<EntryKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Its number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind with a number.
    pub fn from_code(code: u8) -> Option<EntryKind> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its key, in its kind and project.
    pub key: Vec<u8>,
    /// Its text; look-ups have none.
    pub text: String,
}

/// The longest key of an entry.
pub const KEY_BYTES: usize = 2_048;

/// Which keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub from: Vec<u8>,
    /// The key behind the last; `None` for all that follow.
    pub to: Option<Vec<u8>>,
    /// From the last to the first.
    pub backwards: bool,
}

impl KeyRange {
    /// All keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { from: prefix.to_vec(), to: behind(prefix), backwards: false }
    }

    /// All keys that begin with these bytes and lie behind one.
    pub fn behind(prefix: &[u8], key: &[u8]) -> KeyRange {
        let mut from = key.to_vec();
        from.push(0);
        KeyRange { from, ..KeyRange::prefix(prefix) }
    }

    /// The same keys, from the last to the first.
    pub fn backwards(self) -> KeyRange {
        KeyRange { backwards: true, ..self }
    }
}

/// The first key behind all that begin with these bytes.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Bytes of a blob in one piece; only the last piece is shorter.
pub const PIECE_BYTES: usize = 256 << 10;

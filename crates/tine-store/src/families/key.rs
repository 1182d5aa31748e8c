//! Keys of records. Reading is total: bytes that are not a key of a family, as in a damaged store,
//! are kept as they are.

use std::cmp::Ordering;
use std::fmt;

use tine_core::facts::{Endpoint, Relation};
use tine_core::hash::to_hex;
use tine_core::{
    BranchId, CommitHash, ConversationId, Digest, EntityId, InterpretationId, ObservationId,
    SourceId, Timestamp, TurnId,
};

use super::Family;
use super::codec::{KeyPart, KeyTail, key_codec};

/// The key of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RecordKey {
    /// An entity.
    Entity(EntityId),
    /// A note that an observation describes another entity than the one it was made of.
    ObservationMove(ObservationId),
    /// An observation, ordered by entity.
    Observation(ObservationId),
    /// A source.
    Source(SourceId),
    /// A run of an interpreter.
    Run(InterpretationId),
    /// A prompt, by the hash of its text.
    Prompt(Digest),
    /// A relationship, ordered by its source.
    Relationship(Edge),
    /// One version of a type's schema.
    Schema {
        /// The entity type.
        entity_type: String,
        /// The version, from 1.
        version: u32,
    },
    /// A commit.
    Commit(CommitHash),
    /// A commit that is not undone, ordered by conversation and time.
    CommitListing {
        /// The conversation.
        conversation: ConversationTag,
        /// The commit's time.
        at: Timestamp,
        /// The commit.
        hash: CommitHash,
    },
    /// The last commit of a branch.
    CommitHead {
        /// The conversation.
        conversation: ConversationTag,
        /// The branch.
        branch: BranchId,
    },
    /// The signature of a commit.
    CommitSignature(CommitHash),
    /// The rings of a turn.
    Rings(TurnId),
    /// The sync marks of a conversation.
    SyncMarks(ConversationId),
    /// An erasure of a conversation whose files are still to be scrubbed.
    PendingErasure {
        /// The conversation.
        conversation: ConversationId,
        /// The number of the operation that erased.
        seq: u64,
    },
    /// Bytes that are no key of their family.
    Unreadable {
        /// The family.
        family: Family,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// A conversation in keys: the first half of its id's digest. Ids of entities are kept when they
/// come to another project, so keys that lead to them do not depend on the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConversationTag(pub(super) [u8; 16]);

impl ConversationTag {
    /// Returns the tag of a conversation.
    pub fn of(id: &ConversationId) -> Self {
        let mut tag = [0; 16];
        tag.copy_from_slice(&Digest::of(id.as_str().as_bytes()).0[..16]);
        ConversationTag(tag)
    }
}

/// A relationship by its type and its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The type.
    pub relation: Relation,
    /// Where it starts.
    pub source: Endpoint,
    /// Where it ends.
    pub target: Endpoint,
}

impl Edge {
    /// Returns the bytes, ordered by source.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.key_bytes()
    }

    /// Reads the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Edge> {
        let mut rest = bytes;
        Edge::read(&mut rest).filter(|_| rest.is_empty())
    }

    /// Returns the edge with its ends swapped: its bytes are ordered by target.
    pub(super) fn reversed(self) -> Edge {
        Edge { relation: self.relation, source: self.target, target: self.source }
    }
}

key_codec! { RecordKey, family: Family;
    Entity(id) = [id];
    ObservationMove(id) = [id];
    Observation(id) = [id];
    Source(id) = [id];
    Run(id) = [id];
    Prompt(digest) = [digest];
    Relationship(edge) = [edge];
    Schema { entity_type, version } = [entity_type, version];
    Commit(hash) = [hash];
    CommitListing { conversation, at, hash } = [conversation, at, hash];
    CommitHead { conversation, branch } = [conversation, branch];
    CommitSignature(hash) = [hash];
    Rings(turn) = [turn];
    SyncMarks(id) = [id as tail];
    PendingErasure { conversation, seq } = [conversation, seq];
}

/// By family, then by bytes: the order of stores and bundles.
impl Ord for RecordKey {
    fn cmp(&self, other: &RecordKey) -> Ordering {
        let by_family = self.family().cmp(&other.family());
        by_family.then_with(|| self.to_bytes().cmp(&other.to_bytes()))
    }
}

impl PartialOrd for RecordKey {
    fn partial_cmp(&self, other: &RecordKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family().as_str();
        match self {
            RecordKey::Entity(id) => write!(f, "{family} {id}"),
            RecordKey::Observation(id) | RecordKey::ObservationMove(id) => {
                write!(f, "{family} {id}")
            }
            RecordKey::Source(id) => write!(f, "{family} {id}"),
            RecordKey::Run(id) => write!(f, "{family} {id}"),
            RecordKey::Relationship(Edge { relation, source, target }) => {
                write!(f, "{family} {source} {relation} {target}")
            }
            RecordKey::Schema { entity_type, version } => {
                write!(f, "{family} {entity_type} {version}")
            }
            RecordKey::Commit(hash) => write!(f, "{family} {hash}"),
            RecordKey::CommitListing { hash, .. } => write!(f, "listing of commit {hash}"),
            RecordKey::CommitHead { branch, .. } => write!(f, "last commit of branch {branch}"),
            RecordKey::CommitSignature(hash) => write!(f, "signature of commit {hash}"),
            RecordKey::Rings(turn) => write!(f, "rings of turn {turn}"),
            RecordKey::SyncMarks(id) => write!(f, "sync marks of {id}"),
            RecordKey::PendingErasure { conversation, seq } => {
                write!(f, "pending erasure {seq} of {conversation}")
            }
            RecordKey::Prompt(_) | RecordKey::Unreadable { .. } => {
                write!(f, "{family} {}", to_hex(&self.to_bytes()))
            }
        }
    }
}

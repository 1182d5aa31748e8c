//! Keys of records, and their bytes.
//!
//! Keys are ids, numbers and texts in sequence. Numbers are big-endian, so that bytes sort as they
//! do; a text that is not the last part ends with a zero byte, which no text contains. Reading is
//! total: bytes that are no key of a family, as in a damaged store, are kept as they are.

use std::cmp::Ordering;
use std::fmt;

use tine_core::facts::{Endpoint, Relation};
use tine_core::hash::to_hex;
use tine_core::{
    BranchId, CommitHash, ConversationId, Digest, EntityId, InterpretationId, ObservationId,
    SourceId, Timestamp, TurnId,
};

use super::Family;

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
pub struct ConversationTag([u8; 16]);

impl ConversationTag {
    /// Returns the tag of a conversation.
    pub fn of(id: &ConversationId) -> Self {
        let mut tag = [0; 16];
        tag.copy_from_slice(&Digest::of(id.as_str().as_bytes()).0[..16]);
        ConversationTag(tag)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
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
        let relation = [self.relation.code()];
        [self.source.to_bytes().as_slice(), &relation, &self.target.to_bytes()].concat()
    }

    /// Reads the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Edge> {
        let (source, rest) = bytes.split_at_checked(17)?;
        let (relation, target) = rest.split_first()?;
        Some(Edge {
            relation: Relation::from_code(*relation)?,
            source: Endpoint::from_bytes(source)?,
            target: Endpoint::from_bytes(target)?,
        })
    }

    /// Returns the edge with its ends swapped: its bytes are ordered by target.
    pub(super) fn reversed(self) -> Edge {
        Edge { relation: self.relation, source: self.target, target: self.source }
    }
}

/// Encodes a time; times before 1970 sort first.
pub(super) fn time_bytes(at: Timestamp) -> [u8; 8] {
    (at.as_millis().wrapping_sub(i64::MIN) as u64).to_be_bytes()
}

pub(super) fn observation_bytes(id: ObservationId) -> Vec<u8> {
    [id.entity.as_bytes().as_slice(), &id.seq.to_be_bytes()].concat()
}

/// Reads the parts of a key one after the other.
pub(super) struct KeyReader<'k>(pub &'k [u8]);

impl<'k> KeyReader<'k> {
    pub(super) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*part)
    }

    pub(super) fn entity(&mut self) -> Option<EntityId> {
        self.bytes().map(EntityId::from_bytes)
    }

    pub(super) fn run(&mut self) -> Option<InterpretationId> {
        self.bytes().map(InterpretationId::from_bytes)
    }

    pub(super) fn source(&mut self) -> Option<SourceId> {
        self.bytes().map(SourceId::from_bytes)
    }

    pub(super) fn turn(&mut self) -> Option<TurnId> {
        self.bytes().map(TurnId::from_bytes)
    }

    pub(super) fn observation(&mut self) -> Option<ObservationId> {
        Some(ObservationId { entity: self.entity()?, seq: self.number()? })
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    pub(super) fn time(&mut self) -> Option<Timestamp> {
        let millis = (self.number()? as i64).wrapping_add(i64::MIN);
        Some(Timestamp::from_millis(millis))
    }

    pub(super) fn digest(&mut self) -> Option<Digest> {
        self.bytes().map(Digest)
    }

    pub(super) fn conversation(&mut self) -> Option<ConversationTag> {
        self.bytes().map(ConversationTag)
    }

    /// Reads a text that ends with a zero byte.
    pub(super) fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8(self.0[..end].to_vec()).ok()?;
        self.0 = &self.0[end + 1..];
        Some(text)
    }

    /// Reads a text that is the last part.
    pub(super) fn rest(&mut self) -> Option<String> {
        String::from_utf8(std::mem::take(&mut self.0).to_vec()).ok()
    }
}

impl RecordKey {
    /// Returns the family.
    pub fn family(&self) -> Family {
        match self {
            RecordKey::Entity(_) => Family::Entity,
            RecordKey::ObservationMove(_) => Family::ObservationMove,
            RecordKey::Observation(_) => Family::Observation,
            RecordKey::Source(_) => Family::Source,
            RecordKey::Run(_) => Family::Run,
            RecordKey::Prompt(_) => Family::Prompt,
            RecordKey::Relationship(_) => Family::Relationship,
            RecordKey::Schema { .. } => Family::Schema,
            RecordKey::Commit(_) => Family::Commit,
            RecordKey::CommitListing { .. } => Family::CommitListing,
            RecordKey::CommitHead { .. } => Family::CommitHead,
            RecordKey::CommitSignature(_) => Family::CommitSignature,
            RecordKey::Rings(_) => Family::Rings,
            RecordKey::SyncMarks(_) => Family::SyncMarks,
            RecordKey::PendingErasure { .. } => Family::PendingErasure,
            RecordKey::Unreadable { family, .. } => *family,
        }
    }

    /// Returns the bytes; within a family they sort as the keys do.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            RecordKey::Entity(id) => id.as_bytes().to_vec(),
            RecordKey::ObservationMove(id) | RecordKey::Observation(id) => observation_bytes(*id),
            RecordKey::Source(id) => id.as_bytes().to_vec(),
            RecordKey::Run(id) => id.as_bytes().to_vec(),
            RecordKey::Prompt(digest) => digest.0.to_vec(),
            RecordKey::Relationship(edge) => edge.to_bytes(),
            RecordKey::Schema { entity_type, version } => {
                [entity_type.as_bytes(), &[0], &version.to_be_bytes()].concat()
            }
            RecordKey::Commit(hash) | RecordKey::CommitSignature(hash) => hash.0.0.to_vec(),
            RecordKey::CommitListing { conversation, at, hash } => {
                [conversation.0.as_slice(), &time_bytes(*at), &hash.0.0].concat()
            }
            RecordKey::CommitHead { conversation, branch } => {
                [conversation.0.as_slice(), branch.as_bytes()].concat()
            }
            RecordKey::Rings(turn) => turn.as_bytes().to_vec(),
            RecordKey::SyncMarks(id) => id.as_str().as_bytes().to_vec(),
            RecordKey::PendingErasure { conversation, seq } => {
                [conversation.as_str().as_bytes(), &[0], &seq.to_be_bytes()].concat()
            }
            RecordKey::Unreadable { bytes, .. } => bytes.clone(),
        }
    }

    /// Reads the bytes of a key.
    pub fn from_bytes(family: Family, bytes: &[u8]) -> RecordKey {
        let mut reader = KeyReader(bytes);
        let key = Self::parse(family, &mut reader).filter(|_| reader.0.is_empty());
        key.unwrap_or_else(|| RecordKey::Unreadable { family, bytes: bytes.to_vec() })
    }

    fn parse(family: Family, reader: &mut KeyReader<'_>) -> Option<RecordKey> {
        Some(match family {
            Family::Entity => RecordKey::Entity(reader.entity()?),
            Family::ObservationMove => RecordKey::ObservationMove(reader.observation()?),
            Family::Observation => RecordKey::Observation(reader.observation()?),
            Family::Source => RecordKey::Source(reader.source()?),
            Family::Run => RecordKey::Run(reader.run()?),
            Family::Prompt => RecordKey::Prompt(reader.digest()?),
            Family::Relationship => {
                RecordKey::Relationship(Edge::from_bytes(std::mem::take(&mut reader.0))?)
            }
            Family::Schema => {
                RecordKey::Schema { entity_type: reader.text()?, version: reader.small()? }
            }
            Family::Commit => RecordKey::Commit(CommitHash(reader.digest()?)),
            Family::CommitListing => RecordKey::CommitListing {
                conversation: reader.conversation()?,
                at: reader.time()?,
                hash: CommitHash(reader.digest()?),
            },
            Family::CommitHead => RecordKey::CommitHead {
                conversation: reader.conversation()?,
                branch: BranchId::from_bytes(reader.bytes()?),
            },
            Family::CommitSignature => RecordKey::CommitSignature(CommitHash(reader.digest()?)),
            Family::Rings => RecordKey::Rings(reader.turn()?),
            Family::SyncMarks => RecordKey::SyncMarks(ConversationId::from_stored(reader.rest()?)),
            Family::PendingErasure => RecordKey::PendingErasure {
                conversation: ConversationId::from_stored(reader.text()?),
                seq: reader.number()?,
            },
        })
    }
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

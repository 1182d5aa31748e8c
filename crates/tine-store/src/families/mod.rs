//! Record families: knowledge and commits in typed records, with declared secondary indexes.
//!
//! A *family* is one kind of record: entities, observations, commits and so on. A [`Record`] has a
//! typed [`RecordKey`] and one canonical text form. Each family has one type ([`EntityRecord`],
//! [`RunRecord`], …) that implements [`FamilyRecord`]: the only encoder and decoder of that form.
//! The engine reads and writes those types through [`ReadFamilies`] and [`WriteFamilies`]; the
//! store traits move [`Record`]s, so that they stay object safe.
//!
//! ```text
//! engine    EntityRecord ── put ──► Record { key, text, index keys } ── put_record ──► store
//!                        ◄─ get ──  Record { key, text }             ◄── record ──────
//! store     record        (project, family, key) → text        what was written
//!           record_index  (project, index, key)                derived: Record::index_keys
//! ```
//!
//! The text is kept verbatim. Observations and commits are hashed over it, and bundles, the
//! operation log and copies between stores carry it; decoding and encoding again could change what
//! an older release wrote. A record that cannot be decoded is therefore still a record: it can be
//! listed, reported and copied, and it has no index keys.
//!
//! **Indexes** are declared here and nowhere else: [`RecordIndex`] lists them,
//! [`FamilyRecord::index_keys`] says which keys a record has, and [`IndexKey`] spells and reads
//! them. A store calls [`index_changes`] whenever a record is added, replaced or removed, in the
//! same transaction; no rule of the engine writes an index. Putting back an earlier form of a
//! record (undo, redo) moves its index keys with it.
//!
//! **Layout.** Both SQL stores keep two tables, one of records and one of index keys, instead of a
//! table for each family. To a store all families look alike (ordered bytes and a text), so each
//! access is one prepared statement, an insert costs one row and one row for each index key, and
//! records of one family and index keys of one index are contiguous. The owner of an index key is
//! part of the key, so a query on an index never needs a join.
//!
//! Numbers of families and indexes, names of families, key bytes and texts are part of the format:
//! they occur in stores, in operation details and in bundles.

mod commits;
mod index;
mod key;
mod knowledge;
mod query;
mod sync;

use std::borrow::Cow;

use tine_core::ProjectId;
use tine_core::json::{self, Json};

use crate::traits::{Read, Write};
use crate::{Result, StoreError};

pub use commits::{
    CommitHead, CommitListing, CommitRecord, CommitSignature, PromptRecord, RingsRecord,
};
pub use index::{IndexChanges, IndexKey, RecordIndex, index_changes};
pub use key::{ConversationTag, Edge, RecordKey};
pub use knowledge::{
    EntityRecord, ObservationMove, ObservationRecord, RelationshipRecord, RunRecord, SchemaRecord,
    SourceRecord,
};
pub use query::{IndexQuery, KeyRange, KeyScan, RecordQuery};
pub use sync::{PendingErasure, SyncMark, SyncMarks};

/// The longest key of a record or an index, in bytes.
pub const KEY_BYTES: usize = 2_048;

/// A kind of record. The numbers are part of the format; those in between are indexes'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Family {
    /// [`EntityRecord`]
    Entity = 1,
    /// [`ObservationMove`]
    ObservationMove = 4,
    /// [`ObservationRecord`]
    Observation = 6,
    /// [`SourceRecord`]
    Source = 10,
    /// [`RunRecord`]
    Run = 12,
    /// [`PromptRecord`]
    Prompt = 15,
    /// [`RelationshipRecord`]
    Relationship = 16,
    /// [`SchemaRecord`]
    Schema = 18,
    /// [`CommitRecord`]
    Commit = 19,
    /// [`CommitListing`]
    CommitListing = 20,
    /// [`CommitHead`]
    CommitHead = 21,
    /// [`CommitSignature`]
    CommitSignature = 22,
    /// [`RingsRecord`]
    Rings = 23,
    /// [`SyncMarks`]
    SyncMarks = 24,
    /// [`PendingErasure`]
    PendingErasure = 25,
}

impl Family {
    /// Every family, with its name in bundles and messages, in order of number.
    const NAMES: [(Family, &'static str); 15] = [
        (Family::Entity, "entity"),
        (Family::ObservationMove, "moved"),
        (Family::Observation, "observation"),
        (Family::Source, "source"),
        (Family::Run, "interpretation"),
        (Family::Prompt, "prompt"),
        (Family::Relationship, "relationship"),
        (Family::Schema, "schema"),
        (Family::Commit, "commit"),
        (Family::CommitListing, "commit_listed"),
        (Family::CommitHead, "commit_head"),
        (Family::CommitSignature, "commit_signature"),
        (Family::Rings, "rings"),
        (Family::SyncMarks, "compared"),
        (Family::PendingErasure, "unswept"),
    ];

    /// Returns every family in order of number.
    pub fn all() -> impl Iterator<Item = Family> {
        Self::NAMES.into_iter().map(|(family, _)| family)
    }

    /// Returns the name in bundles and messages.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(family, _)| *family == self).map_or("", |(_, name)| name)
    }

    /// Finds a family by name.
    pub fn parse(name: &str) -> Option<Family> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(family, _)| *family)
    }

    /// Returns the number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Finds a family by number.
    pub fn from_code(code: u8) -> Option<Family> {
        Self::all().find(|family| family.code() == code)
    }

    /// Returns whether records of this family may have index keys.
    pub fn is_indexed(self) -> bool {
        RecordIndex::ALL.iter().any(|index| index.family() == self)
    }
}

/// A record as stores keep it: a typed key and its canonical text.
#[derive(Clone, Debug)]
pub struct Record {
    key: RecordKey,
    text: String,
    /// Known when the record was made from its type.
    index_keys: Option<Vec<IndexKey>>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.key == other.key && self.text == other.text
    }
}

impl Eq for Record {}

impl Record {
    /// Encodes a typed record.
    pub fn of<R: FamilyRecord>(value: &R) -> Record {
        Record { key: value.key(), text: value.to_text(), index_keys: Some(value.index_keys()) }
    }

    /// Takes a text as it was stored, logged or sent.
    pub fn verbatim(key: RecordKey, text: impl Into<String>) -> Record {
        Record { key, text: text.into(), index_keys: None }
    }

    /// Takes a value of the operation log.
    pub fn from_json(key: RecordKey, value: &Json) -> Record {
        Record::verbatim(key, value.to_canonical())
    }

    /// Returns the key, unique in a project.
    pub fn key(&self) -> &RecordKey {
        &self.key
    }

    /// Returns the canonical JSON; other text for prompts and rings.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the text as JSON.
    pub fn json(&self) -> Option<Json> {
        parse(&self.text)
    }

    /// Decodes a typed record; `None` for another family or a damaged text.
    pub fn decode<R: FamilyRecord>(&self) -> Option<R> {
        R::read(&self.key, &self.text)
    }

    /// Decodes a typed record, or reports it as corrupt.
    pub fn require<R: FamilyRecord>(&self) -> Result<R> {
        self.decode().ok_or_else(|| StoreError::Corrupt {
            record: self.key.to_string(),
            why: "it cannot be read".to_owned(),
        })
    }

    /// Returns the index keys that this record has by the declarations of its family.
    pub fn index_keys(&self) -> Cow<'_, [IndexKey]> {
        fn keys<R: FamilyRecord>(record: &Record) -> Vec<IndexKey> {
            record.decode::<R>().map_or_else(Vec::new, |it| it.index_keys())
        }
        if let Some(known) = &self.index_keys {
            return Cow::Borrowed(known);
        }
        Cow::Owned(match self.key.family() {
            Family::Entity => keys::<EntityRecord>(self),
            Family::ObservationMove => keys::<ObservationMove>(self),
            Family::Observation => keys::<ObservationRecord>(self),
            Family::Source => keys::<SourceRecord>(self),
            Family::Run => keys::<RunRecord>(self),
            Family::Relationship => keys::<RelationshipRecord>(self),
            _ => Vec::new(),
        })
    }
}

/// The type of one family's records: its only encoder and decoder.
pub trait FamilyRecord: Sized {
    /// What names a record.
    type Id;

    /// Returns the key of the record with an id.
    fn key_of(id: &Self::Id) -> RecordKey;
    /// Returns the record's own key.
    fn key(&self) -> RecordKey;
    /// Encodes the record; equal records give equal bytes.
    fn to_text(&self) -> String;
    /// Decodes a record; `None` for a key of another family or a damaged text.
    fn read(key: &RecordKey, text: &str) -> Option<Self>;
    /// Declares the index keys of the record.
    fn index_keys(&self) -> Vec<IndexKey> {
        Vec::new()
    }
}

/// Parses stored JSON.
pub(crate) fn parse(text: &str) -> Option<Json> {
    json::parse(text.as_bytes(), json::MAX_DEPTH).ok()
}

/// Reading records in types.
pub trait ReadFamilies: Read {
    /// Returns one record; one that cannot be decoded is an error.
    fn get<R: FamilyRecord>(&self, project: &ProjectId, id: &R::Id) -> Result<Option<R>> {
        self.record(project, &R::key_of(id))?.map(|record| record.require()).transpose()
    }

    /// Returns whether a record exists, decodable or not.
    fn has(&self, project: &ProjectId, key: &RecordKey) -> Result<bool> {
        Ok(self.record(project, key)?.is_some())
    }

    /// Returns the records of a query in order; one that cannot be decoded is an error.
    fn list<R: FamilyRecord>(
        &self,
        project: &ProjectId,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<R>> {
        self.records(project, query, limit)?.iter().map(Record::require).collect()
    }
}

impl<T: Read + ?Sized> ReadFamilies for T {}

/// Writing records in types.
pub trait WriteFamilies: Write {
    /// Adds a record that does not exist yet.
    fn insert<R: FamilyRecord>(&mut self, project: &ProjectId, value: &R) -> Result<()> {
        self.insert_record(project, &Record::of(value))
    }

    /// Adds a record or replaces the one with the same key.
    fn put<R: FamilyRecord>(&mut self, project: &ProjectId, value: &R) -> Result<()> {
        self.put_record(project, &Record::of(value))
    }
}

impl<T: Write + ?Sized> WriteFamilies for T {}

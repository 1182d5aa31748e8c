//! Notes beside a conversation's log that never travel.

use tine_core::json::text_fields::{parsed, text};
use tine_core::json::{Json, object};
use tine_core::{ConversationId, OperationHash};

use super::{FamilyRecord, RecordKey, parse};

/// How far a diverged log was compared without finding anything new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMark {
    /// The last operation of the own log at that time.
    pub seq: u64,
    /// The last operation of the other log that was compared.
    pub other_seq: u64,
    /// Its hash.
    pub other_hash: OperationHash,
}

/// The sync marks of a conversation, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncMarks {
    /// The conversation.
    pub conversation: ConversationId,
    /// The marks; those that cannot be read are left out, since they can be found out again.
    pub marks: Vec<SyncMark>,
}

impl FamilyRecord for SyncMarks {
    type Id = ConversationId;

    fn key_of(conversation: &ConversationId) -> RecordKey {
        RecordKey::SyncMarks(conversation.clone())
    }

    fn key(&self) -> RecordKey {
        RecordKey::SyncMarks(self.conversation.clone())
    }

    fn to_text(&self) -> String {
        let mark = |mark: &SyncMark| {
            let of = object([("hash", text(&mark.other_hash)), ("seq", mark.other_seq.into())]);
            object([("of", of), ("seq", mark.seq.into())])
        };
        Json::Array(self.marks.iter().map(mark).collect()).to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let RecordKey::SyncMarks(conversation) = key else {
            return None;
        };
        let mark = |json: &Json| {
            let of = json.get("of")?;
            Some(SyncMark {
                seq: json.get("seq")?.as_u64()?,
                other_seq: of.get("seq")?.as_u64()?,
                other_hash: parsed(of, "hash")?,
            })
        };
        let marks = parse(text)?;
        let marks = marks.as_array()?.iter().filter_map(mark).collect();
        Some(SyncMarks { conversation: conversation.clone(), marks })
    }
}

/// An erasure whose traces are still to be scrubbed from the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingErasure {
    /// The conversation.
    pub conversation: ConversationId,
    /// The operation that erased.
    pub seq: u64,
}

impl FamilyRecord for PendingErasure {
    type Id = PendingErasure;

    fn key_of(id: &PendingErasure) -> RecordKey {
        id.key()
    }

    fn key(&self) -> RecordKey {
        let (conversation, seq) = (self.conversation.clone(), self.seq);
        RecordKey::PendingErasure { conversation, seq }
    }

    fn to_text(&self) -> String {
        "null".to_owned()
    }

    fn read(key: &RecordKey, _: &str) -> Option<Self> {
        match key {
            RecordKey::PendingErasure { conversation, seq } => {
                Some(PendingErasure { conversation: conversation.clone(), seq: *seq })
            }
            _ => None,
        }
    }
}

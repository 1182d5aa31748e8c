//! Commits and what belongs to them, and two families that are found by hash or turn alone:
//! prompts and rings.

use tine_core::json::text_fields::{optional, parsed, text};
use tine_core::json::{Json, object};
use tine_core::{BranchId, Commit, CommitHash, ConversationId, Digest, Timestamp, TurnId};

use super::{ConversationTag, FamilyRecord, RecordKey, parse};

/// A commit. Its hash is the digest of its text, until an erasure removes its facets.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitRecord {
    /// The hash.
    pub hash: CommitHash,
    /// What it says.
    pub commit: Commit,
}

impl FamilyRecord for CommitRecord {
    type Id = CommitHash;

    fn key_of(hash: &CommitHash) -> RecordKey {
        RecordKey::Commit(*hash)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Commit(self.hash)
    }

    fn to_text(&self) -> String {
        self.commit.to_json().to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        match key {
            RecordKey::Commit(hash) => {
                Some(CommitRecord { hash: *hash, commit: Commit::from_json(&parse(text)?)? })
            }
            _ => None,
        }
    }
}

/// A commit that is not undone, and its place in the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitListing {
    /// The conversation.
    pub conversation: ConversationTag,
    /// The commit.
    pub hash: CommitHash,
    /// The commit's time.
    pub at: Timestamp,
    /// The operation that made it.
    pub operation: u64,
    /// The last turn that it or a commit before it covers.
    pub anchor: Option<TurnId>,
    /// The branch that it was made on.
    pub branch: BranchId,
    /// The commits that it builds on.
    pub parents: Vec<CommitHash>,
}

impl FamilyRecord for CommitListing {
    type Id = (ConversationId, Timestamp, CommitHash);

    fn key_of((conversation, at, hash): &Self::Id) -> RecordKey {
        let conversation = ConversationTag::of(conversation);
        RecordKey::CommitListing { conversation, at: *at, hash: *hash }
    }

    fn key(&self) -> RecordKey {
        let (conversation, at, hash) = (self.conversation, self.at, self.hash);
        RecordKey::CommitListing { conversation, at, hash }
    }

    fn to_text(&self) -> String {
        let json = object([
            ("operation", self.operation.into()),
            ("anchor", self.anchor.as_ref().map(text).into()),
            ("branch_id", text(&self.branch)),
            ("parents", Json::Array(self.parents.iter().map(text).collect())),
        ]);
        json.to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::CommitListing { conversation, at, hash }, json) = (key, &parse(text)?)
        else {
            return None;
        };
        let parents = json.get("parents")?.as_array()?.iter();
        Some(CommitListing {
            conversation: *conversation,
            hash: *hash,
            at: *at,
            operation: json.get("operation")?.as_u64()?,
            anchor: optional(json, "anchor")?,
            branch: parsed(json, "branch_id")?,
            parents: parents.map(|hash| hash.as_str()?.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

/// The last commit of a branch.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitHead {
    /// The conversation.
    pub conversation: ConversationTag,
    /// The branch.
    pub branch: BranchId,
    /// The commit.
    pub hash: CommitHash,
}

impl FamilyRecord for CommitHead {
    type Id = (ConversationId, BranchId);

    fn key_of((conversation, branch): &Self::Id) -> RecordKey {
        RecordKey::CommitHead { conversation: ConversationTag::of(conversation), branch: *branch }
    }

    fn key(&self) -> RecordKey {
        RecordKey::CommitHead { conversation: self.conversation, branch: self.branch }
    }

    fn to_text(&self) -> String {
        object([("commit", text(&self.hash))]).to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let RecordKey::CommitHead { conversation, branch } = key else {
            return None;
        };
        let hash = parsed(&parse(text)?, "commit")?;
        Some(CommitHead { conversation: *conversation, branch: *branch, hash })
    }
}

/// The signature of a commit's hash.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitSignature {
    /// The commit.
    pub hash: CommitHash,
    /// The Ed25519 key, in hexadecimal digits.
    pub public_key: String,
    /// The signature, in hexadecimal digits.
    pub value: String,
    /// When it was stored.
    pub signed_at: Timestamp,
}

impl FamilyRecord for CommitSignature {
    type Id = CommitHash;

    fn key_of(hash: &CommitHash) -> RecordKey {
        RecordKey::CommitSignature(*hash)
    }

    fn key(&self) -> RecordKey {
        RecordKey::CommitSignature(self.hash)
    }

    fn to_text(&self) -> String {
        let json = object([
            ("public_key", self.public_key.as_str().into()),
            ("value", self.value.as_str().into()),
            ("signed_at", text(&self.signed_at)),
        ]);
        json.to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::CommitSignature(hash), json) = (key, &parse(text)?) else {
            return None;
        };
        let word = |name: &str| Some(json.get(name)?.as_str()?.to_owned());
        let (public_key, value) = (word("public_key")?, word("value")?);
        let signed_at = parsed(json, "signed_at")?;
        Some(CommitSignature { hash: *hash, public_key, value, signed_at })
    }
}

/// A prompt of an interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptRecord {
    /// The digest of the text.
    pub digest: Digest,
    /// The text itself; it is not JSON.
    pub text: String,
}

impl PromptRecord {
    /// Returns whether the text is the one that was stored.
    pub fn is_sound(&self) -> bool {
        Digest::of(self.text.as_bytes()) == self.digest
    }
}

impl FamilyRecord for PromptRecord {
    type Id = Digest;

    fn key_of(digest: &Digest) -> RecordKey {
        RecordKey::Prompt(*digest)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Prompt(self.digest)
    }

    fn to_text(&self) -> String {
        self.text.clone()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        match key {
            RecordKey::Prompt(digest) => {
                Some(PromptRecord { digest: *digest, text: text.to_owned() })
            }
            _ => None,
        }
    }
}

/// The rings of a turn, as the engine last computed them: a cache.
///
/// Nothing else seals them, so the text begins with digits of a digest over the turn and the rest;
/// one that does not match cannot be decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct RingsRecord {
    /// The turn.
    pub turn: TurnId,
    /// The rings, in the engine's form.
    pub rings: Json,
}

/// Digits of the digest before the rings.
const SEAL_DIGITS: usize = 16;

fn seal(turn: &TurnId, text: &str) -> String {
    let sealed = [turn.as_bytes().as_slice(), text.as_bytes()].concat();
    Digest::of(&sealed).to_hex()[..SEAL_DIGITS].to_owned()
}

impl FamilyRecord for RingsRecord {
    type Id = TurnId;

    fn key_of(turn: &TurnId) -> RecordKey {
        RecordKey::Rings(*turn)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Rings(self.turn)
    }

    fn to_text(&self) -> String {
        let text = self.rings.to_canonical();
        seal(&self.turn, &text) + &text
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let RecordKey::Rings(turn) = key else {
            return None;
        };
        let (digits, rings) = text.split_at_checked(SEAL_DIGITS)?;
        if seal(turn, rings) != digits {
            return None;
        }
        Some(RingsRecord { turn: *turn, rings: parse(rings)? })
    }
}

//! Commits: a range of turns with their facets and the facts known at its end.
//!
//! A commit's hash covers everything except the hash itself and signatures. Everything derived
//! from the content of turns is in [`Facets`], so that a purge can remove it; the hash of a purged
//! commit can no longer be verified, and the commit is marked as purged.

mod facets;
mod merge;
mod state;

pub use facets::{FacetTerm, FacetTerms, Facets, FirstOccurrence, keep_most_frequent};
pub use merge::{merge, merge_base_of};
pub use state::{Fact, FactState, FieldConflict, FieldState, FieldValue};

use crate::json::text_fields::{all_parsed, parsed, texts};
use crate::json::{Json, Object, object};
use crate::{CommitHash, ConversationId, Digest, Name, RootHash, Timestamp, TurnHash};

/// The turns that a commit covers: a contiguous range of one path, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitWindow {
    /// The first turn.
    pub start: TurnHash,
    /// The last turn, whose hash covers all turns before it.
    pub end: TurnHash,
}

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The parent commits: none for the first commit of a branch, two for a merge.
    pub parents: Vec<CommitHash>,
    /// The conversation that it belongs to.
    pub conversation: ConversationId,
    /// The hash of the conversation's prompt and configuration.
    pub root_hash: RootHash,
    /// The name that the branch had when the commit was made.
    pub branch: Name,
    /// The commit message.
    pub message: String,
    /// The turns that it covers; a merge may add none.
    pub window: Option<CommitWindow>,
    /// The number of turns in the window, including deleted ones.
    pub turns: u64,
    /// Facets of the turns and facts at their end; `None` after a purge.
    pub facets: Option<Facets>,
    /// The name of the author.
    pub author: String,
    /// The commit time.
    pub created_at: Timestamp,
}

impl Commit {
    /// Returns the JSON form, which is hashed, stored and shown; it does not contain the hash.
    pub fn to_json(&self) -> Json {
        let window = self.window.map(|window| {
            object([
                ("start_turn_hash", window.start.to_string().into()),
                ("end_turn_hash", window.end.to_string().into()),
            ])
        });
        let mut commit = object([
            ("author", self.author.as_str().into()),
            ("branch", self.branch.as_str().into()),
            ("conversation_id", self.conversation.as_str().into()),
            ("created_at", self.created_at.to_string().into()),
            ("facet_snapshot", self.facets.as_ref().map(Facets::to_json).into()),
            ("message", self.message.as_str().into()),
            ("parent_hashes", texts(&self.parents)),
            ("root_hash", self.root_hash.to_string().into()),
            ("turn_count", self.turns.into()),
            ("turn_window", window.into()),
        ]);
        if let (Json::Object(members), None) = (&mut commit, &self.facets) {
            members.insert("purged", true.into());
        }
        commit
    }

    /// Reads a commit from its JSON form.
    pub fn from_json(json: &Json) -> Option<Commit> {
        let window = match json.get("turn_window")? {
            Json::Null => None,
            window => Some(CommitWindow {
                start: parsed(window, "start_turn_hash")?,
                end: parsed(window, "end_turn_hash")?,
            }),
        };
        let facets = match json.get("facet_snapshot")? {
            Json::Null => None,
            facets => Some(Facets::from_json(facets)?),
        };
        Some(Commit {
            parents: all_parsed(json, "parent_hashes")?,
            conversation: ConversationId::from_stored(json.get("conversation_id")?.as_str()?),
            root_hash: parsed(json, "root_hash")?,
            branch: Name::from_stored(json.get("branch")?.as_str()?),
            message: parsed(json, "message")?,
            window,
            turns: json.get("turn_count")?.as_u64()?,
            facets,
            author: parsed(json, "author")?,
            created_at: parsed(json, "created_at")?,
        })
    }

    /// Computes the hash; `None` for a purged commit, whose hash cannot be computed any more.
    pub fn hash(&self) -> Option<CommitHash> {
        self.facets.as_ref()?;
        Some(CommitHash(Digest::of(self.to_json().to_canonical().as_bytes())))
    }
}

/// Returns a JSON object.
fn map(members: impl IntoIterator<Item = (String, Json)>) -> Json {
    Json::Object(members.into_iter().collect::<Object>())
}

//! Commits: a sealed stretch of turns with what it is about and what is known at its end.
//!
//! A commit's hash covers everything but the hash itself and signatures. What it tells of turns
//! lies in its [`Facets`] alone, so that an erasure can take them away; the hash can then be
//! compared no more, and the commit says so.

mod facets;
mod merge;
mod state;

pub use facets::{Facets, Seen, SeenAt, SeenSet, leave_most_said};
pub use merge::{merge, merge_base_of};
pub use state::{Conflict, Fact, Held, State, Value};

use crate::json::{Json, Object, object};
use crate::{CommitHash, ConversationId, Digest, Name, RootHash, Timestamp, TurnHash};

/// The turns that a commit seals: an unbroken stretch of one path, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first turn.
    pub start: TurnHash,
    /// The last turn, whose hash covers all before it.
    pub end: TurnHash,
}

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The commits that it builds on: none for a first one, two for a merge.
    pub parents: Vec<CommitHash>,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The hash of the conversation's prompt and configuration.
    pub root_hash: RootHash,
    /// The branch on which it was made, by the name that it had then.
    pub branch: Name,
    /// What it is about, in its author's words.
    pub message: String,
    /// The turns that it seals; a merge may add none.
    pub window: Option<Window>,
    /// How many turns that are, deleted ones among them.
    pub turns: u64,
    /// What the turns are about and what is known behind them; `None` once it was erased.
    pub facets: Option<Facets>,
    /// Who made it.
    pub author: String,
    /// When.
    pub created_at: Timestamp,
}

impl Commit {
    /// The commit as it is hashed, kept and shown, without its hash.
    pub fn to_json(&self) -> Json {
        let parents = self.parents.iter().map(|hash| hash.to_string().into()).collect();
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
            ("parent_hashes", Json::Array(parents)),
            ("root_hash", self.root_hash.to_string().into()),
            ("turn_count", self.turns.into()),
            ("turn_window", window.into()),
        ]);
        if let (Json::Object(members), None) = (&mut commit, &self.facets) {
            members.insert("purged", true.into());
        }
        commit
    }

    /// A commit from what is kept of it.
    pub fn from_json(json: &Json) -> Option<Commit> {
        let text = |name: &str| json.get(name).and_then(Json::as_str);
        let window = match json.get("turn_window")? {
            Json::Null => None,
            window => Some(Window {
                start: window.get("start_turn_hash")?.as_str()?.parse().ok()?,
                end: window.get("end_turn_hash")?.as_str()?.parse().ok()?,
            }),
        };
        let facets = match json.get("facet_snapshot")? {
            Json::Null => None,
            facets => Some(Facets::from_json(facets)?),
        };
        let parents = json.get("parent_hashes")?.as_array()?.iter();
        Some(Commit {
            parents: parents.map(|hash| hash.as_str()?.parse().ok()).collect::<Option<_>>()?,
            conversation: ConversationId::from_stored(text("conversation_id")?),
            root_hash: text("root_hash")?.parse().ok()?,
            branch: Name::from_stored(text("branch")?),
            message: text("message")?.to_owned(),
            window,
            turns: json.get("turn_count")?.as_u64()?,
            facets,
            author: text("author")?.to_owned(),
            created_at: text("created_at")?.parse().ok()?,
        })
    }

    /// Its hash. That of a commit whose facets were erased cannot be computed any more.
    pub fn hash(&self) -> Option<CommitHash> {
        self.facets.as_ref()?;
        Some(CommitHash(Digest::of(self.to_json().to_canonical().as_bytes())))
    }
}

/// A list of texts as JSON.
fn texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Json {
    Json::Array(texts.into_iter().map(|text| text.as_str().into()).collect())
}

/// A map of JSON values under texts.
fn map(members: impl IntoIterator<Item = (String, Json)>) -> Json {
    Json::Object(members.into_iter().collect::<Object>())
}

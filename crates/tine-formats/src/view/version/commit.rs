//! Commits.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::json::{Json, object};
use tine_core::{Commit as Sealed, Name};
use tine_engine as engine;

use super::FieldValue;
use crate::view::reading::{self, Unreadable, parse, parse_option};
use crate::view::{Raw, raw, text, texts};

/// A sealed stretch of turns.
///
/// Its hash is the SHA-256 of the canonical JSON (RFC 8785) of the members from `author` to
/// `turn_window`; the others stand beside it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    /// Its hash.
    pub commit_hash: String,
    /// Who made it.
    pub author: String,
    /// The branch on which it was made, by the name that it had then.
    pub branch: String,
    /// Its conversation.
    pub conversation_id: String,
    /// When it was made.
    pub created_at: String,
    /// What its turns are about and what is known behind them; `null` once it was purged.
    #[schemars(with = "Option<FacetSnapshot>")]
    pub facet_snapshot: Option<Raw>,
    /// What it is about.
    pub message: String,
    /// The commits that it builds on: none for a first one, two for a merge.
    pub parent_hashes: Vec<String>,
    /// The hash of the conversation's prompt and configuration.
    pub root_hash: String,
    /// How many turns it seals, deleted ones among them.
    pub turn_count: u64,
    /// The turns that it seals; `null` for a merge that adds none.
    pub turn_window: Option<TurnWindow>,
    /// Whether its facets were erased; the hash can then be computed no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
    /// The last turn that it or a commit before it covers.
    pub anchor_turn_id: Option<String>,
    /// Branches whose last commit it is.
    pub heads: Vec<String>,
    /// Fields on which sides of a merge disagree, not decided at this commit.
    pub conflicts: u64,
    /// Who vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Whether its making has been undone, in the answer to a call that is repeated by its key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

/// The ends of a stretch of turns, both of them in it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnWindow {
    /// The first turn.
    pub start_turn_hash: String,
    /// The last turn.
    pub end_turn_hash: String,
}

/// Who vouches for a commit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The signer's Ed25519 key, in hexadecimal digits.
    pub public_key: String,
    /// The signature of the text of the commit's hash, in hexadecimal digits.
    pub value: String,
    /// When it came here.
    pub signed_at: String,
    /// Whether it is right.
    pub valid: bool,
}

/// What the turns of a commit are about, and what is known behind them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
struct FacetSnapshot {
    /// People, organisations, places and other things with a name.
    entities: Vec<String>,
    /// Keywords of the turns.
    keywords: Vec<String>,
    /// What the turns are about, in general words.
    topics: Vec<String>,
    /// Which rules found them.
    extractor: String,
    /// Runs of interpreters whose findings are among the entities.
    interpretations: Vec<String>,
    /// Where each of them was said first.
    evidence: FacetEvidence,
    /// What is known, by entity.
    facts: BTreeMap<String, FactForm>,
    /// Fields on which sides of a merge disagree.
    conflicts: Vec<ConflictForm>,
    /// Keywords and names that were left out because there were too many.
    #[serde(default)]
    left_out: Option<u64>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
struct FacetEvidence {
    entities: BTreeMap<String, EvidenceForm>,
    keywords: BTreeMap<String, EvidenceForm>,
    topics: BTreeMap<String, EvidenceForm>,
}

/// Where something was said first.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
struct EvidenceForm {
    /// In how many turns it was said.
    turns: u64,
    /// The turn.
    #[serde(default)]
    turn_hash: Option<String>,
    /// Where in its text, in Unicode scalar values: from, and up to.
    #[serde(default)]
    span: Option<[u64; 2]>,
}

/// What is known of an entity.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
struct FactForm {
    /// Its type.
    entity_type: String,
    /// How people call it.
    #[serde(default)]
    name: Option<String>,
    /// What holds.
    fields: BTreeMap<String, serde_json::Value>,
    /// For each field the observations that it comes from.
    from: BTreeMap<String, Vec<String>>,
    /// Fields that are sets.
    #[serde(default)]
    sets: Vec<String>,
    /// Fields that a merge or a decision brought, and no turn of the path tells.
    #[serde(default)]
    brought: Vec<String>,
}

/// A field on which sides disagree.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
struct ConflictForm {
    /// The entity.
    entity_id: String,
    /// Its field.
    field: String,
    /// What the sides say.
    sides: Vec<FieldValue>,
    /// What the sides changed.
    bases: Vec<FieldValue>,
}

impl From<engine::CommitView> for Commit {
    fn from(view: engine::CommitView) -> Self {
        let sealed = view.commit.to_json();
        let facets = sealed.get("facet_snapshot").filter(|facets| **facets != Json::Null);
        let commit = view.commit;
        let conflicts =
            commit.facets.as_ref().map_or(0, |facets| facets.state.conflicts().count() as u64);
        Commit {
            commit_hash: text(view.hash),
            facet_snapshot: facets.map(raw),
            author: commit.author,
            branch: text(commit.branch),
            conversation_id: text(commit.conversation),
            created_at: text(commit.created_at),
            message: commit.message,
            parent_hashes: texts(commit.parents),
            root_hash: text(commit.root_hash),
            turn_count: commit.turns,
            turn_window: commit.window.map(|window| TurnWindow {
                start_turn_hash: text(window.start),
                end_turn_hash: text(window.end),
            }),
            purged: commit.facets.is_none(),
            anchor_turn_id: view.anchor.map(text),
            heads: texts(view.heads),
            conflicts,
            signature: view.signature.map(|signature| Signature {
                public_key: signature.public_key,
                value: signature.value,
                signed_at: text(signature.signed_at),
                valid: signature.valid,
            }),
            undone: view.undone,
        }
    }
}

impl TryFrom<Commit> for engine::CommitView {
    type Error = Unreadable;

    fn try_from(view: Commit) -> Result<Self, Unreadable> {
        let facets = view.facet_snapshot.as_ref();
        let facets = facets.map(|facets| reading::json("facet_snapshot", facets)).transpose()?;
        let parents = view.parent_hashes.into_iter().map(Json::from).collect();
        let window = view.turn_window.map(|window| {
            object([
                ("start_turn_hash", window.start_turn_hash.into()),
                ("end_turn_hash", window.end_turn_hash.into()),
            ])
        });
        let sealed = object([
            ("author", view.author.into()),
            ("branch", view.branch.into()),
            ("conversation_id", view.conversation_id.into()),
            ("created_at", view.created_at.into()),
            ("facet_snapshot", facets.into()),
            ("message", view.message.into()),
            ("parent_hashes", Json::Array(parents)),
            ("root_hash", view.root_hash.into()),
            ("turn_count", view.turn_count.into()),
            ("turn_window", window.into()),
        ]);
        let commit = Sealed::from_json(&sealed);
        let signature = |it: Signature| {
            Ok(engine::SignatureView {
                public_key: it.public_key,
                value: it.value,
                signed_at: parse("signed_at", &it.signed_at)?,
                valid: it.valid,
            })
        };
        Ok(engine::CommitView {
            hash: parse("commit_hash", &view.commit_hash)?,
            commit: commit.ok_or_else(|| Unreadable::new("commit", "it is none"))?,
            anchor: parse_option("anchor_turn_id", view.anchor_turn_id)?,
            signature: view.signature.map(signature).transpose()?,
            heads: view.heads.into_iter().map(Name::from_stored).collect(),
            undone: view.undone,
        })
    }
}

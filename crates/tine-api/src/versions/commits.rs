//! Commits.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::commit::{CommitWindow, Facets, FieldValue};
use tine_core::json::{self, Json};
use tine_core::{Commit, CommitHash, ConversationId, Name, RootHash, Timestamp, TurnHash, TurnId};

/// A commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CommitJson", into = "CommitJson")]
pub struct CommitView {
    /// The hash of the commit.
    pub hash: CommitHash,
    /// The sealed commit.
    pub commit: Commit,
    /// The last turn that it or a commit before it covers.
    pub anchor: Option<TurnId>,
    /// The signature of the commit.
    pub signature: Option<SignatureView>,
    /// Branches whose last commit it is.
    pub heads: Vec<Name>,
    /// Whether it has been undone; only a replay of the call that made it still shows it.
    pub undone: bool,
}

schema_of!(CommitView, CommitJson);

/// The signature of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Signature")]
pub struct SignatureView {
    /// The signer's Ed25519 public key, in hexadecimal.
    pub public_key: String,
    /// The signature of the text of the commit's hash, in hexadecimal.
    pub value: String,
    /// When it was stored.
    pub signed_at: Timestamp,
    /// Whether it is valid.
    pub valid: bool,
}

/// A sealed range of turns.
///
/// Its hash is the SHA-256 of the canonical JSON (RFC 8785) of the members from `author` to
/// `turn_window`; the others are not hashed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Commit")]
struct CommitJson {
    /// The hash of the commit.
    commit_hash: CommitHash,
    /// The author.
    author: String,
    /// The branch on which it was made, by its name at that time.
    branch: Name,
    /// The conversation.
    conversation_id: ConversationId,
    /// When it was made.
    created_at: Timestamp,
    /// What the turns are about and the facts known after them; `null` if the facets were purged.
    #[serde(with = "json::exact")]
    #[schemars(with = "Option<FacetSnapshot>")]
    facet_snapshot: Json,
    /// The commit message.
    message: String,
    /// The parent commits: none for a first commit, two for a merge.
    parent_hashes: Vec<CommitHash>,
    /// The hash of the conversation's system prompt and configuration.
    root_hash: RootHash,
    /// How many turns it seals, including deleted ones.
    turn_count: u64,
    /// The turns that it seals; `null` for a merge that adds none.
    turn_window: Option<TurnWindow>,
    /// Whether its facets were purged; its hash can then no longer be recomputed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    purged: bool,
    /// The last turn that it or a commit before it covers.
    anchor_turn_id: Option<TurnId>,
    /// Branches whose last commit it is.
    heads: Vec<Name>,
    /// Fields on which the sides of a merge disagree, unresolved at this commit.
    conflicts: usize,
    /// The signature of the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<SignatureView>,
    /// Whether it has been undone, in the answer to a call repeated with its key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undone: bool,
}

/// The ends of a range of turns, both included.
#[derive(Serialize, Deserialize, JsonSchema)]
struct TurnWindow {
    /// The first turn.
    start_turn_hash: TurnHash,
    /// The last turn.
    end_turn_hash: TurnHash,
}

/// What the turns of a commit are about, and the facts known after them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
struct FacetSnapshot {
    /// People, organisations, places and other named things.
    entities: Vec<String>,
    /// Keywords of the turns.
    keywords: Vec<String>,
    /// Topics of the turns.
    topics: Vec<String>,
    /// Which rules found them.
    extractor: String,
    /// Runs of interpreters whose findings are among the entities.
    interpretations: Vec<String>,
    /// Where each of them first occurs.
    evidence: FacetEvidence,
    /// Known facts, by entity.
    facts: BTreeMap<String, FactForm>,
    /// Fields on which the sides of a merge disagree.
    conflicts: Vec<ConflictForm>,
    /// Keywords and names that were left out because there were too many.
    #[serde(default)]
    left_out: Option<u64>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
struct FacetEvidence {
    entities: BTreeMap<String, EvidenceForm>,
    keywords: BTreeMap<String, EvidenceForm>,
    topics: BTreeMap<String, EvidenceForm>,
}

/// Where something first occurs.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
struct EvidenceForm {
    /// In how many turns it occurs.
    turns: u64,
    /// The turn.
    #[serde(default)]
    turn_hash: Option<String>,
    /// Where in its text, in Unicode scalar values: start and end.
    #[serde(default)]
    span: Option<[u64; 2]>,
}

/// The facts known about an entity.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
struct FactForm {
    /// The type of the entity.
    entity_type: String,
    /// The display name of the entity.
    #[serde(default)]
    name: Option<String>,
    /// The fields of the entity.
    fields: BTreeMap<String, serde_json::Value>,
    /// For each field the observations that it comes from.
    from: BTreeMap<String, Vec<String>>,
    /// Fields that are sets.
    #[serde(default)]
    sets: Vec<String>,
    /// Fields that come from a merge or a resolved conflict, and from no turn of the path.
    #[serde(default)]
    brought: Vec<String>,
}

/// A field on which the sides disagree.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
struct ConflictForm {
    /// The entity.
    entity_id: String,
    /// The field.
    field: String,
    /// The values of the sides.
    sides: Vec<FieldValue>,
    /// The values that the sides changed.
    bases: Vec<FieldValue>,
}

impl From<CommitView> for CommitJson {
    fn from(view: CommitView) -> Self {
        let commit = view.commit;
        let facets = commit.facets.as_ref();
        CommitJson {
            commit_hash: view.hash,
            facet_snapshot: facets.map(Facets::to_json).into(),
            purged: facets.is_none(),
            conflicts: facets.map_or(0, |facets| facets.state.conflicts().count()),
            author: commit.author,
            branch: commit.branch,
            conversation_id: commit.conversation,
            created_at: commit.created_at,
            message: commit.message,
            parent_hashes: commit.parents,
            root_hash: commit.root_hash,
            turn_count: commit.turns,
            turn_window: commit.window.map(|window| TurnWindow {
                start_turn_hash: window.start,
                end_turn_hash: window.end,
            }),
            anchor_turn_id: view.anchor,
            heads: view.heads,
            signature: view.signature,
            undone: view.undone,
        }
    }
}

impl TryFrom<CommitJson> for CommitView {
    type Error = &'static str;

    fn try_from(form: CommitJson) -> Result<Self, Self::Error> {
        let facets = match &form.facet_snapshot {
            Json::Null => None,
            facets => Some(Facets::from_json(facets).ok_or("`facet_snapshot` cannot be read")?),
        };
        let commit = Commit {
            parents: form.parent_hashes,
            conversation: form.conversation_id,
            root_hash: form.root_hash,
            branch: form.branch,
            message: form.message,
            window: form.turn_window.map(|window| CommitWindow {
                start: window.start_turn_hash,
                end: window.end_turn_hash,
            }),
            turns: form.turn_count,
            facets,
            author: form.author,
            created_at: form.created_at,
        };
        Ok(CommitView {
            hash: form.commit_hash,
            commit,
            anchor: form.anchor_turn_id,
            signature: form.signature,
            heads: form.heads,
            undone: form.undone,
        })
    }
}

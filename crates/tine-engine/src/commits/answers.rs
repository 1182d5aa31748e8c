//! What is answered about commits.

use std::collections::{BTreeMap, BTreeSet};

use tine_analysis::rings::Rings;
use tine_core::commit::{Conflict, Held, Seen, State};
use tine_core::{
    Commit, CommitHash, ConversationId, EntityId, Json, ObservationId, Role, Timestamp, TurnHash,
    TurnId,
};

use crate::{BranchView, TurnView};

/// What a turn is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRings {
    /// Which rules found it.
    pub extractor: String,
    /// Keywords, intent, facets and segments; spans count Unicode scalar values of the text.
    pub rings: Rings,
    /// Names of people, organisations and places.
    pub names: Vec<NameFound>,
    /// The text that the spans count.
    pub text: String,
}

/// A name in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFound {
    /// The name.
    pub name: String,
    /// What it is the name of: `person`, `place` …
    pub entity_type: String,
    /// Where it stands, in Unicode scalar values.
    pub span: (usize, usize),
}

/// A commit.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitView {
    /// Its hash.
    pub hash: CommitHash,
    /// What it says.
    pub commit: Commit,
    /// The last turn that it or a commit before it covers.
    pub anchor: Option<TurnId>,
    /// Who vouches for it.
    pub signature: Option<SignatureView>,
    /// Branches whose last commit it is.
    pub heads: Vec<tine_core::Name>,
    /// Whether its making has been undone: only the call that made it is still told of it.
    pub undone: bool,
}

/// Who vouches for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureView {
    /// The signer's public key.
    pub public_key: String,
    /// The signature of the commit's hash.
    pub value: String,
    /// When it came here.
    pub signed_at: Timestamp,
    /// Whether it is right.
    pub valid: bool,
}

/// A field that is not the same on two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// The entity.
    pub entity: EntityId,
    /// Its type.
    pub entity_type: String,
    /// How people call it.
    pub name: Option<String>,
    /// The field.
    pub field: String,
    /// What the one side says; `None` for nothing.
    pub from: Option<Held>,
    /// What the other side says; `None` for nothing.
    pub to: Option<Held>,
}

/// A line of the turn that tells about the other side of a merge, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLine {
    /// The line.
    pub text: String,
    /// The turn that says so.
    pub turn: Option<TurnHash>,
}

/// What came of a merge, or would come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The merge; none when there was nothing to merge, or in a dry run.
    pub commit: Option<CommitView>,
    /// Whether everything of the other side was there already.
    pub up_to_date: bool,
    /// Commits that were made first, of turns that no commit covered.
    pub committed: Vec<CommitHash>,
    /// The last commits that both sides had in common.
    pub bases: Vec<CommitHash>,
    /// Fields that the merge changes on the branch.
    pub changes: Vec<FieldChange>,
    /// Fields that it could not decide.
    pub conflicts: Vec<FieldConflict>,
    /// What is, or could be, said about the other side.
    pub summary: Vec<SummaryLine>,
    /// The turn that says it.
    pub turn: Option<TurnId>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// A field on which sides disagree.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldConflict {
    /// The entity.
    pub entity: EntityId,
    /// Its type.
    pub entity_type: String,
    /// How people call it.
    pub name: Option<String>,
    /// The field.
    pub field: String,
    /// What the sides say.
    pub conflict: Conflict,
}

impl FieldConflict {
    /// All of a state.
    pub fn all(state: &State) -> Vec<FieldConflict> {
        let all = state.conflicts();
        all.map(|(entity, fact, field, conflict)| FieldConflict {
            entity,
            entity_type: fact.entity_type.clone(),
            name: fact.name.clone(),
            field: field.to_owned(),
            conflict: conflict.clone(),
        })
        .collect()
    }
}

/// All fields that differ between two states.
pub(super) fn changes(from: &State, to: &State) -> Vec<FieldChange> {
    let nothing = |held: &&Held| !matches!(held, Held::Value(value) if value.json.is_none());
    let mut found = Vec::new();
    let entities: BTreeSet<EntityId> = from.facts.keys().chain(to.facts.keys()).copied().collect();
    for entity in entities {
        let sides = [from.facts.get(&entity), to.facts.get(&entity)];
        let Some(about) = sides[1].or(sides[0]) else {
            continue;
        };
        let fields: BTreeSet<&String> =
            sides.iter().flatten().flat_map(|fact| fact.fields.keys()).collect();
        for field in fields {
            let [was, is] = sides.map(|fact| fact?.fields.get(field).filter(nothing));
            if was != is {
                found.push(FieldChange {
                    entity,
                    entity_type: about.entity_type.clone(),
                    name: about.name.clone(),
                    field: field.clone(),
                    from: was.cloned(),
                    to: is.cloned(),
                });
            }
        }
    }
    found
}

/// A turn that was said again elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Injected {
    /// The new turn.
    pub turn: TurnView,
    /// The branch that ends with it now.
    pub branch: BranchView,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffSide {
    /// What was asked for.
    pub name: String,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its last turn.
    pub turn: Option<TurnHash>,
    /// The commit, if it is one.
    pub commit: Option<CommitHash>,
    /// Turns that only this side has.
    pub turns: u64,
    /// Commits that only this side has, where two commits are compared.
    pub commits: Vec<CommitHash>,
}

/// Words of two versions of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordChange {
    /// In both.
    Kept(String),
    /// Only in the first.
    Lost(String),
    /// Only in the second.
    Gained(String),
}

/// A turn as a comparison shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffTurn {
    /// Its id.
    pub id: TurnId,
    /// Its hash.
    pub hash: TurnHash,
    /// Who said it.
    pub role: Role,
    /// What it says; empty once it was purged.
    pub text: String,
}

/// A turn that two sides do not share.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnChange {
    /// Said on both sides in the same words, in turns of their own.
    Equal {
        /// There.
        from: DiffTurn,
        /// And here.
        to: DiffTurn,
    },
    /// Said on both sides in other words.
    Changed {
        /// There.
        from: DiffTurn,
        /// And here.
        to: DiffTurn,
        /// Word by word.
        words: Vec<WordChange>,
    },
    /// Only said on the first side.
    Lost(DiffTurn),
    /// Only said on the second side.
    Gained(DiffTurn),
}

/// Words of two sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenDiff {
    /// Only on the second side.
    pub gained: Vec<Seen>,
    /// Only on the first side.
    pub lost: Vec<Seen>,
    /// On both.
    pub kept: Vec<Seen>,
}

impl SeenDiff {
    pub(super) fn of(from: &BTreeMap<String, Seen>, to: &BTreeMap<String, Seen>) -> SeenDiff {
        let only = |these: &BTreeMap<String, Seen>, others: &BTreeMap<String, Seen>| {
            let found = these.iter().filter(|(key, _)| !others.contains_key(*key));
            found.map(|(_, seen)| seen.clone()).collect()
        };
        let kept = to.iter().filter(|(key, _)| from.contains_key(*key));
        SeenDiff {
            gained: only(to, from),
            lost: only(from, to),
            kept: kept.map(|(_, seen)| seen.clone()).collect(),
        }
    }
}

/// Two sides compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The one.
    pub from: DiffSide,
    /// The other.
    pub to: DiffSide,
    /// The last turn that both have.
    pub common: Option<TurnHash>,
    /// The last commits that both build on, where two commits are compared.
    pub bases: Vec<CommitHash>,
    /// What was said on one side and not on the other; nothing where two commits are compared.
    pub changes: Vec<TurnChange>,
    /// Changes that are not told.
    pub left_out: u64,
    /// Names.
    pub entities: SeenDiff,
    /// Keywords.
    pub keywords: SeenDiff,
    /// Topics.
    pub topics: SeenDiff,
    /// What is known.
    pub facts: Vec<FieldChange>,
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Blamed {
    /// The turn that said it.
    pub turn: Option<TurnHash>,
    /// The id of that turn.
    pub turn_id: Option<TurnId>,
    /// Who said it.
    pub role: Option<Role>,
    /// When.
    pub said_at: Option<Timestamp>,
    /// Where in the turn's text, in Unicode scalar values.
    pub span: Option<(u64, u64)>,
    /// The words.
    pub quote: Option<String>,
    /// What it says, of a field.
    pub value: Option<Json>,
    /// The observation, of a field.
    pub observation: Option<ObservationId>,
    /// The first commit that covers the turn.
    pub commit: Option<CommitHash>,
    /// The merge that brought it, when the turn does not lie on the path.
    pub merge: Option<CommitHash>,
}

/// The first turn for which something holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisected {
    /// The turn.
    pub turn: TurnView,
    /// Turns of the path.
    pub path: usize,
    /// Turns that were looked at.
    pub tested: usize,
}

/// How far a commit has moved from others.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The commit.
    pub hash: CommitHash,
    /// Its message.
    pub message: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From its first parent: 0 for the same words, 1 for none in common.
    pub from_parent: Option<f64>,
    /// From the first commit of the branch.
    pub from_first: Option<f64>,
}

//! Requests about commits.

use tine_core::{ConversationId, EntityId, Json, Reference};

use crate::TurnRef;

/// The ends of a range of turns.
#[derive(Clone, Debug)]
pub struct WindowRef {
    /// The first turn.
    pub start: Reference,
    /// The last turn.
    pub end: Reference,
}

/// A commit to be made.
#[derive(Clone, Debug)]
pub struct NewCommit {
    /// The conversation.
    pub conversation: ConversationId,
    /// The branch, by name or id. By default `main` if the turns lie there, else the
    /// only branch on which they do.
    pub branch: Option<String>,
    /// The turns; by default all that no commit of the branch covers yet.
    pub window: Option<WindowRef>,
    /// The commit message.
    pub message: String,
    /// The author; the caller by default.
    pub author: Option<String>,
}

impl NewCommit {
    /// Commits what is new on `main`.
    pub fn of(conversation: ConversationId, message: impl Into<String>) -> Self {
        let message = message.into();
        NewCommit { conversation, branch: None, window: None, message, author: None }
    }

    /// Sets the branch.
    pub fn on(self, branch: &str) -> Self {
        NewCommit { branch: Some(branch.to_owned()), ..self }
    }
}

/// Which commits.
#[derive(Clone, Debug, Default)]
pub struct CommitQuery {
    /// Those of a conversation; by default of the whole project.
    pub conversation: Option<ConversationId>,
    /// Those that the last commit of a branch descends from.
    pub branch: Option<String>,
}

/// The turn about the other side that a merge may add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Summary {
    /// No turn is added.
    #[default]
    None,
    /// A summary of the other side's facets, facts and decisions.
    Generated,
    /// The caller's text.
    Text(String),
}

/// A branch, or a commit, to be merged into a branch.
#[derive(Clone, Debug)]
pub struct MergeBranches {
    /// The conversation.
    pub conversation: ConversationId,
    /// The other side: a branch by name or id, or a commit by its hash.
    pub from: String,
    /// The branch on which the merge is made; `main` by default.
    pub into: Option<String>,
    /// The commit message; `Merge …` by default.
    pub message: Option<String>,
    /// The author; the caller by default.
    pub author: Option<String>,
    /// Whether to add a turn about the other side.
    pub summary: Summary,
    /// Reports what would happen and writes nothing.
    pub dry_run: bool,
}

/// How a conflict is resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Take {
    /// Takes the value of one side, numbered from 1 as the conflict lists them.
    Side(usize),
    /// Takes this value.
    Value(Json),
    /// Clears the field.
    Nothing,
}

/// The resolution of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The entity.
    pub entity: EntityId,
    /// Its field.
    pub field: String,
    /// The value to take.
    pub take: Take,
}

/// Conflicts of a branch to be resolved.
#[derive(Clone, Debug)]
pub struct ResolveConflicts {
    /// The conversation.
    pub conversation: ConversationId,
    /// The branch; `main` by default.
    pub branch: Option<String>,
    /// The resolutions; at least one.
    pub decisions: Vec<Decision>,
    /// The commit message.
    pub message: Option<String>,
    /// The author; the caller by default.
    pub author: Option<String>,
}

/// A turn to be copied to another place.
#[derive(Clone, Debug)]
pub struct Inject {
    /// The turn.
    pub turn: TurnRef,
    /// The target conversation.
    pub conversation: ConversationId,
    /// The branch that it is appended to; `main` by default.
    pub branch: Option<String>,
}

/// Two sides to be compared, each a turn, a branch, a commit, or a range of turns `a..b`.
#[derive(Clone, Debug)]
pub struct DiffQuery {
    /// The conversation in which names are looked up.
    pub conversation: Option<ConversationId>,
    /// The first side.
    pub from: String,
    /// The second side.
    pub to: String,
    /// The most changes to list.
    pub limit: Option<usize>,
}

/// What to find the origin of.
#[derive(Clone, Debug)]
pub enum BlameOf {
    /// A field of an entity.
    Field {
        /// The entity.
        entity: EntityId,
        /// Its field.
        field: String,
    },
    /// A piece of text.
    Text(String),
}

/// Where a value or a piece of text comes from.
#[derive(Clone, Debug)]
pub struct BlameQuery {
    /// The end of the path to search.
    pub at: TurnRef,
    /// What to look for.
    pub of: BlameOf,
}

/// A condition on a prefix of a path.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Its text contains this.
    Contains(String),
    /// A field has this value; `None` for any.
    Fact {
        /// The entity.
        entity: EntityId,
        /// Its field.
        field: String,
        /// The value.
        value: Option<Json>,
    },
}

/// Finds the first turn on a path that satisfies a condition.
#[derive(Clone, Debug)]
pub struct BisectQuery {
    /// The end of the path.
    pub at: TurnRef,
    /// The condition.
    pub predicate: Predicate,
}

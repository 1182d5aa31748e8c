//! What is asked of commits.

use tine_core::{ConversationId, EntityId, Json, Reference};

use crate::TurnRef;

/// The ends of a stretch of turns.
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
    /// The branch, by name or id. Without it: `main` if the turns lie there, else the only branch
    /// on which they do.
    pub branch: Option<String>,
    /// The turns. Without them all that no commit of the branch covers yet.
    pub window: Option<WindowRef>,
    /// What it is about.
    pub message: String,
    /// Who made it; whoever calls without it.
    pub author: Option<String>,
}

impl NewCommit {
    /// A commit of what is new on `main`.
    pub fn of(conversation: ConversationId, message: impl Into<String>) -> Self {
        let message = message.into();
        NewCommit { conversation, branch: None, window: None, message, author: None }
    }

    /// On a branch.
    pub fn on(self, branch: &str) -> Self {
        NewCommit { branch: Some(branch.to_owned()), ..self }
    }
}

/// Which commits.
#[derive(Clone, Debug, Default)]
pub struct CommitQuery {
    /// Those of a conversation; of the whole project without it.
    pub conversation: Option<ConversationId>,
    /// Those that the last commit of a branch builds on.
    pub branch: Option<String>,
}

/// What is said about the other side in the turn that a merge may add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Summary {
    /// No turn is added.
    #[default]
    None,
    /// What the facets, facts and decisions of the other side say.
    Made,
    /// The caller's words.
    Text(String),
}

/// A branch, or a commit, to be merged into a branch.
#[derive(Clone, Debug)]
pub struct MergeBranches {
    /// The conversation.
    pub conversation: ConversationId,
    /// The other side: a branch by name or id, or a commit by its hash.
    pub from: String,
    /// The branch on which the merge is made; `main` without it.
    pub into: Option<String>,
    /// What it is about; `Merge …` without it.
    pub message: Option<String>,
    /// Who made it; whoever calls without it.
    pub author: Option<String>,
    /// A turn about the other side.
    pub summary: Summary,
    /// Only say what would come of it.
    pub dry_run: bool,
}

/// How a conflict is decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Take {
    /// By what one side says, counted from 1 as the conflict lists them.
    Side(usize),
    /// By this value.
    Value(Json),
    /// By having no value.
    Nothing,
}

/// A decision about one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The entity.
    pub entity: EntityId,
    /// Its field.
    pub field: String,
    /// What is to hold.
    pub take: Take,
}

/// Conflicts of a branch to be decided.
#[derive(Clone, Debug)]
pub struct ResolveConflicts {
    /// The conversation.
    pub conversation: ConversationId,
    /// The branch; `main` without it.
    pub branch: Option<String>,
    /// The decisions; at least one.
    pub decisions: Vec<Decision>,
    /// What the commit is about.
    pub message: Option<String>,
    /// Who made it; whoever calls without it.
    pub author: Option<String>,
}

/// A turn to be said again elsewhere.
#[derive(Clone, Debug)]
pub struct Inject {
    /// The turn.
    pub turn: TurnRef,
    /// The conversation that it comes to.
    pub conversation: ConversationId,
    /// The branch at whose end it is said; `main` without it.
    pub branch: Option<String>,
}

/// Two things to be compared, each a turn, a branch, a commit, or a stretch of turns `a..b`.
#[derive(Clone, Debug)]
pub struct DiffQuery {
    /// The conversation in which names are looked up.
    pub conversation: Option<ConversationId>,
    /// The one.
    pub from: String,
    /// The other.
    pub to: String,
    /// Changes that are told one by one at most.
    pub limit: Option<usize>,
}

/// Whose origin is asked for.
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

/// Where something comes from.
#[derive(Clone, Debug)]
pub struct BlameQuery {
    /// The end of the path on which it is looked for.
    pub at: TurnRef,
    /// What.
    pub of: BlameOf,
}

/// What is looked for on a path.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Something was said so far that contains this text.
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

/// The first turn on a path for which something holds.
#[derive(Clone, Debug)]
pub struct BisectQuery {
    /// The end of the path.
    pub at: TurnRef,
    /// What is to hold.
    pub predicate: Predicate,
}

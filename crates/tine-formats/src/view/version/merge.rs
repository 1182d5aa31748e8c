//! Merges, and turns that are said again elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_engine as engine;

use super::{Commit, FieldChange, FieldConflict};
use crate::view::reading::{Unreadable, each, parse_all, parse_option};
use crate::view::{Branch, Turn, text, texts};

/// What came of a merge, or would come of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// The merge; `null` when there was nothing to merge, or in a dry run.
    pub commit: Option<Commit>,
    /// Whether everything of the other side was there already.
    pub up_to_date: bool,
    /// Commits that were made first, of turns that no commit covered.
    pub committed: Vec<String>,
    /// The last commits that both sides had in common.
    pub bases: Vec<String>,
    /// Fields that the merge changes on the branch.
    pub changes: Vec<FieldChange>,
    /// Fields that it could not decide.
    pub conflicts: Vec<FieldConflict>,
    /// What is, or could be, said about the other side.
    pub summary: Vec<SummaryLine>,
    /// The turn that says it.
    pub turn_id: Option<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// A line about the other side of a merge.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    /// The line.
    pub text: String,
    /// The turn that says so.
    pub turn_hash: Option<String>,
}

impl From<engine::Merged> for Merged {
    fn from(done: engine::Merged) -> Self {
        let line = |line: engine::SummaryLine| SummaryLine {
            text: line.text,
            turn_hash: line.turn.map(text),
        };
        Merged {
            commit: done.commit.map(Commit::from),
            up_to_date: done.up_to_date,
            committed: texts(done.committed),
            bases: texts(done.bases),
            changes: done.changes.into_iter().map(FieldChange::from).collect(),
            conflicts: done.conflicts.into_iter().map(FieldConflict::from).collect(),
            summary: done.summary.into_iter().map(line).collect(),
            turn_id: done.turn.map(text),
            dry_run: done.dry_run,
        }
    }
}

impl TryFrom<Merged> for engine::Merged {
    type Error = Unreadable;

    fn try_from(view: Merged) -> Result<Self, Unreadable> {
        let line = |line: SummaryLine| {
            let turn = parse_option("turn_hash", line.turn_hash)?;
            Ok(engine::SummaryLine { text: line.text, turn })
        };
        Ok(engine::Merged {
            commit: view.commit.map(engine::CommitView::try_from).transpose()?,
            up_to_date: view.up_to_date,
            committed: parse_all("committed", view.committed)?,
            bases: parse_all("bases", view.bases)?,
            changes: each(view.changes)?,
            conflicts: each(view.conflicts)?,
            summary: view.summary.into_iter().map(line).collect::<Result<_, Unreadable>>()?,
            turn: parse_option("turn_id", view.turn_id)?,
            dry_run: view.dry_run,
        })
    }
}

/// A turn that was said again elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Injected {
    /// The new turn.
    pub turn: Turn,
    /// The branch that ends with it now.
    pub branch: Branch,
}

impl From<engine::Injected> for Injected {
    fn from(done: engine::Injected) -> Self {
        Injected { turn: done.turn.into(), branch: done.branch.into() }
    }
}

impl TryFrom<Injected> for engine::Injected {
    type Error = Unreadable;

    fn try_from(view: Injected) -> Result<Self, Unreadable> {
        Ok(engine::Injected { turn: view.turn.try_into()?, branch: view.branch.try_into()? })
    }
}

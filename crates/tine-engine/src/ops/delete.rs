//! Deleting: turns are hidden, never removed. The raw chain stays whole through them.

use tine_core::Name;
use tine_core::json::object;
use tine_store::{Bookmark, Branch, HiddenBy, Read, TurnLoc};

use crate::commits::commit_maintenance;
use crate::error::refuse_referenced;
use crate::knowledge::{self, slot_sync};
use crate::log::change::{LoggedChange, text};
use crate::log::mutation::{Mutation, Receipt};
use crate::tree::resolve::{self, TreePosition};
use crate::tree::shown::{SegmentRun, Tree, TurnState};
use crate::tree::views;
use crate::{Call, Delete, DeleteMode, Deleted, Engine, Result};

impl Engine {
    /// Deletes a turn, with all below it or alone; tips and bookmarks on what goes move to the
    /// nearest live ancestor. A dry run only says what would go.
    pub fn delete(&self, call: &Call, request: Delete) -> Result<Deleted> {
        if request.dry_run {
            return self.read(|records| {
                let place = resolve::place(records, call, &request.turn)?;
                let plan = DeletionPlan::new(records, &place, request.mode)?;
                plan.answer(records, &place, true)
            });
        }
        let payload = |request: &Delete| {
            object([
                ("conversation_id", request.turn.conversation.as_ref().map(text).into()),
                ("turn", request.turn.turn.as_str().into()),
                ("cascade", (request.mode == DeleteMode::Cascade).into()),
                ("force", request.force.into()),
            ])
        };
        let (deleted, _) = self.mutate(call, "delete", request, payload, delete)?;
        Ok(deleted)
    }
}

/// What a deletion touches.
struct DeletionPlan {
    root: TurnLoc,
    mode: DeleteMode,
    runs: Vec<SegmentRun>,
    turns: usize,
    heir: Option<TurnLoc>,
    branches: Vec<Branch>,
    bookmarks: Vec<Bookmark>,
    depends_on: Vec<u64>,
}

impl DeletionPlan {
    fn new(records: &dyn Read, place: &TreePosition, mode: DeleteMode) -> Result<Self> {
        let root = place.require_turn_for("deleted")?;
        let key = place.conversation.key;
        let tree = Tree::new(records, key);
        let runs = tree.runs(root, mode == DeleteMode::Cascade)?;
        let within = |loc: &TurnLoc| {
            runs.iter()
                .any(|run| run.segment == loc.segment && (run.from..=run.to).contains(&loc.index))
        };
        let mut depends_on = vec![tree.turn(root)?.operation];
        for run in &runs {
            let hidden = records.hidden_in(key, run.segment)?;
            let touched = hidden.iter().filter(|old| old.from <= run.to && run.from <= old.to);
            depends_on.extend(touched.map(|old| old.operation));
        }
        let heir = tree.shown_parent(root)?;
        let turns = count_live(&tree, &runs)?;
        depends_on.extend(tree.dependencies());
        let branches = records.branches(key)?;
        let bookmarks = records.bookmarks_in(key)?;
        Ok(DeletionPlan {
            root,
            mode,
            runs: runs.clone(),
            turns,
            heir,
            branches: branches
                .into_iter()
                .filter(|branch| branch.tip.as_ref().is_some_and(within))
                .collect(),
            bookmarks: bookmarks.into_iter().filter(|mark| within(&mark.turn)).collect(),
            depends_on,
        })
    }

    /// Returns the answer; branches as they will be.
    fn answer(&self, records: &dyn Read, place: &TreePosition, dry_run: bool) -> Result<Deleted> {
        let id = &place.conversation.id;
        let tree = Tree::new(records, place.conversation.key);
        let views = self.branches.iter().map(|branch| {
            let moved = Branch { tip: self.heir, version: branch.version + 1, ..branch.clone() };
            views::branch(records, id, &moved)
        });
        let names: Vec<Name> = self.bookmarks.iter().map(|mark| mark.name.clone()).collect();
        let (moved_bookmarks, removed_bookmarks) = match self.heir {
            Some(_) => (names, Vec::new()),
            None => (Vec::new(), names),
        };
        Ok(Deleted {
            turn: tree.turn(self.root)?.id,
            turns: self.turns,
            moved_branches: views.collect::<Result<_>>()?,
            moved_bookmarks,
            removed_bookmarks,
            dry_run,
        })
    }
}

fn count_live(tree: &Tree<'_>, runs: &[SegmentRun]) -> Result<usize> {
    let mut live = 0;
    for run in runs {
        for index in run.from..=run.to {
            if tree.state(TurnLoc { segment: run.segment, index })? == TurnState::Live {
                live += 1;
            }
        }
    }
    Ok(live)
}

fn delete(mutation: &mut Mutation<'_>, request: &Delete) -> Result<Deleted> {
    let place = resolve::place(mutation.reader(), mutation.call, &request.turn)?;
    let plan = DeletionPlan::new(mutation.reader(), &place, request.mode)?;
    let answer = plan.answer(mutation.reader(), &place, false)?;
    mutation.open(place.conversation)?;
    if !request.force {
        let mut references = knowledge::references_to(mutation, &plan.runs, &[])?;
        let covering =
            commit_maintenance::covering(mutation.reader(), mutation.conversation(), &plan.runs)?;
        references.extend(covering);
        refuse_referenced(references)?;
    }
    mutation.depends_on_all(plan.depends_on.iter().copied());
    let by = match plan.mode {
        DeleteMode::Cascade => HiddenBy::Cascade,
        DeleteMode::Reparent => HiddenBy::Reparent,
    };
    let seq = mutation.seq();
    mutation.hide(plan.root, by, seq)?;
    slot_sync::after_hiding(mutation, &plan.runs)?;
    let cascade = plan.mode == DeleteMode::Cascade;
    mutation.changed(LoggedChange::Hidden { root: answer.turn, cascade });
    for branch in &plan.branches {
        mutation.move_branch(branch, plan.heir)?;
    }
    for bookmark in &plan.bookmarks {
        let moved = plan.heir.map(|turn| Bookmark { turn, ..bookmark.clone() });
        mutation.change_bookmark(Some(bookmark), moved.as_ref())?;
    }
    Ok(answer)
}

impl Receipt for Deleted {
    fn read(receipt: &str) -> Option<Self> {
        // Earlier releases did not store that it was no dry run.
        let mut receipt: serde_json::Value = serde_json::from_str(receipt).ok()?;
        receipt.as_object_mut()?.insert("dry_run".to_owned(), false.into());
        serde_json::from_value(receipt).ok()
    }
}

//! Contiguous ranges of one raw path.

use tine_core::{Commit, TurnHash};
use tine_store::{Read, TurnLoc, required};

use crate::tree::shown::{SegmentRun, Tree};
use crate::{Error, Result};

/// The most turns in one window.
pub(super) const WINDOW_TURNS: u64 = 100_000;

/// Returns whether a turn lies on the raw path to another, ends included; a half means its whole
/// there, and a whole its halves.
pub(super) fn passes(tree: &Tree<'_>, turn: TurnLoc, to: TurnLoc) -> Result<bool> {
    Ok(on_path(tree, turn, to)?.is_some())
}

/// Returns the turn of the raw path that stands for a given one there.
fn on_path(tree: &Tree<'_>, turn: TurnLoc, to: TurnLoc) -> Result<Option<TurnLoc>> {
    if tree.raw_ancestor_or_self(turn, to)? {
        return Ok(Some(turn));
    }
    let mut half = turn;
    while let Some(split) = tree.split_with_half(half)? {
        if tree.raw_ancestor_or_self(split.whole, to)? {
            return Ok(Some(split.whole));
        }
        half = split.whole;
    }
    let last = tree.last_half(turn)?;
    if tree.raw_ancestor_or_self(last, to)? {
        return Ok(Some(last));
    }
    Ok(None)
}

/// A contiguous range of one raw path, as runs within segments.
#[derive(Clone, Debug)]
pub(super) struct PathRange {
    pub runs: Vec<SegmentRun>,
}

impl PathRange {
    /// Returns the whole path to a turn.
    pub(super) fn to(tree: &Tree<'_>, end: TurnLoc) -> Result<PathRange> {
        Ok(PathRange { runs: tree.path_runs(end)? })
    }

    /// Returns the turns from one to another.
    pub(super) fn between(tree: &Tree<'_>, start: TurnLoc, end: TurnLoc) -> Result<PathRange> {
        let first = match on_path(tree, start, end)? {
            // A range that begins with a half begins with the whole turn.
            Some(loc) if loc == start => tree.first_half(loc)?,
            Some(loc) => loc,
            None if passes(tree, end, start)? => {
                return Err(Error::invalid("the start of the window is after its end; swap them"));
            }
            None => {
                return Err(Error::invalid(
                    "the start of the window is not on the path to its end; give two turns of one \
                     path",
                ));
            }
        };
        let first = if tree.raw_ancestor_or_self(first, end)? { first } else { start };
        let mut runs = tree.path_runs(end)?;
        let at = runs.iter().position(|run| run.segment == first.segment);
        runs.drain(..at.unwrap_or(0));
        if let Some(run) = runs.first_mut() {
            run.from = first.index;
        }
        Ok(PathRange { runs })
    }

    /// Returns the part of the path to `end` after a turn.
    pub(super) fn after(tree: &Tree<'_>, after: TurnLoc, end: TurnLoc) -> Result<PathRange> {
        let Some(last) = on_path(tree, after, end)? else {
            return PathRange::to(tree, end);
        };
        let mut runs = tree.path_runs(end)?;
        let at = runs.iter().position(|run| run.segment == last.segment);
        runs.drain(..at.unwrap_or(0));
        if let Some(run) = runs.first_mut() {
            run.from = last.index + 1;
        }
        runs.retain(|run| run.from <= run.to);
        Ok(PathRange { runs })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn turns(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.to - run.from) + 1).sum()
    }

    pub(super) fn locs(&self) -> Vec<TurnLoc> {
        let runs = self.runs.iter();
        runs.flat_map(|run| {
            (run.from..=run.to).map(|index| TurnLoc { segment: run.segment, index })
        })
        .collect()
    }

    pub(super) fn first(&self) -> Option<TurnLoc> {
        self.runs.first().map(|run| TurnLoc { segment: run.segment, index: run.from })
    }

    pub(super) fn last(&self) -> Option<TurnLoc> {
        self.runs.last().map(|run| TurnLoc { segment: run.segment, index: run.to })
    }

    /// Returns the hashes of its ends.
    pub(super) fn ends(&self, tree: &Tree<'_>) -> Result<Option<(TurnHash, TurnHash)>> {
        let (Some(first), Some(last)) = (self.first(), self.last()) else {
            return Ok(None);
        };
        Ok(Some((tree.turn(first)?.hash, tree.turn(last)?.hash)))
    }

    pub(super) fn check_size(&self) -> Result<()> {
        if self.turns() > WINDOW_TURNS {
            return Err(Error::TooLarge {
                what: "turns in one commit",
                limit: usize::try_from(WINDOW_TURNS).unwrap_or(usize::MAX),
                given: usize::try_from(self.turns()).unwrap_or(usize::MAX),
            });
        }
        Ok(())
    }
}

impl PathRange {
    /// Returns the turns that a commit seals; none if it seals none.
    pub(super) fn of_window(
        records: &dyn Read,
        tree: &Tree<'_>,
        commit: &Commit,
    ) -> Result<Option<PathRange>> {
        let Some(window) = &commit.window else {
            return Ok(None);
        };
        let loc = |hash: &TurnHash| {
            let found = records.find_hashes(tree.conversation(), &hash.0, &hash.0, 2)?;
            Ok::<_, Error>(required(found.first().copied(), || format!("turn {hash}"))?)
        };
        Ok(Some(PathRange::between(tree, loc(&window.start)?, loc(&window.end)?)?))
    }
}

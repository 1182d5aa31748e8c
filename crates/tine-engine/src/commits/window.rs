//! Stretches of one raw path.

use tine_core::{Commit, TurnHash};
use tine_store::{Read, TurnLoc, required};

use crate::tree::shown::{Piece, Tree};
use crate::{Error, Result};

/// The most turns in one window.
pub(super) const WINDOW_TURNS: u64 = 100_000;

/// Whether a turn lies on the raw path to another, ends included; a half means its whole there,
/// and a whole its halves.
pub(super) fn passes(tree: &Tree<'_>, turn: TurnLoc, to: TurnLoc) -> Result<bool> {
    Ok(on_path(tree, turn, to)?.is_some())
}

/// The turn of the raw path that stands for a given one there.
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

/// An unbroken stretch of one raw path, as runs within segments.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub pieces: Vec<Piece>,
}

impl Stretch {
    /// The whole path to a turn.
    pub(super) fn to(tree: &Tree<'_>, end: TurnLoc) -> Result<Stretch> {
        Ok(Stretch { pieces: tree.pieces(end)? })
    }

    /// The turns from one to another.
    pub(super) fn between(tree: &Tree<'_>, start: TurnLoc, end: TurnLoc) -> Result<Stretch> {
        let first = match on_path(tree, start, end)? {
            // A stretch that begins with a half begins with all of the turn.
            Some(loc) if loc == start => tree.first_half(loc)?,
            Some(loc) => loc,
            None if passes(tree, end, start)? => {
                return Err(Error::invalid(
                    "the window's start lies behind its end; give the earlier turn first",
                ));
            }
            None => {
                return Err(Error::invalid(
                    "the window is no unbroken stretch of one path: its start is not among the \
                     turns that lead to its end",
                ));
            }
        };
        let first = if tree.raw_ancestor_or_self(first, end)? { first } else { start };
        let mut pieces = tree.pieces(end)?;
        let at = pieces.iter().position(|piece| piece.segment == first.segment);
        pieces.drain(..at.unwrap_or(0));
        if let Some(piece) = pieces.first_mut() {
            piece.from = first.index;
        }
        Ok(Stretch { pieces })
    }

    /// What of the path to a turn lies behind another.
    pub(super) fn behind(tree: &Tree<'_>, after: TurnLoc, end: TurnLoc) -> Result<Stretch> {
        let Some(last) = on_path(tree, after, end)? else {
            return Stretch::to(tree, end);
        };
        let mut pieces = tree.pieces(end)?;
        let at = pieces.iter().position(|piece| piece.segment == last.segment);
        pieces.drain(..at.unwrap_or(0));
        if let Some(piece) = pieces.first_mut() {
            piece.from = last.index + 1;
        }
        pieces.retain(|piece| piece.from <= piece.to);
        Ok(Stretch { pieces })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn turns(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.to - piece.from) + 1).sum()
    }

    pub(super) fn locs(&self) -> Vec<TurnLoc> {
        let runs = self.pieces.iter();
        runs.flat_map(|piece| {
            (piece.from..=piece.to).map(|index| TurnLoc { segment: piece.segment, index })
        })
        .collect()
    }

    pub(super) fn first(&self) -> Option<TurnLoc> {
        self.pieces.first().map(|piece| TurnLoc { segment: piece.segment, index: piece.from })
    }

    pub(super) fn last(&self) -> Option<TurnLoc> {
        self.pieces.last().map(|piece| TurnLoc { segment: piece.segment, index: piece.to })
    }

    /// The hashes of its ends.
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

impl Stretch {
    /// The turns that a commit seals; none if it seals none.
    pub(super) fn of_window(
        records: &dyn Read,
        tree: &Tree<'_>,
        commit: &Commit,
    ) -> Result<Option<Stretch>> {
        let Some(window) = &commit.window else {
            return Ok(None);
        };
        let loc = |hash: &TurnHash| {
            let found = records.find_hashes(tree.conversation(), &hash.0, &hash.0, 2)?;
            Ok::<_, Error>(required(found.first().copied(), || format!("turn {hash}"))?)
        };
        Ok(Some(Stretch::between(tree, loc(&window.start)?, loc(&window.end)?)?))
    }
}

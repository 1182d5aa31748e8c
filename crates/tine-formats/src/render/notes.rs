//! What a rendering did not take over as it is, and why.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use tine_api::PathPage;
use tine_core::TurnId;

use super::token_budget::PathCut;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, with = "String")]
pub enum NoteKind {
    /// It is not in the rendering.
    LeftOut,
    /// It is there in another form or place.
    Changed,
    /// It is in the rendering and not on the path.
    Added,
    /// It is there as it is, and a reader should know.
    Kept,
}

impl NoteKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            NoteKind::LeftOut => "left_out",
            NoteKind::Changed => "changed",
            NoteKind::Added => "added",
            NoteKind::Kept => "kept",
        }
    }
}

/// One thing that a rendering did not take over as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Note {
    /// The turn; `null` for the root and for notes about no turn.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
    /// The block of that turn, from 0, if the note is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// What was done.
    pub kind: NoteKind,
    /// To what.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A turn, and a block of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockRef {
    pub turn: Option<TurnId>,
    pub block: Option<usize>,
}

impl BlockRef {
    pub(super) fn turn(turn: Option<TurnId>) -> Self {
        BlockRef { turn, block: None }
    }
}

/// The notes of a rendering that is being made.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    pub(super) fn left_out(
        &mut self,
        at: BlockRef,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.add(NoteKind::LeftOut, at, what.into(), why.into());
    }

    pub(super) fn changed(
        &mut self,
        at: BlockRef,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.add(NoteKind::Changed, at, what.into(), why.into());
    }

    pub(super) fn added(&mut self, at: BlockRef, what: impl Into<String>, why: impl Into<String>) {
        self.add(NoteKind::Added, at, what.into(), why.into());
    }

    pub(super) fn kept(&mut self, at: BlockRef, what: impl Into<String>, why: impl Into<String>) {
        self.add(NoteKind::Kept, at, what.into(), why.into());
    }

    fn add(&mut self, kind: NoteKind, at: BlockRef, what: String, why: String) {
        self.0.push(Note { turn: at.turn, block: at.block, kind, what, why });
    }

    /// The notes in the order of the path; those on no turn come first.
    pub(super) fn into_vec(self, path: &PathPage, cut: &PathCut) -> Vec<Note> {
        let mut notes = self.0;
        if notes.len() > 1 {
            // A summary that was moved can be from a turn before those of the page.
            let moved = cut.summaries.iter().map(|moved| moved.turn);
            let turns = moved.chain(path.turns.iter().map(|turn| turn.id)).enumerate();
            let places: HashMap<TurnId, usize> = turns.map(|(at, turn)| (turn, at)).collect();
            let place = |note: &Note| note.turn.and_then(|turn| places.get(&turn)).copied();
            notes.sort_by_key(|note| (place(note), note.block));
        }
        notes
    }
}

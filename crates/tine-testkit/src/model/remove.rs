//! Delete and purge.

use tine_core::ErrorKind;
use tine_engine::{Delete, DeleteMode, TurnRef};

use super::{Expected, Ix, Key, ModelTurnState, ModelValue, ReferenceModel, Rule, Stop, refuse};

/// Tips and bookmarks that a change carried along.
#[derive(Clone, Debug, Default)]
pub(crate) struct MovedReferences {
    pub(crate) branches: Vec<Ix>,
    pub(crate) marks: Vec<String>,
    pub(crate) removed: Vec<String>,
}

impl ReferenceModel {
    /// Moves every tip and bookmark from these turns to a place.
    pub(crate) fn move_places(
        &mut self,
        from: &[Ix],
        to: Option<Ix>,
        weak: bool,
    ) -> MovedReferences {
        let mut moved = MovedReferences::default();
        for (key, value) in self.values.clone() {
            let ModelValue::Place(Some(turn)) = value else { continue };
            if !from.contains(&turn) {
                continue;
            }
            let mut after = ModelValue::Place(to);
            match &key {
                Key::Tip(branch) => moved.branches.push(*branch),
                Key::Mark(name) if to.is_none() => {
                    after = ModelValue::Nothing;
                    moved.removed.push(name.clone());
                }
                Key::Mark(name) => moved.marks.push(name.clone()),
                _ => continue,
            }
            if let Key::Tip(branch) = key {
                let name = self.name_of(branch);
                self.weak_read(Key::Name(self.branches[branch].conversation, name));
            }
            if weak { self.weak_set(key, after) } else { self.set(key, after) }
        }
        moved
    }

    pub(crate) fn delete(&mut self, request: &Delete) -> Rule<Expected> {
        if request.turn.turn.is_root() {
            let Some(id) = &request.turn.conversation else { return Err(Stop::Unspecified) };
            self.conversation(id)?;
            return refuse(&[ErrorKind::Protected]);
        }
        let turn = self.turn(&request.turn)?;
        let parent = self.shown_parent(turn);
        let (gone, state) = match request.mode {
            DeleteMode::Cascade => (self.subtree(turn), ModelTurnState::Cascade),
            DeleteMode::Reparent => (vec![turn], ModelTurnState::Reparent),
        };
        let below = self.subtree(turn);
        self.pass(&below);
        // Also what was gone before may be said to lie below, be it below a whole.
        let mut covered = below.clone();
        let mut next = 0;
        while next < covered.len() {
            if let Some((_, whole)) = self.nodes[covered[next]].part {
                covered.push(whole);
            }
            next += 1;
        }
        for other in 0..self.nodes.len() {
            let mut above = self.nodes[other].parent;
            while let Some(at) = above {
                if covered.contains(&at) {
                    self.weak_read(Key::Turn(other));
                }
                above = self.nodes[at].parent;
            }
        }
        for &turn in &gone {
            self.set(Key::Turn(turn), ModelValue::State(state));
        }
        let moved = self.move_places(&gone, parent, false);
        Ok(Expected::Deleted {
            turn,
            turns: gone.len(),
            moved_branches: moved.branches,
            moved_bookmarks: moved.marks,
            removed_bookmarks: moved.removed,
            dry_run: request.dry_run,
        })
    }

    /// Erases what a turn says, with every half and whole that shares the text.
    pub(crate) fn purge(&mut self, turn: &TurnRef) -> Rule<(Ix, Expected)> {
        let named = turn.conversation.as_ref().map(|id| self.conversation(id)).transpose()?;
        // Deleted turns too: their content must be erased as well.
        let Some(turn) = self.refer(named, &turn.turn)? else {
            return refuse(&[ErrorKind::Protected, ErrorKind::Invalid, ErrorKind::Unsupported]);
        };
        self.conversation(&self.conversations[self.nodes[turn].conversation].id.clone())?;
        if self.nodes[turn].purged {
            return Err(Stop::Unspecified);
        }
        let mut family = vec![turn];
        let mut next = 0;
        while next < family.len() {
            let of = family[next];
            let related = (0..self.nodes.len()).filter(|&other| {
                let part_of =
                    |part: Ix, whole: Ix| self.nodes[part].part.is_some_and(|(_, of)| of == whole);
                part_of(of, other) || part_of(other, of)
            });
            let new: Vec<Ix> = related.filter(|other| !family.contains(other)).collect();
            family.extend(new);
            next += 1;
        }
        for &ix in &family {
            self.nodes[ix].purged = true;
            for key in tine_core::metadata::MetadataKey::ALL {
                self.values.remove(&Key::Meta(ix, key));
            }
            // Whether the erasure depends on the making is left open: neither loses anything.
            self.weak_read(Key::Turn(ix));
        }
        Ok((self.nodes[turn].conversation, Expected::Purged(family)))
    }
}

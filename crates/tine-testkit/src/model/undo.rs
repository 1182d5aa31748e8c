//! Undo and redo: what was written is put back, unless later work stands on it.

use std::collections::BTreeSet;

use tine_core::{ConversationId, ErrorKind};

use super::{
    Expected, Ix, Key, ModelChange, ModelTurnState, ModelValue, Op, ReferenceModel, Rule, Stop,
    refuse,
};

/// Nothing there to undo: the contract names no kind.
const NOTHING: [ErrorKind; 5] = [
    ErrorKind::NotFound,
    ErrorKind::Invalid,
    ErrorKind::Conflict,
    ErrorKind::Protected,
    ErrorKind::Unsupported,
];

impl ReferenceModel {
    /// Returns the conversation of a log; also one whose creation was undone.
    fn log_of(&self, id: &ConversationId) -> Rule<Ix> {
        let found = self.conversations.iter().rposition(|conversation| conversation.id == *id);
        found.ok_or(Stop::Refuse(vec![ErrorKind::NotFound]))
    }

    fn at(&self, conversation: Ix, seq: u64) -> Option<Ix> {
        self.ops.iter().position(|op| op.conversation == conversation && op.seq == seq)
    }

    pub(crate) fn undo(&mut self, id: &ConversationId, seq: Option<u64>) -> Rule<(Ix, Expected)> {
        let conversation = self.log_of(id)?;
        if self.conversation(id).is_err() {
            self.tolerate(&[ErrorKind::NotFound]);
        }
        let target = match seq {
            Some(seq) => self.at(conversation, seq),
            None => self.ops.iter().rposition(|op| {
                op.conversation == conversation && op.undone.is_none() && op.is_work()
            }),
        };
        let Some(target) = target else { return refuse(&NOTHING) };
        let op = self.ops[target].clone();
        if op.undone.is_some() || !op.is_work() || op.kind == "purge" {
            return refuse(&NOTHING);
        }

        self.check_free(target, &op)?;
        for change in op.writes.iter().rev() {
            self.put_back(change, &change.after, &change.before)?;
        }
        self.settle();
        self.undos += 1;
        self.ops[target].undone = Some(self.undos);
        self.ops[target].since = Some(self.ops.len());
        Ok((conversation, Expected::Undone { target: op.seq }))
    }

    pub(crate) fn redo(&mut self, id: &ConversationId, seq: Option<u64>) -> Rule<(Ix, Expected)> {
        let conversation = self.log_of(id)?;
        if self.conversation(id).is_err() {
            self.tolerate(&[ErrorKind::NotFound]);
        }
        let target = match seq {
            Some(seq) => self.at(conversation, seq),
            None => {
                let undone = (0..self.ops.len()).filter(|&ix| {
                    self.ops[ix].conversation == conversation && self.ops[ix].undone.is_some()
                });
                undone.max_by_key(|&ix| self.ops[ix].undone)
            }
        };
        let Some(target) = target else { return refuse(&NOTHING) };
        let op = self.ops[target].clone();
        if op.undone.is_none() {
            return refuse(&NOTHING);
        }
        self.check_free(target, &op)?;
        self.check_ground(&op)?;
        for change in &op.writes {
            self.put_back(change, &change.before, &change.after)?;
        }
        self.settle();
        self.ops[target].undone = None;
        self.ops[target].since = Some(self.ops.len());
        Ok((conversation, Expected::Undone { target: op.seq }))
    }

    /// "B depends on A when B read or wrote a record that A wrote."
    fn check_later(&mut self, target: Ix, op: &Op) -> Rule<()> {
        // A name that another branch had in between and gave up is not a dependency.
        let own = |change: &&ModelChange| !change.weak && !matches!(change.key, Key::Name(..));
        let strong: BTreeSet<&Key> = op.writes.iter().filter(own).map(|c| &c.key).collect();
        let mut names = op.writes.iter().filter(|change| matches!(change.key, Key::Name(..)));
        let taken = names.any(|change| {
            let left = if op.undone.is_some() { &change.before } else { &change.after };
            !self.says(&change.key, left)
        });
        if taken {
            return refuse(&[ErrorKind::Protected]);
        }
        let all: BTreeSet<&Key> = op.writes.iter().map(|change| &change.key).collect();
        let later = self.ops.iter().skip(op.since.unwrap_or(target) + 1);
        let later: Vec<&Op> = later.filter(|op| op.undone.is_none() && op.is_work()).collect();
        let surely = later.iter().any(|later| {
            let mut wrote = later.writes.iter().filter(|change| !change.weak);
            // Done again, a cascade would hide what was made below it since; everything else
            // is as well done now as it was then.
            let hides =
                op.writes.iter().any(|c| c.after == ModelValue::State(ModelTurnState::Cascade));
            let stands = later.writes.iter().any(|change| match change.key {
                Key::Turn(turn) => {
                    let parent = self.nodes[turn].parent;
                    parent.is_some_and(|parent| strong.contains(&Key::Turn(parent)))
                }
                _ => false,
            });
            // An entry that changed nothing, kept for its key, stands on nothing for certain.
            let read = !later.writes.is_empty()
                && (op.undone.is_none() || hides && stands)
                && later.reads.iter().any(|key| strong.contains(key));
            read || wrote.any(|change| strong.contains(&change.key))
        });
        let maybe = later.iter().any(|later| {
            let wrote = later.writes.iter().map(|change| &change.key);
            let mut touched = later.reads.iter().chain(&later.weak_reads).chain(wrote);
            touched.any(|key| all.contains(key))
        });
        // What an operation with a purged detail depended on is unknown.
        let erased = later.iter().any(|later| {
            let wrote = later.writes.iter().map(|change| &change.key);
            let mut touched = later.reads.iter().chain(wrote);
            touched.any(|key| match key {
                Key::Turn(turn) | Key::Meta(turn, _) => self.nodes[*turn].purged,
                _ => false,
            })
        });
        if surely {
            return refuse(&[ErrorKind::Protected]);
        }
        if maybe || erased {
            self.tolerate(&[ErrorKind::Protected]);
        }
        Ok(())
    }

    /// What an operation stood on must still be there to do it again.
    fn check_ground(&mut self, op: &Op) -> Rule<()> {
        let parents: Vec<Ix> = op
            .writes
            .iter()
            .filter_map(|change| match change.key {
                Key::Turn(turn) => self.nodes[turn].parent,
                _ => None,
            })
            .collect();
        for key in op.reads.iter().filter(|key| op.writes.iter().all(|c| c.key != **key)) {
            match key {
                Key::Turn(turn) => match self.state(*turn) {
                    ModelTurnState::Live => {}
                    // A turn cannot hang in the air; a tip or a bookmark can move.
                    ModelTurnState::Unborn | ModelTurnState::Cascade if parents.contains(turn) => {
                        return refuse(&[ErrorKind::Protected]);
                    }
                    ModelTurnState::Unborn | ModelTurnState::Cascade => {
                        self.tolerate(&[ErrorKind::Protected])
                    }
                    ModelTurnState::Split { .. } | ModelTurnState::Reparent => {
                        self.tolerate(&[ErrorKind::Protected])
                    }
                },
                Key::Conversation(_) if self.get(key) != ModelValue::There => {
                    return refuse(&[ErrorKind::Protected, ErrorKind::NotFound]);
                }
                _ => {}
            }
        }
        // It may be said to build on whatever it looked at, also where another operation has brought
        // that about again.
        let undone = self.ops.iter().filter(|other| other.undone.is_some() && other.seq != op.seq);
        let mut wrote = undone.flat_map(|other| &other.writes).map(|change| &change.key);
        if wrote.any(|key| op.reads.contains(key) || op.weak_reads.contains(key)) {
            self.tolerate(&[ErrorKind::Protected]);
        }
        for change in op.writes.iter().filter(|change| !self.says(&change.key, &change.before)) {
            if !change.weak {
                return refuse(&[ErrorKind::Protected]);
            }
        }
        Ok(())
    }

    fn check_free(&mut self, target: Ix, op: &Op) -> Rule<()> {
        // What was erased cannot be put back; which operations that stops is left open.
        let purged = |turn: &Ix| self.nodes[*turn].purged;
        let wrote = op.writes.iter().map(|change| &change.key);
        let touched = wrote.clone().chain(&op.reads);
        let mut touched = touched.filter(|key| matches!(key, Key::Turn(turn) if purged(turn)));
        if touched.next().is_some() {
            self.tolerate(&[ErrorKind::Unsupported, ErrorKind::Protected]);
        }
        let purged = |turn: &Ix| self.nodes[*turn].purged;
        let erased = wrote.filter(|key| matches!(key, Key::Meta(turn, _) if purged(turn))).count();
        match self.check_later(target, op) {
            Err(_) if !self.tolerated.is_empty() || erased > 0 => {
                refuse(&[ErrorKind::Protected, ErrorKind::Unsupported])
            }
            Ok(()) if erased > 0 => Err(Stop::Unspecified),
            other => other,
        }
    }

    /// Returns whether a record says this, looking through splits and past what is gone.
    fn says(&self, key: &Key, value: &ModelValue) -> bool {
        self.settled(key, &self.get(key)) == self.settled(key, value)
    }

    fn settled(&self, key: &Key, value: &ModelValue) -> ModelValue {
        match (key, value) {
            (Key::Mark(_), ModelValue::Place(Some(turn))) => match self.nearest_live(*turn) {
                Some(live) => ModelValue::Place(Some(live)),
                None => ModelValue::Nothing,
            },
            (_, ModelValue::Place(Some(turn))) => ModelValue::Place(self.nearest_live(*turn)),
            (_, other) => other.clone(),
        }
    }

    fn put_back(&mut self, change: &ModelChange, from: &ModelValue, to: &ModelValue) -> Rule<()> {
        if self.says(&change.key, from) {
            self.values.insert(change.key.clone(), to.clone());
            return Ok(());
        }
        if change.weak { Ok(()) } else { Err(Stop::Unspecified) }
    }

    /// Tips and bookmarks stay on turns that are shown. What is put back may name one that is
    /// not: then the engine may refuse, or go to the nearest live ancestor.
    fn settle(&mut self) {
        for (key, value) in self.values.clone() {
            let ModelValue::Place(Some(turn)) = value else { continue };
            let live = self.right_most(turn);
            if self.is_live(live) {
                self.values.insert(key, ModelValue::Place(Some(live)));
                continue;
            }
            self.tolerate(&[ErrorKind::Protected]);
            let place = self.nearest_live(turn);
            let gone = place.is_none() && matches!(key, Key::Mark(_));
            self.values
                .insert(key, if gone { ModelValue::Nothing } else { ModelValue::Place(place) });
        }
    }
}

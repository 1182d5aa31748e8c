//! Hosts that return without a word, and people who work on the tree meanwhile.
//!
//! Where a host goes to another branch without sending anything from the fork on, or somebody
//! edits, splits, deletes, undoes and redoes beside it, no tree of the host's can be rebuilt. What
//! is promised all the same, and checked here after every step:
//!
//! - every version that was ever stored is listed by its slot, in the order in which it came;
//! - a version stands as long as its store is not undone and its turn, or a half of it, is shown;
//! - a slot's snapshot is the last version that stands, all of it and nothing of another;
//! - the tree and the slots hold the same versions: a turn of a slot is shown if and only if a
//!   version of it stands;
//! - what an answer names is shown, and says what was sent;
//! - every hash, link and entry of the log holds.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tine_core::facts::Slot;
use tine_core::{Body, ConversationId, EntityId, Message, Role, TurnId};
use tine_engine::{
    Append, Delete, DeleteMode, Edit, Page, Presence, SplitTurn, StoreTurn, TopologyRow,
};

use super::cases::{self, Checked, ensure};
use super::host::text_of;
use crate::world::World;

#[derive(Clone, Copy, Debug)]
enum Step {
    Store { turn: u8, role: u8, text: u8, on: u8 },
    Append { text: u8 },
    Edit { nth: u8, text: u8, follow: bool },
    Split { nth: u8 },
    Delete { nth: u8, cascade: bool },
    Undo { back: Option<u8> },
    Redo { back: Option<u8> },
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let n = any::<u8>;
    let back = || prop::option::weighted(0.7, 0..12u8);
    let step = prop_oneof![
        12 => (0..4u8, 0..4u8, 0..3u8, 0..12u8)
            .prop_map(|(turn, role, text, on)| Step::Store { turn, role, text, on }),
        1 => (0..3u8).prop_map(|text| Step::Append { text }),
        3 => (n(), 0..3u8, any::<bool>())
            .prop_map(|(nth, text, follow)| Step::Edit { nth, text, follow }),
        2 => n().prop_map(|nth| Step::Split { nth }),
        3 => (n(), any::<bool>()).prop_map(|(nth, cascade)| Step::Delete { nth, cascade }),
        4 => back().prop_map(|back| Step::Undo { back }),
        4 => back().prop_map(|back| Step::Redo { back }),
    ];
    vec(step, 1..40)
}

const TALK: &str = "chat";
const TEXTS: [&str; 3] = ["one two", "three four", "five six"];

/// A version of a slot, as the host remembers it.
#[derive(Clone, Debug)]
struct Version {
    slot: Slot,
    entity: EntityId,
    turn: TurnId,
    text: String,
    /// The operation that made it.
    operation: u64,
    undone: bool,
}

struct Watch<'w> {
    world: &'w World,
    talk: ConversationId,
    versions: Vec<Version>,
    /// The entity of each slot, to tell which one an edit is of.
    entities: BTreeMap<Slot, EntityId>,
    halves: BTreeMap<TurnId, (TurnId, TurnId)>,
}

impl Watch<'_> {
    fn rows(&self) -> Vec<TopologyRow> {
        if self.versions.is_empty() { Vec::new() } else { self.world.rows(&self.talk) }
    }

    fn last_operation(&self) -> u64 {
        let page = Page { limit: Some(1), ..Page::default() };
        let log = self.world.engine.operations(&self.world.call, &self.talk, page);
        log.expect("a log").items[0].seq
    }

    fn step(&mut self, step: Step) -> Checked {
        let (engine, call) = (&self.world.engine, &self.world.call);
        let rows = self.rows();
        let pick = |nth: u8| rows.get(usize::from(nth) % rows.len().max(1)).map(|row| row.id);
        match step {
            Step::Store { turn, role, text, on } => self.store(turn, role, text, on, &rows),
            Step::Append { text } if !self.versions.is_empty() => {
                let message = Message::text(Role::User, TEXTS[usize::from(text)]);
                let append = Append::to(self.talk.clone(), vec![message]);
                engine.append(call, append).map_err(|error| error.to_string()).map(|_| ())
            }
            Step::Edit { nth, text, follow } => match pick(nth) {
                Some(turn) => self.edit(turn, TEXTS[usize::from(text)], follow),
                None => Ok(()),
            },
            Step::Split { nth } => {
                if let Some(turn) = pick(nth) {
                    let split = SplitTurn { turn: self.world.turn(turn), offset: 2 };
                    if let Ok(done) = engine.split(call, split) {
                        self.halves.insert(done.whole, (done.left.id, done.right.id));
                    }
                }
                Ok(())
            }
            Step::Delete { nth, cascade } => {
                if let Some(turn) = pick(nth) {
                    let mode = if cascade { DeleteMode::Cascade } else { DeleteMode::Reparent };
                    let turn = self.world.turn(turn);
                    let delete = Delete { turn, mode, force: false, dry_run: false };
                    engine.delete(call, delete).map_err(|error| error.to_string())?;
                }
                Ok(())
            }
            Step::Undo { back } => self.turn_back(back, true),
            Step::Redo { back } => self.turn_back(back, false),
            Step::Append { .. } => Ok(()),
        }
    }

    fn store(&mut self, turn: u8, role: u8, text: u8, on: u8, rows: &[TopologyRow]) -> Checked {
        let text = TEXTS[usize::from(text)];
        let message = match role {
            0 => Message::text(Role::User, text),
            1 => Message::text(Role::Assistant, text),
            _ => Message::tool(format!("call-{role}"), text),
        };
        let mut request = StoreTurn::new(TALK, format!("t{turn}"), message);
        match on {
            0 => request.branch = Some("side".to_owned()),
            1 => {
                let nth = usize::from(turn) % rows.len().max(1);
                request.parent = rows.get(nth).map(|row| row.id.into());
            }
            2 if !rows.is_empty() => {
                request.parent = Some(tine_core::Reference::parse("root").expect("a reference"));
            }
            _ => {}
        }
        let stored = self.world.engine.store_turn(&self.world.call, request);
        let stored = stored.map_err(|error| format!("refused: {error}"))?;
        ensure!(
            stored.turn.presence == Presence::Live,
            "the answer names {}, which is {:?}",
            stored.turn.id,
            stored.turn.presence
        );
        let listed = self.observed(stored.entity);
        let last = listed.iter().rfind(|one| one.observation.retracts.is_none());
        let observed = last.and_then(|one| one.observation.turn);
        let observed = observed.ok_or("a store without an observation")?;
        self.entities.insert(stored.slot.clone(), stored.entity);
        self.versions.push(Version {
            slot: stored.slot,
            entity: stored.entity,
            turn: observed,
            text: text.to_owned(),
            operation: self.last_operation(),
            undone: false,
        });
        Ok(())
    }

    fn edit(&mut self, turn: TurnId, text: &str, follow: bool) -> Checked {
        let (engine, call) = (&self.world.engine, &self.world.call);
        let old = engine.turn(call, self.world.turn(turn)).map_err(|error| error.to_string())?;
        let edit = Edit {
            turn: self.world.turn(turn),
            body: Body::Text(text.to_owned()),
            branch: follow.then(|| "main".to_owned()),
            reuse: true,
        };
        let before = self.last_operation();
        let new = engine.edit(call, edit).map_err(|error| error.to_string())?.turn;
        let operation = self.last_operation();
        if let Some(slot) = new.origin.slot.filter(|slot| old.origin.slot.as_ref() == Some(slot)) {
            ensure!(operation > before, "an edit of a slot leaves no entry in the log");
            let entity = self.entities[&slot];
            let (text, turn) = (text.to_owned(), new.id);
            self.versions.push(Version { slot, entity, turn, text, operation, undone: false });
        }
        Ok(())
    }

    fn turn_back(&mut self, back: Option<u8>, undo: bool) -> Checked {
        if self.versions.is_empty() {
            return Ok(());
        }
        let (engine, call) = (&self.world.engine, &self.world.call);
        let seq = back.map(|back| self.last_operation().saturating_sub(u64::from(back)).max(2));
        // The first operation made the conversation, and stays.
        if seq.is_none() && undo && self.versions.iter().filter(|one| !one.undone).count() < 2 {
            return Ok(());
        }
        let done = if undo {
            engine.undo(call, &self.talk, seq)
        } else {
            engine.redo(call, &self.talk, seq)
        };
        let Ok(done) = done else {
            return Ok(());
        };
        // Undoing an undo is redoing: the log tells what holds.
        let log = engine.operations(call, &self.talk, Page { limit: Some(1_000), cursor: None });
        let log = log.map_err(|error| error.to_string())?.items;
        let target = log.iter().find(|one| one.seq == done.target).ok_or("a missing entry")?;
        for version in self.versions.iter_mut().filter(|one| one.operation == done.target) {
            version.undone = target.undone;
        }
        Ok(())
    }

    fn observed(&self, entity: EntityId) -> Vec<tine_engine::ObservationView> {
        let page = Page { limit: Some(1_000), ..Page::default() };
        let listed = self.world.engine.observations(&self.world.call, entity, page);
        listed.expect("a page of observations").items
    }

    /// Whether a turn, or anything of it, is shown.
    fn is_shown(&self, turn: TurnId, rows: &[TopologyRow]) -> bool {
        rows.iter().any(|row| row.id == turn)
            || self.halves.get(&turn).is_some_and(|(left, right)| {
                self.is_split(turn) && [left, right].iter().any(|half| self.is_shown(**half, rows))
            })
    }

    fn is_split(&self, turn: TurnId) -> bool {
        // A reference to a whole means its last half; the whole itself is named by its hash.
        self.world
            .engine
            .turn(&self.world.call, self.world.turn(turn))
            .is_ok_and(|view| view.presence != Presence::Live || view.id != turn)
    }

    fn check(&self) -> Checked {
        let rows = self.rows();
        let mut by_entity: BTreeMap<EntityId, Vec<&Version>> = BTreeMap::new();
        for version in &self.versions {
            by_entity.entry(version.entity).or_default().push(version);
        }
        let mut standing = Vec::new();
        for (entity, versions) in by_entity {
            let stands = |one: &Version| !one.undone && self.is_shown(one.turn, &rows);
            let listed = self.observed(entity);
            let listed = listed.iter().filter(|one| one.observation.retracts.is_none());
            let listed: Vec<(String, bool)> = listed
                .map(|one| (text_of(one.observation.fields.get("content")), !one.retracted))
                .collect();
            let expected: Vec<(String, bool)> =
                versions.iter().map(|one| (one.text.clone(), stands(one))).collect();
            let slot = &versions[0].slot;
            ensure!(listed == expected, "{slot:?} lists {listed:?}; stored was {expected:?}");
            let snapshot = text_of(self.world.entity(entity).snapshot.fields.get("content"));
            let last = versions.iter().rev().find(|one| stands(one));
            let last = last.map(|one| one.text.clone()).unwrap_or_default();
            ensure!(snapshot == last, "{slot:?} says {snapshot}; the last that stands is {last}");
            standing.extend(versions.iter().filter(|one| stands(one)).map(|one| one.turn));
        }
        for row in &rows {
            let view = self.world.engine.turn(&self.world.call, self.world.turn(row.id));
            let view = view.map_err(|error| error.to_string())?;
            ensure!(
                view.origin.slot.is_none() || standing.contains(&row.id),
                "the turn {} of {:?} is shown, and no version of it stands",
                row.preview,
                view.origin.slot
            );
        }
        Ok(())
    }
}

#[test]
fn slots_match_the_tree_after_any_sequence_of_operations() {
    let check = |world: &World, steps: &Vec<Step>| {
        let mut watch = Watch {
            world,
            talk: ConversationId::from_stored(TALK),
            versions: Vec::new(),
            entities: BTreeMap::new(),
            halves: BTreeMap::new(),
        };
        for step in steps {
            let done = watch.step(*step).and_then(|()| watch.check());
            done.map_err(|why| format!("at {step:?}: {why}"))?;
        }
        let problems = world.engine.verify().map_err(|error| error.to_string())?.problems;
        ensure!(problems.is_empty(), "verify finds {problems:?}");
        Ok(())
    };
    cases::run("slots_match_the_tree_after_any_sequence_of_operations", 256, script, check);
}

//! Any edits on two sides: after a sync in both directions each has what the other has, and a
//! second one moves nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tine_core::{ConversationId, Name, TurnHash, TurnId};
use tine_engine::{
    Append, BundleRecord, ConversationPatch, Delete, DeleteMode, Edit, Fork, ForkPoint,
    MetadataPatch, Pulled, SplitTurn, TurnRef, carry,
};
use tine_store::{MemoryStore, Turn};

use crate::world::{World, user};

/// An action on one side; numbers choose among the existing records.
#[derive(Clone, Debug)]
enum Act {
    Say { branch: usize },
    SayUnder { turn: usize },
    Fork { turn: usize },
    Edit { turn: usize },
    Tag { turn: usize },
    Title,
    Split { turn: usize },
    Delete { turn: usize, alone: bool },
    Undo,
    UndoNamed { operation: u64 },
    Redo,
}

impl Act {
    /// Whether it only adds.
    fn adds(&self) -> bool {
        matches!(self, Act::Say { .. } | Act::SayUnder { .. } | Act::Fork { .. } | Act::Edit { .. })
    }
}

fn acts() -> impl Strategy<Value = Act> {
    let one = 0..64_usize;
    prop_oneof![
        4 => one.clone().prop_map(|branch| Act::Say { branch }),
        2 => one.clone().prop_map(|turn| Act::SayUnder { turn }),
        1 => one.clone().prop_map(|turn| Act::Fork { turn }),
        2 => one.clone().prop_map(|turn| Act::Edit { turn }),
        1 => one.clone().prop_map(|turn| Act::Tag { turn }),
        1 => Just(Act::Title),
        1 => one.clone().prop_map(|turn| Act::Split { turn }),
        2 => (one, any::<bool>()).prop_map(|(turn, alone)| Act::Delete { turn, alone }),
        2 => Just(Act::Undo),
        1 => (0..64_u64).prop_map(|operation| Act::UndoNamed { operation }),
        1 => Just(Act::Redo),
    ]
}

/// Rounds of acts here, acts there, and whether a sync follows that goes one way only.
type Story = Vec<(Vec<Act>, Vec<Act>, bool)>;

fn stories() -> impl Strategy<Value = Story> {
    let some = || proptest::collection::vec(acts(), 0..6);
    proptest::collection::vec((some(), some(), any::<bool>()), 1..5)
}

fn act(side: &World, talk: &ConversationId, act: &Act, nth: usize) {
    let rows = side.rows(talk);
    let turn = |chosen: usize| rows.get(chosen % rows.len().max(1)).map(|row| row.id);
    let said = format!("said {nth} {:?}", side.engine.log_end(&side.call, talk).expect("a look"));
    let (engine, call) = (&side.engine, &side.call);
    // What is refused, as undoing what others build on, is part of the game.
    match act {
        Act::Say { branch } => {
            let branches = engine.branches(call, talk).expect("a listing");
            let branch = branches[branch % branches.len()].name.to_string();
            let append = Append::to(talk.clone(), vec![user(&said)]);
            engine
                .append(call, Append { branch: Some(branch), ..append })
                .map(drop)
                .expect("it is accepted");
        }
        Act::SayUnder { turn: chosen } => {
            if let Some(parent) = turn(*chosen) {
                side.say_under(talk, parent, &format!("b{}", chosen % 4), user(&said));
            }
        }
        Act::Fork { turn: chosen } => {
            if let Some(at) = turn(*chosen) {
                let point = ForkPoint::At(at.into());
                let name = Some(Name::from_stored(format!("f{}", chosen % 3)));
                let _ = engine.fork(call, Fork { conversation: Some(talk.clone()), point, name });
            }
        }
        Act::Edit { turn: chosen } => {
            if let Some(at) = turn(*chosen) {
                let (turn, body) = (TurnRef::of(at), user(&said).body);
                let _ = engine.edit(call, Edit { turn, body, branch: None, reuse: false });
            }
        }
        Act::Tag { turn: chosen } => {
            if let Some(at) = turn(*chosen) {
                let add_tags = vec![format!("t{nth}")];
                let patch = MetadataPatch { add_tags, ..MetadataPatch::default() };
                engine
                    .patch_metadata(call, TurnRef::of(at), patch)
                    .map(drop)
                    .expect("it is accepted");
            }
        }
        Act::Title => {
            let patch =
                ConversationPatch { title: Some(Some(said)), ..ConversationPatch::default() };
            let _ = engine.patch_conversation(call, talk, patch);
        }
        Act::Split { turn: chosen } => {
            if let Some(at) = turn(*chosen) {
                let _ = engine.split(call, SplitTurn { turn: TurnRef::of(at), offset: 3 });
            }
        }
        Act::Delete { turn: chosen, alone } => {
            if let Some(at) = turn(*chosen) {
                let mode = if *alone { DeleteMode::Reparent } else { DeleteMode::Cascade };
                let turn = TurnRef::of(at);
                let _ = engine.delete(call, Delete { turn, mode, force: true, dry_run: false });
            }
        }
        // The making of the conversation itself stays.
        Act::Undo if rows.is_empty() => {}
        Act::Undo => {
            let _ = engine.undo(call, talk, None);
        }
        Act::UndoNamed { operation } => {
            let end = engine.log_end(call, talk).expect("a look").map_or(0, |end| end.seq);
            if end > 1 {
                let _ = engine.undo(call, talk, Some(2 + operation % (end - 1)));
            }
        }
        Act::Redo => {
            let _ = engine.redo(call, talk, None);
        }
    }
}

fn pull(to: &World, from: &World, talk: &ConversationId) -> Pulled {
    let ends = [from, to].map(|side| side.engine.log_end(&side.call, talk).expect("a look"));
    let done = carry(&from.engine, &to.engine, &to.call, talk, ends.into()).expect("a pull");
    to.verified();
    done
}

/// Turns of a side: their parents, and which of them are shown.
struct Held {
    parents: HashMap<TurnId, Option<TurnId>>,
    hashes: HashMap<TurnId, TurnHash>,
    /// The wholes of halves.
    halves: HashMap<TurnId, TurnId>,
    /// The halves that are shown in place of a turn.
    splits: HashMap<TurnId, [TurnId; 2]>,
    shown: HashSet<TurnId>,
}

impl Held {
    /// Whether anything but halves of turns is shown below a turn.
    fn bears(&self, turn: TurnId) -> bool {
        let below = self.parents.iter().filter(|(_, parent)| **parent == Some(turn));
        below.into_iter().any(|(id, _)| {
            self.shown.contains(id) && !self.halves.contains_key(id) || self.bears(*id)
        })
    }

    /// Whether a turn is here and it, or a half that is shown in its place, is not shown.
    fn has_gone(&self, turn: TurnId) -> bool {
        match self.splits.get(&turn) {
            _ if !self.parents.contains_key(&turn) || self.shown.contains(&turn) => false,
            Some(halves) => halves.iter().any(|half| self.has_gone(*half)),
            None => true,
        }
    }
}

fn held(side: &World, talk: &ConversationId) -> Held {
    let (mut parents, mut hashes, mut halves) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut splits = HashMap::new();
    for record in side.export() {
        match record {
            BundleRecord::Turn { parent, turn: Turn { id, hash, origin, .. } } => {
                parents.insert(id, parent);
                hashes.insert(id, hash);
                halves.extend(origin.part_of.map(|whole| (id, whole)));
            }
            BundleRecord::Split { whole, left, right, .. } => {
                splits.insert(whole, [left, right]);
            }
            _ => {}
        }
    }
    let shown = side.rows(talk).iter().map(|row| row.id).collect();
    Held { parents, hashes, halves, splits, shown }
}

/// What one side shows, the other has; unless it, or something above it, is gone there. What was
/// split on both sides in the same way has the same hashes, and other ids.
fn check_nothing_lost(one: &Held, other: &Held) {
    let known: HashSet<&TurnHash> = other.hashes.values().collect();
    for turn in one.shown.iter().filter(|turn| !known.contains(&one.hashes[*turn])) {
        let mut above = Some(*turn);
        let mut gone = false;
        while let Some(turn) = above {
            gone |= other.parents.contains_key(&turn) && !other.shown.contains(&turn);
            // Halves of what is gone are gone, too.
            let mut whole = one.halves.get(&turn);
            while let Some(turn) = whole {
                gone |= other.has_gone(*turn);
                whole = one.halves.get(turn);
            }
            above = one.parents[&turn];
        }
        assert!(gone || one.halves.contains_key(turn) && !one.bears(*turn), "{turn} is lost");
    }
}

fn run_story(story: &Story) {
    let here = World::seeded(Arc::new(MemoryStore::new()), 1);
    let there = World::seeded(Arc::new(MemoryStore::new()), 2);
    let talk = here.talk("talk");
    here.say(&talk, &["a", "b", "c"]);
    pull(&there, &here, &talk);
    for (nth, (mine, theirs, one_way)) in story.iter().enumerate() {
        for (at, what) in mine.iter().enumerate() {
            act(&here, &talk, what, 100 * nth + at);
        }
        for (at, what) in theirs.iter().enumerate() {
            act(&there, &talk, what, 100 * nth + 50 + at);
        }
        pull(&here, &there, &talk);
        if *one_way {
            continue;
        }
        pull(&there, &here, &talk);
        let (mine, theirs) = (held(&here, &talk), held(&there, &talk));
        check_nothing_lost(&mine, &theirs);
        check_nothing_lost(&theirs, &mine);
        let before = (here.export(), there.export());
        for done in [pull(&here, &there, &talk), pull(&there, &here, &talk)] {
            assert_eq!((done.turns, done.operations), (0, 0), "a second sync moves nothing");
            assert!(done.bytes < 1_000, "nor does it hand over any turn: {}", done.bytes);
        }
        assert!(before == (here.export(), there.export()));
    }
    pull(&there, &here, &talk);
    let adds = |acts: &[Act]| acts.iter().all(Act::adds);
    if story.iter().all(|(mine, theirs, _)| adds(mine) && adds(theirs)) {
        assert_eq!(held(&here, &talk).shown, held(&there, &talk).shown, "the same turns");
    }
}

fn check(cases: u32, stories: impl Strategy<Value = Story>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[10; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let ran = runner.run(&stories, |story| {
        run_story(&story);
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn any_edits_on_two_sides_end_on_both() {
    check(400, stories());
}

#[test]
fn additions_on_two_sides_end_as_the_same_turns() {
    let added = stories().prop_map(|story| {
        let adding = |acts: Vec<Act>| acts.into_iter().filter(Act::adds).collect();
        let each = |(mine, theirs, way)| (adding(mine), adding(theirs), way);
        story.into_iter().map(each).collect::<Story>()
    });
    check(100, added);
}

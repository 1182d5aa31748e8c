//! Any sequence of calls with commits and merges among them.
//!
//! After every step: every hash, link and entry of the log holds; what is refused changes
//! nothing; a commit that is there builds on commits that are there, is younger than they are, and
//! has the hash that it says. In the end another store that imports all of it holds the same
//! bytes.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use tine_core::{ConversationId, Json, TurnId};
use tine_engine::{
    Append, CommitQuery, Decision, Delete, DeleteMode, Edit, Error, Inject, NewCommit, Page, Purge,
    PurgeTarget, ResolveConflicts, Result, SplitTurn, Summary, Take, TurnRef, WindowRef,
};
use tine_store::MemoryStore;

use crate::knowledge::cases::{self, Checked, ensure};
use crate::world::{World, reference, user};

const BRANCHES: [&str; 3] = ["main", "side", "other"];
const FIELDS: [&str; 2] = ["budget", "city"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Say { on: u8, text: u8 },
    Fork { nth: u8, name: u8 },
    Know { nth: u8, field: u8, value: u8 },
    Commit { on: u8 },
    Range { start: u8, end: u8 },
    Merge { from: u8, into: u8, with_summary: bool },
    Decide { on: u8, side: u8 },
    Inject { nth: u8, on: u8 },
    Edit { nth: u8, text: u8, on: u8 },
    Split { nth: u8 },
    Delete { nth: u8, cascade: bool, force: bool },
    Revert { on: u8, nth: u8 },
    Purge { nth: u8 },
    Undo { back: Option<u8> },
    Redo { back: Option<u8> },
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let n = any::<u8>;
    let back = || prop::option::weighted(0.5, 0..12_u8);
    let step = prop_oneof![
        8 => (n(), n()).prop_map(|(on, text)| Step::Say { on, text }),
        2 => (n(), n()).prop_map(|(nth, name)| Step::Fork { nth, name }),
        5 => (n(), n(), n()).prop_map(|(nth, field, value)| Step::Know { nth, field, value }),
        6 => n().prop_map(|on| Step::Commit { on }),
        2 => (n(), n()).prop_map(|(start, end)| Step::Range { start, end }),
        6 => (n(), n(), any::<bool>()).prop_map(|(from, into, with_summary)| Step::Merge { from, into, with_summary }),
        2 => (n(), n()).prop_map(|(on, side)| Step::Decide { on, side }),
        1 => (n(), n()).prop_map(|(nth, on)| Step::Inject { nth, on }),
        2 => (n(), n(), n()).prop_map(|(nth, text, on)| Step::Edit { nth, text, on }),
        2 => n().prop_map(|nth| Step::Split { nth }),
        2 => (n(), any::<bool>(), any::<bool>())
            .prop_map(|(nth, cascade, force)| Step::Delete { nth, cascade, force }),
        2 => (n(), n()).prop_map(|(on, nth)| Step::Revert { on, nth }),
        1 => n().prop_map(|nth| Step::Purge { nth }),
        3 => back().prop_map(|back| Step::Undo { back }),
        3 => back().prop_map(|back| Step::Redo { back }),
    ];
    vec(step, 1..40)
}

/// The turns that are shown, in the order in which they were made.
fn turns(world: &World, talk: &ConversationId) -> Vec<TurnId> {
    let mut ids: Vec<TurnId> = world.rows(talk).into_iter().map(|row| row.id).collect();
    ids.sort();
    ids
}

fn pick<T: Copy>(from: &[T], nth: u8) -> Option<T> {
    from.get(usize::from(nth) % from.len().max(1)).copied()
}

fn branch(nth: u8) -> &'static str {
    BRANCHES[usize::from(nth) % BRANCHES.len()]
}

/// Makes the call of a step; `None` when there is nothing to make it with.
fn perform(world: &World, talk: &ConversationId, step: Step) -> Option<Result<()>> {
    let (engine, call) = (&world.engine, &world.call);
    let turns = turns(world, talk);
    let turn = |nth| pick(&turns, nth);
    let conversation = talk.clone();
    Some(match step {
        Step::Say { on, text } => {
            let message = user(&format!("Words number {text} about Tokyo."));
            let request = Append::to(conversation, vec![message]);
            let request = Append { branch: Some(branch(on).to_owned()), ..request };
            engine.append(call, request).map(drop)
        }
        Step::Fork { nth, name } => {
            let fork = tine_engine::Fork {
                conversation: Some(conversation),
                point: tine_engine::ForkPoint::At(turn(nth)?.into()),
                name: Some(tine_core::Name::from_stored(branch(name))),
            };
            engine.fork(call, fork).map(drop)
        }
        Step::Know { nth, field, value } => {
            let field = FIELDS[usize::from(field) % FIELDS.len()];
            let value = if value % 4 == 0 { Json::Null } else { u64::from(value % 4).into() };
            world.try_trip(turn(nth)?, &[(field, value)]).map(drop)
        }
        Step::Commit { on } => {
            engine.commit(call, NewCommit::of(conversation, "so far").on(branch(on))).map(drop)
        }
        Step::Range { start, end } => {
            let name = |nth| Some(reference(&turn(nth)?.to_string()));
            let window = WindowRef { start: name(start)?, end: name(end)? };
            let request = NewCommit::of(conversation, "a range");
            engine.commit(call, NewCommit { window: Some(window), ..request }).map(drop)
        }
        Step::Merge { from, into, with_summary } => {
            let mut request = world.merging(talk, branch(from), branch(into));
            request.summary = if with_summary { Summary::Generated } else { Summary::None };
            engine.merge(call, request).map(drop)
        }
        Step::Decide { on, side } => {
            let query = CommitQuery {
                conversation: Some(conversation.clone()),
                branch: Some(branch(on).to_owned()),
            };
            let last =
                engine.commits(call, query, Page::default()).ok()?.items.into_iter().next()?;
            let state = last.commit.facets?.state;
            let (entity, _, field, _) = state.conflicts().next()?;
            let take = match side % 3 {
                0 => Take::Nothing,
                side => Take::Side(usize::from(side)),
            };
            let decisions = vec![Decision { entity, field: field.to_owned(), take }];
            let request = ResolveConflicts {
                conversation,
                branch: Some(branch(on).to_owned()),
                decisions,
                message: None,
                author: None,
            };
            engine.resolve_conflicts(call, request).map(drop)
        }
        Step::Inject { nth, on } => {
            let turn = TurnRef::of(turn(nth)?);
            let branch = Some(branch(on).to_owned());
            engine.inject(call, Inject { turn, conversation, branch }).map(drop)
        }
        Step::Edit { nth, text, on } => {
            let edit = Edit {
                turn: TurnRef::of(turn(nth)?),
                body: tine_core::Body::Text(format!("Edited {text}.")),
                branch: (on % 2 == 0).then(|| branch(on).to_owned()),
                reuse: true,
            };
            engine.edit(call, edit).map(drop)
        }
        Step::Split { nth } => {
            let split = SplitTurn { turn: TurnRef::of(turn(nth)?), offset: 3 };
            engine.split(call, split).map(drop)
        }
        Step::Delete { nth, cascade, force } => {
            let mode = if cascade { DeleteMode::Cascade } else { DeleteMode::Reparent };
            let turn = TurnRef::of(turn(nth)?);
            engine.delete(call, Delete { turn, mode, force, dry_run: false }).map(drop)
        }
        Step::Revert { on, nth } => {
            let request = tine_engine::MoveBranch {
                conversation,
                branch: branch(on).to_owned(),
                to: Some(turn(nth)?.into()),
                expected_tip: None,
            };
            engine.revert(call, request).map(drop)
        }
        Step::Purge { nth } => {
            let target = PurgeTarget::Turn(TurnRef::of(turn(nth)?));
            let asked = engine.purge(call, Purge { target: target.clone(), confirm: None });
            asked.and_then(|asked| {
                engine.purge(call, Purge { target, confirm: asked.confirm }).map(drop)
            })
        }
        Step::Undo { back } => engine.undo(call, talk, number(world, talk, back)).map(drop),
        Step::Redo { back } => engine.redo(call, talk, number(world, talk, back)).map(drop),
    })
}

/// An operation counted from the end of the log.
fn number(world: &World, talk: &ConversationId, back: Option<u8>) -> Option<u64> {
    let page = world.engine.operations(&world.call, talk, Page::default()).ok()?;
    page.items.get(usize::from(back?)).map(|operation| operation.seq)
}

/// What holds of the commits that are there.
fn check_commits(world: &World, talk: &ConversationId) -> Checked {
    let query = CommitQuery { conversation: Some(talk.clone()), branch: None };
    let all = world.engine.commits(&world.call, query, Page::default());
    let all = all.map_err(|error| error.to_string())?.items;
    for view in &all {
        for parent in &view.commit.parents {
            let parent = all.iter().find(|other| other.hash == *parent);
            let younger = parent.map(|it| it.commit.created_at < view.commit.created_at);
            ensure!(younger == Some(true), "a parent of {} is gone or younger", view.hash);
        }
        let hash = view.commit.hash();
        ensure!(hash.is_none_or(|hash| hash == view.hash), "{} has another hash", view.hash);
        let empty = view.commit.window.is_none();
        ensure!(empty == (view.commit.turns == 0), "{} seals no turns", view.hash);
    }
    Ok(())
}

fn play(world: &World, steps: &[Step]) -> Checked {
    let talk = world.talk("talk");
    world.say(&talk, &["Plan a trip to Tokyo."]);
    for (at, step) in steps.iter().enumerate() {
        let before = world.export();
        match perform(world, &talk, *step) {
            None | Some(Ok(())) => {}
            Some(Err(Error::Store(error))) => return Err(format!("step {at}, {step:?}: {error}")),
            Some(Err(error)) => {
                ensure!(
                    world.export() == before,
                    "{step:?} was refused ({error}) and did something"
                );
            }
        }
        let found = world.engine.verify().map_err(|error| error.to_string())?;
        ensure!(found.problems.is_empty(), "step {at}, {step:?}: {:?}", found.problems);
        if world.engine.conversation(&world.call, &talk).is_err() {
            // Its making was undone.
            return Ok(());
        }
        check_commits(world, &talk)?;
    }
    let records = world.export();
    let other = World::over(Arc::new(MemoryStore::new()), None);
    let mut all = records.iter().cloned().map(Ok);
    other.engine.import(None, &mut all).map_err(|error| error.to_string())?;
    ensure!(other.export() == records, "what was imported is not what was exported");
    Ok(())
}

#[test]
fn commits_stay_complete_and_travel_after_any_sequence_of_operations() {
    cases::run("whatever_is_done_commits", 48, script, |world, steps| play(world, steps));
}

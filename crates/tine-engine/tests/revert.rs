//! Revert, restore and tails.

use tine_core::{ErrorKind, TurnId};
use tine_engine::MoveBranch;

use crate::world::{World, bot, for_each_store, reference};

fn to(talk: &tine_core::ConversationId, turn: Option<TurnId>) -> MoveBranch {
    MoveBranch {
        conversation: talk.clone(),
        branch: "main".to_owned(),
        to: turn.map(Into::into),
        expected_tip: None,
    }
}

fn tails(world: &World, talk: &tine_core::ConversationId) -> Vec<String> {
    let tails = world.engine.tails(&world.call, talk).expect("tails");
    tails.into_iter().map(|tail| tail.preview).collect()
}

#[test]
fn revert_moves_a_branch_back_and_keeps_the_tail_reachable() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let branch = world.engine.revert(&world.call, to(&talk, Some(said[0]))).expect("a revert");
        assert_eq!(branch.tip, Some(said[0]));
        assert_eq!(world.path(&talk, "main"), "a");
        assert_eq!(world.tree(&talk), "a(b(c))");
        assert_eq!(tails(world, &talk), ["c"]);
        assert_eq!(world.path(&talk, &said[2].to_string()), "a b c");
    });
}

#[test]
fn restore_takes_the_last_revert_back() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.engine.revert(&world.call, to(&talk, Some(said[1]))).expect("a revert");
        world.engine.revert(&world.call, to(&talk, Some(said[0]))).expect("a revert");
        world.engine.restore(&world.call, to(&talk, None)).expect("a restore");
        assert_eq!(world.path(&talk, "main"), "a b");
        world.engine.restore(&world.call, to(&talk, None)).expect("a restore");
        assert_eq!(world.path(&talk, "main"), "a b c");
        assert_eq!(tails(world, &talk), [""; 0]);
        world.refused(ErrorKind::Invalid, |engine, call| engine.restore(call, to(&talk, None)));
    });
}

#[test]
fn restore_looks_through_splits_at_both_ends() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["ab", "cd"]);
        world.engine.revert(&world.call, to(&talk, Some(said[0]))).expect("a revert");
        for turn in [said[0], said[1]] {
            let split = tine_engine::SplitTurn { turn: world.turn(turn), offset: 1 };
            world.engine.split(&world.call, split).expect("a split");
        }
        assert_eq!(world.path(&talk, "main"), "a b");
        world.engine.restore(&world.call, to(&talk, None)).expect("a restore");
        assert_eq!(world.path(&talk, "main"), "a b c d");
    });
}

#[test]
fn restore_moves_forward_to_any_turn_below_the_tip() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.engine.revert(&world.call, to(&talk, Some(said[0]))).expect("a revert");
        world.engine.restore(&world.call, to(&talk, Some(said[1]))).expect("a restore");
        assert_eq!(world.path(&talk, "main"), "a b");
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.restore(call, to(&talk, Some(said[0])))
        });
    });
}

#[test]
fn revert_goes_only_back_on_the_branchs_own_line() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let aside = world.say_under(&talk, said[0], "side", bot("x"));
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.revert(call, to(&talk, Some(aside)))
        });
        let root = MoveBranch { to: Some(reference("root")), ..to(&talk, None) };
        world.engine.revert(&world.call, root).expect("a revert to the root");
        assert_eq!(world.path(&talk, "main"), "");
        assert_eq!(tails(world, &talk), ["b"]);
    });
}

#[test]
fn revert_checks_the_expected_tip() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.refused(ErrorKind::Conflict, |engine, call| {
            let expected_tip = Some(said[1].into());
            engine.revert(call, MoveBranch { expected_tip, ..to(&talk, Some(said[0])) })
        });
    });
}

#[test]
fn a_tail_is_listed_until_a_branch_leads_there_or_it_is_pruned() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.engine.revert(&world.call, to(&talk, Some(said[0]))).expect("a revert");
        world.fork_at(&talk, said[2], "keep");
        assert_eq!(tails(world, &talk), [""; 0]);
        world.engine.delete_branch(&world.call, &talk, "keep").expect("a branch can go");
        assert_eq!(tails(world, &talk), ["c"]);
        crate::delete::cascade(world, said[1]);
        assert_eq!(tails(world, &talk), [""; 0]);
    });
}

//! What was deleted, undone or erased on one side, and what the other side does with it.

use tine_core::{ConversationId, TurnId};
use tine_engine::{Delete, DeleteMode, Pulled, PurgeTarget, SplitTurn, TurnRef};

use crate::purge::{gone, purge};
use crate::sync::{another, pull, sync};
use crate::world::{World, for_each_store};

fn split(side: &World, turn: TurnId, offset: usize) -> [TurnId; 2] {
    let split = SplitTurn { turn: TurnRef::of(turn), offset };
    let done = side.engine.split(&side.call, split).expect("a split");
    [done.left.id, done.right.id]
}

fn delete(side: &World, turn: TurnId, mode: DeleteMode) {
    let turn = TurnRef::of(turn);
    let delete = Delete { turn, mode, force: false, dry_run: false };
    side.engine.delete(&side.call, delete).expect("a deletion");
}

fn erase(side: &World, turn: TurnId) {
    purge(side, PurgeTarget::Turn(TurnRef::of(turn)));
}

/// A conversation on two sides that have both gone on, and the turn of it that they share.
fn shared(here: &World, there: &World) -> (ConversationId, TurnId) {
    let talk = here.talk("talk");
    let secret = here.say(&talk, &["a", "two secret words"])[1];
    pull(there, here, &talk);
    here.say_under(&talk, here.rows(&talk)[0].id, "other", crate::world::bot("here"));
    (talk, secret)
}

#[test]
fn a_turn_deleted_here_does_not_come_back_as_its_halves() {
    type Remove = fn(&World, TurnId);
    let removals: [(Remove, &str); 4] = [
        (erase, "a( here)"),
        (|side, turn| delete(side, turn, DeleteMode::Cascade), "a(here)"),
        (|side, turn| delete(side, turn, DeleteMode::Reparent), "a(here)"),
        (
            |side, turn| {
                let [_, right] = split(side, turn, 3);
                delete(side, right, DeleteMode::Cascade);
            },
            "a(two here)",
        ),
    ];
    for (remove, left) in removals {
        for_each_store(|here| {
            let there = another(7);
            let (talk, secret) = shared(here, &there);
            remove(here, secret);
            assert_eq!(here.tree(&talk), left);
            // Also halves of halves, and also those that come later.
            let [_, right] = split(&there, secret, 4);
            split(&there, right, 6);
            there.say(&talk, &["below"]);
            let done = pull(here, &there, &talk);
            assert_eq!((done.turns, done.withheld), (0, 4));
            there.say(&talk, &["more"]);
            assert_eq!(pull(here, &there, &talk).turns, 0);
            assert_eq!(here.tree(&talk), left);
        });
    }
}

#[test]
fn restoring_a_turn_here_admits_its_halves() {
    for_each_store(|here| {
        let there = another(7);
        let (talk, secret) = shared(here, &there);
        delete(here, secret, DeleteMode::Cascade);
        split(&there, secret, 3);
        there.say(&talk, &["below"]);
        assert_eq!(pull(here, &there, &talk).turns, 0);
        here.engine.undo(&here.call, &talk, None).expect("an undo");
        assert_eq!(pull(here, &there, &talk).turns, 3);
    });
}

#[test]
fn an_erasure_finds_the_halves_that_came_from_another_store() {
    for_each_store(|here| {
        let there = another(7);
        let (talk, secret) = shared(here, &there);
        let [_, right] = split(&there, secret, 4);
        let [_, last] = split(&there, right, 6);
        there.say(&talk, &["below"]);
        sync(here, &there, &talk);
        assert_eq!(here.tree(&talk), "a(two secret words here two(secret(words(below))))");
        // Whichever part of it is named.
        let target = PurgeTarget::Turn(TurnRef::of(last));
        let ask = tine_engine::Purge { target, confirm: None };
        assert_eq!(here.engine.purge(&here.call, ask).expect("a question").turns.len(), 4);
        erase(here, secret);
        gone(here, "secret");
        gone(here, "words");
        here.verified();
        sync(here, &there, &talk);
        gone(here, "secret");
    });
}

#[test]
fn turns_below_a_turn_whose_halves_were_deleted_here_are_not_imported() {
    for_each_store(|here| {
        let there = another(7);
        let (talk, secret) = shared(here, &there);
        let [left, _] = split(here, secret, 3);
        delete(here, left, DeleteMode::Cascade);
        there.say(&talk, &["below"]);
        let done = pull(here, &there, &talk);
        assert_eq!((done.turns, done.withheld), (0, 1));
    });
}

fn take(to: &World, from: &World, talk: &ConversationId, erases: bool) -> Pulled {
    let ends = [from, to].map(|side| side.engine.log_end(&side.call, talk).expect("a look"));
    let pulled = tine_engine::pull(&from.engine, &to.engine, &to.call, talk, ends.into(), erases);
    let done = pulled.expect("a pull");
    to.verified();
    done
}

#[test]
fn an_erasure_still_travels_after_further_work_here() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let secret = here.say(&talk, &["a", "two secret words"])[1];
        pull(&there, here, &talk);
        erase(&there, secret);
        // What holds the text of it here is erased, too.
        split(here, secret, 3);
        here.say(&talk, &["below"]);
        for said in ["x", "y"] {
            let done = take(here, &there, &talk, false);
            assert_eq!(done.unerased, 1, "{done:?}");
            pull(&there, here, &talk);
            there.say(&talk, &[said]);
        }
        assert_eq!(here.path(&talk, "main"), "a two secret words below");
        assert_eq!(take(here, &there, &talk, true).unerased, 0);
        assert_eq!(here.path(&talk, "main"), "a ? ? below");
        gone(here, "secret");
        assert_eq!(take(here, &there, &talk, false), Pulled::default());
        assert_eq!(pull(&there, here, &talk).turns, 0);
    });
}

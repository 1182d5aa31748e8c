//! The target of an append: parent, branch, expected tip.

use tine_core::ErrorKind;
use tine_engine::{Append, Error, OnConflict};

use crate::world::{bot, for_each_store, ids, reference, spoken, user};

#[test]
fn append_goes_to_the_tip_of_main_by_default() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a", "b"]);
        world.say(&talk, &["c"]);
        assert_eq!(world.path(&talk, "main"), "a b c");
    });
}

#[test]
fn a_new_branch_needs_a_parent() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.refused(ErrorKind::NotFound, |engine, call| {
            let request = Append::to(talk.clone(), vec![user("b")]);
            engine.append(call, Append { branch: Some("new".to_owned()), ..request })
        });
    });
}

#[test]
fn a_parent_that_is_neither_the_tip_nor_root_needs_a_branch() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let under =
            |turn| Append { parent: Some(turn), ..Append::to(talk.clone(), vec![user("x")]) };
        world
            .refused(ErrorKind::Invalid, |engine, call| engine.append(call, under(said[0].into())));
        world.append(under(said[2].into()));
        assert_eq!(world.path(&talk, "main"), "a b c x");
        world.append(under(reference("root")));
        assert_eq!(world.path(&talk, "main"), "x");
    });
}

#[test]
fn the_branch_ends_at_the_last_turn_given_and_the_rest_is_a_tail() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.append(Append::to(talk.clone(), spoken(&["a", "x"])).from_root());
        assert_eq!(world.path(&talk, "main"), "a x");
        let tails = world.engine.tails(&world.call, &talk).expect("tails");
        assert_eq!(tails.len(), 1);
        assert_eq!((tails[0].first, tails[0].leaf, tails[0].turns), (said[1], said[2], 2));
    });
}

#[test]
fn resending_what_lies_on_the_line_leaves_the_tip_where_it_is() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a", "b", "c"]);
        for list in [&["a", "b", "c"][..], &["a", "b"], &["a"]] {
            let answer = world.append(Append::to(talk.clone(), spoken(list)).from_root());
            assert_eq!(answer.turns.len(), list.len());
            assert_eq!(world.path(&talk, "main"), "a b c");
        }
    });
}

#[test]
fn resending_an_abandoned_line_moves_the_branch_to_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a", "b"]);
        world.append(Append::to(talk.clone(), spoken(&["a", "x"])).from_root());
        world.append(Append::to(talk.clone(), spoken(&["a", "b"])).from_root());
        assert_eq!(world.path(&talk, "main"), "a b");
        assert_eq!(world.tree(&talk), "a(b x)");
    });
}

#[test]
fn a_lost_race_answers_conflict_with_the_actual_tip() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let error = world.refused(ErrorKind::Conflict, |engine, call| {
            let request = Append::to(talk.clone(), vec![user("late")]);
            engine.append(call, Append { expected_tip: Some(said[0].into()), ..request })
        });
        let Error::Conflict { actual, expected, .. } = error else { panic!("{error}") };
        assert_eq!((expected, actual), (Some(said[0]), Some(said[1])));
    });
}

#[test]
fn an_expected_tip_that_holds_lets_the_append_through() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let first = Append::to(talk.clone(), vec![user("a")]);
        let first = world.append(Append { expected_tip: Some(reference("root")), ..first });
        let next = Append::to(talk.clone(), vec![bot("b")]);
        world.append(Append { expected_tip: Some(ids(&first)[0].into()), ..next });
        assert_eq!(world.path(&talk, "main"), "a b");
    });
}

#[test]
fn a_lost_race_with_on_conflict_fork_appends_at_the_expected_tip_on_a_new_branch() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        for (n, text) in [(1, "late"), (2, "later")] {
            let request = Append {
                expected_tip: Some(said[0].into()),
                on_conflict: OnConflict::Fork,
                ..Append::to(talk.clone(), vec![user(text)])
            };
            let answer = world.append(request);
            assert!(answer.forked);
            assert_eq!(answer.branch.name.as_str(), format!("main-{n}"));
            assert_eq!(world.path(&talk, &format!("main-{n}")), format!("a {text}"));
        }
        assert_eq!(world.path(&talk, "main"), "a b");
    });
}

#[test]
fn a_branch_can_be_named_by_its_id() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.fork_at(&talk, said[0], "side");
        let branch = world.engine.branch(&world.call, &talk, "side").expect("a branch");
        let request = Append::to(talk.clone(), vec![bot("b")]);
        world.append(Append { branch: Some(branch.id.to_string()), ..request });
        assert_eq!(world.path(&talk, "side"), "a b");
        assert_eq!(world.path(&talk, "main"), "a");
    });
}

#[test]
fn main_can_be_appended_to_from_the_first_call_on() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let request = Append::to(talk.clone(), vec![user("a")]);
        world.append(Append { branch: Some("main".to_owned()), ..request });
        assert_eq!(world.path(&talk, "main"), "a");
    });
}

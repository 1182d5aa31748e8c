//! Fork, edit, branches.

use tine_core::{Body, ErrorKind, Limits, Message, Name, Status};
use tine_engine::{Append, BranchVersion, Edit, Fork, ForkPoint, Outcome, Regenerate};

use crate::world::{World, bot, for_each_store, ids, reference, spoken, user};

fn edit(world: &World, turn: tine_core::TurnId, text: &str, branch: Option<&str>) -> Edit {
    Edit {
        turn: world.turn(turn),
        body: Body::Text(text.to_owned()),
        branch: branch.map(str::to_owned),
        reuse: true,
    }
}

#[test]
fn fork_at_is_inclusive_and_fork_before_is_exclusive() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.fork(&talk, ForkPoint::At(said[1].into()), "with");
        world.fork(&talk, ForkPoint::Before(said[1].into()), "without");
        world.fork(&talk, ForkPoint::Before(said[0].into()), "empty");
        assert_eq!(world.path(&talk, "with"), "a b");
        assert_eq!(world.path(&talk, "without"), "a");
        assert_eq!(world.path(&talk, "empty"), "");
    });
}

#[test]
fn a_fork_copies_no_turn_and_ids_stay_valid_in_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let turns = world.engine.stats(&world.call, None).expect("stats").store.turns;
        world.fork_at(&talk, said[1], "side");
        assert_eq!(world.engine.stats(&world.call, None).expect("stats").store.turns, turns);
        world.say_under(&talk, said[1], "side", user("x"));
        assert_eq!(world.path(&talk, "side"), "a b x");
        assert_eq!(world.path(&talk, &said[0].to_string()), "a");
    });
}

#[test]
fn forks_without_a_name_are_numbered_from_the_smallest_free_one() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let fork = || Fork {
            conversation: Some(talk.clone()),
            point: ForkPoint::At(said[0].into()),
            name: None,
        };
        let make = || world.engine.fork(&world.call, fork()).expect("a fork").name.to_string();
        assert_eq!((make(), make()), ("fork-1".to_owned(), "fork-2".to_owned()));
        world.engine.delete_branch(&world.call, &talk, "fork-1").expect("a branch can go");
        assert_eq!(make(), "fork-1");
    });
}

#[test]
fn a_fork_with_a_taken_name_is_a_conflict() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.refused(ErrorKind::Conflict, |engine, call| {
            let name = Some(Name::main());
            let point = ForkPoint::At(said[0].into());
            engine.fork(call, Fork { conversation: Some(talk.clone()), point, name })
        });
    });
}

#[test]
fn edit_makes_a_sibling_and_the_old_path_stays() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let request = edit(world, said[0], "a2", Some("main"));
        let answer = world.engine.edit(&world.call, request).expect("an edit");
        assert_eq!(answer.turn.outcome, Some(Outcome::Created));
        assert_eq!(answer.turn.origin.edited_from, Some(said[0]));
        assert_eq!(world.tree(&talk), "a(b(c)) a2");
        assert_eq!(world.path(&talk, "main"), "a2");
        assert_eq!(world.path(&talk, &said[2].to_string()), "a b c");
    });
}

#[test]
fn edit_without_a_branch_moves_none() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let answer = world.engine.edit(&world.call, edit(world, said[1], "b2", None));
        assert_eq!(answer.expect("an edit").branch, None);
        assert_eq!(world.path(&talk, "main"), "a b");
        assert_eq!(world.tree(&talk), "a(b b2)");
    });
}

#[test]
fn an_edit_equal_to_a_live_sibling_takes_it_unless_reuse_is_false() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let other = world.say_under(&talk, said[0], "side", bot("b2"));
        let request = edit(world, said[1], "b2", Some("main"));
        let answer = world.engine.edit(&world.call, request.clone()).expect("an edit");
        assert_eq!((answer.turn.id, answer.turn.outcome), (other, Some(Outcome::Reused)));
        assert_eq!(world.path(&talk, "main"), "a b2");
        let distinct = world.engine.edit(&world.call, Edit { reuse: false, ..request });
        assert_eq!(distinct.expect("an edit").turn.outcome, Some(Outcome::Created));
        assert_eq!(world.tree(&talk), "a(b b2 b2)");
    });
}

#[test]
fn an_edit_keeps_role_and_tool_call() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let messages = vec![user("a"), tine_core::Message::tool("call-1", "result")];
        let said = ids(&world.append(Append::to(talk, messages)));
        let answer = world.engine.edit(&world.call, edit(world, said[1], "other", None));
        let turn = answer.expect("an edit").turn;
        assert_eq!(turn.tool_call_id.as_deref(), Some("call-1"));
    });
}

#[test]
fn versions_are_the_turn_and_everything_edited_from_it_or_to_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let second = world.engine.edit(&world.call, edit(world, said[1], "b2", None));
        let second = second.expect("an edit").turn.id;
        let third = world.engine.edit(&world.call, edit(world, second, "b3", None));
        let third = third.expect("an edit").turn.id;
        world.say_under(&talk, said[0], "side", bot("unrelated"));
        for turn in [said[1], second, third] {
            let versions = world.engine.versions(&world.call, world.turn(turn)).expect("versions");
            let found: Vec<_> = versions.iter().map(|turn| turn.id).collect();
            assert_eq!(found, [said[1], second, third]);
        }
    });
}

#[test]
fn siblings_and_children_come_in_the_order_of_the_tree() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let more: Vec<_> = (0..12)
            .map(|n| world.say_under(&talk, said[0], "side", bot(&format!("x{n}"))))
            .collect();
        let want: Vec<_> = [vec![said[1]], more.clone()].concat();
        let ids = |turns: Vec<tine_engine::TurnView>| -> Vec<_> {
            turns.iter().map(|turn| turn.id).collect()
        };
        let children = world.engine.children(&world.call, world.turn(said[0]));
        assert_eq!(ids(children.expect("children")), want);
        let siblings = world.engine.siblings(&world.call, world.turn(more[5]));
        assert_eq!(ids(siblings.expect("siblings")), want);
        let root = tine_engine::TurnRef::within(talk.clone(), reference("root"));
        let first = world.engine.children(&world.call, root).expect("first turns");
        assert_eq!(ids(first), [said[0]]);
    });
}

#[test]
fn a_renamed_branch_keeps_its_id() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.fork_at(&talk, said[0], "old");
        let id = world.engine.branch(&world.call, &talk, "old").expect("a branch").id;
        let new = Name::new("new", &Limits::default()).expect("a sound name");
        let renamed = world.engine.rename_branch(&world.call, &talk, "old", new);
        assert_eq!(renamed.expect("another name").id, id);
        assert!(world.engine.branch(&world.call, &talk, "old").is_err());
        world.refused(ErrorKind::Conflict, |engine, call| {
            engine.rename_branch(call, &talk, "new", Name::main())
        });
    });
}

#[test]
fn a_deleted_branch_leaves_its_turns_as_a_tail() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        world.say_under(&talk, said[0], "side", bot("x"));
        world.engine.delete_branch(&world.call, &talk, "side").expect("a branch can go");
        assert_eq!(world.tree(&talk), "a(b x)");
        let tails = world.engine.tails(&world.call, &talk).expect("tails");
        assert_eq!(tails.len(), 1);
        assert_eq!(tails[0].preview, "x");
    });
}

#[test]
fn forking_and_editing_leave_every_raw_turn_as_it_was() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let before: Vec<_> = said
            .iter()
            .map(|turn| world.engine.turn(&world.call, world.turn(*turn)).expect("a turn"))
            .collect();
        world.fork_at(&talk, said[0], "side");
        world.engine.edit(&world.call, edit(world, said[1], "b2", Some("side"))).expect("an edit");
        world.append(Append::to(talk.clone(), spoken(&["a", "b", "d"])).from_root());
        for turn in before {
            let now = world.engine.turn(&world.call, world.turn(turn.id)).expect("a turn");
            assert_eq!(now, turn);
        }
    });
}

/// Automatic names after the first sixteen.
#[test]
fn after_sixteen_taken_names_an_automatic_one_follows_a_taken_one() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let fork = || Fork {
            conversation: Some(talk.clone()),
            point: ForkPoint::At(said[0].into()),
            name: None,
        };
        let make = || world.engine.fork(&world.call, fork()).expect("a fork").name.to_string();
        let remove = |name: &str| {
            world.engine.delete_branch(&world.call, &talk, name).expect("a branch can go");
        };
        for number in 1..=40 {
            assert_eq!(make(), format!("fork-{number}"), "without gaps the smallest free one");
        }
        remove("fork-7");
        assert_eq!(make(), "fork-7", "among the first sixteen always the smallest");
        remove("fork-20");
        let names = || {
            let branches = world.engine.branches(&world.call, &talk).expect("branches");
            branches.iter().map(|branch| branch.name.to_string()).collect::<Vec<_>>()
        };
        let before = names();
        let number: u64 = make().strip_prefix("fork-").and_then(|n| n.parse().ok()).expect("one");
        assert!(!before.contains(&format!("fork-{number}")));
        assert!(before.contains(&format!("fork-{}", number - 1)), "fork-{number} leaves a gap");
    });
}

#[test]
fn without_main_an_append_names_its_branch() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        world.fork_at(&talk, said[1], "side");
        world.engine.delete_branch(&world.call, &talk, "main").expect("a branch can go");
        for branch in [None, Some("main".to_owned())] {
            let request = Append { branch, ..Append::to(talk.clone(), vec![user("c")]) };
            let error = world.engine.append(&world.call, request).expect_err("it has no start");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
        let side = Some("side".to_owned());
        let request = Append { branch: side, ..Append::to(talk.clone(), vec![user("c")]) };
        world.engine.append(&world.call, request).expect("an append");
        assert_eq!(world.path(&talk, "side"), "a b c");
        let root = Some(reference("root"));
        let request = Append { parent: root, ..Append::to(talk.clone(), vec![user("c")]) };
        world.engine.append(&world.call, request).expect("the root, where it is named");
        assert_eq!(world.path(&talk, "main"), "c");
    });
}

fn again(world: &World, turn: tine_core::TurnId, message: Message) -> Regenerate {
    let id = world.engine.promise_turn_id();
    Regenerate { id, turn: world.turn(turn), message, branch: Some("main".to_owned()) }
}

#[test]
fn a_regenerated_answer_is_a_sibling_with_its_promised_id() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let request = again(world, said[1], Message { status: Status::Partial, ..bot("c") });
        let id = request.id;
        let done = world.engine.regenerate(&world.call, request.clone()).expect("made");
        assert_eq!((done.turn.id, done.turn.status), (id, Status::Partial));
        assert_eq!(done.turn.origin.edited_from, Some(said[1]));
        assert_eq!(done.branch.expect("the branch moves").tip, Some(id));
        assert_eq!(world.tree(&talk), "a(b c)");
        let twice = world.engine.regenerate(&world.call, request.clone());
        assert_eq!(twice.expect_err("the id is taken").kind(), ErrorKind::Conflict);
        // Also an equal one is made: only it can have that id.
        let equal = again(world, said[1], bot("b"));
        world.engine.regenerate(&world.call, equal).expect("made");
        assert_eq!(world.tree(&talk), "a(b c b)");
        for _ in 0..2 {
            world.engine.undo(&world.call, &talk, None).expect("an undo");
        }
        assert_eq!(world.tree(&talk), "a(b)");
        assert_eq!(world.path(&talk, "main"), "a b");
        for wrong in [again(world, said[0], bot("c")), again(world, said[1], user("c"))] {
            let refused = world.engine.regenerate(&world.call, wrong);
            assert_eq!(refused.expect_err("no answer").kind(), ErrorKind::Invalid);
        }
    });
}

#[test]
fn another_version_is_refused_where_its_branch_is_not_as_it_was_seen() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let main = world.engine.branch(&world.call, &talk, "main").expect("main");
        let seen = BranchVersion { id: main.id, version: main.version };
        world.say(&talk, &["c"]);
        let call = world.call.clone().if_branch(seen);
        let refused = world.engine.edit(&call, edit(world, said[1], "d", Some("main")));
        assert_eq!(refused.expect_err("it has moved").kind(), ErrorKind::Conflict);
        let refused = world.engine.regenerate(&call, again(world, said[1], bot("d")));
        assert_eq!(refused.expect_err("it has moved").kind(), ErrorKind::Conflict);
        assert_eq!(world.tree(&talk), "a(b(c))");
    });
}

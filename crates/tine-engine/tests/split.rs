//! Split: one turn shown as two.

use tine_core::{Body, ErrorKind, Limits, Message, Name, Role, TurnId};
use tine_engine::{
    Append, Edit, Fork, ForkPoint, Outcome, Presence, SplitDone, SplitTurn, TurnRef,
};
use tine_store::Content;

use crate::world::{World, bot, for_each_store, ids, reference, user};

fn split(world: &World, turn: TurnId, offset: usize) -> SplitDone {
    let request = SplitTurn { turn: world.turn(turn), offset };
    world.engine.split(&world.call, request).expect("a turn that can be split")
}

#[test]
fn a_split_turn_is_shown_as_two_whose_texts_join_to_its_own() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bc", "d"]);
        world.say_under(&talk, said[0], "side", bot("z"));
        let done = split(world, said[1], 1);
        assert_eq!(done.whole, said[1]);
        assert_eq!(world.tree(&talk), "a(b(c(d)) z)");
        assert_eq!(world.path(&talk, "main"), "a b c d");
        for half in [&done.left, &done.right] {
            assert_eq!(half.origin.part_of, Some(said[1]));
        }
        world.verified();
    });
}

#[test]
fn a_path_tells_which_neighbours_are_parts_of_one_text() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bcdef", "g"]);
        let first = split(world, said[1], 2);
        split(world, first.left.id, 1);
        split(world, first.right.id, 1);
        let joins = |to: &str| {
            let query = tine_engine::PathQuery::of(talk.clone()).to(reference(to));
            let page = world.engine.path(&world.call, query).expect("a path");
            let mut said = String::new();
            for (at, turn) in page.turns.iter().enumerate() {
                let before = at.checked_sub(1).map(|before| page.turns[before].id);
                let mark =
                    if turn.continues.is_some() && turn.continues == before { "" } else { " " };
                let Content::Kept(body) = &turn.content else { panic!("nothing is purged") };
                said.push_str(&format!("{mark}{}", body.preview(80)));
            }
            said
        };
        assert_eq!(world.path(&talk, "main"), "a b c d ef g");
        assert_eq!(joins("main"), " a bcdef g");
        // Without the middle the rest no longer goes on where the first part ends.
        let middle = world.engine.path(&world.call, tine_engine::PathQuery::of(talk.clone()));
        let middle = middle.expect("a path").turns[2].id;
        let request = tine_engine::Delete {
            turn: world.turn(middle),
            mode: tine_engine::DeleteMode::Reparent,
            force: false,
            dry_run: false,
        };
        world.engine.delete(&world.call, request).expect("a deletion");
        assert_eq!(joins("main"), " a b def g");
    });
}

#[test]
fn raw_hashes_and_depths_below_a_split_stay_as_they_are() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bc", "d"]);
        let before = world.engine.turn(&world.call, world.turn(said[2])).expect("a turn");
        let done = split(world, said[1], 1);
        let after = world.engine.turn(&world.call, world.turn(said[2])).expect("a turn");
        let raw = |turn: &tine_engine::TurnView| (turn.hash, turn.parent_hash, turn.depth);
        assert_eq!(raw(&after), raw(&before));
        assert_eq!(after.parent, Some(done.right.id));
    });
}

#[test]
fn halves_take_the_time_of_the_whole() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let whole = world.append(Append::to(talk, vec![user("ab")])).turns.remove(0);
        let done = split(world, whole.id, 1);
        assert_eq!(done.left.created_at, whole.created_at);
        assert_eq!(done.right.created_at, whole.created_at);
        assert_eq!(done.left.parent_hash, whole.parent_hash);
        assert_eq!(done.right.parent_hash, Some(done.left.hash));
    });
}

#[test]
fn the_wholes_id_tips_and_bookmarks_mean_the_right_half() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bc"]);
        let name = Name::new("here", &Limits::default()).expect("a sound name");
        world.engine.set_bookmark(&world.call, name, world.turn(said[1])).expect("a bookmark");
        let done = split(world, said[1], 1);
        let main = world.engine.branch(&world.call, &talk, "main").expect("a branch");
        assert_eq!(main.tip, Some(done.right.id));
        for name in ["main", "here", &said[1].to_string()] {
            assert_eq!(world.path(&talk, name), "a b c", "{name}");
        }
        world.fork(&talk, ForkPoint::At(said[1].into()), "at");
        world.fork(&talk, ForkPoint::Before(said[1].into()), "before");
        assert_eq!(world.path(&talk, "at"), "a b c");
        assert_eq!(world.path(&talk, "before"), "a");
        let request = Append::to(talk.clone(), vec![user("d")]).under(said[1].into(), "at");
        world.append(request);
        assert_eq!(world.tree(&talk), "a(b(c(d)))");
    });
}

#[test]
fn prefix_matching_accepts_the_whole_text_and_goes_on_at_the_right_half() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bc", "d"]);
        let done = split(world, said[1], 1);
        let whole = vec![user("a"), bot("bc"), user("d"), bot("e")];
        let answer = world.append(Append::to(talk.clone(), whole).from_root());
        let outcomes: Vec<_> = answer.turns.iter().filter_map(|turn| turn.outcome).collect();
        let reused = Outcome::Reused;
        assert_eq!(outcomes, [reused, reused, reused, Outcome::Created]);
        assert_eq!(answer.turns[1].id, done.right.id);
        let halves = vec![user("a"), bot("b"), bot("c"), user("d"), bot("e")];
        let answer = world.append(Append::to(talk.clone(), halves).from_root());
        assert!(answer.turns.iter().all(|turn| turn.outcome == Some(reused)));
        assert_eq!(world.tree(&talk), "a(b(c(d(e))))");
    });
}

#[test]
fn a_half_can_be_split_again() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["abcd", "e"]);
        let done = split(world, said[0], 2);
        split(world, done.right.id, 1);
        split(world, done.left.id, 1);
        assert_eq!(world.tree(&talk), "a(b(c(d(e))))");
        let request = Append::to(talk.clone(), vec![user("abcd"), bot("x")]).from_root();
        world.append(request);
        assert_eq!(world.tree(&talk), "a(b(c(d(e x))))");
        world.verified();
    });
}

#[test]
fn tool_turns_and_turns_with_other_blocks_cannot_be_split() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let limits = Limits::default();
        let json = br#"[{"type":"text","text":"look"},{"type":"tool-use","id":"c","name":"n","parameters":{}}]"#;
        let json = tine_core::json::parse(json, limits.json_depth).expect("sound JSON");
        let body = Body::from_content(json, Role::Assistant, &limits).expect("sound blocks");
        let messages =
            vec![user("question"), Message { body, ..bot("") }, Message::tool("c", "result")];
        let said = ids(&world.append(Append::to(talk.clone(), messages)));
        for turn in [said[1], said[2]] {
            world.refused(ErrorKind::Unsupported, |engine, call| {
                engine.split(call, SplitTurn { turn: TurnRef::of(turn), offset: 2 })
            });
        }
    });
}

#[test]
fn an_offset_inside_a_character_or_outside_the_text_is_refused() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["👩\u{200d}🚀e\u{301}漢"]);
        for offset in [0, 1, 2, 4, 6, 99] {
            world.refused(ErrorKind::Invalid, |engine, call| {
                engine.split(call, SplitTurn { turn: TurnRef::of(said[0]), offset })
            });
        }
        split(world, said[0], 3);
        assert_eq!(world.tree(&talk), "👩\u{200d}🚀(e\u{301}漢)");
    });
}

#[test]
fn metadata_is_shared_out_between_the_halves() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let mut message = user("ab");
        message.metadata.title = Some("title".to_owned());
        message.metadata.auto_title = Some("guess".to_owned());
        message.metadata.tags = ["tag".to_owned()].into();
        message.metadata.custom_data = Some(1.into());
        let said = ids(&world.append(Append::to(talk, vec![message])));
        let done = split(world, said[0], 1);
        let (left, right) = (&done.left.metadata, &done.right.metadata);
        assert_eq!((left.title.as_deref(), left.auto_title.as_deref()), (Some("title"), None));
        assert_eq!((right.title.as_deref(), right.auto_title.as_deref()), (None, Some("guess")));
        for half in [left, right] {
            assert!(half.tags.contains("tag"));
            assert_eq!(half.custom_data, Some(1.into()));
        }
    });
}

#[test]
fn undo_of_a_split_shows_the_whole_again_with_its_tips() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bc", "d"]);
        world.fork_at(&talk, said[1], "side");
        split(world, said[1], 1);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(world.tree(&talk), "a(bc(d))");
        let side = world.engine.branch(&world.call, &talk, "side").expect("a branch");
        assert_eq!(side.tip, Some(said[1]));
        world.engine.redo(&world.call, &talk, None).expect("a redo");
        assert_eq!(world.tree(&talk), "a(b(c(d)))");
    });
}

#[test]
fn splitting_the_same_turn_again_after_an_undo_makes_new_halves() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["abc"]);
        let first = split(world, said[0], 1);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let second = split(world, said[0], 1);
        assert_ne!(first.left.id, second.left.id);
        assert_ne!(first.left.hash, second.left.hash);
        assert_eq!(world.tree(&talk), "a(bc)");
        world.verified();
    });
}

#[test]
fn the_whole_is_kept_and_marked() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["ab"]);
        split(world, said[0], 1);
        let kept = world.export().into_iter().find_map(|record| match record {
            tine_engine::BundleRecord::Turn { turn, .. } if turn.id == said[0] => {
                Some(turn.content)
            }
            _ => None,
        });
        assert_eq!(kept, Some(Content::Kept(Body::Text("ab".to_owned()))));
        let halves = world.engine.children(&world.call, TurnRef::within(talk, reference("root")));
        assert!(halves.expect("first turns").iter().all(|turn| turn.presence == Presence::Live));
    });
}

#[test]
fn an_edit_of_a_half_is_a_sibling_of_that_half() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["ab"]);
        let done = split(world, said[0], 1);
        let request = Edit {
            turn: world.turn(done.right.id),
            body: Body::Text("x".to_owned()),
            branch: Some("main".to_owned()),
            reuse: true,
        };
        world.engine.edit(&world.call, request).expect("an edit");
        assert_eq!(world.tree(&talk), "a(b x)");
        assert_eq!(world.path(&talk, "main"), "a x");
    });
}

#[test]
fn a_fork_before_a_split_turn_needs_only_what_its_first_half_stands_on() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["x", "ab", "c"]);
        let done = split(world, said[1], 1);
        crate::delete::cascade(world, done.right.id);
        assert_eq!(world.tree(&talk), "x(a)");
        world.fork(&talk, ForkPoint::Before(said[1].into()), "before");
        assert_eq!(world.path(&talk, "before"), "x");
        let whole = |point| Fork { conversation: Some(talk.clone()), point, name: None };
        world.refused(ErrorKind::NotFound, |engine, call| {
            engine.fork(call, whole(ForkPoint::At(said[1].into())))
        });
        world.refused(ErrorKind::NotFound, |engine, call| {
            engine.fork(call, whole(ForkPoint::Before(done.right.id.into())))
        });
        crate::delete::cascade(world, done.left.id);
        world.refused(ErrorKind::NotFound, |engine, call| {
            engine.fork(call, whole(ForkPoint::Before(said[1].into())))
        });
        world.verified();
    });
}

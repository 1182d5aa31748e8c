//! The operation log, undo and redo.

use tine_core::hash::{OperationSeal, operation_hash};
use tine_core::{Body, ErrorKind, Limits, Name};
use tine_engine::{
    Append, BundleRecord, Call, ConversationPatch, Delete, DeleteMode, Edit, Error, MetadataPatch,
    MoveBranch, Page,
};

use crate::world::{World, bot, for_each_store, user};
use tine_store::Operation;

fn kinds(world: &World, talk: &tine_core::ConversationId) -> Vec<(String, bool)> {
    let log = world.engine.operations(&world.call, talk, Page::default()).expect("a log");
    log.items.into_iter().rev().map(|op| (op.kind, op.undone)).collect()
}

#[test]
fn every_change_is_one_operation_with_actor_and_time() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        let call = Call::by("another actor");
        world.engine.append(&call, Append::to(talk.clone(), vec![bot("b")])).expect("an append");
        let log = world.engine.operations(&world.call, &talk, Page::default()).expect("a log");
        let seqs: Vec<_> = log.items.iter().map(|op| op.seq).collect();
        assert_eq!(seqs, [3, 2, 1], "newest first");
        assert_eq!(log.items[0].actor, "another actor");
        assert!(log.items[0].at > log.items[1].at);
        assert!(!log.items[0].summary.is_empty());
    });
}

#[test]
fn operations_are_chained_by_hash() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.say(&talk, &["b"]);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let mut previous = None;
        let mut entries = 0;
        for record in world.export() {
            let BundleRecord::Operation(operation) = record else { continue };
            let Operation { seq, kind, actor, at, detail, hash, .. } = operation;
            let seal = OperationSeal {
                conversation_id: talk.as_str(),
                seq,
                previous: previous.as_ref(),
                kind: &kind,
                actor: &actor,
                at,
                detail: &detail.digest(),
            };
            assert_eq!(hash, operation_hash(&seal));
            previous = Some(hash);
            entries += 1;
        }
        assert_eq!(entries, 4, "create, two appends, undo");
    });
}

#[test]
fn undo_takes_the_newest_operation_and_redo_the_last_undone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.say(&talk, &["b"]);
        let undo = || world.engine.undo(&world.call, &talk, None).expect("an undo").target;
        let redo = || world.engine.redo(&world.call, &talk, None).expect("a redo").target;
        assert_eq!((undo(), undo()), (3, 2));
        assert_eq!(world.tree(&talk), "");
        assert_eq!((redo(), redo()), (2, 3));
        assert_eq!(world.tree(&talk), "a(b)");
        assert_eq!(world.path(&talk, "main"), "a b");
        world.refused(ErrorKind::Invalid, |engine, call| engine.redo(call, &talk, None));
        world.verified();
    });
}

#[test]
fn an_operation_that_later_work_depends_on_is_protected() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.say(&talk, &["b"]);
        let error =
            world.refused(ErrorKind::Protected, |engine, call| engine.undo(call, &talk, Some(2)));
        let Error::DependedOn { by, .. } = error else { panic!("{error}") };
        assert_eq!(by, [3]);
        world.engine.undo(&world.call, &talk, Some(3)).expect("an undo");
        world.engine.undo(&world.call, &talk, Some(2)).expect("undone work does not count");
        assert_eq!(world.tree(&talk), "");
        let gone = world.turn(said[0]);
        world.refused(ErrorKind::NotFound, |engine, call| engine.children(call, gone));
    });
}

#[test]
fn undo_works_on_any_operation_that_nothing_later_depends_on() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.say_under(&talk, said[0], "one", bot("b"));
        world.say_under(&talk, said[0], "two", bot("c"));
        world.engine.undo(&world.call, &talk, Some(3)).expect("an undo in the middle");
        assert_eq!(world.tree(&talk), "a(c)");
        world.refused(ErrorKind::NotFound, |engine, call| engine.branch(call, &talk, "one"));
        world.engine.redo(&world.call, &talk, Some(3)).expect("a redo in the middle");
        assert_eq!(world.tree(&talk), "a(b c)");
        assert_eq!(world.path(&talk, "one"), "a b");
    });
}

#[test]
fn dependents_of_a_turn_protect_its_creation_from_undo() {
    let name = |text| Name::new(text, &Limits::default()).expect("a sound name");
    type Work<'a> = &'a dyn Fn(&World, &tine_core::ConversationId, tine_core::TurnId);
    let works: [(&str, Work); 6] = [
        ("a fork", &|world, talk, turn| world.fork_at(talk, turn, "side")),
        ("a bookmark", &|world, _, turn| {
            let turn = world.turn(turn);
            world.engine.set_bookmark(&world.call, name("here"), turn).expect("a bookmark");
        }),
        ("a title", &|world, _, turn| {
            let patch = MetadataPatch { add_tags: vec!["x".to_owned()], ..Default::default() };
            let turn = world.turn(turn);
            world.engine.patch_metadata(&world.call, turn, patch).expect("a change");
        }),
        ("an edit", &|world, _, turn| {
            let body = Body::Text("other".to_owned());
            let edit = Edit { turn: world.turn(turn), body, branch: None, reuse: true };
            world.engine.edit(&world.call, edit).expect("an edit");
        }),
        ("a delete", &|world, _, turn| {
            crate::delete::cascade(world, turn);
        }),
        ("a child", &|world, talk, turn| {
            world.say_under(talk, turn, "side", user("child"));
        }),
    ];
    for (what, work) in works {
        for_each_store(|world| {
            let talk = world.talk("talk");
            let said = world.say(&talk, &["ab"]);
            work(world, &talk, said[0]);
            let error = world.engine.undo(&world.call, &talk, Some(2));
            let error = error.expect_err("something depends on it");
            assert_eq!(error.kind(), ErrorKind::Protected, "{what}");
            world.engine.undo(&world.call, &talk, Some(3)).expect("the dependent goes first");
            world.engine.undo(&world.call, &talk, Some(2)).expect("then it is free");
        });
    }
}

#[test]
fn a_redo_that_would_overwrite_later_work_is_protected() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.say(&talk, &["b"]);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        world.say(&talk, &["c"]);
        world.refused(ErrorKind::Protected, |engine, call| engine.redo(call, &talk, Some(3)));
        assert_eq!(world.path(&talk, "main"), "a c");
    });
}

#[test]
fn a_redo_whose_dependencies_are_undone_is_protected() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.say_under(&talk, said[0], "side", bot("b"));
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        crate::delete::cascade(world, said[0]);
        world.refused(ErrorKind::Protected, |engine, call| engine.redo(call, &talk, Some(3)));
        world.verified();
    });
}

#[test]
fn an_operation_is_redone_only_after_what_it_builds_on() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.say_under(&talk, said[0], "side", bot("b"));
        world.engine.undo(&world.call, &talk, Some(3)).expect("an undo");
        world.engine.undo(&world.call, &talk, Some(2)).expect("an undo");
        world.refused(ErrorKind::Protected, |engine, call| engine.redo(call, &talk, Some(3)));
        world.engine.redo(&world.call, &talk, Some(2)).expect("a redo");
        world.engine.redo(&world.call, &talk, Some(3)).expect("a redo");
        assert_eq!(world.tree(&talk), "a(b)");
    });
}

#[test]
fn a_redone_delete_never_hides_what_was_said_below_it_since() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        crate::delete::cascade(world, said[1]);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        world.say_under(&talk, said[1], "side", user("younger"));
        world.refused(ErrorKind::Protected, |engine, call| engine.redo(call, &talk, Some(3)));
        assert_eq!(world.tree(&talk), "a(b(younger))");
    });
}

#[test]
fn undo_of_a_revert_whose_old_tip_is_gone_never_leaves_a_dangling_tip() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let back = MoveBranch {
            conversation: talk.clone(),
            branch: "main".to_owned(),
            to: Some(said[0].into()),
            expected_tip: None,
        };
        world.engine.revert(&world.call, back).expect("a revert");
        crate::delete::cascade(world, said[1]);
        let _either = world.engine.undo(&world.call, &talk, Some(3));
        assert_eq!(world.path(&talk, "main"), "a");
        world.verified();
    });
}

#[test]
fn titles_and_archive_marks_are_undone_too() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let patch = ConversationPatch {
            title: Some(Some("a title".to_owned())),
            archived: Some(true),
            ..Default::default()
        };
        world.engine.patch_conversation(&world.call, &talk, patch).expect("a change");
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let view = world.engine.conversation(&world.call, &talk).expect("a conversation");
        assert_eq!((view.title, view.archived), (None, false));
    });
}

#[test]
fn undoing_the_creation_hides_the_conversation_and_redo_restores_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        world.refused(ErrorKind::NotFound, |engine, call| engine.conversation(call, &talk));
        world.engine.redo(&world.call, &talk, None).expect("a redo");
        world.say(&talk, &["a"]);
        assert_eq!(world.tree(&talk), "a");
    });
}

#[test]
fn creation_cannot_be_undone_while_any_later_operation_is_in_effect() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.fork(&talk, tine_engine::ForkPoint::At(crate::world::reference("root")), "side");
        world.refused(ErrorKind::Protected, |engine, call| engine.undo(call, &talk, Some(1)));
    });
}

#[test]
fn a_derivation_that_took_a_path_over_can_be_undone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let request = tine_engine::Derive {
            conversation: talk.clone(),
            id: None,
            system_prompt: Some("other".to_owned()),
            config: None,
            at: Some(said[1].into()),
        };
        let derived = world.engine.derive(&world.call, request).expect("a derivative");
        let id = derived.conversation.id;
        world.engine.undo(&world.call, &id, None).expect("an undo");
        world.refused(ErrorKind::NotFound, |engine, call| engine.conversation(call, &id));
        world.engine.redo(&world.call, &id, None).expect("a redo");
        assert_eq!(world.path(&id, "main"), "a b");
    });
}

#[test]
fn the_log_only_grows() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let found = kinds(world, &talk);
        let undone: Vec<bool> = found.iter().map(|(_, undone)| *undone).collect();
        assert_eq!(undone, [false, true, false]);
        assert_eq!(found[2].0, "undo");
        world.refused(ErrorKind::NotFound, |engine, call| engine.undo(call, &talk, Some(99)));
    });
}

#[test]
fn nothing_is_redone_in_a_conversation_whose_creation_is_undone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.engine.undo(&world.call, &talk, None).expect("the append is undone");
        world.engine.undo(&world.call, &talk, None).expect("the making is undone");
        let refused =
            world.engine.redo(&world.call, &talk, Some(2)).expect_err("nothing to build on");
        assert_eq!(refused.kind(), ErrorKind::Protected);
        world.engine.redo(&world.call, &talk, Some(1)).expect("the making is redone");
        world.engine.redo(&world.call, &talk, Some(2)).expect("the append is redone");
    });
}

#[test]
fn a_cascade_is_not_redone_over_turns_hidden_below_it_since() {
    for mode in [DeleteMode::Cascade, DeleteMode::Reparent] {
        for_each_store(|world| {
            let talk = world.talk("talk");
            let said = world.say(&talk, &["a", "b", "c"]);
            // No tip stands on what goes, so the two deletions have nothing else in common.
            let back = MoveBranch {
                conversation: talk.clone(),
                branch: "main".to_owned(),
                to: Some(said[0].into()),
                expected_tip: None,
            };
            world.engine.revert(&world.call, back).expect("a revert");
            crate::delete::cascade(world, said[1]);
            let undone = world.engine.undo(&world.call, &talk, None).expect("an undo").target;
            let request = Delete { turn: world.turn(said[2]), mode, force: false, dry_run: false };
            world.engine.delete(&world.call, request).expect("a turn that can go");
            let error = world.refused(ErrorKind::Protected, |engine, call| {
                engine.redo(call, &talk, Some(undone))
            });
            let Error::DependedOn { by, .. } = &error else { panic!("{error}") };
            world.engine.undo(&world.call, &talk, Some(by[0])).expect("an undo");
            world.engine.redo(&world.call, &talk, Some(undone)).expect("a redo");
            assert_eq!(world.tree(&talk), "a");
            world.verified();
        });
    }
}

#[test]
fn a_cascade_is_redone_over_turns_hidden_before_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c", "d"]);
        crate::delete::cascade(world, said[3]);
        crate::delete::cascade(world, said[1]);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(world.tree(&talk), "a(b(c))");
        world.engine.redo(&world.call, &talk, None).expect("a redo");
        assert_eq!(world.tree(&talk), "a");
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(world.tree(&talk), "a(b(c))", "what was gone before stays gone");
        world.verified();
    });
}

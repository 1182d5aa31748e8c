//! Keys that make a call safe to repeat.

use std::sync::{Arc, Mutex};

use tine_core::{ErrorKind, Limits, Message, Name, ProjectId, Role};
use tine_engine::{Append, Call, ConversationPatch, Fork, ForkPoint, NewConversation, Presence};
use tine_store::{Job, Read, Store};

use crate::world::{World, bot, for_each_store, ids, user};

fn keyed(world: &World, key: &str) -> Call {
    world.call.clone().with_key(key)
}

#[test]
fn the_same_key_and_request_give_the_first_answer_and_add_nothing() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let request = Append::to(talk.clone(), vec![user("a"), bot("b")]);
        let call = keyed(world, "key");
        let first = world.engine.append(&call, request.clone()).expect("an append");
        world.say(&talk, &["c"]);
        let before = world.export();
        let again = world.engine.append(&call, request).expect("a replay");
        assert_eq!(world.export(), before);
        assert!(again.replayed && !again.undone && !first.replayed);
        let outcomes = |answer: &tine_engine::Appended| -> Vec<_> {
            answer.turns.iter().map(|turn| (turn.id, turn.outcome)).collect()
        };
        assert_eq!(outcomes(&again), outcomes(&first));
    });
}

#[test]
fn without_a_key_the_same_append_at_the_tip_adds_it_again() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        world.say(&talk, &["a"]);
        assert_eq!(world.tree(&talk), "a(a)");
    });
}

#[test]
fn the_same_key_with_another_request_is_a_mismatch() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let call = keyed(world, "key");
        world.engine.append(&call, Append::to(talk.clone(), vec![user("a")])).expect("an append");
        let said = ids(&world.append(Append::to(talk.clone(), vec![user("a")]).from_root()));
        world.refused(ErrorKind::IdempotencyMismatch, |engine, _| {
            engine.append(&call, Append::to(talk.clone(), vec![user("b")]))
        });
        world.refused(ErrorKind::IdempotencyMismatch, |engine, _| {
            let point = ForkPoint::At(said[0].into());
            engine.fork(&call, Fork { conversation: Some(talk.clone()), point, name: None })
        });
    });
}

#[test]
fn a_failed_call_records_nothing_and_leaves_the_key_free() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let call = keyed(world, "key");
        world.refused(ErrorKind::Invalid, |engine, _| {
            let wrong = Message { role: Role::Tool, ..user("no call") };
            engine.append(&call, Append::to(talk.clone(), vec![wrong]))
        });
        let request = Append::to(talk.clone(), vec![user("fine")]);
        let answer = world.engine.append(&call, request).expect("the key is free");
        assert!(!answer.replayed);
    });
}

#[test]
fn a_replay_says_when_the_work_has_been_undone_since() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let call = keyed(world, "key");
        let request = Append::to(talk.clone(), vec![user("a")]);
        world.engine.append(&call, request.clone()).expect("an append");
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let again = world.engine.append(&call, request.clone()).expect("a replay");
        assert!(again.replayed && again.undone);
        assert_eq!(world.tree(&talk), "");
        world.engine.redo(&world.call, &talk, None).expect("a redo");
        assert!(!world.engine.append(&call, request).expect("a replay").undone);
    });
}

#[test]
fn a_replay_is_answered_although_the_parent_is_gone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let call = keyed(world, "key");
        let request = Append::to(talk.clone(), vec![bot("b")]).under(said[0].into(), "side");
        let first = world.engine.append(&call, request.clone()).expect("an append");
        crate::delete::cascade(world, said[0]);
        let again = world.engine.append(&call, request).expect("a replay");
        assert_eq!(ids(&again), ids(&first));
    });
}

#[test]
fn a_replay_answers_the_turn_it_named_also_when_that_was_split_since() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["ab"]);
        let call = keyed(world, "key");
        let tag =
            || tine_engine::MetadataPatch { add_tags: vec!["x".to_owned()], ..Default::default() };
        let first = world.engine.patch_metadata(&call, world.turn(said[0]), tag());
        let split = tine_engine::SplitTurn { turn: world.turn(said[0]), offset: 1 };
        world.engine.split(&world.call, split).expect("a split");
        let again = world.engine.patch_metadata(&call, world.turn(said[0]), tag());
        assert_eq!(again.expect("a replay").id, first.expect("a change").id);
    });
}

#[test]
fn an_append_that_changes_nothing_still_remembers_its_key() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        let call = keyed(world, "key");
        let request = Append::to(talk.clone(), vec![user("a")]).from_root();
        assert!(!world.engine.append(&call, request.clone()).expect("an append").replayed);
        assert!(world.engine.append(&call, request).expect("a replay").replayed);
        world.refused(ErrorKind::IdempotencyMismatch, |engine, _| {
            engine.append(&call, Append::to(talk.clone(), vec![user("b")]))
        });
    });
}

#[test]
fn keys_belong_to_a_project() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let call = keyed(world, "key");
        world.engine.append(&call, Append::to(talk, vec![user("a")])).expect("an append");
        let other = ProjectId::new("other", &Limits::default()).expect("a sound id");
        let elsewhere = Call::by("tester").in_project(other);
        let new = NewConversation::named("talk").expect("a sound id");
        let talk = world.engine.create_conversation(&elsewhere, new).expect("the id is free").id;
        let request = Append::to(talk, vec![user("b")]);
        let answer = world.engine.append(&elsewhere.with_key("key"), request);
        assert!(!answer.expect("the key is free there").replayed);
    });
}

#[test]
fn every_changing_call_honours_its_key() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["ab"]);
        let name = Name::new("here", &Limits::default()).expect("a sound name");
        let turn = || world.turn(said[0]);
        let fork = || Fork {
            conversation: Some(talk.clone()),
            point: ForkPoint::At(said[0].into()),
            name: None,
        };
        let edit = || tine_engine::Edit {
            turn: turn(),
            body: tine_core::Body::Text("x".to_owned()),
            branch: None,
            reuse: false,
        };
        let split = || tine_engine::SplitTurn { turn: turn(), offset: 1 };
        let patch = || tine_engine::MetadataPatch {
            title: Some(Some("title".to_owned())),
            ..Default::default()
        };
        for round in 0..2 {
            let entries = world.export().len();
            let call = |key: &str| keyed(world, key);
            world.engine.patch_metadata(&call("patch"), turn(), patch()).expect("a change");
            world.engine.fork(&call("fork"), fork()).expect("a fork");
            world.engine.edit(&call("edit"), edit()).expect("an edit");
            world.engine.set_bookmark(&call("mark"), name.clone(), turn()).expect("a bookmark");
            world.engine.split(&call("split"), split()).expect("a split");
            let added = world.export().len() - entries;
            assert_eq!(added > 0, round == 0, "round {round} added {added} records");
        }
    });
}

#[test]
fn a_key_over_512_bytes_is_too_large() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let call = keyed(world, &"k".repeat(513));
        world.refused(ErrorKind::TooLarge, |engine, _| {
            engine.append(&call, Append::to(talk.clone(), vec![user("a")]))
        });
    });
}

#[test]
fn a_replay_is_answered_although_the_making_of_its_conversation_is_undone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let call = keyed(world, "append");
        let request = Append::to(talk.clone(), vec![user("a"), bot("b")]);
        let first = world.engine.append(&call, request.clone()).expect("an append");
        let patch = ConversationPatch { title: Some(Some("a".to_owned())), ..Default::default() };
        let named = keyed(world, "title");
        world.engine.patch_conversation(&named, &talk, patch.clone()).expect("a title");
        for _ in 0..3 {
            world.engine.undo(&world.call, &talk, None).expect("an undo");
        }
        world.refused(ErrorKind::NotFound, |engine, call| engine.conversation(call, &talk));
        let again = world.engine.append(&call, request).expect("a replay");
        assert!(again.replayed && again.undone);
        assert_eq!((ids(&again), &again.branch), (ids(&first), &first.branch));
        let view = world.engine.patch_conversation(&named, &talk, patch).expect("a replay");
        assert_eq!(view.id, talk);
        world.verified();
    });
}

/// A store that runs an action right after the next write, before the writer continues.
struct Meanwhile {
    inner: Arc<dyn Store>,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Store for Meanwhile {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> tine_store::Result<()>) -> Written {
        self.inner.read(body)
    }

    fn write(&self, job: Job) -> Written {
        self.inner.write(job)?;
        if let Some(then) = self.then.lock().expect("no thread panicked").take() {
            then();
        }
        Ok(())
    }

    tine_store::forward_store!(inner);
}

type Written = tine_store::Result<()>;

#[test]
fn a_replay_shows_one_state_whatever_changes_concurrently() {
    let inner: Arc<dyn Store> = Arc::new(tine_store::MemoryStore::new());
    let other = World::over(Arc::clone(&inner), None);
    let talk = other.talk("talk");
    let call = keyed(&other, "key");
    let request = Append::to(talk.clone(), vec![user("a")]);
    other.engine.append(&call, request.clone()).expect("an append");

    let (engine, undo) = (other.engine.clone(), other.call.clone());
    let then = move || {
        engine.undo(&undo, &talk, None).expect("an undo");
    };
    let store = Meanwhile { inner, then: Mutex::new(Some(Box::new(then))) };
    let again = World::over(Arc::new(store), None).engine.append(&call, request);
    let again = again.expect("a replay");
    assert!(again.replayed && !again.undone);
    assert_eq!(again.turns[0].presence, Presence::Live);
}

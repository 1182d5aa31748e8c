//! Restored turns: the host's tree from its slots alone.

use tine_core::{Body, ErrorKind, Message, Name};
use tine_engine::{
    Delete, DeleteMode, Edit, Outcome, Page, RelationshipQuery, SplitTurn, StoreTurn,
};

use crate::world::{World, bot, for_each_store, user};

fn path(world: &World, talk: &str) -> String {
    world.path(&tine_core::ConversationId::from_stored(talk), "main")
}

#[test]
fn an_edited_question_begins_a_branch_and_the_old_one_stays() {
    for_each_store(|world| {
        world.store("chat", "1", user("a"));
        world.store("chat", "1", bot("b"));
        world.store("chat", "2", user("c"));
        let edited = world.store("chat", "1", user("a2"));
        assert_eq!(edited.outcome, Outcome::Created);
        assert_eq!(path(world, "chat"), "a2");
        world.store("chat", "1", bot("b2"));
        world.store("chat", "2", user("c2"));
        assert_eq!(path(world, "chat"), "a2 b2 c2");
        assert_eq!(world.tree(&edited.conversation), "a(b(c)) a2(b2(c2))");
        // Back to the first question, as it was.
        let back = world.store("chat", "1", user("a"));
        assert_eq!(back.outcome, Outcome::Reused);
        world.store("chat", "1", bot("b"));
        world.store("chat", "2", user("c3"));
        assert_eq!(path(world, "chat"), "a b c3");
        assert_eq!(world.tree(&edited.conversation), "a(b(c c3)) a2(b2(c2))");
    });
}

#[test]
fn sending_a_turn_again_moves_nothing_and_adds_an_observation() {
    for_each_store(|world| {
        let first = world.store("chat", "1", user("a"));
        world.store("chat", "1", bot("b"));
        let again = world.store("chat", "1", user("a"));
        assert_eq!((again.outcome, again.turn.id), (Outcome::Reused, first.turn.id));
        assert_eq!(path(world, "chat"), "a b");
        assert_eq!(world.versions(first.entity), ["a", "a"]);
    });
}

#[test]
fn a_turn_named_by_the_id_that_an_answer_gave_it_gets_another_version() {
    for_each_store(|world| {
        let asked = world.store("chat", "1", user("a"));
        let first = world.store("chat", "1", bot("let me see"));
        world.store("chat", "1", Message::tool("call-1", "sun"));
        let second = world.store("chat", "1", bot("it is fine"));
        // Of a part that is not the last one, too.
        let again = world.store("chat", &first.turn.id.to_string(), bot("one moment"));
        assert_eq!((&again.slot, again.entity), (&first.slot, first.entity));
        assert_eq!(again.superseded, Some(first.turn.id));
        assert_eq!(path(world, "chat"), "a one moment");
        let edited = world.store("chat", &asked.turn.id.to_string(), user("a2"));
        assert_eq!(edited.slot.turn_id, "1");
        assert_eq!(world.versions(asked.entity), ["a", "a2"]);
        // A version by its own id means the same slot; so does a half of one.
        let split = SplitTurn { turn: world.turn(edited.turn.id), offset: 1 };
        let half = world.engine.split(&world.call, split).expect("two halves").right.id;
        assert_eq!(world.store("chat", &half.to_string(), user("a3")).entity, asked.entity);
        // A turn that was stored without an id has one as well.
        let request = StoreTurn { turn_id: None, ..StoreTurn::new("chat", "", user("b")) };
        let minted = world.engine.store_turn(&world.call, request).expect("a turn");
        let again = world.store("chat", &minted.turn.id.to_string(), user("b2"));
        assert_eq!(again.slot, minted.slot);
        assert_eq!(path(world, "chat"), "a3 b2");

        let refused = |turn: tine_core::TurnId, message: Message, why: &str| {
            let request = StoreTurn::new("chat", turn.to_string(), message);
            let error = world.engine.store_turn(&world.call, request).expect_err("a refusal");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(why), "{error}");
        };
        refused(second.turn.id, user("x"), "give `1` as `turn_id`");
        refused(second.turn.id, Message::tool("call-1", "x"), "a message of tool (tool call");
        let talk = tine_core::ConversationId::from_stored("chat");
        let plain = world.say(&talk, &["c"]);
        refused(plain[0], user("x"), "edit that turn, or give a new `turn_id`");
    });
}

#[test]
fn a_hosts_own_ids_come_before_those_of_turns() {
    for_each_store(|world| {
        let elsewhere = world.store("other", "1", user("a"));
        let id = elsewhere.turn.id.to_string();
        let stored = world.store("chat", &id, user("b"));
        assert_eq!(stored.slot.turn_id, id, "another conversation's turn is nothing here");
        let own = world.store("chat", "2", user("c"));
        assert_eq!(world.store("chat", &id, bot("d")).slot.turn_id, id);
        let uuid = "0190c0de-0000-7000-8000-000000000001";
        assert_eq!(world.store("chat", uuid, bot("e")).slot.turn_id, uuid);
        assert_eq!(world.store("chat", uuid, user("f")).slot.role, tine_core::Role::User);
        assert_eq!(world.versions(own.entity), ["c"]);
    });
}

#[test]
fn a_repeated_key_replays_and_another_payload_is_refused() {
    for_each_store(|world| {
        let call = world.call.clone().with_key("conversation-chat-1-1700000000000");
        let store =
            |text: &str| world.engine.store_turn(&call, StoreTurn::new("chat", "1", user(text)));
        let first = store("a").expect("a turn");
        let again = store("a").expect("the same answer");
        assert!(again.replayed);
        assert_eq!((again.observation, again.turn.id), (first.observation, first.turn.id));
        assert_eq!(world.versions(first.entity), ["a"]);
        let error = store("b").expect_err("another payload");
        assert_eq!(error.kind(), ErrorKind::IdempotencyMismatch);
    });
}

#[test]
fn tool_calls_results_and_further_answers_under_one_turn_id_are_parts() {
    for_each_store(|world| {
        world.store("chat", "1", user("weather?"));
        let first = world.store("chat", "1", bot("let me see"));
        world.store("chat", "1", Message::tool("call-1", "sun"));
        world.store("chat", "1", Message::tool("call-2", "wind"));
        let second = world.store("chat", "1", bot("let me see"));
        assert_eq!((first.slot.part, second.slot.part), (0, 1));
        world.store("chat", "1", Message::tool("call-3", "rain"));
        let third = world.store("chat", "1", bot("it is fine"));
        assert_eq!(third.slot.part, 2);
        assert_eq!(third.slot.turn_key(&third.conversation), "chat:1:assistant:2");
        assert_eq!(path(world, "chat"), "weather? let me see sun wind let me see rain it is fine");
        // The last answer regenerated is a version of the last part.
        let regenerated = world.store("chat", "1", bot("it is mild"));
        assert_eq!(regenerated.slot.part, 2);
        assert_eq!(regenerated.superseded, Some(third.turn.id));
        // After an edit of the question, parts are counted from 0 again on the new line.
        world.store("chat", "1", user("weather today?"));
        assert_eq!(world.store("chat", "1", bot("hm")).slot.part, 0);
        world.store("chat", "1", Message::tool("call-1", "snow"));
        assert_eq!(world.store("chat", "1", bot("cold")).slot.part, 1);
        assert_eq!(path(world, "chat"), "weather today? hm snow cold");
    });
}

#[test]
fn the_slots_of_a_turn_are_found_by_the_hosts_id_of_it_and_no_others() {
    for_each_store(|world| {
        for (talk, turn) in [("chat", "1"), ("chat", "10"), ("other", "1")] {
            world.store(talk, turn, user("q"));
        }
        world.store("chat", "1", Message::tool("call", "sun"));
        world.store("chat", "1", bot("a"));
        let keys = |talk: &str, turn: &str| -> Vec<String> {
            let talk = tine_core::ConversationId::from_stored(talk);
            let found = world.engine.slots(&world.call, &talk, turn).expect("slots");
            let slots = found.into_iter().filter_map(|it| it.slot);
            slots.map(|slot| slot.turn_key(&talk)).collect()
        };
        assert_eq!(keys("chat", "1"), ["chat:1", "chat:1:assistant", "chat:1:tool:call"]);
        assert_eq!(keys("chat", "10"), ["chat:10"]);
        assert_eq!(keys("other", "1"), ["other:1"]);
        assert_eq!(keys("chat", ""), [""; 0]);
    });
}

#[test]
fn a_result_that_is_sent_again_with_other_words_is_a_version_of_its_call() {
    for_each_store(|world| {
        world.store("chat", "1", user("q"));
        let first = world.store("chat", "1", Message::tool("call-1", "one"));
        let second = world.store("chat", "1", Message::tool("call-1", "two"));
        assert_eq!(first.entity, second.entity);
        assert_eq!(world.tree(&first.conversation), "q(one two)");
    });
}

#[test]
fn a_branch_that_is_named_is_made_at_its_first_store_and_main_stays() {
    for_each_store(|world| {
        world.store("chat", "1", user("a"));
        let tip = world.store("chat", "1", bot("b"));
        let on = |turn: &str, message: Message| {
            let branch = Some("thread-7".to_owned());
            let request = StoreTurn { branch, ..StoreTurn::new("chat", turn, message) };
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        let forked = on("1", bot("b2"));
        assert_eq!(forked.branch.name, Name::from_stored("thread-7"));
        on("2", user("c"));
        assert_eq!(path(world, "chat"), "a b");
        assert_eq!(world.path(&tip.conversation, "thread-7"), "a b2 c");
    });
}

#[test]
fn a_parent_message_wins_over_the_line() {
    for_each_store(|world| {
        world.store("chat", "1", user("a"));
        world.store("chat", "2", bot("b"));
        world.store("chat", "3", user("c"));
        let parent_message = Some("1".to_owned());
        let request = StoreTurn { parent_message, ..StoreTurn::new("chat", "9", bot("x")) };
        world.engine.store_turn(&world.call, request).expect("a turn");
        assert_eq!(path(world, "chat"), "a x");
        let unknown = Some("nowhere".to_owned());
        let request =
            StoreTurn { parent_message: unknown, ..StoreTurn::new("chat", "10", bot("y")) };
        let error = world.engine.store_turn(&world.call, request).expect_err("no such message");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_history_that_is_given_whole_is_placed_first() {
    for_each_store(|world| {
        let history = vec![user("a"), bot("b")];
        let request = StoreTurn { history, ..StoreTurn::new("chat", "3", user("c")) };
        world.engine.store_turn(&world.call, request.clone()).expect("a turn");
        assert_eq!(path(world, "chat"), "a b c");
        let again = world.engine.store_turn(&world.call, request).expect("the same turn");
        assert_eq!(again.outcome, Outcome::Reused);
        assert_eq!(world.tree(&again.conversation), "a(b(c))");
    });
}

#[test]
fn without_a_conversation_one_is_minted_and_its_entity_names_it_too() {
    for_each_store(|world| {
        let request = StoreTurn { conversation: None, ..StoreTurn::new("", "1", user("a")) };
        let first = world.engine.store_turn(&world.call, request).expect("a turn");
        let links = world.engine.relationships(
            &world.call,
            RelationshipQuery::of(first.entity),
            Page::default(),
        );
        let links = links.expect("relationships").items;
        assert_eq!(links.len(), 1);
        assert_eq!((links[0].relation.as_str(), links[0].label()), ("PART_OF", "contains message"));
        let by_entity = world.store(&links[0].target.to_string(), "2", user("b"));
        assert_eq!(by_entity.conversation, first.conversation);
        assert_eq!(world.path(&first.conversation, "main"), "a b");
    });
}

#[test]
fn a_turn_that_replaces_another_supersedes_it() {
    for_each_store(|world| {
        let old = world.store("chat", "1", user("a"));
        let new = world.store("chat", "1", user("b"));
        let query = RelationshipQuery {
            end: Some(tine_engine::End::Turn(new.turn.id.into())),
            ..RelationshipQuery::default()
        };
        let found = world.engine.relationships(&world.call, query, Page::default());
        let found = found.expect("relationships").items;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].relation.as_str(), "SUPERSEDES");
        assert_eq!(found[0].target.to_string(), old.turn.id.to_string());
        assert_eq!(new.turn.origin.edited_from, Some(old.turn.id));
    });
}

#[test]
fn operations_on_the_tree_keep_slots_in_sync() {
    for_each_store(|world| {
        let first = world.store("chat", "1", user("a"));
        world.store("chat", "1", bot("b"));
        let edit = Edit {
            turn: world.turn(first.turn.id),
            body: Body::Text("a2".to_owned()),
            branch: Some("main".to_owned()),
            reuse: true,
        };
        let edited = world.engine.edit(&world.call, edit).expect("an edit").turn;
        assert_eq!(edited.origin.slot.as_ref().map(|slot| slot.turn_id.as_str()), Some("1"));
        assert_eq!(world.versions(first.entity), ["a", "a2"]);
        let content = |world: &World| world.field(first.entity, "content");
        assert_eq!(content(world), "a2".into());

        let delete = Delete {
            turn: world.turn(edited.id),
            mode: DeleteMode::Cascade,
            force: false,
            dry_run: false,
        };
        world.engine.delete(&world.call, delete).expect("a deletion");
        assert_eq!(content(world), "a".into());
        assert_eq!(world.versions(first.entity), ["a", "a2", "(retraction)"]);
        world.engine.undo(&world.call, &first.conversation, None).expect("an undo");
        assert_eq!(content(world), "a2".into());
        world.engine.redo(&world.call, &first.conversation, None).expect("a redo");
        assert_eq!(content(world), "a".into());
        assert!(world.engine.verify().expect("a check").problems.is_empty());
    });
}

#[test]
fn undoing_a_store_retracts_it_and_redoing_restores_it() {
    for_each_store(|world| {
        let first = world.store("chat", "1", user("a"));
        world.store("chat", "1", user("b"));
        let content = |world: &World| world.field(first.entity, "content");
        world.engine.undo(&world.call, &first.conversation, None).expect("an undo");
        assert_eq!(content(world), "a".into());
        world.engine.redo(&world.call, &first.conversation, None).expect("a redo");
        assert_eq!(content(world), "b".into());
        // A store that found its turn there is undone as well, and the turn stays.
        world.store("chat", "1", user("a"));
        assert_eq!(content(world), "a".into());
        world.engine.undo(&world.call, &first.conversation, None).expect("an undo");
        assert_eq!(content(world), "b".into());
        assert_eq!(world.tree(&first.conversation), "a b");
        let problems = world.engine.verify().expect("a check").problems;
        assert!(problems.is_empty(), "{problems:?}");
    });
}

//! Where restored turns could go wrong: odd ids, lost conversations, split and deleted turns,
//! equal texts from elsewhere, many writers.

use std::sync::Arc;

use tine_core::{ConversationId, ErrorKind, Json, Limits, Message, Role};
use tine_engine::{
    Append, Call, ConversationPatch, Delete, DeleteMode, Engine, NewConversation, Outcome, Page,
    Presence, Purge, PurgeTarget, SplitTurn, StoreTurn, StoredTurn,
};
use tine_sqlite::SqliteStore;
use tine_store::MemoryStore;
use tine_testkit::stores::TempFolder;

use super::runs;
use crate::world::{World, bot, for_each_store, reference, user};

fn talk(id: &str) -> ConversationId {
    ConversationId::from_stored(id)
}

fn refused(world: &World, kind: ErrorKind, request: StoreTurn) -> String {
    let error = world.refused(kind, |engine, call| engine.store_turn(call, request));
    world.verified();
    error.to_string()
}

#[test]
fn ids_that_cannot_be_ids_are_refused_and_leave_nothing() {
    for_each_store(|world| {
        let long = "x".repeat(513);
        for id in ["", "a\u{0}b", "a\nb", "\u{7f}", "\u{85}"] {
            refused(world, ErrorKind::Invalid, StoreTurn::new("chat", id, user("a")));
            refused(world, ErrorKind::Invalid, StoreTurn::new(id, "1", user("a")));
        }
        refused(world, ErrorKind::TooLarge, StoreTurn::new("chat", long.as_str(), user("a")));
        refused(world, ErrorKind::TooLarge, StoreTurn::new(long.as_str(), "1", user("a")));
        refused(world, ErrorKind::TooLarge, StoreTurn::new("chat", "1", Message::tool(long, "a")));
        refused(world, ErrorKind::Invalid, StoreTurn::new("~project", "1", user("a")));
        world.facts(vec![super::fact("person", r#"{"name":"Ada"}"#)]);
        // Now the project's own log is there.
        refused(world, ErrorKind::Invalid, StoreTurn::new("~project", "1", user("a")));
        let listed = world.engine.conversations(&world.call, true, Page::default());
        assert_eq!(listed.expect("a list").items.len(), 0);
    });
}

#[test]
fn any_other_text_is_an_id_and_no_two_slots_meet() {
    for_each_store(|world| {
        let longest = "é".repeat(256);
        let ids = [
            "a",
            "a:b",
            "b",
            "a/b",
            "../x",
            "日本語",
            "e\u{301}",
            "\u{e9}",
            " a",
            "user",
            "1:assistant",
        ];
        let ids: Vec<&str> = ids.into_iter().chain([longest.as_str()]).collect();
        let mut seen = std::collections::BTreeSet::new();
        for conversation in &ids {
            for turn in &ids {
                let stored = world.store(conversation, turn, user("hello"));
                assert_eq!(stored.outcome, Outcome::Created, "{conversation} {turn}");
                assert!(seen.insert(stored.entity), "{conversation} {turn} is another's");
                assert_eq!(stored.slot.turn_id, *turn);
                assert_eq!(world.field(stored.entity, "turn_id"), Json::from(*turn));
            }
        }
        // The key that people read may be the same for two; the slots are not.
        let (one, other) = (world.store("a:b", "b", user("x")), world.store("a", "b:b", user("y")));
        let key = |stored: &StoredTurn| stored.slot.turn_key(&stored.conversation);
        assert_eq!(key(&one), key(&other));
        assert_ne!(one.entity, other.entity);
        world.verified();
    });
}

#[test]
fn calls_belong_to_results_alone_and_content_has_its_bounds() {
    for_each_store(|world| {
        let mut with_call = user("a");
        with_call.tool_call_id = Some("call-1".to_owned());
        refused(world, ErrorKind::Invalid, StoreTurn::new("chat", "1", with_call));
        let mut without = Message::tool("call-1", "a");
        without.tool_call_id = None;
        refused(world, ErrorKind::Invalid, StoreTurn::new("chat", "1", without));
        refused(world, ErrorKind::Invalid, StoreTurn::new("chat", "1", Message::tool("", "a")));
        refused(world, ErrorKind::Invalid, StoreTurn::new("chat", "1", user("")));
        let huge = "x".repeat(Limits::default().block_bytes + 1);
        refused(world, ErrorKind::TooLarge, StoreTurn::new("chat", "1", user(&huge)));
        let large = "x".repeat(1 << 20);
        let stored = world.store("chat", "1", user(&large));
        assert_eq!(world.field(stored.entity, "content"), Json::from(large.as_str()));
        assert_eq!(world.store("chat", "1", user(&large)).outcome, Outcome::Reused);
        // One call of several turns is several slots.
        let first = world.store("chat", "1", Message::tool("call-1", "one"));
        let second = world.store("chat", "2", Message::tool("call-1", "two"));
        assert_ne!(first.entity, second.entity);
        let system = Message::text(Role::System, "be brief");
        let system = world.store("chat", "2", system);
        assert_eq!(system.slot.turn_key(&system.conversation), "chat:2:system");
        world.verified();
    });
}

#[test]
fn a_purged_conversation_accepts_nothing_and_an_archived_one_stays_archived() {
    for_each_store(|world| {
        let stored = world.store("gone", "1", user("a"));
        let target = PurgeTarget::Conversation(stored.conversation.clone());
        let asked = Purge { target: target.clone(), confirm: None };
        let confirm = world.engine.purge(&world.call, asked).expect("a plan").confirm;
        world.engine.purge(&world.call, Purge { target, confirm }).expect("an erasure");
        refused(world, ErrorKind::Unsupported, StoreTurn::new("gone", "1", user("a")));
        assert_eq!(world.field(stored.entity, "content"), Json::Null);

        let kept = world.store("kept", "1", user("a")).conversation;
        let patch = ConversationPatch { archived: Some(true), ..ConversationPatch::default() };
        world.engine.patch_conversation(&world.call, &kept, patch).expect("a change");
        world.store("kept", "1", bot("b"));
        assert_eq!(world.path(&kept, "main"), "a b");
        let listed = world.engine.conversations(&world.call, false, Page::default());
        let listed = listed.expect("a list").items;
        assert!(listed.iter().all(|one| one.id != kept), "it is still archived");
        world.verified();
    });
}

#[test]
fn a_purged_version_shows_nothing_not_even_an_earlier_version() {
    for_each_store(|world| {
        world.store("chat", "1", user("early"));
        let late = world.store("chat", "1", user("late"));
        let target = PurgeTarget::Turn(world.turn(late.turn.id));
        let asked = Purge { target: target.clone(), confirm: None };
        let confirm = world.engine.purge(&world.call, asked).expect("a plan").confirm;
        world.engine.purge(&world.call, Purge { target, confirm }).expect("an erasure");
        assert_eq!(world.field(late.entity, "content"), Json::Null);
        assert_eq!(world.field(late.entity, "turn_hash"), Json::from(late.turn.hash.to_string()));
        // The same words do not come back.
        let again = world.store("chat", "1", user("late"));
        assert_eq!((again.outcome, again.turn.id), (Outcome::Reused, late.turn.id));
        assert_eq!(world.field(late.entity, "content"), Json::Null);
        world.verified();
    });
}

#[test]
fn a_conversation_whose_creation_was_undone_is_not_found_until_redo() {
    for_each_store(|world| {
        let stored = world.store("chat", "1", user("a"));
        let chat = stored.conversation.clone();
        world.engine.undo(&world.call, &chat, None).expect("an undo");
        assert_eq!(world.entity(stored.entity).snapshot.observations, 0);
        let error = refused(world, ErrorKind::Conflict, StoreTurn::new("chat", "1", user("b")));
        assert!(error.contains("undone"), "{error}");
        world.engine.redo(&world.call, &chat, None).expect("a redo");
        world.store("chat", "1", user("b"));
        assert_eq!(world.versions(stored.entity), ["a", "(retraction)", "(retraction)", "b"]);
        assert_eq!(world.tree(&chat), "a b");
        world.verified();
    });
}

#[test]
fn a_deleted_branch_is_created_again_at_the_tip_of_main() {
    for_each_store(|world| {
        world.store("chat", "1", user("a"));
        let on_side = |turn: &str, message: Message| {
            let branch = Some("side".to_owned());
            let request = StoreTurn { branch, ..StoreTurn::new("chat", turn, message) };
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        on_side("2", user("b"));
        world.engine.delete_branch(&world.call, &talk("chat"), "side").expect("a removal");
        world.store("chat", "3", user("c"));
        on_side("4", user("d"));
        assert_eq!(world.path(&talk("chat"), "side"), "a c d");
        assert_eq!(world.path(&talk("chat"), "main"), "a c");
        world.verified();
    });
}

#[test]
fn a_turn_for_main_is_refused_after_main_was_deleted() {
    for_each_store(|world| {
        world.store("chat", "1", user("a"));
        world.engine.delete_branch(&world.call, &talk("chat"), "main").expect("a removal");
        for branch in [None, Some("side".to_owned())] {
            let request = StoreTurn { branch, ..StoreTurn::new("chat", "2", user("b")) };
            let error = world.engine.store_turn(&world.call, request).expect_err("no start");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
        world.verified();
    });
}

#[test]
fn a_parent_of_another_conversation_or_one_that_is_gone_is_refused() {
    for_each_store(|world| {
        let other = world.store("other", "1", user("x"));
        let here = world.store("chat", "1", user("a"));
        let gone = world.store("chat", "2", user("b"));
        let under = |parent: &StoredTurn| StoreTurn {
            parent: Some(parent.turn.id.into()),
            ..StoreTurn::new("chat", "9", user("c"))
        };
        refused(world, ErrorKind::Invalid, under(&other));
        let parent_message = Some(other.turn.id.to_string());
        let request = StoreTurn { parent_message, ..StoreTurn::new("chat", "9", user("c")) };
        refused(world, ErrorKind::Invalid, request);
        delete(world, &gone, DeleteMode::Cascade);
        refused(world, ErrorKind::NotFound, under(&gone));
        let stored = world.engine.store_turn(&world.call, under(&here)).expect("a turn");
        assert_eq!(world.path(&stored.conversation, "main"), "a c");
    });
}

fn delete(world: &World, stored: &StoredTurn, mode: DeleteMode) {
    let turn = world.turn(stored.turn.id);
    let delete = Delete { turn, mode, force: false, dry_run: false };
    world.engine.delete(&world.call, delete).expect("a deletion");
}

#[test]
fn a_slot_whose_turn_is_split_is_still_that_slot_and_says_all_of_it() {
    for_each_store(|world| {
        world.store("chat", "1", user("hello there"));
        let first = world.store("chat", "1", bot("good day"));
        let split = SplitTurn { turn: world.turn(first.turn.id), offset: 4 };
        let halves = world.engine.split(&world.call, split).expect("two halves");
        let again = world.store("chat", "1", bot("good day"));
        assert_eq!((again.outcome, again.turn.id), (Outcome::Reused, halves.right.id));
        assert_eq!(world.field(first.entity, "content"), Json::from("good day"));
        assert_eq!(world.versions(first.entity), ["good day", "good day"]);
        assert_eq!(world.tree(&first.conversation), "hello there(good(day))");
        // Another version stands beside it, and the way back finds it.
        let other = world.store("chat", "1", bot("hi"));
        assert_eq!(world.tree(&first.conversation), "hello there(good(day) hi)");
        assert_eq!(other.superseded, Some(first.turn.id));
        let back = world.store("chat", "1", bot("good day"));
        assert_eq!((back.outcome, back.turn.id), (Outcome::Reused, halves.right.id));
        assert_eq!(world.path(&first.conversation, "main"), "hello there good day");
        // When nothing of it is shown any more, it does not stand.
        let left = Delete {
            turn: world.turn(halves.left.id),
            mode: DeleteMode::Cascade,
            force: false,
            dry_run: false,
        };
        world.engine.delete(&world.call, left).expect("a deletion");
        assert_eq!(world.field(first.entity, "content"), Json::from("hi"));
        world.engine.undo(&world.call, &first.conversation, None).expect("an undo");
        assert_eq!(world.field(first.entity, "content"), Json::from("good day"));
        world.verified();
    });
}

#[test]
fn a_slot_whose_turn_was_deleted_can_be_stored_again_and_the_deleted_turn_stays_deleted() {
    for_each_store(|world| {
        world.store("chat", "1", user("a"));
        let first = world.store("chat", "2", user("b"));
        world.store("chat", "3", user("c"));
        delete(world, &first, DeleteMode::Reparent);
        assert_eq!(world.entity(first.entity).snapshot.observations, 0);
        let again = world.store("chat", "2", user("b"));
        assert_eq!((again.entity, again.outcome), (first.entity, Outcome::Created));
        assert_eq!(world.tree(&first.conversation), "a(c(b))");
        assert_eq!(world.versions(first.entity), ["b", "(retraction)", "b"]);
        let old = world.engine.turn(&world.call, world.turn(first.turn.id)).expect("a turn");
        assert_eq!(old.presence, Presence::Deleted);
        world.verified();
    });
}

#[test]
fn turns_both_undone_and_deleted_are_shown_again_once_neither_is_in_effect() {
    for_each_store(|world| {
        let on = |branch: &str, text: &str| {
            let branch = Some(branch.to_owned());
            let request = StoreTurn { branch, ..StoreTurn::new("chat", "1", user(text)) };
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        let first = on("main", "a");
        on("side", "b");
        on("main", "a");
        let content = || world.field(first.entity, "content");
        assert_eq!(content(), Json::from("a"));
        let chat = first.conversation.clone();
        let newest = || {
            let page = Page { limit: Some(1), ..Page::default() };
            world.engine.operations(&world.call, &chat, page).expect("a log").items[0].seq
        };
        let stored = newest();
        // Deleted first, undone then, shown again: the last store is undone.
        delete(world, &first, DeleteMode::Cascade);
        let deleted = newest();
        world.engine.undo(&world.call, &chat, Some(stored)).expect("an undo of the store");
        world.engine.undo(&world.call, &chat, Some(deleted)).expect("an undo of the deletion");
        assert_eq!(content(), Json::from("b"));
        // Undone first, deleted then, redone: what is deleted does not stand.
        delete(world, &first, DeleteMode::Cascade);
        world.engine.redo(&world.call, &chat, Some(stored)).expect("a redo of the store");
        assert_eq!(content(), Json::from("b"));
        world.engine.undo(&world.call, &chat, None).expect("an undo of the deletion");
        assert_eq!(content(), Json::from("a"));
        world.verified();
    });
}

#[test]
fn equal_turns_of_others_beside_a_slot_are_neither_taken_nor_repeated() {
    for_each_store(|world| {
        let id = world.talk("chat");
        world.append(Append::to(id.clone(), vec![user("a")]));
        let under_root = |turn: &str| {
            let parent = Some(reference("root"));
            let request = StoreTurn { parent, ..StoreTurn::new("chat", turn, user("a")) };
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        let first = under_root("1");
        assert_eq!(first.outcome, Outcome::Created, "an appended turn is no slot's");
        let other = under_root("2");
        assert_eq!(other.outcome, Outcome::Created, "nor is that of another slot");
        assert_eq!(under_root("1").turn.id, first.turn.id);
        assert_eq!(under_root("2").turn.id, other.turn.id);
        assert_eq!(world.tree(&id), "a a a");
        world.verified();
    });
}

#[test]
fn a_message_never_follows_itself_and_sent_again_with_its_parent_it_moves_nothing() {
    for_each_store(|world| {
        let send = |turn: &str, parent: Option<&str>, message: Message| {
            let parent_message = parent.map(str::to_owned);
            let request = StoreTurn { parent_message, ..StoreTurn::new("chat", turn, message) };
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        let asked = send("1", None, user("a"));
        let chat = asked.conversation;
        // Question and answer under one id, and the answer follows that id.
        let said = send("1", Some("1"), bot("b"));
        send("2", Some("1"), user("c"));
        assert_eq!(world.tree(&chat), "a(b(c))");
        let again = send("1", Some("1"), bot("b"));
        assert_eq!((again.outcome, again.turn.id), (Outcome::Reused, said.turn.id));
        assert_eq!(world.path(&chat, "main"), "a b c", "the tip stays");
        send("1", Some("1"), bot("b2"));
        assert_eq!(world.tree(&chat), "a(b(c) b2)");
        assert_eq!(world.path(&chat, "main"), "a b2");
        world.verified();
    });
}

#[test]
fn an_earlier_answer_sent_again_in_the_middle_of_a_later_turns_calls_is_that_answer() {
    for_each_store(|world| {
        world.store("chat", "1", user("q1"));
        let first = world.store("chat", "1", bot("a1"));
        world.store("chat", "2", user("q2"));
        world.store("chat", "2", bot("a2"));
        world.store("chat", "2", Message::tool("call-1", "r2"));
        let again = world.store("chat", "1", bot("a1"));
        assert_eq!((again.slot.part, again.turn.id), (0, first.turn.id));
        assert_eq!(world.path(&first.conversation, "main"), "q1 a1 q2 a2 r2");
        assert_eq!(world.store("chat", "2", bot("a3")).slot.part, 1);
    });
}

#[test]
fn a_return_to_an_answer_without_calls_leaves_the_one_with_calls_as_it_was() {
    for_each_store(|world| {
        world.store("chat", "1", user("q"));
        let plain = world.store("chat", "1", bot("plain"));
        let chat = plain.conversation.clone();
        world.store("chat", "1", bot("let me see"));
        world.store("chat", "1", Message::tool("call-1", "sun"));
        world.store("chat", "1", bot("it is sunny"));
        let back = world.store("chat", "1", bot("plain"));
        assert_eq!((back.slot.part, back.turn.id), (0, plain.turn.id));
        assert_eq!(world.path(&chat, "main"), "q plain");
        assert_eq!(world.tree(&chat), "q(plain let me see(sun(it is sunny)))");
    });
}

#[test]
fn more_than_a_thousand_answers_under_one_turn_id_stay_in_line() {
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a new store");
    let world = World::over(Arc::new(store), None);
    world.store("chat", "1", user("do it all"));
    for n in 0..1_010_u32 {
        let stored = world.store("chat", "1", bot("step"));
        assert_eq!((stored.slot.part, stored.outcome), (n, Outcome::Created));
        world.store("chat", "1", Message::tool(format!("call-{n}"), "done"));
    }
    let last = world.store("chat", "1", bot("the end"));
    assert_eq!((last.slot.part, last.turn.depth), (1_010, 2 + 2 * 1_010));
}

const THREADS: usize = 8;
const EACH: usize = 25;

fn crowd(engines: &[Engine]) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = &engines[thread % engines.len()];
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = format!("conversation-chat-1-{thread}-{n}");
                    let call = Call::by(format!("thread {thread}")).with_key(key);
                    let text = format!("{thread} {}", n % 5);
                    let request = StoreTurn::new("chat", "1", user(&text));
                    engine.store_turn(&call, request).expect("a turn");
                }
            });
        }
    });
    let world = World { engine: engines[0].clone(), call: Call::by("tester"), folder: None };
    let last = world.store("chat", "1", user("the end"));
    let page = Page { limit: Some(1_000), ..Page::default() };
    let listed = world.engine.observations(&world.call, last.entity, page);
    let listed = listed.expect("observations").items;
    let seqs: Vec<u64> = listed.iter().map(|one| one.observation.id.seq).collect();
    assert_eq!(seqs.len(), THREADS * EACH + 1, "none is missing");
    assert!(seqs.is_sorted_by(|before, after| before < after), "none is twice");
    for thread in 0..THREADS {
        let own = listed.iter().filter_map(|one| one.observation.fields.get("content"));
        let own =
            own.filter_map(Json::as_str).filter(|text| text.starts_with(&format!("{thread} ")));
        let own: Vec<&str> = own.collect();
        let sent: Vec<String> = (0..EACH).map(|n| format!("{thread} {}", n % 5)).collect();
        assert_eq!(own, sent, "each in its own order");
    }
    // Each text is one turn, however often it was sent.
    assert_eq!(world.rows(&talk("chat")).len(), THREADS * 5 + 1);
    world.verified();
}

#[test]
fn eight_threads_on_one_slot_lose_no_observation() {
    crowd(&[Engine::new(MemoryStore::new())]);
    let folder = TempFolder::new();
    let open = || Engine::new(SqliteStore::open(folder.path()).expect("a store"));
    crowd(&[open(), open(), open()]);
}

#[test]
fn an_envelope_without_sound_ids_is_refused_and_leaves_nothing() {
    for_each_store(|world| {
        for (body, kind) in [
            (r#"{"content":"x","conversation_id":"","turn_id":"1"}"#, ErrorKind::Invalid),
            (r#"{"content":"x","conversation_id":"c","turn_id":""}"#, ErrorKind::Invalid),
            (r#"{"content":"x","conversation_id":"c","role":"tool"}"#, ErrorKind::Invalid),
            (r#"{"content":"x","conversation_id":"c","tool_call_id":"1"}"#, ErrorKind::Invalid),
            (r#"{"content":"","conversation_id":"c","turn_id":"1"}"#, ErrorKind::Invalid),
            (r#"{"content":7}"#, ErrorKind::Invalid),
            (r#"{"content":"x","content":"y"}"#, ErrorKind::Invalid),
            (r#"{"content":"x","timestamp":"yesterday"}"#, ErrorKind::Invalid),
            ("[]", ErrorKind::Invalid),
            ("not JSON", ErrorKind::Invalid),
        ] {
            let request = runs::source(tine_core::facts::envelope::MIME, body);
            let error = world.refused(kind, |engine, call| engine.store_source(call, request));
            assert!(!error.to_string().is_empty());
            let sources = world.engine.sources(&world.call, Page::default()).expect("a list");
            assert_eq!(sources.items.len(), 0, "{body}");
        }
        let missing = r#"{"content":"x","conversation_id":"c","attachment_source_ids":["src_00000000000000000000000000000000"]}"#;
        let request = runs::source(tine_core::facts::envelope::MIME, missing);
        let error = world.engine.store_source(&world.call, request).expect_err("no such source");
        assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid), "{error}");
        world.verified();
    });
}

#[test]
fn a_conversation_that_was_made_without_slots_takes_them_later() {
    for_each_store(|world| {
        let new = NewConversation::named("chat").expect("a sound id");
        let id = world.engine.create_conversation(&world.call, new).expect("a conversation").id;
        world.say(&id, &["a", "b"]);
        let stored = world.store("chat", "3", user("c"));
        assert_eq!(world.tree(&id), "a(b(c))");
        assert_eq!(world.versions(stored.entity), ["c"]);
        world.verified();
    });
}

//! The hashes of the contract, seen through an append.

use tine_core::hash::{root_hash, turn_hash};
use tine_core::{Message, Timestamp};
use tine_engine::{Append, NewConversation};

use crate::world::{bot, for_each_store, user};

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().expect("a sound time"))
}

#[test]
fn appended_turns_have_the_hashes_of_the_contract() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let question = Message {
            created_at: at("2024-01-15T10:30:00Z"),
            ..user("What's the best time to visit Tokyo?")
        };
        let answer = Message { created_at: at("2024-01-15T10:30:05Z"), ..bot("Late March 🌸") };
        let turns = world.append(Append::to(talk, vec![question, answer])).turns;
        let hex: Vec<String> = turns.iter().map(|turn| turn.hash.to_string()).collect();
        assert_eq!(
            hex,
            [
                "sha256:a9d2e63be84cb3d0dbeec588566ebea44c8e01ac5e2b3431ab5a59e41750f7a3",
                "sha256:e38bb1328f493d3701c7848d3afcf32be8a008ecee50490cd5e2e68d18d1ae92",
            ]
        );
        assert_eq!(turns[0].parent_hash, None);
        assert_eq!(turns[1].parent_hash, Some(turns[0].hash));
        assert_eq!((turns[0].depth, turns[1].depth), (1, 2));
    });
}

#[test]
fn a_hash_that_would_repeat_moves_the_time_on_by_a_millisecond() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let message = Message { created_at: at("2024-01-15T10:30:00Z"), ..user("again") };
        let request = Append { reuse: false, ..Append::to(talk, vec![message]) }.from_root();
        let times: Vec<String> =
            (0..3).map(|_| world.append(request.clone()).turns[0].created_at.to_string()).collect();
        let want = ["2024-01-15T10:30:00Z", "2024-01-15T10:30:00.001Z", "2024-01-15T10:30:00.002Z"];
        assert_eq!(times, want);
        world.verified();
    });
}

#[test]
fn a_hash_is_also_taken_while_its_turn_is_deleted() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let message = Message { created_at: at("2024-01-15T10:30:00Z"), ..user("again") };
        let request = Append::to(talk, vec![message]).from_root();
        let first = world.append(request.clone()).turns.remove(0);
        crate::delete::cascade(world, first.id);
        let second = world.append(request).turns.remove(0);
        assert_ne!(first.hash, second.hash);
        assert_eq!(second.created_at, first.created_at.next());
    });
}

#[test]
fn a_tool_turn_hashes_its_call() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let messages = vec![Message::tool("call-1", ""), Message::tool("call-2", "")];
        let turns = world.append(Append::to(talk, messages)).turns;
        let again = |n: usize| {
            let turn = &turns[n];
            let tine_store::Content::Kept(body) = &turn.content else { panic!("erased") };
            let (parent, call) = (turn.parent_hash, turn.tool_call_id.as_deref());
            turn_hash(parent.as_ref(), turn.role, body, call, turn.created_at)
        };
        assert_eq!((turns[0].hash, turns[1].hash), (again(0), again(1)));
    });
}

#[test]
fn the_root_hash_covers_prompt_and_config() {
    for_each_store(|world| {
        let config = tine_core::json::object([("temperature", 1.into())]);
        let new = NewConversation {
            system_prompt: Some("be brief".to_owned()),
            config: config.clone(),
            ..NewConversation::named("talk").expect("a sound id")
        };
        let view = world.engine.create_conversation(&world.call, new).expect("a conversation");
        assert_eq!(view.root_hash, root_hash(Some("be brief"), &config));
    });
}

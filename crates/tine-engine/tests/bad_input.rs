//! Bad input: each has a named error and leaves the store as it was.

use tine_core::json::{self, JsonErrorKind};
use tine_core::{Body, ErrorKind, Limits, Message, Role};
use tine_engine::{Append, Call, Engine, Error, NewConversation};

use crate::world::{World, bot, for_each_store, ids, reference, user};

/// What a surface does with bytes: reads JSON, makes a message, appends it.
fn send(engine: &Engine, call: &Call, bytes: &[u8]) -> Result<(), Error> {
    let limits = Limits::default();
    let json = json::parse(bytes, limits.json_depth)?;
    let message =
        Message::from_json(json, &limits).map_err(|source| Error::Message { index: 0, source })?;
    let talk = tine_core::ConversationId::new("talk", &limits)?;
    engine.append(call, Append::to(talk, vec![message])).map(|_| ())
}

fn refused(kind: ErrorKind, bytes: &[u8]) {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["before"]);
        world.refused(kind, |engine, call| send(engine, call, bytes));
    });
}

fn refused_message(kind: ErrorKind, message: Message) {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["before"]);
        world.refused(kind, |engine, call| {
            engine.append(call, Append::to(talk.clone(), vec![user("fine"), message.clone()]))
        });
    });
}

#[test]
fn empty_content_is_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"user","content":""}"#);
    refused(ErrorKind::Invalid, br#"{"role":"user","content":[]}"#);
    refused(ErrorKind::Invalid, br#"{"role":"user","content":null}"#);
    refused(ErrorKind::Invalid, br#"{"role":"user"}"#);
    refused_message(ErrorKind::Invalid, user(""));
    refused_message(ErrorKind::Invalid, bot(""));
}

#[test]
fn a_tool_may_say_nothing() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.append(Append::to(talk.clone(), vec![Message::tool("call", "")]));
        assert_eq!(world.rows(&talk).len(), 1);
    });
}

#[test]
fn an_unknown_role_is_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"robot","content":"hi"}"#);
}

#[test]
fn a_tool_turn_without_its_call_is_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"tool","content":"result"}"#);
    refused_message(ErrorKind::Invalid, Message { role: Role::Tool, ..user("result") });
    refused_message(ErrorKind::Invalid, Message::tool("", "result"));
}

#[test]
fn a_call_on_any_other_turn_is_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"user","content":"hi","tool_call_id":"c"}"#);
    refused_message(ErrorKind::Invalid, Message { role: Role::User, ..Message::tool("c", "hi") });
}

#[test]
fn tool_use_in_a_user_turn_is_invalid() {
    let block = r#"[{"type":"tool-use","id":"c","name":"n","parameters":{}}]"#;
    refused(ErrorKind::Invalid, format!(r#"{{"role":"user","content":{block}}}"#).as_bytes());
    let limits = Limits::default();
    let json = json::parse(block.as_bytes(), limits.json_depth).expect("sound JSON");
    let body = Body::from_content(json, Role::Assistant, &limits).expect("sound blocks");
    refused_message(ErrorKind::Invalid, Message { body, ..user("") });
}

#[test]
fn invalid_utf8_is_invalid() {
    refused(ErrorKind::Invalid, b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}");
}

#[test]
fn lone_surrogates_are_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"user","content":"\ud83d"}"#);
}

#[test]
fn json_nested_129_deep_is_too_large() {
    let nested = |depth: usize| {
        // The message, its array of blocks and the block are three levels of their own.
        let inner = format!("{}{}", "[".repeat(depth - 3), "]".repeat(depth - 3));
        format!(r#"{{"role":"user","content":[{{"type":"deep","v":{inner}}}]}}"#)
    };
    refused(ErrorKind::TooLarge, nested(129).as_bytes());
    for_each_store(|world| {
        world.talk("talk");
        send(&world.engine, &world.call, nested(128).as_bytes()).expect("128 is allowed");
    });
}

#[test]
fn duplicate_keys_are_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"user","content":"a","content":"b"}"#);
    refused(ErrorKind::Invalid, br#"{"role":"user","content":[{"type":"x","k":1,"\u006b":2}]}"#);
}

#[test]
fn a_number_that_overflows_is_invalid() {
    refused(ErrorKind::Invalid, br#"{"role":"user","content":[{"type":"x","n":1e400}]}"#);
    let error = json::parse(b"1e400", 1).expect_err("too large for a double");
    assert!(matches!(error.kind, JsonErrorKind::NumberOverflow { .. }));
}

#[test]
fn a_block_over_16_mib_is_too_large() {
    let text = "x".repeat((16 << 20) + 1);
    refused(ErrorKind::TooLarge, format!(r#"{{"role":"user","content":"{text}"}}"#).as_bytes());
    refused_message(ErrorKind::TooLarge, user(&text));
    refused_message(ErrorKind::TooLarge, Message::tool("call", text));
}

#[test]
fn more_than_10_000_messages_in_a_call_are_too_large() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.refused(ErrorKind::TooLarge, |engine, call| {
            engine.append(call, Append::to(talk.clone(), vec![user("x"); 10_001]))
        });
        world.append(Append::to(talk, vec![user("x"); 10_000]));
    });
}

#[test]
fn no_message_at_all_is_invalid() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.append(call, Append::to(talk.clone(), vec![]))
        });
    });
}

#[test]
fn a_parent_in_another_conversation_is_invalid() {
    for_each_store(|world| {
        let (here, there) = (world.talk("here"), world.talk("there"));
        let said = world.say(&there, &["a"]);
        world.refused(ErrorKind::Invalid, |engine, call| {
            let request = Append::to(here.clone(), vec![user("b")]);
            engine.append(call, request.under(said[0].into(), "side"))
        });
    });
}

#[test]
fn a_deleted_parent_is_not_found() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        crate::delete::cascade(world, said[1]);
        world.refused(ErrorKind::NotFound, |engine, call| {
            let request = Append::to(talk.clone(), vec![user("c")]);
            engine.append(call, request.under(said[1].into(), "side"))
        });
    });
}

#[test]
fn a_conversation_that_is_not_there_is_not_found() {
    for_each_store(|world| {
        let nowhere = tine_core::ConversationId::new("nowhere", &Limits::default());
        let nowhere = nowhere.expect("a sound id");
        world.refused(ErrorKind::NotFound, |engine, call| {
            engine.append(call, Append::to(nowhere.clone(), vec![user("a")]))
        });
        world.refused(ErrorKind::NotFound, |engine, call| engine.tails(call, &nowhere));
        world.refused(ErrorKind::NotFound, |engine, call| engine.undo(call, &nowhere, None));
    });
}

#[test]
fn names_over_512_bytes_are_too_large() {
    let limits = Limits::default();
    let long = "n".repeat(513);
    let error = NewConversation::named(&long).expect_err("too long");
    assert_eq!(Error::from(error).kind(), ErrorKind::TooLarge);
    let error = tine_core::Name::new(long.as_str(), &limits).expect_err("too long");
    assert_eq!(Error::from(error).kind(), ErrorKind::TooLarge);
    refused_message(ErrorKind::TooLarge, Message::tool(long.as_str(), "result"));
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        world.refused(ErrorKind::TooLarge, |engine, call| {
            let patch =
                tine_engine::MetadataPatch { add_tags: vec![long.clone()], ..Default::default() };
            engine.patch_metadata(call, tine_engine::TurnRef::of(said[0]), patch)
        });
        world.refused(ErrorKind::TooLarge, |engine, call| {
            let request = Append::to(talk.clone(), vec![user("b")]);
            engine.append(call, request.under(reference("root"), &long))
        });
    });
}

#[test]
fn a_branch_name_that_means_something_else_is_invalid() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        for name in ["root", "deadbeef", "a~1", ""] {
            world.refused(ErrorKind::Invalid, |engine, call| {
                let request = Append::to(talk.clone(), vec![user("b")]);
                engine.append(call, request.under(reference("root"), name))
            });
        }
    });
}

#[test]
fn smaller_limits_hold_as_well() {
    let limits = Limits { block_bytes: 8, messages_per_append: 2, ..Limits::default() };
    let store = std::sync::Arc::new(tine_store::MemoryStore::new());
    let clock = std::sync::Arc::new(tine_engine::ManualClock::new(crate::world::start(), 1));
    let entropy = std::sync::Arc::new(tine_engine::FixedEntropy::new(1));
    let world = World {
        engine: Engine::with(store, clock, entropy, limits),
        call: Call::by("tester"),
        folder: None,
    };
    let talk = world.talk("talk");
    let append = |messages| Append::to(talk.clone(), messages);
    world.refused(ErrorKind::TooLarge, |engine, call| {
        engine.append(call, append(vec![user("123456789")]))
    });
    world.refused(ErrorKind::TooLarge, |engine, call| {
        engine.append(call, append(vec![user("1"), user("2"), user("3")]))
    });
    assert_eq!(ids(&world.append(append(vec![user("12345678")]))).len(), 1);
}

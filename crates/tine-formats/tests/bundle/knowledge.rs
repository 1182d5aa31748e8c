//! Knowledge records survive export and import.

use std::sync::Arc;

use tine_core::json::{Json, Object};
use tine_core::{Message, Role};
use tine_engine::{Call, Engine, Interpret, Merge, NewFact, NewSource, StoreFacts, StoreTurn};
use tine_formats::bundle::{read_bundle, write_bundle};
use tine_store::MemoryStore;

use super::sample::{lines, place, seal};
use super::script::run;

fn named(name: &str) -> NewFact {
    let fields: Object = [("name".to_owned(), Json::from(name))].into_iter().collect();
    NewFact::of("person", fields)
}

fn filled() -> (Engine, Call) {
    let (engine, call) = (Engine::new(MemoryStore::new()), Call::by("tester"));
    let photo = NewSource {
        content: Arc::new(vec![0xd8; 300_000]),
        mime_type: "image/png".to_owned(),
        original_filename: None,
        interpret: Interpret::None,
        interpreter: None,
    };
    let photo = engine.store_source(&call, photo).unwrap().source.id;
    let text = "I need to call Ada Lovelace by 2025-03-01.";
    let mut turn = StoreTurn::new("chat", "t:1", Message::text(Role::User, text));
    (turn.attachments, turn.interpret) = (vec![photo], Interpret::Wait);
    engine.store_turn(&call, turn).unwrap();
    for text in ["Noted.", "Noted!"] {
        let answer = StoreTurn::new("chat", "t:1", Message::text(Role::Assistant, text));
        engine.store_turn(&call, answer).unwrap();
    }
    let entities = vec![named("Ada"), named("A. Byron")];
    let made = engine.store_facts(&call, StoreFacts { entities, ..StoreFacts::default() }).unwrap();
    let merge = Merge { from: made.entities[1].entity, into: made.entities[0].entity };
    engine.merge_entities(&call, merge).unwrap();
    (engine, call)
}

fn bundle(engine: &Engine, call: &Call) -> Vec<u8> {
    let mut out = Vec::new();
    let ids = engine.exported(call).unwrap();
    write_bundle(engine, call, &ids, &mut out).unwrap();
    out
}

#[test]
fn knowledge_round_trips_byte_for_byte_and_the_script_agrees() {
    let (engine, call) = filled();
    let bytes = bundle(&engine, &call);
    let (content, said) = run(&bytes);
    assert!(content, "{said}");
    let other = Engine::new(MemoryStore::new());
    read_bundle(&other, None, &mut bytes.as_slice()).unwrap();
    assert!(other.verify().unwrap().problems.is_empty());
    assert!(bundle(&other, &call) == bytes, "the same bytes");
}

#[test]
fn a_changed_fact_a_changed_byte_and_a_missing_observation_are_found_by_both() {
    let (engine, call) = filled();
    let whole = lines(&bundle(&engine, &call));
    let spoil = |edit: &dyn Fn(&mut Vec<String>), name: &str| {
        let mut lines = whole.clone();
        edit(&mut lines);
        let spoiled = seal(&lines);
        let (content, said) = run(&spoiled);
        assert!(!content && said.contains(name), "{said}");
        let other = Engine::new(MemoryStore::new());
        read_bundle(&other, None, &mut spoiled.as_slice()).unwrap_err();
        assert!(other.projects().unwrap()[0].created_at.is_none(), "nothing was kept");
    };
    let fact = place(&whole, r#""kind":"observation""#);
    let named = place(&whole, r#""name":"Ada Lovelace""#);
    spoil(&|lines| lines[named] = lines[named].replace("Ada Lovelace", "Eve Lovelace"), "digest");
    spoil(&|lines| drop(lines.remove(fact)), "it is missing");
    let piece = place(&whole, "2NjY2NjY2NjY");
    spoil(&|lines| lines[piece] = lines[piece].replacen("2Nj", "2Nk", 1), "content_hash");
}

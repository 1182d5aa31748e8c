//! Turns with the bytes that they were read from.

use std::sync::Arc;

use tine_engine::{Append, Interpret, NewSource, Purge, PurgeTarget, TurnRef};

use crate::world::{World, bot, for_each_store, spoken};

fn heard(bytes: &str) -> NewSource {
    NewSource {
        content: Arc::new(bytes.as_bytes().to_vec()),
        mime_type: "application/x-ndjson".to_owned(),
        original_filename: None,
        interpret: Interpret::None,
        interpreter: None,
    }
}

#[test]
fn turns_and_the_bytes_they_were_read_from_are_stored_and_erased_together() {
    for_each_store(stored_and_erased);
}

fn stored_and_erased(world: &World) {
    let (engine, call) = (&world.engine, &world.call);
    let talk = world.talk("t");
    let promised = engine.promise_turn_id();
    let append = Append::to(talk.clone(), vec![bot("late March")]);
    let done = engine.append_with_source(call, Some(promised), append, heard("{\"raw\":1}\n"));
    let turn = done.expect("turn and bytes").turns[0].id;
    assert_eq!(turn, promised);
    let source = engine.source_id_of(call, b"{\"raw\":1}\n");
    assert_eq!(engine.source(call, source).expect("the bytes").turn, Some(turn));
    let more = engine.attach_source(call, TurnRef::of(turn), heard("{\"raw\":2}\n"));
    let more = more.expect("more bytes of the turn");
    world.verified();

    let purge = |confirm| Purge { target: PurgeTarget::Turn(TurnRef::of(turn)), confirm };
    let word = engine.purge(call, purge(None)).expect("a plan").confirm;
    let gone = engine.purge(call, purge(word)).expect("an erasure");
    assert_eq!(gone.sources.len(), 2);
    assert!(gone.sources.contains(&source) && gone.sources.contains(&more));
    assert!(engine.source(call, source).expect("what is left of it").purged);
    world.verified();
}

#[test]
fn a_refused_append_keeps_no_bytes() {
    for_each_store(refused);
}

fn refused(world: &World) {
    let (engine, call) = (&world.engine, &world.call);
    let talk = world.talk("t");
    let messages = || spoken(&["one", "two"]);
    let two = engine.append_with_source(
        call,
        Some(engine.promise_turn_id()),
        Append::to(talk.clone(), messages()),
        heard("a"),
    );
    assert!(two.is_err(), "an id stands for one message");
    let nowhere = Append { branch: Some("nowhere".to_owned()), ..Append::to(talk, messages()) };
    assert!(engine.append_with_source(call, None, nowhere, heard("a")).is_err());
    assert!(engine.source(call, engine.source_id_of(call, b"a")).is_err());
}

//! What came behind an entry of a log, as lines: the same again when read, whole or not at all,
//! and small.

use tine_core::Limits;
use tine_engine::{Delta, DeltaScope, Engine, SplitTurn, TurnRef};
use tine_formats::bundle::{read_delta, write_delta};

use super::stories::{call, create, everything, export, id, memory, say};
use crate::fuzz::mutations::{SeededRng, mutate};
use crate::fuzz::targets;

fn written(delta: &Delta) -> Vec<u8> {
    let mut lines = Vec::new();
    write_delta(delta, &Limits::default(), &mut lines).unwrap();
    lines
}

fn read(mut lines: &[u8]) -> Result<Delta, String> {
    read_delta(&mut lines, &Limits::default()).map_err(|error| error.to_string())
}

fn deltas(engine: &Engine, conversation: &str) -> Vec<Delta> {
    let talk = id(conversation);
    let end = engine.log_end(&call(), &talk).unwrap().unwrap();
    let entries: Vec<u64> = (1..=end.seq).collect();
    let hashes = engine.log_hashes(&call(), &talk, &entries).unwrap();
    let marks = entries.into_iter().zip(hashes.into_iter().map(Option::unwrap));
    let marks = marks.map(|(seq, hash)| Some(tine_engine::LogMark { seq, hash }));
    let made = marks.chain([None]).flat_map(|since| {
        [DeltaScope::Log, DeltaScope::Turns]
            .map(|scope| engine.delta(&call(), &talk, since, scope).unwrap())
    });
    made.collect()
}

#[test]
fn deltas_after_any_entry_round_trip() {
    let engine = memory(1);
    for conversation in everything(&engine) {
        for delta in deltas(&engine, conversation) {
            let lines = written(&delta);
            let again = read(&lines).unwrap();
            assert_eq!(again.bytes, lines.len() as u64);
            assert_eq!(Delta { bytes: delta.bytes, ..again }, delta);
        }
    }
}

#[test]
fn importing_an_existing_conversation_adds_nothing() {
    let engine = memory(1);
    for conversation in everything(&engine) {
        let other = memory(2);
        let whole = engine.delta(&call(), &id(conversation), None, DeltaScope::Log).unwrap();
        other.receive(&call(), read(&written(&whole)).unwrap()).unwrap();
        for delta in deltas(&engine, conversation) {
            let done = other.receive(&call(), read(&written(&delta)).unwrap()).unwrap();
            assert_eq!((done.turns, done.operations), (0, 0));
        }
    }
}

#[test]
fn a_delta_with_a_changed_byte_or_missing_line_is_rejected() {
    let engine = memory(1);
    create(&engine, "talk");
    say(&engine, "talk", &["a", "b"]);
    let since = engine.log_end(&call(), &id("talk")).unwrap();
    say(&engine, "talk", &["c"]);
    for scope in [DeltaScope::Log, DeltaScope::Turns] {
        let delta = engine.delta(&call(), &id("talk"), since, scope).unwrap();
        assert_eq!((delta.turns(), delta.known.len()), (1, 1));
        let lines = written(&delta);
        for at in 0..lines.len() {
            let mut altered = lines.clone();
            altered[at] ^= 1;
            // In the header, another entry would be another delta: the chain does not fit it.
            assert!(read(&altered).is_err(), "byte {at}");
            assert!(read(&lines[..at]).is_err(), "cut at {at}");
        }
        let text = String::from_utf8(lines.clone()).unwrap();
        for left_out in 0..text.lines().count() {
            let kept = text.lines().enumerate().filter(|(nth, _)| *nth != left_out);
            let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
            assert!(read(kept.as_bytes()).is_err(), "without line {left_out}");
        }
    }
    for other in [b"".as_slice(), b"\n", b"{}", b"[]\n", b"\xff\xfe\n", &export(&engine, &["talk"])]
    {
        assert!(read(other).unwrap_err().contains("line 1"));
    }
}

/// The same engine with the same past, whenever it is made.
fn with_talk() -> Engine {
    let engine = memory(1);
    create(&engine, "talk");
    say(&engine, "talk", &["a", "b"]);
    engine
}

#[test]
fn mutated_deltas_are_rejected_or_verify() {
    let source = with_talk();
    let since = source.log_end(&call(), &id("talk")).unwrap();
    let more = say(&source, "talk", &["c", "d e", "f"]);
    source.split(&call(), SplitTurn { turn: TurnRef::of(more[1]), offset: 1 }).unwrap();
    source.undo(&call(), &id("talk"), None).unwrap();
    let corpus: Vec<Vec<u8>> =
        [(since, DeltaScope::Log), (since, DeltaScope::Turns), (None, DeltaScope::Log)]
            .map(|(since, scope)| {
                let lines = written(&source.delta(&call(), &id("talk"), since, scope).unwrap());
                let end = lines[..lines.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
                lines[..=end].to_vec()
            })
            .into();
    for lines in &corpus {
        read(&targets::sealed(lines)).expect("what is not altered is read");
    }
    let mut rng = SeededRng(10);
    let mut taken = 0;
    for _ in 0..2_000 {
        let lines = targets::sealed(&mutate(&mut rng, &corpus));
        let Ok(delta) = read(&lines) else { continue };
        let engine = with_talk();
        let before = export(&engine, &["talk"]);
        match engine.receive(&call(), delta) {
            Ok(_) => taken += 1,
            Err(_) => assert!(export(&engine, &["talk"]) == before, "refused, and changed"),
        }
        let text = String::from_utf8_lossy(&lines);
        assert_eq!(engine.verify().unwrap().problems, [], "{text}");
    }
    assert!(taken > 0, "some alterations are harmless");
}

#[test]
fn a_delta_of_one_new_turn_in_a_thousand_is_less_than_a_hundredth_in_size() {
    let engine = memory(1);
    create(&engine, "talk");
    let texts: Vec<String> =
        (0..10_000).map(|nth| format!("turn {nth} {}", "words ".repeat(30))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for some in texts.chunks(1_000) {
        say(&engine, "talk", some);
    }
    let (talk, since) = (id("talk"), engine.log_end(&call(), &id("talk")).unwrap());
    let whole = written(&engine.delta(&call(), &talk, None, DeltaScope::Log).unwrap()).len();
    say(&engine, "talk", &texts[..10]);
    for scope in [DeltaScope::Log, DeltaScope::Turns] {
        let part = written(&engine.delta(&call(), &talk, since, scope).unwrap()).len();
        assert!(part * 100 < whole, "{part} of {whole}");
    }
}

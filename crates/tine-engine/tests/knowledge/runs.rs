//! Sources, the envelope, and runs of interpreters over them.

use std::sync::Arc;

use tine_core::facts::envelope;
use tine_core::json::Json;
use tine_core::{ErrorKind, SourceId};
use tine_engine::{
    Interpret, NewSource, Page, Reinterpret, RelationshipQuery, RunPair, RunQuery, RunStatus,
    StoreTurn, StoredSource,
};

use crate::world::{World, for_each_store, user};

pub(super) fn source(mime_type: &str, bytes: impl Into<Vec<u8>>) -> NewSource {
    NewSource {
        content: Arc::new(bytes.into()),
        mime_type: mime_type.to_owned(),
        original_filename: None,
        interpret: Interpret::None,
        interpreter: None,
    }
}

pub(super) fn turn_envelope(turn: &str, text: &str) -> NewSource {
    let body = format!(
        r#"{{"content":{text:?},"conversation_id":"chat","turn_id":"{turn}","timestamp":"2025-01-15T12:00:00Z"}}"#
    );
    NewSource { interpret: Interpret::Wait, ..source(envelope::NEOTOMA_MIME, body) }
}

pub(super) fn keep(world: &World, request: NewSource) -> StoredSource {
    world.engine.store_source(&world.call, request).expect("bytes that are kept")
}

pub(super) fn bytes(world: &World, id: SourceId) -> Vec<u8> {
    let mut all = Vec::new();
    for nth in 0.. {
        match world.engine.source_piece(&world.call, id, nth).expect("a piece") {
            Some(piece) => all.extend(piece),
            None => return all,
        }
    }
    all
}

#[test]
fn bytes_of_any_size_come_back_and_are_kept_once() {
    for_each_store(|world| {
        for size in [0, 1, 262_143, 262_144, 262_145, 1_000_000] {
            let content: Vec<u8> = (0..size).map(|n: usize| (n % 251) as u8).collect();
            let first = keep(world, source("application/octet-stream", content.clone()));
            assert_eq!(bytes(world, first.source.id), content);
            let again = keep(world, source("application/octet-stream", content));
            assert_eq!(again.source, first.source);
            assert_eq!(again.outcome, tine_engine::Outcome::Reused);
        }
        world.verified();
    });
}

#[test]
fn a_repeated_key_answers_with_the_same_source_and_other_bytes_are_refused() {
    for_each_store(|world| {
        let call = world.call.clone().with_key("k");
        let store = |text: &str| world.engine.store_source(&call, source("text/plain", text));
        let first = store("a").expect("a source");
        let again = store("a").expect("the same");
        assert!(again.replayed && again.source == first.source);
        assert_eq!(store("b").expect_err("other bytes").kind(), ErrorKind::IdempotencyMismatch);
    });
}

/// Validation of the unstructured-provenance document, first line.
#[test]
fn an_envelope_is_one_source_one_logged_run_and_observations_that_trace_to_it() {
    for_each_store(|world| {
        let kept = keep(world, turn_envelope("t1", "I need to call Maria Lopez tomorrow."));
        let run = kept.interpretation.expect("a run");
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        assert_eq!(run.detail.get("kind"), Some(&Json::from("rules")));
        assert!(run.detail.get("input_hash").is_some_and(|hash| !hash.is_null()));
        assert!(!run.observations.is_empty());
        for id in &run.observations {
            let one = world.observed(id.entity).into_iter().find(|it| it.observation.id == *id);
            let one = one.expect("the observation").observation;
            assert_eq!(one.source, Some(kept.source.id));
            assert_eq!(one.interpretation, Some(run.id));
            assert_eq!(one.turn, kept.turn.as_ref().map(|turn| turn.turn.id));
        }
        let sources = world.engine.sources(&world.call, Page::default()).expect("a list");
        assert_eq!(sources.items.len(), 1);
        // The message refers to what was found.
        let message = kept.turn.expect("a turn").entity;
        let found = world.engine.relationships(
            &world.call,
            RelationshipQuery::of(message),
            Page::default(),
        );
        let found = found.expect("relationships").items;
        assert!(found.iter().any(|it| it.relation.as_str() == "REFERS_TO"));
        world.verified();
    });
}

/// Validation of the unstructured-provenance document, second line.
#[test]
fn equal_text_under_another_turn_id_is_another_source_and_another_run() {
    for_each_store(|world| {
        let first = keep(world, turn_envelope("t1", "I live in Lisbon."));
        let second = keep(world, turn_envelope("t2", "I live in Lisbon."));
        assert_ne!(first.source.id, second.source.id);
        let runs = [first.interpretation, second.interpretation].map(|run| run.expect("a run").id);
        assert_ne!(runs[0], runs[1]);
        let mut warned = turn_envelope("", "x");
        warned.content = Arc::new(br#"{"content":"hello"}"#.to_vec());
        let warned = keep(world, warned);
        assert!(warned.warnings[0].contains("neither turn_id nor timestamp"));
        assert!(warned.turn.is_none(), "it names no conversation");
    });
}

/// Validation of the unstructured-provenance document, third line.
#[test]
fn reading_a_source_again_is_a_new_run_and_leaves_the_bytes_alone() {
    for_each_store(|world| {
        let kept = keep(world, turn_envelope("t1", "We decided to use Rust for the parser."));
        let before = bytes(world, kept.source.id);
        let first = kept.interpretation.expect("a run");
        let request =
            Reinterpret { sources: vec![kept.source.id], wait: true, ..Reinterpret::default() };
        let again = world.engine.reinterpret(&world.call, request).expect("a run").remove(0);
        assert_ne!(again.id, first.id);
        assert_eq!(again.status, RunStatus::Completed);
        assert_eq!(bytes(world, kept.source.id), before);
        let old = world.engine.interpretation(&world.call, first.id).expect("the first run");
        assert_eq!(old, first, "an old run never changes");
        let pair = RunPair { before: first.id, after: again.id };
        let compared =
            world.engine.compare_interpretations(&world.call, pair).expect("a comparison");
        assert_eq!(compared.same, first.observations.len());
        assert!(compared.gained.is_empty() && compared.lost.is_empty());
        let of_source = RunQuery { source: Some(kept.source.id), open: false };
        let runs = world.engine.interpretations(&world.call, of_source, Page::default());
        assert_eq!(runs.expect("runs").items.len(), 2);
    });
}

#[test]
fn a_queued_run_waits_for_a_worker_and_is_done_once() {
    for_each_store(|world| {
        let mut request = StoreTurn::new("chat", "1", user("Remind me to water the plants."));
        request.interpret = Interpret::Queue;
        let stored = world.engine.store_turn(&world.call, request).expect("a turn");
        let run = stored.interpretation.expect("a run");
        assert_eq!(run.status, RunStatus::Queued);
        let status = world.engine.interpretation_queue(&world.call).expect("a queue");
        assert_eq!((status.queued, status.running), (1, 0));
        assert_eq!(world.engine.run_pending().expect("work"), 1);
        assert_eq!(world.engine.run_pending().expect("no work"), 0);
        let done = world.engine.interpretation(&world.call, run.id).expect("the run");
        assert_eq!(done.status, RunStatus::Completed);
        assert_eq!(done.attempts, 1);
        world.verified();
    });
}

#[test]
fn a_run_over_bytes_that_are_not_text_fails_and_can_be_retried() {
    for_each_store(|world| {
        let kept = keep(world, source("text/plain", vec![0xff, 0xfe, 0x00]));
        let request =
            Reinterpret { sources: vec![kept.source.id], wait: true, ..Reinterpret::default() };
        let failed = world.engine.reinterpret(&world.call, request).expect("a run").remove(0);
        assert_eq!(failed.status, RunStatus::Failed);
        assert!(failed.error.as_deref().is_some_and(|why| why.contains("UTF-8")));
        assert_eq!(bytes(world, kept.source.id), [0xff, 0xfe, 0x00]);
        let retried = world.engine.retry_interpretation(&world.call, failed.id).expect("a retry");
        assert_eq!((retried.status, retried.retry_of), (RunStatus::Queued, Some(failed.id)));
        let ended = world.engine.await_interpretation(&world.call, retried.id).expect("an end");
        assert_eq!(ended.status, RunStatus::Failed);
        let picture = NewSource { interpret: Interpret::Queue, ..source("image/png", "x") };
        let picture = keep(world, picture);
        assert!(picture.interpretation.is_none());
        assert!(picture.warnings[0].contains("no text"));
    });
}

#[test]
fn a_fields_provenance_leads_to_the_very_bytes() {
    for_each_store(|world| {
        let text = "Hi! I need to renew my passport by 2025-02-01.";
        let kept = keep(world, turn_envelope("t1", text));
        let run = kept.interpretation.expect("a run");
        let task = run
            .observations
            .iter()
            .map(|id| world.entity(id.entity))
            .find(|entity| entity.entity_type == "task")
            .expect("a task");
        let due = world.engine.field_provenance(&world.call, task.id, Some("due"));
        let due = due.expect("a provenance").remove(0);
        assert_eq!(due.value, Json::from("2025-02-01"));
        let evidence = &due.evidence[0];
        assert_eq!(evidence.source.as_ref().map(|it| it.id), Some(kept.source.id));
        assert_eq!(evidence.interpretation.as_ref().map(|it| it.id), Some(run.id));
        let quote = evidence.observation.quote.as_deref().expect("the words");
        assert!(text.contains(quote) && quote.contains("renew my passport"), "{quote}");
    });
}

#[test]
fn attachments_become_embeds_once_and_unknown_ones_are_refused() {
    for_each_store(|world| {
        let photo = keep(world, source("image/png", "pixels")).source.id;
        let send = |turn: &str, attachments: Vec<SourceId>| {
            let request =
                StoreTurn { attachments, ..StoreTurn::new("chat", turn, user("look at this")) };
            world.engine.store_turn(&world.call, request)
        };
        let stored = send("1", vec![photo]).expect("a turn");
        send("1", vec![photo]).expect("the turn again");
        let query = RelationshipQuery {
            relation: Some("EMBEDS".to_owned()),
            ..RelationshipQuery::of(stored.entity)
        };
        let found = world.engine.relationships(&world.call, query, Page::default());
        let found = found.expect("relationships").items;
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].label(), found[0].target.to_string()),
            ("has attachment", photo.to_string())
        );
        let error = send("2", vec![SourceId::from_bytes([9; 16])]).expect_err("no such source");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(world.path(&stored.conversation, "main"), "look at this");
    });
}

#[test]
fn a_key_stands_for_who_reads_and_not_for_whether_one_waits() {
    for_each_store(|world| {
        let keyed = |key: &str| world.call.clone().with_key(key);
        let turn = |interpret, interpreter: Option<&str>| {
            let request = StoreTurn {
                interpret,
                interpreter: interpreter.map(str::to_owned),
                ..StoreTurn::new("chat", "1", user("I live in Lisbon."))
            };
            world.engine.store_turn(&keyed("turn"), request)
        };
        turn(Interpret::Queue, None).expect("a turn");
        assert!(turn(Interpret::Wait, None).expect("the same").replayed);
        for other in [turn(Interpret::None, None), turn(Interpret::Queue, Some("rules"))] {
            assert_eq!(other.expect_err("another").kind(), ErrorKind::IdempotencyMismatch);
        }
        let bytes = |interpret| {
            let request = NewSource { interpret, ..source("text/plain", "I live in Lisbon.") };
            world.engine.store_source(&keyed("bytes"), request)
        };
        bytes(Interpret::None).expect("a source");
        let other = bytes(Interpret::Queue).expect_err("another");
        assert_eq!(other.kind(), ErrorKind::IdempotencyMismatch);
    });
}

#[test]
fn a_run_is_not_undone_under_another_that_found_the_same() {
    for_each_store(|world| {
        let kept = keep(world, turn_envelope("t1", "I need to call Maria Lopez tomorrow."));
        let message = kept.turn.expect("a turn");
        let request =
            Reinterpret { sources: vec![kept.source.id], wait: true, ..Reinterpret::default() };
        world.engine.reinterpret(&world.call, request).expect("another run");
        let referred = || {
            let query = RelationshipQuery {
                relation: Some("REFERS_TO".to_owned()),
                ..RelationshipQuery::of(message.entity)
            };
            let found = world.engine.relationships(&world.call, query, Page::default());
            found.expect("relationships").items.len()
        };
        let before = referred();
        assert!(before > 0);
        let chat = &message.conversation;
        let log = world.engine.operations(&world.call, chat, Page::default()).expect("a log");
        let runs: Vec<u64> =
            log.items.iter().filter(|one| one.kind == "interpret").map(|one| one.seq).collect();
        let [second, first] = runs[..] else { panic!("two runs, and not {runs:?}") };
        let refused = world.engine.undo(&world.call, chat, Some(first));
        assert_eq!(refused.expect_err("another builds on it").kind(), ErrorKind::Protected);
        world.engine.undo(&world.call, chat, Some(second)).expect("an undo");
        assert_eq!(referred(), before, "the first run still says it");
        world.engine.undo(&world.call, chat, Some(first)).expect("an undo");
        assert_eq!(referred(), 0);
        world.verified();
    });
}

#[test]
fn a_store_cannot_be_undone_while_findings_depend_on_it() {
    for_each_store(|world| {
        world.store("chat", "1", user("hello"));
        let text = "I need to call Maria Lopez tomorrow.";
        let mut request = StoreTurn::new("chat", "2", user(text));
        request.interpret = Interpret::Wait;
        let stored = world.engine.store_turn(&world.call, request).expect("a turn");
        let found = stored.interpretation.expect("a run").observations;
        assert!(!found.is_empty());
        let chat = &stored.conversation;
        let log = world.engine.operations(&world.call, chat, Page::default());
        let log = log.expect("a log").items;
        let seq = |kind: &str| log.iter().find(|one| one.kind == kind).expect("an entry").seq;
        let refused = world.engine.undo(&world.call, chat, Some(seq("store_turn")));
        assert_eq!(refused.expect_err("a run builds on it").kind(), ErrorKind::Protected);
        world.engine.undo(&world.call, chat, Some(seq("interpret"))).expect("an undo");
        world.engine.undo(&world.call, chat, Some(seq("store_turn"))).expect("an undo");
        for id in found {
            assert_eq!(world.entity(id.entity).snapshot.observations, 0);
        }
        world.verified();
    });
}

/// A call that finds nothing to do may leave a project's log without an entry, and that is sound.
#[test]
fn reinterpreting_missing_sources_leaves_a_store_that_verifies() {
    for_each_store(|world| {
        let request = Reinterpret { failed: true, ..Reinterpret::default() };
        let runs = world.engine.reinterpret(&world.call, request).expect("nothing to do");
        assert!(runs.is_empty());
        world.verified();
    });
}

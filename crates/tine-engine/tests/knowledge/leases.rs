//! Runs are leased: each is executed once, by any worker, and by another if that one dies.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use tine_analysis::{
    Account, Finding, Interpreter, InterpreterFailure, InterpreterInfo, InterpreterKind, Material,
};
use tine_core::json::{Json, object};
use tine_core::{InterpretationId, Limits, Timestamp};
use tine_engine::{
    Call, Engine, FixedEntropy, Interpret, Interpreters, ManualClock, NewSource, Page, RunQuery,
    RunStatus, StoreTurn,
};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};
use tine_testkit::machine::{StepClock, beginning};
use tine_testkit::stores::TempFolder;

use super::runs;
use crate::world::{World, start, user};

/// Longer than a lease holds.
const LATER_MS: i64 = 61_000;

/// An interpreter that does what a test says.
struct ScriptedInterpreter<F> {
    version: &'static str,
    work: F,
}

impl<F: Fn() -> Result<Vec<Finding>, InterpreterFailure> + Send + Sync> Interpreter
    for ScriptedInterpreter<F>
{
    fn about(&self) -> InterpreterInfo {
        InterpreterInfo {
            name: "scripted".to_owned(),
            version: self.version.to_owned(),
            kind: InterpreterKind::Model,
            provider: None,
            model: None,
            parameters: Json::Null,
            seed: None,
        }
    }

    fn interpret(
        &self,
        _: &Material<'_>,
        account: &mut Account,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        account.tries = 1;
        account.prompt = Some("What is said?".to_owned());
        account.response = Some(b"[]".to_vec());
        (self.work)()
    }

    fn replay(
        &self,
        _: &Material<'_>,
        _: Option<&[u8]>,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        (self.work)()
    }
}

fn a_person(name: &str) -> Finding {
    let fields = match object([("name", name.into())]) {
        Json::Object(fields) => fields,
        _ => unreachable!("an object is an object"),
    };
    Finding { entity_type: "person".to_owned(), fields, span: None }
}

fn engine(
    store: Arc<dyn Store>,
    clock: Arc<StepClock>,
    seed: u64,
    interpreter: impl Interpreter + 'static,
) -> Engine {
    let entropy = Arc::new(FixedEntropy::new(seed));
    let engine = Engine::with(store, clock, entropy, Limits::default());
    let known = Interpreters::rules().with(Arc::new(interpreter));
    engine.with_interpreters(known.by_default("scripted").expect("it is there"))
}

fn queued(engine: &Engine, turn: &str) -> InterpretationId {
    let mut request = StoreTurn::new("chat", turn, user("Hello."));
    request.interpret = Interpret::Queue;
    let stored = engine.store_turn(&Call::by("tester"), request).expect("a turn");
    stored.interpretation.expect("a run").id
}

fn later(clock: &StepClock, times: i64) {
    clock.set(Timestamp::from_millis(beginning().as_millis() + times * LATER_MS));
}

fn names(engine: &Engine) -> Vec<String> {
    let world = World { engine: engine.clone(), call: Call::by("tester"), folder: None };
    let query = tine_engine::EntityQuery {
        entity_type: Some("person".to_owned()),
        ..tine_engine::EntityQuery::default()
    };
    let listed = engine.entities(&world.call, query, Page::default()).expect("a list").items;
    world.verified();
    listed.into_iter().filter_map(|one| one.name).collect()
}

#[test]
fn two_engines_on_one_store_do_each_run_once() {
    let folder = TempFolder::new();
    let open = |seed: u64| {
        let store = SqliteStore::open(folder.path()).expect("a store");
        let clock = Arc::new(ManualClock::new(start(), 1));
        let entropy = Arc::new(FixedEntropy::new(seed));
        Engine::with(Arc::new(store), clock, entropy, Limits::default())
    };
    let first = open(1);
    let call = Call::by("tester");
    let mut queued = BTreeSet::new();
    for n in 0..20 {
        let text = format!("I need to call person number {n} tomorrow.");
        let mut request = StoreTurn::new("chat", n.to_string(), user(&text));
        request.interpret = Interpret::Queue;
        let stored = first.store_turn(&call, request).expect("a turn");
        queued.insert(stored.interpretation.expect("a run").id);
    }
    let second = open(2);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for engine in [&first, &first, &second, &second] {
            scope.spawn(|| {
                while let Some(id) = engine.run_next().expect("work") {
                    done.lock().expect("no worker panics").push(id);
                }
            });
        }
    });
    let done = done.into_inner().expect("no worker panics");
    assert_eq!(done.len(), queued.len(), "each once");
    assert_eq!(done.into_iter().collect::<BTreeSet<_>>(), queued);
    for id in queued {
        let run = second.interpretation(&call, id).expect("a run");
        assert_eq!((run.status, run.attempts), (RunStatus::Completed, 1));
    }
    let status = first.interpretation_queue(&call).expect("a queue");
    assert_eq!((status.queued, status.running), (0, 0));
    World { engine: first, call, folder: None }.verified();
}

#[test]
fn an_expired_lease_is_taken_over_and_the_old_workers_result_is_discarded() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = Arc::new(StepClock::at(beginning()));
    let (began, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let slow = engine(
        Arc::clone(&store),
        clock.clone(),
        1,
        ScriptedInterpreter {
            version: "slow",
            work: move || {
                began.send(()).expect("the test waits");
                may_go_on.lock().expect("one worker").recv().expect("the test says so");
                Ok(vec![a_person("Slow")])
            },
        },
    );
    let quick = engine(
        store,
        clock.clone(),
        2,
        ScriptedInterpreter { version: "quick", work: || Ok(vec![a_person("Quick")]) },
    );
    let run = queued(&quick, "1");
    let call = Call::by("tester");
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| slow.run_next());
        has_begun.recv().expect("the slow one begins");
        assert_eq!(quick.run_next().expect("a look"), None, "it is leased");
        later(&clock, 1);
        assert_eq!(quick.run_next().expect("work"), Some(run), "the lease ran out");
        let done = quick.interpretation(&call, run).expect("a run");
        assert_eq!((done.status, done.attempts), (RunStatus::Completed, 2));
        go_on.send(()).expect("the slow one waits");
        worker.join().expect("no panic").expect("its landing is no error");
        let after = quick.interpretation(&call, run).expect("a run");
        assert_eq!(after, done, "an ended run never changes");
    });
    assert_eq!(names(&quick), ["Quick"]);
    // What was asked and answered is kept: the prompt once, under its hash.
    let done = quick.interpretation(&call, run).expect("a run");
    let hash = done.detail.get("prompt_hash").and_then(Json::as_str).expect("a hash");
    let prompt = quick.prompt(&call, hash.parse().expect("a digest")).expect("a prompt");
    assert_eq!(prompt, "What is said?");
    assert_eq!(done.detail.get("version"), Some(&Json::from("quick")));
    assert_eq!(done.detail.get("response"), Some(&Json::from("[]")));
}

#[test]
fn a_run_whose_workers_die_five_times_fails_and_says_so() {
    let clock = Arc::new(StepClock::at(beginning()));
    let begun = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&begun);
    let deadly = ScriptedInterpreter {
        version: "deadly",
        work: move || {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("this worker dies, as the test wants it")
        },
    };
    let engine = engine(Arc::new(MemoryStore::new()), clock.clone(), 1, deadly);
    let run = queued(&engine, "1");
    let call = Call::by("tester");
    for attempt in 1..=5 {
        let died = catch_unwind(AssertUnwindSafe(|| engine.run_next()));
        assert!(died.is_err(), "attempt {attempt}");
        let view = engine.interpretation(&call, run).expect("a run");
        assert_eq!((view.status, view.attempts), (RunStatus::Running, attempt));
        assert_eq!(engine.run_next().expect("a look"), None, "it is leased to the dead");
        later(&clock, i64::from(attempt));
    }
    assert_eq!(engine.run_next().expect("a look"), None);
    assert_eq!(begun.load(Ordering::SeqCst), 5);
    let view = engine.interpretation(&call, run).expect("a run");
    assert_eq!((view.status, view.attempts), (RunStatus::Failed, 5));
    assert!(view.error.as_deref().is_some_and(|why| why.contains("5 times")), "{:?}", view.error);
    later(&clock, 60);
    assert_eq!(engine.run_next().expect("a look"), None, "failed is failed");
    let status = engine.interpretation_queue(&call).expect("a queue");
    assert_eq!((status.queued, status.running), (0, 0));
    // A retry is another run.
    let retried = engine.retry_interpretation(&call, run).expect("a retry");
    assert_eq!((retried.status, retried.retry_of), (RunStatus::Queued, Some(run)));
}

#[test]
fn a_failure_is_kept_with_what_was_asked_and_finds_nothing() {
    let clock = Arc::new(StepClock::at(beginning()));
    let refusing = ScriptedInterpreter {
        version: "1",
        work: || {
            Err(InterpreterFailure { message: "the model is out".to_owned(), transient: true })
        },
    };
    let engine = engine(Arc::new(MemoryStore::new()), clock, 1, refusing);
    let run = queued(&engine, "1");
    assert_eq!(engine.run_pending().expect("work"), 1);
    let view = engine.interpretation(&Call::by("tester"), run).expect("a run");
    assert_eq!((view.status, view.error.as_deref()), (RunStatus::Failed, Some("the model is out")));
    assert!(view.detail.get("prompt_hash").is_some() && view.observations.is_empty());
    assert_eq!(names(&engine), Vec::<String>::new());
}

#[test]
fn a_run_of_an_interpreter_that_is_not_here_waits_for_somebody_who_has_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = Arc::new(StepClock::at(beginning()));
    let scripted = ScriptedInterpreter { version: "1", work: || Ok(vec![a_person("Ada")]) };
    let knows = engine(Arc::clone(&store), clock.clone(), 1, scripted);
    let run = queued(&knows, "1");
    let entropy = Arc::new(FixedEntropy::new(2));
    let ignorant = Engine::with(store, clock, entropy, Limits::default());
    assert_eq!(ignorant.run_pending().expect("a look"), 0);
    assert_eq!(knows.run_next().expect("work"), Some(run));
    assert_eq!(names(&knows), ["Ada"]);
}

#[test]
fn runs_of_interpreters_that_are_not_here_do_not_keep_others_waiting() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = Arc::new(StepClock::at(beginning()));
    let scripted = ScriptedInterpreter { version: "1", work: || Ok(Vec::new()) };
    let knows = engine(Arc::clone(&store), clock.clone(), 1, scripted);
    for n in 0..150 {
        queued(&knows, &n.to_string());
    }
    let entropy = Arc::new(FixedEntropy::new(2));
    let ignorant = Engine::with(store, clock.clone(), entropy, Limits::default());
    later(&clock, 1);
    let run = queued(&ignorant, "150");
    assert_eq!(ignorant.run_next().expect("work"), Some(run));
}

#[test]
fn waiting_for_a_run_of_an_unavailable_interpreter_does_not_start_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = Arc::new(StepClock::at(beginning()));
    let scripted = ScriptedInterpreter { version: "1", work: || Ok(vec![a_person("Ada")]) };
    let knows = engine(Arc::clone(&store), clock.clone(), 1, scripted);
    let run = queued(&knows, "1");
    let entropy = Arc::new(FixedEntropy::new(2));
    let ignorant = Engine::with(store, clock, entropy, Limits::default());
    let call = Call::by("tester");
    let refused = ignorant.await_interpretation(&call, run).expect_err("it is not here");
    assert_eq!(refused.kind(), tine_core::ErrorKind::Invalid);
    let view = ignorant.interpretation(&call, run).expect("a run");
    assert_eq!((view.status, view.attempts), (RunStatus::Queued, 0));
    knows.await_interpretation(&call, run).expect("it is there");
    let done = ignorant.await_interpretation(&call, run).expect("it has ended");
    assert_eq!((done.status, done.attempts), (RunStatus::Completed, 1));
}

#[test]
fn findings_in_a_turn_that_is_no_longer_shown_are_not_stored() {
    for store in [true, false] {
        let folder = TempFolder::new();
        let store: Arc<dyn Store> = match store {
            true => Arc::new(MemoryStore::new()),
            false => Arc::new(SqliteStore::open(folder.path()).expect("a store")),
        };
        let clock = Arc::new(StepClock::at(beginning()));
        let scripted = ScriptedInterpreter { version: "1", work: || Ok(vec![a_person("Ada")]) };
        let engine = engine(store, clock, 1, scripted);
        let run = queued(&engine, "1");
        let call = Call::by("tester");
        let talk = tine_core::ConversationId::from_stored("chat");
        engine.undo(&call, &talk, None).expect("the turn is taken back");
        assert_eq!(engine.run_pending().expect("work"), 1);
        let view = engine.interpretation(&call, run).expect("a run");
        let why = "its turn is not shown any more";
        assert_eq!((view.status, view.error.as_deref()), (RunStatus::Failed, Some(why)));
        assert!(names(&engine).is_empty());
    }
}

#[test]
fn an_envelope_that_was_taken_in_is_read_within_the_same_limits() {
    let limits = Limits { json_depth: 400, ..Limits::default() };
    let clock = Arc::new(ManualClock::new(start(), 1));
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::with(store, clock, Arc::new(FixedEntropy::new(1)), limits);
    let world = World { engine, call: Call::by("tester"), folder: None };
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let text = "I need to call Maria Lopez tomorrow.";
    let body = format!(r#"{{"content":"{text}","turn_id":"1","more":{deep}}}"#);
    let source = runs::source(tine_core::facts::envelope::MIME, body);
    let kept = runs::keep(&world, NewSource { interpret: Interpret::Wait, ..source });
    let run = kept.interpretation.expect("a run");
    assert_eq!((run.status, run.error.as_deref()), (RunStatus::Completed, None));
    let person = run.observations[0].entity;
    let found = world.engine.field_provenance(&world.call, person, None).expect("evidence");
    assert!(found[0].evidence[0].observation.quote.is_some());
}

#[test]
fn findings_that_do_not_match_a_schema_are_noted_and_the_others_stored() {
    let clock = Arc::new(StepClock::at(beginning()));
    let finding = |entity_type: &str, name: &str, value: Json| {
        let mut finding = a_person("Eve");
        finding.entity_type = entity_type.to_owned();
        finding.fields.insert(name, value);
        finding
    };
    let scripted = ScriptedInterpreter {
        version: "1",
        work: move || {
            Ok(vec![
                finding("Not A Type", "x", 1.into()),
                finding("agent_message", "content", "x".into()),
                finding("person", "birthday", "soon".into()),
                finding("person", "shoe_size", 37.into()),
            ])
        },
    };
    let engine = engine(Arc::new(MemoryStore::new()), clock, 1, scripted);
    let run = queued(&engine, "1");
    engine.run_pending().expect("work");
    let view = engine.interpretation(&Call::by("tester"), run).expect("a run");
    assert_eq!(view.status, RunStatus::Completed);
    assert_eq!((view.observations.len(), view.notes.len()), (2, 3), "{:?}", view.notes);
    assert_eq!(view.unknown_fields, ["person.shoe_size"]);
    assert_eq!(names(&engine), ["Eve"]);
}

/// The conversation's own rules for an envelope, and those for documents for any other text.
#[test]
fn an_envelope_is_read_as_a_turn_and_other_text_as_a_document() {
    struct Reads(Arc<Mutex<Vec<String>>>);
    impl Interpreter for Reads {
        fn about(&self) -> InterpreterInfo {
            ScriptedInterpreter { version: "1", work: || Ok(Vec::new()) }.about()
        }

        fn interpret(
            &self,
            material: &Material<'_>,
            _: &mut Account,
        ) -> Result<Vec<Finding>, InterpreterFailure> {
            let read = format!("{:?} {}", material.subject, material.text);
            self.0.lock().expect("one worker").push(read);
            Ok(Vec::new())
        }

        fn replay(
            &self,
            _: &Material<'_>,
            _: Option<&[u8]>,
        ) -> Result<Vec<Finding>, InterpreterFailure> {
            Ok(Vec::new())
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let clock = Arc::new(StepClock::at(beginning()));
    let engine = engine(Arc::new(MemoryStore::new()), clock, 1, Reads(Arc::clone(&seen)));
    let world = World { engine, call: Call::by("tester"), folder: None };
    runs::keep(&world, runs::turn_envelope("t1", "a turn"));
    let document = runs::source("text/markdown", "a document");
    runs::keep(&world, NewSource { interpret: Interpret::Wait, ..document });
    let seen = seen.lock().expect("one worker").clone();
    assert_eq!(seen, ["Turn(User) a turn", "Document a document"]);
    let all = world.engine.interpretations(&world.call, RunQuery::default(), Page::default());
    assert_eq!(all.expect("a list").items.len(), 2);
}

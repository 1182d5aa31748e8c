//! One call is one transaction: if any of its writes fails it leaves no trace, and run
//! twice it does what it does once.

use std::collections::BTreeMap;
use std::sync::Arc;

use tine_core::json::Json;
use tine_core::{Body, ConversationId, ErrorKind, Limits, Timestamp};
use tine_engine::{
    Call, Correct, Delete, DeleteMode, Edit, End, Engine, Error, FixedEntropy, Interpret, Merge,
    NewRelationship, NewSource, Page, Reinterpret, RunQuery, Separate, StoreFacts, StoreTurn,
};
use tine_sqlite::SqliteStore;
use tine_store::{
    Family, FeedPosition, IndexQuery, MemoryStore, Read, RecordIndex, RecordKey, RecordQuery,
    Result as Stored, Store,
};
use tine_testkit::machine::{StepClock, beginning};
use tine_testkit::stores::{FailingStore, RepeatingStore, TempFolder};

use super::{fact, fields, runs};
use crate::world::{World, bot, user};

/// A call that waits to be made, in a world that was prepared for it. Its answer is a text.
type Act = Box<dyn Fn(&World) -> Result<String, Error>>;

/// What is prepared, and the call.
type Scene = fn(&World) -> Act;

fn as_text<T: std::fmt::Debug>(answer: Result<T, Error>) -> Result<String, Error> {
    answer.map(|answer| format!("{answer:?}"))
}

fn project_log() -> ConversationId {
    ConversationId::from_stored("~project")
}

fn turn(request: StoreTurn) -> Act {
    Box::new(move |world| as_text(world.engine.store_turn(&world.call, request.clone())))
}

fn relationship(relation: &str, source: End, target: End) -> NewRelationship {
    let (relation, metadata) = (relation.to_owned(), Json::Null);
    NewRelationship { relation, source, target, metadata }
}

fn two_people(world: &World) -> tine_engine::StoredFacts {
    world.facts(vec![
        fact("person", r#"{"name":"Ada","role":"countess"}"#),
        fact("person", r#"{"name":"Augusta","birthday":"1815-12-10"}"#),
        fact("person", r#"{"name":"Ada","role":"programmer"}"#),
    ])
}

const SCENES: &[(&str, Scene)] = &[
    ("a turn that makes its conversation", |_| {
        let mut request = StoreTurn::new("chat", "1", user("hello"));
        request.title = Some("A chat".to_owned());
        request.system_prompt = Some("Be kind.".to_owned());
        turn(request)
    }),
    ("an edit of a turn", |world| {
        world.store("chat", "1", user("a"));
        world.store("chat", "1", bot("b"));
        turn(StoreTurn::new("chat", "1", user("a2")))
    }),
    ("a turn that is sent again", |world| {
        world.store("chat", "1", user("a"));
        turn(StoreTurn::new("chat", "1", user("a")))
    }),
    ("a turn on a new branch under a parent with a history", |world| {
        world.store("chat", "1", user("a"));
        let mut request = StoreTurn::new("chat", "3", user("c"));
        request.branch = Some("side".to_owned());
        request.history = vec![user("x"), bot("y")];
        turn(request)
    }),
    ("a turn with an attachment, to be interpreted", |world| {
        let photo = runs::keep(world, runs::source("image/png", "pixels")).source.id;
        let mut request = StoreTurn::new("chat", "1", user("Remind me to call Maria Lopez."));
        request.attachments = vec![photo];
        request.interpret = Interpret::Queue;
        turn(request)
    }),
    ("an envelope", |_| {
        Box::new(|world| {
            let request = runs::turn_envelope("t1", "I need to call Maria tomorrow.");
            let request = NewSource { interpret: Interpret::Queue, ..request };
            as_text(world.engine.store_source(&world.call, request))
        })
    }),
    ("a large source", |_| {
        Box::new(|world| {
            let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
            let request = runs::source("application/octet-stream", bytes);
            as_text(world.engine.store_source(&world.call, request))
        })
    }),
    ("facts and relationships", |world| {
        world.facts(vec![fact("person", r#"{"name":"Ada"}"#)]);
        Box::new(|world| {
            let request = StoreFacts {
                entities: vec![
                    fact("person", r#"{"name":"Ada","role":"countess"}"#),
                    fact("event", r#"{"title":"launch","date":"2025-05-01"}"#),
                    fact("note", r#"{"text":"no name"}"#),
                ],
                relationships: vec![
                    relationship("REFERS_TO", End::InCall(2), End::InCall(0)),
                    relationship("PART_OF", End::InCall(0), End::InCall(1)),
                ],
                ..StoreFacts::default()
            };
            as_text(world.engine.store_facts(&world.call, request))
        })
    }),
    ("a correction", |world| {
        let entity = two_people(world).entities[0].entity;
        Box::new(move |world| {
            let fields = fields(r#"{"role":"analyst","birthday":"1815-12-10"}"#);
            as_text(
                world.engine.correct(&world.call, Correct { entity, fields, observed_at: None }),
            )
        })
    }),
    ("a merge", |world| {
        let made = two_people(world).entities;
        let merge = Merge { from: made[1].entity, into: made[0].entity };
        Box::new(move |world| as_text(world.engine.merge_entities(&world.call, merge)))
    }),
    ("a separation", |world| {
        let made = two_people(world).entities;
        let separate = Separate {
            entity: made[0].entity,
            observations: vec![made[0].observation, made[2].observation],
            into: None,
        };
        Box::new(move |world| as_text(world.engine.separate_entity(&world.call, separate.clone())))
    }),
    ("the deletion of an entity", |world| {
        let ada = two_people(world).entities[0].entity;
        Box::new(move |world| as_text(world.engine.set_entity_deleted(&world.call, ada, true)))
    }),
    ("a relationship", |world| {
        let made = two_people(world).entities;
        let (one, other) = (End::Entity(made[0].entity), End::Entity(made[1].entity));
        let request = relationship("DUPLICATE_OF", one, other);
        Box::new(move |world| {
            as_text(world.engine.create_relationship(&world.call, request.clone()))
        })
    }),
    ("the removal of a relationship", |world| {
        let made = two_people(world).entities;
        let (one, other) = (End::Entity(made[0].entity), End::Entity(made[1].entity));
        let request = relationship("DUPLICATE_OF", one, other);
        world.engine.create_relationship(&world.call, request.clone()).expect("a relationship");
        Box::new(move |world| {
            as_text(world.engine.delete_relationship(&world.call, request.clone()))
        })
    }),
    ("the deletion of turns of slots", |world| {
        let first = world.store("chat", "1", user("a"));
        world.store("chat", "1", bot("b"));
        world.store("chat", "2", user("c"));
        let turn = world.turn(first.turn.id);
        Box::new(move |world| {
            let (turn, mode) = (turn.clone(), DeleteMode::Cascade);
            let delete = Delete { turn, mode, force: false, dry_run: false };
            as_text(world.engine.delete(&world.call, delete))
        })
    }),
    ("an edit in the tree", |world| {
        let first = world.store("chat", "1", user("a"));
        let turn = world.turn(first.turn.id);
        Box::new(move |world| {
            let body = Body::Text("a2".to_owned());
            let branch = Some("main".to_owned());
            let edit = Edit { turn: turn.clone(), body, branch, reuse: true };
            as_text(world.engine.edit(&world.call, edit))
        })
    }),
    ("an undo of a store", |world| {
        world.store("chat", "1", user("a"));
        let second = world.store("chat", "1", user("b"));
        let talk = second.conversation;
        Box::new(move |world| as_text(world.engine.undo(&world.call, &talk, None)))
    }),
    ("an undo of facts", |world| {
        two_people(world);
        Box::new(|world| as_text(world.engine.undo(&world.call, &project_log(), None)))
    }),
    ("a schema", |world| {
        let mut schema = world.engine.schema(&world.call, "task", None).expect("built in");
        schema.description = Some("Something to do.".to_owned());
        Box::new(move |world| {
            let schema = schema.clone();
            as_text(world.engine.register_schema(&world.call, tine_engine::NewSchema { schema }))
        })
    }),
    ("another reading of a source", |world| {
        let kept = runs::keep(world, runs::source("text/plain", "TODO: write."));
        Box::new(move |world| {
            let sources = vec![kept.source.id];
            as_text(
                world
                    .engine
                    .reinterpret(&world.call, Reinterpret { sources, ..Reinterpret::default() }),
            )
        })
    }),
];

/// Every record of a store, one to a line.
fn everything(store: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    let read = store.read(&mut |records| {
        lines = all_records(records)?;
        Ok(())
    });
    read.expect("a store that can be read");
    lines
}

fn all_records(records: &dyn Read) -> Stored<Vec<String>> {
    fn add<T: std::fmt::Debug>(lines: &mut Vec<String>, found: &[T]) {
        lines.extend(found.iter().map(|one| format!("{one:?}")));
    }
    let mut lines = Vec::new();
    for project in records.projects()? {
        for index in RecordIndex::ALL {
            add(&mut lines, &records.index_keys(&project.id, &IndexQuery::all(index), 10_000)?);
        }
        for family in Family::all() {
            let found = records.records(&project.id, &RecordQuery::all(family), 10_000)?;
            add(&mut lines, &found);
            for record in &found {
                let RecordKey::Source(id) = record.key() else { continue };
                for nth in 0.. {
                    match records.piece(&project.id, id, nth)? {
                        Some(piece) => lines.push(format!("{id} {nth} {}", piece.len())),
                        None => break,
                    }
                }
            }
        }
        for talk in records.conversations(&project.id, None, 1_000)? {
            for extent in records.segments(talk.key)? {
                lines.push(format!("{extent:?}"));
                records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                    lines.push(format!(
                        "{turn:?} found {:?}",
                        records.find_turn(&project.id, &turn.id)?
                    ));
                    Ok(true)
                })?;
            }
            add(&mut lines, &records.splits(talk.key)?);
            add(&mut lines, &records.hidden(talk.key)?);
            add(&mut lines, &records.branches(talk.key)?);
            add(&mut lines, &records.bookmarks_in(talk.key)?);
            add(&mut lines, &[talk]);
        }
        add(&mut lines, &[project]);
    }
    let project_log = records.feed(FeedPosition::default(), 10_000)?;
    add(&mut lines, &project_log);
    lines.push(format!("{:?}", records.totals()?));
    Ok(lines)
}

fn world_over(store: Arc<dyn Store>) -> (World, Arc<StepClock>) {
    let clock = Arc::new(StepClock::at(beginning()));
    let entropy = Arc::new(FixedEntropy::new(11));
    let engine = Engine::with(store, clock.clone(), entropy, Limits::default());
    (World { engine, call: Call::by("tester"), folder: None }, clock)
}

/// An answer with each id named by when it first appears.
fn without_ids(answer: &str) -> String {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut as_text = String::new();
    let mut word = String::new();
    for character in answer.chars().chain(['\n']) {
        if character.is_ascii_alphanumeric() || "-_".contains(character) {
            word.push(character);
            continue;
        }
        let digits = word.chars().filter(char::is_ascii_hexdigit).count();
        // Ids, and the places of observations.
        if digits >= 24 || (digits >= 17 && word.bytes().all(|byte| byte.is_ascii_digit())) {
            let next = names.len();
            let name = *names.entry(std::mem::take(&mut word)).or_insert(next);
            as_text.push_str(&format!("#{name}"));
        } else {
            as_text.push_str(&std::mem::take(&mut word));
        }
        as_text.push(character);
    }
    as_text
}

fn expected(scene: Scene) -> String {
    let (mut world, _) = world_over(Arc::new(MemoryStore::new()));
    let act = scene(&world);
    world.call = world.call.with_key("the call");
    act(&world).expect("a call that is accepted")
}

fn fails_anywhere_and_leaves_nothing(name: &str, scene: Scene, inner: Arc<dyn Store>) {
    let store = Arc::new(FailingStore::new(inner));
    let (mut world, _) = world_over(store.clone());
    let act = scene(&world);
    world.call = world.call.with_key("the call");
    let before = everything(&*store);
    let mut failures = 0;
    let answer = loop {
        store.fail_after(failures);
        let answer = act(&world);
        store.recover();
        match answer {
            Ok(answer) => break answer,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Internal, "{name}, write {failures}: {error}");
                assert_eq!(everything(&*store), before, "{name}, write {failures}");
            }
        }
        failures += 1;
    };
    assert!(failures > 0, "{name} writes nothing");
    assert_eq!(without_ids(&answer), without_ids(&expected(scene)), "{name}");
    world.verified();
    // With the key it is the first answer from now on.
    let after = everything(&*store);
    act(&world).expect("the same again");
    assert_eq!(everything(&*store), after, "{name} with its key again");
}

#[test]
fn a_call_that_fails_at_any_write_leaves_nothing_and_can_be_made_again() {
    for (name, scene) in SCENES {
        fails_anywhere_and_leaves_nothing(name, *scene, Arc::new(MemoryStore::new()));
        let folder = TempFolder::new();
        let store = SqliteStore::open(folder.path()).expect("a new store");
        fails_anywhere_and_leaves_nothing(name, *scene, Arc::new(store));
    }
}

#[test]
fn a_store_that_runs_calls_twice_gives_the_same_answers() {
    for (name, scene) in SCENES {
        let (mut world, _) =
            world_over(Arc::new(RepeatingStore::new(Arc::new(MemoryStore::new()))));
        let act = scene(&world);
        world.call = world.call.with_key("the call");
        assert_eq!(act(&world).expect("a call that is accepted"), expected(*scene), "{name}");
        world.verified();
    }
}

/// Queues a run over a turn with much in it.
fn queued(world: &World) {
    let text =
        "I need to call Maria Lopez tomorrow. We decided to use Rust. See https://example.org.";
    let mut request = StoreTurn::new("chat", "1", user(text));
    request.interpret = Interpret::Queue;
    world.engine.store_turn(&world.call, request).expect("a turn");
}

/// What a run found, without its time and its attempts.
fn found(world: &World) -> String {
    let listed = world.engine.interpretations(&world.call, RunQuery::default(), Page::default());
    let run = listed.expect("a list").items.remove(0);
    let about = run.observations.iter().map(|id| {
        let one = world.observed(id.entity).into_iter().find(|it| it.observation.id == *id);
        let one = one.expect("the observation").observation;
        format!("{} {:?} {:?}", one.entity_type, one.fields, one.span)
    });
    format!("{:?} {:?}", run.status, about.collect::<Vec<_>>())
}

#[test]
fn a_run_whose_result_fails_at_any_write_leaves_only_its_lease() {
    let (control, _) = world_over(Arc::new(MemoryStore::new()));
    queued(&control);
    assert_eq!(control.engine.run_pending().expect("work"), 1);
    let expected = found(&control);
    let mut failures = 0;
    loop {
        let store = Arc::new(FailingStore::new(Arc::new(MemoryStore::new())));
        let (world, clock) = world_over(store.clone());
        queued(&world);
        let is_of_others = |line: &&String| {
            !line.starts_with("Record { key: Run(") && !line.starts_with("QueuedRun")
        };
        let others =
            || everything(&*store).iter().filter(is_of_others).cloned().collect::<Vec<_>>();
        let before = others();
        store.fail_after(failures);
        let done = world.engine.run_pending();
        store.recover();
        if done.is_ok() {
            assert!(failures > 10, "a run writes more than {failures} records");
            break;
        }
        let totals = |lines: Vec<String>| lines[..lines.len() - 1].to_vec();
        assert_eq!(totals(others()), totals(before), "write {failures}");
        // Another worker takes over when the lease has expired.
        clock.set(Timestamp::from_millis(beginning().as_millis() + 61_000));
        assert_eq!(world.engine.run_pending().expect("work"), 1, "write {failures}");
        assert_eq!(found(&world), expected, "write {failures}");
        world.verified();
        failures += 1;
    }
}

#[test]
fn a_run_in_a_store_that_runs_calls_twice_is_done_once() {
    let (control, _) = world_over(Arc::new(MemoryStore::new()));
    let (world, _) = world_over(Arc::new(RepeatingStore::new(Arc::new(MemoryStore::new()))));
    for world in [&control, &world] {
        queued(world);
        assert_eq!(world.engine.run_pending().expect("work"), 1);
    }
    assert_eq!(found(&world), found(&control));
    world.verified();
}

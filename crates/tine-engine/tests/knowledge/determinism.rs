//! A snapshot is a function of the observations: not of the order or the batches in which they
//! came, nor of the schema, the clock or the reader of today. The holes in determinism that other
//! stores have are each a test here.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use tine_core::facts::reduce::schema_version;
use tine_core::facts::{Observation, ObservationOrder, Schema, Snapshot, reduce};
use tine_core::json::{self, Json, Object};
use tine_core::{ConversationId, EntityId, Limits, Timestamp};
use tine_engine::{
    AsOf, Call, Clock, Correct, End, Engine, FixedEntropy, Merge, NewFact, NewRelationship,
    NewSchema, Page, RelationshipQuery, RelationshipView, RunQuery, Separate, StoreFacts,
};
use tine_store::{Family, MemoryStore, RecordQuery};
use tine_testkit::machine::{StepClock, beginning};

use super::cases::{self, Checked, ensure};
use super::{fact, fields, runs};
use crate::world::{World, for_each_store};

/// One fact, in small numbers.
#[derive(Clone, Copy, Debug)]
struct Statement {
    name: u8,
    field: u8,
    value: u8,
    observed: i64,
    weight: i64,
}

fn statements() -> impl Strategy<Value = Statement> {
    (0..3u8, 0..4u8, 0..4u8, 0..6i64, 0..3i64).prop_map(|(name, field, value, observed, weight)| {
        Statement { name, field, value, observed, weight }
    })
}

const STRATEGIES: [&str; 4] = ["last_write", "highest_priority", "most_specific", "merged_set"];

/// A schema whose four fields go by the four strategies, from this one on.
fn rotated(by: usize) -> NewSchema {
    let field = |nth: usize| {
        let strategy = STRATEGIES[(nth + by) % STRATEGIES.len()];
        format!(r#""f{nth}":{{"kind":"any","strategy":"{strategy}"}}"#)
    };
    let fields: Vec<String> = (0..4).map(field).collect();
    let text = format!(
        r#"{{"entity_type":"thing","identity":["name"],"fields":{{"name":"name",{}}}}}"#,
        fields.join(",")
    );
    let json = json::parse(text.as_bytes(), 16).expect("sound JSON");
    NewSchema { schema: Schema::from_json(&json).expect("a sound schema") }
}

fn moment(at: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + at)
}

impl Statement {
    fn fact(self) -> NewFact {
        let mut fields = Object::new();
        fields.insert("name", format!("thing {}", self.name).into());
        let value = if self.value == 0 { Json::Null } else { Json::from(u32::from(self.value)) };
        fields.insert(format!("f{}", self.field), value);
        NewFact {
            observed_at: Some(moment(self.observed)),
            priority: Some(self.weight),
            specificity: Some(self.weight),
            ..NewFact::of("thing", fields)
        }
    }
}

fn store(world: &World, facts: &[Statement]) -> Vec<EntityId> {
    let stored = world.facts(facts.iter().map(|one| one.fact()).collect());
    stored.entities.iter().map(|one| one.entity).collect()
}

fn snapshots(world: &World, entities: &[EntityId]) -> BTreeMap<EntityId, Snapshot> {
    entities.iter().map(|id| (*id, world.entity(*id).snapshot)).collect()
}

fn project_log() -> ConversationId {
    ConversationId::from_stored("~project")
}

#[test]
fn facts_in_any_batches_and_any_order_give_equal_fields() {
    let scripts = || (vec(statements(), 1..14), vec(1..5usize, 14), vec(any::<u32>(), 14));
    let check =
        |world: &World, (statements, batches, keys): &(Vec<Statement>, Vec<usize>, Vec<u32>)| {
            // Equal times are decided by the order of arrival, so each has its own.
            let statements: Vec<Statement> = statements
                .iter()
                .enumerate()
                .map(|(nth, one)| Statement { observed: one.observed * 100 + nth as i64, ..*one })
                .collect();
            let in_project = |name: &str| {
                let project = tine_core::ProjectId::from_stored(name);
                let call = world.call.clone().in_project(project);
                World { engine: world.engine.clone(), call, folder: None }
            };
            let fields = |world: &World, statements: &[Statement], batches: &[usize]| {
                world.engine.register_schema(&world.call, rotated(0)).expect("a schema");
                let (mut rest, mut names) = (statements, BTreeMap::new());
                for size in batches.iter().copied().chain(std::iter::repeat(3)) {
                    let (batch, remaining) = rest.split_at(size.min(rest.len()));
                    if batch.is_empty() {
                        break;
                    }
                    for (one, id) in batch.iter().zip(store(world, batch)) {
                        names.insert(one.name, id);
                    }
                    rest = remaining;
                }
                let statements = |id: &EntityId| Json::Object(world.entity(*id).snapshot.fields);
                names
                    .iter()
                    .map(|(name, id)| (*name, statements(id).to_canonical()))
                    .collect::<Vec<_>>()
            };
            let one_by_one = fields(&in_project("one"), &statements, &vec![1; statements.len()]);
            let in_batches = fields(&in_project("two"), &statements, batches);
            ensure!(
                one_by_one == in_batches,
                "{one_by_one:?} one by one, in batches {in_batches:?}"
            );
            let mut keyed: Vec<(&u32, Statement)> = keys.iter().zip(statements).collect();
            keyed.sort_by_key(|(key, _)| **key);
            let shuffled: Vec<Statement> = keyed.into_iter().map(|(_, one)| one).collect();
            let shuffled = fields(&in_project("three"), &shuffled, batches);
            ensure!(one_by_one == shuffled, "{one_by_one:?} in order, shuffled {shuffled:?}");
            Ok(())
        };
    cases::run("facts_in_any_batches_and_any_order_give_equal_fields", 64, scripts, check);
}

/// What else may happen between two facts.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Facts(Statement, Statement),
    Corrected { name: u8, field: u8, value: u8 },
    Schema { by: usize },
    Merged { from: u8, into: u8 },
    Separated { name: u8, nth: u8 },
    Undone,
    Redone,
}

fn meanwhile() -> impl Strategy<Value = Vec<Meanwhile>> {
    let one = prop_oneof![
        6 => (statements(), statements()).prop_map(|(a, b)| Meanwhile::Facts(a, b)),
        2 => (0..3u8, 0..4u8, 0..4u8)
            .prop_map(|(name, field, value)| Meanwhile::Corrected { name, field, value }),
        2 => (0..4usize).prop_map(|by| Meanwhile::Schema { by }),
        1 => (0..3u8, 0..3u8).prop_map(|(from, into)| Meanwhile::Merged { from, into }),
        1 => (0..3u8, any::<u8>()).prop_map(|(name, nth)| Meanwhile::Separated { name, nth }),
        2 => Just(Meanwhile::Undone),
        1 => Just(Meanwhile::Redone),
    ];
    vec(one, 1..20)
}

struct Known<'w> {
    world: &'w World,
    things: BTreeMap<u8, EntityId>,
    all: Vec<EntityId>,
}

impl Known<'_> {
    fn step(&mut self, one: Meanwhile) -> Checked {
        let (engine, call) = (&self.world.engine, &self.world.call);
        match one {
            Meanwhile::Facts(first, second) => {
                let made = store(self.world, &[first, second]);
                self.things.entry(first.name).or_insert(made[0]);
                self.things.entry(second.name).or_insert(made[1]);
                self.all.extend(made);
            }
            Meanwhile::Corrected { name, field, value } => {
                if let Some(entity) = self.things.get(&name).copied() {
                    let value = if value == 0 { Json::Null } else { u32::from(value).into() };
                    let fields = [(format!("f{field}"), value)].into_iter().collect();
                    let correct = Correct { entity, fields, observed_at: None };
                    engine.correct(call, correct).map_err(|error| error.to_string())?;
                }
            }
            Meanwhile::Schema { by } => {
                let before = snapshots(self.world, &self.all);
                engine.register_schema(call, rotated(by)).map_err(|error| error.to_string())?;
                ensure!(before == snapshots(self.world, &self.all), "a schema changed a snapshot");
            }
            Meanwhile::Merged { from, into } => {
                if let (Some(from), Some(into)) = (self.things.get(&from), self.things.get(&into)) {
                    // What is one already is refused.
                    let _ = engine.merge_entities(call, Merge { from: *from, into: *into });
                }
            }
            Meanwhile::Separated { name, nth } => {
                if let Some(entity) = self.things.get(&name).copied() {
                    let here = self.world.observed(entity);
                    let here: Vec<_> =
                        here.iter().filter(|one| one.observation.retracts.is_none()).collect();
                    let Some(one) = here.get(usize::from(nth) % here.len().max(1)) else {
                        return Ok(());
                    };
                    let one = one.observation.id;
                    let separate = Separate { entity, observations: vec![one], into: None };
                    let other = engine.separate_entity(call, separate);
                    self.all.push(other.map_err(|error| error.to_string())?.id);
                }
            }
            Meanwhile::Undone => {
                let _ = engine.undo(call, &project_log(), None);
            }
            Meanwhile::Redone => {
                let _ = engine.redo(call, &project_log(), None);
            }
        }
        self.all.sort_unstable();
        self.all.dedup();
        Ok(())
    }

    /// As-of reads are the reduction of what had come by then, whichever time is asked for.
    fn check(&self) -> Checked {
        let (engine, call) = (&self.world.engine, &self.world.call);
        for id in &self.all {
            let all: Vec<Observation> =
                self.world.observed(*id).into_iter().map(|one| one.observation).collect();
            for at in (0..6).map(moment) {
                let known: Vec<Observation> =
                    all.iter().filter(|one| one.observed_at <= at).cloned().collect();
                let as_of = AsOf { observed: Some(at), stored: None };
                let view = engine.entity(call, *id, as_of).map_err(|error| error.to_string())?;
                let version = schema_version(&known);
                let schema = match version {
                    0 => Schema::open("thing"),
                    version => engine
                        .schema(call, "thing", Some(version))
                        .map_err(|error| error.to_string())?,
                };
                let reduced = reduce(&schema, ObservationOrder::ObservedTime, &known);
                ensure!(
                    view.snapshot == reduced,
                    "as of {at} {:?}, not {reduced:?}",
                    view.snapshot
                );
            }
        }
        Ok(())
    }
}

#[test]
fn as_of_reads_are_reductions_and_no_schema_alters_what_is_there() {
    let check = |world: &World, script: &Vec<Meanwhile>| {
        let mut known = Known { world, things: BTreeMap::new(), all: Vec::new() };
        world.engine.register_schema(&world.call, rotated(0)).map_err(|error| error.to_string())?;
        for one in script {
            let done = known.step(*one).and_then(|()| known.check());
            done.map_err(|why| format!("at {one:?}: {why}"))?;
        }
        let problems = world.engine.verify().map_err(|error| error.to_string())?.problems;
        ensure!(problems.is_empty(), "verify finds {problems:?}");
        Ok(())
    };
    let name = "as_of_reads_are_reductions_and_no_schema_alters_what_is_there";
    cases::run(name, 128, meanwhile, check);
}

#[test]
fn as_of_reads_do_not_change_later() {
    let check = |world: &World, script: &Vec<Meanwhile>| {
        // Undoing a merge leaves no trace of the merge in time; everything else does.
        let script =
            script.iter().filter(|one| !matches!(one, Meanwhile::Undone | Meanwhile::Redone));
        let mut known = Known { world, things: BTreeMap::new(), all: Vec::new() };
        let mut seen: Vec<(Timestamp, EntityId, Object)> = Vec::new();
        world.engine.register_schema(&world.call, rotated(0)).map_err(|error| error.to_string())?;
        for one in script {
            known.step(*one)?;
            let Some(first) = known.all.first() else { continue };
            // The clock moves on with each look: nothing else is stored at this time.
            let probe =
                Correct { entity: *first, fields: fields(r#"{"seen":1}"#), observed_at: None };
            let probe =
                world.engine.correct(&world.call, probe).map_err(|error| error.to_string())?;
            let now = probe.observation.stored_at;
            for id in &known.all {
                seen.push((now, *id, world.entity(*id).snapshot.fields));
            }
        }
        for (at, id, then) in &seen {
            let as_of = AsOf { observed: None, stored: Some(*at) };
            let view = world.engine.entity(&world.call, *id, as_of);
            let now = view.map_err(|error| error.to_string())?.snapshot.fields;
            ensure!(now == *then, "{id} was {then:?} at {at}, and is now {now:?}");
        }
        Ok(())
    };
    let name = "as_of_reads_do_not_change_later";
    cases::run(name, 128, meanwhile, check);
}

/// Neotoma: the schema in force reduces old states too, so they change when schemas do.
#[test]
fn an_old_state_is_reduced_by_the_schema_of_its_time() {
    for_each_store(|world| {
        world.engine.register_schema(&world.call, rotated(3)).expect("all values as a set");
        let first = Statement { name: 0, field: 0, value: 1, observed: 0, weight: 0 };
        let id = store(world, &[first])[0];
        let second = Statement { value: 2, observed: 1, ..first };
        store(world, &[second]);
        let as_of = AsOf { observed: Some(moment(1)), stored: None };
        let old = |world: &World| world.engine.entity(&world.call, id, as_of).expect("an entity");
        let before = old(world);
        assert_eq!(
            before.snapshot.fields.get("f0").map(Json::to_canonical).as_deref(),
            Some("[1,2]")
        );
        world.engine.register_schema(&world.call, rotated(0)).expect("the last value alone");
        store(world, &[Statement { value: 3, observed: 5, ..first }]);
        assert_eq!(old(world), before);
        assert_eq!(world.field(id, "f0"), Json::from(3), "the newest goes by the newest schema");
    });
}

/// Neotoma: what is computed of a relationship bears the time of computing.
#[test]
fn a_relationship_reads_the_same_at_any_time() {
    for_each_store(|world| {
        let made =
            world.facts(vec![fact("task", r#"{"title":"a"}"#), fact("task", r#"{"title":"b"}"#)]);
        let relate = NewRelationship {
            relation: "DEPENDS_ON".to_owned(),
            source: End::Entity(made.entities[0].entity),
            target: End::Entity(made.entities[1].entity),
            metadata: Json::Null,
        };
        world.engine.create_relationship(&world.call, relate.clone()).expect("a relationship");
        let listed = || {
            let query = RelationshipQuery::of(made.entities[0].entity);
            world.engine.relationships(&world.call, query, Page::default()).expect("a list").items
        };
        let first = listed();
        let again = world.engine.create_relationship(&world.call, relate).expect("the same");
        assert_eq!(listed(), first);
        assert_eq!(vec![RelationshipView { outcome: None, ..again }], first);
    });
}

/// Neotoma: of corrections with equal times and priorities the one with the higher id won.
#[test]
fn of_corrections_in_one_millisecond_the_last_one_wins() {
    let clock = Arc::new(StepClock::at(beginning()));
    let entropy = Arc::new(FixedEntropy::new(3));
    let engine = Engine::with(Arc::new(MemoryStore::new()), clock, entropy, Limits::default());
    let world = World { engine, call: Call::by("tester"), folder: None };
    let ada = world.facts(vec![fact("person", r#"{"name":"Ada","role":"0"}"#)]).entities[0].entity;
    for n in 1..40 {
        let fields = fields(&format!(r#"{{"role":"{n}"}}"#));
        let correct = Correct { entity: ada, fields, observed_at: None };
        world.engine.correct(&world.call, correct).expect("a correction");
        assert_eq!(world.field(ada, "role"), Json::from(n.to_string()));
    }
}

/// A clock that is set back does not change the order of what came.
#[test]
fn versions_are_listed_in_the_order_in_which_they_came_whatever_the_clock_says() {
    let clock = Arc::new(StepClock::at(beginning()));
    let entropy = Arc::new(FixedEntropy::new(3));
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::with(store, clock.clone(), entropy, Limits::default());
    let world = World { engine, call: Call::by("tester"), folder: None };
    let mut entity = None;
    for (n, text) in ["a", "b", "c"].into_iter().enumerate() {
        let back = beginning().as_millis() - 1_000 * i64::try_from(n).expect("small");
        clock.set(Timestamp::from_millis(back));
        entity = Some(world.store("chat", "1", crate::world::user(text)).entity);
    }
    let entity = entity.expect("three stores");
    assert_eq!(world.versions(entity), ["a", "b", "c"]);
    assert_eq!(world.field(entity, "content"), Json::from("c"));
    assert!(clock.now() < beginning());
}

/// Neotoma: merging and splitting entities rewrites observations.
#[test]
fn merging_and_separating_leave_the_bytes_of_every_observation() {
    for_each_store(|world| {
        let bytes = || {
            let mut found = None;
            let read = world.engine.store().read(&mut |records| {
                let all = RecordQuery::all(Family::Observation);
                found = Some(records.records(&world.call.project, &all, 99)?);
                Ok(())
            });
            read.expect("entries that can be read");
            found.expect("entries")
        };
        let made = world.facts(vec![
            fact("person", r#"{"name":"Ada","role":"countess"}"#),
            fact("person", r#"{"name":"Augusta","role":"pupil"}"#),
        ]);
        let (ada, augusta) = (made.entities[0].entity, made.entities[1].entity);
        let before = bytes();
        let merge = Merge { from: augusta, into: ada };
        world.engine.merge_entities(&world.call, merge).expect("a merge");
        let observations = vec![made.entities[1].observation];
        let separate = Separate { entity: ada, observations, into: None };
        world.engine.separate_entity(&world.call, separate).expect("two again");
        assert_eq!(bytes(), before);
    });
}

/// What is retracted stays so wherever it is moved.
#[test]
fn an_undone_fact_stays_undone_when_it_was_separated() {
    for_each_store(|world| {
        world.facts(vec![fact("person", r#"{"name":"Sam","role":"cook"}"#)]);
        let second = world.facts(vec![fact("person", r#"{"name":"Sam","role":"pilot"}"#)]);
        let entity = second.entities[0].entity;
        let log = world.engine.operations(&world.call, &project_log(), Page::default());
        let stored = log.expect("a log").items[0].seq;
        let observations = vec![second.entities[0].observation];
        let separate = Separate { entity, observations, into: None };
        let other = world.engine.separate_entity(&world.call, separate).expect("two").id;
        assert_eq!(world.field(other, "role"), Json::from("pilot"));
        world.engine.undo(&world.call, &project_log(), Some(stored)).expect("an undo");
        assert_eq!(world.field(other, "role"), Json::Null);
        assert_eq!(world.field(entity, "role"), Json::from("cook"));
        world.engine.redo(&world.call, &project_log(), Some(stored)).expect("a redo");
        assert_eq!(world.field(other, "role"), Json::from("pilot"));
        world.verified();
    });
}

/// Neotoma: the version of the schema depends on the door through which a fact came.
#[test]
fn every_way_in_pins_the_schema_in_force() {
    for_each_store(|world| {
        let json = world.engine.schema(&world.call, "task", None).expect("built in");
        let mut second = json.clone();
        second.description = Some("Something to do.".to_owned());
        let second = world.engine.register_schema(&world.call, NewSchema { schema: second });
        assert_eq!(second.expect("version 2").version, 2);
        let stored = world.facts(vec![fact("task", r#"{"title":"write"}"#)]).entities[0].entity;
        let correct =
            Correct { entity: stored, fields: fields(r#"{"done":true}"#), observed_at: None };
        world.engine.correct(&world.call, correct).expect("a correction");
        let kept = runs::keep(world, runs::turn_envelope("t1", "I need to call Maria tomorrow."));
        let run = kept.interpretation.expect("a run");
        let found = run.observations.iter().map(|id| id.entity);
        let tasks = found.filter(|id| world.entity(*id).entity_type == "task");
        for id in tasks.chain([stored]) {
            for one in world.observed(id) {
                assert_eq!(one.observation.schema_version, 2, "{one:?}");
            }
        }
    });
}

/// Neotoma: a run is audited and cannot be replayed.
#[test]
fn a_run_is_replayed_from_what_was_kept_and_finds_the_same() {
    for_each_store(|world| {
        let text = "I need to call Maria Lopez tomorrow. We decided to use Rust.";
        let kept = runs::keep(world, runs::turn_envelope("t1", text));
        let run = kept.interpretation.expect("a run");
        let again = world.engine.replay_interpretation(&world.call, run.id).expect("a replay");
        assert_eq!(again.len(), run.observations.len());
        for (finding, id) in again.iter().zip(&run.observations) {
            let one = world.observed(id.entity).into_iter().find(|it| it.observation.id == *id);
            let one = one.expect("the observation").observation;
            assert_eq!(one.fields, finding.fields);
            let span = finding.span.as_ref().map(|span| span.start as u64..span.end as u64);
            assert_eq!((one.entity_type, one.span), (finding.entity_type.clone(), span));
        }
        // A replay stores nothing.
        let query = RunQuery { source: Some(kept.source.id), open: false };
        let listed = world.engine.interpretations(&world.call, query, Page::default());
        assert_eq!(listed.expect("a list").items.len(), 1);
    });
}

/// The fields of a slot come from its last version alone, however many came before.
#[test]
fn a_slot_never_mixes_two_versions() {
    for_each_store(|world| {
        let mut message = crate::world::bot("first");
        let info = json::parse(br#"{"source_info":{"model":"m-1"}}"#, 8).expect("sound JSON");
        message.metadata =
            tine_core::Metadata::from_json(&info, &Limits::default()).expect("sound");
        world.store("chat", "1", crate::world::user("q"));
        let first = world.store("chat", "1", message);
        assert_eq!(world.field(first.entity, "model"), Json::from("m-1"));
        for n in 0..20 {
            world.store("chat", "1", crate::world::bot(&format!("other {n}")));
            assert_eq!(world.field(first.entity, "model"), Json::Null, "after {n} more");
            let now = AsOf {
                observed: None,
                stored: Some("2999-01-01T00:00:00Z".parse().expect("a time")),
            };
            let then = world.engine.entity(&world.call, first.entity, now).expect("an entity");
            assert_eq!(then.snapshot, world.entity(first.entity).snapshot);
        }
    });
}

#[test]
fn an_undone_title_can_be_set_again() {
    for_each_store(|world| {
        let named = |title: &str, turn: &str| {
            let mut request =
                tine_engine::StoreTurn::new("chat", turn, crate::world::user("hello"));
            request.title = Some(title.to_owned());
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        let first = named("one", "1");
        let links = world.engine.relationships(
            &world.call,
            RelationshipQuery::of(first.entity),
            Page::default(),
        );
        let tine_core::facts::Endpoint::Entity(talk) = links.expect("links").items[0].target else {
            panic!("a message is part of an entity");
        };
        named("two", "2");
        assert_eq!(world.field(talk, "title"), Json::from("two"));
        world.engine.undo(&world.call, &first.conversation, None).expect("an undo");
        assert_eq!(world.field(talk, "title"), Json::from("one"));
        named("two", "2");
        assert_eq!(world.field(talk, "title"), Json::from("two"));
    });
}

#[test]
fn stores_of_facts_name_what_they_came_from() {
    for_each_store(|world| {
        let request = StoreFacts {
            entities: vec![fact("person", r#"{"name":"Ada"}"#)],
            agent: Json::from("a careful agent"),
            ..StoreFacts::default()
        };
        let stored = world.engine.store_facts(&world.call, request).expect("facts");
        let run = world.engine.interpretation(&world.call, stored.interpretation).expect("a run");
        assert_eq!(run.detail.get("kind"), Some(&Json::from("agent")));
        assert_eq!(run.detail.get("agent"), Some(&Json::from("a careful agent")));
        assert_eq!(run.source, stored.source.id);
    });
}

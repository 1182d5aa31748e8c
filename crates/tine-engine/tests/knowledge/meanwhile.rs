//! A check of a store reads it in many small steps, and is not misled by what others do between
//! any two of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tine_core::{ConversationId, EntityId, Limits, Name, SourceId, TurnId};
use tine_engine::{
    ConversationPatch, Correct, Delete, DeleteMode, Interpret, Merge, MetadataPatch, NewCommit,
    NewSource, PurgeTarget, StoreTurn,
};
use tine_store::{Job, MemoryStore, Read, Result as Stored, Store};

use super::{fact, fields};
use crate::purge::purge;
use crate::world::{World, user};

/// A store that runs a change right after one of the reads.
struct Restless {
    inner: Arc<dyn Store>,
    reads: AtomicUsize,
    after_read: usize,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Store for Restless {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Stored<()>) -> Stored<()> {
        self.inner.read(body)?;
        if self.reads.fetch_add(1, Ordering::SeqCst) == self.after_read {
            let then = self.then.lock().expect("no thread panicked").take();
            then.expect("it is done once")();
        }
        Ok(())
    }

    fn write(&self, job: Job) -> Stored<()> {
        self.inner.write(job)
    }

    tine_store::forward_store!(inner);
}

/// Something of every kind, to be changed.
#[derive(Clone)]
struct Things {
    talk: ConversationId,
    other: ConversationId,
    turn: TurnId,
    first_turn: TurnId,
    source: SourceId,
    people: [EntityId; 2],
}

fn source(text: &str) -> NewSource {
    NewSource {
        content: Arc::new(text.as_bytes().to_vec()),
        mime_type: "text/plain".to_owned(),
        original_filename: None,
        interpret: Interpret::Wait,
        interpreter: None,
    }
}

fn tell(world: &World, turn: &str, text: &str) -> TurnId {
    let request =
        StoreTurn { interpret: Interpret::Wait, ..StoreTurn::new("chat", turn, user(text)) };
    world.engine.store_turn(&world.call, request).expect("a turn").turn.id
}

fn mark() -> Name {
    Name::new("mark", &Limits::default()).expect("a sound name")
}

fn things(world: &World) -> Things {
    let (talk, other) = (world.talk("talk"), world.talk("other"));
    let turn = world.say(&talk, &["a", "b", "c"])[1];
    world.say(&other, &["d"]);
    world.engine.set_bookmark(&world.call, mark(), world.turn(turn)).expect("a bookmark");
    let first_turn = tell(world, "1", "Dr. Ann Lee moves to Rome on 2031-07-19.");
    let kept = world.engine.store_source(&world.call, source("Minutes. Dr. Bob Day spoke."));
    let people = [r#"{"name":"Cy Fox"}"#, r#"{"name":"Cyrus Fox"}"#]
        .map(|text| world.facts(vec![fact("person", text)]).entities[0].entity);
    commit(world, &talk);
    Things { talk, other, turn, first_turn, source: kept.expect("a source").source.id, people }
}

fn commit(world: &World, talk: &ConversationId) {
    world.engine.commit(&world.call, NewCommit::of(talk.clone(), "so far")).expect("a commit");
}

fn patch(world: &World, talk: &ConversationId, patch: ConversationPatch) {
    world.engine.patch_conversation(&world.call, talk, patch).expect("a patch");
}

type Change = fn(&World, &Things);

/// Changes that can happen between two reads.
const CHANGES: &[(&str, Change)] = &[
    ("a title", |world, things| {
        let title = Some(Some("new".to_owned()));
        patch(world, &things.talk, ConversationPatch { title, ..Default::default() });
    }),
    ("archived", |world, things| {
        let archived = Some(true);
        patch(world, &things.talk, ConversationPatch { archived, ..Default::default() });
    }),
    (
        "all of it undone",
        |world, things| {
            while world.engine.undo(&world.call, &things.other, None).is_ok() {}
        },
    ),
    ("a bookmark moved away", |world, things| {
        let to = world.say(&things.other, &["e"])[0];
        world.engine.set_bookmark(&world.call, mark(), world.turn(to)).expect("a bookmark");
    }),
    ("a tag", |world, things| {
        let patch = MetadataPatch { add_tags: vec!["new".to_owned()], ..Default::default() };
        let turn = world.turn(things.turn);
        world.engine.patch_metadata(&world.call, turn, patch).expect("a tag");
    }),
    ("a turn deleted", |world, things| {
        let turn = world.turn(things.turn);
        let delete = Delete { turn, mode: DeleteMode::Cascade, force: true, dry_run: false };
        world.engine.delete(&world.call, delete).expect("a deletion");
    }),
    ("a turn erased", |world, things| {
        purge(world, PurgeTarget::Turn(world.turn(things.turn)));
    }),
    ("a turn erased that much was learned from", |world, things| {
        purge(world, PurgeTarget::Turn(world.turn(things.first_turn)));
    }),
    ("a conversation erased", |world, things| {
        purge(world, PurgeTarget::Conversation(things.talk.clone()));
    }),
    ("a source erased", |world, things| {
        purge(world, PurgeTarget::Source(things.source));
    }),
    ("a stored turn", |world, _| {
        tell(world, "2", "Dr. Dee Orr moves to Bonn on 2032-01-02.");
    }),
    ("another source", |world, _| {
        world.engine.store_source(&world.call, source("Dr. Eve Poe spoke.")).expect("a source");
    }),
    ("a correction", |world, things| {
        let fields = fields(r#"{"name":"Cy Foxe"}"#);
        let right = Correct { entity: things.people[0], fields, observed_at: None };
        world.engine.correct(&world.call, right).expect("a correction");
    }),
    ("two that are one", |world, things| {
        let [into, from] = things.people;
        world.engine.merge_entities(&world.call, Merge { from, into }).expect("a merge");
    }),
    ("a commit", |world, things| {
        world.say(&things.talk, &["f"]);
        commit(world, &things.talk);
    }),
    ("a new conversation", |world, _| {
        let talk = world.talk("newer");
        world.say(&talk, &["g"]);
    }),
];

/// Verifies a store while a change is made after one of the reads; returns whether the check
/// got that far.
fn is_not_misled(name: &str, change: Change, after_read: usize) -> bool {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let things = things(&World::seeded(Arc::clone(&inner), 1));
    let other = World::seeded(Arc::clone(&inner), 2);
    let then = move || change(&other, &things);
    let store = Arc::new(Restless {
        inner,
        reads: AtomicUsize::new(0),
        after_read,
        then: Mutex::new(Some(Box::new(then))),
    });
    let world = World::over(Arc::clone(&store) as Arc<dyn Store>, None);
    let found = world.engine.verify().expect("a check").problems;
    assert_eq!(found, [], "{name}, after read {after_read}");
    store.reads.load(Ordering::SeqCst) > after_read
}

#[test]
fn verify_reports_nothing_when_a_change_happens_between_any_two_of_its_reads() {
    for (name, change) in CHANGES {
        let steps =
            (0..).take_while(|after_read| is_not_misled(name, *change, *after_read)).count();
        assert!(steps > 10, "{name}: a check of {steps} reads");
    }
}

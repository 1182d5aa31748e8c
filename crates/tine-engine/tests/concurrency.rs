//! Many writers at once lose nothing.

use std::sync::{Arc, Mutex};

use tine_core::{Body, ConversationId, ErrorKind};
use tine_engine::{
    Append, ConversationPatch, Edit, Engine, MetadataPatch, OnConflict, PathQuery, Presence,
    SplitTurn,
};
use tine_sqlite::SqliteStore;
use tine_store::{Job, MemoryStore, Read, Result as Stored, Store, Verdict};
use tine_testkit::stores::TempFolder;

use crate::world::{World, user};

const THREADS: usize = 8;
const EACH: usize = 50;

fn text(thread: usize, n: usize) -> String {
    format!("thread {thread} message {n}")
}

/// Every message is there once, in one line, and each thread's in its own order.
fn check_linear(world: &World, talk: &tine_core::ConversationId) {
    let rows = world.rows(talk);
    assert_eq!(rows.len(), THREADS * EACH);
    assert!(rows.iter().all(|row| row.children.len() <= 1), "one line");
    let path = world.engine.path(&world.call, PathQuery::of(talk.clone())).expect("a path");
    assert_eq!(path.turns.len(), THREADS * EACH);
    for thread in 0..THREADS {
        let own: Vec<_> = rows
            .iter()
            .filter(|row| row.preview.starts_with(&format!("thread {thread} ")))
            .map(|row| row.preview.clone())
            .collect();
        let want: Vec<_> = (0..EACH).map(|n| text(thread, n)).collect();
        assert_eq!(own, want);
    }
    world.verified();
}

fn append_all(engine: &Engine, talk: &tine_core::ConversationId, thread: usize) {
    let call = tine_engine::Call::by(format!("thread {thread}"));
    for n in 0..EACH {
        let request = Append::to(talk.clone(), vec![user(&text(thread, n))]);
        engine.append(&call, request).expect("an append");
    }
}

fn check_one_engine(store: Arc<dyn Store>) {
    let world = World::over(store, None);
    let talk = world.talk("talk");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, talk) = (&world.engine, &talk);
            scope.spawn(move || append_all(engine, talk, thread));
        }
    });
    check_linear(&world, &talk);
}

#[test]
fn threads_on_one_branch_lose_nothing_in_memory() {
    check_one_engine(Arc::new(MemoryStore::new()));
}

#[test]
fn threads_on_one_branch_lose_nothing_in_the_embedded_store() {
    let folder = TempFolder::new();
    check_one_engine(Arc::new(SqliteStore::open(folder.path()).expect("a store")));
}

#[test]
fn several_handles_on_one_folder_lose_nothing() {
    let folder = TempFolder::new();
    let open = || {
        let store = SqliteStore::open(folder.path()).expect("a store");
        Engine::new(store)
    };
    let world = World { engine: open(), call: tine_engine::Call::by("tester"), folder: None };
    let talk = world.talk("talk");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, talk) = (open(), talk.clone());
            scope.spawn(move || append_all(&engine, &talk, thread));
        }
    });
    check_linear(&world, &talk);
}

#[test]
fn of_two_writers_with_one_expected_tip_one_wins_and_the_other_gets_a_conflict() {
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a store");
    let world = World::over(Arc::new(store), None);
    let talk = world.talk("talk");
    let tip = world.say(&talk, &["a"])[0];
    let answers: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (world, talk) = (&world, &talk);
                scope.spawn(move || {
                    let request = Append {
                        expected_tip: Some(tip.into()),
                        ..Append::to(talk.clone(), vec![user(&text(thread, 0))])
                    };
                    world.engine.append(&world.call, request)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("no writer panics")).collect()
    });
    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(won, 1);
    for error in answers.into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }
    assert_eq!(world.rows(&talk).len(), 2);
}

#[test]
fn two_writers_with_on_conflict_fork_never_lose_a_turn() {
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a store");
    let world = World::over(Arc::new(store), None);
    let talk = world.talk("talk");
    let tip = world.say(&talk, &["a"])[0];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (world, talk) = (&world, &talk);
            scope.spawn(move || {
                let request = Append {
                    expected_tip: Some(tip.into()),
                    on_conflict: OnConflict::Fork,
                    ..Append::to(talk.clone(), vec![user(&text(thread, 0))])
                };
                world.append(request);
            });
        }
    });
    assert_eq!(world.rows(&talk).len(), 1 + THREADS);
    let branches = world.engine.branches(&world.call, &talk).expect("branches");
    assert_eq!(branches.len(), THREADS, "main and one for each writer that came too late");
    world.verified();
}

#[test]
fn one_key_from_many_threads_does_its_work_once() {
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a store");
    let world = World::over(Arc::new(store), None);
    let talk = world.talk("talk");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (world, talk) = (&world, &talk);
            scope.spawn(move || {
                let call = world.call.clone().with_key("once");
                let request = Append::to(talk.clone(), vec![user("a")]);
                world.engine.append(&call, request).expect("an answer for everybody");
            });
        }
    });
    assert_eq!(world.tree(&talk), "a");
}

/// Commits that SQLite's log holds: frames whose header names the database's size.
fn commits(folder: &TempFolder) -> usize {
    let log = std::fs::read(folder.path().join("tine.db-wal")).expect("SQLite's log");
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let (header, frame) = (32, 24 + usize::try_from(number(8)).expect("a page size"));
    let frames = (header..log.len().saturating_sub(frame - 1)).step_by(frame);
    let valid = frames.filter(|at| log[at + 8..at + 16] == log[16..24]);
    valid.filter(|at| number(at + 4) != 0).count()
}

/// Commits made by writers who all arrived while another one held the store.
fn commits_of_a_crowd() -> usize {
    let folder = TempFolder::new();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).expect("a store"));
    let world = World::over(store.clone(), None);
    let talks: Vec<_> = (0..THREADS).map(|n| world.talk(&format!("talk {n}"))).collect();
    let before = commits(&folder);
    let (arrived, arrivals) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (holding, held) = std::sync::mpsc::channel();
        scope.spawn(move || {
            store
                .write(Box::new(move |_| {
                    holding.send(()).ok();
                    (0..THREADS).for_each(|_| arrivals.recv().expect("every writer arrives"));
                    Ok(Verdict::Rollback)
                }))
                .expect("a transaction that changes nothing");
        });
        held.recv().expect("the store is held");
        for talk in &talks {
            let (world, arrived) = (&world, arrived.clone());
            scope.spawn(move || {
                arrived.send(()).expect("the other thread waits");
                world.append(Append::to(talk.clone(), vec![user("a")]));
            });
        }
    });
    world.verified();
    commits(&folder) - before
}

#[test]
fn writers_that_wait_for_the_same_commit_share_the_next_one() {
    // A writer says that it comes a moment before it is in the queue, so a single crowd may
    // arrive one by one; a store without group commit never shares, however often it is tried.
    let shared = (0..50).any(|_| commits_of_a_crowd() < THREADS);
    assert!(shared, "every append had a commit of its own");
}

#[test]
fn readers_see_whole_appends_only() {
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a store");
    let world = World::over(Arc::new(store), None);
    let talk = world.talk("talk");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..30 {
                let messages = (0..10).map(|m| user(&format!("{n} {m}"))).collect();
                world.append(Append::to(talk.clone(), messages));
            }
        });
        while !writer.is_finished() {
            assert_eq!(world.rows(&talk).len() % 10, 0, "half an append was seen");
        }
    });
    assert_eq!(world.rows(&talk).len(), 300);
}

/// A store on which each change is undone right after its commit.
struct Hasty {
    inner: Arc<dyn Store>,
    talk: Mutex<Option<ConversationId>>,
}

impl Store for Hasty {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Stored<()>) -> Stored<()> {
        self.inner.read(body)
    }

    fn write(&self, job: Job) -> Stored<()> {
        self.inner.write(job)?;
        if let Some(talk) = &*self.talk.lock().expect("no thread panicked") {
            let other = World::seeded(Arc::clone(&self.inner), 2);
            other.engine.undo(&other.call, talk, None).expect("an undo");
        }
        Ok(())
    }

    tine_store::forward_store!(inner);
}

fn check_own_state(inner: Arc<dyn Store>) {
    let hasty = Arc::new(Hasty { inner, talk: Mutex::new(None) });
    let world = World::over(Arc::clone(&hasty) as Arc<dyn Store>, None);
    let talk = world.talk("talk");
    let said = world.say(&talk, &["ab"])[0];
    *hasty.talk.lock().expect("no thread panicked") = Some(talk.clone());
    let World { engine, call, .. } = &world;

    let patch = MetadataPatch { add_tags: vec!["mine".to_owned()], ..MetadataPatch::default() };
    let turn = engine.patch_metadata(call, world.turn(said), patch).expect("a tag");
    assert!(turn.metadata.tags.contains("mine"));

    let split = SplitTurn { turn: world.turn(said), offset: 1 };
    let done = engine.split(call, split).expect("a split");
    assert_eq!((done.left.presence, done.right.presence), (Presence::Live, Presence::Live));

    let body = Body::Text("c".to_owned());
    let edit = Edit { turn: world.turn(said), body, branch: None, reuse: true };
    assert_eq!(engine.edit(call, edit).expect("an edit").turn.presence, Presence::Live);

    let patch = ConversationPatch { title: Some(Some("mine".to_owned())), ..Default::default() };
    let view = engine.patch_conversation(call, &talk, patch).expect("a title");
    assert_eq!(view.title.as_deref(), Some("mine"));

    assert_eq!(world.tree(&talk), "ab", "all of it is undone");
    assert!(engine.turn(call, world.turn(said)).expect("a turn").metadata.tags.is_empty());
}

#[test]
fn an_answer_shows_the_state_that_its_own_call_left() {
    check_own_state(Arc::new(MemoryStore::new()));
    let folder = TempFolder::new();
    check_own_state(Arc::new(SqliteStore::open(folder.path()).expect("a store")));
}

/// Sixty-four appends at once make one line of sixty-four turns, each on top of another.
#[test]
fn sixty_four_appends_at_once_make_one_chain() {
    crate::world::for_each_store(|world| {
        let talk = world.talk("crowd");
        std::thread::scope(|scope| {
            for n in 0..64 {
                let talk = &talk;
                scope.spawn(move || {
                    world.append(Append::to(talk.clone(), vec![user(&format!("voice {n}"))]))
                });
            }
        });
        let path = world.engine.path(&world.call, PathQuery::of(talk.clone())).expect("a path");
        let mut parents: Vec<_> = path.turns.iter().map(|turn| turn.parent_hash).collect();
        let mut said: Vec<_> = path
            .turns
            .iter()
            .map(|turn| match &turn.content {
                tine_store::Content::Kept(body) => body.preview(80),
                tine_store::Content::Purged(_) => String::new(),
            })
            .collect();
        parents.sort();
        parents.dedup();
        said.sort();
        said.dedup();
        assert_eq!((path.turns.len(), parents.len(), said.len()), (64, 64, 64));
        world.verified();
    });
}

/// A check beside a writer reads logs and entries at different times, and is not misled by that.
#[test]
fn verify_finds_nothing_wrong_in_a_store_that_is_written_to() {
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a store");
    let engine = Engine::new(store);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let call = tine_engine::Call::by("writer");
            for n in 0..150 {
                let request =
                    tine_engine::StoreTurn::new("chat", n.to_string(), user(&format!("turn {n}")));
                engine.store_turn(&call, request).expect("a turn");
                if n % 10 == 9 {
                    let talk = ConversationId::from_stored("chat");
                    let commit = tine_engine::NewCommit::of(talk, "so far");
                    engine.commit(&call, commit).expect("a commit");
                }
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            assert_eq!(engine.verify().expect("a check").problems, vec![]);
        }
    });
    assert_eq!(engine.verify().expect("a check").problems, vec![]);
}

//! Concurrent appends to many conversations share batches, and each is stored as if sent alone.

use std::time::{Duration, Instant};

use tine_core::{ConversationId, Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
use tine_postgres::{PostgresAddress, PostgresStore};
use tine_store::OpenMode;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::fixture;

const CLIENTS: usize = 24;

/// A connection to the database that bypasses the store.
struct DirectConnection {
    runtime: Runtime,
    client: Client,
}

impl DirectConnection {
    fn connect() -> DirectConnection {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = tine_testkit::database::server();
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(server, NoTls)).unwrap();
        runtime.spawn(connection);
        DirectConnection { runtime, client }
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }

    fn number(&self, sql: &str) -> i64 {
        self.runtime.block_on(self.client.query_one(sql, &[])).unwrap().get(0)
    }
}

fn open(address: &PostgresAddress) -> Engine {
    Engine::new(PostgresStore::open(address, OpenMode::Create).unwrap())
}

fn append_text(engine: &Engine, id: &ConversationId, text: &str) {
    let append = Append::to(id.clone(), vec![Message::text(Role::User, text)]);
    engine.append(&Call::by("tester"), append).unwrap();
}

fn contents(engine: &Engine, id: &ConversationId) -> Vec<String> {
    let path = engine.path(&Call::by("tester"), PathQuery::of(id.clone())).unwrap();
    path.turns.iter().map(|turn| format!("{:?}", turn.content)).collect()
}

/// Creates conversations with one turn each; the server caches them.
fn cached_conversations(engine: &Engine) -> Vec<ConversationId> {
    let call = Call::by("tester");
    let named = (0..CLIENTS).map(|nth| NewConversation::named(&format!("c{nth}")).unwrap());
    let ids: Vec<_> = named.map(|new| engine.create_conversation(&call, new).unwrap().id).collect();
    ids.iter().for_each(|id| append_text(engine, id, "first"));
    ids
}

/// Appends to all conversations at once, while a table lock delays the first appends until others
/// wait.
fn append_while_locked(address: &PostgresAddress, engine: &Engine, ids: &[ConversationId]) {
    let (schema, direct) = (address.schema(), DirectConnection::connect());
    direct.run(&format!("BEGIN; LOCK TABLE {schema}.turn IN EXCLUSIVE MODE"));
    std::thread::scope(|scope| {
        for id in ids {
            scope.spawn(move || append_text(engine, id, "second"));
        }
        let blocked = format!(
            "SELECT count(*) FROM pg_locks WHERE relation = '{schema}.turn'::regclass AND NOT granted"
        );
        let started = Instant::now();
        while direct.number(&blocked) < 2 && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        direct.run("COMMIT");
    });
}

#[test]
fn appends_that_wait_share_a_batch() {
    let address = fixture::address(0);
    let engine = open(&address);
    let ids = cached_conversations(&engine);
    append_while_locked(&address, &engine, &ids);
    let commits = DirectConnection::connect().number(&format!(
        "SELECT count(DISTINCT transaction) FROM {}.unfed WHERE seq = \
         (SELECT max(seq) FROM {0}.unfed)",
        address.schema()
    ));
    assert!((1..i64::try_from(CLIENTS).unwrap()).contains(&commits), "{commits} commits");
    for id in &ids {
        assert_eq!(contents(&engine, id).len(), 2);
    }
    assert!(engine.verify().unwrap().problems.is_empty());
}

#[test]
fn an_append_whose_number_is_taken_does_not_fail_its_batch() {
    let address = fixture::address(0);
    let (engine, other) = (open(&address), open(&address));
    let ids = cached_conversations(&engine);
    // The first server's cache does not have these appends.
    let is_stale = |nth: usize| nth % 5 == 3;
    for (nth, id) in ids.iter().enumerate().filter(|(nth, _)| is_stale(*nth)) {
        append_text(&other, id, &format!("between {nth}"));
    }
    append_while_locked(&address, &engine, &ids);
    for (nth, id) in ids.iter().enumerate() {
        let contents = contents(&other, id);
        assert_eq!(contents.len(), if is_stale(nth) { 3 } else { 2 }, "{contents:?}");
        assert!(contents.last().unwrap().contains("second"), "{contents:?}");
    }
    assert!(other.verify().unwrap().problems.is_empty());
}

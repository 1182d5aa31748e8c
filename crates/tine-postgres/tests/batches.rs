//! Appends to many conversations at once share batches, and each is stored as if it were alone.

use std::time::{Duration, Instant};

use tine_core::{ConversationId, Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
use tine_postgres::{Address, PostgresStore};
use tine_store::OpenMode;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::fixture;

const CLIENTS: usize = 24;

/// A connection besides every store.
struct Aside {
    runtime: Runtime,
    client: Client,
}

impl Aside {
    fn connect() -> Aside {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = tine_testkit::database::server();
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(server, NoTls)).unwrap();
        runtime.spawn(connection);
        Aside { runtime, client }
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }

    fn number(&self, sql: &str) -> i64 {
        self.runtime.block_on(self.client.query_one(sql, &[])).unwrap().get(0)
    }
}

fn open(address: &Address) -> Engine {
    Engine::new(PostgresStore::open(address, OpenMode::Create).unwrap())
}

fn say(engine: &Engine, id: &ConversationId, text: &str) {
    let append = Append::to(id.clone(), vec![Message::text(Role::User, text)]);
    engine.append(&Call::by("tester"), append).unwrap();
}

fn said(engine: &Engine, id: &ConversationId) -> Vec<String> {
    let path = engine.path(&Call::by("tester"), PathQuery::of(id.clone())).unwrap();
    path.turns.iter().map(|turn| format!("{:?}", turn.content)).collect()
}

/// Conversations that a server knows, with one turn each.
fn known(engine: &Engine) -> Vec<ConversationId> {
    let call = Call::by("tester");
    let named = (0..CLIENTS).map(|nth| NewConversation::named(&format!("c{nth}")).unwrap());
    let ids: Vec<_> = named.map(|new| engine.create_conversation(&call, new).unwrap().id).collect();
    ids.iter().for_each(|id| say(engine, id, "first"));
    ids
}

/// Appends to all at once, while the database holds back the first until others wait.
fn append_held_back(address: &Address, engine: &Engine, ids: &[ConversationId]) {
    let (schema, aside) = (address.schema(), Aside::connect());
    aside.run(&format!("BEGIN; LOCK TABLE {schema}.turn IN EXCLUSIVE MODE"));
    std::thread::scope(|scope| {
        for id in ids {
            scope.spawn(move || say(engine, id, "second"));
        }
        let blocked = format!(
            "SELECT count(*) FROM pg_locks WHERE relation = '{schema}.turn'::regclass AND NOT granted"
        );
        let began = Instant::now();
        while aside.number(&blocked) < 2 && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        aside.run("COMMIT");
    });
}

#[test]
fn appends_that_wait_share_a_batch() {
    let address = fixture::address(0);
    let engine = open(&address);
    let ids = known(&engine);
    append_held_back(&address, &engine, &ids);
    let commits = Aside::connect().number(&format!(
        "SELECT count(DISTINCT transaction) FROM {}.unfed WHERE seq = \
         (SELECT max(seq) FROM {0}.unfed)",
        address.schema()
    ));
    assert!((1..i64::try_from(CLIENTS).unwrap()).contains(&commits), "{commits} commits");
    for id in &ids {
        assert_eq!(said(&engine, id).len(), 2);
    }
    assert!(engine.verify().unwrap().problems.is_empty());
}

#[test]
fn an_append_whose_number_is_taken_does_not_fail_its_batch() {
    let address = fixture::address(0);
    let (engine, other) = (open(&address), open(&address));
    let ids = known(&engine);
    // Behind the back of the first.
    let behind = |nth: usize| nth % 5 == 3;
    for (nth, id) in ids.iter().enumerate().filter(|(nth, _)| behind(*nth)) {
        say(&other, id, &format!("between {nth}"));
    }
    append_held_back(&address, &engine, &ids);
    for (nth, id) in ids.iter().enumerate() {
        let said = said(&other, id);
        assert_eq!(said.len(), if behind(nth) { 3 } else { 2 }, "{said:?}");
        assert!(said.last().unwrap().contains("second"), "{said:?}");
    }
    assert!(other.verify().unwrap().problems.is_empty());
}

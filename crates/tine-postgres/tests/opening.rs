//! What is there before a store is opened, and afterwards.

use tine_core::{Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
use tine_postgres::{Address, Migration, PostgresStore};
use tine_store::{OpenMode, Store, StoreError};
use tokio_postgres::NoTls;

use crate::fixture;

/// Runs statements besides every store.
pub(crate) fn run(sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(tine_testkit::database::server(), NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

fn open(address: &Address, mode: OpenMode) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(address, mode)
}

#[test]
fn nothing_is_made_where_a_store_must_be_and_looking_changes_nothing() {
    let address = fixture::address(0);
    for _ in 0..2 {
        assert_eq!(PostgresStore::pending(&address).unwrap(), Migration { from: None, to: 2 });
        let missing = open(&address, OpenMode::Existing).unwrap_err();
        assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    }
    open(&address, OpenMode::Create).unwrap();
    assert_eq!(PostgresStore::pending(&address).unwrap(), Migration { from: Some(2), to: 2 });
    open(&address, OpenMode::Existing).unwrap();
}

#[test]
fn a_store_of_the_first_format_is_brought_forward() {
    for partitions in [0, 4] {
        let address = fixture::address(partitions);
        let schema = address.schema();
        let made = match partitions {
            0 => ");",
            // One is enough for one project.
            _ => ") PARTITION BY HASH (project);",
        };
        let first = include_str!("../src/schema/0001.sql").replace(") BY PROJECT;", made);
        run(&format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}; {first} \
             CREATE TABLE format (number int4 NOT NULL); INSERT INTO format VALUES (1)"
        ));
        if partitions > 0 {
            run(&format!(
                "DO $$ DECLARE parted regclass; BEGIN FOR parted IN SELECT oid FROM pg_class \
                 WHERE relkind = 'p' AND relnamespace = '{schema}'::regnamespace LOOP \
                 EXECUTE format('CREATE TABLE %s_0 PARTITION OF %s \
                 FOR VALUES WITH (MODULUS 1, REMAINDER 0)', parted, parted); END LOOP; END $$"
            ));
        }
        let pending = PostgresStore::pending(&address).unwrap();
        assert_eq!(pending, Migration { from: Some(1), to: 2 });
        let engine = Engine::new(open(&address, OpenMode::Existing).unwrap());
        let call = Call::by("tester");
        let id =
            engine.create_conversation(&call, NewConversation::named("c").unwrap()).unwrap().id;
        for text in ["one", "two", "three"] {
            let append = Append::to(id.clone(), vec![Message::text(Role::User, text)]);
            engine.append(&call, append).unwrap();
        }
        assert!(engine.verify().unwrap().problems.is_empty());
        assert_eq!(engine.path(&call, PathQuery::of(id)).unwrap().turns.len(), 3);
    }
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let address = fixture::address(0);
    open(&address, OpenMode::Create).unwrap();
    run(&format!("UPDATE {}.format SET number = 99", address.schema()));
    for mode in [OpenMode::Create, OpenMode::Existing] {
        let refused = open(&address, mode).unwrap_err();
        assert!(matches!(refused, StoreError::NewerFormat { found: 99, .. }), "{refused}");
    }
    run(&format!("UPDATE {}.format SET number = 2", address.schema()));
    open(&address, OpenMode::Existing).unwrap();
}

#[test]
fn a_schema_of_somebody_else_is_refused_and_left_alone() {
    let address = fixture::address(0);
    let schema = address.schema();
    run(&format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.turn (theirs int)"));
    let refused = open(&address, OpenMode::Create).unwrap_err();
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused}");
    run(&format!("DROP TABLE {schema}.turn"));
    open(&address, OpenMode::Create).unwrap();
}

#[test]
fn many_who_open_a_new_store_at_once_make_one() {
    let address = fixture::address(0);
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..6).map(|_| scope.spawn(|| open(&address, OpenMode::Create).unwrap())).collect();
        for store in all {
            assert!(store.join().unwrap().check().unwrap().problems.is_empty());
        }
    });
}

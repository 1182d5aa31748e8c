//! Opening: missing stores, migrations, and schemas that are not Tine's.

use tine_core::{Message, Role};
use tine_engine::{Append, Call, Engine, Interpret, NewConversation, PathQuery, StoreTurn};
use tine_postgres::{Migration, PostgresAddress, PostgresStore};
use tine_store::{Family, IndexQuery, OpenMode, RecordIndex, RecordQuery, Store, StoreError};
use tokio_postgres::NoTls;

use crate::fixture;

/// Runs statements directly on the database.
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

fn open(address: &PostgresAddress, mode: OpenMode) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(address, mode)
}

#[test]
fn a_store_that_must_exist_is_not_created() {
    let address = fixture::address(0);
    for _ in 0..2 {
        assert_eq!(
            PostgresStore::pending_migration(&address).unwrap(),
            Migration { from: None, to: 3 }
        );
        let missing = open(&address, OpenMode::Existing).unwrap_err();
        assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    }
    open(&address, OpenMode::Create).unwrap();
    assert_eq!(
        PostgresStore::pending_migration(&address).unwrap(),
        Migration { from: Some(3), to: 3 }
    );
    open(&address, OpenMode::Existing).unwrap();
}

#[test]
fn a_store_of_the_first_format_is_migrated() {
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
        let pending = PostgresStore::pending_migration(&address).unwrap();
        assert_eq!(pending, Migration { from: Some(1), to: 3 });
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

/// Returns every record and every index key, in order.
fn families(store: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    let project = tine_core::ProjectId::default();
    let read = store.read(&mut |records| {
        for family in Family::all() {
            let found = records.records(&project, &RecordQuery::all(family), 1_000)?;
            lines.extend(found.iter().map(|record| format!("{} {}", record.key(), record.text())));
        }
        for index in RecordIndex::ALL {
            let found = records.index_keys(&project, &IndexQuery::all(index), 1_000)?;
            lines.extend(found.iter().map(ToString::to_string));
        }
        Ok(())
    });
    read.unwrap();
    lines
}

#[test]
fn the_entries_of_the_second_format_become_records_and_index_keys() {
    for partitions in [0, 4] {
        let address = fixture::address(partitions);
        let engine = Engine::new(open(&address, OpenMode::Create).unwrap());
        let call = Call::by("tester");
        for (turn, text) in [("1", "I need to call Maria Lopez on 2024-06-03."), ("2", "And Bob.")]
        {
            let message = Message::text(Role::User, text);
            let interpret = if turn == "1" { Interpret::Wait } else { Interpret::Queue };
            let request = StoreTurn { interpret, ..StoreTurn::new("chat", turn, message) };
            engine.store_turn(&call, request).unwrap();
        }
        let expected = families(engine.store());
        assert!(expected.iter().filter(|line| line.starts_with("index ")).count() > 8);
        drop(engine);
        let (schema, by) = match partitions {
            0 => (address.schema(), ""),
            _ => (address.schema(), "PARTITION BY HASH (project)"),
        };
        run(&format!(
            "SET search_path = {schema}; CREATE TABLE entry (project int4 NOT NULL, \
             kind int2 NOT NULL, key bytea NOT NULL, text bytea NOT NULL, \
             PRIMARY KEY (project, kind, key)) {by}"
        ));
        if partitions > 0 {
            run(&format!(
                "SET search_path = {schema}; CREATE TABLE entry_0 PARTITION OF entry \
                 FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
            ));
        }
        run(&format!(
            "SET search_path = {schema}; \
             INSERT INTO entry SELECT project, family, key, text FROM record; \
             INSERT INTO entry SELECT project, CASE name WHEN 26 THEN 9 ELSE name END, \
                 CASE name WHEN 9 THEN substr(key, 1, length(key) - 17) \
                     WHEN 26 THEN substr(key, 1, 16) \
                     WHEN 14 THEN substr(key, 1, 24) ELSE key END, \
                 CASE WHEN name IN (9, 26) \
                     THEN ('ent_' || encode(substr(key, length(key) - 15), 'hex'))::bytea \
                     WHEN name = 14 THEN substr(key, 25) ELSE ''::bytea END \
             FROM record_index; \
             DROP TABLE record, record_index; UPDATE format SET number = 2"
        ));
        let engine = Engine::new(open(&address, OpenMode::Existing).unwrap());
        assert_eq!(families(engine.store()), expected);
        assert!(engine.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn a_newer_format_is_rejected_and_left_unchanged() {
    let address = fixture::address(0);
    open(&address, OpenMode::Create).unwrap();
    run(&format!("UPDATE {}.format SET number = 99", address.schema()));
    for mode in [OpenMode::Create, OpenMode::Existing] {
        let refused = open(&address, mode).unwrap_err();
        assert!(matches!(refused, StoreError::NewerFormat { found: 99, .. }), "{refused}");
    }
    run(&format!("UPDATE {}.format SET number = 3", address.schema()));
    open(&address, OpenMode::Existing).unwrap();
}

#[test]
fn a_schema_with_other_tables_is_rejected_and_left_unchanged() {
    let address = fixture::address(0);
    let schema = address.schema();
    run(&format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.turn (theirs int)"));
    let refused = open(&address, OpenMode::Create).unwrap_err();
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused}");
    run(&format!("DROP TABLE {schema}.turn"));
    open(&address, OpenMode::Create).unwrap();
}

#[test]
fn concurrent_openings_of_a_new_store_create_it_once() {
    let address = fixture::address(0);
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..6).map(|_| scope.spawn(|| open(&address, OpenMode::Create).unwrap())).collect();
        for store in all {
            assert!(store.join().unwrap().check().unwrap().problems.is_empty());
        }
    });
}

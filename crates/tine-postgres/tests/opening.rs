//! What is there before a store is opened, and afterwards.

use tine_postgres::{Address, Migration, PostgresStore};
use tine_store::embedded::Mode;
use tine_store::{Store, StoreError};
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

fn open(address: &Address, mode: Mode) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(address, mode)
}

#[test]
fn nothing_is_made_where_a_store_must_be_and_looking_changes_nothing() {
    let address = fixture::address(0);
    for _ in 0..2 {
        assert_eq!(PostgresStore::pending(&address).unwrap(), Migration { from: None, to: 1 });
        let missing = open(&address, Mode::Existing).unwrap_err();
        assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    }
    open(&address, Mode::Create).unwrap();
    assert_eq!(PostgresStore::pending(&address).unwrap(), Migration { from: Some(1), to: 1 });
    open(&address, Mode::Existing).unwrap();
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let address = fixture::address(0);
    open(&address, Mode::Create).unwrap();
    run(&format!("UPDATE {}.format SET number = 99", address.schema()));
    for mode in [Mode::Create, Mode::Existing] {
        let refused = open(&address, mode).unwrap_err();
        assert!(matches!(refused, StoreError::NewerFormat { found: 99, .. }), "{refused}");
    }
    run(&format!("UPDATE {}.format SET number = 1", address.schema()));
    open(&address, Mode::Existing).unwrap();
}

#[test]
fn a_schema_of_somebody_else_is_refused_and_left_alone() {
    let address = fixture::address(0);
    let schema = address.schema();
    run(&format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.turn (theirs int)"));
    let refused = open(&address, Mode::Create).unwrap_err();
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused}");
    run(&format!("DROP TABLE {schema}.turn"));
    open(&address, Mode::Create).unwrap();
}

#[test]
fn many_who_open_a_new_store_at_once_make_one() {
    let address = fixture::address(0);
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..6).map(|_| scope.spawn(|| open(&address, Mode::Create).unwrap())).collect();
        for store in all {
            assert!(store.join().unwrap().check().unwrap().problems.is_empty());
        }
    });
}

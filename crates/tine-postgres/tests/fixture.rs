//! Stores of their own in the database that tests share.

use tine_postgres::{Address, PostgresStore};
use tine_store::OpenMode;

/// The address of a store that is not there yet.
pub(crate) fn address(partitions: u32) -> Address {
    let text = format!("{}&tine_partitions={partitions}", tine_testkit::database::new_store());
    Address::parse(&text).unwrap()
}

/// An empty store.
pub(crate) fn open(partitions: u32) -> PostgresStore {
    PostgresStore::open(&address(partitions), OpenMode::Create).unwrap()
}

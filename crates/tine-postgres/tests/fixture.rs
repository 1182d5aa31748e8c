//! Stores in the database that the tests share.

use tine_postgres::{PostgresAddress, PostgresStore};
use tine_store::OpenMode;

/// Returns the address of a store that does not exist yet.
pub(crate) fn address(partitions: u32) -> PostgresAddress {
    let text = format!("{}&tine_partitions={partitions}", tine_testkit::database::new_store());
    PostgresAddress::parse(&text).unwrap()
}

/// Opens an empty store.
pub(crate) fn open(partitions: u32) -> PostgresStore {
    PostgresStore::open(&address(partitions), OpenMode::Create).unwrap()
}

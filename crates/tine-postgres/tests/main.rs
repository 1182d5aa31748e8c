//! The contract suite over the PostgreSQL store, on plain and on partitioned tables, and tests of what
//! is specific to it.
#![allow(clippy::unwrap_used)]

mod batches;
mod concurrent_servers;
mod fixture;
mod in_doubt;
mod opening;
mod partitions;
mod state_machine;
mod tls;

mod plain {
    tine_store::contract_tests!(&crate::fixture::open(0));
}

mod partitioned {
    tine_store::contract_tests!(&crate::fixture::open(4));
}

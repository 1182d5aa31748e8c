//! The store on PostgreSQL against the contract, on plain tables and on partitioned ones.
#![allow(clippy::unwrap_used)]

mod batches;
mod doubt;
mod encrypted;
mod fixture;
mod machine;
mod opening;
mod partitions;
mod together;

mod plain {
    tine_store::contract_tests!(&crate::fixture::open(0));
}

mod partitioned {
    tine_store::contract_tests!(&crate::fixture::open(4));
}

//! The memory store against the contract.
#![allow(clippy::unwrap_used)]

tine_store::contract_tests!(&tine_store::MemoryStore::new());

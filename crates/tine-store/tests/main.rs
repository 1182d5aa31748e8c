//! Both stores against the contract, and what only the embedded one can do.
#![allow(clippy::unwrap_used)]

mod embedded;
mod fixture;
mod moves;
#[cfg(unix)]
mod users;

mod memory_store {
    tine_store::contract_tests!(&tine_store::MemoryStore::new());
}

mod embedded_store {
    tine_store::contract_tests!(&*crate::fixture::Folder::new().open());
}

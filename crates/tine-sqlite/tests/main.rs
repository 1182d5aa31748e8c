//! The contract suite over the embedded store, and tests of what is specific to it.
#![allow(clippy::unwrap_used)]

#[cfg(unix)]
mod access_lock;
mod branch_moves;
mod embedded;
mod fixture;

mod contract {
    tine_store::contract_tests!(&*crate::fixture::Folder::new().open());
}

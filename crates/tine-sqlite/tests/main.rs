//! The embedded store against the contract, and what only it can do.
#![allow(clippy::unwrap_used)]

mod embedded;
mod fixture;
mod moves;
#[cfg(unix)]
mod users;

mod contract {
    tine_store::contract_tests!(&*crate::fixture::Folder::new().open());
}

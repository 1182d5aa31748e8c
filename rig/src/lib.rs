//! Crash tests: simulates power loss, I/O faults and kills, and checks that no acknowledged write
//! is lost.
//!
//! The program under test is the real one: a shim between it and the C library ([`shim`]) records
//! everything that it does to the store's files, and can make the n-th call fail. From the journal
//! ([`journal`]), the files are rebuilt as a disk could hold them after a power loss at any moment
//! ([`disk`]); each such image is opened and compared with what was acknowledged by then ([`check`]).
//! The expected state is known exactly, since the workload follows a plan that can be repeated
//! anywhere ([`plan`]).
//!
//! - [`power`]: images of a power loss, also during checkpoints, recovery and the work after it.
//! - [`faults`]: every n-th call fails, once or permanently.
//! - [`kill`]: `kill -9` at any moment, on the workload and on the command itself.
//! - [`crowd`]: many processes and threads at once, with a linearizability check.
//! - [`server`]: `kill -9` on the server while clients append over HTTP.
//! - [`canary`]: seeded defects, each of which one of the above must catch.
//!
//! Nothing here is part of the product, and the product has no switch for it.

#![allow(missing_docs, reason = "a tool, whose library has no other users")]

pub mod canary;
pub mod check;
pub mod command;
pub mod crowd;
pub mod defects;
pub mod disk;
pub mod faults;
pub mod journal;
pub mod kill;
pub mod marks;
mod parallel;
pub mod plan;
pub mod power;
pub mod programs;
mod recorded;
pub mod report;
pub mod request;
pub mod seeded;
pub mod seeded_rng;
pub mod server;
pub mod shim;
pub mod state;
mod turn_requests;
mod unsound;
pub mod workload;

/// Why the rig itself could not continue; a problem of the store is a [`report::Violation`].
pub type RigError = Box<dyn std::error::Error + Send + Sync>;

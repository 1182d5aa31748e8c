//! Crash tests: simulates power loss, I/O faults and kills, and checks that no acknowledged write
//! is lost.
//!
//! The program under test is the real one: a shim between it and the C library ([`shim`]) writes
//! down everything that it does to the store's files, and can make the n-th call fail. From the
//! journal ([`journal`]) the files are rebuilt as a disk could hold them after a power loss at
//! any moment ([`disk`]); each such image is opened and compared with what had been acknowledged
//! by then ([`check`]). What must be there is known exactly, since the work follows a plan that
//! can be run anywhere ([`plan`]).
//!
//! - [`power`]: images of a power loss, also during checkpoints, recovery and the work after it.
//! - [`faults`]: every n-th call fails, once or for ever.
//! - [`kill`]: kill −9 at any moment, over the workload and over the command itself.
//! - [`crowd`]: many processes and threads at once, with a linearizability check.
//! - [`server`]: kill −9 over the server, while clients append over HTTP.
//! - [`canary`]: seeded defects, each of which one of the above has to catch.
//!
//! Nothing here is part of the product, and no switch in the product is there for this.

mod about;
pub mod canary;
pub mod chance;
pub mod check;
pub mod command;
pub mod crowd;
pub mod defects;
pub mod disk;
pub mod faults;
pub mod journal;
pub mod kill;
mod lanes;
pub mod marks;
pub mod plan;
pub mod power;
pub mod programs;
mod recorded;
pub mod report;
pub mod request;
pub mod seeded;
pub mod server;
pub mod shim;
pub mod state;
mod unsound;
pub mod workload;

/// Why the rig itself could not go on; what it finds out about the store is a
/// [`report::Violation`] instead.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

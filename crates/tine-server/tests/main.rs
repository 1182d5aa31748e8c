//! The server from outside: a real one on a port of the loopback, over a store on disk, asked in
//! plain HTTP.

mod access;
mod assets;
mod branches;
mod changing;
mod description;
mod events;
mod exactness;
mod guide;
mod harness;
mod hostile;
mod idempotency;
mod knowing;
mod limits;
mod looking;
mod outline;
mod page;
mod pages;
mod reading;
mod refusals;
mod relayed;
mod relayed_commits;
mod reply;
mod sources;
mod stopping;
mod storing;
mod sync;
mod transfer;
mod versioning;

//! The rules of Tine, once, over any store.
//!
//! An [`Engine`] takes a request, does its work in one transaction of the store, and gives an
//! answer. Every change is recorded as one operation in its conversation's hash-chained log, by
//! which it can be undone. The engine is synchronous and deterministic: the store, the clock and
//! the random numbers come in from outside.
//!
//! There is no wire form here: no HTTP, no JSON-RPC, no terminal.
//!
//! ```standalone_crate
//! use tine_core::{Message, Role};
//! use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
//!
//! # let folder = std::env::temp_dir().join(format!("tine-engine-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # std::env::set_current_dir(&folder)?;
//! let engine = Engine::new(tine_sqlite::SqliteStore::open("conversations".as_ref())?);
//! let call = Call::by("my-agent");
//! let trip = engine.create_conversation(&call, NewConversation::named("trip")?)?.id;
//! engine.append(&call, Append::to(trip.clone(), vec![Message::text(Role::User, "Hello")]))?;
//! let path = engine.path(&call, PathQuery::of(trip))?;
//! # assert_eq!(path.turns.len(), 1);
//! # drop(engine);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commits;
mod engine;
mod error;
mod knowledge;
mod log;
mod maintenance;
mod operations;
mod ops;
mod outside;
mod search;
mod sync;
mod tree;

pub use commits::{BisectVerdict, NoFirst, bisect_range};
pub use engine::Engine;
pub use error::Error;
pub use knowledge::{Interpreters, RULES};
pub use maintenance::repair::{LeftOut, Repaired};
pub use outside::{Clock, Entropy, FixedEntropy, ManualClock, SystemClock, SystemEntropy};
pub use sync::graft::{Graft, GraftLine, GraftTurn, Grafted};
pub use sync::{BundleRecord, Delta, DeltaScope, Peer, carry, pull};
pub use tine_api::*;

/// What every operation answers.
pub type Result<T> = std::result::Result<T, Error>;

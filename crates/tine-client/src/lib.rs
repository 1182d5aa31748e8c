//! A client of a Tine server.
//!
//! A [`Client`] implements the operations of [`tine_api`] by HTTP requests, so a caller that works
//! over `dyn Operations` need not know whether the engine runs in its own process.
//!
//! Invariants:
//!
//! - An error has the same kind, message and details as from an engine in this process.
//! - A call is retried only where that is safe: if it is read-only, or has an idempotency key.
//! - Free-form JSON is passed on as bytes and read by the strict reader; no digit is lost.
//! - Every connection, answer and pause has a timeout.
//!
//! Deliberately absent: rules of the tree, and a second set of wire types.
//!
//! ```no_run
//! use tine_client::Client;
//! use tine_api::{Call, Operations, PathQuery};
//! use tine_core::{ConversationId, Limits};
//!
//! let client = Client::new("http://127.0.0.1:8000")?;
//! let trip = ConversationId::new("trip", &Limits::default())?;
//! let path = client.path(&Call::by("my-agent"), PathQuery::of(trip))?;
//! println!("{} turns", path.turns.len());
//! # Ok::<(), tine_api::Error>(())
//! ```

mod exchange;
mod follow;
mod knowledge;
mod operations;
mod pages;
mod sync;
mod transfer;
mod url_path;
mod versions;

use tine_api::{Error, Result};
use tine_core::{ErrorKind, Limits};

pub use follow::Follower;
pub use transfer::BundleStream;

use crate::exchange::Exchange;

/// A client of a Tine server.
pub struct Client {
    exchange: Exchange,
    limits: Limits,
}

impl Client {
    /// Creates a client of the server at an address such as `http://127.0.0.1:8000`.
    pub fn new(address: &str) -> Result<Self> {
        Ok(Client { exchange: Exchange::with(address)?, limits: Limits::default() })
    }

    /// Sets the token to send with every request.
    pub fn with_token(self, token: &str) -> Result<Self> {
        Ok(Client { exchange: self.exchange.with_token(token)?, ..self })
    }

    /// Sets the limits. Pages may be larger than those of the server, from which they are assembled.
    pub fn with_limits(self, limits: Limits) -> Self {
        Client { limits, ..self }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &str {
        self.exchange.address()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// Returns an error of the client itself.
fn refusal(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message)
}

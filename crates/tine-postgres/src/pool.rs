//! The connection pool: each connection is leased to one call at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::PostgresAddress;
use crate::connection::PgConnection;
use crate::failure::{DatabaseFailure, DatabaseResult};

/// How long a call waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// The connections of a store.
pub(crate) struct Pool {
    address: PostgresAddress,
    max_connections: usize,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<PgConnection>,
    leased: usize,
    /// Incremented when the database becomes unreachable: older connections are not reused.
    generation: u64,
}

impl Pool {
    pub(crate) fn new(address: PostgresAddress, max_connections: usize) -> Self {
        Pool { address, max_connections, state: Mutex::default(), returned: Condvar::new() }
    }

    pub(crate) fn with_connection(self, connection: PgConnection) -> Self {
        self.lock().idle.push(connection);
        self
    }

    pub(crate) fn address(&self) -> &PostgresAddress {
        &self.address
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases a connection, opening one if none is idle.
    pub(crate) fn acquire(&self) -> DatabaseResult<Lease<'_>> {
        let began = Instant::now();
        let mut state = self.lock();
        while state.idle.is_empty() && state.leased >= self.max_connections {
            let Some(left) = ACQUIRE_TIMEOUT.checked_sub(began.elapsed()) else {
                return Err(DatabaseFailure::Unreachable("every connection is in use".to_owned()));
            };
            state = match self.returned.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.leased += 1;
        let (idle, generation) = (state.idle.pop(), state.generation);
        drop(state);
        // From here on, dropping the lease frees its slot.
        let mut lease =
            Lease { pool: self, was_idle: idle.is_some(), connection: idle, generation };
        if lease.connection.is_none() {
            lease.connection = Some(PgConnection::connect(&self.address)?);
        }
        Ok(lease)
    }

    /// Runs a single statement. An idle connection may have been closed meanwhile: then the
    /// statement is repeated over a new one.
    pub(crate) fn run<T>(
        &self,
        work: impl Fn(&mut PgConnection) -> DatabaseResult<T>,
    ) -> DatabaseResult<T> {
        loop {
            let mut lease = self.acquire()?;
            match work(&mut lease) {
                Err(DatabaseFailure::Unreachable(why)) => {
                    let retry = lease.was_idle;
                    drop(lease);
                    self.invalidate();
                    if !retry {
                        return Err(DatabaseFailure::Unreachable(why));
                    }
                }
                done => {
                    lease.release();
                    return done;
                }
            }
        }
    }

    /// Discards all connections after the database became unreachable.
    pub(crate) fn invalidate(&self) {
        let discarded = {
            let mut state = self.lock();
            state.generation += 1;
            std::mem::take(&mut state.idle)
        };
        drop(discarded);
    }

    /// Closes every idle connection.
    pub(crate) fn clear(&self) {
        let discarded = std::mem::take(&mut self.lock().idle);
        drop(discarded);
    }
}

/// A connection leased to one call. Dropping it closes the connection, and the server rolls back
/// what was not committed; only [`Lease::release`] returns it to the pool.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    connection: Option<PgConnection>,
    /// Whether the connection was idle in the pool before.
    was_idle: bool,
    generation: u64,
}

impl Lease<'_> {
    /// Returns the connection to the pool; it must not be in a transaction.
    pub(crate) fn release(mut self) {
        let mut state = self.pool.lock();
        if state.generation == self.generation
            && let Some(connection) = self.connection.take()
        {
            state.idle.push(connection);
        }
    }
}

impl Deref for Lease<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("a lease holds its connection until it is dropped")
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("a lease holds its connection until it is dropped")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        drop(self.connection.take());
        self.pool.lock().leased -= 1;
        self.pool.returned.notify_one();
    }
}

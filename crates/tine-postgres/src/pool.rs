//! Connections that are open, each lent to one call at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::failure::Failure;
use crate::link::Link;

/// How long a call waits for a connection that others hold.
const WAIT: Duration = Duration::from_secs(10);

/// Connections of one store.
pub(crate) struct Pool {
    address: Address,
    /// Connections at most.
    most: usize,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Link>,
    lent: usize,
    /// Counts the times that the database went away: connections from before are not used again.
    losses: u64,
}

impl Pool {
    pub(crate) fn new(address: Address, most: usize) -> Self {
        Pool { address, most, state: Mutex::default(), returned: Condvar::new() }
    }

    /// With a connection that is open already.
    pub(crate) fn holding(self, link: Link) -> Self {
        self.lock().idle.push(link);
        self
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a connection, opening one if none is idle.
    pub(crate) fn lend(&self) -> Result<Lease<'_>, Failure> {
        let began = Instant::now();
        let mut state = self.lock();
        while state.idle.is_empty() && state.lent >= self.most {
            let Some(left) = WAIT.checked_sub(began.elapsed()) else {
                return Err(Failure::Away("every connection is in use".to_owned()));
            };
            state = match self.returned.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.lent += 1;
        let (idle, losses) = (state.idle.pop(), state.losses);
        drop(state);
        // From here on the place is given back, whatever happens.
        let mut lease = Lease { pool: self, was_open: idle.is_some(), link: idle, losses };
        if lease.link.is_none() {
            lease.link = Some(Link::connect(&self.address)?);
        }
        Ok(lease)
    }

    /// Does something that is a statement of its own. A connection that was open before may have
    /// been closed meanwhile: then it is done once more, over a new one.
    pub(crate) fn run<T>(
        &self,
        work: impl Fn(&mut Link) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let mut lease = self.lend()?;
            match work(&mut lease) {
                Err(Failure::Away(why)) => {
                    let again = lease.was_open;
                    drop(lease);
                    self.note_loss();
                    if !again {
                        return Err(Failure::Away(why));
                    }
                }
                done => {
                    lease.keep();
                    return done;
                }
            }
        }
    }

    /// The database went away: what is open is of no use.
    pub(crate) fn note_loss(&self) {
        let gone = {
            let mut state = self.lock();
            state.losses += 1;
            std::mem::take(&mut state.idle)
        };
        drop(gone);
    }

    /// Closes every idle connection.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut self.lock().idle);
        drop(gone);
    }
}

/// A connection for one call. Dropped, it is closed, and the server takes back what was not
/// committed; only [`Lease::keep`] gives it to others.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    link: Option<Link>,
    /// Whether it was not opened for this call.
    was_open: bool,
    losses: u64,
}

impl Lease<'_> {
    /// Gives back a connection that is in no transaction.
    pub(crate) fn keep(mut self) {
        let mut state = self.pool.lock();
        if state.losses == self.losses
            && let Some(link) = self.link.take()
        {
            state.idle.push(link);
        }
    }
}

impl Deref for Lease<'_> {
    type Target = Link;

    fn deref(&self) -> &Link {
        self.link.as_ref().expect("a lease holds its link until it ends")
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut Link {
        self.link.as_mut().expect("a lease holds its link until it ends")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        drop(self.link.take());
        self.pool.lock().lent -= 1;
        self.pool.returned.notify_one();
    }
}

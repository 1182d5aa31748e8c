//! The engine itself: what it holds and how it runs a transaction.

use std::sync::{Arc, Mutex, PoisonError};

use tine_analysis::Interpreter;
use tine_core::{Digest, IdSource, Limits, Timestamp};
use tine_store::{Read, Store, Verdict, Write};

use crate::knowledge::Interpreters;
use crate::outside::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::tree::topology::TreeOrderCache;
use crate::{Error, Result};

/// The rules of Tine over one store. Cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    ids: Mutex<IdSource>,
    tree_orders: TreeOrderCache,
    limits: Limits,
    interpreters: Interpreters,
    /// Who this is among all that do runs on one store.
    worker: String,
}

impl Engine {
    /// Creates an engine with the system's clock and randomness and the default limits.
    pub fn new(store: impl Store + 'static) -> Self {
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        Engine::with(Arc::new(store), clock, entropy, Limits::default())
    }

    /// Creates an engine with a given store, clock, randomness and limits.
    pub fn with(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        limits: Limits,
    ) -> Self {
        let (ids, tree_orders) = (Mutex::default(), TreeOrderCache::default());
        let interpreters = Interpreters::rules();
        // Two engines with one seed are two workers all the same.
        let worker = Digest::of(&SystemEntropy.ten_bytes()).to_hex()[..16].to_owned();
        let inner = Inner { store, clock, entropy, ids, tree_orders, limits, interpreters, worker };
        Engine { inner: Arc::new(inner) }
    }

    /// Returns the same engine with these interpreters.
    pub fn with_interpreters(self, interpreters: Interpreters) -> Self {
        let Inner { store, clock, entropy, limits, worker, .. } = &*self.inner;
        let inner = Inner {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            entropy: Arc::clone(entropy),
            ids: Mutex::default(),
            tree_orders: TreeOrderCache::default(),
            limits: *limits,
            interpreters,
            worker: worker.clone(),
        };
        Engine { inner: Arc::new(inner) }
    }

    /// Returns the available interpreters.
    pub fn interpreters(&self) -> &Interpreters {
        &self.inner.interpreters
    }

    pub(crate) fn interpreter(&self, name: Option<&str>) -> Result<Arc<dyn Interpreter>> {
        self.inner.interpreters.get(name).cloned()
    }

    pub(crate) fn worker(&self) -> String {
        self.inner.worker.clone()
    }

    /// Returns the store underneath.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Returns the limits in force.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn tree_orders(&self) -> &TreeOrderCache {
        &self.inner.tree_orders
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    pub(crate) fn new_id(&self, now: Timestamp) -> [u8; 16] {
        self.ids().next(now, self.inner.entropy.ten_bytes()).into_bytes()
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, IdSource> {
        self.inner.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a closure over one consistent state of the store.
    pub(crate) fn read<T>(&self, body: impl Fn(&dyn Read) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.inner.store.read(&mut |records| {
            answer = Some(body(records));
            Ok(())
        })?;
        answer.unwrap_or_else(|| Err(never_ran()))
    }

    /// Runs a closure in a transaction; rolls back on error.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        body: impl Fn(&mut dyn Write) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_if(true, body)
    }

    /// Like `write`, but rolls back unless `keep` is set.
    pub(crate) fn write_if<T: Send + 'static>(
        &self,
        keep: bool,
        body: impl Fn(&mut dyn Write) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = Arc::new(Mutex::new(None));
        let place = Arc::clone(&answer);
        self.inner.store.write(Box::new(move |records| {
            let done = body(records);
            let verdict = if keep && done.is_ok() { Verdict::Commit } else { Verdict::Rollback };
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            Ok(verdict)
        }))?;
        let done = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.unwrap_or_else(|| Err(never_ran()))
    }
}

fn never_ran() -> Error {
    let why = "the store said that a transaction ran, and it did not".to_owned();
    Error::Store(tine_store::StoreError::Contract(why))
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("limits", self.limits()).finish_non_exhaustive()
    }
}

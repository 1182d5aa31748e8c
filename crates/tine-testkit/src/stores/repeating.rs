//! A store that runs every write closure twice: first for nothing, then for good.
//!
//! The contract allows it (a lost race, a batch that has to be repeated), so a closure must have
//! no effect besides the transaction.

use std::sync::{Arc, Mutex, PoisonError};

use tine_store::{Job, Read, Result, Store, Verdict, Write};

/// A store that repeats.
pub struct RepeatingStore(Arc<dyn Store>);

impl RepeatingStore {
    /// Repeats whatever is written to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        RepeatingStore(inner)
    }
}

impl Store for RepeatingStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, job: Job) -> Result<()> {
        let job = Arc::new(Mutex::new(job));
        let again = Arc::clone(&job);
        let run = |job: &Mutex<Job>, records: &mut dyn Write| {
            (job.lock().unwrap_or_else(PoisonError::into_inner))(records)
        };
        self.0.write(Box::new(move |records| {
            run(&job, records)?;
            Ok(Verdict::Rollback)
        }))?;
        self.0.write(Box::new(move |records| run(&again, records)))
    }

    tine_store::forward_store!(0);
}

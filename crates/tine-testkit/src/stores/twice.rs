//! A store that runs every write closure twice: first for nothing, then for good.
//!
//! The contract allows it (a lost race, a batch that has to be repeated), so a closure must have
//! no effect besides the transaction.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tine_store::{
    Check, FeedPosition, Index, IndexState, Job, PackOptions, Packed, Ranked, Read, Result,
    SearchFilter, Store, TextQuery, TurnLoc, Verdict, Write,
};

/// A store that repeats.
pub struct Twice(Arc<dyn Store>);

impl Twice {
    /// Repeats whatever is written to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Twice(inner)
    }
}

impl Store for Twice {
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

    fn check(&self) -> Result<Check> {
        self.0.check()
    }

    fn pack(&self, options: PackOptions) -> Result<Packed> {
        self.0.pack(options)
    }

    fn scrub(&self) -> Result<()> {
        self.0.scrub()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.0.backup(to)
    }

    fn index_state(&self) -> Result<IndexState> {
        self.0.index_state()
    }

    fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        self.0.index(body)
    }

    fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        self.0.unindex(turns)
    }

    fn search(
        &self,
        query: &TextQuery,
        filter: &SearchFilter,
        through: FeedPosition,
    ) -> Result<Option<Ranked>> {
        self.0.search(query, filter, through)
    }
}

//! A store that packs everything after every write, so that every read goes through chunks.

use std::path::Path;
use std::sync::Arc;

use tine_store::{
    Check, FeedPosition, Index, IndexState, Job, PackOptions, Packed, Ranked, Read, Result,
    SearchFilter, Store, TextQuery, TurnLoc,
};

/// A store that always packs.
pub struct AlwaysPacking(Arc<dyn Store>);

impl AlwaysPacking {
    /// Packs whatever is written to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        AlwaysPacking(inner)
    }
}

impl Store for AlwaysPacking {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, job: Job) -> Result<()> {
        self.0.write(job)?;
        self.0.pack(PackOptions::EVERYTHING).map(|_| ())
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

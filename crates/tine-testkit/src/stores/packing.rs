//! A store that packs everything after every write, so that every read goes through chunks.

use std::sync::Arc;

use tine_store::{Job, PackOptions, Read, Result, Store};

/// A store that always packs.
pub struct PackingStore(Arc<dyn Store>);

impl PackingStore {
    /// Packs whatever is written to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        PackingStore(inner)
    }
}

impl Store for PackingStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, job: Job) -> Result<()> {
        self.0.write(job)?;
        self.0.pack(PackOptions::EVERYTHING).map(|_| ())
    }

    tine_store::forward_store!(0);
}

//! Projects and their numbers, which never change once they are there.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tine_core::ProjectId;

#[derive(Default)]
pub(crate) struct Projects {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    numbers: HashMap<ProjectId, i32>,
    ids: HashMap<i32, ProjectId>,
}

impl Projects {
    pub(crate) fn number(&self, id: &ProjectId) -> Option<i32> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.numbers.get(id).copied()
    }

    pub(crate) fn id(&self, number: i32) -> Option<ProjectId> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.ids.get(&number).cloned()
    }

    /// Remembers a project that is committed.
    pub(crate) fn learn(&self, id: &ProjectId, number: i32) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.numbers.insert(id.clone(), number);
        known.ids.insert(number, id.clone());
    }
}

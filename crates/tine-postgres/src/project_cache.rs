//! A cache of the projects' numbers, which never change.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tine_core::ProjectId;

#[derive(Default)]
pub(crate) struct ProjectCache {
    maps: RwLock<ProjectMaps>,
}

#[derive(Default)]
struct ProjectMaps {
    numbers: HashMap<ProjectId, i32>,
    ids: HashMap<i32, ProjectId>,
}

impl ProjectCache {
    pub(crate) fn number(&self, id: &ProjectId) -> Option<i32> {
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        maps.numbers.get(id).copied()
    }

    pub(crate) fn id(&self, number: i32) -> Option<ProjectId> {
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        maps.ids.get(&number).cloned()
    }

    /// Adds a project that is committed.
    pub(crate) fn insert(&self, id: &ProjectId, number: i32) {
        let mut maps = self.maps.write().unwrap_or_else(PoisonError::into_inner);
        maps.numbers.insert(id.clone(), number);
        maps.ids.insert(number, id.clone());
    }
}

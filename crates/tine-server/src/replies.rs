//! Answers that models are giving: how many at once, whose they are, and how they are ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tine_core::{ErrorKind, ProjectId, TurnId};

use crate::problem::Problem;

/// An answer that is being given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct InWork {
    /// The turn that it becomes.
    pub(crate) turn_id: String,
    /// Its conversation.
    pub(crate) conversation_id: String,
    /// The turn that it answers.
    pub(crate) question_id: String,
    /// The branch that it is for; `null` for none.
    pub(crate) branch_id: Option<String>,
    /// Who answers.
    pub(crate) model: String,
    /// Who asked.
    pub(crate) actor: String,
}

/// Answers that are being given.
pub(crate) struct Replies {
    most: usize,
    running: Mutex<HashMap<TurnId, Running>>,
}

struct Running {
    project: ProjectId,
    about: InWork,
    stop: Arc<AtomicBool>,
}

/// The right to give an answer, until it is dropped.
pub(crate) struct Place {
    replies: Arc<Replies>,
    pub(crate) turn: TurnId,
    stop: Arc<AtomicBool>,
}

impl Place {
    /// Whether somebody wants it to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.replies.lock().remove(&self.turn);
    }
}

impl Replies {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Replies { most, running: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more.
    pub(crate) fn take(
        self: &Arc<Self>,
        project: &ProjectId,
        turn: TurnId,
        about: InWork,
    ) -> Result<Place, Problem> {
        let mut running = self.lock();
        if running.len() >= self.most {
            let why = "too many answers are being given at once; what was said is recorded, ask \
                       for an answer later";
            return Err(Problem::new(ErrorKind::Busy, why));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let project = project.clone();
        running.insert(turn, Running { project, about, stop: Arc::clone(&stop) });
        Ok(Place { replies: Arc::clone(self), turn, stop })
    }

    /// Those of a project, oldest first.
    pub(crate) fn of(&self, project: &ProjectId) -> Vec<InWork> {
        let running = self.lock();
        let mut found: Vec<_> =
            running.iter().filter(|(_, running)| running.project == *project).collect();
        found.sort_unstable_by_key(|(turn, _)| **turn);
        found.into_iter().map(|(_, running)| running.about.clone()).collect()
    }

    /// Tells one of a project to end.
    pub(crate) fn stop(&self, project: &ProjectId, turn: TurnId) -> Option<InWork> {
        let running = self.lock();
        let found = running.get(&turn).filter(|running| running.project == *project)?;
        found.stop.store(true, Ordering::Release);
        Some(found.about.clone())
    }
}

//! Replies of models in progress: how many at once, of which project, and how they are stopped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tine_core::{ErrorKind, ProjectId, TurnId};

use crate::problem::Problem;

/// A reply in progress.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "InWork")]
pub(crate) struct RunningReply {
    /// The id of the turn that the reply becomes.
    pub(crate) turn_id: String,
    /// The conversation.
    pub(crate) conversation_id: String,
    /// The id of the turn that it replies to.
    pub(crate) question_id: String,
    /// The branch to append it to; `null` for none.
    pub(crate) branch_id: Option<String>,
    /// The model.
    pub(crate) model: String,
    /// The caller who requested it.
    pub(crate) actor: String,
}

/// All replies in progress.
pub(crate) struct RunningReplies {
    limit: usize,
    running: Mutex<HashMap<TurnId, Running>>,
}

struct Running {
    project: ProjectId,
    about: RunningReply,
    stop: Arc<AtomicBool>,
}

/// One of the replies in progress, until it is dropped.
pub(crate) struct ReplySlot {
    replies: Arc<RunningReplies>,
    pub(crate) turn: TurnId,
    stop: Arc<AtomicBool>,
}

impl ReplySlot {
    /// Returns whether a client has stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        self.replies.lock().remove(&self.turn);
    }
}

impl RunningReplies {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(RunningReplies { limit, running: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reply, unless there are too many.
    pub(crate) fn start(
        self: &Arc<Self>,
        project: &ProjectId,
        turn: TurnId,
        about: RunningReply,
    ) -> Result<ReplySlot, Problem> {
        let mut running = self.lock();
        if running.len() >= self.limit {
            let why = "too many replies at once; the message is recorded, request a reply later";
            return Err(Problem::new(ErrorKind::Busy, why));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let project = project.clone();
        running.insert(turn, Running { project, about, stop: Arc::clone(&stop) });
        Ok(ReplySlot { replies: Arc::clone(self), turn, stop })
    }

    /// Returns those of a project, oldest first.
    pub(crate) fn of(&self, project: &ProjectId) -> Vec<RunningReply> {
        let running = self.lock();
        let mut found: Vec<_> =
            running.iter().filter(|(_, running)| running.project == *project).collect();
        found.sort_unstable_by_key(|(turn, _)| **turn);
        found.into_iter().map(|(_, running)| running.about.clone()).collect()
    }

    /// Stops a reply of a project.
    pub(crate) fn stop(&self, project: &ProjectId, turn: TurnId) -> Option<RunningReply> {
        let running = self.lock();
        let found = running.get(&turn).filter(|running| running.project == *project)?;
        found.stop.store(true, Ordering::Release);
        Some(found.about.clone())
    }
}

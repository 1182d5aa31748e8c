//! The sessions that are open in this process, and the prompts that run in them.
//!
//! A session is a branch and lives in the store. Only two things belong to the process: the working
//! directory that a client opened the session with, and the one prompt that may run in it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tine_core::BranchId;

use crate::lock;

/// The sessions that are open in this process.
#[derive(Default)]
pub(crate) struct OpenSessions {
    open: Mutex<HashMap<BranchId, OpenSession>>,
    /// Notified whenever a prompt ends.
    ended: Condvar,
}

struct OpenSession {
    cwd: String,
    running: Option<CancelFlag>,
}

/// Whether a prompt was cancelled.
#[derive(Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Why a session cannot be claimed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClaimError {
    Closed,
    Running,
}

/// The right to run a prompt in a session, released when dropped.
pub(crate) struct PromptClaim {
    sessions: Arc<OpenSessions>,
    pub(crate) id: BranchId,
    pub(crate) cwd: String,
    pub(crate) cancel: CancelFlag,
}

impl Drop for PromptClaim {
    fn drop(&mut self) {
        if let Some(open) = self.sessions.lock().get_mut(&self.id) {
            open.running = None;
        }
        self.sessions.ended.notify_all();
    }
}

impl OpenSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<BranchId, OpenSession>> {
        lock(&self.open)
    }

    /// Opens a session, or changes its working directory. A running prompt continues.
    pub(crate) fn open(&self, id: BranchId, cwd: &str) {
        let mut sessions = self.lock();
        let open = sessions.entry(id).or_insert(OpenSession { cwd: String::new(), running: None });
        cwd.clone_into(&mut open.cwd);
    }

    /// Claims a session for one prompt.
    pub(crate) fn claim(self: &Arc<Self>, id: BranchId) -> Result<PromptClaim, ClaimError> {
        let mut sessions = self.lock();
        let open = sessions.get_mut(&id).ok_or(ClaimError::Closed)?;
        if open.running.is_some() {
            return Err(ClaimError::Running);
        }
        let cancel = open.running.insert(CancelFlag::default()).clone();
        Ok(PromptClaim { sessions: Arc::clone(self), id, cwd: open.cwd.clone(), cancel })
    }

    /// Cancels the prompt that runs in a session.
    pub(crate) fn stop(&self, id: BranchId) {
        if let Some(OpenSession { running: Some(stop), .. }) = self.lock().get(&id) {
            stop.set();
        }
    }

    /// Cancels all running prompts.
    pub(crate) fn stop_all(&self) {
        for running in self.lock().values().filter_map(|open| open.running.as_ref()) {
            running.set();
        }
    }

    /// Cancels the running prompt, waits for it to end, and closes the session. Returns whether the
    /// session was open.
    pub(crate) fn close(&self, id: BranchId) -> bool {
        let mut sessions = self.lock();
        let was_open = sessions.contains_key(&id);
        while let Some(OpenSession { running: Some(stop), .. }) = sessions.get(&id) {
            stop.set();
            sessions = self.ended.wait(sessions).unwrap_or_else(PoisonError::into_inner);
        }
        sessions.remove(&id);
        was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> (Arc<OpenSessions>, BranchId) {
        let sessions = Arc::new(OpenSessions::default());
        let id = BranchId::from_bytes([7; 16]);
        sessions.open(id, "/work");
        (sessions, id)
    }

    #[test]
    fn one_prompt_runs_in_a_session_at_a_time() {
        let (sessions, id) = session();
        let claim = sessions.claim(id).expect("nothing runs");
        assert_eq!(sessions.claim(id).err(), Some(ClaimError::Running));
        drop(claim);
        assert!(sessions.claim(id).is_ok());
        let other = BranchId::from_bytes([8; 16]);
        assert_eq!(sessions.claim(other).err(), Some(ClaimError::Closed));
    }

    #[test]
    fn cancelling_affects_the_running_prompt_and_no_later_one() {
        let (sessions, id) = session();
        sessions.stop(id);
        let claim = sessions.claim(id).expect("nothing runs");
        assert!(!claim.cancel.is_set());
        sessions.stop(id);
        assert!(claim.cancel.is_set());
    }

    #[test]
    fn closing_cancels_the_running_prompt_and_waits_for_it() {
        let (sessions, id) = session();
        let claim = sessions.claim(id).expect("nothing runs");
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| sessions.close(id));
            while !claim.cancel.is_set() {
                std::thread::yield_now();
            }
            assert!(!closing.is_finished());
            drop(claim);
            assert!(closing.join().expect("no panic"));
        });
        assert_eq!(sessions.claim(id).err(), Some(ClaimError::Closed));
        assert!(!sessions.close(id));
    }
}

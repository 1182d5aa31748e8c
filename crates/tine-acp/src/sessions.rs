//! Which sessions are open here, and what runs in them.
//!
//! A session is a branch, and lives in the store; only this is of the process: the folder that a
//! client opened it for, and the one prompt that may run in it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tine_core::BranchId;

/// The sessions that are open here.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<BranchId, Open>>,
    /// Told whenever a prompt has ended.
    ended: Condvar,
}

struct Open {
    cwd: String,
    running: Option<Stop>,
}

/// Whether a prompt was asked to end.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn wanted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn want(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Why nothing can be asked in a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unclaimed {
    /// It is not open here.
    Closed,
    /// A prompt runs in it.
    Running,
}

/// The right to ask in a session, until it is dropped.
pub(crate) struct Claim {
    sessions: Arc<Sessions>,
    pub(crate) id: BranchId,
    pub(crate) cwd: String,
    pub(crate) stop: Stop,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(open) = self.sessions.lock().get_mut(&self.id) {
            open.running = None;
        }
        self.sessions.ended.notify_all();
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<BranchId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session for a folder, or moves it there; what runs in it goes on.
    pub(crate) fn open(&self, id: BranchId, cwd: &str) {
        let mut sessions = self.lock();
        let open = sessions.entry(id).or_insert(Open { cwd: String::new(), running: None });
        cwd.clone_into(&mut open.cwd);
    }

    /// Claims a session for one prompt.
    pub(crate) fn claim(self: &Arc<Self>, id: BranchId) -> Result<Claim, Unclaimed> {
        let mut sessions = self.lock();
        let open = sessions.get_mut(&id).ok_or(Unclaimed::Closed)?;
        if open.running.is_some() {
            return Err(Unclaimed::Running);
        }
        let stop = open.running.insert(Stop::default()).clone();
        Ok(Claim { sessions: Arc::clone(self), id, cwd: open.cwd.clone(), stop })
    }

    /// Asks what runs in a session to end.
    pub(crate) fn stop(&self, id: BranchId) {
        if let Some(Open { running: Some(stop), .. }) = self.lock().get(&id) {
            stop.want();
        }
    }

    /// Asks everything that runs to end.
    pub(crate) fn stop_all(&self) {
        for running in self.lock().values().filter_map(|open| open.running.as_ref()) {
            running.want();
        }
    }

    /// Closes a session once what ran in it has ended; answers whether it was open.
    pub(crate) fn close(&self, id: BranchId) -> bool {
        let mut sessions = self.lock();
        let was_open = sessions.contains_key(&id);
        while let Some(Open { running: Some(stop), .. }) = sessions.get(&id) {
            stop.want();
            sessions = self.ended.wait(sessions).unwrap_or_else(PoisonError::into_inner);
        }
        sessions.remove(&id);
        was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> (Arc<Sessions>, BranchId) {
        let sessions = Arc::new(Sessions::default());
        let id = BranchId::from_bytes([7; 16]);
        sessions.open(id, "/work");
        (sessions, id)
    }

    #[test]
    fn one_prompt_runs_in_a_session_at_a_time() {
        let (sessions, id) = session();
        let claim = sessions.claim(id).expect("nothing runs");
        assert_eq!(sessions.claim(id).err(), Some(Unclaimed::Running));
        drop(claim);
        assert!(sessions.claim(id).is_ok());
        let other = BranchId::from_bytes([8; 16]);
        assert_eq!(sessions.claim(other).err(), Some(Unclaimed::Closed));
    }

    #[test]
    fn a_stop_reaches_the_prompt_that_runs_and_no_later_one() {
        let (sessions, id) = session();
        sessions.stop(id);
        let claim = sessions.claim(id).expect("nothing runs");
        assert!(!claim.stop.wanted());
        sessions.stop(id);
        assert!(claim.stop.wanted());
    }

    #[test]
    fn closing_stops_what_runs_and_waits_for_its_end() {
        let (sessions, id) = session();
        let claim = sessions.claim(id).expect("nothing runs");
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| sessions.close(id));
            while !claim.stop.wanted() {
                std::thread::yield_now();
            }
            assert!(!closing.is_finished());
            drop(claim);
            assert!(closing.join().expect("no panic"));
        });
        assert_eq!(sessions.claim(id).err(), Some(Unclaimed::Closed));
        assert!(!sessions.close(id));
    }
}

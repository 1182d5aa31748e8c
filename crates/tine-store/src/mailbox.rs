//! A mailbox on which a thread waits for another, for stores with group commit.
//!
//! The stores share only this, because their group commits differ: in the embedded store, the leader
//! *runs* the queued jobs one by one in one transaction on its only connection; the PostgreSQL store
//! has several batches of finished rows in flight for each project, and a caller that has waited too
//! long sends its append itself.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Holds at most one message; a later one replaces it.
#[derive(Debug)]
pub struct Mailbox<T> {
    message: Mutex<Option<T>>,
    arrived: Condvar,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Mailbox { message: Mutex::new(None), arrived: Condvar::new() }
    }
}

impl<T> Mailbox<T> {
    /// Puts a message in and wakes the thread that waits for it.
    pub fn put(&self, message: T) {
        *self.lock() = Some(message);
        self.arrived.notify_one();
    }

    /// Waits for a message and takes it out.
    pub fn wait(&self) -> T {
        let mut message = self.lock();
        loop {
            if let Some(message) = message.take() {
                return message;
            }
            message = self.arrived.wait(message).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a message; `None` after the timeout.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<T> {
        let waited =
            self.arrived.wait_timeout_while(self.lock(), timeout, |message| message.is_none());
        let (mut message, _) = waited.unwrap_or_else(PoisonError::into_inner);
        message.take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        // Storing a message cannot panic halfway, so a poisoned lock holds a valid value.
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::Mailbox;

    #[test]
    fn a_message_wakes_its_reader_once_and_a_later_one_replaces_it() {
        let mailbox = Arc::new(Mailbox::default());
        assert_eq!(mailbox.wait_timeout(Duration::from_millis(1)), None);
        mailbox.put(1);
        mailbox.put(2);
        assert_eq!(mailbox.wait(), 2);
        assert_eq!(mailbox.wait_timeout(Duration::ZERO), None);
        let reader = std::thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || (mailbox.wait(), mailbox.wait_timeout(Duration::MAX))
        });
        mailbox.put(3);
        while mailbox.lock().is_some() {
            std::thread::yield_now();
        }
        mailbox.put(4);
        assert_eq!(reader.join().unwrap(), (3, Some(4)));
    }
}

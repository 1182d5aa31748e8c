//! Where one thread waits for what another has to say, for stores that commit in groups.
//!
//! The stores share this and nothing more, because their groups differ in kind: the embedded store
//! has one connection, whose holder *runs* the jobs of the others one by one in one transaction and
//! passes the connection on; the PostgreSQL store has several batches of finished rows under way
//! at once for each project, whose members leave by themselves when they have waited too long.

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

    /// Waits for a message, at most this long; `None` if there was none by then.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<T> {
        let waited =
            self.arrived.wait_timeout_while(self.lock(), timeout, |message| message.is_none());
        let (mut message, _) = waited.unwrap_or_else(PoisonError::into_inner);
        message.take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        // A message is stored whole: a thread that panicked has left no half of one.
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::Mailbox;

    #[test]
    fn a_message_wakes_its_reader_once_and_the_last_one_counts() {
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

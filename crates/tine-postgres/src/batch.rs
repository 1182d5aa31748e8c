//! Group commit over the network: appends that are sent in one batch.
//!
//! A call of the database and its commit cost the same for one append as for many, and appends to
//! different conversations are independent. So a caller that sends its append includes all waiting
//! ones: one call, one commit. Callers that were just answered soon send more, so the next batch
//! waits for them, at most as long as the last one took; the last to arrive leads. A single writer
//! does not wait and does not switch threads.
//!
//! All appends of a batch belong to one project, since a transaction touches one partition. A batch
//! is stored completely or not at all: if the database refuses it, every append is sent alone, and
//! only those whose numbers are taken are refused. A lost connection leaves all of them in doubt.
//!
//! The embedded store's `writer` has a leader too, and is separate: it runs the jobs of others on
//! one connection, while this sends finished rows over many, several batches at a time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tine_store::Mailbox;

use crate::append_command;
use crate::conversation_cache::{self, PendingAppend};
use crate::failure::DatabaseFailure;
use crate::pool::{Lease, Pool};
use crate::{WRITE_DEADLINE, lock};

/// The maximum number of appends in a batch.
const BATCH_APPENDS: usize = 128;

/// The maximum number of turns in a batch, unless a single append has more.
const BATCH_TURNS: usize = 1_024;

/// The maximum size of bodies in a batch, unless a single append has more.
const BATCH_BYTES: usize = 4 << 20;

/// The number of batches of one project in flight: while one is stored, the next is built.
const MAX_IN_FLIGHT: usize = 2;

/// An append that has waited this long is sent in any case: the database is far away or slow, and
/// can take another batch.
const MAX_WAIT: Duration = Duration::from_millis(1);

/// The approximate number of projects with a queue.
const MAX_QUEUES: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendOutcome {
    Stored,
    /// Nothing was stored: its number or key is taken, or the database rejected it.
    Refused,
    /// There was no connection.
    NotSent,
    /// Whether it was stored is unknown.
    InDoubt,
}

/// Waiting appends and batches in flight, by project.
#[derive(Default)]
pub(crate) struct AppendQueues {
    queues: Mutex<HashMap<i32, AppendQueue>>,
}

#[derive(Default)]
struct AppendQueue {
    waiting: VecDeque<QueuedAppend>,
    in_flight: usize,
    last: Option<LastBatch>,
}

struct LastBatch {
    at: Instant,
    duration: Duration,
    /// Appends that waited then, plus those that were answered and will soon be followed by more.
    expected: usize,
}

impl AppendQueue {
    /// Returns whether the append that was just queued sends the batch.
    fn is_complete(&self) -> bool {
        self.in_flight < MAX_IN_FLIGHT
            && self.last.as_ref().is_none_or(|last| {
                self.waiting.len() >= last.expected || last.at.elapsed() > last.duration
            })
    }

    /// Returns how long an append waits for others.
    fn max_wait(&self) -> Duration {
        let wait = self.last.as_ref().map_or(MAX_WAIT, |last| last.duration + last.duration / 2);
        wait.min(MAX_WAIT)
    }
}

/// An append, and the mailbox on which its owner waits.
struct QueuedAppend {
    append: PendingAppend,
    mailbox: Arc<AppendMailbox>,
}

type AppendMailbox = Mailbox<AppendSignal>;

/// A message to the owner of an append.
enum AppendSignal {
    /// The batch was refused, perhaps because of another append in it.
    Retry(PendingAppend),
    Done(AppendOutcome, PendingAppend),
}

impl AppendQueues {
    /// Sends an append and returns its outcome.
    pub(crate) fn send(
        &self,
        pool: &Pool,
        project: i32,
        append: PendingAppend,
    ) -> (AppendOutcome, PendingAppend) {
        let mailbox = Arc::new(AppendMailbox::default());
        let (mut leads, mut max_wait) = {
            let mut queues = lock(&self.queues);
            if queues.len() >= MAX_QUEUES {
                queues.retain(|_, queue| queue.in_flight > 0 || !queue.waiting.is_empty());
            }
            let queue = queues.entry(project).or_default();
            queue.waiting.push_back(QueuedAppend { append, mailbox: Arc::clone(&mailbox) });
            (queue.is_complete(), queue.max_wait())
        };
        loop {
            if leads {
                // The connection comes first, so that no append is taken only to wait for it.
                match pool.acquire() {
                    Ok(lease) => self.lead(project, lease),
                    Err(_) => {
                        if let Some(append) = self.take_back(project, &mailbox) {
                            return (AppendOutcome::NotSent, append);
                        }
                    }
                }
            }
            leads = match mailbox.wait_timeout(max_wait) {
                Some(AppendSignal::Done(outcome, append)) => return (outcome, append),
                Some(AppendSignal::Retry(append)) => {
                    let outcome = match pool.acquire() {
                        Ok(lease) => send_all(lease, project, &[&append]),
                        Err(_) => AppendOutcome::NotSent,
                    };
                    return (outcome, append);
                }
                None if self.is_waiting(project, &mailbox) => true,
                None => {
                    // The leader of its batch will answer.
                    max_wait = Duration::MAX;
                    false
                }
            };
        }
    }

    /// Sends all waiting appends, if there are any.
    fn lead(&self, project: i32, lease: Lease<'_>) {
        match self.take_batch(project) {
            Some(mut batch) => {
                let appends: Vec<&PendingAppend> =
                    batch.queued.iter().map(|it| &it.append).collect();
                batch.outcome = send_all(lease, project, &appends);
            }
            None => lease.release(),
        }
    }

    fn is_waiting(&self, project: i32, mailbox: &Arc<AppendMailbox>) -> bool {
        let queues = lock(&self.queues);
        let mut waiting = queues.get(&project).into_iter().flat_map(|queue| &queue.waiting);
        waiting.any(|queued_append| Arc::ptr_eq(&queued_append.mailbox, mailbox))
    }

    /// Removes an append from its queue, unless it was sent.
    fn take_back(&self, project: i32, mailbox: &Arc<AppendMailbox>) -> Option<PendingAppend> {
        let mut queues = lock(&self.queues);
        let waiting = &mut queues.get_mut(&project)?.waiting;
        let at = waiting
            .iter()
            .position(|queued_append| Arc::ptr_eq(&queued_append.mailbox, mailbox))?;
        Some(waiting.remove(at)?.append)
    }

    /// Takes the waiting appends, up to the limits of a batch.
    fn take_batch(&self, project: i32) -> Option<InFlightBatch<'_>> {
        let mut queues = lock(&self.queues);
        let queue = queues.get_mut(&project)?;
        let (mut queued, mut turns, mut bytes) = (Vec::new(), 0, 0);
        while let Some(next) = queue.waiting.front() {
            turns += next.append.turns.len();
            bytes += next.append.turns.iter().map(conversation_cache::content_bytes).sum::<usize>();
            let full = queued.len() >= BATCH_APPENDS || turns > BATCH_TURNS || bytes > BATCH_BYTES;
            if full && !queued.is_empty() {
                break;
            }
            queued.extend(queue.waiting.pop_front());
        }
        if queued.is_empty() {
            return None;
        }
        queue.in_flight += 1;
        // All servers use the same order, which prevents deadlocks.
        queued.sort_by_key(|queued_append: &QueuedAppend| {
            queued_append.append.operation.as_ref().map(|operation| operation.conversation)
        });
        Some(InFlightBatch {
            batches: self,
            project,
            queued,
            started: Instant::now(),
            outcome: AppendOutcome::InDoubt,
        })
    }
}

/// Appends in flight. Dropping it answers their owners.
struct InFlightBatch<'b> {
    batches: &'b AppendQueues,
    project: i32,
    queued: Vec<QueuedAppend>,
    started: Instant,
    outcome: AppendOutcome,
}

/// Sends appends to the database; stores all or none.
fn send_all(mut lease: Lease<'_>, project: i32, appends: &[&PendingAppend]) -> AppendOutcome {
    match lease.exchange(WRITE_DEADLINE, &[append_command::build(project, appends)]) {
        Ok(_) if lease.was_warned() => AppendOutcome::InDoubt,
        Ok(_) => {
            lease.release();
            AppendOutcome::Stored
        }
        Err(DatabaseFailure::Unreachable(_)) => AppendOutcome::InDoubt,
        Err(_) => {
            // Outside a transaction block there is nothing to roll back.
            lease.release();
            AppendOutcome::Refused
        }
    }
}

impl Drop for InFlightBatch<'_> {
    fn drop(&mut self) {
        {
            let mut queues = lock(&self.batches.queues);
            if let Some(queue) = queues.get_mut(&self.project) {
                queue.in_flight -= 1;
                queue.last = Some(LastBatch {
                    at: Instant::now(),
                    duration: self.started.elapsed(),
                    expected: queue.waiting.len() + self.queued.len(),
                });
            }
        }
        let retry = self.outcome == AppendOutcome::Refused && self.queued.len() > 1;
        for QueuedAppend { append, mailbox } in self.queued.drain(..) {
            mailbox.put(match retry {
                true => AppendSignal::Retry(append),
                false => AppendSignal::Done(self.outcome, append),
            });
        }
    }
}

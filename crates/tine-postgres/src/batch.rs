//! Appends that are sent together: group commit over the network.
//!
//! A call of the database and its commit cost the same for one append as for many, and appends to
//! different conversations do not look at each other. So a caller that sends its append takes along
//! all that wait: one call, one commit. Callers that were just answered are soon back, so the next
//! batch waits for them, at most as long as the last one took; the last to arrive leads. A lone
//! writer waits for no other and hands nothing to another thread.
//!
//! All appends of a batch belong to one project, since a transaction touches one part of the data.
//! A batch is stored as a whole or not at all: if the database refuses it, every append is sent
//! alone, and only those are refused whose numbers are taken. What a broken connection leaves in
//! doubt is in doubt for all of them.
//!
//! The embedded store's `writer` has a leader too, and is kept apart: it runs the jobs of others on
//! one connection, where this sends finished rows over many, several batches at a time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tine_store::Mailbox;

use crate::columns;
use crate::conversation_cache::{self, Added};
use crate::failure::Failure;
use crate::pool::{Lease, Pool};
use crate::{WRITE_DEADLINE, lock};

/// Appends in one batch at most.
const BATCH_APPENDS: usize = 128;

/// Turns in one batch, unless a single append has more.
const BATCH_TURNS: usize = 1_024;

/// Bytes of bodies in one batch, unless a single append has more.
const BATCH_BYTES: usize = 4 << 20;

/// Batches of one project that are sent without waiting: while one is stored, the next is made.
const IN_FLIGHT: usize = 2;

/// An append that has waited this long is sent as well: the database is far away or slow, and has
/// room for another batch.
const LONGEST_WAIT: Duration = Duration::from_millis(1);

/// Projects whose last batch is remembered, about.
const QUEUES: usize = 1_024;

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Stored,
    /// Nothing of it is stored: its number or key is taken, or the database said no.
    Refused,
    /// There was no connection to send it over.
    Unsent,
    /// Whether it was stored is not known.
    InDoubt,
}

/// What waits and what is in flight, by project.
#[derive(Default)]
pub(crate) struct Batches {
    queues: Mutex<HashMap<i32, Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Ticket>,
    in_flight: usize,
    last: Option<LastBatch>,
}

/// The batch that was answered last.
struct LastBatch {
    at: Instant,
    took: Duration,
    /// Those that waited then, and those that were answered and will soon send more.
    expected: usize,
}

impl Queue {
    /// Whether the append that has arrived now sends the batch.
    fn is_complete(&self) -> bool {
        self.in_flight < IN_FLIGHT
            && self.last.as_ref().is_none_or(|last| {
                self.waiting.len() >= last.expected || last.at.elapsed() > last.took
            })
    }

    /// How long an append waits for others.
    fn patience(&self) -> Duration {
        let took = self.last.as_ref().map_or(LONGEST_WAIT, |last| last.took + last.took / 2);
        took.min(LONGEST_WAIT)
    }
}

/// An append, and where its owner waits.
struct Ticket {
    added: Added,
    slot: Arc<Slot>,
}

type Slot = Mailbox<Signal>;

/// What an owner gets.
enum Signal {
    /// The batch was refused, perhaps because of another append in it.
    Retry(Added),
    Done(Sent, Added),
}

impl Batches {
    /// Sends an append, and answers when it is known what became of it.
    pub(crate) fn send(&self, pool: &Pool, project: i32, added: Added) -> (Sent, Added) {
        let slot = Arc::new(Slot::default());
        let (mut leads, mut patience) = {
            let mut queues = lock(&self.queues);
            if queues.len() >= QUEUES {
                queues.retain(|_, queue| queue.in_flight > 0 || !queue.waiting.is_empty());
            }
            let queue = queues.entry(project).or_default();
            queue.waiting.push_back(Ticket { added, slot: Arc::clone(&slot) });
            (queue.is_complete(), queue.patience())
        };
        loop {
            if leads {
                // A connection first, so that no append is taken along only to wait for it.
                match pool.lend() {
                    Ok(lease) => self.lead(project, lease),
                    Err(_) => {
                        if let Some(added) = self.take_back(project, &slot) {
                            return (Sent::Unsent, added);
                        }
                    }
                }
            }
            leads = match slot.wait_timeout(patience) {
                Some(Signal::Done(sent, added)) => return (sent, added),
                Some(Signal::Retry(added)) => {
                    let sent = match pool.lend() {
                        Ok(lease) => send_all(lease, project, &[&added]),
                        Err(_) => Sent::Unsent,
                    };
                    return (sent, added);
                }
                None if self.is_waiting(project, &slot) => true,
                None => {
                    // The leader of its batch will answer.
                    patience = Duration::MAX;
                    false
                }
            };
        }
    }

    /// Sends all appends that wait, if any still do.
    fn lead(&self, project: i32, lease: Lease<'_>) {
        match self.take_batch(project) {
            Some(mut batch) => {
                let appends: Vec<&Added> = batch.tickets.iter().map(|it| &it.added).collect();
                batch.sent = send_all(lease, project, &appends);
            }
            None => lease.keep(),
        }
    }

    fn is_waiting(&self, project: i32, slot: &Arc<Slot>) -> bool {
        let queues = lock(&self.queues);
        let mut waiting = queues.get(&project).into_iter().flat_map(|queue| &queue.waiting);
        waiting.any(|ticket| Arc::ptr_eq(&ticket.slot, slot))
    }

    /// Takes an append back, unless it was sent.
    fn take_back(&self, project: i32, slot: &Arc<Slot>) -> Option<Added> {
        let mut queues = lock(&self.queues);
        let waiting = &mut queues.get_mut(&project)?.waiting;
        let at = waiting.iter().position(|ticket| Arc::ptr_eq(&ticket.slot, slot))?;
        Some(waiting.remove(at)?.added)
    }

    /// Takes the appends that wait, within the bounds of a batch.
    fn take_batch(&self, project: i32) -> Option<Batch<'_>> {
        let mut queues = lock(&self.queues);
        let queue = queues.get_mut(&project)?;
        let (mut tickets, mut turns, mut bytes) = (Vec::new(), 0, 0);
        while let Some(next) = queue.waiting.front() {
            turns += next.added.turns.len();
            bytes += next.added.turns.iter().map(conversation_cache::content_bytes).sum::<usize>();
            let full = tickets.len() >= BATCH_APPENDS || turns > BATCH_TURNS || bytes > BATCH_BYTES;
            if full && !tickets.is_empty() {
                break;
            }
            tickets.extend(queue.waiting.pop_front());
        }
        if tickets.is_empty() {
            return None;
        }
        queue.in_flight += 1;
        // In one order for all servers, so that none waits for one that waits for it.
        tickets.sort_by_key(|ticket: &Ticket| {
            ticket.added.operation.as_ref().map(|operation| operation.conversation)
        });
        Some(Batch { batches: self, project, tickets, began: Instant::now(), sent: Sent::InDoubt })
    }
}

/// Appends that are in flight. Dropped, it answers their owners.
struct Batch<'b> {
    batches: &'b Batches,
    project: i32,
    tickets: Vec<Ticket>,
    began: Instant,
    sent: Sent,
}

/// Sends appends to the database, all or none.
fn send_all(mut lease: Lease<'_>, project: i32, appends: &[&Added]) -> Sent {
    match lease.exchange(WRITE_DEADLINE, &[columns::command(project, appends)]) {
        Ok(_) if lease.was_warned() => Sent::InDoubt,
        Ok(_) => {
            lease.keep();
            Sent::Stored
        }
        Err(Failure::Away(_)) => Sent::InDoubt,
        Err(_) => {
            // Outside of a transaction block there is nothing to take back.
            lease.keep();
            Sent::Refused
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        {
            let mut queues = lock(&self.batches.queues);
            if let Some(queue) = queues.get_mut(&self.project) {
                queue.in_flight -= 1;
                queue.last = Some(LastBatch {
                    at: Instant::now(),
                    took: self.began.elapsed(),
                    expected: queue.waiting.len() + self.tickets.len(),
                });
            }
        }
        let retry = self.sent == Sent::Refused && self.tickets.len() > 1;
        for Ticket { added, slot } in self.tickets.drain(..) {
            slot.put(match retry {
                true => Signal::Retry(added),
                false => Signal::Done(self.sent, added),
            });
        }
    }
}

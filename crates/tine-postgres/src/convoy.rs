//! Appends that travel together.
//!
//! A call of the database and its commit cost the same for one append as for many, and appends to
//! different conversations do not look at each other. So whoever goes takes along all who wait:
//! one call, one commit. Those who come back are soon there again, so the others wait for them, at
//! most as long as a convoy takes; whoever comes last leads. A lone writer waits for nobody and
//! hands nothing to another thread.
//!
//! All of one convoy belong to one project, since a transaction touches one part of the data. It
//! arrives as a whole or not at all: if the database refuses it, everybody goes alone, and only
//! those are refused whose numbers are taken. What a broken connection leaves in doubt is in doubt
//! for all of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::columns;
use crate::failure::Failure;
use crate::known::{self, Added};
use crate::pool::{Lease, Pool};
use crate::{WRITE_DEADLINE, lock};

/// Appends in one convoy at most.
const APPENDS: usize = 128;

/// Turns in one convoy, unless a single append has more.
const TURNS: usize = 1_024;

/// Bytes of bodies in one convoy, unless a single append has more.
const BYTES: usize = 4 << 20;

/// Convoys of one project that set out without a thought: while one is stored, the next is made.
const AT_ONCE: usize = 2;

/// Who has waited this long sets out as well: the database is far away or slow, and has room for
/// another convoy.
const PATIENCE: Duration = Duration::from_millis(1);

/// Projects of which it is remembered who travelled together, about.
const LINES: usize = 1_024;

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

/// What waits and what is under way, by project.
#[derive(Default)]
pub(crate) struct Convoys {
    lines: Mutex<HashMap<i32, Line>>,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Ticket>,
    under_way: usize,
    back: Option<Back>,
}

/// The convoy that came back last.
struct Back {
    at: Instant,
    took: Duration,
    /// Those who waited then, and those who came back and will soon send more.
    expected: usize,
}

impl Line {
    /// Whether whoever has come now sets out.
    fn is_complete(&self) -> bool {
        self.under_way < AT_ONCE
            && self.back.as_ref().is_none_or(|back| {
                self.waiting.len() >= back.expected || back.at.elapsed() > back.took
            })
    }

    /// How long one waits for others.
    fn patience(&self) -> Duration {
        let took = self.back.as_ref().map_or(PATIENCE, |back| back.took + back.took / 2);
        took.min(PATIENCE)
    }
}

/// An append, and the place where its owner waits.
struct Ticket {
    added: Added,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    signal: Mutex<Option<Signal>>,
    told: Condvar,
}

/// What an owner is told.
enum Signal {
    /// The convoy was refused, perhaps because of somebody else's append.
    Scattered(Added),
    Done(Sent, Added),
}

impl Slot {
    fn tell(&self, signal: Signal) {
        *lock(&self.signal) = Some(signal);
        self.told.notify_one();
    }

    /// What the owner is told, if that is soon enough.
    fn wait(&self, patience: Duration) -> Option<Signal> {
        let signal = lock(&self.signal);
        let waited = self.told.wait_timeout_while(signal, patience, |signal| signal.is_none());
        let (mut signal, _) = waited.unwrap_or_else(PoisonError::into_inner);
        signal.take()
    }
}

impl Convoys {
    /// Sends an append, and answers when it is known what became of it.
    pub(crate) fn send(&self, pool: &Pool, project: i32, added: Added) -> (Sent, Added) {
        let slot = Arc::new(Slot::default());
        let (mut goes, mut patience) = {
            let mut lines = lock(&self.lines);
            if lines.len() >= LINES {
                lines.retain(|_, line| line.under_way > 0 || !line.waiting.is_empty());
            }
            let line = lines.entry(project).or_default();
            line.waiting.push_back(Ticket { added, slot: Arc::clone(&slot) });
            (line.is_complete(), line.patience())
        };
        loop {
            if goes {
                // First of all, so that nobody is taken along who would then wait for it.
                match pool.lend() {
                    Ok(lease) => self.lead(project, lease),
                    Err(_) => {
                        if let Some(added) = self.take_back(project, &slot) {
                            return (Sent::Unsent, added);
                        }
                    }
                }
            }
            goes = match slot.wait(patience) {
                Some(Signal::Done(sent, added)) => return (sent, added),
                Some(Signal::Scattered(added)) => {
                    let sent = match pool.lend() {
                        Ok(lease) => travel(lease, project, &[&added]),
                        Err(_) => Sent::Unsent,
                    };
                    return (sent, added);
                }
                None if self.is_waiting(project, &slot) => true,
                None => {
                    // Whoever has it along will tell.
                    patience = Duration::MAX;
                    false
                }
            };
        }
    }

    /// Sets out with all who wait, if somebody still does.
    fn lead(&self, project: i32, lease: Lease<'_>) {
        match self.set_out(project) {
            Some(mut convoy) => {
                let appends: Vec<&Added> = convoy.tickets.iter().map(|it| &it.added).collect();
                convoy.sent = travel(lease, project, &appends);
            }
            None => lease.keep(),
        }
    }

    fn is_waiting(&self, project: i32, slot: &Arc<Slot>) -> bool {
        let lines = lock(&self.lines);
        let mut waiting = lines.get(&project).into_iter().flat_map(|line| &line.waiting);
        waiting.any(|ticket| Arc::ptr_eq(&ticket.slot, slot))
    }

    /// Takes an append back, unless it is under way.
    fn take_back(&self, project: i32, slot: &Arc<Slot>) -> Option<Added> {
        let mut lines = lock(&self.lines);
        let waiting = &mut lines.get_mut(&project)?.waiting;
        let at = waiting.iter().position(|ticket| Arc::ptr_eq(&ticket.slot, slot))?;
        Some(waiting.remove(at)?.added)
    }

    /// Takes along who waits.
    fn set_out(&self, project: i32) -> Option<Convoy<'_>> {
        let mut lines = lock(&self.lines);
        let line = lines.get_mut(&project)?;
        let (mut tickets, mut turns, mut bytes) = (Vec::new(), 0, 0);
        while let Some(next) = line.waiting.front() {
            turns += next.added.turns.len();
            bytes += next.added.turns.iter().map(known::content_bytes).sum::<usize>();
            let full = tickets.len() >= APPENDS || turns > TURNS || bytes > BYTES;
            if full && !tickets.is_empty() {
                break;
            }
            tickets.extend(line.waiting.pop_front());
        }
        if tickets.is_empty() {
            return None;
        }
        line.under_way += 1;
        // In one order for all servers, so that none waits for one that waits for it.
        tickets.sort_by_key(|ticket: &Ticket| {
            ticket.added.operation.as_ref().map(|operation| operation.conversation)
        });
        Some(Convoy { convoys: self, project, tickets, began: Instant::now(), sent: Sent::InDoubt })
    }
}

/// Appends that are under way. Dropped, it tells their owners what became of them.
struct Convoy<'c> {
    convoys: &'c Convoys,
    project: i32,
    tickets: Vec<Ticket>,
    began: Instant,
    sent: Sent,
}

/// Sends appends to the database, all or none.
fn travel(mut lease: Lease<'_>, project: i32, appends: &[&Added]) -> Sent {
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

impl Drop for Convoy<'_> {
    fn drop(&mut self) {
        {
            let mut lines = lock(&self.convoys.lines);
            if let Some(line) = lines.get_mut(&self.project) {
                line.under_way -= 1;
                line.back = Some(Back {
                    at: Instant::now(),
                    took: self.began.elapsed(),
                    expected: line.waiting.len() + self.tickets.len(),
                });
            }
        }
        let scattered = self.sent == Sent::Refused && self.tickets.len() > 1;
        for Ticket { added, slot } in self.tickets.drain(..) {
            slot.tell(match scattered {
                true => Signal::Scattered(added),
                false => Signal::Done(self.sent, added),
            });
        }
    }
}

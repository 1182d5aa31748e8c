//! Looks for an order of the calls that explains everything.
//!
//! The store's feed says in which order changes were committed, and each entry names the call
//! that made it. The calls are made again in this order, one after the other, on a store in
//! memory with the clock and the randomness that they had: every answer must come out the same,
//! and at the end every record, byte for byte. A call that left no entry (it looked, it was
//! refused, or all was there already) must be told the same by the state after some prefix of
//! the log that ends between its beginning and its answer. So nobody saw half an operation, or
//! less than what had been acknowledged before.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tine_core::ProjectId;
use tine_store::{
    FeedPosition, Job, MemoryStore, Operation, Read, Result as Stored, Store, StoreError, Verdict,
};

use super::ask::{Ask, Told, Who};
use super::history::{Made, Windows};
use crate::Fault;
use crate::check;
use crate::outside::Outside;
use crate::recorded::Recorder;
use crate::report::{Broken, Violation};
use crate::state;

/// Entries of the feed that are asked for at once.
const PAGE: usize = 1_000;

/// Looks whether a history and what it left in a store explain each other.
pub fn judge(folder: &Path, seed: u64, calls: &[Made]) -> Result<Result<(), Violation>, Fault> {
    let left = match Left::read(folder) {
        Ok(left) => left,
        Err(violation) => return Ok(Err(violation)),
    };
    let log = match in_order(&left.feed, calls) {
        Ok(log) => log,
        Err(violation) => return Ok(Err(violation)),
    };
    let replay = Replay::new(seed);
    if let Err(violation) = replay.run(&log, calls)? {
        return Ok(Err(violation));
    }
    let wanted = state::text(&*replay.store, &ProjectId::default())?;
    if wanted != left.text {
        let what = format!("at the end: {}", state::first_difference(&wanted, &left.text));
        return Ok(Err(Violation::new(Broken::Half, what)));
    }
    Ok(Ok(()))
}

/// What the crowd left behind.
struct Left {
    feed: Vec<Operation>,
    text: String,
}

impl Left {
    fn read(folder: &Path) -> Result<Self, Violation> {
        let store: Arc<dyn Store> = Arc::new(check::open(folder, true)?);
        check::verify(&Outside::new(0, 0).engine(Arc::clone(&store)))?;
        let unreadable = |error: StoreError| Violation::new(Broken::Half, error.to_string());
        let mut feed: Vec<(FeedPosition, Operation)> = Vec::new();
        store
            .read(&mut |records| {
                feed.clear();
                loop {
                    let after = feed.last().map_or_else(FeedPosition::default, |last| last.0);
                    let page = records.feed(after, PAGE)?;
                    let is_last = page.len() < PAGE;
                    feed.extend(page);
                    if is_last {
                        return Ok(());
                    }
                }
            })
            .map_err(unreadable)?;
        let text = state::text(&*store, &ProjectId::default()).map_err(unreadable)?;
        Ok(Left { feed: feed.into_iter().map(|(_, operation)| operation).collect(), text })
    }
}

/// The calls that the log names, in its order, which must agree with the order in time.
fn in_order<'c>(feed: &[Operation], calls: &'c [Made]) -> Result<Vec<&'c Made>, Violation> {
    let unexplained = |what: String| Violation::new(Broken::Unexplained, what);
    let mut by_name: HashMap<Who, &Made> = calls.iter().map(|call| (call.who, call)).collect();
    let mut log: Vec<&Made> = Vec::with_capacity(feed.len());
    let mut latest: Option<&Made> = None;
    for operation in feed {
        let call = Who::from_actor(&operation.actor).and_then(|who| by_name.remove(&who));
        let call = call.ok_or_else(|| {
            let Operation { actor, seq, kind, .. } = operation;
            unexplained(format!("{kind} {seq} by {actor}: nobody asked for it, or only once"))
        })?;
        if let Some(latest) = latest.filter(|latest| latest.begun > call.ended) {
            return Err(unexplained(format!(
                "{} was answered before {} began, and comes after it in the log",
                call.who, latest.who
            )));
        }
        if latest.is_none_or(|latest| latest.begun < call.begun) {
            latest = Some(call);
        }
        log.push(call);
    }
    Ok(log)
}

/// The calls once more, one after the other.
struct Replay {
    seed: u64,
    store: Arc<MemoryStore>,
    rehearsal: Arc<Rehearsal>,
}

/// A call that left no entry and is not explained yet.
struct Pending<'c> {
    call: &'c Made,
    ask: Ask,
    longest: usize,
    /// What the states so far would have told it.
    instead: Option<Told>,
    /// Whether one of them would have told it the same and been changed.
    lost: bool,
}

impl Replay {
    fn new(seed: u64) -> Self {
        let store = Arc::new(MemoryStore::new());
        let rehearsal = Rehearsal { inner: Arc::clone(&store), changed: Arc::default() };
        Replay { seed, store, rehearsal: Arc::new(rehearsal) }
    }

    fn run(&self, log: &[&Made], calls: &[Made]) -> Result<Result<(), Violation>, Fault> {
        let windows = Windows::new(log);
        let in_log: HashSet<Who> = log.iter().map(|call| call.who).collect();
        let mut waiting: Vec<(usize, Pending<'_>)> = Vec::new();
        for call in calls.iter().filter(|call| !in_log.contains(&call.who)) {
            let (shortest, longest) = windows.of(call);
            let ask = Ask::new(self.seed, call.who, &call.picks)?;
            let pending = Pending { call, ask, longest, instead: None, lost: false };
            waiting.push((shortest, pending));
        }
        waiting.sort_by_key(|(shortest, _)| std::cmp::Reverse(*shortest));
        let mut open: Vec<Pending<'_>> = Vec::new();
        for place in 0..=log.len() {
            while waiting.last().is_some_and(|(shortest, _)| *shortest <= place) {
                open.extend(waiting.pop().map(|(_, pending)| pending));
            }
            open.retain_mut(|pending| !self.explains(pending));
            if let Some(pending) = open.iter().find(|pending| pending.longest <= place) {
                return Ok(Err(pending.unexplained()));
            }
            if let Some(call) = log.get(place) {
                let ask = Ask::new(self.seed, call.who, &call.picks)?;
                let told = self.again(Arc::clone(&self.store) as Arc<dyn Store>, call.who, &ask);
                if told.line != call.told {
                    let what = format!(
                        "entry {place} of the log: {} was told `{}`; in this order it is `{}`",
                        call.who, call.told, told.line
                    );
                    return Ok(Err(Violation::new(Broken::Unexplained, what)));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Makes a call with the clock and the randomness that it had.
    fn again(&self, store: Arc<dyn Store>, who: Who, ask: &Ask) -> Told {
        let outside = Outside::new(self.seed, who.worker);
        outside.step(who.number);
        ask.run(&outside.engine(store))
    }

    /// Whether the state as it is now tells a call what it was told, and stays as it is.
    fn explains(&self, pending: &mut Pending<'_>) -> bool {
        self.rehearsal.changed.store(false, Ordering::Relaxed);
        let store = Arc::clone(&self.rehearsal) as Arc<dyn Store>;
        let told = self.again(store, pending.call.who, &pending.ask);
        let same = told.line == pending.call.told;
        let changed = self.rehearsal.changed.load(Ordering::Relaxed);
        pending.lost |= same && changed;
        pending.instead = Some(told);
        same && !changed
    }
}

impl Pending<'_> {
    fn unexplained(&self) -> Violation {
        let Made { who, told, .. } = self.call;
        if self.lost {
            let what = format!("{who} was told `{told}`, and the log knows nothing of it");
            return Violation::new(Broken::Lost, what);
        }
        let instead = self.instead.as_ref().map_or("nothing", |told| &told.line);
        let what = format!(
            "{who} was told `{told}`, which no state between its beginning and its answer \
             explains; the last one tells `{instead}`: {:?}",
            self.ask
        );
        Violation::new(Broken::Unexplained, what)
    }
}

/// A store that keeps nothing and remembers whether it would have changed.
struct Rehearsal {
    inner: Arc<MemoryStore>,
    changed: Arc<AtomicBool>,
}

impl Store for Rehearsal {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Stored<()>) -> Stored<()> {
        self.inner.read(body)
    }

    fn write(&self, mut job: Job) -> Stored<()> {
        let changed = Arc::clone(&self.changed);
        self.inner.write(Box::new(move |records| {
            let mut recorder = Recorder { inner: records, changes: Vec::new() };
            if job(&mut recorder)? == Verdict::Commit && !recorder.changes.is_empty() {
                changed.store(true, Ordering::Relaxed);
            }
            Ok(Verdict::Rollback)
        }))
    }

    tine_store::forward_store!(inner);
}

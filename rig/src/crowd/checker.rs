//! The linearizability checker: looks for an order of the calls that explains all answers.
//!
//! The store's feed has the changes in commit order, and each entry names the call that made it.
//! The calls are repeated in this order, one after the other, on a memory store with the same clock
//! and randomness: every answer must be equal, and at the end every record, byte for byte. A call
//! without an entry (a read, a rejected call, or one that changed nothing) must get the same answer
//! from the state after a prefix of the log that ends between its beginning and its answer. So no
//! call saw half an operation, or less than what was acknowledged before.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tine_core::ProjectId;
use tine_store::{
    FeedPosition, Job, MemoryStore, Operation, Read, Result as Stored, Store, StoreError, Verdict,
};

use super::calls::{CallAnswer, CallId, CrowdCall};
use super::history::{RecordedCall, Windows};
use crate::RigError;
use crate::check;
use crate::recorded::Recorder;
use crate::report::{BrokenGuarantee, Violation};
use crate::seeded::SeededRuntime;
use crate::state;

/// Entries of the feed per page.
const PAGE: usize = 1_000;

/// Checks whether a history explains the final state of the store.
pub fn check(
    folder: &Path,
    seed: u64,
    calls: &[RecordedCall],
) -> Result<Result<(), Violation>, RigError> {
    let left = match FinalState::read(folder) {
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
        return Ok(Err(Violation::new(BrokenGuarantee::Inconsistent, what)));
    }
    Ok(Ok(()))
}

/// The state of the store after all calls.
struct FinalState {
    feed: Vec<Operation>,
    text: String,
}

impl FinalState {
    fn read(folder: &Path) -> Result<Self, Violation> {
        let store: Arc<dyn Store> = Arc::new(check::open(folder, true)?);
        check::verify(&SeededRuntime::new(0, 0).engine(Arc::clone(&store)))?;
        let unreadable =
            |error: StoreError| Violation::new(BrokenGuarantee::Inconsistent, error.to_string());
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
        Ok(FinalState { feed: feed.into_iter().map(|(_, operation)| operation).collect(), text })
    }
}

/// Returns the calls in the order of the log, which must agree with the order in time.
fn in_order<'c>(
    feed: &[Operation],
    calls: &'c [RecordedCall],
) -> Result<Vec<&'c RecordedCall>, Violation> {
    let unexplained = |what: String| Violation::new(BrokenGuarantee::Unexplained, what);
    let mut by_name: HashMap<CallId, &RecordedCall> =
        calls.iter().map(|call| (call.who, call)).collect();
    let mut log: Vec<&RecordedCall> = Vec::with_capacity(feed.len());
    let mut latest: Option<&RecordedCall> = None;
    for operation in feed {
        let call = CallId::from_actor(&operation.actor).and_then(|who| by_name.remove(&who));
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

/// Repeats the calls, one after the other.
struct Replay {
    seed: u64,
    store: Arc<MemoryStore>,
    rehearsal: Arc<Rehearsal>,
}

/// A call without an entry that is not explained yet.
struct UnexplainedCall<'c> {
    call: &'c RecordedCall,
    ask: CrowdCall,
    longest: usize,
    /// The answer that earlier states would have given.
    instead: Option<CallAnswer>,
    /// Whether one of them would have given the same answer but been changed.
    lost: bool,
}

impl Replay {
    fn new(seed: u64) -> Self {
        let store = Arc::new(MemoryStore::new());
        let rehearsal = Rehearsal { inner: Arc::clone(&store), changed: Arc::default() };
        Replay { seed, store, rehearsal: Arc::new(rehearsal) }
    }

    fn run(
        &self,
        log: &[&RecordedCall],
        calls: &[RecordedCall],
    ) -> Result<Result<(), Violation>, RigError> {
        let windows = Windows::new(log);
        let in_log: HashSet<CallId> = log.iter().map(|call| call.who).collect();
        let mut waiting: Vec<(usize, UnexplainedCall<'_>)> = Vec::new();
        for call in calls.iter().filter(|call| !in_log.contains(&call.who)) {
            let (shortest, longest) = windows.of(call);
            let ask = CrowdCall::new(self.seed, call.who, &call.picks)?;
            let pending = UnexplainedCall { call, ask, longest, instead: None, lost: false };
            waiting.push((shortest, pending));
        }
        waiting.sort_by_key(|(shortest, _)| std::cmp::Reverse(*shortest));
        let mut open: Vec<UnexplainedCall<'_>> = Vec::new();
        for place in 0..=log.len() {
            while waiting.last().is_some_and(|(shortest, _)| *shortest <= place) {
                open.extend(waiting.pop().map(|(_, pending)| pending));
            }
            open.retain_mut(|pending| !self.explains(pending));
            if let Some(pending) = open.iter().find(|pending| pending.longest <= place) {
                return Ok(Err(pending.unexplained()));
            }
            if let Some(call) = log.get(place) {
                let ask = CrowdCall::new(self.seed, call.who, &call.picks)?;
                let answer = self.again(Arc::clone(&self.store) as Arc<dyn Store>, call.who, &ask);
                if answer.line != call.answer {
                    let what = format!(
                        "entry {place} of the log: {} was told `{}`; in this order it is `{}`",
                        call.who, call.answer, answer.line
                    );
                    return Ok(Err(Violation::new(BrokenGuarantee::Unexplained, what)));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Repeats a call with the same clock and randomness.
    fn again(&self, store: Arc<dyn Store>, who: CallId, ask: &CrowdCall) -> CallAnswer {
        let runtime = SeededRuntime::new(self.seed, who.worker);
        runtime.step(who.number);
        ask.run(&runtime.engine(store))
    }

    /// Returns whether the current state gives the recorded answer without being changed.
    fn explains(&self, pending: &mut UnexplainedCall<'_>) -> bool {
        self.rehearsal.changed.store(false, Ordering::Relaxed);
        let store = Arc::clone(&self.rehearsal) as Arc<dyn Store>;
        let answer = self.again(store, pending.call.who, &pending.ask);
        let same = answer.line == pending.call.answer;
        let changed = self.rehearsal.changed.load(Ordering::Relaxed);
        pending.lost |= same && changed;
        pending.instead = Some(answer);
        same && !changed
    }
}

impl UnexplainedCall<'_> {
    fn unexplained(&self) -> Violation {
        let RecordedCall { who, answer, .. } = self.call;
        if self.lost {
            let what = format!("{who} was answered `{answer}`, and the log knows nothing of it");
            return Violation::new(BrokenGuarantee::Lost, what);
        }
        let instead = self.instead.as_ref().map_or("nothing", |answer| &answer.line);
        let what = format!(
            "{who} was answered `{answer}`, which no state between its beginning and its answer \
             explains; the last one tells `{instead}`: {:?}",
            self.ask
        );
        Violation::new(BrokenGuarantee::Unexplained, what)
    }
}

/// A store that discards changes and records whether there were any.
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

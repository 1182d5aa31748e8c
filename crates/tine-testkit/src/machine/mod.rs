//! Model = memory store = embedded store, step by step.
//!
//! Both engines get the same clock and the same seeds, so their answers must be identical, ids
//! and hashes included. The model's answers must be the same except for ids, which it takes from
//! the engine.

mod compare;
mod outline;
mod reads;
mod run;
mod search;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tine_core::{Limits, Timestamp, TurnId};
use tine_engine::{BundleRecord, Call, Clock, Engine, FixedEntropy};
use tine_store::{Branch, Store};

use crate::action::{EngineAction, EngineAnswer, perform, summarize};
use crate::model::{Ix, Recorded, ReferenceModel};
use crate::steps::TestStep;

use self::outline::OutlineReplica;

pub use self::run::{RunPlan, run_cases, run_steps};

/// A clock that stands still until it is set.
#[derive(Debug)]
pub struct StepClock(AtomicI64);

impl StepClock {
    pub fn at(start: Timestamp) -> Self {
        StepClock(AtomicI64::new(start.as_millis()))
    }

    pub fn set(&self, to: Timestamp) {
        self.0.store(to.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for StepClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// What every sequence starts at.
pub fn beginning() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

/// Returns an engine whose answers depend on nothing but its store.
pub fn engine(store: Arc<dyn Store>, clock: Arc<StepClock>) -> Engine {
    Engine::with(store, clock, Arc::new(FixedEntropy::new(7)), Limits::default())
}

/// One run of a sequence.
pub struct Machine {
    pub(crate) model: ReferenceModel,
    pub(crate) memory: Engine,
    pub(crate) embedded: Option<Engine>,
    pub(crate) clock: Arc<StepClock>,
    pub(crate) call: Call,
    pub(crate) steps: i64,
    pub(crate) ids: BTreeSet<TurnId>,
    pub(crate) replicas: HashMap<Ix, OutlineReplica>,
    pub(crate) used: Vec<(String, EngineAction)>,
    pub(crate) answers: BTreeMap<String, EngineAnswer>,
    /// How often each sort of call was accepted, refused or left out.
    pub tally: Tally,
    /// Every call that was made, for people to read.
    pub journal: Vec<String>,
}

/// Counts by sort of call and outcome.
pub type Tally = BTreeMap<(String, &'static str), u64>;

/// What a failed comparison says.
pub type Checked = Result<(), String>;

impl Machine {
    /// Creates a fresh world over a store, with or without another one that must give the same
    /// answers.
    pub fn new(first: Arc<dyn Store>, second: Option<Arc<dyn Store>>) -> Self {
        let clock = Arc::new(StepClock::at(beginning()));
        Machine {
            model: ReferenceModel::default(),
            memory: engine(first, clock.clone()),
            embedded: second.map(|store| engine(store, clock.clone())),
            clock,
            call: Call::by("tester"),
            steps: 0,
            ids: BTreeSet::new(),
            replicas: HashMap::new(),
            used: vec![],
            answers: BTreeMap::new(),
            tally: Tally::new(),
            journal: vec![],
        }
    }

    /// Runs a whole sequence, with one conversation made beforehand.
    pub fn run(&mut self, steps: &[TestStep]) -> Checked {
        self.step(&TestStep::Create { prompt: 1 })?;
        for step in steps {
            self.step(step).map_err(|why| self.readable(&why))?;
            if self.steps % 8 == 0 {
                self.check_search().map_err(|why| self.readable(&why))?;
            }
        }
        self.check_search().map_err(|why| self.readable(&why))?;
        self.round_trip()?;
        self.copy()
    }

    /// Runs one step and checks everything.
    pub fn step(&mut self, step: &TestStep) -> Checked {
        self.steps += 1;
        // Two steps share a millisecond, so that equal siblings meet in time as well.
        let now = Timestamp::from_millis(beginning().as_millis() + self.steps / 2);
        self.clock.set(now);
        match step {
            TestStep::UndoRedo { of } => self.undo_redo(*of, now),
            TestStep::Replay { nth } => {
                if self.used.is_empty() {
                    return Ok(());
                }
                let (key, action) = self.used[usize::from(*nth) % self.used.len()].clone();
                self.act(&action, Some(key), now).map(|_| ())
            }
            step => {
                let key = match step {
                    TestStep::Keyed { key, .. } => Some(format!("key-{key}")),
                    _ => None,
                };
                match step.resolve(&self.model, now) {
                    Some(action) => self.act(&action, key, now).map(|_| ()),
                    None => Ok(()),
                }
            }
        }
    }

    fn act(
        &mut self,
        action: &EngineAction,
        key: Option<String>,
        now: Timestamp,
    ) -> Result<bool, String> {
        let sort = format!("{action:?}");
        let sort = sort.split('(').next().unwrap_or_default().to_owned();
        let (outcome, accepted) = match self.made(action, key, now)? {
            Some(true) => ("accepted", true),
            Some(false) => ("refused", false),
            None => ("left out", false),
        };
        *self.tally.entry((sort, outcome)).or_default() += 1;
        Ok(accepted)
    }

    /// Makes one call everywhere. Answers whether it was accepted, if it was made at all.
    fn made(
        &mut self,
        action: &EngineAction,
        key: Option<String>,
        now: Timestamp,
    ) -> Result<Option<bool>, String> {
        let Some(prediction) = self.model.predict(action, key.as_deref(), now) else {
            return Ok(None);
        };
        let call = Call { idempotency_key: key.clone(), ..self.call.clone() };
        let before = self.exports(&self.memory)?;
        let key_told = key.as_ref().map(|key| format!(" with {key}")).unwrap_or_default();
        self.journal.push(format!("{}{key_told}", self.readable(&summarize(action))));
        let answer = perform(&self.memory, &call, action);
        self.same_elsewhere(&call, action, &answer)?;
        let described = |what: &str| format!("{what}\n  {action:?} (key {key:?})");
        match (answer, prediction.success) {
            (Err(error), _) if prediction.refusals.contains(&error.kind()) => {
                let after = self.exports(&self.memory)?;
                if before != after {
                    return Err(described(&format!("refused ({error}), and changed the store")));
                }
                Ok(Some(false))
            }
            (Err(error), success) => {
                let allowed = &prediction.refusals;
                let may = if success.is_some() { "success or " } else { "" };
                let kind = error.kind();
                Err(described(&format!("refused as {kind} ({error}); expected {may}{allowed:?}")))
            }
            (Ok(answer), None) => {
                let allowed = &prediction.refusals;
                Err(described(&format!("accepted, expected {allowed:?}; answered {answer:?}")))
            }
            (Ok(answer), Some((model, expected, recorded))) => {
                self.model = model;
                self.learn(&expected, &answer).map_err(|why| described(&why))?;
                if let Some(key) = key.as_ref().filter(|key| self.model.keys.contains_key(*key)) {
                    if !self.answers.contains_key(key) {
                        self.answers.insert(key.clone(), answer.clone());
                        self.used.push((key.clone(), action.clone()));
                    }
                    self.judge_replay(key, &expected, &answer).map_err(|why| described(&why))?;
                }
                self.judge(&expected, &answer).map_err(|why| described(&why))?;
                if recorded == Recorded::Maybe {
                    self.adopt_log()?;
                }
                self.check().map_err(|why| described(&why))?;
                Ok(Some(true))
            }
        }
    }

    /// Turns by number instead of by id or hash.
    fn readable(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (n, node) in self.model.nodes.iter().enumerate() {
            let hex = node.hash.0.to_hex();
            text = text.replace(&node.hash.to_string(), &format!("T{n}"));
            text = text.replace(&hex, &format!("T{n}")).replace(&hex[..16], &format!("T{n}"));
            if let Some(id) = node.id {
                text = text.replace(&id.to_string(), &format!("T{n}"));
            }
        }
        text
    }

    fn same_elsewhere(
        &self,
        call: &Call,
        action: &EngineAction,
        answer: &tine_engine::Result<EngineAnswer>,
    ) -> Checked {
        let Some(embedded) = &self.embedded else { return Ok(()) };
        let other = perform(embedded, call, action);
        let same = match (answer, &other) {
            (Ok(one), Ok(two)) => one == two,
            (Err(one), Err(two)) => one.to_string() == two.to_string(),
            _ => false,
        };
        if same {
            return Ok(());
        }
        Err(format!("the stores differ\n  {action:?}\n  memory: {answer:?}\n  embedded: {other:?}"))
    }

    /// Undo and at once redo: nothing but the log may show it.
    fn undo_redo(&mut self, of: u8, now: Timestamp) -> Checked {
        let Some(undo) = (TestStep::Undo { of, back: None }).resolve(&self.model, now) else {
            return Ok(());
        };
        let EngineAction::Undo(id, _) = undo.clone() else {
            unreachable!("an undo resolves to one")
        };
        let before = self.exports(&self.memory)?;
        if !self.act(&undo, None, now)? {
            return Ok(());
        }
        if !self.act(&EngineAction::Redo(id, None), None, now)? {
            return Err("an undo could not be redone at once".to_owned());
        }
        let after = self.exports(&self.memory)?;
        let (before, after) =
            (without_new_entries(&before, &before), without_new_entries(&after, &before));
        if before == after {
            return Ok(());
        }
        let differ = before.iter().zip(&after).find(|(one, two)| one != two);
        Err(format!("undo and redo left a trace: {differ:?}"))
    }
}

/// Without log entries that are not in the other export, and without the counters of branches.
fn without_new_entries(records: &[BundleRecord], than: &[BundleRecord]) -> Vec<BundleRecord> {
    let last = |records: &[BundleRecord]| {
        records.iter().filter(|record| matches!(record, BundleRecord::Operation(_))).count()
    };
    let surplus = last(records) > last(than);
    let known: BTreeSet<String> = than
        .iter()
        .filter_map(|record| match record {
            BundleRecord::Operation(operation) => Some(operation.hash.to_string()),
            _ => None,
        })
        .collect();
    records
        .iter()
        .filter(|record| match record {
            BundleRecord::Operation(operation) => {
                !surplus || known.contains(&operation.hash.to_string())
            }
            _ => true,
        })
        .cloned()
        .map(|record| match record {
            BundleRecord::Branch { branch, tip } => {
                BundleRecord::Branch { branch: Branch { version: 0, ..branch }, tip }
            }
            other => other,
        })
        .collect()
}

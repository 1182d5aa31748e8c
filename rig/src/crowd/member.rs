//! One process of the crowd: threads that all work on one store, each picking what to do from
//! what it has been told.
//!
//! The process closes the store from time to time and opens it again while the others go on.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tine_core::{ConversationId, Limits, Name, TurnId};
use tine_engine::{Call, Engine, Purge, PurgeTarget, SystemClock, SystemEntropy, TurnRef};
use tine_sqlite::SqliteStore;
use tine_store::Store;

use super::calls::{self, CallAnswer, CallId, CallKind, CrowdCall, Picks};
use crate::Fault;
use crate::chance::Chance;
use crate::defects::{Defect, Defective};
use crate::marks::Marks;
use crate::seeded::SeededRuntime;

/// Calls of a thread between opening the store and closing it.
const SITTING: usize = 25;
/// Turns and branches of a conversation that a thread remembers.
const REMEMBERED: usize = 40;

/// What a process does.
#[derive(Clone, Debug, clap::Args)]
pub struct Member {
    /// The store's folder.
    #[arg(long)]
    pub store: PathBuf,
    /// The file into which all processes write what they begin and what they are told.
    #[arg(long)]
    pub history: PathBuf,
    /// Where every choice comes from.
    #[arg(long)]
    pub seed: u64,
    /// The number of the first thread.
    #[arg(long)]
    pub worker: u64,
    /// Threads.
    #[arg(long)]
    pub threads: usize,
    /// Calls of each thread.
    #[arg(long)]
    pub calls: usize,
    /// What is wrong with the store.
    #[arg(long)]
    pub defect: Option<Defect>,
}

impl Member {
    /// Returns the command that does this.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        command.arg("--store").arg(&self.store).arg("--history").arg(&self.history);
        command.args(["--seed", &self.seed.to_string(), "--worker", &self.worker.to_string()]);
        command.args(["--threads", &self.threads.to_string()]);
        command.args(["--calls", &self.calls.to_string()]);
        if let Some(defect) = self.defect {
            command.args(["--defect", &defect.name()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Does it.
    pub fn run(&self) -> Result<(), Fault> {
        let history = Marks::open(&self.history)?;
        let mut hands: Vec<WorkerThread> = (self.worker..)
            .take(self.threads)
            .map(|worker| WorkerThread::new(self.seed, worker))
            .collect();
        for from in (0..self.calls).step_by(SITTING) {
            let to = self.calls.min(from + SITTING);
            let store = SqliteStore::open(&self.store)?;
            let store: Arc<dyn Store> = match self.defect {
                Some(defect) => Arc::new(Defective::new(store, defect)),
                None => Arc::new(store),
            };
            // All threads look through one engine, which remembers the order of large trees.
            let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
            let eyes = Engine::with(Arc::clone(&store), clock, entropy, Limits::default());
            std::thread::scope(|scope| {
                let threads: Vec<_> = hands
                    .iter_mut()
                    .map(|hand| {
                        let (store, eyes, history) = (Arc::clone(&store), &eyes, &history);
                        scope.spawn(move || hand.sit(from..to, store, eyes, history))
                    })
                    .collect();
                for thread in threads {
                    thread.join().map_err(|_| "a thread panicked")??;
                }
                Ok::<(), Fault>(())
            })?;
        }
        Ok(())
    }
}

/// One thread, and what it knows.
struct WorkerThread {
    seed: u64,
    worker: u64,
    known: HashMap<ConversationId, KnownRecords>,
}

/// What a thread was told about a conversation.
#[derive(Default)]
struct KnownRecords {
    turns: VecDeque<TurnId>,
    branches: VecDeque<Name>,
    /// The end of `main`.
    tip: Option<TurnId>,
}

impl WorkerThread {
    fn new(seed: u64, worker: u64) -> Self {
        WorkerThread { seed, worker, known: HashMap::new() }
    }

    /// Makes some calls.
    fn sit(
        &mut self,
        numbers: std::ops::Range<usize>,
        store: Arc<dyn Store>,
        eyes: &Engine,
        history: &Marks,
    ) -> Result<(), Fault> {
        let runtime = SeededRuntime::new(self.seed, self.worker);
        let engine = runtime.engine(store);
        for number in numbers {
            let who = CallId { worker: self.worker, number };
            let known = self.known.entry(calls::conversation(self.seed, who)?).or_default();
            let picks = known.pick(self.seed, who, eyes);
            let ask = CrowdCall::new(self.seed, who, &picks)?;
            runtime.step(number);
            history.line(format!("{who} begun {picks}\n"))?;
            let answer = match &ask {
                CrowdCall::Change(..) => ask.run(&engine),
                CrowdCall::Look(..) => ask.run(eyes),
            };
            history.line(format!("{who} ended {}\n", answer.line))?;
            known.learn(answer);
        }
        Ok(())
    }
}

impl KnownRecords {
    fn pick(&self, seed: u64, who: CallId, eyes: &Engine) -> Picks {
        let mut chance = who.chance(seed, 13);
        let kind = calls::kind(seed, who);
        let turn = match kind {
            CallKind::Expecting => self.tip,
            _ => one(&self.turns, &mut chance),
        };
        let mut picks = Picks { turn, branch: one(&self.branches, &mut chance), word: None };
        if let (CallKind::Purge, Some(turn)) = (kind, turn) {
            let target = PurgeTarget::Turn(TurnRef::of(turn));
            let asked = eyes.purge(&Call::by("asking"), Purge { target, confirm: None });
            // What cannot be erased is asked for all the same, and refused.
            picks.word = asked.ok().and_then(|would| would.confirm);
        }
        picks
    }

    fn learn(&mut self, answer: CallAnswer) {
        self.tip = answer.tip.or(self.tip);
        remember(&mut self.turns, answer.turns);
        remember(&mut self.branches, answer.branches);
    }
}

fn one<T: Clone>(from: &VecDeque<T>, chance: &mut Chance) -> Option<T> {
    from.get(chance.below(from.len())).cloned()
}

fn remember<T>(known: &mut VecDeque<T>, new: Vec<T>) {
    let skipped = new.len().saturating_sub(REMEMBERED);
    known.extend(new.into_iter().skip(skipped));
    known.drain(..known.len().saturating_sub(REMEMBERED));
}

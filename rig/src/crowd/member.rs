//! A process of a crowd: threads that work on one store, each choosing calls by earlier answers.
//!
//! The process closes and reopens the store from time to time while the others continue.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tine_core::{ConversationId, Limits, Name, TurnId};
use tine_engine::{Call, Engine, Purge, PurgeTarget, SystemClock, SystemEntropy, TurnRef};
use tine_sqlite::SqliteStore;
use tine_store::Store;

use super::calls::{self, CallAnswer, CallId, CallKind, CrowdCall, Picks};
use crate::RigError;
use crate::defects::{Defect, Defective};
use crate::marks::Marks;
use crate::seeded::SeededRuntime;
use crate::seeded_rng::SeededRng;

/// Calls of a thread between opening and closing the store.
const CALLS_PER_SESSION: usize = 25;
/// Turns and branches per conversation that a thread remembers.
const MAX_REMEMBERED: usize = 40;

#[derive(Clone, Debug, clap::Args)]
pub struct Member {
    /// The store's folder.
    #[arg(long)]
    pub store: PathBuf,
    /// The history file of all processes.
    #[arg(long)]
    pub history: PathBuf,
    /// The seed of all random choices.
    #[arg(long)]
    pub seed: u64,
    /// The number of the first thread.
    #[arg(long)]
    pub worker: u64,
    /// The number of threads.
    #[arg(long)]
    pub threads: usize,
    /// Calls per thread.
    #[arg(long)]
    pub calls: usize,
    /// A defect to seed into the store.
    #[arg(long)]
    pub defect: Option<Defect>,
}

impl Member {
    /// Returns the command line.
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

    /// Runs the threads.
    pub fn run(&self) -> Result<(), RigError> {
        let history = Marks::open(&self.history)?;
        let mut hands: Vec<WorkerThread> = (self.worker..)
            .take(self.threads)
            .map(|worker| WorkerThread::new(self.seed, worker))
            .collect();
        for from in (0..self.calls).step_by(CALLS_PER_SESSION) {
            let to = self.calls.min(from + CALLS_PER_SESSION);
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
                Ok::<(), RigError>(())
            })?;
        }
        Ok(())
    }
}

/// A thread, and what it has seen.
struct WorkerThread {
    seed: u64,
    worker: u64,
    known: HashMap<ConversationId, KnownRecords>,
}

/// What a thread has seen of a conversation.
#[derive(Default)]
struct KnownRecords {
    turns: VecDeque<TurnId>,
    branches: VecDeque<Name>,
    /// The tip of `main`.
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
    ) -> Result<(), RigError> {
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
        let mut rng = who.rng(seed, 13);
        let kind = calls::kind(seed, who);
        let turn = match kind {
            CallKind::Expecting => self.tip,
            _ => one(&self.turns, &mut rng),
        };
        let mut picks = Picks { turn, branch: one(&self.branches, &mut rng), word: None };
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

fn one<T: Clone>(from: &VecDeque<T>, rng: &mut SeededRng) -> Option<T> {
    from.get(rng.below(from.len())).cloned()
}

fn remember<T>(known: &mut VecDeque<T>, new: Vec<T>) {
    let skipped = new.len().saturating_sub(MAX_REMEMBERED);
    known.extend(new.into_iter().skip(skipped));
    known.drain(..known.len().saturating_sub(MAX_REMEMBERED));
}

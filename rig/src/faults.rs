//! The n-th call fails: for every n of a workload, in every way, once and for ever.
//!
//! The program may report an error or go on; it may not crash or hang. Afterwards, without
//! faults, the store must open, and hold what the answers explain: every acknowledged call, no
//! refused one, and each failed one wholly or not at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tine_core::Digest;
use tine_store::{MemoryStore, Store};

use crate::RigError;
use crate::check;
use crate::defects::Defect;
use crate::journal::{self, Act};
use crate::marks::{self, Mark};
use crate::parallel;
use crate::plan::WorkPlan;
use crate::programs::{Programs, scratch};
use crate::report::{BrokenGuarantee, Tally, Violation};
use crate::request::RequestEnd;
use crate::seeded::SeededRuntime;
use crate::seeded_rng::SeededRng;
use crate::shim::{FailAt, FailureMode, Layer};
use crate::state;
use crate::workload::{self, EXIT_CALLS_FAILED, Exit, WorkloadArgs};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The number of workloads; each of their calls fails once.
    #[arg(long, default_value_t = 50)]
    pub workloads: usize,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Steps per workload.
    #[arg(long, default_value_t = 5)]
    pub steps: usize,
    /// The distance between calls that fail.
    #[arg(long, default_value_t = 1)]
    pub every: usize,
    /// Workloads at a time.
    #[arg(long, default_value_t = 1)]
    pub jobs: usize,
    /// Only this workload.
    #[arg(long)]
    pub workload: Option<usize>,
    /// Only this call.
    #[arg(long)]
    pub call: Option<usize>,
    /// Stops at the first violation.
    #[arg(long)]
    pub stop: bool,
    /// A defect to seed into the store.
    #[arg(long)]
    pub defect: Option<Defect>,
}

/// The ways in which a call fails.
const FAILURE_MODES: [(FailureMode, bool); 6] = [
    (FailureMode::Io, false),
    (FailureMode::Io, true),
    (FailureMode::Full, false),
    (FailureMode::Full, true),
    (FailureMode::Short, false),
    (FailureMode::Short, true),
];

/// Lets every call of the workloads fail.
pub fn run(programs: &Programs, options: &Options) -> Result<Tally, RigError> {
    let numbers: Vec<usize> = match options.workload {
        Some(number) => vec![number],
        None => (0..options.workloads).collect(),
    };
    parallel::run(&numbers, options.jobs, options.stop, "runs", |number| {
        Workload::new(programs, options, number)?.every_call()
    })
}

struct Workload<'w> {
    programs: &'w Programs,
    options: &'w Options,
    number: usize,
    plan: WorkPlan,
    /// Steps in the store before faults begin; half of the workloads create their stores.
    before: usize,
    reads: bool,
    scratch: tempfile::TempDir,
}

impl<'w> Workload<'w> {
    fn new(programs: &'w Programs, options: &'w Options, number: usize) -> Result<Self, RigError> {
        let mut rng = SeededRng::at(options.seed ^ 0xfa17, &[u64::try_from(number)?]);
        let before = if number.is_multiple_of(2) { 0 } else { 10 + rng.below(30) };
        let plan = WorkPlan::new(rng.number(), 0, before + options.steps)?;
        let reads = number % 4 == 3;
        let workload =
            Workload { programs, options, number, plan, before, reads, scratch: scratch()? };
        if before > 0 {
            let work = WorkloadArgs { to: before, ..workload.work("prepared") };
            match workload::wait(work.command(&programs.workload).spawn()?)? {
                (Exit::Code(0), _) => {}
                (exit, why) => {
                    return Err(format!("the workload ended with {exit:?}: {why}").into());
                }
            }
        }
        Ok(workload)
    }

    /// Executes the steps under test on a store.
    fn work(&self, store: &str) -> WorkloadArgs {
        WorkloadArgs {
            store: self.scratch.path().join(store),
            marks: self.scratch.path().join("marks"),
            seed: self.plan.seed,
            worker: 0,
            from: vec![if store == "prepared" { 0 } else { self.before }],
            to: self.plan.steps.len(),
            bulk: 0,
            reopen: (store != "prepared").then_some(3),
            defect: self.options.defect,
        }
    }

    fn every_call(&self) -> Result<Tally, RigError> {
        let mut tally = Tally::default();
        // Without a fault first: so many calls there are.
        let journal = self.scratch.path().join("journal");
        let layer = Layer { journal: Some(journal.clone()), ..self.layer(None) };
        if let Err(violation) = self.once(&layer, &mut tally)? {
            tally.record_violation(violation);
            return Ok(tally);
        }
        let entries = journal::read(&journal)?;
        let calls: Vec<Act> = journal::calls(&entries).map(|entry| entry.act).collect();
        let only = self.options.call;
        for (call, act) in (1..).zip(&calls) {
            if only.is_some_and(|only| only != call) || call % self.options.every.max(1) != 0 {
                continue;
            }
            for (how, forever) in FAILURE_MODES {
                if how == FailureMode::Short && *act != Act::Write {
                    continue;
                }
                let fail = FailAt { call, how, forever };
                if let Err(violation) = self.once(&self.layer(Some(fail)), &mut tally)? {
                    let Options { steps, seed, .. } = self.options;
                    let replay = format!(
                        "faults --seed {seed} --steps {steps} --workload {} --call {call}",
                        self.number
                    );
                    let what = format!("fault {fail} ({act:?}): {}", violation.what);
                    tally.record_violation(Violation { what, replay, ..violation });
                    if self.options.stop {
                        return Ok(tally);
                    }
                }
            }
        }
        Ok(tally)
    }

    fn layer(&self, fail: Option<FailAt>) -> Layer {
        Layer {
            root: self.scratch.path().join("store"),
            fail,
            reads: self.reads,
            free_sync: true,
            ..Layer::default()
        }
    }

    /// Runs a workload once and checks the store.
    fn once(&self, layer: &Layer, tally: &mut Tally) -> Result<Result<(), Violation>, RigError> {
        let work = self.work("store");
        copy(&self.scratch.path().join("prepared"), &work.store)?;
        for old in layer.journal.iter().chain([&work.marks]) {
            if old.exists() {
                std::fs::remove_file(old)?;
            }
        }
        let mut command = work.command(&self.programs.workload);
        self.programs.shim.under(&mut command, layer)?;
        tally.cases += 1;
        let (exit, complaint) = workload::wait(command.spawn()?)?;
        match exit {
            Exit::Code(0 | EXIT_CALLS_FAILED) => {}
            other => {
                let what = format!("it ended with {other:?}: {complaint}");
                return Ok(Err(Violation::new(BrokenGuarantee::Crashed, what)));
            }
        }
        let marks_read: Vec<Mark> =
            marks::read(&work.marks)?.into_iter().map(|(_, mark)| mark).collect();
        tally.calls += marks_read.iter().filter(|mark| matches!(mark, Mark::Done(..))).count();
        self.look(&work.store, &marks_read)
    }

    fn look(&self, folder: &Path, marks_read: &[Mark]) -> Result<Result<(), Violation>, RigError> {
        let done = marks_read.iter().any(|mark| matches!(mark, Mark::Done(..)));
        let store: Arc<dyn Store> = match check::open(folder, self.before > 0 || done) {
            Ok(store) => Arc::new(store),
            Err(violation) => return Ok(Err(violation)),
        };
        let engine = SeededRuntime::new(self.plan.seed, 0).engine(Arc::clone(&store));
        if let Err(violation) = check::verify(&engine) {
            return Ok(Err(violation));
        }
        let text = state::text(&*store, &self.plan.project)?;
        let found = state::digest(&text);
        let explained = self.explained(marks_read)?;
        if explained.is_empty() {
            let what = "no course of events gives the answers that were given";
            return Ok(Err(Violation::new(BrokenGuarantee::Inconsistent, what)));
        }
        if explained.contains(&found) {
            return Ok(Ok(()));
        }
        let wanted = self.plan.text_after(self.before + marks_read.len() / 2, &[])?;
        let difference = state::first_difference(&wanted, &text);
        let what = format!("the answers {} do not explain it: {difference}", summary(marks_read));
        Ok(Err(Violation::new(BrokenGuarantee::Lost, what)))
    }

    /// Returns every state that the answers allow: each failed call took effect, or did not.
    fn explained(&self, marks_read: &[Mark]) -> Result<Vec<Digest>, RigError> {
        let mut answers = BTreeMap::new();
        for mark in marks_read {
            match mark {
                Mark::Begun(step) => answers.entry(*step).or_insert(None),
                Mark::Done(step, _)
                | Mark::Refused(step)
                | Mark::Full(step)
                | Mark::Unswept(step)
                | Mark::Failed(step) => &mut *answers
                    .entry(*step)
                    .and_modify(|answer| *answer = Some(mark))
                    .or_insert(Some(mark)),
            };
        }
        let unknown: Vec<usize> = answers
            .iter()
            .filter(|(_, answer)| matches!(answer, None | Some(Mark::Failed(_))))
            .map(|(step, _)| *step)
            .collect();
        let mut states = Vec::new();
        for taken in 0..1_usize << unknown.len().min(8) {
            let took_effect = |step: usize| {
                let place = unknown.iter().position(|unknown| *unknown == step);
                place.is_some_and(|place| taken >> place & 1 == 1)
            };
            states.extend(self.course(&answers, took_effect)?);
        }
        Ok(states)
    }

    /// Returns the state after one sequence of events, if that gives the answers.
    fn course(
        &self,
        answers: &BTreeMap<usize, Option<&Mark>>,
        took_effect: impl Fn(usize) -> bool,
    ) -> Result<Option<Digest>, RigError> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = SeededRuntime::new(self.plan.seed, 0);
        let engine = runtime.engine(Arc::clone(&store));
        for (number, step) in self.plan.steps.iter().enumerate() {
            let answer = answers.get(&number).copied();
            let before = number < self.before;
            let runs = match answer {
                None => before,
                Some(Some(Mark::Done(..) | Mark::Refused(_) | Mark::Unswept(_))) => true,
                Some(_) => took_effect(number),
            };
            if !runs {
                continue;
            }
            runtime.step(number);
            let ended = step.request.run(&engine, &step.call);
            let fits = match (answer.flatten(), &ended) {
                (Some(Mark::Done(_, answer_digest)), RequestEnd::Done(answer)) => {
                    *answer_digest == marks::answer_digest(&answer.line)
                }
                (Some(Mark::Unswept(_)), RequestEnd::Done(_)) => true,
                (Some(Mark::Done(..) | Mark::Unswept(_)), _) => false,
                (Some(Mark::Refused(_)), ended) => matches!(ended, RequestEnd::Refused(_)),
                _ => true,
            };
            if !fits {
                return Ok(None);
            }
        }
        Ok(Some(state::digest(&state::text(&*store, &self.plan.project)?)))
    }
}

fn summary(marks_read: &[Mark]) -> String {
    let words = marks_read.iter().filter_map(|mark| match mark {
        Mark::Begun(_) => None,
        Mark::Done(step, _) => Some(format!("{step} done")),
        Mark::Refused(step) => Some(format!("{step} refused")),
        Mark::Full(step) => Some(format!("{step} full")),
        Mark::Unswept(step) => Some(format!("{step} unswept")),
        Mark::Failed(step) => Some(format!("{step} failed")),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Replaces a folder by a copy of another, or removes it if there is no other.
fn copy(from: &Path, to: &Path) -> Result<(), RigError> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    if from.exists() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

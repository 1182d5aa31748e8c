//! Opens what is left of a store and compares it with what had been acknowledged.
//!
//! A worker's project must be exactly as its plan says after the last answered step, or after
//! the one step beyond it that had begun. Nothing in between, nothing else, and everything that
//! `verify` recomputes must fit. Afterwards calls with a key are made again and must add nothing,
//! and the work must go on from there.

use std::path::Path;
use std::sync::Arc;

use tine_engine::Engine;
use tine_sqlite::{OpenOptions, SqliteStore};
use tine_store::{OpenMode, Store, StoreError};

use crate::marks::Progress;
use crate::plan::WorkPlan;
use crate::report::{BrokenGuarantee, Violation};
use crate::seeded::SeededRuntime;
use crate::seeded_rng::SeededRng;
use crate::state;

/// What the store must contain of one worker.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'e> {
    pub plan: &'e WorkPlan,
    pub progress: Progress,
}

/// The result of a check without violations.
#[derive(Clone, Debug, Default)]
pub struct CheckedStore {
    /// Acknowledged calls that were checked.
    pub calls: usize,
    /// The number of steps of each worker in the store.
    pub positions: Vec<usize>,
}

/// Calls with a key that are repeated for each worker.
const REPEATS: usize = 2;

/// Opens a store as its owner would after a crash.
pub fn open(folder: &Path, anything_acknowledged: bool) -> Result<SqliteStore, Violation> {
    let mode = if anything_acknowledged { OpenMode::Existing } else { OpenMode::Create };
    SqliteStore::open_with(folder, OpenOptions { mode, ..OpenOptions::default() })
        .map_err(|error| Violation::new(BrokenGuarantee::Unopenable, error.to_string()))
}

/// Verifies everything in a store.
pub fn verify(engine: &Engine) -> Result<(), Violation> {
    let verified = engine
        .verify()
        .map_err(|error| Violation::new(BrokenGuarantee::Inconsistent, error.to_string()))?;
    match verified.problems.first() {
        None => Ok(()),
        Some(problem) => {
            let what = format!("verify: {}: {}", problem.record, problem.why);
            Err(Violation::new(BrokenGuarantee::Inconsistent, what))
        }
    }
}

/// Checks that everything acknowledged to the workers is stored.
pub fn check_store(
    folder: &Path,
    expected: &[Expected<'_>],
    rng: &mut SeededRng,
) -> Result<CheckedStore, Violation> {
    let acknowledged = expected.iter().any(|worker| worker.progress.answered > 0);
    let store: Arc<dyn Store> = Arc::new(open(folder, acknowledged)?);
    let mut checked = CheckedStore::default();
    let mut verified = false;
    for worker in expected {
        let runtime = SeededRuntime::new(worker.plan.seed, worker.plan.worker);
        let engine = runtime.engine(Arc::clone(&store));
        if !verified {
            verify(&engine)?;
            verified = true;
        }
        let mut position = position(&*store, worker)?;
        repeat(&*store, &engine, &runtime, worker.plan, position, rng)?;
        if rng.one_in(3) && position < worker.plan.steps.len() {
            go_on(&*store, &engine, &runtime, worker.plan, position)?;
            position += 1;
        }
        checked.calls += worker.progress.answered;
        checked.positions.push(position);
    }
    Ok(checked)
}

fn unreadable(error: &StoreError) -> Violation {
    Violation::new(BrokenGuarantee::Inconsistent, format!("reading it all: {error}"))
}

/// Returns how many steps of the plan are in the store.
fn position(store: &dyn Store, worker: &Expected<'_>) -> Result<usize, Violation> {
    let Expected { plan, progress } = worker;
    let text = state::text(store, &plan.project).map_err(|error| unreadable(&error))?;
    let found = state::digest(&text);
    let last = (progress.answered + usize::from(progress.begun)).min(plan.steps.len());
    // The furthest one: a step that was refused leaves the state as it was.
    let allowed = (progress.answered..=last).rev();
    if let Some(position) = allowed.into_iter().find(|steps| plan.states[*steps] == found) {
        return Ok(position);
    }
    let earlier = plan.states[..progress.answered].iter().rposition(|state| *state == found);
    Err(match earlier {
        Some(steps) => Violation::new(
            BrokenGuarantee::Lost,
            format!(
                "worker {} was told of {} steps, and only {steps} are there; the next was {:?}",
                plan.worker, progress.answered, plan.steps[steps].request
            ),
        ),
        None => {
            let wanted = plan.text_after(progress.answered, &[]).unwrap_or_default();
            Violation::new(
                BrokenGuarantee::Inconsistent,
                format!(
                    "worker {} after {} answered steps: {}",
                    plan.worker,
                    progress.answered,
                    state::first_difference(&wanted, &text)
                ),
            )
        }
    })
}

/// Repeats calls with a key: they must get the first answer and add nothing.
fn repeat(
    store: &dyn Store,
    engine: &Engine,
    runtime: &SeededRuntime,
    plan: &WorkPlan,
    position: usize,
    rng: &mut SeededRng,
) -> Result<(), Violation> {
    let keyed = plan.keyed_before(position);
    // The newest is the one whose answer may have been lost on the way.
    let mut again: Vec<usize> = keyed.last().copied().into_iter().collect();
    again.extend((1..REPEATS).filter_map(|_| rng.pick(&keyed).copied()));
    for number in again {
        let step = &plan.steps[number];
        runtime.step(plan.steps.len() + 1);
        let ended = step.request.run(engine, &step.call);
        if ended != step.ended {
            let what = format!("step {number}, made again: {ended:?} instead of {:?}", step.ended);
            return Err(Violation::new(BrokenGuarantee::Repeated, what));
        }
        let text = state::text(store, &plan.project).map_err(|error| unreadable(&error))?;
        if state::digest(&text) != plan.states[position] {
            let wanted = plan.text_after(position, &[]).unwrap_or_default();
            let difference = state::first_difference(&wanted, &text);
            let what = format!("step {number}, made again, left a change: {difference}");
            return Err(Violation::new(BrokenGuarantee::Repeated, what));
        }
    }
    Ok(())
}

/// Makes the next step, to check that the store can still be written.
fn go_on(
    store: &dyn Store,
    engine: &Engine,
    runtime: &SeededRuntime,
    plan: &WorkPlan,
    position: usize,
) -> Result<(), Violation> {
    let step = &plan.steps[position];
    runtime.step(position);
    let ended = step.request.run(engine, &step.call);
    if ended != step.ended {
        let what = format!("step {position} after recovery: {ended:?} instead of {:?}", step.ended);
        return Err(Violation::new(BrokenGuarantee::Inconsistent, what));
    }
    let text = state::text(store, &plan.project).map_err(|error| unreadable(&error))?;
    if state::digest(&text) != plan.states[position + 1] {
        let wanted = plan.text_after(position + 1, &[]).unwrap_or_default();
        let difference = state::first_difference(&wanted, &text);
        let what = format!("after step {position} on the recovered store: {difference}");
        return Err(Violation::new(BrokenGuarantee::Inconsistent, what));
    }
    Ok(())
}

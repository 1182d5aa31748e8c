//! The workload: workers that execute their plans on one embedded store.
//!
//! It prints what it begins and what was acknowledged ([`crate::marks`]), and nothing else. It does
//! not depend on whether the shim is loaded.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tine_sqlite::SqliteStore;
use tine_store::Store;

use crate::RigError;
use crate::defects::{Defect, Defective};
use crate::marks::Marks;
use crate::plan::WorkPlan;
use crate::request::RequestEnd;
use crate::seeded::SeededRuntime;

/// The exit code of a workload that stopped because calls failed.
pub const EXIT_CALLS_FAILED: i32 = 3;

/// Failures after which a worker gives up.
const FAILURES: usize = 4;

/// How long a child may take before it counts as hung.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, clap::Args)]
pub struct WorkloadArgs {
    /// The store's folder.
    #[arg(long)]
    pub store: PathBuf,
    /// The file for marks.
    #[arg(long)]
    pub marks: PathBuf,
    /// The seed of the plans.
    #[arg(long)]
    pub seed: u64,
    /// The number of the first worker.
    #[arg(long, default_value_t = 0)]
    pub worker: u64,
    /// The first step of each worker; their number is the number of workers.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub from: Vec<usize>,
    /// The step before which workers stop.
    #[arg(long)]
    pub to: usize,
    /// Messages that the second step appends at once.
    #[arg(long, default_value_t = 0)]
    pub bulk: usize,
    /// Closes and reopens the store after this many steps (with one worker only).
    #[arg(long)]
    pub reopen: Option<usize>,
    /// A defect to seed into the store.
    #[arg(long)]
    pub defect: Option<Defect>,
}

impl WorkloadArgs {
    /// Returns the command line.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        command.arg("--store").arg(&self.store).arg("--marks").arg(&self.marks);
        command.args(["--seed", &self.seed.to_string(), "--worker", &self.worker.to_string()]);
        let from: Vec<String> = self.from.iter().map(ToString::to_string).collect();
        command.args(["--from", &from.join(","), "--to", &self.to.to_string()]);
        command.args(["--bulk", &self.bulk.to_string()]);
        if let Some(reopen) = self.reopen {
            command.args(["--reopen", &reopen.to_string()]);
        }
        if let Some(defect) = self.defect.filter(|defect| defect.is_in_store()) {
            command.args(["--defect", &defect.name()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn open(&self) -> tine_store::Result<Arc<dyn Store>> {
        let store = SqliteStore::open(&self.store)?;
        Ok(match self.defect {
            Some(defect) => Arc::new(Defective::new(store, defect)),
            None => Arc::new(store),
        })
    }

    /// Runs the workers and returns the exit code.
    pub fn run(&self) -> Result<i32, RigError> {
        let marks = Marks::open(&self.marks)?;
        let mut plans = Vec::new();
        for worker in (self.worker..).take(self.from.len()) {
            plans.push(WorkPlan::steps_only(self.seed, worker, self.to, self.bulk)?);
        }
        let store = match self.open() {
            Ok(store) => store,
            Err(error) => return Ok(gave_up(&error)),
        };
        if let ([plan], [from]) = (plans.as_slice(), self.from.as_slice()) {
            return self.alone(plan, *from, store, &marks);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = plans
                .iter()
                .zip(&self.from)
                .map(|(plan, from)| {
                    let (store, marks) = (Arc::clone(&store), &marks);
                    scope.spawn(move || together(plan, *from, store, marks))
                })
                .collect();
            let mut code = 0;
            for thread in threads {
                code = code.max(thread.join().map_err(|_| "a worker panicked")??);
            }
            Ok(code)
        })
    }

    /// Runs one worker, which reopens the store now and then and after failures.
    fn alone(
        &self,
        plan: &WorkPlan,
        from: usize,
        store: Arc<dyn Store>,
        marks: &Marks,
    ) -> Result<i32, RigError> {
        let runtime = SeededRuntime::new(plan.seed, plan.worker);
        let mut engine = Some(runtime.engine(store));
        let mut failures = 0;
        for (number, step) in plan.steps.iter().enumerate().skip(from) {
            let due = self.reopen.is_some_and(|every| number.is_multiple_of(every.max(1)));
            if engine.is_none() || due && number > from {
                // Closed before it is opened: the last connection writes the log back.
                drop(engine.take());
                match self.open() {
                    Ok(store) => engine = Some(runtime.engine(store)),
                    Err(error) => return Ok(gave_up(&error)),
                }
            }
            let Some(open) = &engine else {
                return Ok(EXIT_CALLS_FAILED);
            };
            runtime.step(number);
            marks.begun(plan.worker, number)?;
            let ended = step.request.run(open, &step.call);
            marks.ended(plan.worker, number, &ended)?;
            match ended {
                RequestEnd::Done(_) | RequestEnd::Refused(_) => {}
                RequestEnd::Full | RequestEnd::Unswept => failures += 1,
                RequestEnd::Failed(_) => {
                    failures += 1;
                    engine = None;
                }
            }
            if failures >= FAILURES {
                return Ok(EXIT_CALLS_FAILED);
            }
        }
        Ok(0)
    }
}

/// Reports why the workload stops.
fn gave_up(error: &tine_store::StoreError) -> i32 {
    eprintln!("the store does not open: {error}");
    EXIT_CALLS_FAILED
}

/// Runs several workers in this process, on one store.
fn together(
    plan: &WorkPlan,
    from: usize,
    store: Arc<dyn Store>,
    marks: &Marks,
) -> Result<i32, RigError> {
    let runtime = SeededRuntime::new(plan.seed, plan.worker);
    let engine = runtime.engine(store);
    for (number, step) in plan.steps.iter().enumerate().skip(from) {
        runtime.step(number);
        marks.begun(plan.worker, number)?;
        let ended = step.request.run(&engine, &step.call);
        marks.ended(plan.worker, number, &ended)?;
        if matches!(ended, RequestEnd::Full | RequestEnd::Unswept | RequestEnd::Failed(_)) {
            return Ok(EXIT_CALLS_FAILED);
        }
    }
    Ok(0)
}

#[derive(Clone, Debug)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a signal, perhaps of this process.
    Signal,
    /// It hung and was killed.
    Hung,
}

/// Waits for a child of this process, and reads its standard error.
pub fn wait(mut child: Child) -> Result<(Exit, String), RigError> {
    let since = Instant::now();
    let exit = loop {
        match child.try_wait()? {
            Some(status) => break status.code().map_or(Exit::Signal, Exit::Code),
            None if since.elapsed() > ANSWER_TIMEOUT => {
                child.kill()?;
                child.wait()?;
                break Exit::Hung;
            }
            None => std::thread::sleep(Duration::from_micros(500)),
        }
    };
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        use std::io::Read as _;
        // What is not text is no complaint of ours.
        let _ = stderr.read_to_string(&mut complaint);
    }
    Ok((exit, complaint))
}

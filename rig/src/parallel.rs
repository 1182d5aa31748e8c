//! Runs workloads in parallel.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::RigError;
use crate::report::Tally;

/// Runs the numbered workloads in `jobs` threads, prints the progress after each, and adds up the
/// results. With `stop`, a thread stops at its first violation. `cases` is the unit of the progress.
pub(crate) fn run(
    numbers: &[usize],
    jobs: usize,
    stop: bool,
    cases: &str,
    workload: impl Fn(usize) -> Result<Tally, RigError> + Sync,
) -> Result<Tally, RigError> {
    let (next, started) = (AtomicUsize::new(0), Instant::now());
    let lane = || -> Result<Tally, RigError> {
        let mut tally = Tally::default();
        while let Some(number) = numbers.get(next.fetch_add(1, Ordering::SeqCst)) {
            tally.add(workload(*number)?);
            let broken = tally.broken.iter().sum::<usize>();
            let since = started.elapsed().as_secs_f64();
            eprintln!("workload {number}: {} {cases}, {broken} broken, {since:.0} s", tally.cases);
            if stop && !tally.is_clean() {
                break;
            }
        }
        Ok(tally)
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let parallel: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(lane)).collect();
        for lane in parallel {
            tally.add(lane.join().map_err(|_| "a lane of the rig panicked")??);
        }
        Ok::<(), RigError>(())
    })?;
    Ok(tally)
}

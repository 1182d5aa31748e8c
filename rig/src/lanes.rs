//! Workloads side by side: so many lanes, each of which takes the next one until none is left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::Fault;
use crate::report::Tally;

/// Does the workloads of these numbers in `jobs` lanes, says after each how far its lane has come,
/// and adds up what they found. A lane that found something stops, if that is wanted. What `cases`
/// count is what they are called.
pub(crate) fn run(
    numbers: &[usize],
    jobs: usize,
    stop: bool,
    cases: &str,
    workload: impl Fn(usize) -> Result<Tally, Fault> + Sync,
) -> Result<Tally, Fault> {
    let (next, started) = (AtomicUsize::new(0), Instant::now());
    let lane = || -> Result<Tally, Fault> {
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
        let lanes: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(lane)).collect();
        for lane in lanes {
            tally.add(lane.join().map_err(|_| "a lane of the rig panicked")??);
        }
        Ok::<(), Fault>(())
    })?;
    Ok(tally)
}

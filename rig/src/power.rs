//! Power loss: a workload runs once with a journal, and the disk is checked in states in which it
//! could be after a power loss at each of its calls.
//!
//! Some images are not only opened but worked on under the shim and cut again: a power loss during
//! the recovery from a power loss, during the checkpoint that ends it, or in the work that follows.
//!
//! A workload with one worker makes the same calls each time, so a replay gives the same image.
//! Threads do not, and may need several replays.

use std::path::{Path, PathBuf};

use crate::RigError;
use crate::check::{self, Expected};
use crate::defects::Defect;
use crate::disk::{self, Disk, Image};
use crate::journal::{self, Act, JournalEntry};
use crate::marks::{self, Progress};
use crate::parallel;
use crate::plan::WorkPlan;
use crate::programs::{Programs, scratch};
use crate::report::{BrokenGuarantee, Tally, Violation};
use crate::seeded_rng::SeededRng;
use crate::shim::Layer;
use crate::workload::{self, EXIT_CALLS_FAILED, Exit, WorkloadArgs};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The number of images.
    #[arg(long, default_value_t = 60_000)]
    pub images: usize,
    /// The number of workloads, over which the images are spread.
    #[arg(long, default_value_t = 60)]
    pub workloads: usize,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Workloads at a time.
    #[arg(long, default_value_t = 1)]
    pub jobs: usize,
    /// Only this workload.
    #[arg(long)]
    pub workload: Option<usize>,
    /// Only images of a power loss at this entry of the journal.
    #[arg(long)]
    pub cut: Option<usize>,
    /// Only power losses after the first acknowledgement, not during the creation of the store.
    #[arg(long)]
    pub acknowledged: bool,
    /// Stops at the first violation.
    #[arg(long)]
    pub stop: bool,
    /// A defect to seed into the store.
    #[arg(long)]
    pub defect: Option<Defect>,
}

/// The parameters of a workload.
#[derive(Clone, Copy, Debug)]
struct WorkloadShape {
    workers: usize,
    steps: usize,
    reopen: Option<usize>,
    /// Messages that the second step appends at once.
    bulk: usize,
}

/// Returns the parameters of a workload. Most close the store now and then, which checkpoints; some
/// run in threads that share commits; a few continue until the log is checkpointed automatically, or
/// until the store flushes its look-up entries, which it does in batches of thousands.
fn shape(number: usize, rng: &mut SeededRng) -> WorkloadShape {
    let plain = WorkloadShape { workers: 1, steps: 20 + rng.below(30), reopen: None, bulk: 0 };
    match number % 16 {
        3 | 6 | 11 => WorkloadShape { workers: 4, steps: 10 + rng.below(10), ..plain },
        7 => WorkloadShape { steps: 160, ..plain },
        BULK_WORKLOAD => WorkloadShape { steps: 60, bulk: BULK, ..plain },
        _ => WorkloadShape { reopen: Some(4 + rng.below(12)), ..plain },
    }
}

/// The workload, of sixteen, with a bulk append.
const BULK_WORKLOAD: usize = 15;
/// A little less than the number of entries that triggers a flush.
const BULK: usize = 8_100;
/// The cost of an image with a bulk append, compared with other images.
const BULK_COST: usize = 25;

/// One of this many images is cut again during its recovery.
const NESTING: usize = 24;
/// How often such an image is cut.
const NESTED_CUTS: usize = 6;
/// Steps on a recovered image before it is cut again.
const NESTED_STEPS: usize = 3;

/// Checks images of many workloads.
pub fn run(programs: &Programs, options: &Options) -> Result<Tally, RigError> {
    let numbers: Vec<usize> = match options.workload {
        Some(number) => vec![number],
        None => (0..options.workloads.max(1)).collect(),
    };
    let share = options.images.div_ceil(options.workloads.max(1));
    parallel::run(&numbers, options.jobs, options.stop, "images", |number| {
        Workload::record(programs, options, number)?.look(share)
    })
}

/// A workload that ran once.
struct Workload<'w> {
    programs: &'w Programs,
    options: &'w Options,
    number: usize,
    bulk: usize,
    plans: Vec<WorkPlan>,
    entries: Vec<JournalEntry>,
    scratch: tempfile::TempDir,
}

impl<'w> Workload<'w> {
    /// Runs a workload and keeps its journal.
    fn record(
        programs: &'w Programs,
        options: &'w Options,
        number: usize,
    ) -> Result<Self, RigError> {
        let mut rng = SeededRng::at(options.seed, &[u64::try_from(number)?]);
        let seed = rng.number();
        let shape = shape(number, &mut rng);
        let mut plans = Vec::new();
        for worker in (0..).take(shape.workers) {
            plans.push(WorkPlan::with_bulk(seed, worker, shape.steps, shape.bulk)?);
        }
        let scratch = scratch()?;
        let work = WorkloadArgs {
            store: scratch.path().join("store"),
            marks: scratch.path().join("marks"),
            seed,
            worker: 0,
            from: vec![0; shape.workers],
            to: shape.steps,
            bulk: shape.bulk,
            reopen: shape.reopen,
            defect: options.defect,
        };
        // Nothing goes wrong in this run, so nothing may be wrong with it.
        let entries = journaled(programs, &work)?.map_err(|violation| violation.what)?;
        Ok(Workload { programs, options, number, bulk: shape.bulk, plans, entries, scratch })
    }

    /// Cuts the power at every entry, with images spread evenly over them.
    fn look(&self, images: usize) -> Result<Tally, RigError> {
        let mut tally = Tally::default();
        let mut disk = Disk::new();
        let mut seen = vec![Progress::default(); self.plans.len()];
        let mut checkpointing = false;
        let shares = self.shares(images)?;
        for (cut, entry) in self.entries.iter().enumerate() {
            disk.apply(entry)?;
            see(&mut seen, entry);
            checkpointing = is_checkpointing(checkpointing, entry);
            if self.options.cut.is_some_and(|only| only != cut) {
                continue;
            }
            for number in 0..shares[cut] {
                let place = [self.number, cut, number].map(|part| part as u64);
                let mut rng = SeededRng::at(self.options.seed ^ 0x5eed, &place);
                let image = disk.image(&mut rng);
                let nested = rng.one_in(NESTING);
                tally.checkpoints += usize::from(checkpointing && !nested);
                let outcome = match nested {
                    true => self.nested(&image, &seen, &mut rng, &mut tally)?,
                    false => self.check_store(&image, &seen, &mut rng, &mut tally)?,
                };
                if let Err(violation) = outcome {
                    tally.record_violation(self.with_replay(violation, cut));
                    if self.options.stop {
                        return Ok(tally);
                    }
                }
            }
        }
        Ok(tally)
    }

    /// Returns the number of images for each entry. If nothing is pending, all images are equal and few
    /// are enough; during a checkpoint, more are checked.
    fn shares(&self, images: usize) -> Result<Vec<usize>, RigError> {
        let mut disk = Disk::new();
        let mut checkpointing = false;
        let images = if self.bulk > 0 { images.div_ceil(BULK_COST) } else { images };
        let mut weights = Vec::with_capacity(self.entries.len());
        let mut seen = vec![Progress::default(); self.plans.len()];
        for entry in &self.entries {
            disk.apply(entry)?;
            see(&mut seen, entry);
            checkpointing = is_checkpointing(checkpointing, entry);
            let acknowledged = seen.iter().any(|progress| progress.answered > 0);
            weights.push(match (disk.is_settled(), checkpointing) {
                _ if self.options.acknowledged && !acknowledged => 0,
                // What comes before the bulk is looked at in the other workloads.
                _ if self.bulk > 0 && seen[0].answered < 2 => 0,
                (true, _) => 1,
                (false, true) => 16,
                (false, false) => 8,
            });
        }
        let total = weights.iter().sum::<usize>().max(1);
        let mut before = 0;
        // As many as are due by now: nothing is lost to rounding.
        let shares = weights.into_iter().map(|weight| {
            let due = before * images / total;
            before += weight;
            before * images / total - due
        });
        Ok(shares.collect())
    }

    fn with_replay(&self, violation: Violation, cut: usize) -> Violation {
        let Options { images, workloads, seed, .. } = self.options;
        let number = self.number;
        let mut replay = format!(
            "power --images {images} --workloads {workloads} --seed {seed} --workload {number} \
             --cut {cut}"
        );
        if self.options.acknowledged {
            replay.push_str(" --acknowledged");
        }
        Violation { replay, ..violation }
    }

    fn check_store(
        &self,
        image: &Image,
        seen: &[Progress],
        rng: &mut SeededRng,
        tally: &mut Tally,
    ) -> Result<Result<(), Violation>, RigError> {
        tally.cases += 1;
        let folder = self.folder()?;
        disk::write_image(image, &folder)?;
        let expected: Vec<Expected<'_>> = self
            .plans
            .iter()
            .zip(seen)
            .map(|(plan, progress)| Expected { plan, progress: *progress })
            .collect();
        let checked = check::check_store(&folder, &expected, rng);
        Ok(checked.map(|store| tally.calls += store.calls))
    }

    /// Works on an image under the shim, and cuts the power again.
    fn nested(
        &self,
        image: &Image,
        seen: &[Progress],
        rng: &mut SeededRng,
        tally: &mut Tally,
    ) -> Result<Result<(), Violation>, RigError> {
        let plan = &self.plans[0];
        let folder = self.folder()?;
        disk::write_image(image, &folder)?;
        let marks = self.scratch.path().join("marks-again");
        let answered = seen[0].answered;
        // A plan of another worker is not gone on with: recovery alone is the point there.
        let steps =
            if self.plans.len() == 1 && !seen[0].begun { rng.below(NESTED_STEPS) } else { 0 };
        let work = WorkloadArgs {
            store: folder,
            marks,
            seed: plan.seed,
            worker: plan.worker,
            from: vec![answered],
            to: (answered + steps).min(plan.steps.len()),
            bulk: self.bulk,
            reopen: None,
            // The defect is in the first run alone, so that what is found is found in an image.
            defect: None,
        };
        let entries = match journaled(self.programs, &work)? {
            Ok(entries) => entries,
            Err(violation) => return Ok(Err(violation)),
        };
        for _ in 0..NESTED_CUTS {
            let cut = rng.below(entries.len() + 1);
            let mut disk = Disk::holding(image);
            let mut seen = seen.to_vec();
            for entry in &entries[..cut] {
                disk.apply(entry)?;
                see(&mut seen, entry);
            }
            let again = disk.image(rng);
            tally.nested += 1;
            if let Err(violation) = self.check_store(&again, &seen, rng, tally)? {
                let what = format!("cut again at entry {cut}: {}", violation.what);
                return Ok(Err(Violation { what, ..violation }));
            }
        }
        Ok(Ok(()))
    }

    /// Returns an empty folder for the next image.
    fn folder(&self) -> Result<PathBuf, RigError> {
        let folder = self.scratch.path().join("image");
        remove(&folder)?;
        Ok(folder)
    }
}

fn remove(path: &Path) -> Result<(), RigError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Updates the workers' progress by a mark.
fn see(seen: &mut [Progress], entry: &JournalEntry) {
    if entry.act != Act::Mark {
        return;
    }
    for line in String::from_utf8_lossy(&entry.data).lines() {
        if let Some((worker, mark)) = marks::parse(line)
            && let Ok(place) = usize::try_from(worker)
            && let Some(progress) = seen.get_mut(place)
        {
            progress.see(&mark);
        }
    }
}

/// Returns whether a checkpoint is running: from the first write to the database file to its sync.
fn is_checkpointing(before: bool, entry: &JournalEntry) -> bool {
    match entry.act {
        Act::Write if entry.name == tine_sqlite::DATABASE_FILE => true,
        Act::Sync if entry.name == tine_sqlite::DATABASE_FILE => false,
        _ => before,
    }
}

/// Runs a workload under the shim and reads its journal.
fn journaled(
    programs: &Programs,
    work: &WorkloadArgs,
) -> Result<Result<Vec<JournalEntry>, Violation>, RigError> {
    let journal = work.marks.with_extension("journal");
    for old in [&journal, &work.marks] {
        if old.exists() {
            std::fs::remove_file(old)?;
        }
    }
    let mut command = work.command(&programs.workload);
    let ignored = work.defect.and_then(Defect::ignored_syncs);
    let layer = Layer {
        root: work.store.clone(),
        journal: Some(journal.clone()),
        marks: Some(work.marks.clone()),
        ignore_sync: ignored.map(str::to_owned),
        free_sync: true,
        ..Layer::default()
    };
    programs.shim.under(&mut command, &layer)?;
    match workload::wait(command.spawn()?)? {
        (Exit::Code(0), _) => Ok(Ok(journal::read(&journal)?)),
        (Exit::Code(EXIT_CALLS_FAILED), why) => {
            Ok(Err(Violation::new(BrokenGuarantee::Unopenable, why)))
        }
        (exit, why) => {
            let what = format!("the workload ended with {exit:?}: {why}");
            Ok(Err(Violation::new(BrokenGuarantee::Crashed, what)))
        }
    }
}

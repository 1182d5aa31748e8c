//! Performs queued runs in the background, one after another on a thread of their own.
//!
//! Code that queues a run in this process rings the bell. Runs of other processes are found by
//! polling, once a second and only if something was written. Errors and panics do not end the
//! thread: they are logged, and the worker retries later. A server that stops waits for the current
//! run up to a timeout; after that, the lease of the run expires and another process starts it
//! again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tine_core::InterpretationId;
use tine_engine::{Call, Engine};
use tine_net::retry::Policy;

use crate::app::App;

/// How often an idle worker checks whether another process has written.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often it looks for runs anyway: an expired lease leaves no trace in the feed.
const LEASE_POLL_INTERVAL: Duration = Duration::from_secs(15);

/// An idle worker spends at most one part in this many of its time looking for runs.
const IDLE_SHARE: u32 = 20;

/// The pauses after failures.
const RETRY: Policy = Policy::unlimited(Duration::from_millis(500), Duration::from_secs(60));

/// Wakes the worker.
pub(crate) struct Bell(SyncSender<()>);

impl Bell {
    /// Returns a bell and the receiver of its rings.
    pub(crate) fn new() -> (Self, Receiver<()>) {
        // One pending ring is enough.
        let (sender, receiver) = sync_channel(1);
        (Bell(sender), receiver)
    }

    /// Wakes the worker because a run may be queued.
    pub(crate) fn ring(&self) {
        let _ = self.0.try_send(());
    }
}

/// Performs runs until the server stops.
pub(crate) fn work(app: &Arc<App>, rings: &Receiver<()>) {
    let engine = &app.engine;
    let mut retries = RETRY.start();
    while !stopped(app) {
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| engine.run_next())) {
            Ok(Ok(Some(run))) => {
                app.metrics.run(outcome(engine, run));
                retries.reset();
            }
            Ok(Ok(None)) => {
                retries.reset();
                rest(app, rings, began.elapsed() * IDLE_SHARE);
            }
            failed => {
                match failed {
                    Ok(Err(error)) => tracing::error!(%error, "a run failed"),
                    _ => tracing::error!("a run panicked"),
                }
                app.metrics.run("error");
                sleep(app, retries.next_pause(None).unwrap_or(RETRY.longest_pause));
            }
        }
    }
}

fn stopped(app: &App) -> bool {
    *app.stopping.borrow()
}

/// Returns how a run ended. Its project is unknown and is searched for.
fn outcome(engine: &Engine, run: InterpretationId) -> &'static str {
    for project in engine.projects().unwrap_or_default() {
        let call = Call::by("tine").in_project(project.id);
        if let Ok(found) = engine.interpretation(&call, run) {
            return found.status.as_str();
        }
    }
    "error"
}

/// Waits until there may be a run, and at least for the given time.
fn rest(app: &App, rings: &Receiver<()>, least: Duration) {
    let began = Instant::now();
    let end = app.engine.feed_end().ok();
    loop {
        match rings.recv_timeout(POLL_INTERVAL) {
            Ok(()) => break,
            Err(RecvTimeoutError::Timeout) => {
                let written = app.engine.feed_end().ok() != end;
                if stopped(app) || written || began.elapsed() >= LEASE_POLL_INTERVAL {
                    break;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return sleep(app, POLL_INTERVAL),
        }
    }
    sleep(app, least.saturating_sub(began.elapsed()));
}

/// Sleeps, unless the server stops.
fn sleep(app: &App, time: Duration) {
    let until = Instant::now() + time;
    while !stopped(app) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

//! Runs that wait are done here, in the background, one after another on a thread of their own.
//!
//! Whoever queues a run in this process rings; runs of other processes are found by looking, once
//! a second and only when something was written. Nothing that goes wrong ends the thread: it is
//! logged, and the next look comes later. A run that is at work when the server stops is waited
//! for a while; after that its lease runs out, and another process begins again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tine_core::InterpretationId;
use tine_engine::{Call, Engine};
use tine_net::retry::Policy;

use crate::app::App;

/// How often a worker without work looks whether another process has written.
const LOOK: Duration = Duration::from_secs(1);

/// How often it looks even so: a lease that has run out leaves no trace in the feed.
const LOOK_ANYWAY: Duration = Duration::from_secs(15);

/// Of its time, the part that a worker without work spends on looking: one of so many.
const SHARE: u32 = 20;

/// The pauses after failures.
const RETRY: Policy = Policy::unlimited(Duration::from_millis(500), Duration::from_secs(60));

/// Calls the worker.
pub(crate) struct Bell(SyncSender<()>);

impl Bell {
    /// A bell, and what hears it.
    pub(crate) fn new() -> (Self, Receiver<()>) {
        // One ring that was not heard yet is enough.
        let (sender, receiver) = sync_channel(1);
        (Bell(sender), receiver)
    }

    /// Something may be waiting.
    pub(crate) fn ring(&self) {
        let _ = self.0.try_send(());
    }
}

/// Works until the server is told to stop.
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
                rest(app, rings, began.elapsed() * SHARE);
            }
            failed => {
                match failed {
                    Ok(Err(error)) => tracing::error!(%error, "a run could not be done"),
                    _ => tracing::error!("a run met a defect"),
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

/// How a run ended. A run's project is not told with it, and has to be looked for.
fn outcome(engine: &Engine, run: InterpretationId) -> &'static str {
    for project in engine.projects().unwrap_or_default() {
        let call = Call::by("tine").in_project(project.id);
        if let Ok(found) = engine.interpretation(&call, run) {
            return found.status.as_str();
        }
    }
    "error"
}

/// Waits until there may be work again, and at least for a time.
fn rest(app: &App, rings: &Receiver<()>, least: Duration) {
    let began = Instant::now();
    let end = app.engine.feed_end().ok();
    loop {
        match rings.recv_timeout(LOOK) {
            Ok(()) => break,
            Err(RecvTimeoutError::Timeout) => {
                let written = app.engine.feed_end().ok() != end;
                if stopped(app) || written || began.elapsed() >= LOOK_ANYWAY {
                    break;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return sleep(app, LOOK),
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

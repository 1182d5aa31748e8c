//! `tine sync`: what is missing on either side, from one to the other.
//!
//! Conversation by conversation, each in one transaction: ended at any point, the next run goes on.
//! `docs/sync.md` says what travels.

mod server;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tine_client::Client;
use tine_core::{ConversationId, Kind, ProjectId};
use tine_engine::{Call, Engine, Pulled, SystemClock, SystemEntropy};
use tine_store::embedded::Mode;

use crate::arguments::Globals;
use crate::failure::{Failure, Result};
use crate::session::{Session, limits};
use crate::store_place::StorePlace;
use crate::terminal::Paging;

#[derive(Debug, Args)]
#[command(after_help = "\
Only what is missing travels, in both directions, and every hash of it is recomputed on arrival. \
Where both sides went on with the same branch, both lines are kept: the other one as `NAME-1`. \
Nothing is deleted on either side. Without --project all projects are synced.

Examples:
  tine sync /media/stick/tine
  tine sync /media/stick/tine --create      the first time
  tine sync http://127.0.0.1:8000 --pull")]
pub(crate) struct SyncArgs {
    /// The folder of another store, or the address of a server
    #[arg(value_name = "REMOTE")]
    remote: String,
    /// Only take
    #[arg(long, conflicts_with = "push")]
    pull: bool,
    /// Only give
    #[arg(long)]
    push: bool,
    /// Make the other store if there is none
    #[arg(long)]
    create: bool,
}

/// What travelled in one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Travelled {
    conversations: u64,
    diverged: u64,
    turns: u64,
    operations: u64,
    bytes: u64,
}

impl Travelled {
    fn add(&mut self, done: Pulled) {
        self.conversations += u64::from(done.operations > 0);
        self.diverged += u64::from(done.diverged && done.turns > 0);
        self.turns += done.turns;
        self.operations += done.operations;
        self.bytes += done.bytes;
    }
}

/// What a whole sync did.
#[derive(Debug, Default, Serialize)]
struct Report {
    pulled: Travelled,
    pushed: Travelled,
    notes: Vec<String>,
}

/// The other side.
enum Remote {
    Store(Engine),
    Server(Client),
}

pub(crate) fn sync(globals: &Globals, args: &SyncArgs) -> Result<()> {
    let session = Session::open(globals, Mode::Create)?;
    let here = session.engine.here("sync", "run it where the store is")?;
    let remote = remote(globals, args)?;
    let mut report = Report::default();
    let projects = match globals.project() {
        Some(_) => BTreeSet::from([session.call.project.clone()]),
        None => projects(here, &remote)?,
    };
    let mut work = Vec::new();
    for project in projects {
        let call = session.call.clone().in_project(project);
        let ids = match &remote {
            Remote::Store(there) => {
                let mut ids: BTreeSet<ConversationId> = here.exported(&call)?.into_iter().collect();
                ids.extend(there.exported(&call)?);
                ids
            }
            Remote::Server(there) => server::conversations(here, there, &call)?,
        };
        work.extend(ids.into_iter().map(|id| (call.clone(), id)));
    }
    let bar = bar(work.len() as u64, io::stderr().is_terminal() && !globals.json);
    for (call, id) in &work {
        let done = match &remote {
            Remote::Store(there) => between(here, there, call, id, args, &mut report),
            Remote::Server(there) => server::exchange(here, there, call, id, args, &mut report),
        };
        match done {
            Err(failure) if is_about_one(failure.kind()) => {
                report.notes.push(format!("{id}: {failure}"));
            }
            other => other?,
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    say(&session, &report)
}

/// A refusal that is no reason to leave out other conversations.
fn is_about_one(kind: Kind) -> bool {
    matches!(kind, Kind::Invalid | Kind::Conflict | Kind::Unsupported | Kind::TooLarge)
}

fn between(
    here: &Engine,
    there: &Engine,
    call: &Call,
    id: &ConversationId,
    args: &SyncArgs,
    report: &mut Report,
) -> Result<()> {
    if !args.push {
        report.pulled.add(here.pull(there, call, id)?);
    }
    if !args.pull {
        report.pushed.add(there.pull(here, call, id)?);
    }
    Ok(())
}

fn remote(globals: &Globals, args: &SyncArgs) -> Result<Remote> {
    if args.remote.starts_with("http://") || args.remote.starts_with("https://") {
        let client = Client::new(&args.remote)?.with_limits(limits());
        return Ok(Remote::Server(match globals.token()? {
            Some(token) => client.with_token(&token)?,
            None => client,
        }));
    }
    let place = StorePlace::named(Path::new(&args.remote))?;
    if place.is(&StorePlace::of(globals)?) {
        return Err(Failure::invalid("that is this store itself; name another one"));
    }
    let mode = if args.create { Mode::Create } else { Mode::Existing };
    let store = place.open(mode)?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    Ok(Remote::Store(Engine::with(store, clock, entropy, limits())))
}

fn projects(here: &Engine, remote: &Remote) -> Result<BTreeSet<ProjectId>> {
    let there = match remote {
        Remote::Store(engine) => engine.projects()?,
        Remote::Server(client) => tine_engine::Operations::projects(client)?,
    };
    Ok(here.projects()?.into_iter().chain(there).map(|project| project.id).collect())
}

fn bar(conversations: u64, shown: bool) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(conversations), target);
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {pos}/{len} conversations, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

fn say(session: &Session, report: &Report) -> Result<()> {
    if session.answered_json(|| report)? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        for (what, done) in [("pulled", report.pulled), ("pushed", report.pushed)] {
            writeln!(
                out,
                "{what}: {} conversations, {} turns, {} operations, about {}",
                done.conversations,
                done.turns,
                done.operations,
                indicatif::HumanBytes(done.bytes)
            )?;
        }
        let diverged = report.pulled.diverged.max(report.pushed.diverged);
        if diverged > 0 {
            writeln!(
                out,
                "both sides had gone on in {diverged} conversations; both lines are kept"
            )?;
        }
        for note in &report.notes {
            writeln!(out, "{}", crate::terminal::text::visible(note))?;
        }
        Ok(())
    })
}

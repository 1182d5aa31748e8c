//! `tine sync`: exchanges missing turns and operations with another store or a server.
//!
//! Each conversation is synced in one transaction, so the next run resumes an interrupted sync.
//! `docs/sync.md` describes what is exchanged.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, IsTerminal};
use std::iter;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tine_core::{ConversationId, ErrorKind, OperationHash, ProjectId};
use tine_engine::{
    BundleRecord, Call, Delta, DeltaScope, Engine, Error, Listing, LogEnd, LogMark, LogMerges,
    Operations, Page, Peer, Pulled, Renamed, SystemClock, SystemEntropy, TurnRef, carry, pull,
};
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::server_peer::ServerPeer;
use crate::session::{CliSession, limits};
use crate::store_location::StoreLocation;
use crate::terminal::Paging;
use crate::terminal::text::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Only what is missing is transferred, and its hashes are recomputed on arrival. Where both sides \
appended to the same branch, both lines are kept, the other one as `NAME-1`. Nothing is deleted on \
either side. Without --project all projects are synced.

Examples:
  tine sync /media/stick/tine --dry-run     show what would be transferred
  tine sync /media/stick/tine --create      create the other store
  tine sync http://127.0.0.1:8000 --pull")]
pub(crate) struct SyncArgs {
    /// Folder or postgres:// URL of another store, or URL of a server
    #[arg(value_name = "REMOTE")]
    remote: String,
    /// Transfer in this direction only: from the remote
    #[arg(long, conflicts_with = "push")]
    pull: bool,
    /// Transfer in this direction only: to the remote
    #[arg(long)]
    push: bool,
    /// Erase what the remote has purged; otherwise such conversations are skipped
    #[arg(long, conflicts_with = "push")]
    erase: bool,
    /// Create the remote store if it does not exist
    #[arg(long)]
    create: bool,
    /// Show what would be transferred, and change nothing
    #[arg(short = 'n', long, conflicts_with_all = ["create", "erase"])]
    dry_run: bool,
}

/// Totals for one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct TransferTotals {
    conversations: u64,
    diverged: u64,
    turns: u64,
    operations: u64,
    withheld: u64,
    bytes: u64,
}

impl TransferTotals {
    fn add(&mut self, done: &Pulled) {
        self.conversations += u64::from(done.operations > 0);
        self.diverged += u64::from(done.diverged && done.turns > 0);
        self.turns += done.turns;
        self.operations += done.operations;
        self.withheld += done.withheld;
        self.bytes += done.bytes;
    }
}

/// The outcome of a sync.
#[derive(Debug, Default, Serialize)]
struct SyncReport {
    pulled: TransferTotals,
    pushed: TransferTotals,
    /// Unexpected outcomes, such as renamed bookmarks.
    notes: Vec<String>,
    /// Conversations that were refused; all others were synced.
    kept_back: Vec<KeptBack>,
}

/// A conversation that could not be transferred.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct KeptBack {
    project_id: String,
    conversation_id: String,
    code: &'static str,
    message: String,
    #[serde(skip)]
    kind: ErrorKind,
}

/// The other side of a sync.
enum SyncRemote {
    Store(Engine),
    Server(ServerPeer),
}

impl SyncRemote {
    fn peer(&self) -> &dyn Peer {
        match self {
            SyncRemote::Store(engine) => engine,
            SyncRemote::Server(client) => client,
        }
    }

    fn operations(&self) -> &dyn Operations {
        match self {
            SyncRemote::Store(engine) => engine,
            SyncRemote::Server(client) => &client.0,
        }
    }
}

/// A conversation to sync, with the end of its log on both sides.
struct SyncTask {
    call: Call,
    id: ConversationId,
    here: Option<LogMark>,
    there: Option<LogMark>,
}

pub(crate) fn sync(globals: &Globals, args: &SyncArgs) -> Result<()> {
    let mode = if args.dry_run { OpenMode::Existing } else { OpenMode::Create };
    let session = CliSession::open(globals, mode)?;
    let here = session.engine.require_local("tine sync", "run it where the store is")?;
    let remote = remote(globals, args)?;
    let mut report = SyncReport::default();
    let projects: BTreeSet<ProjectId> = match globals.project() {
        Some(_) => BTreeSet::from([session.call.project.clone()]),
        None => here
            .projects()?
            .into_iter()
            .chain(remote.operations().projects()?)
            .map(|it| it.id)
            .collect(),
    };
    let mut tasks = Vec::new();
    for project in projects {
        if !args.dry_run {
            sweep(here, &remote, &project, &mut report);
        }
        let call = session.call.clone().in_project(project);
        tasks.extend(differing_logs(here, remote.peer(), &call)?);
    }
    let bar = bar(tasks.len() as u64, io::stderr().is_terminal() && !globals.json);
    for task in &tasks {
        exchange(here, &remote, task, args, &mut report)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    print_report(&session, &report, args.dry_run)?;
    fail_if_kept_back(&report)
}

/// Finishes erasures that an interrupted sync left in the files.
fn sweep(here: &Engine, remote: &SyncRemote, project: &ProjectId, report: &mut SyncReport) {
    let there = match remote {
        SyncRemote::Store(there) => Some(there),
        SyncRemote::Server(_) => None,
    };
    for side in iter::once(here).chain(there) {
        if let Err(error) = side.sweep(project) {
            report.notes.push(format!("an earlier erasure is not finished: {error}"));
        }
    }
}

/// A peer that counts what it would receive.
struct Rehearsal<'p> {
    peer: &'p dyn Peer,
    /// The same side, to look up the turns that it has.
    operations: &'p dyn Operations,
}

impl Peer for Rehearsal<'_> {
    fn log_ends(&self, call: &Call, page: Page) -> tine_engine::Result<Listing<LogEnd>> {
        self.peer.log_ends(call, page)
    }

    fn log_end(&self, call: &Call, id: &ConversationId) -> tine_engine::Result<Option<LogMark>> {
        self.peer.log_end(call, id)
    }

    fn log_hashes(
        &self,
        call: &Call,
        id: &ConversationId,
        entries: &[u64],
    ) -> tine_engine::Result<Vec<Option<OperationHash>>> {
        self.peer.log_hashes(call, id, entries)
    }

    fn log_merges(
        &self,
        call: &Call,
        id: &ConversationId,
        after: u64,
    ) -> tine_engine::Result<LogMerges> {
        self.peer.log_merges(call, id, after)
    }

    fn delta(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: DeltaScope,
    ) -> tine_engine::Result<Delta> {
        self.peer.delta(call, id, since, scope)
    }

    fn receive(&self, call: &Call, delta: Delta) -> tine_engine::Result<Pulled> {
        let (mut turns, mut operations) = (0, 0);
        for record in &delta.records {
            match record {
                BundleRecord::Turn { turn, .. } if delta.scope == DeltaScope::Turns => {
                    let known = self.operations.turn(call, TurnRef::of(turn.id)).is_ok();
                    turns += u64::from(!known);
                }
                BundleRecord::Turn { .. } => turns += 1,
                BundleRecord::Operation { .. } => operations += 1,
                _ => {}
            }
        }
        if delta.scope == DeltaScope::Turns {
            // Turns of a diverged log arrive in one operation.
            operations = u64::from(turns > 0);
        }
        Ok(Pulled {
            new: delta.since.is_none(),
            diverged: delta.scope == DeltaScope::Turns,
            turns,
            operations,
            bytes: delta.bytes,
            ..Pulled::default()
        })
    }
}

/// Returns the first refusal as an error, if any conversation was kept back.
fn fail_if_kept_back(report: &SyncReport) -> Result<()> {
    let Some(first) = report.kept_back.first() else { return Ok(()) };
    let mut ids: Vec<(&str, &str)> =
        report.kept_back.iter().map(|it| (&*it.project_id, &*it.conversation_id)).collect();
    ids.dedup();
    let what = match ids.as_slice() {
        [(_, one)] => format!("`{one}` was skipped"),
        [(_, one), more @ ..] => format!("`{one}` and {} more were skipped", more.len()),
        [] => return Ok(()),
    };
    let why = format!("{what} ({}); all other conversations were synced", first.message);
    Err(CommandError::refused(first.kind, why))
}

/// Returns the conversations of a project whose logs differ, in order of creation, so that a new
/// store lists them in the same order.
fn differing_logs(here: &Engine, there: &dyn Peer, call: &Call) -> Result<Vec<SyncTask>> {
    let (ours, theirs) = (log_ends(here, call)?, log_ends(there, call)?);
    let mut others: HashMap<ConversationId, LogMark> = theirs.iter().cloned().collect();
    let mut tasks = Vec::new();
    for (id, here) in ours {
        let there = others.remove(&id);
        tasks.push(SyncTask { call: call.clone(), id, here: Some(here), there });
    }
    for (id, there) in theirs {
        if others.contains_key(&id) {
            tasks.push(SyncTask { call: call.clone(), id, here: None, there: Some(there) });
        }
    }
    tasks.retain(|task| task.here != task.there);
    Ok(tasks)
}

/// Returns the end of each log of a project.
fn log_ends(side: &dyn Peer, call: &Call) -> Result<Vec<(ConversationId, LogMark)>> {
    let mut ends = Vec::new();
    let mut page = Page::default();
    loop {
        let found = side.log_ends(call, page)?;
        ends.extend(found.items.into_iter().map(|found| (found.conversation, found.end)));
        match found.next {
            Some(next) => page = Page { cursor: Some(next), ..Page::default() },
            None => return Ok(ends),
        }
    }
}

fn exchange(
    here: &Engine,
    remote: &SyncRemote,
    task: &SyncTask,
    args: &SyncArgs,
    report: &mut SyncReport,
) -> Result<()> {
    let there = remote.peer();
    let SyncTask { call, id, here: ours, there: theirs } = task;
    if !args.push {
        let ends = (*theirs, *ours);
        let done = match args.dry_run {
            true => carry(there, &Rehearsal { peer: here, operations: here }, call, id, ends),
            false => pull(there, here, call, id, ends, args.erase),
        };
        let done = report.record_outcome(task, "here", done)?;
        report.pulled.add(&done);
    }
    if !args.pull {
        let ours = here.log_end(call, id)?;
        let ends = (ours, *theirs);
        let done = match args.dry_run {
            true => {
                let operations = remote.operations();
                carry(here, &Rehearsal { peer: there, operations }, call, id, ends)
            }
            false => carry(here, there, call, id, ends),
        };
        let done = report.record_outcome(task, "in the remote", done)?;
        report.pushed.add(&done);
    }
    Ok(())
}

impl SyncReport {
    fn keep_back(&mut self, task: &SyncTask, kind: ErrorKind, message: String) {
        let (project_id, conversation_id) = (task.call.project.to_string(), task.id.to_string());
        let kept = KeptBack { project_id, conversation_id, code: kind.code(), message, kind };
        // The same refusal usually occurs in both directions; report it once.
        if self.kept_back.last() != Some(&kept) {
            self.kept_back.push(kept);
        }
    }

    /// Records the outcome for a conversation; an error that affects only it is not returned.
    fn record_outcome(
        &mut self,
        task: &SyncTask,
        side: &str,
        done: tine_engine::Result<Pulled>,
    ) -> Result<Pulled> {
        let id = &task.id;
        let done = match done {
            Err(error) if affects_one_conversation(error.kind()) => {
                let advice = match error {
                    Error::WouldErase { .. } => "; --erase erases it here too",
                    _ => "",
                };
                self.keep_back(task, error.kind(), format!("{error}{advice}"));
                Pulled::default()
            }
            done => done?,
        };
        if done.unerased > 0 {
            let turns = count(done.unerased, "turn");
            let why = format!(
                "the remote has purged {turns} that are still here; --erase erases them here too"
            );
            self.keep_back(task, ErrorKind::Protected, why);
        }
        for Renamed { from, to } in &done.renamed {
            self.notes.push(format!(
                "{id}: the bookmark `{from}` marks another turn {side}, where it is named `{to}`"
            ));
        }
        if done.keys > 0 {
            let keys = count(done.keys, "idempotency key");
            self.notes.push(format!("{id}: {keys} skipped, used for another call {side}"));
        }
        Ok(done)
    }
}

/// Returns whether other conversations can be synced after an error of this kind.
fn affects_one_conversation(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Invalid
            | ErrorKind::Conflict
            | ErrorKind::Protected
            | ErrorKind::Unsupported
            | ErrorKind::TooLarge
            | ErrorKind::Corrupt
            | ErrorKind::NotFound
    )
}

fn remote(globals: &Globals, args: &SyncArgs) -> Result<SyncRemote> {
    if args.remote.starts_with("http://") || args.remote.starts_with("https://") {
        let client = tine_client::Client::new(&args.remote)?.with_limits(limits());
        return Ok(SyncRemote::Server(ServerPeer(match globals.token()? {
            Some(token) => client.with_token(&token)?,
            None => client,
        })));
    }
    let location = StoreLocation::parse(Path::new(&args.remote))?;
    if location.is_same_as(&StoreLocation::from_globals(globals)?) {
        return Err(CommandError::invalid("the remote is this store itself; name another one"));
    }
    let mode = if args.create { OpenMode::Create } else { OpenMode::Existing };
    let store = location.open(mode).map_err(|failure| match failure.kind() {
        ErrorKind::NotFound => {
            let why = format!("there is no store at {}; --create creates one", args.remote);
            CommandError::refused(ErrorKind::NotFound, why)
        }
        _ => failure,
    })?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    Ok(SyncRemote::Store(Engine::with(store, clock, entropy, limits())))
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

fn print_report(session: &CliSession, report: &SyncReport, dry_run: bool) -> Result<()> {
    if session.answered_json(|| report)? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        let verb = if dry_run { "would be " } else { "" };
        for (what, done) in [("pulled", report.pulled), ("pushed", report.pushed)] {
            let conversations = count(done.conversations, "conversation");
            let (turns, operations) =
                (count(done.turns, "turn"), count(done.operations, "operation"));
            let size = indicatif::HumanBytes(done.bytes);
            writeln!(out, "{verb}{what}: {conversations}, {turns}, {operations}, about {size}")?;
        }
        let diverged = report.pulled.diverged.max(report.pushed.diverged);
        if diverged > 0 {
            let diverged = count(diverged, "conversation");
            writeln!(out, "diverged: {diverged}; both lines are kept")?;
        }
        for (done, side) in [(report.pulled, "here"), (report.pushed, "in the remote")] {
            if done.withheld > 0 {
                let turns = count(done.withheld, "turn");
                writeln!(out, "{turns} skipped: deleted {side}, or below a deleted turn")?;
            }
        }
        for note in &report.notes {
            writeln!(out, "{}", crate::terminal::text::visible(note))?;
        }
        for KeptBack { conversation_id, message, .. } in &report.kept_back {
            let why = format!("skipped: {conversation_id}: {message}");
            writeln!(out, "{}", crate::terminal::text::visible(&why))?;
        }
        Ok(())
    })
}

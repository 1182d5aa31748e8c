//! `tine import`: imports conversations of other programs and bundles.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, thread};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tine_core::{ErrorKind, ProjectId};
use tine_engine::{Engine, Imported};
use tine_formats::bundle::read_bundle;
use tine_import::detect::{self, FormatCache, ImportJob, ImportPlan};
use tine_import::importer::{ImportSettings, ImportSummary, Importer};
use tine_import::{Error, ImportFormat, Note};
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::session::{CliSession, SessionEngine};
use crate::terminal::Paging;
use crate::terminal::text::{count, plural, visible};

/// Interval at which watched folders are scanned.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// A file that changed within this time may still be growing.
const QUIET_MS: u64 = 60_000;
/// Maximum number of notes in text output; `--json` has all.
const NOTES_SHOWN: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = "\
The format of a file is detected from its content: exports of ChatGPT and Claude.ai (ZIP or JSON), \
sessions of Claude Code, Codex, pi, Gemini CLI and OpenCode, LibreChat, Open WebUI, message lists \
in the form of OpenAI and Anthropic, FileSystemStore folders, and Tine's own bundles and pages.

Branches are kept, and turns that were rewound become tails. Importing a file again adds only what \
is new. Secrets are replaced first. Whatever is skipped or contradictory is listed with file and \
line.

Examples:
  tine import --discover                       list what there is on this computer
  tine import ~/.claude/projects ~/.codex/sessions
  tine import chatgpt-export.zip
  tine import trip.jsonl --project archive     a bundle; every hash is recomputed
  gunzip -c all.jsonl.gz | tine import -
  tine import --watch                          follow all agents on this computer")]
pub(crate) struct ImportArgs {
    /// Files and folders to import; `-` reads a bundle from standard input
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Import only files of this format
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<ImportFormat>,
    /// List what can be imported on this computer, and import nothing
    #[arg(long, conflicts_with_all = ["watch", "paths"])]
    discover: bool,
    /// Keep importing as files change; without PATH, those of all agents on this computer
    #[arg(long)]
    watch: bool,
    /// Create a project for each working folder
    #[arg(long, conflicts_with = "discover")]
    by_folder: bool,
    /// Do not replace secrets
    #[arg(long)]
    no_redact: bool,
}

fn format(name: &str) -> std::result::Result<ImportFormat, String> {
    ImportFormat::named(name).ok_or_else(|| {
        let names: Vec<&str> = ImportFormat::all().map(ImportFormat::name).collect();
        format!("unknown format; use one of {}", names.join(", "))
    })
}

pub(crate) fn import(globals: &Globals, args: &ImportArgs) -> Result<()> {
    if args.discover {
        return discover(globals, args);
    }
    if args.paths.iter().any(|path| path == Path::new("-")) {
        return from_stdin(globals, args);
    }
    let paths = match args.paths.is_empty() {
        false => args.paths.clone(),
        true if args.watch => agent_folders(),
        true => {
            return Err(CommandError::invalid(
                "nothing to import; name files or folders, or list what there is with --discover",
            ));
        }
    };
    let mut seen = FormatCache::default();
    // Scan the paths before creating a store: a mistyped name creates nothing.
    let plan = detect::plan_with_cache(&paths, args.format, &mut seen).map_err(import_error)?;
    let session = CliSession::open(globals, OpenMode::Create)?;
    let engine = match &session.engine {
        SessionEngine::Local(engine) => engine,
        SessionEngine::Remote(_) if !args.watch && plan.jobs.iter().all(is_bundle) => {
            to_server(globals, &session, &plan)?;
            return fail_if_missing(&plan);
        }
        SessionEngine::Remote(_) => session.engine.require_local(
            "tine import",
            "import into a store on this computer and send it with `tine sync`",
        )?,
    };
    if let ([job], false) = (plan.jobs.as_slice(), args.watch)
        && is_bundle(job)
    {
        one_bundle(globals, &session, engine, job)?;
        return fail_if_missing(&plan);
    }
    let settings = ImportSettings {
        redact: !args.no_redact,
        by_folder: args.by_folder,
        project: globals.project().is_some().then(|| session.call.project.clone()),
        ..ImportSettings::default()
    };
    let mut importer = Importer::begin(engine, &session.call, settings).map_err(import_error)?;
    run(&mut importer, &plan, globals)?;
    importer.notes.extend(plan.notes.iter().cloned());
    report(&session, &importer, plan.unknown, args.by_folder)?;
    if args.watch {
        follow(&session, &mut importer, &paths, args, &mut seen)?;
    }
    let done = &importer.summary;
    let taken = done.conversations + done.grown + done.unchanged + done.unchanged_files;
    if let (0, Some(first)) = (taken, importer.notes.first()) {
        return Err(CommandError::invalid(format!(
            "nothing was imported; {}: {}",
            first.file.display(),
            first.what
        )));
    }
    fail_if_missing(&plan)
}

/// Returns an error if one of the paths does not exist.
fn fail_if_missing(plan: &ImportPlan) -> Result<()> {
    let Some(missing) = plan.missing.first() else { return Ok(()) };
    let why = format!("{} does not exist; everything else was imported", missing.display());
    Err(CommandError::refused(ErrorKind::NotFound, why))
}

fn is_bundle(job: &ImportJob) -> bool {
    job.format == ImportFormat::Bundle
}

fn import_error(error: Error) -> CommandError {
    match error {
        Error::Refused(error) => error.into(),
        Error::Read { ref source, .. } if source.kind() == io::ErrorKind::NotFound => {
            CommandError::refused(ErrorKind::NotFound, error.to_string())
        }
        Error::TooLarge { .. } => CommandError::refused(ErrorKind::TooLarge, error.to_string()),
        error => CommandError::invalid(error.to_string()),
    }
}

/// Returns the folders in which agents on this machine store conversations.
fn agent_folders() -> Vec<PathBuf> {
    detect::places(&|name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute()))
}

fn run(importer: &mut Importer<'_>, plan: &ImportPlan, globals: &Globals) -> Result<()> {
    let shown = io::stderr().is_terminal() && !globals.json;
    let bar = bar(plan.bytes(), shown);
    let counter = importer.counter();
    let ticker = shown.then(|| {
        let (bar, counter) = (bar.clone(), counter.clone());
        thread::spawn(move || {
            while !bar.is_finished() {
                bar.set_position(counter.bytes());
                thread::sleep(Duration::from_millis(100));
            }
        })
    });
    let done =
        plan.jobs.iter().try_for_each(|job| importer.run(job)).and_then(|()| importer.finish());
    bar.finish_and_clear();
    if let Some(ticker) = ticker {
        // The thread only draws; a panic there is not an error.
        let _ = ticker.join();
    }
    done.map_err(import_error)
}

fn bar(bytes: u64, shown: bool) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(bytes), target);
    let form = "{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar
}

/// Imports new and changed files until Ctrl-C.
fn follow(
    session: &CliSession,
    importer: &mut Importer<'_>,
    paths: &[PathBuf],
    args: &ImportArgs,
    seen: &mut FormatCache,
) -> Result<()> {
    crate::commands::watch::end_on_interrupt()?;
    if !session.screen.json {
        session.screen.aside("watching for changes; press Ctrl-C to stop");
    }
    let mut versions: BTreeMap<PathBuf, (u64, u64, bool)> = BTreeMap::new();
    loop {
        thread::sleep(POLL_INTERVAL);
        let plan = detect::plan_with_cache(paths, args.format, seen).map_err(import_error)?;
        let before = importer.summary.clone();
        let settled_notes = importer.notes.len();
        for job in &plan.jobs {
            let growing = now_ms().saturating_sub(job.modified_ms) < QUIET_MS;
            let version = (job.bytes, job.modified_ms, growing);
            if versions.insert(job.path.clone(), version) == Some(version) || importer.has_read(job)
            {
                continue;
            }
            let done = if growing { importer.run_growing(job) } else { importer.run(job) };
            done.map_err(import_error)?;
        }
        importer.finish().map_err(import_error)?;
        if importer.summary.turns != before.turns {
            let turns = importer.summary.turns - before.turns;
            let line = format!("{} new", count(turns, "turn"));
            session.screen.line(&line)?;
        }
        // Notes about a file are only reported once it is complete.
        importer.notes.truncate(settled_notes);
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
struct ImportReport<'r> {
    files: u64,
    unchanged_files: u64,
    unknown_files: u64,
    conversations: u64,
    extended: u64,
    unchanged: u64,
    left_out: u64,
    turns: u64,
    branches: u64,
    tails: u64,
    attachments: u64,
    withheld: u64,
    projects: &'r BTreeMap<ProjectId, u64>,
    redacted: &'r BTreeMap<String, u64>,
    notes: Vec<NoteView<'r>>,
}

#[derive(Serialize)]
struct NoteView<'r> {
    file: &'r Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    what: &'r str,
}

fn report(
    session: &CliSession,
    importer: &Importer<'_>,
    unknown: u64,
    by_folder: bool,
) -> Result<()> {
    let ImportSummary { ref redacted, ref projects, .. } = importer.summary;
    let done = &importer.summary;
    fn view(note: &Note) -> NoteView<'_> {
        NoteView { file: &note.file, line: note.line, what: &note.what }
    }
    let answered = session.answered_json(|| ImportReport {
        files: done.files,
        unchanged_files: done.unchanged_files,
        unknown_files: unknown,
        conversations: done.conversations,
        extended: done.grown,
        unchanged: done.unchanged,
        left_out: done.left_out,
        turns: done.turns,
        branches: done.branches,
        tails: done.tails,
        attachments: done.attachments,
        withheld: done.withheld,
        projects,
        redacted,
        notes: importer.notes.iter().map(view).collect(),
    })?;
    if answered {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        writeln!(
            out,
            "conversations: {} new, {} extended, {} unchanged, {} skipped; new: {}, {}, {}",
            done.conversations,
            done.grown,
            done.unchanged,
            done.left_out,
            count(done.turns, "turn"),
            plural(done.branches, "branch", "branches"),
            count(done.tails, "tail"),
        )?;
        writeln!(
            out,
            "files: {} read, {} unchanged, {} unknown",
            done.files, done.unchanged_files, unknown
        )?;
        if by_folder {
            writeln!(out, "projects:")?;
            for (project, conversations) in projects {
                let conversations = count(*conversations, "conversation");
                writeln!(out, "  {}: {conversations}", visible(project.as_str()))?;
            }
        }
        if done.attachments > 0 {
            writeln!(out, "attachments: {}", done.attachments)?;
        }
        if done.withheld > 0 {
            writeln!(
                out,
                "not restored, because they were deleted here: {}",
                count(done.withheld, "turn")
            )?;
        }
        crate::commands::append::write_redacted(out, redacted)?;
        for note in importer.notes.iter().take(NOTES_SHOWN) {
            let line = note.line.map(|line| format!(":{line}")).unwrap_or_default();
            writeln!(out, "{}{line}: {}", note.file.display(), visible(&note.what))?;
        }
        if importer.notes.len() > NOTES_SHOWN {
            let more = count((importer.notes.len() - NOTES_SHOWN) as u64, "more note");
            writeln!(out, "{more}; --json lists all")?;
        }
        Ok(())
    })
}

/// Lists what can be imported, by folder and format.
fn discover(globals: &Globals, args: &ImportArgs) -> Result<()> {
    #[derive(Serialize)]
    struct DiscoveredFolder {
        path: PathBuf,
        format: &'static str,
        files: u64,
        bytes: u64,
    }
    #[derive(Serialize)]
    struct DiscoverDocument {
        found: Vec<DiscoveredFolder>,
    }
    let mut found = Vec::new();
    for place in agent_folders() {
        let plan = detect::plan(std::slice::from_ref(&place), args.format).map_err(import_error)?;
        let mut formats: BTreeMap<ImportFormat, (u64, u64)> = BTreeMap::new();
        for job in &plan.jobs {
            let (files, bytes) = formats.entry(job.format).or_default();
            (*files, *bytes) = (*files + 1, *bytes + job.bytes);
        }
        found.extend(formats.into_iter().map(|(format, (files, bytes))| DiscoveredFolder {
            path: place.clone(),
            format: format.title(),
            files,
            bytes,
        }));
    }
    let screen = crate::terminal::Screen::new(globals);
    if screen.json {
        return screen.document(&DiscoverDocument { found });
    }
    screen.text(Paging::Direct, |out| {
        if found.is_empty() {
            return Ok(writeln!(out, "no agent history was found in the usual folders")?);
        }
        for it in &found {
            let files = count(it.files, "file");
            let size = indicatif::HumanBytes(it.bytes);
            writeln!(out, "{}: {files}, {size}, in {}", it.format, it.path.display())?;
        }
        let paths: Vec<String> = found.iter().map(|it| it.path.display().to_string()).collect();
        Ok(writeln!(out, "\nTo import it:  tine import {}", paths.join(" "))?)
    })
}

fn from_stdin(globals: &Globals, args: &ImportArgs) -> Result<()> {
    if args.paths.len() > 1 || args.watch {
        return Err(CommandError::invalid(
            "`-` reads one bundle from standard input and cannot be combined with other paths",
        ));
    }
    let session = CliSession::open(globals, OpenMode::Create)?;
    let project = globals.project().is_some().then_some(&session.call.project);
    let done = match &session.engine {
        SessionEngine::Local(engine) => read_bundle(engine, project, &mut io::stdin().lock())?,
        SessionEngine::Remote(client) => client.import(project, &mut io::stdin().lock())?,
    };
    report_bundle(&session, &done)
}

/// Imports a single bundle, whose errors fail the command.
fn one_bundle(
    globals: &Globals,
    session: &CliSession,
    engine: &Engine,
    job: &ImportJob,
) -> Result<()> {
    let project = globals.project().is_some().then_some(&session.call.project);
    let bytes = tine_import::importer::read_bundle_file(engine, project, &job.path);
    let done = bytes.map_err(|error| match error {
        tine_import::importer::BundleFailure::Bundle(error) => CommandError::from(error),
        tine_import::importer::BundleFailure::File(error) => import_error(error),
    })?;
    report_bundle(session, &done)
}

fn to_server(globals: &Globals, session: &CliSession, plan: &ImportPlan) -> Result<()> {
    let SessionEngine::Remote(client) = &session.engine else { return Ok(()) };
    let project = globals.project().is_some().then_some(&session.call.project);
    let mut total = Imported::default();
    for job in &plan.jobs {
        let mut bundle = tine_import::importer::open_bundle(&job.path).map_err(import_error)?;
        let done = client.import(project, &mut bundle)?;
        total.conversations += done.conversations;
        total.extended += done.extended;
        total.unchanged += done.unchanged;
        total.turns += done.turns;
        total.operations += done.operations;
    }
    report_bundle(session, &total)
}

fn report_bundle(session: &CliSession, done: &Imported) -> Result<()> {
    if session.answered_json(|| *done)? {
        return Ok(());
    }
    session.screen.line(&format!(
        "conversations: {} new, {} extended, {} unchanged; new: {}, {}",
        done.conversations,
        done.extended,
        done.unchanged,
        count(done.turns, "turn"),
        count(done.operations, "operation")
    ))
}

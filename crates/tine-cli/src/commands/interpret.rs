//! `tine interpret`: extracts facts from sources and manages interpretation runs.

use std::io::Write;
use tine_api::{Listing, QueueStatus};

use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use tine_analysis::Finding;
use tine_core::{InterpretationId, Json, SourceId, Timestamp};
use tine_engine::{
    Engine, InterpretationView, ObservationView, Reinterpret, RunPair, RunQuery, RunStatus,
};

use crate::arguments::day_or_time;
use crate::command_error::Result;
use crate::knowledge_view::{fields_line, observation_line, room, row, run_line, write_rows};
use crate::record_args;
use crate::session::CliSession;
use crate::terminal::text::{count, visible};
use crate::terminal::{Paging, precise_time};

/// The commands of `tine run`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Interpret sources
    Start(RunStartArgs),
    /// List the runs over a source
    List {
        /// Source, such as src_…
        source: String,
    },
    /// Show queued and running runs, and the available interpreters
    Status,
    /// Execute queued runs here and now
    Work,
    /// Retry a failed run
    Retry {
        /// Run, such as int_…
        run: String,
        /// Wait for the result
        #[arg(long)]
        wait: bool,
    },
    /// Show one run with everything that was recorded of it
    Show {
        /// Run, such as int_…
        run: String,
        /// Include the bytes of its request and response
        #[arg(long)]
        bytes: bool,
    },
    /// Compare the findings of two runs
    Compare {
        /// First run
        before: String,
        /// Second run
        after: String,
    },
    /// Recompute the findings of a run from its recorded bytes, without storing them
    Replay {
        /// Run, such as int_…
        run: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunStartArgs {
    /// Sources to interpret
    #[arg(value_name = "SOURCE", conflicts_with_all = ["mime", "since", "until", "failed"])]
    sources: Vec<String>,
    /// Interpreter to use [default: `interpret.default` of the settings, or rules]
    #[arg(long, value_name = "NAME")]
    interpreter: Option<String>,
    /// Wait for the result
    #[arg(long)]
    wait: bool,
    /// All sources of a MIME type
    #[arg(long, value_name = "TYPE")]
    mime: Option<String>,
    /// All sources stored at or after this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    since: Option<Timestamp>,
    /// All sources stored before this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    until: Option<Timestamp>,
    /// All sources whose last run failed
    #[arg(long)]
    failed: bool,
}

/// The arguments of `tine interpret`, which `tine run` replaces.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("mode").multiple(false),
    after_help = "\
Older spelling of `tine run`.

Examples:
  tine run start src_0123456789abcdef0123456789abcdef --wait
  tine run status"
)]
pub(crate) struct InterpretArgs {
    #[command(flatten)]
    start: RunStartArgs,
    /// Like `tine run status`
    #[arg(long, group = "mode", conflicts_with_all = READING)]
    status: bool,
    /// Like `tine run work`
    #[arg(long, group = "mode", conflicts_with_all = READING)]
    run: bool,
    /// Like `tine run retry`
    #[arg(long, value_name = "RUN", group = "mode", conflicts_with_all = CHOOSING)]
    retry: Option<String>,
    /// Like `tine run show`
    #[arg(long, value_name = "RUN", group = "mode", conflicts_with_all = READING)]
    show: Option<String>,
    /// Include the bytes of its request and response
    #[arg(long, requires = "show")]
    bytes: bool,
    /// Like `tine run compare`
    #[arg(
        long,
        num_args = 2,
        value_names = ["RUN", "RUN"],
        group = "mode",
        conflicts_with_all = READING
    )]
    compare: Option<Vec<String>>,
    /// Like `tine run replay`
    #[arg(long, value_name = "RUN", group = "mode", conflicts_with_all = READING)]
    replay: Option<String>,
    /// Like `tine run list`
    #[arg(long, value_name = "SOURCE", group = "mode", conflicts_with_all = READING)]
    of: Option<String>,
}

/// Options that select sources and interpreters; they conflict with inspecting runs.
const READING: [&str; 7] = ["sources", "interpreter", "mime", "since", "until", "failed", "wait"];

/// The same options without `--wait`.
const CHOOSING: [&str; 6] = ["sources", "interpreter", "mime", "since", "until", "failed"];

impl From<InterpretArgs> for RunCommand {
    fn from(args: InterpretArgs) -> Self {
        let InterpretArgs { start, status, run, retry, show, bytes, compare, replay, of } = args;
        if status {
            return RunCommand::Status;
        }
        if run {
            return RunCommand::Work;
        }
        match (retry, show, compare, replay, of) {
            (Some(run), ..) => RunCommand::Retry { run, wait: start.wait },
            (_, Some(run), ..) => RunCommand::Show { run, bytes },
            (_, _, Some(pair), ..) => {
                let mut pair = pair.into_iter();
                let mut next = || pair.next().unwrap_or_default();
                RunCommand::Compare { before: next(), after: next() }
            }
            (.., Some(run), _) => RunCommand::Replay { run },
            (.., Some(source)) => RunCommand::List { source },
            _ => RunCommand::Start(start),
        }
    }
}

/// Runs one command of `tine run`.
pub(crate) fn run(session: &CliSession, command: RunCommand) -> Result<()> {
    match command {
        RunCommand::Start(args) => start(session, args),
        RunCommand::List { source } => list_runs_of(session, record_args::parse_id(&source)?),
        RunCommand::Status => status(session),
        RunCommand::Work => work(session),
        RunCommand::Retry { run, wait } => retry(session, record_args::parse_id(&run)?, wait),
        RunCommand::Show { run, bytes } => show(session, record_args::parse_id(&run)?, bytes),
        RunCommand::Compare { before, after } => {
            let before = record_args::parse_id(&before)?;
            compare(session, RunPair { before, after: record_args::parse_id(&after)? })
        }
        RunCommand::Replay { run } => replay(session, record_args::parse_id(&run)?),
    }
}

fn start(session: &CliSession, args: RunStartArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let sources: Vec<SourceId> =
        args.sources.iter().map(|id| record_args::parse_id(id)).collect::<Result<_>>()?;
    let request = Reinterpret {
        sources,
        mime_type: args.mime,
        since: args.since,
        until: args.until,
        failed: args.failed,
        interpreter: args.interpreter,
        wait: args.wait,
    };
    list(session, &knowledge.reinterpret(&session.call, request)?)
}

/// Returns runs for JSON output.
fn listing(runs: &[InterpretationView]) -> Listing<InterpretationView> {
    Listing::all(runs.to_vec())
}

/// Writes one line per run.
fn list(session: &CliSession, runs: &[InterpretationView]) -> Result<()> {
    session.list(&listing(runs), |run| run_line(&session.screen, run))
}

fn list_runs_of(session: &CliSession, source: SourceId) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let query = RunQuery { source: Some(source), open: false };
    let ask = |page| knowledge.interpretations(&session.call, query.clone(), page);
    let runs = session.pages(None, ask)?;
    list(session, &runs.items)
}

/// The state of the queue, as a server returns it, with its runs.
#[derive(Serialize)]
struct QueueDocument {
    #[serde(flatten)]
    queue: QueueStatus,
    runs: Vec<InterpretationView>,
}

fn status(session: &CliSession) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let found = knowledge.interpretation_queue(&session.call)?;
    let query = RunQuery { source: None, open: true };
    let ask = |page| knowledge.interpretations(&session.call, query.clone(), page);
    let open = session.pages(None, ask)?.items;
    let document = || QueueDocument { queue: found.clone(), runs: listing(&open).items };
    if session.answered_json(document)? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        writeln!(out, "{} queued, {} running", found.queued, found.running)?;
        for run in &open {
            writeln!(out, "{}", run_line(&session.screen, run))?;
        }
        let rows: Vec<_> = found
            .interpreters
            .iter()
            .map(|(name, about)| {
                let default = if *name == found.default { "  (default)" } else { "" };
                row(name, format!("{}{default}", visible(about)))
            })
            .collect();
        writeln!(out, "interpreters:")?;
        write_rows(out, &session.screen, 2, &rows)
    })
}

/// Executes queued runs of all projects and reports each when it ends.
fn work(session: &CliSession) -> Result<()> {
    let instead = "the server executes queued runs itself";
    let engine = session.engine.require_local("tine run work", instead)?;
    let mut done = Vec::new();
    while let Some(id) = engine.run_next()? {
        let run = run_of_any_project(session, engine, id)?;
        if !session.screen.json {
            session.screen.line(&run_line(&session.screen, &run))?;
        }
        done.push(run);
    }
    if session.answered_json(|| listing(&done))? {
        return Ok(());
    }
    let failed = done.iter().filter(|run| run.status == RunStatus::Failed).count();
    let all = count(done.len() as u64, "run");
    session.screen.line(&match failed {
        0 => format!("{all} done"),
        failed => {
            format!("{all} done, {failed} failed; `tine run start --failed` interprets them again")
        }
    })
}

/// Looks up a run in all projects, because a queued run may belong to any.
fn run_of_any_project(
    session: &CliSession,
    engine: &Engine,
    id: InterpretationId,
) -> Result<InterpretationView> {
    let mut run = match engine.interpretation(&session.call, id) {
        Ok(run) => Ok(run),
        Err(mine) => {
            let projects = engine.projects()?.into_iter();
            let elsewhere = projects.map(|it| session.call.clone().in_project(it.id));
            let mut found = elsewhere.map(|call| engine.interpretation(&call, id));
            found.find(|found| found.is_ok()).unwrap_or(Err(mine))
        }
    }?;
    run.detail.remove("request");
    run.detail.remove("response");
    Ok(run)
}

fn retry(session: &CliSession, id: InterpretationId, wait: bool) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let mut run = knowledge.retry_interpretation(&session.call, id)?;
    if wait {
        run = knowledge.await_interpretation(&session.call, run.id)?;
    }
    if session.answered_json(|| InterpretationView::without_bytes(run.clone()))? {
        return Ok(());
    }
    session.screen.line(&run_line(&session.screen, &run))
}

fn show(session: &CliSession, id: InterpretationId, bytes: bool) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let mut run = knowledge.interpretation(&session.call, id)?;
    let document = || match bytes {
        true => run.clone(),
        false => InterpretationView::without_bytes(run.clone()),
    };
    if session.answered_json(document)? {
        return Ok(());
    }
    let (request, response) = (run.detail.remove("request"), run.detail.remove("response"));
    session.screen.text(Paging::Paged, |out| {
        write_rows(out, &session.screen, 0, &run_rows(&run))?;
        for id in &run.observations {
            writeln!(out, "  {id}")?;
        }
        if bytes {
            write_bytes(out, session, "request", request.as_ref())?;
            write_bytes(out, session, "response", response.as_ref())?;
        }
        Ok(())
    })
}

fn run_rows(run: &InterpretationView) -> Vec<(String, String)> {
    let mut rows = vec![
        row("run", run.id),
        row("status", run.status.as_str()),
        row("interpreter", visible(&run.interpreter)),
        row("source", run.source),
        row("queued", precise_time(run.queued_at)),
    ];
    let times = [("started", run.started_at), ("finished", run.finished_at)];
    for (name, at) in times.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        rows.push(row(name, precise_time(at)));
    }
    rows.push(row("attempts", run.attempts));
    if let Some(first) = run.retry_of {
        rows.push(row("retry of", first));
    }
    for (name, value) in run.detail.iter().filter(|(_, value)| !value.is_null()) {
        let value = match value {
            Json::String(text) => visible(text).into_owned(),
            other => visible(&other.to_canonical()).into_owned(),
        };
        rows.push(row(&name.replace('_', " "), value));
    }
    if let Some(error) = &run.error {
        rows.push(row("error", visible(error)));
    }
    rows.extend(run.notes.iter().map(|note| row("note", visible(note))));
    if !run.unknown_fields.is_empty() {
        rows.push(row("not in schemas", visible(&run.unknown_fields.join(", "))));
    }
    rows.push(row("observations", run.observations.len()));
    rows
}

fn write_bytes(
    out: &mut dyn Write,
    session: &CliSession,
    name: &str,
    bytes: Option<&Json>,
) -> Result<()> {
    let title = session.screen.paint.bold(name);
    match bytes {
        None => Ok(writeln!(out, "\n{title}: none")?),
        Some(Json::String(text)) => Ok(writeln!(out, "\n{title}:\n{}", visible(text))?),
        Some(other) => Ok(writeln!(out, "\n{title}:\n{}", other.to_canonical())?),
    }
}

fn compare(session: &CliSession, pair: RunPair) -> Result<()> {
    let found = session.engine.knowledge().compare_interpretations(&session.call, pair)?;
    if session.answered_json(|| found.clone())? {
        return Ok(());
    }
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        let mut all = |mark: &str, these: &[ObservationView]| -> Result<()> {
            for one in these {
                let entity_type = visible(&one.observation.entity_type);
                let line = observation_line(&session.screen, one, None);
                writeln!(out, "{mark} {entity_type}  {line}")?;
            }
            Ok(())
        };
        all("+", &found.gained)?;
        all("-", &found.lost)?;
        for one in &found.changed {
            let observation = &one.after.observation;
            let fields = visible(&one.fields.join(", ")).into_owned();
            let entity = paint.hash(&observation.id.entity.to_string());
            writeln!(out, "~ {}  {entity}  {fields}", visible(&observation.entity_type))?;
            for (mark, view) in [("-", &one.before), ("+", &one.after)] {
                let fields = &view.observation.fields;
                writeln!(out, "    {mark} {}", fields_line(fields, room(&session.screen, 6)))?;
            }
        }
        writeln!(
            out,
            "{} gained, {} lost, {} changed, {} the same",
            found.gained.len(),
            found.lost.len(),
            found.changed.len(),
            found.same
        )?;
        Ok(())
    })
}

/// A finding of a replayed run. It is not stored, and no server returns it.
#[derive(Serialize)]
struct ReplayedFinding {
    entity_type: String,
    fields: tine_api::bodies::Raw,
    span: Option<[usize; 2]>,
}

impl From<&Finding> for ReplayedFinding {
    fn from(it: &Finding) -> Self {
        ReplayedFinding {
            entity_type: it.entity_type.clone(),
            fields: tine_api::bodies::raw(&Json::Object(it.fields.clone())),
            span: it.span.as_ref().map(|span| [span.start, span.end]),
        }
    }
}

fn replay(session: &CliSession, id: InterpretationId) -> Result<()> {
    let instead = "`tine run show RUN --bytes` shows the recorded bytes";
    let engine = session.engine.require_local("tine run replay", instead)?;
    let found = engine.replay_interpretation(&session.call, id)?;
    let items = || found.iter().map(ReplayedFinding::from).collect();
    if session.answered_json(|| Listing::<ReplayedFinding>::all(items()))? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        for one in &found {
            let span = match &one.span {
                Some(span) => format!("bytes {}–{}", span.start, span.end),
                None => "no bytes".to_owned(),
            };
            let fields = fields_line(&one.fields, room(&session.screen, 34));
            writeln!(out, "{:<12}  {span:<16}  {fields}", visible(&one.entity_type))?;
        }
        writeln!(out, "{} recomputed; nothing was stored", count(found.len() as u64, "finding"))?;
        Ok(())
    })
}

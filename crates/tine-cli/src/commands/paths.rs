//! `tine log`, `turns` and `path`: shows the turns or commits along a path.

use clap::{Args, ValueEnum};
use tine_core::{Json, Reference, Role};
use tine_engine::{CommitView, PathPage, PathQuery, Selection, WindowQuery};
use tine_formats::render::{
    Budget, Format, Note, NoteKind, OpenCalls, Options, RenderError, Rendered, Rendering, render,
    render_path, whole_path,
};

use super::append::role_parser;
use super::commits;
use crate::arguments::reference;
use crate::command_error::{CommandError, Result};
use crate::commit_view::{commit_line, write_commit};
use crate::graph::{self, GraphNode};
use crate::labels::Labels;
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::visible;
use crate::transcript::{one_line, write_turn, write_wrapped};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine log
  tine log other -n 5
  tine log --oneline main~10
  tine log -3                       the last three turns
  tine log --commits -n 5           commits of main
  tine log --graph                  all commits as a graph")]
pub(crate) struct LogArgs {
    /// End of the path: a turn, a branch or a bookmark [default: main]
    #[arg(value_name = "REF", value_parser = reference)]
    to: Option<Reference>,
    /// Show only the last N
    #[arg(short = 'n', long = "number", alias = "n", value_name = "N")]
    number: Option<usize>,
    /// Show one line per turn or commit
    #[arg(long)]
    oneline: bool,
    /// Show commits instead of turns
    #[arg(long)]
    pub(crate) commits: bool,
    /// Draw the graph of commits, of all branches or of the named one
    #[arg(long)]
    graph: bool,
}

pub(crate) fn log(session: &CliSession, args: LogArgs) -> Result<()> {
    if args.graph {
        return commits_graph(session, args.to, args.number);
    }
    if args.commits {
        return commits_log(session, &args);
    }
    let mut path = read_path(session, args.to, args.number)?;
    path.turns.reverse();
    if session.answered_json(|| path.clone())? {
        return Ok(());
    }
    let labels = match args.oneline {
        true => Labels::default(),
        false => Labels::with_commits(session, &path.conversation)?,
    };
    session.screen.text(Paging::Paged, |out| {
        for (index, turn) in path.turns.iter().enumerate() {
            if args.oneline {
                writeln!(out, "{}", one_line(&session.screen, turn, 0))?;
                continue;
            }
            if index > 0 {
                writeln!(out)?;
            }
            write_turn(out, &session.screen, turn, &labels)?;
        }
        Ok(())
    })
}

fn commits_log(session: &CliSession, args: &LogArgs) -> Result<()> {
    let branch = args.to.as_ref().map_or(session.branch(), Reference::as_str);
    let found = commits::listed(session, Some(branch.to_owned()), args.number)?;
    if commits::answered(session, &found)? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        for (index, it) in found.items.iter().enumerate() {
            if args.oneline {
                writeln!(out, "{}", commit_line(&session.screen, it, 0))?;
                continue;
            }
            if index > 0 {
                writeln!(out)?;
            }
            write_commit(out, &session.screen, it)?;
        }
        Ok(())
    })
}

fn commits_graph(
    session: &CliSession,
    branch: Option<Reference>,
    last: Option<usize>,
) -> Result<()> {
    let branch = branch.map(|branch| branch.as_str().to_owned());
    let mut found = commits::listed(session, branch, None)?;
    let node = |it: &CommitView| GraphNode { id: it.hash, parents: it.commit.parents.clone() };
    let order = graph::ordered(&found.items.iter().map(node).collect::<Vec<_>>());
    let last = last.unwrap_or(usize::MAX);
    found.items = order.into_iter().take(last).map(|place| found.items[place].clone()).collect();
    if commits::answered(session, &found)? {
        return Ok(());
    }
    let rows = graph::draw(&found.items.iter().map(node).collect::<Vec<_>>());
    session.screen.text(Paging::Paged, |out| {
        for row in &rows {
            match row.node {
                None => writeln!(out, "{}", row.lines)?,
                Some(place) => {
                    let taken = row.lines.chars().count() + 2;
                    let it = commit_line(&session.screen, &found.items[place], taken);
                    writeln!(out, "{}  {it}", row.lines)?;
                }
            }
        }
        Ok(())
    })
}

/// Returns the query for a path, or for its last turns.
fn path_query(
    session: &CliSession,
    to: Option<Reference>,
    last: Option<usize>,
) -> Result<PathQuery> {
    // An explicit branch or turn is looked up in all conversations; the default `main` is not.
    let conversation = match &to {
        Some(to) => session.scope_of([to.as_str()])?,
        None => Some(session.conversation()?),
    };
    // By name even for `main`: if it was deleted, that is an error and not an empty path.
    let to = match to {
        None => session.tip()?,
        Some(to) => to,
    };
    let selection = last.map_or(Selection::Whole, Selection::Last);
    Ok(PathQuery { conversation, to: Some(to), selection, cursor: None, limit: None })
}

fn read_path(session: &CliSession, to: Option<Reference>, last: Option<usize>) -> Result<PathPage> {
    let query = path_query(session, to, last)?;
    Ok(whole_path(&*session.engine, &session.call, query)?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine turn list
  tine turn list -n 10
  tine turn list --role user --branch other")]
pub(crate) struct TurnsArgs {
    /// Show only the last N
    #[arg(short = 'n', long = "number", alias = "n", value_name = "N")]
    number: Option<usize>,
    /// Only turns of this role
    #[arg(short, long, value_parser = role_parser())]
    role: Option<Role>,
    /// Branch to use [default: main]
    #[arg(short, long, value_name = "REF", value_parser = reference)]
    branch: Option<Reference>,
}

pub(crate) fn turns(session: &CliSession, args: TurnsArgs) -> Result<()> {
    // The last turns of a role can only be selected from the whole path.
    let last = args.number.filter(|_| args.role.is_none());
    let mut path = read_path(session, args.branch, last)?;
    path.turns.retain(|turn| args.role.is_none_or(|role| turn.role == role));
    let over = path.turns.len().saturating_sub(args.number.unwrap_or(usize::MAX));
    path.turns.drain(..over);
    if session.answered_json(|| path.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        for turn in &path.turns {
            writeln!(out, "{}", one_line(&session.screen, turn, 0))?;
        }
        Ok(())
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine turn path
  tine turn path other --last 10
  tine turn path --around a9d2e63be84c --before 2 --after 2
  tine turn path --format openai --max-tokens 8000 > request.json
  tine turn path --format markdown --open-calls keep
  tine turn path --format tine --no-system > messages.jsonl")]
pub(crate) struct PathArgs {
    /// End of the path: a turn, a branch or a bookmark [default: main]
    #[arg(value_name = "REF", value_parser = reference, conflicts_with = "around")]
    to: Option<Reference>,
    /// Show only the last N turns
    #[arg(long, value_name = "N", conflicts_with = "around")]
    last: Option<usize>,
    /// Show only the turns around this one
    #[arg(long, value_name = "TURN", value_parser = reference)]
    around: Option<Reference>,
    /// Number of turns before it
    #[arg(long, value_name = "N", default_value_t = 3, requires = "around")]
    before: usize,
    /// Number of turns after it
    #[arg(long, value_name = "N", default_value_t = 3, requires = "around")]
    after: usize,
    /// Branch to follow after it
    #[arg(short, long, requires = "around")]
    branch: Option<String>,
    /// Format: text, markdown, openai, anthropic or gemini (a request), or tine (JSON Lines for
    /// `tine append --messages`)
    #[arg(long, default_value = "text", hide_possible_values = true)]
    format: PathFormat,
    /// Cut the start of the path to fit, counted with OpenAI's o200k_base tokenizer
    #[arg(long, value_name = "N", conflicts_with = "around")]
    max_tokens: Option<u64>,
    /// Tool calls without results: close them with a placeholder result, report them as an error,
    /// or keep them [default: close]
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    open_calls: Option<OpenCallsChoice>,
    /// Leave out the system prompt
    #[arg(long)]
    no_system: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PathFormat {
    Text,
    Tine,
    Openai,
    Anthropic,
    Gemini,
    Markdown,
}

impl PathFormat {
    /// Returns the rendering format; `None` for the transcript.
    fn format(self) -> Option<Format> {
        match self {
            PathFormat::Text => None,
            PathFormat::Tine => Some(Format::Tine),
            PathFormat::Openai => Some(Format::OpenAi),
            PathFormat::Anthropic => Some(Format::Anthropic),
            PathFormat::Gemini => Some(Format::Gemini),
            PathFormat::Markdown => Some(Format::Markdown),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OpenCallsChoice {
    Close,
    Report,
    Keep,
}

impl From<OpenCallsChoice> for OpenCalls {
    fn from(choice: OpenCallsChoice) -> Self {
        match choice {
            OpenCallsChoice::Close => OpenCalls::Close,
            OpenCallsChoice::Report => OpenCalls::Report,
            OpenCallsChoice::Keep => OpenCalls::Keep,
        }
    }
}

pub(crate) fn path(session: &CliSession, args: PathArgs) -> Result<()> {
    if args.format == PathFormat::Text && (args.max_tokens.is_some() || args.open_calls.is_some()) {
        let why = "--max-tokens and --open-calls need a --format other than text";
        return Err(CommandError::invalid(why));
    }
    if args.around.is_some() {
        return window(session, &args);
    }
    if let Some(format) = args.format.format() {
        let query = path_query(session, args.to.clone(), args.last)?;
        return write_rendering(session, format, !args.no_system, &args, |options| {
            render_path(&*session.engine, &session.call, query, options)
        });
    }
    let path = read_path(session, args.to.clone(), args.last)?;
    if session.answered_json(|| path.clone())? {
        return Ok(());
    }
    let prompt = path.root.as_ref().and_then(|root| root.system_prompt.as_deref());
    let prompt = prompt.filter(|_| !args.no_system);
    let labels = Labels::of(session, &path.conversation)?;
    session.screen.text(Paging::Paged, |out| {
        let mut first = true;
        if let Some(prompt) = prompt {
            let root = session.screen.paint.role(Role::System, "system (root)");
            writeln!(out, "{root}")?;
            write_wrapped(out, &session.screen, prompt, None)?;
            first = false;
        }
        for turn in &path.turns {
            if !first {
                writeln!(out)?;
            }
            first = false;
            write_turn(out, &session.screen, turn, &labels)?;
        }
        Ok(())
    })
}

fn window(session: &CliSession, args: &PathArgs) -> Result<()> {
    let Some(around) = &args.around else { return Ok(()) };
    let query = WindowQuery {
        turn: session.turn(around)?,
        branch: args.branch.clone(),
        before: args.before,
        after: args.after,
    };
    let window = session.engine.window(&session.call, query)?;
    if let Some(format) = args.format.format() {
        let (conversation, turns) = (window.conversation, window.turns);
        let path = PathPage { conversation, root: None, to: None, turns, next: None };
        return write_rendering(session, format, false, args, |options| render(&path, options));
    }
    if session.answered_json(|| window.clone())? {
        return Ok(());
    }
    let labels = Labels::of(session, &window.conversation)?;
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        if window.more_before {
            writeln!(out, "{}\n", paint.dim("… earlier turns"))?;
        }
        for (index, turn) in window.turns.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_turn(out, &session.screen, turn, &labels)?;
        }
        if window.more_after {
            writeln!(out, "\n{}", paint.dim("… later turns"))?;
        }
        Ok(())
    })
}

/// Writes the rendered request to standard output and notes to standard error.
fn write_rendering(
    session: &CliSession,
    format: Format,
    system: bool,
    args: &PathArgs,
    render: impl FnOnce(&Options<'_>) -> std::result::Result<Rendering, RenderError>,
) -> Result<()> {
    let count = tine_llm::tokens::count;
    let budget = args.max_tokens.map(|max_tokens| Budget { max_tokens, count: &count });
    let open_calls = args.open_calls.map_or(OpenCalls::Close, OpenCalls::from);
    let rendering = render(&Options { format, open_calls, system, budget })?;
    if session.answered_json(|| tine_formats::render::RenderingJson::from(rendering.clone()))? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        match &rendering.rendered {
            Rendered::Text(text) => write!(out, "{text}")?,
            Rendered::Request(request) if format == Format::Tine => {
                let messages = request.get("messages").and_then(Json::as_array);
                for message in messages.unwrap_or_default() {
                    writeln!(out, "{}", message.to_canonical())?;
                }
            }
            Rendered::Request(request) => writeln!(out, "{}", request.to_canonical())?,
        }
        Ok(())
    })?;
    for note in &rendering.notes {
        session.screen.aside(&note_line(note));
    }
    Ok(())
}

fn note_line(note: &Note) -> String {
    let kind = match note.kind {
        NoteKind::LeftOut => "left out",
        NoteKind::Changed => "changed",
        NoteKind::Added => "added",
        NoteKind::Kept => "kept",
    };
    let turn = note.turn.map(|turn| format!(" (turn {turn})")).unwrap_or_default();
    format!("note: {kind}: {}{turn}: {}", visible(&note.what), visible(&note.why))
}

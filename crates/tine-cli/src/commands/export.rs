//! `tine export`: writes whole conversations to files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tine_core::{ConversationId, ErrorKind, Reference};
use tine_engine::Call;
use tine_formats::bundle::write_bundles;
use tine_formats::export::{self, ExportFormat};
use tine_formats::html_page;

use crate::arguments::{local_only_error, reference};

use crate::command_error::{CommandError, Result};
use crate::commands::conversations;
use crate::session::{CliSession, SessionEngine};
use crate::terminal::text::count;

#[derive(Debug, Args)]
#[command(after_help = "\
A bundle contains everything: all turns, branches and bookmarks and the operation log, with their \
hashes. Importing a bundle and exporting it again gives the same bytes. A web page (html) contains \
the bundle and shows it in a browser; `tine import` reads it too.

The other formats contain what is shown: markdown for reading, openai and anthropic as JSON Lines \
with one request per branch, chatgpt as a tree in the form of ChatGPT's export.

Examples:
  tine export -o trip.jsonl
  tine export trip other > two.jsonl
  tine export --all | gzip > all.jsonl.gz
  tine export trip --format html -o trip.html
  tine export trip --format markdown --to main~3")]
pub(crate) struct ExportArgs {
    /// Conversations to export [default: -c, or the only one]
    #[arg(value_name = "CONVERSATION", conflicts_with = "all")]
    conversations: Vec<String>,
    /// Export every conversation of the project
    #[arg(short, long)]
    all: bool,
    /// Export every conversation of every project
    #[arg(long, conflicts_with_all = ["conversations", "all", "to"])]
    everything: bool,
    /// Format to write
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormatArg,
    /// Export only the path to this turn or branch
    #[arg(long, value_name = "REF", value_parser = reference)]
    to: Option<Reference>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The forms of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExportFormatArg {
    /// Everything, with hashes
    #[default]
    Bundle,
    /// A web page that contains the bundle
    Html,
    /// Text for reading
    Markdown,
    /// Requests for OpenAI's Chat Completions API
    Openai,
    /// Requests for Anthropic's Messages API
    Anthropic,
    /// A tree in the form of ChatGPT's export
    Chatgpt,
}

impl ExportFormatArg {
    /// Returns the export form, unless it is a bundle or a page.
    fn foreign_form(self) -> Option<ExportFormat> {
        match self {
            ExportFormatArg::Bundle | ExportFormatArg::Html => None,
            ExportFormatArg::Markdown => Some(ExportFormat::Markdown),
            ExportFormatArg::Openai => Some(ExportFormat::OpenAi),
            ExportFormatArg::Anthropic => Some(ExportFormat::Anthropic),
            ExportFormatArg::Chatgpt => Some(ExportFormat::ChatGpt),
        }
    }
}

/// Conversations by project.
type SelectedConversations = Vec<(Call, Vec<ConversationId>)>;

pub(crate) fn export(session: &CliSession, args: &ExportArgs) -> Result<()> {
    if args.to.is_some() && args.format.foreign_form().is_none() {
        return Err(CommandError::invalid(
            "bundles and pages contain whole conversations; choose another --format for a path",
        ));
    }
    let selected = select_conversations(session, args)?;
    match args.output.as_deref() {
        None => to_stdout(session, args, &selected),
        Some(path) if path == Path::new("-") => to_stdout(session, args, &selected),
        Some(path) => {
            to_file(session, args, &selected, path)?;
            #[derive(Serialize)]
            struct ExportDocument {
                file: PathBuf,
                conversations: usize,
            }
            // The project's own log does not count as a conversation.
            let ids = selected.iter().flat_map(|(_, ids)| ids);
            let conversations = ids.filter(|id| !id.as_str().starts_with('~')).count();
            if session.answered_json(|| ExportDocument { file: path.to_owned(), conversations })? {
                return Ok(());
            }
            let written = count(conversations as u64, "conversation");
            session.screen.line(&format!("wrote {written} to {}", path.display()))
        }
    }
}

fn select_conversations(session: &CliSession, args: &ExportArgs) -> Result<SelectedConversations> {
    if args.everything {
        let mut selected = Vec::new();
        for project in session.engine.projects()? {
            let call = session.call.clone().in_project(project.id);
            let ids = everything(session, &call, args)?;
            selected.push((call, ids));
        }
        return Ok(selected);
    }
    let call = session.call.clone();
    if args.all {
        let ids = everything(session, &call, args)?;
        return Ok(vec![(call, ids)]);
    }
    if args.conversations.is_empty() {
        let id = session.conversation()?;
        return Ok(vec![(call, vec![session.engine.conversation(&session.call, &id)?.id])]);
    }
    // Look up all conversations before writing, to avoid a partial bundle.
    let found = |id: &String| {
        let id = session.conversation_id(id)?;
        Ok(session.engine.conversation(&session.call, &id)?.id)
    };
    let ids = args.conversations.iter().map(found).collect::<Result<_>>()?;
    Ok(vec![(call, ids)])
}

/// Returns every conversation of a project, and for a bundle also the project's own log.
fn everything(session: &CliSession, call: &Call, args: &ExportArgs) -> Result<Vec<ConversationId>> {
    match &session.engine {
        SessionEngine::Local(engine) if args.format.foreign_form().is_none() => {
            Ok(engine.exported(call)?)
        }
        _ => {
            let all = conversations::all_of(session, call, true)?;
            Ok(all.into_iter().map(|conversation| conversation.id).collect())
        }
    }
}

/// Writes the export, created locally or by the server.
fn write(
    session: &CliSession,
    args: &ExportArgs,
    selected: &SelectedConversations,
    out: &mut dyn Write,
) -> Result<()> {
    let (engine, to) = (&*session.engine, args.to.as_ref());
    match args.format.foreign_form() {
        Some(form) => {
            for (call, ids) in selected {
                export::write(engine, call, ids, to, form, out)?;
            }
            Ok(())
        }
        None if args.format == ExportFormatArg::Html => {
            html_page::wrap(out, |out| bundle(session, args, selected, out))
        }
        None => bundle(session, args, selected, out),
    }
}

fn bundle(
    session: &CliSession,
    args: &ExportArgs,
    selected: &SelectedConversations,
    out: &mut dyn Write,
) -> Result<()> {
    match (&session.engine, selected.as_slice()) {
        (SessionEngine::Local(engine), selected) => {
            Ok(write_bundles(engine, selected, out).map(|_| ())?)
        }
        (SessionEngine::Remote(client), [(call, ids)]) => {
            // Without ids, the server exports the whole project.
            let named = if args.all { &[][..] } else { ids };
            Ok(client.export(call, named)?.write(out)??)
        }
        (SessionEngine::Remote(client), _) => Err(local_only_error(
            "export --everything",
            client.address(),
            "export each project with --project and --all",
        )),
    }
}

fn to_stdout(
    session: &CliSession,
    args: &ExportArgs,
    selected: &SelectedConversations,
) -> Result<()> {
    let mut out = PipeWatcher { inner: BufWriter::new(io::stdout().lock()), closed: false };
    let written = write(session, args, selected, &mut out);
    let flushed = out.flush();
    if out.closed {
        return Err(CommandError::ClosedPipe);
    }
    written?;
    Ok(flushed?)
}

/// Records that the reader closed the pipe, however the error is wrapped later.
struct PipeWatcher<W> {
    inner: W,
    closed: bool,
}

impl<W: Write> PipeWatcher<W> {
    fn record_closed<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.closed |= error.kind() == io::ErrorKind::BrokenPipe;
        }
        result
    }
}

impl<W: Write> Write for PipeWatcher<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(bytes);
        self.record_closed(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.record_closed(result)
    }
}

/// Writes to a temporary file and renames it: a failed export leaves an existing file unchanged.
/// The permissions of an existing file are kept, symbolic links stay links, and pipes and devices
/// are written to directly.
fn to_file(
    session: &CliSession,
    args: &ExportArgs,
    selected: &SelectedConversations,
    path: &Path,
) -> Result<()> {
    let unwritable = |error: io::Error| {
        CommandError::refused(
            ErrorKind::Invalid,
            format!("{} cannot be written: {error}", path.display()),
        )
    };
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir()) {
        let file = File::options().write(true).open(path).map_err(unwritable)?;
        let mut out = BufWriter::new(file);
        write(session, args, selected, &mut out)?;
        return out.flush().map_err(unwritable);
    }
    let target = match fs::read_link(path) {
        Ok(to) if there.is_none() => path.parent().unwrap_or(Path::new("")).join(to),
        Ok(_) => path.canonicalize().map_err(unwritable)?,
        Err(_) => path.to_owned(),
    };
    let mut partial = target.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let file = File::create_new(&partial).map_err(unwritable)?;
    let finish = || -> Result<()> {
        if let Some(there) = there.filter(fs::Metadata::is_file) {
            file.set_permissions(there.permissions()).map_err(unwritable)?;
        }
        let mut out = BufWriter::new(&file);
        write(session, args, selected, &mut out)?;
        out.flush().map_err(unwritable)?;
        file.sync_all().map_err(unwritable)?;
        fs::rename(&partial, &target).map_err(unwritable)
    };
    let finished = finish();
    if finished.is_err() {
        // Ignore errors here: the export's own error is returned.
        let _ = fs::remove_file(&partial);
    }
    finished
}

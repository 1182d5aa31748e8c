//! `tine export`: whole conversations as files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tine_core::{ConversationId, Kind};
use tine_formats::bundle::write_bundle;

use crate::commands::conversations;
use crate::failure::{Failure, Result};
use crate::session::{Place, Session};
use crate::terminal::text::count;

#[derive(Debug, Args)]
#[command(after_help = "\
A bundle holds everything: deleted turns, branches, bookmarks and the operation log, each with \
its hash. Importing it elsewhere and exporting it again gives the same bytes.

Examples:
  tine export -o trip.jsonl
  tine export trip other > two.jsonl
  tine export --all | gzip > all.jsonl.gz")]
pub(crate) struct ExportArgs {
    /// The conversations [default: -c, or the only one]
    #[arg(value_name = "CONVERSATION", conflicts_with = "all")]
    conversations: Vec<String>,
    /// Every conversation of the project
    #[arg(short, long)]
    all: bool,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn export(session: &Session, args: &ExportArgs) -> Result<()> {
    let chosen = chosen(session, args)?;
    match args.output.as_deref() {
        None => to_stdout(session, args, &chosen),
        Some(path) if path == Path::new("-") => to_stdout(session, args, &chosen),
        Some(path) => {
            to_file(session, args, &chosen, path)?;
            #[derive(Serialize)]
            struct Document {
                file: PathBuf,
                conversations: usize,
            }
            let conversations = chosen.len();
            if session.answered_json(|| Document { file: path.to_owned(), conversations })? {
                return Ok(());
            }
            let written = count(conversations as u64, "conversation");
            session.screen.line(&format!("wrote {written} to {}", path.display()))
        }
    }
}

fn chosen(session: &Session, args: &ExportArgs) -> Result<Vec<ConversationId>> {
    if args.all {
        let all = conversations::all(session, true)?;
        return Ok(all.into_iter().map(|conversation| conversation.id).collect());
    }
    if args.conversations.is_empty() {
        let id = session.conversation()?;
        return Ok(vec![session.engine.conversation(&session.call, &id)?.id]);
    }
    // Looked up before the first line is written: half a bundle is of no use to anybody.
    let found = |id: &String| {
        let id = session.conversation_id(id)?;
        Ok(session.engine.conversation(&session.call, &id)?.id)
    };
    args.conversations.iter().map(found).collect()
}

/// Writes a bundle, made here or by the server.
fn write(
    session: &Session,
    args: &ExportArgs,
    chosen: &[ConversationId],
    out: &mut dyn Write,
) -> Result<()> {
    match &session.engine {
        Place::Here(engine) => {
            let whole = if args.all { engine.exported(&session.call)? } else { chosen.to_vec() };
            write_bundle(engine, &session.call, &whole, out)?;
            Ok(())
        }
        Place::There(client) => {
            // All of a project need not be named one by one.
            let named = if args.all { &[] } else { chosen };
            Ok(client.export(&session.call, named)?.write(out)??)
        }
    }
}

fn to_stdout(session: &Session, args: &ExportArgs, chosen: &[ConversationId]) -> Result<()> {
    let mut out = Watched { inner: BufWriter::new(io::stdout().lock()), closed: false };
    let written = write(session, args, chosen, &mut out);
    let flushed = out.flush();
    if out.closed {
        return Err(Failure::ClosedPipe);
    }
    written?;
    Ok(flushed?)
}

/// Remembers that the reader has gone, however the error is wrapped on its way back.
struct Watched<W> {
    inner: W,
    closed: bool,
}

impl<W: Write> Watched<W> {
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.closed |= error.kind() == io::ErrorKind::BrokenPipe;
        }
        result
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.note(result)
    }
}

/// Writes beside the file and renames at the end: a failed export leaves an older one as it was.
fn to_file(
    session: &Session,
    args: &ExportArgs,
    chosen: &[ConversationId],
    path: &Path,
) -> Result<()> {
    let unwritable = |error: &io::Error| {
        Failure::refused(Kind::Invalid, format!("{} cannot be written: {error}", path.display()))
    };
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let file = File::create_new(&partial).map_err(|error| unwritable(&error))?;
    let finish = || -> Result<()> {
        let mut out = BufWriter::new(&file);
        write(session, args, chosen, &mut out)?;
        out.flush().map_err(|error| unwritable(&error))?;
        file.sync_all().map_err(|error| unwritable(&error))?;
        fs::rename(&partial, path).map_err(|error| unwritable(&error))
    };
    let finished = finish();
    if finished.is_err() {
        // The export's own failure is what matters.
        let _ = fs::remove_file(&partial);
    }
    finished
}

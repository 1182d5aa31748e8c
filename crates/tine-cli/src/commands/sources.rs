//! `tine source`: lists sources, shows their metadata and writes their bytes.

use std::io::{self, IsTerminal, Write};

use clap::{Args, Subcommand};
use tine_core::{ErrorKind, SourceId};
use tine_engine::{RunQuery, SourceView};
use tine_store::OpenMode;

use super::store;
use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::knowledge_view::{row, run_line, source_line, write_rows};
use crate::record_args;
use crate::session::CliSession;
use crate::terminal::text::{is_plain, visible};
use crate::terminal::{Paging, precise_time};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine source add invoice.txt
  tine source list
  tine source show src_0123456789abcdef0123456789abcdef
  tine source cat src_0123456789abcdef0123456789abcdef > copy.pdf")]
pub(crate) struct SourceArgs {
    #[command(subcommand)]
    subcommand: SourceCommand,
}

#[derive(Debug, Subcommand)]
enum SourceCommand {
    /// Store a source, like `tine store source`
    Add(store::StoreSourceArgs),
    /// List sources in the order in which they were stored
    List {
        /// Show at most N
        #[arg(short = 'n', long = "number", value_name = "N")]
        number: Option<usize>,
    },
    /// Show a source and the runs over it
    Show {
        /// Source, such as src_…
        source: String,
    },
    /// Write the bytes of a source to standard output
    Cat {
        /// Source, such as src_…
        source: String,
        /// Write binary data even to a terminal
        #[arg(long)]
        force: bool,
    },
}

pub(crate) fn source(globals: &Globals, args: SourceArgs) -> Result<()> {
    let open = || CliSession::open(globals, OpenMode::Existing);
    match args.subcommand {
        SourceCommand::Add(args) => store::source(globals, args),
        SourceCommand::List { number } => list(&open()?, number),
        SourceCommand::Show { source } => show(&open()?, record_args::parse_id(&source)?),
        SourceCommand::Cat { source, force } => {
            cat(&open()?, record_args::parse_id(&source)?, force)
        }
    }
}

fn list(session: &CliSession, number: Option<usize>) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let ask = |page| knowledge.sources(&session.call, page);
    let found = session.pages(number, ask)?;
    session.list(&found, |source| source_line(&session.screen, source))
}

/// Returns rows that describe a source.
pub(crate) fn source_rows(source: &SourceView) -> Vec<(String, String)> {
    let mut rows = vec![
        row("source", source.id),
        row("sha256", source.content_hash.to_hex()),
        row("bytes", source.size_bytes),
        row("type", visible(&source.mime_type)),
    ];
    if let Some(name) = &source.original_filename {
        rows.push(row("name", visible(name)));
    }
    let by = visible(&source.stored_by);
    rows.push(row("stored", format!("{} by {by}", precise_time(source.stored_at))));
    if let Some(turn) = source.turn {
        rows.push(row("turn", turn));
    }
    if source.purged {
        rows.push(row("state", "purged: its bytes were erased"));
    }
    rows
}

fn show(session: &CliSession, id: SourceId) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let source = knowledge.source(&session.call, id)?;
    if session.answered_json(|| source.clone())? {
        return Ok(());
    }
    let query = RunQuery { source: Some(id), open: false };
    let ask = |page| knowledge.interpretations(&session.call, query.clone(), page);
    let runs = session.pages(None, ask)?.items;
    session.screen.text(Paging::Paged, |out| {
        write_rows(out, &session.screen, 0, &source_rows(&source))?;
        for run in &runs {
            writeln!(out, "{}", run_line(&session.screen, run))?;
        }
        Ok(())
    })
}

fn cat(session: &CliSession, id: SourceId, force: bool) -> Result<()> {
    if session.screen.json {
        let why = "`tine source cat` writes bytes, not JSON; `tine source show` describes them";
        return Err(CommandError::invalid(why));
    }
    let knowledge = session.engine.knowledge();
    let careful = io::stdout().is_terminal() && !force;
    let mut out = io::stdout().lock();
    for nth in 0.. {
        let Some(piece) = knowledge.source_piece(&session.call, id, nth)? else { break };
        if careful && !is_plain(&piece) {
            let why = "these bytes could confuse the terminal; send them to a file or a pipe, or \
                       add --force";
            return Err(CommandError::refused(ErrorKind::Unsupported, why));
        }
        out.write_all(&piece)?;
    }
    Ok(out.flush()?)
}

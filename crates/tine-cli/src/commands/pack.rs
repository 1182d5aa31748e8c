//! `tine pack`: compresses older turns.

use clap::Args;
use serde::Serialize;
use tine_store::PackOptions;

use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::text::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Packed turns are read, searched and verified like all others; they only take less space. The
last turns of each line stay as they are, since they are read most. Others may go on working,
but writers wait while the file is shrunk at the end.

Examples:
  tine pack
  tine pack --all      also the last turns of each line, before a backup for instance")]
pub(crate) struct PackArgs {
    /// Pack everything, also what is recent
    #[arg(long)]
    all: bool,
}

pub(crate) fn pack(session: &CliSession, args: &PackArgs) -> Result<()> {
    let options = if args.all { PackOptions::EVERYTHING } else { PackOptions::default() };
    let instead = "a server packs by itself while it has time";
    let store = session.engine.require_local("tine pack", instead)?.store();
    let packed = store.pack(options)?;
    if packed.turns > 0 {
        store.scrub()?;
    }
    #[derive(Serialize)]
    struct PackDocument {
        turns: u64,
        chunks: u64,
        raw_bytes: u64,
        packed_bytes: u64,
    }
    let document = || PackDocument {
        turns: packed.turns,
        chunks: packed.chunks,
        raw_bytes: packed.raw_bytes,
        packed_bytes: packed.packed_bytes,
    };
    if session.answered_json(document)? {
        return Ok(());
    }
    session.screen.line(&format!(
        "packed {} in {}: {} bytes instead of {}",
        count(packed.turns, "turn"),
        count(packed.chunks, "chunk"),
        packed.packed_bytes,
        packed.raw_bytes
    ))
}

//! `tine pack`: compresses older turns.

use clap::Args;
use serde::Serialize;
use tine_store::PackOptions;

use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::text::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Packed turns take less space and are read, searched and verified like all others. The last turns of
each line stay unpacked, because they are read most. The store can be used meanwhile, but writers
wait while the file is shrunk at the end.

Examples:
  tine store pack
  tine store pack --all             also pack the last turns of each line")]
pub(crate) struct PackArgs {
    /// Pack recent turns too
    #[arg(long)]
    all: bool,
}

pub(crate) fn pack(session: &CliSession, args: &PackArgs) -> Result<()> {
    let options = if args.all { PackOptions::EVERYTHING } else { PackOptions::default() };
    let instead = "the server packs in the background";
    let store = session.engine.require_local("tine store pack", instead)?.store();
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

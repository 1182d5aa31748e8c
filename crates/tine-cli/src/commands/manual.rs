//! `tine manual`: writes manual pages.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::terminal::{Paging, Screen};

const EXAMPLES: &str = "\
Examples:
  tine manual ~/.local/share/man/man1      # then: man tine, man tine-fork";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManualArgs {
    /// Folder to write to; it is created if it does not exist
    folder: PathBuf,
}

/// Writes `tine.1` and one page per command.
pub(crate) fn manual(globals: &Globals, args: &ManualArgs) -> Result<()> {
    let failed = |error: std::io::Error| {
        CommandError::invalid(format!("{} cannot be written: {error}", args.folder.display()))
    };
    fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(crate::command(), &args.folder).map_err(failed)?;
    let written = format!("manual pages are in {}\n", args.folder.display());
    Screen::new(globals).text(Paging::Direct, |out| Ok(out.write_all(written.as_bytes())?))
}

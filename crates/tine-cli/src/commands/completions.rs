//! `tine completions`: prints shell completions.

use clap::Args;
use clap_complete::Shell;

use crate::arguments::{Globals, local_only_error};
use crate::command_error::Result;
use crate::terminal::{Paging, Screen};

const EXAMPLES: &str = "\
Examples:
  tine completions bash > ~/.local/share/bash-completion/completions/tine
  tine completions zsh > ~/.zfunc/_tine
  tine completions fish > ~/.config/fish/completions/tine.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    shell: Shell,
}

pub(crate) fn completions(globals: &Globals, args: &CompletionsArgs) -> Result<()> {
    if let Some(url) = globals.server_argument().map(|set| set.value).filter(|url| !url.is_empty())
    {
        return Err(local_only_error("tine completions", &url, "leave --server out"));
    }
    // The generator panics if its output is closed, so it writes to a buffer.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "tine", &mut script);
    Screen::new(globals).text(Paging::Direct, |out| Ok(out.write_all(&script)?))
}

//! `tine completions`: prints shell completions.
//!
//! Scripts for bash, zsh and fish ask `tine ls --ids` for the values of `--conversation`.

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
    let script = with_conversations(args.shell, &String::from_utf8_lossy(&script));
    Screen::new(globals).text(Paging::Direct, |out| Ok(out.write_all(script.as_bytes())?))
}

const BASH_FUNCTION: &str = "\
# Prints what --conversation accepts. Ids are given without their program: bash splits at colons.
_tine_conversations() {
    tine ls --ids --archived 2>/dev/null | sed 's/^[a-z-]*://; s|.*/||'
}

";

const ZSH_FUNCTION: &str = "\
(( $+functions[_tine_conversations] )) ||
_tine_conversations() {
    local -a ids
    ids=(${(f)\"$(tine ls --ids --archived 2>/dev/null)\"})
    compadd -a ids
}

";

/// Returns the script with the values of `--conversation` completed.
fn with_conversations(shell: Shell, script: &str) -> String {
    let mut out = String::with_capacity(script.len() + BASH_FUNCTION.len());
    let mut of_conversation = false;
    for line in script.lines() {
        let word = line.trim();
        match shell {
            Shell::Bash if of_conversation && word.starts_with("COMPREPLY=") => {
                let indent = &line[..line.len() - line.trim_start().len()];
                out.push_str(indent);
                let values = "$(compgen -W \"$(_tine_conversations)\" -- \"${cur}\")";
                out.push_str(&format!("COMPREPLY=({values})"));
            }
            Shell::Zsh if word.starts_with("'-c+[") || word.starts_with("'--conversation=[") => {
                out.push_str(&line.replace(":_default'", ":_tine_conversations'"));
            }
            Shell::Fish if line.contains(" -l conversation ") => {
                out.push_str(line);
                out.push_str(" -f -a \"(tine ls --ids --archived 2>/dev/null)\"");
            }
            _ => out.push_str(line),
        }
        out.push('\n');
        of_conversation = matches!(word, "--conversation)" | "-c)");
        if shell == Shell::Zsh && word == "autoload -U is-at-least" {
            out.push('\n');
            out.push_str(ZSH_FUNCTION);
        }
    }
    match shell {
        Shell::Bash => format!("{BASH_FUNCTION}{out}"),
        _ => out,
    }
}

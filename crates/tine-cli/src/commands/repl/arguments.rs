//! Slash commands: every command of `tine`, and a few that change the state of the session.

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use tine_core::Reference;

use crate::arguments::{Command, Globals, reference, with_api_joined};
use crate::help;

/// A line that begins with a slash.
#[derive(Debug, Parser)]
#[command(name = "tine", no_binary_name = true, disable_help_subcommand = true)]
pub(super) struct ReplArguments {
    #[command(flatten)]
    pub(super) globals: Globals,
    #[command(subcommand)]
    pub(super) line: ReplCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ReplCommand {
    #[command(flatten)]
    Tine(Box<Command>),
    /// Switch to another branch; without a name, show the current one
    Checkout(CheckoutArgs),
    /// Switch to another conversation; without an id, list them
    Conversation(ConversationArgs),
    /// List commands, or describe one
    Help {
        /// Command to describe
        command: Option<String>,
    },
    /// End the session
    #[command(alias = "exit")]
    Quit,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  /checkout osaka
  /checkout -b osaka                create a branch where the current one ends
  /checkout -b osaka main~2         create a branch at an earlier turn")]
pub(super) struct CheckoutArgs {
    /// Branch to switch to
    #[arg(required_if_eq("make", "true"))]
    pub(super) name: Option<String>,
    /// Turn where a new branch begins [default: the tip of the current one]
    #[arg(value_name = "REF", value_parser = reference, requires = "make")]
    pub(super) at: Option<Reference>,
    /// Create the branch first
    #[arg(short = 'b')]
    pub(super) make: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  /conversation                     list conversations
  /conversation trip
  /conversation notes --new
  /conversation notes --system 'Be brief.'")]
pub(super) struct ConversationArgs {
    /// Id of the conversation
    pub(super) id: Option<String>,
    /// Create the conversation
    #[arg(short, long, requires = "id")]
    pub(super) new: bool,
    /// Create the conversation with this system prompt
    #[arg(long, value_name = "TEXT", requires = "id")]
    pub(super) system: Option<String>,
}

/// Returns the definition of a line. The environment's conversation is ignored, because the
/// session's current conversation overrides it.
pub(super) fn command() -> clap::Command {
    ReplArguments::command().mut_arg("conversation", |argument| argument.env(None::<&str>))
}

/// Rewrites help and usage to show commands with a slash.
pub(super) fn with_slashes(text: &str) -> String {
    let mut lines = String::new();
    for line in text.split_inclusive('\n') {
        let usage = line.strip_prefix("Usage: ").map(|rest| ("Usage: ", rest));
        let more = || line.strip_prefix("       tine ").map(|rest| ("       ", rest));
        let example = || line.strip_prefix("  tine ").map(|rest| ("  ", rest));
        match usage.or_else(more).or_else(example) {
            Some((before, rest)) => {
                let rest = rest.strip_prefix("tine ").unwrap_or(rest);
                lines.push_str(&format!("{before}/{rest}"));
            }
            None => lines.push_str(line),
        }
    }
    lines
}

/// Parses the tokens of a line, the first without its slash.
pub(super) fn parse(tokens: Vec<String>) -> Result<ReplArguments, clap::Error> {
    let command = help::arrange(command());
    let tokens = with_api_joined(tokens.into_iter().map(Into::into).collect());
    let matches = command.clone().try_get_matches_from(help::with_numbers(&command, tokens))?;
    ReplArguments::from_arg_matches(&matches)
}

//! Families of commands that only group others: `tine turn`, `relation`, `run` and `server`.
//!
//! A member takes the arguments of the command that it stands for, and [`super::run`] runs that
//! command. Families with an action of their own (`branch`, `commit`, `entity` …) are defined with
//! it.

use clap::{Args, Subcommand};

use super::{annotations, edits, interpret, merge, paths, relations, serve, token, watch};
use crate::arguments::Command;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine turn list -n 10
  tine turn path --format openai > request.json
  tine turn tag main good budget")]
pub(crate) struct TurnArgs {
    #[command(subcommand)]
    subcommand: TurnCommand,
}

#[derive(Debug, Subcommand)]
enum TurnCommand {
    /// List the turns of a branch, one per line
    List(paths::TurnsArgs),
    /// Print a path, first turn first, as text or as a provider's request
    Path(paths::PathArgs),
    /// Show a turn as two
    Split(edits::SplitArgs),
    /// Show or change the tags of a turn
    Tag(annotations::TagArgs),
    /// Show or set the title of a turn or of the conversation
    Title(annotations::TitleArgs),
    /// Append a copy of a turn from elsewhere to a branch
    Inject(merge::InjectArgs),
}

impl From<TurnArgs> for Command {
    fn from(args: TurnArgs) -> Self {
        match args.subcommand {
            TurnCommand::List(args) => Command::Turns(args),
            TurnCommand::Path(args) => Command::Path(args),
            TurnCommand::Split(args) => Command::Split(args),
            TurnCommand::Tag(args) => Command::Tag(args),
            TurnCommand::Title(args) => Command::Title(args),
            TurnCommand::Inject(args) => Command::Inject(args),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine relation list conversation:trip
  tine relation add DEPENDS_ON ent_0123456789abcdef0123456789abcdef main~2
  tine relation remove DEPENDS_ON ent_0123456789abcdef0123456789abcdef main~2")]
pub(crate) struct RelationArgs {
    #[command(subcommand)]
    subcommand: RelationCommand,
}

#[derive(Debug, Subcommand)]
enum RelationCommand {
    /// List relationships
    List(relations::RelationsArgs),
    /// Add a relationship
    Add(relations::RelateArgs),
    /// Remove a relationship
    Remove(relations::UnrelateArgs),
}

impl From<RelationArgs> for Command {
    fn from(args: RelationArgs) -> Self {
        match args.subcommand {
            RelationCommand::List(args) => Command::Relations(args),
            RelationCommand::Add(args) => Command::Relate(args),
            RelationCommand::Remove(args) => Command::Unrelate(args),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
An interpretation run extracts facts from one source. Runs are never changed or removed; \
interpreting a source again adds a run.

Examples:
  tine run start src_0123456789abcdef0123456789abcdef --wait
  tine run start --failed --interpreter big --wait
  tine run list src_0123456789abcdef0123456789abcdef
  tine run show int_0123456789abcdef0123456789abcdef --bytes")]
pub(crate) struct RunArgs {
    #[command(subcommand)]
    pub(super) subcommand: interpret::RunCommand,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine server start
  tine server token create phone --project trips --read
  tine server watch --server http://127.0.0.1:8000")]
pub(crate) struct ServerArgs {
    #[command(subcommand)]
    subcommand: ServerCommand,
}

#[derive(Debug, Subcommand)]
enum ServerCommand {
    /// Serve the store and its web page over HTTP, like `tine serve`
    Start(serve::ServeArgs),
    /// Create, list and revoke access tokens
    Token(token::TokenArgs),
    /// Show changes as they happen, of a server or a store
    Watch(watch::WatchArgs),
}

impl From<ServerArgs> for Command {
    fn from(args: ServerArgs) -> Self {
        match args.subcommand {
            ServerCommand::Start(args) => Command::Serve(args),
            ServerCommand::Token(args) => Command::Token(args),
            ServerCommand::Watch(args) => Command::Watch(args),
        }
    }
}

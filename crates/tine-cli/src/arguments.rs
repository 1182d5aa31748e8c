//! What can be typed behind `tine`. Each command's own arguments stand beside its code.

use std::env;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tine_core::Reference;

use crate::commands::{
    append, branches, bundles, care, completions, conversations, demo, edits, history, marks,
    moves, pack, purge, reading, search, serve, show, token, tree,
};

const EXAMPLES: &str = "\
Turns are named by id, hash, hash prefix (8 digits and more), branch, bookmark, `main~2` \
or `root`.

Examples:
  tine demo                                 fill a store with an example and show it
  tine new trip --system 'Be brief.'        begin a conversation
  tine append -c trip 'Where to in March?'  say something
  tine tree -c trip                         see it all
  tine fork main~2 --name other             go on from an earlier turn
  tine undo                                 take the last change back

Exit codes: 0 done · 1 internal · 2 invalid · 3 not_found · 4 ambiguous · 5 conflict
  6 idempotency_mismatch · 7 protected · 8 unsupported · 9 too_large · 12 busy · 13 corrupt";

/// Version control for conversations: every turn is kept, any turn can be forked, edited,
/// reverted and verified.
#[derive(Debug, Parser)]
#[command(name = "tine", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The folder of the store, or TINE_STORE [default: tine in the user's data folder]
    #[arg(long, global = true, value_name = "PATH", env = "TINE_STORE", hide_env = true)]
    pub(crate) store: Option<PathBuf>,
    /// The project in which names are looked up, or TINE_PROJECT [default: default]
    #[arg(long, global = true, value_name = "ID", env = "TINE_PROJECT", hide_env = true)]
    pub(crate) project: Option<String>,
    /// The conversation, or TINE_CONVERSATION [default: the only one there is]
    #[arg(
        short,
        long,
        global = true,
        value_name = "ID",
        env = "TINE_CONVERSATION",
        hide_env = true
    )]
    pub(crate) conversation: Option<String>,
    /// Who changes things, or TINE_ACTOR [default: the user's name]
    #[arg(long, global = true, value_name = "NAME", env = "TINE_ACTOR", hide_env = true)]
    pub(crate) actor: Option<String>,
    /// Answer with one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) color: Colour,
    /// Write long answers directly to the terminal
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

impl Globals {
    /// Who is recorded as the author.
    pub(crate) fn actor(&self) -> String {
        let named = self.actor.clone().filter(|name| !name.is_empty());
        let user = || {
            let names = ["USER", "LOGNAME", "USERNAME"];
            names.iter().find_map(|name| env::var(name).ok().filter(|user| !user.is_empty()))
        };
        named.or_else(user).unwrap_or_else(|| "tine".to_owned())
    }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal.
    Auto,
    /// Also in files and pipes.
    Always,
    /// Nowhere.
    Never,
}

/// A turn reference, taken apart.
pub(crate) fn reference(text: &str) -> Result<Reference, tine_core::reference::ReferenceError> {
    Reference::parse(text)
}

/// Whether a reference means the root itself and not some way back from it.
pub(crate) fn names_root(reference: &Reference) -> bool {
    reference.is_root() && reference.back() == 0
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the store over HTTP
    Serve(serve::ServeArgs),
    /// Fill a store with a branching example and show it as a tree
    Demo(demo::DemoArgs),
    /// Begin a conversation
    New(conversations::NewArgs),
    /// List conversations
    Ls(conversations::LsArgs),
    /// Take a conversation over under another system prompt
    Derive(conversations::DeriveArgs),
    /// Hide a conversation from listings, or show it again
    Archive(conversations::ArchiveArgs),
    /// Say something: add turns to a branch
    Append(append::AppendArgs),
    /// Show a path, newest turn first
    Log(reading::LogArgs),
    /// Show a path, first turn first
    Path(reading::PathArgs),
    /// Find turns by what they say
    Search(search::SearchArgs),
    /// Show one turn in full
    Show(show::ShowArgs),
    /// Draw the whole tree
    Tree(tree::TreeArgs),
    /// List, make, rename and delete branches
    Branch(branches::BranchArgs),
    /// Make a branch at any turn
    Fork(branches::ForkArgs),
    /// Make another version of a turn; the old one stays
    Edit(edits::EditArgs),
    /// Show a turn as two
    Split(edits::SplitArgs),
    /// Delete a turn, and what lies below it
    Delete(edits::DeleteArgs),
    /// Move a branch back to an earlier turn; what that leaves behind is kept
    Revert(moves::RevertArgs),
    /// Move a branch forward again
    Restore(moves::RestoreArgs),
    /// List lines that no branch leads to
    Tails(moves::TailsArgs),
    /// Take a change back
    Undo(history::UndoArgs),
    /// Do again what was undone
    Redo(history::RedoArgs),
    /// List changes, newest first
    Ops(history::OpsArgs),
    /// List, set and delete bookmarks
    Bookmark(marks::BookmarkArgs),
    /// Show and change the tags of a turn
    Tag(marks::TagArgs),
    /// Show and change the title of a turn or of the conversation
    Title(marks::TitleArgs),
    /// Erase what a turn or a conversation says, for ever
    Purge(purge::PurgeArgs),
    /// Recompute every hash of the store
    Verify(care::VerifyArgs),
    /// Count what is there
    Stats(care::StatsArgs),
    /// Copy the store while it is in use
    Backup(care::BackupArgs),
    /// Keep older turns in less space
    Pack(pack::PackArgs),
    /// Write whole conversations as a bundle of JSON Lines
    Export(bundles::ExportArgs),
    /// Read a bundle, checking every hash
    Import(bundles::ImportArgs),
    /// Make, list and revoke the tokens of a server
    Token(token::TokenArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

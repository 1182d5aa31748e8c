//! The top level of the command line: global options and the list of commands. The arguments of
//! each command are defined with its code.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Parser, Subcommand, ValueEnum, value_parser};
use tine_core::facts::schema::moment;
use tine_core::{ErrorKind, Limits, Reference, Timestamp};

use crate::command_error::{CommandError, Result};
use crate::commands::{
    acp, annotations, append, blame, branch_moves, branches, commits, completions, config,
    conversations, demo, diff, doctor, drift, edits, entities, export, families, history, import,
    interpret, keys, list, maintenance, manual, mcp, merge, migrate, observations, pack, paths,
    projects, purge, relations, repl, resolve, search, serve, show, sources, status, store, sync,
    timeline, token, tree, usage, use_conversation, watch,
};
use crate::input::InputSource;
use crate::settings::{self, CliSettings, Setting, SettingOrigin};
use crate::store_location::StoreLocation;

/// Help heading of the options that every command takes.
pub(crate) const GLOBAL_HEADING: &str = "Global options";

/// The default address of `tine serve`.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8000";

/// Version control for conversations: every turn is kept and can be forked, edited and verified
#[derive(Debug, Parser)]
#[command(
    name = "tine",
    version,
    max_term_width = 100,
    override_usage = "tine [OPTIONS] <COMMAND>"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = GLOBAL_HEADING)]
pub(crate) struct Globals {
    /// Store to use: a folder or a postgres:// URL [env: TINE_STORE] [default: the user's store]
    #[arg(long, global = true, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Server to use instead of a store [env: TINE_SERVER]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// Like --server; without a URL, the configured server or http://127.0.0.1:8000
    #[arg(
        long,
        global = true,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["store", "server"]
    )]
    api: Option<String>,
    /// File with the access token of the server [env: TINE_TOKEN holds the token itself]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Project in which names are looked up [env: TINE_PROJECT] [default: default]
    #[arg(long, global = true, value_name = "ID")]
    project: Option<String>,
    /// Conversation to work on: its id, or the beginning of its id or title
    /// [env: TINE_CONVERSATION] [default: the only one, or that of `tine use`]
    #[arg(
        short,
        long,
        global = true,
        value_name = "ID",
        env = "TINE_CONVERSATION",
        hide_env = true
    )]
    pub(crate) conversation: Option<String>,
    /// Author of changes [env: TINE_ACTOR] [default: the user name]
    #[arg(long, global = true, value_name = "NAME")]
    actor: Option<String>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) color: Colour,
    /// Do not use a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// The settings file that an argument names; see [`with_settings_file`].
    #[arg(skip)]
    pub(crate) config: Option<PathBuf>,
    /// The settings of files, read before any command runs.
    #[arg(skip)]
    pub(crate) settings: CliSettings,
    /// The branch to use where none is named, if not `main`.
    #[arg(skip)]
    pub(crate) branch: Option<String>,
    /// Whether the conversation is named by its whole id, because it may not exist yet.
    #[arg(skip)]
    pub(crate) whole_id: bool,
}

impl Globals {
    /// Reads the settings files of the user and of the store's folder.
    pub(crate) fn read_settings(&mut self) -> Result<()> {
        self.settings = CliSettings::load_user_file(self.config.as_deref())?;
        if self.server()?.is_none()
            && let Ok(folder) =
                StoreLocation::from_globals(self).and_then(StoreLocation::into_folder)
        {
            self.settings.load_store_file(&folder)?;
        }
        Ok(())
    }

    /// Returns a session's options overridden by those of one line.
    pub(crate) fn overriding(self, session: &Globals) -> Globals {
        let elsewhere = self.store.is_some() || self.server.is_some() || self.api.is_some();
        let mut all = session.clone();
        if elsewhere {
            (all.store, all.server, all.api) = (self.store, self.server, self.api);
        }
        // The session's branch belongs to its conversation.
        if self.conversation.is_some() && self.conversation != all.conversation {
            all.branch = None;
        }
        all.conversation = self.conversation.or(all.conversation);
        all.token_file = self.token_file.or(all.token_file);
        all.project = self.project.or(all.project);
        all.actor = self.actor.or(all.actor);
        all.json |= self.json;
        all.no_pager |= self.no_pager;
        if self.color != Colour::Auto {
            all.color = self.color;
        }
        all
    }

    /// Returns the store that arguments, environment or settings name, if any.
    pub(crate) fn named_store(&self) -> Option<PathBuf> {
        self.store_setting().map(|set| set.value)
    }

    /// Returns the store that an argument names, ignoring the environment.
    pub(crate) fn store_argument(&self) -> Option<PathBuf> {
        self.store.clone()
    }

    /// Returns the named store and the origin of the setting.
    pub(crate) fn store_setting(&self) -> Option<Setting<PathBuf>> {
        if let Some(path) = &self.store {
            return Some(Setting {
                value: path.clone(),
                origin: SettingOrigin::Argument("--store"),
            });
        }
        if let Some(path) = env::var_os("TINE_STORE").filter(|path| !path.is_empty()) {
            return Some(Setting {
                value: path.into(),
                origin: SettingOrigin::Variable("TINE_STORE"),
            });
        }
        self.settings.store.clone()
    }

    /// Returns the named server, if any. An empty name means no server.
    pub(crate) fn server(&self) -> Result<Option<String>> {
        Ok(self.server_setting()?.map(|set| set.value))
    }

    /// Returns the named server and the origin of the setting. A store named with higher precedence
    /// overrides a server.
    pub(crate) fn server_setting(&self) -> Result<Option<Setting<String>>> {
        if let Some(set) = self.server_argument() {
            return Ok(Some(set).filter(|set| !set.value.is_empty()));
        }
        if self.store.is_some() {
            return Ok(None);
        }
        let named = env::var("TINE_SERVER").ok().filter(|url| !url.is_empty());
        let store = env::var_os("TINE_STORE").filter(|path| !path.is_empty());
        match (named, store) {
            (Some(_), Some(_)) => {
                let why = "TINE_SERVER and TINE_STORE are both set; unset one, or pass --server or \
                           --store";
                Err(CommandError::invalid(why))
            }
            (Some(value), None) => {
                Ok(Some(Setting { value, origin: SettingOrigin::Variable("TINE_SERVER") }))
            }
            (None, Some(_)) => Ok(None),
            (None, None) => Ok(self.settings.server.clone()),
        }
    }

    /// Returns the server for `--api` without a URL.
    fn default_server(&self) -> String {
        let named = env::var("TINE_SERVER").ok().filter(|url| !url.is_empty());
        let set = || self.settings.server.as_ref().map(|set| set.value.clone());
        named.or_else(set).unwrap_or_else(|| DEFAULT_SERVER.to_owned())
    }

    /// Returns the named project, if any.
    pub(crate) fn project(&self) -> Option<Setting<String>> {
        let file = self.settings.project.as_ref();
        settings::by_precedence(("--project", self.project.clone()), "TINE_PROJECT", file)
    }

    /// Returns the server that an argument names, ignoring the environment.
    pub(crate) fn server_argument(&self) -> Option<Setting<String>> {
        let set = |value, name| Setting { value, origin: SettingOrigin::Argument(name) };
        match (&self.api, &self.server) {
            (Some(none), _) if none.is_empty() => Some(set(self.default_server(), "--api")),
            (Some(named), _) => Some(set(named.clone(), "--api")),
            (None, Some(named)) => Some(set(named.clone(), "--server")),
            (None, None) => None,
        }
    }

    /// Returns an error if a server is named, for commands that need a local store.
    pub(crate) fn require_local(&self, command: &str, instead: &str) -> Result<()> {
        match self.server()? {
            None => Ok(()),
            Some(url) => Err(local_only_error(command, &url, instead)),
        }
    }

    /// Returns the token for the server, if one is configured.
    pub(crate) fn token(&self) -> Result<Option<String>> {
        let set = || env::var("TINE_TOKEN").ok().filter(|token| !token.is_empty());
        let file = match (&self.token_file, set()) {
            (Some(path), _) => path,
            (None, Some(token)) => return Ok(Some(token)),
            (None, None) => match &self.settings.token_file {
                Some(set) => &set.value,
                None => return Ok(None),
            },
        };
        let token = InputSource::from_path(file).read_text(&Limits::default())?;
        Ok(Some(token.trim().to_owned()))
    }

    /// Returns the origin of the server's token, never the token itself.
    pub(crate) fn token_origin(&self) -> Option<Setting<String>> {
        let file = self.settings.token_file.as_ref();
        let shown = |path: &PathBuf| path.display().to_string();
        let file = file.map(|set| Setting { value: shown(&set.value), origin: set.origin.clone() });
        if self.token_file.is_none() && env::var("TINE_TOKEN").is_ok_and(|token| !token.is_empty())
        {
            let value = "set".to_owned();
            return Some(Setting { value, origin: SettingOrigin::Variable("TINE_TOKEN") });
        }
        let argument = self.token_file.as_ref().map(shown);
        let argument = argument
            .map(|value| Setting { value, origin: SettingOrigin::Argument("--token-file") });
        argument.or(file)
    }

    /// Returns the name that is recorded as the author of changes.
    pub(crate) fn actor(&self) -> String {
        self.actor_setting().value
    }

    /// Returns the author's name and the origin of the setting.
    pub(crate) fn actor_setting(&self) -> Setting<String> {
        let argument = self.actor.clone().filter(|name| !name.is_empty());
        let file = self.settings.actor.as_ref();
        let user = || {
            ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| {
                let value = env::var(name).ok().filter(|user| !user.is_empty())?;
                Some(Setting { value, origin: SettingOrigin::Variable(name) })
            })
        };
        settings::by_precedence(("--actor", argument), "TINE_ACTOR", file)
            .or_else(user)
            .unwrap_or_else(|| Setting { value: "tine".to_owned(), origin: SettingOrigin::Default })
    }
}

impl Command {
    /// Returns the command that a member of a family stands for.
    pub(crate) fn member(self) -> Command {
        match self {
            Command::Turn(family) => family.into(),
            Command::Relation(family) => family.into(),
            Command::Server(family) => family.into(),
            command => command,
        }
    }
}

/// Joins `--api` with a URL that follows it. Any other word is left to the command.
pub(crate) fn with_api_joined(words: Vec<OsString>) -> Vec<OsString> {
    let address = |word: &OsString| {
        word.to_str().is_some_and(|it| it.starts_with("http://") || it.starts_with("https://"))
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    let mut ended = false;
    for word in words {
        match joined.last_mut() {
            Some(last) if !ended && last == "--api" && address(&word) => {
                last.push("=");
                last.push(word);
            }
            _ => {
                ended |= word == "--";
                joined.push(word);
            }
        }
    }
    joined
}

/// Id of the `--config` argument, distinct from the `config` arguments of commands.
const SETTINGS_FILE: &str = "settings_file";

/// Adds `--config FILE` to the command and to its subcommands, except those with a `--config` of
/// their own: for these it precedes the command's name.
pub(crate) fn with_settings_file(command: clap::Command) -> clap::Command {
    let argument = || {
        Arg::new(SETTINGS_FILE)
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help_heading(GLOBAL_HEADING)
            .help("Settings file [env: TINE_CONFIG] [default: ~/.config/tine/tine.toml]")
    };
    command.arg(argument()).mut_subcommands(|below| {
        let taken = below.get_arguments().any(|it| it.get_long() == Some("config"));
        if taken { below } else { below.arg(argument().global(true)) }
    })
}

/// Returns the settings file named at any level; the innermost wins.
pub(crate) fn settings_file(matches: &ArgMatches) -> Option<PathBuf> {
    let below = matches.subcommand().and_then(|(_, below)| settings_file(below));
    let here = || matches.try_get_one::<PathBuf>(SETTINGS_FILE).ok().flatten().cloned();
    below.or_else(here)
}

/// Creates the error for a command that does not work over a server.
pub(crate) fn local_only_error(command: &str, url: &str, instead: &str) -> CommandError {
    let why = format!("`{command}` does not work over a server ({url}); {instead}");
    CommandError::refused(ErrorKind::Unsupported, why)
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

/// Parses a day, which stands for its first moment, or a time.
pub(crate) fn day_or_time(text: &str) -> std::result::Result<Timestamp, String> {
    moment(text).ok_or_else(|| "expected a day such as 2025-03-14 or an RFC 3339 time".to_owned())
}

/// Parses a turn reference.
pub(crate) fn reference(
    text: &str,
) -> std::result::Result<Reference, tine_core::reference::ReferenceError> {
    Reference::parse(text)
}

/// Returns whether a reference is exactly `root`.
pub(crate) fn names_root(reference: &Reference) -> bool {
    reference.is_root() && reference.back() == 0
}

/// The commands. Those without a group in [`crate::help`] are hidden: older spellings of commands
/// that are now part of a family.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Import conversations of other programs, and bundles
    Import(import::ImportArgs),
    /// Create a conversation
    New(conversations::NewArgs),
    /// List conversations, most recently active first
    Ls(list::LsArgs),
    /// Choose the conversation for commands in this folder
    Use(use_conversation::UseArgs),
    /// Show the store, conversation and branch that commands use here
    Status(status::StatusArgs),
    /// Report tokens and cost by day, project, program and model
    Usage(usage::UsageArgs),
    /// Check agents and their history, the store and its surroundings
    Doctor(doctor::DoctorArgs),
    /// Show the turns of a branch, newest first
    Log(paths::LogArgs),
    /// Show one turn or commit in full
    Show(show::ShowArgs),
    /// Draw the tree of a conversation
    Tree(tree::TreeArgs),
    /// Search the text of all turns
    Search(search::SearchArgs),
    /// Append turns to a branch
    #[command(alias = "say")]
    Append(append::AppendArgs),
    /// Add another version of a turn; the old one stays
    Edit(edits::EditArgs),
    /// Delete a turn and everything below it
    Delete(edits::DeleteArgs),
    /// Move a branch back to an earlier turn
    Revert(branch_moves::RevertArgs),
    /// Undo a change
    Undo(history::UndoArgs),
    /// Redo an undone change
    Redo(history::RedoArgs),
    /// Create a branch at any turn
    Fork(branches::ForkArgs),
    /// Seal a range of turns with a message
    Commit(commits::CommitArgs),
    /// Compare two turns, branches or commits
    Diff(diff::DiffArgs),
    /// Merge what was learned on one branch into another
    Merge(merge::MergeArgs),
    /// Export conversations as bundles, web pages or text
    Export(export::ExportArgs),
    /// Exchange what is missing with another store or a server
    Sync(sync::SyncArgs),
    /// Serve the store and its web page over HTTP
    Serve(serve::ServeArgs),
    /// Branches: list, create, rename, delete, restore, tails
    Branch(branches::BranchArgs),
    /// Bookmarks: list, set, delete
    Bookmark(annotations::BookmarkArgs),
    /// Turns: list, path, split, tag, title, inject
    Turn(families::TurnArgs),
    /// Show or set the title of a turn or of the conversation
    Title(annotations::TitleArgs),
    /// Hide a conversation from lists
    Archive(conversations::ArchiveArgs),
    /// Copy a conversation under another system prompt
    Derive(conversations::DeriveArgs),
    /// List changes, newest first
    Ops(history::OpsArgs),
    /// Entities: list, show, correct, merge, provenance …
    Entity(entities::EntityArgs),
    /// Relationships: list, add, remove
    Relation(families::RelationArgs),
    /// Sources of facts: list, show, cat, add
    Source(sources::SourceArgs),
    /// Interpretation runs: start, list, status, retry …
    Run(families::RunArgs),
    /// The store: verify, stats, backup, pack, purge, migrate …
    Store(store::StoreArgs),
    /// The server: start, token, watch
    Server(families::ServerArgs),
    /// List projects
    #[command(alias = "project")]
    Projects(projects::ProjectsArgs),
    /// Settings: list, get, set, unset, path
    Config(config::ConfigArgs),
    /// Start an interactive session
    Repl(repl::ReplArgs),
    /// Run as an MCP server, for agents
    Mcp(mcp::McpArgs),
    /// Run as an ACP agent, for editors
    Acp(acp::AcpArgs),
    /// Create an example store and show it
    Demo(demo::DemoArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Write manual pages to a folder
    Manual(manual::ManualArgs),

    // Older spellings.
    /// List the turns of a branch, one per line
    #[command(hide = true)]
    Turns(paths::TurnsArgs),
    /// Print a path, first turn first, as text or as a provider's request
    #[command(hide = true)]
    Path(paths::PathArgs),
    /// Show a turn as two
    #[command(hide = true)]
    Split(edits::SplitArgs),
    /// Show or change the tags of a turn
    #[command(hide = true)]
    Tag(annotations::TagArgs),
    /// Append a copy of a turn from elsewhere to a branch
    #[command(hide = true)]
    Inject(merge::InjectArgs),
    /// Move a branch forward again after a revert
    #[command(hide = true)]
    Restore(branch_moves::RestoreArgs),
    /// List lines of turns that no branch reaches
    #[command(hide = true)]
    Tails(branch_moves::TailsArgs),
    /// List commits, newest first
    #[command(hide = true)]
    Commits(commits::CommitsArgs),
    /// List or resolve the conflicts of merges
    #[command(hide = true)]
    Resolve(resolve::ResolveArgs),
    /// Find the turn that a text or a fact comes from
    #[command(hide = true)]
    Blame(blame::BlameArgs),
    /// Binary-search for the first turn that matches
    #[command(hide = true)]
    Bisect(blame::BisectArgs),
    /// Show how far the topic has moved, commit by commit
    #[command(hide = true)]
    Drift(drift::DriftArgs),
    /// Create and show keys that sign commits
    #[command(hide = true)]
    Key(keys::KeyArgs),
    /// List all observations of an entity or a turn
    #[command(hide = true)]
    Observations(observations::ObservationsArgs),
    /// List dated facts in order
    #[command(hide = true)]
    Timeline(timeline::TimelineArgs),
    /// Add a relationship
    #[command(hide = true)]
    Relate(relations::RelateArgs),
    /// List relationships
    #[command(hide = true)]
    Relations(relations::RelationsArgs),
    /// Remove a relationship
    #[command(hide = true)]
    Unrelate(relations::UnrelateArgs),
    /// Extract facts from sources, and inspect the runs
    #[command(hide = true)]
    Interpret(interpret::InterpretArgs),
    /// Erase the content of a turn, a source or a conversation permanently
    #[command(hide = true)]
    Purge(purge::PurgeArgs),
    /// Recompute every hash of the store
    #[command(hide = true)]
    Verify(maintenance::VerifyArgs),
    /// Show the size of the store, and token usage
    #[command(hide = true)]
    Stats(maintenance::StatsArgs),
    /// Copy the store while it is in use
    #[command(hide = true)]
    Backup(maintenance::BackupArgs),
    /// Copy a whole store to a folder or a database
    #[command(hide = true)]
    Migrate(migrate::MigrateArgs),
    /// Compress older turns
    #[command(hide = true)]
    Pack(pack::PackArgs),
    /// Create, list and revoke access tokens
    #[command(hide = true)]
    Token(token::TokenArgs),
    /// Show changes as they happen
    #[command(hide = true)]
    Watch(watch::WatchArgs),
}

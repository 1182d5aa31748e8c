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
    conversations, demo, diff, drift, edits, entities, export, history, import, interpret, keys,
    maintenance, manual, mcp, merge, migrate, observations, pack, paths, purge, relations, repl,
    resolve, search, serve, show, sources, store, sync, timeline, token, tree, watch,
};
use crate::input::InputSource;
use crate::settings::{self, CliSettings, Setting, SettingOrigin};
use crate::store_location::StoreLocation;

/// The default address of `tine serve`.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8000";

const EXAMPLES: &str = "\
Turns are named by id, hash, hash prefix (8 digits and more), branch, bookmark, `main~2` \
or `root`.

Examples:
  tine demo                                 fill a store with an example and show it
  tine new trip --system 'Be brief.'        begin a conversation
  tine append -c trip 'Where to in March?'  say something
  tine tree -c trip                         see it all
  tine fork main~2 --name other             go on from an earlier turn
  tine commit -m 'Research complete'        seal what was said
  tine merge other                          bring back what was learned there
  tine undo                                 take the last change back
  tine watch --server http://127.0.0.1:8000 follow a server that `tine serve` runs
  tine entity provenance ent_…              see where a fact comes from

Exit codes: 0 done · 1 internal · 2 invalid · 3 not_found · 4 ambiguous · 5 conflict
  6 idempotency_mismatch · 7 protected · 8 unsupported · 9 too_large · 10 unauthorized
  11 forbidden · 12 busy · 13 corrupt";

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
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The folder of the store, or TINE_STORE [default: tine in the user's data folder]
    #[arg(long, global = true, value_name = "PATH")]
    store: Option<PathBuf>,
    /// The server that holds the store instead (`tine serve`), or TINE_SERVER
    #[arg(long, global = true, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// The same; without a URL the server of TINE_SERVER or tine.toml, else http://127.0.0.1:8000
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
    /// The file that holds the server's token; without it, TINE_TOKEN is the token
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The project in which names are looked up, or TINE_PROJECT [default: default]
    #[arg(long, global = true, value_name = "ID")]
    project: Option<String>,
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
    #[arg(long, global = true, value_name = "NAME")]
    actor: Option<String>,
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
    /// The file of settings that an argument names; see [`with_settings_file`].
    #[arg(skip)]
    pub(crate) config: Option<PathBuf>,
    /// What files set; read before any command runs.
    #[arg(skip)]
    pub(crate) settings: CliSettings,
    /// The branch that is meant where none is named; `main` without it.
    #[arg(skip)]
    pub(crate) branch: Option<String>,
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
                let why = "TINE_SERVER and TINE_STORE are both set; unset one, or say --server or \
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
            .help_heading("Global options")
            .help("The file of settings, or TINE_CONFIG [default: tine/tine.toml in ~/.config]")
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
    let why =
        format!("`{command}` works on the machine that keeps the store, not over {url}; {instead}");
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
    moment(text).ok_or_else(|| "give a day such as 2025-03-14 or a time as in RFC 3339".to_owned())
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

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the store over HTTP
    Serve(serve::ServeArgs),
    /// Serve the store to an agent, over standard input and output
    Mcp(mcp::McpArgs),
    /// Be an agent for an editor, over standard input and output: every session is a branch
    Acp(acp::AcpArgs),
    /// Talk and look around, line by line
    Repl(repl::ReplArgs),
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
    #[command(alias = "say")]
    Append(append::AppendArgs),
    /// Show a path, newest turn first; or commits
    Log(paths::LogArgs),
    /// List the turns of a branch, one on each line
    Turns(paths::TurnsArgs),
    /// Show a path, first turn first
    Path(paths::PathArgs),
    /// Find turns by what they say
    Search(search::SearchArgs),
    /// Show one turn or commit in full
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
    Revert(branch_moves::RevertArgs),
    /// Move a branch forward again
    Restore(branch_moves::RestoreArgs),
    /// List lines that no branch leads to
    Tails(branch_moves::TailsArgs),
    /// Seal a stretch of turns with what it is about
    Commit(commits::CommitArgs),
    /// List commits, newest first
    Commits(commits::CommitsArgs),
    /// Compare two turns, branches or commits
    Diff(diff::DiffArgs),
    /// Bring what was learned on one branch to another
    Merge(merge::MergeArgs),
    /// List conflicts that merges left, and decide them
    Resolve(resolve::ResolveArgs),
    /// Say a turn from elsewhere again at the end of a branch
    Inject(merge::InjectArgs),
    /// Show which turn a text or a fact comes from
    Blame(blame::BlameArgs),
    /// Find the first turn from which on something holds
    Bisect(blame::BisectArgs),
    /// Show how far a conversation has moved, commit by commit
    Drift(drift::DriftArgs),
    /// Make and show keys that vouch for commits
    Key(keys::KeyArgs),
    /// Take a change back
    Undo(history::UndoArgs),
    /// Do again what was undone
    Redo(history::RedoArgs),
    /// List changes, newest first
    Ops(history::OpsArgs),
    /// Show every change as it happens
    Watch(watch::WatchArgs),
    /// List, set and delete bookmarks
    Bookmark(annotations::BookmarkArgs),
    /// Show and change the tags of a turn
    Tag(annotations::TagArgs),
    /// Show and change the title of a turn or of the conversation
    Title(annotations::TitleArgs),
    /// Keep turns of hosts without branches, sources and facts
    Store(store::StoreArgs),
    /// List sources, and read their bytes
    Source(sources::SourceArgs),
    /// List everything that was ever observed of an entity or a turn
    Observations(observations::ObservationsArgs),
    /// Show what is known of things, correct it, and see where it comes from
    Entity(entities::EntityArgs),
    /// List what has a date, in order
    Timeline(timeline::TimelineArgs),
    /// Relate two things
    Relate(relations::RelateArgs),
    /// List how things hang together
    Relations(relations::RelationsArgs),
    /// Remove a relationship
    Unrelate(relations::UnrelateArgs),
    /// Read facts out of sources, and look at the runs that did
    Interpret(interpret::InterpretArgs),
    /// Erase what a turn or a conversation says, for ever
    Purge(purge::PurgeArgs),
    /// Recompute every hash of the store
    Verify(maintenance::VerifyArgs),
    /// Count what is there
    Stats(maintenance::StatsArgs),
    /// Copy the store while it is in use
    Backup(maintenance::BackupArgs),
    /// Copy a whole store to another place: a folder, a database
    Migrate(migrate::MigrateArgs),
    /// Keep older turns in less space
    Pack(pack::PackArgs),
    /// Write conversations as bundles, pages and in other programs' forms
    Export(export::ExportArgs),
    /// Bring in what other programs kept, and bundles
    Import(import::ImportArgs),
    /// Exchange what is missing with another store or a server
    Sync(sync::SyncArgs),
    /// Make, list and revoke the tokens of a server
    Token(token::TokenArgs),
    /// Show the settings in force, and where each comes from
    Config(config::ConfigArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Write manual pages into a folder
    Manual(manual::ManualArgs),
}

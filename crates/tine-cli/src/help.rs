//! Help texts: commands by group at the top level, global options last everywhere; and what to try
//! instead of an unknown command.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};

use crate::arguments::GLOBAL_HEADING;
use crate::command_error::CommandError;

/// The commands that `tine --help` lists, by group. Names separated by commas share a line.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["import", "new", "ls", "use", "status", "doctor"]),
    ("Read", &["log", "show", "tree", "search", "usage"]),
    ("Write", &["append", "edit", "delete", "revert", "undo, redo"]),
    ("Branch and merge", &["fork", "commit", "diff", "merge"]),
    ("Share", &["export", "sync", "serve"]),
    (
        "More",
        &[
            "branch",
            "bookmark",
            "turn",
            "title",
            "archive",
            "derive",
            "ops",
            "entity",
            "relation",
            "source",
            "run",
            "store",
            "server",
            "projects",
            "config",
            "repl",
            "mcp",
            "acp",
            "demo",
            "completions, manual",
        ],
    ),
];

const EXAMPLES: &str = "\
A turn is named by its id, its hash or a prefix of 8 digits, a branch, a bookmark, `root`, or a
number of steps back from any of these: `main~2`. `tine COMMAND --help` describes a command.

Examples:
  tine import --discover                    find chats of other programs on this computer
  tine ls                                   list conversations
  tine new trip --system 'Be brief.'        create a conversation
  tine append -c trip 'Where to in March?'  add a turn
  tine fork main~2 --name other             continue from an earlier turn
  tine undo                                 undo the last change
  tine serve                                open the store in a browser";

/// Words that people try, by the command that does what they mean. `purge` must never be here.
const MEANINGS: [(&str, &str); 24] = [
    ("new", "init create start begin chat"),
    ("sync", "push pull fetch clone remote mirror"),
    ("use", "checkout switch select open cd"),
    ("search", "grep find rg ag query"),
    ("revert", "reset rollback rewind back"),
    ("store verify", "fsck check validate integrity"),
    ("ls", "list dir conversations chats sessions history"),
    ("status", "st info whoami state"),
    ("delete", "rm remove del drop"),
    ("undo", "unedit undelete oops"),
    ("append", "add write tell send message post ask prompt"),
    ("edit", "amend change modify rewrite"),
    ("show", "cat view print get read"),
    ("fork", "branch-from split-off clone-turn"),
    ("branch list", "branches heads"),
    ("bookmark list", "bookmarks tags marks pins"),
    ("ops", "reflog operations oplog changes audit journal"),
    ("turn inject", "cherry-pick pick graft copy"),
    ("store pack", "gc compact compress optimize vacuum"),
    ("serve", "web ui browser daemon gui"),
    ("config", "settings preferences configure set options"),
    ("export", "dump save archive-to download"),
    ("store backup", "snapshot copy-store"),
    ("doctor", "diagnose health"),
];

/// The same for commands of a family.
const FAMILY_MEANINGS: [(&str, &str); 5] = [
    ("list", "ls all dir"),
    ("delete", "rm remove del drop revoke"),
    ("remove", "rm delete del drop"),
    ("create", "new add make"),
    ("add", "new create make"),
];

/// Moves global options below the examples of every command, and groups the top-level commands.
pub(crate) fn arrange(command: Command) -> Command {
    let (options, flags) = (global_options(&command, false), global_options(&command, true));
    let commands = grouped_commands(&command);
    let command = hide_globals(command)
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{commands}{{after-help}}"
        ))
        .after_help(format!("{EXAMPLES}\n\n{GLOBAL_HEADING}:\n{flags}"));
    command.mut_subcommands(|below| globals_last(below, &options))
}

fn is_global(argument: &Arg) -> bool {
    argument.get_help_heading() == Some(GLOBAL_HEADING)
}

fn hide_globals(command: Command) -> Command {
    command.mut_args(|it| if is_global(&it) { it.hide(true) } else { it })
}

fn globals_last(command: Command, options: &str) -> Command {
    let own = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    hide_globals(command)
        .disable_help_subcommand(true)
        .after_help(format!("{own}{GLOBAL_HEADING}:\n{options}"))
        .mut_subcommands(|below| globals_last(below, options))
}

/// Renders the global options, with or without `--help` and `--version`.
fn global_options(command: &Command, flags: bool) -> String {
    let all = command.get_arguments().filter(|it| is_global(it)).cloned();
    let mut only = Command::new("tine")
        .version("0")
        .disable_help_flag(!flags)
        .disable_version_flag(!flags)
        .max_term_width(100)
        .help_template("{options}")
        .args(all);
    only.render_help().to_string().trim_end().to_owned()
}

fn grouped_commands(command: &Command) -> String {
    let described = |names: &str| {
        let all = names.split(", ").filter_map(|name| command.find_subcommand(name));
        let abouts: Vec<String> = all.filter_map(|it| Some(it.get_about()?.to_string())).collect();
        let (first, rest) = abouts.split_first()?;
        let rest = rest.iter().map(|about| format!("; {}", uncapitalized(about)));
        Some((names.to_owned(), first.clone() + &rest.collect::<String>()))
    };
    let mut text = String::new();
    for (group, entries) in GROUPS {
        let _ = write!(text, "\n{group}:\n");
        for (name, about) in entries.iter().filter_map(|names| described(names)) {
            let _ = writeln!(text, "  {name:<19}  {about}");
        }
    }
    text.trim_end().to_owned()
}

fn uncapitalized(text: &str) -> String {
    let (first, rest) = text.split_at(text.len().min(1));
    first.to_lowercase() + rest
}

/// Follows the names of commands in the words of a call, and returns the path of commands with the
/// definition of the last one.
fn follow<'c>(root: &'c Command, words: &[OsString]) -> (Vec<&'c str>, &'c Command) {
    let (mut path, mut at) = (Vec::new(), root);
    for word in words.iter().filter_map(|word| word.to_str()) {
        if word == "--" {
            break;
        }
        if let Some(below) = at.find_subcommand(word) {
            at = below;
            path.push(below.get_name());
        }
    }
    (path, at)
}

/// Replaces `-3` by `-n3` for commands that have `-n`.
pub(crate) fn with_numbers(root: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let has_number = |at: &Command| at.get_arguments().any(|it| it.get_short() == Some('n'));
    let digits = |word: &OsString| -> Option<String> {
        let digits = word.to_str()?.strip_prefix('-')?;
        let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        all.then(|| format!("-n{digits}"))
    };
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if !words[..end].iter().any(|word| digits(word).is_some())
        || !has_number(follow(root, &words).1)
    {
        return words;
    }
    let replace = |(at, word): (usize, OsString)| match digits(&word).filter(|_| at < end) {
        Some(number) => number.into(),
        None => word,
    };
    words.into_iter().enumerate().map(replace).collect()
}

/// Converts clap's error for an unknown command; `None` for every other error.
pub(crate) fn unknown_command(
    root: &Command,
    words: &[OsString],
    error: &clap::Error,
) -> Option<CommandError> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let end = words.iter().position(|it| it == word.as_str()).unwrap_or(words.len());
    let (path, family) = follow(root, &words[..end]);
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    };
    let meant = match path.is_empty() {
        true => command_meaning(root, word),
        false => by_meaning(family, &FAMILY_MEANINGS, word),
    };
    // The most similar name is the last one.
    let spelt = similar.into_iter().rev().find(|name| name != "purge");
    let prefix = path.iter().fold("tine".to_owned(), |path, name| path + " " + name);
    let suggestion = meant.or(spelt).map(|name| format!("{prefix} {name}"));
    Some(CommandError::UnknownCommand {
        name: format!("{prefix} {word}"),
        family: prefix,
        suggestion,
    })
}

/// Returns the top-level command with the meaning of a word.
pub(crate) fn command_meaning(root: &Command, word: &str) -> Option<String> {
    by_meaning(root, &MEANINGS, word)
}

/// Returns the command with the meaning of a word, if the family has it.
fn by_meaning(family: &Command, meanings: &[(&str, &str)], word: &str) -> Option<String> {
    let word = word.to_lowercase();
    let exists = |path: &str| {
        path.split(' ').try_fold(family, |at, name| at.find_subcommand(name)).is_some()
    };
    let means = |words: &str| words.split(' ').any(|it| it == word);
    let found = meanings.iter().find(|(path, words)| means(words) && exists(path));
    found.map(|(path, _)| (*path).to_owned())
}

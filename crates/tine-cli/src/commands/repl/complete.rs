//! Completion of commands, options, and names in the store.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use tine_engine::{CommitQuery, Page, PathQuery, Selection};

use super::tokenize::{quote, tokenize};
use super::{Repl, arguments};
use crate::command_error::Result;
use crate::session::CliSession;

/// Maximum number of turns and of commits to offer, from the tip of the branch.
const MAX_CANDIDATES: usize = 100;

/// Completes the lines of a session.
pub(super) struct ReplCompleter {
    pub(super) repl: Rc<RefCell<Repl>>,
}

impl Helper for ReplCompleter {}
impl Hinter for ReplCompleter {
    type Hint = String;
}
impl Highlighter for ReplCompleter {}
impl Validator for ReplCompleter {}

impl Completer for ReplCompleter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let Some(after_slash) = typed.strip_prefix('/') else {
            return Ok((position, Vec::new()));
        };
        let mut parsed = tokenize(after_slash);
        let (start, prefix) = match parsed.open_at {
            Some(at) => (at + 1, parsed.tokens.pop().unwrap_or_default()),
            None => (position, String::new()),
        };
        let candidates = match parsed.tokens.first() {
            None => {
                let names = command_names();
                return Ok((1, pairs(names.iter().filter(|it| it.starts_with(&prefix)))));
            }
            Some(command) if prefix.starts_with('-') => options(command),
            // An unreadable store offers no names.
            Some(command) => {
                let last = parsed.tokens.last().map(String::as_str);
                let target = match (command.as_str(), last) {
                    ("conversation", _) | (_, Some("-c" | "--conversation")) => {
                        CompletionTarget::Conversation
                    }
                    ("checkout", _) => CompletionTarget::Branch,
                    _ => CompletionTarget::Anything,
                };
                names(&self.repl.borrow(), target).unwrap_or_default()
            }
        };
        Ok((start, pairs(candidates.iter().filter(|it| it.starts_with(&prefix)))))
    }
}

/// Converts names to completions that end with a space.
fn pairs<'a>(names: impl Iterator<Item = &'a String>) -> Vec<Pair> {
    names
        .map(|name| Pair { display: name.clone(), replacement: format!("{} ", quote(name)) })
        .collect()
}

fn command_names() -> BTreeSet<String> {
    let command = arguments::command();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    shown.map(|it| it.get_name().to_owned()).collect()
}

fn options(command: &str) -> BTreeSet<String> {
    let mut all = arguments::command();
    all.build();
    let Some(command) = all.find_subcommand(command) else { return BTreeSet::new() };
    let longs =
        command.get_arguments().filter(|it| !it.is_hide_set()).filter_map(|it| it.get_long());
    longs.map(|name| format!("--{name}")).collect()
}

/// The kind of name to complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompletionTarget {
    Conversation,
    Branch,
    /// A branch, a bookmark, a turn or a commit.
    Anything,
}

fn names(repl: &Repl, target: CompletionTarget) -> Result<BTreeSet<String>> {
    let session = repl.session()?;
    if target == CompletionTarget::Conversation {
        let listing = session.engine.conversations(&session.call, false, Page::default())?;
        return Ok(listing.items.into_iter().map(|it| it.id.to_string()).collect());
    }
    let conversation = session.conversation()?;
    let branches = session.engine.branches(&session.call, &conversation)?;
    let mut names: BTreeSet<String> = branches.into_iter().map(|it| it.name.to_string()).collect();
    if target == CompletionTarget::Anything {
        let bookmarks = session.engine.bookmarks(&session.call, Page::default())?.items;
        let here = bookmarks.into_iter().filter(|it| it.conversation == conversation);
        names.extend(here.map(|it| it.name.to_string()));
        names.extend(hashes(&session, conversation)?);
    }
    Ok(names)
}

fn hashes(session: &CliSession, conversation: tine_core::ConversationId) -> Result<Vec<String>> {
    let query = PathQuery {
        conversation: Some(conversation.clone()),
        to: Some(session.tip()?),
        selection: Selection::Last(MAX_CANDIDATES),
        cursor: None,
        limit: None,
    };
    let path = session.engine.path(&session.call, query)?;
    let query = CommitQuery { conversation: Some(conversation), branch: None };
    let page = Page { cursor: None, limit: Some(MAX_CANDIDATES) };
    let commits = session.engine.versioning().commits(&session.call, query, page)?;
    let turns = path.turns.iter().map(|turn| turn.hash.short());
    Ok(turns.chain(commits.items.iter().map(|it| it.hash.short())).collect())
}

//! Diffs of turns, branches, commits and ranges of turns.

use tine_core::commit::{Facets, FactState};
use tine_core::search_text::pieces;
use tine_core::{CommitHash, ConversationId, Metadata, Reference};
use tine_store::{Branch, CommitListing, Content, Conversation, Read, Turn, TurnLoc};

use super::align::{self, ComparedTurn};
use super::changes::{field_changes, seen_diff};
use super::commit_graph::CommitReader;
use super::facets::FacetCollector;
use super::make::{head_of, state_at};
use super::merging::fork_point;
use super::path_facts::PathFacts;
use super::rings;
use super::window::PathRange;
use crate::knowledge::KnowledgeReader;
use crate::ops::append::digest_of;
use crate::tree::path::fetch;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::{Call, Engine, Error, Result, TurnRef};
use crate::{Diff, DiffQuery, DiffSide, DiffTurn};

/// Turns of one side whose words are compared at most.
const COMPARED: u64 = 10_000;

impl Engine {
    /// Compares two turns, branches, commits or ranges of turns. Two commits are compared by what
    /// they hold; no turn is read for that.
    pub fn diff(&self, call: &Call, query: DiffQuery) -> Result<Diff> {
        let limit = self.page_limit(query.limit)?;
        self.read(|records| {
            let find =
                |name: &str| DiffOperand::find(records, call, query.conversation.as_ref(), name);
            match (find(&query.from)?, find(&query.to)?) {
                (DiffOperand::Commit(from), DiffOperand::Commit(to)) => {
                    diff_commits(records, call, &query, *from, *to)
                }
                (from, to) => {
                    let from = from.path(records, call)?;
                    let to = to.path(records, call)?;
                    diff_paths(records, call, &query, &from, &to, limit)
                }
            }
        })
    }
}

/// What one side of a comparison is.
enum DiffOperand {
    DiffPath(Box<DiffPath>),
    Commit(Box<(tine_core::Commit, CommitListing)>),
}

/// A path, or a range of one.
struct DiffPath {
    conversation: Conversation,
    branch: Option<Branch>,
    /// The turn after which a range starts.
    after: Option<Option<TurnLoc>>,
    end: Option<TurnLoc>,
}

impl DiffOperand {
    fn find(
        records: &dyn Read,
        call: &Call,
        conversation: Option<&ConversationId>,
        name: &str,
    ) -> Result<DiffOperand> {
        let unknown = match DiffOperand::turn(records, call, conversation, name) {
            Ok(path) => return Ok(DiffOperand::DiffPath(Box::new(path))),
            Err(error @ (Error::NotFound { .. } | Error::Reference(_))) => error,
            Err(error) => return Err(error),
        };
        let reader = CommitReader::new(records, &call.project);
        if let Some((commit, listed)) = reader.find(name)?
            && conversation.is_none_or(|id| *id == commit.conversation)
        {
            return Ok(DiffOperand::Commit(Box::new((commit, listed))));
        }
        let Some((start, end)) = name.split_once("..") else {
            return Err(unknown);
        };
        // Three dots, as others have them: from where the two part.
        let (end, parted) = match end.strip_prefix('.') {
            Some(end) => (end, true),
            None => (end, false),
        };
        let after = DiffOperand::find(records, call, conversation, start)?.path(records, call)?;
        let path = DiffOperand::find(records, call, conversation, end)?.path(records, call)?;
        if after.conversation.key != path.conversation.key {
            return Err(Error::invalid(format!("`{name}` spans two conversations")));
        }
        let tree = Tree::new(records, path.conversation.key);
        let fork = fork_point(&tree, after.end, path.end)?;
        if !parted && fork != after.end {
            return Err(Error::invalid(format!(
                "`{start}` is not an ancestor of `{end}`; `{start}...{end}` starts where they diverge"
            )));
        }
        Ok(DiffOperand::DiffPath(Box::new(DiffPath { after: Some(fork), ..path })))
    }

    fn turn(
        records: &dyn Read,
        call: &Call,
        conversation: Option<&ConversationId>,
        name: &str,
    ) -> Result<DiffPath> {
        let wanted = TurnRef { conversation: conversation.cloned(), turn: Reference::parse(name)? };
        let place = resolve::place(records, call, &wanted)?;
        let branch = resolve::find_branch(records, call, place.conversation.key, name)?;
        let (conversation, end) = (place.conversation, place.turn);
        Ok(DiffPath { conversation, branch, after: None, end })
    }

    /// Returns the path that ends where a commit does.
    fn path(self, records: &dyn Read, call: &Call) -> Result<DiffPath> {
        match self {
            DiffOperand::DiffPath(path) => Ok(*path),
            DiffOperand::Commit(found) => {
                let (commit, listed) = *found;
                let conversation = resolve::conversation(records, call, &commit.conversation)?;
                let end = CommitReader::new(records, &call.project).anchor(&listed)?;
                Ok(DiffPath { conversation, branch: None, after: None, end })
            }
        }
    }
}

/// Returns the facts at the end of a path; on a branch including those merged in.
fn state(records: &dyn Read, call: &Call, path: &DiffPath) -> Result<FactState> {
    let tree = Tree::new(records, path.conversation.key);
    let reader = CommitReader::new(records, &call.project);
    match &path.branch {
        Some(branch) => {
            let graph = reader.graph(&path.conversation.id)?;
            let head = head_of(&reader, &graph, &tree, branch)?;
            Ok(state_at(&reader, &tree, head.as_ref(), path.end)?.0)
        }
        None => {
            let knowledge = KnowledgeReader::new(records, &call.project);
            Ok(PathFacts::at(&knowledge, &tree, path.end)?.state)
        }
    }
}

/// Returns the shown turns of a path after a turn.
fn own(records: &dyn Read, path: &DiffPath, common: Option<TurnLoc>) -> Result<Vec<Turn>> {
    let tree = Tree::new(records, path.conversation.key);
    let Some(end) = path.end else {
        return Ok(Vec::new());
    };
    let range = match common {
        Some(common) => PathRange::after(&tree, common, end)?,
        None => PathRange::to(&tree, end)?,
    };
    if range.turns() > COMPARED {
        let (limit, given) = (COMPARED, range.turns());
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let what = "turns of one side of a comparison";
        return Err(Error::TooLarge { what, limit: size(limit), given: size(given) });
    }
    let mut turns = Vec::new();
    for turn in fetch(records, &range.locs())? {
        if tree.is_shown(turn.loc)? {
            turns.push(turn);
        }
    }
    Ok(turns)
}

fn diff_paths(
    records: &dyn Read,
    call: &Call,
    query: &DiffQuery,
    from: &DiffPath,
    to: &DiffPath,
    limit: usize,
) -> Result<Diff> {
    let tree = Tree::new(records, from.conversation.key);
    let same = from.conversation.key == to.conversation.key;
    let ranges = from.after.is_some() || to.after.is_some();
    let common = match same && !ranges {
        true => fork_point(&tree, from.end, to.end)?,
        false => None,
    };
    let from_turns = own(records, from, from.after.unwrap_or(common))?;
    let to_turns = own(records, to, to.after.unwrap_or(common))?;
    let compared = |turns: &[Turn]| turns.iter().map(compared_turn).collect::<Vec<_>>();
    let (changes, left_out) = align::turns(&compared(&from_turns), &compared(&to_turns), limit);
    let (before, after) = (about(records, call, &from_turns)?, about(records, call, &to_turns)?);
    let facts = field_changes(&state(records, call, from)?, &state(records, call, to)?);
    let hash = |loc: Option<TurnLoc>| match loc {
        Some(loc) => Ok::<_, Error>(records.turn(loc)?.map(|turn| turn.hash)),
        None => Ok(None),
    };
    let side = |name: &str, path: &DiffPath, turns: &[Turn]| {
        Ok::<_, Error>(DiffSide {
            name: name.to_owned(),
            conversation: path.conversation.id.clone(),
            turn: hash(path.end)?,
            commit: None,
            turns: turns.len() as u64,
            commits: Vec::new(),
        })
    };
    Ok(Diff {
        from: side(&query.from, from, &from_turns)?,
        to: side(&query.to, to, &to_turns)?,
        common: hash(common)?,
        bases: Vec::new(),
        changes,
        left_out,
        entities: seen_diff(&before.entities, &after.entities),
        keywords: seen_diff(&before.keywords, &after.keywords),
        topics: seen_diff(&before.topics, &after.topics),
        facts,
    })
}

fn compared_turn(turn: &Turn) -> ComparedTurn {
    let text = match &turn.content {
        Content::Kept(body) => pieces(body, &Metadata::default()).join("\n\n"),
        Content::Purged(_) => String::new(),
    };
    let (id, hash, role) = (turn.id, turn.hash, turn.role);
    ComparedTurn { digest: digest_of(turn), turn: DiffTurn { id, hash, role, text } }
}

/// Returns what turns are about, by their rings.
fn about(records: &dyn Read, call: &Call, turns: &[Turn]) -> Result<Facets> {
    let mut collector = FacetCollector::default();
    for turn in turns {
        if let Some(found) = rings::of(records, &call.project, turn)? {
            collector.add_turn(turn, &found);
        }
    }
    Ok(collector.bounded(usize::MAX))
}

/// Two commits, by what they hold.
fn diff_commits(
    records: &dyn Read,
    call: &Call,
    query: &DiffQuery,
    (from, from_listed): (tine_core::Commit, CommitListing),
    (to, to_listed): (tine_core::Commit, CommitListing),
) -> Result<Diff> {
    let reader = CommitReader::new(records, &call.project);
    let graph = reader.graph(&from.conversation)?;
    let same = from.conversation == to.conversation;
    let before_from = graph.before(from_listed.hash);
    let before_to = match same {
        true => graph.before(to_listed.hash),
        false => reader.graph(&to.conversation)?.before(to_listed.hash),
    };
    let only = |these: &std::collections::BTreeSet<CommitHash>,
                others: &std::collections::BTreeSet<CommitHash>| {
        these.difference(others).copied().collect::<Vec<_>>()
    };
    let side = |name: &str, commit: &tine_core::Commit, listed: &CommitListing, commits| DiffSide {
        name: name.to_owned(),
        conversation: commit.conversation.clone(),
        turn: commit.window.map(|window| window.end),
        commit: Some(listed.hash),
        turns: commit.turns,
        commits,
    };
    let bases = if same { graph.common(from_listed.hash, to_listed.hash) } else { Vec::new() };
    let (a, b) = (from.facets.clone().unwrap_or_default(), to.facets.clone().unwrap_or_default());
    Ok(Diff {
        from: side(&query.from, &from, &from_listed, only(&before_from, &before_to)),
        to: side(&query.to, &to, &to_listed, only(&before_to, &before_from)),
        common: None,
        bases,
        changes: Vec::new(),
        left_out: 0,
        entities: seen_diff(&a.entities, &b.entities),
        keywords: seen_diff(&a.keywords, &b.keywords),
        topics: seen_diff(&a.topics, &b.topics),
        facts: field_changes(&a.state, &b.state),
    })
}

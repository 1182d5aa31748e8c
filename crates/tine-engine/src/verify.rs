//! Checking everything against its hash and against each other. Whatever fails is named.

use std::collections::HashMap;

use tine_core::hash::{OperationSeal, operation_hash, root_hash, turn_hash};
use tine_core::json;
use tine_core::{Body, OperationHash, TurnHash, TurnId};
use tine_store::{Content, Conversation, Problem, Read, SegmentExtent, Turn, TurnLoc};

use crate::change::Change;
use crate::path::fetch;
use crate::tree::{State, Tree};
use crate::undo::detail;
use crate::{Engine, Result, Verified};

/// Conversations looked at in one read.
const CONVERSATIONS_PER_READ: usize = 100;

impl Engine {
    /// Checks the whole store: every hash recomputed, every link followed.
    pub fn verify(&self) -> Result<Verified> {
        let mut verified =
            Verified { problems: self.store().check()?.problems, ..Verified::default() };
        let projects = self.read(|records| Ok(records.projects()?))?;
        for project in projects {
            let mut after = None;
            loop {
                let page = self.read(|records| {
                    Ok(records.conversations(&project.id, after, CONVERSATIONS_PER_READ)?)
                })?;
                let Some(last) = page.last() else {
                    break;
                };
                after = Some(last.key);
                for conversation in &page {
                    // One read for each conversation: its own consistent state, and no snapshot
                    // held for as long as the whole check takes.
                    let found = self.read(|records| Checker::run(records, conversation))?;
                    verified.conversations += 1;
                    verified.turns += found.turns;
                    verified.purged_turns += found.purged_turns;
                    verified.operations += found.operations;
                    verified.problems.extend(found.problems);
                }
            }
        }
        Ok(verified)
    }
}

/// Checks what an import brings besides hashed records: that halves join to their wholes, and
/// that tips and bookmarks are on turns that are shown.
pub(crate) fn check_links(records: &dyn Read, conversation: &Conversation) -> Result<Vec<Problem>> {
    let mut checker = Checker { records, conversation, found: Verified::default() };
    checker.splits()?;
    checker.tips()?;
    Ok(checker.found.problems)
}

struct Checker<'r> {
    records: &'r dyn Read,
    conversation: &'r Conversation,
    found: Verified,
}

impl<'r> Checker<'r> {
    fn run(records: &'r dyn Read, conversation: &'r Conversation) -> Result<Verified> {
        let mut checker = Checker { records, conversation, found: Verified::default() };
        checker.root();
        let operations = checker.operations()?;
        checker.turns(operations)?;
        checker.splits()?;
        checker.tips()?;
        Ok(checker.found)
    }

    fn problem(&mut self, record: impl Into<String>, why: impl Into<String>) {
        let record = format!("{} in conversation {}", record.into(), self.conversation.id);
        self.found.problems.push(Problem { record, why: why.into() });
    }

    fn root(&mut self) {
        if let Some(root) = &self.conversation.root
            && root_hash(root.system_prompt.as_deref(), &root.config) != self.conversation.root_hash
        {
            self.problem("root", "its hash does not fit its content");
        }
    }

    fn operations(&mut self) -> Result<u64> {
        let mut previous: Option<OperationHash> = None;
        let mut expected = 1;
        let mut problems = Vec::new();
        let mut chains = Vec::new();
        let conversation = self.conversation;
        self.records.operations(conversation.key, 1, u64::MAX, &mut |operation| {
            let record = format!("operation {}", operation.seq);
            if operation.seq != expected {
                problems
                    .push((record.clone(), format!("operation {expected} is missing before it")));
            }
            let computed = operation_hash(&OperationSeal {
                conversation_id: conversation.id.as_str(),
                seq: operation.seq,
                previous: previous.as_ref(),
                kind: &operation.kind,
                actor: &operation.actor,
                at: operation.at,
                detail: &operation.detail.digest(),
            });
            if computed != operation.hash {
                problems.push((record, "its hash does not fit its content".to_owned()));
            }
            expected = operation.seq + 1;
            previous = Some(operation.hash);
            for change in detail(&operation).map(|detail| detail.changes).unwrap_or_default() {
                if let Change::Created { first, count, last_hash } = change {
                    chains.push((operation.seq, first, count, last_hash));
                }
            }
            Ok(true)
        })?;
        self.found.operations += expected - 1;
        for (seq, first, count, last_hash) in chains {
            if !self.chain_is_whole(seq, &first, count, &last_hash)? {
                let why = "the turns that it made are not as it sealed them";
                self.problem(format!("operation {seq}"), why);
            }
        }
        for (record, why) in problems {
            self.problem(record, why);
        }
        Ok(expected - 1)
    }

    /// Whether the first and the last turn that an operation made are where it says; what lies
    /// between is covered by the last one's hash.
    fn chain_is_whole(
        &self,
        seq: u64,
        first: &TurnId,
        count: u64,
        last_hash: &TurnHash,
    ) -> Result<bool> {
        let key = self.conversation.key;
        let found = self.records.find_turn(&self.conversation.project, first)?;
        let last = self.records.find_hashes(key, &last_hash.0, &last_hash.0, 1)?;
        let (Some((_, first)), Some(last)) = (found, last.first()) else {
            return Ok(false);
        };
        let (Some(first), Some(last)) = (self.records.turn(first)?, self.records.turn(*last)?)
        else {
            return Ok(false);
        };
        let depths = u64::from(last.depth).checked_sub(u64::from(first.depth));
        let whole = depths.is_some_and(|depths| depths + 1 == count);
        Ok(whole && first.operation == seq && last.operation == seq)
    }

    fn turns(&mut self, operations: u64) -> Result<()> {
        // Hashes at which segments fork off; a segment's parent lies in an earlier one.
        let extents = self.records.segments(self.conversation.key)?;
        let mut fork_points: HashMap<TurnLoc, Option<TurnHash>> = extents
            .iter()
            .filter_map(|extent| extent.segment.parent)
            .map(|at| (at, None))
            .collect();
        for extent in &extents {
            self.segment(extent, &mut fork_points, operations)?;
        }
        Ok(())
    }

    fn segment(
        &mut self,
        extent: &SegmentExtent,
        fork_points: &mut HashMap<TurnLoc, Option<TurnHash>>,
        operations: u64,
    ) -> Result<()> {
        let segment = extent.segment;
        let mut parent = match segment.parent {
            None => None,
            Some(at) => match fork_points.get(&at).copied().flatten() {
                Some(hash) => Some(hash),
                None => {
                    self.problem(format!("segment {}", segment.no.0), "its parent is not there");
                    return Ok(());
                }
            },
        };
        let mut next = 0;
        let mut problems = Vec::new();
        let (mut checked, mut purged) = (0, 0);
        let records = self.records;
        let project = &self.conversation.project;
        records.turns(segment.no, 0, u32::MAX, &mut |turn| {
            let record = format!("turn {}", turn.id);
            let mut fail = |why: &str| problems.push((record.clone(), why.to_owned()));
            if turn.loc.index != next || turn.depth != segment.base_depth + next {
                fail("it is not where it should be: a turn before it is missing");
            }
            match recomputed(&turn, parent.as_ref()) {
                None => purged += 1,
                Some(Ok(hash)) if hash == turn.hash => checked += 1,
                Some(Ok(_)) => fail("its hash does not fit its content and parent"),
                Some(Err(why)) => fail(why),
            }
            if turn.operation == 0 || turn.operation > operations {
                fail("the operation that made it is missing");
            }
            if records.find_turn(project, &turn.id)?.map(|(_, loc)| loc) != Some(turn.loc) {
                fail("it is not found by its id");
            }
            let by_hash =
                records.find_hashes(segment.conversation, &turn.hash.0, &turn.hash.0, 2)?;
            if by_hash != [turn.loc] {
                fail("it is not the one turn that is found by its hash");
            }
            next = turn.loc.index + 1;
            parent = Some(turn.hash);
            if let Some(point) = fork_points.get_mut(&turn.loc) {
                *point = Some(turn.hash);
            }
            Ok(true)
        })?;
        self.found.turns += checked;
        self.found.purged_turns += purged;
        for (record, why) in problems {
            self.problem(record, why);
        }
        Ok(())
    }

    fn splits(&mut self) -> Result<()> {
        for split in self.records.splits(self.conversation.key)? {
            let turns = fetch(self.records, &[split.whole, split.left, split.right])?;
            let [whole, left, right] = turns.as_slice() else {
                self.problem(
                    format!("split by operation {}", split.operation),
                    "a part is missing",
                );
                continue;
            };
            let text = |turn: &Turn| match &turn.content {
                Content::Kept(body) => body.text_only(),
                Content::Purged(_) => None,
            };
            let joined = match (text(whole), text(left), text(right)) {
                (Some(whole), Some(left), Some(right)) => whole == format!("{left}{right}"),
                (None, None, None) => true,
                _ => false,
            };
            let tree = Tree::new(self.records, self.conversation.key);
            let in_place = tree.raw_parent(left.loc)? == tree.raw_parent(whole.loc)?
                && tree.raw_parent(right.loc)? == Some(left.loc)
                && left.origin.part_of == Some(whole.id)
                && right.origin.part_of == Some(whole.id);
            if !joined || !in_place {
                let record = format!("split of turn {}", whole.id);
                self.problem(record, "its halves do not join to it");
            }
        }
        Ok(())
    }

    fn tips(&mut self) -> Result<()> {
        let tree = Tree::new(self.records, self.conversation.key);
        let mut dangling = Vec::new();
        for branch in self.records.branches(self.conversation.key)? {
            if let Some(tip) = branch.tip
                && (self.records.turn(tip)?.is_none() || tree.state(tip)? != State::Live)
            {
                dangling.push(format!("branch {}", branch.name));
            }
        }
        for bookmark in self.records.bookmarks_in(self.conversation.key)? {
            let turn = bookmark.turn;
            if self.records.turn(turn)?.is_none() || tree.state(turn)? != State::Live {
                dangling.push(format!("bookmark {}", bookmark.name));
            }
        }
        for record in dangling {
            self.problem(record, "it ends on a turn that is not shown");
        }
        Ok(())
    }
}

/// The hash that a turn should have; `None` when its content was purged.
fn recomputed(
    turn: &Turn,
    parent: Option<&TurnHash>,
) -> Option<std::result::Result<TurnHash, &'static str>> {
    let Content::Kept(body) = &turn.content else {
        return None;
    };
    if let Body::Blocks(canonical) = body {
        let same = json::parse(canonical.as_bytes(), json::MAX_DEPTH)
            .is_ok_and(|json| json.to_canonical() == *canonical);
        if !same {
            return Some(Err("its content is not in canonical form"));
        }
    }
    let call = turn.tool_call_id.as_deref();
    Some(Ok(turn_hash(parent, turn.role, body, call, turn.created_at)))
}

//! Checking everything against its hash and against each other. Whatever fails is named.

pub(crate) mod knowledge;
mod state;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tine_core::hash::{root_hash, turn_hash};
use tine_core::json;
use tine_core::{Body, Digest, ObservationId, OperationHash, ProjectId, TurnHash, TurnId};
use tine_store::{
    Content, Conversation, DamagedRecord, FeedPosition, Read, SegmentExtent, Turn, TurnLoc,
    Visibility,
};

use crate::log::mutation::seal;
use crate::maintenance::conversation_pages::{self, damage};
use crate::maintenance::expected::{ExpectedState, LoggedChain};
use crate::tree::path::fetch;
use crate::tree::shown::{Tree, TurnState};
use crate::{Engine, Result, Verified};

use knowledge::LoggedObservations;

impl Engine {
    /// Checks the whole store: every hash recomputed, every link followed.
    pub fn verify(&self) -> Result<Verified> {
        self.verify_with_progress(&|_| {})
    }

    /// Like `verify`, on all cores; reports progress after each conversation.
    pub fn verify_with_progress(&self, report: &(dyn Fn(&Verified) + Sync)) -> Result<Verified> {
        let mut verified = Verified::default();
        let projects = match self.read(|records| Ok(records.projects()?)) {
            Ok(projects) => projects,
            Err(error) => {
                verified.problems.push(damage(error)?);
                Vec::new()
            }
        };
        let files = std::thread::scope(|scope| -> Result<_> {
            // The store's own structures are checked at the same time.
            let files = scope.spawn(|| self.store().check());
            for project in &projects {
                self.verify_project(&project.id, &mut verified, report)?;
            }
            files
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map_err(Into::into)
        })?;
        verified.problems.splice(0..0, files.problems);
        verified.ok = verified.problems.is_empty();
        Ok(verified)
    }

    fn verify_project(
        &self,
        project: &ProjectId,
        verified: &mut Verified,
        report: &(dyn Fn(&Verified) + Sync),
    ) -> Result<()> {
        let mut after = None;
        let end = self.read(|records| Ok(records.feed_end()?)).ok().flatten();
        let began = end.map_or(FeedPosition::default(), |end| end.at);
        // `None` once a log has erased entries.
        let mut observed = Some(LoggedObservations::new());
        loop {
            let page = self.read(|records| conversation_pages::page(records, project, after))?;
            verified.problems.extend(page.problems);
            let so_far = Mutex::new(std::mem::take(verified));
            let found: Vec<Result<(Vec<DamagedRecord>, Option<SealedObservations>)>> =
                in_parallel(&page.conversations, |conversation| {
                    // One read for each conversation: its own consistent state, and no snapshot
                    // held for as long as the whole check takes.
                    let (found, sealed) =
                        self.read(|records| examine_now(records, conversation))?;
                    let mut so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
                    so_far.conversations += 1;
                    so_far.turns += found.turns;
                    so_far.purged_turns += found.purged_turns;
                    so_far.operations += found.operations;
                    so_far.observations += found.observations;
                    report(&so_far);
                    Ok((found.problems, sealed))
                });
            *verified = so_far.into_inner().unwrap_or_else(PoisonError::into_inner);
            // Problems are named in the order of the conversations, whichever thread found them.
            for found in found {
                let (problems, sealed) = found?;
                verified.problems.extend(problems);
                observed = observed.zip(sealed).map(|(mut observed, sealed)| {
                    observed.extend(sealed);
                    observed
                });
            }
            match page.last {
                Some(last) => after = Some(last),
                None => break,
            }
        }
        let mut problems = Vec::new();
        verified.sources +=
            self.verify_knowledge(project, observed.as_ref(), began, &mut problems)?;
        verified.problems.extend(problems);
        report(verified);
        Ok(())
    }
}

/// The observations that a log seals.
type SealedObservations = Vec<(ObservationId, Digest)>;

/// Runs a check over all items, as many at once as there are cores, and answers in their order.
fn in_parallel<T: Sync, R: Send>(items: &[T], check: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, check(item)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, answer)| answer).collect()
}

/// Checks one conversation: every hash, every link, and its state against its log.
pub(crate) fn check(records: &dyn Read, conversation: &Conversation) -> Result<Verified> {
    Ok(examine(records, conversation)?.0)
}

/// The same for the current state of a conversation, which may have changed since it was listed.
fn examine_now(
    records: &dyn Read,
    listed: &Conversation,
) -> Result<(Verified, Option<SealedObservations>)> {
    match records.conversation_by_key(listed.key) {
        Ok(now) => examine(records, now.as_ref().unwrap_or(listed)),
        Err(error) => {
            let problems = vec![damage(error.into())?];
            Ok((Verified { problems, ..Verified::default() }, None))
        }
    }
}

/// Checks one conversation; also returns the observations that its log seals, if it is complete.
fn examine(
    records: &dyn Read,
    conversation: &Conversation,
) -> Result<(Verified, Option<SealedObservations>)> {
    let mut checker = Checker { records, conversation, found: Verified::default() };
    checker.root();
    let expected = checker.operations();
    let expected = checker.record_damage(expected)?;
    let operations = checker.found.operations;
    let turns = checker.turns(operations, expected.as_ref());
    checker.record_damage(turns)?;
    if let Some(expected) = &expected {
        let state = checker.state(expected);
        checker.record_damage(state)?;
        let knowledge = checker.knowledge(expected);
        checker.record_damage(knowledge)?;
    }
    let splits = checker.splits();
    checker.record_damage(splits)?;
    let tips = checker.tips();
    checker.record_damage(tips)?;
    let observed = expected.as_ref().map_or(0, |expected| expected.observed.len());
    checker.found.observations = observed as u64;
    let sealed = expected.filter(|it| it.complete).map(|it| it.observed);
    Ok((checker.found, sealed))
}

/// What operations made, by their numbers.
#[derive(Default)]
struct MadeTurns {
    /// How many turns.
    counts: HashMap<u64, u64>,
    /// Their ids in order, where an operation seals them.
    ids: HashMap<u64, Vec<TurnId>>,
}

struct Checker<'r> {
    records: &'r dyn Read,
    conversation: &'r Conversation,
    found: Verified,
}

impl<'r> Checker<'r> {
    /// Records a damaged record as a problem: its part of the check ends, the others continue.
    fn record_damage<T>(&mut self, checked: Result<T>) -> Result<Option<T>> {
        match checked {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                let found = damage(error)?;
                self.problem(found.record, found.why);
                Ok(None)
            }
        }
    }

    fn problem(&mut self, record: impl Into<String>, why: impl Into<String>) {
        let record = format!("{} in conversation {}", record.into(), self.conversation.id);
        self.found.problems.push(DamagedRecord { record, why: why.into() });
    }

    fn root(&mut self) {
        if let Some(root) = &self.conversation.root
            && root_hash(root.system_prompt.as_deref(), &root.config) != self.conversation.root_hash
        {
            self.problem("root", "its hash does not match its content");
        }
    }

    fn operations(&mut self) -> Result<ExpectedState> {
        let mut previous: Option<OperationHash> = None;
        let mut last = 0;
        let mut problems = Vec::new();
        let mut expected = ExpectedState::new();
        let mut undone = BTreeSet::new();
        let conversation = self.conversation;
        let read = self.records.operations(conversation.key, 1, u64::MAX, &mut |operation| {
            let record = format!("operation {}", operation.seq);
            if operation.seq != last + 1 {
                problems
                    .push((record.clone(), format!("operation {} is missing before it", last + 1)));
            }
            let computed = seal(&conversation.id, &operation, previous.as_ref());
            if computed != operation.hash {
                problems.push((record, "its hash does not match its content".to_owned()));
            }
            last = operation.seq;
            previous = Some(operation.hash);
            expected.add(&operation);
            if operation.undone {
                undone.insert(operation.seq);
            }
            Ok(true)
        });
        self.found.operations += last;
        if problems.is_empty() && expected.complete {
            for seq in undone.symmetric_difference(&expected.undone) {
                let why = "whether it is undone is not what the log says".to_owned();
                problems.push((format!("operation {seq}"), why));
            }
        }
        for (record, why) in problems {
            self.problem(record, why);
        }
        read?;
        // The project's own log may be there before anything is in it.
        if last == 0 && conversation.visibility != Visibility::ProjectLog {
            self.problem("log", "it is empty: not even the making of the conversation is in it");
        }
        Ok(expected)
    }

    /// Checks that every chain of turns in the log exists.
    fn chains(&mut self, expected: &ExpectedState, ids: &HashMap<u64, Vec<TurnId>>) -> Result<()> {
        for chain in &expected.chains {
            let made = ids.get(&chain.seq).map_or(&[][..], Vec::as_slice);
            if !expected.excused.contains(&chain.seq)
                && (!self.chain_is_whole(chain)? || !chain.has_ids(made))
            {
                let why = "the turns that it made are not as it sealed them";
                self.problem(format!("operation {}", chain.seq), why);
            }
        }
        Ok(())
    }

    /// Returns whether the first and the last turn that an operation made are where it says; what
    /// lies between is covered by the last one's hash.
    fn chain_is_whole(&self, chain: &LoggedChain) -> Result<bool> {
        let (key, seq, last_hash) = (self.conversation.key, chain.seq, chain.last_hash.0);
        let found = self.records.find_turn(&self.conversation.project, &chain.first)?;
        let last = self.records.find_hashes(key, &last_hash, &last_hash, 1)?;
        let (Some((_, first)), Some(last)) = (found, last.first()) else {
            return Ok(false);
        };
        let (Some(first), Some(last)) = (self.records.turn(first)?, self.records.turn(*last)?)
        else {
            return Ok(false);
        };
        let depths = u64::from(last.depth).checked_sub(u64::from(first.depth));
        let whole = depths.is_some_and(|depths| depths + 1 == chain.count);
        Ok(whole && first.operation == seq && last.operation == seq)
    }

    fn turns(&mut self, operations: u64, expected: Option<&ExpectedState>) -> Result<()> {
        // Hashes at which segments fork off; a segment's parent lies in an earlier one.
        let extents = self.records.segments(self.conversation.key)?;
        let mut fork_points: HashMap<TurnLoc, Option<TurnHash>> = extents
            .iter()
            .filter_map(|extent| extent.segment.parent)
            .map(|at| (at, None))
            .collect();
        let mut made = MadeTurns::default();
        let chains = expected.iter().flat_map(|expected| &expected.chains);
        let sealed = chains.filter(|chain| chain.ids.is_some());
        made.ids = sealed.map(|chain| (chain.seq, Vec::new())).collect();
        for extent in &extents {
            self.segment(extent, &mut fork_points, operations, &mut made)?;
        }
        let Some(expected) = expected else {
            return Ok(());
        };
        // A chain of turns that is missing at its end leaves no gap.
        let counted = expected.made.iter().filter(|(seq, _)| !expected.excused.contains(*seq));
        for (seq, count) in counted {
            let there = made.counts.get(seq).copied().unwrap_or(0);
            if there != *count {
                let why = format!("it made {count} turns, and {there} are there");
                self.problem(format!("operation {seq}"), why);
            }
        }
        self.chains(expected, &made.ids)
    }

    fn segment(
        &mut self,
        extent: &SegmentExtent,
        fork_points: &mut HashMap<TurnLoc, Option<TurnHash>>,
        operations: u64,
        made: &mut MadeTurns,
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
        let read = records.turns(segment.no, 0, u32::MAX, &mut |turn| {
            let record = format!("turn {}", turn.id);
            let mut fail = |why: &str| problems.push((record.clone(), why.to_owned()));
            *made.counts.entry(turn.operation).or_default() += 1;
            if let Some(ids) = made.ids.get_mut(&turn.operation) {
                ids.push(turn.id);
            }
            if turn.loc.index != next || Some(turn.depth) != segment.base_depth.checked_add(next) {
                fail("it is not where it should be: a turn before it is missing");
            }
            match recomputed(&turn, parent.as_ref()) {
                None => purged += 1,
                Some(Ok(hash)) if hash == turn.hash => checked += 1,
                Some(Ok(_)) => fail("its hash does not match its content and parent"),
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
        });
        self.found.turns += checked;
        self.found.purged_turns += purged;
        for (record, why) in problems {
            self.problem(record, why);
        }
        Ok(read?)
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
                && (self.records.turn(tip)?.is_none() || tree.state(tip)? != TurnState::Live)
            {
                dangling.push(format!("branch {}", branch.name));
            }
        }
        for bookmark in self.records.bookmarks_in(self.conversation.key)? {
            let turn = bookmark.turn;
            if self.records.turn(turn)?.is_none() || tree.state(turn)? != TurnState::Live {
                dangling.push(format!("bookmark {}", bookmark.name));
            }
        }
        for record in dangling {
            self.problem(record, "it ends on a turn that is not shown");
        }
        Ok(())
    }
}

/// Returns the hash that a turn should have; `None` when its content was purged.
pub(crate) fn recomputed(
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

//! Merging a branch into another, and deciding what a merge could not decide.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tine_core::commit::{Facets, FactState, FieldState, FieldValue, merge, merge_base_of};
use tine_core::json::{Json, object};
use tine_core::{CommitHash, Message, Metadata, Name, Role, TurnId};
use tine_store::{Branch, CommitListing, Conversation, Read, TurnLoc, TurnOrigin};

use super::changes::field_changes;
use super::commit_graph::{CommitGraph, CommitReader};
use super::make::{CommitPlan, head_of, state_at, uncovered};
use super::path_facts::PathFacts;
use super::rings::PreparedRings;
use super::window::{PathRange, passes};
use super::{facets, summary};
use crate::knowledge::KnowledgeReader;
use crate::log::change::text;
use crate::log::mutation::{Mutation, Receipt};
use crate::ops::append::make_chain;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::tree::views::ViewOrId;
use crate::{Call, Engine, Error, Result};
use crate::{
    CommitView, Decision, FieldConflict, MergeBranches, Merged, ResolveConflicts, Summary,
    SummaryLine, Take,
};

impl Engine {
    /// Merges the facts of another branch into a branch: a commit with two parents. Turns are never
    /// interleaved; what no rule decides is kept as a conflict.
    pub fn merge(&self, call: &Call, request: MergeBranches) -> Result<Merged> {
        let message = request.message.as_deref().unwrap_or("Merge");
        self.check_message(message, request.author.as_deref())?;
        if let Summary::Text(summary_text) = &request.summary
            && summary_text.trim().is_empty()
        {
            return Err(Error::invalid("the summary is empty; leave it out for none"));
        }
        let rings = self.prepare_merge(call, &request)?;
        let (keep, dry_run) = (!request.dry_run, request.dry_run);
        let (mut done, replay) =
            self.mutate_if(keep, call, "merge", request, payload, move |mutation, request| {
                BranchMerge::begin(mutation, request, &rings)?.run(mutation, request)
            })?;
        let commit = match done.commit.filter(|_| keep) {
            Some(hash) => Some(self.made_commit(call, hash)?),
            None => None,
        };
        if let (true, Some(made)) = (replay.replayed, &commit) {
            let recorded = self.read(|records| MergeReceipt::from_commit(records, call, made))?;
            let MergeReceipt { changes, conflicts, summary, .. } = recorded;
            done = MergeReceipt { changes, conflicts, summary, ..done };
        }
        Ok(Merged {
            commit,
            up_to_date: done.commit.is_none(),
            committed: if keep { done.committed } else { Vec::new() },
            bases: done.bases,
            changes: done.changes,
            conflicts: done.conflicts,
            summary: done.summary,
            turn: done.turn.filter(|_| keep),
            dry_run,
        })
    }

    /// Rings of what the merge will commit, computed outside of its transaction.
    fn prepare_merge(&self, call: &Call, request: &MergeBranches) -> Result<PreparedRings> {
        let turns = self.read(|records| {
            let owner = resolve::conversation(records, call, &request.conversation)?;
            let reader = CommitReader::new(records, &call.project);
            let (graph, tree) = (reader.graph(&owner.id)?, Tree::new(records, owner.key));
            let mut turns = Vec::new();
            for name in [Some(&request.from), request.into.as_ref()].into_iter().flatten() {
                if let Some(branch) = resolve::find_branch(records, call, owner.key, name)? {
                    turns.extend(new_turns(&reader, &graph, &tree, &branch)?.0.locs());
                }
            }
            Ok(turns)
        })?;
        self.prepare_rings(&call.project, &turns)
    }

    /// Decides conflicts of a branch, by a commit.
    pub fn resolve_conflicts(&self, call: &Call, request: ResolveConflicts) -> Result<CommitView> {
        let message = request.message.as_deref().unwrap_or("Resolve conflicts");
        self.check_message(message, request.author.as_deref())?;
        if request.decisions.is_empty() {
            return Err(Error::invalid("give at least one decision"));
        }
        let payload = |request: &ResolveConflicts| {
            let decisions = request.decisions.iter().map(|one| {
                let take = match &one.take {
                    Take::Side(side) => Json::from(u64::try_from(*side).unwrap_or(u64::MAX)),
                    Take::Value(value) => object([("value", value.clone())]),
                    Take::Nothing => Json::Null,
                };
                object([
                    ("entity_id", text(&one.entity)),
                    ("field", one.field.as_str().into()),
                    ("take", take),
                ])
            });
            object([
                ("conversation_id", text(&request.conversation)),
                ("branch", request.branch.clone().into()),
                ("decisions", Json::Array(decisions.collect())),
                ("message", request.message.clone().into()),
                ("author", request.author.clone().into()),
            ])
        };
        let (made, _) = self.mutate(call, "resolve", request, payload, decide)?;
        self.load_commit(call, made)
    }
}

fn payload(request: &MergeBranches) -> Json {
    let summary = match &request.summary {
        Summary::None => Json::Null,
        Summary::Generated => true.into(),
        Summary::Text(summary_text) => summary_text.as_str().into(),
    };
    object([
        ("conversation_id", text(&request.conversation)),
        ("from", request.from.as_str().into()),
        ("into", request.into.clone().into()),
        ("message", request.message.clone().into()),
        ("author", request.author.clone().into()),
        ("summary", summary),
    ])
}

/// The result of a merge. The receipt stores the commit; the rest is read from it.
#[derive(Default, Serialize, Deserialize)]
struct MergeReceipt {
    commit: Option<CommitHash>,
    committed: Vec<CommitHash>,
    bases: Vec<CommitHash>,
    #[serde(skip)]
    changes: Vec<crate::FieldChange>,
    #[serde(skip)]
    conflicts: Vec<FieldConflict>,
    #[serde(skip)]
    summary: Vec<SummaryLine>,
    #[serde(rename = "turn_id")]
    turn: Option<TurnId>,
}

impl Receipt for MergeReceipt {}

impl MergeReceipt {
    /// Reconstructs the result from the merge commit.
    fn from_commit(records: &dyn Read, call: &Call, made: &CommitView) -> Result<MergeReceipt> {
        let ([ours, theirs], Some(merged)) = (&made.commit.parents[..], &made.commit.facets) else {
            return Ok(MergeReceipt::default());
        };
        let reader = CommitReader::new(records, &call.project);
        let conflicts = FieldConflict::all_of(&merged.state);
        let Some(before) = reader.commit(*ours)?.facets else {
            return Ok(MergeReceipt { conflicts, ..MergeReceipt::default() });
        };
        let changes = field_changes(&before.state, &merged.state);
        let owner = resolve::conversation(records, call, &made.commit.conversation)?;
        let (graph, tree) = (reader.graph(&owner.id)?, Tree::new(records, owner.key));
        let (own, incoming) = incoming_facets(&reader, &graph, &graph.before(*ours), *theirs)?;
        let here = match graph.listed.get(ours) {
            Some(ours) => reader.anchor(ours)?,
            None => None,
        };
        let summary = summary::lines(&reader, &tree, here, &own, &incoming, &changes)?;
        Ok(MergeReceipt { changes, conflicts, summary, ..MergeReceipt::default() })
    }
}

/// Returns the commits that only the other side has, and what they are about.
fn incoming_facets(
    reader: &CommitReader<'_>,
    graph: &CommitGraph,
    here: &BTreeSet<CommitHash>,
    theirs: CommitHash,
) -> Result<(BTreeSet<CommitHash>, Facets)> {
    let own: BTreeSet<CommitHash> = graph.before(theirs).difference(here).copied().collect();
    let mut facets = Facets::default();
    for hash in &own {
        if let Some(found) = reader.commit(*hash)?.facets {
            facets.join(&found);
        }
    }
    Ok((own, facets))
}

/// Returns what no commit of a branch covers yet, and the commit before it.
fn new_turns(
    reader: &CommitReader<'_>,
    graph: &CommitGraph,
    tree: &Tree<'_>,
    branch: &Branch,
) -> Result<(PathRange, Option<CommitListing>)> {
    let head = head_of(reader, graph, tree, branch)?;
    let covered = match &head {
        Some(listed) => reader.anchor(listed)?,
        None => None,
    };
    Ok((uncovered(tree, branch, covered)?, head))
}

/// Returns the last turn that two paths share.
pub(super) fn fork_point(
    tree: &Tree<'_>,
    a: Option<TurnLoc>,
    b: Option<TurnLoc>,
) -> Result<Option<TurnLoc>> {
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(None);
    };
    let other = tree.path_runs(b)?;
    let mut last = None;
    for run in tree.path_runs(a)? {
        let Some(beside) = other.iter().find(|beside| beside.segment == run.segment) else {
            break;
        };
        last = Some(TurnLoc { segment: run.segment, index: run.to.min(beside.to) });
    }
    Ok(last)
}

/// A merge in progress.
struct BranchMerge<'m> {
    rings: &'m PreparedRings,
    conversation: Conversation,
    target: Branch,
    /// The branch that is merged, unless a commit was named.
    source: Option<Branch>,
    committed: Vec<CommitHash>,
}

impl<'m> BranchMerge<'m> {
    fn begin(
        mutation: &mut Mutation<'_>,
        request: &MergeBranches,
        rings: &'m PreparedRings,
    ) -> Result<BranchMerge<'m>> {
        let call = mutation.call;
        let conversation = resolve::conversation(mutation.reader(), call, &request.conversation)?;
        if conversation.root.is_none() {
            return Err(Error::invalid("the conversation was purged, so it cannot be merged"));
        }
        mutation.open(conversation.clone())?;
        let into = request.into.as_deref().unwrap_or("main");
        let target = resolve::branch(mutation.reader(), call, conversation.key, into)?;
        mutation.check_seen(Some(&target), &target.name)?;
        if target.tip.is_none() {
            return Err(Error::invalid(format!(
                "the branch `{}` has no turns to merge into; fork at the turn to continue from instead",
                target.name
            )));
        }
        let source =
            resolve::find_branch(mutation.reader(), call, conversation.key, &request.from)?;
        if source.as_ref().is_some_and(|source| source.id == target.id) {
            return Err(Error::invalid("a branch cannot be merged into itself; name two branches"));
        }
        Ok(BranchMerge { rings, conversation, target, source, committed: Vec::new() })
    }

    fn run(mut self, mutation: &mut Mutation<'_>, request: &MergeBranches) -> Result<MergeReceipt> {
        let Some(theirs) = self.theirs(mutation, request)? else {
            return Ok(MergeReceipt { committed: self.committed, ..MergeReceipt::default() });
        };
        let target = self.target.clone();
        let ours = self.commit_pending(mutation, &target)?;
        let ours = ours.ok_or_else(|| {
            Error::invalid(format!("the branch `{}` has no turns yet", self.target.name))
        })?;
        let project = mutation.call.project.clone();
        let reader = CommitReader::new(mutation.reader(), &project);
        let graph = reader.graph(&self.conversation.id)?;
        let tree = mutation.tree();
        let here = graph.before(ours.hash);
        if here.contains(&theirs.hash) {
            return Ok(MergeReceipt { committed: self.committed, ..MergeReceipt::default() });
        }
        let there = reader.commit(theirs.hash)?.facets.ok_or_else(|| {
            Error::invalid(format!(
                "the facts of commit {} were purged with one of its turns, so it cannot be merged",
                theirs.hash.short()
            ))
        })?;
        let (our_state, path_facts) = state_at(&reader, &tree, Some(&ours), self.target.tip)?;
        let bases = graph.common(ours.hash, theirs.hash);
        let fork = fork_point(&tree, self.target.tip, reader.anchor(&theirs)?)?;
        let base = base_state(&reader, &graph, &tree, &bases, fork)?;
        let mut merged = merge(&base, &our_state, &there.state);
        let changes = field_changes(&our_state, &merged);
        merged.mark_off_path(&path_facts.state);
        let (own, incoming) = incoming_facets(&reader, &graph, &here, theirs.hash)?;
        let name = match &self.source {
            Some(source) => source.name.to_string(),
            None => theirs.hash.short(),
        };
        let lines = summary::lines(&reader, &tree, self.target.tip, &own, &incoming, &changes)?;
        let conflicts = FieldConflict::all_of(&merged);
        let summary_text = match &request.summary {
            Summary::None => None,
            Summary::Generated => Some(summary::text(&name, &lines)),
            Summary::Text(summary_text) => Some(summary_text.clone()),
        };
        let turn = match summary_text {
            Some(summary_text) => {
                Some(self.append_summary(mutation, &summary_text, &theirs, &lines)?)
            }
            None => None,
        };
        let commit = self.write(mutation, request, (ours, theirs), merged, (&name, &incoming))?;
        mutation.fact("merged", name);
        Ok(MergeReceipt {
            commit: Some(commit),
            committed: self.committed,
            bases,
            changes,
            conflicts,
            summary: lines,
            turn,
        })
    }

    /// Returns the commit that is merged; none when all of the other branch is here already.
    fn theirs(
        &mut self,
        mutation: &mut Mutation<'_>,
        request: &MergeBranches,
    ) -> Result<Option<CommitListing>> {
        let project = mutation.call.project.clone();
        let Some(source) = self.source.clone() else {
            let reader = CommitReader::new(mutation.reader(), &project);
            let found = reader
                .find(&request.from)?
                .filter(|(commit, _)| commit.conversation == self.conversation.id);
            let (_, listed) = found.ok_or_else(|| Error::NotFound {
                what: "branch or commit",
                name: request.from.clone(),
                advice: " in this conversation",
            })?;
            return Ok(Some(listed));
        };
        let reader = CommitReader::new(mutation.reader(), &project);
        let (graph, tree) = (reader.graph(&self.conversation.id)?, mutation.tree());
        let here = match (source.tip, self.target.tip) {
            (Some(tip), Some(end)) => passes(&tree, tip, end)?,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let head = head_of(&reader, &graph, &tree, &source)?;
        if here && head.is_none() {
            return Ok(None);
        }
        if here
            && let (Some(head), Some(ours)) =
                (&head, head_of(&reader, &graph, &tree, &self.target)?)
            && graph.before(ours.hash).contains(&head.hash)
        {
            return Ok(None);
        }
        drop(tree);
        self.commit_pending(mutation, &source)
    }

    /// Commits the uncovered turns of a branch and returns its last commit.
    fn commit_pending(
        &mut self,
        mutation: &mut Mutation<'_>,
        branch: &Branch,
    ) -> Result<Option<CommitListing>> {
        let project = mutation.call.project.clone();
        let (range, head) = {
            let reader = CommitReader::new(mutation.reader(), &project);
            let graph = reader.graph(&self.conversation.id)?;
            new_turns(&reader, &graph, &mutation.tree(), branch)?
        };
        if range.is_empty() {
            return Ok(head);
        }
        range.check_size()?;
        let anchor = range.last();
        let plan = CommitPlan {
            conversation: self.conversation.clone(),
            branch: branch.clone(),
            range,
            parent: head,
            anchor,
        };
        let message = format!("Turns of `{}` before a merge", branch.name);
        let author = mutation.call.actor.clone();
        let made = plan.seal(mutation, message, author, self.rings)?;
        self.committed.push(made.hash);
        CommitReader::new(mutation.reader(), &project).listed(made.hash, &made.commit)
    }

    /// Appends a summary to the target branch.
    fn append_summary(
        &mut self,
        mutation: &mut Mutation<'_>,
        summary_text: &str,
        theirs: &CommitListing,
        lines: &[SummaryLine],
    ) -> Result<TurnId> {
        let from = lines.iter().map(|line| {
            object([
                ("line", line.text.as_str().into()),
                ("turn_hash", line.turn.as_ref().map(text).into()),
            ])
        });
        let data = object([
            ("merged_commit", text(&theirs.hash)),
            ("provenance", Json::Array(from.collect())),
        ]);
        let metadata = Metadata { custom_data: Some(data), ..Metadata::default() };
        let message = Message { metadata, ..Message::text(Role::User, summary_text) };
        message
            .check(mutation.engine.limits())
            .map_err(|source| Error::Message { index: 0, source })?;
        let origin = |_| TurnOrigin::default();
        let made = make_chain(mutation, self.target.tip, &[message], origin)?.turns;
        let Some(turn) = made.last() else {
            return Err(Error::invalid("the summary could not be appended as a turn"));
        };
        self.target = mutation.move_branch(&self.target, Some(turn.loc))?;
        Ok(turn.id)
    }

    fn write(
        &self,
        mutation: &mut Mutation<'_>,
        request: &MergeBranches,
        (ours, theirs): (CommitListing, CommitListing),
        merged: FactState,
        (name, incoming): (&str, &Facets),
    ) -> Result<CommitHash> {
        let range = {
            let reader = CommitReader::new(mutation.reader(), &mutation.call.project);
            uncovered(&mutation.tree(), &self.target, reader.anchor(&ours)?)?
        };
        let mut facets = facets::of(mutation, &range, merged, self.rings)?;
        facets.join(incoming);
        facets.bound(facets::KEPT);
        let plan = CommitPlan {
            conversation: self.conversation.clone(),
            branch: self.target.clone(),
            range,
            anchor: self.target.tip,
            parent: None,
        };
        let message = match &request.message {
            Some(message) => message.clone(),
            None => format!("Merge `{name}` into `{}`", self.target.name),
        };
        let author = request.author.clone().unwrap_or_else(|| mutation.call.actor.clone());
        let made = plan.write(mutation, vec![ours, theirs], facets, message, author)?;
        Ok(made.hash)
    }
}

/// Returns the state at the merge base.
fn base_state(
    reader: &CommitReader<'_>,
    graph: &CommitGraph,
    tree: &Tree<'_>,
    bases: &[CommitHash],
    fork: Option<TurnLoc>,
) -> Result<FactState> {
    let mut states = Vec::new();
    for hash in bases {
        let Some(listed) = graph.listed.get(hash) else {
            continue;
        };
        // Turns that both sides share after their last common commit belong to the base.
        let shared = match (reader.anchor(listed)?, fork) {
            (Some(anchor), Some(fork)) => passes(tree, anchor, fork)?,
            (None, _) => true,
            (Some(_), None) => false,
        };
        states.push(if shared {
            state_at(reader, tree, Some(listed), fork)?.0
        } else {
            reader.commit(*hash)?.facets.map(|facets| facets.state).unwrap_or_default()
        });
    }
    if states.is_empty() {
        let knowledge = KnowledgeReader::new(reader.records, reader.project);
        return Ok(PathFacts::at(&knowledge, tree, fork)?.state);
    }
    Ok(merge_base_of(&states))
}

fn decide(mutation: &mut Mutation<'_>, request: &ResolveConflicts) -> Result<ViewOrId<CommitView>> {
    let call = mutation.call;
    let conversation = resolve::conversation(mutation.reader(), call, &request.conversation)?;
    mutation.open(conversation.clone())?;
    let name = request.branch.as_deref().unwrap_or(Name::main().as_str()).to_owned();
    let branch = resolve::branch(mutation.reader(), call, conversation.key, &name)?;
    mutation.check_seen(Some(&branch), &branch.name)?;
    let (range, head, state) = {
        let reader = CommitReader::new(mutation.reader(), &call.project);
        let tree = mutation.tree();
        let graph = reader.graph(&conversation.id)?;
        let (range, head) = new_turns(&reader, &graph, &tree, &branch)?;
        let (mut state, path_facts) = state_at(&reader, &tree, head.as_ref(), branch.tip)?;
        for decision in &request.decisions {
            settle(&mut state, decision)?;
        }
        state.mark_off_path(&path_facts.state);
        (range, head, state)
    };
    let facets = facets::of(mutation, &range, state, &PreparedRings::default())?;
    let parents = head.iter().cloned().collect();
    let anchor = branch.tip;
    let plan = CommitPlan { conversation, branch, range, parent: head, anchor };
    let message = request.message.clone().unwrap_or_else(|| "Resolve conflicts".to_owned());
    let author = request.author.clone().unwrap_or_else(|| call.actor.clone());
    Ok(ViewOrId::view(plan.write(mutation, parents, facets, message, author)?))
}

fn settle(state: &mut FactState, decision: &Decision) -> Result<()> {
    let Decision { entity, field, take } = decision;
    let Some(FieldState::Conflict(conflict)) = state.field(*entity, field) else {
        let open: Vec<String> =
            state.conflicts().map(|(id, _, field, _)| format!("{id}.{field}")).collect();
        let open = if open.is_empty() { "there are none".to_owned() } else { open.join(", ") };
        return Err(Error::invalid(format!(
            "{entity}.{field} is not in conflict on this branch; the conflicts are {open}"
        )));
    };
    let value = match take {
        Take::Value(value) => FieldValue { json: Some(value.clone()), from: Vec::new() },
        Take::Nothing => FieldValue::ABSENT,
        Take::Side(side) => {
            let found = side.checked_sub(1).and_then(|side| conflict.sides.get(side));
            found.cloned().ok_or_else(|| {
                let sides = conflict.sides.len();
                Error::invalid(format!("{entity}.{field} has no side {side}; give 1 to {sides}"))
            })?
        }
    };
    let about = state.facts.get(entity).cloned().unwrap_or_default();
    state.set(*entity, &about, field, value.json.is_some().then_some(FieldState::Value(value)));
    Ok(())
}

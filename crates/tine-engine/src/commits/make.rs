//! Making a commit: which turns, on which branch, on top of what.

use tine_core::commit::{CommitWindow, Facets, FactState};
use tine_core::ids::check_key;
use tine_core::json::{Json, object};
use tine_core::{Commit, CommitHash, Timestamp};
use tine_store::{
    Branch, CommitHead, CommitListing, ConversationTag, ReadFamilies, Record, RecordKey, TurnLoc,
};

use super::commit_graph::{CommitGraph, CommitReader};
use super::facets;
use super::path_facts::PathFacts;
use super::rings::PreparedRings;
use super::window::{PathRange, passes};
use crate::log::change::text;
use crate::log::mutation::Mutation;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::tree::views::{HasId, ViewOrId};
use crate::{Call, Engine, Error, Result, TurnRef};
use crate::{CommitView, NewCommit, WindowRef};

/// The longest message of a commit.
const MESSAGE_BYTES: usize = 64 << 10;

impl Engine {
    /// Commits a range of turns with its facets and the facts known after it.
    pub fn commit(&self, call: &Call, request: NewCommit) -> Result<CommitView> {
        self.check_message(&request.message, request.author.as_deref())?;
        // A plan that is refused here may be one whose answer is known already.
        let window = self.read(|records| Ok(plan(records, call, &request)?.range.locs()));
        let rings = self.prepare_rings(&call.project, &window.unwrap_or_default())?;
        let (made, _) =
            self.mutate(call, "commit", request, payload, move |mutation, request| {
                let plan = plan(mutation.reader(), mutation.call, request)?;
                mutation.open(plan.conversation.clone())?;
                let author = request.author.clone().unwrap_or_else(|| mutation.call.actor.clone());
                let made = plan.seal(mutation, request.message.clone(), author, &rings)?;
                Ok(ViewOrId::view(made))
            })?;
        self.load_commit(call, made)
    }

    pub(super) fn check_message(&self, message: &str, author: Option<&str>) -> Result<()> {
        if message.trim().is_empty() {
            return Err(Error::invalid("the commit message is empty; give a message"));
        }
        if message.len() > MESSAGE_BYTES {
            let (limit, given) = (MESSAGE_BYTES, message.len());
            return Err(Error::TooLarge { what: "bytes of a commit's message", limit, given });
        }
        if let Some(author) = author {
            check_key("author", author, self.limits())?;
        }
        Ok(())
    }
}

fn payload(request: &NewCommit) -> Json {
    let window = request.window.as_ref().map(|WindowRef { start, end }| {
        Json::Array(vec![start.as_str().into(), end.as_str().into()])
    });
    object([
        ("conversation_id", text(&request.conversation)),
        ("branch", request.branch.clone().into()),
        ("window", window.into()),
        ("message", request.message.as_str().into()),
        ("author", request.author.clone().into()),
    ])
}

impl HasId for CommitView {
    type Id = CommitHash;

    fn id(&self) -> &CommitHash {
        &self.hash
    }
}

/// What a commit will seal, and what it builds on.
pub(super) struct CommitPlan {
    pub conversation: tine_store::Conversation,
    pub branch: Branch,
    pub range: PathRange,
    pub parent: Option<CommitListing>,
    /// The last turn that it or a commit before it covers.
    pub anchor: Option<TurnLoc>,
}

fn plan(records: &dyn tine_store::Read, call: &Call, request: &NewCommit) -> Result<CommitPlan> {
    let conversation = resolve::conversation(records, call, &request.conversation)?;
    if conversation.root.is_none() {
        return Err(Error::invalid("the conversation was purged, so there is nothing to commit"));
    }
    let tree = Tree::new(records, conversation.key);
    let named = |turn: &tine_core::Reference| {
        let wanted = TurnRef::within(request.conversation.clone(), turn.clone());
        let loc = resolve::find(records, call, &wanted)?.turn;
        let loc = loc.ok_or_else(|| {
            Error::invalid("`root` is not a turn; start the window at the first turn after it")
        })?;
        whole(&tree, loc)
    };
    let window = match &request.window {
        Some(WindowRef { start, end }) => {
            Some(PathRange::between(&tree, named(start)?, named(end)?)?)
        }
        None => None,
    };
    let end = window.as_ref().and_then(PathRange::last);
    let branch = branch_of(records, call, &conversation, &tree, request, end)?;
    let reader = CommitReader::new(records, &call.project);
    let parent = head_of(&reader, &reader.graph(&conversation.id)?, &tree, &branch)?;
    let covered = match &parent {
        Some(listed) => reader.anchor(listed)?,
        None => None,
    };
    let range = match window {
        Some(window) => window,
        None => uncovered(&tree, &branch, covered)?,
    };
    range.check_size()?;
    let anchor = match (range.last(), covered) {
        // An older range, committed later, does not move the branch back.
        (Some(end), Some(covered)) if passes(&tree, end, covered)? => Some(covered),
        (Some(end), _) => Some(end),
        (None, covered) => covered,
    };
    if range.is_empty() {
        return Err(Error::invalid(format!(
            "there is nothing to commit on `{}`: its last commit covers all of its turns",
            branch.name
        )));
    }
    Ok(CommitPlan { conversation, branch, range, parent, anchor })
}

/// Returns what no commit of a branch covers yet.
pub(super) fn uncovered(
    tree: &Tree<'_>,
    branch: &Branch,
    covered: Option<TurnLoc>,
) -> Result<PathRange> {
    match (branch.tip, covered) {
        (Some(tip), Some(covered)) => PathRange::after(tree, covered, tip),
        (Some(tip), None) => PathRange::to(tree, tip),
        (None, _) => Ok(PathRange { runs: Vec::new() }),
    }
}

/// Returns the turn that a half is part of, unless the path continues from the half itself.
fn whole(tree: &Tree<'_>, loc: TurnLoc) -> Result<TurnLoc> {
    let mut loc = loc;
    while let Some(split) = tree.split_with_half(loc)? {
        loc = split.whole;
    }
    Ok(loc)
}

fn branch_of(
    records: &dyn tine_store::Read,
    call: &Call,
    conversation: &tine_store::Conversation,
    tree: &Tree<'_>,
    request: &NewCommit,
    end: Option<TurnLoc>,
) -> Result<Branch> {
    let holds = |branch: &Branch| match (branch.tip, end) {
        (Some(tip), Some(end)) => passes(tree, end, tip),
        (None, Some(_)) => Ok(false),
        (_, None) => Ok(true),
    };
    if let Some(name) = &request.branch {
        let branch = resolve::branch(records, call, conversation.key, name)?;
        if !holds(&branch)? {
            return Err(Error::invalid(format!(
                "the end of the window is not on the branch `{}`; choose an end on it",
                branch.name
            )));
        }
        return Ok(branch);
    }
    let mut holding = Vec::new();
    for branch in records.branches(conversation.key)? {
        if holds(&branch)? {
            if branch.name == tine_core::Name::main() {
                return Ok(branch);
            }
            holding.push(branch);
        }
    }
    match (holding.len(), end) {
        (1, Some(_)) => Ok(holding.remove(0)),
        (0, Some(_)) => Err(Error::invalid(
            "the end of the window is on no branch; fork there first, and commit on that branch",
        )),
        (_, Some(_)) => {
            let names = holding.iter().map(|it| it.name.to_string()).collect::<Vec<_>>();
            Err(Error::invalid(format!(
                "the window is on several branches: {}; name one of them",
                names.join(", ")
            )))
        }
        (_, None) => resolve::branch(records, call, conversation.key, "main"),
    }
}

/// Returns the last commit of a branch whose turns still lie on it. A branch that has none begins
/// with the last one before the place where it was forked.
pub(super) fn head_of(
    reader: &CommitReader<'_>,
    graph: &CommitGraph,
    tree: &Tree<'_>,
    branch: &Branch,
) -> Result<Option<CommitListing>> {
    let on_shown_path = |listed: &CommitListing| match (reader.anchor(listed)?, branch.tip) {
        (Some(anchor), Some(tip)) => passes(tree, anchor, tip),
        (anchor, _) => Ok(anchor.is_none()),
    };
    let mut at = reader.head(&graph.conversation, &branch.id)?;
    while let Some(listed) = at.and_then(|hash| graph.listed.get(&hash)) {
        if on_shown_path(listed)? {
            return Ok(Some(listed.clone()));
        }
        at = listed.parents.first().copied();
    }
    let mut deepest: Option<(u32, &CommitListing)> = None;
    for listed in graph.in_order() {
        let before = listed.at <= branch.created_at || listed.branch == branch.id;
        if !before || !on_shown_path(listed)? {
            continue;
        }
        let depth = reader.anchor_depth(listed)?;
        if deepest.is_none_or(|(depth_so_far, _)| depth_so_far <= depth) {
            deepest = Some((depth, listed));
        }
    }
    Ok(deepest.map(|(_, listed)| listed.clone()))
}

/// Returns the state of a branch at a turn: the facts of its path, and those that earlier commits
/// merged in.
pub(super) fn state_at(
    reader: &CommitReader<'_>,
    tree: &Tree<'_>,
    head: Option<&CommitListing>,
    at: Option<TurnLoc>,
) -> Result<(FactState, PathFacts)> {
    let knowledge = crate::knowledge::KnowledgeReader::new(reader.records, reader.project);
    let path_facts = PathFacts::at(&knowledge, tree, at)?;
    let mut state = path_facts.state.clone();
    if let Some(listed) = head
        && let Some(before) = reader.commit(listed.hash)?.facets
    {
        let depth = reader.anchor_depth(listed)?;
        state.carry_off_path(&before.state, |observation| path_facts.is_below(observation, depth));
    }
    Ok((state, path_facts))
}

impl CommitPlan {
    /// Commits its turns on top of the commit before.
    pub(super) fn seal(
        &self,
        mutation: &mut Mutation<'_>,
        message: String,
        author: String,
        rings: &PreparedRings,
    ) -> Result<CommitView> {
        let reader = CommitReader::new(mutation.reader(), &mutation.call.project);
        let (state, _) = state_at(&reader, &mutation.tree(), self.parent.as_ref(), self.anchor)?;
        let facets = facets::of(mutation, &self.range, state, rings)?;
        let parents = self.parent.iter().cloned().collect();
        self.write(mutation, parents, facets, message, author)
    }

    /// Writes the commit down, makes it the branch's last, and notes what it depends on.
    pub(super) fn write(
        &self,
        mutation: &mut Mutation<'_>,
        parents: Vec<CommitListing>,
        facets: Facets,
        message: String,
        author: String,
    ) -> Result<CommitView> {
        let tree = mutation.tree();
        let ends = self.range.ends(&tree)?;
        let anchor = match self.anchor {
            Some(loc) => Some(tree.turn(loc)?.id),
            None => None,
        };
        // Never before a commit that this one builds on, whatever the clock says.
        let after = parents.iter().map(|parent| parent.at.next());
        let created_at = after.fold(mutation.now, Timestamp::max);
        let mut commit = Commit {
            parents: parents.iter().map(|parent| parent.hash).collect(),
            conversation: self.conversation.id.clone(),
            root_hash: self.conversation.root_hash,
            branch: self.branch.name.clone(),
            message,
            window: ends.map(|(start, end)| CommitWindow { start, end }),
            turns: self.range.turns(),
            facets: Some(facets),
            author,
            created_at,
        };
        let project = mutation.call.project.clone();
        let (hash, sealed) = loop {
            let sealed = commit.to_json().to_canonical();
            let hash = CommitHash(tine_core::Digest::of(sealed.as_bytes()));
            if !mutation.reader().has(&project, &RecordKey::Commit(hash))? {
                break (hash, sealed);
            }
            commit.created_at = commit.created_at.next();
        };
        let sealed = Record::verbatim(RecordKey::Commit(hash), sealed);
        mutation.records.insert_record(&project, &sealed)?;
        let (conversation, branch) = (ConversationTag::of(&self.conversation.id), self.branch.id);
        let listed = CommitListing {
            conversation,
            hash,
            at: commit.created_at,
            operation: mutation.seq(),
            anchor,
            branch,
            parents: commit.parents.clone(),
        };
        mutation.set_record(&listed)?;
        mutation.set_record(&CommitHead { conversation, branch, hash })?;
        mutation.depends_on_turn(self.anchor)?;
        mutation.depends_on_turn(self.range.last())?;
        for parent in &parents {
            mutation.depends_on(parent.operation);
        }
        mutation.fact("commit_hash", text(&hash));
        let (anchor, heads) = (listed.anchor, vec![self.branch.name.clone()]);
        Ok(CommitView { hash, commit, anchor, signature: None, heads, undone: false })
    }
}

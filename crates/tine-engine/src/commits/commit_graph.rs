//! Commits read: by hash, by conversation, by branch, and the graph that they form.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::{BranchId, Commit, CommitHash, ConversationId, Name, ProjectId};
use tine_store::{
    CommitHead, CommitListing, CommitRecord, CommitSignature, Family, FamilyRecord, Read,
    ReadFamilies, RecordQuery, TurnLoc, required,
};

use crate::{Candidate, Error, Result};
use crate::{CommitView, SignatureView};

/// The commits of a project.
#[derive(Clone, Copy)]
pub(crate) struct CommitReader<'r> {
    pub records: &'r dyn Read,
    pub project: &'r ProjectId,
}

/// The commits of a conversation, and which of them each builds on.
pub(crate) struct CommitGraph {
    pub conversation: ConversationId,
    pub listed: BTreeMap<CommitHash, CommitListing>,
}

impl CommitGraph {
    /// Returns the commits, the oldest first.
    pub(crate) fn in_order(&self) -> Vec<&CommitListing> {
        let mut found: Vec<&CommitListing> = self.listed.values().collect();
        found.sort_by_key(|one| (one.at, one.operation, one.hash));
        found
    }

    /// Returns a commit and all that it builds on.
    pub(crate) fn before(&self, hash: CommitHash) -> BTreeSet<CommitHash> {
        let mut found = BTreeSet::new();
        let mut pending = vec![hash];
        while let Some(next) = pending.pop() {
            if found.insert(next)
                && let Some(listed) = self.listed.get(&next)
            {
                pending.extend(&listed.parents);
            }
        }
        found
    }

    /// Returns the last commits that two have in common: none of them is before another.
    pub(crate) fn common(&self, a: CommitHash, b: CommitHash) -> Vec<CommitHash> {
        let before_b = self.before(b);
        let both: Vec<CommitHash> =
            self.before(a).into_iter().filter(|hash| before_b.contains(hash)).collect();
        let mut below = BTreeSet::new();
        let mut pending: Vec<CommitHash> = Vec::new();
        for listed in both.iter().filter_map(|hash| self.listed.get(hash)) {
            pending.extend(&listed.parents);
        }
        while let Some(next) = pending.pop() {
            if below.insert(next)
                && let Some(listed) = self.listed.get(&next)
            {
                pending.extend(&listed.parents);
            }
        }
        both.into_iter().filter(|hash| !below.contains(hash)).collect()
    }
}

/// Commits of one conversation that are read at once.
const PAGE: usize = 1_000;

impl<'r> CommitReader<'r> {
    pub(crate) fn new(records: &'r dyn Read, project: &'r ProjectId) -> Self {
        CommitReader { records, project }
    }

    /// Returns a commit that another record names, whether or not it is undone.
    pub(crate) fn commit(&self, hash: CommitHash) -> Result<Commit> {
        let found = self.records.get::<CommitRecord>(self.project, &hash)?;
        Ok(required(found, || format!("commit {hash}"))?.commit)
    }

    /// Returns the listing of a commit, unless it is undone.
    pub(crate) fn listed(
        &self,
        hash: CommitHash,
        commit: &Commit,
    ) -> Result<Option<CommitListing>> {
        let id = (commit.conversation.clone(), commit.created_at, hash);
        Ok(self.records.get(self.project, &id)?)
    }

    /// Returns all commits of a conversation.
    pub(crate) fn graph(&self, id: &ConversationId) -> Result<CommitGraph> {
        let listed = self.listed_in(RecordQuery::listings_of(id))?;
        let listed = listed.into_iter().map(|one| (one.hash, one)).collect();
        Ok(CommitGraph { conversation: id.clone(), listed })
    }

    /// Returns all commits of the project.
    pub(crate) fn all(&self) -> Result<Vec<CommitListing>> {
        self.listed_in(RecordQuery::all(Family::CommitListing))
    }

    fn listed_in(&self, mut query: RecordQuery) -> Result<Vec<CommitListing>> {
        let mut found: Vec<CommitListing> = Vec::new();
        loop {
            let page = self.records.list::<CommitListing>(self.project, &query, PAGE)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            query = query.after(&last.key());
            found.extend(page);
        }
    }

    /// Returns the last commit of a branch.
    pub(crate) fn head(
        &self,
        id: &ConversationId,
        branch: &BranchId,
    ) -> Result<Option<CommitHash>> {
        let head = self.records.get::<CommitHead>(self.project, &(id.clone(), *branch))?;
        Ok(head.map(|head| head.hash))
    }

    /// Returns a commit by its hash, or by a prefix of it that no other has.
    pub(crate) fn find(&self, name: &str) -> Result<Option<(Commit, CommitListing)>> {
        let hex = name.strip_prefix(tine_core::hash::PREFIX).unwrap_or(name);
        let Some((low, high)) = tine_core::reference::digest_range(hex) else {
            return Ok(None);
        };
        let query = RecordQuery::commits_between(&low, &high);
        let mut found = Vec::new();
        for CommitRecord { hash, commit } in self.records.list(self.project, &query, 16)? {
            if let Some(listed) = self.listed(hash, &commit)? {
                found.push((commit, listed));
            }
        }
        if found.len() > 1 {
            let candidates = found.into_iter().map(|(commit, listed)| Candidate {
                conversation: commit.conversation,
                turn: None,
                hash: None,
                commit: Some(listed.hash),
            });
            let (name, candidates) = (name.to_owned(), candidates.collect());
            let advice = "give more digits of the commit's hash";
            return Err(Error::Ambiguous { name, candidates, advice });
        }
        Ok(found.pop())
    }

    /// Returns a commit that a caller names.
    pub(crate) fn named(&self, name: &str) -> Result<(Commit, CommitListing)> {
        self.find(name)?.ok_or_else(|| Error::not_found("commit", name))
    }

    /// Returns where the last turn that a commit covers lies.
    pub(crate) fn anchor(&self, listed: &CommitListing) -> Result<Option<TurnLoc>> {
        let Some(turn) = &listed.anchor else {
            return Ok(None);
        };
        let found = self.records.find_turn(self.project, turn)?;
        let (_, loc) = required(found, || format!("turn {turn}"))?;
        Ok(Some(loc))
    }

    /// Returns how deep that turn lies; 0 for the root.
    pub(crate) fn anchor_depth(&self, listed: &CommitListing) -> Result<u32> {
        let Some(loc) = self.anchor(listed)? else {
            return Ok(0);
        };
        Ok(required(self.records.turn(loc)?, || format!("the last turn of {}", listed.hash))?.depth)
    }

    /// Returns the branches of a conversation by their last commits.
    pub(crate) fn heads(&self, id: &ConversationId) -> Result<BTreeMap<CommitHash, Vec<Name>>> {
        let mut heads: BTreeMap<CommitHash, Vec<Name>> = BTreeMap::new();
        let Some(owner) = self.records.conversation(self.project, id)? else {
            return Ok(heads);
        };
        for branch in self.records.branches(owner.key)? {
            if let Some(hash) = self.head(id, &branch.id)? {
                heads.entry(hash).or_default().push(branch.name);
            }
        }
        Ok(heads)
    }

    /// Returns a commit as callers see it.
    pub(crate) fn view(
        &self,
        commit: Commit,
        listed: &CommitListing,
        heads: Vec<Name>,
    ) -> Result<CommitView> {
        let hash = listed.hash;
        let signature = self.signature(hash)?;
        Ok(CommitView { hash, anchor: listed.anchor, commit, signature, heads, undone: false })
    }

    fn signature(&self, hash: CommitHash) -> Result<Option<SignatureView>> {
        let found = self.records.get::<CommitSignature>(self.project, &hash)?;
        Ok(found.map(|CommitSignature { public_key, value, signed_at, .. }| {
            let valid = tine_core::sign::verify(&public_key, &value, &hash.to_string());
            SignatureView { public_key, value, signed_at, valid }
        }))
    }
}

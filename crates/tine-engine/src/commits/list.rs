//! Reading commits: one, or pages of them.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::{CommitHash, ConversationId, Name, Timestamp};
use tine_store::{CommitListing, Read};

use super::commit_graph::CommitReader;
use super::make::head_of;
use crate::ops::conversation::bad_cursor;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::tree::views::ViewOrId;
use crate::{Call, Engine, Error, Listing, Page, Result};
use crate::{CommitQuery, CommitView};

impl Engine {
    /// Returns one commit, by its hash or a prefix of it.
    pub fn commit_by_hash(&self, call: &Call, hash: &str) -> Result<CommitView> {
        self.read(|records| {
            let reader = CommitReader::new(records, &call.project);
            let (commit, listed) = reader.named(hash)?;
            let heads = reader.heads(&commit.conversation)?.remove(&listed.hash);
            reader.view(commit, &listed, heads.unwrap_or_default())
        })
    }

    /// Loads the commit of an answer, if it is given by hash.
    pub(super) fn load_commit(
        &self,
        call: &Call,
        commit: ViewOrId<CommitView>,
    ) -> Result<CommitView> {
        match commit {
            ViewOrId::View(view) => Ok(*view),
            ViewOrId::Id(hash) => self.made_commit(call, hash),
        }
    }

    /// Returns a commit that a call made, also when it has been undone since.
    pub(super) fn made_commit(&self, call: &Call, hash: CommitHash) -> Result<CommitView> {
        self.read(|records| {
            let reader = CommitReader::new(records, &call.project);
            let commit = reader.commit(hash)?;
            match reader.listed(hash, &commit)? {
                Some(listed) => {
                    let heads = reader.heads(&commit.conversation)?.remove(&hash);
                    reader.view(commit, &listed, heads.unwrap_or_default())
                }
                None => Ok(CommitView {
                    hash,
                    commit,
                    anchor: None,
                    signature: None,
                    heads: Vec::new(),
                    undone: true,
                }),
            }
        })
    }

    /// Commits, the newest first. The cursor names the last one that was read, so that pages stay
    /// consistent while commits are made.
    pub fn commits(
        &self,
        call: &Call,
        query: CommitQuery,
        page: Page,
    ) -> Result<Listing<CommitView>> {
        let limit = self.page_limit(page.limit)?;
        let after = match &page.cursor {
            Some(cursor) => Some(place(cursor).ok_or_else(|| bad_cursor(cursor))?),
            None => None,
        };
        self.read(|records| {
            let mut listed = wanted(records, call, &query)?;
            listed.retain(|one| after.is_none_or(|after| (one.at, one.hash) < after));
            listed.sort_by_key(|one| std::cmp::Reverse((one.at, one.hash)));
            let more = listed.len() > limit;
            listed.truncate(limit);
            let next = listed.last().filter(|_| more).map(cursor);
            let reader = CommitReader::new(records, &call.project);
            let mut heads: BTreeMap<ConversationId, BTreeMap<CommitHash, Vec<Name>>> =
                BTreeMap::new();
            let mut items = Vec::with_capacity(listed.len());
            for one in &listed {
                let commit = reader.commit(one.hash)?;
                if !heads.contains_key(&commit.conversation) {
                    let found = reader.heads(&commit.conversation)?;
                    heads.insert(commit.conversation.clone(), found);
                }
                let names = heads.get(&commit.conversation).and_then(|it| it.get(&one.hash));
                let names = names.cloned().unwrap_or_default();
                items.push(reader.view(commit, one, names)?);
            }
            Ok(Listing { items, next })
        })
    }
}

/// Returns the requested commits.
fn wanted(records: &dyn Read, call: &Call, query: &CommitQuery) -> Result<Vec<CommitListing>> {
    let reader = CommitReader::new(records, &call.project);
    let Some(id) = &query.conversation else {
        if query.branch.is_some() {
            return Err(Error::invalid("name the conversation of the branch"));
        }
        return reader.all();
    };
    let owner = resolve::conversation(records, call, id)?;
    let graph = reader.graph(&owner.id)?;
    let within: Option<BTreeSet<CommitHash>> = match &query.branch {
        Some(branch) => {
            let branch = resolve::branch(records, call, owner.key, branch)?;
            let head = head_of(&reader, &graph, &Tree::new(records, owner.key), &branch)?;
            Some(head.map_or_else(BTreeSet::new, |head| graph.before(head.hash)))
        }
        None => None,
    };
    let found = graph.listed.into_values();
    Ok(found.filter(|one| within.as_ref().is_none_or(|it| it.contains(&one.hash))).collect())
}

fn cursor(last: &CommitListing) -> String {
    format!("{}.{}", last.at.as_millis(), last.hash.0.to_hex())
}

fn place(cursor: &str) -> Option<(Timestamp, CommitHash)> {
    let (at, hash) = cursor.split_once('.')?;
    Some((Timestamp::from_millis(at.parse().ok()?), hash.parse().ok()?))
}

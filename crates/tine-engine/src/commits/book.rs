//! Commits read: by hash, by conversation, by branch, and how they hang together.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::json::{Json, object};
use tine_core::{
    BranchId, Commit, CommitHash, ConversationId, Digest, Name, ProjectId, Timestamp, TurnId,
};
use tine_store::{EntryKind, KeyRange, Read, StoreError, TurnLoc, required};

use crate::knowledge::{keys, parse};
use crate::log::change::{optional, parsed, text};
use crate::{Candidate, Error, Result};
use crate::{CommitView, SignatureView};

/// The commits of a project.
#[derive(Clone, Copy)]
pub(crate) struct Book<'r> {
    pub records: &'r dyn Read,
    pub project: &'r ProjectId,
}

/// A commit that is there: what is noted beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub hash: CommitHash,
    pub at: Timestamp,
    /// The operation that made it.
    pub operation: u64,
    /// The last turn that it or a commit before it covers.
    pub anchor: Option<TurnId>,
    pub branch: BranchId,
    pub parents: Vec<CommitHash>,
}

/// How the commits of a conversation hang together.
pub(crate) struct Graph {
    pub conversation: ConversationId,
    pub listed: BTreeMap<CommitHash, Listed>,
}

impl Graph {
    /// The commits, the oldest first.
    pub(crate) fn in_order(&self) -> Vec<&Listed> {
        let mut found: Vec<&Listed> = self.listed.values().collect();
        found.sort_by_key(|one| (one.at, one.operation, one.hash));
        found
    }

    /// A commit and all that it builds on.
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

    /// The last commits that two have in common: none of them is before another.
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

impl Listed {
    pub(super) fn key(&self, conversation: &ConversationId) -> Vec<u8> {
        key_listed(conversation, self.at, self.hash)
    }

    pub(super) fn to_json(&self) -> Json {
        object([
            ("operation", self.operation.into()),
            ("anchor", self.anchor.as_ref().map(text).into()),
            ("branch_id", text(&self.branch)),
            ("parents", Json::Array(self.parents.iter().map(text).collect())),
        ])
    }

    fn read(key: &[u8], json: &Json) -> Option<Listed> {
        let (at, hash) = listed_parts(key)?;
        let parents = json.get("parents")?.as_array()?.iter();
        Some(Listed {
            hash,
            at,
            operation: json.get("operation")?.as_u64()?,
            anchor: optional(json, "anchor")?,
            branch: parsed(json, "branch_id")?,
            parents: parents.map(|hash| hash.as_str()?.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

fn key_listed(conversation: &ConversationId, at: Timestamp, hash: CommitHash) -> Vec<u8> {
    [keys::conversation(conversation).as_slice(), &keys::time(at), &hash.0.0].concat()
}

/// When, and which commit, the key of a listed one says.
pub(crate) fn listed_parts(key: &[u8]) -> Option<(Timestamp, CommitHash)> {
    let (at, hash) = key.get(16..)?.split_first_chunk::<8>()?;
    Some((keys::time_from(*at), CommitHash(Digest(hash.try_into().ok()?))))
}

/// Under which the last commit of a branch is noted.
pub(super) fn key_head(conversation: &ConversationId, branch: &BranchId) -> Vec<u8> {
    [keys::conversation(conversation).as_slice(), branch.as_bytes()].concat()
}

/// Commits of one conversation that are read at once.
const PAGE: usize = 1_000;

impl<'r> Book<'r> {
    pub(crate) fn new(records: &'r dyn Read, project: &'r ProjectId) -> Self {
        Book { records, project }
    }

    /// What a commit says, whether or not it is there.
    pub(crate) fn kept(&self, hash: CommitHash) -> Result<Option<Commit>> {
        let Some(found) = self.records.entry(self.project, EntryKind::Commit, &hash.0.0)? else {
            return Ok(None);
        };
        match parse(&found).and_then(|json| Commit::from_json(&json)) {
            Some(commit) => Ok(Some(commit)),
            None => Err(Error::Store(StoreError::Corrupt {
                record: format!("commit {hash}"),
                why: "it cannot be read".to_owned(),
            })),
        }
    }

    /// What a commit that another one names says.
    pub(crate) fn commit(&self, hash: CommitHash) -> Result<Commit> {
        Ok(required(self.kept(hash)?, || format!("commit {hash}"))?)
    }

    /// What is noted beside a commit, if it is there.
    pub(crate) fn listed(&self, hash: CommitHash, commit: &Commit) -> Result<Option<Listed>> {
        let key = key_listed(&commit.conversation, commit.created_at, hash);
        let found = self.records.entry(self.project, EntryKind::CommitListed, &key)?;
        match found {
            None => Ok(None),
            Some(found) => {
                let listed = parse(&found).and_then(|json| Listed::read(&key, &json));
                Ok(Some(required(listed, || format!("commit {hash}"))?))
            }
        }
    }

    /// All commits of a conversation.
    pub(crate) fn graph(&self, id: &ConversationId) -> Result<Graph> {
        let listed = self.listed_under(&keys::conversation(id))?;
        let listed = listed.into_iter().map(|one| (one.hash, one)).collect();
        Ok(Graph { conversation: id.clone(), listed })
    }

    /// All commits of the project.
    pub(crate) fn all(&self) -> Result<Vec<Listed>> {
        self.listed_under(&[])
    }

    fn listed_under(&self, prefix: &[u8]) -> Result<Vec<Listed>> {
        let mut range = KeyRange::prefix(prefix);
        let mut found = Vec::new();
        loop {
            let kind = EntryKind::CommitListed;
            let page = self.records.entries(self.project, kind, &range, PAGE)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            range = KeyRange::behind(prefix, &last.key);
            for entry in &page {
                let listed = parse(&entry.text).and_then(|json| Listed::read(&entry.key, &json));
                found.push(required(listed, || "what is noted beside a commit".to_owned())?);
            }
        }
    }

    /// The last commit of a branch.
    pub(crate) fn head(
        &self,
        id: &ConversationId,
        branch: &BranchId,
    ) -> Result<Option<CommitHash>> {
        let key = key_head(id, branch);
        let Some(found) = self.records.entry(self.project, EntryKind::CommitHead, &key)? else {
            return Ok(None);
        };
        let hash = parse(&found).and_then(|json| parsed(&json, "commit"));
        Ok(Some(required(hash, || format!("last commit of branch {branch}"))?))
    }

    /// A commit by its hash, or by a prefix of it that no other has.
    pub(crate) fn find(&self, name: &str) -> Result<Option<(Commit, Listed)>> {
        let hex = name.strip_prefix(tine_core::hash::PREFIX).unwrap_or(name);
        let Some((low, high)) = tine_core::reference::digest_range(hex) else {
            return Ok(None);
        };
        let mut to = high.0.to_vec();
        to.push(0);
        let range = KeyRange { from: low.0.to_vec(), to: Some(to), backwards: false };
        let mut found = Vec::new();
        for entry in self.records.entries(self.project, EntryKind::Commit, &range, 16)? {
            let digest = entry.key.try_into().map(Digest).ok();
            let hash = CommitHash(required(digest, || "a commit".to_owned())?);
            let commit = self.commit(hash)?;
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

    /// A commit that somebody names.
    pub(crate) fn named(&self, name: &str) -> Result<(Commit, Listed)> {
        self.find(name)?.ok_or_else(|| Error::NotFound {
            what: "commit",
            name: name.to_owned(),
            advice: "; `tine commits` lists them",
        })
    }

    /// Where the last turn that a commit covers lies.
    pub(crate) fn anchor(&self, listed: &Listed) -> Result<Option<TurnLoc>> {
        let Some(turn) = &listed.anchor else {
            return Ok(None);
        };
        let found = self.records.find_turn(self.project, turn)?;
        let (_, loc) = required(found, || format!("turn {turn}"))?;
        Ok(Some(loc))
    }

    /// How deep that turn lies; 0 for the root.
    pub(crate) fn anchor_depth(&self, listed: &Listed) -> Result<u32> {
        let Some(loc) = self.anchor(listed)? else {
            return Ok(0);
        };
        Ok(required(self.records.turn(loc)?, || format!("the last turn of {}", listed.hash))?.depth)
    }

    /// The branches of a conversation by their last commits.
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

    /// A commit as callers see it.
    pub(crate) fn view(
        &self,
        commit: Commit,
        listed: &Listed,
        heads: Vec<Name>,
    ) -> Result<CommitView> {
        let hash = listed.hash;
        let signature = self.signature(hash)?;
        Ok(CommitView { hash, anchor: listed.anchor, commit, signature, heads, undone: false })
    }

    fn signature(&self, hash: CommitHash) -> Result<Option<SignatureView>> {
        let kind = EntryKind::CommitSignature;
        let Some(found) = self.records.entry(self.project, kind, &hash.0.0)? else {
            return Ok(None);
        };
        let read = || {
            let json = parse(&found)?;
            let word = |name: &str| Some(json.get(name)?.as_str()?.to_owned());
            let (public_key, value) = (word("public_key")?, word("value")?);
            let valid = tine_core::sign::verify(&public_key, &value, &hash.to_string());
            Some(SignatureView { public_key, value, signed_at: parsed(&json, "signed_at")?, valid })
        };
        Ok(Some(required(read(), || format!("signature of commit {hash}"))?))
    }
}

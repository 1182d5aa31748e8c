//! Commits in other operations: deletion, erasure, import and verification.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::{Commit, CommitHash, ConversationId, Digest, ObservationId, ProjectId, TurnId};
use tine_store::{
    CommitListing, CommitRecord, Conversation, ConversationKey, ConversationTag, DamagedRecord,
    Family, Read, ReadFamilies, Record, RecordKey, RecordQuery, RingsRecord, Write, WriteFamilies,
};

use super::commit_graph::CommitReader;
use super::window::PathRange;
use crate::Referrer;
use crate::maintenance::expected::ExpectedState;
use crate::tree::shown::{SegmentRun, Tree};
use crate::{Error, Result};

/// Returns the commits that cover any of these turns.
pub(crate) fn covering(
    records: &dyn Read,
    conversation: &Conversation,
    turns: &[SegmentRun],
) -> Result<Vec<Referrer>> {
    let tree = Tree::new(records, conversation.key);
    let mut found = Vec::new();
    for (listed, commit) in all(records, conversation)? {
        if covers(records, &tree, &commit, turns)? {
            let (what, name) = ("commit".to_owned(), listed.hash.to_string());
            found.push(Referrer { what, name });
        }
    }
    Ok(found)
}

fn all(records: &dyn Read, conversation: &Conversation) -> Result<Vec<(CommitListing, Commit)>> {
    let reader = CommitReader::new(records, &conversation.project);
    let graph = reader.graph(&conversation.id)?;
    let listed = graph.listed.into_values();
    listed.map(|listed| Ok((listed.clone(), reader.commit(listed.hash)?))).collect()
}

fn covers(
    records: &dyn Read,
    tree: &Tree<'_>,
    commit: &Commit,
    turns: &[SegmentRun],
) -> Result<bool> {
    let Some(window) = PathRange::of_window(records, tree, commit)? else {
        return Ok(false);
    };
    Ok(window.runs.iter().any(|run| {
        turns
            .iter()
            .any(|turn| turn.segment == run.segment && turn.from <= run.to && run.from <= turn.to)
    }))
}

/// Takes the facets of all commits that know something of what is erased, whether they are there
/// or undone, and the rings of the turns.
pub(crate) fn erase(
    records: &mut dyn Write,
    project: &ProjectId,
    turns: &BTreeSet<TurnId>,
    observations: &BTreeSet<ObservationId>,
) -> Result<()> {
    let mut places: BTreeMap<ConversationKey, Vec<SegmentRun>> = BTreeMap::new();
    let mut mentions: Vec<String> = observations.iter().map(ToString::to_string).collect();
    for id in turns {
        let rings = RecordKey::Rings(*id);
        if records.has(project, &rings)? {
            records.delete_record(project, &rings)?;
        }
        let Some((owner, loc)) = records.find_turn(project, id)? else {
            continue;
        };
        mentions.extend(records.turn(loc)?.map(|turn| turn.hash.to_string()));
        let run = SegmentRun { segment: loc.segment, from: loc.index, to: loc.index };
        places.entry(owner).or_default().push(run);
    }
    leave(records, project, |records, text, commit| {
        let affected = commit.facets.is_some()
            && (mentions.iter().any(|word| text.contains(word))
                || covers_any(records, project, &commit, &places)?);
        Ok(affected.then_some(Commit { facets: None, ..commit }))
    })
}

/// Commits that are read at once.
const AT_ONCE: usize = 64;

fn covers_any(
    records: &dyn Read,
    project: &ProjectId,
    commit: &Commit,
    places: &BTreeMap<ConversationKey, Vec<SegmentRun>>,
) -> Result<bool> {
    let Some(owner) = records.conversation(project, &commit.conversation)? else {
        return Ok(false);
    };
    match places.get(&owner.key) {
        Some(turns) => covers(records, &Tree::new(records, owner.key), commit, turns),
        None => Ok(false),
    }
}

/// Leaves of every commit of a project only what `left` says; `None` for one that stays as it is.
/// It also gets the text that the commit was read from.
fn leave(
    records: &mut dyn Write,
    project: &ProjectId,
    left: impl Fn(&dyn Read, &str, Commit) -> Result<Option<Commit>>,
) -> Result<()> {
    let mut query = RecordQuery::all(Family::Commit);
    loop {
        let page = records.records(project, &query, AT_ONCE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        query = query.after(last.key());
        for record in &page {
            let Some(CommitRecord { hash, commit }) = record.decode() else { continue };
            if let Some(commit) = left(&*records, record.text(), commit)? {
                records.put(project, &CommitRecord { hash, commit })?;
            }
        }
    }
}

/// Takes what people wrote about the commits of a conversation that goes as a whole.
pub(crate) fn erase_messages(
    records: &mut dyn Write,
    project: &ProjectId,
    id: &ConversationId,
) -> Result<()> {
    leave(records, project, |_, _, commit| {
        let of_it = commit.conversation == *id;
        Ok(of_it.then(|| Commit { facets: None, message: String::new(), ..commit }))
    })
}

/// Returns whether records of a family belong to the log of one conversation alone.
pub(crate) fn is_commit_family(family: Family) -> bool {
    matches!(
        family,
        Family::Commit | Family::CommitListing | Family::CommitHead | Family::CommitSignature
    )
}

/// Imports the commits that came with a conversation: the bundle decides, except for what was
/// erased here. Returns whether something was erased.
pub(crate) fn import(
    records: &mut dyn Write,
    project: &ProjectId,
    id: &ConversationId,
    incoming: &[Record],
) -> Result<bool> {
    for query in [RecordQuery::listings_of(id), RecordQuery::heads_of(id)] {
        for record in records.records(project, &query, usize::MAX)? {
            records.delete_record(project, record.key())?;
        }
    }
    let own = ConversationTag::of(id);
    let mut erases = false;
    for record in incoming.iter().filter(|it| is_commit_family(it.key().family())) {
        let refuse = |why: &str| {
            Err(Error::Invalid(format!("the bundle is damaged: {}: {why}", record.key())))
        };
        match record.key() {
            RecordKey::Commit(hash) => {
                let Some(CommitRecord { commit, .. }) = record.decode() else {
                    return refuse("it cannot be read");
                };
                if commit.conversation != *id {
                    return refuse("it belongs to another conversation");
                }
                let purged = commit.facets.is_none();
                if !purged && Digest::of(record.text().as_bytes()) != hash.0 {
                    return refuse("its hash does not match its content");
                }
                let present = records.record(project, record.key())?;
                let here = present.as_ref().and_then(|it| it.decode::<CommitRecord>());
                if here.is_some_and(|here| here.commit.conversation != *id) {
                    return refuse("it belongs to another conversation");
                }
                match present {
                    Some(_) if !purged => continue,
                    Some(present) => erases |= present != *record,
                    None => {}
                }
            }
            RecordKey::CommitSignature(hash) => {
                let signed = records.record(project, &RecordKey::Commit(*hash))?;
                let signed = signed.and_then(|it| it.decode::<CommitRecord>());
                if signed.is_none_or(|signed| signed.commit.conversation != *id) {
                    return refuse("it signs no commit of this conversation");
                }
            }
            RecordKey::CommitListing { conversation, .. }
            | RecordKey::CommitHead { conversation, .. }
                if *conversation == own => {}
            _ => return refuse("it belongs to another conversation"),
        }
        records.put_record(project, record)?;
    }
    Ok(erases)
}

/// Checks the commits that a conversation's log mentions.
pub(crate) fn check(
    records: &dyn Read,
    conversation: &Conversation,
    expected: &ExpectedState,
) -> Result<Vec<DamagedRecord>> {
    let mut problems = Vec::new();
    let tree = Tree::new(records, conversation.key);
    for key in expected.records.keys() {
        let RecordKey::CommitListing { hash, .. } = key else {
            continue;
        };
        for why in wrong(records, conversation, &tree, *hash)? {
            problems.push(DamagedRecord { record: format!("commit {hash}"), why: why.to_owned() });
        }
    }
    Ok(problems)
}

fn wrong(
    records: &dyn Read,
    conversation: &Conversation,
    tree: &Tree<'_>,
    hash: CommitHash,
) -> Result<Vec<&'static str>> {
    let project = &conversation.project;
    let Some(record) = records.record(project, &RecordKey::Commit(hash))? else {
        return Ok(vec!["it is missing"]);
    };
    let Some(CommitRecord { commit, .. }) = record.decode() else {
        return Ok(vec!["it cannot be read"]);
    };
    let mut found = Vec::new();
    if commit.facets.is_some() && Digest::of(record.text().as_bytes()) != hash.0 {
        found.push("its hash does not match its content");
        return Ok(found);
    }
    if commit.conversation != conversation.id || commit.root_hash != conversation.root_hash {
        found.push("it does not belong to this conversation");
    }
    match PathRange::of_window(records, tree, &commit) {
        Ok(window) => {
            if window.map_or(0, |window| window.turns()) != commit.turns {
                found.push("its window does not hold as many turns as it says");
            }
        }
        Err(_) => found.push("its window is no stretch of one path"),
    }
    let reader = CommitReader::new(records, project);
    for parent in &commit.parents {
        if !records.has(project, &RecordKey::Commit(*parent))? {
            found.push("a commit that it builds on is missing");
        }
    }
    if let Some(listed) = reader.listed(hash, &commit)?
        && reader.view(commit, &listed, Vec::new())?.signature.is_some_and(|it| !it.valid)
    {
        found.push("its signature does not fit");
    }
    Ok(found)
}

/// Rings that are not as they were computed.
pub(crate) fn check_rings(records: &dyn Read, project: &ProjectId) -> Result<Vec<DamagedRecord>> {
    let mut problems = Vec::new();
    let mut query = RecordQuery::all(Family::Rings);
    loop {
        let page = records.records(project, &query, 1_000)?;
        let Some(last) = page.last() else {
            return Ok(problems);
        };
        query = query.after(last.key());
        for record in page.iter().filter(|it| it.decode::<RingsRecord>().is_none()) {
            let why = "they are not as they were computed".to_owned();
            problems.push(DamagedRecord { record: record.key().to_string(), why });
        }
    }
}

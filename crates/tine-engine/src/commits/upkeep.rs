//! What the rest of the engine does with commits: refusing, erasing, carrying over, checking.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::{Commit, CommitHash, ConversationId, Digest, ObservationId, ProjectId, TurnId};
use tine_store::{Conversation, ConversationKey, EntryKind, KeyRange, Problem, Read, Write};

use super::book::{Book, Listed, listed_parts};
use super::rings;
use super::window::Stretch;
use crate::Referrer;
use crate::knowledge::{keys, parse};
use crate::maintenance::expected::Expected;
use crate::tree::shown::{Piece, Tree};
use crate::{Error, Result};

/// The commits that cover any of these turns.
pub(crate) fn covering(
    records: &dyn Read,
    conversation: &Conversation,
    turns: &[Piece],
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

fn all(records: &dyn Read, conversation: &Conversation) -> Result<Vec<(Listed, Commit)>> {
    let book = Book::new(records, &conversation.project);
    let graph = book.graph(&conversation.id)?;
    let listed = graph.listed.into_values();
    listed.map(|listed| Ok((listed.clone(), book.commit(listed.hash)?))).collect()
}

fn covers(records: &dyn Read, tree: &Tree<'_>, commit: &Commit, turns: &[Piece]) -> Result<bool> {
    let Some(window) = Stretch::of_window(records, tree, commit)? else {
        return Ok(false);
    };
    Ok(window.pieces.iter().any(|piece| {
        turns.iter().any(|turn| {
            turn.segment == piece.segment && turn.from <= piece.to && piece.from <= turn.to
        })
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
    let mut places: BTreeMap<ConversationKey, Vec<Piece>> = BTreeMap::new();
    let mut words: Vec<String> = observations.iter().map(ToString::to_string).collect();
    for id in turns {
        if records.entry(project, EntryKind::Rings, id.as_bytes())?.is_some() {
            records.delete_entry(project, EntryKind::Rings, id.as_bytes())?;
        }
        let Some((owner, loc)) = records.find_turn(project, id)? else {
            continue;
        };
        words.extend(records.turn(loc)?.map(|turn| turn.hash.to_string()));
        let piece = Piece { segment: loc.segment, from: loc.index, to: loc.index };
        places.entry(owner).or_default().push(piece);
    }
    leave(records, project, |records, text, commit| {
        let known = commit.facets.is_some()
            && (words.iter().any(|word| text.contains(word))
                || covers_any(records, project, &commit, &places)?);
        Ok(known.then_some(Commit { facets: None, ..commit }))
    })
}

/// Commits that are read at once.
const AT_ONCE: usize = 64;

fn covers_any(
    records: &dyn Read,
    project: &ProjectId,
    commit: &Commit,
    places: &BTreeMap<ConversationKey, Vec<Piece>>,
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
    let mut range = KeyRange::prefix(&[]);
    loop {
        let page = records.entries(project, EntryKind::Commit, &range, AT_ONCE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        range = KeyRange::behind(&[], &last.key);
        for entry in &page {
            let commit = parse(&entry.text).and_then(|json| Commit::from_json(&json));
            let Some(commit) = commit else { continue };
            if let Some(left) = left(&*records, &entry.text, commit)? {
                let text = left.to_json().to_canonical();
                records.put_entry(project, EntryKind::Commit, &entry.key, &text)?;
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

/// The commit that the key of a listed one names; it goes where that goes.
pub(crate) fn commit_of_listed(key: &[u8]) -> Option<Vec<u8>> {
    listed_parts(key).map(|(_, hash)| hash.0.0.to_vec())
}

/// Whether entries of a kind belong to the log of one conversation alone.
pub(crate) fn is_commit_kind(kind: EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::Commit
            | EntryKind::CommitListed
            | EntryKind::CommitHead
            | EntryKind::CommitSignature
    )
}

/// Takes over the commits that came with a conversation: the bundle's word counts, but for what
/// was erased here. Answers whether something was erased.
pub(crate) fn bring(
    records: &mut dyn Write,
    project: &ProjectId,
    id: &ConversationId,
    entries: &[(EntryKind, Vec<u8>, String)],
) -> Result<bool> {
    let prefix = keys::conversation(id);
    for kind in [EntryKind::CommitListed, EntryKind::CommitHead] {
        for entry in records.entries(project, kind, &KeyRange::prefix(&prefix), usize::MAX)? {
            records.delete_entry(project, kind, &entry.key)?;
        }
    }
    let mut erases = false;
    for (kind, key, text) in entries.iter().filter(|(kind, ..)| is_commit_kind(*kind)) {
        let refuse = |why: &str| {
            let key = tine_core::hash::to_hex(key);
            Err(Error::Invalid(format!("the bundle is damaged: {} {key}: {why}", kind.as_str())))
        };
        match kind {
            EntryKind::Commit => {
                let Some(commit) = parse(text).and_then(|json| Commit::from_json(&json)) else {
                    return refuse("it cannot be read");
                };
                if commit.conversation != *id {
                    return refuse("it belongs to another conversation");
                }
                let purged = commit.facets.is_none();
                if !purged && Digest::of(text.as_bytes()).0.as_slice() != key.as_slice() {
                    return refuse("its hash does not fit its content");
                }
                let present = records.entry(project, *kind, key)?;
                let owner =
                    present.as_deref().and_then(parse).and_then(|it| Commit::from_json(&it));
                if owner.is_some_and(|owner| owner.conversation != *id) {
                    return refuse("it belongs to another conversation");
                }
                match present {
                    Some(_) if !purged => continue,
                    Some(present) => erases |= present != *text,
                    None => {}
                }
                records.put_entry(project, *kind, key, text)?;
            }
            EntryKind::CommitSignature => {
                let signed = records.entry(project, EntryKind::Commit, key)?;
                let signed =
                    signed.as_deref().and_then(parse).and_then(|it| Commit::from_json(&it));
                match signed {
                    Some(signed) if signed.conversation == *id => {
                        records.put_entry(project, *kind, key, text)?;
                    }
                    _ => return refuse("it signs no commit of this conversation"),
                }
            }
            _ if key.starts_with(&prefix) => records.put_entry(project, *kind, key, text)?,
            _ => return refuse("it belongs to another conversation"),
        }
    }
    Ok(erases)
}

/// What is wrong with the commits that a conversation's log tells of.
pub(crate) fn check(
    records: &dyn Read,
    conversation: &Conversation,
    expected: &Expected,
) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let tree = Tree::new(records, conversation.key);
    for (kind, key) in expected.entries.keys() {
        if *kind != EntryKind::CommitListed {
            continue;
        }
        let Some((_, hash)) = listed_parts(key) else {
            continue;
        };
        for why in wrong(records, conversation, &tree, hash)? {
            problems.push(Problem { record: format!("commit {hash}"), why: why.to_owned() });
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
    let Some(text) = records.entry(project, EntryKind::Commit, &hash.0.0)? else {
        return Ok(vec!["it is missing"]);
    };
    let Some(commit) = parse(&text).and_then(|json| Commit::from_json(&json)) else {
        return Ok(vec!["it cannot be read"]);
    };
    let mut found = Vec::new();
    if commit.facets.is_some() && Digest::of(text.as_bytes()) != hash.0 {
        found.push("its hash does not fit its content");
        return Ok(found);
    }
    if commit.conversation != conversation.id || commit.root_hash != conversation.root_hash {
        found.push("it does not belong to this conversation");
    }
    match Stretch::of_window(records, tree, &commit) {
        Ok(window) => {
            if window.map_or(0, |window| window.turns()) != commit.turns {
                found.push("its window does not hold as many turns as it says");
            }
        }
        Err(_) => found.push("its window is no stretch of one path"),
    }
    let book = Book::new(records, project);
    for parent in &commit.parents {
        if records.entry(project, EntryKind::Commit, &parent.0.0)?.is_none() {
            found.push("a commit that it builds on is missing");
        }
    }
    if let Some(listed) = book.listed(hash, &commit)?
        && book.view(commit, &listed, Vec::new())?.signature.is_some_and(|it| !it.valid)
    {
        found.push("its signature does not fit");
    }
    Ok(found)
}

/// Rings that are not as they were computed.
pub(crate) fn check_rings(records: &dyn Read, project: &ProjectId) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut range = KeyRange::prefix(&[]);
    loop {
        let page = records.entries(project, EntryKind::Rings, &range, 1_000)?;
        let Some(last) = page.last() else {
            return Ok(problems);
        };
        range = KeyRange::behind(&[], &last.key);
        for entry in &page {
            if rings::unsealed(&entry.key, &entry.text).is_none() {
                let id: Option<[u8; 16]> = entry.key.as_slice().try_into().ok();
                let turn =
                    id.map_or_else(|| "a turn".to_owned(), |id| TurnId::from_bytes(id).to_string());
                let why = "they are not as they were computed".to_owned();
                problems.push(Problem { record: format!("rings of turn {turn}"), why });
            }
        }
    }
}

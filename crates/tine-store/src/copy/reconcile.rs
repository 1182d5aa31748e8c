//! Making the mutable records of two stores equal, and checking that the immutable ones are.

use std::collections::BTreeSet;

use tine_core::{BranchId, ProjectId, SourceId};

use super::{
    BATCH_BYTES, CopyProgress, OPERATIONS_PAGE, TargetConversation, content_bytes,
    find_conversation, read, write,
};
use crate::families::{Family, Record, RecordKey, RecordQuery};
use crate::records::{
    Bookmark, Branch, Content, Conversation, Detail, Hidden, Operation, Project, Segment,
    SegmentNo, Split, Turn, TurnLoc,
};
use crate::traits::{Read, Store, Write};
use crate::{Result, StoreError};

/// The number of conversations or records in a page.
const PAGE: usize = 1_000;

/// The number of turns in a page.
const TURNS_PAGE: u32 = 1_024;

/// Reconciles every project of the source.
pub(super) fn reconcile(
    from: &dyn Store,
    to: &dyn Store,
    done: &mut CopyProgress,
    report: &mut dyn FnMut(&CopyProgress),
) -> Result<()> {
    for project in read(from, |records| records.projects())? {
        let made = project.clone();
        write(to, move |records| match records.project(&made.id)? {
            Some(_) => Ok(()),
            None => records.insert_project(&made),
        })?;
        let mut after = None;
        loop {
            let page = read(from, |records| records.conversations(&project.id, after, PAGE))?;
            let Some(last) = page.last() else { break };
            after = Some(last.key);
            for conversation in page {
                reconcile_conversation(from, to, &project, conversation)?;
                done.conversations += 1;
                report(done);
            }
        }
        reconcile_bookmarks(from, to, &project)?;
        for family in Family::all() {
            reconcile_family(from, to, &project, family, done)?;
            report(done);
        }
    }
    Ok(())
}

fn mismatch(what: String) -> StoreError {
    let why = "it is not the same in both stores; copy to an empty one".to_owned();
    StoreError::Corrupt { record: what, why }
}

/// The mutable state of a conversation.
struct ConversationState {
    conversation: Conversation,
    segments: Vec<SegmentNo>,
    branches: Vec<Branch>,
    splits: Vec<Split>,
    hidden: Vec<Hidden>,
}

fn read_state(records: &dyn Read, conversation: Conversation) -> Result<ConversationState> {
    let key = conversation.key;
    Ok(ConversationState {
        segments: records.segments(key)?.iter().map(|extent| extent.segment.no).collect(),
        branches: records.branches(key)?,
        splits: records.splits(key)?,
        hidden: records.hidden(key)?,
        conversation,
    })
}

fn reconcile_conversation(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    conversation: Conversation,
) -> Result<()> {
    reconcile_turns(from, to, project, &conversation)?;
    reconcile_log(from, to, project, &conversation)?;
    let own = read(from, |records| read_state(records, conversation.clone()))?;
    let owner = project.clone();
    write(to, move |records| {
        let target =
            TargetConversation::find_or_create(records, &owner, &own.conversation, &own.segments)?;
        write_state(records, &own, &target)
    })
}

fn write_state(
    records: &mut dyn Write,
    own: &ConversationState,
    target: &TargetConversation,
) -> Result<()> {
    let key = target.key;
    let wanted = Conversation { key, ..own.conversation.clone() };
    let there = records.conversation_by_key(key)?;
    let there = there.ok_or_else(|| mismatch(format!("conversation {}", wanted.id)))?;
    let immutable = |it: &Conversation| (it.root_hash, it.created_at, it.derived_from.clone());
    if immutable(&there) != immutable(&wanted) {
        return Err(mismatch(format!("conversation {}", wanted.id)));
    }
    if there != wanted {
        records.update_conversation(&wanted)?;
    }
    let ids: BTreeSet<BranchId> = own.branches.iter().map(|branch| branch.id).collect();
    let branches = records.branches(key)?;
    for branch in branches.iter().filter(|branch| !ids.contains(&branch.id)) {
        records.delete_branch(key, &branch.id)?;
    }
    for branch in &own.branches {
        let tip = branch.tip.map(|tip| target.locate(tip)).transpose()?;
        let branch = Branch { conversation: key, tip, ..branch.clone() };
        if !branches.contains(&branch) {
            records.put_branch(&branch)?;
        }
    }
    let locate = |loc: TurnLoc| target.locate(loc);
    let mut splits = Vec::with_capacity(own.splits.len());
    for split in &own.splits {
        let (whole, left, right) =
            (locate(split.whole)?, locate(split.left)?, locate(split.right)?);
        splits.push(Split { conversation: key, whole, left, right, ..*split });
    }
    let there = records.splits(key)?;
    for split in there.iter().filter(|split| !splits.contains(split)) {
        records.delete_split(key, split.whole)?;
    }
    for split in splits.iter().filter(|split| !there.contains(split)) {
        records.insert_split(split)?;
    }
    let mut hidden = Vec::with_capacity(own.hidden.len());
    for run in &own.hidden {
        let segment = locate(TurnLoc { segment: run.segment, index: 0 })?.segment;
        hidden.push(Hidden { conversation: key, segment, root: locate(run.root)?, ..*run });
    }
    let there = records.hidden(key)?;
    if there != hidden {
        let operations: BTreeSet<u64> = there.iter().map(|run| run.operation).collect();
        operations.iter().try_for_each(|it| records.delete_hidden(key, *it))?;
        hidden.iter().try_for_each(|run| records.insert_hidden(run))?;
    }
    Ok(())
}

/// Compares the turns of a conversation; adds those that no operation lists.
fn reconcile_turns(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    conversation: &Conversation,
) -> Result<()> {
    let own = read(from, |records| records.segments(conversation.key))?;
    let nos: Vec<SegmentNo> = own.iter().map(|extent| extent.segment.no).collect();
    for (nth, extent) in own.iter().enumerate() {
        let mut next = 0;
        while next < extent.turns {
            let last = (next + TURNS_PAGE - 1).min(extent.turns - 1);
            let turns = read(from, |records| turn_page(records, extent.segment.no, next, last))?;
            let Some(first) = turns.first().map(|turn| turn.loc.index) else {
                return Err(mismatch(format!("segment {}", extent.segment.no.0)));
            };
            next = first + turns.len() as u32;
            let there = read(to, |records| {
                let Some(target) = find_conversation(records, &project.id, &conversation.id)?
                else {
                    return Ok(Vec::new());
                };
                match records.segments(target.key)?.get(nth) {
                    Some(extent) => turn_page(records, extent.segment.no, first, last),
                    None => Ok(Vec::new()),
                }
            })?;
            let differing = differences(&turns, &there)?;
            if differing.is_empty() {
                continue;
            }
            let (owner, record) = (project.clone(), conversation.clone());
            let (segment, nos) = (extent.segment, nos.clone());
            write(to, move |records| {
                let mut target =
                    TargetConversation::find_or_create(records, &owner, &record, &nos)?;
                differing.iter().try_for_each(|difference| {
                    write_turn(records, &mut target, &segment, difference)
                })
            })?;
        }
    }
    Ok(())
}

/// Reads turns up to the size of a batch; at least one, if there is any.
fn turn_page(records: &dyn Read, segment: SegmentNo, from: u32, to: u32) -> Result<Vec<Turn>> {
    let (mut turns, mut bytes) = (Vec::new(), 0);
    records.turns(segment, from, to, &mut |turn| {
        bytes += content_bytes(&turn);
        turns.push(turn);
        Ok(bytes < BATCH_BYTES)
    })?;
    Ok(turns)
}

enum TurnDifference {
    Missing(Turn),
    Changed(Turn),
}

fn differences(source: &[Turn], target: &[Turn]) -> Result<Vec<TurnDifference>> {
    let mut differing = Vec::new();
    for (nth, turn) in source.iter().enumerate() {
        let Some(copy) = target.get(nth) else {
            differing.push(TurnDifference::Missing(turn.clone()));
            continue;
        };
        let copy = Turn { loc: turn.loc, ..copy.clone() };
        if copy == *turn {
            continue;
        }
        let erased = matches!(turn.content, Content::Purged(_));
        let content = if erased { turn.content.clone() } else { copy.content.clone() };
        if (Turn { metadata: turn.metadata.clone(), content, ..copy }) != *turn {
            return Err(mismatch(format!("turn {}", turn.id)));
        }
        differing.push(TurnDifference::Changed(turn.clone()));
    }
    Ok(differing)
}

fn write_turn(
    records: &mut dyn Write,
    target: &mut TargetConversation,
    segment: &Segment,
    difference: &TurnDifference,
) -> Result<()> {
    match difference {
        TurnDifference::Missing(turn) => {
            let there = target.segments.contains_key(&turn.loc.segment)
                && records.turn(target.locate(turn.loc)?)?.is_some();
            if there { Ok(()) } else { target.insert_turn(records, turn, segment) }
        }
        TurnDifference::Changed(turn) => {
            let place = target.locate(turn.loc)?;
            if let Content::Purged(digest) = &turn.content {
                records.purge_turn(place, digest)?;
            }
            records.set_metadata(place, &turn.metadata)
        }
    }
}

/// Compares the operations of a conversation.
fn reconcile_log(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    conversation: &Conversation,
) -> Result<()> {
    let mut next = 1;
    loop {
        let own = read(from, |records| operation_page(records, conversation, next))?;
        if own.is_empty() {
            return Ok(());
        }
        let there = read(to, |records| {
            let target = find_conversation(records, &project.id, &conversation.id)?;
            target.map_or(Ok(Vec::new()), |target| operation_page(records, &target, next))
        })?;
        next += own.len() as u64;
        let mut changed = Vec::new();
        for (nth, operation) in own.iter().enumerate() {
            let name = || format!("operation {} of {}", operation.seq, conversation.id);
            // Operations that were added after the replay are left to the next copy.
            let Some(copy) = there.get(nth) else { return Ok(()) };
            let copy = Operation { conversation: operation.conversation, ..copy.clone() };
            if copy == *operation {
                continue;
            }
            let erased = matches!(operation.detail, Detail::Purged(_));
            let detail = if erased { operation.detail.clone() } else { copy.detail.clone() };
            if (Operation { undone: operation.undone, detail, ..copy }) != *operation {
                return Err(mismatch(name()));
            }
            changed.push((operation.seq, operation.undone, erased));
        }
        if changed.is_empty() {
            continue;
        }
        let (owner, id) = (project.id.clone(), conversation.id.clone());
        write(to, move |records| {
            let target = find_conversation(&*records, &owner, &id)?;
            let key = target.ok_or_else(|| mismatch(format!("conversation {id}")))?.key;
            for (seq, undone, erased) in &changed {
                records.set_undone(key, *seq, *undone)?;
                if *erased {
                    records.purge_operation(key, *seq)?;
                }
            }
            Ok(())
        })?;
    }
}

fn operation_page(
    records: &dyn Read,
    conversation: &Conversation,
    from: u64,
) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    records.operations(conversation.key, from, u64::MAX, &mut |operation| {
        operations.push(operation);
        Ok(operations.len() < OPERATIONS_PAGE)
    })?;
    Ok(operations)
}

fn reconcile_bookmarks(from: &dyn Store, to: &dyn Store, project: &Project) -> Result<()> {
    let all =
        |store: &dyn Store| read(store, |records| records.bookmarks(&project.id, None, usize::MAX));
    let mut wanted = Vec::new();
    for bookmark in all(from)? {
        let owner = read(from, |records| {
            let conversation = records.conversation_by_key(bookmark.conversation)?;
            let conversation =
                conversation.ok_or_else(|| mismatch(format!("bookmark {}", bookmark.name)))?;
            read_state(records, conversation)
        })?;
        wanted.push((bookmark, owner));
    }
    let there: Vec<Bookmark> = all(to)?;
    let owner = project.clone();
    write(to, move |records| {
        for (bookmark, own) in &wanted {
            let target = TargetConversation::find_or_create(
                records,
                &owner,
                &own.conversation,
                &own.segments,
            )?;
            let (conversation, turn) = (target.key, target.locate(bookmark.turn)?);
            let bookmark = Bookmark { conversation, turn, ..bookmark.clone() };
            if !there.contains(&bookmark) {
                records.put_bookmark(&bookmark)?;
            }
        }
        for surplus in &there {
            if !wanted.iter().any(|(bookmark, _)| bookmark.name == surplus.name) {
                records.delete_bookmark(&owner.id, &surplus.name)?;
            }
        }
        Ok(())
    })
}

/// Makes one family equal, page by page; sources with their bytes. The target maintains its own
/// indexes.
fn reconcile_family(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    family: Family,
    done: &mut CopyProgress,
) -> Result<()> {
    let mut query = RecordQuery::all(family);
    loop {
        let own = read(from, |records| records.records(&project.id, &query, PAGE))?;
        // The target's page ends at the same key as the source's.
        let last = (own.len() == PAGE).then(|| own.last().map(|it| it.key().clone())).flatten();
        let same = match &last {
            Some(last) => query.clone().through(last),
            None => query.clone(),
        };
        let there = read(to, |records| records.records(&project.id, &same, usize::MAX))?;
        if family == Family::Source {
            for record in &own {
                if let RecordKey::Source(id) = record.key() {
                    reconcile_pieces(from, to, project, *id)?;
                }
            }
        }
        done.entries += own.len() as u64;
        if own != there {
            let owner = project.id.clone();
            write(to, move |records| write_records(records, &owner, &own, &there))?;
        }
        match last {
            Some(last) => query = query.after(&last),
            None => return Ok(()),
        }
    }
}

fn write_records(
    records: &mut dyn Write,
    project: &ProjectId,
    own: &[Record],
    there: &[Record],
) -> Result<()> {
    for record in own.iter().filter(|record| !there.contains(record)) {
        records.put_record(project, record)?;
    }
    for record in there {
        if !own.iter().any(|kept| kept.key() == record.key()) {
            records.delete_record(project, record.key())?;
        }
    }
    Ok(())
}

fn reconcile_pieces(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    source: SourceId,
) -> Result<()> {
    let mut nth = 0;
    loop {
        let piece = |store| read(store, |records| records.piece(&project.id, &source, nth));
        let (own, there) = (piece(from)?, piece(to)?);
        let owner = project.id.clone();
        match (own, there) {
            (None, None) => return Ok(()),
            (Some(own), Some(there)) if own == there => {}
            (Some(own), None) => {
                write(to, move |records| records.insert_piece(&owner, &source, nth, &own))?;
            }
            // Erased since, or interrupted in the middle: start over.
            _ => {
                write(to, move |records| records.delete_pieces(&owner, &source))?;
                nth = 0;
                continue;
            }
        }
        nth += 1;
    }
}

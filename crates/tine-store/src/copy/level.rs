//! Making two stores equal where records may change, and finding them equal where they may not.

use std::collections::BTreeSet;

use tine_core::{BranchId, ProjectId, SourceId};

use super::{BATCH_BYTES, Copied, OPERATIONS, Target, known, look, size, write};
use crate::families::{Family, Record, RecordKey, RecordQuery};
use crate::records::{
    Bookmark, Branch, Content, Conversation, Detail, Hidden, Operation, Project, Segment,
    SegmentNo, Split, Turn, TurnLoc,
};
use crate::traits::{Read, Store, Write};
use crate::{Result, StoreError};

/// Conversations listed at once, and records of families compared at once.
const PAGE: usize = 1_000;

/// Turns compared at once.
const TURNS: u32 = 1_024;

pub(super) fn level(
    from: &dyn Store,
    to: &dyn Store,
    done: &mut Copied,
    tell: &mut dyn FnMut(&Copied),
) -> Result<()> {
    for project in look(from, |records| records.projects())? {
        let made = project.clone();
        write(to, move |records| match records.project(&made.id)? {
            Some(_) => Ok(()),
            None => records.insert_project(&made),
        })?;
        let mut after = None;
        loop {
            let page = look(from, |records| records.conversations(&project.id, after, PAGE))?;
            let Some(last) = page.last() else { break };
            after = Some(last.key);
            for conversation in page {
                level_conversation(from, to, &project, conversation)?;
                done.conversations += 1;
                tell(done);
            }
        }
        bookmarks(from, to, &project)?;
        for family in Family::all() {
            records(from, to, &project, family, done)?;
            tell(done);
        }
    }
    Ok(())
}

fn differs(what: String) -> StoreError {
    let why = "it is not the same in both stores; copy to an empty one".to_owned();
    StoreError::Corrupt { record: what, why }
}

/// What may change of a conversation.
struct State {
    conversation: Conversation,
    segments: Vec<SegmentNo>,
    branches: Vec<Branch>,
    splits: Vec<Split>,
    hidden: Vec<Hidden>,
}

fn state(records: &dyn Read, conversation: Conversation) -> Result<State> {
    let key = conversation.key;
    Ok(State {
        segments: records.segments(key)?.iter().map(|extent| extent.segment.no).collect(),
        branches: records.branches(key)?,
        splits: records.splits(key)?,
        hidden: records.hidden(key)?,
        conversation,
    })
}

fn level_conversation(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    conversation: Conversation,
) -> Result<()> {
    level_turns(from, to, project, &conversation)?;
    level_log(from, to, project, &conversation)?;
    let own = look(from, |records| state(records, conversation.clone()))?;
    let owner = project.clone();
    write(to, move |records| {
        let target = Target::find(records, &owner, &own.conversation, &own.segments)?;
        set_state(records, &own, &target)
    })
}

fn set_state(records: &mut dyn Write, own: &State, target: &Target) -> Result<()> {
    let key = target.key;
    let wanted = Conversation { key, ..own.conversation.clone() };
    let there = records.conversation_by_key(key)?;
    let there = there.ok_or_else(|| differs(format!("conversation {}", wanted.id)))?;
    let fixed = |it: &Conversation| (it.root_hash, it.created_at, it.derived_from.clone());
    if fixed(&there) != fixed(&wanted) {
        return Err(differs(format!("conversation {}", wanted.id)));
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
        let tip = branch.tip.map(|tip| target.place(tip)).transpose()?;
        let branch = Branch { conversation: key, tip, ..branch.clone() };
        if !branches.contains(&branch) {
            records.put_branch(&branch)?;
        }
    }
    let place = |loc: TurnLoc| target.place(loc);
    let mut splits = Vec::with_capacity(own.splits.len());
    for split in &own.splits {
        let (whole, left, right) = (place(split.whole)?, place(split.left)?, place(split.right)?);
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
        let segment = place(TurnLoc { segment: run.segment, index: 0 })?.segment;
        hidden.push(Hidden { conversation: key, segment, root: place(run.root)?, ..*run });
    }
    let there = records.hidden(key)?;
    if there != hidden {
        let operations: BTreeSet<u64> = there.iter().map(|run| run.operation).collect();
        operations.iter().try_for_each(|it| records.delete_hidden(key, *it))?;
        hidden.iter().try_for_each(|run| records.insert_hidden(run))?;
    }
    Ok(())
}

/// Turns of both sides side by side; those that no operation brought are added.
fn level_turns(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    conversation: &Conversation,
) -> Result<()> {
    let own = look(from, |records| records.segments(conversation.key))?;
    let nos: Vec<SegmentNo> = own.iter().map(|extent| extent.segment.no).collect();
    for (nth, extent) in own.iter().enumerate() {
        let mut next = 0;
        while next < extent.turns {
            let last = (next + TURNS - 1).min(extent.turns - 1);
            let turns = look(from, |records| some_turns(records, extent.segment.no, next, last))?;
            let Some(first) = turns.first().map(|turn| turn.loc.index) else {
                return Err(differs(format!("segment {}", extent.segment.no.0)));
            };
            next = first + turns.len() as u32;
            let there = look(to, |records| {
                let Some(target) = known(records, &project.id, &conversation.id)? else {
                    return Ok(Vec::new());
                };
                match records.segments(target.key)?.get(nth) {
                    Some(extent) => some_turns(records, extent.segment.no, first, last),
                    None => Ok(Vec::new()),
                }
            })?;
            let unlike = differences(&turns, &there)?;
            if unlike.is_empty() {
                continue;
            }
            let (owner, record) = (project.clone(), conversation.clone());
            let (segment, nos) = (extent.segment, nos.clone());
            write(to, move |records| {
                let mut target = Target::find(records, &owner, &record, &nos)?;
                unlike
                    .iter()
                    .try_for_each(|unlike| set_turn(records, &mut target, &segment, unlike))
            })?;
        }
    }
    Ok(())
}

/// Turns from one index to another, as far as one batch goes; at least one, if there is any.
fn some_turns(records: &dyn Read, segment: SegmentNo, from: u32, to: u32) -> Result<Vec<Turn>> {
    let (mut turns, mut bytes) = (Vec::new(), 0);
    records.turns(segment, from, to, &mut |turn| {
        bytes += size(&turn);
        turns.push(turn);
        Ok(bytes < BATCH_BYTES)
    })?;
    Ok(turns)
}

enum Unlike {
    Missing(Turn),
    Changed(Turn),
}

fn differences(own: &[Turn], there: &[Turn]) -> Result<Vec<Unlike>> {
    let mut unlike = Vec::new();
    for (nth, turn) in own.iter().enumerate() {
        let Some(copy) = there.get(nth) else {
            unlike.push(Unlike::Missing(turn.clone()));
            continue;
        };
        let copy = Turn { loc: turn.loc, ..copy.clone() };
        if copy == *turn {
            continue;
        }
        let erased = matches!(turn.content, Content::Purged(_));
        let content = if erased { turn.content.clone() } else { copy.content.clone() };
        if (Turn { metadata: turn.metadata.clone(), content, ..copy }) != *turn {
            return Err(differs(format!("turn {}", turn.id)));
        }
        unlike.push(Unlike::Changed(turn.clone()));
    }
    Ok(unlike)
}

fn set_turn(
    records: &mut dyn Write,
    target: &mut Target,
    segment: &Segment,
    unlike: &Unlike,
) -> Result<()> {
    match unlike {
        Unlike::Missing(turn) => {
            let there = target.places.contains_key(&turn.loc.segment)
                && records.turn(target.place(turn.loc)?)?.is_some();
            if there { Ok(()) } else { target.add(records, turn, segment) }
        }
        Unlike::Changed(turn) => {
            let place = target.place(turn.loc)?;
            if let Content::Purged(digest) = &turn.content {
                records.purge_turn(place, digest)?;
            }
            records.set_metadata(place, &turn.metadata)
        }
    }
}

/// Logs of both sides side by side.
fn level_log(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    conversation: &Conversation,
) -> Result<()> {
    let mut next = 1;
    loop {
        let own = look(from, |records| some_operations(records, conversation, next))?;
        if own.is_empty() {
            return Ok(());
        }
        let there = look(to, |records| {
            let target = known(records, &project.id, &conversation.id)?;
            target.map_or(Ok(Vec::new()), |target| some_operations(records, &target, next))
        })?;
        next += own.len() as u64;
        let mut changed = Vec::new();
        for (nth, operation) in own.iter().enumerate() {
            let told = || format!("operation {} of {}", operation.seq, conversation.id);
            // What came after the log was followed comes with the next copy.
            let Some(copy) = there.get(nth) else { return Ok(()) };
            let copy = Operation { conversation: operation.conversation, ..copy.clone() };
            if copy == *operation {
                continue;
            }
            let erased = matches!(operation.detail, Detail::Purged(_));
            let detail = if erased { operation.detail.clone() } else { copy.detail.clone() };
            if (Operation { undone: operation.undone, detail, ..copy }) != *operation {
                return Err(differs(told()));
            }
            changed.push((operation.seq, operation.undone, erased));
        }
        if changed.is_empty() {
            continue;
        }
        let (owner, id) = (project.id.clone(), conversation.id.clone());
        write(to, move |records| {
            let target = known(&*records, &owner, &id)?;
            let key = target.ok_or_else(|| differs(format!("conversation {id}")))?.key;
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

fn some_operations(
    records: &dyn Read,
    conversation: &Conversation,
    from: u64,
) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    records.operations(conversation.key, from, u64::MAX, &mut |operation| {
        operations.push(operation);
        Ok(operations.len() < OPERATIONS)
    })?;
    Ok(operations)
}

fn bookmarks(from: &dyn Store, to: &dyn Store, project: &Project) -> Result<()> {
    let all =
        |store: &dyn Store| look(store, |records| records.bookmarks(&project.id, None, usize::MAX));
    let mut wanted = Vec::new();
    for bookmark in all(from)? {
        let owner = look(from, |records| {
            let conversation = records.conversation_by_key(bookmark.conversation)?;
            let conversation =
                conversation.ok_or_else(|| differs(format!("bookmark {}", bookmark.name)))?;
            state(records, conversation)
        })?;
        wanted.push((bookmark, owner));
    }
    let there: Vec<Bookmark> = all(to)?;
    let owner = project.clone();
    write(to, move |records| {
        for (bookmark, own) in &wanted {
            let target = Target::find(records, &owner, &own.conversation, &own.segments)?;
            let (conversation, turn) = (target.key, target.place(bookmark.turn)?);
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

/// Makes one family equal, page by page; sources with their bytes. The target keeps its indexes.
fn records(
    from: &dyn Store,
    to: &dyn Store,
    project: &Project,
    family: Family,
    done: &mut Copied,
) -> Result<()> {
    let mut query = RecordQuery::all(family);
    loop {
        let own = look(from, |records| records.records(&project.id, &query, PAGE))?;
        // Up to where the source's page ends, or to the end.
        let last = (own.len() == PAGE).then(|| own.last().map(|it| it.key().clone())).flatten();
        let same = match &last {
            Some(last) => query.clone().through(last),
            None => query.clone(),
        };
        let there = look(to, |records| records.records(&project.id, &same, usize::MAX))?;
        if family == Family::Source {
            for record in &own {
                if let RecordKey::Source(id) = record.key() {
                    pieces(from, to, project, *id)?;
                }
            }
        }
        done.entries += own.len() as u64;
        if own != there {
            let owner = project.id.clone();
            write(to, move |records| set_records(records, &owner, &own, &there))?;
        }
        match last {
            Some(last) => query = query.after(&last),
            None => return Ok(()),
        }
    }
}

fn set_records(
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

fn pieces(from: &dyn Store, to: &dyn Store, project: &Project, source: SourceId) -> Result<()> {
    let mut nth = 0;
    loop {
        let piece = |store| look(store, |records| records.piece(&project.id, &source, nth));
        let (own, there) = (piece(from)?, piece(to)?);
        let owner = project.id.clone();
        match (own, there) {
            (None, None) => return Ok(()),
            (Some(own), Some(there)) if own == there => {}
            (Some(own), None) => {
                write(to, move |records| records.insert_piece(&owner, &source, nth, &own))?;
            }
            // Erased since, or interrupted in the middle: start again.
            _ => {
                write(to, move |records| records.delete_pieces(&owner, &source))?;
                nth = 0;
                continue;
            }
        }
        nth += 1;
    }
}

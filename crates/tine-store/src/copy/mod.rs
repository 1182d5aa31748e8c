//! Copying a store to another, record by record.
//!
//! First the feed is replayed in order: each operation with the turns that it made, one batch per
//! transaction. Operations that the target already has are skipped, so that an interrupted copy
//! continues where it stopped. Then every record of both stores is compared ([`reconcile`]): mutable
//! records are made equal, and immutable ones must be equal. So a copy that succeeds is verified.
//!
//! Writes to the source during the copy may be missing from it; copying again adds them.

mod reconcile;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tine_core::{ConversationId, ProjectId};

use crate::records::{
    Conversation, ConversationKey, FeedPosition, Operation, Project, Segment, SegmentNo, Turn,
    TurnLoc,
};
use crate::traits::{Read, Store, Verdict, Write, required};
use crate::{Result, StoreError};

/// The number of operations in a page.
const OPERATIONS_PAGE: usize = 512;

/// The size of turns at which a batch ends.
const BATCH_BYTES: usize = 4 << 20;

/// The progress of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Operations of the source when the copy started.
    pub source_operations: u64,
    /// Operations in the target.
    pub operations: u64,
    /// Those of them that the target had before.
    pub found: u64,
    /// Turns that were copied.
    pub turns: u64,
    /// Conversations that were compared.
    pub conversations: u64,
    /// Records of families that were compared.
    pub entries: u64,
}

/// Copies a store, reporting progress.
pub fn copy(
    from: &dyn Store,
    to: &dyn Store,
    report: &mut dyn FnMut(&CopyProgress),
) -> Result<CopyProgress> {
    let mut done = CopyProgress {
        source_operations: read(from, |records| records.totals())?.operations,
        ..CopyProgress::default()
    };
    let mut at = skip_copied(from, to, &mut done)?;
    report(&done);
    loop {
        let batch = read(from, |records| read_batch(records, at))?;
        let Some(last) = batch.last() else { break };
        at = last.at;
        done.operations += batch.len() as u64;
        done.turns += batch.iter().map(|it| it.turns.len() as u64).sum::<u64>();
        write(to, move |records| replay(records, &batch))?;
        report(&done);
    }
    reconcile::reconcile(from, to, &mut done, report)?;
    Ok(done)
}

fn read<T>(store: &dyn Store, body: impl Fn(&dyn Read) -> Result<T>) -> Result<T> {
    let mut answer = None;
    store.read(&mut |records| {
        answer = Some(body(records)?);
        Ok(())
    })?;
    answer.ok_or_else(|| StoreError::Contract("a closure that was to read did not run".to_owned()))
}

fn write(
    store: &dyn Store,
    body: impl Fn(&mut dyn Write) -> Result<()> + Send + 'static,
) -> Result<()> {
    store.write(Box::new(move |records| {
        body(records)?;
        Ok(Verdict::Commit)
    }))
}

/// Skips the operations that the target already has; returns the position in the source's feed.
fn skip_copied(from: &dyn Store, to: &dyn Store, done: &mut CopyProgress) -> Result<FeedPosition> {
    let (mut source_at, mut target_at) = (FeedPosition::default(), FeedPosition::default());
    loop {
        let copied = read(to, |records| records.feed(target_at, OPERATIONS_PAGE))?;
        if copied.is_empty() {
            return Ok(source_at);
        }
        let own = read(from, |records| records.feed(source_at, copied.len()))?;
        let same = |(a, b): (&(FeedPosition, Operation), &(FeedPosition, Operation))| {
            (a.1.seq, a.1.hash) == (b.1.seq, b.1.hash)
        };
        if own.len() < copied.len() || !own.iter().zip(&copied).all(same) {
            return Err(StoreError::Unsupported(
                "the target holds something else; give an empty one, or the one that an earlier \
                 copy of this very store began",
            ));
        }
        done.found += copied.len() as u64;
        done.operations += copied.len() as u64;
        source_at = own.last().map_or(source_at, |(at, _)| *at);
        target_at = copied.last().map_or(target_at, |(at, _)| *at);
    }
}

/// An operation of the source, with the turns that it made.
struct CopiedOperation {
    at: FeedPosition,
    project: Project,
    conversation: Conversation,
    /// The segments of the conversation, in order.
    segments: Vec<SegmentNo>,
    turns: Vec<(Turn, Segment)>,
    operation: Operation,
}

fn read_batch(records: &dyn Read, after: FeedPosition) -> Result<Vec<CopiedOperation>> {
    let mut owners: HashMap<ConversationKey, (Project, Conversation, Vec<SegmentNo>)> =
        HashMap::new();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for (at, operation) in records.feed(after, OPERATIONS_PAGE)? {
        let key = operation.conversation;
        let owner = match owners.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(read_owner(records, key)?),
        };
        let (project, conversation, segments) = owner.clone();
        let mut turns = Vec::new();
        for (first, count) in records.made_by(at)? {
            let segment = records.segment(first.segment)?;
            let last = first.index.saturating_add(count.saturating_sub(1));
            records.turns(first.segment, first.index, last, &mut |turn| {
                bytes += content_bytes(&turn);
                turns.push((turn, segment));
                Ok(true)
            })?;
        }
        batch.push(CopiedOperation { at, project, conversation, segments, turns, operation });
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    Ok(batch)
}

fn read_owner(
    records: &dyn Read,
    key: ConversationKey,
) -> Result<(Project, Conversation, Vec<SegmentNo>)> {
    let conversation = records.conversation_by_key(key)?;
    let conversation = required(conversation, || format!("conversation {}", key.0))?;
    let project = records.project(&conversation.project)?;
    let project = required(project, || format!("project {}", conversation.project))?;
    let segments = records.segments(key)?.iter().map(|extent| extent.segment.no).collect();
    Ok((project, conversation, segments))
}

fn content_bytes(turn: &Turn) -> usize {
    match &turn.content {
        crate::Content::Kept(tine_core::Body::Text(text) | tine_core::Body::Blocks(text)) => {
            text.len()
        }
        crate::Content::Purged(_) => 0,
    }
}

fn replay(records: &mut dyn Write, batch: &[CopiedOperation]) -> Result<()> {
    let mut targets: HashMap<ConversationKey, TargetConversation> = HashMap::new();
    for copied in batch {
        let source = copied.operation.conversation;
        let target = match targets.entry(source) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(TargetConversation::find_or_create(
                records,
                &copied.project,
                &copied.conversation,
                &copied.segments,
            )?),
        };
        for (turn, segment) in &copied.turns {
            target.insert_turn(records, turn, segment)?;
        }
        let operation = Operation { conversation: target.key, ..copied.operation.clone() };
        records.insert_operation(&operation)?;
    }
    Ok(())
}

/// A conversation of the target, with its segments by those of the source.
struct TargetConversation {
    key: ConversationKey,
    segments: HashMap<SegmentNo, SegmentNo>,
}

impl TargetConversation {
    /// Finds or creates the conversation. Segments correspond by their order of creation.
    fn find_or_create(
        records: &mut dyn Write,
        project: &Project,
        conversation: &Conversation,
        segments: &[SegmentNo],
    ) -> Result<TargetConversation> {
        if records.project(&project.id)?.is_none() {
            records.insert_project(project)?;
        }
        let existing = find_conversation(&*records, &project.id, &conversation.id)?;
        let key = match existing {
            Some(found) => found.key,
            None => records.insert_conversation(conversation)?,
        };
        let created = records.segments(key)?;
        let pairs = segments.iter().zip(&created);
        Ok(TargetConversation {
            key,
            segments: pairs.map(|(source, target)| (*source, target.segment.no)).collect(),
        })
    }

    /// Returns the location that corresponds to one of the source.
    fn locate(&self, loc: TurnLoc) -> Result<TurnLoc> {
        let segment = self.segments.get(&loc.segment).copied();
        let segment = required(segment, || format!("segment {}", loc.segment.0))?;
        Ok(TurnLoc { segment, index: loc.index })
    }

    fn insert_turn(
        &mut self,
        records: &mut dyn Write,
        turn: &Turn,
        segment: &Segment,
    ) -> Result<()> {
        if !self.segments.contains_key(&segment.no) {
            let parent = segment.parent.map(|parent| self.locate(parent)).transpose()?;
            let no = records.insert_segment(self.key, parent, segment.base_depth)?;
            self.segments.insert(segment.no, no);
        }
        let turn = Turn { loc: self.locate(turn.loc)?, ..turn.clone() };
        records.insert_turn(self.key, &turn)
    }
}

fn find_conversation(
    records: &dyn Read,
    project: &ProjectId,
    id: &ConversationId,
) -> Result<Option<Conversation>> {
    records.conversation(project, id)
}

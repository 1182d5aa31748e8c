//! Everything from one store to another, record by record.
//!
//! First the log is followed in its own order: each operation with the turns that it made, a batch
//! to a transaction. What is there already is passed over, so that a copy that was interrupted
//! goes on where it ended. Then every record of both stores is compared ([`level`]): what may
//! change is made equal, and what may not must be equal. So a copy that ends well is verified.
//!
//! A store that is written to meanwhile is copied as far as it was; copying again adds the rest.

mod level;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tine_core::{ConversationId, ProjectId};

use crate::records::{
    Conversation, ConversationKey, FeedPosition, Operation, Project, Segment, SegmentNo, Turn,
    TurnLoc,
};
use crate::traits::{Read, Store, Verdict, Write, required};
use crate::{Result, StoreError};

/// Operations compared or copied at once.
const OPERATIONS: usize = 512;

/// Bytes of turns behind which a batch ends.
const BATCH_BYTES: usize = 4 << 20;

/// How far a copy is, or what it was in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Operations of the source, as it was in the beginning.
    pub of: u64,
    /// Operations that are in the target.
    pub operations: u64,
    /// Of these, those that were there before.
    pub found: u64,
    /// Turns that were copied.
    pub turns: u64,
    /// Conversations that were compared.
    pub conversations: u64,
    /// Entries of what was learned that were compared.
    pub entries: u64,
}

/// Copies everything, telling now and then how far it is.
pub fn copy(from: &dyn Store, to: &dyn Store, tell: &mut dyn FnMut(&Copied)) -> Result<Copied> {
    let mut done =
        Copied { of: look(from, |records| records.totals())?.operations, ..Copied::default() };
    let mut at = pass_over(from, to, &mut done)?;
    tell(&done);
    loop {
        let steps = look(from, |records| gather(records, at))?;
        let Some(last) = steps.last() else { break };
        at = last.at;
        done.operations += steps.len() as u64;
        done.turns += steps.iter().map(|step| step.turns.len() as u64).sum::<u64>();
        write(to, move |records| replay(records, &steps))?;
        tell(&done);
    }
    level::level(from, to, &mut done, tell)?;
    Ok(done)
}

fn look<T>(store: &dyn Store, body: impl Fn(&dyn Read) -> Result<T>) -> Result<T> {
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

/// Finds the place in the source's log up to which the target has it.
fn pass_over(from: &dyn Store, to: &dyn Store, done: &mut Copied) -> Result<FeedPosition> {
    let (mut here, mut there) = (FeedPosition::default(), FeedPosition::default());
    loop {
        let copied = look(to, |records| records.feed(there, OPERATIONS))?;
        if copied.is_empty() {
            return Ok(here);
        }
        let own = look(from, |records| records.feed(here, copied.len()))?;
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
        here = own.last().map_or(here, |(at, _)| *at);
        there = copied.last().map_or(there, |(at, _)| *at);
    }
}

/// An operation on its way, with the turns that it made.
struct Step {
    at: FeedPosition,
    project: Project,
    conversation: Conversation,
    /// Segments of the source's conversation, in order.
    segments: Vec<SegmentNo>,
    turns: Vec<(Turn, Segment)>,
    operation: Operation,
}

fn gather(records: &dyn Read, after: FeedPosition) -> Result<Vec<Step>> {
    let mut owners: HashMap<ConversationKey, (Project, Conversation, Vec<SegmentNo>)> =
        HashMap::new();
    let (mut steps, mut bytes) = (Vec::new(), 0);
    for (at, operation) in records.feed(after, OPERATIONS)? {
        let key = operation.conversation;
        let known = match owners.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(owner(records, key)?),
        };
        let (project, conversation, segments) = known.clone();
        let mut turns = Vec::new();
        for (first, count) in records.made_by(at)? {
            let segment = records.segment(first.segment)?;
            let last = first.index.saturating_add(count.saturating_sub(1));
            records.turns(first.segment, first.index, last, &mut |turn| {
                bytes += size(&turn);
                turns.push((turn, segment));
                Ok(true)
            })?;
        }
        steps.push(Step { at, project, conversation, segments, turns, operation });
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    Ok(steps)
}

fn owner(
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

fn size(turn: &Turn) -> usize {
    match &turn.content {
        crate::Content::Kept(tine_core::Body::Text(text) | tine_core::Body::Blocks(text)) => {
            text.len()
        }
        crate::Content::Purged(_) => 0,
    }
}

fn replay(records: &mut dyn Write, steps: &[Step]) -> Result<()> {
    let mut targets: HashMap<ConversationKey, Target> = HashMap::new();
    for step in steps {
        let source = step.operation.conversation;
        let target = match targets.entry(source) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(Target::find(
                records,
                &step.project,
                &step.conversation,
                &step.segments,
            )?),
        };
        for (turn, segment) in &step.turns {
            target.add(records, turn, segment)?;
        }
        let operation = Operation { conversation: target.key, ..step.operation.clone() };
        records.insert_operation(&operation)?;
    }
    Ok(())
}

/// A conversation of the target, and where the segments of the source are in it.
struct Target {
    key: ConversationKey,
    places: HashMap<SegmentNo, SegmentNo>,
}

impl Target {
    /// Segments are made in the same order on both sides, and are told apart by it.
    fn find(
        records: &mut dyn Write,
        project: &Project,
        conversation: &Conversation,
        segments: &[SegmentNo],
    ) -> Result<Target> {
        if records.project(&project.id)?.is_none() {
            records.insert_project(project)?;
        }
        let known = known(&*records, &project.id, &conversation.id)?;
        let key = match known {
            Some(found) => found.key,
            None => records.insert_conversation(conversation)?,
        };
        let there = records.segments(key)?;
        let pairs = segments.iter().zip(&there);
        Ok(Target { key, places: pairs.map(|(own, there)| (*own, there.segment.no)).collect() })
    }

    fn place(&self, loc: TurnLoc) -> Result<TurnLoc> {
        let segment = self.places.get(&loc.segment).copied();
        let segment = required(segment, || format!("segment {}", loc.segment.0))?;
        Ok(TurnLoc { segment, index: loc.index })
    }

    fn add(&mut self, records: &mut dyn Write, turn: &Turn, segment: &Segment) -> Result<()> {
        if !self.places.contains_key(&segment.no) {
            let parent = segment.parent.map(|parent| self.place(parent)).transpose()?;
            let made = records.insert_segment(self.key, parent, segment.base_depth)?;
            self.places.insert(segment.no, made);
        }
        let turn = Turn { loc: self.place(turn.loc)?, ..turn.clone() };
        records.insert_turn(self.key, &turn)
    }
}

fn known(
    records: &dyn Read,
    project: &ProjectId,
    id: &ConversationId,
) -> Result<Option<Conversation>> {
    records.conversation(project, id)
}

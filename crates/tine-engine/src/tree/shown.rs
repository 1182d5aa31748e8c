//! The tree as shown, computed from the raw one.
//!
//! Raw parents never change. What people see differs from the raw tree in three ways, all of them
//! records beside the turns: a run of turns may be *gone* (deleted with all below, or undone), a
//! turn may be *bridged* (deleted alone, so that its children show in its place), and a turn may
//! be *split* (its two halves show in its place, its children below the second half).
//!
//! Invariants: the shown parent of a live turn is live; a shown ancestor is always a raw ancestor
//! or a half of one; nothing is ever appended below a turn that is not live.
//!
//! A computation records its dependencies ([`Tree::dependencies`]): the operations that hid or
//! split turns on the path.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use tine_store::{
    ConversationKey, Hidden, HiddenBy, Read, SEGMENT_TURNS, Segment, SegmentNo, Split, StoreError,
    Turn, TurnLoc, Write, required,
};

use crate::{Error, Result};

/// The state of a turn in the shown tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnState {
    /// It is shown.
    Live,
    /// Deleted alone by this operation; its children show in its place.
    Bridged(u64),
    /// Deleted with all below, or undone, by this operation.
    Gone(u64),
    /// Its halves show in its place.
    Split(Split),
}

/// Hides a turn, alone or with all below it, under an operation.
pub(crate) fn hide(
    records: &mut dyn Write,
    conversation: ConversationKey,
    root: TurnLoc,
    by: HiddenBy,
    operation: u64,
) -> Result<()> {
    let runs = Tree::new(&*records, conversation).runs(root, by != HiddenBy::Reparent)?;
    for SegmentRun { segment, from, to } in runs {
        records.insert_hidden(&Hidden { conversation, segment, from, to, operation, by, root })?;
    }
    Ok(())
}

/// A child that an appended message can equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchPoint {
    /// The turn whose message is compared.
    pub compare: TurnLoc,
    /// The turn from which matching continues: the same, or the last half of a split one.
    pub continue_at: TurnLoc,
}

/// A run of turns within one segment: indices `from..=to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRun {
    pub segment: SegmentNo,
    pub from: u32,
    pub to: u32,
}

/// The splits of a conversation, found from each side.
#[derive(Default)]
struct SplitIndex {
    by_whole: HashMap<TurnLoc, Split>,
    by_left: HashMap<TurnLoc, Split>,
    by_right: HashMap<TurnLoc, Split>,
}

impl SplitIndex {
    fn new(splits: Vec<Split>) -> Self {
        let mut found = SplitIndex::default();
        for split in splits {
            found.by_whole.insert(split.whole, split);
            found.by_left.insert(split.left, split);
            found.by_right.insert(split.right, split);
        }
        found
    }
}

/// The segments of a conversation: the last index and the fork point of each.
#[derive(Default)]
struct SegmentIndex {
    last: HashMap<SegmentNo, u32>,
    forks: HashMap<Option<TurnLoc>, Vec<SegmentNo>>,
}

/// A segment begins below an earlier one. A damaged record that violates this would cause an
/// endless loop.
fn in_order(segment: Segment) -> Result<Segment> {
    if segment.parent.is_none_or(|parent| parent.segment < segment.no) {
        return Ok(segment);
    }
    Err(disordered(format!("segment {}", segment.no.0)))
}

/// Halves are made after their whole, in a segment of their own.
fn split_in_order(split: Split) -> Result<Split> {
    if split.whole.segment < split.left.segment && split.right == split.left.next() {
        return Ok(split);
    }
    Err(disordered(format!("split by operation {}", split.operation)))
}

fn disordered(record: String) -> Error {
    let why = "it points at something that was made after it".to_owned();
    Error::Store(StoreError::Corrupt { record, why })
}

/// One conversation's tree within a transaction.
pub(crate) struct Tree<'t> {
    records: &'t dyn Read,
    conversation: ConversationKey,
    splits: OnceCell<SplitIndex>,
    segment_index: OnceCell<SegmentIndex>,
    hidden: RefCell<HashMap<SegmentNo, Rc<[Hidden]>>>,
    segments: RefCell<HashMap<SegmentNo, Segment>>,
    dependencies: RefCell<BTreeSet<u64>>,
    /// A turn and the raw children that were last found below it.
    children: RefCell<Option<(Option<TurnLoc>, Vec<TurnLoc>)>>,
}

impl<'t> Tree<'t> {
    pub(crate) fn new(records: &'t dyn Read, conversation: ConversationKey) -> Self {
        Tree {
            records,
            conversation,
            splits: OnceCell::new(),
            segment_index: OnceCell::new(),
            hidden: RefCell::default(),
            segments: RefCell::default(),
            dependencies: RefCell::default(),
            children: RefCell::default(),
        }
    }

    /// Returns the raw children of a turn if they were the last ones read. The tree cannot have
    /// changed since: it reads one snapshot.
    pub(crate) fn take_children(&self, parent: Option<TurnLoc>) -> Option<Vec<TurnLoc>> {
        let cached = self.children.take().filter(|(of, _)| *of == parent);
        cached.map(|(_, children)| children)
    }

    /// Returns the operations whose deletions and splits were considered so far.
    pub(crate) fn dependencies(&self) -> BTreeSet<u64> {
        self.dependencies.borrow().clone()
    }

    pub(crate) fn conversation(&self) -> ConversationKey {
        self.conversation
    }

    /// Returns the records that the tree is computed from.
    pub(crate) fn records(&self) -> &'t dyn Read {
        self.records
    }

    pub(crate) fn turn(&self, loc: TurnLoc) -> Result<Turn> {
        let found = self.records.turn(loc)?;
        Ok(required(found, || format!("turn {} of segment {}", loc.index, loc.segment.0))?)
    }

    pub(crate) fn segment(&self, no: SegmentNo) -> Result<Segment> {
        if let Some(segment) = self.segments.borrow().get(&no) {
            return Ok(*segment);
        }
        let segment = in_order(self.records.segment(no)?)?;
        self.segments.borrow_mut().insert(no, segment);
        Ok(segment)
    }

    /// Reads all segments at once, for callers that will visit most of the tree.
    pub(crate) fn preload(&self) -> Result<()> {
        let mut segment_index = SegmentIndex::default();
        for extent in self.records.segments(self.conversation)? {
            let segment = in_order(extent.segment)?;
            segment_index.last.insert(segment.no, extent.turns.saturating_sub(1));
            segment_index.forks.entry(segment.parent).or_default().push(segment.no);
            self.segments.borrow_mut().insert(segment.no, segment);
            self.hidden.borrow_mut().insert(segment.no, Rc::default());
        }
        let mut runs: HashMap<SegmentNo, Vec<Hidden>> = HashMap::new();
        for run in self.records.hidden(self.conversation)? {
            runs.entry(run.segment).or_default().push(run);
        }
        for (segment, runs) in runs {
            self.hidden.borrow_mut().insert(segment, runs.into());
        }
        self.segment_index.set(segment_index).ok();
        Ok(())
    }

    fn splits(&self) -> Result<&SplitIndex> {
        match self.splits.get() {
            Some(splits) => Ok(splits),
            None => {
                let splits = self.records.splits(self.conversation)?;
                let splits = splits.into_iter().map(split_in_order).collect::<Result<_>>()?;
                let splits = SplitIndex::new(splits);
                Ok(self.splits.get_or_init(|| splits))
            }
        }
    }

    fn split_of(&self, whole: TurnLoc) -> Result<Option<Split>> {
        Ok(self.splits()?.by_whole.get(&whole).copied())
    }

    fn split_with_left(&self, left: TurnLoc) -> Result<Option<Split>> {
        Ok(self.splits()?.by_left.get(&left).copied())
    }

    fn split_with_right(&self, right: TurnLoc) -> Result<Option<Split>> {
        Ok(self.splits()?.by_right.get(&right).copied())
    }

    /// Returns the split of which this turn is a half.
    pub(crate) fn split_with_half(&self, half: TurnLoc) -> Result<Option<Split>> {
        match self.split_with_right(half)? {
            Some(split) => Ok(Some(split)),
            None => self.split_with_left(half),
        }
    }

    fn hidden_in(&self, segment: SegmentNo) -> Result<Rc<[Hidden]>> {
        if let Some(cached) = self.hidden.borrow().get(&segment) {
            return Ok(Rc::clone(cached));
        }
        let found: Rc<[Hidden]> = self.records.hidden_in(self.conversation, segment)?.into();
        self.hidden.borrow_mut().insert(segment, Rc::clone(&found));
        Ok(found)
    }

    pub(crate) fn state(&self, loc: TurnLoc) -> Result<TurnState> {
        let hidden = self.hidden_in(loc.segment)?;
        let covering = hidden.iter().filter(|run| (run.from..=run.to).contains(&loc.index));
        let mut bridged = None;
        for run in covering {
            if run.by != HiddenBy::Reparent {
                return Ok(TurnState::Gone(run.operation));
            }
            bridged = Some(run.operation);
        }
        if let Some(operation) = bridged {
            return Ok(TurnState::Bridged(operation));
        }
        Ok(self.split_of(loc)?.map_or(TurnState::Live, TurnState::Split))
    }

    /// Returns whether every turn of a segment is shown as it lies there.
    pub(crate) fn is_plain(&self, segment: SegmentNo) -> Result<bool> {
        Ok(self.hidden_in(segment)?.is_empty() && self.splits()?.by_whole.is_empty())
    }

    /// Returns the place of a first child, if there is one in the same segment.
    fn next_in_segment(&self, loc: TurnLoc) -> Result<Option<TurnLoc>> {
        if loc.index + 1 >= SEGMENT_TURNS {
            return Ok(None);
        }
        Ok((loc.index < self.last_index(loc.segment)?).then(|| loc.next()))
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        match self.segment_index.get().and_then(|segment_index| segment_index.last.get(&segment)) {
            Some(last) => Ok(*last),
            None => Ok(self.records.last_index(segment)?),
        }
    }

    pub(crate) fn raw_parent(&self, loc: TurnLoc) -> Result<Option<TurnLoc>> {
        if loc.index > 0 {
            return Ok(Some(TurnLoc { index: loc.index - 1, ..loc }));
        }
        Ok(self.segment(loc.segment)?.parent)
    }

    /// Raw children in the order in which they were made; `None` is the root.
    pub(crate) fn raw_children(&self, parent: Option<TurnLoc>) -> Result<Vec<TurnLoc>> {
        let mut children = Vec::new();
        if let Some(parent) = parent {
            children.extend(self.next_in_segment(parent)?);
        }
        let first = |segment| TurnLoc { segment, index: 0 };
        match self.segment_index.get() {
            Some(segment_index) => {
                let forks = segment_index.forks.get(&parent).map_or(&[][..], Vec::as_slice);
                children.extend(forks.iter().copied().map(first));
            }
            None => {
                for fork in self.records.forks(self.conversation, parent)? {
                    children.push(first(in_order(fork)?.no));
                }
            }
        }
        *self.children.borrow_mut() = Some((parent, children.clone()));
        Ok(children)
    }

    /// Returns the turn that a reference to this one means: the last half of a split turn, else
    /// itself.
    pub(crate) fn last_half(&self, loc: TurnLoc) -> Result<TurnLoc> {
        let mut loc = loc;
        while let Some(split) = self.split_of(loc)? {
            self.dependencies.borrow_mut().insert(split.operation);
            loc = split.right;
        }
        Ok(loc)
    }

    /// Returns the turn that begins where this one begins: the first half of a split turn, else
    /// itself.
    pub(crate) fn first_half(&self, loc: TurnLoc) -> Result<TurnLoc> {
        let mut loc = loc;
        while let Some(split) = self.split_of(loc)? {
            self.dependencies.borrow_mut().insert(split.operation);
            loc = split.left;
        }
        Ok(loc)
    }

    /// Returns the turn whose text this one continues: the last part of the first half, when this
    /// is the first part of the second half of a split.
    pub(crate) fn continued(&self, loc: TurnLoc) -> Result<Option<TurnLoc>> {
        let mut part = loc;
        while let Some(split) = self.split_with_half(part)? {
            if split.right == part {
                // No dependency is recorded: what is shown does not depend on it.
                let mut before = split.left;
                while let Some(further) = self.split_of(before)? {
                    before = further.right;
                }
                return Ok(Some(before));
            }
            part = split.whole;
        }
        Ok(None)
    }

    /// Returns whether a turn is no part of a split one, or the one that its text begins with.
    pub(crate) fn begins(&self, loc: TurnLoc) -> Result<bool> {
        Ok(self.continued(loc)?.is_none())
    }

    /// Returns the parent as shown; `None` is the root.
    pub(crate) fn shown_parent(&self, loc: TurnLoc) -> Result<Option<TurnLoc>> {
        let mut above = self.raw_parent(loc)?;
        while let Some(parent) = above {
            match self.state(parent)? {
                TurnState::Live => break,
                TurnState::Split(split) => {
                    self.dependencies.borrow_mut().insert(split.operation);
                    above = Some(split.right);
                }
                TurnState::Bridged(operation) | TurnState::Gone(operation) => {
                    self.dependencies.borrow_mut().insert(operation);
                    above = self.raw_parent(parent)?;
                }
            }
        }
        Ok(above)
    }

    /// Raw turns that stand below a shown turn: its own raw children, after those of the whole of
    /// which it is the last half.
    fn children_below(&self, parent: Option<TurnLoc>) -> Result<Vec<TurnLoc>> {
        let mut below = Vec::new();
        if let Some(loc) = parent
            && let Some(split) = self.split_with_right(loc)?
        {
            below = self.children_below(Some(split.whole))?;
        }
        below.extend(self.raw_children(parent)?);
        Ok(below)
    }

    /// Children as shown, in order; `None` is the root.
    pub(crate) fn shown_children(&self, parent: Option<TurnLoc>) -> Result<Vec<TurnLoc>> {
        let matches = self.match_points(parent)?;
        Ok(matches
            .iter()
            .filter(|point| point.compare == point.continue_at)
            .map(|point| point.continue_at)
            .collect())
    }

    /// Everything that an appended message can equal under a shown turn, in order: the children
    /// as shown, and before its halves each split turn as a whole.
    pub(crate) fn match_points(&self, parent: Option<TurnLoc>) -> Result<Vec<MatchPoint>> {
        let mut points = Vec::new();
        // In reverse, since the last one pushed is the first one looked at.
        let mut pending = self.children_below(parent)?;
        pending.reverse();
        // A first half stands where its whole stands, and is passed over where it lies itself;
        // the flag tells the two apart.
        let mut pending: Vec<(TurnLoc, bool)> =
            pending.into_iter().map(|loc| (loc, false)).collect();
        while let Some((loc, in_place_of_whole)) = pending.pop() {
            if !in_place_of_whole && self.split_with_left(loc)?.is_some() {
                continue;
            }
            match self.state(loc)? {
                TurnState::Live => points.push(MatchPoint { compare: loc, continue_at: loc }),
                TurnState::Gone(_) => {}
                TurnState::Bridged(_) => {
                    let below = self.children_below(Some(loc))?;
                    pending.extend(below.into_iter().rev().map(|child| (child, false)));
                }
                TurnState::Split(split) => {
                    if let Some(continue_at) = self.whole_halves(split)? {
                        points.push(MatchPoint { compare: loc, continue_at });
                    }
                    pending.push((split.left, true));
                }
            }
        }
        Ok(points)
    }

    /// Returns whether a turn, or any half of it, is shown.
    pub(crate) fn is_shown(&self, loc: TurnLoc) -> Result<bool> {
        let mut pending = vec![loc];
        while let Some(part) = pending.pop() {
            match self.state(part)? {
                TurnState::Live => return Ok(true),
                TurnState::Split(split) => pending.extend([split.left, split.right]),
                TurnState::Bridged(_) | TurnState::Gone(_) => {}
            }
        }
        Ok(false)
    }

    /// Returns whether all of a turn is shown.
    pub(crate) fn is_whole(&self, loc: TurnLoc) -> Result<bool> {
        match self.state(loc)? {
            TurnState::Live => Ok(true),
            TurnState::Split(split) => Ok(self.whole_halves(split)?.is_some()),
            TurnState::Bridged(_) | TurnState::Gone(_) => Ok(false),
        }
    }

    /// Returns the last half of a split turn, when every half of it is shown.
    fn whole_halves(&self, split: Split) -> Result<Option<TurnLoc>> {
        let mut pending = vec![split.left, split.right];
        while let Some(half) = pending.pop() {
            match self.state(half)? {
                TurnState::Live => {}
                TurnState::Split(further) => pending.extend([further.left, further.right]),
                TurnState::Bridged(_) | TurnState::Gone(_) => return Ok(None),
            }
        }
        Ok(Some(self.last_half(split.right)?))
    }

    /// Returns the raw path to a turn as runs of segments, root first.
    pub(crate) fn path_runs(&self, to: TurnLoc) -> Result<Vec<SegmentRun>> {
        let mut path_runs = Vec::new();
        let mut end = Some(to);
        while let Some(loc) = end {
            path_runs.push(SegmentRun { segment: loc.segment, from: 0, to: loc.index });
            end = self.segment(loc.segment)?.parent;
        }
        path_runs.reverse();
        Ok(path_runs)
    }

    /// Returns whether a turn lies on the raw path to another, ends included.
    pub(crate) fn raw_ancestor_or_self(&self, turn: TurnLoc, of: TurnLoc) -> Result<bool> {
        let mut end = Some(of);
        while let Some(loc) = end {
            if loc.segment == turn.segment {
                return Ok(turn.index <= loc.index);
            }
            // Segments are numbered in the order in which they were made, so an ancestor's
            // segment has a smaller number.
            if loc.segment < turn.segment {
                return Ok(false);
            }
            end = self.segment(loc.segment)?.parent;
        }
        Ok(false)
    }

    /// Returns whether a shown turn lies on the shown path to another, ends included.
    pub(crate) fn on_shown_path(&self, turn: Option<TurnLoc>, of: Option<TurnLoc>) -> Result<bool> {
        let (Some(turn), Some(of)) = (turn, of) else {
            return Ok(turn.is_none());
        };
        if self.raw_ancestor_or_self(turn, of)? {
            return Ok(true);
        }
        // A half is on the line of everything that lies below its whole.
        let mut half = turn;
        loop {
            let Some(split) = self.split_with_half(half)? else {
                return Ok(false);
            };
            if self.raw_ancestor_or_self(split.whole, of)? {
                return Ok(true);
            }
            half = split.whole;
        }
    }

    /// Returns a turn, alone or with all below it, as runs within segments.
    pub(crate) fn runs(&self, root: TurnLoc, cascade: bool) -> Result<Vec<SegmentRun>> {
        match cascade {
            true => self.subtree(root),
            false => {
                Ok(vec![SegmentRun { segment: root.segment, from: root.index, to: root.index }])
            }
        }
    }

    /// Returns a turn and everything below it, as runs within segments: raw descendants, and, for a
    /// half under which the children of its whole stand, those of the whole.
    pub(crate) fn subtree(&self, root: TurnLoc) -> Result<Vec<SegmentRun>> {
        let mut runs = vec![];
        let mut pending = vec![root];
        // The children of a whole stand below its last half; a first half has the last below it.
        let mut half = root;
        while let Some(split) = self.split_with_half(half)? {
            pending.extend(self.raw_children(Some(split.whole))?);
            half = split.whole;
        }
        while let Some(start) = pending.pop() {
            let to = self.last_index(start.segment)?;
            runs.push(SegmentRun { segment: start.segment, from: start.index, to });
            for fork in self.records.forks_from(self.conversation, start)? {
                pending.push(TurnLoc { segment: in_order(fork)?.no, index: 0 });
            }
        }
        Ok(runs)
    }

    /// Returns the turn at or above this one that is shown; `None` is the root.
    pub(crate) fn nearest_live(&self, loc: TurnLoc) -> Result<Option<TurnLoc>> {
        match self.state(loc)? {
            TurnState::Live => Ok(Some(loc)),
            TurnState::Split(_) => Ok(Some(self.last_half(loc)?)),
            TurnState::Bridged(_) | TurnState::Gone(_) => self.shown_parent(loc),
        }
    }
}

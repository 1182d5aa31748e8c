//! Prefetching within a transaction.
//!
//! The engine walks a path turn by turn and looks at the forks of each turn. Over a network every
//! look-up is a round trip. So the shape of a conversation is read completely the first time its
//! forks are requested, and a caller that reads turns one after the other, or the forks of one turn
//! one after the other, gets some in advance.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use tine_store::{
    ConversationKey, FeedPosition, Hidden, Result, Segment, SegmentNo, Split, Turn, TurnLoc,
};
use tokio_postgres::Row;

use super::{PostgresTxn, TxnAccess};
use crate::connection::{SqlCommand, values};
use crate::rows::{self, TurnRun, project_of, select};

/// The shape of a conversation with more segments is not read in advance.
const MAX_SEGMENTS: usize = 2_048;

/// The same for hidden runs and splits.
const MAX_MARKS: usize = 1_024;

/// The number of turns read in advance.
const TURNS_AHEAD: i64 = 128;

/// The number of cached turns at which the cache is cleared.
const MAX_TURNS: usize = 1_024;

/// The segments of a conversation in order, and their last indices.
struct ConversationShape {
    segments: Vec<Segment>,
    last: HashMap<SegmentNo, u32>,
}

/// The hidden runs and splits of a conversation, in order.
struct HiddenAndSplits {
    hidden: Vec<Hidden>,
    splits: Vec<Split>,
}

#[derive(Default)]
pub(super) struct Prefetch {
    /// `None` for a conversation with too many.
    hidden_and_splits: RefCell<HashMap<ConversationKey, Option<HiddenAndSplits>>>,
    /// `None` for a conversation with too many segments.
    shapes: RefCell<HashMap<ConversationKey, Option<ConversationShape>>>,
    turns: RefCell<HashMap<TurnLoc, Turn>>,
    /// The turn that was read last.
    last_read: RefCell<Option<TurnLoc>>,
    /// The conversation of the turn that was last found by id.
    last_found: Cell<Option<ConversationKey>>,
}

/// Parameters: project, conversation, limit.
pub(super) const HIDDEN: &str = select!(
    hidden,
    " FROM hidden WHERE project = $1 AND conversation = $2 \
     ORDER BY segment, first, operation LIMIT $3"
);

/// Parameters: project, conversation, limit.
pub(super) const SPLITS: &str = select!(
    split,
    " FROM split WHERE project = $1 AND conversation = $2 \
     ORDER BY whole_segment, whole_index LIMIT $3"
);

/// Parameters: project, conversation, limit.
pub(super) const SEGMENTS_WITH_ENDS: &str = select!(
    segment,
    ", (SELECT max(index) FROM turn \
     WHERE turn.project = $1 AND turn.segment = segment.no) FROM segment \
     WHERE project = $1 AND conversation = $2 ORDER BY no LIMIT $3"
);

fn conversation_query(sql: &'static str, conversation: ConversationKey, max: usize) -> SqlCommand {
    let limit = rows::sql_limit(max + 1);
    SqlCommand::new(sql, values![project_of(conversation.0), conversation.0, limit])
}

/// Decodes hidden runs and splits; `None` if there are too many.
fn decode_hidden_and_splits(hidden: &[Row], splits: &[Row]) -> Result<Option<HiddenAndSplits>> {
    if hidden.len() > MAX_MARKS || splits.len() > MAX_MARKS {
        return Ok(None);
    }
    Ok(Some(HiddenAndSplits {
        hidden: hidden.iter().map(rows::hidden).collect::<Result<_>>()?,
        splits: splits.iter().map(rows::split).collect(),
    }))
}

/// Decodes segments; `None` if there are too many.
fn decode_shape(segments: &[Row]) -> Option<ConversationShape> {
    if segments.len() > MAX_SEGMENTS {
        return None;
    }
    let last = segments.iter().filter_map(|row| {
        let last: i32 = row.get::<_, Option<i32>>(5)?;
        Some((SegmentNo(row.get(0)), rows::loc(0, last).index))
    });
    Some(ConversationShape {
        last: last.collect(),
        segments: segments.iter().map(rows::segment).collect(),
    })
}

impl Prefetch {
    /// Discards everything.
    pub(super) fn clear(&self) {
        self.hidden_and_splits.borrow_mut().clear();
        self.shapes.borrow_mut().clear();
        self.turns.borrow_mut().clear();
    }

    pub(super) fn note_segment(&self, segment: Segment) {
        if let Some(Some(shape)) = self.shapes.borrow_mut().get_mut(&segment.conversation) {
            shape.segments.push(segment);
        }
    }

    pub(super) fn note_turn(&self, conversation: ConversationKey, loc: TurnLoc) {
        if let Some(Some(shape)) = self.shapes.borrow_mut().get_mut(&conversation) {
            shape.last.insert(loc.segment, loc.index);
        }
    }

    pub(super) fn forget_turn(&self, loc: TurnLoc) {
        self.turns.borrow_mut().remove(&loc);
    }

    /// Returns turns of a segment, if all of them are cached.
    pub(super) fn turns(&self, segment: SegmentNo, from: u32, to: u32) -> Option<Vec<Turn>> {
        if to.saturating_sub(from) as usize >= MAX_TURNS {
            return None;
        }
        let turns = self.turns.borrow();
        (from..=to).map(|index| turns.get(&TurnLoc { segment, index }).cloned()).collect()
    }

    /// Returns a turn that starts a fork and those that start the next forks of the same parent, if
    /// the turn read before was a child of this parent too.
    fn next_forks(&self, before: TurnLoc, loc: TurnLoc) -> Option<Vec<TurnLoc>> {
        let shapes = self.shapes.borrow();
        let parent_of_first = |shape: &ConversationShape, at: TurnLoc| {
            let nth = shape.segments.binary_search_by_key(&at.segment, |it| it.no).ok()?;
            Some(shape.segments[nth].parent).filter(|_| at.index == 0)
        };
        let found = |shape| Some((shape, parent_of_first(shape, loc)?));
        let (shape, parent) = shapes.values().flatten().find_map(found)?;
        if parent_of_first(shape, before) != Some(parent)
            && parent.map(TurnLoc::next) != Some(before)
        {
            return None;
        }
        let next = shape.segments.iter().filter(|it| it.parent == parent && it.no >= loc.segment);
        let first = next.map(|it| TurnLoc { segment: it.no, index: 0 });
        Some(first.take(usize::try_from(TURNS_AHEAD).unwrap_or(1)).collect())
    }

    /// Returns the last index of a segment, if the shape of its conversation is cached.
    pub(super) fn last_index(&self, segment: SegmentNo) -> Option<u32> {
        let shapes = self.shapes.borrow();
        shapes.values().flatten().find_map(|shape| shape.last.get(&segment).copied())
    }
}

impl PostgresTxn<'_> {
    /// Returns the hidden runs of a conversation that match, unless there are too many to cache.
    pub(super) fn hidden_where(
        &self,
        conversation: ConversationKey,
        fits: impl Fn(&Hidden) -> bool,
    ) -> Result<Option<Vec<Hidden>>> {
        self.with_hidden_and_splits(conversation, |both| {
            both.hidden.iter().filter(|it| fits(it)).copied().collect()
        })
    }

    /// Returns the splits of a conversation, unless there are too many to cache.
    pub(super) fn cached_splits(
        &self,
        conversation: ConversationKey,
    ) -> Result<Option<Vec<Split>>> {
        self.with_hidden_and_splits(conversation, |both| both.splits.clone())
    }

    /// Reads hidden runs and splits, which the engine requests for every turn. A write transaction
    /// can change them, so it does not cache them.
    fn with_hidden_and_splits<T>(
        &self,
        conversation: ConversationKey,
        read: impl FnOnce(&HiddenAndSplits) -> T,
    ) -> Result<Option<T>> {
        if self.access == TxnAccess::Write {
            return Ok(None);
        }
        if !self.prefetch.hidden_and_splits.borrow().contains_key(&conversation) {
            let both = self.read_hidden_and_splits(conversation)?;
            self.prefetch.hidden_and_splits.borrow_mut().insert(conversation, both);
        }
        let cached = self.prefetch.hidden_and_splits.borrow();
        Ok(cached.get(&conversation).and_then(Option::as_ref).map(read))
    }

    fn read_hidden_and_splits(
        &self,
        conversation: ConversationKey,
    ) -> Result<Option<HiddenAndSplits>> {
        let queries = [HIDDEN, SPLITS].map(|sql| conversation_query(sql, conversation, MAX_MARKS));
        match &self.query_batch(queries.into())?[..] {
            [hidden, splits] => decode_hidden_and_splits(hidden, splits),
            _ => Ok(None),
        }
    }

    /// Records that a turn of the conversation was found by id.
    pub(super) fn note_found_turn(&self, conversation: ConversationKey) {
        self.prefetch.last_found.set(Some(conversation));
    }

    /// Runs a query about a conversation. After one of its turns was found by id, its shape, hidden
    /// runs and splits are needed next: they are read in the same round trip.
    pub(super) fn query_with_shape(
        &self,
        conversation: ConversationKey,
        command: SqlCommand,
    ) -> Result<Vec<Row>> {
        let was_found = self.prefetch.last_found.take() == Some(conversation);
        let is_cached = self.prefetch.hidden_and_splits.borrow().contains_key(&conversation);
        if self.access == TxnAccess::Write || is_cached || !was_found {
            return Ok(self.query_batch(vec![command])?.pop().unwrap_or_default());
        }
        let mut answers = self.query_batch(vec![
            conversation_query(HIDDEN, conversation, MAX_MARKS),
            conversation_query(SPLITS, conversation, MAX_MARKS),
            conversation_query(SEGMENTS_WITH_ENDS, conversation, MAX_SEGMENTS),
            command,
        ])?;
        let answer = answers.pop().unwrap_or_default();
        if let [hidden, splits, segments] = &answers[..] {
            self.prefetch
                .hidden_and_splits
                .borrow_mut()
                .insert(conversation, decode_hidden_and_splits(hidden, splits)?);
            self.prefetch.shapes.borrow_mut().insert(conversation, decode_shape(segments));
        }
        Ok(answer)
    }

    /// Caches a turn that another query returned.
    pub(super) fn cache_turn(&self, turn: Turn) {
        let mut turns = self.prefetch.turns.borrow_mut();
        if turns.len() >= MAX_TURNS {
            turns.clear();
        }
        turns.insert(turn.loc, turn);
    }

    /// Returns the segments of a conversation that match, unless there are too many to cache.
    pub(super) fn segments_where(
        &self,
        conversation: ConversationKey,
        fits: impl Fn(&Segment) -> bool,
    ) -> Result<Option<Vec<Segment>>> {
        if !self.prefetch.shapes.borrow().contains_key(&conversation) {
            let query = conversation_query(SEGMENTS_WITH_ENDS, conversation, MAX_SEGMENTS);
            let shape = self.query_batch(vec![query])?.first().and_then(|rows| decode_shape(rows));
            self.prefetch.shapes.borrow_mut().insert(conversation, shape);
        }
        let shapes = self.prefetch.shapes.borrow();
        let cached = shapes.get(&conversation).and_then(Option::as_ref);
        Ok(cached.map(|shape| shape.segments.iter().filter(|it| fits(it)).copied().collect()))
    }

    /// Reads the turns that an operation of the feed made, and those of some later operations.
    pub(super) fn prefetch_made_turns(&self, at: FeedPosition) -> Result<()> {
        let mut wanted: Vec<TurnLoc> = Vec::new();
        for runs in self.feed_turns.borrow().range(at..).map(|(_, runs)| runs) {
            let turns = runs.iter().map(|(_, count)| *count as usize).sum::<usize>();
            let same = |(first, _): &TurnRun| {
                wanted
                    .first()
                    .is_none_or(|it| project_of(it.segment.0) == project_of(first.segment.0))
            };
            if wanted.len() + turns > MAX_TURNS / 2 || !runs.iter().all(same) {
                break;
            }
            for (first, count) in runs {
                let each = (0..*count).map(|nth| TurnLoc { index: first.index + nth, ..*first });
                wanted.extend(each);
            }
        }
        let is_cached = |loc: &TurnLoc| self.prefetch.turns.borrow().contains_key(loc);
        let Some(first) = wanted.first().filter(|first| !is_cached(first)) else { return Ok(()) };
        let found = self.rows_at(project_of(first.segment.0), &wanted)?;
        // Large bodies are read only when they are requested.
        let small = found.iter().filter(|row| rows::shared_digest(row).is_none());
        let read = small.map(|row| rows::turn(row, None)).collect::<Result<Vec<_>>>()?;
        let mut turns = self.prefetch.turns.borrow_mut();
        turns.clear();
        turns.extend(read.into_iter().map(|turn| (turn.loc, turn)));
        Ok(())
    }

    /// Reads a turn, and some after it if the caller reads sequentially.
    pub(super) fn read_turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        const SQL: &str = select!(
            turn,
            " FROM turn WHERE project = $1 AND segment = $2 AND index >= $3 \
             ORDER BY index LIMIT $4"
        );
        let before = self.prefetch.last_read.replace(Some(loc));
        if let Some(turn) = self.prefetch.turns.borrow().get(&loc) {
            return Ok(Some(turn.clone()));
        }
        if let Some(forks) = before.and_then(|before| self.prefetch.next_forks(before, loc)) {
            for row in self.rows_at(project_of(loc.segment.0), &forks)? {
                if rows::shared_digest(&row).is_none() {
                    self.cache_turn(rows::turn(&row, None)?);
                }
            }
            if let Some(turn) = self.prefetch.turns.borrow().get(&loc) {
                return Ok(Some(turn.clone()));
            }
        }
        let is_sequential = before.is_some_and(|before| before.next() == loc);
        let (segment, index) = rows::loc_columns(Some(loc));
        let limit = if is_sequential { TURNS_AHEAD } else { 1 };
        let found = self.query(SQL, values![project_of(segment), segment, index, limit])?;
        let Some(first) = found.first().filter(|row| row.get::<_, i32>(1) == index) else {
            return Ok(None);
        };
        let turn = self.turn_of(first)?;
        let small = found[1..].iter().take_while(|row| rows::shared_digest(row).is_none());
        let more = small.map(|row| rows::turn(row, None)).collect::<Result<Vec<_>>>()?;
        let mut turns = self.prefetch.turns.borrow_mut();
        if turns.len() >= MAX_TURNS {
            turns.clear();
        }
        turns.extend(more.into_iter().map(|turn| (turn.loc, turn)));
        turns.insert(loc, turn.clone());
        Ok(Some(turn))
    }
}

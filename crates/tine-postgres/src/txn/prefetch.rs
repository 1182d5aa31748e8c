//! Records that a transaction reads before it is asked for them.
//!
//! Rules walk down a path turn by turn, and look at the forks of each. Over a network every look is
//! a round trip, so the shape of a conversation is read as a whole the first time that its forks
//! are asked for, and a caller that asks for turns one after the other, or one fork of a turn after
//! the other, gets some in advance.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use tine_store::{
    ConversationKey, FeedPosition, Hidden, Result, Segment, SegmentNo, Split, Turn, TurnLoc,
};
use tokio_postgres::Row;

use super::{Access, Txn};
use crate::link::{Command, values};
use crate::rows::{
    self, Run, hidden_columns, project_of, segment_columns, split_columns, turn_columns,
};

/// Conversations with more segments are looked at fork by fork.
const SEGMENTS: usize = 2_048;

/// Hidden runs and splits: the same.
const MARKS: usize = 1_024;

/// Turns read in advance.
const TURNS: i64 = 128;

/// Turns kept; then all are forgotten.
const KEPT: usize = 1_024;

/// The segments of a conversation, in order, and how far each goes.
struct Shape {
    segments: Vec<Segment>,
    last: HashMap<SegmentNo, u32>,
}

/// What of a conversation is not shown as it lies there, in order.
struct Marks {
    hidden: Vec<Hidden>,
    splits: Vec<Split>,
}

#[derive(Default)]
pub(super) struct Prefetch {
    /// `None` for a conversation with too many of them.
    marks: RefCell<HashMap<ConversationKey, Option<Marks>>>,
    /// `None` for a conversation with too many segments.
    shapes: RefCell<HashMap<ConversationKey, Option<Shape>>>,
    turns: RefCell<HashMap<TurnLoc, Turn>>,
    asked: RefCell<Option<TurnLoc>>,
    /// The conversation of the turn that was last looked for by its id.
    sought: Cell<Option<ConversationKey>>,
}

/// Of one conversation: project, number, and how many at most.
const HIDDEN: &str = concat!(
    "SELECT ",
    hidden_columns!(),
    " FROM hidden WHERE project = $1 AND conversation = $2 \
     ORDER BY segment, first, operation LIMIT $3"
);

/// The same.
const SPLITS: &str = concat!(
    "SELECT ",
    split_columns!(),
    " FROM split WHERE project = $1 AND conversation = $2 \
     ORDER BY whole_segment, whole_index LIMIT $3"
);

/// The same.
const SEGMENTS_WITH_ENDS: &str = concat!(
    "SELECT ",
    segment_columns!(),
    ", (SELECT max(index) FROM turn \
     WHERE turn.project = $1 AND turn.segment = segment.no) FROM segment \
     WHERE project = $1 AND conversation = $2 ORDER BY no LIMIT $3"
);

fn of(sql: &'static str, conversation: ConversationKey, most: usize) -> Command {
    let limit = rows::limited(most + 1);
    Command::new(sql, values![project_of(conversation.0), conversation.0, limit])
}

/// Nothing where there are too many.
fn marks(hidden: &[Row], splits: &[Row]) -> Result<Option<Marks>> {
    if hidden.len() > MARKS || splits.len() > MARKS {
        return Ok(None);
    }
    Ok(Some(Marks {
        hidden: hidden.iter().map(rows::hidden).collect::<Result<_>>()?,
        splits: splits.iter().map(rows::split).collect(),
    }))
}

/// Nothing where there are too many.
fn shape(segments: &[Row]) -> Option<Shape> {
    if segments.len() > SEGMENTS {
        return None;
    }
    let last = segments.iter().filter_map(|row| {
        let last: i32 = row.get::<_, Option<i32>>(5)?;
        Some((SegmentNo(row.get(0)), rows::loc(0, last).index))
    });
    Some(Shape { last: last.collect(), segments: segments.iter().map(rows::segment).collect() })
}

impl Prefetch {
    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.marks.borrow_mut().clear();
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

    /// Turns of a segment, if all of them are here.
    pub(super) fn turns(&self, segment: SegmentNo, from: u32, to: u32) -> Option<Vec<Turn>> {
        if to.saturating_sub(from) as usize >= KEPT {
            return None;
        }
        let turns = self.turns.borrow();
        (from..=to).map(|index| turns.get(&TurnLoc { segment, index }).cloned()).collect()
    }

    /// A turn that begins a fork, and those that begin the next forks of the same parent, if the
    /// one asked for before was a child of this parent, too.
    fn next_forks(&self, before: TurnLoc, loc: TurnLoc) -> Option<Vec<TurnLoc>> {
        let shapes = self.shapes.borrow();
        let begun = |shape: &Shape, at: TurnLoc| {
            let nth = shape.segments.binary_search_by_key(&at.segment, |it| it.no).ok()?;
            Some(shape.segments[nth].parent).filter(|_| at.index == 0)
        };
        let found = |shape| Some((shape, begun(shape, loc)?));
        let (shape, parent) = shapes.values().flatten().find_map(found)?;
        if begun(shape, before) != Some(parent) && parent.map(TurnLoc::next) != Some(before) {
            return None;
        }
        let next = shape.segments.iter().filter(|it| it.parent == parent && it.no >= loc.segment);
        let first = next.map(|it| TurnLoc { segment: it.no, index: 0 });
        Some(first.take(usize::try_from(TURNS).unwrap_or(1)).collect())
    }

    /// The last index of a segment, if its conversation's shape is known.
    pub(super) fn last_index(&self, segment: SegmentNo) -> Option<u32> {
        let shapes = self.shapes.borrow();
        shapes.values().flatten().find_map(|shape| shape.last.get(&segment).copied())
    }
}

impl Txn<'_> {
    /// Hidden runs of a conversation that a condition holds for, if all can be known.
    pub(super) fn hidden_where(
        &self,
        conversation: ConversationKey,
        fits: impl Fn(&Hidden) -> bool,
    ) -> Result<Option<Vec<Hidden>>> {
        self.with_marks(conversation, |marks| {
            marks.hidden.iter().filter(|it| fits(it)).copied().collect()
        })
    }

    /// The splits of a conversation, if all can be known.
    pub(super) fn known_splits(&self, conversation: ConversationKey) -> Result<Option<Vec<Split>>> {
        self.with_marks(conversation, |marks| marks.splits.clone())
    }

    /// Whoever looks at a turn asks for both, again and again. Where they can change meanwhile,
    /// nothing is kept.
    fn with_marks<T>(
        &self,
        conversation: ConversationKey,
        read: impl FnOnce(&Marks) -> T,
    ) -> Result<Option<T>> {
        if self.access == Access::Write {
            return Ok(None);
        }
        if !self.ahead.marks.borrow().contains_key(&conversation) {
            let marks = self.read_marks(conversation)?;
            self.ahead.marks.borrow_mut().insert(conversation, marks);
        }
        let marks = self.ahead.marks.borrow();
        Ok(marks.get(&conversation).and_then(Option::as_ref).map(read))
    }

    fn read_marks(&self, conversation: ConversationKey) -> Result<Option<Marks>> {
        let both = [HIDDEN, SPLITS].map(|sql| of(sql, conversation, MARKS));
        match &self.ask_all(both.into())?[..] {
            [hidden, splits] => marks(hidden, splits),
            _ => Ok(None),
        }
    }

    /// Notes that a turn of the conversation was looked for by its id.
    pub(super) fn note_sought(&self, conversation: ConversationKey) {
        self.ahead.sought.set(Some(conversation));
    }

    /// Asks something of a conversation. Who has just looked for one of its turns looks at its
    /// shape and its marks next: they come along.
    pub(super) fn ask_of_sought(
        &self,
        conversation: ConversationKey,
        command: Command,
    ) -> Result<Vec<Row>> {
        let sought = self.ahead.sought.take() == Some(conversation);
        let known = self.ahead.marks.borrow().contains_key(&conversation);
        if self.access == Access::Write || known || !sought {
            return Ok(self.ask_all(vec![command])?.pop().unwrap_or_default());
        }
        let mut answers = self.ask_all(vec![
            of(HIDDEN, conversation, MARKS),
            of(SPLITS, conversation, MARKS),
            of(SEGMENTS_WITH_ENDS, conversation, SEGMENTS),
            command,
        ])?;
        let answer = answers.pop().unwrap_or_default();
        if let [hidden, splits, segments] = &answers[..] {
            self.ahead.marks.borrow_mut().insert(conversation, marks(hidden, splits)?);
            self.ahead.shapes.borrow_mut().insert(conversation, shape(segments));
        }
        Ok(answer)
    }

    /// Keeps a turn that was read by the way.
    pub(super) fn keep_turn(&self, turn: Turn) {
        let mut turns = self.ahead.turns.borrow_mut();
        if turns.len() >= KEPT {
            turns.clear();
        }
        turns.insert(turn.loc, turn);
    }

    /// Segments of a conversation that a condition holds for, if its shape can be known.
    pub(super) fn segments_where(
        &self,
        conversation: ConversationKey,
        fits: impl Fn(&Segment) -> bool,
    ) -> Result<Option<Vec<Segment>>> {
        if !self.ahead.shapes.borrow().contains_key(&conversation) {
            let shape = self.read_shape(conversation)?;
            self.ahead.shapes.borrow_mut().insert(conversation, shape);
        }
        let shapes = self.ahead.shapes.borrow();
        let known = shapes.get(&conversation).and_then(Option::as_ref);
        Ok(known.map(|shape| shape.segments.iter().filter(|it| fits(it)).copied().collect()))
    }

    fn read_shape(&self, conversation: ConversationKey) -> Result<Option<Shape>> {
        let found = self.ask_all(vec![of(SEGMENTS_WITH_ENDS, conversation, SEGMENTS)])?;
        Ok(found.first().and_then(|segments| shape(segments)))
    }

    /// Reads the turns that an operation of the feed made, with those of some behind it.
    pub(super) fn read_ahead_of(&self, at: FeedPosition) -> Result<()> {
        let mut wanted: Vec<TurnLoc> = Vec::new();
        for runs in self.made.borrow().range(at..).map(|(_, runs)| runs) {
            let turns = runs.iter().map(|(_, count)| *count as usize).sum::<usize>();
            let same = |(first, _): &Run| {
                wanted
                    .first()
                    .is_none_or(|it| project_of(it.segment.0) == project_of(first.segment.0))
            };
            if wanted.len() + turns > KEPT / 2 || !runs.iter().all(same) {
                break;
            }
            for (first, count) in runs {
                let each = (0..*count).map(|nth| TurnLoc { index: first.index + nth, ..*first });
                wanted.extend(each);
            }
        }
        let known = |loc: &TurnLoc| self.ahead.turns.borrow().contains_key(loc);
        let Some(first) = wanted.first().filter(|first| !known(first)) else { return Ok(()) };
        let found = self.rows_at(project_of(first.segment.0), &wanted)?;
        // Large bodies are read when they are asked for.
        let small = found.iter().filter(|row| rows::shared_digest(row).is_none());
        let read = small.map(|row| rows::turn(row, None)).collect::<Result<Vec<_>>>()?;
        let mut turns = self.ahead.turns.borrow_mut();
        turns.clear();
        turns.extend(read.into_iter().map(|turn| (turn.loc, turn)));
        Ok(())
    }

    /// One turn, and some behind it for whoever reads on.
    pub(super) fn turn_ahead(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        const SQL: &str = concat!(
            "SELECT ",
            turn_columns!(),
            " FROM turn WHERE project = $1 AND segment = $2 AND index >= $3 \
             ORDER BY index LIMIT $4"
        );
        let before = self.ahead.asked.replace(Some(loc));
        if let Some(turn) = self.ahead.turns.borrow().get(&loc) {
            return Ok(Some(turn.clone()));
        }
        if let Some(forks) = before.and_then(|before| self.ahead.next_forks(before, loc)) {
            for row in self.rows_at(project_of(loc.segment.0), &forks)? {
                if rows::shared_digest(&row).is_none() {
                    self.keep_turn(rows::turn(&row, None)?);
                }
            }
            if let Some(turn) = self.ahead.turns.borrow().get(&loc) {
                return Ok(Some(turn.clone()));
            }
        }
        let goes_on = before.is_some_and(|before| before.next() == loc);
        let (segment, index) = rows::place(Some(loc));
        let limit = if goes_on { TURNS } else { 1 };
        let found = self.ask(SQL, values![project_of(segment), segment, index, limit])?;
        let Some(first) = found.first().filter(|row| row.get::<_, i32>(1) == index) else {
            return Ok(None);
        };
        let turn = self.turn_of(first)?;
        let small = found[1..].iter().take_while(|row| rows::shared_digest(row).is_none());
        let more = small.map(|row| rows::turn(row, None)).collect::<Result<Vec<_>>>()?;
        let mut turns = self.ahead.turns.borrow_mut();
        if turns.len() >= KEPT {
            turns.clear();
        }
        turns.extend(more.into_iter().map(|turn| (turn.loc, turn)));
        turns.insert(loc, turn.clone());
        Ok(Some(turn))
    }
}

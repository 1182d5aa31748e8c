//! Conversations that were lately appended to, as far as a plain append looks at them.
//!
//! A cached conversation holds as long as its log ends with the same operation: an append that
//! relies on it adds the next one, and if that number is taken, the cached records are dropped. So
//! no server has to notify another.
//!
//! Writers of one conversation within this process take turns: each gets what the one before left.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tine_core::{Body, ConversationId, Name, OperationHash, ProjectId};
use tine_store::{
    Branch, Content, Conversation, ConversationKey, Hidden, Operation, Result, Segment, SegmentNo,
    Split, Turn, TurnLoc,
};

use crate::failure::Failure;
use crate::link::{Command, Link, values};
use crate::rows::{
    self, branch_columns, conversation_columns, hidden_columns, segment_columns, split_columns,
    turn_columns,
};
use crate::{WRITE_DEADLINE, lock};

/// Conversations in the cache at most.
const CONVERSATIONS: usize = 20_000;

/// How long a writer waits for another one of the same conversation.
const WAIT: Duration = Duration::from_secs(5);

/// Larger bodies are not kept in memory.
const BODY_BYTES: usize = 64 << 10;

/// Branches, segments, hidden runs and splits: a conversation with more of one of them is read
/// each time.
const RECORDS: usize = 2_048;

/// A conversation, as far as a plain append looks at it.
pub(crate) struct CachedConversation {
    pub conversation: Conversation,
    pub end: Option<(u64, OperationHash)>,
    /// All of them.
    pub branches: BTreeMap<Name, Branch>,
    /// All of them.
    pub segments: BTreeMap<SegmentNo, Segment>,
    /// All of them.
    pub hidden: Vec<Hidden>,
    /// All of them.
    pub splits: Vec<Split>,
    /// The last index of segments in which a branch ends.
    pub last: HashMap<SegmentNo, u32>,
    /// Turns on which a branch ends, unless they are large.
    pub tips: HashMap<TurnLoc, Turn>,
}

/// What an append adds.
#[derive(Default)]
pub(crate) struct Added {
    pub segments: Vec<Segment>,
    pub turns: Vec<Turn>,
    pub branches: Vec<Branch>,
    pub operation: Option<Operation>,
}

macro_rules! of_conversation {
    ($before:expr, $behind:expr) => {
        concat!(
            $before,
            " WHERE project = $1 AND conversation = \
              (SELECT no FROM conversation WHERE project = $1 AND id = $2) ",
            $behind
        )
    };
}

const READ: [&str; 9] = [
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    concat!(
        "SELECT ",
        conversation_columns!(),
        " FROM conversation WHERE project = $1 AND id = $2"
    ),
    of_conversation!("SELECT seq, hash FROM operation", "ORDER BY seq DESC LIMIT 1"),
    of_conversation!(concat!("SELECT ", branch_columns!(), " FROM branch"), "LIMIT $3"),
    of_conversation!(concat!("SELECT ", segment_columns!(), " FROM segment"), "LIMIT $3"),
    of_conversation!(
        concat!("SELECT ", hidden_columns!(), " FROM hidden"),
        "ORDER BY segment, first, operation LIMIT $3"
    ),
    of_conversation!(
        concat!("SELECT ", split_columns!(), " FROM split"),
        "ORDER BY whole_segment, whole_index LIMIT $3"
    ),
    concat!(
        "SELECT ",
        turn_columns!(),
        ", body.body, (SELECT max(index) FROM turn AS other \
         WHERE other.project = $1 AND other.segment = turn.segment) \
         FROM branch \
         JOIN turn ON turn.project = $1 AND turn.segment = branch.tip_segment \
             AND turn.index = branch.tip_index \
         LEFT JOIN body ON body.project = $1 AND body.digest = turn.shared \
             AND octet_length(body.body) <= $4 \
         WHERE branch.project = $1 AND branch.conversation = \
              (SELECT no FROM conversation WHERE project = $1 AND id = $2) LIMIT $3"
    ),
    "COMMIT",
];

impl CachedConversation {
    /// Reads it, in one round trip. Nothing for a conversation that is not there or has too many
    /// of something.
    fn read(
        link: &mut Link,
        project: i32,
        project_id: &ProjectId,
        id: &ConversationId,
    ) -> std::result::Result<Option<CachedConversation>, Failure> {
        let id = id.as_str().to_owned();
        let limit = rows::limited(RECORDS + 1);
        let large = i32::try_from(BODY_BYTES).unwrap_or(i32::MAX);
        let commands = READ.map(|sql| {
            let values = match sql {
                _ if sql.contains("$4") => values![project, id.clone(), limit, large],
                _ if sql.contains("$3") => values![project, id.clone(), limit],
                _ if sql.contains("$2") => values![project, id.clone()],
                _ => vec![],
            };
            Command::new(sql, values)
        });
        let answers = link.exchange_all(WRITE_DEADLINE, &commands)?;
        let [_, conversation, end, branches, segments, hidden, splits, tips, _] = &answers[..]
        else {
            return Ok(None);
        };
        let many = [branches, segments, hidden, splits, tips].iter().any(|it| it.len() > RECORDS);
        let Some(conversation) = conversation.first().filter(|_| !many) else { return Ok(None) };
        let read = || -> Result<CachedConversation> {
            let branches = branches.iter().map(rows::branch).collect::<Result<Vec<_>>>()?;
            let mut known = CachedConversation {
                conversation: rows::conversation(conversation, project_id)?,
                end: match end.first() {
                    None => None,
                    Some(end) => {
                        Some((rows::unsigned(end.get(0)), rows::operation_hash(end.get(1))?))
                    }
                },
                branches: branches.into_iter().map(|it| (it.name.clone(), it)).collect(),
                segments: segments.iter().map(rows::segment).map(|it| (it.no, it)).collect(),
                hidden: hidden.iter().map(rows::hidden).collect::<Result<_>>()?,
                splits: splits.iter().map(rows::split).collect(),
                last: HashMap::new(),
                tips: HashMap::new(),
            };
            for row in tips {
                let shared: Option<Vec<u8>> = row.get(14);
                let last = rows::loc(0, row.get(15)).index;
                known.last.insert(SegmentNo(row.get(0)), last);
                if rows::shared_digest(row).is_some() == shared.is_some() {
                    let turn = rows::turn(row, shared)?;
                    known.tips.insert(turn.loc, turn);
                }
            }
            Ok(known)
        };
        // What is damaged is told by whoever reads it in earnest.
        Ok(read().ok())
    }

    /// After an append was committed.
    pub(crate) fn add(&mut self, added: Added) {
        for segment in added.segments {
            self.segments.insert(segment.no, segment);
        }
        for branch in added.branches {
            let before = self.branches.insert(branch.name.clone(), branch);
            if let Some(left) = before.and_then(|before| before.tip)
                && !self.branches.values().any(|branch| branch.tip == Some(left))
            {
                self.tips.remove(&left);
            }
        }
        for turn in added.turns {
            self.last.insert(turn.loc.segment, turn.loc.index);
            let tip = self.branches.values().any(|branch| branch.tip == Some(turn.loc));
            if tip && content_bytes(&turn) <= BODY_BYTES {
                self.tips.insert(turn.loc, turn);
            }
        }
        if let Some(operation) = added.operation {
            self.end = Some((operation.seq, operation.hash));
        }
    }
}

/// How large a turn's body is.
pub(crate) fn content_bytes(turn: &Turn) -> usize {
    match &turn.content {
        Content::Kept(Body::Text(text) | Body::Blocks(text)) => text.len(),
        Content::Purged(_) => 0,
    }
}

/// A conversation by its project's number and its id.
type ById = (i32, ConversationId);

#[derive(Default)]
pub(crate) struct ConversationCache {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_id: HashMap<ById, Arc<Slot>>,
    ids: HashMap<ConversationKey, ById>,
}

/// The place of one conversation.
#[derive(Default)]
struct Slot {
    state: Mutex<SlotState>,
    left: Condvar,
}

#[derive(Default)]
struct SlotState {
    taken: bool,
    known: Option<CachedConversation>,
    /// Counts the times that it was to be forgotten.
    forgotten: u64,
}

impl ConversationCache {
    /// Takes a conversation out, waiting for the writer that has it.
    pub(crate) fn take(&self, project: i32, id: &ConversationId) -> Option<Seat> {
        let slot = {
            let mut slots = lock(&self.slots);
            if slots.by_id.len() >= CONVERSATIONS {
                *slots = Slots::default();
            }
            Arc::clone(slots.by_id.entry((project, id.clone())).or_default())
        };
        let began = Instant::now();
        let mut state = lock(&slot.state);
        while state.taken {
            let left = WAIT.checked_sub(began.elapsed())?;
            state = match slot.left.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.taken = true;
        let (known, forgotten) = (state.known.take(), state.forgotten);
        drop(state);
        Some(Seat { slot, known, forgotten, name: (project, id.clone()) })
    }

    /// Forgets a conversation that was changed in another way.
    pub(crate) fn forget(&self, key: ConversationKey) {
        let slots = lock(&self.slots);
        if let Some(slot) = slots.ids.get(&key).and_then(|name| slots.by_id.get(name)) {
            let mut state = lock(&slot.state);
            state.known = None;
            state.forgotten += 1;
        }
    }

    /// Puts a conversation back after an append.
    pub(crate) fn keep(&self, mut seat: Seat, known: CachedConversation) {
        let key = known.conversation.key;
        lock(&self.slots).ids.insert(key, seat.name.clone());
        seat.known = Some(known);
    }
}

/// The right to append to a conversation over its cached records.
pub(crate) struct Seat {
    slot: Arc<Slot>,
    known: Option<CachedConversation>,
    forgotten: u64,
    name: ById,
}

impl Seat {
    /// Returns the cached conversation, read now if there is none.
    pub(crate) fn take_cached(
        &mut self,
        project_id: &ProjectId,
        link: impl FnOnce(
            &mut dyn FnMut(&mut Link) -> std::result::Result<(), Failure>,
        ) -> std::result::Result<(), Failure>,
    ) -> std::result::Result<Option<CachedConversation>, Failure> {
        if let Some(known) = self.known.take() {
            return Ok(Some(known));
        }
        let mut found = None;
        link(&mut |link| {
            found = CachedConversation::read(link, self.name.0, project_id, &self.name.1)?;
            Ok(())
        })?;
        Ok(found)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = lock(&self.slot.state);
        state.taken = false;
        if state.forgotten == self.forgotten {
            state.known = self.known.take();
        }
        self.slot.left.notify_one();
    }
}

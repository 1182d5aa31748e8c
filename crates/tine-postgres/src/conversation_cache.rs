//! A cache of conversations that were recently appended to, as far as a plain append reads them.
//!
//! A cached conversation is valid as long as its log ends with the same operation: an append that
//! relies on it adds the next one, and if that number is taken, the cached records are dropped. So
//! no server has to notify another.
//!
//! Writers of one conversation within this process take turns: each gets the records that the one
//! before it left.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tine_core::{Body, ConversationId, Name, OperationHash, ProjectId};
use tine_store::{
    Branch, Content, Conversation, ConversationKey, Hidden, Operation, Result, Segment, SegmentNo,
    Split, Turn, TurnLoc,
};

use crate::connection::{PgConnection, SqlCommand, values};
use crate::failure::DatabaseResult;
use crate::rows::{self, select};
use crate::{WRITE_DEADLINE, lock};

/// The maximum number of cached conversations.
const MAX_CONVERSATIONS: usize = 20_000;

/// How long a writer waits for another one of the same conversation.
const LEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Larger bodies are not cached.
const MAX_BODY_BYTES: usize = 64 << 10;

/// The maximum number of branches, segments, hidden runs or splits: a conversation with more is not
/// cached.
const MAX_RECORDS: usize = 2_048;

/// A conversation, as far as a plain append reads it. It has all branches, segments, hidden runs and
/// splits.
pub(crate) struct CachedConversation {
    pub conversation: Conversation,
    pub end: Option<(u64, OperationHash)>,
    pub branches: BTreeMap<Name, Branch>,
    pub segments: BTreeMap<SegmentNo, Segment>,
    pub hidden: Vec<Hidden>,
    pub splits: Vec<Split>,
    /// The last index of segments in which a branch ends.
    pub last_indices: HashMap<SegmentNo, u32>,
    /// Turns at which a branch ends, unless they are large.
    pub tips: HashMap<TurnLoc, Turn>,
}

#[derive(Default)]
pub(crate) struct PendingAppend {
    pub segments: Vec<Segment>,
    pub turns: Vec<Turn>,
    pub branches: Vec<Branch>,
    pub operation: Option<Operation>,
}

macro_rules! of_conversation {
    ($before:expr, $after:expr) => {
        concat!(
            $before,
            " WHERE project = $1 AND conversation = \
              (SELECT no FROM conversation WHERE project = $1 AND id = $2) ",
            $after
        )
    };
}

const READ: [&str; 9] = [
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    select!(conversation, " FROM conversation WHERE project = $1 AND id = $2"),
    of_conversation!("SELECT seq, hash FROM operation", "ORDER BY seq DESC LIMIT 1"),
    of_conversation!(select!(branch, " FROM branch"), "LIMIT $3"),
    of_conversation!(select!(segment, " FROM segment"), "LIMIT $3"),
    of_conversation!(
        select!(hidden, " FROM hidden"),
        "ORDER BY segment, first, operation LIMIT $3"
    ),
    of_conversation!(select!(split, " FROM split"), "ORDER BY whole_segment, whole_index LIMIT $3"),
    select!(
        turn,
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
    /// Reads a conversation in one round trip; `None` if it does not exist or is too large.
    fn read(
        connection: &mut PgConnection,
        project: i32,
        project_id: &ProjectId,
        id: &ConversationId,
    ) -> DatabaseResult<Option<CachedConversation>> {
        let id = id.as_str().to_owned();
        let limit = rows::sql_limit(MAX_RECORDS + 1);
        let large = i32::try_from(MAX_BODY_BYTES).unwrap_or(i32::MAX);
        let commands = READ.map(|sql| {
            let values = match sql {
                _ if sql.contains("$4") => values![project, id.clone(), limit, large],
                _ if sql.contains("$3") => values![project, id.clone(), limit],
                _ if sql.contains("$2") => values![project, id.clone()],
                _ => vec![],
            };
            SqlCommand::new(sql, values)
        });
        let answers = connection.exchange_all(WRITE_DEADLINE, &commands)?;
        let [_, conversation, end, branches, segments, hidden, splits, tips, _] = &answers[..]
        else {
            return Ok(None);
        };
        let too_large =
            [branches, segments, hidden, splits, tips].iter().any(|it| it.len() > MAX_RECORDS);
        let Some(conversation) = conversation.first().filter(|_| !too_large) else {
            return Ok(None);
        };
        let read = || -> Result<CachedConversation> {
            let branches = branches.iter().map(rows::branch).collect::<Result<Vec<_>>>()?;
            let mut cached = CachedConversation {
                conversation: rows::conversation(conversation, project_id)?,
                end: match end.first() {
                    None => None,
                    Some(end) => {
                        Some((rows::to_u64(end.get(0)), rows::operation_hash(end.get(1))?))
                    }
                },
                branches: branches.into_iter().map(|it| (it.name.clone(), it)).collect(),
                segments: segments.iter().map(rows::segment).map(|it| (it.no, it)).collect(),
                hidden: hidden.iter().map(rows::hidden).collect::<Result<_>>()?,
                splits: splits.iter().map(rows::split).collect(),
                last_indices: HashMap::new(),
                tips: HashMap::new(),
            };
            for row in tips {
                let shared: Option<Vec<u8>> = row.get(14);
                let last = rows::loc(0, row.get(15)).index;
                cached.last_indices.insert(SegmentNo(row.get(0)), last);
                if rows::shared_digest(row).is_some() == shared.is_some() {
                    let turn = rows::turn(row, shared)?;
                    cached.tips.insert(turn.loc, turn);
                }
            }
            Ok(cached)
        };
        // Damage is reported by the transaction that reads the records next.
        Ok(read().ok())
    }

    /// Applies an append that was committed.
    pub(crate) fn apply(&mut self, append: PendingAppend) {
        for segment in append.segments {
            self.segments.insert(segment.no, segment);
        }
        for branch in append.branches {
            let before = self.branches.insert(branch.name.clone(), branch);
            if let Some(left) = before.and_then(|before| before.tip)
                && !self.branches.values().any(|branch| branch.tip == Some(left))
            {
                self.tips.remove(&left);
            }
        }
        for turn in append.turns {
            self.last_indices.insert(turn.loc.segment, turn.loc.index);
            let tip = self.branches.values().any(|branch| branch.tip == Some(turn.loc));
            if tip && content_bytes(&turn) <= MAX_BODY_BYTES {
                self.tips.insert(turn.loc, turn);
            }
        }
        if let Some(operation) = append.operation {
            self.end = Some((operation.seq, operation.hash));
        }
    }
}

/// Returns the size of a turn's body.
pub(crate) fn content_bytes(turn: &Turn) -> usize {
    match &turn.content {
        Content::Kept(Body::Text(text) | Body::Blocks(text)) => text.len(),
        Content::Purged(_) => 0,
    }
}

/// A conversation by its project's number and its id.
type ConversationName = (i32, ConversationId);

#[derive(Default)]
pub(crate) struct ConversationCache {
    slots: Mutex<CacheSlots>,
}

#[derive(Default)]
struct CacheSlots {
    by_id: HashMap<ConversationName, Arc<CacheSlot>>,
    ids: HashMap<ConversationKey, ConversationName>,
}

#[derive(Default)]
struct CacheSlot {
    state: Mutex<CacheSlotState>,
    released: Condvar,
}

#[derive(Default)]
struct CacheSlotState {
    leased: bool,
    cached: Option<CachedConversation>,
    /// Counts invalidations.
    invalidations: u64,
}

impl ConversationCache {
    /// Leases a conversation, waiting for another writer of it.
    pub(crate) fn lease(&self, project: i32, id: &ConversationId) -> Option<ConversationLease> {
        let slot = {
            let mut slots = lock(&self.slots);
            if slots.by_id.len() >= MAX_CONVERSATIONS {
                *slots = CacheSlots::default();
            }
            Arc::clone(slots.by_id.entry((project, id.clone())).or_default())
        };
        let started = Instant::now();
        let mut state = lock(&slot.state);
        while state.leased {
            let left = LEASE_TIMEOUT.checked_sub(started.elapsed())?;
            state = match slot.released.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.leased = true;
        let (cached, invalidations) = (state.cached.take(), state.invalidations);
        drop(state);
        Some(ConversationLease { slot, cached, invalidations, name: (project, id.clone()) })
    }

    /// Drops a conversation that a transaction changed.
    pub(crate) fn invalidate(&self, key: ConversationKey) {
        let slots = lock(&self.slots);
        if let Some(slot) = slots.ids.get(&key).and_then(|name| slots.by_id.get(name)) {
            let mut state = lock(&slot.state);
            state.cached = None;
            state.invalidations += 1;
        }
    }

    pub(crate) fn put_back(&self, mut lease: ConversationLease, cached: CachedConversation) {
        let key = cached.conversation.key;
        lock(&self.slots).ids.insert(key, lease.name.clone());
        lease.cached = Some(cached);
    }
}

/// The exclusive right to append to a cached conversation. Dropping it releases the slot.
pub(crate) struct ConversationLease {
    slot: Arc<CacheSlot>,
    cached: Option<CachedConversation>,
    invalidations: u64,
    name: ConversationName,
}

impl ConversationLease {
    /// Takes the cached conversation, or reads it over a connection that `with_connection` provides.
    pub(crate) fn take_cached(
        &mut self,
        project_id: &ProjectId,
        with_connection: impl FnOnce(
            &mut dyn FnMut(&mut PgConnection) -> DatabaseResult<()>,
        ) -> DatabaseResult<()>,
    ) -> DatabaseResult<Option<CachedConversation>> {
        if let Some(cached) = self.cached.take() {
            return Ok(Some(cached));
        }
        let mut found = None;
        with_connection(&mut |connection| {
            found = CachedConversation::read(connection, self.name.0, project_id, &self.name.1)?;
            Ok(())
        })?;
        Ok(found)
    }
}

impl Drop for ConversationLease {
    fn drop(&mut self) {
        let mut state = lock(&self.slot.state);
        state.leased = false;
        if state.invalidations == self.invalidations {
            state.cached = self.cached.take();
        }
        self.slot.released.notify_one();
    }
}

//! Conversion between records and columns.

use tine_core::json::{self, Json};
use tine_core::{
    Body, BranchId, ConversationId, Digest, Limits, Metadata, Name, OperationHash, ProjectId, Role,
    RootHash, Status, Timestamp, TurnHash, TurnId,
};
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, DerivedFrom, Detail, Hidden,
    HiddenBy, Idempotency, Operation, RecordKey, Result, Root, Segment, SegmentNo, Split,
    StoreError, Turn, TurnLoc, TurnOrigin, Visibility,
};
use tokio_postgres::Row;

/// Bodies of this size and more are stored once for all turns that hold them.
pub(crate) const SHARED_BODY_BYTES: usize = 8192;

/// The number of bits of a handle below the project.
const PROJECT_SHIFT: u32 = 39;

/// The number of bits of a number within its block.
const BLOCK_SHIFT: u32 = 8;

/// The largest number of a project.
pub(crate) const LAST_PROJECT: i32 = (1 << 24) - 1;

/// Returns the first number of a block: the handle of a conversation and of its first segment.
pub(crate) fn block(project: i32, nth: i64) -> i64 {
    i64::from(project) << PROJECT_SHIFT | nth << BLOCK_SHIFT
}

/// Returns whether a number is the first of a block.
pub(crate) fn starts_block(number: i64) -> bool {
    number & ((1 << BLOCK_SHIFT) - 1) == 0
}

pub(crate) fn project_of(handle: i64) -> i32 {
    i32::try_from(handle >> PROJECT_SHIFT).unwrap_or(0)
}

pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(crate) fn to_i32(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn to_u32(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

pub(crate) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(crate) fn damaged(record: impl Into<String>, why: &str) -> StoreError {
    StoreError::Corrupt { record: record.into(), why: why.to_owned() }
}

/// Returns the two columns of a turn's location; (0, 0) is the root.
pub(crate) fn loc_columns(at: Option<TurnLoc>) -> (i64, i32) {
    at.map_or((0, 0), |loc| (loc.segment.0, to_i32(loc.index)))
}

pub(crate) fn loc(segment: i64, index: i32) -> TurnLoc {
    TurnLoc { segment: SegmentNo(segment), index: to_u32(index) }
}

fn root_or_loc(segment: i64, index: i32) -> Option<TurnLoc> {
    (segment != 0).then(|| loc(segment, index))
}

fn decode_text(bytes: Vec<u8>, record: impl FnOnce() -> String) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| damaged(record(), "it holds what is no text"))
}

fn digest(bytes: &[u8], record: impl FnOnce() -> String) -> Result<Digest> {
    let bytes = bytes.try_into().map_err(|_| damaged(record(), "a digest has a wrong length"))?;
    Ok(Digest(bytes))
}

fn id(bytes: &[u8], record: impl FnOnce() -> String) -> Result<[u8; 16]> {
    bytes.try_into().map_err(|_| damaged(record(), "an id has a wrong length"))
}

fn optional_id(bytes: Option<&[u8]>, record: impl FnOnce() -> String) -> Result<Option<[u8; 16]>> {
    bytes.map(|bytes| id(bytes, record)).transpose()
}

/// The kind of a turn's body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Text,
    Blocks,
    Purged,
}

fn role_code(role: Role) -> i16 {
    match role {
        Role::User => 0,
        Role::Assistant => 1,
        Role::Tool => 2,
        Role::System => 3,
    }
}

pub(crate) fn encode_form(role: Role, body: BodyKind, status: Status) -> i16 {
    role_code(role) | (body as i16) << 2 | i16::from(status == Status::Partial) << 4
}

/// The bits of `form` that hold the body kind.
pub(crate) const BODY_KIND_MASK: i16 = 3 << 2;

/// The value of those bits for a purged turn.
pub(crate) const PURGED_BITS: i16 = (BodyKind::Purged as i16) << 2;

fn decode_form(form: i16) -> Option<(Role, BodyKind, Status)> {
    let role =
        [Role::User, Role::Assistant, Role::Tool, Role::System][usize::try_from(form & 3).ok()?];
    let body = match form >> 2 & 3 {
        0 => BodyKind::Text,
        1 => BodyKind::Blocks,
        2 => BodyKind::Purged,
        _ => return None,
    };
    let status = if form >> 4 & 1 == 1 { Status::Partial } else { Status::Complete };
    Some((role, body, status))
}

pub(crate) fn encode_metadata(metadata: &Metadata) -> Option<Vec<u8>> {
    (*metadata != Metadata::default()).then(|| metadata.to_json().to_canonical().into_bytes())
}

fn stored_json(bytes: &[u8], record: impl FnOnce() -> String) -> Result<Json> {
    json::parse(bytes, Limits::STORED.json_depth)
        .map_err(|_| damaged(record(), "its JSON cannot be read"))
}

/// Builds a query for the columns that [`turn`], [`branch`] and the other decoders below read, in
/// their order; what follows them in the query is given.
macro_rules! select {
    (@ $columns:literal $($rest:expr),+) => {
        concat!("SELECT ", $columns, $($rest),+)
    };
    (turn, $($rest:expr),+) => {
        select!(@
            "turn.segment, turn.index, turn.id, turn.hash, turn.operation, turn.depth, \
             turn.created_at, turn.form, turn.body, turn.shared, turn.tool_call_id, \
             turn.metadata, turn.origin, turn.conversation"
            $($rest),+)
    };
    (conversation, $($rest:expr),+) => {
        select!(@
            "no, id, root_hash, system_prompt, config, title, metadata, created_at, \
             derived_from, derived_turn, visibility"
            $($rest),+)
    };
    (segment, $($rest:expr),+) => {
        select!(@
            "no, conversation, parent_segment, parent_index, base_depth"
            $($rest),+)
    };
    (split, $($rest:expr),+) => {
        select!(@
            "conversation, whole_segment, whole_index, left_segment, left_index, right_segment, \
             right_index, operation"
            $($rest),+)
    };
    (hidden, $($rest:expr),+) => {
        select!(@
            "conversation, segment, first, last, operation, hidden_by, root_segment, root_index"
            $($rest),+)
    };
    (branch, $($rest:expr),+) => {
        select!(@
            "branch.conversation, branch.id, branch.name, branch.tip_segment, branch.tip_index, \
             branch.forked_from, branch.created_at, branch.version"
            $($rest),+)
    };
    (bookmark, $($rest:expr),+) => {
        select!(@
            "name, conversation, segment, index, created_at"
            $($rest),+)
    };
    (operation, $($rest:expr),+) => {
        select!(@
            "operation.conversation, operation.seq, operation.kind, operation.actor, \
             operation.at, operation.detail, operation.purged, operation.hash, operation.undone, \
             operation.key, operation.fingerprint, operation.answer"
            $($rest),+)
    };
}
pub(crate) use select;

pub(crate) fn turn_conversation(row: &Row) -> ConversationKey {
    ConversationKey(row.get(13))
}

/// Returns the digest of a turn's body if it is stored as a shared body.
pub(crate) fn shared_digest(row: &Row) -> Option<Vec<u8>> {
    row.get(9)
}

/// Decodes a turn from its columns and its shared body, if it has one.
pub(crate) fn turn(row: &Row, shared: Option<Vec<u8>>) -> Result<Turn> {
    let loc = loc(row.get(0), row.get(1));
    let record = || format!("turn {} of segment {}", loc.index, loc.segment.0);
    let (role, body, status) =
        decode_form(row.get(7)).ok_or_else(|| damaged(record(), "unknown form"))?;
    let bytes: Option<Vec<u8>> = shared.or_else(|| row.get(8));
    let bytes = bytes.ok_or_else(|| damaged(record(), "its content is missing"))?;
    let content = match body {
        BodyKind::Text => Content::Kept(Body::Text(decode_text(bytes, record)?)),
        BodyKind::Blocks => Content::Kept(Body::Blocks(decode_text(bytes, record)?)),
        BodyKind::Purged => Content::Purged(digest(&bytes, record)?),
    };
    let tool_call_id = row.get::<_, Option<Vec<u8>>>(10);
    let tool_call_id = tool_call_id.map(|bytes| decode_text(bytes, record)).transpose()?;
    let metadata = match row.get::<_, Option<&[u8]>>(11) {
        None => Metadata::default(),
        Some(bytes) => Metadata::from_json(&stored_json(bytes, record)?, &Limits::STORED)
            .map_err(|_| damaged(record(), "its metadata cannot be read"))?,
    };
    let origin = match row.get::<_, Option<&[u8]>>(12) {
        None => TurnOrigin::default(),
        Some(bytes) => TurnOrigin::from_bytes(bytes, role, tool_call_id.as_deref())
            .ok_or_else(|| damaged(record(), "its origin cannot be read"))?,
    };
    Ok(Turn {
        loc,
        id: TurnId::from_bytes(id(row.get(2), record)?),
        hash: TurnHash(digest(row.get(3), record)?),
        depth: to_u32(row.get(5)),
        role,
        content,
        tool_call_id,
        created_at: Timestamp::from_millis(row.get(6)),
        status,
        metadata,
        operation: to_u64(row.get(4)),
        origin,
    })
}

pub(crate) fn conversation(row: &Row, project: &ProjectId) -> Result<Conversation> {
    let no: i64 = row.get(0);
    let record = || format!("conversation {no}");
    let optional_text = |column: usize| {
        let bytes: Option<Vec<u8>> = row.get(column);
        bytes.map(|bytes| decode_text(bytes, record)).transpose()
    };
    let root = match row.get::<_, Option<&[u8]>>(4) {
        None => None,
        Some(config) => {
            Some(Root { system_prompt: optional_text(3)?, config: stored_json(config, record)? })
        }
    };
    let derived_from = match row.get::<_, Option<String>>(8) {
        None => None,
        Some(conversation) => Some(DerivedFrom {
            conversation: ConversationId::from_stored(conversation),
            turn: optional_id(row.get(9), record)?.map(TurnId::from_bytes),
        }),
    };
    Ok(Conversation {
        key: ConversationKey(no),
        project: project.clone(),
        id: ConversationId::from_stored(row.get::<_, String>(1)),
        root_hash: RootHash(digest(row.get(2), record)?),
        root,
        title: optional_text(5)?,
        metadata: stored_json(row.get(6), record)?,
        created_at: Timestamp::from_millis(row.get(7)),
        derived_from,
        visibility: Visibility::from_code(row.get::<_, i16>(10).into())
            .ok_or_else(|| damaged(record(), "unknown visibility"))?,
    })
}

pub(crate) fn segment(row: &Row) -> Segment {
    Segment {
        no: SegmentNo(row.get(0)),
        conversation: ConversationKey(row.get(1)),
        parent: root_or_loc(row.get(2), row.get(3)),
        base_depth: to_u32(row.get(4)),
    }
}

pub(crate) fn split(row: &Row) -> Split {
    Split {
        conversation: ConversationKey(row.get(0)),
        whole: loc(row.get(1), row.get(2)),
        left: loc(row.get(3), row.get(4)),
        right: loc(row.get(5), row.get(6)),
        operation: to_u64(row.get(7)),
    }
}

pub(crate) fn hidden(row: &Row) -> Result<Hidden> {
    Ok(Hidden {
        conversation: ConversationKey(row.get(0)),
        segment: SegmentNo(row.get(1)),
        from: to_u32(row.get(2)),
        to: to_u32(row.get(3)),
        operation: to_u64(row.get(4)),
        by: HiddenBy::from_code(row.get::<_, i16>(5).into())
            .ok_or_else(|| damaged("hidden run", "unknown reason"))?,
        root: loc(row.get(6), row.get(7)),
    })
}

pub(crate) fn branch(row: &Row) -> Result<Branch> {
    let name: String = row.get(2);
    let record = || format!("branch {name}");
    Ok(Branch {
        conversation: ConversationKey(row.get(0)),
        id: BranchId::from_bytes(id(row.get(1), record)?),
        tip: root_or_loc(row.get(3), row.get(4)),
        forked_from: optional_id(row.get(5), record)?.map(TurnId::from_bytes),
        created_at: Timestamp::from_millis(row.get(6)),
        version: to_u64(row.get(7)),
        name: Name::from_stored(name),
    })
}

pub(crate) fn bookmark(row: &Row, project: &ProjectId) -> Bookmark {
    Bookmark {
        project: project.clone(),
        name: Name::from_stored(row.get::<_, String>(0)),
        conversation: ConversationKey(row.get(1)),
        turn: loc(row.get(2), row.get(3)),
        created_at: Timestamp::from_millis(row.get(4)),
    }
}

pub(crate) fn operation(row: &Row) -> Result<Operation> {
    let (conversation, seq): (i64, i64) = (row.get(0), row.get(1));
    let record = || format!("operation {seq} of conversation {conversation}");
    let detail: Vec<u8> = row.get(5);
    let detail = match row.get(6) {
        false => Detail::Kept(decode_text(detail, record)?),
        true => Detail::Purged(digest(&detail, record)?),
    };
    let idempotency = match row.get::<_, Option<String>>(9) {
        None => None,
        Some(key) => {
            let (fingerprint, answer): (Option<&[u8]>, Option<Vec<u8>>) =
                (row.get(10), row.get(11));
            let (Some(fingerprint), Some(answer)) = (fingerprint, answer) else {
                return Err(damaged(record(), "it has a key and no answer"));
            };
            let (fingerprint, answer) =
                (digest(fingerprint, record)?, decode_text(answer, record)?);
            Some(Idempotency { key, fingerprint, answer })
        }
    };
    Ok(Operation {
        conversation: ConversationKey(conversation),
        seq: to_u64(seq),
        kind: row.get(2),
        actor: row.get(3),
        at: Timestamp::from_millis(row.get(4)),
        detail,
        hash: operation_hash(row.get(7))?,
        undone: row.get(8),
        idempotency,
    })
}

pub(crate) fn operation_hash(bytes: &[u8]) -> Result<OperationHash> {
    Ok(OperationHash(digest(bytes, || "hash of an operation".to_owned())?))
}

pub(crate) fn record_text(bytes: Vec<u8>, key: &RecordKey) -> Result<String> {
    decode_text(bytes, || key.to_string())
}

/// Consecutive turns that an operation made: the first, and their number.
pub(crate) type TurnRun = (TurnLoc, u32);

/// Appends a turn to the last run, or starts a new one.
pub(crate) fn add_to_runs(runs: &mut Vec<TurnRun>, loc: TurnLoc) {
    match runs.last_mut() {
        Some((first, count))
            if first.segment == loc.segment && first.index + *count == loc.index =>
        {
            *count += 1;
        }
        _ => runs.push((loc, 1)),
    }
}

/// Encodes runs: segment, index and count, in eight, four and four bytes.
pub(crate) fn encode_runs(runs: &[TurnRun]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(runs.len() * 16);
    for (first, count) in runs {
        bytes.extend_from_slice(&first.segment.0.to_be_bytes());
        bytes.extend_from_slice(&first.index.to_be_bytes());
        bytes.extend_from_slice(&count.to_be_bytes());
    }
    (!bytes.is_empty()).then_some(bytes)
}

pub(crate) fn decode_runs(bytes: &[u8]) -> Vec<TurnRun> {
    let read_u32 = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    let runs = bytes.chunks_exact(16).map(|run| {
        let segment = i64::from(read_u32(&run[..4])) << 32 | i64::from(read_u32(&run[4..8]));
        (
            TurnLoc { segment: SegmentNo(segment), index: read_u32(&run[8..12]) },
            read_u32(&run[12..]),
        )
    });
    runs.collect()
}

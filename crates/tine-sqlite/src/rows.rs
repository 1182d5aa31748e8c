//! Conversion between records and columns.

use crate::error::StoreErr as _;
use rusqlite::Row;
use rusqlite::types::{Type, Value};
use tine_core::json::{self, Json};
use tine_core::{
    Body, BranchId, ConversationId, Digest, Limits, Metadata, Name, OperationHash, ProjectId, Role,
    RootHash, Status, Timestamp, TurnHash, TurnId,
};

use super::chunk_codec::{RawTurn, corrupt_turn};
use super::operation_codec;
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, DerivedFrom, Detail, Hidden,
    HiddenBy, Idempotency, Operation, Result, Root, SEGMENT_TURNS, Segment, SegmentNo, Split,
    StoreError, Turn, TurnLoc, TurnOrigin, Visibility,
};

/// Bodies of this size and more are stored once for all turns that hold them.
pub(super) const SHARED_BODY_BYTES: usize = 8192;

/// Returns a turn's key in the table `turn`.
pub(super) fn place(loc: TurnLoc) -> i64 {
    loc.segment.0 * i64::from(SEGMENT_TURNS) + i64::from(loc.index)
}

pub(super) fn loc(place: i64) -> TurnLoc {
    let segment = SegmentNo(place / i64::from(SEGMENT_TURNS));
    let index = u32::try_from(place % i64::from(SEGMENT_TURNS)).unwrap_or(0);
    TurnLoc { segment, index }
}

/// Returns the place of a turn, or 0 for the root: segments are numbered from 1.
pub(super) fn root_or_place(at: Option<TurnLoc>) -> i64 {
    at.map_or(0, place)
}

pub(super) fn root_or_loc(place: i64) -> Option<TurnLoc> {
    (place != 0).then(|| loc(place))
}

/// Returns the first four bytes of a digest as a number that sorts like the bytes.
pub(super) fn prefix(digest: &Digest) -> i64 {
    let [a, b, c, d, ..] = digest.0;
    i64::from(i32::from_be_bytes([a, b, c, d]) ^ i32::MIN)
}

/// Returns the first four bytes of a key's digest.
pub(super) fn key_prefix(key: &str) -> i64 {
    prefix(&Digest::of(key.as_bytes()))
}

/// Returns the first eight bytes of a turn's id, the key of the table `turn_id`.
pub(super) fn id_prefix(id: &[u8; 16]) -> &[u8] {
    &id[..8]
}

/// Consecutive turns that an operation made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceRun {
    /// The place of the first turn.
    pub first: i64,
    pub count: i64,
    /// The row number of the first turn in `fresh`; 0 if they went to `turn` directly.
    pub row_no: i64,
}

impl PlaceRun {
    pub(super) fn contains(&self, place: i64) -> bool {
        (self.first..self.first + self.count).contains(&place)
    }

    /// Returns whether a turn with this place and row number continues the run.
    pub(super) fn continues_at(&self, place: i64, row_no: i64) -> bool {
        let next = if self.row_no == 0 { 0 } else { self.row_no + self.count };
        place == self.first + self.count && row_no == next
    }
}

/// Encodes runs: first place, count and row number, in eight, four and eight bytes.
pub(super) fn encode_runs(runs: &[PlaceRun]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(runs.len() * 20);
    for run in runs {
        bytes.extend_from_slice(&run.first.to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(run.count).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(&run.row_no.to_be_bytes());
    }
    (!bytes.is_empty()).then_some(bytes)
}

pub(super) fn decode_runs(bytes: &[u8]) -> impl Iterator<Item = PlaceRun> {
    bytes.chunks_exact(20).map(|run| {
        let (mut first, mut count, mut row_no) = ([0; 8], [0; 4], [0; 8]);
        first.copy_from_slice(&run[..8]);
        count.copy_from_slice(&run[8..12]);
        row_no.copy_from_slice(&run[12..]);
        PlaceRun {
            first: i64::from_be_bytes(first),
            count: i64::from(u32::from_be_bytes(count)),
            row_no: i64::from_be_bytes(row_no),
        }
    })
}

/// A branch tip that an operation moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TipMove {
    pub branch: [u8; 16],
    /// The place of the tip; 0 is the root.
    pub tip: i64,
    pub version: i64,
}

/// Encodes moves: branch, tip and version, in sixteen, eight and eight bytes.
pub(super) fn encode_moves(moves: &[TipMove]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(moves.len() * 32);
    for one in moves {
        bytes.extend_from_slice(&one.branch);
        bytes.extend_from_slice(&one.tip.to_be_bytes());
        bytes.extend_from_slice(&one.version.to_be_bytes());
    }
    (!bytes.is_empty()).then_some(bytes)
}

pub(super) fn decode_moves(bytes: &[u8]) -> impl Iterator<Item = TipMove> {
    bytes.chunks_exact(32).map(|one| {
        let (mut branch, mut tip, mut version) = ([0; 16], [0; 8], [0; 8]);
        branch.copy_from_slice(&one[..16]);
        tip.copy_from_slice(&one[16..24]);
        version.copy_from_slice(&one[24..]);
        TipMove { branch, tip: i64::from_be_bytes(tip), version: i64::from_be_bytes(version) }
    })
}

/// Returns the value of the column `created_at`: nothing if the id holds the same time, as it
/// usually does.
pub(super) fn stored_time(id: &[u8; 16], created_at: i64) -> Option<i64> {
    (time_of_id(id) != created_at).then_some(created_at)
}

/// Returns the time in a UUID of version 7, in milliseconds.
pub(super) fn time_of_id(id: &[u8; 16]) -> i64 {
    id[..6].iter().fold(0, |time, byte| time << 8 | i64::from(*byte))
}

pub(super) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// How a turn's body is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    Text,
    Blocks,
    SharedText,
    SharedBlocks,
    Purged,
}

pub(super) fn role_code(role: Role) -> i64 {
    match role {
        Role::User => 0,
        Role::Assistant => 1,
        Role::Tool => 2,
        Role::System => 3,
    }
}

pub(super) fn encode_form(role: Role, body: BodyEncoding, status: Status) -> i64 {
    let status = i64::from(status == Status::Partial);
    role_code(role) | (body as i64) << 2 | status << 5
}

/// The bits of `form` that hold the body encoding.
pub(super) const BODY_ENCODING_MASK: i64 = 7 << 2;

pub(super) fn with_body_encoding(form: i64, body: BodyEncoding) -> i64 {
    form & !BODY_ENCODING_MASK | (body as i64) << 2
}

fn decode_form(form: i64) -> Option<(Role, BodyEncoding, Status)> {
    let role =
        [Role::User, Role::Assistant, Role::Tool, Role::System][usize::try_from(form & 3).ok()?];
    let body = match form >> 2 & 7 {
        0 => BodyEncoding::Text,
        1 => BodyEncoding::Blocks,
        2 => BodyEncoding::SharedText,
        3 => BodyEncoding::SharedBlocks,
        4 => BodyEncoding::Purged,
        _ => return None,
    };
    let status = if form >> 5 & 1 == 1 { Status::Partial } else { Status::Complete };
    Some((role, body, status))
}

/// Decodes a turn from its columns and its shared body, if it has one.
pub(super) fn decode_turn(raw: RawTurn, shared: Option<String>) -> Result<Turn> {
    let corrupt = |why: &str| corrupt_turn(raw.place, why);
    let (role, body, status) = decode_form(raw.form).ok_or_else(|| corrupt("unknown form"))?;
    let missing = || corrupt("its content is missing");
    let inline = |body: Value| match body {
        Value::Text(text) => Ok(text),
        _ => Err(missing()),
    };
    let content = match body {
        BodyEncoding::Text => Content::Kept(Body::Text(inline(raw.body)?)),
        BodyEncoding::Blocks => Content::Kept(Body::Blocks(inline(raw.body)?)),
        BodyEncoding::SharedText => Content::Kept(Body::Text(shared.ok_or_else(missing)?)),
        BodyEncoding::SharedBlocks => Content::Kept(Body::Blocks(shared.ok_or_else(missing)?)),
        BodyEncoding::Purged => match raw.body {
            Value::Blob(digest) => {
                Content::Purged(Digest(digest.try_into().map_err(|_| missing())?))
            }
            _ => return Err(missing()),
        },
    };
    let metadata = match raw.metadata {
        None => Metadata::default(),
        Some(text) => parse_stored_json(&text)
            .and_then(|json| Metadata::from_json(&json, &Limits::STORED).ok())
            .ok_or_else(|| corrupt("its metadata cannot be read"))?,
    };
    let origin = match raw.origin {
        None => TurnOrigin::default(),
        Some(bytes) => TurnOrigin::from_bytes(&bytes, role, raw.tool_call_id.as_deref())
            .ok_or_else(|| corrupt("its origin cannot be read"))?,
    };
    Ok(Turn {
        loc: loc(raw.place),
        id: TurnId::from_bytes(raw.id),
        hash: TurnHash(Digest(raw.hash)),
        depth: u32::try_from(raw.depth).map_err(|_| corrupt("its depth is negative"))?,
        role,
        content,
        tool_call_id: raw.tool_call_id,
        created_at: Timestamp::from_millis(raw.created_at),
        status,
        metadata,
        operation: to_u64(raw.operation),
        origin,
    })
}

/// Returns the number of the shared body, if the turn refers to one.
pub(super) fn shared_body_no(raw: &RawTurn) -> Option<i64> {
    match (decode_form(raw.form)?.1, &raw.body) {
        (BodyEncoding::SharedText | BodyEncoding::SharedBlocks, Value::Integer(no)) => Some(*no),
        _ => None,
    }
}

fn parse_stored_json(text: &str) -> Option<Json> {
    json::parse(text.as_bytes(), Limits::STORED.json_depth).ok()
}

pub(super) fn conversation(row: &Row<'_>) -> Result<Conversation> {
    let no: i64 = row.get(0).store_err()?;
    let corrupt = |why: &str| StoreError::Corrupt {
        record: format!("conversation {no}"),
        why: why.to_owned(),
    };
    let root = match row.get::<_, Option<String>>(5).store_err()? {
        None => None,
        Some(config) => Some(Root {
            system_prompt: row.get(4).store_err()?,
            config: parse_stored_json(&config)
                .ok_or_else(|| corrupt("its config cannot be read"))?,
        }),
    };
    let metadata: String = row.get(7).store_err()?;
    let derived_from = match row.get::<_, Option<String>>(9).store_err()? {
        None => None,
        Some(id) => Some(DerivedFrom {
            conversation: ConversationId::from_stored(id),
            turn: row.get::<_, Option<[u8; 16]>>(10).store_err()?.map(TurnId::from_bytes),
        }),
    };
    Ok(Conversation {
        key: ConversationKey(no),
        project: ProjectId::from_stored(row.get::<_, String>(1).store_err()?),
        id: ConversationId::from_stored(row.get::<_, String>(2).store_err()?),
        root_hash: RootHash(Digest(row.get(3).store_err()?)),
        root,
        title: row.get(6).store_err()?,
        metadata: parse_stored_json(&metadata)
            .ok_or_else(|| corrupt("its metadata cannot be read"))?,
        created_at: Timestamp::from_millis(row.get(8).store_err()?),
        derived_from,
        visibility: Visibility::from_code(row.get(11).store_err()?)
            .ok_or_else(|| corrupt("unknown visibility"))?,
    })
}

pub(super) fn segment(row: &Row<'_>) -> rusqlite::Result<Segment> {
    Ok(Segment {
        no: SegmentNo(row.get(0)?),
        conversation: ConversationKey(row.get(1)?),
        parent: root_or_loc(row.get(2)?),
        base_depth: row.get(3)?,
    })
}

pub(super) fn split(row: &Row<'_>) -> rusqlite::Result<Split> {
    Ok(Split {
        conversation: ConversationKey(row.get(0)?),
        whole: loc(row.get(1)?),
        left: loc(row.get(2)?),
        right: loc(row.get(3)?),
        operation: to_u64(row.get(4)?),
    })
}

pub(super) fn hidden(row: &Row<'_>) -> rusqlite::Result<Hidden> {
    let by: i64 = row.get(5)?;
    Ok(Hidden {
        conversation: ConversationKey(row.get(0)?),
        segment: SegmentNo(row.get(1)?),
        from: row.get(2)?,
        to: row.get(3)?,
        operation: to_u64(row.get(4)?),
        by: HiddenBy::from_code(by).ok_or(rusqlite::Error::IntegralValueOutOfRange(5, by))?,
        root: loc(row.get(6)?),
    })
}

pub(super) fn branch(row: &Row<'_>) -> rusqlite::Result<Branch> {
    Ok(Branch {
        conversation: ConversationKey(row.get(0)?),
        name: Name::from_stored(row.get::<_, String>(1)?),
        id: BranchId::from_bytes(row.get(2)?),
        tip: root_or_loc(row.get(3)?),
        forked_from: row.get::<_, Option<[u8; 16]>>(4)?.map(TurnId::from_bytes),
        created_at: Timestamp::from_millis(row.get(5)?),
        version: to_u64(row.get(6)?),
    })
}

pub(super) fn bookmark(row: &Row<'_>) -> rusqlite::Result<Bookmark> {
    Ok(Bookmark {
        project: ProjectId::from_stored(row.get::<_, String>(0)?),
        name: Name::from_stored(row.get::<_, String>(1)?),
        conversation: ConversationKey(row.get(2)?),
        turn: loc(row.get(3)?),
        created_at: Timestamp::from_millis(row.get(4)?),
    })
}

/// Encodes a detail: 1 and the encoded text, or 0 and the digest.
pub(super) fn encode_detail(detail: &Detail) -> Vec<u8> {
    match detail {
        Detail::Kept(text) => {
            let mut bytes = vec![1];
            bytes.append(&mut operation_codec::encode(text));
            bytes
        }
        Detail::Purged(digest) => [&[0], &digest.0[..]].concat(),
    }
}

fn decode_detail(bytes: &[u8]) -> Option<Detail> {
    match bytes.split_first()? {
        (1, text) => operation_codec::decode(text).map(Detail::Kept),
        (0, digest) => Some(Detail::Purged(Digest(digest.try_into().ok()?))),
        _ => None,
    }
}

pub(super) fn operation(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let corrupt = |column| {
        let why = "it cannot be read".into();
        rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, why)
    };
    let detail: Vec<u8> = row.get(6)?;
    let detail = decode_detail(&detail).ok_or_else(|| corrupt(6))?;
    let idempotency = match row.get::<_, Option<String>>(9)? {
        None => None,
        Some(key) => {
            let answer: Vec<u8> = row.get(11)?;
            let answer = operation_codec::decode(&answer).ok_or_else(|| corrupt(11))?;
            Some(Idempotency { key, fingerprint: Digest(row.get(10)?), answer })
        }
    };
    Ok(Operation {
        conversation: ConversationKey(row.get(1)?),
        seq: to_u64(row.get(2)?),
        kind: row.get(3)?,
        actor: row.get(4)?,
        at: Timestamp::from_millis(row.get(5)?),
        detail,
        hash: OperationHash(Digest(row.get(7)?)),
        undone: row.get::<_, i64>(8)? != 0,
        idempotency,
    })
}

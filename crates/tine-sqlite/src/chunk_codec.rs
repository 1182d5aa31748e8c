//! The format of chunks: up to 64 older turns of one segment, compressed together.
//!
//! A chunk holds the columns of the rows that it replaces, verbatim, so that packing and unpacking
//! lose nothing and do not depend on what the columns mean.
//!
//! The bytes, before compression (Zstandard, with its checksum), are, for each turn in order: id
//! (16), hash (32), then the numbers `operation`, `form` and `created_at` as variable-length
//! integers, then the columns `body`, `tool_call_id`, `metadata` and `origin`, each a tag and, for
//! text and bytes, a length and the bytes. Only the first turn's depth is stored.
//!
//! There is no dictionary. One of 16 KiB, trained on other subjects, saves 4 % (137 bytes a turn
//! instead of 143, of 261 uncompressed); one of 110 KiB saves 6 %. Either would become a permanent
//! part of the format.

use crate::error::StoreErr as _;
use rusqlite::Row;
use rusqlite::types::{Value, ValueRef};

use super::rows;
use tine_store::{Result, StoreError};

/// The maximum number of turns in a chunk.
pub(super) const CHUNK_TURNS: u32 = 64;

/// The maximum size of a chunk before compression, so that a corrupt length cannot request more.
const MAX_CHUNK_BYTES: usize = 64 << 20;

/// A row of the table `turn`, undecoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawTurn {
    pub place: i64,
    pub id: [u8; 16],
    pub hash: [u8; 32],
    pub operation: i64,
    pub depth: i64,
    pub form: i64,
    pub created_at: i64,
    pub body: Value,
    pub tool_call_id: Option<String>,
    pub metadata: Option<String>,
    pub origin: Option<Vec<u8>>,
}

impl RawTurn {
    /// Reads the columns of `turn_sql!`.
    pub(super) fn read(row: &Row<'_>) -> Result<Self> {
        let place: i64 = row.get(0).store_err()?;
        let body = match row.get_ref(7).store_err()? {
            // Invalid UTF-8 is reported here as damage.
            ValueRef::Text(bytes) => {
                let text = std::str::from_utf8(bytes);
                Value::Text(
                    text.map_err(|_| corrupt_turn(place, "its text is not UTF-8"))?.to_owned(),
                )
            }
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
        };
        let id: [u8; 16] = row.get(1).store_err()?;
        Ok(RawTurn {
            place,
            id,
            hash: row.get(2).store_err()?,
            operation: row.get(3).store_err()?,
            depth: row.get(4).store_err()?,
            form: row.get(5).store_err()?,
            created_at: row
                .get::<_, Option<i64>>(6)
                .store_err()?
                .unwrap_or_else(|| rows::time_of_id(&id)),
            body,
            tool_call_id: row.get(8).store_err()?,
            metadata: row.get(9).store_err()?,
            origin: row.get(10).store_err()?,
        })
    }
}

pub(super) fn corrupt_turn(place: i64, why: &str) -> StoreError {
    StoreError::Corrupt { record: format!("turn at place {place}"), why: why.to_owned() }
}

/// Encodes consecutive turns of one segment.
pub(super) fn encode(turns: &[RawTurn]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_varint(&mut bytes, turns.first().map_or(0, |turn| turn.depth));
    for turn in turns {
        bytes.extend_from_slice(&turn.id);
        bytes.extend_from_slice(&turn.hash);
        for number in [turn.operation, turn.form, turn.created_at] {
            write_varint(&mut bytes, number);
        }
        write_value(&mut bytes, &turn.body);
        write_value(&mut bytes, &turn.tool_call_id.clone().into());
        write_value(&mut bytes, &turn.metadata.clone().into());
        write_value(&mut bytes, &turn.origin.clone().into());
    }
    let failed = |error| StoreError::Contract(format!("turns cannot be compressed: {error}"));
    let mut compressor = zstd::bulk::Compressor::new(LEVEL).map_err(failed)?;
    compressor.include_checksum(true).map_err(failed)?;
    compressor.compress(&bytes).map_err(failed)
}

/// Zstandard's default: higher levels gain little on a few kilobytes of chat.
const LEVEL: i32 = 3;

/// Decodes the turns of a chunk whose first turn is at `first`.
pub(super) fn decode(first: i64, turns: i64, data: &[u8]) -> Result<Vec<RawTurn>> {
    let corrupt = |why: &str| StoreError::Corrupt {
        record: format!("chunk of {turns} turns at place {first}"),
        why: why.to_owned(),
    };
    let size = zstd::zstd_safe::get_frame_content_size(data).ok().flatten();
    let size =
        size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= MAX_CHUNK_BYTES);
    let size = size.ok_or_else(|| corrupt("its size cannot be read"))?;
    let bytes = zstd::bulk::decompress(data, size)
        .map_err(|_| corrupt("it cannot be decompressed, or its checksum does not fit"))?;
    let mut rest = bytes.as_slice();
    let mut found = Vec::new();
    read_turns(&mut rest, first, turns, &mut found).ok_or_else(|| corrupt("it is cut short"))?;
    match rest.is_empty() {
        true => Ok(found),
        false => Err(corrupt("there is more in it than there should be")),
    }
}

fn read_turns(rest: &mut &[u8], first: i64, turns: i64, found: &mut Vec<RawTurn>) -> Option<()> {
    let depth = read_varint(rest)?;
    for index in 0..turns {
        let turn = RawTurn {
            place: first + index,
            id: *take_array(rest)?,
            hash: *take_array(rest)?,
            operation: read_varint(rest)?,
            depth: depth + index,
            form: read_varint(rest)?,
            created_at: read_varint(rest)?,
            body: read_value(rest)?,
            tool_call_id: optional_text(read_value(rest)?)?,
            metadata: optional_text(read_value(rest)?)?,
            origin: match read_value(rest)? {
                Value::Null => None,
                Value::Blob(bytes) => Some(bytes),
                _ => return None,
            },
        };
        found.push(turn);
    }
    Some(())
}

fn optional_text(value: Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::Text(text) => Some(Some(text)),
        _ => None,
    }
}

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;
const BLOB: u8 = 3;
const REAL: u8 = 4;

fn write_value(bytes: &mut Vec<u8>, value: &Value) {
    let (tag, content): (u8, &[u8]) = match value {
        Value::Null => {
            bytes.push(NULL);
            return;
        }
        Value::Integer(number) => {
            bytes.push(INTEGER);
            write_varint(bytes, *number);
            return;
        }
        Value::Real(number) => {
            bytes.push(REAL);
            bytes.extend_from_slice(&number.to_be_bytes());
            return;
        }
        Value::Text(text) => (TEXT, text.as_bytes()),
        Value::Blob(blob) => (BLOB, blob),
    };
    bytes.push(tag);
    write_varint(bytes, i64::try_from(content.len()).unwrap_or(i64::MAX));
    bytes.extend_from_slice(content);
}

fn read_value(rest: &mut &[u8]) -> Option<Value> {
    let [tag] = *take_array(rest)?;
    match tag {
        NULL => Some(Value::Null),
        INTEGER => Some(Value::Integer(read_varint(rest)?)),
        REAL => Some(Value::Real(f64::from_be_bytes(*take_array(rest)?))),
        TEXT | BLOB => {
            let length = usize::try_from(read_varint(rest)?).ok()?;
            let content = rest.get(..length)?;
            *rest = &rest[length..];
            match tag {
                TEXT => Some(Value::Text(std::str::from_utf8(content).ok()?.to_owned())),
                _ => Some(Value::Blob(content.to_owned())),
            }
        }
        _ => None,
    }
}

/// Writes a zigzag varint: seven bits a byte, least significant first.
fn write_varint(bytes: &mut Vec<u8>, number: i64) {
    let mut left = (number << 1 ^ number >> 63).cast_unsigned();
    while left >= 0x80 {
        bytes.push(left.to_le_bytes()[0] | 0x80);
        left >>= 7;
    }
    bytes.push(left.to_le_bytes()[0]);
}

fn read_varint(rest: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = *take_array(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        }
    }
    None
}

fn take_array<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (array, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(place: i64, body: Value) -> RawTurn {
        RawTurn {
            place,
            id: [7; 16],
            hash: [9; 32],
            operation: place * 1_000,
            depth: place + 5,
            form: 36,
            created_at: -place,
            body,
            tool_call_id: (place % 2 == 0).then(|| "call".to_owned()),
            metadata: (place % 3 == 0).then(|| "{}".to_owned()),
            origin: (place % 5 == 0).then(|| vec![0, 1, 2]),
        }
    }

    #[test]
    fn encoded_turns_decode_to_the_same_columns() {
        let bodies = [
            Value::Text("words 🌸".to_owned()),
            Value::Text(String::new()),
            Value::Integer(i64::MIN),
            Value::Integer(i64::MAX),
            Value::Blob(vec![0; 32]),
            Value::Null,
        ];
        let turns: Vec<RawTurn> = (0..).zip(bodies).map(|(at, body)| turn(at, body)).collect();
        let data = encode(&turns).unwrap();
        assert_eq!(decode(0, 6, &data).unwrap(), turns);
    }

    #[test]
    fn a_flipped_bit_or_a_truncated_chunk_never_decodes_to_other_turns() {
        let turns: Vec<RawTurn> =
            (0..20).map(|at| turn(at, Value::Text("word ".repeat(9)))).collect();
        let data = encode(&turns).unwrap();
        for at in 0..data.len() {
            for bit in 0..8 {
                let mut bad = data.clone();
                bad[at] ^= 1 << bit;
                // Some header bits have no effect on the content; none may change it.
                if let Ok(decoded) = decode(0, 20, &bad) {
                    assert_eq!(decoded, turns, "byte {at}, bit {bit}");
                }
            }
            assert!(decode(0, 20, &data[..at]).is_err(), "cut at {at}");
        }
        assert!(decode(0, 19, &data).is_err());
        assert!(decode(0, 21, &data).is_err());
    }
}

//! Packing runs of older turns into chunks, and reading packed turns.
//!
//! A chunk replaces its rows in one transaction, so at any crash point a turn is in exactly one of
//! the two tables. Before a turn's metadata changes or the turn is erased, its whole chunk is
//! unpacked.

use crate::error::StoreErr as _;
use rusqlite::types::Value;
use rusqlite::{Row, params};
use tine_core::{Body, Digest, Timestamp};

use super::chunk_codec::{self, CHUNK_TURNS, RawTurn};
use super::rows;
use super::txn::{SqliteTxn, TurnIdentity};
use tine_store::{PackOptions, Packed, Result, SEGMENT_TURNS, StoreError, Turn};

/// The maximum number of chunks per transaction: bounds how long writers wait.
const CHUNKS_PER_BATCH: u64 = 256;

/// A row of the table `chunk`: first place, number of turns, data.
type StoredChunk = (i64, i64, Vec<u8>);

impl SqliteTxn<'_> {
    fn chunk_containing(&self, place: i64) -> Result<Option<StoredChunk>> {
        let sql = "SELECT first, turns, data FROM chunk WHERE first <= ?1 \
                   ORDER BY first DESC LIMIT 1";
        let found: Option<StoredChunk> =
            self.query_opt(sql, [place], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(found.filter(|(first, turns, _)| place < first + turns))
    }

    /// Returns the id and the hash of the turn at a place.
    pub(super) fn identity_at(&self, place: i64) -> Result<Option<TurnIdentity>> {
        let identity = |row: &Row<'_>| Ok((row.get(0)?, Digest(row.get(1)?)));
        let sql = "SELECT id, hash FROM turn WHERE place = ?1";
        if let Some(found) = self.query_opt(sql, [place], identity)? {
            return Ok(Some(found));
        }
        if let Some(no) = self.pending_row_no(place)? {
            return self.query_opt("SELECT id, hash FROM fresh WHERE no = ?1", [no], identity);
        }
        let nth = |first: i64| usize::try_from(place - first).ok();
        let in_chunk = |(first, turns): &(i64, Vec<TurnIdentity>)| turns.get(nth(*first)?).copied();
        // Look-ups in one chunk come in groups, and identities never change.
        if let Some(found) = self.cached_identities.borrow().as_ref().and_then(in_chunk) {
            return Ok(Some(found));
        }
        let Some((first, turns, data)) = self.chunk_containing(place)? else {
            return Ok(None);
        };
        let decoded = chunk_codec::decode(first, turns, &data)?.into_iter();
        let chunk = (first, decoded.map(|turn| (turn.id, Digest(turn.hash))).collect());
        let found = in_chunk(&chunk);
        self.cached_identities.replace(Some(chunk));
        Ok(found)
    }

    /// Returns the time of the turn at a place, without reading what it says.
    pub(super) fn time_at(&self, place: i64) -> Result<Option<Timestamp>> {
        let time = |row: &Row<'_>| {
            let (id, stored): ([u8; 16], Option<i64>) = (row.get(0)?, row.get(1)?);
            Ok(Timestamp::from_millis(stored.unwrap_or_else(|| rows::time_of_id(&id))))
        };
        let sql = "SELECT id, created_at FROM turn WHERE place = ?1";
        if let Some(found) = self.query_opt(sql, [place], time)? {
            return Ok(Some(found));
        }
        if let Some(no) = self.pending_row_no(place)? {
            return self.query_opt("SELECT id, created_at FROM fresh WHERE no = ?1", [no], time);
        }
        let Some((first, turns, data)) = self.chunk_containing(place)? else {
            return Ok(None);
        };
        let decoded = chunk_codec::decode(first, turns, &data)?;
        let found = decoded.into_iter().find(|turn| turn.place == place);
        Ok(found.map(|raw| Timestamp::from_millis(raw.created_at)))
    }

    pub(super) fn packed_turn(&self, place: i64) -> Result<Option<Turn>> {
        let Some((first, turns, data)) = self.chunk_containing(place)? else {
            return Ok(None);
        };
        let found =
            chunk_codec::decode(first, turns, &data)?.into_iter().find(|turn| turn.place == place);
        found.map(|raw| self.resolve_turn(raw)).transpose()
    }

    /// Visits the turns between two places of a segment in order, packed or not.
    pub(super) fn turns_between(
        &self,
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()> {
        // A chunk that begins fewer than `CHUNK_TURNS` places before `from` may reach it.
        let sql = "SELECT first, turns, data FROM chunk WHERE first > ?1 AND first <= ?2 \
                   ORDER BY first";
        let mut statement = self.connection.prepare_cached(sql).store_err()?;
        let mut chunks = statement.query([from - i64::from(CHUNK_TURNS), to]).store_err()?;
        let mut next = from;
        while let Some(row) = chunks.next().store_err()? {
            let (first, turns): (i64, i64) = (row.get(0).store_err()?, row.get(1).store_err()?);
            if first + turns <= from {
                continue;
            }
            if !self.rows_between(next, first - 1, visit)? {
                return Ok(());
            }
            let data = row.get_ref(2).store_err()?.as_blob().map_err(|_| {
                let why = "its data is not bytes".to_owned();
                StoreError::Corrupt { record: format!("chunk at place {first}"), why }
            })?;
            let decoded = chunk_codec::decode(first, turns, data)?.into_iter();
            for raw in decoded.filter(|raw| (from..=to).contains(&raw.place)) {
                if !visit(self.resolve_turn(raw)?)? {
                    return Ok(());
                }
            }
            next = first + turns;
        }
        self.rows_between(next, to, visit).map(|_| ())
    }

    /// Decodes a turn from its columns, reading its shared body if it has one.
    pub(super) fn resolve_turn(&self, raw: RawTurn) -> Result<Turn> {
        let shared = match rows::shared_body_no(&raw) {
            Some(no) => {
                self.query_opt("SELECT body FROM shared_body WHERE no = ?1", [no], |row| {
                    row.get(0)
                })?
            }
            None => None,
        };
        rows::decode_turn(raw, shared)
    }

    /// Unpacks the chunk that contains a place, if there is one.
    pub(super) fn unpack(&self, place: i64) -> Result<()> {
        let Some((first, turns, data)) = self.chunk_containing(place)? else {
            return Ok(());
        };
        self.execute("DELETE FROM chunk WHERE first = ?1", [first])?;
        for turn in chunk_codec::decode(first, turns, &data)? {
            self.insert_turn_row(&turn)?;
        }
        Ok(())
    }

    /// Packs runs of older turns from a segment on, up to the limit per transaction. Returns the
    /// segment to continue with, if there is one.
    pub(super) fn pack_batch(
        &self,
        options: PackOptions,
        from: i64,
    ) -> Result<(Packed, Option<i64>)> {
        let mut packed = Packed::default();
        let mut from = from;
        loop {
            let sql = "SELECT min(place) >> 20 FROM turn WHERE place >= ?1 << 20";
            let segment: Option<i64> = self.query_opt(sql, [from], |row| row.get(0))?.flatten();
            let Some(segment) = segment else {
                return Ok((packed, None));
            };
            self.pack_segment(segment, options, &mut packed)?;
            if packed.chunks >= CHUNKS_PER_BATCH {
                return Ok((packed, Some(segment)));
            }
            from = segment + 1;
        }
    }

    fn pack_segment(&self, segment: i64, options: PackOptions, packed: &mut Packed) -> Result<()> {
        let start = segment * i64::from(SEGMENT_TURNS);
        let segment_end = start + i64::from(SEGMENT_TURNS);
        let number = |sql: &str, from: i64| -> Result<Option<i64>> {
            Ok(self.query_opt(sql, [from, segment_end], |row| row.get(0))?.flatten())
        };
        let last = number("SELECT max(place) FROM turn WHERE place >= ?1 AND place < ?2", start)?;
        let limit = last.map_or(start, |last| last + 1 - i64::from(options.keep_recent));
        let mut from = start;
        while packed.chunks < CHUNKS_PER_BATCH {
            // The next run of rows ends at the next chunk, if there is one.
            let sql = "SELECT min(place) FROM turn WHERE place >= ?1 AND place < ?2";
            let Some(first) = number(sql, from)? else {
                break;
            };
            let sql = "SELECT min(first) FROM chunk WHERE first > ?1 AND first < ?2";
            let end = number(sql, first)?.unwrap_or(limit).min(limit);
            let end = end.min(first + i64::from(CHUNK_TURNS));
            if first >= limit {
                break;
            }
            if end - first >= i64::from(options.shortest_run.max(1)) {
                self.pack_run(first, end, packed)?;
            }
            from = end;
        }
        Ok(())
    }

    fn pack_run(&self, first: i64, end: i64, packed: &mut Packed) -> Result<()> {
        let sql = "SELECT place, id, hash, operation, depth, form, created_at, body, \
                   tool_call_id, metadata, origin FROM turn WHERE place >= ?1 AND place < ?2 \
                   ORDER BY place";
        let mut turns = Vec::new();
        self.query_each(sql, [first, end], RawTurn::read, &mut |turn| {
            turns.push(turn);
            Ok(true)
        })?;
        let expected = usize::try_from(end - first).unwrap_or(0);
        if turns.len() != expected {
            return Err(chunk_codec::corrupt_turn(first, "a turn behind it is missing"));
        }
        let data = chunk_codec::encode(&turns)?;
        self.execute("DELETE FROM turn WHERE place >= ?1 AND place < ?2", [first, end])?;
        let sql = "INSERT INTO chunk (first, turns, data) VALUES (?1, ?2, ?3)";
        let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.execute(sql, params![first, end - first, data])?;
        packed.chunks += 1;
        packed.turns += rows::to_u64(end - first);
        packed.packed_bytes += bytes;
        packed.raw_bytes += turns.iter().map(raw_bytes).sum::<u64>();
        Ok(())
    }

    /// Returns the places of turns with a body, packed or not.
    pub(super) fn places_with_body(&self, body: &Body, limit: usize) -> Result<Vec<i64>> {
        let (text, inline) = match body {
            Body::Text(text) => (text, rows::BodyEncoding::Text),
            Body::Blocks(text) => (text, rows::BodyEncoding::Blocks),
        };
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        if text.len() >= rows::SHARED_BODY_BYTES {
            let sql = "SELECT place FROM shared_body_holder \
                       JOIN shared_body ON shared_body.no = shared_body_holder.body \
                       WHERE digest = ?1 ORDER BY place LIMIT ?2";
            let digest = Digest::of(text.as_bytes()).0;
            return self.query_all(sql, params![digest, most], |row| row.get(0));
        }
        let sql = "SELECT place FROM turn WHERE body = ?1 AND form & ?2 = ?3 UNION ALL \
                   SELECT place FROM fresh WHERE body = ?1 AND form & ?2 = ?3 LIMIT ?4";
        let (mask, kind) = (rows::BODY_ENCODING_MASK, (inline as i64) << 2);
        let mut places: Vec<i64> =
            self.query_all(sql, params![text, mask, kind, most], |row| row.get(0))?;
        let mut statement =
            self.connection.prepare_cached("SELECT first, turns, data FROM chunk").store_err()?;
        let mut chunks = statement.query([]).store_err()?;
        while let Some(row) = chunks.next().store_err()?
            && places.len() < limit
        {
            let data: Vec<u8> = row.get(2).store_err()?;
            for turn in
                chunk_codec::decode(row.get(0).store_err()?, row.get(1).store_err()?, &data)?
            {
                let same = matches!(&turn.body, Value::Text(own) if own == text);
                if same && turn.form & mask == kind {
                    places.push(turn.place);
                }
            }
        }
        places.sort_unstable();
        places.truncate(limit);
        Ok(places)
    }
}

/// Estimates the size of a turn's row.
fn raw_bytes(turn: &RawTurn) -> u64 {
    let body = match &turn.body {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 8,
    };
    let texts = [&turn.tool_call_id, &turn.metadata];
    let texts: usize = texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum();
    let origin = turn.origin.as_ref().map_or(0, Vec::len);
    u64::try_from(64 + body + texts + origin).unwrap_or(u64::MAX)
}

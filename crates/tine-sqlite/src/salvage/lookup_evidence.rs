//! What look-up tables still say about lost rows.
//!
//! A log that has lost its last operations, or a segment that has lost its last turns, looks
//! complete by itself. The look-up tables lie on other pages and may still list what is missing.
//! They count as evidence only for tables that are known to be broken, since they may be damaged
//! themselves.

use crate::error::StoreErr as _;
use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use tine_store::{ConversationKey, LostRecord, Result};

/// The lengths of a turn's id in the look-up table: a prefix, or up to format 3 the whole id. Any
/// other length is damage, or a row of another table.
const ID_BYTES: [usize; 2] = [8, 16];

pub(super) fn prepare(connection: &Connection) -> Result<()> {
    connection
        .execute_batch(
            "CREATE TEMP TABLE indexed_operation (conversation, seq, operation);
         CREATE TEMP TABLE indexed_turn (id, place);",
        )
        .store_err()?;
    Ok(())
}

/// Tables for which there is no evidence of lost rows.
const TABLES_WITHOUT_EVIDENCE: [&str; 3] = ["bookmark", "hidden", "split"];

/// Records a row of a look-up table.
pub(super) fn record_entry(connection: &Connection, table: &str, row: &[Value]) -> Result<()> {
    let sql = match (table, row) {
        ("operation_seq", _) => "INSERT INTO indexed_operation VALUES (?, ?, ?)",
        ("turn_id", [Value::Blob(id), _]) if ID_BYTES.contains(&id.len()) => {
            "INSERT INTO indexed_turn VALUES (?, ?)"
        }
        _ => return Ok(()),
    };
    connection.prepare_cached(sql).store_err()?.execute(params_from_iter(row)).store_err()?;
    Ok(())
}

/// Returns the records of broken tables that a look-up table lists and that were not found.
pub(super) fn lost_records(
    connection: &Connection,
    broken: &BTreeSet<String>,
) -> Result<Vec<LostRecord>> {
    let mut lost = Vec::new();
    if broken.contains("operation") || broken.contains("fresh") {
        let mut statement = connection
            .prepare(
                "SELECT entry.conversation, entry.seq FROM indexed_operation AS entry \
             WHERE NOT EXISTS (SELECT 1 FROM operation_seq AS found \
                               WHERE found.conversation = entry.conversation \
                               AND found.seq = entry.seq) \
             ORDER BY 1, 2",
            )
            .store_err()?;
        let mut rows = statement.query([]).store_err()?;
        while let Some(row) = rows.next().store_err()? {
            let conversation = Some(ConversationKey(row.get(0).store_err()?));
            let record = format!("operation {}", row.get::<_, i64>(1).store_err()?);
            lost.push(LostRecord { conversation, record });
        }
        // Pending operations are in no look-up table. Their numbers are consecutive, so a gap counts
        // as loss; operations missing at the end leave no gap.
        let listed = lost.len();
        let highest = "SELECT max(ifnull((SELECT max(no) FROM operation), 0), \
                       ifnull((SELECT max(operation) FROM indexed_operation), 0)) \
                       - (SELECT count(*) FROM operation)";
        let missing: i64 = connection.query_row(highest, [], |row| row.get(0)).store_err()?;
        let unlisted = usize::try_from(missing).unwrap_or(0).saturating_sub(listed);
        let record = match unlisted {
            0 => "operations at the end of a log, if there were any on a damaged page".to_owned(),
            unlisted => format!("{unlisted} operations"),
        };
        lost.push(LostRecord { conversation: None, record });
    }
    if ["turn", "fresh", "chunk", "segment"].iter().any(|table| broken.contains(*table)) {
        let mut statement = connection
            .prepare(
                "SELECT segment.conversation, entry.id FROM indexed_turn AS entry \
             LEFT JOIN segment ON segment.no = entry.place >> 20 \
             WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn.place = entry.place) \
             AND NOT EXISTS (SELECT 1 FROM chunk WHERE entry.place >= chunk.first \
                             AND entry.place < chunk.first + chunk.turns) \
             ORDER BY entry.place",
            )
            .store_err()?;
        let mut rows = statement.query([]).store_err()?;
        while let Some(row) = rows.next().store_err()? {
            let conversation = row.get::<_, Option<i64>>(0).store_err()?.map(ConversationKey);
            lost.push(LostRecord {
                conversation,
                record: describe_turn(&row.get::<_, Vec<u8>>(1).store_err()?),
            });
        }
    }
    for table in TABLES_WITHOUT_EVIDENCE.into_iter().filter(|table| broken.contains(*table)) {
        let record = format!("records of the table {table}, if there were any on a damaged page");
        lost.push(LostRecord { conversation: None, record });
    }
    Ok(lost)
}

/// Names a turn by its id, or by the known prefix of it.
fn describe_turn(id: &[u8]) -> String {
    let mut whole = [0; 16];
    let known = id.len().min(whole.len());
    whole[..known].copy_from_slice(&id[..known]);
    let text = tine_core::TurnId::from_bytes(whole).to_string();
    if known == whole.len() {
        return format!("turn {text}");
    }
    let digits = 2 * known;
    let end = text.char_indices().filter(|(_, digit)| *digit != '-').nth(digits);
    let shown = end.map_or(text.as_str(), |(end, _)| text[..end].trim_end_matches('-'));
    format!("turn {shown}…")
}

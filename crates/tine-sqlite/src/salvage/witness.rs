//! What look-up tables still know about rows that are gone.
//!
//! A log that has lost its last entries, or a line that has lost its last turns, looks whole by
//! itself. The look-up tables lie on other pages and may remember. They are believed only about
//! tables that are known to have lost rows: they can be what is damaged, too.

use crate::error::StoreErr as _;
use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use tine_store::{ConversationKey, LostRecord, Result};

/// How much of a turn's id there is: its beginning, or all of it up to format 3. What is longer or
/// shorter comes from another table, or is damaged.
const ID_BYTES: [usize; 2] = [8, 16];

pub(super) fn prepare(connection: &Connection) -> Result<()> {
    connection
        .execute_batch(
            "CREATE TEMP TABLE heard_operation (conversation, seq, operation);
         CREATE TEMP TABLE heard_turn (id, place);",
        )
        .store_err()?;
    Ok(())
}

/// Tables whose rows leave no gap, and of which not every log tells.
const WITHOUT_WITNESS: [&str; 3] = ["bookmark", "hidden", "split"];

/// Keeps what a row of a look-up table says.
pub(super) fn hear(connection: &Connection, table: &str, row: &[Value]) -> Result<()> {
    let sql = match (table, row) {
        ("operation_seq", _) => "INSERT INTO heard_operation VALUES (?, ?, ?)",
        ("turn_id", [Value::Blob(id), _]) if ID_BYTES.contains(&id.len()) => {
            "INSERT INTO heard_turn VALUES (?, ?)"
        }
        _ => return Ok(()),
    };
    connection.prepare_cached(sql).store_err()?.execute(params_from_iter(row)).store_err()?;
    Ok(())
}

/// Records of broken tables that were heard of and are not there.
pub(super) fn lost(connection: &Connection, broken: &BTreeSet<String>) -> Result<Vec<LostRecord>> {
    let mut lost = Vec::new();
    if broken.contains("operation") || broken.contains("fresh") {
        let mut statement = connection
            .prepare(
                "SELECT heard.conversation, heard.seq FROM heard_operation AS heard \
             WHERE NOT EXISTS (SELECT 1 FROM operation_seq AS found \
                               WHERE found.conversation = heard.conversation \
                               AND found.seq = heard.seq) \
             ORDER BY 1, 2",
            )
            .store_err()?;
        let mut rows = statement.query([]).store_err()?;
        while let Some(row) = rows.next().store_err()? {
            let conversation = Some(ConversationKey(row.get(0).store_err()?));
            let record = format!("operation {}", row.get::<_, i64>(1).store_err()?);
            lost.push(LostRecord { conversation, record });
        }
        // The newest operations are not in the look-up tables yet; their numbers are one after
        // the other, and what is missing at the very end leaves no gap.
        let known = lost.len();
        let highest = "SELECT max(ifnull((SELECT max(no) FROM operation), 0), \
                       ifnull((SELECT max(operation) FROM heard_operation), 0)) \
                       - (SELECT count(*) FROM operation)";
        let missing: i64 = connection.query_row(highest, [], |row| row.get(0)).store_err()?;
        let unknown = usize::try_from(missing).unwrap_or(0).saturating_sub(known);
        let record = match unknown {
            0 => "operations at the end of a log, if there were any on a damaged page".to_owned(),
            unknown => format!("{unknown} operations"),
        };
        lost.push(LostRecord { conversation: None, record });
    }
    if ["turn", "fresh", "chunk", "segment"].iter().any(|table| broken.contains(*table)) {
        let mut statement = connection
            .prepare(
                "SELECT segment.conversation, heard.id FROM heard_turn AS heard \
             LEFT JOIN segment ON segment.no = heard.place >> 20 \
             WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn.place = heard.place) \
             AND NOT EXISTS (SELECT 1 FROM chunk WHERE heard.place >= chunk.first \
                             AND heard.place < chunk.first + chunk.turns) \
             ORDER BY heard.place",
            )
            .store_err()?;
        let mut rows = statement.query([]).store_err()?;
        while let Some(row) = rows.next().store_err()? {
            let conversation = row.get::<_, Option<i64>>(0).store_err()?.map(ConversationKey);
            lost.push(LostRecord {
                conversation,
                record: turn_named(&row.get::<_, Vec<u8>>(1).store_err()?),
            });
        }
    }
    for table in WITHOUT_WITNESS.into_iter().filter(|table| broken.contains(*table)) {
        let record = format!("records of the table {table}, if there were any on a damaged page");
        lost.push(LostRecord { conversation: None, record });
    }
    Ok(lost)
}

/// A turn by its id, or by as much of it as is known.
fn turn_named(id: &[u8]) -> String {
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

//! Records of families and their index keys, for reading and writing.

use rusqlite::params;

use super::SqliteTxn;
use tine_store::{Record, RecordKey, Result, index_changes};

/// Selects the statement for a range of keys, by whether it is bounded and by direction. Each is a
/// constant, so that it is prepared once.
macro_rules! range_sql {
    ($range:expr, $columns:literal, $table:literal, $of:literal) => {{
        macro_rules! sql {
            ($end:literal, $order:literal) => {
                concat!(
                    "SELECT ",
                    $columns,
                    " FROM ",
                    $table,
                    " WHERE project = ?1 AND ",
                    $of,
                    " = ?2 AND key >= ?3 AND ",
                    $end,
                    " ORDER BY ",
                    $order,
                    " LIMIT ?5"
                )
            };
        }
        match (&$range.to, $range.backwards) {
            (Some(_), false) => sql!("key < ?4", "key"),
            (Some(_), true) => sql!("key < ?4", "key DESC"),
            (None, false) => sql!("?4 IS NULL", "key"),
            (None, true) => sql!("?4 IS NULL", "key DESC"),
        }
    }};
}

pub(super) use range_sql;

impl SqliteTxn<'_> {
    pub(super) fn record_in(&self, project: i64, key: &RecordKey) -> Result<Option<Record>> {
        let sql = "SELECT text FROM record WHERE project = ?1 AND family = ?2 AND key = ?3";
        let text: Option<String> =
            self.query_opt(sql, params![project, key.family().code(), key.to_bytes()], |row| {
                row.get(0)
            })?;
        Ok(text.map(|text| Record::verbatim(key.clone(), text)))
    }

    /// Updates the indexes after a record was added, replaced or removed.
    pub(super) fn change_index(
        &self,
        project: i64,
        before: Option<&Record>,
        after: Option<&Record>,
    ) -> Result<()> {
        let changes = index_changes(before, after);
        let apply = |sql: &str, key: &tine_store::IndexKey| {
            self.execute(sql, params![project, key.index().code(), key.to_bytes()])
        };
        for key in &changes.removed {
            apply("DELETE FROM record_index WHERE project = ?1 AND name = ?2 AND key = ?3", key)?;
        }
        for key in &changes.added {
            // A damaged store may still hold the key.
            apply(
                "INSERT OR IGNORE INTO record_index (project, name, key) VALUES (?1, ?2, ?3)",
                key,
            )?;
        }
        Ok(())
    }
}

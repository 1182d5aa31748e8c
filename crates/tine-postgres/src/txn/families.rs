//! Records of families and their index keys.

use tine_core::ProjectId;
use tine_store::{
    IndexKey, IndexQuery, KEY_BYTES, KeyRange, Record, RecordKey, RecordQuery, Result, StoreError,
    index_changes,
};
use tokio_postgres::Row;

use super::PostgresTxn;
use crate::connection::values;
use crate::rows;

/// Queries a range of keys, with a statement for each combination of bound and direction.
macro_rules! query_range {
    ($txn:expr, $project:expr, $of:expr, $range:expr, $limit:expr, $columns:literal, $table:literal, $name:literal) => {{
        macro_rules! sql {
            ($end:literal) => {
                concat!(
                    "SELECT ",
                    $columns,
                    " FROM ",
                    $table,
                    " WHERE project = $1 AND ",
                    $name,
                    " = $2 AND key >= $3 ",
                    $end,
                    " LIMIT $4"
                )
            };
        }
        let KeyRange { from, to, backwards } = $range;
        let (of, limit) = (i16::from($of.code()), rows::sql_limit($limit));
        match (to, backwards) {
            (Some(to), false) => $txn.query(
                sql!("AND key < $5 ORDER BY key"),
                values![$project, of, from.clone(), limit, to.clone()],
            ),
            (Some(to), true) => $txn.query(
                sql!("AND key < $5 ORDER BY key DESC"),
                values![$project, of, from.clone(), limit, to.clone()],
            ),
            (None, false) => {
                $txn.query(sql!("ORDER BY key"), values![$project, of, from.clone(), limit])
            }
            (None, true) => {
                $txn.query(sql!("ORDER BY key DESC"), values![$project, of, from.clone(), limit])
            }
        }
    }};
}

impl PostgresTxn<'_> {
    pub(super) fn record_in(&self, project: i32, key: &RecordKey) -> Result<Option<Record>> {
        let sql = "SELECT text FROM record WHERE project = $1 AND family = $2 AND key = $3";
        let row =
            self.query_opt(sql, values![project, i16::from(key.family().code()), key.to_bytes()])?;
        row.map(|row| Ok(Record::verbatim(key.clone(), rows::record_text(row.get(0), key)?)))
            .transpose()
    }

    pub(super) fn records_in(
        &self,
        project: i32,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let found = query_range!(
            self,
            project,
            query.of,
            &query.range,
            limit,
            "key, text",
            "record",
            "family"
        )?;
        let record = |row: &Row| {
            let key = RecordKey::from_bytes(query.of, row.get(0));
            let text = rows::record_text(row.get(1), &key)?;
            Ok(Record::verbatim(key, text))
        };
        found.iter().map(record).collect()
    }

    pub(super) fn index_keys_in(
        &self,
        project: i32,
        query: &IndexQuery,
        limit: usize,
    ) -> Result<Vec<IndexKey>> {
        let found = query_range!(
            self,
            project,
            query.of,
            &query.range,
            limit,
            "key",
            "record_index",
            "name"
        )?;
        Ok(found.iter().map(|row| IndexKey::from_bytes(query.of, row.get(0))).collect())
    }

    /// Writes a record; `before` reads its earlier form, for the indexes.
    pub(super) fn write_record(
        &mut self,
        project: &ProjectId,
        sql: &'static str,
        before: impl FnOnce(&Self, i32) -> Result<Option<Record>>,
        record: &Record,
    ) -> Result<()> {
        let (key, text) = (record.key().to_bytes(), record.text());
        if key.is_empty() || key.len() > KEY_BYTES {
            return Err(StoreError::Contract(format!("a key of {} bytes", key.len())));
        }
        let project = self.required_project(project)?;
        let before = before(self, project)?;
        self.count_bytes(text.len());
        let family = i16::from(record.key().family().code());
        self.write(sql, values![project, family, key, text.as_bytes().to_vec()])?;
        self.change_index(project, before.as_ref(), Some(record))
    }

    /// Updates the indexes after a record was added, replaced or removed.
    pub(super) fn change_index(
        &self,
        project: i32,
        before: Option<&Record>,
        after: Option<&Record>,
    ) -> Result<()> {
        let changes = index_changes(before, after);
        let apply = |sql: &'static str, key: &IndexKey| {
            self.write(sql, values![project, i16::from(key.index().code()), key.to_bytes()])
        };
        for key in &changes.removed {
            apply("DELETE FROM record_index WHERE project = $1 AND name = $2 AND key = $3", key)?;
        }
        for key in &changes.added {
            let sql = "INSERT INTO record_index (project, name, key) VALUES ($1, $2, $3) \
                       ON CONFLICT DO NOTHING";
            apply(sql, key)?;
        }
        Ok(())
    }
}

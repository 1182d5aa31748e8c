//! Entries and pieces of blobs as rows.

use rusqlite::params;
use tine_core::{ProjectId, SourceId};

use super::txn::{Txn, limit_number};
use crate::Result;
use crate::ledger::{Entry, EntryKind, KeyRange};

impl Txn<'_> {
    pub(super) fn ledger_entry(
        &self,
        project: &ProjectId,
        kind: EntryKind,
        key: &[u8],
    ) -> Result<Option<String>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(None);
        };
        let sql = "SELECT text FROM entry WHERE project = ?1 AND kind = ?2 AND key = ?3";
        self.one(sql, params![project, kind.code(), key], |row| row.get(0))
    }

    pub(super) fn ledger_entries(
        &self,
        project: &ProjectId,
        kind: EntryKind,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(Vec::new());
        };
        let sql = match (&range.to, range.backwards) {
            (Some(_), false) => {
                "SELECT key, text FROM entry WHERE project = ?1 AND kind = ?2 AND key >= ?3 \
                 AND key < ?4 ORDER BY key LIMIT ?5"
            }
            (Some(_), true) => {
                "SELECT key, text FROM entry WHERE project = ?1 AND kind = ?2 AND key >= ?3 \
                 AND key < ?4 ORDER BY key DESC LIMIT ?5"
            }
            (None, false) => {
                "SELECT key, text FROM entry WHERE project = ?1 AND kind = ?2 AND key >= ?3 \
                 AND ?4 IS NULL ORDER BY key LIMIT ?5"
            }
            (None, true) => {
                "SELECT key, text FROM entry WHERE project = ?1 AND kind = ?2 AND key >= ?3 \
                 AND ?4 IS NULL ORDER BY key DESC LIMIT ?5"
            }
        };
        let limit = limit_number(limit);
        self.many(sql, params![project, kind.code(), range.from, range.to, limit], |row| {
            Ok(Entry { key: row.get(0)?, text: row.get(1)? })
        })
    }

    pub(super) fn put_ledger_entry(
        &self,
        project: &ProjectId,
        kind: EntryKind,
        key: &[u8],
        text: &str,
    ) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "INSERT INTO entry (project, kind, key, text) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (project, kind, key) DO UPDATE SET text = excluded.text";
        self.execute(sql, params![project, kind.code(), key, text])?;
        Ok(())
    }

    pub(super) fn delete_ledger_entry(
        &self,
        project: &ProjectId,
        kind: EntryKind,
        key: &[u8],
    ) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "DELETE FROM entry WHERE project = ?1 AND kind = ?2 AND key = ?3";
        self.change_one("an entry", sql, params![project, kind.code(), key])
    }

    pub(super) fn piece(
        &self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
    ) -> Result<Option<Vec<u8>>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(None);
        };
        let sql = "SELECT bytes FROM piece WHERE project = ?1 AND source = ?2 AND nth = ?3";
        self.one(sql, params![project, source.as_bytes(), nth], |row| row.get(0))
    }

    pub(super) fn insert_piece(
        &self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
        bytes: &[u8],
    ) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "INSERT INTO piece (project, source, nth, bytes) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![project, source.as_bytes(), nth, bytes])?;
        Ok(())
    }

    pub(super) fn delete_pieces(&self, project: &ProjectId, source: &SourceId) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "DELETE FROM piece WHERE project = ?1 AND source = ?2";
        self.execute(sql, params![project, source.as_bytes()])?;
        Ok(())
    }
}

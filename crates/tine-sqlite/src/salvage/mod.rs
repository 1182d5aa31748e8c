//! Salvage: copies every row that can still be read from a damaged store into a new one.
//!
//! SQLite gives up on a page at the first inconsistency, and on a table at the first such page. So
//! the pages are read here, one by one: first down each table's tree, then, if a tree is broken,
//! every page that no tree leads to and that holds rows of the table's schema. The rows go into a
//! new store; its look-up tables are rebuilt from them.
//!
//! Invariants: no process has the damaged store open; it is only read; no row is invented, except
//! the name of a project that has lost its own; everything unreadable is reported.
//!
//! Whether the content of a row is intact is not checked here. The engine checks every hash and
//! every link and keeps what is consistent.
//!
//! SQLite's `.recover` gets less out of the same files and cannot be linked. Over 66 damaged copies
//! of a store of 48 conversations and 818 turns (flipped bits, zeroed and overwritten pages,
//! truncated files, lost headers, damaged logs), salvage recovered 50,296 turns and 2,817 whole
//! conversations, `.recover` (3.40.1) 43,561 and 2,468; salvage was better in 21 files and worse in
//! none. `.recover` misses rows whose root page or schema table is lost, and the rest of a damaged
//! log. It is not part of the SQLite amalgamation, and the `sqlite3` of Debian 12 cannot run it on
//! any file, because its library lacks `sqlite_dbpage`.

mod lookup_evidence;
mod pages;
mod row_format;

use crate::error::{StoreErr as _, translate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use self::pages::{BTreeKind, Pages};
use self::row_format::TableSchema;
use super::access_lock::{self, ExclusiveAccess};
use super::files::WAL_FILE;
use super::{DATABASE_FILE, OpenOptions, SqliteStore, connect, io, rows, schema, wal};
use tine_store::{DamagedRecord, Family, LostRecord, Result, StoreError};

/// Tables that are derived from others. They are not needed to read whole conversations in order.
const DERIVED_TABLES: [&str; 7] = [
    "indexed",
    "turn_id",
    "turn_hash",
    "operation_seq",
    "idempotency",
    "shared_body_holder",
    "record_index",
];

/// The table of formats 3 and 4 that held records and index keys. Its rows are read into a copy of
/// it, and the records among them are moved to the table `record`.
const CREATE_LEGACY_ENTRY: &str = "CREATE TABLE entry (project INTEGER NOT NULL, kind INTEGER NOT NULL, \
    key BLOB NOT NULL, text TEXT NOT NULL, PRIMARY KEY (project, kind, key)) STRICT, WITHOUT ROWID";

/// Tables whose rows are not referred to by number, so that a row can get a new one.
const RENUMBERABLE_TABLES: [&str; 2] = ["operation", "fresh"];

/// The result of [`salvage`].
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// The damage found in the files.
    pub problems: Vec<DamagedRecord>,
    /// Records that existed and could not be read.
    pub lost: Vec<LostRecord>,
    /// Rows that could be read.
    pub rows: u64,
}

/// Copies every row that can be read from the store in one folder into a new one in another.
pub fn salvage(from: &Path, to: &Path) -> Result<Salvaged> {
    if !from.join(DATABASE_FILE).exists() && !from.join(WAL_FILE).exists() {
        return Err(StoreError::Missing { path: from.to_owned() });
    }
    let mut locks = access_lock::open_locks(from)?;
    let guard = locks.as_mut().map(|(writer_lock, _)| writer_lock.acquire()).transpose()?;
    let exclusive = match (&locks, &guard) {
        (Some((_, store_lock)), Some(guard)) => store_lock.acquire_exclusive(guard, from)?,
        _ => ExclusiveAccess::without_locks(),
    };
    let mut salvaged = Salvaged::default();
    let (pages, stale) = open_pages(from, &mut salvaged, &exclusive)?;
    // Kept open while there is a connection to its database.
    let _copy = SqliteStore::open(to)?;
    let connection = connect(to, &OpenOptions::default(), true)?;
    // An interrupted copy is discarded.
    connection.pragma_update(None, "synchronous", "off").store_err()?;
    // Tables are read in any order, and a row may refer to a lost one.
    connection.pragma_update(None, "foreign_keys", false).store_err()?;
    connection.execute_batch("BEGIN").store_err()?;
    connection.execute_batch(CREATE_LEGACY_ENTRY).store_err()?;
    lookup_evidence::prepare(&connection)?;
    let broken = TableReader::new(pages, stale, &connection, &mut salvaged)?.read_all()?;
    finish(&connection, &mut salvaged)?;
    salvaged.lost = lookup_evidence::lost_records(&connection, &broken)?;
    connection.execute_batch("COMMIT").store_err()?;
    Ok(salvaged)
}

/// Opens the pages of a store, overlaid with those in its log. Also returns the stale pages, whose
/// newest image cannot be read.
fn open_pages(
    from: &Path,
    salvaged: &mut Salvaged,
    exclusive: &ExclusiveAccess<'_>,
) -> Result<(Pages, BTreeSet<u32>)> {
    let (database, log) = (from.join(DATABASE_FILE), from.join(WAL_FILE));
    let mut file = File::open(&database).map_err(|error| io("opening", &database, error))?;
    // The header is not trusted: the page size never changes.
    let page_bytes = u64::from(schema::PAGE_BYTES);
    let reading = |error| io("reading", &log, error);
    let mut size = 0;
    let mut overlay = None;
    let mut stale = BTreeSet::new();
    if let Some(mut wal) = wal::WalFile::open(&log, page_bytes, exclusive).map_err(reading)? {
        let last_commit = wal.last_commit().map_err(reading)?;
        let mut up_to = last_commit;
        if let Some(why) = wal.lost_commits(last_commit, &mut file).map_err(reading)? {
            salvaged.problems.push(DamagedRecord { record: WAL_FILE.to_owned(), why });
            up_to = u64::MAX;
        }
        let images = wal.images(up_to).map_err(reading)?;
        for (frame, page) in images.damaged {
            if images.pages.get(&page).is_none_or(|newest| *newest < frame) {
                stale.insert(page);
            }
            let why = format!("it does not fit its checksum; it is about page {page}");
            salvaged
                .problems
                .push(DamagedRecord { record: format!("frame {frame} of {WAL_FILE}"), why });
        }
        size = images.size;
        overlay = Some((wal, images.pages));
    }
    let pages = Pages::new(file, page_bytes, overlay, size);
    Ok((pages.map_err(|error| io("reading", &database, error))?, stale))
}

/// Reads rows from pages and inserts them into the new store.
struct TableReader<'s> {
    pages: Pages,
    /// Pages of which only an older image could be read.
    stale: BTreeSet<u32>,
    connection: &'s Connection,
    salvaged: &'s mut Salvaged,
    schemas: Vec<TableSchema>,
    seen: BTreeSet<u32>,
    /// Tables whose trees could not be read completely.
    broken: BTreeSet<usize>,
}

impl<'s> TableReader<'s> {
    fn new(
        pages: Pages,
        stale: BTreeSet<u32>,
        connection: &'s Connection,
        salvaged: &'s mut Salvaged,
    ) -> Result<TableReader<'s>> {
        let schemas = TableSchema::read_all(connection)?;
        let (seen, broken) = (BTreeSet::from([1]), BTreeSet::new());
        Ok(TableReader { pages, stale, connection, salvaged, schemas, seen, broken })
    }

    /// Reads everything; returns the tables whose trees could not be read completely.
    fn read_all(&mut self) -> Result<BTreeSet<String>> {
        self.seen.extend(self.pages.free_pages());
        let roots = self.roots();
        for at in 0..self.schemas.len() {
            let table = self.schemas[at].table.clone();
            match roots.get(&table) {
                Some((root, _)) => self.read_table(at, *root)?,
                // A format has either `entry` or `record`.
                None if table == "entry" && roots.contains_key("record") => {}
                None if table.starts_with("record") && roots.contains_key("entry") => {}
                None => {
                    self.problem(format!("table {table} of tine.db"), "its beginning is lost");
                    self.broken.insert(at);
                }
            }
        }
        let tables: BTreeSet<String> = self.schemas.iter().map(|it| it.table.clone()).collect();
        for (name, (root, tree)) in &roots {
            if !tables.contains(name) {
                self.visit_index(name, *root, *tree);
            }
        }
        if !self.broken.is_empty() {
            self.read_orphan_pages()?;
        }
        Ok(self.broken.iter().map(|at| self.schemas[*at].table.clone()).collect())
    }

    fn problem(&mut self, record: String, why: impl Into<String>) {
        self.salvaged.problems.push(DamagedRecord { record, why: why.into() });
    }

    /// Returns the root page of each table and index, as far as the schema table can be read.
    fn roots(&mut self) -> BTreeMap<String, (u32, BTreeKind)> {
        let mut roots = BTreeMap::new();
        let mut pending = vec![1];
        let mut seen = BTreeSet::new();
        while let Some(no) = pending.pop() {
            if !seen.insert(no) || no == 0 || no > self.pages.count() {
                continue;
            }
            let contents = self.pages.contents(no, BTreeKind::Table);
            for fault in contents.faults {
                self.problem(format!("page {no} of tine.db"), format!("{fault}; it lists tables"));
            }
            for (number, payload) in contents.cells {
                let entry = row_format::decode(&payload).unwrap_or_default();
                if let [Value::Text(kind), Value::Text(name), _, Value::Integer(root), ..] =
                    entry.as_slice()
                    && let Ok(root) = u32::try_from(*root)
                {
                    let tree = if kind == "index" { BTreeKind::Index } else { BTreeKind::Table };
                    roots.insert(name.clone(), (root, tree));
                } else {
                    self.problem(format!("entry {number} of tine.db's tables"), "it is unreadable");
                }
            }
            pending.extend(contents.children);
        }
        self.seen.extend(seen);
        roots
    }

    /// Reads a table down its tree.
    fn read_table(&mut self, at: usize, root: u32) -> Result<()> {
        let tree = if self.schemas[at].without_rowid { BTreeKind::Index } else { BTreeKind::Table };
        let mut pending = vec![root];
        while let Some(no) = pending.pop() {
            if no == 0 || no > self.pages.count() || !self.seen.insert(no) {
                let record = format!("table {} of tine.db", self.schemas[at].table);
                self.problem(record, format!("its tree leads to page {no}, which is not its own"));
                self.broken.insert(at);
                continue;
            }
            let contents = self.pages.contents(no, tree);
            // An older image is intact, but lacks links to pages that were added later.
            if !contents.faults.is_empty() || self.stale.contains(&no) {
                self.broken.insert(at);
            }
            let record = format!("page {no} of tine.db, table {}", self.schemas[at].table);
            for fault in contents.faults {
                self.problem(record.clone(), fault);
            }
            let (cells, mut matching) = (contents.cells.len(), 0);
            for (number, payload) in contents.cells {
                match self.row(at, number, &payload) {
                    Some(row) => {
                        matching += 1;
                        self.insert(at, row, &record)?;
                    }
                    None => {
                        self.broken.insert(at);
                        let why = match tree {
                            BTreeKind::Table => format!("row {number} cannot be read"),
                            BTreeKind::Index => "an entry cannot be read".to_owned(),
                        };
                        self.problem(record.clone(), why);
                    }
                }
            }
            if cells > 0 && matching == 0 {
                // The page belongs to another table, which may still reach it.
                self.seen.remove(&no);
            }
            pending.extend(contents.children);
        }
        Ok(())
    }

    /// Visits the pages of an index, so that they do not count as orphans.
    fn visit_index(&mut self, name: &str, root: u32, tree: BTreeKind) {
        let mut pending = vec![root];
        while let Some(no) = pending.pop() {
            if no == 0 || no > self.pages.count() || !self.seen.insert(no) {
                self.problem(
                    format!("index {name} of tine.db"),
                    format!("its tree leads to page {no}, which is not its own"),
                );
                continue;
            }
            let contents = self.pages.contents(no, tree);
            for fault in contents.faults {
                self.problem(format!("page {no} of tine.db, index {name}"), fault);
            }
            pending.extend(contents.children);
        }
    }

    /// Reads rows of broken tables from pages that no tree leads to.
    fn read_orphan_pages(&mut self) -> Result<()> {
        for no in 2..=self.pages.count() {
            if self.seen.contains(&no) {
                continue;
            }
            let tree = match self.pages.page(no).first() {
                Some(13) => BTreeKind::Table,
                Some(10 | 2) => BTreeKind::Index,
                _ => continue,
            };
            for (number, payload) in self.pages.contents(no, tree).cells {
                let without_rowid = tree == BTreeKind::Index;
                let owner = self.broken.iter().copied().find(|at| {
                    self.schemas[*at].without_rowid == without_rowid
                        && self.row(*at, number, &payload).is_some()
                });
                if let Some(at) = owner
                    && let Some(row) = self.row(at, number, &payload)
                {
                    let record = format!("page {no} of tine.db, table {}", self.schemas[at].table);
                    self.insert(at, row, &record)?;
                }
            }
        }
        Ok(())
    }

    fn row(&self, at: usize, rowid: i64, payload: &[u8]) -> Option<Vec<Value>> {
        self.schemas[at].row(rowid, row_format::decode(payload)?)
    }

    fn insert(&mut self, at: usize, mut row: Vec<Value>, record: &str) -> Result<()> {
        let schema = &self.schemas[at];
        if DERIVED_TABLES.contains(&schema.table.as_str()) {
            return lookup_evidence::record_entry(self.connection, &schema.table, &row);
        }
        let mut statement = self.connection.prepare_cached(&schema.insert()).store_err()?;
        let mut added = statement.execute(params_from_iter(&row));
        let taken = added.as_ref().is_err_and(is_constraint_violation);
        if let Some(number) = schema.rowid_column
            && taken
            && RENUMBERABLE_TABLES.contains(&schema.table.as_str())
        {
            row[number] = Value::Null;
            added = statement.execute(params_from_iter(&row));
        }
        drop(statement);
        match added {
            Ok(_) => self.salvaged.rows += 1,
            Err(error) if is_constraint_violation(&error) => {}
            Err(error) => return Err(translate(error)),
        }
        if taken {
            self.problem(record.to_owned(), "a row has the number or the key of another one");
        }
        Ok(())
    }
}

fn is_constraint_violation(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Moves pending operations to their table, and branch tips to where these moved them. Numbers that
/// are taken are replaced.
fn flush_operations(connection: &Connection) -> Result<()> {
    const COLUMNS: &str = "conversation, seq, kind, actor, at, detail, hash, undone, key, \
                           fingerprint, answer";
    // An operation has all of these columns.
    const WHOLE: &str = "conversation IS NOT NULL AND seq IS NOT NULL AND kind IS NOT NULL \
                         AND actor IS NOT NULL AND at IS NOT NULL AND detail IS NOT NULL \
                         AND hash IS NOT NULL AND undone IS NOT NULL \
                         AND NOT EXISTS (SELECT 1 FROM operation_seq AS existing \
                                         WHERE existing.conversation = fresh.conversation \
                                         AND existing.seq = fresh.seq)";
    connection
        .execute_batch(&format!(
            "CREATE TEMP TABLE pending_operation AS SELECT no, moves, {COLUMNS} FROM fresh WHERE {WHOLE};
         INSERT OR IGNORE INTO operation (no, {COLUMNS})
             SELECT no >> 10, {COLUMNS} FROM pending_operation ORDER BY no;
         INSERT OR IGNORE INTO operation_seq (conversation, seq, operation)
             SELECT conversation, seq, no FROM operation ORDER BY no;
         INSERT INTO operation ({COLUMNS}) SELECT {COLUMNS} FROM pending_operation AS fresh
             WHERE {WHOLE} ORDER BY no;",
        ))
        .store_err()?;
    let sql =
        "SELECT conversation, moves FROM pending_operation WHERE moves IS NOT NULL ORDER BY no";
    let mut statement = connection.prepare(sql).store_err()?;
    let mut found = statement.query([]).store_err()?;
    let mut branches = connection
        .prepare(
            "UPDATE branch SET tip = ?3, version = ?4 \
         WHERE conversation = ?1 AND id = ?2 AND version < ?4",
        )
        .store_err()?;
    while let Some(row) = found.next().store_err()? {
        let conversation: i64 = row.get(0).store_err()?;
        for to in rows::decode_moves(&row.get::<_, Vec<u8>>(1).store_err()?) {
            branches.execute(params![conversation, to.branch, to.tip, to.version]).store_err()?;
        }
    }
    Ok(())
}

/// Moves the records of an older store to the table `record`. Their index keys are derived again
/// when the engine copies them.
fn migrate_records(connection: &Connection) -> Result<()> {
    let families: Vec<String> = Family::all().map(|family| family.code().to_string()).collect();
    connection
        .execute_batch(&format!(
            "INSERT OR IGNORE INTO record SELECT project, kind, key, text FROM entry
                 WHERE kind IN ({});
             DROP TABLE entry;",
            families.join(", ")
        ))
        .store_err()
}

/// Fills the look-up tables that readers need, and gives every conversation a project.
fn finish(connection: &Connection, salvaged: &mut Salvaged) -> Result<()> {
    // Pending turns are found through the operation that lists them; turns in `turn` are not. So
    // the lists are not needed afterwards.
    connection
        .execute_batch(
            "INSERT OR IGNORE INTO turn SELECT place, id, hash, operation, depth, form, created_at,
             body, tool_call_id, metadata, origin FROM fresh
             WHERE place IS NOT NULL ORDER BY place;
         INSERT OR IGNORE INTO operation_seq (conversation, seq, operation)
             SELECT conversation, seq, no FROM operation ORDER BY no;",
        )
        .store_err()?;
    flush_operations(connection)?;
    connection
        .execute_batch(
            "DELETE FROM fresh;
         UPDATE operation SET turns = NULL;
         INSERT OR IGNORE INTO operation_seq (conversation, seq, operation)
             SELECT conversation, seq, no FROM operation ORDER BY no;
         UPDATE indexed SET through = (SELECT ifnull(max(no), 0) FROM operation);",
        )
        .store_err()?;
    migrate_records(connection)?;
    let mut statement = connection.prepare(
        "SELECT DISTINCT project FROM conversation WHERE project NOT IN (SELECT no FROM project)",
    ).store_err()?;
    let orphaned: Vec<i64> = statement
        .query_map([], |row| row.get(0))
        .store_err()?
        .collect::<rusqlite::Result<_>>()
        .store_err()?;
    for no in orphaned {
        let name = format!("recovered-{no}");
        let sql = "INSERT INTO project (no, id, created_at) VALUES (?1, ?2, 0)";
        connection.execute(sql, rusqlite::params![no, name]).store_err()?;
        let why = format!("its name is lost; its conversations are in the project `{name}`");
        salvaged.problems.push(DamagedRecord { record: format!("project {no}"), why });
    }
    Ok(())
}

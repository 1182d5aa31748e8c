//! What can still be read of a damaged store, as rows of a new one.
//!
//! SQLite gives up on a page at the first thing that does not fit, and on a table at the first
//! page. So the pages are read here, one by one: first down each table's tree, then, where a tree
//! is broken, every page that no tree leads to and that holds rows of its shape. The rows go into
//! a fresh store; look-up tables are made anew from them.
//!
//! Invariants: nobody has the damaged store open; it is only read; no row is made up, save the name of a project that
//! has lost its own; whatever could not be read is named.
//!
//! Whether a row says what it said before is not known here. The engine checks every hash and
//! every link and keeps what fits.
//!
//! This is written by hand because SQLite's `.recover` gets less out of the same files and cannot
//! be linked: over 66 damaged copies of a store of 48 conversations and 818 turns (flipped bits,
//! zeroed and overwritten pages, cut files, lost headers, damaged logs) salvage brought back 50,296
//! turns and 2,817 whole conversations, `.recover` (3.40.1) 43,561 and 2,468; it was better in 21
//! files and worse in none. `.recover` lacks the rows whose root page or table of tables is lost,
//! and what a damaged log still holds; it is not in the SQLite amalgamation, and the `sqlite3` of
//! Debian 12 fails at it on any file, since its library has no `sqlite_dbpage`.

mod pages;
mod record;
mod witness;

use crate::error::{StoreErr as _, translate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use self::pages::{Pages, Tree};
use self::record::Shape;
use super::files::LOG_FILE;
use super::users::{self, Alone};
use super::{DATABASE_FILE, OpenOptions, SqliteStore, connect, io, rows, schema, wal};
use tine_store::{DamagedRecord, Family, LostRecord, Result, StoreError};

/// Tables that are made from others. They are not needed to read whole conversations in order.
const MADE_FROM_OTHERS: [&str; 7] = [
    "indexed",
    "turn_id",
    "turn_hash",
    "operation_seq",
    "idempotency",
    "shared_body_holder",
    "record_index",
];

/// The table of formats 3 and 4 that held records and index keys. Its rows are read into a copy of
/// it, and the records among them moved to their present table.
const ENTRY: &str = "CREATE TABLE entry (project INTEGER NOT NULL, kind INTEGER NOT NULL, \
    key BLOB NOT NULL, text TEXT NOT NULL, PRIMARY KEY (project, kind, key)) STRICT, WITHOUT ROWID";

/// Tables whose rows are found by other means than their numbers, so that any will do.
const NUMBERED_AT_WILL: [&str; 2] = ["operation", "fresh"];

/// What became of a damaged store.
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// Everything that is wrong with the files.
    pub problems: Vec<DamagedRecord>,
    /// Records that were there and could not be read.
    pub lost: Vec<LostRecord>,
    /// Rows that could be read.
    pub rows: u64,
}

/// Copies every row that can be read from the store in one folder into a new one in another.
pub fn salvage(from: &Path, to: &Path) -> Result<Salvaged> {
    if !from.join(DATABASE_FILE).exists() && !from.join(LOG_FILE).exists() {
        return Err(StoreError::Missing { path: from.to_owned() });
    }
    let mut locks = users::locks(from)?;
    let pass = locks.as_mut().map(|(turnstile, _)| turnstile.enter()).transpose()?;
    let alone = match (&locks, &pass) {
        (Some((_, door)), Some(pass)) => door.enter_alone(pass, from)?,
        _ => Alone::without_locks(),
    };
    let mut salvaged = Salvaged::default();
    let (pages, outdated) = open(from, &mut salvaged, &alone)?;
    // In use as long as there is a connection to it.
    let _copy = SqliteStore::open(to)?;
    let connection = connect(to, &OpenOptions::default(), true)?;
    // The copy is thrown away if this is cut off.
    connection.pragma_update(None, "synchronous", "off").store_err()?;
    // Tables are read in no particular order, and a row may have outlived the one it refers to.
    connection.pragma_update(None, "foreign_keys", false).store_err()?;
    connection.execute_batch("BEGIN").store_err()?;
    connection.execute_batch(ENTRY).store_err()?;
    witness::prepare(&connection)?;
    let broken = Reading::new(pages, outdated, &connection, &mut salvaged)?.all()?;
    finish(&connection, &mut salvaged)?;
    salvaged.lost = witness::lost(&connection, &broken)?;
    connection.execute_batch("COMMIT").store_err()?;
    Ok(salvaged)
}

/// The pages of a store, with what its log holds over them; and those of which the newest image
/// cannot be read, so that an older one has to do.
fn open(from: &Path, salvaged: &mut Salvaged, alone: &Alone<'_>) -> Result<(Pages, BTreeSet<u32>)> {
    let (database, log) = (from.join(DATABASE_FILE), from.join(LOG_FILE));
    let mut file = File::open(&database).map_err(|error| io("opening", &database, error))?;
    // Whatever the header says: another size than ours is damage.
    let page_bytes = u64::from(schema::PAGE_BYTES);
    let reading = |error| io("reading", &log, error);
    let mut size = 0;
    let mut over = None;
    let mut outdated = BTreeSet::new();
    if let Some(mut found) = wal::Log::open(&log, page_bytes, alone).map_err(reading)? {
        let taken = found.taken().map_err(reading)?;
        let mut up_to = taken;
        if let Some(why) = found.passed_over(taken, &mut file).map_err(reading)? {
            salvaged.problems.push(DamagedRecord { record: LOG_FILE.to_owned(), why });
            up_to = u64::MAX;
        }
        let images = found.images(up_to).map_err(reading)?;
        for (frame, page) in images.damaged {
            if images.pages.get(&page).is_none_or(|newest| *newest < frame) {
                outdated.insert(page);
            }
            let why = format!("it does not fit its checksum; it is about page {page}");
            salvaged
                .problems
                .push(DamagedRecord { record: format!("frame {frame} of {LOG_FILE}"), why });
        }
        size = images.size;
        over = Some((found, images.pages));
    }
    let pages = Pages::new(file, page_bytes, over, size);
    Ok((pages.map_err(|error| io("reading", &database, error))?, outdated))
}

/// Rows on their way from pages to tables.
struct Reading<'s> {
    pages: Pages,
    /// Pages that are older than the rest.
    outdated: BTreeSet<u32>,
    connection: &'s Connection,
    salvaged: &'s mut Salvaged,
    shapes: Vec<Shape>,
    seen: BTreeSet<u32>,
    /// Tables whose trees could not be followed everywhere.
    broken: BTreeSet<usize>,
}

impl<'s> Reading<'s> {
    fn new(
        pages: Pages,
        outdated: BTreeSet<u32>,
        connection: &'s Connection,
        salvaged: &'s mut Salvaged,
    ) -> Result<Reading<'s>> {
        let shapes = Shape::all(connection)?;
        let (seen, broken) = (BTreeSet::from([1]), BTreeSet::new());
        Ok(Reading { pages, outdated, connection, salvaged, shapes, seen, broken })
    }

    /// Reads everything; the tables whose trees could not be followed everywhere.
    fn all(&mut self) -> Result<BTreeSet<String>> {
        self.seen.extend(self.pages.free());
        let roots = self.roots();
        for at in 0..self.shapes.len() {
            let table = self.shapes[at].table.clone();
            match roots.get(&table) {
                Some((root, _)) => self.table(at, *root)?,
                // Each is in the formats that do not have the other.
                None if table == "entry" && roots.contains_key("record") => {}
                None if table.starts_with("record") && roots.contains_key("entry") => {}
                None => {
                    self.problem(format!("table {table} of tine.db"), "its beginning is lost");
                    self.broken.insert(at);
                }
            }
        }
        let tables: BTreeSet<String> = self.shapes.iter().map(|it| it.table.clone()).collect();
        for (name, (root, tree)) in &roots {
            if !tables.contains(name) {
                self.index(name, *root, *tree);
            }
        }
        if !self.broken.is_empty() {
            self.strays()?;
        }
        Ok(self.broken.iter().map(|at| self.shapes[*at].table.clone()).collect())
    }

    fn problem(&mut self, record: String, why: impl Into<String>) {
        self.salvaged.problems.push(DamagedRecord { record, why: why.into() });
    }

    /// Where each table and index begins, as far as the table of tables can be read.
    fn roots(&mut self) -> BTreeMap<String, (u32, Tree)> {
        let mut roots = BTreeMap::new();
        let mut pending = vec![1];
        let mut seen = BTreeSet::new();
        while let Some(no) = pending.pop() {
            if !seen.insert(no) || no == 0 || no > self.pages.count() {
                continue;
            }
            let contents = self.pages.contents(no, Tree::Rows);
            for fault in contents.faults {
                self.problem(format!("page {no} of tine.db"), format!("{fault}; it lists tables"));
            }
            for (number, payload) in contents.cells {
                let entry = record::decode(&payload).unwrap_or_default();
                if let [Value::Text(kind), Value::Text(name), _, Value::Integer(root), ..] =
                    entry.as_slice()
                    && let Ok(root) = u32::try_from(*root)
                {
                    let tree = if kind == "index" { Tree::Keys } else { Tree::Rows };
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
    fn table(&mut self, at: usize, root: u32) -> Result<()> {
        let tree = if self.shapes[at].keyed { Tree::Keys } else { Tree::Rows };
        let mut pending = vec![root];
        while let Some(no) = pending.pop() {
            if no == 0 || no > self.pages.count() || !self.seen.insert(no) {
                let record = format!("table {} of tine.db", self.shapes[at].table);
                self.problem(record, format!("its tree leads to page {no}, which is not its own"));
                self.broken.insert(at);
                continue;
            }
            let contents = self.pages.contents(no, tree);
            // An older image is whole, and does not lead to what came after it.
            if !contents.faults.is_empty() || self.outdated.contains(&no) {
                self.broken.insert(at);
            }
            let record = format!("page {no} of tine.db, table {}", self.shapes[at].table);
            for fault in contents.faults {
                self.problem(record.clone(), fault);
            }
            let (cells, mut fitting) = (contents.cells.len(), 0);
            for (number, payload) in contents.cells {
                match self.row(at, number, &payload) {
                    Some(row) => {
                        fitting += 1;
                        self.insert(at, row, &record)?;
                    }
                    None => {
                        self.broken.insert(at);
                        let why = match tree {
                            Tree::Rows => format!("row {number} cannot be read"),
                            Tree::Keys => "an entry cannot be read".to_owned(),
                        };
                        self.problem(record.clone(), why);
                    }
                }
            }
            if cells > 0 && fitting == 0 {
                // Another table's page: whoever it belongs to shall find it.
                self.seen.remove(&no);
            }
            pending.extend(contents.children);
        }
        Ok(())
    }

    /// Follows an index, so that its pages are not taken for stray ones.
    fn index(&mut self, name: &str, root: u32, tree: Tree) {
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

    /// Takes the rows of broken tables from pages that nothing leads to.
    fn strays(&mut self) -> Result<()> {
        for no in 2..=self.pages.count() {
            if self.seen.contains(&no) {
                continue;
            }
            let tree = match self.pages.page(no).first() {
                Some(13) => Tree::Rows,
                Some(10 | 2) => Tree::Keys,
                _ => continue,
            };
            for (number, payload) in self.pages.contents(no, tree).cells {
                let keyed = tree == Tree::Keys;
                let owner = self.broken.iter().copied().find(|at| {
                    self.shapes[*at].keyed == keyed && self.row(*at, number, &payload).is_some()
                });
                if let Some(at) = owner
                    && let Some(row) = self.row(at, number, &payload)
                {
                    let record = format!("page {no} of tine.db, table {}", self.shapes[at].table);
                    self.insert(at, row, &record)?;
                }
            }
        }
        Ok(())
    }

    fn row(&self, at: usize, number: i64, payload: &[u8]) -> Option<Vec<Value>> {
        self.shapes[at].row(number, record::decode(payload)?)
    }

    fn insert(&mut self, at: usize, mut row: Vec<Value>, record: &str) -> Result<()> {
        let shape = &self.shapes[at];
        if MADE_FROM_OTHERS.contains(&shape.table.as_str()) {
            return witness::hear(self.connection, &shape.table, &row);
        }
        let mut statement = self.connection.prepare_cached(&shape.insert()).store_err()?;
        let mut added = statement.execute(params_from_iter(&row));
        let taken = added.as_ref().is_err_and(is_taken);
        if let Some(number) = shape.number
            && taken
            && NUMBERED_AT_WILL.contains(&shape.table.as_str())
        {
            row[number] = Value::Null;
            added = statement.execute(params_from_iter(&row));
        }
        drop(statement);
        match added {
            Ok(_) => self.salvaged.rows += 1,
            Err(error) if is_taken(&error) => {}
            Err(error) => return Err(translate(error)),
        }
        if taken {
            self.problem(record.to_owned(), "a row has the number or the key of another one");
        }
        Ok(())
    }
}

fn is_taken(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Puts fresh operations into their table, and branches where they have moved them. Numbers that
/// are taken are given anew.
fn settle_operations(connection: &Connection) -> Result<()> {
    const COLUMNS: &str = "conversation, seq, kind, actor, at, detail, hash, undone, key, \
                           fingerprint, answer";
    // What every operation has; a row that lacks it is none.
    const WHOLE: &str = "conversation IS NOT NULL AND seq IS NOT NULL AND kind IS NOT NULL \
                         AND actor IS NOT NULL AND at IS NOT NULL AND detail IS NOT NULL \
                         AND hash IS NOT NULL AND undone IS NOT NULL \
                         AND NOT EXISTS (SELECT 1 FROM operation_seq AS known \
                                         WHERE known.conversation = fresh.conversation \
                                         AND known.seq = fresh.seq)";
    connection
        .execute_batch(&format!(
            "CREATE TEMP TABLE arrival AS SELECT no, moves, {COLUMNS} FROM fresh WHERE {WHOLE};
         INSERT OR IGNORE INTO operation (no, {COLUMNS})
             SELECT no >> 10, {COLUMNS} FROM arrival ORDER BY no;
         INSERT OR IGNORE INTO operation_seq (conversation, seq, operation)
             SELECT conversation, seq, no FROM operation ORDER BY no;
         INSERT INTO operation ({COLUMNS}) SELECT {COLUMNS} FROM arrival AS fresh
             WHERE {WHOLE} ORDER BY no;",
        ))
        .store_err()?;
    let sql = "SELECT conversation, moves FROM arrival WHERE moves IS NOT NULL ORDER BY no";
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
        for to in rows::read_moves(&row.get::<_, Vec<u8>>(1).store_err()?) {
            branches.execute(params![conversation, to.branch, to.tip, to.version]).store_err()?;
        }
    }
    Ok(())
}

/// Moves the records of an older store to their table. Whatever reads the copy makes index keys
/// again with each record that it takes over.
fn settle_records(connection: &Connection) -> Result<()> {
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

/// Makes the look-up tables that a reader needs, and gives every conversation a project.
fn finish(connection: &Connection, salvaged: &mut Salvaged) -> Result<()> {
    // Fresh turns are found by what an operation lists, settled ones without: the turns that it
    // lists serve look-ups only, and those are complete here.
    connection
        .execute_batch(
            "INSERT OR IGNORE INTO turn SELECT place, id, hash, operation, depth, form, created_at,
             body, tool_call_id, metadata, origin FROM fresh
             WHERE place IS NOT NULL ORDER BY place;
         INSERT OR IGNORE INTO operation_seq (conversation, seq, operation)
             SELECT conversation, seq, no FROM operation ORDER BY no;",
        )
        .store_err()?;
    settle_operations(connection)?;
    connection
        .execute_batch(
            "DELETE FROM fresh;
         UPDATE operation SET turns = NULL;
         INSERT OR IGNORE INTO operation_seq (conversation, seq, operation)
             SELECT conversation, seq, no FROM operation ORDER BY no;
         UPDATE indexed SET through = (SELECT ifnull(max(no), 0) FROM operation);",
        )
        .store_err()?;
    settle_records(connection)?;
    let mut statement = connection.prepare(
        "SELECT DISTINCT project FROM conversation WHERE project NOT IN (SELECT no FROM project)",
    ).store_err()?;
    let homeless: Vec<i64> = statement
        .query_map([], |row| row.get(0))
        .store_err()?
        .collect::<rusqlite::Result<_>>()
        .store_err()?;
    for no in homeless {
        let name = format!("recovered-{no}");
        let sql = "INSERT INTO project (no, id, created_at) VALUES (?1, ?2, 0)";
        connection.execute(sql, rusqlite::params![no, name]).store_err()?;
        let why = format!("its name is lost; its conversations are in the project `{name}`");
        salvaged.problems.push(DamagedRecord { record: format!("project {no}"), why });
    }
    Ok(())
}

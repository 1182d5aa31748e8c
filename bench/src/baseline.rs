//! The baseline: the same SQLite with the same settings, one table, one key, one row per append.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::Error;
use crate::workload::message;

pub(crate) struct Bare {
    connection: Connection,
}

impl Bare {
    pub(crate) fn open(file: &Path) -> Result<Self, Error> {
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "page_size", 16384)?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(
            "CREATE TABLE turn (place INTEGER PRIMARY KEY, id BLOB, hash BLOB, body TEXT) STRICT",
        )?;
        Ok(Bare { connection })
    }

    /// The same turns with the look-ups that Tine keeps: by id, by hash and by operation.
    pub(crate) fn insert_batches(&self, turns: usize) -> Result<(), Error> {
        self.connection.execute_batch(
            "CREATE TABLE turn_id (id BLOB PRIMARY KEY, place INTEGER) STRICT, WITHOUT ROWID;
             CREATE TABLE turn_hash (prefix INTEGER, place INTEGER, PRIMARY KEY (prefix, place))
                 STRICT, WITHOUT ROWID;",
        )?;
        for from in (0..turns).step_by(1_000) {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            for number in from..turns.min(from + 1_000) {
                let (id, place) = ((number as u128).to_be_bytes(), number as i64);
                let prefix = place.wrapping_mul(-7_046_029_254_386_353_131);
                self.insert(number)?;
                let sql = "INSERT INTO turn_id (id, place) VALUES (?1, ?2)";
                self.connection.prepare_cached(sql)?.execute(params![id, place])?;
                let sql = "INSERT INTO turn_hash (prefix, place) VALUES (?1, ?2)";
                self.connection.prepare_cached(sql)?.execute([prefix, place])?;
            }
            self.connection.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    pub(crate) fn insert(&self, number: usize) -> Result<(), Error> {
        let message = message(number);
        let body = message.body.to_blocks_string();
        let sql = "INSERT INTO turn (id, hash, body) VALUES (?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute(params![[0_u8; 16], [1_u8; 32], body])?;
        Ok(())
    }
}

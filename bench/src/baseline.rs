//! The floor: the same SQLite with the same settings, one table, one key, one row an append.

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
        connection.pragma_update(None, "page_size", 8192)?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(
            "CREATE TABLE turn (place INTEGER PRIMARY KEY, id BLOB, hash BLOB, body TEXT) STRICT",
        )?;
        Ok(Bare { connection })
    }

    pub(crate) fn insert(&self, number: usize) -> Result<(), Error> {
        let message = message(number);
        let body = message.body.to_blocks_string();
        let sql = "INSERT INTO turn (id, hash, body) VALUES (?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute(params![[0_u8; 16], [1_u8; 32], body])?;
        Ok(())
    }
}

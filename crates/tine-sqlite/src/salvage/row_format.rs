//! SQLite's record format, and matching records against table schemas.

use crate::error::StoreErr as _;
use rusqlite::Connection;
use rusqlite::types::Value;

use tine_store::Result;

/// Reads a varint; returns the number and its length.
pub(super) fn varint(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value: u64 = 0;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        if at == 8 {
            value = value << 8 | u64::from(*byte);
            return Some((value.cast_signed(), 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value.cast_signed(), at + 1));
        }
    }
    None
}

/// Decodes the values of a record; `None` if the bytes are not exactly one valid record.
pub(super) fn decode(payload: &[u8]) -> Option<Vec<Value>> {
    let (header, mut at) = varint(payload)?;
    let header = usize::try_from(header).ok()?;
    let mut body = payload.get(header..)?;
    let mut values = Vec::new();
    while at < header {
        let (serial, length) = varint(payload.get(at..header)?)?;
        at += length;
        values.push(value(serial, &mut body)?);
    }
    (at == header && body.is_empty()).then_some(values)
}

fn value(serial: i64, body: &mut &[u8]) -> Option<Value> {
    let bytes = match serial {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(serial).ok()?,
        5 => 6,
        6 | 7 => 8,
        12.. => usize::try_from((serial - 12) / 2).ok()?,
        _ => return None,
    };
    let (own, rest) = body.split_at_checked(bytes)?;
    *body = rest;
    Some(match serial {
        0 => Value::Null,
        1..=6 => {
            let negative = own.first().is_some_and(|byte| byte & 0x80 != 0);
            let start: i64 = if negative { -1 } else { 0 };
            Value::Integer(own.iter().fold(start, |number, byte| number << 8 | i64::from(*byte)))
        }
        7 => {
            let mut number = [0; 8];
            number.copy_from_slice(own);
            Value::Real(f64::from_be_bytes(number))
        }
        8 | 9 => Value::Integer(serial - 8),
        _ if serial % 2 == 0 => Value::Blob(own.to_vec()),
        _ => Value::Text(std::str::from_utf8(own).ok()?.to_owned()),
    })
}

/// The number of columns of the table `fresh` in format 1; they are still its first columns.
const FRESH_IN_FORMAT_1: usize = 12;

/// A column as declared.
#[derive(Debug)]
struct ColumnSchema {
    name: String,
    declared: String,
    required: bool,
}

#[derive(Debug)]
pub(super) struct TableSchema {
    pub(super) table: String,
    /// Columns in the order of the record.
    columns: Vec<ColumnSchema>,
    /// The column that aliases the row id and is stored as NULL in the record.
    pub(super) rowid_column: Option<usize>,
    /// Whether the table is declared WITHOUT ROWID.
    pub(super) without_rowid: bool,
}

impl TableSchema {
    pub(super) fn read_all(connection: &Connection) -> Result<Vec<TableSchema>> {
        let mut statement = connection
            .prepare(
                "SELECT name, wr FROM pragma_table_list \
             WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
            )
            .store_err()?;
        let tables: Vec<(String, bool)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .store_err()?
            .collect::<rusqlite::Result<_>>()
            .store_err()?;
        tables
            .into_iter()
            .map(|(table, without_rowid)| TableSchema::read(connection, table, without_rowid))
            .collect()
    }

    fn read(connection: &Connection, table: String, without_rowid: bool) -> Result<TableSchema> {
        let mut statement = connection
            .prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)")
            .store_err()?;
        let mut columns: Vec<(i64, ColumnSchema)> = statement
            .query_map([&table], |row| {
                let (name, declared, required) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((row.get(3)?, ColumnSchema { name, declared, required }))
            })
            .store_err()?
            .collect::<rusqlite::Result<_>>()
            .store_err()?;
        let mut rowid_column = None;
        if without_rowid {
            // The key columns come first, then the others as declared.
            columns.sort_by_key(|(key, _)| if *key == 0 { i64::MAX } else { *key });
        } else {
            rowid_column =
                columns.iter().position(|(key, it)| *key == 1 && it.declared == "INTEGER");
        }
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok(TableSchema { table, columns, rowid_column, without_rowid })
    }

    /// Converts a record into a row, if it matches the schema.
    pub(super) fn row(&self, rowid: i64, mut values: Vec<Value>) -> Option<Vec<Value>> {
        if self.table == "fresh" && values.len() == FRESH_IN_FORMAT_1 {
            values.resize(self.columns.len(), Value::Null);
        }
        if values.len() != self.columns.len() {
            return None;
        }
        if let Some(at) = self.rowid_column {
            if values[at] != Value::Null {
                return None;
            }
            values[at] = Value::Integer(rowid);
        }
        let matches = self.columns.iter().zip(&values).all(|(column, value)| match value {
            Value::Null => !column.required,
            Value::Integer(_) => matches!(column.declared.as_str(), "INTEGER" | "ANY"),
            Value::Real(_) => matches!(column.declared.as_str(), "REAL" | "ANY"),
            Value::Text(_) => matches!(column.declared.as_str(), "TEXT" | "ANY"),
            Value::Blob(_) => matches!(column.declared.as_str(), "BLOB" | "ANY"),
        });
        matches.then_some(values)
    }

    /// Returns the statement that inserts a row.
    pub(super) fn insert(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let parameters = vec!["?"; names.len()].join(", ");
        format!("INSERT INTO {} ({}) VALUES ({parameters})", self.table, names.join(", "))
    }
}

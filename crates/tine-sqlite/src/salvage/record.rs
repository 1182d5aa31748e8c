//! Rows as SQLite stores them, and whether they are rows of a table.

use crate::error::StoreErr as _;
use rusqlite::Connection;
use rusqlite::types::Value;

use tine_store::Result;

/// Reads a number of one to nine bytes; the number and its length.
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

/// The values of a record; `None` if the bytes are not one record, or its text is not UTF-8.
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

/// Columns of a fresh row in a store of format 1: those of a turn, which are still the first.
const FRESH_IN_FORMAT_1: usize = 12;

/// One column, as its table declares it.
#[derive(Debug)]
struct Column {
    name: String,
    declared: String,
    required: bool,
}

/// A table of the store and what its rows look like.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) table: String,
    /// Columns in the order in which a record holds them.
    columns: Vec<Column>,
    /// The column that is the row's own number and is not in the record.
    pub(super) number: Option<usize>,
    /// Whether rows are entries of a tree of keys, without a number.
    pub(super) keyed: bool,
}

impl Shape {
    /// The shapes of all tables of a database.
    pub(super) fn all(connection: &Connection) -> Result<Vec<Shape>> {
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
        tables.into_iter().map(|(table, keyed)| Shape::of(connection, table, keyed)).collect()
    }

    fn of(connection: &Connection, table: String, keyed: bool) -> Result<Shape> {
        let mut statement = connection
            .prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)")
            .store_err()?;
        let mut columns: Vec<(i64, Column)> = statement
            .query_map([&table], |row| {
                let (name, declared, required) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((row.get(3)?, Column { name, declared, required }))
            })
            .store_err()?
            .collect::<rusqlite::Result<_>>()
            .store_err()?;
        let mut number = None;
        if keyed {
            // The key comes first, then everything else as declared.
            columns.sort_by_key(|(key, _)| if *key == 0 { i64::MAX } else { *key });
        } else {
            number = columns.iter().position(|(key, it)| *key == 1 && it.declared == "INTEGER");
        }
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok(Shape { table, columns, number, keyed })
    }

    /// A row of this table from a record, if it can be one.
    pub(super) fn row(&self, number: i64, mut values: Vec<Value>) -> Option<Vec<Value>> {
        if self.table == "fresh" && values.len() == FRESH_IN_FORMAT_1 {
            values.resize(self.columns.len(), Value::Null);
        }
        if values.len() != self.columns.len() {
            return None;
        }
        if let Some(at) = self.number {
            if values[at] != Value::Null {
                return None;
            }
            values[at] = Value::Integer(number);
        }
        let fits = self.columns.iter().zip(&values).all(|(column, value)| match value {
            Value::Null => !column.required,
            Value::Integer(_) => matches!(column.declared.as_str(), "INTEGER" | "ANY"),
            Value::Real(_) => matches!(column.declared.as_str(), "REAL" | "ANY"),
            Value::Text(_) => matches!(column.declared.as_str(), "TEXT" | "ANY"),
            Value::Blob(_) => matches!(column.declared.as_str(), "BLOB" | "ANY"),
        });
        fits.then_some(values)
    }

    /// The statement that adds a row.
    pub(super) fn insert(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let places = vec!["?"; names.len()].join(", ");
        format!("INSERT INTO {} ({}) VALUES ({places})", self.table, names.join(", "))
    }
}

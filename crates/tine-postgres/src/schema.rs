//! The tables and their migrations.
//!
//! A migration is a file in `schema`. Migrations run under a lock on the table `format`, all in one
//! transaction: a concurrent process finds the work done, and an interrupted one leaves the older
//! format intact. Afterwards the tables are analyzed for the query planner.

use std::path::PathBuf;
use std::time::Duration;

use tine_store::{OpenMode, Result, StoreError};

use crate::address::PostgresAddress;
use crate::connection::{PgConnection, SqlCommand, values};
use crate::failure::{DatabaseFailure, DatabaseResult};

/// The migrations; their number is the newest format.
const MIGRATIONS: [&str; 3] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
];

/// How long a migration may take.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(3_600);

/// How long a query may take.
const QUERY_DEADLINE: Duration = Duration::from_secs(10);

/// A migration of a store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The present format; `None` if there is no store yet.
    pub from: Option<i32>,
    /// The format of this release.
    pub to: i32,
}

fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

fn address_path(address: &PostgresAddress) -> PathBuf {
    PathBuf::from(address.to_string())
}

/// Returns the present format and the one of this release.
pub(crate) fn pending_migration(
    connection: &mut PgConnection,
    address: &PostgresAddress,
) -> Result<Migration> {
    let mut from = format(connection, address)?;
    if from.is_none() && has_tables(connection, address)? {
        // Another process may have created the tables since the first check.
        from = format(connection, address)?;
        if from.is_none() {
            let why = format!("its schema `{}` holds other tables", address.schema());
            return Err(StoreError::NotAStore { path: address_path(address), why });
        }
    }
    if let Some(found) = from.filter(|found| *found > newest()) {
        let (found, known) = (i64::from(found), i64::from(newest()));
        return Err(StoreError::NewerFormat { path: address_path(address), found, known });
    }
    Ok(Migration { from, to: newest() })
}

/// Creates the tables, or migrates them to the newest format.
pub(crate) fn prepare(
    connection: &mut PgConnection,
    address: &PostgresAddress,
    mode: OpenMode,
) -> Result<()> {
    loop {
        let found = pending_migration(connection, address)?;
        if found.from == Some(found.to) {
            return Ok(());
        }
        if found.from.is_none() && mode == OpenMode::Existing {
            return Err(StoreError::Missing { path: address_path(address) });
        }
        match migrate(connection, address) {
            Ok(()) => {}
            // Another server creates the same tables at the same time.
            Err(DatabaseFailure::Conflict(_)) => {
                connection.execute_script(QUERY_DEADLINE, "ROLLBACK")?;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
}

fn format(connection: &mut PgConnection, address: &PostgresAddress) -> DatabaseResult<Option<i32>> {
    if !exists(connection, address, "format")? {
        return Ok(None);
    }
    let rows = connection
        .exchange(QUERY_DEADLINE, &[SqlCommand::new("SELECT number FROM format", vec![])])?;
    Ok(rows.first().map(|row| row.get(0)))
}

fn exists(
    connection: &mut PgConnection,
    address: &PostgresAddress,
    table: &'static str,
) -> DatabaseResult<bool> {
    let sql = "SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = $2";
    let command = SqlCommand::new(sql, values![address.schema().to_owned(), table]);
    Ok(!connection.exchange(QUERY_DEADLINE, &[command])?.is_empty())
}

fn has_tables(connection: &mut PgConnection, address: &PostgresAddress) -> DatabaseResult<bool> {
    let sql = "SELECT FROM pg_tables WHERE schemaname = $1 AND tablename <> 'format' LIMIT 1";
    let command = SqlCommand::new(sql, values![address.schema().to_owned()]);
    Ok(!connection.exchange(QUERY_DEADLINE, &[command])?.is_empty())
}

fn migrate(connection: &mut PgConnection, address: &PostgresAddress) -> DatabaseResult<()> {
    let schema = address.schema();
    connection.execute_script(
        MIGRATION_DEADLINE,
        &format!(
            "BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}; \
             CREATE TABLE IF NOT EXISTS format (number int4 NOT NULL); \
             LOCK TABLE format IN ACCESS EXCLUSIVE MODE"
        ),
    )?;
    let found = format(connection, address)?.unwrap_or(0);
    // Another process was faster, perhaps a newer release: the caller checks again.
    if found >= newest() {
        return connection.execute_script(MIGRATION_DEADLINE, "ROLLBACK");
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        for statement in statements_of(migration, address.partitions()) {
            connection.execute_script(MIGRATION_DEADLINE, &statement)?;
        }
    }
    connection.execute_script(
        MIGRATION_DEADLINE,
        &format!("DELETE FROM format; INSERT INTO format VALUES ({}); COMMIT", newest()),
    )?;
    connection.execute_script(MIGRATION_DEADLINE, "ANALYZE")
}

/// Returns the statements of a migration, with partitioned tables or without. The partitions of a
/// table come right after it, so that the rest of the migration can fill it.
fn statements_of(migration: &str, partitions: u32) -> Vec<String> {
    const MARK: &str = ") BY PROJECT;";
    if partitions == 0 {
        return vec![migration.replace(MARK, ");")];
    }
    let mut statements = Vec::new();
    let (mut statement, mut table) = (String::new(), "");
    for line in migration.lines() {
        if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
            table = rest.trim_end_matches(" (");
        }
        if line != MARK {
            statement.push_str(line);
            statement.push('\n');
            continue;
        }
        statement.push_str(") PARTITION BY HASH (project);");
        statements.push(std::mem::take(&mut statement));
        statements.extend((0..partitions).map(|nth| {
            format!(
                "CREATE TABLE {table}_{nth} PARTITION OF {table} \
                 FOR VALUES WITH (MODULUS {partitions}, REMAINDER {nth})"
            )
        }));
    }
    statements.push(statement);
    statements
}

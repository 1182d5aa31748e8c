//! The tables, and the way from one format to the next.
//!
//! A step is a file of `schema`. Steps are taken under a lock on the table that says which format
//! there is, all in one transaction: whoever comes second finds the work done, and whoever is
//! interrupted leaves the older format whole. Afterwards the planner gets to know the tables.

use std::path::PathBuf;
use std::time::Duration;

use tine_store::{OpenMode, Result, StoreError};

use crate::address::Address;
use crate::failure::Failure;
use crate::link::{Command, Link, values};

/// The newest format, and the steps that lead to it.
const STEPS: [&str; 3] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
];

/// How long a step may take.
const STEP_DEADLINE: Duration = Duration::from_secs(3_600);

/// How long a look may take.
const LOOK_DEADLINE: Duration = Duration::from_secs(10);

/// What opening a store would change, or has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The format that is there; `None` where there is no store yet.
    pub from: Option<i32>,
    /// The format that this release works with.
    pub to: i32,
}

fn newest() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

fn place(address: &Address) -> PathBuf {
    PathBuf::from(address.to_string())
}

/// Which format is there, and which there should be.
pub(crate) fn look(link: &mut Link, address: &Address) -> Result<Migration> {
    let told = |failure: Failure| failure.told();
    let mut from = format(link, address).map_err(told)?;
    if from.is_none() && has_tables(link, address).map_err(told)? {
        // Somebody may have made all of them since the first look.
        from = format(link, address).map_err(told)?;
        if from.is_none() {
            let why = format!("its schema `{}` holds other tables", address.schema());
            return Err(StoreError::NotAStore { path: place(address), why });
        }
    }
    if let Some(found) = from.filter(|found| *found > newest()) {
        let (found, known) = (i64::from(found), i64::from(newest()));
        return Err(StoreError::NewerFormat { path: place(address), found, known });
    }
    Ok(Migration { from, to: newest() })
}

/// Makes sure that the tables are there, in the newest format.
pub(crate) fn prepare(link: &mut Link, address: &Address, mode: OpenMode) -> Result<()> {
    loop {
        let found = look(link, address)?;
        if found.from == Some(found.to) {
            return Ok(());
        }
        if found.from.is_none() && mode == OpenMode::Existing {
            return Err(StoreError::Missing { path: place(address) });
        }
        match migrate(link, address) {
            Ok(()) => {}
            // Another server makes the same tables at the same time.
            Err(Failure::Conflict(_)) => {
                link.batch(LOOK_DEADLINE, "ROLLBACK").map_err(|failure| failure.told())?;
            }
            Err(failure) => return Err(failure.told()),
        }
    }
}

fn format(link: &mut Link, address: &Address) -> std::result::Result<Option<i32>, Failure> {
    if !exists(link, address, "format")? {
        return Ok(None);
    }
    let rows =
        link.exchange(LOOK_DEADLINE, &[Command::new("SELECT number FROM format", vec![])])?;
    Ok(rows.first().map(|row| row.get(0)))
}

fn exists(
    link: &mut Link,
    address: &Address,
    table: &'static str,
) -> std::result::Result<bool, Failure> {
    let sql = "SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = $2";
    let command = Command::new(sql, values![address.schema().to_owned(), table]);
    Ok(!link.exchange(LOOK_DEADLINE, &[command])?.is_empty())
}

fn has_tables(link: &mut Link, address: &Address) -> std::result::Result<bool, Failure> {
    let sql = "SELECT FROM pg_tables WHERE schemaname = $1 AND tablename <> 'format' LIMIT 1";
    let command = Command::new(sql, values![address.schema().to_owned()]);
    Ok(!link.exchange(LOOK_DEADLINE, &[command])?.is_empty())
}

fn migrate(link: &mut Link, address: &Address) -> std::result::Result<(), Failure> {
    let schema = address.schema();
    link.batch(
        STEP_DEADLINE,
        &format!(
            "BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}; \
             CREATE TABLE IF NOT EXISTS format (number int4 NOT NULL); \
             LOCK TABLE format IN ACCESS EXCLUSIVE MODE"
        ),
    )?;
    let found = format(link, address)?.unwrap_or(0);
    // Somebody else was quicker, perhaps a newer program: whoever asked looks again.
    if found >= newest() {
        return link.batch(STEP_DEADLINE, "ROLLBACK");
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        for statement in spelled(step, address.partitions()) {
            link.batch(STEP_DEADLINE, &statement)?;
        }
    }
    link.batch(
        STEP_DEADLINE,
        &format!("DELETE FROM format; INSERT INTO format VALUES ({}); COMMIT", newest()),
    )?;
    link.batch(STEP_DEADLINE, "ANALYZE")
}

/// Spells a step with its tables partitioned or not. The partitions of a table come right after it,
/// so that the rest of the step can fill it.
fn spelled(step: &str, partitions: u32) -> Vec<String> {
    const MARK: &str = ") BY PROJECT;";
    if partitions == 0 {
        return vec![step.replace(MARK, ");")];
    }
    let mut statements = Vec::new();
    let (mut statement, mut table) = (String::new(), "");
    for line in step.lines() {
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

//! Backups into a folder, and their replacement by newer ones.
//!
//! Invariants:
//!
//! - Only a folder that an earlier backup filled is replaced, and only if its store has had no
//!   operation since: the marker file holds the position of the feed.
//! - The new copy is complete before the old one is replaced, in one rename.

use std::fs;
use std::io;
use std::path::Path;

use tine_core::ErrorKind;
use tine_engine::Engine;
use tine_sqlite::{DATABASE_FILE, OpenOptions, SqliteStore};
use tine_store::OpenMode;

use crate::command_error::{CommandError, Result};

/// Marks the folder of a backup, and holds the feed positions that its store may have.
const MARKER_FILE: &str = "tine-backup.txt";

const MARKER_TEXT: &str =
    "`tine store backup` wrote this copy and may replace it. Feed positions:\n";

/// Copies the store to a new or empty folder, or over an earlier backup.
pub(crate) fn backup(engine: &Engine, folder: &Path) -> Result<()> {
    let failed = |error: io::Error| {
        CommandError::refused(ErrorKind::Internal, format!("{}: {error}", folder.display()))
    };
    if !folder.join(DATABASE_FILE).exists() {
        engine.store().backup(folder)?;
        let end = feed_end(folder)?;
        return write_marker(folder, &[end]).map_err(failed);
    }
    let old = check_unchanged(folder)?;
    // Beside the folder, so that the copy can be renamed into it.
    let folder = folder.canonicalize().map_err(failed)?;
    let parent = folder.parent().unwrap_or(&folder);
    let fresh = tempfile::Builder::new().prefix(".tine-backup-").tempdir_in(parent);
    let fresh = fresh.map_err(failed)?;
    engine.store().backup(fresh.path())?;
    let new = feed_end(fresh.path())?;
    if folder.join(format!("{DATABASE_FILE}-wal")).exists() {
        let why = format!("the backup {} is in use; try again later", folder.display());
        return Err(CommandError::refused(ErrorKind::Busy, why));
    }
    // Until the rename is certain the folder may hold either copy.
    write_marker(&folder, &[old, new]).map_err(failed)?;
    fs::rename(fresh.path().join(DATABASE_FILE), folder.join(DATABASE_FILE)).map_err(failed)?;
    write_marker(&folder, &[new]).map_err(failed)
}

/// Returns the feed position of an earlier backup, or an error if it was changed since.
fn check_unchanged(folder: &Path) -> Result<u64> {
    let protected = |what: &str| {
        let why = format!("{} {what}; name another folder", folder.display());
        Err(CommandError::refused(ErrorKind::Protected, why))
    };
    let Ok(marker) = fs::read_to_string(folder.join(MARKER_FILE)) else {
        return protected("holds a store that is not a backup");
    };
    let end = feed_end(folder)?;
    if !marker.lines().any(|line| line.parse() == Ok(end)) {
        return protected("holds a backup that was changed since it was made");
    }
    Ok(end)
}

/// Returns the end of the feed of the store in a folder, and closes the store again.
fn feed_end(folder: &Path) -> Result<u64> {
    let options = OpenOptions { mode: OpenMode::Existing, vfs: None };
    Ok(Engine::new(SqliteStore::open_with(folder, options)?).feed_end()?.0)
}

fn write_marker(folder: &Path, ends: &[u64]) -> io::Result<()> {
    let ends: String = ends.iter().map(|end| format!("{end}\n")).collect();
    fs::write(folder.join(MARKER_FILE), format!("{MARKER_TEXT}{ends}"))
}

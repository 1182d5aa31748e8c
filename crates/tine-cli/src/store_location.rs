//! Locates and opens the store that the arguments name. No other module knows every kind of store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tine_core::ErrorKind;
use tine_postgres::{PostgresAddress, PostgresStore};
use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{OpenMode, Store};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::user_dirs;

/// The location of a store.
#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A PostgreSQL database.
    Database(PostgresAddress),
}

impl StoreLocation {
    /// Returns the store that the arguments name, or the user's default store.
    pub(crate) fn from_globals(globals: &Globals) -> Result<Self> {
        match globals.named_store() {
            Some(named) => StoreLocation::parse(&named),
            None => Ok(StoreLocation::Folder(user_dirs::user_store()?)),
        }
    }

    /// Parses a path or a database address.
    pub(crate) fn parse(name: &Path) -> Result<Self> {
        if let Some(text) = name.to_str().filter(|text| PostgresAddress::is_postgres_url(text)) {
            return Ok(StoreLocation::Database(PostgresAddress::parse(text)?));
        }
        if name.as_os_str().is_empty() {
            return Err(CommandError::invalid("the store's path is empty; give a folder"));
        }
        if looks_like_address(name) {
            let why = format!(
                "expected a folder or a postgres:// URL, got `{0}`; use --server for servers, and ./{0} \
                 for a folder of that name",
                name.display()
            );
            return Err(CommandError::invalid(why));
        }
        Ok(StoreLocation::Folder(name.to_owned()))
    }

    /// Returns whether both name the same store.
    pub(crate) fn is_same_as(&self, other: &StoreLocation) -> bool {
        match (self, other) {
            (StoreLocation::Folder(a), StoreLocation::Folder(b)) => {
                a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
            }
            (StoreLocation::Database(a), StoreLocation::Database(b)) => {
                a.to_string() == b.to_string()
            }
            _ => false,
        }
    }

    pub(crate) fn open(&self, mode: OpenMode) -> Result<Arc<dyn Store>> {
        Ok(match self {
            StoreLocation::Folder(folder) => {
                let options = OpenOptions { mode, vfs: None };
                Arc::new(SqliteStore::open_with(folder, options)?)
            }
            StoreLocation::Database(address) => Arc::new(PostgresStore::open(address, mode)?),
        })
    }

    /// Returns the path of the file of server tokens.
    pub(crate) fn token_file(&self) -> Result<PathBuf> {
        self.companion_file("tokens.json")
    }

    /// Returns the path of a file that belongs to the store: in its folder or, for a database, in
    /// the settings folder of the user who runs the server.
    pub(crate) fn companion_file(&self, name: &str) -> Result<PathBuf> {
        let folder = match self {
            StoreLocation::Folder(folder) => folder.clone(),
            StoreLocation::Database(_) => user_dirs::config_folder().ok_or_else(|| {
                let why = format!(
                    "the home folder is unknown; say where {name} is with \
                                   XDG_CONFIG_HOME"
                );
                CommandError::invalid(why)
            })?,
        };
        Ok(folder.join(name))
    }

    /// Returns the folder, for commands that work on files.
    pub(crate) fn into_folder(self) -> Result<PathBuf> {
        match self {
            StoreLocation::Folder(folder) => Ok(folder),
            StoreLocation::Database(_) => Err(CommandError::refused(
                ErrorKind::Unsupported,
                "this command needs a store in a folder, not a database",
            )),
        }
    }
}

/// Never shows a password.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Folder(folder) => folder.display().fmt(f),
            StoreLocation::Database(address) => address.fmt(f),
        }
    }
}

/// Returns whether a path that does not exist looks like a remote address. Creating a folder with
/// that name would keep data here that the user means to send elsewhere.
fn looks_like_address(name: &Path) -> bool {
    let first = name.components().next().map(|first| first.as_os_str().to_string_lossy());
    first.is_some_and(|first| first.contains(':')) && !name.exists()
}

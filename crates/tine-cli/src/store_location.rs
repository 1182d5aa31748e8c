//! Which store the arguments name, and opening it: the one place that knows all sorts of stores.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tine_core::Kind;
use tine_postgres::{PostgresAddress, PostgresStore};
use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{OpenMode, Store};

use crate::arguments::Globals;
use crate::failure::{Failure, Result};
use crate::user_dirs;

/// Where a store is.
#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A database.
    Database(PostgresAddress),
}

impl StoreLocation {
    /// The store that the arguments name, else the user's own.
    pub(crate) fn of(globals: &Globals) -> Result<Self> {
        match globals.named_store() {
            Some(named) => StoreLocation::named(&named),
            None => Ok(StoreLocation::Folder(user_dirs::user_store()?)),
        }
    }

    /// The store that a path or an address names.
    pub(crate) fn named(name: &Path) -> Result<Self> {
        if let Some(text) = name.to_str().filter(|text| PostgresAddress::is_postgres_url(text)) {
            return Ok(StoreLocation::Database(PostgresAddress::parse(text)?));
        }
        if name.as_os_str().is_empty() {
            return Err(Failure::invalid("the store's path is empty; give a folder"));
        }
        if is_like_an_address(name) {
            let why = format!(
                "{0} is no folder, no postgres:// address and no http(s):// server; a folder of \
                 that name is ./{0}",
                name.display()
            );
            return Err(Failure::invalid(why));
        }
        Ok(StoreLocation::Folder(name.to_owned()))
    }

    /// Whether both are the same store, as far as their names tell.
    pub(crate) fn is(&self, other: &StoreLocation) -> bool {
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

    /// Opens it.
    pub(crate) fn open(&self, mode: OpenMode) -> Result<Arc<dyn Store>> {
        Ok(match self {
            StoreLocation::Folder(folder) => {
                let options = OpenOptions { mode, vfs: None };
                Arc::new(SqliteStore::open_with(folder, options)?)
            }
            StoreLocation::Database(address) => Arc::new(PostgresStore::open(address, mode)?),
        })
    }

    /// Where its tokens are.
    pub(crate) fn token_file(&self) -> Result<PathBuf> {
        self.beside("tokens.json")
    }

    /// A file that is kept beside its records: in its folder, or, since a database has none, beside
    /// the settings of the user who runs the server.
    pub(crate) fn beside(&self, name: &str) -> Result<PathBuf> {
        let folder = match self {
            StoreLocation::Folder(folder) => folder.clone(),
            StoreLocation::Database(_) => user_dirs::config_folder().ok_or_else(|| {
                let why = format!(
                    "no home folder is known; say where {name} is with \
                                   XDG_CONFIG_HOME"
                );
                Failure::invalid(why)
            })?,
        };
        Ok(folder.join(name))
    }

    /// Its folder, for what is done to files.
    pub(crate) fn folder(self) -> Result<PathBuf> {
        match self {
            StoreLocation::Folder(folder) => Ok(folder),
            StoreLocation::Database(_) => Err(Failure::refused(
                Kind::Unsupported,
                "this is done to the files of a store in a folder; give a path, not the address \
                 of a database",
            )),
        }
    }
}

/// Without any password.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Folder(folder) => folder.display().fmt(f),
            StoreLocation::Database(address) => address.fmt(f),
        }
    }
}

/// Whether a name that no folder has yet looks like a place on another machine: what is sent there
/// would stay here.
fn is_like_an_address(name: &Path) -> bool {
    let first = name.components().next().map(|first| first.as_os_str().to_string_lossy());
    first.is_some_and(|first| first.contains(':')) && !name.exists()
}

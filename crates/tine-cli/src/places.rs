//! Where stores live when nobody says so: the user's data folder, after the XDG rules.

use std::env;
use std::path::PathBuf;

use crate::failure::{Failure, Result};

/// The user's own store.
pub(crate) fn user_store() -> Result<PathBuf> {
    Ok(data_folder()?.join("tine"))
}

/// The store that the demonstration fills. It lies beside the user's own, not inside it: a store
/// is alone in its folder.
pub(crate) fn demo_store() -> Result<PathBuf> {
    Ok(data_folder()?.join("tine-demo"))
}

fn data_folder() -> Result<PathBuf> {
    // The XDG rules say that a relative path is to be ignored.
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("share")))
        .or_else(|| absolute("LOCALAPPDATA"))
        .ok_or_else(|| {
            Failure::invalid("no home folder is known; say where the store is with --store PATH")
        })
}

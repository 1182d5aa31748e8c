//! Where things live when nobody says so: stores, settings, keys and what is remembered, in the
//! user's own folders, after the XDG rules.

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

/// Where the user's keys are.
pub(crate) fn keys() -> Result<PathBuf> {
    let folder = config_folder().ok_or_else(|| {
        Failure::invalid("no home folder is known; say where keys are kept with XDG_CONFIG_HOME")
    })?;
    Ok(folder.join("keys"))
}

/// The user's settings, if a home is known.
pub(crate) fn config_folder() -> Option<PathBuf> {
    let folder = of_user("XDG_CONFIG_HOME", ".config").or_else(|| absolute("APPDATA"));
    folder.map(|folder| folder.join("tine"))
}

/// What is kept between sessions and can be lost, if a home is known.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder = of_user("XDG_STATE_HOME", ".local/state").or_else(|| absolute("LOCALAPPDATA"));
    folder.map(|folder| folder.join("tine"))
}

fn data_folder() -> Result<PathBuf> {
    of_user("XDG_DATA_HOME", ".local/share").or_else(|| absolute("LOCALAPPDATA")).ok_or_else(|| {
        Failure::invalid("no home folder is known; say where the store is with --store PATH")
    })
}

/// The folder that a variable names, or else the one below the user's home.
fn of_user(variable: &str, below: &str) -> Option<PathBuf> {
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below)))
}

/// The XDG rules say that a relative path is to be ignored.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

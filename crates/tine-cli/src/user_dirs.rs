//! Default locations of stores, settings, keys and state in the user's folders, following the XDG
//! base directory specification.

use std::env;
use std::path::PathBuf;

use crate::command_error::{CommandError, Result};

/// Returns the folder of the user's default store.
pub(crate) fn user_store() -> Result<PathBuf> {
    Ok(data_folder()?.join("tine"))
}

/// Returns the folder of the store that `tine demo` fills. It is next to the default store and not
/// inside it, because a store must be alone in its folder.
pub(crate) fn demo_store() -> Result<PathBuf> {
    Ok(data_folder()?.join("tine-demo"))
}

/// Returns the folder of the user's signing keys.
pub(crate) fn keys() -> Result<PathBuf> {
    let folder = config_folder().ok_or_else(|| {
        CommandError::invalid(
            "the home folder is unknown; say where keys are kept with XDG_CONFIG_HOME",
        )
    })?;
    Ok(folder.join("keys"))
}

/// Returns the folder of the user's settings, if a home folder is known.
pub(crate) fn config_folder() -> Option<PathBuf> {
    let folder = user_folder("XDG_CONFIG_HOME", ".config").or_else(|| absolute_from_env("APPDATA"));
    folder.map(|folder| folder.join("tine"))
}

/// Returns the folder for disposable state, if a home folder is known.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder =
        user_folder("XDG_STATE_HOME", ".local/state").or_else(|| absolute_from_env("LOCALAPPDATA"));
    folder.map(|folder| folder.join("tine"))
}

fn data_folder() -> Result<PathBuf> {
    user_folder("XDG_DATA_HOME", ".local/share")
        .or_else(|| absolute_from_env("LOCALAPPDATA"))
        .ok_or_else(|| {
            CommandError::invalid(
                "the home folder is unknown; say where the store is with --store PATH",
            )
        })
}

/// Returns the folder that an environment variable names, or the default in the home folder.
fn user_folder(variable: &str, below: &str) -> Option<PathBuf> {
    absolute_from_env(variable).or_else(|| absolute_from_env("HOME").map(|home| home.join(below)))
}

/// Reads a path from an environment variable. XDG requires that relative paths are ignored.
fn absolute_from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

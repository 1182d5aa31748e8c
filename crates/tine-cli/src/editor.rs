//! Edits a text in the user's editor.

use std::env;
use std::io::Write;
use std::process::Command;

use tine_core::ErrorKind;

use crate::command_error::{CommandError, Result};
use crate::input::InputSource;
use crate::session;

/// Opens the text in `VISUAL`, `EDITOR` or `vi` and returns the saved result.
pub(crate) fn edit_text(text: &str) -> Result<String> {
    let set = |name: &str| env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let chosen = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let mut words = chosen.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut file = tempfile::Builder::new().prefix("tine-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    let status = Command::new(program).args(words).arg(file.path()).status();
    let failed = |why: String| CommandError::refused(ErrorKind::Invalid, why);
    match status {
        Err(error) => Err(failed(format!(
            "the editor `{program}` cannot be started: {error}; set EDITOR, or give the text \
             with --summary TEXT"
        ))),
        Ok(status) if !status.success() => {
            Err(failed(format!("the editor `{program}` ended with {status}; nothing was changed")))
        }
        Ok(_) => InputSource::from_path(file.path()).read_text(&session::limits()),
    }
}

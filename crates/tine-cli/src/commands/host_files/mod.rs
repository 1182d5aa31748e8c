//! Adds entries to the configuration files of other programs: shows the change, asks for
//! confirmation, keeps a backup, and changes one entry.
//!
//! A file that cannot be parsed is not changed, and nothing is written for any host unless all
//! requested files can be changed.

pub(crate) mod jsonc;
pub(super) mod toml;

use std::env;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tine_core::ErrorKind;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::store_location::StoreLocation;
use crate::terminal::{Paging, Screen};

/// Whether and how a change is made.
#[derive(Debug, Args)]
pub(crate) struct HostFileArgs {
    /// Show the change, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// How a host starts this program.
#[derive(Clone, Debug)]
pub(super) struct HostEntry {
    pub command: String,
    pub arguments: Vec<String>,
}

impl HostEntry {
    /// Returns the entry for a command of this program with the current store and project.
    pub(super) fn of(globals: &Globals, command: &str) -> Result<HostEntry> {
        let internal =
            |error: io::Error| CommandError::refused(ErrorKind::Internal, error.to_string());
        let program = utf8_path(env::current_exe().map_err(internal)?)?;
        let mut arguments = vec![command.to_owned()];
        if let Some(store) = globals.named_store() {
            let store = match StoreLocation::parse(&store)? {
                StoreLocation::Folder(folder) => std::path::absolute(folder).map_err(internal)?,
                StoreLocation::Database(_) => store,
            };
            arguments.extend(["--store".to_owned(), utf8_path(store)?]);
        }
        if let Some(project) = globals.project() {
            arguments.extend(["--project".to_owned(), project.value]);
        }
        Ok(HostEntry { command: program, arguments })
    }
}

fn utf8_path(path: PathBuf) -> Result<String> {
    path.into_os_string()
        .into_string()
        .map_err(|_| CommandError::invalid("a path that is not Unicode cannot be written there"))
}

/// Returns the absolute folder that an environment variable names.
pub(crate) fn folder_from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute())
}

pub(crate) fn home() -> Option<PathBuf> {
    folder_from_env("HOME").or_else(|| folder_from_env("USERPROFILE"))
}

/// Returns the platform's folder for settings.
pub(super) fn config_folder() -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        Some(home()?.join("Library").join("Application Support"))
    } else if cfg!(windows) {
        folder_from_env("APPDATA")
    } else {
        folder_from_env("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
    }
}

/// Returns Zed's settings file. Zed follows XDG on macOS as well.
pub(super) fn zed_settings_file() -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        return Some(home()?.join(".config/zed/settings.json"));
    }
    Some(config_folder()?.join(if cfg!(windows) { "Zed" } else { "zed" }).join("settings.json"))
}

/// A planned change of a host's file.
pub(super) struct HostFileChange {
    host: &'static str,
    file: PathBuf,
    before: Option<String>,
    after: String,
}

/// The outcome for one host in the JSON output.
#[derive(Serialize)]
struct HostFileDocument<'a> {
    host: &'static str,
    file: &'a Path,
    changed: bool,
    written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

/// Shows changes and, after confirmation, writes them.
pub(super) fn apply_changes(
    globals: &Globals,
    changes: &[HostFileChange],
    file_args: &HostFileArgs,
) -> Result<()> {
    let screen = Screen::new(globals);
    let to_do = changes.iter().any(HostFileChange::has_changes);
    if !screen.json {
        screen.text(Paging::Direct, |out| {
            Ok(changes.iter().try_for_each(|change| change.show(out))?)
        })?;
    }
    let write = to_do && !file_args.dry_run && (file_args.yes || confirmed(&screen)?);
    let mut documents = Vec::new();
    for change in changes {
        let backup = if write && change.has_changes() { change.write()? } else { None };
        let (changed, written) = (change.has_changes(), write && change.has_changes());
        let (host, file) = (change.host, change.file.as_path());
        documents.push(HostFileDocument { host, file, changed, written, backup });
    }
    if screen.json {
        return screen.document(&documents);
    }
    if to_do && !write && !file_args.dry_run {
        return Err(CommandError::invalid("nothing was written; --yes writes without asking"));
    }
    screen.text(Paging::Direct, |out| {
        for one in documents.iter().filter(|one| one.written) {
            write!(out, "{}: written", one.host)?;
            match &one.backup {
                Some(copy) => writeln!(out, "; the old file is {}", copy.display())?,
                None => writeln!(out)?,
            }
        }
        if write {
            writeln!(out, "Restart the host to apply the change.")?;
        }
        Ok(())
    })
}

fn confirmed(screen: &Screen) -> Result<bool> {
    if screen.json || !io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut stderr = io::stderr();
    write!(stderr, "Write this? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Context lines shown around a change.
const CONTEXT: usize = 3;

impl HostFileChange {
    /// Plans the change of a host's file; `with_entry` returns the new text.
    pub(super) fn plan(
        host: &'static str,
        file: PathBuf,
        with_entry: impl FnOnce(&str) -> std::result::Result<String, String>,
    ) -> Result<HostFileChange> {
        let left_unchanged = |why: String| {
            CommandError::invalid(format!("{}: {why}; the file was not changed", file.display()))
        };
        let before = read_if_there(&file).map_err(|error| left_unchanged(error.to_string()))?;
        let after = with_entry(before.as_deref().unwrap_or_default()).map_err(left_unchanged)?;
        Ok(HostFileChange { host, file, before, after })
    }

    fn has_changes(&self) -> bool {
        self.before.as_deref() != Some(self.after.as_str())
    }

    /// Writes the change as a diff with context.
    fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.host;
        let file = self.file.display();
        if !self.has_changes() {
            return writeln!(out, "{name}: {file} is up to date");
        }
        let old: Vec<&str> = self.before.as_deref().unwrap_or_default().lines().collect();
        let new: Vec<&str> = self.after.lines().collect();
        let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
            pairs.take_while(|(a, b)| a == b).count()
        };
        let first = same(&mut old.iter().zip(&new));
        let most = old.len().min(new.len()) - first;
        let last = same(&mut old.iter().rev().zip(new.iter().rev())).min(most);
        writeln!(out, "{name}: {file}{}", if self.before.is_none() { " (new)" } else { "" })?;
        let from = first.saturating_sub(CONTEXT);
        for line in &new[from..first] {
            writeln!(out, "  {line}")?;
        }
        for line in &old[first..old.len() - last] {
            writeln!(out, "- {line}")?;
        }
        for line in &new[first..new.len() - last] {
            writeln!(out, "+ {line}")?;
        }
        let end = new.len() - last;
        for line in &new[end..new.len().min(end + CONTEXT)] {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)
    }

    /// Replaces the file atomically and returns the path of the backup.
    fn write(&self) -> Result<Option<PathBuf>> {
        let failed = |error: io::Error| {
            CommandError::refused(ErrorKind::Internal, format!("{}: {error}", self.file.display()))
        };
        let present = read_if_there(&self.file).map_err(failed)?;
        if present != self.before {
            let why = format!("{} was changed meanwhile; try again", self.file.display());
            return Err(CommandError::refused(ErrorKind::Conflict, why));
        }
        let mut backup = None;
        if self.before.is_some() {
            let copy = unused_backup_name(&resolved(&self.file));
            fs::copy(&self.file, &copy).map_err(failed)?;
            backup = Some(copy);
        }
        replace(&self.file, &self.after).map_err(failed)?;
        Ok(backup)
    }
}

/// Returns the target of a symbolic link, which is replaced instead of the link.
fn resolved(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

fn read_if_there(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file atomically, or creates it with its folder.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let file = resolved(file);
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    if let Ok(known) = fs::metadata(&file) {
        fresh.as_file().set_permissions(known.permissions())?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(&file).map_err(|error| error.error)?;
    Ok(())
}

/// Replaces a file by an edited text, and returns whether that changed it.
pub(super) fn edit_file(file: &Path, edit: impl FnOnce(&str) -> Result<String>) -> Result<bool> {
    let failed = |error: io::Error| CommandError::invalid(format!("{}: {error}", file.display()));
    let before = read_if_there(file).map_err(failed)?.unwrap_or_default();
    let after = edit(&before)?;
    if before == after {
        return Ok(false);
    }
    replace(file, &after).map_err(failed)?;
    Ok(true)
}

/// Returns an unused name for a backup next to the file.
fn unused_backup_name(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = |nth: usize| match nth {
        0 => file.with_file_name(format!("{name}.before-tine")),
        nth => file.with_file_name(format!("{name}.before-tine-{nth}")),
    };
    (0..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

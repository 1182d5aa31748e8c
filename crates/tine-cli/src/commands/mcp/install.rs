//! `tine mcp install`: shows what it would change, asks, keeps a copy, and changes one entry.
//!
//! A file that cannot be understood is left alone, and nothing is written for any host unless all
//! the files that were named can be.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tine_core::Kind;

use super::Offer;
use super::hosts::{Entry, Host};
use crate::arguments::Globals;
use crate::failure::{Failure, Result};
use crate::store_place::StorePlace;
use crate::terminal::{Paging, Screen};

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// For which hosts
    #[arg(value_name = "HOST", required_unless_present = "all")]
    hosts: Vec<Host>,
    /// For every host that is on this machine
    #[arg(long, conflicts_with = "hosts")]
    all: bool,
    /// Only show what would be written
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    offer: Offer,
}

/// A file before and after.
struct Change {
    host: Host,
    file: PathBuf,
    before: Option<String>,
    after: String,
}

/// What became of a host.
#[derive(Serialize)]
struct Told<'a> {
    host: &'static str,
    file: &'a Path,
    changed: bool,
    written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

pub(super) fn install(globals: &Globals, args: &InstallArgs) -> Result<()> {
    let entry = entry(globals, args)?;
    let mut changes = Vec::new();
    let hosts: &[Host] = if args.all { &Host::ALL } else { &args.hosts };
    for host in hosts {
        let file = host.file().ok_or_else(|| {
            Failure::invalid(format!("no home folder is known to look for {} in", host.name()))
        })?;
        if !args.all || host.is_here(&file) {
            changes.push(planned(*host, file, &entry)?);
        }
    }
    if changes.is_empty() {
        let why = "none of the hosts seems to be on this machine; name one to make its file";
        return Err(Failure::refused(Kind::NotFound, why));
    }
    let screen = Screen::new(globals);
    let to_do = changes.iter().any(|change| change.is_any());
    if !screen.json {
        screen.text(Paging::Direct, |out| {
            Ok(changes.iter().try_for_each(|change| change.show(out))?)
        })?;
    }
    let write = to_do && !args.dry_run && (args.yes || confirmed(&screen)?);
    let mut told = Vec::new();
    for change in &changes {
        let backup = if write && change.is_any() { change.write()? } else { None };
        let (changed, written) = (change.is_any(), write && change.is_any());
        let (host, file) = (change.host.name(), change.file.as_path());
        told.push(Told { host, file, changed, written, backup });
    }
    if screen.json {
        return screen.document(&told);
    }
    if to_do && !write && !args.dry_run {
        return Err(Failure::invalid("nothing was written; --yes writes without asking"));
    }
    screen.text(Paging::Direct, |out| {
        for one in told.iter().filter(|one| one.written) {
            write!(out, "{}: written", one.host)?;
            match &one.backup {
                Some(copy) => writeln!(out, "; what it was is in {}", copy.display())?,
                None => writeln!(out)?,
            }
        }
        if write {
            writeln!(out, "Start the host again to see it.")?;
        }
        Ok(())
    })
}

/// How the server is to be started: as it was named here, wherever the host starts it.
fn entry(globals: &Globals, args: &InstallArgs) -> Result<Entry> {
    let internal = |error: io::Error| Failure::refused(Kind::Internal, error.to_string());
    let text = |path: PathBuf| {
        path.into_os_string()
            .into_string()
            .map_err(|_| Failure::invalid("a path that is not Unicode cannot be written there"))
    };
    let command = text(std::env::current_exe().map_err(internal)?)?;
    let mut arguments = vec!["mcp".to_owned()];
    if let Some(store) = globals.named_store() {
        let store = match StorePlace::named(&store)? {
            StorePlace::Folder(folder) => std::path::absolute(folder).map_err(internal)?,
            StorePlace::Database(_) => store,
        };
        arguments.extend(["--store".to_owned(), text(store)?]);
    }
    if let Some(project) = globals.project() {
        arguments.extend(["--project".to_owned(), project.value]);
    }
    let toolset = args.offer.toolset.toolset();
    if toolset != tine_mcp::Toolset::Core {
        arguments.extend(["--toolset".to_owned(), toolset.as_str().to_owned()]);
    }
    if args.offer.read_only {
        arguments.push("--read-only".to_owned());
    }
    Ok(Entry { command, arguments })
}

fn planned(host: Host, file: PathBuf, entry: &Entry) -> Result<Change> {
    let alone = |why: String| {
        Failure::invalid(format!("{}: {why}; the file is left as it is", file.display()))
    };
    let before = match fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(alone(error.to_string())),
    };
    let after = host.with_entry(before.as_deref().unwrap_or_default(), entry).map_err(alone)?;
    Ok(Change { host, file, before, after })
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

/// Lines around a change that are shown.
const CONTEXT: usize = 3;

impl Change {
    fn is_any(&self) -> bool {
        self.before.as_deref() != Some(self.after.as_str())
    }

    /// The change as people read it: what goes, what comes, and a few lines around.
    fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.host.name();
        let file = self.file.display();
        if !self.is_any() {
            return writeln!(out, "{name}: {file} has the entry already");
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

    /// Replaces the file in one step. Answers where what it was is kept.
    fn write(&self) -> Result<Option<PathBuf>> {
        let failed = |error: io::Error| {
            Failure::refused(Kind::Internal, format!("{}: {error}", self.file.display()))
        };
        // A link stays one: what it leads to is replaced.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let present = match fs::read_to_string(&file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if present != self.before {
            let why = format!("{} was changed meanwhile; try again", self.file.display());
            return Err(Failure::refused(Kind::Conflict, why));
        }
        let mut backup = None;
        if self.before.is_some() {
            let copy = free_name(&file);
            fs::copy(&file, &copy).map_err(failed)?;
            backup = Some(copy);
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut fresh = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        fresh.write_all(self.after.as_bytes()).map_err(failed)?;
        if let Ok(known) = fs::metadata(&file) {
            fresh.as_file().set_permissions(known.permissions()).map_err(failed)?;
        }
        fresh.as_file().sync_all().map_err(failed)?;
        fresh.persist(&file).map_err(|error| failed(error.error))?;
        Ok(backup)
    }
}

/// A name beside a file that nothing has yet.
fn free_name(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = |nth: usize| match nth {
        0 => file.with_file_name(format!("{name}.before-tine")),
        nth => file.with_file_name(format!("{name}.before-tine-{nth}")),
    };
    (0..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

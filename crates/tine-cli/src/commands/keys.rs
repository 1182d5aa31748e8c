//! `tine key`: keys that sign commits. Private keys stay in the user's folder and are never shown.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use tine_core::sign::PrivateKey;
use tine_core::{Digest, ErrorKind, Limits, Name};
use tine_engine::{Entropy, SystemEntropy};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::terminal::text::visible;
use crate::terminal::{Paging, Screen};
use crate::user_dirs;

/// Name of the default key.
pub(crate) const DEFAULT: &str = "default";

/// Extension of key files.
const EXTENSION: &str = "key";

/// Maximum size of a key file.
const MAX_KEY_BYTES: u64 = 1024;

#[derive(Debug, Args)]
#[command(after_help = "\
Keys are Ed25519. A private key is a file with mode 0600 in the folder `keys` beside the settings \
file, and is never shown. Others check signatures with the public key.

Examples:
  tine commit key new
  tine commit key new laptop
  tine commit key show laptop
  tine commit -m 'Final plan' --sign laptop")]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    subcommand: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Create a key
    New {
        /// Name of the key
        #[arg(default_value = DEFAULT)]
        name: String,
    },
    /// Show a public key
    Show {
        /// Name of the key
        #[arg(default_value = DEFAULT)]
        name: String,
    },
    /// List keys
    List,
}

/// The public part of a key.
#[derive(Serialize)]
struct KeyDocument {
    name: String,
    public_key: String,
    file: PathBuf,
}

pub(crate) fn key(globals: &Globals, args: KeyArgs) -> Result<()> {
    let screen = Screen::new(globals);
    match args.subcommand {
        KeyCommand::New { name } => one(&screen, &make(&name)?),
        KeyCommand::Show { name } => one(&screen, &key_document(&name, &file(&name)?)?),
        KeyCommand::List => list(&screen),
    }
}

/// Loads a private key by name.
pub(crate) fn load_private_key(name: &str) -> Result<PrivateKey> {
    read(name, &file(name)?)
}

fn one(screen: &Screen, key: &KeyDocument) -> Result<()> {
    if screen.json {
        return screen.document(key);
    }
    screen.line(&line(key))
}

fn line(key: &KeyDocument) -> String {
    format!("{}  {}", key.public_key, visible(&key.name))
}

fn list(screen: &Screen) -> Result<()> {
    let folder = user_dirs::keys()?;
    let mut keys = Vec::new();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    for entry in entries.map_err(|error| failed(&folder, &error))? {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if let (Some(name), true) = (name, path.extension().is_some_and(|it| it == EXTENSION)) {
            keys.push(key_document(name, &path)?);
        }
    }
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    if screen.json {
        return screen.document(&keys);
    }
    screen.text(Paging::Paged, |out| {
        for key in &keys {
            writeln!(out, "{}", line(key))?;
        }
        Ok(())
    })
}

/// Returns the path of a key; names that could escape the folder are refused.
fn file(name: &str) -> Result<PathBuf> {
    let checked = Name::new(name, &Limits::default())?;
    let plain = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.@".contains(symbol);
    if !checked.as_str().chars().all(plain) || name.starts_with('.') {
        let why =
            format!("`{name}` cannot be a key's name; use letters, digits, `-`, `_`, `.`, `@`");
        return Err(CommandError::invalid(why));
    }
    Ok(user_dirs::keys()?.join(format!("{name}.{EXTENSION}")))
}

fn key_document(name: &str, path: &Path) -> Result<KeyDocument> {
    let public_key = read(name, path)?.public();
    Ok(KeyDocument { name: name.to_owned(), public_key, file: path.to_owned() })
}

fn make(name: &str) -> Result<KeyDocument> {
    let path = file(name)?;
    let folder = user_dirs::keys()?;
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let key = PrivateKey::from_random(random_seed());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    restrict_to_owner(&mut options);
    let mut file = options.open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::refused(
            ErrorKind::Conflict,
            format!("the key `{name}` exists; choose another name"),
        ),
        _ => failed(&path, &error),
    })?;
    let written = writeln!(file, "{}", key.to_hex()).and_then(|()| file.sync_all());
    written.map_err(|error| failed(&path, &error))?;
    Ok(KeyDocument { name: name.to_owned(), public_key: key.public(), file: path })
}

fn read(name: &str, path: &Path) -> Result<PrivateKey> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CommandError::refused(
            ErrorKind::NotFound,
            format!("there is no key `{name}`; `tine commit key new {name}` creates it"),
        ),
        _ => failed(path, &error),
    })?;
    check_permissions(path, &file)?;
    let mut digits = String::new();
    let read = file.take(MAX_KEY_BYTES).read_to_string(&mut digits);
    read.map_err(|error| failed(path, &error))?;
    PrivateKey::from_hex(&digits).ok_or_else(|| {
        let why = format!("{} is not a key: expected 64 hexadecimal digits", path.display());
        CommandError::invalid(why)
    })
}

#[cfg(unix)]
fn restrict_to_owner(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn restrict_to_owner(_: &mut OpenOptions) {}

#[cfg(unix)]
fn check_permissions(path: &Path, file: &File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata().map_err(|error| failed(path, &error))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    let why = format!("other users can read the key {path}; run chmod 600 {path}");
    Err(CommandError::invalid(why))
}

#[cfg(not(unix))]
fn check_permissions(_: &Path, _: &File) -> Result<()> {
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> CommandError {
    CommandError::invalid(format!("{}: {error}", path.display()))
}

/// Returns a 32-byte seed, hashed from 40 random bytes.
fn random_seed() -> [u8; 32] {
    let bytes: Vec<u8> = (0..4).flat_map(|_| SystemEntropy.ten_bytes()).collect();
    Digest::of(&bytes).0
}

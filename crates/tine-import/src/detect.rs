//! Which format a file has, and what there is in a folder.
//!
//! A file is recognised by what it says, never by its name alone. Folders are walked without
//! following links.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tine_core::Json;

use crate::formats::Format;
use crate::json::{self, text};
use crate::{Error, Note};

/// Something to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whose it is.
    pub format: Format,
    /// The file, or the folder of a format that has many small files.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: u64,
    /// When it was last changed, in milliseconds since the epoch.
    pub modified_ms: u64,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In the order in which it is read: oldest first, so that what was forked comes later.
    pub jobs: Vec<Job>,
    /// Files of which nobody knows what they are.
    pub unknown: u64,
    /// What could not be looked at.
    pub notes: Vec<Note>,
}

impl Plan {
    /// How many bytes it is about.
    pub fn bytes(&self) -> u64 {
        self.jobs.iter().map(|job| job.bytes).sum()
    }
}

/// Folders within folders.
const DEPTH: usize = 32;
/// What of a file is looked at.
const HEAD: u64 = 256 << 10;

/// Looks for what can be read at a path: itself, or everything in it.
pub fn plan(paths: &[PathBuf], format: Option<Format>) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    for path in paths {
        let about =
            fs::metadata(path).map_err(|source| Error::Read { file: path.clone(), source })?;
        if about.is_dir() {
            walk(path, format, DEPTH, &mut plan);
        } else {
            let found = match format {
                Some(format) => Some(format),
                None => sniff(path).map_err(|source| Error::Read { file: path.clone(), source })?,
            };
            let format = found.ok_or_else(|| Error::Unknown { file: path.clone() })?;
            plan.jobs.push(job(format, path, &about));
        }
    }
    plan.jobs.sort_by(|a, b| (a.modified_ms, &a.path).cmp(&(b.modified_ms, &b.path)));
    Ok(plan)
}

fn job(format: Format, path: &Path, about: &fs::Metadata) -> Job {
    let modified = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified_ms = modified.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    Job { format, path: path.to_owned(), bytes: about.len(), modified_ms }
}

fn walk(folder: &Path, format: Option<Format>, depth: usize, plan: &mut Plan) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            return plan.notes.push(Note::new(folder, None, format!("cannot be read: {error}")));
        }
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() {
            if depth > 0 {
                walk(&path, format, depth - 1, plan);
            }
        } else if about.is_file() && may_be_read(&path) {
            match sniff(&path) {
                Ok(Some(found)) if format.is_none_or(|format| format == found) => {
                    plan.jobs.push(job(found, &path, &about));
                }
                Ok(_) => plan.unknown += 1,
                Err(error) => {
                    plan.notes.push(Note::new(&path, None, format!("cannot be read: {error}")));
                }
            }
        }
    }
}

/// In a folder only files are looked into whose name says that they may hold conversations.
fn may_be_read(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    matches!(extension, "json" | "jsonl" | "zst" | "zip" | "db" | "html")
}

/// Tells the format of a file by how it begins.
fn sniff(path: &Path) -> std::io::Result<Option<Format>> {
    let mut file = BufReader::new(File::open(path)?);
    let head = file.fill_buf()?;
    let unpacked: Box<dyn Read> = if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::with_buffer(file)?)
    } else {
        Box::new(file)
    };
    let mut head = Vec::new();
    // Of a damaged stream what can be had is enough.
    let _ = unpacked.take(HEAD).read_to_end(&mut head);
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.iter().all(u8::is_ascii_whitespace)).unwrap_or_default();
    if json::read(first).is_ok_and(|(json, _)| json.as_object().is_some()) {
        let logged = std::iter::once(first).chain(lines).take(40);
        let found =
            logged.filter_map(|line| json::read(line).ok()).find_map(|(it, _)| of_line(&it));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The format of a log by one of its lines.
fn of_line(line: &Json) -> Option<Format> {
    let has = |name: &str| line.get(name).is_some();
    let kind = text(line, "type").unwrap_or_default();
    let claude = has("parentUuid") && has("sessionId")
        || kind == "summary" && has("leafUuid")
        || matches!(kind, "user" | "assistant") && has("uuid") && has("message");
    if claude {
        return Some(Format::ClaudeCode);
    }
    None
}

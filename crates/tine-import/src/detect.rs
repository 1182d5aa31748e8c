//! Which format a file has, and what there is in a folder.
//!
//! A file is recognised by what it says, never by its name alone. Folders are walked without
//! following links.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
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
    /// Of several places, those that are not there.
    pub missing: Vec<PathBuf>,
}

impl Plan {
    /// How many bytes it is about.
    pub fn bytes(&self) -> u64 {
        self.jobs.iter().map(|job| job.bytes).sum()
    }
}

/// Where programs on this machine keep what was said, of those places that are there.
/// `variable` looks an environment variable up.
pub fn places(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let below = |name: &str, folder: &str, path: &str| {
        let own = variable(name).or_else(|| home.as_ref().map(|home| home.join(folder)));
        own.map(|own| own.join(path))
    };
    let mut places = vec![
        below("CLAUDE_CONFIG_DIR", ".claude", "projects"),
        below("CODEX_HOME", ".codex", "sessions"),
        below("CODEX_HOME", ".codex", "archived_sessions"),
        below("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
        below("OMP_AGENT_DIR", ".omp/agent", "sessions"),
        below("GEMINI_CLI_HOME", ".gemini", "tmp"),
        below("XDG_DATA_HOME", ".local/share", "opencode"),
        below("LOOM_HOME", ".loom", ""),
    ];
    places.retain(|place| place.as_ref().is_some_and(|place| place.is_dir()));
    places.into_iter().flatten().collect()
}

/// Folders within folders.
const DEPTH: usize = 32;
/// What of a file is looked at.
const HEAD: u64 = 256 << 10;

/// Files that were looked at before, with their format, so that they are not opened again.
#[derive(Clone, Debug, Default)]
pub struct Seen(HashMap<PathBuf, Option<Format>>);

/// Looks for what can be read at a path: itself, or everything in it.
pub fn plan(paths: &[PathBuf], format: Option<Format>) -> Result<Plan, Error> {
    plan_again(paths, format, &mut Seen::default())
}

/// The same, again and again: a file is opened only once to see what it is.
pub fn plan_again(
    paths: &[PathBuf],
    format: Option<Format>,
    seen: &mut Seen,
) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    for path in paths {
        let about = match fs::metadata(path) {
            Ok(about) => about,
            // One of several agents may never have been used here.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && plan.missing.len() + 1 < paths.len() =>
            {
                plan.missing.push(path.clone());
                continue;
            }
            Err(source) => return Err(Error::Read { file: path.clone(), source }),
        };
        if about.is_dir() {
            walk(path, format, DEPTH, seen, &mut plan);
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

fn walk(folder: &Path, format: Option<Format>, depth: usize, seen: &mut Seen, plan: &mut Plan) {
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
                walk(&path, format, depth - 1, seen, plan);
            }
        } else if about.is_file() && may_be_read(&path) {
            let found = match seen.0.get(&path) {
                // What had nothing to tell may have something now.
                Some(Some(format)) => Ok(Some(*format)),
                _ => sniff(&path),
            };
            if let Ok(found) = &found {
                seen.0.insert(path.clone(), *found);
            }
            match found {
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
    matches!(extension, "json" | "jsonl" | "ndjson" | "zst" | "zip" | "db" | "html")
}

/// Tells the format of a file by how it begins.
fn sniff(path: &Path) -> std::io::Result<Option<Format>> {
    let mut file = BufReader::new(File::open(path)?);
    let magic = file.fill_buf()?;
    if magic.starts_with(b"PK") {
        return Ok(of_archive(path));
    }
    if magic.starts_with(b"SQLite format 3") {
        let known =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("opencode"));
        return Ok(known.then_some(Format::OpenCode));
    }
    let unpacked: Box<dyn Read> = if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
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
        let logged = std::iter::once(first).chain(lines).take(LINES);
        let found =
            logged.filter_map(|line| json::read(line).ok()).find_map(|(it, _)| of_line(&it));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(of_document(path, &String::from_utf8_lossy(&head)))
}

/// Lines of a log that are looked at.
const LINES: usize = 40;

/// The format of a log by one of its lines.
fn of_line(line: &Json) -> Option<Format> {
    let has = |name: &str| line.get(name).is_some();
    let kind = text(line, "type").unwrap_or_default();
    let envelope = has("payload") && has("timestamp");
    let codex_item =
        envelope && matches!(kind, "session_meta" | "response_item" | "turn_context" | "event_msg");
    let codex_header =
        kind.is_empty() && has("id") && has("timestamp") && (has("instructions") || has("git"));
    if text(line, "format") == Some(tine_formats::bundle::FORMAT) {
        Some(Format::Bundle)
    } else if codex_item || codex_header {
        Some(Format::Codex)
    } else if kind == "session" && has("id") && has("cwd") {
        Some(Format::Pi)
    } else if has("sessionId") && has("projectHash") && !has("messages") || has("$rewindTo") {
        Some(Format::GeminiCli)
    } else if has("parentUuid") && has("sessionId")
        || kind == "summary" && has("leafUuid")
        || matches!(kind, "user" | "assistant") && has("uuid") && has("message")
    {
        Some(Format::ClaudeCode)
    } else {
        None
    }
}

/// The format of a document by names that only it has.
fn of_document(path: &Path, head: &str) -> Option<Format> {
    let has = |name: &str| head.contains(&format!("\"{name}\""));
    let named = |name: &str| path.file_name().is_some_and(|it| it == name);
    let within = |name: &str| path.components().any(|it| it.as_os_str() == name);
    if head.trim_start().starts_with('<') {
        return head.contains(tine_formats::page::MARK).then_some(Format::Bundle);
    }
    if named("roots.json") && path.parent().is_some_and(holds_trees) {
        return Some(Format::Forest);
    }
    if has("mapping") && (has("current_node") || has("parent") || has("author")) {
        Some(Format::ChatGpt)
    } else if has("chat_messages") {
        Some(Format::ClaudeAi)
    } else if has("history") && has("currentId") {
        Some(Format::OpenWebUi)
    } else if has("conversationId") && (has("messages") || has("messagesTree")) {
        Some(Format::LibreChat)
    } else if has("sessionId") && has("projectHash") && has("messages") {
        Some(Format::GeminiCli)
    } else if has("projectID") && has("id") && has("time") && within("session") {
        Some(Format::OpenCode)
    } else if has("role")
        && (has("content") || has("tool_calls"))
        && !within("message")
        && !within("nodes")
    {
        Some(Format::Messages)
    } else {
        None
    }
}

/// Whether a folder is one of the tree specification's store: trees are folders with nodes.
fn holds_trees(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().join("nodes").is_dir())
}

/// The format of an export by how its first conversations begin.
fn of_archive(path: &Path) -> Option<Format> {
    let input = crate::input::Input::default();
    let mut archive = input.archive(path).ok()?;
    let name = crate::formats::shards(&archive).into_iter().next()?;
    let mut head = Vec::new();
    let _ = archive.open(&name).ok()?.take(HEAD).read_to_end(&mut head);
    of_document(Path::new("conversations.json"), &String::from_utf8_lossy(&head))
}

//! Recognises formats and finds files to import.
//!
//! A file is recognised by its content, never by its name alone. Folders are walked without
//! following links.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tine_core::Json;

use crate::formats::ImportFormat;
use crate::json::{self, text};
use crate::{Error, Note};

/// A file or folder to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportJob {
    /// The format.
    pub format: ImportFormat,
    /// The file, or the folder of a format that has many small files.
    pub path: PathBuf,
    /// The size.
    pub bytes: u64,
    /// The modification time, in milliseconds since the epoch.
    pub modified_ms: u64,
}

/// The files to import.
#[derive(Clone, Debug, Default)]
pub struct ImportPlan {
    /// The jobs, oldest first, so that forks come after their originals.
    pub jobs: Vec<ImportJob>,
    /// The number of files of unknown format.
    pub unknown: u64,
    /// Files that could not be read.
    pub notes: Vec<Note>,
    /// Given paths that do not exist.
    pub missing: Vec<PathBuf>,
}

impl ImportPlan {
    /// Returns the total size.
    pub fn bytes(&self) -> u64 {
        self.jobs.iter().map(|job| job.bytes).sum()
    }
}

/// A folder in which a program keeps conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFolder {
    /// The format of its files.
    pub format: ImportFormat,
    /// The folder.
    pub path: PathBuf,
}

/// Returns the existing folders in which programs on this machine keep conversations.
/// `variable` looks up an environment variable.
pub fn agent_folders(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<AgentFolder> {
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let below = |format, name: &str, folder: &str, path: &str| {
        let own = variable(name).or_else(|| home.as_ref().map(|home| home.join(folder)));
        own.map(|own| AgentFolder { format, path: own.join(path) })
    };
    let folders = [
        below(ImportFormat::ClaudeCode, "CLAUDE_CONFIG_DIR", ".claude", "projects"),
        below(ImportFormat::Codex, "CODEX_HOME", ".codex", "sessions"),
        below(ImportFormat::Codex, "CODEX_HOME", ".codex", "archived_sessions"),
        below(ImportFormat::Pi, "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
        below(ImportFormat::Pi, "OMP_AGENT_DIR", ".omp/agent", "sessions"),
        below(ImportFormat::GeminiCli, "GEMINI_CLI_HOME", ".gemini", "tmp"),
        below(ImportFormat::OpenCode, "XDG_DATA_HOME", ".local/share", "opencode"),
        below(ImportFormat::Forest, "LOOM_HOME", ".loom", ""),
    ];
    folders.into_iter().flatten().filter(|it| it.path.is_dir()).collect()
}

/// Returns the paths of [`agent_folders`].
pub fn places(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    agent_folders(variable).into_iter().map(|it| it.path).collect()
}

/// The maximum nesting of folders.
const DEPTH: usize = 32;
/// The number of bytes of a file that are inspected.
const HEAD: u64 = 256 << 10;

/// Formats of files that were inspected before, so that they are not opened again.
#[derive(Clone, Debug, Default)]
pub struct FormatCache(HashMap<PathBuf, Option<ImportFormat>>);

/// Finds the files to import at the given paths, which may be files or folders.
pub fn plan(paths: &[PathBuf], format: Option<ImportFormat>) -> Result<ImportPlan, Error> {
    plan_with_cache(paths, format, &mut FormatCache::default())
}

/// Does the same as [`plan`] for repeated calls: each file is inspected only once.
pub fn plan_with_cache(
    paths: &[PathBuf],
    format: Option<ImportFormat>,
    seen: &mut FormatCache,
) -> Result<ImportPlan, Error> {
    let mut plan = ImportPlan::default();
    for path in paths {
        let about = match fs::metadata(path) {
            Ok(about) => about,
            // Some of the agents may never have been used here.
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

fn job(format: ImportFormat, path: &Path, about: &fs::Metadata) -> ImportJob {
    let modified = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified_ms = modified.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    ImportJob { format, path: path.to_owned(), bytes: about.len(), modified_ms }
}

fn walk(
    folder: &Path,
    format: Option<ImportFormat>,
    depth: usize,
    seen: &mut FormatCache,
    plan: &mut ImportPlan,
) {
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
                // A file that was not recognised may have content now.
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

/// Returns whether a file in a folder is inspected, judging by its extension.
fn may_be_read(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    matches!(extension, "json" | "jsonl" | "ndjson" | "zst" | "zip" | "db" | "html")
}

/// Recognises the format of a file by its beginning.
fn sniff(path: &Path) -> std::io::Result<Option<ImportFormat>> {
    let mut file = BufReader::new(File::open(path)?);
    let magic = file.fill_buf()?;
    if magic.starts_with(b"PK") {
        return Ok(of_archive(path));
    }
    if magic.starts_with(b"SQLite format 3") {
        let known =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("opencode"));
        return Ok(known.then_some(ImportFormat::OpenCode));
    }
    let unpacked: Box<dyn Read> = if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::with_buffer(file)?)
    } else {
        Box::new(file)
    };
    let mut head = Vec::new();
    // The readable part of a damaged stream is enough.
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

/// The number of lines of a log that are inspected.
const LINES: usize = 40;

fn of_line(line: &Json) -> Option<ImportFormat> {
    let has = |name: &str| line.get(name).is_some();
    let kind = text(line, "type").unwrap_or_default();
    let envelope = has("payload") && has("timestamp");
    let codex_item =
        envelope && matches!(kind, "session_meta" | "response_item" | "turn_context" | "event_msg");
    let codex_header =
        kind.is_empty() && has("id") && has("timestamp") && (has("instructions") || has("git"));
    if text(line, "format") == Some(tine_formats::bundle::FORMAT) {
        Some(ImportFormat::Bundle)
    } else if codex_item || codex_header {
        Some(ImportFormat::Codex)
    } else if kind == "session" && has("id") && has("cwd") {
        Some(ImportFormat::Pi)
    } else if has("sessionId") && has("projectHash") && !has("messages") || has("$rewindTo") {
        Some(ImportFormat::GeminiCli)
    } else if has("parentUuid") && has("sessionId")
        || kind == "summary" && has("leafUuid")
        || matches!(kind, "user" | "assistant") && has("uuid") && has("message")
    {
        Some(ImportFormat::ClaudeCode)
    } else {
        None
    }
}

/// Returns the format of a document by its characteristic members.
fn of_document(path: &Path, head: &str) -> Option<ImportFormat> {
    let has = |name: &str| head.contains(&format!("\"{name}\""));
    let named = |name: &str| path.file_name().is_some_and(|it| it == name);
    let within = |name: &str| path.components().any(|it| it.as_os_str() == name);
    if head.trim_start().starts_with('<') {
        return head.contains(tine_formats::html_page::MARK).then_some(ImportFormat::Bundle);
    }
    if named("roots.json") && path.parent().is_some_and(holds_trees) {
        return Some(ImportFormat::Forest);
    }
    if has("mapping") && (has("current_node") || has("parent") || has("author")) {
        Some(ImportFormat::ChatGpt)
    } else if has("chat_messages") {
        Some(ImportFormat::ClaudeAi)
    } else if has("history") && has("currentId") {
        Some(ImportFormat::OpenWebUi)
    } else if has("conversationId") && (has("messages") || has("messagesTree")) {
        Some(ImportFormat::LibreChat)
    } else if has("sessionId") && has("projectHash") && has("messages") {
        Some(ImportFormat::GeminiCli)
    } else if has("projectID") && has("id") && has("time") && within("session") {
        Some(ImportFormat::OpenCode)
    } else if has("role")
        && (has("content") || has("tool_calls"))
        && !within("message")
        && !within("nodes")
    {
        Some(ImportFormat::Messages)
    } else {
        None
    }
}

/// Returns whether a folder is a `FileSystemStore`: its trees are folders with `nodes`.
fn holds_trees(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().join("nodes").is_dir())
}

/// Returns the format of an archive by the beginning of its first conversations.
fn of_archive(path: &Path) -> Option<ImportFormat> {
    let input = crate::input::Input::default();
    let mut archive = input.archive(path).ok()?;
    let name = crate::formats::shards(&archive).into_iter().next()?;
    let mut head = Vec::new();
    let _ = archive.open(&name).ok()?.take(HEAD).read_to_end(&mut head);
    of_document(Path::new("conversations.json"), &String::from_utf8_lossy(&head))
}

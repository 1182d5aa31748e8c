//! `tine doctor`: checks the store and what surrounds it, and names the command that fixes each
//! problem.
//!
//! It changes nothing. It fails only if the store is damaged.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;
use tine_core::ErrorKind;
use tine_engine::{Engine, Page, RecentQuery};
use tine_import::ImportFormat;
use tine_import::detect::{self, AgentFolder, ImportJob};
use tine_import::importer::{ImportSettings, Importer};
use tine_store::OpenMode;

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::commands::acp::install::Editor;
use crate::commands::host_files::{folder_from_env, home, jsonc};
use crate::commands::mcp::hosts::Host;
use crate::session::{CliSession, SessionEngine};
use crate::store_location::StoreLocation;
use crate::terminal::text::{count, visible};
use crate::terminal::{Paging, Screen};

/// Less free space than this is a problem.
const LOW_DISK_BYTES: u64 = 1 << 30;

/// History that is deleted within this time is worth a warning.
const SOON_MS: u64 = 7 * DAY_MS;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Days for which Claude Code keeps history, unless `cleanupPeriodDays` says otherwise.
const CLAUDE_CODE_DAYS: u64 = 30;

/// Days for which Gemini CLI keeps history, unless `sessionRetention` says otherwise.
const GEMINI_CLI_DAYS: u64 = 30;

#[derive(Debug, Args)]
#[command(after_help = "\
Checks which agents are on this machine, whether their history is imported and when they delete \
it, whether tine is registered with editors and agents, the store, and disk space. Nothing is \
changed. The exit code is 0 unless the store is damaged.

Examples:
  tine doctor
  tine doctor --json")]
pub(crate) struct DoctorArgs {}

#[derive(Serialize)]
struct DoctorDocument {
    store: StoreHealth,
    agents: Vec<AgentHistory>,
    hosts: Vec<HostEntryState>,
    problems: Vec<Problem>,
}

/// The store, or the server that holds it.
#[derive(Default, Serialize)]
struct StoreHealth {
    location: String,
    exists: bool,
    damaged: bool,
    conversations: u64,
    turns: u64,
    size_bytes: u64,
    /// Free space on the store's disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
}

/// The history of one agent in one folder.
#[derive(Serialize)]
struct AgentHistory {
    program: &'static str,
    name: &'static str,
    folder: PathBuf,
    files: u64,
    size_bytes: u64,
    /// Files that are imported as they are now; unknown for formats that are always read again.
    imported_files: Option<u64>,
    /// Whether any conversation of the program was imported.
    imported: bool,
    /// Days after their last change for which the agent keeps files; `null` if it deletes none.
    kept_days: Option<u64>,
    /// Days until the agent deletes the first file that is not imported; 0 if that can happen at its
    /// next start.
    #[serde(skip_serializing_if = "Option::is_none")]
    days_left: Option<u64>,
    /// Files that are not imported and that the agent deletes within a week.
    files_at_risk: u64,
}

/// Whether an editor or agent starts tine.
#[derive(Serialize)]
struct HostEntryState {
    host: &'static str,
    protocol: &'static str,
    file: PathBuf,
    installed: bool,
}

/// Something to be fixed.
#[derive(Serialize)]
struct Problem {
    what: String,
    /// The command that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Problem {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Problem { what: what.into(), fix: Some(fix.into()) }
    }
}

pub(crate) fn doctor(globals: &Globals) -> Result<()> {
    let mut problems = Vec::new();
    let (store, session) = check_store(globals, &mut problems)?;
    let engine = match session.as_ref().map(|session| &session.engine) {
        Some(SessionEngine::Local(engine)) => Some(engine),
        _ => None,
    };
    let agents = check_agents(globals, engine, &mut problems)?;
    let hosts = check_hosts(&mut problems);
    let damaged = store.damaged;
    let document = DoctorDocument { store, agents, hosts, problems };
    let screen = Screen::new(globals);
    if screen.json {
        screen.document(&document)?;
    } else {
        write_report(&screen, &document)?;
    }
    match damaged {
        true => Err(CommandError::refused(ErrorKind::Corrupt, "the store is damaged")),
        false => Ok(()),
    }
}

/// Opens and checks the store.
fn check_store(
    globals: &Globals,
    problems: &mut Vec<Problem>,
) -> Result<(StoreHealth, Option<CliSession>)> {
    let mut health = StoreHealth::default();
    let location = match globals.server()? {
        Some(url) => {
            health.location = url;
            None
        }
        None => {
            let location = StoreLocation::from_globals(globals)?;
            health.location = location.to_string();
            Some(location)
        }
    };
    if let Some(StoreLocation::Folder(folder)) = &location {
        health.free_bytes = free_bytes(folder);
        if let Some(free) = health.free_bytes.filter(|free| *free < LOW_DISK_BYTES) {
            problems.push(Problem {
                what: format!("only {} are free on the store's disk", HumanBytes(free)),
                fix: Some("tine pack".to_owned()),
            });
        }
    }
    let opened = CliSession::open(globals, OpenMode::Existing);
    let session = match opened {
        Ok(session) => session,
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            health.exists = true;
            health.damaged = true;
            problems.push(Problem::new(error.to_string(), "tine verify --repair NEW_FOLDER"));
            return Ok((health, None));
        }
        Err(error) if error.kind() == ErrorKind::NotFound && location.is_some() => {
            problems.push(Problem::new("there is no store yet", "tine import --discover"));
            return Ok((health, None));
        }
        Err(error) => {
            problems.push(Problem { what: error.to_string(), fix: None });
            return Ok((health, None));
        }
    };
    let mut damage = |error: CommandError| {
        problems.push(Problem::new(error.to_string(), "tine verify --repair NEW_FOLDER"));
        health.damaged |= error.kind() == ErrorKind::Corrupt;
    };
    if let SessionEngine::Local(engine) = &session.engine {
        match engine.store().check() {
            Ok(check) => {
                for problem in check.problems {
                    let what = format!("{}: {}", problem.record, problem.why);
                    damage(CommandError::refused(ErrorKind::Corrupt, what));
                }
            }
            Err(error) => damage(error.into()),
        }
    }
    match session.engine.stats(&session.call, None) {
        Ok(stats) => {
            health.conversations = stats.store.conversations;
            health.turns = stats.store.turns;
            health.size_bytes = stats.store.disk_bytes;
        }
        Err(error) => damage(error.into()),
    }
    health.exists = true;
    Ok((health, Some(session)))
}

/// Returns the free space on the disk of a folder that may not exist yet.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|it| it.exists())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Finds the agents on this machine and compares their history with the store.
fn check_agents(
    globals: &Globals,
    engine: Option<&Engine>,
    problems: &mut Vec<Problem>,
) -> Result<Vec<AgentHistory>> {
    let variable =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folders = detect::agent_folders(&variable);
    let call = tine_engine::Call::by(globals.actor());
    let settings = ImportSettings { by_folder: true, ..ImportSettings::default() };
    let importer = engine
        .map(|engine| Importer::begin(engine, &call, settings))
        .transpose()
        .map_err(|error| CommandError::refused(ErrorKind::Internal, error.to_string()))?;
    let mut known: HashMap<ImportFormat, bool> = HashMap::new();
    let mut agents = Vec::new();
    for folder in folders {
        let plan = match detect::plan(std::slice::from_ref(&folder.path), None) {
            Ok(plan) => plan,
            Err(error) => {
                problems.push(Problem { what: error.to_string(), fix: None });
                continue;
            }
        };
        let jobs: Vec<&ImportJob> =
            plan.jobs.iter().filter(|job| job.format == folder.format).collect();
        if jobs.is_empty() {
            continue;
        }
        let imported = match (known.get(&folder.format), engine) {
            (Some(known), _) => *known,
            (None, Some(engine)) => is_imported(engine, &call, folder.format)?,
            (None, None) => false,
        };
        known.insert(folder.format, imported);
        let history = history(&folder, &jobs, importer.as_ref(), imported);
        problems.extend(history_problem(&history, engine.is_some()));
        agents.push(history);
    }
    Ok(agents)
}

/// Returns whether any project holds a conversation of a program.
fn is_imported(engine: &Engine, call: &tine_engine::Call, format: ImportFormat) -> Result<bool> {
    for project in engine.projects().map_err(tine_api::Error::from)? {
        let call = call.clone().in_project(project.id);
        let program = Some(format.name().to_owned());
        let query = RecentQuery { include_archived: true, program, ..RecentQuery::default() };
        let page = Page { cursor: None, limit: Some(1) };
        let found = engine.recent_conversations(&call, &query, page);
        if !found.map_err(tine_api::Error::from)?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn history(
    folder: &AgentFolder,
    jobs: &[&ImportJob],
    importer: Option<&Importer<'_>>,
    imported: bool,
) -> AgentHistory {
    let is_read = |job: &ImportJob| match job.format.is_log() {
        true => importer.is_some_and(|importer| importer.has_read(job)),
        false => imported,
    };
    let read = jobs.iter().filter(|job| is_read(job)).count() as u64;
    let kept_days = kept_days(folder.format);
    let now = now_ms();
    let deadlines = kept_days.map(|days| {
        let unread = jobs.iter().filter(|job| !is_read(job));
        unread.map(|job| job.modified_ms.saturating_add(days.saturating_mul(DAY_MS))).collect()
    });
    let deadlines: Vec<u64> = deadlines.unwrap_or_default();
    let first = deadlines.iter().min();
    AgentHistory {
        program: folder.format.name(),
        name: folder.format.title(),
        folder: folder.path.clone(),
        files: jobs.len() as u64,
        size_bytes: jobs.iter().map(|job| job.bytes).sum(),
        imported_files: (importer.is_some() && folder.format.is_log()).then_some(read),
        imported,
        kept_days,
        days_left: first.map(|first| first.saturating_sub(now) / DAY_MS),
        files_at_risk: deadlines.iter().filter(|it| **it < now + SOON_MS).count() as u64,
    }
}

/// Returns what is wrong with the history of an agent, as the most pressing problem.
fn history_problem(history: &AgentHistory, has_store: bool) -> Option<Problem> {
    let fix = format!("tine import {}", quoted(&history.folder));
    let missing = match history.imported_files {
        Some(imported) => history.files - imported.min(history.files),
        None if history.imported => 0,
        None => history.files,
    };
    if missing == 0 || !has_store && history.files == 0 {
        return None;
    }
    let files = count(missing, "file");
    let name = history.name;
    if history.files_at_risk > 0 {
        let soon = count(history.files_at_risk, "file");
        let when = match history.days_left {
            None | Some(0) => "any time now".to_owned(),
            Some(days) => format!("in {}", count(days, "day")),
        };
        let what =
            format!("{name} deletes {soon} within a week that are not imported, the first {when}");
        return Some(Problem::new(what, fix));
    }
    Some(Problem::new(format!("{files} of {name} are not imported, or changed since"), fix))
}

/// Returns for how many days an agent keeps its history; `None` if it deletes nothing.
fn kept_days(format: ImportFormat) -> Option<u64> {
    let read = |variable: &str, folder: &str| {
        let own = folder_from_env(variable).or_else(|| Some(home()?.join(folder)));
        fs::read_to_string(own?.join("settings.json")).ok()
    };
    match format {
        ImportFormat::ClaudeCode => {
            let text = read("CLAUDE_CONFIG_DIR", ".claude").unwrap_or_default();
            let days = jsonc::value_at(&text, &["cleanupPeriodDays"]).ok().flatten();
            Some(days.and_then(|days| days.parse().ok()).unwrap_or(CLAUDE_CODE_DAYS))
        }
        ImportFormat::GeminiCli => {
            let text = read("GEMINI_CLI_HOME", ".gemini").unwrap_or_default();
            let setting = |name| {
                let path = ["general", "sessionRetention", name];
                jsonc::value_at(&text, &path).ok().flatten()
            };
            if setting("enabled").as_deref() == Some("false") {
                return None;
            }
            Some(setting("maxAge").as_deref().and_then(age_in_days).unwrap_or(GEMINI_CLI_DAYS))
        }
        _ => None,
    }
}

/// Parses an age such as `"30d"`, `"24h"` or `"2w"`.
fn age_in_days(text: &str) -> Option<u64> {
    let text = text.trim_matches('"');
    let digits = text.find(|symbol: char| !symbol.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "h" => Some(number / 24),
        "d" => Some(number),
        "w" => number.checked_mul(7),
        "m" => number.checked_mul(30),
        _ => None,
    }
}

/// Checks which editors and agents start tine.
fn check_hosts(problems: &mut Vec<Problem>) -> Vec<HostEntryState> {
    let mut hosts = Vec::new();
    let mut add = |host, protocol, file: PathBuf, installed: std::result::Result<bool, String>| {
        match installed {
            Ok(installed) => hosts.push(HostEntryState { host, protocol, file, installed }),
            Err(why) => problems.push(Problem {
                what: format!("{} cannot be read: {why}", file.display()),
                fix: None,
            }),
        }
    };
    for host in Host::ALL {
        let Some(file) = host.file().filter(|file| host.is_here(file)) else { continue };
        let installed = read_settings(&file).and_then(|text| host.has_entry(&text));
        add(host.name(), "mcp", file, installed);
    }
    for editor in [Editor::Zed, Editor::Jetbrains] {
        let file = editor.file().filter(|file| file.parent().is_some_and(Path::exists));
        let Some(file) = file else { continue };
        let installed = read_settings(&file).and_then(|text| editor.has_entry(&text));
        add(editor.name(), "acp", file, installed);
    }
    for host in hosts.iter().filter(|host| !host.installed) {
        let what = match host.protocol {
            "mcp" => format!("{} has no MCP entry for tine", host.host),
            _ => format!("{} has no ACP entry for tine", host.host),
        };
        let argument = host.host.to_lowercase().replace(' ', "-").replace("vs-code", "vscode");
        problems.push(Problem::new(what, format!("tine {} install {argument}", host.protocol)));
    }
    hosts
}

/// Reads a settings file; one that does not exist is empty.
fn read_settings(file: &Path) -> std::result::Result<String, String> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error.to_string()),
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |symbol: char| symbol.is_alphanumeric() || "/._-+:\\".contains(symbol);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn write_report(screen: &Screen, document: &DoctorDocument) -> Result<()> {
    let paint = screen.paint;
    let store = &document.store;
    screen.text(Paging::Direct, |out| {
        let state = match (store.exists, store.damaged) {
            (_, true) => "damaged".to_owned(),
            (false, _) => "not there".to_owned(),
            (true, false) => {
                let conversations = count(store.conversations, "conversation");
                let turns = count(store.turns, "turn");
                format!("{conversations}, {turns}, {}", HumanBytes(store.size_bytes))
            }
        };
        writeln!(out, "{}  {}: {state}", paint.bold("Store"), visible(&store.location))?;
        if let Some(free) = store.free_bytes {
            writeln!(out, "       {} free on its disk", HumanBytes(free))?;
        }
        writeln!(out, "\n{}", paint.bold("Agents"))?;
        if document.agents.is_empty() {
            writeln!(out, "  none with history on this machine")?;
        }
        for agent in &document.agents {
            let (files, size) = (count(agent.files, "file"), HumanBytes(agent.size_bytes));
            writeln!(out, "  {}: {files}, {size}, in {}", agent.name, agent.folder.display())?;
            let imported = match (agent.imported_files, agent.imported) {
                (Some(read), _) if read == agent.files => "all imported".to_owned(),
                (Some(read), _) => format!("{read} of {} imported", agent.files),
                (None, true) => "imported; another import finds what is new".to_owned(),
                (None, false) => "not imported".to_owned(),
            };
            let kept = match agent.kept_days {
                None => "the agent deletes nothing".to_owned(),
                Some(days) => {
                    format!(
                        "the agent deletes files {} after their last change",
                        count(days, "day")
                    )
                }
            };
            writeln!(out, "    {}", paint.dim(&format!("{imported}; {kept}")))?;
        }
        if !document.hosts.is_empty() {
            writeln!(out, "\n{}", paint.bold("Editors and agents that can start tine"))?;
        }
        for host in &document.hosts {
            let state = if host.installed { "installed" } else { "not installed" };
            let protocol = host.protocol.to_uppercase();
            writeln!(out, "  {} ({protocol}): {state}", host.host)?;
        }
        writeln!(out)?;
        if document.problems.is_empty() {
            return Ok(writeln!(out, "No problems found.")?);
        }
        writeln!(out, "{}", paint.bold("To do"))?;
        for problem in &document.problems {
            writeln!(out, "  {}", visible(&problem.what))?;
            if let Some(fix) = &problem.fix {
                writeln!(out, "    {}", paint.found(&visible(fix)))?;
            }
        }
        Ok(())
    })
}

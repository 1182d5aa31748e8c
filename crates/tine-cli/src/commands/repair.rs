//! `tine verify --repair`: copies the intact records of a damaged store to a new one.
//!
//! The damaged store is only read. Two folders are created: a temporary copy of every readable row,
//! and the new store with the verified records. Omitted records are listed in a file in the new
//! store's folder, one per line, turns with their content.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tine_core::ErrorKind;
use tine_core::json::{self, Json, object};
use tine_engine::{Engine, LeftOut, Repaired, SystemClock, SystemEntropy};
use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{Content, OpenMode};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::session::{CliSession, SessionEngine, limits};
use crate::store_location::StoreLocation;
use crate::terminal::Paging;
use crate::terminal::text::{count, visible};

/// The file in the new store's folder that lists omitted records.
const LEFT_OUT_FILE: &str = "left-out.jsonl";

/// Maximum number of omitted records in text output; the file has all.
const LISTED: usize = 50;

/// A temporary folder that is removed on drop.
struct ScratchFolder(PathBuf);

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // If removal fails, the folder's name shows that it is temporary.
        fs::remove_dir_all(&self.0).ok();
    }
}

#[derive(Serialize)]
struct RepairDocument {
    folder: PathBuf,
    ok: bool,
    whole: u64,
    in_part: u64,
    lost: u64,
    turns: u64,
    operations: u64,
    left_out: u64,
    /// The file that lists omitted records, if any.
    left_out_file: Option<PathBuf>,
    /// Problems of the damaged store's files.
    problems: Vec<tine_core::DamagedRecord>,
}

pub(crate) fn repair(globals: &Globals, to: &Path) -> Result<()> {
    let from = StoreLocation::from_globals(globals)?.into_folder()?;
    check_target(&from, to)?;
    let scratch = ScratchFolder(scratch_path(to));
    let salvaged = tine_sqlite::salvage(&from, &scratch.0)?;
    let open =
        |folder: &Path, mode| SqliteStore::open_with(folder, OpenOptions { mode, vfs: None });
    let damaged = open(&scratch.0, OpenMode::Existing)?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let engine = Engine::with(Arc::new(open(to, OpenMode::Create)?), clock, entropy, limits());
    let session = CliSession::with_engine(SessionEngine::Local(engine.clone()), globals)?;

    let mut list = LeftOutList { path: to.join(LEFT_OUT_FILE), file: None, first: Vec::new() };
    let mut failed = None;
    let done = engine.repair(&session.call, &damaged, &salvaged.lost, &mut |record| {
        list.add(record).map_err(|error| {
            let why = format!("{} cannot be written: {error}", list.path.display());
            failed = Some(why.clone());
            tine_engine::Error::Invalid(why)
        })
    });
    if let Some(why) = failed {
        return Err(CommandError::refused(ErrorKind::Internal, why));
    }
    let done = done?;
    list.finish()?;
    let problems = salvaged.problems;
    let left_out_file = (done.left_out > 0).then(|| list.path.clone());
    let document = RepairDocument {
        folder: to.to_owned(),
        ok: done.left_out == 0,
        whole: done.whole,
        in_part: done.in_part,
        lost: done.lost,
        turns: done.turns,
        operations: done.operations,
        left_out: done.left_out,
        left_out_file,
        problems: problems
            .iter()
            .map(|it| tine_core::DamagedRecord { record: it.record.clone(), why: it.why.clone() })
            .collect(),
    };
    if session.screen.json {
        session.answered_json(|| document)?;
    } else {
        print_report(&session, &document, &done, &list)?;
    }
    if done.left_out > 0 {
        let records = count(done.left_out, "record");
        return Err(CommandError::refused(
            ErrorKind::Corrupt,
            format!("{records} could not be copied; {LEFT_OUT_FILE} lists them"),
        ));
    }
    Ok(())
}

/// Refuses a target that is the damaged store itself, or anything but a new or empty folder.
fn check_target(from: &Path, to: &Path) -> Result<()> {
    let same =
        fs::canonicalize(from).ok().is_some_and(|from| fs::canonicalize(to).ok() == Some(from));
    let empty = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(_) => false,
    };
    if same || !empty {
        let to = to.display();
        return Err(CommandError::invalid(format!(
            "{to} is not empty; name a new or empty folder"
        )));
    }
    Ok(())
}

/// Returns the path of the temporary folder, next to the target.
fn scratch_path(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(format!(".{}.salvage", std::process::id()));
    PathBuf::from(name)
}

fn print_report(
    session: &CliSession,
    document: &RepairDocument,
    done: &Repaired,
    list: &LeftOutList,
) -> Result<()> {
    session.screen.text(Paging::Direct, |out| {
        for problem in &document.problems {
            writeln!(out, "{}: {}", visible(&problem.record), visible(&problem.why))?;
        }
        for line in &list.first {
            writeln!(out, "left out: {}", visible(line))?;
        }
        let listed = list.first.len() as u64;
        if done.left_out > listed {
            writeln!(out, "left out: {} more", count(done.left_out - listed, "record"))?;
        }
        writeln!(
            out,
            "{}: {} whole, {} in part, {} lost; {}, {}",
            document.folder.display(),
            count(done.whole, "conversation"),
            done.in_part,
            done.lost,
            count(done.turns, "turn"),
            count(done.operations, "operation"),
        )?;
        Ok(())
    })
}

/// Collects omitted records: all in a file, the first ones for text output.
struct LeftOutList {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    first: Vec<String>,
}

impl LeftOutList {
    fn add(&mut self, record: LeftOut) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(BufWriter::new(File::create_new(&self.path)?));
        }
        if self.first.len() < LISTED {
            let within = record.conversation.as_ref().map(|id| format!(" in conversation {id}"));
            let within = within.unwrap_or_default();
            self.first.push(format!("{}{within}: {}", record.record, record.why));
        }
        match &mut self.file {
            Some(file) => writeln!(file, "{}", left_out_json(record).to_canonical()),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(file) = self.file.take() {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
        }
        Ok(())
    }
}

fn left_out_json(left_out: LeftOut) -> Json {
    let LeftOut { project, conversation, record, why, turn } = left_out;
    let text = |value: &dyn ToString| Json::String(value.to_string());
    let turn = turn.map(|turn| {
        let (turn, parent) = *turn;
        let content = match &turn.content {
            Content::Kept(body) => {
                // Damaged blocks may not be valid JSON; those are written as text.
                let blocks = body.to_blocks_string();
                let parsed = json::parse(blocks.as_bytes(), json::MAX_DEPTH);
                parsed.unwrap_or(Json::String(blocks))
            }
            Content::Purged(_) => Json::Null,
        };
        object([
            ("turn_id", text(&turn.id)),
            ("turn_hash", text(&turn.hash)),
            ("parent_id", parent.as_ref().map(|parent| text(parent)).into()),
            ("role", text(&turn.role.as_str())),
            ("content", content),
            ("tool_call_id", turn.tool_call_id.into()),
            ("created_at", text(&turn.created_at)),
        ])
    });
    object([
        ("project", project.as_ref().map(|it| text(it)).into()),
        ("conversation_id", conversation.as_ref().map(|it| text(it)).into()),
        ("record", record.into()),
        ("why", why.into()),
        ("turn", turn.into()),
    ])
}

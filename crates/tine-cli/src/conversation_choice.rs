//! Which conversation a command is about: finds the one that `-c` names, and remembers a choice for
//! each folder.
//!
//! A text names a conversation by its id. Otherwise it names the only conversation whose id, label
//! or short name begins with it. Choices are kept in the user's state folder, by store and folder, and
//! apply below the folder too.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tine_api::Listing;
use tine_core::{ConversationId, ErrorKind, Limits, ProjectId};
use tine_engine::{Call, ConversationView, Operations, Page, RecentQuery};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::store_location::StoreLocation;
use crate::user_dirs;

/// The most conversations that an error lists.
const LISTED: usize = 5;

/// The file of remembered choices.
const FILE_NAME: &str = "conversations.json";

/// The most choices that are remembered; the oldest are forgotten.
const MOST_CHOICES: usize = 500;

/// Returns the part of an id that people recognise: without the program that it was imported from.
pub(crate) fn short_name(id: &str) -> &str {
    let is_program = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    match id.split_once(':') {
        Some((program, rest)) if is_program(program) && !rest.is_empty() => {
            rest.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(rest)
        }
        _ => id,
    }
}

/// Finds the conversation that a text names, and returns whether the text is its id. A text that
/// matches nothing is returned as an id.
pub(crate) fn find(
    engine: &dyn Operations,
    call: &Call,
    text: &str,
    limits: &Limits,
) -> Result<(ConversationId, bool)> {
    let id = ConversationId::new(text, limits)?;
    // The log is there even if the conversation's creation was undone.
    match engine.operations(call, &id, Page { cursor: None, limit: Some(1) }) {
        Ok(_) => return Ok((id, true)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let query = RecentQuery {
        include_archived: true,
        words: Some(text.to_owned()),
        ..RecentQuery::default()
    };
    let mut found: Vec<ConversationView> = Vec::new();
    let mut page = Page::default();
    loop {
        let Listing { items, next } = engine.recent_conversations(call, &query, page)?;
        found.extend(items);
        match next {
            Some(next) => page = Page { cursor: Some(next), limit: None },
            None => break,
        }
    }
    let by_id = |it: &&ConversationView| {
        let id = it.id.as_str();
        id.starts_with(text) || short_name(id).starts_with(text)
    };
    let begins = text.trim().to_lowercase();
    let by_label = |it: &&ConversationView| {
        it.label().is_some_and(|label| label.to_lowercase().starts_with(&begins))
    };
    let mut matches: Vec<&ConversationView> = found.iter().filter(by_id).collect();
    if matches.is_empty() {
        matches = found.iter().filter(by_label).collect();
    }
    // Sub-agents have ids that begin with that of the conversation that started them.
    let ids: HashSet<ConversationId> = matches.iter().map(|it| it.id.clone()).collect();
    matches.retain(|it| {
        let started_by = it.overview.as_ref().and_then(|overview| overview.started_by.as_ref());
        started_by.is_none_or(|parent| !ids.contains(parent))
    });
    match matches.as_slice() {
        [] => Ok((id, true)),
        [only] => Ok((only.id.clone(), false)),
        several => {
            let list: Vec<String> = several.iter().take(LISTED).map(|it| described(it)).collect();
            let more = if several.len() > LISTED { ", …" } else { "" };
            let why = format!(
                "`{text}` matches {} conversations: {}{more}; give more of the id",
                several.len(),
                list.join(", ")
            );
            Err(CommandError::refused(ErrorKind::Ambiguous, why))
        }
    }
}

fn described(conversation: &ConversationView) -> String {
    const LABEL: usize = 40;
    let label = conversation.label().map(|label| tine_core::text::preview(label, LABEL));
    match label {
        Some(label) => format!("{} ({label})", conversation.id),
        None => conversation.id.to_string(),
    }
}

/// A choice for one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    store: String,
    folder: PathBuf,
    project: ProjectId,
    conversation: ConversationId,
}

/// The choices that apply to one store in one folder.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    file: PathBuf,
    store: String,
    pub(crate) folder: PathBuf,
}

impl Choices {
    /// Returns where choices are kept; `None` without a home folder or a current folder.
    pub(crate) fn of(globals: &Globals) -> Result<Option<Self>> {
        let (Some(state), Ok(folder)) = (user_dirs::state_folder(), env::current_dir()) else {
            return Ok(None);
        };
        let store = match globals.server()? {
            Some(url) => url,
            None => match StoreLocation::from_globals(globals)? {
                StoreLocation::Folder(folder) => {
                    let whole = folder.canonicalize().unwrap_or(folder);
                    whole.display().to_string()
                }
                database => database.to_string(),
            },
        };
        Ok(Some(Choices { file: state.join(FILE_NAME), store, folder }))
    }

    /// Returns the conversation that was chosen in this folder or in the nearest one above it.
    pub(crate) fn chosen(&self, project: &ProjectId) -> Option<ConversationId> {
        let choices = read(&self.file);
        let here = choices.into_iter().filter(|it| {
            it.store == self.store && it.project == *project && self.folder.starts_with(&it.folder)
        });
        let nearest = here.max_by_key(|it| it.folder.components().count());
        nearest.map(|it| it.conversation)
    }

    /// Remembers a conversation for this folder, or forgets the one that is remembered. Returns
    /// whether that changed anything.
    pub(crate) fn choose(
        &self,
        project: &ProjectId,
        conversation: Option<&ConversationId>,
    ) -> Result<bool> {
        let before = read(&self.file);
        let mut choices = before.clone();
        choices.retain(|it| {
            it.store != self.store || it.project != *project || it.folder != self.folder
        });
        choices.extend(conversation.map(|conversation| Choice {
            store: self.store.clone(),
            folder: self.folder.clone(),
            project: project.clone(),
            conversation: conversation.clone(),
        }));
        let surplus = choices.len().saturating_sub(MOST_CHOICES);
        choices.drain(..surplus);
        if choices == before {
            return Ok(false);
        }
        write(&self.file, &choices).map_err(|error| {
            let why = format!("{} cannot be written: {error}", self.file.display());
            CommandError::refused(ErrorKind::Internal, why)
        })?;
        Ok(true)
    }
}

/// Reads the choices. A file that cannot be read holds none: they are a convenience.
fn read(file: &Path) -> Vec<Choice> {
    let bytes = fs::read(file).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Replaces the file as a whole, so that other processes read either version.
fn write(file: &Path, choices: &[Choice]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut fresh, choices)?;
    fresh.write_all(b"\n")?;
    fresh.persist(file)?;
    Ok(())
}

//! Writes imported trees into a store.
//!
//! Invariants:
//!
//! - A conversation is written in one transaction of the engine ([`Engine::graft`]): an interrupted
//!   import leaves whole conversations, and the next import continues.
//! - The size and time of a log are recorded with its conversation: an unchanged file is not read
//!   again.
//! - Secrets are redacted before anything is compared or recorded, unless that is switched off.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use tine_core::json::{Object, object};
use tine_core::{
    ConversationId, Digest, ErrorKind, Json, Limits, Message, Name, ProjectId, Reference, TurnId,
};
use tine_engine::{
    Call, End, Engine, Graft, GraftLine, GraftTurn, Imported, Interpret, NewConversation,
    NewRelationship, NewSource, Page, TopologyQuery,
};
use tine_formats::bundle::{BundleError, read_bundle_in_place};
use tine_formats::{html_page, redact};

use crate::detect::ImportJob;
use crate::formats::{self, ImportFormat};
use crate::input::Input;
use crate::{Attachment, ByteCounter, Error, ImportedConversation, Note, Receiver};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Files that were read.
    pub files: u64,
    /// Files that have not changed since they were last read.
    pub unchanged_files: u64,
    /// Conversations that are new.
    pub conversations: u64,
    /// Existing conversations that got new turns.
    pub grown: u64,
    /// Conversations without new turns.
    pub unchanged: u64,
    /// Conversations that were left out.
    pub left_out: u64,
    /// Turns that are new.
    pub turns: u64,
    /// New branches other than `main`.
    pub branches: u64,
    /// New abandoned paths.
    pub tails: u64,
    /// Attachments of messages, which are stored as sources.
    pub attachments: u64,
    /// Turns that were not imported because they were deleted in this store.
    pub withheld: u64,
    /// Conversations per project, created or already there.
    pub projects: BTreeMap<ProjectId, u64>,
    /// Redacted secrets, by kind.
    pub redacted: BTreeMap<String, u64>,
}

/// Options of an import.
#[derive(Clone, Debug)]
pub struct ImportSettings {
    /// Whether secrets are redacted.
    pub redact: bool,
    /// Whether each working folder becomes a project.
    pub by_folder: bool,
    /// The project that conversations of bundles go to instead of their own.
    pub project: Option<ProjectId>,
    /// Size limits.
    pub bounds: crate::Bounds,
}

impl Default for ImportSettings {
    fn default() -> Self {
        ImportSettings {
            redact: true,
            by_folder: false,
            project: None,
            bounds: crate::Bounds::default(),
        }
    }
}

/// Earlier imports into a project, as recorded in the store.
#[derive(Default)]
struct EarlierImports {
    /// Size and modification time of the files of each conversation.
    files: HashMap<ConversationId, Object>,
    /// Conversations by format and the id of their first message.
    firsts: HashMap<String, ConversationId>,
    /// Conversations by the ids of their forks.
    forks: HashMap<ConversationId, ConversationId>,
    there: HashSet<ConversationId>,
    /// The time of the last change of each conversation in its original program.
    updated: HashMap<ConversationId, String>,
}

/// Imports files into a store.
pub struct Importer<'e> {
    engine: &'e Engine,
    call: Call,
    settings: ImportSettings,
    known: HashMap<ProjectId, EarlierImports>,
    /// Size and modification time of files that were read.
    read: HashMap<String, (u64, u64)>,
    job: Option<ImportJob>,
    links: Vec<SpawnLink>,
    growing: bool,
    counter: ByteCounter,
    /// The result so far.
    pub summary: ImportSummary,
    /// What was left out or assumed.
    pub notes: Vec<Note>,
}

/// A conversation that a turn started.
struct SpawnLink {
    project: ProjectId,
    conversation: ConversationId,
    by: TurnId,
}

impl<'e> Importer<'e> {
    /// Starts an import and looks up earlier imports.
    pub fn begin(engine: &'e Engine, call: &Call, settings: ImportSettings) -> Result<Self, Error> {
        let mut importer = Importer {
            engine,
            call: call.clone(),
            settings,
            known: HashMap::new(),
            read: HashMap::new(),
            job: None,
            links: Vec::new(),
            growing: false,
            counter: ByteCounter::default(),
            summary: ImportSummary::default(),
            notes: Vec::new(),
        };
        let projects = match importer.settings.by_folder {
            true => engine.projects()?.into_iter().map(|project| project.id).collect(),
            false => vec![call.project.clone()],
        };
        for project in projects {
            importer.look_up(project)?;
        }
        Ok(importer)
    }

    /// Returns the counter of bytes read.
    pub fn counter(&self) -> ByteCounter {
        self.counter.clone()
    }

    fn look_up(&mut self, project: ProjectId) -> Result<(), Error> {
        let call = self.call.clone().in_project(project.clone());
        let mut known = EarlierImports::default();
        let mut page = Page::default();
        loop {
            let listing = self.engine.conversations(&call, true, page)?;
            for conversation in listing.items {
                let Some(imported) = conversation.metadata.get("imported") else { continue };
                let member = |name: &str| imported.get(name).and_then(Json::as_str);
                known.there.insert(conversation.id.clone());
                for fork in imported.get("forks").and_then(Json::as_array).unwrap_or_default() {
                    let fork = fork.as_str().map(ConversationId::from_stored);
                    known.forks.extend(fork.map(|fork| (fork, conversation.id.clone())));
                }
                if let (Some(format), Some(first)) = (member("format"), member("first")) {
                    known.firsts.insert(format!("{format}:{first}"), conversation.id.clone());
                }
                if let Some(updated) = member("updated_at") {
                    known.updated.insert(conversation.id.clone(), updated.to_owned());
                }
                if let Some(files) = imported.get("files").and_then(Json::as_object) {
                    for (file, about) in files.iter() {
                        let member = |name: &str| about.get(name).and_then(Json::as_u64);
                        if let (Some(bytes), Some(at)) = (member("bytes"), member("modified_ms")) {
                            self.read.insert(file.to_owned(), (bytes, at));
                        }
                    }
                    known.files.insert(conversation.id, files.clone());
                }
            }
            match listing.next {
                Some(next) => page = Page { cursor: Some(next), ..Page::default() },
                None => break,
            }
        }
        self.known.insert(project, known);
        Ok(())
    }

    /// Returns whether a file has not changed since it was last read.
    pub fn has_read(&self, job: &ImportJob) -> bool {
        let file = file_key(&job.path);
        job.format.is_log() && self.read.get(&file) == Some(&(job.bytes, job.modified_ms))
    }

    /// Imports a file that is still being written, except for messages that may be incomplete. It is
    /// read again later.
    pub fn run_growing(&mut self, job: &ImportJob) -> Result<(), Error> {
        self.growing = true;
        let done = self.run(job);
        self.growing = false;
        done
    }

    /// Imports one file, unless it has not changed since it was last read.
    pub fn run(&mut self, job: &ImportJob) -> Result<(), Error> {
        if job.format == ImportFormat::Bundle {
            return self.bundle(job);
        }
        let file = file_key(&job.path);
        if self.has_read(job) {
            self.summary.unchanged_files += 1;
            self.counter.skip(job.bytes);
            return Ok(());
        }
        let (bounds, counter) = (self.settings.bounds, self.counter.clone());
        let input = Input { bounds, counter, growing: self.growing };
        self.job = Some(job.clone());
        let done = formats::read(job.format, &input, &job.path, self);
        self.job = None;
        match done {
            Ok(()) => {
                self.summary.files += 1;
                if job.format.is_log() && !self.growing {
                    self.read.insert(file, (job.bytes, job.modified_ms));
                }
                Ok(())
            }
            // One bad file does not stop the import of the others.
            Err(
                error @ (Error::Malformed { .. } | Error::TooLarge { .. } | Error::Read { .. }),
            ) => {
                self.notes.push(Note::new(&job.path, None, error.to_string()));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Imports a bundle; a rejected bundle is noted.
    fn bundle(&mut self, job: &ImportJob) -> Result<(), Error> {
        let done = read_bundle_file(self.engine, self.settings.project.as_ref(), &job.path);
        self.counter.skip(job.bytes);
        match done {
            Ok(done) => {
                self.summary.files += 1;
                self.summary.conversations += done.conversations;
                self.summary.grown += done.extended;
                self.summary.unchanged += done.unchanged;
                self.summary.turns += done.turns;
            }
            Err(error) => {
                self.summary.left_out += 1;
                self.notes.push(Note::new(&job.path, None, error.to_string()));
            }
        }
        Ok(())
    }

    /// Links conversations to the turns that started them. Call it after the last file.
    pub fn finish(&mut self) -> Result<(), Error> {
        for link in std::mem::take(&mut self.links) {
            let call = self.call.clone().in_project(link.project);
            let mut query = TopologyQuery::of(link.conversation.clone());
            query.limit = Some(1);
            let first = match self.engine.topology(&call, query) {
                Ok(page) => page.rows.first().map(|row| row.id),
                // It may be in a file that was not given.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(first) = first {
                self.relate(&call, "PART_OF", End::Turn(first.into()), End::Turn(link.by.into()))?;
            }
        }
        Ok(())
    }

    fn relate(&self, call: &Call, relation: &str, source: End, target: End) -> Result<(), Error> {
        let request =
            NewRelationship { relation: relation.to_owned(), source, target, metadata: Json::Null };
        self.engine.create_relationship(call, request)?;
        Ok(())
    }

    fn project(&self, folder: Option<&str>) -> Result<ProjectId, Error> {
        let name = folder
            .and_then(|folder| folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next());
        match name.filter(|name| self.settings.by_folder && !name.is_empty()) {
            Some(name) => {
                let id = ProjectId::new(name, &Limits::default());
                Ok(id.unwrap_or_else(|_| self.call.project.clone()))
            }
            None => Ok(self.call.project.clone()),
        }
    }

    fn import_conversation(
        &mut self,
        format: ImportFormat,
        mut tree: ImportedConversation,
    ) -> Result<(), Error> {
        self.notes.append(&mut tree.notes);
        if tree.messages.is_empty() {
            self.summary.left_out += 1;
            return Ok(());
        }
        let project = self.project(tree.folder.as_deref())?;
        *self.summary.projects.entry(project.clone()).or_default() += 1;
        let (id, forked) = self.id(format, &project, &tree);
        if forked {
            let own: String = tree.id.chars().take(8).collect();
            let main = tree.paths.iter_mut().filter(|line| line.branch.as_deref() == Some("main"));
            main.for_each(|line| line.branch = Some(format!("session-{own}")));
        }
        let mut call = self.call.clone().in_project(project.clone());
        if self.settings.redact {
            call = call.with_redacted(redacted(&mut tree));
        }
        let updated = tree.updated_at.map(|at| at.to_string());
        let known = self.known.entry(project.clone()).or_default();
        if updated.is_some() && known.updated.get(&id) == updated.as_ref() {
            self.summary.unchanged += 1;
            return Ok(());
        }
        let metadata = self.metadata(format, &project, &id, &tree);
        let attachments: Vec<Vec<Attachment>> =
            tree.messages.iter_mut().map(|node| std::mem::take(&mut node.attachments)).collect();
        let tails = tree.paths.iter().filter(|line| line.branch.is_none()).count() as u64;
        let redacted = call.redacted.clone();
        let started = std::mem::take(&mut tree.started);
        let done = match self.engine.graft(&call, graft(&id, tree, metadata)) {
            Ok(done) => done,
            Err(error) if is_input_error(error.kind()) => {
                self.summary.left_out += 1;
                self.note_job(format!("the conversation {id} was rejected: {error}; left out"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if done.refused {
            self.summary.left_out += 1;
            self.note_job(format!("the conversation {id} was purged or undone here; left out"));
            return Ok(());
        }
        let summary = &mut self.summary;
        match (done.created, done.made) {
            (true, _) => summary.conversations += 1,
            (false, 0) => summary.unchanged += 1,
            (false, _) => summary.grown += 1,
        }
        summary.turns += done.made;
        summary.branches += done.branches.len() as u64;
        summary.withheld += done.withheld;
        if done.created {
            summary.tails += tails;
        }
        if done.made > 0 {
            for (kind, count) in redacted {
                *summary.redacted.entry(kind).or_default() += count;
            }
        }
        for started in started {
            if let Some(by) = done.turns.get(started.by).copied().flatten() {
                let conversation = conversation_id(format, &started.conversation);
                self.links.push(SpawnLink { project: project.clone(), conversation, by });
            }
        }
        for (files, turn) in attachments.into_iter().zip(&done.turns) {
            if let Some(turn) = turn {
                self.attach(&call, *turn, files)?;
            }
        }
        Ok(())
    }

    /// Adds a note about the file that is being imported.
    fn note_job(&mut self, what: String) {
        let file = self.job.as_ref().map(|job| job.path.clone()).unwrap_or_default();
        self.notes.push(Note::new(&file, None, what));
    }

    fn attach(&mut self, call: &Call, turn: TurnId, files: Vec<Attachment>) -> Result<(), Error> {
        for file in files {
            let mut bytes = file.bytes;
            if self.settings.redact {
                let (clean, _) = redact::source(bytes.clone());
                bytes = clean.unwrap_or(bytes);
            }
            let source = NewSource {
                content: Arc::new(bytes),
                mime_type: file.mime_type,
                original_filename: file.name.and_then(file_name),
                interpret: Interpret::None,
                interpreter: None,
            };
            let stored = match self.engine.store_source(call, source) {
                Ok(stored) => stored,
                Err(error) if is_input_error(error.kind()) => {
                    let what = format!("an attachment of turn {turn} was rejected: {error}");
                    self.note_job(format!("{what}; left out"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let target = End::Source(stored.source.id);
            self.relate(call, "EMBEDS", End::Turn(Reference::from(turn)), target)?;
            self.summary.attachments += 1;
        }
        Ok(())
    }

    /// Returns the conversation that a tree is imported into, and whether the tree is a fork of it.
    fn id(
        &mut self,
        format: ImportFormat,
        project: &ProjectId,
        tree: &ImportedConversation,
    ) -> (ConversationId, bool) {
        let own = conversation_id(format, &tree.id);
        let known = self.known.entry(project.clone()).or_default();
        if known.there.contains(&own) {
            return (own, false);
        }
        if let Some(of) = known.forks.get(&own) {
            return (of.clone(), true);
        }
        let from = tree.forked_from.as_ref().map(|from| conversation_id(format, from));
        let from = from.and_then(|from| known.forks.get(&from).cloned().or(Some(from)));
        let from = from.filter(|from| known.there.contains(from));
        let first = tree.messages.first().filter(|_| tree.shares_ids);
        let first = first.map(|node| format!("{}:{}", format.name(), node.id));
        let from = from.or_else(|| known.firsts.get(&first?).cloned());
        match from {
            Some(from) => {
                known.forks.insert(own, from.clone());
                (from, true)
            }
            None => {
                known.there.insert(own.clone());
                (own, false)
            }
        }
    }

    /// Returns the conversation's metadata, including how much of its files was read.
    fn metadata(
        &mut self,
        format: ImportFormat,
        project: &ProjectId,
        id: &ConversationId,
        tree: &ImportedConversation,
    ) -> Json {
        let known = self.known.entry(project.clone()).or_default();
        let mut files = known.files.get(id).cloned().unwrap_or_else(Object::new);
        let whole = |job: &&ImportJob| job.format.is_log() && !self.growing;
        if let Some(job) = self.job.as_ref().filter(whole) {
            let about =
                object([("bytes", job.bytes.into()), ("modified_ms", job.modified_ms.into())]);
            files.insert(file_key(&job.path), about);
            known.files.insert(id.clone(), files.clone());
        }
        let mut imported = Object::new();
        imported.insert("format", format.name().into());
        if !files.is_empty() {
            imported.insert("files", Json::Object(files));
        }
        let forks: BTreeSet<&ConversationId> =
            known.forks.iter().filter(|(_, of)| *of == id).map(|(fork, _)| fork).collect();
        if !forks.is_empty() {
            let forks = forks.into_iter().map(|fork| fork.as_str().into());
            imported.insert("forks", Json::Array(forks.collect()));
        }
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                imported.insert(name, value.into());
            }
        };
        let first = tree.messages.first().filter(|_| tree.shares_ids).map(|node| node.id.clone());
        if let Some(first) = &first {
            known.firsts.insert(format!("{}:{first}", format.name()), id.clone());
        }
        set("first", first);
        set("created_at", tree.created_at.map(|at| at.to_string()));
        set("updated_at", tree.updated_at.map(|at| at.to_string()));
        if !tree.started.is_empty() {
            let ids = tree.started.iter().map(|it| conversation_id(format, &it.conversation));
            imported.insert("started", Json::Array(ids.map(|id| id.as_str().into()).collect()));
        }
        let mut metadata = Object::new();
        metadata.insert("imported", Json::Object(imported));
        if let Some(folder) = &tree.folder {
            metadata.insert("folder", folder.as_str().into());
        }
        Json::Object(metadata)
    }
}

impl Receiver for Importer<'_> {
    fn conversation(
        &mut self,
        format: ImportFormat,
        conversation: ImportedConversation,
    ) -> Result<(), Error> {
        self.import_conversation(format, conversation)
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }
}

/// Why a bundle was not imported.
#[derive(Debug, thiserror::Error)]
pub enum BundleFailure {
    /// It could not be read.
    #[error(transparent)]
    File(#[from] Error),
    /// The bundle is invalid, or the store rejected it.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// A bundle, which is read twice.
pub trait BundleInput: BufRead + Seek {}

impl<T: BufRead + Seek> BundleInput for T {}

/// Imports a bundle, or the one in an exported page.
pub fn read_bundle_file(
    engine: &Engine,
    project: Option<&ProjectId>,
    path: &Path,
) -> Result<Imported, BundleFailure> {
    let mut bundle = open_bundle(path)?;
    Ok(read_bundle_in_place(engine, project, &mut bundle)?)
}

/// Opens a bundle, or the one in an exported page.
pub fn open_bundle(path: &Path) -> Result<Box<dyn BundleInput>, Error> {
    let failed = |source| Error::Read { file: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    if !file.fill_buf().map_err(failed)?.trim_ascii_start().starts_with(b"<") {
        return Ok(Box::new(file));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let broken = || Error::Malformed {
        file: path.to_owned(),
        what: "the page contains no bundle; export it again".to_owned(),
    };
    let (_, after) = text.split_once(html_page::OPEN).ok_or_else(broken)?;
    let (bundle, _) = after.split_once(html_page::CLOSE).ok_or_else(broken)?;
    Ok(Box::new(Cursor::new(html_page::unescape(bundle).into_bytes())))
}

/// Returns whether an error is caused by the imported data and not by the store.
fn is_input_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Invalid | ErrorKind::TooLarge | ErrorKind::Conflict | ErrorKind::Unsupported
    )
}

/// Returns the name under which a file's state is recorded: its absolute path, so that it is
/// recognised from any folder.
fn file_key(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn conversation_id(format: ImportFormat, id: &str) -> ConversationId {
    let limits = Limits::default();
    let whole = format!("{}:{id}", format.name());
    ConversationId::new(whole.as_str(), &limits).unwrap_or_else(|_| {
        let digest = Digest::of(whole.as_bytes()).to_hex();
        ConversationId::from_stored(format!("{}:{digest}", format.name()))
    })
}

fn redacted(tree: &mut ImportedConversation) -> redact::Redacted {
    let mut found = redact::Redacted::new();
    let mut add = |more: redact::Redacted| {
        for (kind, count) in more {
            *found.entry(kind).or_default() += count;
        }
    };
    for node in &mut tree.messages {
        add(redact::body(&mut node.message.body));
    }
    for text in [&mut tree.title, &mut tree.system_prompt].into_iter().flatten() {
        add(redact::string(text));
    }
    found
}

fn graft(id: &ConversationId, tree: ImportedConversation, metadata: Json) -> Graft {
    let turns = tree.messages.into_iter().map(|node| GraftTurn {
        parent: node.parent,
        below: None,
        message: with_id(node.message, node.id),
        timeless: tree.timeless,
        identity: None,
        part_of: None,
    });
    let limits = Limits::default();
    let lines = tree.paths.iter().map(|line| GraftLine {
        tip: Some(line.tip),
        branch: line.branch.as_ref().map(|name| {
            Name::new(name.as_str(), &limits).unwrap_or_else(|_| Name::from_stored("branch"))
        }),
    });
    Graft {
        conversation: NewConversation {
            id: Some(id.clone()),
            system_prompt: tree.system_prompt,
            config: Json::Null,
            title: tree.title.as_deref().map(title),
            metadata,
        },
        turns: turns.collect(),
        lines: lines.collect(),
        rewinds: true,
        merged: None,
    }
}

/// Adds a message's id in the file to its `source_info`.
fn with_id(mut message: Message, id: String) -> Message {
    let mut info = match message.metadata.source_info.take() {
        Some(Json::Object(info)) => info,
        _ => Object::new(),
    };
    info.insert("id", id.into());
    message.metadata.source_info = Some(Json::Object(info));
    message
}

/// Returns a file name on one line and of limited length.
fn file_name(name: String) -> Option<String> {
    if name.len() <= Limits::default().name_bytes && !name.contains(char::is_control) {
        return Some(name);
    }
    Some(tine_core::text::preview(&name, 100)).filter(|name| !name.is_empty())
}

/// Returns a title on one line and of limited length.
fn title(text: &str) -> String {
    tine_core::text::preview(text, 200)
}

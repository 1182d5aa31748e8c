//! `tine store`: stores turns of hosts without branches, sources, and structured facts.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tine_api::{Leading, StoredFactsAnswer, StoredSourceAnswer, StoredTurnAnswer};

use clap::{Args, Subcommand, ValueEnum};
use tine_api::bodies;
use tine_core::{
    ErrorKind, Limits, Message, Metadata, Reference, Role, SourceId, Status, Timestamp,
};
use tine_engine::{
    Error, Interpret, NewSource, SourceBytes, StoreFacts, StoreTurn, StoredFacts, StoredSource,
};
use tine_store::OpenMode;

use super::append::role_parser;
use super::{maintenance, migrate, pack, purge};
use crate::arguments::{Globals, reference};
use crate::command_error::{CommandError, Result};
use crate::input::{self, InputSource};
use crate::knowledge_view::{row, run_row, stored_turn_rows, write_notes, write_rows};
use crate::session::{self, CliSession};
use crate::terminal::Paging;
use crate::terminal::text::visible;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine store verify
  tine store backup /mnt/backup/tine
  tine store turn trip --turn-id 1 'Where to in March?'
  tine store facts facts.json")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    subcommand: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Store a turn under its host's id, for programs that track no branches
    Turn(Box<StoreTurnArgs>),
    /// Store the bytes of a file as a source of facts
    Source(StoreSourceArgs),
    /// Store structured facts
    Facts(StoreFactsArgs),
    /// Recompute every hash of the store
    Verify(maintenance::VerifyArgs),
    /// Show the size of the store, and token usage
    Stats(maintenance::StatsArgs),
    /// Copy the store while it is in use
    Backup(maintenance::BackupArgs),
    /// Compress older turns
    Pack(pack::PackArgs),
    /// Erase the content of a turn, a source or a conversation permanently
    Purge(purge::PurgeArgs),
    /// Copy a whole store to a folder or a database
    Migrate(migrate::MigrateArgs),
}

/// Whether a store is followed by an interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InterpretChoice {
    None,
    Queue,
    Wait,
}

impl From<InterpretChoice> for Interpret {
    fn from(choice: InterpretChoice) -> Self {
        match choice {
            InterpretChoice::None => Interpret::None,
            InterpretChoice::Queue => Interpret::Queue,
            InterpretChoice::Wait => Interpret::Wait,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
For hosts that know the ids of their turns but no branches. The same id with another text is an \
edit: a sibling of the old turn, to which the branch moves. The same id with the same text is the \
same turn. Each call adds an observation, unless it repeats a --key.

Examples:
  tine store turn trip --turn-id 1 'Where to in March?'
  tine store turn trip --turn-id 1 --role assistant 'To Kyoto.'
  tine store turn trip --turn-id 1 'Where to in April?'        edits the question
  tine store turn trip --turn-id 2 --interpret wait 'I need to book a hotel by Friday.'
  date | tine store turn trip --turn-id 3 --role tool --tool-call-id c1 -
  tine entity observations trip:1:user                         every version of the question")]
struct StoreTurnArgs {
    /// Conversation; it is created if it does not exist
    #[arg(value_name = "CONVERSATION")]
    host_conversation: String,
    /// Text of the turn; `-` reads standard input
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "content_json"])]
    text: Vec<String>,
    /// File with the text
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// Content as JSON: a string or an array of blocks
    #[arg(long, value_name = "JSON", conflicts_with_all = ["text", "file"])]
    content_json: Option<String>,
    /// Id of the turn in the host [default: --key, or a new id]
    #[arg(long, value_name = "ID")]
    turn_id: Option<String>,
    /// Role of the turn
    #[arg(short, long, default_value = "user", value_parser = role_parser())]
    role: Role,
    /// Id of the tool call that a tool turn answers
    #[arg(long, value_name = "ID")]
    tool_call_id: Option<String>,
    /// Branch to append to; it is created if it does not exist [default: main]
    #[arg(short, long)]
    branch: Option<String>,
    /// Turn that it follows
    #[arg(short, long, value_name = "REF", value_parser = reference)]
    parent: Option<Reference>,
    /// Host's id of the turn that it follows
    #[arg(long, value_name = "ID", conflicts_with = "parent")]
    parent_message: Option<String>,
    /// Time of the turn, as RFC 3339 [default: now]
    #[arg(long, value_name = "TIME")]
    created_at: Option<Timestamp>,
    /// Attached source; can be repeated
    #[arg(long, value_name = "SOURCE")]
    attach: Vec<String>,
    /// Title of the conversation
    #[arg(long)]
    title: Option<String>,
    /// When to extract facts: now (wait), later by a server or `tine run work` (queue), or never
    /// (none)
    #[arg(long, value_name = "WHEN", default_value = "none")]
    interpret: InterpretChoice,
    /// Interpreter to use [default: `interpret.default` of the settings, or rules]
    #[arg(long, value_name = "NAME")]
    interpreter: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Equal bytes are one source. A turn envelope (application/vnd.tine.turn+json or \
application/x-neotoma-conversation-turn) is also stored as a turn if it names its conversation.

Examples:
  tine store source invoice.txt
  tine store source scan.pdf --interpret none
  tine store source notes.md --interpret wait --interpreter rules
  curl -s https://example.org | tine store source - --mime text/html --name example.html")]
pub(crate) struct StoreSourceArgs {
    /// File to store; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// MIME type [default: from the file name extension]
    #[arg(long, value_name = "TYPE")]
    mime: Option<String>,
    /// File name to record [default: that of the file]
    #[arg(long)]
    name: Option<String>,
    /// When to extract facts: now (wait), later by a server or `tine run work` (queue), or never
    /// (none)
    #[arg(long, value_name = "WHEN", default_value = "queue")]
    interpret: InterpretChoice,
    /// Interpreter to use [default: `interpret.default` of the settings, or rules]
    #[arg(long, value_name = "NAME")]
    interpreter: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The form is {\"entities\": [{\"entity_type\", \"fields\", \"entity_id\"?, \"observed_at\"?, \"turn\"?, \
\"span\"?, \"priority\"?, \"specificity\"?}], \"relationships\": [{\"type\", \"source_…\", \"target_…\", \
\"metadata\"?}], \"source_id\"?, \"agent\"?}. Each end of a relationship is named by one of \
source_entity_id, source_turn_id, source_source_id, source_conversation_id, or source_index: an \
entity of the same call, counted from 0; and the same with target_.

Examples:
  tine store facts facts.json
  echo '{\"entities\":[{\"entity_type\":\"person\",\"fields\":{\"name\":\"Ada\"}}]}' | tine store facts")]
struct StoreFactsArgs {
    /// File with the facts [default: standard input]
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn store(globals: &Globals, args: StoreArgs) -> Result<()> {
    let open = || CliSession::open(globals, OpenMode::Existing);
    match args.subcommand {
        StoreCommand::Turn(args) => turn(globals, *args),
        StoreCommand::Source(args) => source(globals, args),
        StoreCommand::Facts(args) => store_facts(globals, &args),
        StoreCommand::Verify(args) => maintenance::verify(globals, &args),
        StoreCommand::Stats(args) => maintenance::stats(&open()?, &args),
        StoreCommand::Backup(args) => maintenance::backup(&open()?, &args),
        StoreCommand::Pack(args) => pack::pack(&open()?, &args),
        StoreCommand::Purge(args) => purge::purge(&open()?, &args),
        StoreCommand::Migrate(args) => migrate::migrate(globals, &args),
    }
}

fn turn(globals: &Globals, args: StoreTurnArgs) -> Result<()> {
    // Read all input before creating a store: an invalid call creates nothing.
    let message = message(&args, &session::limits())?;
    let attachments: Vec<SourceId> =
        args.attach.iter().map(|id| crate::record_args::parse_id(id)).collect::<Result<_>>()?;
    let session = CliSession::open(globals, OpenMode::Create)?;
    let request = StoreTurn {
        conversation: Some(args.host_conversation),
        turn_id: args.turn_id,
        message,
        branch: args.branch,
        parent: args.parent,
        parent_message: args.parent_message,
        history: Vec::new(),
        attachments,
        title: args.title,
        system_prompt: None,
        interpret: args.interpret.into(),
        interpreter: args.interpreter,
    };
    let call = session.call_with(args.key.as_deref());
    let done = session.engine.knowledge().store_turn(&call, request)?;
    if session.screen.json {
        let answer = StoredTurnAnswer::new(done, false);
        return session.screen.document(&Leading::new(&session.call.project, answer));
    }
    session.screen.text(Paging::Direct, |out| {
        let mut rows = stored_turn_rows(&session.screen, &done);
        rows.extend(run_row(&session.screen, done.interpretation.as_ref()));
        write_rows(out, &session.screen, 0, &rows)?;
        write_notes(out, &done.warnings, done.replayed, done.undone)
    })
}

fn message(args: &StoreTurnArgs, limits: &Limits) -> Result<Message> {
    let body = match (&args.file, &args.content_json) {
        (Some(file), _) => {
            input::body(InputSource::from_path(file).read_text(limits)?, args.role, limits)?
        }
        (None, Some(json)) => {
            let content = input::json_argument("--content-json", json, limits)?;
            input::content(content, args.role, limits)?
        }
        (None, None) => input::body(input::text_or_stdin(&args.text, limits)?, args.role, limits)?,
    };
    let message = Message {
        role: args.role,
        body,
        tool_call_id: args.tool_call_id.clone(),
        created_at: args.created_at,
        status: Status::Complete,
        metadata: Metadata::default(),
    };
    message.check(limits).map_err(|source| Error::Message { index: 0, source })?;
    Ok(message)
}

/// A file that is streamed from its beginning whenever it is opened.
struct FileBytes(PathBuf);

impl SourceBytes for FileBytes {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(&self.0)?))
    }
}

/// Standard input, spooled to an unnamed temporary file.
struct SpooledStdin(Mutex<File>);

impl SourceBytes for SpooledStdin {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        let poisoned = |_| io::Error::other("a reader before this one met a defect");
        let mut file = self.0.lock().map_err(poisoned)?.try_clone()?;
        file.rewind()?;
        Ok(Box::new(file))
    }
}

/// Stores the bytes of a file as a source.
pub(crate) fn source(globals: &Globals, args: StoreSourceArgs) -> Result<()> {
    let from = InputSource::from_path(&args.file);
    let name = match (&args.name, &from) {
        (Some(name), _) => Some(name.clone()),
        (None, InputSource::Stdin) => None,
        (None, InputSource::File(path)) => {
            path.file_name().map(|it| it.to_string_lossy().into_owned())
        }
    };
    let mime_type = match (args.mime, &name) {
        (Some(mime), _) => mime,
        (None, Some(name)) => mime_of(name).to_owned(),
        (None, None) => {
            let why = "pass the type of standard input with --mime TYPE or --name FILE";
            return Err(CommandError::invalid(why));
        }
    };
    let content: Arc<dyn SourceBytes> = match &from {
        InputSource::File(path) => {
            // Fail here if the file does not exist, so that the error names it.
            drop(from.open_file()?);
            Arc::new(FileBytes(path.clone()))
        }
        InputSource::Stdin => Arc::new(SpooledStdin(Mutex::new(spool_stdin()?))),
    };
    let session = CliSession::open(globals, OpenMode::Create)?;
    let request = NewSource {
        content,
        mime_type,
        original_filename: name,
        interpret: args.interpret.into(),
        interpreter: args.interpreter,
    };
    let call = session.call_with(args.key.as_deref());
    let done = session.engine.knowledge().store_source(&call, request)?;
    if session.answered_json(|| StoredSourceAnswer::new(done.clone(), false))? {
        return Ok(());
    }
    report_source(&session, &done)
}

fn spool_stdin() -> Result<File> {
    let internal = |error: io::Error| {
        CommandError::refused(
            ErrorKind::Internal,
            format!("standard input cannot be kept: {error}"),
        )
    };
    let limit = session::limits().source_bytes as u64;
    let mut file = tempfile::tempfile().map_err(internal)?;
    // Read one byte more than allowed, so that the engine reports the limit.
    io::copy(&mut io::stdin().take(limit.saturating_add(1)), &mut file).map_err(internal)?;
    Ok(file)
}

/// Returns the MIME type for a file name's extension.
fn mime_of(name: &str) -> &'static str {
    let ending = Path::new(name).extension().and_then(|it| it.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "txt" | "text" | "log" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "htm" | "html" => "text/html",
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "ics" => "text/calendar",
        "eml" => "message/rfc822",
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

fn report_source(session: &CliSession, done: &StoredSource) -> Result<()> {
    let (screen, source) = (&session.screen, &done.source);
    screen.text(Paging::Direct, |out| {
        let id = screen.paint.hash(&source.id.to_string());
        let mut rows = vec![
            row("source", format!("{id}  {}", done.outcome.as_str())),
            row("sha256", source.content_hash.to_hex()),
            row("bytes", source.size_bytes),
            row("type", visible(&source.mime_type)),
        ];
        if let Some(turn) = &done.turn {
            rows.extend(stored_turn_rows(screen, turn));
        }
        rows.extend(run_row(screen, done.interpretation.as_ref()));
        write_rows(out, screen, 0, &rows)?;
        write_notes(out, &done.warnings, done.replayed, false)
    })
}

/// Accepted members: those of the HTTP body without files and runs.
const FACTS: [&str; 4] = ["entities", "relationships", "source_id", "agent"];

/// Reads structured facts. Unknown members are refused, so that a misspelt `observed_at` does not
/// silently become the current time.
fn facts(from: &InputSource, limits: &Limits) -> Result<StoreFacts> {
    let bytes = from.read_bytes(limits)?;
    // Parse strictly as well, to refuse duplicate keys.
    let json = input::parse_json(from, &bytes, limits)?;
    let Some(members) = json.as_object() else {
        let why = format!("a store of facts is an object, not {}", json.type_name());
        return Err(CommandError::invalid(why));
    };
    if let Some(other) = members.keys().find(|name| !FACTS.contains(name)) {
        let accepted = FACTS.join(", ");
        let why = format!("a store of facts has no member `{other}`; there are {accepted}");
        return Err(CommandError::invalid(why));
    }
    let store: bodies::Store = serde_json::from_slice(&bytes)
        .map_err(|error| CommandError::invalid(format!("{}: {error}", from.describe())))?;
    Ok(store.into_parts()?.facts.unwrap_or_default())
}

fn store_facts(globals: &Globals, args: &StoreFactsArgs) -> Result<()> {
    let request = facts(&InputSource::from_path(&args.file), &session::limits())?;
    let types: Vec<String> = request.entities.iter().map(|it| it.entity_type.clone()).collect();
    let session = CliSession::open(globals, OpenMode::Create)?;
    let call = session.call_with(args.key.as_deref());
    let done = session.engine.knowledge().store_facts(&call, request)?;
    if session.answered_json(|| StoredFactsAnswer::from(done.clone()))? {
        return Ok(());
    }
    report_facts(&session, &done, &types)
}

fn report_facts(session: &CliSession, done: &StoredFacts, types: &[String]) -> Result<()> {
    let paint = session.screen.paint;
    session.screen.text(Paging::Direct, |out| {
        for (fact, entity_type) in done.entities.iter().zip(types) {
            let id = paint.hash(&fact.entity.to_string());
            let made = fact.outcome.as_str();
            writeln!(out, "{id}  {}  {made}  {}", visible(entity_type), fact.observation)?;
        }
        for one in &done.relationships {
            let made = one.outcome.map_or("", tine_api::Outcome::as_str);
            writeln!(out, "{}  {}  {}  {made}", one.source, one.relation, one.target)?;
        }
        let rows = [row("source", done.source.id), row("run", done.interpretation)];
        write_rows(out, &session.screen, 0, &rows)?;
        if !done.unknown_fields.is_empty() {
            writeln!(out, "not in their schemas: {}", visible(&done.unknown_fields.join(", ")))?;
        }
        write_notes(out, &done.warnings, done.replayed, false)
    })
}

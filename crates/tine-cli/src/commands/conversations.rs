//! `tine new`, `derive` and `archive`: creates, derives and archives conversations.

use clap::Args;

use tine_core::{ConversationId, Json, Limits, Reference};
use tine_engine::{Call, ConversationPatch, ConversationView, Derive, NewConversation};
use tine_store::OpenMode;

use crate::arguments::{Globals, reference};
use crate::command_error::{CommandError, Result};
use crate::input;
use crate::session::{self, CliSession};
use crate::terminal::text::{count, visible};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine new trip
  tine new --title 'A trip' --system 'You are a travel agent.'
  tine new coder --system @prompt.txt --config '{\"model\":\"small\"}'")]
pub(crate) struct NewArgs {
    /// Id of the conversation [default: a new UUID]
    id: Option<String>,
    /// System prompt, or @FILE
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Configuration of the conversation: a JSON object
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Title of the conversation
    #[arg(long)]
    title: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn new(globals: &Globals, args: NewArgs) -> Result<()> {
    // Read all input before creating a store: an invalid call creates nothing.
    let limits = &session::limits();
    let request = NewConversation {
        id: args.id.map(|id| ConversationId::new(id, limits)).transpose()?,
        system_prompt: args.system.map(|text| input::text_or_file(&text, limits)).transpose()?,
        config: config(args.config.as_deref(), limits)?.unwrap_or(Json::Null),
        title: args.title,
        metadata: Json::Null,
    };
    let session = CliSession::open(globals, OpenMode::Create)?;
    let call = session.call_with(args.key.as_deref());
    let made = session.engine.create_conversation(&call, request)?;
    if session.answered_json(|| made.clone())? {
        return Ok(());
    }
    session.screen.line(&format!("conversation {}", visible(made.id.as_str())))
}

fn config(text: Option<&str>, limits: &Limits) -> Result<Option<Json>> {
    let parse = |text| input::json_argument("--config", text, limits);
    text.map(parse).transpose()
}

/// Returns every conversation of a call's project.
pub(crate) fn all_of(
    session: &CliSession,
    call: &Call,
    archived: bool,
) -> Result<Vec<ConversationView>> {
    Ok(session.pages(None, |page| session.engine.conversations(call, archived, page))?.items)
}

#[derive(Debug, Args)]
#[command(after_help = "\
The system prompt of a conversation never changes; another prompt makes another conversation. \
An equal copy that already exists is reused.

Examples:
  tine derive trip --system 'Answer in Japanese.' --as trip-ja
  tine derive trip --system @prompt.txt --at main~2")]
pub(crate) struct DeriveArgs {
    /// Conversation to copy
    id: String,
    /// System prompt of the copy, or @FILE
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Configuration of the copy: a JSON object [default: that of the original]
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Copy the path up to this turn
    #[arg(long, value_name = "TURN", value_parser = reference)]
    at: Option<Reference>,
    /// Id of the copy [default: a new UUID]
    #[arg(long = "as", value_name = "ID")]
    new_id: Option<String>,
}

pub(crate) fn derive(session: &CliSession, args: DeriveArgs) -> Result<()> {
    let limits = session.limits();
    let request = Derive {
        conversation: session.conversation_id(&args.id)?,
        id: args.new_id.map(|id| session.conversation_id(&id)).transpose()?,
        system_prompt: args.system.map(|text| input::text_or_file(&text, limits)).transpose()?,
        config: config(args.config.as_deref(), limits)?,
        at: args.at,
    };
    let done = session.engine.derive(&session.call, request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    let verb = if done.created { "created" } else { "existing" };
    let id = visible(done.conversation.id.as_str());
    let turns = count(done.turns as u64, "turn");
    session.screen.line(&format!("conversation {id} ({verb}, {turns} copied)"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine archive trip
  tine archive trip --undo")]
pub(crate) struct ArchiveArgs {
    /// Conversation [default: -c, or the only one]
    id: Option<String>,
    /// Show it in lists again
    #[arg(long)]
    undo: bool,
}

pub(crate) fn archive(session: &CliSession, args: &ArchiveArgs) -> Result<()> {
    let id = match (&args.id, session.named_conversation()) {
        (Some(id), _) => session.conversation_id(id)?,
        (None, Some(named)) => named.clone(),
        (None, None) => {
            return Err(CommandError::invalid("name the conversation: tine archive ID"));
        }
    };
    let patch = ConversationPatch { archived: Some(!args.undo), ..ConversationPatch::default() };
    let done = session.engine.patch_conversation(&session.call, &id, patch)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    let state = if done.archived { "archived" } else { "shown again" };
    session.screen.line(&format!("conversation {} is {state}", visible(done.id.as_str())))
}

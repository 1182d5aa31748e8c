//! `tine new`, `ls`, `derive` and `archive`: creates, lists, derives and archives conversations.

use clap::Args;
use tine_api::Listing;
use tine_core::{ConversationId, Json, Limits, Reference};
use tine_engine::{Call, ConversationPatch, ConversationView, Derive, NewConversation};
use tine_store::OpenMode;

use crate::arguments::{Globals, reference};
use crate::command_error::{CommandError, Result};
use crate::input;
use crate::session::{self, CliSession};
use crate::terminal::text::{count, cut, visible, width};
use crate::terminal::{Paging, short_time};

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

#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tine ls
  tine ls --long
  tine ls --archived --json")]
pub(crate) struct LsArgs {
    /// Also those that are archived
    #[arg(long)]
    archived: bool,
    /// With the numbers of turns and branches, which takes longer
    #[arg(short, long)]
    long: bool,
}

pub(crate) fn ls(session: &CliSession, args: &LsArgs) -> Result<()> {
    let conversations = all(session, args.archived)?;
    let views = || conversations.to_vec();
    if session.answered_json(|| Listing::<ConversationView>::all(views()))? {
        return Ok(());
    }
    let mut rows = Vec::new();
    for conversation in &conversations {
        rows.push(row(session, conversation, args.long)?);
    }
    let column = rows.iter().map(|row| width(&row.id)).max().unwrap_or(0).min(40);
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        for row in rows {
            let gap = " ".repeat(column.saturating_sub(width(&row.id)));
            let room = session.screen.columns.map_or(usize::MAX, |columns| {
                columns.saturating_sub(column.max(width(&row.id)) + 20 + width(&row.counts))
            });
            let (id, time) = (paint.bold(&row.id), paint.dim(&row.time));
            let line = format!("{id}{gap}  {time}{}  {}", row.counts, cut(row.title.trim(), room));
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    })
}

struct ConversationRow {
    id: String,
    time: String,
    counts: String,
    title: String,
}

fn row(
    session: &CliSession,
    conversation: &ConversationView,
    long: bool,
) -> Result<ConversationRow> {
    let counts = if long {
        let stats = session.engine.stats(&session.call, Some(&conversation.id))?;
        let stats = stats.conversation.unwrap_or_default();
        format!("  {:>12}  {:>3} branches", count(stats.turns, "turn"), stats.branches)
    } else {
        String::new()
    };
    let mut title = conversation.title.clone().unwrap_or_default();
    let marks =
        [(conversation.archived, " (archived)"), (conversation.root.is_none(), " (purged)")];
    for (_, mark) in marks.iter().filter(|(applies, _)| *applies) {
        title.push_str(mark);
    }
    Ok(ConversationRow {
        id: visible(conversation.id.as_str()).into_owned(),
        time: short_time(conversation.active_at()),
        counts,
        title,
    })
}

/// Returns every conversation of the session's project.
pub(crate) fn all(session: &CliSession, archived: bool) -> Result<Vec<ConversationView>> {
    all_of(session, &session.call, archived)
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

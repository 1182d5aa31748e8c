//! `tine use`: chooses the conversation that commands in a folder are about.

use clap::Args;
use serde::Serialize;
use tine_core::{ConversationId, ErrorKind};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::conversation_choice::{self, Choices};
use crate::session::CliSession;
use crate::terminal::text::{cut, visible};

#[derive(Debug, Args)]
#[command(after_help = "\
The choice applies in this folder and below it, where a store holds several conversations and none \
is named by -c or TINE_CONVERSATION. It is kept in the user's state folder.

Examples:
  tine use trip
  tine use 9f3b2c
  tine use 'Plan a trip'
  tine use --clear")]
pub(crate) struct UseArgs {
    /// The conversation: its id, or the beginning of its id or title [default: show the current one]
    #[arg(value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// Forget the choice for this folder
    #[arg(long, conflicts_with = "conversation")]
    clear: bool,
}

#[derive(Serialize)]
struct UseDocument {
    folder: String,
    conversation_id: Option<ConversationId>,
    label: Option<String>,
}

pub(crate) fn use_conversation(
    globals: &Globals,
    session: &CliSession,
    args: &UseArgs,
) -> Result<()> {
    let choices = Choices::of(globals)?.ok_or_else(|| {
        CommandError::invalid(
            "no home folder is known; say where choices are kept with XDG_STATE_HOME",
        )
    })?;
    let project = &session.call.project;
    let folder = choices.folder.display().to_string();
    let chosen = match (&args.conversation, args.clear) {
        (Some(text), _) => {
            let engine = &*session.engine;
            let (id, _) = conversation_choice::find(engine, &session.call, text, session.limits())?;
            // Fails if there is no such conversation.
            let found = session.engine.conversation(&session.call, &id)?;
            choices.choose(project, Some(&id))?;
            Some(found)
        }
        (None, true) => {
            choices.choose(project, None)?;
            None
        }
        (None, false) => {
            let id = session.conversation()?;
            Some(session.engine.conversation(&session.call, &id)?)
        }
    };
    let document = || UseDocument {
        folder: folder.clone(),
        conversation_id: chosen.as_ref().map(|it| it.id.clone()),
        label: chosen.as_ref().and_then(|it| it.label()).map(str::to_owned),
    };
    if session.answered_json(document)? {
        return Ok(());
    }
    let line = match &chosen {
        Some(found) => {
            let label = cut(found.label().unwrap_or("(empty)"), 80);
            format!("{}  {label}", session.screen.paint.bold(&visible(found.id.as_str())))
        }
        None => format!("no conversation is chosen in {folder}"),
    };
    session.screen.line(&line)
}

impl CliSession {
    /// Returns an error unless the conversation is named by its whole id, or by none.
    pub(crate) fn require_whole_id(&self, action: &str) -> Result<()> {
        let Some(text) = self.conversation_prefix() else { return Ok(()) };
        let id = self.named_conversation().map(ConversationId::to_string).unwrap_or_default();
        let why = format!("`{text}` is short for `{id}`; give the whole id to {action}");
        Err(CommandError::refused(ErrorKind::Invalid, why))
    }
}

//! `tine append`: adds turns to a branch.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tine_core::{ConversationId, ErrorKind, Limits, Message, Reference, Role, Status, Timestamp};
use tine_engine::{
    Append, Appended, ConversationView, Error, NewConversation, OnConflict, Outcome,
};
use tine_formats::redact::{self, Redacted};
use tine_store::OpenMode;

use crate::arguments::{Globals, reference};
use crate::command_error::{CommandError, Result};
use crate::input::{self, InputMessages, InputSource};
use crate::session::{self, CliSession};
use crate::terminal::Paging;
use crate::terminal::text::visible;
use crate::transcript;

/// Marks turns that already existed.
const REUSED_SUFFIX: &str = "(reused)";

#[derive(Debug, Args)]
#[command(after_help = "\
Turns that exist already are reused, so a program may send its whole conversation with \
--parent root each time.

Examples:
  tine append 'What is the best time to visit Tokyo?'
  tine append --role assistant 'Late March 🌸'
  date | tine append
  tine append --messages chat.json --parent root
  tine append --parent main~2 --branch other 'And in autumn?'
  tine append --role assistant --no-reuse --parent main --branch second 'Another answer'
  tine append -c notes --create 'The first turn of a new conversation'")]
pub(crate) struct AppendArgs {
    /// Text of the turn [default: standard input, if it is not a terminal]
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// File with messages (`-` for standard input): a JSON array, one object, JSON Lines, or an
    /// OpenAI or Anthropic request as `tine turn path --format` writes it
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with_all = ["text", "role", "tool_call_id", "partial", "created_at"]
    )]
    messages: Option<PathBuf>,
    /// Role of the turn
    #[arg(short, long, default_value = "user", value_parser = role_parser())]
    role: Role,
    /// Id of the tool call that a tool turn answers
    #[arg(long, value_name = "ID")]
    tool_call_id: Option<String>,
    /// Turn to append to, or `root` [default: the tip of the branch]
    #[arg(short, long, value_name = "REF", value_parser = reference)]
    parent: Option<Reference>,
    /// Branch to append to; a new one needs --parent [default: main]
    #[arg(short, long)]
    branch: Option<String>,
    /// Refuse if this is not the tip of the branch
    #[arg(long, alias = "expect-tip", value_name = "REF", value_parser = reference)]
    expected_tip: Option<Reference>,
    /// What to do if --expected-tip does not match
    #[arg(long, value_name = "WHAT", default_value = "refuse", requires = "expected_tip")]
    on_conflict: ConflictChoice,
    /// Add new turns even where equal ones exist
    #[arg(long)]
    no_reuse: bool,
    /// Mark the turn as incomplete
    #[arg(long)]
    partial: bool,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
    /// Time of the turn, as RFC 3339 [default: now]
    #[arg(long, alias = "at", value_name = "TIME")]
    created_at: Option<Timestamp>,
    /// Replace text that looks like a secret before it is recorded
    #[arg(long)]
    redact: bool,
    /// Create the store and the conversation if they do not exist
    #[arg(long)]
    create: bool,
    /// Whether `-` is a text instead of standard input.
    #[arg(skip)]
    literal: bool,
}

impl AppendArgs {
    /// Returns whether the text comes from standard input without being asked for with `-`.
    pub(crate) fn reads_stdin_unasked(&self) -> bool {
        self.text.is_empty() && self.messages.is_none()
    }

    /// Returns the arguments that append a user's text as it is.
    pub(crate) fn literal_text(text: &str) -> Self {
        AppendArgs {
            text: vec![text.to_owned()],
            messages: None,
            role: Role::User,
            tool_call_id: None,
            parent: None,
            branch: None,
            expected_tip: None,
            on_conflict: ConflictChoice::Refuse,
            no_reuse: false,
            partial: false,
            key: None,
            created_at: None,
            redact: false,
            create: false,
            literal: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConflictChoice {
    Refuse,
    Fork,
}

pub(crate) fn role_parser() -> impl TypedValueParser<Value = Role> {
    let names = Role::ALL.map(Role::as_str);
    PossibleValuesParser::new(names).map(|name| name.parse().expect("one of the names above"))
}

pub(crate) fn append(globals: &Globals, args: AppendArgs) -> Result<()> {
    // Read all input before creating a store or a conversation: an invalid message creates nothing.
    let InputMessages { prompt, mut messages } = read_input(&args, &session::limits())?;
    let redacted = if args.redact { redact::messages(&mut messages) } else { Redacted::new() };
    let mode = if args.create { OpenMode::Create } else { OpenMode::Existing };
    let mut globals = globals.clone();
    globals.whole_id = args.create;
    let session = &CliSession::open(&globals, mode)?;
    let request = Append {
        messages,
        conversation: conversation(session, args.create, prompt)?,
        parent: args.parent,
        branch: args.branch.or_else(|| session.other_branch()),
        expected_tip: args.expected_tip,
        on_conflict: match args.on_conflict {
            ConflictChoice::Refuse => OnConflict::Refuse,
            ConflictChoice::Fork => OnConflict::Fork,
        },
        reuse: !args.no_reuse,
    };
    let call = session.call_with(args.key.as_deref()).with_redacted(redacted);
    let done = session.engine.append(&call, request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    report(session, &done)
}

fn read_input(args: &AppendArgs, limits: &Limits) -> Result<InputMessages> {
    if let Some(file) = &args.messages {
        return input::read_messages(&InputSource::from_path(file), limits);
    }
    let text = match args.literal {
        true => args.text.join(" "),
        false => input::text_or_stdin(&args.text, limits)?,
    };
    if args.reads_stdin_unasked() && text.is_empty() {
        return Err(CommandError::invalid("nothing to append: standard input is empty"));
    }
    let message = Message {
        role: args.role,
        body: input::body(text, args.role, limits)?,
        tool_call_id: args.tool_call_id.clone(),
        created_at: args.created_at,
        status: if args.partial { Status::Partial } else { Status::Complete },
        metadata: tine_core::Metadata::default(),
    };
    message.check(limits).map_err(|source| Error::Message { index: 0, source })?;
    Ok(InputMessages { prompt: None, messages: vec![message] })
}

/// Returns the conversation to append to, and checks or sets its system prompt.
fn conversation(
    session: &CliSession,
    create: bool,
    prompt: Option<String>,
) -> Result<ConversationId> {
    if !create {
        let id = session.conversation()?;
        if prompt.is_some() {
            check_prompt(&session.engine.conversation(&session.call, &id)?, prompt)?;
        }
        return Ok(id);
    }
    let wanted = match session.conversation() {
        Ok(wanted) => Some(wanted),
        Err(failure @ CommandError::AmbiguousConversation { .. }) => return Err(failure),
        Err(_) => None,
    };
    if let Some(id) = &wanted {
        match session.engine.conversation(&session.call, id) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => {
                let found = found?;
                check_prompt(&found, prompt)?;
                return Ok(found.id);
            }
        }
    }
    let request =
        NewConversation { id: wanted, system_prompt: prompt, ..NewConversation::default() };
    Ok(session.engine.create_conversation(&session.call, request)?.id)
}

fn check_prompt(conversation: &ConversationView, prompt: Option<String>) -> Result<()> {
    let own = conversation.root.as_ref().and_then(|root| root.system_prompt.as_ref());
    if prompt.is_some() && prompt.as_ref() != own {
        return Err(CommandError::invalid(format!(
            "the messages have another system prompt than `{}`; leave `system` out, or append them \
             to a new conversation with -c NAME --create",
            conversation.id
        )));
    }
    Ok(())
}

fn report(session: &CliSession, done: &Appended) -> Result<()> {
    let paint = session.screen.paint;
    let label = paint.branch(&format!("[{}]", done.branch.name));
    session.screen.text(Paging::Direct, |out| {
        for turn in &done.turns {
            let line = transcript::one_line(&session.screen, turn, REUSED_SUFFIX.len() + 1);
            match turn.outcome {
                Some(Outcome::Reused) => writeln!(out, "{line} {}", paint.dim(REUSED_SUFFIX))?,
                _ => writeln!(out, "{line}")?,
            }
        }
        let tip = match done.branch.tip_hash {
            Some(hash) => paint.hash(&hash.short()),
            None => "root".to_owned(),
        };
        write!(out, "{label} ends on {tip}")?;
        if done.forked {
            write!(out, " (a new branch: the tip had moved)")?;
        }
        if done.replayed {
            write!(out, " (result of an earlier call with this key)")?;
        }
        if done.undone {
            write!(out, " (undone since)")?;
        }
        writeln!(out)?;
        write_redacted(out, &done.redacted)
    })
}

/// Writes the number of redacted secrets, if any.
pub(crate) fn write_redacted(out: &mut dyn Write, redacted: &Redacted) -> Result<()> {
    if redacted.is_empty() {
        return Ok(());
    }
    let each = redacted.iter().map(|(kind, count)| format!("{count} {}", visible(kind)));
    Ok(writeln!(out, "redacted: {}", each.collect::<Vec<_>>().join(", "))?)
}

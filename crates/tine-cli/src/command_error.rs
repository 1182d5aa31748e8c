//! Command errors and how they are reported: a message on standard error and an exit code.
//!
//! Kinds and codes are the engine's. This module adds errors of the command line itself: arguments,
//! input, output, and the choice of a conversation.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use tine_api::{Candidate, EntityView, Error};
use tine_core::{ConversationId, ErrorKind};
use tine_formats::bundle::BundleError;
use tine_formats::export::ExportError;
use tine_formats::render::RenderError;
use tine_store::StoreError;

use crate::record_args::turn_key;
use crate::terminal::text::visible;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The engine returned an error.
    #[error(transparent)]
    Engine(#[from] Error),
    /// A bundle could not be written or read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A path could not be rendered.
    #[error(transparent)]
    Render(RenderError),
    /// The command line itself rejected the request.
    #[error("{why}")]
    Refused { kind: ErrorKind, why: String },
    /// Several conversations exist and none is named.
    #[error(
        "there are several conversations; choose one with -c ID, TINE_CONVERSATION or `tine use ID`"
    )]
    AmbiguousConversation {
        /// The first of them.
        conversations: Vec<ConversationId>,
        /// Whether there are more.
        more: bool,
    },
    /// Several messages match a turn key.
    #[error("`{key}` can mean {} messages; name one of them", slots.len())]
    AmbiguousTurnKey { key: String, slots: Vec<EntityView> },
    /// The command line names a command that does not exist.
    #[error("there is no command `{name}`")]
    UnknownCommand {
        name: String,
        /// The command whose help lists the right ones.
        family: String,
        suggestion: Option<String>,
    },
    /// The reader closed the output.
    #[error("the output was closed")]
    ClosedPipe,
    /// The output could not be written.
    #[error("writing the output: {0}")]
    Output(io::Error),
}

/// The result of a command.
pub(crate) type Result<T> = std::result::Result<T, CommandError>;

impl From<RenderError> for CommandError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Read(error) => CommandError::Engine(error),
            error => CommandError::Render(error),
        }
    }
}

impl CommandError {
    /// Creates an error of the command line itself.
    pub(crate) fn refused(kind: ErrorKind, why: impl Into<String>) -> Self {
        CommandError::Refused { kind, why: why.into() }
    }

    /// Creates an error for invalid arguments.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        CommandError::refused(ErrorKind::Invalid, why)
    }

    /// Converts a parse error, without colours and usage.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let sentence = text.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = sentence.split_whitespace().collect();
        CommandError::invalid(words.join(" ").trim_start_matches("error: "))
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            CommandError::Engine(error) => error.kind(),
            CommandError::Bundle(error) => error.kind(),
            CommandError::Render(error) => error.kind(),
            CommandError::Refused { kind, .. } => *kind,
            CommandError::AmbiguousConversation { .. } | CommandError::AmbiguousTurnKey { .. } => {
                ErrorKind::Ambiguous
            }
            CommandError::UnknownCommand { .. } => ErrorKind::Invalid,
            CommandError::ClosedPipe | CommandError::Output(_) => ErrorKind::Internal,
        }
    }

    /// Returns the command or option that helps, in the spelling of the command line.
    fn hint(&self) -> Option<String> {
        let error = match self {
            CommandError::Engine(error) => error,
            CommandError::Render(RenderError::OpenCalls(_)) => {
                return Some("--open-calls close answers them, keep leaves them".into());
            }
            CommandError::Render(RenderError::TooLong { needed, .. }) => {
                return Some(format!("--max-tokens {needed}"));
            }
            CommandError::UnknownCommand { suggestion: Some(command), .. } => {
                return Some(format!("did you mean `{command}`?"));
            }
            CommandError::UnknownCommand { family, .. } => {
                return Some(format!("`{family} --help` lists the commands"));
            }
            _ => return None,
        };
        let details = &error.details;
        if let Some(hint) = ambiguity_hint(&details.candidates) {
            return Some(hint);
        }
        if details.actual_tip.is_some() {
            return Some("append with --on-conflict fork to go on from there".into());
        }
        if details.present_title.is_some() {
            return Some("add --force to replace it".into());
        }
        if !details.references.is_empty() {
            return Some("add --force to delete it all the same".into());
        }
        if let Some(hint) = details.missing.as_deref().and_then(lookup_hint) {
            return Some(hint.to_owned());
        }
        if error.kind == ErrorKind::Corrupt {
            let hint = "`tine store verify` lists all damage; `tine store verify --repair NEW_FOLDER` \
                        copies what is intact";
            return Some(hint.to_owned());
        }
        let undo = details.depended_on_by.iter().copied().max().or(details.deleted_by);
        undo.map(|operation| format!("tine undo {operation}"))
    }

    fn view(&self) -> Error {
        match self {
            CommandError::Engine(error) => error.clone(),
            CommandError::Render(error) => error.clone().into(),
            CommandError::AmbiguousConversation { conversations, .. } => {
                let candidate = |id: &ConversationId| Candidate {
                    conversation: id.clone(),
                    turn: None,
                    hash: None,
                    commit: None,
                };
                let candidates = conversations.iter().map(candidate).collect();
                let mut error = Error::new(self.kind(), self.to_string());
                error.details.candidates = candidates;
                error
            }
            CommandError::AmbiguousTurnKey { slots, .. } => {
                let list = self.details().join("; ");
                let mut error = Error::new(self.kind(), format!("{self}: {list}"));
                let candidates = slots.iter().filter_map(slot_candidate).collect();
                error.details.candidates = candidates;
                error
            }
            _ => Error::new(self.kind(), self.to_string()),
        }
    }

    fn details(&self) -> Vec<String> {
        match self {
            CommandError::Engine(error) => error
                .details
                .candidates
                .iter()
                .map(|candidate| match (&candidate.commit, &candidate.hash, &candidate.turn) {
                    (Some(hash), ..) => format!("{hash} in {}", candidate.conversation),
                    (None, Some(hash), _) => format!("{hash} in {}", candidate.conversation),
                    (None, None, Some(turn)) => format!("{turn} in {}", candidate.conversation),
                    (None, None, None) => format!("the root of {}", candidate.conversation),
                })
                .collect(),
            CommandError::AmbiguousConversation { conversations, more } => {
                let mut lines: Vec<String> =
                    conversations.iter().map(ToString::to_string).collect();
                if *more {
                    lines.push("… (`tine ls` lists all)".to_owned());
                }
                lines
            }
            CommandError::AmbiguousTurnKey { slots, .. } => slots
                .iter()
                .map(|slot| {
                    let role = slot.slot.as_ref().map_or("", |slot| slot.role.as_str());
                    let key = turn_key(slot).unwrap_or_default();
                    format!("{}  {role:9}  {}", slot.id, visible(&key))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Writes the error to standard error and returns the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        #[derive(Serialize)]
        struct ErrorDocument {
            error: Error,
        }
        let mut text = String::new();
        if json {
            let document = ErrorDocument { error: self.view() };
            text = serde_json::to_string(&document).unwrap_or_else(|error| error.to_string());
            text.push('\n');
        } else {
            text.push_str(&format!("error: {self}\n"));
            for line in self.details() {
                text.push_str(&format!("  {line}\n"));
            }
            if let Some(hint) = self.hint() {
                text.push_str(&format!("hint: {hint}\n"));
            }
        }
        // An error while reporting an error cannot be reported.
        let _ = io::stderr().write_all(text.as_bytes());
        ExitCode::from(self.kind().exit_code())
    }
}

/// Returns the command that shows records of a kind.
fn lookup_hint(missing: &str) -> Option<&'static str> {
    Some(match missing {
        "store" => {
            "`tine import --discover` finds chats to import, `tine new` creates a conversation, \
             --store names another store"
        }
        "project" => "`tine projects` lists projects",
        "conversation" => "`tine ls` lists conversations",
        "branch" => "`tine branch` lists branches",
        "turn, branch or bookmark" => "`tine tree` shows turns, branches and bookmarks",
        "bookmark" => "`tine bookmark` lists bookmarks",
        "commit" => "`tine commit list` lists commits",
        "branch or commit" => "`tine branch` and `tine commit list` list them",
        "turn on this path that says" => "`tine search` searches all conversations",
        "schema" => "`tine entity schemas` lists schemas",
        "entity" => "`tine entity list` lists entities",
        "source" => "`tine source list` lists sources",
        "interpretation" => "`tine run status` lists open runs",
        _ => return None,
    })
}

/// Returns how to choose among candidates in several conversations.
fn ambiguity_hint(candidates: &[Candidate]) -> Option<String> {
    let [first, rest @ ..] = candidates else { return None };
    let several = rest.iter().any(|it| it.conversation != first.conversation);
    several.then(|| format!("choose the conversation, as in -c {}", first.conversation))
}

fn slot_candidate(slot: &EntityView) -> Option<Candidate> {
    let hash = slot.snapshot.fields.get("turn_hash").and_then(tine_core::Json::as_str);
    Some(Candidate {
        conversation: slot.conversation.clone()?,
        turn: None,
        hash: hash.and_then(|hash| hash.parse().ok()),
        commit: None,
    })
}

impl From<tine_engine::Error> for CommandError {
    fn from(error: tine_engine::Error) -> Self {
        CommandError::Engine(error.into())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        tine_engine::Error::Store(error).into()
    }
}

/// Errors of writing the output; errors of reading name their file (see [`crate::input`]).
impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Engine(error) => CommandError::Engine(error),
            ExportError::Render(error) => CommandError::Render(error),
            ExportError::Write(error) => CommandError::from(error),
            other => CommandError::refused(ErrorKind::Internal, other.to_string()),
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::ClosedPipe,
            _ => CommandError::Output(error),
        }
    }
}

macro_rules! impl_from_via_engine {
    ($($error:ty),*) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                tine_engine::Error::from(error).into()
            }
        }
    )*};
}

impl_from_via_engine!(
    tine_core::ids::NameError,
    tine_core::reference::ReferenceError,
    tine_core::json::JsonError
);

//! `tine status`: shows what commands use in this folder.

use clap::Args;
use serde::Serialize;
use tine_api::{Listing, OperationView};
use tine_core::{ConversationId, ErrorKind, ProjectId, Timestamp, TurnHash};
use tine_engine::{ConversationView, Page, TurnRef, TurnView};
use tine_store::{IndexState, OpenMode};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::knowledge_view::{row, write_rows};
use crate::session::{CliSession, SessionEngine};
use crate::store_location::StoreLocation;
use crate::terminal::text::{count, cut, visible};
use crate::terminal::{Paging, short_time};
use crate::transcript;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine status
  tine status -c trip --json")]
pub(crate) struct StatusArgs {}

/// How the conversation was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ChosenBy {
    Argument,
    OnlyOne,
    Use,
}

#[derive(Serialize)]
struct StatusDocument {
    store: Option<String>,
    server: Option<String>,
    project: ProjectId,
    conversations: u64,
    turns: u64,
    conversation: Option<CurrentConversation>,
    search_index: Option<IndexStatus>,
}

#[derive(Serialize)]
struct CurrentConversation {
    conversation_id: ConversationId,
    label: Option<String>,
    chosen_by: ChosenBy,
    turns: u64,
    active_at: Timestamp,
    branch: String,
    tip: Option<Tip>,
    last_change: Option<LastChange>,
}

#[derive(Serialize)]
struct Tip {
    turn_hash: TurnHash,
    role: String,
    created_at: Timestamp,
    preview: String,
}

#[derive(Serialize)]
struct LastChange {
    operation: u64,
    kind: String,
    summary: String,
    actor: String,
    at: Timestamp,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum IndexStatus {
    /// It holds everything.
    UpToDate,
    /// The next search adds what is missing.
    Behind,
    /// The first search builds it.
    NotBuilt,
    /// Searches read the store.
    NotNeeded,
}

pub(crate) fn status(globals: &Globals) -> Result<()> {
    let server = globals.server()?;
    let store = match &server {
        Some(_) => None,
        None => Some(StoreLocation::from_globals(globals)?.to_string()),
    };
    let session = CliSession::open(globals, OpenMode::Existing)?;
    let totals = session.engine.stats(&session.call, None)?.store;
    let conversation = current(&session)?;
    let document = StatusDocument {
        store,
        server,
        project: session.call.project.clone(),
        conversations: totals.conversations,
        turns: totals.turns,
        conversation,
        search_index: index_status(&session)?,
    };
    if session.screen.json {
        return session.screen.document(&document);
    }
    write_status(&session, &document)
}

/// Returns the conversation that commands use; `None` if there are several and none is chosen, or
/// none at all.
fn current(session: &CliSession) -> Result<Option<CurrentConversation>> {
    let (id, chosen_by) = match session.named_or_only() {
        Ok(id) if session.named_conversation().is_some() => (id, ChosenBy::Argument),
        Ok(id) => (id, ChosenBy::OnlyOne),
        Err(CommandError::AmbiguousConversation { .. }) => match session.chosen()? {
            Some(id) => (id, ChosenBy::Use),
            None => return Ok(None),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found: ConversationView = session.engine.conversation(&session.call, &id)?;
    let branch = session.branch().to_owned();
    let tip = session.engine.branch(&session.call, &id, &branch)?.tip;
    let tip: Option<TurnView> = match tip {
        Some(tip) => {
            let turn = TurnRef { conversation: Some(id.clone()), turn: tip.into() };
            Some(session.engine.turn(&session.call, turn)?)
        }
        None => None,
    };
    let page = Page { cursor: None, limit: Some(1) };
    let Listing { items, .. } = session.engine.operations(&session.call, &id, page)?;
    Ok(Some(CurrentConversation {
        label: found.label().map(str::to_owned),
        chosen_by,
        turns: found.overview.as_ref().map_or(0, |it| it.turns),
        active_at: found.active_at,
        branch,
        tip: tip.map(|turn| Tip {
            turn_hash: turn.hash,
            role: turn.role.as_str().to_owned(),
            created_at: turn.created_at,
            preview: transcript::preview(&turn, 200),
        }),
        last_change: items.into_iter().next().map(|it: OperationView| LastChange {
            operation: it.seq,
            kind: it.kind,
            summary: it.summary,
            actor: it.actor,
            at: it.at,
        }),
        conversation_id: id,
    }))
}

/// Returns the state of the search index of a store on this machine.
fn index_status(session: &CliSession) -> Result<Option<IndexStatus>> {
    let SessionEngine::Local(engine) = &session.engine else { return Ok(None) };
    let store = engine.store();
    Ok(Some(match store.index_state()? {
        IndexState::NotNeeded => IndexStatus::NotNeeded,
        IndexState::Empty => IndexStatus::NotBuilt,
        IndexState::Through(mark) => {
            let mut end = None;
            store.read(&mut |records| {
                end = records.feed_end()?;
                Ok(())
            })?;
            match end.is_none_or(|end| end.at <= mark.at) {
                true => IndexStatus::UpToDate,
                false => IndexStatus::Behind,
            }
        }
    }))
}

fn write_status(session: &CliSession, status: &StatusDocument) -> Result<()> {
    let room = session.screen.columns.map_or(usize::MAX, |columns| columns.saturating_sub(16));
    let paint = session.screen.paint;
    let mut rows = Vec::new();
    match (&status.server, &status.store) {
        (Some(url), _) => rows.push(row("server", url)),
        (None, Some(store)) => rows.push(row("store", store)),
        (None, None) => {}
    }
    let conversations = count(status.conversations, "conversation");
    rows.push(row("holds", format!("{conversations}, {}", count(status.turns, "turn"))));
    rows.push(row("project", &status.project));
    match &status.conversation {
        Some(it) => {
            let why = match it.chosen_by {
                ChosenBy::Argument => "named",
                ChosenBy::OnlyOne => "the only one",
                ChosenBy::Use => "tine use",
            };
            let id = visible(it.conversation_id.as_str()).into_owned();
            rows.push(row("conversation", format!("{} ({why})", paint.bold(&id))));
            rows.push(row("label", cut(it.label.as_deref().unwrap_or("(empty)"), room)));
            let time = short_time(it.active_at);
            rows.push(row("length", format!("{}, last message {time}", count(it.turns, "turn"))));
            rows.push(row("branch", paint.branch(&visible(&it.branch))));
            let tip = match &it.tip {
                Some(tip) => {
                    let text = format!("{} {}", tip.role, tip.preview);
                    let hash = tip.turn_hash.short();
                    let room = room.saturating_sub(hash.len() + 1);
                    format!("{} {}", paint.hash(&hash), cut(&text, room))
                }
                None => "root".to_owned(),
            };
            rows.push(row("tip", tip));
            if let Some(change) = &it.last_change {
                let time = short_time(change.at);
                let (number, actor) = (change.operation, visible(&change.actor));
                let origin = format!(" ({number}, by {actor}, {time})");
                let summary = cut(&change.summary, room.saturating_sub(origin.len()));
                let text = format!("{summary}{origin}");
                rows.push(row("last change", text));
            }
        }
        None if status.conversations == 0 => {
            rows.push(row("conversation", "none; `tine new` or `tine import` adds one"));
        }
        None => {
            rows.push(row(
                "conversation",
                "none chosen; `tine use CONVERSATION` or -c chooses one",
            ));
        }
    }
    if let Some(index) = status.search_index {
        let text = match index {
            IndexStatus::UpToDate => "up to date",
            IndexStatus::Behind => "behind; the next search updates it",
            IndexStatus::NotBuilt => "not built yet; the first search builds it",
            IndexStatus::NotNeeded => "searches read the store",
        };
        rows.push(row("search index", text));
    }
    session.screen.text(Paging::Direct, |out| write_rows(out, &session.screen, 0, &rows))
}

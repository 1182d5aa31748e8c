//! The list of sessions: branches whose working directory is known, the most recently active
//! first.
//!
//! What the protocol needs to know about a session besides its turns is kept in the metadata of its
//! conversation, under `acp`: the working directory and client of its first session, and the
//! working directories of forks that differ. A conversation from elsewhere is listed if its last
//! turn records a working directory.

use tine_core::json::{Json, Object, object};
use tine_core::{BranchId, Reference};
use tine_engine::{
    BranchView, Call, ConversationPatch, ConversationView, Engine, Page, PathQuery, RecentQuery,
    Result, TurnRef, TurnView,
};
use tine_store::Content;

use crate::json_macro::json;

/// Conversations read at first to fill a page of sessions.
const PAGE_CONVERSATIONS: usize = 50;

/// The length of a title taken from the first message.
pub(crate) const TITLE_CHARS: usize = 80;

/// Returns the conversation metadata for a new session.
pub(crate) fn new_session_metadata(cwd: &str, client: Json, agent: Option<&str>) -> Json {
    let mut acp = note(cwd, agent);
    acp.insert("client", client);
    object([("acp", Json::Object(acp))])
}

fn note(cwd: &str, agent: Option<&str>) -> Object {
    let mut note = Object::new();
    note.insert("cwd", cwd.into());
    if let Some(agent) = agent {
        note.insert("agent", agent.into());
    }
    note
}

/// Records that a fork has another working directory or another agent than its conversation.
pub(crate) fn record_fork(
    engine: &Engine,
    call: &Call,
    fork: &BranchView,
    cwd: &str,
    agent: Option<&str>,
) -> Result<()> {
    let conversation = engine.conversation(call, &fork.conversation)?;
    let same_agent = agent.is_none() || session_note(&conversation, fork.id, "agent") == agent;
    if same_agent && session_note(&conversation, fork.id, "cwd") == Some(cwd) {
        return Ok(());
    }
    let mut metadata = conversation.metadata.as_object().cloned().unwrap_or_default();
    let mut acp = metadata.remove("acp").and_then(into_object).unwrap_or_default();
    let mut forks = acp.remove("forks").and_then(into_object).unwrap_or_default();
    forks.insert(fork.id.to_string(), Json::Object(note(cwd, agent)));
    acp.insert("forks", Json::Object(forks));
    metadata.insert("acp", Json::Object(acp));
    let patch = ConversationPatch {
        metadata: Some(Json::Object(metadata)),
        ..ConversationPatch::default()
    };
    engine.patch_conversation(call, &conversation.id, patch)?;
    Ok(())
}

fn into_object(json: Json) -> Option<Object> {
    match json {
        Json::Object(object) => Some(object),
        _ => None,
    }
}

/// Returns a field recorded for a branch.
fn session_note<'c>(
    conversation: &'c ConversationView,
    branch: BranchId,
    name: &str,
) -> Option<&'c str> {
    let acp = conversation.metadata.get("acp")?;
    let own = acp.get("forks").and_then(|forks| forks.get(&branch.to_string()));
    own.unwrap_or(acp).get(name).and_then(Json::as_str)
}

/// Returns one page of sessions and the cursor of the next; with an agent, only that agent's
/// sessions.
pub(crate) fn page(
    engine: &Engine,
    call: &Call,
    cwd: Option<&str>,
    cursor: Option<&str>,
    agent: Option<&str>,
) -> Result<(Vec<Json>, Option<String>)> {
    let mut sessions = Vec::new();
    let mut cursor = cursor.map(str::to_owned);
    let query = RecentQuery::default();
    let may_match = |metadata: &Json| may_have_sessions(metadata, cwd, agent);
    let mut limit = PAGE_CONVERSATIONS;
    loop {
        let page = Page { cursor, limit: Some(limit) };
        let found = engine.recent_conversations_where(call, &query, page, &may_match)?;
        for conversation in &found.items {
            add(engine, call, conversation, (cwd, agent), &mut sessions)?;
        }
        cursor = found.next;
        // Some clients take an empty page for the end of the list.
        if !sessions.is_empty() || cursor.is_none() {
            return Ok((sessions, cursor));
        }
        // Each page scans all conversations briefly, so the next one is larger.
        limit = engine.limits().page_rows.min(limit * 2);
    }
}

/// Returns whether a conversation may have sessions with this working directory and agent, by its
/// metadata. Without `acp` metadata it may have any working directory, but it has no recorded agent.
fn may_have_sessions(metadata: &Json, cwd: Option<&str>, agent: Option<&str>) -> bool {
    let Some(acp) = metadata.get("acp") else { return agent.is_none() };
    let forks = acp.get("forks").and_then(Json::as_object);
    let mut notes = forks.into_iter().flat_map(Object::iter).map(|(_, fork)| fork).chain([acp]);
    notes.any(|note| {
        [("cwd", cwd), ("agent", agent)].into_iter().all(|(name, wanted)| {
            wanted.is_none() || note.get(name).and_then(Json::as_str) == wanted
        })
    })
}

/// Returns a page in the protocol's form.
pub(crate) fn list_result(sessions: Vec<Json>, next: Option<String>) -> Json {
    let mut page = Object::new();
    page.insert("sessions", sessions.into());
    if let Some(next) = next {
        page.insert("nextCursor", next.into());
    }
    Json::Object(page)
}

/// Adds the sessions of one conversation.
fn add(
    engine: &Engine,
    call: &Call,
    conversation: &ConversationView,
    (cwd, agent): (Option<&str>, Option<&str>),
    sessions: &mut Vec<Json>,
) -> Result<()> {
    let id = &conversation.id;
    for branch in engine.branches(call, id)? {
        if agent.is_some() && session_note(conversation, branch.id, "agent") != agent {
            continue;
        }
        let tip = match branch.tip {
            Some(tip) => Some(engine.turn(call, TurnRef::within(id.clone(), tip))?),
            None => None,
        };
        let from_turn = || tip.as_ref().and_then(turn_cwd);
        let noted = session_note(conversation, branch.id, "cwd");
        let Some(folder) = noted.or_else(from_turn) else { continue };
        if cwd.is_some_and(|wanted| wanted != folder) {
            continue;
        }
        let updated = tip.as_ref().map_or(branch.created_at, |tip| tip.created_at);
        sessions.push(json!({
            "sessionId": branch.id.to_string(),
            "cwd": folder,
            "title": title(engine, call, conversation, &branch)?,
            "updatedAt": updated.max(branch.created_at).to_string(),
        }));
    }
    Ok(())
}

/// Returns the working directory recorded with a turn.
fn turn_cwd(turn: &TurnView) -> Option<&str> {
    turn.metadata.source_info.as_ref()?.get("workspace")?.get("cwd")?.as_str()
}

/// Returns the update that tells a client the title of a session.
pub(crate) fn title_update(engine: &Engine, call: &Call, branch: &BranchView) -> Result<Json> {
    let conversation = engine.conversation(call, &branch.conversation)?;
    let title = title(engine, call, &conversation, branch)?;
    Ok(json!({ "sessionUpdate": "session_info_update", "title": title }))
}

/// Returns the title of a session: the conversation's own or the beginning of its first message,
/// followed by the branch's name unless that is `main`.
fn title(
    engine: &Engine,
    call: &Call,
    conversation: &ConversationView,
    branch: &BranchView,
) -> Result<Option<String>> {
    let title = match &conversation.title {
        Some(title) => Some(title.clone()),
        None => first_message(engine, call, branch)?,
    };
    Ok(title.map(|title| match branch.name.as_str() {
        "main" => title,
        name => format!("{title} ({name})"),
    }))
}

fn first_message(engine: &Engine, call: &Call, branch: &BranchView) -> Result<Option<String>> {
    let to = Reference::parse(&branch.id.to_string())?;
    let query = PathQuery { limit: Some(1), ..PathQuery::of(branch.conversation.clone()).to(to) };
    let first = engine.path(call, query)?.turns.pop();
    Ok(first.and_then(|first| match first.content {
        Content::Kept(body) => Some(body.preview(TITLE_CHARS)),
        Content::Purged(_) => None,
    }))
}

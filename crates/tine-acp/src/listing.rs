//! Sessions as a client lists them: branches whose folder is known, those changed last first.
//!
//! What the protocol wants to know of a session beside its turns is kept in the metadata of its
//! conversation, under `acp`: the folder and the client that began it, and the folders of forks
//! that were begun elsewhere. A conversation that did not begin here is listed when its last turn
//! tells where it was said.

use std::sync::Arc;

use tine_core::json::{Json, Object, object};
use tine_core::{BranchId, Reference};
use tine_engine::{
    BranchView, Call, ConversationPatch, ConversationView, Engine, Page, PathQuery, RecentQuery,
    Result, TurnRef, TurnView, WantedMetadata,
};
use tine_store::Content;

use crate::json::json;

/// Conversations whose sessions make a page.
const CONVERSATIONS: usize = 50;

/// Characters of a title that is taken from the first message.
pub(crate) const TITLE: usize = 80;

/// What is kept of a session that begins.
pub(crate) fn began(cwd: &str, client: Json, agent: Option<&str>) -> Json {
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

/// Notes that a fork works in another folder than the conversation it belongs to, or with another
/// agent.
pub(crate) fn forked(
    engine: &Engine,
    call: &Call,
    fork: &BranchView,
    cwd: &str,
    agent: Option<&str>,
) -> Result<()> {
    let conversation = engine.conversation(call, &fork.conversation)?;
    let same_agent = agent.is_none() || noted(&conversation, fork.id, "agent") == agent;
    if same_agent && noted(&conversation, fork.id, "cwd") == Some(cwd) {
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

/// What is noted for a branch.
fn noted<'c>(conversation: &'c ConversationView, branch: BranchId, name: &str) -> Option<&'c str> {
    let acp = conversation.metadata.get("acp")?;
    let own = acp.get("forks").and_then(|forks| forks.get(&branch.to_string()));
    own.unwrap_or(acp).get(name).and_then(Json::as_str)
}

/// One page of sessions, and where the next begins; with an agent, only its own.
pub(crate) fn page(
    engine: &Engine,
    call: &Call,
    cwd: Option<&str>,
    cursor: Option<&str>,
    agent: Option<&str>,
) -> Result<(Vec<Json>, Option<String>)> {
    let mut sessions = Vec::new();
    let mut cursor = cursor.map(str::to_owned);
    let metadata = Some(may_have(cwd, agent));
    let query = RecentQuery { metadata, ..RecentQuery::default() };
    let mut limit = CONVERSATIONS;
    loop {
        let page = Page { cursor, limit: Some(limit) };
        let found = engine.recent_conversations(call, &query, page)?;
        for conversation in &found.items {
            add(engine, call, conversation, (cwd, agent), &mut sessions)?;
        }
        cursor = found.next;
        // A page that holds nothing would look like the end to whoever only looks at that.
        if !sessions.is_empty() || cursor.is_none() {
            return Ok((sessions, cursor));
        }
        // Each page looks once, if shortly, at all there are: so the next one is longer.
        limit = engine.limits().page_rows.min(limit * 2);
    }
}

/// Whether a conversation may have sessions of that folder and that agent, by its metadata alone.
/// What says nothing of folders may have been said anywhere, but by no agent that was recorded.
fn may_have(cwd: Option<&str>, agent: Option<&str>) -> WantedMetadata {
    let wanted = [("cwd", cwd.map(str::to_owned)), ("agent", agent.map(str::to_owned))];
    let recorded = agent.is_some();
    WantedMetadata(Arc::new(move |metadata| {
        let Some(acp) = metadata.get("acp") else { return !recorded };
        let forks = acp.get("forks").and_then(Json::as_object);
        let notes: Vec<&Json> = match forks {
            Some(forks) => forks.iter().map(|(_, fork)| fork).chain([acp]).collect(),
            None => vec![acp],
        };
        notes.iter().any(|note| {
            wanted.iter().all(|(name, wanted)| {
                wanted.is_none() || note.get(name).and_then(Json::as_str) == wanted.as_deref()
            })
        })
    }))
}

/// A page as clients get it.
pub(crate) fn told(sessions: Vec<Json>, next: Option<String>) -> Json {
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
        if agent.is_some() && noted(conversation, branch.id, "agent") != agent {
            continue;
        }
        let tip = match branch.tip {
            Some(tip) => Some(engine.turn(call, TurnRef::within(id.clone(), tip))?),
            None => None,
        };
        let told = || tip.as_ref().and_then(said_in);
        let noted = noted(conversation, branch.id, "cwd");
        let Some(folder) = noted.or_else(told) else { continue };
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

/// Where a turn was said, as its metadata tells.
fn said_in(turn: &TurnView) -> Option<&str> {
    turn.metadata.source_info.as_ref()?.get("workspace")?.get("cwd")?.as_str()
}

/// The title of a session: the conversation's own or the beginning of what was first said, and
/// the branch's name where it is not the main one.
pub(crate) fn title(
    engine: &Engine,
    call: &Call,
    conversation: &ConversationView,
    branch: &BranchView,
) -> Result<Option<String>> {
    let title = match &conversation.title {
        Some(title) => Some(title.clone()),
        None => first_words(engine, call, branch)?,
    };
    Ok(title.map(|title| match branch.name.as_str() {
        "main" => title,
        name => format!("{title} ({name})"),
    }))
}

fn first_words(engine: &Engine, call: &Call, branch: &BranchView) -> Result<Option<String>> {
    let to = Reference::parse(&branch.id.to_string())?;
    let query = PathQuery { limit: Some(1), ..PathQuery::of(branch.conversation.clone()).to(to) };
    let first = engine.path(call, query)?.turns.pop();
    Ok(first.and_then(|first| match first.content {
        Content::Kept(body) => Some(body.preview(TITLE)),
        Content::Purged(_) => None,
    }))
}

//! Sessions that the agent had before it was recorded. They are listed with the recorded ones, and
//! recorded from the moment a client loads or resumes one.
//!
//! What the agent replays of such a session becomes the beginning of a conversation, labelled as
//! history because it was not recorded live. Clients keep naming the session by the agent's id; the
//! list then shows it under its branch's id.

use std::cmp::Reverse;
use std::sync::Arc;

use tine_core::{ErrorKind, Json, Timestamp};
use tine_engine::{Clock as _, ConversationPatch, NewConversation, SystemClock};

use super::agent_messages::{is_history, update_of};
use super::agent_process::AgentError;
use super::event_lines::EventSender;
use super::raw_message::RawMessage;
use super::recorded_sessions::{GATHERED, RecordedSession, SessionTarget};
use super::relay::{Relay, agent_error};
use super::session_opening::{OpenedSession, StartedSession, with_context};
use super::session_registry::AgentSession;
use super::turn_builder::TurnBuilder;
use crate::json_macro::json;
use crate::json_rpc::{self, RpcError, RpcResult};
use crate::session_list;

/// Pages requested from the agent in a row while none has anything to show.
const PAGES: usize = 100;

/// The error code for a missing authentication, which is passed on to the client.
const AUTHENTICATION_REQUIRED: i64 = -32000;

const CURSOR_DEPTH: usize = 1;

/// A position in the combined list. A side is `None` once it has ended.
#[derive(Default)]
struct ListCursor {
    ours: Option<String>,
    theirs: Option<String>,
}

impl ListCursor {
    fn read(cursor: &str) -> RpcResult<ListCursor> {
        let read = tine_core::json::parse(cursor.as_bytes(), CURSOR_DEPTH).ok();
        let place = |name: &str| Some(read.as_ref()?.get(name)?.as_str()?.to_owned());
        let cursor = ListCursor { ours: place("ours"), theirs: place("theirs") };
        match cursor.has_ended() {
            true => Err(RpcError::invalid("unknown `cursor`; list again without one")),
            false => Ok(cursor),
        }
    }

    fn has_ended(&self) -> bool {
        self.ours.is_none() && self.theirs.is_none()
    }

    fn encode(&self) -> String {
        json!({ "ours": self.ours.as_deref(), "theirs": self.theirs.as_deref() }).to_canonical()
    }
}

impl Relay {
    /// Returns one page of all sessions: recorded ones, and those that only the agent has.
    pub(super) fn all_sessions(self: &Arc<Self>, params: &Json) -> RpcResult<Json> {
        let cwd = json_rpc::optional_cwd(params)?;
        let cursor =
            json_rpc::optional_text(params, "cursor")?.map(ListCursor::read).transpose()?;
        let (mut sessions, mut next) = (Vec::new(), ListCursor::default());
        if cursor.as_ref().is_none_or(|cursor| cursor.ours.is_some()) {
            let from = cursor.as_ref().and_then(|cursor| cursor.ours.as_deref());
            let (engine, call) = (&self.recorder.engine, &self.recorder.call);
            (sessions, next.ours) =
                session_list::page(engine, call, cwd, from, Some(&self.agent()))?;
        }
        if cursor.as_ref().is_none_or(|cursor| cursor.theirs.is_some()) {
            next.theirs = cursor.and_then(|cursor| cursor.theirs);
            // Some clients take an empty page for the end of the list.
            for _ in 0..PAGES {
                let found = self.agent_page(cwd, &mut next.theirs)?;
                sessions.extend(found);
                if !sessions.is_empty() || next.theirs.is_none() {
                    break;
                }
            }
        }
        sessions.sort_by_key(|session| Reverse(updated_at(session)));
        Ok(session_list::list_result(sessions, (!next.has_ended()).then(|| next.encode())))
    }

    /// Returns the agent's next page without recorded sessions, and moves `place` to the following
    /// page.
    fn agent_page(
        self: &Arc<Self>,
        cwd: Option<&str>,
        place: &mut Option<String>,
    ) -> RpcResult<Vec<Json>> {
        let cursor = place.take();
        let Some(process) = self.process().ok().filter(|_| self.capabilities().list) else {
            return Ok(Vec::new());
        };
        let given = [("cwd", cwd), ("cursor", cursor.as_deref())];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let params = given.map(|(name, value)| (name.to_owned(), value.into())).collect();
        let page = match process.request("session/list", &Json::Object(params)) {
            Ok(page) => page,
            Err(fault) => {
                tracing::warn!(?fault, "the agent did not list its sessions");
                return Ok(Vec::new());
            }
        };
        let next = page.get("nextCursor").and_then(Json::as_str).map(str::to_owned);
        *place = next.filter(|next| cursor.as_ref() != Some(next));
        let mut found: Vec<Json> = Vec::new();
        for session in page.get("sessions").and_then(Json::as_array).into_iter().flatten() {
            let member = |name: &str| session.get(name).and_then(Json::as_str);
            let Some(id) = member("sessionId") else { continue };
            let elsewhere = cwd.is_some_and(|cwd| member("cwd") != Some(cwd));
            let again =
                found.iter().any(|known| known.get("sessionId").and_then(Json::as_str) == Some(id));
            if elsewhere
                || again
                || self.branch_of(id).is_ok()
                || self.latest_session(id)?.is_some()
            {
                continue;
            }
            let mut session = session.clone();
            json_rpc::add_note(&mut session, json!({ "recorded": false }));
            found.push(session);
        }
        Ok(found)
    }

    /// Opens a session that only the agent has.
    pub(super) fn open_unrecorded(
        self: &Arc<Self>,
        cwd: &str,
        params: &Json,
        unknown: RpcError,
    ) -> RpcResult<OpenedSession> {
        let id = json_rpc::required_text(params, "sessionId")?;
        let process = self.process()?;
        let native = self.capabilities();
        // Only a load replays the conversation. A client that resumes is not shown the replay.
        let method = match (native.load, native.resume) {
            (true, _) => "session/load",
            (false, true) => "session/resume",
            (false, false) => return Err(unknown),
        };
        // A session whose branch was deleted stays deleted.
        if self.latest_session(id)?.is_some() {
            return Err(unknown);
        }
        if !self.sessions.start_gathering(id) {
            return Err(RpcError::of(ErrorKind::Busy, "this session is already being loaded"));
        }
        let mut asked = params.clone();
        if let Some(members) = asked.as_object_mut()
            && !members.contains_key("mcpServers")
        {
            members.insert("mcpServers", json!([]));
        }
        let answer = process.request(method, &asked);
        let gathered = self.sessions.take_gathered(id);
        let answer = match answer {
            Ok(answer) => answer,
            Err(AgentError::Refused(error))
                if error.get("code") != Some(&AUTHENTICATION_REQUIRED.into()) =>
            {
                tracing::info!(%error, "the agent does not know the session");
                return Err(unknown);
            }
            Err(fault) => return Err(agent_error(fault)),
        };
        if gathered.len() >= GATHERED {
            let why = "the agent's replay of this session is too long to record";
            return Err(RpcError::of(ErrorKind::TooLarge, why));
        }
        self.record_replay(id, cwd, StartedSession { process, answer }, gathered)
    }

    /// Creates a conversation from the replay, and a session that continues it.
    fn record_replay(
        &self,
        id: &str,
        cwd: &str,
        begun: StartedSession,
        gathered: Vec<RawMessage>,
    ) -> RpcResult<OpenedSession> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let (replayed, rest): (Vec<_>, Vec<_>) = gathered.into_iter().partition(is_history);
        let updates: Vec<Json> = replayed.iter().map(update_of).collect();
        let turns = TurnBuilder::of(&updates, &|| engine.promise_turn_id());
        let client = self.client_info();
        let metadata = session_list::new_session_metadata(cwd, client, Some(&self.agent()));
        let new =
            NewConversation { metadata, title: title_in(&rest), ..NewConversation::default() };
        let made = engine.create_conversation(call, new)?;
        let branch = engine.branch(call, &made.id, "main")?;
        let agent_session = AgentSession { id: id.to_owned(), uses_before: 0 };
        let target = SessionTarget { id: id.to_owned(), branch, cwd: cwd.to_owned() };
        let session = RecordedSession::new(&begun.process, agent_session, target, None);
        let kept = {
            let mut state = session.lock();
            state.held_back = Some(rest);
            let now = SystemClock.now();
            replayed.into_iter().for_each(|line| state.events.add(now, EventSender::Agent, line));
            self.store_history(&session, &mut state, &turns)
        };
        // Registered last: until then the session does not count as recorded, and can be loaded
        // again.
        let claimed =
            kept.and_then(|()| self.write_registration(&session.agent_session, session.branch));
        if !matches!(claimed, Ok(true)) {
            let hidden = ConversationPatch { archived: Some(true), ..ConversationPatch::default() };
            if let Err(error) = engine.patch_conversation(call, &made.id, hidden) {
                tracing::warn!(%error, "cannot hide the unfinished conversation");
            }
            claimed?;
            return Err(RpcError::of(
                ErrorKind::Busy,
                "this session was loaded at the same time elsewhere; load it again",
            ));
        }
        let session = self.sessions.open(session);
        let history = json!({ "turns": turns.len(), "source": "replayed by the agent" });
        let context = json!({ "kind": "native", "history": history });
        Ok(OpenedSession { session, answer: with_context(begun.answer, context) })
    }
}

/// Returns the title that the agent gave a session.
fn title_in(updates: &[RawMessage]) -> Option<String> {
    let title = updates
        .iter()
        .rev()
        .find_map(|message| message.text(&["params", "update", "title"]).map(str::trim));
    title
        .filter(|title| !title.is_empty())
        .map(|title| tine_core::text::preview(title, session_list::TITLE_CHARS))
}

fn updated_at(session: &Json) -> Option<Timestamp> {
    session.get("updatedAt").and_then(Json::as_str)?.parse().ok()
}

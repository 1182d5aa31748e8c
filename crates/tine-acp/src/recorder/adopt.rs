//! Sessions that the agent had before it was recorded: listed beside ours, and taken in when a
//! client loads or resumes one.
//!
//! What the agent replays of such a session becomes the beginning of a conversation, labelled as
//! history: it was not recorded when it was said. From there on everything is recorded. Clients go
//! on naming it by the agent's id; the list has it under the branch's, once it is ours.

use std::cmp::Reverse;
use std::sync::Arc;

use tine_core::{ErrorKind, Json, Timestamp};
use tine_engine::{Clock as _, ConversationPatch, NewConversation, SystemClock};

use super::agent::{is_history, update_of};
use super::derive::Derivation;
use super::events::From;
use super::link::Fault;
use super::message::Message;
use super::policy::{Begun, Opened, told};
use super::relay::{Relay, refusal};
use super::roster::Theirs;
use super::session::{GATHERED, Session, Wanted};
use crate::json::json;
use crate::listing;
use crate::wire::{self, Refusal};

/// Pages of the agent's that are asked for in a row, when none has anything to show.
const PAGES: usize = 100;

/// An agent wants to know who somebody is first: the client is told so, whatever it asked for.
const NO_LEAVE: i64 = -32000;

/// Nesting of a cursor.
const CURSOR_DEPTH: usize = 1;

/// Where a list goes on, on either side; `None` where it has ended.
#[derive(Default)]
struct Cursor {
    ours: Option<String>,
    theirs: Option<String>,
}

impl Cursor {
    fn read(cursor: &str) -> Result<Cursor, Refusal> {
        let read = tine_core::json::parse(cursor.as_bytes(), CURSOR_DEPTH).ok();
        let place = |name: &str| Some(read.as_ref()?.get(name)?.as_str()?.to_owned());
        let cursor = Cursor { ours: place("ours"), theirs: place("theirs") };
        match cursor.has_ended() {
            true => Err(Refusal::invalid("`cursor` is none that was given out; begin without one")),
            false => Ok(cursor),
        }
    }

    fn has_ended(&self) -> bool {
        self.ours.is_none() && self.theirs.is_none()
    }

    fn told(&self) -> String {
        json!({ "ours": self.ours.as_deref(), "theirs": self.theirs.as_deref() }).to_canonical()
    }
}

impl Relay {
    /// One page of all sessions, ours and those that only the agent has.
    pub(super) fn all_sessions(self: &Arc<Self>, params: &Json) -> Result<Json, Refusal> {
        let cwd = wire::optional_text(params, "cwd")?.map(wire::absolute).transpose()?;
        let cursor = wire::optional_text(params, "cursor")?.map(Cursor::read).transpose()?;
        let (mut sessions, mut next) = (Vec::new(), Cursor::default());
        if cursor.as_ref().is_none_or(|cursor| cursor.ours.is_some()) {
            let from = cursor.as_ref().and_then(|cursor| cursor.ours.as_deref());
            let (engine, call) = (&self.recorder.engine, &self.recorder.call);
            (sessions, next.ours) = listing::page(engine, call, cwd, from, Some(&self.agent()))?;
        }
        if cursor.as_ref().is_none_or(|cursor| cursor.theirs.is_some()) {
            next.theirs = cursor.and_then(|cursor| cursor.theirs);
            // A page that holds nothing would look like the end to whoever only looks at that.
            for _ in 0..PAGES {
                let found = self.their_page(cwd, &mut next.theirs)?;
                sessions.extend(found);
                if !sessions.is_empty() || next.theirs.is_none() {
                    break;
                }
            }
        }
        sessions.sort_by_key(|session| Reverse(updated_at(session)));
        Ok(listing::told(sessions, (!next.has_ended()).then(|| next.told())))
    }

    /// The agent's sessions that are not ours, from a place on, which becomes that of the next.
    fn their_page(
        self: &Arc<Self>,
        cwd: Option<&str>,
        place: &mut Option<String>,
    ) -> Result<Vec<Json>, Refusal> {
        let cursor = place.take();
        let Some(link) = self.link().ok().filter(|_| self.native().list) else {
            return Ok(Vec::new());
        };
        let given = [("cwd", cwd), ("cursor", cursor.as_deref())];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let params = given.map(|(name, value)| (name.to_owned(), value.into())).collect();
        let page = match link.ask("session/list", &Json::Object(params)) {
            Ok(page) => page,
            Err(fault) => {
                tracing::warn!(?fault, "the agent does not list its own sessions");
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
            if elsewhere || again || self.branch_of(id).is_ok() || self.last_of(id)?.is_some() {
                continue;
            }
            let mut session = session.clone();
            wire::note(&mut session, json!({ "recorded": false }));
            found.push(session);
        }
        Ok(found)
    }

    /// Takes in a session that only the agent has.
    pub(super) fn adopted(
        self: &Arc<Self>,
        cwd: &str,
        params: &Json,
        unknown: Refusal,
    ) -> Result<Opened, Refusal> {
        let id = wire::text(params, "sessionId")?;
        let link = self.link()?;
        let native = self.native();
        // Only a load tells what was said; a client that resumes is not shown it.
        let method = match (native.load, native.resume) {
            (true, _) => "session/load",
            (false, true) => "session/resume",
            (false, false) => return Err(unknown),
        };
        // One whose branch was deleted here stays so.
        if self.last_of(id)?.is_some() {
            return Err(unknown);
        }
        if !self.sessions.gather(id) {
            return Err(Refusal::of(ErrorKind::Busy, "this session is being loaded already"));
        }
        let mut asked = params.clone();
        if let Some(members) = asked.as_object_mut()
            && !members.contains_key("mcpServers")
        {
            members.insert("mcpServers", json!([]));
        }
        let answer = link.ask(method, &asked);
        let gathered = self.sessions.gathered(id);
        let answer = match answer {
            Ok(answer) => answer,
            Err(Fault::Refused(error)) if error.get("code") != Some(&NO_LEAVE.into()) => {
                tracing::info!(%error, "the agent does not know that session either");
                return Err(unknown);
            }
            Err(fault) => return Err(refusal(fault)),
        };
        if gathered.len() >= GATHERED {
            let why = "the agent replays more of this session than can be taken in";
            return Err(Refusal::of(ErrorKind::TooLarge, why));
        }
        self.take_in(id, cwd, Begun { link, answer }, gathered)
    }

    /// Makes a conversation of what was replayed, and a session that goes on with it.
    fn take_in(
        &self,
        id: &str,
        cwd: &str,
        begun: Begun,
        gathered: Vec<Message>,
    ) -> Result<Opened, Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let (replayed, rest): (Vec<_>, Vec<_>) = gathered.into_iter().partition(is_history);
        let updates: Vec<Json> = replayed.iter().map(update_of).collect();
        let turns = Derivation::of(&updates, &|| engine.promise_turn_id());
        let client = self.client_info();
        let metadata = listing::began(cwd, client, Some(&self.agent()));
        let new =
            NewConversation { metadata, title: title_in(&rest), ..NewConversation::default() };
        let made = engine.create_conversation(call, new)?;
        let branch = engine.branch(call, &made.id, "main")?;
        let theirs = Theirs { id: id.to_owned(), uses_before: 0 };
        let wanted = Wanted { id: id.to_owned(), branch, cwd: cwd.to_owned() };
        let session = Session::new(&begun.link, theirs, wanted, None);
        let kept = {
            let mut state = session.lock();
            state.held = Some(rest);
            let now = SystemClock.now();
            replayed.into_iter().for_each(|line| state.events.add(now, From::Agent, line));
            self.store_history(&session, &mut state, &turns)
        };
        // The card comes last: without it the session is not ours, and can be taken in again.
        let claimed = kept.and_then(|()| self.claim(&session.theirs, session.branch));
        if !matches!(claimed, Ok(true)) {
            let hidden = ConversationPatch { archived: Some(true), ..ConversationPatch::default() };
            if let Err(error) = engine.patch_conversation(call, &made.id, hidden) {
                tracing::warn!(%error, "what was begun of the session stays");
            }
            claimed?;
            return Err(Refusal::of(
                ErrorKind::Busy,
                "another has just loaded this session; load it again",
            ));
        }
        let session = self.sessions.open(session);
        let history = json!({ "turns": turns.len(), "told": "by the agent, again" });
        let context = json!({ "kind": "native", "history": history });
        Ok(Opened { session, answer: told(begun.answer, context) })
    }
}

/// The title that the agent told of a session.
fn title_in(updates: &[Message]) -> Option<String> {
    let told = updates
        .iter()
        .rev()
        .find_map(|message| message.text(&["params", "update", "title"]).map(str::trim));
    told.filter(|title| !title.is_empty())
        .map(|title| tine_core::text::preview(title, listing::TITLE))
}

fn updated_at(session: &Json) -> Option<Timestamp> {
    session.get("updatedAt").and_then(Json::as_str)?.parse().ok()
}

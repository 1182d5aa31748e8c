//! How a session of the agent comes to hold what a branch holds.
//!
//! To go on with a branch, best first: the agent's own session that holds it, taken up by
//! `session/resume` or by `session/load` with its replay passed over; else a new session and a
//! seed. To fork, best first: the agent's own fork, when it is the end that is forked at; its own
//! fork at a message, when it has one; else a new session and a seed.

use std::sync::Arc;

use tine_core::{Json, Reference, Role, TurnId};
use tine_engine::{BranchView, PathQuery, Presence, Selection, TopologyQuery, TurnRef, TurnView};
use tine_store::Content;

use super::capabilities::{Dialect, object};
use super::link::{Fault, Link};
use super::relay::{Relay, refusal};
use super::roster::Theirs;
use super::seed::Seed;
use super::session::{Session, Wanted};
use crate::anchor;
use crate::json::json;
use crate::wire::Refusal;

/// How often an agent that ends is started for one request.
const STARTS: usize = 2;

/// Children of a turn that are looked at; where there are more, nothing is certain.
const CHILDREN: usize = 256;

/// Turns among which the last question is looked for.
const LOOKED_BACK: usize = 256;

/// How what was taken out of a text begins.
const REDACTED: &str = "[redacted:";

/// What the agent answered when it began a session.
pub(super) struct Begun {
    pub link: Arc<Link>,
    pub answer: Json,
}

/// A session of the agent, and what the client is told of it.
pub(super) struct Opened {
    pub session: Arc<Session>,
    pub answer: Json,
}

impl Opened {
    /// With the session's id in the answer, where the method tells one.
    pub(super) fn named(mut self) -> Self {
        if let Some(members) = self.answer.as_object_mut() {
            members.insert("sessionId", self.session.id.as_str().into());
        }
        self
    }
}

impl Relay {
    /// A new session of the agent, with the parameters of a load, a resume or a fork. An agent
    /// that just ended is started again.
    pub(super) fn begin_session(self: &Arc<Self>, params: &Json) -> Result<Begun, Refusal> {
        let mut params = anchor::without(params);
        if let Some(members) = params.as_object_mut() {
            members.remove("sessionId");
            if !members.contains_key("mcpServers") {
                members.insert("mcpServers", json!([]));
            }
        }
        let mut fault = Fault::Gone;
        for _ in 0..STARTS {
            let link = self.link()?;
            match link.ask("session/new", &params) {
                Ok(answer) => return Ok(Begun { link, answer }),
                Err(refused @ Fault::Refused(_)) => return Err(refusal(refused)),
                Err(gone) => fault = gone,
            }
        }
        Err(refusal(fault))
    }

    /// Opens a branch for the client: a session of the agent that holds it.
    pub(super) fn open(self: &Arc<Self>, wanted: Wanted, params: &Json) -> Result<Opened, Refusal> {
        let wanted = match self.holder(&wanted.branch)? {
            None => wanted,
            Some(theirs) => match self.take_up(wanted, theirs, params)? {
                Ok(opened) => return Ok(opened),
                Err(wanted) => wanted,
            },
        };
        self.reconstructed(wanted, self.begin_session(params)?)
    }

    /// A new session of the agent, and a seed for it if anything was said.
    pub(super) fn reconstructed(&self, wanted: Wanted, begun: Begun) -> Result<Opened, Refusal> {
        let theirs = self.enrol(session_of(&begun.answer)?, wanted.branch.id)?;
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let seed = wanted.branch.tip.map(|tip| Seed::of(engine, call, tip)).transpose()?;
        let context = match &seed {
            Some(seed) => seed.told(),
            None => json!({ "kind": "new" }),
        };
        let session = self.sessions.open(Session::new(&begun.link, theirs, wanted, seed));
        Ok(Opened { session, answer: told(begun.answer, context) })
    }

    /// Takes the agent's own session up; what is wanted comes back if the agent will not.
    fn take_up(
        self: &Arc<Self>,
        wanted: Wanted,
        theirs: Theirs,
        params: &Json,
    ) -> Result<Result<Opened, Wanted>, Refusal> {
        let link = self.link()?;
        let native = self.native();
        let method = match (native.resume, native.load) {
            (true, _) => "session/resume",
            (false, true) => "session/load",
            (false, false) => return Ok(Err(wanted)),
        };
        let asked = with_session(params.clone(), &theirs.id);
        let session = self.sessions.open(Session::new(&link, theirs, wanted, None));
        session.lock().hushed = Some(String::new());
        let taken = link.ask(method, &asked);
        let questions = session.lock().hushed.take().unwrap_or_default();
        match taken {
            Ok(answer) if self.is_the_one(&session, &questions)? => {
                Ok(Ok(Opened { session, answer: told(answer, json!({ "kind": "native" })) }))
            }
            taken => {
                self.sessions.close(&session);
                tracing::info!(?taken, method, "the agent does not take that session up");
                let branch = session.lock().branch.clone();
                Ok(Err(Wanted { id: session.id.clone(), branch, cwd: session.cwd.clone() }))
            }
        }
    }

    /// Whether a session that the agent replayed can be the one that is wanted: the agent may have
    /// given the id to another one while nobody recorded it. If it replays questions at all, the
    /// last that was asked in the branch is among them.
    fn is_the_one(&self, session: &Session, questions: &str) -> Result<bool, Refusal> {
        if questions.is_empty() {
            return Ok(true);
        }
        let branch = session.lock().branch.clone();
        let to = branch.tip.map(Reference::from);
        let selection = Selection::Last(LOOKED_BACK);
        let query = PathQuery { to, selection, ..PathQuery::of(branch.conversation) };
        let turns = self.recorder.engine.path(&self.recorder.call, query)?.turns;
        let mut asked = turns.iter().rev().filter(|turn| turn.role == Role::User);
        let Some(Content::Kept(body)) = asked.next().map(|turn| &turn.content) else {
            return Ok(true);
        };
        let texts = body.blocks().unwrap_or_default();
        let mut texts = texts.iter().filter_map(|block| block.get("text")?.as_str());
        Ok(texts.all(|text| text.contains(REDACTED) || questions.contains(text.trim())))
    }

    /// The agent's session that holds exactly what a branch holds: the one in which its last turn
    /// was said, unless that has gone on since, is open for another branch, or has lost its id to
    /// another session.
    fn holder(&self, branch: &BranchView) -> Result<Option<Theirs>, Refusal> {
        let Some(tip) = branch.tip else { return Ok(None) };
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let turn = engine.turn(call, TurnRef::within(branch.conversation.clone(), tip))?;
        let Some(theirs) = said_in(&turn, &self.agent()) else { return Ok(None) };
        let is_last = self.last_of(&theirs.id)?.is_some_and(|(last, _)| last == theirs);
        if !is_last || self.sessions.theirs(&theirs.id).is_some() {
            return Ok(None);
        }
        let below = TopologyQuery {
            under: Some(tip.into()),
            include_deleted: true,
            limit: Some(CHILDREN),
            ..TopologyQuery::of(branch.conversation.clone())
        };
        let rows = engine.topology(call, below)?;
        if rows.next.is_some() {
            return Ok(None);
        }
        for row in rows.rows.iter().filter(|row| row.id != tip) {
            let below = engine.turn(call, TurnRef::within(branch.conversation.clone(), row.id))?;
            if said_in(&below, &self.agent()).as_ref() == Some(&theirs) {
                return Ok(None);
            }
        }
        Ok(Some(theirs).filter(|_| turn.presence == Presence::Live))
    }

    /// The agent's own fork of an open session at a turn, where it cuts exactly there.
    pub(super) fn fork_natively(
        &self,
        parent: &Session,
        branch: &BranchView,
        at: Option<TurnId>,
        params: &Json,
    ) -> Result<Option<Begun>, Refusal> {
        let native = self.native();
        let (at, whole) = {
            let state = parent.lock();
            let idle = state.running == 0 && state.seed.is_none() && state.holds(branch);
            let Some(tip) = branch.tip.filter(|_| idle && native.fork) else {
                return Ok(None);
            };
            (at.unwrap_or(tip), at.is_none_or(|at| at == tip))
        };
        let mut asked = with_session(anchor::without(params), &parent.theirs.id);
        if !whole {
            let Some((dialect, message)) = self.their_message(parent, at)? else { return Ok(None) };
            let members = asked.as_object_mut();
            match dialect {
                Dialect::Proposed => members.map(|it| it.insert("messageId", message.into())),
                Dialect::Air => members.map(|it| {
                    let fork = json!({ "version": 1, "messageId": message });
                    let air = ["_meta", "jetbrains", "air"].into_iter().fold(it, object);
                    air.insert("fork", fork)
                }),
            };
        }
        match parent.link.ask("session/fork", &asked) {
            Ok(answer) => Ok(Some(Begun { link: Arc::clone(&parent.link), answer })),
            Err(fault) => {
                tracing::info!(?fault, "the agent does not fork that session");
                Ok(None)
            }
        }
    }

    /// How the agent itself names a turn, if it forks at messages and said it in that session, or
    /// was asked it there.
    fn their_message(
        &self,
        session: &Session,
        at: TurnId,
    ) -> Result<Option<(Dialect, String)>, Refusal> {
        let Some(dialect) = self.native().at_message else { return Ok(None) };
        let turn = self.recorder.engine.turn(&self.recorder.call, TurnRef::of(at))?;
        if said_in(&turn, &self.agent()).as_ref() != Some(&session.theirs) {
            return Ok(None);
        }
        let message = match (turn.role, dialect) {
            (Role::User, Dialect::Proposed) => self.their_question(session, &turn)?,
            // Whether the other dialect cuts behind a question is nowhere said.
            (Role::User, Dialect::Air) => None,
            _ => named(&turn, "message"),
        };
        Ok(message.map(|message| (dialect, message)))
    }

    /// How the agent names a question: as its echo told, which came before the answer.
    fn their_question(
        &self,
        session: &Session,
        asked: &TurnView,
    ) -> Result<Option<String>, Refusal> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let below = TopologyQuery {
            under: Some(asked.id.into()),
            limit: Some(CHILDREN),
            ..TopologyQuery::of(asked.conversation.clone())
        };
        let rows = engine.topology(call, below)?.rows;
        for row in rows.iter().filter(|row| row.parent == Some(asked.id)) {
            let answer = engine.turn(call, TurnRef::within(asked.conversation.clone(), row.id))?;
            if said_in(&answer, &self.agent()).as_ref() == Some(&session.theirs) {
                return Ok(named(&answer, "question").or_else(|| named(asked, "message")));
            }
        }
        Ok(named(asked, "message"))
    }

    /// A session of the agent that holds what the branch holds as it is.
    pub(super) fn as_it_is(
        &self,
        wanted: Wanted,
        begun: Begun,
        kind: &str,
    ) -> Result<Opened, Refusal> {
        let theirs = self.enrol(session_of(&begun.answer)?, wanted.branch.id)?;
        let session = self.sessions.open(Session::new(&begun.link, theirs, wanted, None));
        Ok(Opened { session, answer: told(begun.answer, json!({ "kind": kind })) })
    }
}

/// An id of the agent's that a turn tells.
fn named(turn: &TurnView, name: &str) -> Option<String> {
    acp(turn)?.get(name)?.as_str().map(str::to_owned)
}

fn acp(turn: &TurnView) -> Option<&Json> {
    turn.metadata.source_info.as_ref()?.get("acp")
}

/// The session of that agent in which a turn was said.
fn said_in(turn: &TurnView, agent: &str) -> Option<Theirs> {
    let acp = acp(turn)?;
    let text = |name: &str| acp.get(name).and_then(Json::as_str);
    let id = text("session").filter(|_| text("agent") == Some(agent))?.to_owned();
    Some(Theirs { id, uses_before: acp.get("uses_before")?.as_u64()? })
}

/// Parameters with the agent's id of the session.
fn with_session(mut params: Json, id: &str) -> Json {
    if let Some(members) = params.as_object_mut() {
        members.insert("sessionId", id.into());
    }
    params
}

fn session_of(answer: &Json) -> Result<&str, Refusal> {
    let id = answer.get("sessionId").and_then(Json::as_str);
    id.ok_or_else(|| {
        Refusal::of(
            tine_core::ErrorKind::Internal,
            "the agent made a session and told no `sessionId`",
        )
    })
}

/// An answer that tells how the agent came to its context.
pub(super) fn told(mut answer: Json, context: Json) -> Json {
    match answer.as_object_mut() {
        Some(members) => drop(members.remove("sessionId")),
        None => answer = json!({}),
    }
    crate::wire::note(&mut answer, json!({ "context": context }));
    answer
}

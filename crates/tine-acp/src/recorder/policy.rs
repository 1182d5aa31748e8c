//! How a session of the agent comes to hold what a branch holds.
//!
//! To go on with a branch, best first: the agent's own session that holds it, taken up by
//! `session/resume` or by `session/load` with its replay passed over; else a new session and a
//! seed. To fork, best first: the agent's own fork, when it is the end that is forked at; its own
//! fork at a message, when it has one; else a new session and a seed.

use std::sync::Arc;

use serde_json::{Value, json};
use tine_core::{Json, TurnId};
use tine_engine::{BranchView, Presence, TopologyQuery, TurnRef, TurnView};

use super::capabilities::Dialect;
use super::link::{Fault, Link};
use super::relay::{Relay, refusal};
use super::seed::Seed;
use super::session::Session;
use crate::anchor;
use crate::wire::Refusal;

/// How often an agent that ends is started for one request.
const STARTS: usize = 2;

/// Children of a turn that are looked at; where there are more, nothing is certain.
const CHILDREN: usize = 256;

/// What the agent answered when it began a session.
pub(super) struct Begun {
    link: Arc<Link>,
    answer: Value,
}

/// A session of the agent, and what the client is told of it.
pub(super) struct Opened {
    pub session: Arc<Session>,
    pub answer: Value,
}

impl Opened {
    /// With the session's id in the answer, where the method tells one.
    pub(super) fn named(mut self) -> Self {
        self.answer["sessionId"] = self.session.id.as_str().into();
        self
    }
}

impl Relay {
    /// A new session of the agent, with the parameters of a load, a resume or a fork. An agent
    /// that just ended is started again.
    pub(super) fn begin_session(self: &Arc<Self>, params: &Value) -> Result<Begun, Refusal> {
        let mut params = anchor::without(params);
        if let Some(members) = params.as_object_mut() {
            members.remove("sessionId");
            members.entry("mcpServers").or_insert_with(|| json!([]));
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
    pub(super) fn open(
        self: &Arc<Self>,
        branch: &BranchView,
        cwd: &str,
        params: &Value,
    ) -> Result<Opened, Refusal> {
        if let Some(theirs) = self.holder(branch)?
            && let Some(opened) = self.take_up(branch, &theirs, cwd, params)?
        {
            return Ok(opened);
        }
        self.reconstructed(branch, self.begin_session(params)?, cwd)
    }

    /// A new session of the agent, and a seed for it if anything was said.
    pub(super) fn reconstructed(
        &self,
        branch: &BranchView,
        begun: Begun,
        cwd: &str,
    ) -> Result<Opened, Refusal> {
        let theirs = session_of(&begun.answer)?;
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let seed = branch.tip.map(|tip| Seed::of(engine, call, tip)).transpose()?;
        let context = match &seed {
            Some(seed) => seed.told(),
            None => json!({ "kind": "new" }),
        };
        let session = Session::new(&begun.link, &theirs, branch.clone(), cwd, seed);
        let session = self.sessions.open(session);
        Ok(Opened { session, answer: told(begun.answer, context) })
    }

    /// Takes the agent's own session up; `None` if the agent will not.
    fn take_up(
        self: &Arc<Self>,
        branch: &BranchView,
        theirs: &str,
        cwd: &str,
        params: &Value,
    ) -> Result<Option<Opened>, Refusal> {
        let link = self.link()?;
        let native = self.native();
        let method = match (native.resume, native.load) {
            (true, _) => "session/resume",
            (false, true) => "session/load",
            (false, false) => return Ok(None),
        };
        let session = Session::new(&link, theirs, branch.clone(), cwd, None);
        let session = self.sessions.open(session);
        session.lock().hushed = true;
        let mut asked = params.clone();
        asked["sessionId"] = theirs.into();
        match link.ask(method, &asked) {
            Ok(answer) => {
                session.lock().hushed = false;
                Ok(Some(Opened { session, answer: told(answer, json!({ "kind": "native" })) }))
            }
            Err(fault) => {
                self.sessions.close(&session);
                tracing::info!(?fault, method, "the agent does not take that session up");
                Ok(None)
            }
        }
    }

    /// The agent's session that holds exactly what a branch holds: the one in which its last turn
    /// was said, unless that has gone on since, or is open for another branch.
    fn holder(&self, branch: &BranchView) -> Result<Option<String>, Refusal> {
        let Some(tip) = branch.tip else { return Ok(None) };
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let turn = engine.turn(call, TurnRef::within(branch.conversation.clone(), tip))?;
        let Some(theirs) = said_in(&turn, &self.agent()) else { return Ok(None) };
        if self.sessions.theirs(&theirs).is_some() {
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
        params: &Value,
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
        let mut asked = anchor::without(params);
        asked["sessionId"] = parent.theirs.as_str().into();
        if !whole {
            let Some((dialect, message)) = self.their_message(parent, at)? else { return Ok(None) };
            match dialect {
                Dialect::Proposed => asked["messageId"] = message.into(),
                Dialect::Air => {
                    let fork = json!({ "version": 1, "messageId": message });
                    asked["_meta"]["jetbrains"]["air"]["fork"] = fork;
                }
            }
        }
        match parent.link.ask("session/fork", &asked) {
            Ok(answer) => Ok(Some(Begun { link: Arc::clone(&parent.link), answer })),
            Err(fault) => {
                tracing::info!(?fault, "the agent does not fork that session");
                Ok(None)
            }
        }
    }

    /// How the agent itself names a turn, if it forks at messages and said it in that session.
    fn their_message(
        &self,
        session: &Session,
        at: TurnId,
    ) -> Result<Option<(Dialect, String)>, Refusal> {
        let Some(dialect) = self.native().at_message else { return Ok(None) };
        let turn = self.recorder.engine.turn(&self.recorder.call, TurnRef::of(at))?;
        if said_in(&turn, &self.agent()).as_deref() != Some(session.theirs.as_str()) {
            return Ok(None);
        }
        let message = acp(&turn).and_then(|acp| acp.get("message")?.as_str().map(str::to_owned));
        Ok(message.map(|message| (dialect, message)))
    }

    /// A session of the agent that holds what the branch holds as it is.
    pub(super) fn as_it_is(
        &self,
        branch: &BranchView,
        begun: Begun,
        cwd: &str,
        kind: &str,
    ) -> Result<Opened, Refusal> {
        let theirs = session_of(&begun.answer)?;
        let session = Session::new(&begun.link, &theirs, branch.clone(), cwd, None);
        let session = self.sessions.open(session);
        Ok(Opened { session, answer: told(begun.answer, json!({ "kind": kind })) })
    }
}

fn acp(turn: &TurnView) -> Option<&Json> {
    turn.metadata.source_info.as_ref()?.get("acp")
}

/// The session of that agent in which a turn was said.
fn said_in(turn: &TurnView, agent: &str) -> Option<String> {
    let acp = acp(turn)?;
    let text = |name: &str| acp.get(name).and_then(Json::as_str);
    text("session").filter(|_| text("agent") == Some(agent)).map(str::to_owned)
}

fn session_of(answer: &Value) -> Result<String, Refusal> {
    let id = answer.get("sessionId").and_then(Value::as_str).map(str::to_owned);
    id.ok_or_else(|| {
        Refusal::of(tine_core::Kind::Internal, "the agent made a session and told no `sessionId`")
    })
}

/// An answer that tells how the agent came to its context.
fn told(mut answer: Value, context: Value) -> Value {
    match answer.as_object_mut() {
        Some(members) => drop(members.remove("sessionId")),
        None => answer = json!({}),
    }
    crate::wire::note(&mut answer, json!({ "context": context }));
    answer
}

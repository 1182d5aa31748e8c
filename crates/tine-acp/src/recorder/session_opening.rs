//! Finds or creates the agent session that continues a branch.
//!
//! To continue a branch, in order of preference: the agent session that holds it, by
//! `session/resume`, or by `session/load` with its replay ignored; otherwise a new session and a
//! seed. To fork: the agent's own fork, if the fork is at the end of the session; the agent's own
//! fork at a message, if it supports that; otherwise a new session and a seed.

use std::sync::Arc;

use tine_core::{Json, Reference, Role, TurnId};
use tine_engine::{BranchView, PathQuery, Presence, Selection, TopologyQuery, TurnRef, TurnView};
use tine_store::Content;

use super::agent_process::{AgentError, AgentProcess};
use super::capabilities::{ForkDialect, object};
use super::context_seed::ContextSeed;
use super::recorded_sessions::{RecordedSession, SessionTarget};
use super::relay::{Relay, agent_error};
use super::session_registry::AgentSession;
use crate::fork_point;
use crate::json_macro::json;
use crate::json_rpc::{RpcError, RpcResult};

/// How often an agent that keeps ending is started for one request.
const STARTS: usize = 2;

/// The most children of a turn to examine. With more, no session is reused.
const CHILDREN: usize = 256;

/// Turns searched for the last question.
const LOOKED_BACK: usize = 256;

/// The prefix of redacted text.
const REDACTED: &str = "[redacted:";

/// A session that the agent started, and its response.
pub(super) struct StartedSession {
    pub process: Arc<AgentProcess>,
    pub answer: Json,
}

/// An open session, and the response to the client.
pub(super) struct OpenedSession {
    pub session: Arc<RecordedSession>,
    pub answer: Json,
}

impl OpenedSession {
    /// Adds the session's id to the response.
    pub(super) fn named(mut self) -> Self {
        if let Some(members) = self.answer.as_object_mut() {
            members.insert("sessionId", self.session.id.as_str().into());
        }
        self
    }
}

impl Relay {
    /// Starts a new session of the agent with the parameters of a load, a resume or a fork.
    /// Restarts an agent that has just ended.
    pub(super) fn start_agent_session(
        self: &Arc<Self>,
        params: &Json,
    ) -> RpcResult<StartedSession> {
        let mut params = fork_point::without_message_id(params);
        if let Some(members) = params.as_object_mut() {
            members.remove("sessionId");
            if !members.contains_key("mcpServers") {
                members.insert("mcpServers", json!([]));
            }
        }
        let mut fault = AgentError::Gone;
        for _ in 0..STARTS {
            let process = self.process()?;
            match process.request("session/new", &params) {
                Ok(answer) => return Ok(StartedSession { process, answer }),
                Err(refused @ AgentError::Refused(_)) => return Err(agent_error(refused)),
                Err(gone) => fault = gone,
            }
        }
        Err(agent_error(fault))
    }

    /// Opens a branch for the client.
    pub(super) fn open_branch(
        self: &Arc<Self>,
        target: SessionTarget,
        params: &Json,
    ) -> RpcResult<OpenedSession> {
        let target = match self.session_holding(&target.branch)? {
            None => target,
            Some(agent_session) => {
                match self.resume_agent_session(target, agent_session, params)? {
                    Ok(opened) => return Ok(opened),
                    Err(target) => target,
                }
            }
        };
        self.open_with_seed(target, self.start_agent_session(params)?)
    }

    /// Opens a branch in a new session of the agent, with a seed if the branch has turns.
    pub(super) fn open_with_seed(
        &self,
        target: SessionTarget,
        begun: StartedSession,
    ) -> RpcResult<OpenedSession> {
        let agent_session = self.register(session_of(&begun.answer)?, target.branch.id)?;
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let seed = target.branch.tip.map(|tip| ContextSeed::of(engine, call, tip)).transpose()?;
        let context = match &seed {
            Some(seed) => seed.to_json(),
            None => json!({ "kind": "new" }),
        };
        let session =
            self.sessions.open(RecordedSession::new(&begun.process, agent_session, target, seed));
        Ok(OpenedSession { session, answer: with_context(begun.answer, context) })
    }

    /// Continues an existing session of the agent. Returns the target if the agent refuses.
    fn resume_agent_session(
        self: &Arc<Self>,
        target: SessionTarget,
        agent_session: AgentSession,
        params: &Json,
    ) -> RpcResult<Result<OpenedSession, SessionTarget>> {
        let process = self.process()?;
        let native = self.capabilities();
        let method = match (native.resume, native.load) {
            (true, _) => "session/resume",
            (false, true) => "session/load",
            (false, false) => return Ok(Err(target)),
        };
        let asked = with_session(params.clone(), &agent_session.id);
        let session =
            self.sessions.open(RecordedSession::new(&process, agent_session, target, None));
        session.lock().muted_replay = Some(String::new());
        let response = process.request(method, &asked);
        let questions = session.lock().muted_replay.take().unwrap_or_default();
        match response {
            Ok(answer) if self.replay_matches(&session, &questions)? => Ok(Ok(OpenedSession {
                session,
                answer: with_context(answer, json!({ "kind": "native" })),
            })),
            response => {
                self.sessions.close(&session);
                tracing::info!(?response, method, "the agent did not continue the session");
                let branch = session.lock().branch.clone();
                Ok(Err(SessionTarget { id: session.id.clone(), branch, cwd: session.cwd.clone() }))
            }
        }
    }

    /// Returns whether a replayed session can be the expected one: the agent may have reused the id
    /// while it was not recorded. If it replays questions at all, the branch's last question must
    /// be among them.
    fn replay_matches(&self, session: &RecordedSession, questions: &str) -> RpcResult<bool> {
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

    /// Returns the agent session that holds exactly what a branch holds: that of its last turn,
    /// unless that session has continued since, is open for another branch, or has lost its id to
    /// another session.
    fn session_holding(&self, branch: &BranchView) -> RpcResult<Option<AgentSession>> {
        let Some(tip) = branch.tip else { return Ok(None) };
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let turn = engine.turn(call, TurnRef::within(branch.conversation.clone(), tip))?;
        let Some(agent_session) = agent_session_of(&turn, &self.agent()) else { return Ok(None) };
        let is_last =
            self.latest_session(&agent_session.id)?.is_some_and(|(last, _)| last == agent_session);
        if !is_last || self.sessions.by_agent_id(&agent_session.id).is_some() {
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
            if agent_session_of(&below, &self.agent()).as_ref() == Some(&agent_session) {
                return Ok(None);
            }
        }
        Ok(Some(agent_session).filter(|_| turn.presence == Presence::Live))
    }

    /// Forks an open session with the agent's own fork, if that cuts exactly at the turn.
    pub(super) fn fork_natively(
        &self,
        parent: &RecordedSession,
        branch: &BranchView,
        at: Option<TurnId>,
        params: &Json,
    ) -> RpcResult<Option<StartedSession>> {
        let native = self.capabilities();
        let (at, whole) = {
            let state = parent.lock();
            let idle = state.running_prompts == 0 && state.seed.is_none() && state.holds(branch);
            let Some(tip) = branch.tip.filter(|_| idle && native.fork) else {
                return Ok(None);
            };
            (at.unwrap_or(tip), at.is_none_or(|at| at == tip))
        };
        let mut asked =
            with_session(fork_point::without_message_id(params), &parent.agent_session.id);
        if !whole {
            let Some((dialect, message)) = self.agent_message_id(parent, at)? else {
                return Ok(None);
            };
            let members = asked.as_object_mut();
            match dialect {
                ForkDialect::Proposed => members.map(|it| it.insert("messageId", message.into())),
                ForkDialect::Air => members.map(|it| {
                    let fork = json!({ "version": 1, "messageId": message });
                    let air = ["_meta", "jetbrains", "air"].into_iter().fold(it, object);
                    air.insert("fork", fork)
                }),
            };
        }
        match parent.process.request("session/fork", &asked) {
            Ok(answer) => Ok(Some(StartedSession { process: Arc::clone(&parent.process), answer })),
            Err(fault) => {
                tracing::info!(?fault, "the agent did not fork the session");
                Ok(None)
            }
        }
    }

    /// Returns the agent's own id of a turn, if the agent forks at messages and the turn belongs to
    /// this session.
    fn agent_message_id(
        &self,
        session: &RecordedSession,
        at: TurnId,
    ) -> RpcResult<Option<(ForkDialect, String)>> {
        let Some(dialect) = self.capabilities().at_message else { return Ok(None) };
        let turn = self.recorder.engine.turn(&self.recorder.call, TurnRef::of(at))?;
        if agent_session_of(&turn, &self.agent()).as_ref() != Some(&session.agent_session) {
            return Ok(None);
        }
        let message = match (turn.role, dialect) {
            (Role::User, ForkDialect::Proposed) => self.agent_question_id(session, &turn)?,
            // Whether the other dialect forks after a question is not documented.
            (Role::User, ForkDialect::Air) => None,
            _ => id_in_metadata(&turn, "message"),
        };
        Ok(message.map(|message| (dialect, message)))
    }

    /// Returns the agent's own id of a question, which its echo gave before the answer.
    fn agent_question_id(
        &self,
        session: &RecordedSession,
        asked: &TurnView,
    ) -> RpcResult<Option<String>> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        let below = TopologyQuery {
            under: Some(asked.id.into()),
            limit: Some(CHILDREN),
            ..TopologyQuery::of(asked.conversation.clone())
        };
        let rows = engine.topology(call, below)?.rows;
        for row in rows.iter().filter(|row| row.parent == Some(asked.id)) {
            let answer = engine.turn(call, TurnRef::within(asked.conversation.clone(), row.id))?;
            if agent_session_of(&answer, &self.agent()).as_ref() == Some(&session.agent_session) {
                return Ok(id_in_metadata(&answer, "question")
                    .or_else(|| id_in_metadata(asked, "message")));
            }
        }
        Ok(id_in_metadata(asked, "message"))
    }

    /// Opens a session that already holds the branch.
    pub(super) fn open_as_is(
        &self,
        target: SessionTarget,
        begun: StartedSession,
        kind: &str,
    ) -> RpcResult<OpenedSession> {
        let agent_session = self.register(session_of(&begun.answer)?, target.branch.id)?;
        let session =
            self.sessions.open(RecordedSession::new(&begun.process, agent_session, target, None));
        Ok(OpenedSession { session, answer: with_context(begun.answer, json!({ "kind": kind })) })
    }
}

/// Returns an agent's id from the metadata of a turn.
fn id_in_metadata(turn: &TurnView, name: &str) -> Option<String> {
    acp(turn)?.get(name)?.as_str().map(str::to_owned)
}

fn acp(turn: &TurnView) -> Option<&Json> {
    turn.metadata.source_info.as_ref()?.get("acp")
}

/// Returns the session of that agent that a turn belongs to.
fn agent_session_of(turn: &TurnView, agent: &str) -> Option<AgentSession> {
    let acp = acp(turn)?;
    let text = |name: &str| acp.get(name).and_then(Json::as_str);
    let id = text("session").filter(|_| text("agent") == Some(agent))?.to_owned();
    Some(AgentSession { id, uses_before: acp.get("uses_before")?.as_u64()? })
}

/// Returns the parameters with the agent's session id.
fn with_session(mut params: Json, id: &str) -> Json {
    if let Some(members) = params.as_object_mut() {
        members.insert("sessionId", id.into());
    }
    params
}

fn session_of(answer: &Json) -> RpcResult<&str> {
    let id = answer.get("sessionId").and_then(Json::as_str);
    id.ok_or_else(|| {
        RpcError::of(
            tine_core::ErrorKind::Internal,
            "the agent created a session without a `sessionId`",
        )
    })
}

/// Adds to a response how the agent got its context.
pub(super) fn with_context(mut answer: Json, context: Json) -> Json {
    match answer.as_object_mut() {
        Some(members) => drop(members.remove("sessionId")),
        None => answer = json!({}),
    }
    crate::json_rpc::add_note(&mut answer, json!({ "context": context }));
    answer
}

//! The registry of agent sessions, and of the branch that each was opened for.
//!
//! Each session has a registration: a source whose bytes name the agent, the agent's session id,
//! and how often that id was used before; its file name is the branch's id. A registration is
//! therefore found without a search, and if two processes write the same one, the second learns
//! that it exists. An agent may reuse ids, for example when it starts counting again. Of several
//! sessions with one id, only the last can still exist.

use std::sync::Arc;

use serde_json::json;
use tine_core::{BranchId, ErrorKind};
use tine_engine::{BranchView, Interpret, NewSource, Outcome, SourceView};

use super::relay::Relay;
use crate::json_rpc::{RpcError, RpcResult};
use crate::session_branches;

/// The media type of a registration.
const MIME: &str = "application/vnd.tine.acp-session+json";

/// A session of the agent: its id, and how often that id was used before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentSession {
    pub id: String,
    pub uses_before: u64,
}

impl Relay {
    /// Registers a session that the agent has just started.
    pub(super) fn register(&self, id: &str, branch: BranchId) -> RpcResult<AgentSession> {
        let mut uses_before = self.latest_session(id)?.map_or(0, |(last, _)| last.uses_before + 1);
        loop {
            let agent_session = AgentSession { id: id.to_owned(), uses_before };
            if self.write_registration(&agent_session, branch)? {
                return Ok(agent_session);
            }
            uses_before += 1;
        }
    }

    /// Writes a registration. Returns `false` if it exists.
    pub(super) fn write_registration(
        &self,
        agent_session: &AgentSession,
        branch: BranchId,
    ) -> RpcResult<bool> {
        let registration = NewSource {
            content: Arc::new(self.registration(agent_session)),
            mime_type: MIME.to_owned(),
            original_filename: Some(branch.to_string()),
            interpret: Interpret::None,
            interpreter: None,
        };
        let stored = self.recorder.engine.store_source(&self.recorder.call, registration)?;
        Ok(stored.outcome == Outcome::Created)
    }

    /// Returns the last session with this id and its branch, which may have been deleted.
    pub(super) fn latest_session(&self, id: &str) -> RpcResult<Option<(AgentSession, BranchId)>> {
        let at = |uses_before: u64| {
            let agent_session = AgentSession { id: id.to_owned(), uses_before };
            Ok::<_, RpcError>(
                self.registered_branch(&agent_session)?.map(|branch| (agent_session, branch)),
            )
        };
        let Some(mut last) = at(0)? else { return Ok(None) };
        // Doubles the number until one is unused, then bisects.
        let mut unused = None;
        loop {
            let known = last.0.uses_before;
            let next = match unused {
                None => known * 2 + 1,
                Some(unused) if known + 1 < unused => known.midpoint(unused),
                Some(_) => return Ok(Some(last)),
            };
            match at(next)? {
                Some(found) => last = found,
                None => unused = Some(next),
            }
        }
    }

    /// Returns the branch of a session, by the client's id: the branch's own id or the agent's.
    pub(super) fn branch_of(&self, id: &str) -> RpcResult<BranchView> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        session_branches::find(engine, call, id).or_else(|unknown| {
            match self.latest_session(id)? {
                Some((_, branch)) => {
                    session_branches::find(engine, call, &branch.to_string()).or(Err(unknown))
                }
                None => Err(unknown),
            }
        })
    }

    fn registered_branch(&self, agent_session: &AgentSession) -> RpcResult<Option<BranchId>> {
        let (engine, call) = (&self.recorder.engine, &self.recorder.call);
        match engine.source(call, engine.source_id_of(call, &self.registration(agent_session))) {
            Ok(SourceView { original_filename, .. }) => {
                Ok(original_filename.and_then(|branch| branch.parse().ok()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn registration(&self, agent_session: &AgentSession) -> Vec<u8> {
        let AgentSession { id, uses_before } = agent_session;
        json!({ "agent": self.agent(), "session": id, "uses_before": uses_before })
            .to_string()
            .into_bytes()
    }
}

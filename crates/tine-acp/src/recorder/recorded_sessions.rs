//! Open sessions, by the client's id (that of the branch) and by the agent's id.
//!
//! What the agent sends in a session before the client knows about it is held back until then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tine_core::{BranchId, Json, TurnId};
use tine_engine::BranchView;

use super::agent_process::AgentProcess;
use super::context_seed::ContextSeed;
use super::event_lines::EventLines;
use super::raw_message::RawMessage;
use super::session_registry::AgentSession;
use super::turn_builder::{BuiltTurn, TurnBuilder};
use crate::json_rpc::RpcError;
use crate::lock;

/// The most messages held back for sessions that are being created.
const EARLY: usize = 1_000;

/// The most messages gathered from one replay.
pub(super) const GATHERED: usize = 1_000_000;

/// A session that a client wants to open.
pub(super) struct SessionTarget {
    /// The client's id: the branch's, or the agent's for a session from before the recording.
    pub id: String,
    pub branch: BranchView,
    pub cwd: String,
}

impl SessionTarget {
    /// Returns the target for a branch under its own id.
    pub(super) fn of(branch: BranchView, cwd: &str) -> Self {
        SessionTarget { id: branch.id.to_string(), branch, cwd: cwd.to_owned() }
    }
}

/// An open session.
pub(super) struct RecordedSession {
    /// The client's id.
    pub id: String,
    /// The branch that it was opened for.
    pub branch: BranchId,
    pub agent_session: AgentSession,
    pub cwd: String,
    /// The process that runs it.
    pub process: Arc<AgentProcess>,
    state: Mutex<SessionState>,
}

/// The mutable state of a session.
pub(super) struct SessionState {
    /// The branch as the recorder last left it.
    pub branch: BranchView,
    pub turns: TurnBuilder,
    pub events: EventLines,
    /// The source and line count of the last turn's lines.
    pub event_range: Json,
    /// Complete turns that could not be stored yet.
    pub unstored: Vec<BuiltTurn>,
    pub store_error: Option<RpcError>,
    /// The transcript to send before the next question.
    pub seed: Option<ContextSeed>,
    /// Whether the agent got a seed, which its titles may repeat.
    pub seeded: bool,
    /// Prompts without a response.
    pub running_prompts: usize,
    pub last_prompt: Option<SentPrompt>,
    /// The last answer that was stored.
    pub last_answer: Option<TurnId>,
    /// Messages held back until the client knows about the session; `None` afterwards.
    pub held_back: Option<Vec<RawMessage>>,
    /// The questions in the replay that is being ignored; `None` if there is none.
    pub muted_replay: Option<String>,
}

impl SessionState {
    /// Returns whether no one else has changed the branch.
    pub(super) fn holds(&self, branch: &BranchView) -> bool {
        (self.branch.id, self.branch.tip) == (branch.id, branch.tip)
    }
}

/// A question that was sent to the agent.
pub(super) struct SentPrompt {
    pub turn: TurnId,
    /// The turn before it, which the branch returns to if the agent refuses.
    pub before: Option<TurnId>,
    /// The blocks as the agent got them, to recognise an echo.
    pub blocks: Vec<Json>,
    /// The agent's own id of the question, if an echo had one.
    pub agent_message_id: Option<String>,
}

impl SentPrompt {
    /// Returns whether a chunk repeats the question.
    pub(super) fn is_echo(&self, content: &Json) -> bool {
        let text = |block: &Json| block.get("text").and_then(Json::as_str).map(str::to_owned);
        match text(content) {
            Some(said) => {
                let asked = self.blocks.iter().filter_map(text).collect::<Vec<_>>();
                asked.concat().contains(said.as_str()) || asked.join("\n").contains(said.trim())
            }
            None => self.blocks.contains(content),
        }
    }
}

impl RecordedSession {
    pub(super) fn new(
        process: &Arc<AgentProcess>,
        agent_session: AgentSession,
        target: SessionTarget,
        seed: Option<ContextSeed>,
    ) -> Self {
        let SessionTarget { id, branch, cwd } = target;
        let (process, opened_for) = (Arc::clone(process), branch.id);
        let state = SessionState {
            seeded: seed.is_some(),
            seed,
            turns: TurnBuilder::default(),
            events: EventLines::default(),
            event_range: Json::Null,
            unstored: Vec::new(),
            store_error: None,
            running_prompts: 0,
            last_prompt: None,
            last_answer: None,
            held_back: Some(Vec::new()),
            muted_replay: None,
            branch,
        };
        RecordedSession {
            id,
            branch: opened_for,
            agent_session,
            cwd,
            process,
            state: Mutex::new(state),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }
}

/// The open sessions, by both ids.
#[derive(Default)]
pub(super) struct RecordedSessions(Mutex<SessionMaps>);

#[derive(Default)]
struct SessionMaps {
    by_client_id: HashMap<String, Arc<RecordedSession>>,
    by_agent_id: HashMap<String, Arc<RecordedSession>>,
    /// Messages for sessions that are being created.
    early: Vec<(String, RawMessage)>,
    /// Messages of replays that are being gathered.
    gathering: HashMap<String, Vec<RawMessage>>,
}

impl RecordedSessions {
    fn lock(&self) -> MutexGuard<'_, SessionMaps> {
        lock(&self.0)
    }

    /// Returns the session with the client's id.
    pub(super) fn by_client_id(&self, id: &str) -> Option<Arc<RecordedSession>> {
        self.lock().by_client_id.get(id).cloned()
    }

    /// Returns the session with the agent's id.
    pub(super) fn by_agent_id(&self, id: &str) -> Option<Arc<RecordedSession>> {
        self.lock().by_agent_id.get(id).cloned()
    }

    /// Returns the session that a message of the agent belongs to, with the message. Holds the
    /// message back if there is no such session yet.
    pub(super) fn route(
        &self,
        id: &str,
        message: RawMessage,
    ) -> Option<(Arc<RecordedSession>, RawMessage)> {
        let mut known = self.lock();
        if let Some(session) = known.by_agent_id.get(id) {
            return Some((Arc::clone(session), message));
        }
        if let Some(gathered) = known.gathering.get_mut(id) {
            if gathered.len() < GATHERED {
                gathered.push(message);
            }
            return None;
        }
        if known.early.len() < EARLY {
            known.early.push((id.to_owned(), message));
        }
        None
    }

    /// Opens a session, with the messages held back for it. If the agent used its id before, the id
    /// now means this session.
    pub(super) fn open(&self, session: RecordedSession) -> Arc<RecordedSession> {
        let session = Arc::new(session);
        let mut known = self.lock();
        let early = std::mem::take(&mut known.early);
        let (mine, others): (Vec<_>, Vec<_>) =
            early.into_iter().partition(|(id, _)| *id == session.agent_session.id);
        known.early = others;
        let mine = mine.into_iter().map(|(_, message)| message);
        session.lock().held_back.get_or_insert_default().extend(mine);
        if let Some(before) =
            known.by_agent_id.insert(session.agent_session.id.clone(), Arc::clone(&session))
        {
            known.by_client_id.retain(|_, known| !Arc::ptr_eq(known, &before));
        }
        if let Some(before) = known.by_client_id.insert(session.id.clone(), Arc::clone(&session)) {
            known.by_agent_id.retain(|_, known| !Arc::ptr_eq(known, &before));
        }
        session
    }

    /// Starts gathering the messages of a session. Returns `false` if they are being gathered.
    pub(super) fn start_gathering(&self, agent_session_id: &str) -> bool {
        let mut known = self.lock();
        let free = !known.gathering.contains_key(agent_session_id);
        known.gathering.entry(agent_session_id.to_owned()).or_default();
        free
    }

    /// Stops gathering and returns the messages.
    pub(super) fn take_gathered(&self, agent_session_id: &str) -> Vec<RawMessage> {
        self.lock().gathering.remove(agent_session_id).unwrap_or_default()
    }

    pub(super) fn close(&self, session: &Arc<RecordedSession>) {
        let mut known = self.lock();
        known.by_client_id.retain(|_, known| !Arc::ptr_eq(known, session));
        known.by_agent_id.retain(|_, known| !Arc::ptr_eq(known, session));
    }

    /// Closes all sessions of an agent process.
    pub(super) fn close_all_of(&self, process: &Arc<AgentProcess>) -> Vec<Arc<RecordedSession>> {
        let mut known = self.lock();
        let of_it = |session: &Arc<RecordedSession>| Arc::ptr_eq(&session.process, process);
        let closed =
            known.by_client_id.values().filter(|session| of_it(session)).cloned().collect();
        known.by_client_id.retain(|_, session| !of_it(session));
        known.by_agent_id.retain(|_, session| !of_it(session));
        closed
    }
}

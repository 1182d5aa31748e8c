//! Sessions that are open: the client's id of each, which is its branch's, and the agent's.
//!
//! What the agent says in a session before the client knows of it is held back until then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tine_core::{BranchId, Json, TurnId};
use tine_engine::BranchView;

use super::derive::{Derivation, Ready};
use super::events::Events;
use super::link::Link;
use super::message::Message;
use super::roster::Theirs;
use super::seed::Seed;
use crate::wire::Refusal;

/// Messages that are held back for sessions that nobody knows yet.
const EARLY: usize = 1_000;

/// Messages that are gathered of one session which is taken in.
pub(super) const GATHERED: usize = 1_000_000;

/// What a client wants to have open.
pub(super) struct Wanted {
    /// The client's id of it: the branch's, or the agent's where the agent had it before us.
    pub id: String,
    pub branch: BranchView,
    pub cwd: String,
}

impl Wanted {
    /// A branch under its own id.
    pub(super) fn of(branch: BranchView, cwd: &str) -> Self {
        Wanted { id: branch.id.to_string(), branch, cwd: cwd.to_owned() }
    }
}

/// An open session.
pub(super) struct Session {
    /// The client's id.
    pub id: String,
    /// The branch that it was opened for.
    pub branch: BranchId,
    /// The agent's session.
    pub theirs: Theirs,
    pub cwd: String,
    /// The agent that has it.
    pub link: Arc<Link>,
    state: Mutex<State>,
}

/// What changes of a session.
pub(super) struct State {
    /// The branch as we left it.
    pub branch: BranchView,
    pub derivation: Derivation,
    pub events: Events,
    /// Where the lines of the last turn are.
    pub part: Json,
    /// Turns that are whole and could not be stored yet.
    pub unstored: Vec<Ready>,
    /// Why not.
    pub fault: Option<Refusal>,
    /// What goes in front of the next question.
    pub seed: Option<Seed>,
    /// Whether the agent was told a seed: its titles may tell it again.
    pub seeded: bool,
    /// Prompts that are not answered yet.
    pub running: usize,
    /// The last question, where it began, and what the agent was sent for it.
    pub asked: Option<Asked>,
    /// The last answer that was stored.
    pub said: Option<TurnId>,
    /// Whether the client knows of the session; else what is held back for it.
    pub held: Option<Vec<Message>>,
    /// Whether the agent's replay is to be passed over; what it says of questions meanwhile.
    pub hushed: Option<String>,
}

impl State {
    /// Whether the branch is as we left it: else others have said or taken back something.
    pub(super) fn holds(&self, branch: &BranchView) -> bool {
        (self.branch.id, self.branch.tip) == (branch.id, branch.tip)
    }
}

/// A question that was put to the agent.
pub(super) struct Asked {
    pub turn: TurnId,
    /// The turn before it, where the branch goes back to if the agent refuses.
    pub before: Option<TurnId>,
    /// The blocks as the agent got them: what it says again of these is an echo.
    pub blocks: Vec<Json>,
    /// The agent's own id of it, where an echo told one.
    pub theirs: Option<String>,
}

impl Asked {
    /// Whether a chunk says again what was asked.
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

impl Session {
    pub(super) fn new(
        link: &Arc<Link>,
        theirs: Theirs,
        wanted: Wanted,
        seed: Option<Seed>,
    ) -> Self {
        let Wanted { id, branch, cwd } = wanted;
        let (link, opened_for) = (Arc::clone(link), branch.id);
        let state = State {
            seeded: seed.is_some(),
            seed,
            derivation: Derivation::default(),
            events: Events::default(),
            part: Json::Null,
            unstored: Vec::new(),
            fault: None,
            running: 0,
            asked: None,
            said: None,
            held: Some(Vec::new()),
            hushed: None,
            branch,
        };
        Session { id, branch: opened_for, theirs, cwd, link, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The open sessions, by either side's ids.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    ours: HashMap<String, Arc<Session>>,
    theirs: HashMap<String, Arc<Session>>,
    /// What the agent says of sessions that are being made.
    early: Vec<(String, Message)>,
    /// What it says of sessions that are taken in.
    gathering: HashMap<String, Vec<Message>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session with the client's id.
    pub(super) fn ours(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().ours.get(id).cloned()
    }

    /// The session with the agent's id.
    pub(super) fn theirs(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().theirs.get(id).cloned()
    }

    /// The session that a message of the agent is about; the message comes back where there is
    /// one, and else is held back.
    pub(super) fn heard(&self, id: &str, message: Message) -> Option<(Arc<Session>, Message)> {
        let mut known = self.lock();
        if let Some(session) = known.theirs.get(id) {
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

    /// Opens a session. What was held back for it is now held back in it. An id that the agent
    /// used before is this session's from now on.
    pub(super) fn open(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        let mut known = self.lock();
        let early = std::mem::take(&mut known.early);
        let (mine, others): (Vec<_>, Vec<_>) =
            early.into_iter().partition(|(id, _)| *id == session.theirs.id);
        known.early = others;
        let mine = mine.into_iter().map(|(_, message)| message);
        session.lock().held.get_or_insert_default().extend(mine);
        if let Some(before) = known.theirs.insert(session.theirs.id.clone(), Arc::clone(&session)) {
            known.ours.retain(|_, known| !Arc::ptr_eq(known, &before));
        }
        if let Some(before) = known.ours.insert(session.id.clone(), Arc::clone(&session)) {
            known.theirs.retain(|_, known| !Arc::ptr_eq(known, &before));
        }
        session
    }

    /// From now on all that the agent says of a session is gathered; `false` if it is already.
    pub(super) fn gather(&self, theirs: &str) -> bool {
        let mut known = self.lock();
        let free = !known.gathering.contains_key(theirs);
        known.gathering.entry(theirs.to_owned()).or_default();
        free
    }

    /// What was gathered.
    pub(super) fn gathered(&self, theirs: &str) -> Vec<Message> {
        self.lock().gathering.remove(theirs).unwrap_or_default()
    }

    pub(super) fn close(&self, session: &Arc<Session>) {
        let mut known = self.lock();
        known.ours.retain(|_, known| !Arc::ptr_eq(known, session));
        known.theirs.retain(|_, known| !Arc::ptr_eq(known, session));
    }

    /// Closes all that an agent has.
    pub(super) fn close_of(&self, link: &Arc<Link>) -> Vec<Arc<Session>> {
        let mut known = self.lock();
        let of_it = |session: &Arc<Session>| Arc::ptr_eq(&session.link, link);
        let closed = known.ours.values().filter(|session| of_it(session)).cloned().collect();
        known.ours.retain(|_, session| !of_it(session));
        known.theirs.retain(|_, session| !of_it(session));
        closed
    }
}

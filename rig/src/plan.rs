//! What a worker is going to do, and what must be there after each step.
//!
//! A plan is a function of its seed, worker and length: it is made by running the steps on the
//! memory store, which also tells the state after every step. The program under test makes the
//! same plan for itself and carries it out on the embedded store; the check of the remains
//! compares them with the states of the plan. Each worker has a project of its own, so that the
//! states stay exact while several work on one store.

use std::sync::Arc;

use tine_core::{
    ConversationId, Digest, Limits, Message, Name, ProjectId, Reference, Role, TurnId,
};
use tine_engine::{
    Append, Call, Engine, Fork, Interpret, MoveBranch, NewConversation, NewFact, NewSource, Purge,
    PurgeTarget, SplitTurn, StoreFacts, StoreTurn, TurnRef,
};
use tine_store::{MemoryStore, PackOptions, Store};

use crate::RigError;
use crate::request::{Request, RequestAnswer, RequestEnd};
use crate::seeded::SeededRuntime;
use crate::seeded_rng::SeededRng;
use crate::state;
use crate::turn_requests;

/// A call of a plan.
#[derive(Clone, Debug)]
pub struct PlannedStep {
    /// Project, actor and idempotency key.
    pub call: Call,
    pub request: Request,
    /// How it ends without faults.
    pub ended: RequestEnd,
}

/// The steps of a worker.
#[derive(Clone, Debug)]
pub struct WorkPlan {
    pub seed: u64,
    /// The number of the worker.
    pub worker: u64,
    pub project: ProjectId,
    /// The steps, in order.
    pub steps: Vec<PlannedStep>,
    /// The digest of the project's state after each number of steps.
    pub states: Vec<Digest>,
}

impl WorkPlan {
    /// Creates a plan.
    pub fn new(seed: u64, worker: u64, length: usize) -> Result<Self, RigError> {
        WorkPlan::with_bulk(seed, worker, length, 0)
    }

    /// Creates a plan whose second step appends many short messages at once.
    pub fn with_bulk(seed: u64, worker: u64, length: usize, bulk: usize) -> Result<Self, RigError> {
        WorkPlan::make(seed, worker, length, bulk, true)
    }

    /// Creates a plan without states, for the process that executes it.
    pub fn steps_only(
        seed: u64,
        worker: u64,
        length: usize,
        bulk: usize,
    ) -> Result<Self, RigError> {
        WorkPlan::make(seed, worker, length, bulk, false)
    }

    fn make(
        seed: u64,
        worker: u64,
        length: usize,
        bulk: usize,
        with_states: bool,
    ) -> Result<Self, RigError> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = SeededRuntime::new(seed, worker);
        let engine = runtime.engine(Arc::clone(&store));
        let project = ProjectId::new(format!("worker-{worker}"), &Limits::default())?;
        let mut planner = Planner::default();
        let mut steps = Vec::with_capacity(length);
        let mut states = vec![state::digest(&state::text(&*store, &project)?)];
        for number in 0..length {
            runtime.step(number);
            let places = [worker, u64::try_from(number)?, 1];
            let mut rng = SeededRng::at(seed, &places);
            let mut call = Call::by("rig").in_project(project.clone());
            let (conversation, request) = match planner.conversations.as_slice() {
                [first] if number == 1 && bulk > 0 => {
                    let messages = (0..bulk).map(|number| short(number, &mut rng)).collect();
                    (first.clone(), Request::Append(Append::to(first.clone(), messages)))
                }
                _ => planner.next(&engine, &call, &mut rng, worker)?,
            };
            if rng.one_in(2) && !matches!(request, Request::Pack(_)) {
                call = call.with_key(format!("rig-{worker}-{number}"));
            }
            let ended = request.run(&engine, &call);
            if let RequestEnd::Done(answer) = &ended {
                planner.learn(&conversation, &request, answer);
            }
            steps.push(PlannedStep { call, request, ended });
            if with_states {
                states.push(state::digest(&state::text(&*store, &project)?));
            }
        }
        Ok(WorkPlan { seed, worker, project, steps, states })
    }

    /// Returns the state after the first steps, except for some of them.
    pub fn text_after(&self, steps: usize, left_out: &[usize]) -> Result<String, RigError> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = SeededRuntime::new(self.seed, self.worker);
        let engine = runtime.engine(Arc::clone(&store));
        for (number, step) in self.steps.iter().enumerate().take(steps) {
            if !left_out.contains(&number) {
                runtime.step(number);
                step.request.run(&engine, &step.call);
            }
        }
        Ok(state::text(&*store, &self.project)?)
    }

    /// Returns the executed steps before the given one that have a key.
    pub fn keyed_before(&self, end: usize) -> Vec<usize> {
        (0..end.min(self.steps.len()))
            .filter(|number| {
                let step = &self.steps[*number];
                step.call.idempotency_key.is_some() && matches!(step.ended, RequestEnd::Done(_))
            })
            .collect()
    }
}

/// What the planner knows of the state.
#[derive(Debug, Default)]
struct Planner {
    conversations: Vec<ConversationId>,
    turns: Vec<(ConversationId, TurnId)>,
    branches: Vec<(ConversationId, Name)>,
    bookmarks: Vec<Name>,
    resend: Vec<(ConversationId, Vec<Message>)>,
}

/// The frequency of each kind of step.
const WEIGHTS: [(StepKind, usize); 18] = [
    (StepKind::Append, 26),
    (StepKind::StoreTurn, 9),
    (StepKind::StoreFacts, 3),
    (StepKind::StoreSource, 2),
    (StepKind::Batch, 10),
    (StepKind::Resend, 5),
    (StepKind::Fork, 8),
    (StepKind::Edit, 7),
    (StepKind::Split, 5),
    (StepKind::Delete, 7),
    (StepKind::Undo, 6),
    (StepKind::Redo, 3),
    (StepKind::Bookmark, 5),
    (StepKind::Metadata, 4),
    (StepKind::Revert, 2),
    (StepKind::Create, 3),
    (StepKind::Purge, 1),
    (StepKind::Pack, 3),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    Append,
    StoreTurn,
    StoreFacts,
    StoreSource,
    Batch,
    Resend,
    Fork,
    Edit,
    Split,
    Delete,
    Undo,
    Redo,
    Bookmark,
    Metadata,
    Revert,
    Create,
    Purge,
    Pack,
}

impl Planner {
    fn next(
        &self,
        engine: &Engine,
        call: &Call,
        rng: &mut SeededRng,
        worker: u64,
    ) -> Result<(ConversationId, Request), RigError> {
        let total = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut drawn = rng.below(total);
        let mut kind = StepKind::Append;
        for (candidate, weight) in WEIGHTS {
            kind = candidate;
            match drawn.checked_sub(weight) {
                Some(rest) => drawn = rest,
                None => break,
            }
        }
        let fresh = ConversationId::new(
            format!("talk-{worker}-{}", self.conversations.len()),
            &Limits::default(),
        )?;
        let Some(conversation) = rng.pick(&self.conversations).cloned() else {
            return Ok((fresh.clone(), create(fresh, rng)));
        };
        let turn = rng.pick(&self.turns).cloned();
        let request = match (kind, turn) {
            (StepKind::Create, _) => return Ok((fresh.clone(), create(fresh, rng))),
            (StepKind::Pack, _) => Request::Pack(match rng.one_in(2) {
                true => PackOptions::EVERYTHING,
                false => PackOptions { keep_recent: 2, shortest_run: 3 },
            }),
            (StepKind::StoreTurn, _) => store_turn(&conversation, rng),
            (StepKind::StoreFacts, _) => store_facts(rng),
            (StepKind::StoreSource, _) => store_source(rng),
            (StepKind::Undo, _) => Request::Undo(conversation.clone()),
            (StepKind::Redo, _) => Request::Redo(conversation.clone()),
            (StepKind::Append | StepKind::Batch, turn) => {
                let count = if kind == StepKind::Batch { 2 + rng.below(8) } else { 1 };
                self.append(&conversation, turn, count, rng)?
            }
            (StepKind::Resend, _) => match rng.pick(&self.resend).cloned() {
                Some((conversation, mut messages)) => {
                    messages.push(message(rng));
                    let append = Append::to(conversation.clone(), messages).from_root();
                    return Ok((conversation, Request::Append(append)));
                }
                None => self.append(&conversation, None, 1, rng)?,
            },
            (_, None) => self.append(&conversation, None, 1, rng)?,
            (kind, Some((conversation, turn))) => {
                let request = self.turn_request(kind, engine, call, &conversation, turn, rng)?;
                return Ok((conversation, request));
            }
        };
        Ok((conversation, request))
    }

    /// Creates a request about a turn.
    fn turn_request(
        &self,
        kind: StepKind,
        engine: &Engine,
        call: &Call,
        conversation: &ConversationId,
        id: TurnId,
        rng: &mut SeededRng,
    ) -> Result<Request, RigError> {
        let turn = TurnRef::of(id);
        Ok(match kind {
            StepKind::Fork => Request::Fork(Fork {
                conversation: Some(conversation.clone()),
                point: turn_requests::fork_point(id, rng),
                name: None,
            }),
            StepKind::Edit => turn_requests::edit(turn, text(rng), rng),
            StepKind::Split => Request::Split(SplitTurn { turn, offset: 1 + rng.below(12) }),
            StepKind::Delete => turn_requests::delete(turn, rng),
            StepKind::Bookmark => match rng.pick(&self.bookmarks) {
                Some(name) if rng.one_in(3) => Request::Unbookmark(name.clone()),
                _ => {
                    let name = format!("mark-{}", rng.below(6));
                    Request::Bookmark(Name::new(name, &Limits::default())?, turn)
                }
            },
            StepKind::Metadata => turn_requests::metadata(turn, text, rng),
            StepKind::Revert => Request::Revert(MoveBranch {
                conversation: conversation.clone(),
                branch: "main".to_owned(),
                to: Some(Reference::parse(&format!("main~{}", 1 + rng.below(3)))?),
                expected_tip: None,
            }),
            _ => {
                let target = PurgeTarget::Turn(turn);
                let asked = Purge { target: target.clone(), confirm: None };
                // What cannot be purged is asked for all the same, and refused.
                let word = engine.purge(call, asked).ok().and_then(|would| would.confirm);
                let confirm = Some(word.unwrap_or_else(|| "no such word".to_owned()));
                Request::Purge(Purge { target, confirm })
            }
        })
    }

    fn append(
        &self,
        conversation: &ConversationId,
        turn: Option<(ConversationId, TurnId)>,
        count: usize,
        rng: &mut SeededRng,
    ) -> Result<Request, RigError> {
        let messages = (0..count).map(|_| message(rng)).collect();
        let mut append = Append::to(conversation.clone(), messages);
        append.reuse = !rng.one_in(5);
        let branch = self.branches.iter().filter(|(of, _)| of == conversation).collect::<Vec<_>>();
        match (rng.below(6), turn) {
            (0, Some((of, turn))) if of == *conversation => {
                append = append.under(turn.into(), &format!("side-{}", rng.below(20)));
            }
            (1, _) => append.branch = rng.pick(&branch).map(|(_, name)| name.to_string()),
            _ => {}
        }
        Ok(Request::Append(append))
    }

    fn learn(&mut self, conversation: &ConversationId, request: &Request, answer: &RequestAnswer) {
        match request {
            Request::Create(_) => self.conversations.push(conversation.clone()),
            Request::Bookmark(name, _) if !self.bookmarks.contains(name) => {
                self.bookmarks.push(name.clone());
            }
            Request::Append(append)
                if append.parent.as_ref().is_some_and(Reference::is_root)
                    || (4..100).contains(&append.messages.len()) && self.resend.is_empty() =>
            {
                self.resend.push((conversation.clone(), append.messages.clone()));
            }
            _ => {}
        }
        self.turns.extend(answer.turns.iter().map(|turn| (conversation.clone(), *turn)));
        let named = answer.branch.clone().map(|branch| (conversation.clone(), branch));
        self.branches.extend(named.filter(|named| !self.branches.contains(named)));
    }
}

fn create(id: ConversationId, rng: &mut SeededRng) -> Request {
    Request::Create(NewConversation {
        id: Some(id),
        system_prompt: rng.one_in(2).then(|| text(rng)),
        ..NewConversation::default()
    })
}

/// Returns one of a few turns of a host, so that many are versions of each other.
fn store_turn(conversation: &ConversationId, rng: &mut SeededRng) -> Request {
    let turn = format!("turn-{}", rng.below(5));
    let mut request = StoreTurn::new(conversation.as_str(), turn, message(rng));
    if rng.one_in(3) {
        // What is queued is never done here: how long it takes is in no plan.
        request.interpret = Interpret::Queue;
    }
    Request::StoreTurn(Box::new(request))
}

fn store_facts(rng: &mut SeededRng) -> Request {
    let fact = |rng: &mut SeededRng| {
        let name = format!("person {}", rng.below(4));
        let fields = [("name".to_owned(), name.into()), ("role".to_owned(), text(rng).into())];
        NewFact::of("person", fields.into_iter().collect())
    };
    let entities = (0..1 + rng.below(3)).map(|_| fact(rng)).collect();
    Request::StoreFacts(StoreFacts { entities, ..StoreFacts::default() })
}

fn store_source(rng: &mut SeededRng) -> Request {
    let bytes = text(rng).into_bytes();
    Request::StoreSource(NewSource {
        content: Arc::new(bytes),
        mime_type: "text/plain".to_owned(),
        original_filename: None,
        interpret: Interpret::None,
        interpreter: None,
    })
}

fn message(rng: &mut SeededRng) -> Message {
    let role = if rng.one_in(2) { Role::User } else { Role::Assistant };
    Message::text(role, text(rng))
}

/// Returns a short message.
fn short(number: usize, rng: &mut SeededRng) -> Message {
    Message::text(Role::User, format!("{number} {:x}", rng.number()))
}

/// Returns usually a sentence, sometimes a page, rarely a text that is stored separately.
fn text(rng: &mut SeededRng) -> String {
    let words = match rng.below(40) {
        0 => 2_000 + rng.below(2_000),
        1..=5 => 100 + rng.below(300),
        _ => 3 + rng.below(20),
    };
    let mut text = String::new();
    for _ in 0..words {
        let word = rng.number();
        text.push_str(["temple", "budget", "süß", "why", "🌸", "of", "test"][rng.below(7)]);
        text.push_str(&format!("{:x} ", word % 4_096));
    }
    text
}

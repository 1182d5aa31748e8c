//! The calls of a crowd's threads.
//!
//! A call is a function of the seed, of its id, and of what the thread picked from earlier answers
//! ([`Picks`], one line of text). A reader of the history can therefore repeat the call on another
//! store. Nothing else affects it, in particular no clock.

use std::fmt;

use tine_core::{ConversationId, Limits, Message, Name, Reference, Role, TurnId};
use tine_engine::{
    Append, Call, Engine, Error, Fork, MoveBranch, NewConversation, OnConflict, Page, PathQuery,
    Purge, PurgeTarget, SplitTurn, TopologyQuery, TurnRef,
};
use tine_store::PackOptions;

use crate::RigError;
use crate::marks::answer_digest;
use crate::request::{Request, RequestEnd};
use crate::seeded_rng::SeededRng;
use crate::turn_requests;

/// Conversations that all threads work on.
const CONVERSATIONS: usize = 3;
/// Idempotency keys that several threads use for the same call.
const SHARED_KEYS: usize = 12;

/// Identifies a call. Its text is the actor in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The number of the thread, over all processes.
    pub worker: u64,
    /// The number of the call within the thread.
    pub number: usize,
}

impl CallId {
    /// Returns random numbers for one purpose of this call.
    pub fn rng(self, seed: u64, purpose: u64) -> SeededRng {
        let number = u64::try_from(self.number).unwrap_or(u64::MAX);
        SeededRng::at(seed, &[self.worker, number, purpose])
    }

    /// Parses an id.
    pub fn from_actor(actor: &str) -> Option<Self> {
        let (worker, number) = actor.split_once('-')?;
        Some(CallId { worker: worker.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.worker, self.number)
    }
}

/// What a thread picked from earlier answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picks {
    pub turn: Option<TurnId>,
    pub branch: Option<Name>,
    /// The word that confirms an erasure.
    pub word: Option<String>,
}

impl fmt::Display for Picks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turn = self.turn.map_or_else(|| "-".to_owned(), |turn| turn.to_string());
        let branch = self.branch.as_ref().map_or("-", |branch| branch.as_str());
        write!(f, "{turn} {branch} {}", self.word.as_deref().unwrap_or("-"))
    }
}

impl Picks {
    /// Parses a line.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(|word| (word != "-").then_some(word));
        let turn = words.next()?.map(str::parse).transpose().ok()?;
        let branch = words.next()?.map(|name| Name::new(name, &Limits::default()));
        let word = words.next()?.map(str::to_owned);
        Some(Picks { turn, branch: branch.transpose().ok()?, word })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// The first call of each thread: one creates the conversation, the others find it.
    Create,
    /// Appends a message to `main`.
    Append,
    /// Appends several messages, which become visible together.
    Batch,
    /// Appends a message after the tip that was seen last.
    Expecting,
    /// Appends under any turn, on a branch of some threads.
    Aside,
    /// Sends a list from the root that others send too.
    Resend,
    /// Appends with a key that others use too.
    Shared,
    // What one does to a turn, a branch or a bookmark, and taking it back.
    Fork,
    Edit,
    Split,
    Delete,
    Undo,
    Redo,
    Bookmark,
    Unbookmark,
    Metadata,
    Revert,
    Purge,
    /// Packs older turns, which must not be observable.
    Pack,
    // These only look.
    Path,
    Topology,
    Log,
    Branches,
    Bookmarks,
    Tails,
    Conversation,
    Verify,
}

/// The frequency of each kind.
const WEIGHTS: [(CallKind, usize); 26] = [
    (CallKind::Append, 18),
    (CallKind::Batch, 10),
    (CallKind::Expecting, 8),
    (CallKind::Aside, 5),
    (CallKind::Resend, 3),
    (CallKind::Shared, 3),
    (CallKind::Fork, 6),
    (CallKind::Edit, 6),
    (CallKind::Split, 3),
    (CallKind::Delete, 5),
    (CallKind::Undo, 5),
    (CallKind::Redo, 3),
    (CallKind::Bookmark, 3),
    (CallKind::Unbookmark, 1),
    (CallKind::Metadata, 3),
    (CallKind::Revert, 2),
    (CallKind::Purge, 1),
    (CallKind::Pack, 1),
    (CallKind::Path, 14),
    (CallKind::Topology, 8),
    (CallKind::Log, 6),
    (CallKind::Branches, 4),
    (CallKind::Bookmarks, 2),
    (CallKind::Tails, 2),
    (CallKind::Conversation, 2),
    (CallKind::Verify, 1),
];

#[derive(Clone, Debug)]
pub enum CrowdCall {
    /// May change the store.
    Change(Call, Box<Request>),
    /// Only reads.
    Look(Call, ReadCall),
}

/// A call that only reads; each sees one state of the store.
#[derive(Clone, Debug)]
pub enum ReadCall {
    /// [`Engine::path`]
    Path(PathQuery),
    /// [`Engine::topology`]
    Topology(TopologyQuery),
    /// [`Engine::operations`]
    Log(ConversationId),
    /// [`Engine::branches`]
    Branches(ConversationId),
    /// [`Engine::bookmarks`]
    Bookmarks,
    /// [`Engine::tails`]
    Tails(ConversationId),
    /// [`Engine::conversation`]
    Conversation(ConversationId),
    /// [`Engine::verify`], which must never find a problem.
    Verify,
}

#[derive(Clone, Debug, Default)]
pub struct CallAnswer {
    /// The whole answer as one line; equal answers have equal lines.
    pub line: String,
    /// Turns in the answer, the newest last.
    pub turns: Vec<TurnId>,
    /// Branches in the answer.
    pub branches: Vec<Name>,
    /// The tip of `main`, if it is in the answer.
    pub tip: Option<TurnId>,
}

pub fn kind(seed: u64, who: CallId) -> CallKind {
    if who.number == 0 {
        return CallKind::Create;
    }
    let mut drawn = who.rng(seed, 10).below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
    for (kind, weight) in WEIGHTS {
        match drawn.checked_sub(weight) {
            Some(rest) => drawn = rest,
            None => return kind,
        }
    }
    CallKind::Append
}

/// Returns the conversation of a call.
pub fn conversation(seed: u64, who: CallId) -> Result<ConversationId, RigError> {
    let number = match who.number {
        0 => usize::try_from(who.worker)? % CONVERSATIONS,
        _ => who.rng(seed, 11).below(CONVERSATIONS),
    };
    Ok(ConversationId::new(format!("talk-{number}"), &Limits::default())?)
}

impl CrowdCall {
    /// Returns the call that a thread makes after its picks.
    pub fn new(seed: u64, who: CallId, picks: &Picks) -> Result<Self, RigError> {
        let kind = kind(seed, who);
        let talk = conversation(seed, who)?;
        let mut rng = who.rng(seed, 12);
        let mut call = Call::by(who.to_string());
        if let Some(look) = look(kind, &talk, picks, &mut rng)? {
            return Ok(CrowdCall::Look(call, look));
        }
        if kind == CallKind::Shared {
            let number = rng.below(SHARED_KEYS);
            // The same key for the same call, but for one in twenty.
            let text = number + usize::from(rng.one_in(20));
            let messages = vec![Message::text(Role::User, format!("shared {text}"))];
            let request = Append::to(talk.clone(), messages);
            let call = call.with_key(format!("shared-{talk}-{number}"));
            return Ok(CrowdCall::Change(call, Box::new(Request::Append(request))));
        }
        if rng.one_in(4) && kind != CallKind::Pack {
            call = call.with_key(format!("key-{who}"));
        }
        let request = match (kind, picks.turn) {
            (CallKind::Create, _) => Request::Create(NewConversation {
                id: Some(talk),
                system_prompt: Some("You are one of many.".to_owned()),
                ..NewConversation::default()
            }),
            (CallKind::Undo, _) => Request::Undo(talk),
            (CallKind::Redo, _) => Request::Redo(talk),
            (CallKind::Unbookmark, _) => Request::Unbookmark(mark(&mut rng)?),
            (CallKind::Pack, _) => Request::Pack(PackOptions { keep_recent: 4, shortest_run: 8 }),
            (CallKind::Revert, _) => Request::Revert(MoveBranch {
                conversation: talk,
                branch: picks.branch.as_ref().map_or("main", |name| name.as_str()).to_owned(),
                to: Some(Reference::parse(&format!("main~{}", 1 + rng.below(3)))?),
                expected_tip: None,
            }),
            (
                CallKind::Append
                | CallKind::Batch
                | CallKind::Expecting
                | CallKind::Aside
                | CallKind::Resend,
                turn,
            ) => Request::Append(append(kind, talk, turn, &mut rng)?),
            (_, None) => Request::Append(Append::to(talk, messages(1, &mut rng))),
            (kind, Some(turn)) => turn_call(kind, talk, turn, picks, &mut rng)?,
        };
        Ok(CrowdCall::Change(call, Box::new(request)))
    }

    pub fn run(&self, engine: &Engine) -> CallAnswer {
        match self {
            CrowdCall::Change(call, request) => {
                let (ended, full) = request.run_in_full(engine, call);
                changed(ended, &full)
            }
            CrowdCall::Look(call, look) => match look.run(engine, call) {
                Ok(answer) => answer,
                Err(Error::Store(error)) => CallAnswer::of(format!("failed {error}")),
                Err(error) => CallAnswer::of(format!("refused {}: {error}", error.kind().code())),
            },
        }
    }
}

fn look(
    kind: CallKind,
    talk: &ConversationId,
    picks: &Picks,
    rng: &mut SeededRng,
) -> Result<Option<ReadCall>, RigError> {
    let talk = talk.clone();
    Ok(Some(match kind {
        CallKind::Path => {
            let query = PathQuery::of(talk);
            ReadCall::Path(match (&picks.branch, picks.turn) {
                (Some(branch), _) if rng.one_in(3) => query.to(Reference::parse(branch.as_str())?),
                (_, Some(turn)) if rng.one_in(6) => query.to(turn),
                _ => query,
            })
        }
        CallKind::Topology => {
            let include_deleted = rng.one_in(3);
            ReadCall::Topology(TopologyQuery { include_deleted, ..TopologyQuery::of(talk) })
        }
        CallKind::Log => ReadCall::Log(talk),
        CallKind::Branches => ReadCall::Branches(talk),
        CallKind::Bookmarks => ReadCall::Bookmarks,
        CallKind::Tails => ReadCall::Tails(talk),
        CallKind::Conversation => ReadCall::Conversation(talk),
        CallKind::Verify => ReadCall::Verify,
        _ => return Ok(None),
    }))
}

fn append(
    kind: CallKind,
    talk: ConversationId,
    turn: Option<TurnId>,
    rng: &mut SeededRng,
) -> Result<Append, RigError> {
    let count = if kind == CallKind::Batch { 2 + rng.below(5) } else { 1 };
    let mut append = Append::to(talk, messages(count, rng));
    append.reuse = !rng.one_in(4);
    match (kind, turn) {
        (CallKind::Expecting, Some(tip)) => {
            append.expected_tip = Some(tip.into());
            if rng.one_in(2) {
                append.on_conflict = OnConflict::Fork;
            }
        }
        (CallKind::Aside, Some(turn)) => {
            append = append.under(turn.into(), &format!("side-{}", rng.below(12)));
        }
        (CallKind::Resend, _) => {
            append = append.from_root();
            append.messages = (0..1 + rng.below(4))
                .map(|number| Message::text(Role::User, format!("all begin with {number}")))
                .collect();
        }
        _ => {}
    }
    Ok(append)
}

/// Calls about one turn.
fn turn_call(
    kind: CallKind,
    talk: ConversationId,
    id: TurnId,
    picks: &Picks,
    rng: &mut SeededRng,
) -> Result<Request, RigError> {
    let turn = TurnRef::of(id);
    Ok(match kind {
        CallKind::Fork => Request::Fork(Fork {
            conversation: None,
            point: turn_requests::fork_point(id, rng),
            name: match rng.one_in(2) {
                true => Some(Name::new(format!("side-{}", rng.below(12)), &Limits::default())?),
                false => None,
            },
        }),
        CallKind::Edit => turn_requests::edit(turn, text(rng), rng),
        CallKind::Split => Request::Split(SplitTurn { turn, offset: 1 + rng.below(4) }),
        CallKind::Delete => turn_requests::delete(turn, rng),
        CallKind::Bookmark => Request::Bookmark(mark(rng)?, turn),
        CallKind::Metadata => turn_requests::metadata(turn, text, rng),
        CallKind::Purge => Request::Purge(Purge {
            target: PurgeTarget::Turn(turn),
            confirm: Some(picks.word.clone().unwrap_or_else(|| "no such word".to_owned())),
        }),
        _ => Request::Append(Append::to(talk, messages(1, rng))),
    })
}

fn mark(rng: &mut SeededRng) -> Result<Name, RigError> {
    Ok(Name::new(format!("mark-{}", rng.below(5)), &Limits::default())?)
}

fn messages(count: usize, rng: &mut SeededRng) -> Vec<Message> {
    (0..count)
        .map(|_| {
            let role = if rng.one_in(2) { Role::User } else { Role::Assistant };
            Message::text(role, text(rng))
        })
        .collect()
}

/// Returns a text: often one that others use too, sometimes one that is stored separately.
fn text(rng: &mut SeededRng) -> String {
    match rng.below(60) {
        0 => "a page of it ".repeat(700 + rng.below(200)),
        1..=20 => format!("everybody says {}", rng.below(6)),
        _ => format!("only I say {:x}", rng.number()),
    }
}

impl ReadCall {
    fn run(&self, engine: &Engine, call: &Call) -> tine_engine::Result<CallAnswer> {
        Ok(match self {
            ReadCall::Path(query) => {
                let on_main = query.to.is_none();
                let page = engine.path(call, query.clone())?;
                let turns: Vec<TurnId> = page.turns.iter().map(|turn| turn.id).collect();
                let tip = page.to.filter(|_| on_main);
                CallAnswer { turns, tip, ..CallAnswer::seen(&page, page.turns.len()) }
            }
            ReadCall::Topology(query) => {
                let page = engine.topology(call, query.clone())?;
                let turns = page.rows.iter().map(|row| row.id).collect();
                CallAnswer { turns, ..CallAnswer::seen(&page, page.rows.len()) }
            }
            ReadCall::Log(talk) => {
                let log = engine.operations(call, talk, Page::default())?;
                CallAnswer::seen(&log, log.items.len())
            }
            ReadCall::Branches(talk) => {
                let branches = engine.branches(call, talk)?;
                let names = branches.iter().map(|branch| branch.name.clone()).collect();
                CallAnswer { branches: names, ..CallAnswer::seen(&branches, branches.len()) }
            }
            ReadCall::Bookmarks => {
                let marks = engine.bookmarks(call, Page::default())?;
                CallAnswer::seen(&marks, marks.items.len())
            }
            ReadCall::Tails(talk) => {
                let tails = engine.tails(call, talk)?;
                CallAnswer::seen(&tails, tails.len())
            }
            ReadCall::Conversation(talk) => CallAnswer::seen(&engine.conversation(call, talk)?, 1),
            // One state for each conversation, so only what is wrong can be compared.
            ReadCall::Verify => {
                let problems = engine.verify()?.problems;
                CallAnswer::seen(&problems, problems.len())
            }
        })
    }
}

impl CallAnswer {
    fn of(line: String) -> Self {
        CallAnswer { line: line.replace('\n', " "), ..CallAnswer::default() }
    }

    /// Returns everything that was seen as one digest and a count.
    fn seen(what: &impl fmt::Debug, count: usize) -> Self {
        CallAnswer::of(format!("seen {count} {}", answer_digest(&format!("{what:?}"))))
    }
}

fn changed(ended: RequestEnd, full: &str) -> CallAnswer {
    match ended {
        RequestEnd::Done(answer) => {
            let on_main = answer.branch.as_ref().is_some_and(|name| name.as_str() == "main");
            CallAnswer {
                tip: answer.turns.last().copied().filter(|_| on_main),
                turns: answer.turns,
                branches: answer.branch.into_iter().collect(),
                ..CallAnswer::of(format!("done {} {}", answer_digest(full), answer.line))
            }
        }
        RequestEnd::Refused(why) => CallAnswer::of(format!("refused {why}")),
        RequestEnd::Full => CallAnswer::of("failed: the disk is full".to_owned()),
        RequestEnd::Unswept => CallAnswer::of("failed: not swept".to_owned()),
        RequestEnd::Failed(why) => CallAnswer::of(format!("failed {why}")),
    }
}

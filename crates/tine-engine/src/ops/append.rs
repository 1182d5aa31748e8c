//! Appending by longest common prefix, and the making of turns that other operations share.

use serde::{Deserialize, Serialize};
use tine_core::hash::{message_digest, turn_hash};
use tine_core::json::Json;
use tine_core::{ConversationId, Limits, Message, Name, ProjectId, Reference, TurnId};
use tine_store::{Branch, Content, Read, SEGMENT_TURNS, Turn, TurnLoc, TurnOrigin};

use crate::log::canonical_writer::{ObjectWriter, parse_canonical, write_array};
use crate::log::change::{LoggedChange, text};
use crate::log::mutation::{Mutation, Payload, Receipt, Replay};
use crate::tree::resolve::{self, TreePosition};
use crate::tree::shown::Tree;
use crate::tree::views::{self, ViewOrId};
use crate::{
    Append, Appended, BranchView, Call, Engine, Error, OnConflict, Outcome, Presence, Result,
    TurnRef, TurnView,
};

impl Engine {
    /// Appends messages, taking turns that are there already as far as they are equal.
    ///
    /// One call is one operation: all messages or none.
    pub fn append(&self, call: &Call, request: Append) -> Result<Appended> {
        check_messages(self, &request.messages)?;
        let (receipt, replay) = self.mutate(call, "append", request, payload, append)?;
        self.appended(call, receipt, &replay)
    }

    /// Mints an id for [`append_as`](Engine::append_as), so that it can be announced before the
    /// turn exists.
    pub fn promise_turn_id(&self) -> TurnId {
        TurnId::from_bytes(self.new_id(self.now()))
    }

    /// Appends one message as the turn of an id that was promised: for answers that are shown
    /// while they are made, and recorded once they are whole.
    ///
    /// The turn is always made, also beside an equal one: only it can have that id.
    pub fn append_as(&self, call: &Call, id: TurnId, request: Append) -> Result<Appended> {
        check_promised(self, &request.messages)?;
        let request = Append { reuse: false, ..request };
        let payload = |(id, request): &(TurnId, Append)| {
            let mut out = String::new();
            let mut object = ObjectWriter::begin(&mut out);
            object.key("append").push_str(&payload(request).0);
            object.unescaped("turn_id", Some(id));
            object.end();
            Payload(out)
        };
        let (receipt, replay) =
            self.mutate(call, "append", (id, request), payload, |mutation, (id, request)| {
                promise(mutation, *id)?;
                append(mutation, request)
            })?;
        self.appended(call, receipt, &replay)
    }

    pub(crate) fn appended(
        &self,
        call: &Call,
        receipt: AppendReceipt,
        replay: &Replay,
    ) -> Result<Appended> {
        let AppendReceipt { turns, branch, forked } = receipt;
        let view =
            |AppendedTurn { turn, outcome }| Ok(self.load_turn(call, turn)?.with_outcome(outcome));
        let turns = turns.into_iter().map(view).collect::<Result<_>>()?;
        let (replayed, undone) = (replay.replayed, replay.undone);
        let redacted = call.redacted.clone();
        let tip = branch.tip;
        Ok(Appended { turns, branch, tip, forked, replayed, undone, redacted })
    }
}

pub(crate) fn check_messages(engine: &Engine, messages: &[Message]) -> Result<()> {
    let limits = engine.limits();
    if messages.is_empty() {
        return Err(Error::invalid("give at least one message to append"));
    }
    if messages.len() > limits.messages_per_append {
        return Err(Error::TooLarge {
            what: "messages in one append",
            limit: limits.messages_per_append,
            given: messages.len(),
        });
    }
    for (index, message) in messages.iter().enumerate() {
        message.check(limits).map_err(|source| Error::Message { index, source })?;
    }
    Ok(())
}

/// The same for a message whose id was promised.
pub(crate) fn check_promised(engine: &Engine, messages: &[Message]) -> Result<()> {
    check_messages(engine, messages)?;
    if messages.len() > 1 {
        return Err(Error::invalid("an id identifies one message; give only one"));
    }
    Ok(())
}

/// The next turn has the id that was promised for it.
pub(crate) fn promise(mutation: &Mutation<'_>, id: TurnId) -> Result<()> {
    mutation.refuse_existing_turn(id)?;
    mutation.promise(id);
    Ok(())
}

/// Returns what an idempotency key covers of a message. Content enters as a digest, which costs no
/// copy.
pub(crate) fn message_payload(message: &Message) -> Json {
    let mut out = String::new();
    write_message_payload(&mut out, message);
    parse_canonical(&out)
}

/// Writes the same as canonical JSON.
fn write_message_payload(out: &mut String, message: &Message) {
    let mut object = ObjectWriter::begin(out);
    object.unescaped("created_at", message.created_at);
    object.unescaped("message_digest", Some(message.digest()));
    message.metadata.to_json().write_canonical(object.key("metadata"));
    object.unescaped("status", Some(message.status.as_str()));
    object.end();
}

fn payload(request: &Append) -> Payload {
    let mut out = String::with_capacity(512 * request.messages.len());
    let mut object = ObjectWriter::begin(&mut out);
    object.text("branch", request.branch.as_deref());
    object.text("conversation_id", Some(request.conversation.as_str()));
    object.text("expected_tip", request.expected_tip.as_ref().map(Reference::as_str));
    write_array(object.key("messages"), &request.messages, write_message_payload);
    object.literal("on_conflict", request.on_conflict == OnConflict::Fork);
    object.text("parent", request.parent.as_ref().map(Reference::as_str));
    object.literal("reuse", request.reuse);
    object.end();
    Payload(out)
}

#[derive(Serialize, Deserialize)]
pub(crate) struct AppendReceipt {
    branch: BranchView,
    forked: bool,
    pub turns: Vec<AppendedTurn>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct AppendedTurn {
    #[serde(rename = "turn_id")]
    pub turn: ViewOrId<TurnView>,
    #[serde(rename = "created", with = "views::created")]
    outcome: Outcome,
}

impl Receipt for AppendReceipt {
    fn load_views(&mut self, records: &dyn Read, project: &ProjectId) -> Result<()> {
        self.turns.iter_mut().try_for_each(|one| one.turn.load_views(records, project))
    }
}

/// Where an append starts, and the branch that moves.
struct AppendTarget {
    start: Option<TurnLoc>,
    branch: Option<Branch>,
    name: Name,
    forked: bool,
}

pub(crate) fn append(mutation: &mut Mutation<'_>, request: &Append) -> Result<AppendReceipt> {
    let conversation =
        resolve::conversation(mutation.reader(), mutation.call, &request.conversation)?;
    refuse_purged(&conversation)?;
    mutation.open(conversation)?;
    let target = append_target(mutation, request)?;

    let id = mutation.conversation().id.clone();
    let mut turns = Vec::with_capacity(request.messages.len());
    let mut end = target.start;
    let mut rest = request.messages.as_slice();
    let mut siblings = None;
    if request.reuse {
        let tree = mutation.tree();
        let mut above: Option<Turn> = None;
        while let Some((message, remaining)) = rest.split_first() {
            let Some(found) = equal_child(&tree, end, message)? else {
                break;
            };
            let view = reused_view(&tree, &id, above.as_ref(), found.clone())?;
            turns.push((view, Outcome::Reused));
            end = Some(found.loc);
            above = Some(found);
            rest = remaining;
        }
        let dependencies = tree.dependencies();
        siblings = tree.take_children(end);
        mutation.depends_on_all(dependencies);
    }
    let unchanged = rest.is_empty();
    if unchanged {
        mutation.depends_on_turn(end)?;
    }
    let made = make_chain_with_siblings(mutation, end, siblings, rest, |_| TurnOrigin::default())?;
    end = made.turns.last().map(|turn| turn.loc).or(end);
    turns.extend(made.into_views(&id).map(|view| (view, Outcome::Created)));

    let branch = advance_branch(mutation, target.branch, &target.name, end, unchanged)?;
    let branch = mutation.branch_view(&branch)?;
    mutation.fact_if_changed("branch", text(&branch.name));
    let turns = turns.into_iter();
    let turns = turns.map(|(view, outcome)| AppendedTurn { turn: ViewOrId::view(view), outcome });
    let turns = turns.collect();
    Ok(AppendReceipt { turns, branch, forked: target.forked })
}

/// Returns a turn that was found below `above`, which spares looking its parents up.
fn reused_view(
    tree: &Tree<'_>,
    id: &ConversationId,
    above: Option<&Turn>,
    turn: Turn,
) -> Result<TurnView> {
    match above {
        Some(above) if tree.raw_parent(turn.loc)? == Some(above.loc) => {
            let continues = views::continued(tree, &turn)?;
            let (hash, parent) = (Some(above.hash), Some(above.id));
            let view = views::turn_with(id, turn, hash, parent, Presence::Live);
            Ok(TurnView { continues, ..view })
        }
        _ => views::turn(tree, id, turn),
    }
}

pub(crate) fn refuse_purged(conversation: &tine_store::Conversation) -> Result<()> {
    if conversation.root.is_none() {
        let why = format!("the conversation `{}` was purged; make a new one", conversation.id);
        return Err(Error::Unsupported(why));
    }
    Ok(())
}

/// Returns the branch to append to, if it exists, and its name; `main` by default.
pub(crate) fn target_branch(
    mutation: &Mutation<'_>,
    wanted: Option<&str>,
) -> Result<(Option<Branch>, Name)> {
    let (records, call, key) = (mutation.reader(), mutation.call, mutation.key());
    let branch = resolve::find_branch(records, call, key, wanted.unwrap_or("main"))?;
    let name = match (&branch, wanted) {
        (Some(branch), _) => branch.name.clone(),
        (None, Some(name)) => Name::new(name, mutation.engine.limits())?,
        (None, None) => Name::main(),
    };
    mutation.check_seen(branch.as_ref(), &name)?;
    Ok((branch, name))
}

/// Determines where the append starts and on which branch.
fn append_target(mutation: &Mutation<'_>, request: &Append) -> Result<AppendTarget> {
    let records = mutation.reader();
    let key = mutation.key();
    let (branch, name) = target_branch(mutation, request.branch.as_deref())?;
    let tip = branch.as_ref().and_then(|branch| branch.tip);

    if let Some(expected) = &request.expected_tip {
        let expected = within(mutation, expected)?;
        if tip != expected.turn {
            if request.on_conflict == OnConflict::Fork {
                let expected = resolve::live(records, expected)?;
                let name = free_name(records, key, &name, mutation.engine.limits())?;
                return Ok(AppendTarget { start: expected.turn, branch: None, name, forked: true });
            }
            return Err(conflict(mutation, &name, expected.turn, tip)?);
        }
    }

    let start = match &request.parent {
        Some(parent) => {
            let start = resolve::live(records, within(mutation, parent)?)?.turn;
            if request.branch.is_none() && start.is_some() && start != tip {
                return Err(Error::invalid(format!(
                    "the parent `{}` is neither the tip of main nor the root; name the branch to \
                     move",
                    parent.as_str()
                )));
            }
            start
        }
        // `main` is no exception: if it was deleted, beginning another at the root would lose the
        // context.
        None if branch.is_none() => {
            return Err(Error::NotFound {
                what: "branch",
                name: name.to_string(),
                advice: "; name an existing branch, or the parent of a new one",
            });
        }
        None => tip,
    };
    Ok(AppendTarget { start, branch, name, forked: false })
}

fn within(mutation: &Mutation<'_>, turn: &tine_core::Reference) -> Result<TreePosition> {
    let wanted = TurnRef::within(mutation.conversation().id.clone(), turn.clone());
    resolve::find(mutation.reader(), mutation.call, &wanted)
}

/// Returns the error of a lost race, with the actual tip.
pub(crate) fn conflict(
    mutation: &Mutation<'_>,
    branch: &Name,
    expected: Option<TurnLoc>,
    actual: Option<TurnLoc>,
) -> Result<Error> {
    let tree = mutation.tree();
    let read = |loc: Option<TurnLoc>| loc.map(|loc| tree.turn(loc)).transpose();
    let (expected, actual) = (read(expected)?, read(actual)?);
    Ok(Error::Conflict {
        branch: branch.clone(),
        expected: expected.map(|turn| turn.id),
        actual: actual.as_ref().map(|turn| turn.id),
        actual_hash: actual.map(|turn| turn.hash),
    })
}

/// Numbers that are tried one by one before larger steps are taken.
const NAMES_TRIED: u64 = 16;

/// Returns a name of the form `{base}-1`, `{base}-2` … that no branch has. Of the first sixteen it
/// is the smallest. After these it is a free one whose predecessor is taken: the smallest as long
/// as no branch in between was removed or renamed, else gaps may stay. The cost is bounded by the
/// logarithm of the number; finding every gap would take a look at every branch.
pub(crate) fn free_name(
    records: &dyn Read,
    conversation: tine_store::ConversationKey,
    base: &Name,
    limits: &Limits,
) -> Result<Name> {
    let name = |number: u64| base.numbered(number, limits);
    let free = |number| Ok::<_, Error>(records.branch(conversation, &name(number))?.is_none());
    for number in 1..=NAMES_TRIED {
        if free(number)? {
            return Ok(name(number));
        }
    }
    let (mut taken, mut open) = (NAMES_TRIED, 2 * NAMES_TRIED);
    while !free(open)? {
        (taken, open) = (open, 2 * open);
    }
    while taken + 1 < open {
        let middle = taken + (open - taken) / 2;
        if free(middle)? {
            open = middle;
        } else {
            taken = middle;
        }
    }
    Ok(name(open))
}

/// Returns the first live child that says the same; of a split turn its last half, from which
/// matching goes on.
pub(crate) fn equal_child(
    tree: &Tree<'_>,
    parent: Option<TurnLoc>,
    message: &Message,
) -> Result<Option<Turn>> {
    for point in tree.match_points(parent)? {
        let turn = tree.turn(point.compare)?;
        if same_message(&turn, message) {
            let same = point.continue_at == point.compare;
            return Ok(Some(if same { turn } else { tree.turn(point.continue_at)? }));
        }
    }
    Ok(None)
}

/// Equality of messages: role, content and tool call id. What is left of an erased turn is a
/// digest, and an erased turn must be recognised so that it is not added again.
pub(crate) fn same_message(turn: &Turn, message: &Message) -> bool {
    match &turn.content {
        Content::Kept(body) => {
            turn.role == message.role
                && turn.tool_call_id == message.tool_call_id
                && *body == message.body
        }
        Content::Purged(digest) => *digest == message.digest(),
    }
}

/// A chain of new turns.
pub(crate) struct TurnChain {
    parent: Option<Turn>,
    pub turns: Vec<Turn>,
}

impl TurnChain {
    /// Returns the turns as shown: the parent was live, so raw and shown parents are the same.
    pub(crate) fn into_views(self, id: &ConversationId) -> impl Iterator<Item = TurnView> {
        let mut above = self.parent.map(|parent| (parent.hash, parent.id));
        self.turns.into_iter().map(move |turn| {
            let (parent_hash, parent) = above.unzip();
            above = Some((turn.hash, turn.id));
            views::turn_with(id, turn, parent_hash, parent, Presence::Live)
        })
    }
}

/// Makes a chain of turns under a live turn and notes it.
pub(crate) fn make_chain(
    mutation: &mut Mutation<'_>,
    parent: Option<TurnLoc>,
    messages: &[Message],
    origin: impl Fn(usize) -> TurnOrigin,
) -> Result<TurnChain> {
    make_chain_with_siblings(mutation, parent, None, messages, origin)
}

/// Like `make_chain`, with the raw children of the parent if they are known.
fn make_chain_with_siblings(
    mutation: &mut Mutation<'_>,
    parent: Option<TurnLoc>,
    mut siblings: Option<Vec<TurnLoc>>,
    messages: &[Message],
    origin: impl Fn(usize) -> TurnOrigin,
) -> Result<TurnChain> {
    let parent = parent.map(|loc| mutation.tree().turn(loc)).transpose()?;
    if let Some(parent) = &parent {
        mutation.remember_turn(parent);
    }
    let mut turns: Vec<Turn> = Vec::with_capacity(messages.len());
    if let Some(parent) = &parent
        && !messages.is_empty()
    {
        mutation.depends_on(parent.operation);
    }
    for (index, message) in messages.iter().enumerate() {
        // A turn that was just made has no children yet.
        let siblings = match (turns.last(), siblings.take()) {
            (Some(_), _) => Vec::new(),
            (None, Some(given)) => given,
            (None, None) => {
                mutation.tree().raw_children(parent.as_ref().map(|parent| parent.loc))?
            }
        };
        let above = turns.last().or(parent.as_ref());
        let turn = make_turn(mutation, above, &siblings, message, origin(index))?;
        turns.push(turn);
    }
    if let Some(created) = LoggedChange::created(&turns) {
        mutation.changed(created);
    }
    Ok(TurnChain { parent, turns })
}

/// Makes one turn under a raw parent that has these raw children.
pub(crate) fn make_turn(
    mutation: &mut Mutation<'_>,
    parent: Option<&Turn>,
    siblings: &[TurnLoc],
    message: &Message,
    origin: TurnOrigin,
) -> Result<Turn> {
    let key = mutation.key();
    let depth = parent.map_or(1, |parent| parent.depth + 1);
    let loc = match parent {
        // The first child continues its parent's segment.
        Some(parent) if siblings.is_empty() && parent.loc.index + 1 < SEGMENT_TURNS => {
            parent.loc.next()
        }
        _ => {
            let parent = parent.map(|parent| parent.loc);
            let segment = mutation.records.insert_segment(key, parent, depth)?;
            TurnLoc { segment, index: 0 }
        }
    };

    let mut created_at = message.created_at.unwrap_or(mutation.now);
    let parent_hash = parent.map(|parent| &parent.hash);
    let call = message.tool_call_id.as_deref();
    let mut hash = turn_hash(parent_hash, message.role, &message.body, call, created_at);
    if !siblings.is_empty() {
        // A hash can only be repeated by a sibling, since it covers the parent's.
        while sibling_has(mutation, siblings, &hash)? {
            created_at = created_at.next();
            hash = turn_hash(parent_hash, message.role, &message.body, call, created_at);
        }
    }
    let turn = Turn {
        loc,
        id: mutation.new_turn_id(),
        hash,
        depth,
        role: message.role,
        content: Content::Kept(message.body.clone()),
        tool_call_id: message.tool_call_id.clone(),
        created_at,
        status: message.status,
        metadata: message.metadata.clone(),
        operation: mutation.seq(),
        origin,
    };
    mutation.records.insert_turn(key, &turn)?;
    mutation.remember_turn(&turn);
    Ok(turn)
}

/// Looks the hash up rather than reading every sibling: a turn may have thousands.
fn sibling_has(
    mutation: &Mutation<'_>,
    siblings: &[TurnLoc],
    hash: &tine_core::TurnHash,
) -> Result<bool> {
    let found = mutation.reader().find_hashes(mutation.key(), &hash.0, &hash.0, 1)?;
    Ok(found.iter().any(|loc| siblings.contains(loc)))
}

/// Moves the branch to the end of what was appended, making it if it is new.
///
/// When every message was there already and the end lies on the branch's line, the tip stays:
/// a retry or a shorter list takes nothing away.
fn advance_branch(
    mutation: &mut Mutation<'_>,
    branch: Option<Branch>,
    name: &Name,
    end: Option<TurnLoc>,
    unchanged: bool,
) -> Result<Branch> {
    match branch {
        Some(branch) if unchanged && mutation.tree().on_shown_path(end, branch.tip)? => Ok(branch),
        Some(branch) => mutation.move_branch(&branch, end),
        None => {
            let branch = Branch {
                conversation: mutation.key(),
                id: mutation.new_branch_id(),
                name: name.clone(),
                tip: end,
                forked_from: None,
                created_at: mutation.now,
                version: 1,
            };
            mutation.put_branch(None, &branch)?;
            Ok(branch)
        }
    }
}

/// Returns the digest by which an erased turn is recognised.
pub(crate) fn digest_of(turn: &Turn) -> tine_core::Digest {
    match &turn.content {
        Content::Kept(body) => message_digest(turn.role, body, turn.tool_call_id.as_deref()),
        Content::Purged(digest) => *digest,
    }
}

//! Grafts: whole trees from elsewhere, imported in one transaction.
//!
//! Invariants:
//!
//! - One call is one transaction: the whole tree, or nothing of it. Its entries in the log are
//!   those that the same work would have left: one `create`, and one `append` for each line.
//! - Bringing the same tree in again adds nothing, and a longer version of it only what is new. A
//!   turn is there already when it has the id that is given, or when it says the same at the same
//!   time under the same turn.
//! - What was deleted, undone or purged here stays so, with everything that is new below it, and
//!   does not come back as halves of it either.
//! - A branch that was continued here is not moved: new turns end on a branch `{branch}-{n}` then.

use std::collections::{HashMap, HashSet};

use tine_core::json::{Json, Object};
use tine_core::{
    Body, ConversationId, Message, Name, ProjectId, Role, Timestamp, TurnHash, TurnId,
};
use tine_store::{
    Branch, Content, Conversation, ConversationKey, Read, Root, Turn, TurnLoc, TurnOrigin, required,
};

use crate::log::change::{LoggedChange, text};
use crate::log::mutation::{Mutation, OperationBatch};
use crate::ops::append::{make_turn, same_message};
use crate::ops::conversation::{check_root_parts, create, patch_fields};
use crate::sync::delta::mark_json;
use crate::sync::remember;
use crate::tree::shown::{Tree, TurnState};
use crate::{Call, ConversationPatch, Engine, Error, LogMark, LogMerge, NewConversation, Result};

/// A tree to import.
#[derive(Clone, Debug)]
pub struct Graft {
    /// The conversation, which is made when it is not there; its id must be given. Members of
    /// its metadata replace those that are there, its title is set where there is none.
    pub conversation: NewConversation,
    /// Its turns, parents first.
    pub turns: Vec<GraftTurn>,
    /// Its lines, in order. A turn that lies on none is not imported.
    pub lines: Vec<GraftLine>,
    /// Whether a branch may abandon turns of the tree, as after a rewind; otherwise it only
    /// moves forward.
    pub rewinds: bool,
    /// How far the log had come from which the turns are, where they come from another store.
    pub merged: Option<LogMark>,
}

impl Graft {
    /// Returns where what follows a turn goes. Turns that keep their hashes stay below the very
    /// turn, also when it is shown no more or as two; everything else goes where it shows.
    fn below(&self, turn: TurnLoc, attach_below: Option<TurnLoc>) -> Option<TurnLoc> {
        if self.merged.is_some() { Some(turn) } else { attach_below }
    }
}

/// One turn of a graft.
#[derive(Clone, Debug)]
pub struct GraftTurn {
    /// The place of its parent in the list; `None` is the root, or the turn that `below` names.
    pub parent: Option<usize>,
    /// A turn that is not in the list, below which it belongs, by hash; where that is not here, it
    /// is not imported either.
    pub below: Option<TurnHash>,
    /// What was said.
    pub message: Message,
    /// Its time says nothing: a turn that says the same is the same whatever its time.
    pub timeless: bool,
    /// The id and hash that it has elsewhere and will have here.
    pub identity: Option<(TurnId, TurnHash)>,
    /// The turn of which it is a half, with its hash if that is known. Where that was deleted or
    /// purged here, its halves are not imported.
    pub part_of: Option<(TurnId, Option<TurnHash>)>,
}

/// One line from the root to a turn.
#[derive(Clone, Debug)]
pub struct GraftLine {
    /// The place of its last turn in the list; `None` is the root.
    pub tip: Option<usize>,
    /// The branch that ends there; without one the line is a tail.
    pub branch: Option<Name>,
}

/// What a graft did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grafted {
    /// The conversation is new.
    pub created: bool,
    /// The conversation was purged or its making undone here; nothing was imported.
    pub refused: bool,
    /// For each turn of the list the one here; `None` where it is not shown here.
    pub turns: Vec<Option<TurnId>>,
    /// Turns that are new.
    pub made: u64,
    /// Turns that were not imported because they, or something above them, were deleted here.
    pub withheld: u64,
    /// Branches that are new, by name.
    pub branches: Vec<Name>,
    /// Operations that it took.
    pub operations: u64,
}

impl Engine {
    /// Imports what is new of a tree from elsewhere, in one transaction.
    ///
    /// ```
    /// use tine_core::{Message, Name, Role};
    /// use tine_engine::{Call, Engine, Graft, GraftLine, GraftTurn, NewConversation};
    /// use tine_store::MemoryStore;
    ///
    /// let engine = Engine::new(MemoryStore::new());
    /// let turn = |parent, role, said: &str| {
    ///     let message = Message::text(role, said);
    ///     let (below, identity, part_of) = (None, None, None);
    ///     GraftTurn { parent, below, message, timeless: false, identity, part_of }
    /// };
    /// let graft = Graft {
    ///     conversation: NewConversation::named("trip")?,
    ///     turns: vec![turn(None, Role::User, "Where to?"), turn(Some(0), Role::Assistant, "Tokyo")],
    ///     lines: vec![GraftLine { tip: Some(1), branch: Some(Name::main()) }],
    ///     rewinds: false,
    ///     merged: None,
    /// };
    /// assert_eq!(engine.graft(&Call::by("me"), graft.clone())?.made, 2);
    /// assert_eq!(engine.graft(&Call::by("me"), graft)?.made, 0);
    /// # Ok::<(), tine_engine::Error>(())
    /// ```
    pub fn graft(&self, call: &Call, request: Graft) -> Result<Grafted> {
        check(self, &request)?;
        self.mutate_batch(call, request, graft)
    }
}

fn check(engine: &Engine, request: &Graft) -> Result<()> {
    let NewConversation { id, config, metadata, .. } = &request.conversation;
    check_root_parts(config, metadata)?;
    if id.is_none() {
        return Err(Error::invalid("give the id of the conversation to import"));
    }
    for (index, turn) in request.turns.iter().enumerate() {
        if turn.parent.is_some_and(|parent| parent >= index) {
            let why = format!("turn {index} comes before its parent; list parents first");
            return Err(Error::invalid(why));
        }
        turn.message.check(engine.limits()).map_err(|source| Error::Message { index, source })?;
    }
    if request.lines.iter().any(|line| line.tip.is_some_and(|tip| tip >= request.turns.len())) {
        return Err(Error::invalid("a line ends at a turn that is not in the list"));
    }
    Ok(())
}

/// Where a turn of the list is here.
#[derive(Clone, Copy, Debug)]
enum GraftPlacement {
    /// It is this one; what follows it goes below `attach_below`.
    Here { turn: TurnLoc, attach_below: Option<TurnLoc>, id: TurnId },
    /// It says what this earlier one of the list says at the same time under the same turn.
    Same(usize),
    /// It was deleted here, or something above it.
    Withheld,
    /// It is not there yet.
    New,
}

/// The progress of a graft.
struct GraftProgress {
    /// Where each turn of the list is.
    places: Vec<GraftPlacement>,
    /// Turns here that a branch may abandon.
    ours: HashSet<TurnLoc>,
    /// For first turns of the list the turn here below which they belong.
    bases: HashMap<usize, Option<TurnLoc>>,
}

fn graft(batch: &mut OperationBatch<'_>, request: &Graft) -> Result<Grafted> {
    let new = &request.conversation;
    let id = new.id.clone().ok_or_else(|| Error::invalid("the conversation has no id"))?;
    let existing = batch.reader().conversation(&batch.call().project, &id)?;
    let mut done = Grafted { created: existing.is_none(), ..Grafted::default() };
    match &existing {
        Some(existing) if !existing.visibility.is_there() || existing.root.is_none() => {
            remember_compared(batch, existing, request)?;
            return Ok(Grafted { refused: true, ..done });
        }
        Some(_) => {}
        None => batch.operation("create", |mutation| begin(mutation, &id, new))?,
    }
    let conversation = batch.reader().conversation(&batch.call().project, &id)?;
    let conversation = required(conversation, || format!("conversation {id}"))?;
    let log_end = |batch: &OperationBatch<'_>| -> Result<u64> {
        Ok(batch.reader().log_end(conversation.key)?.map_or(0, |(seq, _)| seq))
    };
    let begun = if done.created { 0 } else { log_end(batch)? };
    let places = match existing {
        None => all_new(request),
        Some(_) => place_all(batch, &conversation, request)?,
    };
    let here = |place: &GraftPlacement| match place {
        GraftPlacement::Here { turn, .. } => Some(*turn),
        _ => None,
    };
    let ours = places.iter().filter_map(here).filter(|_| request.rewinds).collect();
    let bases = bases(batch, &conversation, request)?;
    let mut progress = GraftProgress { places, ours, bases };
    for line in &request.lines {
        batch.operation("append", |mutation| {
            mutation.open(conversation.clone())?;
            graft_line(mutation, request, line, &mut progress, &mut done)?;
            if let Some(merged) = request.merged {
                mutation.fact_if_changed("merged", mark_json(merged));
            }
            Ok(())
        })?;
    }
    if !done.created {
        batch.operation("conversation", |mutation| {
            mutation.open(conversation.clone())?;
            describe(mutation, new)
        })?;
    }
    for index in 0..progress.places.len() {
        let place = progress.places[representative(&progress.places, index)];
        done.turns.push(match place {
            GraftPlacement::Here { id, .. } => Some(id),
            _ => None,
        });
        done.withheld += u64::from(matches!(place, GraftPlacement::Withheld));
    }
    done.operations = log_end(batch)? - begun;
    if done.operations == 0 {
        remember_compared(batch, &conversation, request)?;
    }
    Ok(done)
}

/// Stores how far another log was compared without finding anything new.
fn remember_compared(
    batch: &mut OperationBatch<'_>,
    conversation: &Conversation,
    request: &Graft,
) -> Result<()> {
    let Some(of) = request.merged else { return Ok(()) };
    let seq = batch.reader().log_end(conversation.key)?.map_or(0, |(seq, _)| seq);
    remember(batch.records(), &conversation.project, &conversation.id, LogMerge { seq, of })
}

fn begin(mutation: &mut Mutation<'_>, id: &ConversationId, new: &NewConversation) -> Result<()> {
    let root = Root { system_prompt: new.system_prompt.clone(), config: new.config.clone() };
    let title = new.title.clone().filter(|title| !title.trim().is_empty());
    let metadata = crate::ops::conversation::object_or_empty(&new.metadata);
    create(mutation, Some(id.clone()), root, title, metadata, None)
}

/// Sets the title of a conversation that has none, and the members of its metadata that are given.
fn describe(mutation: &mut Mutation<'_>, new: &NewConversation) -> Result<()> {
    let conversation = mutation.conversation();
    let title = match (&conversation.title, &new.title) {
        (None, Some(title)) => Some(Some(title.clone())),
        _ => None,
    };
    let mut metadata = conversation.metadata.as_object().cloned().unwrap_or_else(Object::new);
    for (name, value) in new.metadata.as_object().into_iter().flat_map(Object::iter) {
        metadata.insert(name, value.clone());
    }
    let metadata = Some(Json::Object(metadata));
    patch_fields(mutation, &ConversationPatch { title, metadata, ..ConversationPatch::default() })
}

/// Returns the turn that stands for one of the list.
fn representative(places: &[GraftPlacement], index: usize) -> usize {
    match places[index] {
        GraftPlacement::Same(earlier) => earlier,
        _ => index,
    }
}

/// Equal for turns of the list that are the same turn.
type MessageKey<'r> =
    (Option<usize>, Option<TurnHash>, Role, &'r Body, Option<&'r str>, Option<Timestamp>);

fn message_key(turn: &GraftTurn, parent: Option<usize>) -> MessageKey<'_> {
    let message = &turn.message;
    let call = message.tool_call_id.as_deref();
    (parent, turn.below, message.role, &message.body, call, message.created_at)
}

/// Turns that have siblings in the list; all others can equal none of it.
fn with_siblings(request: &Graft) -> HashSet<Option<usize>> {
    let mut parents = HashSet::new();
    let again = |turn: &&GraftTurn| !parents.insert(turn.parent);
    request.turns.iter().filter(again).map(|turn| turn.parent).collect()
}

/// Returns the placements of a tree of which no turn exists here.
fn all_new(request: &Graft) -> Vec<GraftPlacement> {
    let crowded = with_siblings(request);
    let mut seen = HashMap::new();
    let mut places: Vec<GraftPlacement> = Vec::with_capacity(request.turns.len());
    for (index, turn) in request.turns.iter().enumerate() {
        let parent = turn.parent.map(|parent| representative(&places, parent));
        // A parent that is another one's equal may have got siblings of its children that way.
        let moved = parent != turn.parent;
        let place = if moved || crowded.contains(&parent) {
            match *seen.entry(message_key(turn, parent)).or_insert(index) {
                first if first == index => GraftPlacement::New,
                first => GraftPlacement::Same(first),
            }
        } else {
            GraftPlacement::New
        };
        places.push(place);
    }
    places
}

/// Finds the turns of the list that are here.
fn place_all(
    batch: &OperationBatch<'_>,
    conversation: &Conversation,
    request: &Graft,
) -> Result<Vec<GraftPlacement>> {
    let tree = Tree::new(batch.reader(), conversation.key);
    tree.preload()?;
    let mut places: Vec<GraftPlacement> = all_new(request);
    for (index, turn) in request.turns.iter().enumerate() {
        if let GraftPlacement::Same(_) = places[index] {
            continue;
        }
        let parent = turn.parent.map(|parent| places[representative(&places, parent)]);
        let place = match parent {
            Some(GraftPlacement::New) => GraftPlacement::New,
            Some(GraftPlacement::Withheld) => GraftPlacement::Withheld,
            Some(GraftPlacement::Here { turn: raw, attach_below, .. }) => {
                place(batch, &tree, Some(raw), attach_below, turn)?
            }
            Some(GraftPlacement::Same(_)) | None => match base(batch, &tree, turn)? {
                GraftPlacement::Here { turn: raw, attach_below, .. } => {
                    place(batch, &tree, Some(raw), attach_below, turn)?
                }
                GraftPlacement::Withheld => GraftPlacement::Withheld,
                GraftPlacement::Same(_) | GraftPlacement::New => {
                    place(batch, &tree, None, None, turn)?
                }
            },
        };
        places[index] = match place {
            GraftPlacement::New if whole_is_gone(batch, &tree, turn)? => GraftPlacement::Withheld,
            place => place,
        };
    }
    Ok(places)
}

/// Returns whether the turn is a half of one whose text was deleted or purged here.
fn whole_is_gone(batch: &OperationBatch<'_>, tree: &Tree<'_>, turn: &GraftTurn) -> Result<bool> {
    let project = &batch.call().project;
    match whole(batch.reader(), project, tree.conversation(), turn)? {
        Some(loc) => is_gone(tree, loc),
        None => Ok(false),
    }
}

/// Returns whether the text of a turn, or of a part of it, was deleted or purged here.
fn is_gone(tree: &Tree<'_>, loc: TurnLoc) -> Result<bool> {
    if let Content::Purged(_) = tree.turn(loc)?.content {
        return Ok(true);
    }
    Ok(match tree.state(loc)? {
        TurnState::Live => false,
        TurnState::Gone(_) | TurnState::Bridged(_) => true,
        TurnState::Split(split) => is_gone(tree, split.left)? || is_gone(tree, split.right)?,
    })
}

/// Returns the turn here of which one is a half, also where it has another id here.
fn whole(
    records: &dyn Read,
    project: &ProjectId,
    conversation: ConversationKey,
    turn: &GraftTurn,
) -> Result<Option<TurnLoc>> {
    let Some((id, hash)) = &turn.part_of else { return Ok(None) };
    match (records.find_turn(project, id)?, hash) {
        (Some((owner, loc)), _) if owner == conversation => Ok(Some(loc)),
        (_, Some(hash)) => {
            Ok(records.find_hashes(conversation, &hash.0, &hash.0, 1)?.first().copied())
        }
        _ => Ok(None),
    }
}

fn bases(
    batch: &OperationBatch<'_>,
    conversation: &Conversation,
    request: &Graft,
) -> Result<HashMap<usize, Option<TurnLoc>>> {
    let tree = Tree::new(batch.reader(), conversation.key);
    let mut bases = HashMap::new();
    let named = request.turns.iter().enumerate().filter(|(_, turn)| turn.below.is_some());
    for (index, turn) in named {
        if let GraftPlacement::Here { turn, attach_below, .. } = base(batch, &tree, turn)? {
            bases.insert(index, request.below(turn, attach_below));
        }
    }
    Ok(bases)
}

/// Returns the turn that is here already below which one belongs; without one it is new to the
/// root.
fn base(batch: &OperationBatch<'_>, tree: &Tree<'_>, turn: &GraftTurn) -> Result<GraftPlacement> {
    let Some(below) = &turn.below else { return Ok(GraftPlacement::New) };
    let found = batch.reader().find_hashes(tree.conversation(), &below.0, &below.0, 1)?;
    match found.first() {
        Some(loc) => here(tree, &tree.turn(*loc)?),
        // It was withheld itself, or its content was erased there.
        None => Ok(GraftPlacement::Withheld),
    }
}

fn place(
    batch: &OperationBatch<'_>,
    tree: &Tree<'_>,
    raw: Option<TurnLoc>,
    attach_below: Option<TurnLoc>,
    wanted: &GraftTurn,
) -> Result<GraftPlacement> {
    if let Some((id, _)) = &wanted.identity
        && let Some((conversation, loc)) = batch.reader().find_turn(&batch.call().project, id)?
        && conversation == tree.conversation()
    {
        return here(tree, &tree.turn(loc)?);
    }
    let mut below = tree.raw_children(raw)?;
    if attach_below != raw {
        below.extend(tree.raw_children(attach_below)?);
    }
    for loc in below {
        let turn = tree.turn(loc)?;
        let at = wanted.message.created_at.filter(|_| !wanted.timeless);
        let timely = at.is_none_or(|at| at == turn.created_at);
        if timely && same_message(&turn, &wanted.message) {
            return here(tree, &turn);
        }
    }
    Ok(GraftPlacement::New)
}

/// Returns the placement of an existing turn.
fn here(tree: &Tree<'_>, turn: &Turn) -> Result<GraftPlacement> {
    let attach_below = match tree.state(turn.loc)? {
        TurnState::Gone(_) => return Ok(GraftPlacement::Withheld),
        TurnState::Live => Some(turn.loc),
        TurnState::Split(_) | TurnState::Bridged(_) => {
            // What follows a turn that is split stands below its last half.
            let last = tree.last_half(turn.loc)?;
            if let TurnState::Gone(_) = tree.state(last)? {
                return Ok(GraftPlacement::Withheld);
            }
            tree.nearest_live(last)?
        }
    };
    Ok(GraftPlacement::Here { turn: turn.loc, attach_below, id: turn.id })
}

/// Makes what is new of a line, and moves its branch.
fn graft_line(
    mutation: &mut Mutation<'_>,
    request: &Graft,
    line: &GraftLine,
    progress: &mut GraftProgress,
    done: &mut Grafted,
) -> Result<()> {
    let mut fresh = Vec::new();
    let mut next = line.tip;
    let attach_below = loop {
        let Some(index) = next.map(|index| representative(&progress.places, index)) else {
            break progress.bases.get(fresh.last().unwrap_or(&0)).copied().flatten();
        };
        match progress.places[index] {
            GraftPlacement::Here { turn, attach_below, .. } => {
                break request.below(turn, attach_below);
            }
            GraftPlacement::Withheld => return Ok(()),
            GraftPlacement::Same(_) | GraftPlacement::New => fresh.push(index),
        }
        next = request.turns[index].parent;
    };
    fresh.reverse();
    let tip = make_turns(mutation, request, &fresh, attach_below, progress)?;
    done.made += u64::try_from(fresh.len()).unwrap_or(u64::MAX);
    if let Some(name) = &line.branch
        && (!fresh.is_empty() || done.created)
    {
        let (branch, new) = follow(mutation, name, tip, &progress.ours)?;
        mutation.fact_if_changed("branch", text(&branch.name));
        done.branches.extend(new.then_some(branch.name));
    }
    Ok(())
}

/// Makes turns one under the other below a live turn; answers the last.
fn make_turns(
    mutation: &mut Mutation<'_>,
    request: &Graft,
    fresh: &[usize],
    below: Option<TurnLoc>,
    progress: &mut GraftProgress,
) -> Result<Option<TurnLoc>> {
    if fresh.is_empty() {
        return Ok(below);
    }
    let above = below.map(|loc| mutation.tree().turn(loc)).transpose()?;
    if let Some(above) = &above {
        mutation.remember_turn(above);
        mutation.depends_on(above.operation);
    }
    let mut siblings = mutation.tree().raw_children(below)?;
    let mut turns: Vec<Turn> = Vec::with_capacity(fresh.len());
    for index in fresh {
        let wanted = &request.turns[*index];
        if let Some((id, _)) = &wanted.identity {
            if mutation.reader().find_turn(&mutation.call.project, id)?.is_some() {
                let advice = "; another conversation has it";
                return Err(Error::Exists { what: "turn", name: id.to_string(), advice });
            }
            mutation.promise(*id);
        }
        let parent = turns.last().or(above.as_ref());
        let origin = TurnOrigin { part_of: part_of(mutation, wanted)?, ..TurnOrigin::default() };
        let turn = make_turn(mutation, parent, &siblings, &wanted.message, origin)?;
        siblings.clear();
        if let Some((id, hash)) = &wanted.identity
            && turn.hash != *hash
        {
            let why = format!(
                "the turn {id} would have another hash here than where it comes from ({} and \
                 {hash}); its history was altered on the way, or went another way",
                turn.hash
            );
            return Err(Error::invalid(why));
        }
        progress.places[*index] =
            GraftPlacement::Here { turn: turn.loc, attach_below: Some(turn.loc), id: turn.id };
        if request.rewinds {
            progress.ours.insert(turn.loc);
        }
        turns.push(turn);
    }
    if let Some(created) = LoggedChange::created(&turns) {
        mutation.changed(created);
    }
    Ok(turns.last().map(|turn| turn.loc))
}

/// Returns the id that the turn has here of which one is a half. No record shows the halves in its
/// place, but an erasure finds them by it.
fn part_of(mutation: &Mutation<'_>, wanted: &GraftTurn) -> Result<Option<TurnId>> {
    let found = whole(mutation.reader(), &mutation.call.project, mutation.key(), wanted)?;
    match found {
        Some(loc) => Ok(Some(mutation.tree().turn(loc)?.id)),
        None => Ok(wanted.part_of.map(|(id, _)| id)),
    }
}

/// Moves the branch of a line that has grown, unless it was continued here: then the new turns get
/// a branch of their own, or the one from the last graft.
fn follow(
    mutation: &mut Mutation<'_>,
    name: &Name,
    tip: Option<TurnLoc>,
    ours: &HashSet<TurnLoc>,
) -> Result<(Branch, bool)> {
    let key = mutation.key();
    let mut wanted = name.clone();
    for number in 0_u64.. {
        if number > 0 {
            wanted = name.numbered(number, mutation.engine.limits());
        }
        let Some(branch) = mutation.reader().branch(key, &wanted)? else {
            break;
        };
        let can_advance = match branch.tip {
            Some(old) => ours.contains(&old) || mutation.tree().on_shown_path(Some(old), tip)?,
            None => true,
        };
        if branch.tip == tip {
            return Ok((branch, false));
        }
        if can_advance {
            return Ok((mutation.move_branch(&branch, tip)?, false));
        }
    }
    let branch = Branch {
        conversation: key,
        id: mutation.new_branch_id(),
        name: wanted,
        tip,
        forked_from: None,
        created_at: mutation.now,
        version: 1,
    };
    mutation.put_branch(None, &branch)?;
    Ok((branch, true))
}

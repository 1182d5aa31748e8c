//! Turns of hosts that track no branches: the tree is rebuilt from their slots alone.
//!
//! A store is placed on the *current line*, the path of the branch that it names:
//!
//! - a version of its slot that says the same and lies on the line is that turn again;
//! - otherwise a version whose parent lies on the line gets a sibling: an edit, or the return to
//!   an earlier one;
//! - otherwise the turn follows the tip.
//!
//! A parent or a history that the caller gives wins over all of these. Whatever becomes of the
//! turn, every store adds an observation to its slot.

use std::collections::BTreeSet;

use tine_core::facts::envelope;
use tine_core::facts::reduce::standing;
use tine_core::facts::{Endpoint, Envelope, Observation, Origin as Made, Relation, Slot, identity};
use tine_core::ids::check_key;
use tine_core::json::{Json, Object, object};
use tine_core::{ConversationId, EntityId, Name, ObservationId, Reference, Role, SourceId, TurnId};
use tine_store::{Branch, EntryKind, KeyRange, Origin, Root, Turn, TurnLoc};

use super::keys::{self, Edge};
use super::record::EntityRecord;
use super::{Interpret, InterpretationView, StoreTurn, StoredTurn};
use crate::append::{equal_child, make_chain, message_payload, refuse_purged, says_the_same};
use crate::change::{all_parsed, optional, parsed, text, texts};
use crate::conversation::create;
use crate::learned::{runs, sources};
use crate::log::{Mutation, Receipt, Replay};
use crate::resolve;
use crate::tree::Tree;
use crate::views::Answered;
use crate::{BranchView, Call, Engine, Error, Outcome, Result, TurnRef, TurnView};

/// Messages of a slot's versions that are looked at, from the newest on.
const VERSIONS_TRIED: usize = 1_000;

/// Answers under one turn id that are read at once, from the last one on.
const PARTS_READ: usize = 4;

impl Engine {
    /// Stores a turn of a host that tracks no branches.
    pub fn store_turn(&self, call: &Call, request: StoreTurn) -> Result<StoredTurn> {
        self.check_turn(&request)?;
        let wait = request.interpret == Interpret::Wait;
        let (receipt, replay) =
            self.mutate(call, "store_turn", request, payload, store_with_run)?;
        self.finish_turn(call, receipt, replay, wait)
    }

    pub(super) fn check_turn(&self, request: &StoreTurn) -> Result<()> {
        let limits = self.limits();
        if let Some(turn_id) = &request.turn_id {
            check_key("turn id", turn_id, limits)?;
        }
        let messages = request.history.iter().chain([&request.message]);
        for (index, message) in messages.enumerate() {
            message.check(limits).map_err(|source| Error::Message { index, source })?;
        }
        let given = request.history.len() + 1;
        if given > limits.messages_per_append {
            let (what, limit) = ("messages in one call", limits.messages_per_append);
            return Err(Error::TooLarge { what, limit, given });
        }
        if request.interpret != Interpret::None {
            self.interpreter(request.interpreter.as_deref())?;
        }
        Ok(())
    }

    /// The answer, with the run done first if it is waited for.
    pub(super) fn finish_turn(
        &self,
        call: &Call,
        receipt: TurnReceipt,
        replay: Replay,
        wait: bool,
    ) -> Result<StoredTurn> {
        let turn = self.answered_turn(call, receipt.turn)?;
        let interpretation = self.after_store(call, receipt.run, wait)?;
        Ok(StoredTurn {
            conversation: turn.conversation.clone(),
            turn,
            outcome: receipt.outcome,
            slot: receipt.slot,
            entity: receipt.observation.entity,
            observation: receipt.observation,
            superseded: receipt.superseded,
            branch: receipt.branch,
            source: receipt.source,
            interpretation,
            warnings: receipt.warnings,
            replayed: replay.replayed,
            undone: replay.undone,
        })
    }

    /// A run that was queued with a store, done first if it is waited for.
    pub(super) fn after_store(
        &self,
        call: &Call,
        run: Option<tine_core::InterpretationId>,
        wait: bool,
    ) -> Result<Option<InterpretationView>> {
        let Some(run) = run else {
            return Ok(None);
        };
        if wait {
            self.run_now(call, run)?;
        }
        self.interpretation(call, run).map(Some)
    }
}

/// What a key stands for.
pub(super) fn payload(request: &StoreTurn) -> Json {
    let mut members = Object::new();
    members.insert("conversation_id", request.conversation.clone().into());
    members.insert("turn_id", request.turn_id.clone().into());
    members.insert("message", message_payload(&request.message));
    members.insert("branch", request.branch.clone().into());
    members.insert("parent", request.parent.as_ref().map(|it| Json::from(it.as_str())).into());
    members.insert("parent_message", request.parent_message.clone().into());
    let history = request.history.iter().map(message_payload).collect();
    members.insert("history", Json::Array(history));
    members.insert("attachments", texts(&request.attachments));
    members.insert("title", request.title.clone().into());
    members.insert("system_prompt", request.system_prompt.clone().into());
    request.interpret.told(request.interpreter.as_deref(), &mut members);
    Json::Object(members)
}

/// What a store did, as a repeated call finds it.
pub(super) struct TurnReceipt {
    pub turn: Answered<TurnView>,
    pub outcome: Outcome,
    pub slot: Slot,
    pub observation: ObservationId,
    pub superseded: Option<TurnId>,
    pub branch: BranchView,
    pub source: Option<SourceId>,
    pub run: Option<tine_core::InterpretationId>,
    pub warnings: Vec<String>,
}

impl Receipt for TurnReceipt {
    fn to_json(&self) -> Json {
        object([
            ("turn_id", self.turn.to_json()),
            ("created", (self.outcome == Outcome::Created).into()),
            ("slot", self.slot.to_json()),
            ("observation_id", text(&self.observation)),
            ("superseded", self.superseded.as_ref().map(text).into()),
            ("branch", self.branch.to_json()),
            ("source_id", self.source.as_ref().map(text).into()),
            ("run", self.run.as_ref().map(text).into()),
            ("warnings", texts(&self.warnings)),
        ])
    }

    fn from_json(json: &Json) -> Option<Self> {
        let created = json.get("created")?.as_bool()?;
        Some(TurnReceipt {
            turn: Answered::from_json(json.get("turn_id")?)?,
            outcome: Outcome::from_created(created),
            slot: Slot::from_json(json.get("slot")?)?,
            observation: parsed(json, "observation_id")?,
            superseded: optional(json, "superseded")?,
            branch: BranchView::from_json(json.get("branch")?)?,
            source: optional(json, "source_id")?,
            run: optional(json, "run")?,
            warnings: all_parsed(json, "warnings")?,
        })
    }
}

/// Places a turn and observes it, and queues its run if one is asked for.
pub(super) fn store_with_run(
    mutation: &mut Mutation<'_>,
    request: &StoreTurn,
) -> Result<TurnReceipt> {
    let mut receipt = store(mutation, request)?;
    if request.interpret != Interpret::None {
        let source = envelope_of(mutation, request, &receipt)?;
        let run = runs::queue(mutation, source, request.interpreter.as_deref(), None)?;
        (receipt.source, receipt.run) = (Some(source), Some(run));
    }
    Ok(receipt)
}

/// Places a turn and observes it: everything but its source and its run.
pub(super) fn store(mutation: &mut Mutation<'_>, request: &StoreTurn) -> Result<TurnReceipt> {
    open_or_make(mutation, request)?;
    let attachments = attachments(mutation, request)?;
    let conversation = conversation_entity(mutation, request)?;
    let line = Line::find(mutation, request.branch.as_deref())?;
    let (slot, versions) = slot(mutation, request, &line)?;
    let placed = place(mutation, request, &line, &slot, &versions)?;
    let branch = line.follow(mutation, placed.turn.loc, placed.tip_stays)?;

    let (observation, made) = observe_version(mutation, &slot, &placed.version)?;
    let entity = observation.entity;
    if made {
        let edge = Edge {
            relation: Relation::PartOf,
            source: Endpoint::Entity(entity),
            target: Endpoint::Entity(conversation),
        };
        mutation.relate(&edge, Json::Null, true)?;
    }
    for source in attachments {
        let edge = Edge {
            relation: Relation::Embeds,
            source: Endpoint::Entity(entity),
            target: Endpoint::Source(source),
        };
        mutation.relate(&edge, Json::Null, true)?;
    }
    if let Some(old) = placed.superseded {
        supersede(mutation, placed.turn.id, old)?;
    }
    let branch = mutation.branch_view(&branch)?;
    mutation.fact("branch", text(&branch.name));
    Ok(TurnReceipt {
        turn: mutation.answered_turn(placed.turn.loc)?,
        outcome: placed.outcome,
        slot,
        observation,
        superseded: placed.superseded,
        branch,
        source: None,
        run: None,
        warnings: Vec::new(),
    })
}

/// A turn that took another's place.
pub(crate) fn supersede(mutation: &mut Mutation<'_>, new: TurnId, old: TurnId) -> Result<()> {
    let edge = Edge {
        relation: Relation::Supersedes,
        source: Endpoint::Turn(new),
        target: Endpoint::Turn(old),
    };
    mutation.relate(&edge, Json::Null, true)?;
    Ok(())
}

fn open_or_make(mutation: &mut Mutation<'_>, request: &StoreTurn) -> Result<()> {
    let id = match &request.conversation {
        None => None,
        Some(given) => Some(conversation_id(mutation, given)?),
    };
    if let Some(id) = &id
        && let Some(found) = mutation.reader().conversation(&mutation.call.project, id)?
        && found.visibility.is_there()
    {
        refuse_purged(&found)?;
        return mutation.open(found);
    }
    let root = Root { system_prompt: request.system_prompt.clone(), config: Json::Null };
    let title = request.title.clone().filter(|title| !title.trim().is_empty());
    create(mutation, id, root, title, Json::Object(Object::new()), None)
}

/// A conversation by its own id or by its entity's.
fn conversation_id(mutation: &Mutation<'_>, given: &str) -> Result<ConversationId> {
    if let Ok(entity) = given.parse::<EntityId>() {
        let known = mutation.ledger().entity(entity)?;
        return known.and_then(|known| known.conversation).ok_or_else(|| Error::NotFound {
            what: "conversation with the entity",
            name: given.to_owned(),
            advice: "; give the conversation's own id to begin a new one",
        });
    }
    Ok(ConversationId::new(given, mutation.engine.limits())?)
}

/// Makes sure that the open conversation has its entity.
pub(super) fn ensure_conversation_entity(mutation: &mut Mutation<'_>) -> Result<EntityId> {
    let conversation = mutation.conversation().clone();
    if let Some(known) = mutation.ledger().conversation_entity(&conversation.id)? {
        return Ok(known);
    }
    let now = mutation.now;
    let key = Json::Array(vec![conversation.id.as_str().into()]);
    let id = identity::entity_id(&mutation.call.project, "conversation", &key);
    let mut record = EntityRecord::new(id, "conversation", key, now);
    record.conversation = Some(conversation.id.clone());
    mutation.ensure_entity(record)?;
    let mut fields = Object::new();
    fields.insert("conversation_id", conversation.id.as_str().into());
    if let Some(title) = &conversation.title {
        fields.insert("title", title.as_str().into());
    }
    let draft = draft(mutation, id, "conversation", Made::Server);
    mutation.observe(Observation { fields, ..draft })?;
    Ok(id)
}

fn conversation_entity(mutation: &mut Mutation<'_>, request: &StoreTurn) -> Result<EntityId> {
    let id = ensure_conversation_entity(mutation)?;
    let known = mutation.conversation().title.clone();
    if let Some(title) = request.title.as_deref().filter(|title| !title.trim().is_empty())
        && known.as_deref() != Some(title)
    {
        // A conversation's own title stays once it is set; what hosts call it is observed.
        let mut fields = Object::new();
        fields.insert("title", title.into());
        let ledger = mutation.ledger();
        let latest = ledger.last_observations(id, VERSIONS_TRIED)?;
        let said = standing(&latest).into_iter().rev().find_map(|one| one.fields.get("title"));
        if said.and_then(Json::as_str) != Some(title) {
            let draft = draft(mutation, id, "conversation", Made::Agent);
            mutation.observe(Observation { fields, ..draft })?;
        }
    }
    Ok(id)
}

/// An observation with nothing said yet.
pub(super) fn draft(
    mutation: &Mutation<'_>,
    entity: EntityId,
    entity_type: &str,
    origin: Made,
) -> Observation {
    Observation {
        id: ObservationId { entity, seq: 0 },
        entity_type: entity_type.to_owned(),
        fields: Object::new(),
        source: None,
        interpretation: None,
        turn: None,
        span: None,
        observed_at: mutation.now,
        stored_at: mutation.now,
        priority: tine_core::facts::observation::PRIORITY,
        specificity: 0,
        origin,
        correction: false,
        retracts: None,
        schema_version: 1,
    }
}

fn attachments(mutation: &Mutation<'_>, request: &StoreTurn) -> Result<Vec<SourceId>> {
    for id in &request.attachments {
        mutation.ledger().known_source(*id)?;
    }
    Ok(request.attachments.clone())
}

/// The current line: where it ends, and the branch that follows.
struct Line {
    tip: Option<TurnLoc>,
    branch: Option<Branch>,
    name: Name,
}

impl Line {
    /// A branch that is not there yet begins where `main` ends.
    fn find(mutation: &Mutation<'_>, wanted: Option<&str>) -> Result<Line> {
        let (records, call, key) = (mutation.reader(), mutation.call, mutation.key());
        let branch = resolve::find_branch(records, call, key, wanted.unwrap_or("main"))?;
        let name = match (&branch, wanted) {
            (Some(branch), _) => branch.name.clone(),
            (None, Some(name)) => Name::new(name, mutation.engine.limits())?,
            (None, None) => Name::main(),
        };
        mutation.check_seen(branch.as_ref(), &name)?;
        let tip = match &branch {
            Some(branch) => branch.tip,
            None => records.branch(key, &Name::main())?.and_then(|main| main.tip),
        };
        Ok(Line { tip, branch, name })
    }

    fn holds(&self, tree: &Tree<'_>, turn: Option<TurnLoc>) -> Result<bool> {
        tree.on_line(turn, self.tip)
    }

    /// Whether a version is shown on the line, as one or as its halves.
    fn holds_version(&self, tree: &Tree<'_>, version: &Turn) -> Result<bool> {
        Ok(self.holds(tree, Some(tree.last_half(version.loc)?))? && tree.is_shown(version.loc)?)
    }

    /// Whether a version is shown below a turn of the line.
    fn holds_parent(&self, tree: &Tree<'_>, version: &Turn) -> Result<bool> {
        Ok(self.holds(tree, parent_of(tree, version)?)? && tree.is_shown(version.loc)?)
    }

    /// Moves the branch to a turn, making it if it is new.
    fn follow(self, mutation: &mut Mutation<'_>, turn: TurnLoc, tip_stays: bool) -> Result<Branch> {
        match self.branch {
            Some(branch) if tip_stays || branch.tip == Some(turn) => Ok(branch),
            Some(branch) => mutation.move_branch(&branch, Some(turn)),
            None => {
                let branch = Branch {
                    conversation: mutation.key(),
                    id: mutation.new_branch_id(),
                    name: self.name,
                    tip: if tip_stays { self.tip } else { Some(turn) },
                    forked_from: None,
                    created_at: mutation.now,
                    version: 1,
                };
                mutation.put_branch(None, &branch)?;
                Ok(branch)
            }
        }
    }
}

/// The slots of a host's turn.
fn slots_of(mutation: &Mutation<'_>, turn_id: &str) -> Result<Vec<Slot>> {
    let range = KeyRange::prefix(&keys::slots_of_turn(&mutation.conversation().id, turn_id));
    let (project, limit) = (&mutation.call.project, VERSIONS_TRIED);
    let found = mutation.reader().entries(project, EntryKind::Slot, &range, limit)?;
    found.iter().map(|entry| known_slot(mutation, entry)).collect()
}

fn known_slot(mutation: &Mutation<'_>, entry: &tine_store::Entry) -> Result<Slot> {
    let entity: Option<EntityId> = entry.text.parse().ok();
    let entity = tine_store::required(entity, || "a slot".to_owned())?;
    let known = mutation.ledger().entity(entity)?.and_then(|known| known.slot);
    Ok(tine_store::required(known, || format!("entity {entity}"))?.1)
}

/// The turns that are versions of a slot, shown or not, newest first.
fn versions(mutation: &Mutation<'_>, slot: &Slot) -> Result<Vec<Turn>> {
    let ledger = mutation.ledger();
    let Some(id) = ledger.slot_entity(&mutation.conversation().id, slot)? else {
        return Ok(Vec::new());
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for one in ledger.last_observations(id, VERSIONS_TRIED)? {
        let Some(turn) = one.turn.filter(|turn| seen.insert(*turn)) else {
            continue;
        };
        if let Some((key, loc)) = mutation.reader().find_turn(&mutation.call.project, &turn)?
            && key == mutation.key()
        {
            found.extend(mutation.reader().turn(loc)?);
        }
    }
    Ok(found)
}

/// Whether all of a version is shown, and says just this.
fn says(tree: &Tree<'_>, version: &Turn, message: &tine_core::Message) -> Result<bool> {
    Ok(says_the_same(version, message) && tree.is_whole(version.loc)?)
}

/// Which slot a message belongs to, and its versions. Only an assistant has several parts under
/// one turn id.
fn slot(mutation: &Mutation<'_>, request: &StoreTurn, line: &Line) -> Result<(Slot, Vec<Turn>)> {
    let message = &request.message;
    let turn_id = match (&request.turn_id, &mutation.call.idempotency_key) {
        (Some(turn_id), _) => turn_id.clone(),
        (None, Some(key)) => key.clone(),
        (None, None) => mutation.new_turn_id().to_string(),
    };
    let tool_call_id = message.tool_call_id.clone();
    let slot = Slot { turn_id, role: message.role, tool_call_id, part: 0 };
    let slot = match message.role {
        Role::Assistant => return answer(mutation, slot, message, line),
        _ => slot,
    };
    let versions = versions(mutation, &slot)?;
    Ok((slot, versions))
}

/// Which of the answers under one turn id a message is.
fn answer(
    mutation: &Mutation<'_>,
    first: Slot,
    message: &tine_core::Message,
    line: &Line,
) -> Result<(Slot, Vec<Turn>)> {
    let tree = mutation.tree();
    let last = last_answer(mutation, &tree, &first.turn_id, line)?;
    let Some((last, versions_of_last, depth)) = last else {
        let versions = versions(mutation, &first)?;
        return Ok((first, versions));
    };
    let tip = line.tip.map(|tip| tree.turn(tip)).transpose()?;
    let result = tip.filter(|tip| tip.role == Role::Tool && tip.depth > depth);
    // A host that sends an earlier answer again means that one; so does one that returns to what
    // it had said instead. Behind results that can only be those of a later turn.
    let later = |result: &Turn| {
        result.origin.slot.as_ref().is_some_and(|slot| slot.turn_id != last.turn_id)
    };
    if result.as_ref().is_none_or(later) {
        let beside_too = result.is_none();
        let mut beside = None;
        for part in (0..=last.part).rev() {
            let slot = Slot { part, ..last.clone() };
            let versions = match part == last.part {
                true => versions_of_last.clone(),
                false => versions(mutation, &slot)?,
            };
            for version in &versions {
                if !says(&tree, version, message)? {
                    continue;
                }
                if line.holds_version(&tree, version)? {
                    return Ok((slot, versions));
                }
                if beside_too && beside.is_none() && line.holds_parent(&tree, version)? {
                    beside = Some((slot.clone(), versions.clone()));
                }
            }
        }
        if let Some(found) = beside {
            return Ok(found);
        }
    }
    if result.is_none() {
        return Ok((last, versions_of_last));
    }
    let next = Slot { part: last.part + 1, ..last };
    let versions = versions(mutation, &next)?;
    Ok((next, versions))
}

/// The last answer of a turn id that lies on the line, with its versions and how deep it lies.
/// Parts count along a line, so it is the one with the highest part.
fn last_answer(
    mutation: &Mutation<'_>,
    tree: &Tree<'_>,
    turn_id: &str,
    line: &Line,
) -> Result<Option<(Slot, Vec<Turn>, u32)>> {
    let range = KeyRange::prefix(&keys::answers_of_turn(&mutation.conversation().id, turn_id));
    let mut range = range.backwards();
    loop {
        let project = &mutation.call.project;
        let found = mutation.reader().entries(project, EntryKind::Slot, &range, PARTS_READ)?;
        for entry in &found {
            let slot = known_slot(mutation, entry)?;
            let versions = versions(mutation, &slot)?;
            for version in &versions {
                if line.holds_version(tree, version)? {
                    let depth = version.depth;
                    return Ok(Some((slot, versions, depth)));
                }
            }
        }
        match found.last() {
            Some(entry) if found.len() == PARTS_READ => range.to = Some(entry.key.clone()),
            _ => return Ok(None),
        }
    }
}

/// What a version follows.
fn parent_of(tree: &Tree<'_>, version: &Turn) -> Result<Option<TurnLoc>> {
    tree.shown_parent(tree.first_half(version.loc)?)
}

struct Placed {
    /// What is shown: the version, or its last half.
    turn: Turn,
    /// The slot's version.
    version: Turn,
    outcome: Outcome,
    tip_stays: bool,
    superseded: Option<TurnId>,
}

impl Placed {
    /// A version that is there already. A branch whose line holds it stays where it is.
    fn again(tree: &Tree<'_>, line: &Line, version: Turn) -> Result<Placed> {
        Ok(Placed {
            turn: tree.turn(tree.last_half(version.loc)?)?,
            tip_stays: line.holds_version(tree, &version)?,
            version,
            outcome: Outcome::Reused,
            superseded: None,
        })
    }
}

fn place(
    mutation: &mut Mutation<'_>,
    request: &StoreTurn,
    line: &Line,
    slot: &Slot,
    versions: &[Turn],
) -> Result<Placed> {
    let message = &request.message;
    let parent = match (&request.parent, &request.parent_message, request.history.is_empty()) {
        (Some(parent), ..) => Some(explicit_parent(mutation, parent)?),
        (None, Some(parent), _) => Some(parent_message(mutation, line, slot, parent)?),
        (None, None, false) => Some(after_history(mutation, request)?),
        (None, None, true) => None,
    };
    let tree = mutation.tree();
    let mut again = None;
    // Whom it stands beside: under the parent that was given, or under any on the line.
    let mut beside: Option<&Turn> = None;
    for version in versions {
        let same = says(&tree, version, message)?;
        if same && parent.is_none() && line.holds_version(&tree, version)? {
            (again, beside) = (Some(version), None);
            break;
        }
        if again.is_some() || (beside.is_some() && !same) {
            continue;
        }
        let here = match (parent, beside) {
            (Some(parent), _) => {
                parent_of(&tree, version)? == parent && tree.is_shown(version.loc)?
            }
            (None, Some(beside)) => parent_of(&tree, version)? == parent_of(&tree, beside)?,
            (None, None) => line.holds_parent(&tree, version)?,
        };
        if here {
            beside = beside.or(Some(version));
            again = again.or(Some(version).filter(|_| same));
        }
    }
    let parent = match (parent, beside) {
        (Some(parent), _) => parent,
        (None, Some(beside)) => parent_of(&tree, beside)?,
        (None, None) => line.tip,
    };
    let again = again.map(|version| Placed::again(&tree, line, version.clone())).transpose()?;
    let replaced = beside.map(|version| (version.id, version.operation));
    let noticed = tree.noticed();
    mutation.depends_on_all(noticed);
    if let Some(again) = again {
        mutation.depends_on(again.version.operation);
        return Ok(again);
    }
    mutation.depends_on_all(replaced.map(|(_, operation)| operation));
    let replaced = replaced.map(|(id, _)| id);
    let origin =
        |_| Origin { edited_from: replaced, slot: Some(slot.clone()), ..Origin::default() };
    let made = make_chain(mutation, parent, std::slice::from_ref(message), origin)?.turns.pop();
    let turn = made.expect("a chain of one message has one turn");
    Ok(Placed {
        version: turn.clone(),
        turn,
        outcome: Outcome::Created,
        tip_stays: false,
        superseded: replaced,
    })
}

fn explicit_parent(mutation: &Mutation<'_>, parent: &Reference) -> Result<Option<TurnLoc>> {
    let id = mutation.conversation().id.clone();
    let wanted = TurnRef::within(id, parent.clone());
    Ok(resolve::place(mutation.reader(), mutation.call, &wanted)?.turn)
}

/// A turn, or the version of a host's message that lies on the line, else its newest. Of several
/// messages under one turn id, the one that was said last; nothing follows itself.
fn parent_message(
    mutation: &Mutation<'_>,
    line: &Line,
    own: &Slot,
    given: &str,
) -> Result<Option<TurnLoc>> {
    let tree = mutation.tree();
    let mut newest: Option<Turn> = None;
    let mut on_line: Option<Turn> = None;
    for slot in slots_of(mutation, given)? {
        for version in versions(mutation, &slot)?.into_iter().filter(|_| slot != *own) {
            if !tree.is_shown(version.loc)? {
                continue;
            }
            if line.holds_version(&tree, &version)?
                && on_line.as_ref().is_none_or(|other| other.depth < version.depth)
            {
                on_line = Some(version.clone());
            }
            if newest.as_ref().is_none_or(|other| other.id < version.id) {
                newest = Some(version);
            }
        }
    }
    if let Some(turn) = on_line.or(newest) {
        return tree.nearest_live(tree.last_half(turn.loc)?);
    }
    let reference = Reference::parse(given)?;
    explicit_parent(mutation, &reference)
}

/// The end of a history that was given whole, as an append places it.
fn after_history(mutation: &mut Mutation<'_>, request: &StoreTurn) -> Result<Option<TurnLoc>> {
    let tree = mutation.tree();
    let mut end = None;
    let mut rest = request.history.as_slice();
    while let Some((message, behind)) = rest.split_first() {
        let Some(found) = equal_child(&tree, end, message)? else {
            break;
        };
        end = Some(found.loc);
        rest = behind;
    }
    let noticed = tree.noticed();
    mutation.depends_on_all(noticed);
    let made = make_chain(mutation, end, rest, |_| Origin::default())?;
    Ok(made.turns.last().map(|turn| turn.loc).or(end))
}

/// Adds an observation of a slot: one of its versions was stored. Answers whether the slot is
/// new.
pub(crate) fn observe_version(
    mutation: &mut Mutation<'_>,
    slot: &Slot,
    turn: &Turn,
) -> Result<(ObservationId, bool)> {
    let id = mutation.conversation().id.clone();
    let known = mutation.ledger().slot_entity(&id, slot)?;
    let made = known.is_none();
    let entity = known.unwrap_or_else(|| slot.entity(&mutation.call.project, &id));
    if made {
        let mut record = EntityRecord::new(entity, "agent_message", Json::Null, mutation.now);
        record.slot = Some((id, slot.clone()));
        mutation.ensure_entity(record)?;
    }
    let draft = draft(mutation, entity, "agent_message", Made::Turn);
    let observed = Observation { turn: Some(turn.id), observed_at: turn.created_at, ..draft };
    Ok((mutation.observe(observed)?, made))
}

/// The version that an edit made of a slotted turn.
pub(crate) fn observe_edit(
    mutation: &mut Mutation<'_>,
    old: &Turn,
    turn: &Turn,
    created: bool,
) -> Result<()> {
    let Some(slot) = turn.origin.slot.clone().filter(|slot| old.origin.slot.as_ref() == Some(slot))
    else {
        return Ok(());
    };
    observe_version(mutation, &slot, turn)?;
    if created {
        supersede(mutation, turn.id, old.id)?;
    }
    Ok(())
}

/// The text of a message: its text blocks, one under the other.
fn spoken(body: &tine_core::Body) -> Result<String> {
    if let Some(text) = body.text_only() {
        return Ok(text);
    }
    let blocks = body.blocks()?;
    let texts =
        blocks.iter().filter(|block| block.get("type").and_then(Json::as_str) == Some("text"));
    let texts: Vec<&str> =
        texts.filter_map(|block| block.get("text").and_then(Json::as_str)).collect();
    Ok(texts.join("\n\n"))
}

/// Keeps the canonical envelope of a turn as its source.
fn envelope_of(
    mutation: &mut Mutation<'_>,
    request: &StoreTurn,
    receipt: &TurnReceipt,
) -> Result<SourceId> {
    let Answered::Seen(turn) = &receipt.turn else {
        return Err(Error::invalid("a turn that was just stored is known"));
    };
    let envelope = Envelope {
        content: spoken(&request.message.body)?,
        timestamp: Some(turn.created_at),
        conversation_id: Some(mutation.conversation().id.to_string()),
        turn_id: Some(receipt.slot.turn_id.clone()),
        role: request.message.role,
        tool_call_id: request.message.tool_call_id.clone(),
        attachments: request.attachments.clone(),
    };
    let bytes = sources::Prepared::from_bytes(envelope.to_bytes());
    let (source, _) = sources::keep(mutation, &bytes, envelope::MIME, None, Some(turn.id))?;
    Ok(source.id)
}

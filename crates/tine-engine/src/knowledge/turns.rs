//! Turns of hosts that track no branches: the tree is rebuilt from their slots alone.
//!
//! Whatever becomes of a turn where it is placed, every store adds an observation to its slot.

use serde::{Deserialize, Serialize};
use tine_core::facts::envelope;
use tine_core::facts::reduce::unretracted;
use tine_core::facts::{
    Endpoint, Envelope, Observation, ObservationOrigin as Made, Relation, Slot, identity,
};
use tine_core::ids::check_key;
use tine_core::json::{Json, Object, object};
use tine_core::{ConversationId, EntityId, ObservationId, ProjectId, SourceId, TurnId};
use tine_store::{Edge, EntityRecord, Read, Root, Turn};

use super::placement::{BranchLine, VERSIONS_TRIED, place, slot};
use crate::knowledge::{runs, sources};
use crate::log::change::{text, texts};
use crate::log::mutation::{Mutation, Receipt, Replay};
use crate::ops::append::{message_payload, refuse_purged};
use crate::ops::conversation::create;
use crate::tree::views::{self, ViewOrId};
use crate::{BranchView, Call, Engine, Error, Outcome, Result, TurnView};
use crate::{Interpret, InterpretationView, StoreTurn, StoredTurn};

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

    /// Returns the answer, with the run done first if it is waited for.
    pub(super) fn finish_turn(
        &self,
        call: &Call,
        receipt: TurnReceipt,
        replay: Replay,
        wait: bool,
    ) -> Result<StoredTurn> {
        let turn = self.load_turn(call, receipt.turn)?;
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

    /// Returns a run that was queued with a store, done first if it is waited for.
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

/// Returns what an idempotency key covers.
pub(super) fn payload(request: &StoreTurn) -> Json {
    let mut fields = Object::new();
    fields.insert("conversation_id", request.conversation.clone().into());
    fields.insert("turn_id", request.turn_id.clone().into());
    fields.insert("message", message_payload(&request.message));
    fields.insert("branch", request.branch.clone().into());
    fields.insert("parent", request.parent.as_ref().map(|it| Json::from(it.as_str())).into());
    fields.insert("parent_message", request.parent_message.clone().into());
    let history = request.history.iter().map(message_payload).collect();
    fields.insert("history", Json::Array(history));
    fields.insert("attachments", texts(&request.attachments));
    fields.insert("title", request.title.clone().into());
    fields.insert("system_prompt", request.system_prompt.clone().into());
    interpret_payload(request.interpret, request.interpreter.as_deref(), &mut fields);
    Json::Object(fields)
}

/// Adds the interpreter to what a key stands for. Waiting for the run makes no difference.
pub(super) fn interpret_payload(how: Interpret, by: Option<&str>, payload: &mut Object) {
    if how != Interpret::None {
        payload.insert("interpret", object([("by", by.into())]));
    }
}

/// What a store did, as a repeated call finds it.
#[derive(Serialize, Deserialize)]
pub(super) struct TurnReceipt {
    #[serde(rename = "turn_id")]
    pub turn: ViewOrId<TurnView>,
    #[serde(rename = "created", with = "views::created")]
    pub outcome: Outcome,
    pub slot: Slot,
    #[serde(rename = "observation_id")]
    pub observation: ObservationId,
    pub superseded: Option<TurnId>,
    pub branch: BranchView,
    #[serde(rename = "source_id")]
    pub source: Option<SourceId>,
    pub run: Option<tine_core::InterpretationId>,
    pub warnings: Vec<String>,
}

impl Receipt for TurnReceipt {
    fn load_views(&mut self, records: &dyn Read, project: &ProjectId) -> Result<()> {
        self.turn.load_views(records, project)
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
    let line = BranchLine::find(mutation, request.branch.as_deref())?;
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
        turn: mutation.viewed_turn(placed.turn.loc)?,
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

/// Returns a conversation by its own id or by its entity's.
fn conversation_id(mutation: &Mutation<'_>, given: &str) -> Result<ConversationId> {
    if let Ok(entity) = given.parse::<EntityId>() {
        let record = mutation.knowledge().entity(entity)?;
        return record.and_then(|record| record.conversation).ok_or_else(|| Error::NotFound {
            what: "conversation with the entity",
            name: given.to_owned(),
            advice: "; give the conversation's id to create it",
        });
    }
    Ok(ConversationId::new(given, mutation.engine.limits())?)
}

/// Makes sure that the open conversation has its entity.
pub(super) fn ensure_conversation_entity(mutation: &mut Mutation<'_>) -> Result<EntityId> {
    let conversation = mutation.conversation().clone();
    if let Some(existing) = mutation.knowledge().conversation_entity(&conversation.id)? {
        return Ok(existing);
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
    let draft = mutation.draft(id, "conversation", Made::Server);
    mutation.observe(Observation { fields, ..draft })?;
    Ok(id)
}

fn conversation_entity(mutation: &mut Mutation<'_>, request: &StoreTurn) -> Result<EntityId> {
    let id = ensure_conversation_entity(mutation)?;
    let current_title = mutation.conversation().title.clone();
    if let Some(title) = request.title.as_deref().filter(|title| !title.trim().is_empty())
        && current_title.as_deref() != Some(title)
    {
        // A conversation's own title stays once it is set; what hosts call it is observed.
        let mut fields = Object::new();
        fields.insert("title", title.into());
        let knowledge = mutation.knowledge();
        let latest = knowledge.last_observations(id, VERSIONS_TRIED)?;
        let observed =
            unretracted(&latest).into_iter().rev().find_map(|one| one.fields.get("title"));
        if observed.and_then(Json::as_str) != Some(title) {
            let draft = mutation.draft(id, "conversation", Made::Agent);
            mutation.observe(Observation { fields, ..draft })?;
        }
    }
    Ok(id)
}

fn attachments(mutation: &Mutation<'_>, request: &StoreTurn) -> Result<Vec<SourceId>> {
    for id in &request.attachments {
        mutation.knowledge().require_source(*id)?;
    }
    Ok(request.attachments.clone())
}

/// Adds an observation of a slot: one of its versions was stored. Answers whether the slot is
/// new.
pub(crate) fn observe_version(
    mutation: &mut Mutation<'_>,
    slot: &Slot,
    turn: &Turn,
) -> Result<(ObservationId, bool)> {
    let id = mutation.conversation().id.clone();
    let existing = mutation.knowledge().slot_entity(&id, slot)?;
    let made = existing.is_none();
    let entity = existing.unwrap_or_else(|| slot.entity(&mutation.call.project, &id));
    if made {
        let mut record = EntityRecord::new(entity, "agent_message", Json::Null, mutation.now);
        record.slot = Some((id, slot.clone()));
        mutation.ensure_entity(record)?;
    }
    let draft = mutation.draft(entity, "agent_message", Made::Turn);
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

/// Returns the text of a message: its text blocks, one under the other.
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
    let ViewOrId::View(turn) = &receipt.turn else {
        return Err(Error::invalid("the stored turn could not be found again"));
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
    let bytes = sources::PreparedSource::from_bytes(envelope.to_bytes());
    let (source, _) = sources::keep(mutation, &bytes, envelope::MIME, None, Some(turn.id))?;
    Ok(source.id)
}

//! Arguments that several tools share.

use tine_api::bodies;
use tine_core::facts::Slot;
use tine_core::{
    ConversationId, EntityId, ErrorKind, Json, Limits, Message, Reference, Role, SourceId,
    Timestamp, TurnId,
};
use tine_engine::{AsOf, End, Error};

use crate::mcp_error::McpError;
use crate::tools::ToolContext;
use crate::typed_arguments::Members;

/// Parses messages from their fields.
pub(crate) fn messages(given: Vec<Members>, limits: &Limits) -> Result<Vec<Message>, McpError> {
    Ok(bodies::messages(given.into_iter().map(Json::from).collect(), limits)?)
}

/// Returns the content of a turn: a text, or blocks.
pub(crate) fn content(
    text: Option<String>,
    blocks: Option<Vec<Members>>,
) -> Result<Json, McpError> {
    match (text, blocks) {
        (Some(text), None) => Ok(Json::String(text)),
        (None, Some(blocks)) => Ok(Json::Array(blocks.into_iter().map(Json::from).collect())),
        (Some(_), Some(_)) => {
            let why = "got both `content` and `content_blocks`";
            Err(McpError::invalid(why)
                .next("send one of them; a text can also be a block of type text"))
        }
        (None, None) => Err(McpError::invalid("`content` is missing")
            .next("send `content` (a string) or `content_blocks` (objects with a `type`)")),
    }
}

pub(crate) fn reference(text: &str) -> Result<Reference, McpError> {
    Ok(Reference::parse(text).map_err(Error::from)?)
}

pub(crate) fn optional_reference(text: Option<&str>) -> Result<Option<Reference>, McpError> {
    text.map(reference).transpose()
}

pub(crate) fn conversation(text: &str, limits: &Limits) -> Result<ConversationId, McpError> {
    Ok(ConversationId::new(text, limits).map_err(Error::from)?)
}

pub(crate) fn time(name: &str, text: &str) -> Result<Timestamp, McpError> {
    text.parse().map_err(|error: tine_core::time::TimestampError| {
        McpError::invalid(format!("`{name}`: {error}")).next("write times as 2026-03-01T09:30:00Z")
    })
}

pub(crate) fn optional_time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, McpError> {
    text.map(|text| time(name, text)).transpose()
}

pub(crate) fn source(text: &str) -> Result<SourceId, McpError> {
    text.parse().map_err(|error| {
        McpError::from(Error::Name(error))
            .next("source ids begin with src_; the answers of stores have them")
    })
}

/// Returns the entity with this id, or the entity of the message with this turn_key.
pub(crate) fn entity(context: &ToolContext, text: &str) -> Result<EntityId, McpError> {
    if let Ok(id) = text.parse::<EntityId>() {
        return Ok(id);
    }
    if text.starts_with("ent_") {
        return Err(McpError::invalid(format!("`{text}` is not an entity id"))
            .next("an id is ent_ and 32 hex digits; answers have it as entity_id"));
    }
    let mut found: Vec<(EntityId, String)> = Vec::new();
    for (conversation, slot) in slots(text, context.limits()) {
        let id = slot.entity(&context.call.project, &conversation);
        if context.engine.entity(&context.call, id, AsOf::default()).is_ok() {
            found.push((id, slot.turn_key(&conversation)));
        }
    }
    found.dedup();
    match found.as_slice() {
        [(id, _)] => Ok(*id),
        [] => Err(McpError::new(ErrorKind::NotFound, format!("nothing is stored under `{text}`"))
            .next(
                "send an entity id (ent_…) or a turn_key: conversation_id:turn_id, followed by \
             :assistant for a reply",
            )),
        several => {
            let exact: Vec<_> = several.iter().filter(|(_, key)| key == text).collect();
            if let [(id, _)] = exact.as_slice() {
                return Ok(*id);
            }
            let keys: Vec<_> = several.iter().map(|(id, key)| format!("{key} ({id})")).collect();
            let why = format!("`{text}` could be {}", keys.join(" or "));
            Err(McpError::new(ErrorKind::Ambiguous, why).next("send one of these ids as entity_id"))
        }
    }
}

/// Returns every slot that a turn_key could mean: several, because ids may contain colons.
fn slots(key: &str, limits: &Limits) -> Vec<(ConversationId, Slot)> {
    let mut found = Vec::new();
    for (at, _) in key.match_indices(':') {
        let (conversation, rest) = (&key[..at], &key[at + 1..]);
        let Ok(conversation) = ConversationId::new(conversation, limits) else { continue };
        let mut add = |turn_id: &str, role: Role, tool_call_id: Option<&str>, part: u32| {
            if !turn_id.is_empty() {
                let tool_call_id = tool_call_id.map(str::to_owned);
                let slot = Slot { turn_id: turn_id.to_owned(), role, tool_call_id, part };
                found.push((conversation.clone(), slot));
            }
        };
        for role in [Role::User, Role::Assistant, Role::System] {
            add(rest, role, None, 0);
        }
        for (name, role) in [("assistant", Role::Assistant), ("system", Role::System)] {
            if let Some(turn_id) = rest.strip_suffix(&format!(":{name}")) {
                add(turn_id, role, None, 0);
            }
            if let Some((turn_id, part)) = rest.rsplit_once(&format!(":{name}:"))
                && let Ok(part) = part.parse()
            {
                add(turn_id, role, None, part);
            }
        }
        for (at, _) in rest.match_indices(":tool:") {
            add(&rest[..at], Role::Tool, Some(&rest[at + 6..]), 0);
        }
    }
    found
}

/// Parses an end of a relationship. A number is the index of an entity in the same call.
pub(crate) fn end(context: &ToolContext, name: &str, value: &Json) -> Result<End, McpError> {
    let wrong = || {
        McpError::invalid(format!("`{name}` is not something that can be related")).next(
            "send an entity (ent_… or a turn_key), a source (src_…), a turn's id, \
             conversation:ID, or the index of an entity in this call, from 0",
        )
    };
    if let Some(nth) = value.as_u64() {
        return Ok(End::InCall(usize::try_from(nth).map_err(|_| wrong())?));
    }
    let text = value.as_str().ok_or_else(wrong)?;
    if let Ok(nth) = text.parse::<usize>()
        && nth < context.limits().facts_per_store
    {
        return Ok(End::InCall(nth));
    }
    if text.starts_with("src_") {
        return Ok(End::Source(source(text)?));
    }
    if let Some(id) = text.strip_prefix("conversation:") {
        return Ok(End::Conversation(id.to_owned()));
    }
    if text.parse::<TurnId>().is_ok() {
        return Ok(End::Turn(reference(text)?));
    }
    Ok(End::Entity(entity(context, text)?))
}

//! How people name what was learned: ids, keys of turns, and things at the ends of relationships.

use std::str::FromStr;

use tine_core::{EntityId, Json, Kind, ObservationId, Reference};
use tine_engine::{End, EntityQuery, EntityView, Listing, Page};

use crate::failure::{Failure, Result};
use crate::session::Session;

/// Stands before a conversation at the end of a relationship.
const CONVERSATION: &str = "conversation:";

/// An id of one kind, with what to do about another.
pub(crate) fn id<T: FromStr<Err = tine_core::ids::NameError>>(text: &str) -> Result<T> {
    Ok(text.parse::<T>()?)
}

/// An observation by its id, or beside its entity by the end of it.
pub(crate) fn observation(entity: EntityId, text: &str) -> Result<ObservationId> {
    match text.starts_with("obs_") {
        true => id(text),
        false => id(&format!("{}_{text}", entity.to_string().replacen("ent_", "obs_", 1))),
    }
}

/// Up to `wanted` items, page by page, and where to go on.
pub(crate) fn pages<T>(
    session: &Session,
    wanted: Option<usize>,
    mut ask: impl FnMut(Page) -> tine_engine::Result<Listing<T>>,
) -> Result<Listing<T>> {
    let wanted = wanted.unwrap_or(usize::MAX);
    let mut all = Listing { items: Vec::new(), next: None };
    while all.items.len() < wanted {
        let missing = (wanted - all.items.len()).min(session.limits().page_rows);
        let found = ask(Page { cursor: all.next.take(), limit: Some(missing) })?;
        all.items.extend(found.items);
        all.next = found.next;
        if all.next.is_none() {
            break;
        }
    }
    Ok(all)
}

/// The key that people know a message's entity by.
pub(crate) fn turn_key(it: &EntityView) -> Option<String> {
    Some(it.slot.as_ref()?.turn_key(it.conversation.as_ref()?))
}

/// An entity by its id, or the message that a turn key names.
pub(crate) fn entity(session: &Session, text: &str) -> Result<EntityId> {
    if text.starts_with("ent_") || !text.contains(':') {
        return text.parse().map_err(|_| {
            Failure::invalid(format!(
                "`{text}` names no entity; give an id such as ent_… (`tine entity list`) or a \
                 turn as CONVERSATION:TURN"
            ))
        });
    }
    let mut found = slots(session, text)?;
    match found.len() {
        0 => Err(Failure::refused(
            Kind::NotFound,
            format!(
                "no turn was stored as `{text}`; `tine entity list --type agent_message` lists \
                 those that were"
            ),
        )),
        1 => Ok(found.remove(0).id),
        _ => Err(Failure::SeveralSlots { key: text.to_owned(), slots: found }),
    }
}

/// The messages that a key can mean: those whose whole key it is, and those of the turn that it
/// names.
fn slots(session: &Session, key: &str) -> Result<Vec<EntityView>> {
    let knowledge = session.engine.knowledge();
    // The role can be said also where keys leave it out.
    let user = key.strip_suffix(":user");
    let means = |it: &EntityView| {
        let (Some(slot), Some(conversation)) = (&it.slot, &it.conversation) else { return false };
        let turn = format!("{conversation}:{}", slot.turn_id);
        turn == key
            || slot.turn_key(conversation) == key
            || user.is_some_and(|user| slot.turn_key(conversation) == user)
    };
    let ask = |text: Option<String>| -> Result<Vec<EntityView>> {
        let entity_type = Some("agent_message".to_owned());
        let query = EntityQuery { entity_type, text, deleted: true };
        let ask = |page| knowledge.entities(&session.call, query.clone(), page);
        let mut found = pages(session, None, ask)?.items;
        found.retain(means);
        Ok(found)
    };
    // What a message says holds its key, as JSON has it; one that was taken back says nothing.
    let escaped = Json::from(user.unwrap_or(key)).to_canonical();
    let mut found = ask(Some(escaped.trim_matches('"').to_owned()))?;
    if found.is_empty() {
        found = ask(None)?;
    }
    found.sort_by_key(turn_key);
    Ok(found)
}

/// A thing at the end of a relationship: an entity, a source, a conversation or a turn.
pub(crate) fn end(session: &Session, text: &str) -> Result<End> {
    if text.starts_with("ent_") {
        return Ok(End::Entity(id(text)?));
    }
    if text.starts_with("src_") {
        return Ok(End::Source(id(text)?));
    }
    if let Some(conversation) = text.strip_prefix(CONVERSATION) {
        let conversation = session.conversation_id(conversation)?;
        return Ok(End::Conversation(conversation.to_string()));
    }
    // By its id, so that a branch's name means the one in the conversation at hand.
    let turn = session.engine.turn(&session.call, session.turn(&Reference::parse(text)?)?)?;
    Ok(End::Turn(Reference::parse(&turn.id.to_string())?))
}

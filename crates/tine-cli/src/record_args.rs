//! How people name what was learned: ids, keys of turns, and things at the ends of relationships.

use std::str::FromStr;

use tine_core::{EntityId, Kind, ObservationId, Reference, Role};
use tine_engine::{End, EntityView};

use crate::failure::{Failure, Result};
use crate::session::CliSession;

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

/// The key that people know a message's entity by.
pub(crate) fn turn_key(it: &EntityView) -> Option<String> {
    Some(it.slot.as_ref()?.turn_key(it.conversation.as_ref()?))
}

/// An entity by its id, or the message that a turn key names.
pub(crate) fn entity(session: &CliSession, text: &str) -> Result<EntityId> {
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
/// names. Ids may hold colons, so every way of parting the key is tried.
fn slots(session: &CliSession, key: &str) -> Result<Vec<EntityView>> {
    let knowledge = session.engine.knowledge();
    // The role can be said also where keys leave it out.
    let user = key.strip_suffix(":user");
    let is_key_of = |it: &EntityView| {
        turn_key(it).is_some_and(|whole| whole == key || Some(whole.as_str()) == user)
    };
    let mut all = Vec::new();
    for (conversation, rest) in parted(key) {
        // What cannot be an id is none.
        let Ok(conversation) = session.conversation_id(conversation) else { continue };
        for turn_id in turn_ids(rest) {
            let mut found = match knowledge.slots(&session.call, &conversation, turn_id) {
                Err(error) if error.kind() == Kind::NotFound => break,
                found => found?,
            };
            found.retain(|it| turn_id == rest || is_key_of(it));
            all.extend(found);
        }
    }
    all.sort_by_key(turn_key);
    Ok(all)
}

/// What stands before and behind each colon.
fn parted(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let both = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    both.filter(|(before, behind)| !before.is_empty() && !behind.is_empty())
}

/// The turn ids that an end of a key can begin with: all of it, or up to a role.
fn turn_ids(rest: &str) -> impl Iterator<Item = &str> {
    let role = |behind: &str| behind.split(':').next().is_some_and(|it| it.parse::<Role>().is_ok());
    let shorter = parted(rest).filter(move |(_, behind)| role(behind)).map(|(before, _)| before);
    std::iter::once(rest).chain(shorter)
}

/// A thing at the end of a relationship: an entity, a source, a conversation or a turn.
pub(crate) fn end(session: &CliSession, text: &str) -> Result<End> {
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

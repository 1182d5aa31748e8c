//! Resolves arguments to knowledge records: ids, turn keys, and endpoints of relationships.

use std::str::FromStr;

use tine_core::{EntityId, ErrorKind, ObservationId, Reference, Role};
use tine_engine::{End, EntityView};

use crate::command_error::{CommandError, Result};
use crate::session::CliSession;

/// Prefix of a conversation given as an endpoint.
const CONVERSATION_PREFIX: &str = "conversation:";

/// Parses an id of one kind of record.
pub(crate) fn parse_id<T: FromStr<Err = tine_core::ids::NameError>>(text: &str) -> Result<T> {
    Ok(text.parse::<T>()?)
}

/// Parses an observation's id, which may be shortened to its last part.
pub(crate) fn parse_observation(entity: EntityId, text: &str) -> Result<ObservationId> {
    match text.starts_with("obs_") {
        true => parse_id(text),
        false => parse_id(&format!("{}_{text}", entity.to_string().replacen("ent_", "obs_", 1))),
    }
}

/// Returns the turn key of a message's entity.
pub(crate) fn turn_key(it: &EntityView) -> Option<String> {
    Some(it.slot.as_ref()?.turn_key(it.conversation.as_ref()?))
}

/// Resolves an entity's id or a turn key to an entity.
pub(crate) fn resolve_entity(session: &CliSession, text: &str) -> Result<EntityId> {
    if text.starts_with("ent_") || !text.contains(':') {
        return text.parse().map_err(|_| {
            CommandError::invalid(format!(
                "`{text}` names no entity; give an id such as ent_… (`tine entity list`) or a \
                 turn as CONVERSATION:TURN"
            ))
        });
    }
    let mut found = matching_slots(session, text)?;
    match found.len() {
        0 => Err(CommandError::refused(
            ErrorKind::NotFound,
            format!(
                "no turn was stored as `{text}`; `tine entity list --type agent_message` lists \
                 those that were"
            ),
        )),
        1 => Ok(found.remove(0).id),
        _ => Err(CommandError::AmbiguousTurnKey { key: text.to_owned(), slots: found }),
    }
}

/// Returns the messages that match a turn key: those with exactly this key, and those of the turn
/// that it names. Ids may contain colons, so every split of the key is tried.
fn matching_slots(session: &CliSession, key: &str) -> Result<Vec<EntityView>> {
    let knowledge = session.engine.knowledge();
    // Keys omit the role of user turns, but it may be given.
    let user = key.strip_suffix(":user");
    let is_key_of = |it: &EntityView| {
        turn_key(it).is_some_and(|whole| whole == key || Some(whole.as_str()) == user)
    };
    let mut all = Vec::new();
    for (conversation, rest) in colon_splits(key) {
        // Skip splits whose first part is not a valid conversation id.
        let Ok(conversation) = session.conversation_id(conversation) else { continue };
        for turn_id in candidate_turn_ids(rest) {
            let mut found = match knowledge.slots(&session.call, &conversation, turn_id) {
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                found => found?,
            };
            found.retain(|it| turn_id == rest || is_key_of(it));
            all.extend(found);
        }
    }
    all.sort_by_key(turn_key);
    Ok(all)
}

/// Splits a text at each colon and yields the parts before and after it.
fn colon_splits(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let both = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    both.filter(|(before, after)| !before.is_empty() && !after.is_empty())
}

/// Yields the turn ids that the rest of a key may contain: all of it, or the part before a role.
fn candidate_turn_ids(rest: &str) -> impl Iterator<Item = &str> {
    let role = |after: &str| after.split(':').next().is_some_and(|it| it.parse::<Role>().is_ok());
    let shorter =
        colon_splits(rest).filter(move |(_, after)| role(after)).map(|(before, _)| before);
    std::iter::once(rest).chain(shorter)
}

/// Resolves an endpoint of a relationship: an entity, a source, a conversation or a turn.
pub(crate) fn resolve_endpoint(session: &CliSession, text: &str) -> Result<End> {
    if text.starts_with("ent_") {
        return Ok(End::Entity(parse_id(text)?));
    }
    if text.starts_with("src_") {
        return Ok(End::Source(parse_id(text)?));
    }
    if let Some(conversation) = text.strip_prefix(CONVERSATION_PREFIX) {
        let conversation = session.conversation_id(conversation)?;
        return Ok(End::Conversation(conversation.to_string()));
    }
    // Resolve to an id, so that a branch name refers to the current conversation.
    let turn = session.engine.turn(&session.call, session.turn(&Reference::parse(text)?)?)?;
    Ok(End::Turn(Reference::parse(&turn.id.to_string())?))
}

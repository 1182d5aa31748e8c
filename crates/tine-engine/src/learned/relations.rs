//! How things hang together.

use tine_core::facts::{Endpoint, Origin, Relation};
use tine_core::json::{Json, Object, object};
use tine_core::{EntityId, ObservationId, TurnId};
use tine_store::{EntryKind, required};

use super::keys::Edge;
use super::ledger::Ledger;
use super::record::RelationshipRecord;
use super::sources::{next_cursor, page_range};
use super::{Direction, End, NewRelationship, RelationshipQuery, RelationshipView};
use crate::change::{Change, from_hex, hex, text};
use crate::error::Reference;
use crate::log::{Mutation, Receipt};
use crate::resolve;
use crate::tree::{State, Tree};
use crate::{Call, Engine, Error, Listing, Outcome, Page, Result, TurnRef};

impl Engine {
    /// Relates two things, or finds that they are; answers which.
    pub fn create_relationship(
        &self,
        call: &Call,
        request: NewRelationship,
    ) -> Result<(RelationshipView, Outcome)> {
        let (receipt, _) =
            self.mutate(call, "create_relationship", request, as_sent, |mutation, request| {
                mutation.open_project_log()?;
                let edge = edge_from(mutation, request, &[])?;
                let created = mutation.relate(&edge, object_of(&request.metadata)?, false)?;
                Ok(EdgeReceipt { edge, created })
            })?;
        let outcome = if receipt.created { Outcome::Created } else { Outcome::Reused };
        Ok((self.relationship_of(call, &receipt.edge)?, outcome))
    }

    /// Removes a relationship; an undo brings it back. What Tine made along with a turn stays.
    pub fn delete_relationship(&self, call: &Call, request: NewRelationship) -> Result<()> {
        self.mutate(call, "delete_relationship", request, as_sent, |mutation, request| {
            mutation.open_project_log()?;
            let edge = edge_from(mutation, request, &[])?;
            let known = mutation.ledger().relationship(&edge)?;
            let known = known.ok_or_else(|| Error::NotFound {
                what: "relationship",
                name: format!("{} {} {}", edge.source, edge.relation, edge.target),
                advice: "",
            })?;
            if known.structural {
                return Err(Error::Unsupported(
                    "this relationship follows from a turn and stays as long as it".to_owned(),
                ));
            }
            mutation.set_entry(EntryKind::Relationship, &edge.key(), None)
        })?;
        Ok(())
    }

    /// Relationships of one thing, or all, page by page.
    pub fn relationships(
        &self,
        call: &Call,
        query: RelationshipQuery,
        page: Page,
    ) -> Result<Listing<RelationshipView>> {
        let limit = self.page_limit(page.limit)?;
        let relation: Option<Relation> = match &query.relation {
            None => None,
            Some(name) => Some(name.parse().map_err(invalid)?),
        };
        self.read(|records| {
            let ledger = Ledger::new(records, &call.project);
            let end = match &query.end {
                None => None,
                Some(end) => Some(endpoint(&ledger, call, end, &[])?),
            };
            let sides = sides(end, query.direction, page.cursor.as_deref())?;
            let mut items = Vec::new();
            for (side, cursor) in sides {
                let prefix = end.map_or(Vec::new(), |end| end.to_bytes().to_vec());
                let range = page_range(&prefix, cursor)?;
                let found = records.entries(&call.project, side.kind(), &range, LOOKED_AT + 1)?;
                for (at, entry) in found.iter().take(LOOKED_AT).enumerate() {
                    if items.len() == limit {
                        let next = next_cursor(&found, at).map(|key| side.cursor(&key));
                        return Ok(Listing { items, next });
                    }
                    let edge = side.edge(&entry.key);
                    let edge = required(edge, || "a relationship".to_owned())?;
                    if relation.is_none_or(|it| it == edge.relation) {
                        items.extend(shown(&ledger, &edge)?);
                    }
                }
                if let Some(next) = next_cursor(&found, LOOKED_AT) {
                    return Ok(Listing { items, next: Some(side.cursor(&next)) });
                }
            }
            Ok(Listing { items, next: None })
        })
    }

    pub(super) fn relationship_of(&self, call: &Call, edge: &Edge) -> Result<RelationshipView> {
        self.read(|records| {
            let ledger = Ledger::new(records, &call.project);
            let record = ledger.relationship(edge)?;
            let record = record.ok_or_else(|| Error::not_found("relationship", edge.source))?;
            view(&ledger, edge, record)
        })
    }
}

/// Relationships that are looked at for one page.
const LOOKED_AT: usize = 10_000;

/// From which end relationships are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Target,
}

impl Side {
    fn kind(self) -> EntryKind {
        match self {
            Side::Source => EntryKind::Relationship,
            Side::Target => EntryKind::RelationshipTo,
        }
    }

    fn edge(self, key: &[u8]) -> Option<Edge> {
        match self {
            Side::Source => Edge::from_key(key),
            Side::Target => Edge::from_key_at_target(key),
        }
    }

    fn cursor(self, key: &str) -> String {
        match self {
            Side::Source => format!("out-{key}"),
            Side::Target => format!("in-{key}"),
        }
    }
}

/// The sides that are still to be listed, the first one from its cursor on.
fn sides(
    end: Option<Endpoint>,
    direction: Direction,
    cursor: Option<&str>,
) -> Result<Vec<(Side, Option<&str>)>> {
    let mut sides = match (end, direction) {
        (None, _) | (_, Direction::Outgoing) => vec![(Side::Source, None)],
        (_, Direction::Incoming) => vec![(Side::Target, None)],
        (_, Direction::Both) => vec![(Side::Source, None), (Side::Target, None)],
    };
    if let Some(cursor) = cursor {
        let (side, key) = match cursor.split_once('-') {
            Some(("out", key)) => (Side::Source, key),
            Some(("in", key)) => (Side::Target, key),
            _ => return Err(crate::conversation::bad_cursor(cursor)),
        };
        let at = sides.iter().position(|(known, _)| *known == side);
        let at = at.ok_or_else(|| crate::conversation::bad_cursor(cursor))?;
        sides.drain(..at);
        sides[0].1 = Some(key);
    }
    Ok(sides)
}

/// A relationship, unless one of its ends is a turn that is not shown.
fn shown(ledger: &Ledger<'_>, edge: &Edge) -> Result<Option<RelationshipView>> {
    for end in [edge.source, edge.target] {
        if let Endpoint::Turn(turn) = end {
            let Some((key, loc)) = ledger.records.find_turn(ledger.project, &turn)? else {
                return Ok(None);
            };
            let state = Tree::new(ledger.records, key).state(loc)?;
            if !matches!(state, State::Live | State::Split(_)) {
                return Ok(None);
            }
        }
    }
    let record =
        required(ledger.relationship(edge)?, || format!("{} of {}", edge.relation, edge.source))?;
    view(ledger, edge, record).map(Some)
}

fn view(ledger: &Ledger<'_>, edge: &Edge, record: RelationshipRecord) -> Result<RelationshipView> {
    let kind = |end: Endpoint| -> Result<String> {
        match end {
            Endpoint::Entity(id) => {
                Ok(ledger.entity(id)?.map_or_else(String::new, |entity| entity.entity_type))
            }
            other => Ok(other.kind().to_owned()),
        }
    };
    let (source_type, target_type) = (kind(edge.source)?, kind(edge.target)?);
    Ok(RelationshipView {
        relation: edge.relation,
        source: edge.source,
        target: edge.target,
        label: edge.relation.label(&source_type, &target_type),
        source_type,
        target_type,
        metadata: record.metadata,
        created_at: record.created_at,
        created_by: record.created_by,
        structural: record.structural,
    })
}

fn invalid(error: impl ToString) -> Error {
    Error::invalid(error.to_string())
}

fn object_of(metadata: &Json) -> Result<Json> {
    match metadata {
        Json::Null => Ok(Json::Object(Object::new())),
        Json::Object(_) => Ok(metadata.clone()),
        other => Err(Error::invalid(format!(
            "the metadata of a relationship is an object, not {}",
            other.type_name()
        ))),
    }
}

/// The relationship that a caller names. `made` are the entities of the same call.
pub(super) fn edge_from(
    mutation: &mut Mutation<'_>,
    wanted: &NewRelationship,
    made: &[EntityId],
) -> Result<Edge> {
    let relation = wanted.relation.parse().map_err(invalid)?;
    object_of(&wanted.metadata)?;
    let ledger = mutation.ledger();
    let source = endpoint(&ledger, mutation.call, &wanted.source, made)?;
    let target = endpoint(&ledger, mutation.call, &wanted.target, made)?;
    if source == target {
        return Err(Error::invalid("a thing is not related to itself"));
    }
    Ok(Edge { relation, source, target })
}

fn endpoint(ledger: &Ledger<'_>, call: &Call, end: &End, made: &[EntityId]) -> Result<Endpoint> {
    Ok(match end {
        End::Entity(id) => Endpoint::Entity(ledger.known_entity(*id)?.id),
        End::Source(id) => Endpoint::Source(ledger.known_source(*id)?.id),
        End::Turn(reference) => {
            let wanted = TurnRef { conversation: None, turn: reference.clone() };
            let loc = resolve::place(ledger.records, call, &wanted)?.require_turn()?;
            let turn =
                required(ledger.records.turn(loc)?, || format!("turn {}", reference.as_str()))?;
            Endpoint::Turn(turn.id)
        }
        End::Conversation(id) => {
            let id = tine_core::ConversationId::from_stored(id.as_str());
            let found = resolve::conversation(ledger.records, call, &id)?;
            let Some(entity) = ledger.conversation_entity(&found.id)? else {
                return Err(Error::invalid(format!(
                    "the conversation `{id}` has no entity yet: nothing was stored in it by slots; \
                     relate one of its turns"
                )));
            };
            Endpoint::Entity(entity)
        }
        End::InCall(nth) => {
            let id = made.get(*nth).ok_or_else(|| {
                Error::invalid(format!("there is no entity {nth} in this call; they count from 0"))
            })?;
            Endpoint::Entity(*id)
        }
    })
}

pub(super) fn as_sent(request: &NewRelationship) -> Json {
    let end = |end: &End| match end {
        End::Entity(id) => object([("entity_id", text(id))]),
        End::Source(id) => object([("source_id", text(id))]),
        End::Turn(turn) => object([("turn", turn.as_str().into())]),
        End::Conversation(id) => object([("conversation_id", id.as_str().into())]),
        End::InCall(nth) => object([("index", (*nth as u64).into())]),
    };
    object([
        ("type", request.relation.as_str().into()),
        ("source", end(&request.source)),
        ("target", end(&request.target)),
        ("metadata", request.metadata.clone()),
    ])
}

struct EdgeReceipt {
    edge: Edge,
    created: bool,
}

impl Receipt for EdgeReceipt {
    fn to_json(&self) -> Json {
        object([("key", hex(&self.edge.key()).into()), ("created", self.created.into())])
    }

    fn from_json(json: &Json) -> Option<Self> {
        let edge = Edge::from_key(&from_hex(json.get("key")?.as_str()?)?)?;
        Some(EdgeReceipt { edge, created: json.get("created")?.as_bool()? })
    }
}

/// References that are listed when a deletion is refused.
const LISTED: usize = 100;

/// What points at turns from elsewhere: relationships that somebody made, and observations that
/// are no versions of the turns' own slots.
///
/// What `own` changes made does not count: it goes with them.
pub(crate) fn references_to(
    ledger: &Ledger<'_>,
    turns: &[TurnId],
    own: &[Change],
) -> Result<Vec<Reference>> {
    let observed = |id: ObservationId| {
        own.iter().any(|it| matches!(it, Change::Observed { id: made, .. } if *made == id))
    };
    let related = |edge: &Edge| {
        let wanted = edge.key();
        own.iter().any(|it| matches!(it, Change::Entry { key, .. } if *key == wanted))
    };
    let mut found = Vec::new();
    for turn in turns {
        for key in ledger.under(EntryKind::RelationshipTo, &Endpoint::Turn(*turn).to_bytes())? {
            let edge = Edge::from_key_at_target(&key);
            let edge = required(edge, || "a relationship".to_owned())?;
            let made = ledger.relationship(&edge)?.is_some_and(|record| !record.structural);
            if made && !related(&edge) {
                let name = format!("{} {} {}", edge.source, edge.relation, edge.target);
                found.push(Reference { what: "relationship".to_owned(), name });
            }
        }
        for one in ledger.about_turn(turn)? {
            if one.origin != Origin::Turn && !observed(one.id) && ledger.stands(&one)? {
                let name = format!("{} of {} {}", one.id, one.entity_type, one.id.entity);
                found.push(Reference { what: "observation".to_owned(), name });
            }
        }
        if found.len() >= LISTED {
            found.truncate(LISTED);
            break;
        }
    }
    Ok(found)
}

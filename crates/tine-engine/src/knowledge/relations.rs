//! Relationships between entities, sources and turns.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tine_core::facts::{Endpoint, ObservationOrigin, Relation};
use tine_core::hash::{from_hex, to_hex};
use tine_core::json::{Json, Object, object};
use tine_core::{EntityId, TurnId};
use tine_store::{
    Edge, Family, IndexKey, IndexQuery, Record, RecordIndex, RecordKey, RecordQuery,
    RelationshipRecord, TurnLoc, required,
};

use super::pages::{PagedQuery, page, resume};
use super::reader::{KnowledgeReader, OBSERVATIONS_READ};
use crate::Referrer;
use crate::log::change::{LoggedChange, text};
use crate::log::mutation::{Mutation, Receipt};
use crate::tree::shown::{SegmentRun, Tree, TurnState};
use crate::tree::{resolve, views};
use crate::{Call, Engine, Error, Listing, Outcome, Page, Result, TurnRef};
use crate::{Direction, End, NewRelationship, RelationshipQuery, RelationshipView};

impl Engine {
    /// Creates a relationship, or finds it.
    pub fn create_relationship(
        &self,
        call: &Call,
        request: NewRelationship,
    ) -> Result<RelationshipView> {
        let (receipt, _) =
            self.mutate(call, "create_relationship", request, as_sent, |mutation, request| {
                mutation.open_project_log()?;
                let edge = edge_from(mutation, request, &[])?;
                let created = mutation.relate(&edge, object_of(&request.metadata)?, false)?;
                Ok(EdgeReceipt { edge, outcome: Outcome::from_created(created) })
            })?;
        Ok(self.relationship_of(call, &receipt.edge)?.with_outcome(receipt.outcome))
    }

    /// Removes a relationship; an undo restores it. Relationships that belong to a turn stay.
    pub fn delete_relationship(&self, call: &Call, request: NewRelationship) -> Result<()> {
        self.mutate(call, "delete_relationship", request, as_sent, |mutation, request| {
            mutation.open_project_log()?;
            let edge = edge_from(mutation, request, &[])?;
            let existing = mutation.knowledge().relationship(&edge)?;
            let existing = existing.ok_or_else(|| {
                let name = format!("{} {} {}", edge.source, edge.relation, edge.target);
                Error::not_found("relationship", name)
            })?;
            if existing.structural {
                return Err(Error::Unsupported(
                    "this relationship belongs to a turn and cannot be removed on its own; delete the \
                     turn"
                        .to_owned(),
                ));
            }
            mutation.remove_record(RecordKey::Relationship(edge))
        })?;
        Ok(())
    }

    /// Relationships of one thing, or all, page by page.
    pub fn relationships(
        &self,
        call: &Call,
        query: RelationshipQuery,
        Page { limit, cursor: given }: Page,
    ) -> Result<Listing<RelationshipView>> {
        let limit = self.page_limit(limit)?;
        let relation: Option<Relation> = match &query.relation {
            None => None,
            Some(name) => Some(name.parse().map_err(invalid)?),
        };
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let end = match &query.end {
                None => None,
                Some(end) => Some(endpoint(&knowledge, call, end, &[])?),
            };
            let ends = match end {
                None => Vec::new(),
                Some(end) => knowledge.same_as(end)?,
            };
            let mut sections = sections(&ends, query.direction);
            let mut cursor = None;
            if let Some(given) = given.as_deref() {
                let (at, key) = begin_at(&sections, given)?;
                sections.drain(..at);
                cursor = Some(key);
            }
            let mut items = Vec::new();
            for section in sections {
                let (side, start) = (section.side(), section.start());
                let section = resume(section, cursor.take())?;
                if items.len() == limit {
                    if section.read(&knowledge, 1)?.is_empty() {
                        continue;
                    }
                    return Ok(Listing { items, next: Some(format!("{side}-{}", to_hex(&start))) });
                }
                let listed = page(&knowledge, section, limit - items.len(), |(_, edge)| {
                    let listed_before = side == TO
                        && query.direction == Direction::Both
                        && ends.contains(&edge.source);
                    match listed_before || relation.is_some_and(|it| it != edge.relation) {
                        true => Ok(None),
                        false => shown(&knowledge, edge, &ends),
                    }
                })?;
                items.extend(listed.items);
                if let Some(next) = listed.next {
                    return Ok(Listing { items, next: Some(format!("{side}-{next}")) });
                }
            }
            Ok(Listing { items, next: None })
        })
    }

    pub(super) fn relationship_of(&self, call: &Call, edge: &Edge) -> Result<RelationshipView> {
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let record = knowledge.relationship(edge)?;
            let record = record.ok_or_else(|| Error::not_found("relationship", edge.source))?;
            view(&knowledge, edge, record)
        })
    }
}

/// Sides in cursors.
const FROM: &str = "out";
const TO: &str = "in";

/// The relationships at one side of one end; all of them without an end.
#[derive(Clone)]
enum RelationshipSection {
    From(RecordQuery),
    To(IndexQuery),
}

impl RelationshipSection {
    fn side(&self) -> &'static str {
        match self {
            RelationshipSection::From(_) => FROM,
            RelationshipSection::To(_) => TO,
        }
    }

    fn start(&self) -> Vec<u8> {
        match self {
            RelationshipSection::From(query) => query.range.from.clone(),
            RelationshipSection::To(query) => query.range.from.clone(),
        }
    }
}

impl PagedQuery for RelationshipSection {
    type Item = (Vec<u8>, Edge);

    fn read(&self, knowledge: &KnowledgeReader<'_>, limit: usize) -> Result<Vec<Self::Item>> {
        match self {
            RelationshipSection::From(query) => {
                let item = |record: &Record| {
                    let edge = edge_of(Some(record.key()), || record.key().to_string())?;
                    Ok((record.key().to_bytes(), edge))
                };
                query.read(knowledge, limit)?.iter().map(item).collect()
            }
            RelationshipSection::To(query) => {
                let item = |key: &IndexKey| {
                    let edge = edge_of(key.owner().as_ref(), || key.to_string())?;
                    Ok((key.to_bytes(), edge))
                };
                query.read(knowledge, limit)?.iter().map(item).collect()
            }
        }
    }

    fn position((position, _): &Self::Item) -> Vec<u8> {
        position.clone()
    }

    fn contains(&self, position: &[u8]) -> bool {
        match self {
            RelationshipSection::From(query) => query.contains(position),
            RelationshipSection::To(query) => query.contains(position),
        }
    }

    fn after(self, position: &[u8]) -> Self {
        match self {
            RelationshipSection::From(query) => {
                RelationshipSection::From(query.after_bytes(position))
            }
            RelationshipSection::To(query) => RelationshipSection::To(query.after_bytes(position)),
        }
    }
}

fn sections(ends: &[Endpoint], direction: Direction) -> Vec<RelationshipSection> {
    if ends.is_empty() {
        return vec![RelationshipSection::From(RecordQuery::all(Family::Relationship))];
    }
    let from =
        ends.iter().map(|end| RelationshipSection::From(RecordQuery::relationships_from(end)));
    let to = ends.iter().map(|end| RelationshipSection::To(IndexQuery::relationships_to(end)));
    match direction {
        Direction::Outgoing => from.collect(),
        Direction::Incoming => to.collect(),
        Direction::Both => from.chain(to).collect(),
    }
}

/// Returns the section that a cursor lies in, and the rest of the cursor.
fn begin_at<'c>(sections: &[RelationshipSection], cursor: &'c str) -> Result<(usize, &'c str)> {
    let bad = || crate::ops::conversation::bad_cursor(cursor);
    let (side, rest) = cursor.split_once('-').ok_or_else(bad)?;
    let key = from_hex(rest).ok_or_else(bad)?;
    let here = |section: &RelationshipSection| section.side() == side && section.contains(&key);
    let at = sections.iter().position(here).ok_or_else(bad)?;
    Ok((at, rest))
}

/// Returns a relationship, unless one of its ends is a turn that is not shown, or an entity that is
/// deleted and was not asked for.
fn shown(
    knowledge: &KnowledgeReader<'_>,
    edge: &Edge,
    requested: &[Endpoint],
) -> Result<Option<RelationshipView>> {
    for end in [edge.source, edge.target] {
        let there = match end {
            Endpoint::Turn(turn) => match knowledge.records.find_turn(knowledge.project, &turn)? {
                Some((key, loc)) => matches!(
                    Tree::new(knowledge.records, key).state(loc)?,
                    TurnState::Live | TurnState::Split(_)
                ),
                None => false,
            },
            Endpoint::Entity(id) if !requested.contains(&end) => match knowledge.entity(id)? {
                Some(entity) => knowledge.canonical_entity(entity)?.deleted_at.is_none(),
                None => true,
            },
            Endpoint::Entity(_) | Endpoint::Source(_) => true,
        };
        if !there {
            return Ok(None);
        }
    }
    let record = required(knowledge.relationship(edge)?, || {
        format!("{} of {}", edge.relation, edge.source)
    })?;
    view(knowledge, edge, record).map(Some)
}

fn view(
    knowledge: &KnowledgeReader<'_>,
    edge: &Edge,
    record: RelationshipRecord,
) -> Result<RelationshipView> {
    let kind = |end: Endpoint| -> Result<String> {
        match end {
            Endpoint::Entity(id) => {
                Ok(knowledge.entity(id)?.map_or_else(String::new, |entity| entity.entity_type))
            }
            other => Ok(other.kind().to_owned()),
        }
    };
    let (source_type, target_type) = (kind(edge.source)?, kind(edge.target)?);
    Ok(RelationshipView {
        relation: edge.relation,
        source: edge.source,
        target: edge.target,
        source_type,
        target_type,
        metadata: record.metadata,
        created_at: record.created_at,
        created_by: record.created_by,
        structural: record.structural,
        outcome: None,
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
            "the metadata of a relationship must be an object, not {}",
            other.type_name()
        ))),
    }
}

/// Returns the relationship that a caller names. `made` are the entities of the same call.
pub(super) fn edge_from(
    mutation: &mut Mutation<'_>,
    wanted: &NewRelationship,
    made: &[EntityId],
) -> Result<Edge> {
    let relation = wanted.relation.parse().map_err(invalid)?;
    object_of(&wanted.metadata)?;
    let knowledge = mutation.knowledge();
    let source = endpoint(&knowledge, mutation.call, &wanted.source, made)?;
    let target = endpoint(&knowledge, mutation.call, &wanted.target, made)?;
    if source == target {
        return Err(Error::invalid(
            "something cannot be related to itself; name two different ends",
        ));
    }
    Ok(Edge { relation, source, target })
}

fn endpoint(
    knowledge: &KnowledgeReader<'_>,
    call: &Call,
    end: &End,
    made: &[EntityId],
) -> Result<Endpoint> {
    Ok(match end {
        End::Entity(id) => Endpoint::Entity(knowledge.require_entity(*id)?.id),
        End::Source(id) => Endpoint::Source(knowledge.require_source(*id)?.id),
        End::Turn(reference) => {
            let wanted = TurnRef { conversation: None, turn: reference.clone() };
            let loc = resolve::place(knowledge.records, call, &wanted)?.require_turn()?;
            let turn =
                required(knowledge.records.turn(loc)?, || format!("turn {}", reference.as_str()))?;
            Endpoint::Turn(turn.id)
        }
        End::Conversation(id) => {
            let id = tine_core::ConversationId::from_stored(id.as_str());
            let found = resolve::conversation(knowledge.records, call, &id)?;
            let Some(entity) = knowledge.conversation_entity(&found.id)? else {
                return Err(Error::invalid(format!(
                    "the conversation `{id}` has no entity, because no turn was stored in it with a \
                     `turn_id`; relate one of its turns instead"
                )));
            };
            Endpoint::Entity(entity)
        }
        End::InCall(nth) => {
            let id = made.get(*nth).ok_or_else(|| {
                Error::invalid(format!(
                    "there is no entity {nth} in this call; entities are counted from 0"
                ))
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

#[derive(Serialize, Deserialize)]
pub(super) struct EdgeReceipt {
    #[serde(rename = "key", with = "edge_digits")]
    pub edge: Edge,
    #[serde(rename = "created", with = "views::created")]
    pub outcome: Outcome,
}

/// An edge in receipts: the hexadecimal digits of its bytes.
mod edge_digits {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use tine_core::hash::{from_hex, to_hex};
    use tine_store::Edge;

    pub(super) fn serialize<S: Serializer>(edge: &Edge, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(&edge.to_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Edge, D::Error> {
        let edge = from_hex(&String::deserialize(input)?).and_then(|it| Edge::from_bytes(&it));
        edge.ok_or_else(|| D::Error::custom("expected the digits of an edge"))
    }
}

impl Receipt for EdgeReceipt {}

/// References that are listed when a deletion is refused.
const LISTED: usize = 100;

/// Returns what points at turns from elsewhere, also as the wholes of which they are halves:
/// explicit relationships, and observations that are not versions of the turns' own slots.
///
/// What `own` changes made does not count: it goes with them.
pub(crate) fn references_to(
    mutation: &Mutation<'_>,
    runs: &[SegmentRun],
    own: &[LoggedChange],
) -> Result<Vec<Referrer>> {
    let knowledge = mutation.knowledge();
    if !knowledge.points_at_turns()? {
        return Ok(Vec::new());
    }
    let mut observed = BTreeSet::new();
    let mut related = BTreeSet::new();
    for change in own {
        match change {
            LoggedChange::Observed { id, .. } => {
                observed.insert(*id);
            }
            LoggedChange::Record { key: RecordKey::Relationship(edge), .. } => {
                related.insert(edge.to_bytes());
            }
            _ => {}
        }
    }
    let mut references = Vec::new();
    for turn in with_wholes(&mutation.tree(), runs)? {
        for edge in knowledge.edges_to(&Endpoint::Turn(turn))? {
            let made = knowledge.relationship(&edge)?.is_some_and(|record| !record.structural);
            if made && !related.contains(&edge.to_bytes()) {
                let name = format!("{} {} {}", edge.source, edge.relation, edge.target);
                references.push(Referrer { what: "relationship".to_owned(), name });
            }
        }
        for one in knowledge.about_turn(&turn)? {
            if one.origin != ObservationOrigin::Turn
                && !observed.contains(&one.id)
                && knowledge.is_in_effect(&one)?
            {
                let name = format!("{} of {} {}", one.id, one.entity_type, one.id.entity);
                references.push(Referrer { what: "observation".to_owned(), name });
            }
        }
        if references.len() >= LISTED {
            references.truncate(LISTED);
            break;
        }
    }
    Ok(references)
}

/// Returns the turns of these runs, and the wholes of which they are halves.
fn with_wholes(tree: &Tree<'_>, runs: &[SegmentRun]) -> Result<BTreeSet<TurnId>> {
    let mut found = BTreeSet::new();
    for run in runs {
        for index in run.from..=run.to {
            let mut part = Some(TurnLoc { segment: run.segment, index });
            while let Some(loc) = part {
                found.insert(tree.turn(loc)?.id);
                part = tree.split_with_half(loc)?.map(|split| split.whole);
            }
        }
    }
    Ok(found)
}

impl KnowledgeReader<'_> {
    /// Returns an endpoint and, for an entity, those merged with it.
    fn same_as(&self, end: Endpoint) -> Result<Vec<Endpoint>> {
        let Endpoint::Entity(id) = end else {
            return Ok(vec![end]);
        };
        let same = self.merged_with(self.require_entity(id)?)?;
        Ok(same.into_iter().map(|entity| Endpoint::Entity(entity.id)).collect())
    }

    /// Returns the relationships that start at an end.
    pub(crate) fn edges_from(&self, end: &Endpoint) -> Result<Vec<Edge>> {
        let query = RecordQuery::relationships_from(end);
        let found = self.records.records(self.project, &query, OBSERVATIONS_READ)?;
        found
            .iter()
            .map(|record| edge_of(Some(record.key()), || record.key().to_string()))
            .collect()
    }

    /// Returns the relationships that end at an end.
    pub(crate) fn edges_to(&self, end: &Endpoint) -> Result<Vec<Edge>> {
        let found = self.indexed(&IndexQuery::relationships_to(end))?;
        found.iter().map(|key| edge_of(key.owner().as_ref(), || key.to_string())).collect()
    }

    /// Returns whether anything in the project refers to any turn.
    fn points_at_turns(&self) -> Result<bool> {
        let any = |query: IndexQuery| -> Result<bool> {
            Ok(!self.records.index_keys(self.project, &query, 1)?.is_empty())
        };
        Ok(any(IndexQuery::all(RecordIndex::ObservationOfTurn))?
            || any(IndexQuery::relationships_to_turns())?)
    }
}

fn edge_of(key: Option<&RecordKey>, name: impl FnOnce() -> String) -> Result<Edge> {
    let edge = match key {
        Some(RecordKey::Relationship(edge)) => Some(*edge),
        _ => None,
    };
    Ok(required(edge, name)?)
}

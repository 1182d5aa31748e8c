//! How things hang together.

use std::collections::BTreeSet;

use tine_core::facts::{Endpoint, Origin, Relation};
use tine_core::hash::{from_hex, to_hex};
use tine_core::json::{Json, Object, object};
use tine_core::{EntityId, TurnId};
use tine_store::{EntryKind, KeyRange, TurnLoc, required};

use super::keys::Edge;
use super::ledger::Ledger;
use super::pages::{self, page_range};
use super::record::RelationshipRecord;
use crate::Referrer;
use crate::log::change::{Change, text};
use crate::log::mutation::{Mutation, Receipt};
use crate::tree::resolve;
use crate::tree::shown::{Piece, State, Tree};
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
                Ok(EdgeReceipt { edge, created })
            })?;
        let outcome = Outcome::from_created(receipt.created);
        Ok(self.relationship_of(call, &receipt.edge)?.with_outcome(outcome))
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
            let ends = match end {
                None => Vec::new(),
                Some(end) => ledger.same_as(end)?,
            };
            let mut sections = sections(&ends, query.direction);
            let mut cursor = None;
            if let Some(given) = page.cursor.as_deref() {
                let (at, key) = begin_at(&sections, given)?;
                sections.drain(..at);
                cursor = Some(key);
            }
            let mut items = Vec::new();
            for section in sections {
                let range = page_range(&section.prefix(), cursor.take())?;
                if items.len() == limit {
                    let more = records.entries(&call.project, section.side.kind(), &range, 1)?;
                    if more.is_empty() {
                        continue;
                    }
                    let next = Some(section.side.cursor(&to_hex(&section.prefix())));
                    return Ok(Listing { items, next });
                }
                let left = limit - items.len();
                let listed = pages::page(&ledger, section.side.kind(), range, left, |entry| {
                    let edge = section.side.edge(&entry.key);
                    let edge = required(edge, || "a relationship".to_owned())?;
                    let listed_before = section.side == Side::Target
                        && query.direction == Direction::Both
                        && ends.contains(&edge.source);
                    match listed_before || relation.is_some_and(|it| it != edge.relation) {
                        true => Ok(None),
                        false => shown(&ledger, &edge, &ends),
                    }
                })?;
                items.extend(listed.items);
                if let Some(next) = listed.next {
                    return Ok(Listing { items, next: Some(section.side.cursor(&next)) });
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

/// The relationships at one side of one thing; of everything without it.
struct Section {
    side: Side,
    end: Option<Endpoint>,
}

impl Section {
    fn prefix(&self) -> Vec<u8> {
        self.end.map_or(Vec::new(), |end| end.to_bytes().to_vec())
    }
}

fn sections(ends: &[Endpoint], direction: Direction) -> Vec<Section> {
    if ends.is_empty() {
        return vec![Section { side: Side::Source, end: None }];
    }
    let sides: &[Side] = match direction {
        Direction::Outgoing => &[Side::Source],
        Direction::Incoming => &[Side::Target],
        Direction::Both => &[Side::Source, Side::Target],
    };
    let of_side = |side: &Side| {
        let side = *side;
        ends.iter().map(move |end| Section { side, end: Some(*end) })
    };
    sides.iter().flat_map(of_side).collect()
}

/// The section that a cursor lies in, and the rest of the cursor.
fn begin_at<'c>(sections: &[Section], cursor: &'c str) -> Result<(usize, &'c str)> {
    let bad = || crate::ops::conversation::bad_cursor(cursor);
    let (side, rest) = match cursor.split_once('-') {
        Some(("out", rest)) => (Side::Source, rest),
        Some(("in", rest)) => (Side::Target, rest),
        _ => return Err(bad()),
    };
    let key = from_hex(rest).ok_or_else(bad)?;
    let here = |section: &Section| section.side == side && key.starts_with(&section.prefix());
    let at = sections.iter().position(here).ok_or_else(bad)?;
    Ok((at, rest))
}

/// A relationship, unless one of its ends is a turn that is not shown, or an entity that is
/// deleted and was not asked for.
fn shown(ledger: &Ledger<'_>, edge: &Edge, asked: &[Endpoint]) -> Result<Option<RelationshipView>> {
    for end in [edge.source, edge.target] {
        let there = match end {
            Endpoint::Turn(turn) => match ledger.records.find_turn(ledger.project, &turn)? {
                Some((key, loc)) => matches!(
                    Tree::new(ledger.records, key).state(loc)?,
                    State::Live | State::Split(_)
                ),
                None => false,
            },
            Endpoint::Entity(id) if !asked.contains(&end) => match ledger.entity(id)? {
                Some(entity) => ledger.standing_for(entity)?.deleted_at.is_none(),
                None => true,
            },
            Endpoint::Entity(_) | Endpoint::Source(_) => true,
        };
        if !there {
            return Ok(None);
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
        object([("key", to_hex(&self.edge.key()).into()), ("created", self.created.into())])
    }

    fn from_json(json: &Json) -> Option<Self> {
        let edge = Edge::from_key(&from_hex(json.get("key")?.as_str()?)?)?;
        Some(EdgeReceipt { edge, created: json.get("created")?.as_bool()? })
    }
}

/// References that are listed when a deletion is refused.
const LISTED: usize = 100;

/// What points at turns from elsewhere, also as the wholes of which they are halves:
/// relationships that somebody made, and observations that are no versions of the turns' own
/// slots.
///
/// What `own` changes made does not count: it goes with them.
pub(crate) fn references_to(
    mutation: &Mutation<'_>,
    runs: &[Piece],
    own: &[Change],
) -> Result<Vec<Referrer>> {
    let ledger = mutation.ledger();
    if !ledger.points_at_turns()? {
        return Ok(Vec::new());
    }
    let mut observed = BTreeSet::new();
    let mut related = BTreeSet::new();
    for change in own {
        match change {
            Change::Observed { id, .. } => {
                observed.insert(*id);
            }
            Change::Entry { key, .. } => {
                related.insert(key.as_slice());
            }
            _ => {}
        }
    }
    let mut references = Vec::new();
    for turn in with_wholes(&mutation.tree(), runs)? {
        for key in ledger.under(EntryKind::RelationshipTo, &Endpoint::Turn(turn).to_bytes())? {
            let edge = Edge::from_key_at_target(&key);
            let edge = required(edge, || "a relationship".to_owned())?;
            let made = ledger.relationship(&edge)?.is_some_and(|record| !record.structural);
            if made && !related.contains(edge.key().as_slice()) {
                let name = format!("{} {} {}", edge.source, edge.relation, edge.target);
                references.push(Referrer { what: "relationship".to_owned(), name });
            }
        }
        for one in ledger.about_turn(&turn)? {
            if one.origin != Origin::Turn && !observed.contains(&one.id) && ledger.stands(&one)? {
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

/// The turns of these runs, and the wholes of which they are halves.
fn with_wholes(tree: &Tree<'_>, runs: &[Piece]) -> Result<BTreeSet<TurnId>> {
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

impl Ledger<'_> {
    /// A thing, and where it is an entity those that are the same.
    fn same_as(&self, end: Endpoint) -> Result<Vec<Endpoint>> {
        let Endpoint::Entity(id) = end else {
            return Ok(vec![end]);
        };
        let same = self.merged_with(self.known_entity(id)?)?;
        Ok(same.into_iter().map(|entity| Endpoint::Entity(entity.id)).collect())
    }

    /// Whether anything in the project points at any turn.
    fn points_at_turns(&self) -> Result<bool> {
        let any = |kind, prefix: &[u8]| -> Result<bool> {
            let found = self.records.entries(self.project, kind, &KeyRange::prefix(prefix), 1)?;
            Ok(!found.is_empty())
        };
        let a_turn = Endpoint::Turn(TurnId::from_bytes([0; 16])).to_bytes();
        Ok(any(EntryKind::ObservationOfTurn, &[])? || any(EntryKind::RelationshipTo, &a_turn[..1])?)
    }
}

//! Facts that somebody structured, read from JSON. Unknown members are refused: a misspelt
//! `observed_at` must not become now.

use std::str::FromStr;

use tine_core::facts::observation::span_from;
use tine_core::json::Object;
use tine_core::{Json, Reference};
use tine_engine::{End, NewFact, NewRelationship, StoreFacts};

use crate::failure::{Failure, Result};

/// An object on its way into a request, and where it stands.
struct Members<'j> {
    place: String,
    members: &'j Object,
}

impl<'j> Members<'j> {
    fn of(place: impl Into<String>, json: &'j Json, known: &[&str]) -> Result<Self> {
        let place = place.into();
        let Some(members) = json.as_object() else {
            return Err(Failure::invalid(format!(
                "{place} is an object, not {}",
                json.type_name()
            )));
        };
        if let Some(other) = members.keys().find(|name| !known.contains(name)) {
            return Err(Failure::invalid(format!(
                "{place} has no member `{other}`; there are {}",
                known.join(", ")
            )));
        }
        Ok(Members { place, members })
    }

    fn wrong<T>(&self, name: &str, wants: &str) -> Result<T> {
        Err(Failure::invalid(format!("`{name}` of {} is {wants}", self.place)))
    }

    fn get(&self, name: &str) -> Option<&'j Json> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn list(&self, name: &str) -> Result<&'j [Json]> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Json::Array(items)) => Ok(items),
            Some(_) => self.wrong(name, "an array"),
        }
    }

    fn text(&self, name: &str) -> Result<&'j str> {
        match self.get(name) {
            Some(Json::String(text)) => Ok(text),
            _ => self.wrong(name, "a string, and needed"),
        }
    }

    fn parsed<T: FromStr>(&self, name: &str, wants: &str) -> Result<Option<T>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_str().and_then(|text| text.parse().ok()) {
                Some(parsed) => Ok(Some(parsed)),
                None => self.wrong(name, wants),
            },
        }
    }

    fn integer(&self, name: &str) -> Result<Option<i64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_number().and_then(|number| number.to_string().parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => self.wrong(name, "an integer"),
        }
    }

    fn reference(&self, name: &str) -> Result<Option<Reference>> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(Reference::parse(text)?)),
            Some(_) => self.wrong(name, "a turn: its id, or its hash"),
        }
    }
}

/// A whole store.
pub(crate) fn read(json: &Json) -> Result<StoreFacts> {
    let known = ["entities", "relationships", "source_id", "agent"];
    let members = Members::of("a store of facts", json, &known)?;
    let entities = members.list("entities")?.iter().enumerate();
    let relationships = members.list("relationships")?.iter().enumerate();
    Ok(StoreFacts {
        entities: entities.map(|(nth, it)| fact(nth, it)).collect::<Result<_>>()?,
        relationships: relationships
            .map(|(nth, it)| relationship(nth, it))
            .collect::<Result<_>>()?,
        source: members.parsed("source_id", "a source's id such as src_…")?,
        agent: members.get("agent").cloned().unwrap_or(Json::Null),
    })
}

fn fact(nth: usize, json: &Json) -> Result<NewFact> {
    let known = ["entity_type", "entity_id", "observed_at", "turn", "span"];
    let weights = ["priority", "specificity"];
    let place = format!("entity {nth}");
    let Some(given) = json.as_object() else {
        return Err(Failure::invalid(format!("{place} is an object, not {}", json.type_name())));
    };
    let members = Members { place, members: given };
    // What is said of it stands in `fields`, or, without them, beside everything else.
    let (fields, flat) = match given.get("fields") {
        Some(Json::Object(fields)) => {
            let all = [known.as_slice(), &weights, &["fields"]].concat();
            Members::of(members.place.as_str(), json, &all)?;
            (fields.clone(), false)
        }
        Some(_) => return members.wrong("fields", "an object of names and values"),
        None => (given.clone(), true),
    };
    let is_weight = |name: &str| weights.contains(&name) && members.integer(name).is_ok();
    let fields: Object = match flat {
        false => fields,
        true => fields
            .iter()
            .filter(|(name, _)| !known.contains(name) && !is_weight(name))
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect(),
    };
    // In the flat form a priority that is no number is a field like any other: "high".
    let weight = |name: &str| match members.integer(name) {
        Err(_) if flat => Ok(None),
        found => found,
    };
    let span = match members.get("span") {
        None => None,
        Some(span) => match span_from(span) {
            Some(span) => Some((span.start, span.end)),
            None => return members.wrong("span", "two numbers of bytes, [start, end]"),
        },
    };
    Ok(NewFact {
        entity_type: members.text("entity_type")?.to_owned(),
        entity: members.parsed("entity_id", "an entity's id such as ent_…")?,
        fields,
        observed_at: members.parsed("observed_at", "a time as in RFC 3339")?,
        turn: members.reference("turn")?,
        span,
        priority: weight("priority")?,
        specificity: weight("specificity")?,
    })
}

/// What an end of a relationship can be named by.
const ENDS: [&str; 5] = ["entity_id", "turn_id", "source_id", "conversation_id", "index"];

fn relationship(nth: usize, json: &Json) -> Result<NewRelationship> {
    let ends = ["source", "target"].map(|end| ENDS.map(|id| format!("{end}_{id}"))).concat();
    let mut known = vec!["type", "metadata"];
    known.extend(ends.iter().map(String::as_str));
    let members = Members::of(format!("relationship {nth}"), json, &known)?;
    Ok(NewRelationship {
        relation: members.text("type")?.to_owned(),
        source: end(&members, "source")?,
        target: end(&members, "target")?,
        metadata: members.get("metadata").cloned().unwrap_or(Json::Null),
    })
}

fn end(members: &Members<'_>, which: &str) -> Result<End> {
    let name = |id: &str| format!("{which}_{id}");
    let given: Vec<&str> = ENDS.into_iter().filter(|id| members.get(&name(id)).is_some()).collect();
    let found = match given.as_slice() {
        [id @ "entity_id"] => {
            members.parsed(&name(id), "an entity's id such as ent_…")?.map(End::Entity)
        }
        [id @ "turn_id"] => members.reference(&name(id))?.map(End::Turn),
        [id @ "source_id"] => {
            members.parsed(&name(id), "a source's id such as src_…")?.map(End::Source)
        }
        [id @ "conversation_id"] => Some(End::Conversation(members.text(&name(id))?.to_owned())),
        [id @ "index"] => match members.integer(&name(id))?.map(usize::try_from) {
            Some(Ok(index)) => Some(End::InCall(index)),
            _ => return members.wrong(&name(id), "the place of an entity of this call, from 0"),
        },
        _ => None,
    };
    found.ok_or_else(|| {
        let names = ENDS.map(name).join(", ");
        let place = &members.place;
        Failure::invalid(format!("the {which} of {place} is named by exactly one of {names}"))
    })
}

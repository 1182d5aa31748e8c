//! The facts known at a commit: fields of entities, each a value or an unresolved merge conflict.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{self, Json, Object, object};
use crate::{EntityId, ObservationId};

use super::{map, texts};

/// What one side says of a field, and by which observations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FieldValue")]
pub struct FieldValue {
    /// The value; absent when the field has none.
    #[serde(
        rename = "value",
        with = "json::exact::option",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<serde_json::Value>")]
    pub json: Option<Json>,
    /// The observations that it comes from.
    pub from: Vec<ObservationId>,
}

/// Compares the values alone; the observations they come from do not matter.
impl PartialEq for FieldValue {
    fn eq(&self, other: &FieldValue) -> bool {
        self.json == other.json
    }
}

impl FieldValue {
    /// The absence of a value.
    pub const ABSENT: FieldValue = FieldValue { json: None, from: Vec::new() };
}

/// The values of a field that a merge could not reconcile: `sides` minus `bases`. There is one base
/// fewer than there are sides.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldConflict {
    /// The values of the sides.
    pub sides: Vec<FieldValue>,
    /// The values that the sides changed.
    pub bases: Vec<FieldValue>,
}

/// A field of an entity: a value, or a merge conflict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "FieldStateJson", into = "FieldStateJson")]
pub enum FieldState {
    /// All sides agree, or a rule decided.
    Value(FieldValue),
    /// The sides disagree.
    Conflict(FieldConflict),
}

/// The fields known of one entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// The name of the entity type.
    pub entity_type: String,
    /// The display name.
    pub name: Option<String>,
    /// Fields by name.
    pub fields: BTreeMap<String, FieldState>,
    /// Fields that are sets, which are merged member by member.
    pub sets: BTreeSet<String>,
    /// Fields set by a merge or a conflict resolution rather than by observations on the path.
    pub off_path: BTreeSet<String>,
}

/// The facts known at a commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FactState {
    /// Facts by entity.
    pub facts: BTreeMap<EntityId, Fact>,
}

impl FactState {
    /// Returns a field of an entity, if it is known.
    pub fn field(&self, entity: EntityId, field: &str) -> Option<&FieldState> {
        self.facts.get(&entity)?.fields.get(field)
    }

    /// Returns all unresolved conflicts as (entity, fact, field name, conflict).
    pub fn conflicts(&self) -> impl Iterator<Item = (EntityId, &Fact, &str, &FieldConflict)> {
        self.facts.iter().flat_map(|(id, fact)| {
            fact.fields.iter().filter_map(move |(field, state)| match state {
                FieldState::Conflict(conflict) => Some((*id, fact, field.as_str(), conflict)),
                FieldState::Value(_) => None,
            })
        })
    }

    /// Sets a field, or removes it when `state` is `None`. An entity is removed with its last
    /// field. `about` supplies the type, name and set fields of a new entity.
    pub fn set(&mut self, entity: EntityId, about: &Fact, field: &str, state: Option<FieldState>) {
        match state {
            Some(state) => {
                let fact = self.facts.entry(entity).or_insert_with(|| Fact {
                    entity_type: about.entity_type.clone(),
                    ..Fact::default()
                });
                fact.fields.insert(field.to_owned(), state);
                if about.sets.contains(field) {
                    fact.sets.insert(field.to_owned());
                }
            }
            None => {
                if let Some(fact) = self.facts.get_mut(&entity) {
                    fact.fields.remove(field);
                    fact.sets.remove(field);
                    fact.off_path.remove(field);
                    if fact.fields.is_empty() {
                        self.facts.remove(&entity);
                    }
                }
            }
        }
        if let (Some(fact), Some(name)) = (self.facts.get_mut(&entity), &about.name) {
            fact.name = Some(name.clone());
        }
    }

    /// Copies the off-path fields of the previous commit, except those with an observation since
    /// then, which `is_newer` recognises.
    pub fn carry_off_path(
        &mut self,
        before: &FactState,
        is_newer: impl Fn(&ObservationId) -> bool,
    ) {
        for (entity, fact) in &before.facts {
            for name in &fact.off_path {
                let observed = match self.field(*entity, name) {
                    Some(FieldState::Value(value)) => value.from.iter().any(&is_newer),
                    _ => false,
                };
                if !observed && let Some(state) = fact.fields.get(name) {
                    self.set(*entity, fact, name, Some(state.clone()));
                    self.mark(*entity, name);
                }
            }
        }
    }

    /// Marks the fields that differ from those observed on the path. A field that only the path
    /// has is recorded as a field without a value.
    pub fn mark_off_path(&mut self, path: &FactState) {
        let mut off_path = Vec::new();
        for (entity, fact) in &self.facts {
            let differs = |name: &&String| fact.fields.get(*name) != path.field(*entity, name);
            off_path.extend(fact.fields.keys().filter(differs).map(|name| (*entity, name.clone())));
        }
        for (entity, fact) in &path.facts {
            for name in fact.fields.keys() {
                if self.field(*entity, name).is_none() {
                    self.set(*entity, fact, name, Some(FieldState::Value(FieldValue::ABSENT)));
                    off_path.push((*entity, name.clone()));
                }
            }
        }
        for (entity, name) in off_path {
            self.mark(entity, &name);
        }
    }

    fn mark(&mut self, entity: EntityId, name: &str) {
        if let Some(fact) = self.facts.get_mut(&entity) {
            fact.off_path.insert(name.to_owned());
        }
    }

    /// Returns the JSON forms of facts and conflicts.
    pub(super) fn to_json(&self) -> (Json, Json) {
        let facts = self.facts.iter().map(|(id, fact)| (id.to_string(), fact.to_json()));
        let conflicts = self.conflicts().map(|(id, _, field, conflict)| {
            let sides = |values: &[FieldValue]| {
                Json::Array(values.iter().map(FieldValue::to_json).collect())
            };
            object([
                ("entity_id", id.to_string().into()),
                ("field", field.into()),
                ("sides", sides(&conflict.sides)),
                ("bases", sides(&conflict.bases)),
            ])
        });
        (map(facts), Json::Array(conflicts.collect()))
    }

    pub(super) fn from_json(facts: &Json, conflicts: &Json) -> Option<FactState> {
        let mut state = FactState::default();
        for (id, fact) in facts.as_object()?.iter() {
            state.facts.insert(id.parse().ok()?, Fact::from_json(fact)?);
        }
        for conflict in conflicts.as_array()? {
            let id: EntityId = conflict.get("entity_id")?.as_str()?.parse().ok()?;
            let field = conflict.get("field")?.as_str()?;
            let sides = |name: &str| -> Option<Vec<FieldValue>> {
                conflict.get(name)?.as_array()?.iter().map(FieldValue::from_json).collect()
            };
            let conflict = FieldState::Conflict(FieldConflict {
                sides: sides("sides")?,
                bases: sides("bases")?,
            });
            state.facts.get_mut(&id)?.fields.insert(field.to_owned(), conflict);
        }
        Some(state)
    }
}

impl Fact {
    fn to_json(&self) -> Json {
        let decided = || {
            self.fields.iter().filter_map(|(name, state)| match state {
                FieldState::Value(FieldValue { json: Some(json), from }) => {
                    Some((name.clone(), json, from))
                }
                _ => None,
            })
        };
        let observations = |from: &Vec<ObservationId>| {
            Json::Array(from.iter().map(|id| id.to_string().into()).collect())
        };
        let mut members = Object::new();
        members.insert("entity_type", self.entity_type.as_str().into());
        members.insert("fields", map(decided().map(|(name, json, _)| (name, json.clone()))));
        members.insert("from", map(decided().map(|(name, _, from)| (name, observations(from)))));
        if let Some(name) = &self.name {
            members.insert("name", name.as_str().into());
        }
        for (name, fields) in [("sets", &self.sets), ("brought", &self.off_path)] {
            if !fields.is_empty() {
                members.insert(name, texts(fields));
            }
        }
        Json::Object(members)
    }

    fn from_json(json: &Json) -> Option<Fact> {
        let from = json.get("from")?;
        let mut fields = BTreeMap::new();
        for (name, value) in json.get("fields")?.as_object()?.iter() {
            let from = observations(from.get(name)?)?;
            let state = FieldState::Value(FieldValue { json: Some(value.clone()), from });
            fields.insert(name.to_owned(), state);
        }
        let names = |member: &str| -> Option<BTreeSet<String>> {
            let Some(names) = json.get(member) else {
                return Some(BTreeSet::new());
            };
            names.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned())).collect()
        };
        let off_path = names("brought")?;
        for name in &off_path {
            fields.entry(name.clone()).or_insert(FieldState::Value(FieldValue::ABSENT));
        }
        Some(Fact {
            entity_type: json.get("entity_type")?.as_str()?.to_owned(),
            name: json.get("name").and_then(Json::as_str).map(str::to_owned),
            fields,
            sets: names("sets")?,
            off_path,
        })
    }
}

fn observations(json: &Json) -> Option<Vec<ObservationId>> {
    json.as_array()?.iter().map(|id| id.as_str()?.parse().ok()).collect()
}

impl FieldValue {
    /// Returns the JSON form of one side of a conflict.
    pub fn to_json(&self) -> Json {
        let from = self.from.iter().map(|id| id.to_string().into()).collect();
        let mut members = Object::new();
        members.insert("from", Json::Array(from));
        if let Some(json) = &self.json {
            members.insert("value", json.clone());
        }
        Json::Object(members)
    }

    fn from_json(json: &Json) -> Option<FieldValue> {
        Some(FieldValue {
            json: json.get("value").cloned(),
            from: observations(json.get("from")?)?,
        })
    }
}

/// What is known of a field: a value, or the sides of a conflict.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FieldState")]
struct FieldStateJson {
    /// The value; absent when the field has none, or the sides disagree.
    #[serde(with = "json::exact::option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    value: Option<Json>,
    /// The observations that the value comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    from: Vec<ObservationId>,
    /// The values of the sides of a conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sides: Vec<FieldValue>,
    /// The values that the sides of a conflict changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bases: Vec<FieldValue>,
}

impl From<FieldState> for FieldStateJson {
    fn from(state: FieldState) -> Self {
        let (value, sides, bases) = match state {
            FieldState::Value(value) => (value, Vec::new(), Vec::new()),
            FieldState::Conflict(conflict) => (FieldValue::ABSENT, conflict.sides, conflict.bases),
        };
        FieldStateJson { value: value.json, from: value.from, sides, bases }
    }
}

impl From<FieldStateJson> for FieldState {
    fn from(state: FieldStateJson) -> Self {
        let FieldStateJson { value, from, sides, bases } = state;
        match sides.is_empty() {
            true => FieldState::Value(FieldValue { json: value, from }),
            false => FieldState::Conflict(FieldConflict { sides, bases }),
        }
    }
}

impl JsonSchema for FieldState {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        FieldStateJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FieldStateJson::json_schema(generator)
    }
}

//! What is known at a commit: fields of entities, each a value or a conflict that a merge left.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{self, Json, Object, object};
use crate::{EntityId, ObservationId};

use super::{map, texts};

/// What one side says of a field, and by which observations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FieldValue")]
pub struct Value {
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

/// Values are what they say, whoever said it.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.json == other.json
    }
}

impl Value {
    /// That a field has no value.
    pub const ABSENT: Value = Value { json: None, from: Vec::new() };
}

/// What several sides say of a field when no rule decides between them: `sides` minus `bases`,
/// one base less than there are sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What the sides say.
    pub sides: Vec<Value>,
    /// What the sides changed.
    pub bases: Vec<Value>,
}

/// What is known of one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "FieldState", into = "FieldState")]
pub enum Held {
    /// It is decided.
    Value(Value),
    /// It is not.
    Conflict(Conflict),
}

/// What is known of one entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// Its type.
    pub entity_type: String,
    /// How people call it.
    pub name: Option<String>,
    /// Its fields.
    pub fields: BTreeMap<String, Held>,
    /// Fields that are sets: their members are merged one by one.
    pub sets: BTreeSet<String>,
    /// Fields that a merge or somebody's decision brought, and no turn of the path tells.
    pub brought: BTreeSet<String>,
}

/// What is known at a commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Entity by entity.
    pub facts: BTreeMap<EntityId, Fact>,
}

impl State {
    /// What is known of a field; nothing at all when it is not known.
    pub fn held(&self, entity: EntityId, field: &str) -> Option<&Held> {
        self.facts.get(&entity)?.fields.get(field)
    }

    /// All fields on which sides disagree.
    pub fn conflicts(&self) -> impl Iterator<Item = (EntityId, &Fact, &str, &Conflict)> {
        self.facts.iter().flat_map(|(id, fact)| {
            fact.fields.iter().filter_map(move |(field, held)| match held {
                Held::Conflict(conflict) => Some((*id, fact, field.as_str(), conflict)),
                Held::Value(_) => None,
            })
        })
    }

    /// Sets a field, or takes it away; an entity without fields is not known.
    pub fn set(&mut self, entity: EntityId, about: &Fact, field: &str, held: Option<Held>) {
        match held {
            Some(held) => {
                let fact = self.facts.entry(entity).or_insert_with(|| Fact {
                    entity_type: about.entity_type.clone(),
                    ..Fact::default()
                });
                fact.fields.insert(field.to_owned(), held);
                if about.sets.contains(field) {
                    fact.sets.insert(field.to_owned());
                }
            }
            None => {
                if let Some(fact) = self.facts.get_mut(&entity) {
                    fact.fields.remove(field);
                    fact.sets.remove(field);
                    fact.brought.remove(field);
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

    /// Takes over from the commit before what no path tells of: what merges brought there. A
    /// field that was said anew since then is decided by that.
    pub fn carry(&mut self, before: &State, said_anew: impl Fn(&ObservationId) -> bool) {
        for (entity, fact) in &before.facts {
            for name in &fact.brought {
                let said = match self.held(*entity, name) {
                    Some(Held::Value(value)) => value.from.iter().any(&said_anew),
                    _ => false,
                };
                if !said && let Some(held) = fact.fields.get(name) {
                    self.set(*entity, fact, name, Some(held.clone()));
                    self.mark(*entity, name);
                }
            }
        }
    }

    /// Notes which fields are not what the path tells. A field that the path has and this state
    /// has not is kept as a field without a value.
    pub fn mark_brought(&mut self, path: &State) {
        let mut brought = Vec::new();
        for (entity, fact) in &self.facts {
            let differs = |name: &&String| fact.fields.get(*name) != path.held(*entity, name);
            brought.extend(fact.fields.keys().filter(differs).map(|name| (*entity, name.clone())));
        }
        for (entity, fact) in &path.facts {
            for name in fact.fields.keys() {
                if self.held(*entity, name).is_none() {
                    self.set(*entity, fact, name, Some(Held::Value(Value::ABSENT)));
                    brought.push((*entity, name.clone()));
                }
            }
        }
        for (entity, name) in brought {
            self.mark(entity, &name);
        }
    }

    fn mark(&mut self, entity: EntityId, name: &str) {
        if let Some(fact) = self.facts.get_mut(&entity) {
            fact.brought.insert(name.to_owned());
        }
    }

    /// Facts, and conflicts.
    pub(super) fn to_json(&self) -> (Json, Json) {
        let facts = self.facts.iter().map(|(id, fact)| (id.to_string(), fact.to_json()));
        let conflicts = self.conflicts().map(|(id, _, field, conflict)| {
            let sides = |values: &[Value]| Json::Array(values.iter().map(Value::to_json).collect());
            object([
                ("entity_id", id.to_string().into()),
                ("field", field.into()),
                ("sides", sides(&conflict.sides)),
                ("bases", sides(&conflict.bases)),
            ])
        });
        (map(facts), Json::Array(conflicts.collect()))
    }

    pub(super) fn from_json(facts: &Json, conflicts: &Json) -> Option<State> {
        let mut state = State::default();
        for (id, fact) in facts.as_object()?.iter() {
            state.facts.insert(id.parse().ok()?, Fact::from_json(fact)?);
        }
        for conflict in conflicts.as_array()? {
            let id: EntityId = conflict.get("entity_id")?.as_str()?.parse().ok()?;
            let field = conflict.get("field")?.as_str()?;
            let sides = |name: &str| -> Option<Vec<Value>> {
                conflict.get(name)?.as_array()?.iter().map(Value::from_json).collect()
            };
            let held = Held::Conflict(Conflict { sides: sides("sides")?, bases: sides("bases")? });
            state.facts.get_mut(&id)?.fields.insert(field.to_owned(), held);
        }
        Some(state)
    }
}

impl Fact {
    fn to_json(&self) -> Json {
        let decided = || {
            self.fields.iter().filter_map(|(name, held)| match held {
                Held::Value(Value { json: Some(json), from }) => Some((name.clone(), json, from)),
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
        for (name, fields) in [("sets", &self.sets), ("brought", &self.brought)] {
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
            let held = Held::Value(Value { json: Some(value.clone()), from });
            fields.insert(name.to_owned(), held);
        }
        let names = |member: &str| -> Option<BTreeSet<String>> {
            let Some(names) = json.get(member) else {
                return Some(BTreeSet::new());
            };
            names.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned())).collect()
        };
        let brought = names("brought")?;
        for name in &brought {
            fields.entry(name.clone()).or_insert(Held::Value(Value::ABSENT));
        }
        Some(Fact {
            entity_type: json.get("entity_type")?.as_str()?.to_owned(),
            name: json.get("name").and_then(Json::as_str).map(str::to_owned),
            fields,
            sets: names("sets")?,
            brought,
        })
    }
}

fn observations(json: &Json) -> Option<Vec<ObservationId>> {
    json.as_array()?.iter().map(|id| id.as_str()?.parse().ok()).collect()
}

impl Value {
    /// What a side of a conflict says, and by which observations.
    pub fn to_json(&self) -> Json {
        let from = self.from.iter().map(|id| id.to_string().into()).collect();
        let mut members = Object::new();
        members.insert("from", Json::Array(from));
        if let Some(json) = &self.json {
            members.insert("value", json.clone());
        }
        Json::Object(members)
    }

    fn from_json(json: &Json) -> Option<Value> {
        Some(Value { json: json.get("value").cloned(), from: observations(json.get("from")?)? })
    }
}

/// What is known of a field: a value, or the sides of a conflict.
#[derive(Serialize, Deserialize, JsonSchema)]
struct FieldState {
    /// The value; absent when the field has none, or the sides disagree.
    #[serde(with = "json::exact::option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    value: Option<Json>,
    /// The observations that the value comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    from: Vec<ObservationId>,
    /// The values of the sides of a conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sides: Vec<Value>,
    /// The values that the sides of a conflict changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bases: Vec<Value>,
}

impl From<Held> for FieldState {
    fn from(held: Held) -> Self {
        let (value, sides, bases) = match held {
            Held::Value(value) => (value, Vec::new(), Vec::new()),
            Held::Conflict(conflict) => (Value::ABSENT, conflict.sides, conflict.bases),
        };
        FieldState { value: value.json, from: value.from, sides, bases }
    }
}

impl From<FieldState> for Held {
    fn from(state: FieldState) -> Self {
        let FieldState { value, from, sides, bases } = state;
        match sides.is_empty() {
            true => Held::Value(Value { json: value, from }),
            false => Held::Conflict(Conflict { sides, bases }),
        }
    }
}

impl JsonSchema for Held {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        FieldState::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FieldState::json_schema(generator)
    }
}

//! What sides say of a field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::commit::{Conflict, Held, Value};
use tine_engine as engine;

use crate::view::reading::{self, Unreadable, parse, parse_all};
use crate::view::{Raw, raw, text, texts};
use crate::wire::given;

/// What one side says of a field.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldValue {
    /// The value; not there when the field has none.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<Raw>,
    /// The observations that it comes from.
    pub from: Vec<String>,
}

impl From<Value> for FieldValue {
    fn from(value: Value) -> Self {
        FieldValue { value: value.json.as_ref().map(raw), from: texts(value.from) }
    }
}

impl TryFrom<FieldValue> for Value {
    type Error = Unreadable;

    fn try_from(view: FieldValue) -> Result<Self, Unreadable> {
        let json = view.value.as_ref().map(|value| reading::json("value", value));
        Ok(Value { json: json.transpose()?, from: parse_all("from", view.from)? })
    }
}

/// What is known of a field: a value, or the sides of a conflict.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldState {
    /// The value; not there when the field has none, or sides disagree.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<Raw>,
    /// The observations that the value comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// What the sides of a conflict say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<FieldValue>,
    /// What the sides of a conflict changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<FieldValue>,
}

impl From<Held> for FieldState {
    fn from(held: Held) -> Self {
        match held {
            Held::Value(value) => {
                let FieldValue { value, from } = value.into();
                FieldState { value, from, sides: Vec::new(), bases: Vec::new() }
            }
            Held::Conflict(conflict) => FieldState {
                value: None,
                from: Vec::new(),
                sides: conflict.sides.into_iter().map(FieldValue::from).collect(),
                bases: conflict.bases.into_iter().map(FieldValue::from).collect(),
            },
        }
    }
}

impl TryFrom<FieldState> for Held {
    type Error = Unreadable;

    fn try_from(view: FieldState) -> Result<Self, Unreadable> {
        if view.sides.is_empty() {
            let value = FieldValue { value: view.value, from: view.from };
            return Ok(Held::Value(value.try_into()?));
        }
        Ok(Held::Conflict(conflict(view.sides, view.bases)?))
    }
}

fn conflict(sides: Vec<FieldValue>, bases: Vec<FieldValue>) -> Result<Conflict, Unreadable> {
    Ok(Conflict { sides: reading::each(sides)?, bases: reading::each(bases)? })
}

/// A field that is not the same on two sides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// The entity.
    pub entity_id: String,
    /// Its type.
    pub entity_type: String,
    /// How people call it.
    pub name: Option<String>,
    /// The field.
    pub field: String,
    /// What the one side says; `null` for nothing.
    pub from: Option<FieldState>,
    /// What the other side says; `null` for nothing.
    pub to: Option<FieldState>,
}

impl From<engine::FieldChange> for FieldChange {
    fn from(change: engine::FieldChange) -> Self {
        FieldChange {
            entity_id: text(change.entity),
            entity_type: change.entity_type,
            name: change.name,
            field: change.field,
            from: change.from.map(FieldState::from),
            to: change.to.map(FieldState::from),
        }
    }
}

impl TryFrom<FieldChange> for engine::FieldChange {
    type Error = Unreadable;

    fn try_from(view: FieldChange) -> Result<Self, Unreadable> {
        Ok(engine::FieldChange {
            entity: parse("entity_id", &view.entity_id)?,
            entity_type: view.entity_type,
            name: view.name,
            field: view.field,
            from: view.from.map(Held::try_from).transpose()?,
            to: view.to.map(Held::try_from).transpose()?,
        })
    }
}

/// A field on which sides disagree.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldConflict {
    /// The entity.
    pub entity_id: String,
    /// Its type.
    pub entity_type: String,
    /// How people call it.
    pub name: Option<String>,
    /// The field.
    pub field: String,
    /// What the sides say; a decision counts them from 1.
    pub sides: Vec<FieldValue>,
    /// What the sides changed.
    pub bases: Vec<FieldValue>,
}

impl From<engine::FieldConflict> for FieldConflict {
    fn from(found: engine::FieldConflict) -> Self {
        let Conflict { sides, bases } = found.conflict;
        FieldConflict {
            entity_id: text(found.entity),
            entity_type: found.entity_type,
            name: found.name,
            field: found.field,
            sides: sides.into_iter().map(FieldValue::from).collect(),
            bases: bases.into_iter().map(FieldValue::from).collect(),
        }
    }
}

impl TryFrom<FieldConflict> for engine::FieldConflict {
    type Error = Unreadable;

    fn try_from(view: FieldConflict) -> Result<Self, Unreadable> {
        Ok(engine::FieldConflict {
            entity: parse("entity_id", &view.entity_id)?,
            entity_type: view.entity_type,
            name: view.name,
            field: view.field,
            conflict: conflict(view.sides, view.bases)?,
        })
    }
}

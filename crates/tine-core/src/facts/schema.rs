//! Schemas of entity types: fields, identity, and which of several values wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::json::{Json, Object, object};

/// The longest name of a type or a field.
pub const NAME_BYTES: usize = 64;

/// The most fields that a schema may have.
pub const MAX_FIELDS: usize = 256;

/// A type of entity, in one version. A version never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EntitySchema")]
pub struct Schema {
    /// The type.
    pub entity_type: String,
    /// Counts from 1; 0 is the schema of an unregistered type.
    pub version: u32,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// Its fields.
    pub fields: BTreeMap<String, Field>,
    /// Fields that together say which one it is, the most important first. Empty: every
    /// statement without an id is about a new one.
    pub identity: Vec<String>,
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SchemaField")]
pub struct Field {
    /// What it holds.
    pub kind: FieldKind,
    /// Which of several statements counts.
    pub strategy: Strategy,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// Words.
    Text,
    /// A name: compared without regard to case and spaces.
    Name,
    /// A key: compared byte for byte.
    Key,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A day, `2025-03-14`, or a moment in RFC 3339. It shows on the timeline.
    Date,
    /// An address on the web.
    Url,
    /// Several values.
    List,
    /// Anything.
    Any,
}

/// Which of several observed values of a field wins. Later means by observed time, then by
/// sequence; a correction always wins over other observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The last.
    LastWrite,
    /// The one of highest priority; of several the last.
    HighestPriority,
    /// The most specific one; of several the last.
    MostSpecific,
    /// All of them, as a sorted set.
    MergedSet,
}

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SchemaError {
    /// What is wrong and what would be right.
    pub why: String,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, SchemaError> {
    Err(SchemaError { why: why.into() })
}

macro_rules! names {
    ($kind:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $kind {
            /// Returns the name in a schema.
            pub fn as_str(self) -> &'static str {
                match self { $($kind::$variant => $name),* }
            }

            /// Returns the value with this name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some($kind::$variant),)* _ => None }
            }

            /// All names, for messages.
            pub const NAMES: &'static [&'static str] = &[$($name),*];
        }
    };
}

names!(FieldKind {
    Text = "text",
    Name = "name",
    Key = "key",
    Number = "number",
    Boolean = "boolean",
    Date = "date",
    Url = "url",
    List = "list",
    Any = "any",
});

names!(Strategy {
    LastWrite = "last_write",
    HighestPriority = "highest_priority",
    MostSpecific = "most_specific",
    MergedSet = "merged_set",
});

impl FieldKind {
    /// Returns whether a field of this kind accepts a value. All accept `null`, which clears it.
    pub fn admits(self, value: &Json) -> bool {
        match (self, value) {
            (_, Json::Null) | (FieldKind::Any, _) => true,
            (FieldKind::Number, Json::Number(_))
            | (FieldKind::Boolean, Json::Bool(_))
            | (FieldKind::List, Json::Array(_)) => true,
            (FieldKind::Date, Json::String(text)) => is_date(text),
            (
                FieldKind::Text | FieldKind::Name | FieldKind::Key | FieldKind::Url,
                Json::String(_),
            ) => true,
            _ => false,
        }
    }

    /// Describes what a field of this kind accepts, for error messages.
    pub fn wants(self) -> &'static str {
        match self {
            FieldKind::Text | FieldKind::Name | FieldKind::Key => "a string",
            FieldKind::Number => "a number",
            FieldKind::Boolean => "true or false",
            FieldKind::Date => "a date such as 2025-03-14 or 2025-03-14T09:30:00Z",
            FieldKind::Url => "an address such as https://example.org",
            FieldKind::List => "an array",
            FieldKind::Any => "anything",
        }
    }
}

/// Returns the instant of a date; for a day, its start.
pub fn moment(text: &str) -> Option<crate::Timestamp> {
    if is_day(text) { format!("{text}T00:00:00Z").parse().ok() } else { text.parse().ok() }
}

fn is_date(text: &str) -> bool {
    moment(text).is_some()
}

fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Checks the name of a type or of a field: lower case, digits and underscores.
pub fn check_name(what: &str, name: &str) -> Result<(), SchemaError> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !begins || name.len() > NAME_BYTES || !name.bytes().all(good) {
        return wrong(format!(
            "`{name}` cannot be the name of {what}: it takes up to {NAME_BYTES} lower-case \
             letters, digits and underscores, a letter first"
        ));
    }
    Ok(())
}

impl Schema {
    /// Returns the schema of an unregistered type: it accepts every field and identifies entities
    /// by `name`, if present.
    pub fn open(entity_type: &str) -> Schema {
        Schema {
            entity_type: entity_type.to_owned(),
            version: 0,
            description: None,
            fields: BTreeMap::new(),
            identity: vec!["name".to_owned()],
        }
    }

    /// Returns whether a field is declared. An open schema declares all.
    pub fn declares(&self, field: &str) -> bool {
        self.version == 0 || self.fields.contains_key(field)
    }

    /// Returns the strategy of a field; the default is the last write.
    pub fn strategy(&self, field: &str) -> Strategy {
        self.fields.get(field).map_or(Strategy::LastWrite, |field| field.strategy)
    }

    /// Returns the first field whose value does not match its declared kind.
    pub fn misfit<'f>(&self, fields: &'f Object) -> Option<(&'f str, FieldKind)> {
        fields.iter().find_map(|(name, value)| {
            let kind = self.fields.get(name)?.kind;
            (!kind.admits(value)).then_some((name, kind))
        })
    }

    /// Returns the schema as JSON: `{"entity_type", "version", "fields": {name: {"kind",
    /// "strategy"}}, "identity": […], "description"}`.
    pub fn to_json(&self) -> Json {
        let field = |(name, field): (&String, &Field)| {
            let form = object([
                ("kind", field.kind.as_str().into()),
                ("strategy", field.strategy.as_str().into()),
            ]);
            (name.clone(), form)
        };
        let identity = self.identity.iter().map(|name| name.as_str().into()).collect();
        object([
            ("entity_type", self.entity_type.as_str().into()),
            ("version", self.version.into()),
            ("description", self.description.clone().into()),
            ("fields", Json::Object(self.fields.iter().map(field).collect())),
            ("identity", Json::Array(identity)),
        ])
    }

    /// Reads and checks a schema. `version` may be missing; a field may be just the name of its
    /// kind.
    pub fn from_json(json: &Json) -> Result<Schema, SchemaError> {
        let Some(members) = json.as_object() else {
            return wrong("a schema is an object");
        };
        let allowed = ["entity_type", "version", "description", "fields", "identity"];
        if let Some(other) = members.keys().find(|key| !allowed.contains(key)) {
            return wrong(format!("a schema has no member `{other}`, only {}", allowed.join(", ")));
        }
        let Some(entity_type) = json.get("entity_type").and_then(Json::as_str) else {
            return wrong("a schema needs an `entity_type`, a string");
        };
        check_name("a type", entity_type)?;
        let version = match json.get("version") {
            None | Some(Json::Null) => 0,
            Some(version) => match version.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(version) => version,
                None => return wrong("the `version` of a schema counts from 1"),
            },
        };
        let Some(declared) = json.get("fields").and_then(Json::as_object) else {
            return wrong("a schema needs `fields`, an object of names and kinds");
        };
        if declared.len() > MAX_FIELDS {
            return wrong(format!("a schema has at most {MAX_FIELDS} fields"));
        }
        let mut fields = BTreeMap::new();
        for (name, form) in declared.iter() {
            check_name("a field", name)?;
            fields.insert(name.to_owned(), field(name, form)?);
        }
        let identity = match json.get("identity") {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::Array(names)) => names
                .iter()
                .map(|name| match name.as_str() {
                    Some(name) if fields.contains_key(name) => Ok(name.to_owned()),
                    _ => wrong(format!("`identity` names {name}, which is not among the fields")),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return wrong("`identity` is an array of names of fields"),
        };
        let description = match json.get("description") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => Some(text.clone()),
            Some(_) => return wrong("the `description` of a schema is a string"),
        };
        Ok(Schema { entity_type: entity_type.to_owned(), version, description, fields, identity })
    }
}

fn field(name: &str, form: &Json) -> Result<Field, SchemaError> {
    let read = |member: &str| match form {
        Json::String(kind) => Ok((member == "kind").then_some(kind.as_str())),
        Json::Object(members) => {
            if let Some(other) = members.keys().find(|key| !["kind", "strategy"].contains(key)) {
                return wrong(format!("the field `{name}` has `{other}`; it takes kind, strategy"));
            }
            match members.get(member) {
                None => Ok(None),
                Some(Json::String(text)) => Ok(Some(text.as_str())),
                Some(_) => wrong(format!("the {member} of the field `{name}` is a string")),
            }
        }
        _ => wrong(format!("the field `{name}` is a kind, or an object with kind and strategy")),
    };
    let kind = match read("kind")? {
        None => FieldKind::Any,
        Some(text) => match FieldKind::parse(text) {
            Some(kind) => kind,
            None => {
                let names = FieldKind::NAMES.join(", ");
                return wrong(format!(
                    "the field `{name}` has the kind `{text}`; there are {names}"
                ));
            }
        },
    };
    let strategy = match read("strategy")? {
        None if kind == FieldKind::List => Strategy::MergedSet,
        None => Strategy::LastWrite,
        Some(text) => match Strategy::parse(text) {
            Some(strategy) => strategy,
            None => {
                let names = Strategy::NAMES.join(", ");
                return wrong(format!(
                    "the field `{name}` has the strategy `{text}`; there are {names}"
                ));
            }
        },
    };
    Ok(Field { kind, strategy })
}

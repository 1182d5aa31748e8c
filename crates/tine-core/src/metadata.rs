//! Metadata of a turn: mutable, and not part of its hash.

use std::collections::BTreeSet;

use crate::ids::{NameError, check_key};
use crate::json::{Json, Object};
use crate::limits::Limits;

/// A turn's metadata. Each of the five keys is a record of its own in the operation log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Provider, model, parameters, usage, client, working folder …
    pub source_info: Option<Json>,
    /// A person's title; stable once set.
    pub title: Option<String>,
    /// A machine's title; shown only while there is no title and no live child.
    pub auto_title: Option<String>,
    /// Labels, sorted.
    pub tags: BTreeSet<String>,
    /// Whatever the caller wants to keep beside the turn.
    pub custom_data: Option<Json>,
}

/// Metadata that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// Not one of the five keys.
    #[error("unknown metadata key `{key}`; own data belongs under `custom_data`")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key holds the wrong type.
    #[error("metadata `{key}` must be {expected}, not {found}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A tag or title that cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// The five keys of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetadataKey {
    /// [`Metadata::source_info`]
    SourceInfo,
    /// [`Metadata::title`]
    Title,
    /// [`Metadata::auto_title`]
    AutoTitle,
    /// [`Metadata::tags`]
    Tags,
    /// [`Metadata::custom_data`]
    CustomData,
}

impl MetadataKey {
    /// Every key.
    pub const ALL: [MetadataKey; 5] = [
        MetadataKey::AutoTitle,
        MetadataKey::CustomData,
        MetadataKey::SourceInfo,
        MetadataKey::Tags,
        MetadataKey::Title,
    ];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            MetadataKey::SourceInfo => "source_info",
            MetadataKey::Title => "title",
            MetadataKey::AutoTitle => "auto_title",
            MetadataKey::Tags => "tags",
            MetadataKey::CustomData => "custom_data",
        }
    }

    /// Returns the key of that name.
    pub fn parse(text: &str) -> Option<Self> {
        MetadataKey::ALL.into_iter().find(|key| key.as_str() == text)
    }
}

impl Metadata {
    /// Returns whether no key is set.
    pub fn is_empty(&self) -> bool {
        *self == Metadata::default()
    }

    /// Reads an object with any of the five keys; `null` means absent.
    pub fn from_json(json: &Json, limits: &Limits) -> Result<Self, MetadataError> {
        let mut metadata = Metadata::default();
        let object = match json {
            Json::Null => return Ok(metadata),
            Json::Object(object) => object,
            other => {
                let (key, expected, found) = ("metadata", "an object", other.type_name());
                return Err(MetadataError::WrongType { key, expected, found });
            }
        };
        for (name, value) in object.iter() {
            let key = MetadataKey::parse(name)
                .ok_or_else(|| MetadataError::UnknownKey { key: name.to_owned() })?;
            metadata.set(key, value.clone(), limits)?;
        }
        Ok(metadata)
    }

    /// Sets one key from its JSON form; `null` clears it.
    pub fn set(
        &mut self,
        key: MetadataKey,
        value: Json,
        limits: &Limits,
    ) -> Result<(), MetadataError> {
        match key {
            MetadataKey::Title => self.title = text(key, value)?,
            MetadataKey::AutoTitle => self.auto_title = text(key, value)?,
            MetadataKey::Tags => self.tags = tags(value, limits)?,
            MetadataKey::SourceInfo => match value {
                Json::Null => self.source_info = None,
                Json::Object(_) => self.source_info = Some(value),
                other => {
                    let (key, expected) = (key.as_str(), "an object");
                    let found = other.type_name();
                    return Err(MetadataError::WrongType { key, expected, found });
                }
            },
            MetadataKey::CustomData => {
                self.custom_data = if value.is_null() { None } else { Some(value) };
            }
        }
        Ok(())
    }

    /// Returns one key in its JSON form; `null` when it is not set.
    pub fn get(&self, key: MetadataKey) -> Json {
        match key {
            MetadataKey::Title => self.title.clone().into(),
            MetadataKey::AutoTitle => self.auto_title.clone().into(),
            MetadataKey::Tags if self.tags.is_empty() => Json::Null,
            MetadataKey::Tags => Json::Array(self.tags.iter().cloned().map(Json::from).collect()),
            MetadataKey::SourceInfo => self.source_info.clone().unwrap_or(Json::Null),
            MetadataKey::CustomData => self.custom_data.clone().unwrap_or(Json::Null),
        }
    }

    /// Returns the keys that are set, as an object.
    pub fn to_json(&self) -> Json {
        let set = MetadataKey::ALL
            .into_iter()
            .map(|key| (key.as_str().to_owned(), self.get(key)))
            .filter(|(_, value)| !value.is_null());
        Json::Object(set.collect::<Object>())
    }
}

fn text(key: MetadataKey, value: Json) -> Result<Option<String>, MetadataError> {
    match value {
        Json::Null => Ok(None),
        Json::String(text) if text.trim().is_empty() => Ok(None),
        Json::String(text) => Ok(Some(text)),
        other => {
            let (key, expected, found) = (key.as_str(), "a string", other.type_name());
            Err(MetadataError::WrongType { key, expected, found })
        }
    }
}

fn tags(value: Json, limits: &Limits) -> Result<BTreeSet<String>, MetadataError> {
    let wrong = |found| {
        let (key, expected) = (MetadataKey::Tags.as_str(), "an array of strings");
        MetadataError::WrongType { key, expected, found }
    };
    let items = match value {
        Json::Null => return Ok(BTreeSet::new()),
        Json::Array(items) => items,
        other => return Err(wrong(other.type_name())),
    };
    let mut tags = BTreeSet::new();
    for item in items {
        let Json::String(tag) = item else {
            return Err(wrong(item.type_name()));
        };
        check_key("tag", &tag, limits)?;
        tags.insert(tag);
    }
    Ok(tags)
}

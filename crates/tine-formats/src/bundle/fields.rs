//! Takes the keys of a record one by one and rejects unknown keys.
//!
//! Ids, hashes and times must be in their canonical spelling: any other spelling would be read as
//! the same record but written as different bytes.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use tine_core::Json;
use tine_core::ids::NameError;
use tine_core::json::Object;

use super::error::Fault;

/// An id, a hash or a time, which has one canonical spelling.
pub(super) trait Canonical: FromStr<Err: Error + Send + Sync + 'static> + Display {}

impl<T: FromStr<Err: Error + Send + Sync + 'static> + Display> Canonical for T {}

/// The keys of one record that have not been taken yet.
pub(super) struct Fields {
    record: &'static str,
    object: Object,
}

impl Fields {
    pub(super) fn new(record: &'static str, object: Object) -> Self {
        Fields { record, object }
    }

    /// Any value; an absent key is an error.
    pub(super) fn any(&mut self, key: &'static str) -> Result<Json, Fault> {
        self.object.remove(key).ok_or(Fault::MissingKey { record: self.record, key })
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<String, Fault> {
        let value = self.any(key)?;
        text(key, value)
    }

    /// Returns a text or an explicit null.
    pub(super) fn text_or_null(&mut self, key: &'static str) -> Result<Option<String>, Fault> {
        match self.any(key)? {
            Json::Null => Ok(None),
            Json::String(text) => Ok(Some(text)),
            other => Err(wrong(key, "a string or null", &other)),
        }
    }

    /// Returns a text whose key is absent when there is none.
    pub(super) fn optional_text(&mut self, key: &'static str) -> Result<Option<String>, Fault> {
        self.object.remove(key).map(|value| text(key, value)).transpose()
    }

    pub(super) fn number(&mut self, key: &'static str) -> Result<u64, Fault> {
        let value = self.any(key)?;
        value.as_u64().ok_or_else(|| wrong(key, "a whole number that is not negative", &value))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, Fault> {
        let value = self.any(key)?;
        value.as_bool().ok_or_else(|| wrong(key, "true or false", &value))
    }

    /// Returns a key that is `true` when it is there at all.
    pub(super) fn mark(&mut self, key: &'static str) -> Result<bool, Fault> {
        match self.object.remove(key) {
            None => Ok(false),
            Some(Json::Bool(true)) => Ok(true),
            Some(other) => Err(wrong(key, "true, or absent", &other)),
        }
    }

    pub(super) fn object(&mut self, key: &'static str) -> Result<Json, Fault> {
        match self.any(key)? {
            object @ Json::Object(_) => Ok(object),
            other => Err(wrong(key, "an object", &other)),
        }
    }

    /// Returns an object taken apart with the same care, whose key is absent when there is none.
    pub(super) fn optional_fields(&mut self, key: &'static str) -> Result<Option<Fields>, Fault> {
        match self.object.remove(key) {
            None => Ok(None),
            Some(Json::Object(object)) => Ok(Some(Fields::new(key, object))),
            Some(other) => Err(wrong(key, "an object", &other)),
        }
    }

    /// Returns an id, a hash or a time.
    pub(super) fn parsed<T: Canonical>(&mut self, key: &'static str) -> Result<T, Fault> {
        let text = self.text(key)?;
        exact(key, text)
    }

    /// Returns an id, a hash or a time, or `None` for an explicit null.
    pub(super) fn parsed_or_null<T: Canonical>(
        &mut self,
        key: &'static str,
    ) -> Result<Option<T>, Fault> {
        self.text_or_null(key)?.map(|text| exact(key, text)).transpose()
    }

    /// Returns an id, a hash or a time, or `None` when the key is absent.
    pub(super) fn optional<T: Canonical>(&mut self, key: &'static str) -> Result<Option<T>, Fault> {
        self.optional_text(key)?.map(|text| exact(key, text)).transpose()
    }

    /// Returns a name that is checked by its constructor.
    pub(super) fn named<T>(
        &mut self,
        key: &'static str,
        check: impl FnOnce(String) -> Result<T, NameError>,
    ) -> Result<T, Fault> {
        check(self.text(key)?).map_err(|error| name_fault(key, error))
    }

    /// Checks that no key is left.
    pub(super) fn finish(self) -> Result<(), Fault> {
        match self.object.keys().next() {
            None => Ok(()),
            Some(key) => Err(Fault::UnknownKey { record: self.record, key: key.to_owned() }),
        }
    }
}

/// Returns a value that a key cannot hold.
pub(super) fn value_fault(
    key: &'static str,
    too_large: bool,
    source: impl Error + Send + Sync + 'static,
) -> Fault {
    Fault::Value { key, too_large, source: Box::new(source) }
}

pub(super) fn name_fault(key: &'static str, error: NameError) -> Fault {
    value_fault(key, error.is_too_long(), error)
}

pub(super) fn wrong(key: &'static str, expected: &'static str, found: &Json) -> Fault {
    Fault::WrongType { key, expected, found: found.type_name() }
}

fn text(key: &'static str, value: Json) -> Result<String, Fault> {
    match value {
        Json::String(text) => Ok(text),
        other => Err(wrong(key, "a string", &other)),
    }
}

fn exact<T: Canonical>(key: &'static str, given: String) -> Result<T, Fault> {
    let value: T = given.parse().map_err(|error| value_fault(key, false, error))?;
    let canonical = value.to_string();
    if canonical != given {
        return Err(Fault::Spelling { key, given, canonical });
    }
    Ok(value)
}

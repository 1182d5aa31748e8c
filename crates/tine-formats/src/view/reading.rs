//! Reading the forms back: texts become ids, hashes and times again, bytes become JSON.

use std::fmt::Display;
use std::str::FromStr;

use tine_core::json::{self, Json};
use tine_core::{Limits, Metadata, Role, Status};
use tine_engine as engine;

use super::Raw;

/// An answer that does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer's `{field}` cannot be read: {why}")]
pub struct Unreadable {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl Unreadable {
    pub(super) fn new(field: &'static str, why: impl Display) -> Self {
        Unreadable { field, why: why.to_string() }
    }
}

pub(super) fn parse<T: FromStr<Err: Display>>(
    field: &'static str,
    text: &str,
) -> Result<T, Unreadable> {
    text.parse().map_err(|error| Unreadable::new(field, error))
}

pub(super) fn parse_option<T: FromStr<Err: Display>>(
    field: &'static str,
    text: Option<String>,
) -> Result<Option<T>, Unreadable> {
    text.map(|text| parse(field, &text)).transpose()
}

pub(super) fn parse_all<T: FromStr<Err: Display>>(
    field: &'static str,
    texts: Vec<String>,
) -> Result<Vec<T>, Unreadable> {
    texts.iter().map(|text| parse(field, text)).collect()
}

/// Every item of a list.
pub(super) fn each<T, U: TryFrom<T, Error = Unreadable>>(
    items: Vec<T>,
) -> Result<Vec<U>, Unreadable> {
    items.into_iter().map(U::try_from).collect()
}

/// A number of things, as this machine counts.
pub(super) fn count(field: &'static str, number: u64) -> Result<usize, Unreadable> {
    usize::try_from(number).map_err(|error| Unreadable::new(field, error))
}

/// Free-form data, read by the strict reader: no digit is lost.
pub(super) fn json(field: &'static str, raw: &Raw) -> Result<Json, Unreadable> {
    json::parse(raw.get().as_bytes(), json::MAX_DEPTH)
        .map_err(|error| Unreadable::new(field, error))
}

pub(super) fn metadata(raw: &Raw) -> Result<Metadata, Unreadable> {
    // It was checked against the limits when it was stored.
    Metadata::from_json(&json("metadata", raw)?, &Limits::STORED)
        .map_err(|error| Unreadable::new("metadata", error))
}

pub(super) fn role(text: &str) -> Result<Role, Unreadable> {
    parse("role", text)
}

pub(super) fn status(text: &str) -> Result<Status, Unreadable> {
    let all = [Status::Complete, Status::Partial];
    named("status", text, all, Status::as_str)
}

pub(super) fn presence(text: &str) -> Result<engine::Presence, Unreadable> {
    use engine::Presence::{Deleted, Live, Split};
    named("presence", text, [Live, Deleted, Split], super::presence)
}

pub(super) fn outcome(text: Option<&str>) -> Result<engine::Outcome, Unreadable> {
    use engine::Outcome::{Created, Reused};
    named("outcome", text.unwrap_or_default(), [Created, Reused], super::outcome_name)
}

/// The value of this name.
fn named<T: Copy, const N: usize>(
    field: &'static str,
    text: &str,
    all: [T; N],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Unreadable> {
    let found = all.into_iter().find(|value| name(*value) == text);
    found.ok_or_else(|| Unreadable::new(field, format!("`{text}` is unknown")))
}

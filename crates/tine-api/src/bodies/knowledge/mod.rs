//! Bodies about what was learned, and turns of hosts that track no branches.

mod entity;
mod relation;
mod run;
mod source;
mod turn;

use crate::{self as api, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::Timestamp;
use tine_core::json::{Json, Object};
use tine_core::{Limits, facts};

pub use entity::*;
pub use relation::*;
pub use run::*;
pub use source::*;
pub use turn::*;

use crate::bodies::FreeForm;

/// Whether a store is followed by an interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interpret {
    /// No.
    None,
    /// Later, in the background.
    Queue,
    /// At once; the answer comes when it is done.
    Wait,
}

impl From<Interpret> for api::Interpret {
    fn from(wanted: Interpret) -> Self {
        match wanted {
            Interpret::None => api::Interpret::None,
            Interpret::Queue => api::Interpret::Queue,
            Interpret::Wait => api::Interpret::Wait,
        }
    }
}

impl From<api::Interpret> for Interpret {
    fn from(wanted: api::Interpret) -> Self {
        match wanted {
            api::Interpret::None => Interpret::None,
            api::Interpret::Queue => Interpret::Queue,
            api::Interpret::Wait => Interpret::Wait,
        }
    }
}

impl Interpret {
    /// Its name on every wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Interpret::None => "none",
            Interpret::Queue => "queue",
            Interpret::Wait => "wait",
        }
    }
}

/// A moment, or the first one of a day.
pub fn moment(what: &str, text: &str) -> Result<Timestamp> {
    facts::schema::moment(text).ok_or_else(|| {
        Error::invalid(format!(
            "`{what}` is `{text}`; it takes a time such as 2025-03-14T09:30:00Z or a day such as \
             2025-03-14"
        ))
    })
}

fn time(what: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let read =
        |text: &str| text.parse().map_err(|error| Error::invalid(format!("`{what}`: {error}")));
    text.map(read).transpose()
}

fn id<T: std::str::FromStr<Err: Into<Error>>>(text: &str) -> Result<T> {
    text.parse().map_err(Into::into)
}

fn ids<T: std::str::FromStr<Err: Into<Error>>>(texts: &[String]) -> Result<Vec<T>> {
    texts.iter().map(|text| id(text)).collect()
}

/// An object, as free-form members are given.
fn object(what: &str, given: FreeForm, limits: &Limits) -> Result<Object> {
    match given.within(limits)? {
        Json::Object(members) => Ok(members),
        other => Err(Error::invalid(format!("`{what}` is an object, not {}", other.type_name()))),
    }
}

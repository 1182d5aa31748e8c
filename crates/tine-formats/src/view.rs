//! The engine's answers as JSON: the one shape that the command line, HTTP and MCP share.
//!
//! Invariants:
//!
//! - Field names are those of the contract (`turn_id`, `turn_hash`, `parent_turn_hash` …); ids,
//!   hashes and times are strings in their wire form.
//! - `content`, `config` and all free-form data are passed on as canonical bytes, never through
//!   a JSON value that could round a number.
//! - What a record always has is always there, with an explicit `null` where it is empty
//!   (`parent_id` of a first turn). What only some records have is left out elsewhere
//!   (`tool_call_id`, `edited_from`, `outcome`).
//! - An answer carries its project once, at the top: see [`Answer`].
//! - Every answer can be read back: what a form becomes in a client (`TryFrom`) is what the
//!   engine said (`From`), value for value. A form that cannot be read is [`Unreadable`]. Only an
//!   [`Outline`] is for pages alone.
//!
//! Deliberately absent: status codes and headers (the surfaces' business), and how a path is
//! rendered for providers (see [`crate::render`]).

pub mod bytes;
mod care;
mod change;
mod conversation;
mod error;
mod history;
mod learned;
mod outline;
mod reading;
mod rendering;
mod search;
mod sync;
mod tree;
mod turn;
mod version;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tine_core::{Json, ProjectId};
use tine_engine as engine;

pub use care::*;
pub use change::*;
pub use conversation::*;
pub use error::*;
pub use history::*;
pub use learned::*;
pub use outline::{Mark, Outline, Tip};
pub use reading::Unreadable;
pub use rendering::*;
pub use search::*;
pub use sync::*;
pub use tree::*;
pub use turn::*;
pub use version::*;

/// JSON that is passed on byte for byte.
pub type Raw = Box<RawValue>;

/// A value in its canonical bytes.
pub fn raw(json: &Json) -> Raw {
    raw_text(json.to_canonical())
}

fn raw_text(canonical: String) -> Raw {
    RawValue::from_string(canonical).expect("canonical JSON is JSON")
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

/// Any answer, with the project that the call was made in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Answer")]
pub struct Answer<T> {
    /// The project.
    pub project_id: String,
    /// The fields of the answer itself.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Answer<T> {
    /// An answer in a project.
    pub fn new(project: &ProjectId, body: T) -> Self {
        Answer { project_id: text(project), body }
    }
}

/// An answer whose own first field comes before the project: what a caller has to pass back.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Answer")]
pub struct Leading<T> {
    /// The fields of the answer itself.
    #[serde(flatten)]
    pub body: T,
    /// The project.
    pub project_id: String,
}

impl<T> Leading<T> {
    /// An answer in a project.
    pub fn new(project: &ProjectId, body: T) -> Self {
        Leading { body, project_id: text(project) }
    }
}

/// A list, with the way to the next page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct Items<T> {
    /// This page's items.
    pub items: Vec<T>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

impl<T> Items<T> {
    /// A whole list.
    pub fn all(items: Vec<T>) -> Self {
        Items { items, next: None }
    }
}

impl<T> Items<T> {
    /// The same list with items of another type, which may be unreadable.
    pub fn try_map<U, E>(
        self,
        read: impl FnMut(T) -> Result<U, E>,
    ) -> Result<engine::Listing<U>, E> {
        let items = self.items.into_iter().map(read).collect::<Result<_, E>>()?;
        Ok(engine::Listing { items, next: self.next })
    }
}

impl<S, T: From<S>> From<engine::Listing<S>> for Items<T> {
    fn from(listing: engine::Listing<S>) -> Self {
        Items { items: listing.items.into_iter().map(T::from).collect(), next: listing.next }
    }
}

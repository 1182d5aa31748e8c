//! Tine's API: what callers ask for and get, why they are refused, and how all of it is written as
//! JSON.
//!
//! - [`Operations`], [`Knowledge`] and [`Versions`]: every operation, implemented by an engine in
//!   this process and by a client of a server.
//! - Requests and answers are plain types that derive their JSON form; where the form differs
//!   from the type, a private `…Json` struct beside it is the form.
//! - [`bodies`]: reading requests, and the fields that all bodies share.
//! - [`Error`]: a kind, a sentence, and details for programs.
//!
//! Invariants of the JSON forms:
//!
//! - Field names are those of the contract (`turn_id`, `turn_hash`, `parent_turn_hash` …); ids,
//!   hashes and times are strings.
//! - `content`, `config` and all free-form data are exact: no number is rounded on the way out or
//!   in.
//! - A field that a record always has is always present, `null` where it is empty (`parent_id` of
//!   a first turn). A field that only some records have is otherwise left out (`tool_call_id`,
//!   `edited_from`, `outcome`).
//! - An answer names its project once, at the top: see [`Answer`].
//!
//! There is no storage, no runtime and no rule of the tree here.

/// Gives a type the schema of its JSON form.
macro_rules! schema_of {
    ($type:ty, $form:ty) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$form as schemars::JsonSchema>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$form as schemars::JsonSchema>::json_schema(generator)
            }
        }
    };
}
pub(crate) use schema_of;

pub mod bodies;
mod call;
mod changes;
mod conversations;
mod error;
mod knowledge;
mod log;
mod operations;
mod outline;
mod reading;
mod search;
mod stats;
mod sync;
mod turns;
mod usage;
mod versions;

pub use call::*;
pub use changes::*;
pub use conversations::*;
pub use error::*;
pub use knowledge::*;
pub use log::*;
pub use operations::{Knowledge, Operations, Versions};
pub use outline::*;
pub use reading::*;
pub use search::*;
pub use stats::*;
pub use sync::*;
pub use turns::*;
pub use usage::*;
pub use versions::*;

//! The routes, one file for each sort of record.

mod bookmarks;
mod branches;
mod care;
mod commits;
mod comparing;
mod conversations;
mod demo;
mod entities;
mod interpretations;
mod models;
mod operations;
mod relationships;
mod search;
mod sources;
mod store;
pub(crate) mod sync;
mod turns;
mod visited;

use std::str::FromStr;
use tine_api::{Answer, Listing};

use schemars::JsonSchema;
use serde::Deserialize;
use tine_core::{ConversationId, Limits, Name, Reference};
use tine_engine::{Page, TurnRef};

use crate::problem::Problem;
use crate::route::{Asked, Parameters, Routes};

/// A page of a list.
pub(crate) type List<T> = Answer<Listing<T>>;

/// Every route under `/api/v1`.
pub(crate) fn routes() -> Routes {
    let routes = conversations::routes(Routes::new());
    let routes = demo::routes(routes);
    let routes = visited::routes(routes);
    let routes = turns::routes(routes);
    let routes = branches::routes(routes);
    let routes = bookmarks::routes(routes);
    let routes = commits::routes(routes);
    let routes = comparing::routes(routes);
    let routes = operations::routes(routes);
    let routes = models::routes(routes);
    let routes = search::routes(routes);
    let routes = store::routes(routes);
    let routes = sync::routes(routes);
    let routes = sources::routes(routes);
    let routes = interpretations::routes(routes);
    let routes = entities::routes(routes);
    let routes = relationships::routes(routes);
    care::routes(routes)
}

/// Declares the parameters of a route; a project can be named in all of them.
macro_rules! parameters {
    ($name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$meta])* pub(crate) $field: $type,)*
            /// The project; `default` without it.
            #[serde(default)]
            pub(crate) project_id: Option<String>,
        }

        impl $crate::route::Parameters for $name {
            fn project_id(&self) -> Option<&str> {
                self.project_id.as_deref()
            }
        }
    };
}
pub(crate) use parameters;

parameters!(OnlyProject {});

parameters!(Listed {
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Rows in a page.
    limit: Option<u64>,
});

impl Listed {
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        page(self.cursor.clone(), self.limit)
    }
}

/// No parameters at all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nowhere {}

impl Parameters for Nowhere {
    const IN_PROJECT: bool = false;
}

pub(crate) fn page(cursor: Option<String>, limit: Option<u64>) -> Result<Page, Problem> {
    let limit = limit.map(|limit| tine_api::bodies::size("the limit", limit)).transpose()?;
    Ok(Page { cursor, limit })
}

pub(crate) fn conversation(id: &str, limits: &Limits) -> Result<ConversationId, Problem> {
    Ok(ConversationId::new(id, limits).map_err(tine_engine::Error::from)?)
}

pub(crate) fn name(text: &str, limits: &Limits) -> Result<Name, Problem> {
    Ok(Name::new(text, limits).map_err(tine_engine::Error::from)?)
}

pub(crate) fn reference(text: &str) -> Result<Reference, Problem> {
    Ok(Reference::parse(text).map_err(tine_engine::Error::from)?)
}

/// An id of what was learned.
pub(crate) fn id<T: FromStr<Err: Into<tine_engine::Error>>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| Problem::from(error.into()))
}

/// A turn by its name, in a conversation where names need one.
pub(crate) fn turn(asked: &Asked, text: &str, within: Option<&str>) -> Result<TurnRef, Problem> {
    let conversation = within.map(|id| conversation(id, asked.engine().limits())).transpose()?;
    Ok(TurnRef { conversation, turn: reference(text)? })
}

/// An answer with its project.
pub(crate) fn answer<T>(asked: &Asked, body: T) -> Answer<T> {
    Answer::new(asked.project(), body)
}

//! The routes, one file for each kind of record.

mod bookmarks;
mod branches;
mod commits;
mod compare;
mod conversations;
mod demo;
mod entities;
mod interpretations;
mod maintenance;
mod models;
mod operations;
mod relationships;
mod search;
mod sources;
mod store;
pub(crate) mod sync;
mod turns;
mod visited;

use schemars::JsonSchema;
use serde::Deserialize;
use tine_api::{Answer, Listing};

use crate::route::{Parameters, Routes};

/// A page of a list, with its project.
pub(crate) type List<T> = Answer<Listing<T>>;

/// Returns every route under `/api/v1`.
pub(crate) fn routes() -> Routes {
    [
        conversations::routes,
        demo::routes,
        visited::routes,
        turns::routes,
        branches::routes,
        bookmarks::routes,
        commits::routes,
        compare::routes,
        operations::routes,
        models::routes,
        search::routes,
        store::routes,
        sync::routes,
        sources::routes,
        interpretations::routes,
        entities::routes,
        relationships::routes,
        maintenance::routes,
    ]
    .into_iter()
    .fold(Routes::new(), |routes, add| add(routes))
}

/// Declares the parameters of a route. All of them can name a project; `paged` ones also have a
/// cursor and a limit.
macro_rules! parameters {
    (paged $name:ident { $($fields:tt)* }) => {
        $crate::api::parameters!($name {
            $($fields)*
            /// The `next` cursor of the previous page.
            cursor: Option<String>,
            /// The maximum number of items to return.
            #[schemars(with = "Option<u64>")]
            limit: Option<usize>,
        });

        impl $name {
            /// Returns which page is requested.
            pub(crate) fn page(&self) -> tine_api::Page {
                tine_api::Page { cursor: self.cursor.clone(), limit: self.limit }
            }
        }
    };
    ($name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$meta])* pub(crate) $field: $type,)*
            /// The project; `default` by default.
            pub(crate) project_id: Option<tine_core::ProjectId>,
        }

        impl $crate::route::Parameters for $name {
            fn project_id(&self) -> Option<&tine_core::ProjectId> {
                self.project_id.as_ref()
            }
        }
    };
}
pub(crate) use parameters;

parameters!(ProjectQuery {});
parameters!(paged PageQuery {});

parameters!(ConversationPath {
    /// The conversation.
    conversation_id: tine_core::ConversationId,
});

parameters!(BranchPath {
    /// The conversation.
    conversation_id: tine_core::ConversationId,
    /// The branch, by name or id.
    branch: String,
});

parameters!(SourcePath {
    /// The id of the source.
    source: tine_core::SourceId,
});

/// The parameters of a route that belongs to no project.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

impl Parameters for NoParameters {
    const IN_PROJECT: bool = false;
}

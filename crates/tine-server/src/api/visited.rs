//! The leaves that the caller last viewed.

use std::collections::BTreeMap;

use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use tine_api::{Answer, bodies};
use tine_core::{ConversationId, ErrorKind, TurnId};

use super::ConversationPath;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes};
use crate::visited::VisitedKey;

const PATH: &str = "/api/v1/conversations/{conversation_id}/visited";

/// The leaves that the caller last viewed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Visited")]
struct VisitedLeaves {
    /// The conversation.
    conversation_id: ConversationId,
    /// Maps the id of a turn to the id of the leaf last viewed below it; the empty key stands for
    /// the root.
    leaves: BTreeMap<String, String>,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new("Conversations", id, summary);
    routes
        .get(PATH, about("getVisited", "Retrieve the leaves that the caller last viewed"), get)
        .route(
            Method::PUT,
            PATH,
            about("putVisited", "Update the last viewed leaves; not recorded in any log")
                .body_required(),
            put,
        )
}

fn get(context: &RequestContext, path: ConversationPath) -> ApiResult<Answer<VisitedLeaves>> {
    update(context, path, BTreeMap::new())
}

fn put(
    context: &RequestContext,
    path: ConversationPath,
    body: bodies::Visited,
) -> ApiResult<Answer<VisitedLeaves>> {
    let is_turn = |id: &String| id.parse::<TurnId>().is_ok();
    for (turn, leaf) in &body.leaves {
        if !(turn.is_empty() || is_turn(turn)) || !leaf.as_ref().is_none_or(is_turn) {
            let why = "`leaves` must map turn ids, or the empty key for the root, to turn ids";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    }
    update(context, path, body.leaves)
}

fn update(
    context: &RequestContext,
    path: ConversationPath,
    changed: BTreeMap<String, Option<String>>,
) -> ApiResult<Answer<VisitedLeaves>> {
    let conversation_id = path.conversation_id;
    context.engine().conversation(&context.call, &conversation_id)?;
    let who = context.caller.name();
    let key = VisitedKey {
        who: who.as_deref(),
        project: context.project(),
        conversation: &conversation_id,
    };
    let leaves = match changed.is_empty() {
        true => context.app.visited.get(&key)?,
        false => context.app.visited.put(&key, changed)?,
    };
    context.ok(VisitedLeaves { conversation_id, leaves })
}

//! Where somebody was last in a conversation.

use std::collections::BTreeMap;
use tine_api::Answer;

use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use tine_api::bodies;
use tine_core::{ErrorKind, TurnId};

use super::{answer, conversation, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};
use crate::visited::Where;

const PATH: &str = "/api/v1/conversations/{conversation_id}/visited";

parameters!(One {
    /// The conversation.
    conversation_id: String,
});

/// Where somebody was last.
#[derive(Debug, Serialize, JsonSchema)]
struct Visited {
    /// The conversation.
    conversation_id: String,
    /// The leaf that was looked at last below each turn; below the empty name, of all.
    leaves: BTreeMap<String, String>,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new("Conversations", id, summary);
    routes.get(PATH, about("getVisited", "The leaves that the caller looked at last"), get).route(
        Method::PUT,
        PATH,
        about("putVisited", "Note leaves that the caller looks at; in no log").body_required(),
        put,
    )
}

fn get(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<Visited>> {
    note(asked, &path, BTreeMap::new())
}

fn put(asked: &Asked, path: One, body: bodies::Visited) -> Answered<Answer<Visited>> {
    let is_turn = |id: &String| id.parse::<TurnId>().is_ok();
    for (place, leaf) in &body.leaves {
        if !(place.is_empty() || is_turn(place)) || !leaf.as_ref().is_none_or(is_turn) {
            let why = "`leaves` has the id of a turn, or nothing for all, before the id of a leaf";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    }
    note(asked, &path, body.leaves)
}

fn note(
    asked: &Asked,
    path: &One,
    changed: BTreeMap<String, Option<String>>,
) -> Answered<Answer<Visited>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    asked.engine().conversation(&asked.call, &id)?;
    let who = asked.caller.name();
    let at = Where { who: who.as_deref(), project: asked.project(), conversation: &id };
    let leaves = match changed.is_empty() {
        true => asked.app.visited.get(&at)?,
        false => asked.app.visited.put(&at, changed)?,
    };
    Ok(Reply::ok(answer(asked, Visited { conversation_id: id.to_string(), leaves })))
}

//! The example, for whoever has nothing to look at yet.

use crate::demo::Untold;
use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, ConversationView};
use tine_core::{ConversationId, ErrorKind};
use tine_formats::bundle::read_bundle;

use super::{OnlyProject, answer};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{Answered, Asked, Reply, Routes};

pub(super) fn routes(routes: Routes) -> Routes {
    let about = "Load the example: branches, tools, commits, facts; or find it";
    let about = Operation::new("Conversations", "loadDemo", about).also(&[201]);
    routes.route(Method::POST, "/api/v1/demo", about, load)
}

fn load(asked: &Asked, _: OnlyProject, _: bodies::Nothing) -> Answered<Answer<ConversationView>> {
    let (engine, call) = (asked.engine(), &asked.call);
    let id = ConversationId::from_stored(crate::demo::CONVERSATION);
    let new = match engine.conversation(call, &id) {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let bundle = crate::demo::bundle(asked.project()).map_err(|why| match why {
                Untold::Engine(error) => Problem::from(error),
                Untold::Bundle(error) => Problem::from(error),
            })?;
            read_bundle(engine, Some(asked.project()), &mut bundle.as_slice())?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Reply::made(new, answer(asked, engine.conversation(call, &id)?)))
}

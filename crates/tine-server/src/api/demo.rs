//! The example conversation, for an empty store.

use axum::http::Method;
use tine_api::bodies::Nothing;
use tine_api::{Answer, ConversationView};
use tine_core::{ConversationId, ErrorKind};
use tine_formats::bundle::read_bundle;

use super::ProjectQuery;
use crate::demo::DemoError;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes};

pub(super) fn routes(routes: Routes) -> Routes {
    let about = "Create the example conversation, or return the existing one";
    let about = Operation::new("Conversations", "loadDemo", about).also(&[201]);
    routes.route(Method::POST, "/api/v1/demo", about, load)
}

fn load(
    context: &RequestContext,
    _: ProjectQuery,
    _: Nothing,
) -> ApiResult<Answer<ConversationView>> {
    let (engine, call) = (context.engine(), &context.call);
    let id = ConversationId::from_stored(crate::demo::CONVERSATION);
    let new = match engine.conversation(call, &id) {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let bundle = crate::demo::bundle(context.project()).map_err(|why| match why {
                DemoError::Engine(error) => Problem::from(error),
                DemoError::Bundle(error) => Problem::from(error),
            })?;
            read_bundle(engine, Some(context.project()), &mut bundle.as_slice())?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    context.made(new, engine.conversation(call, &id)?)
}

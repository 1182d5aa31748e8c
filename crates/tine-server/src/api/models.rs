//! Models, and their replies in progress.

use schemars::JsonSchema;
use serde::Serialize;
use tine_api::{Answer, Listing};
use tine_core::{ErrorKind, TurnId};

use super::{List, NoParameters, ProjectQuery, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, Reply, RequestContext, Routes};
use crate::running_replies::RunningReply;

const TAG: &str = "Models";

parameters!(ReplyPath {
    /// The id of the turn that the reply becomes.
    turn: String,
});

/// A model that can reply.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// The configured name, which requests use.
    name: String,
    /// The provider; `tine` for built-in models.
    provider: String,
    /// The provider's name of the model.
    model: String,
    /// Whether this is the default model.
    default: bool,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/models", about("listModels", "List the configured models"), list)
        .get("/api/v1/replies", about("listReplies", "List replies in progress"), replies)
        .delete(
            "/api/v1/replies/{turn}",
            about("stopReply", "Stop a reply; the text so far is kept"),
            stop,
        )
}

fn list(context: &RequestContext, _: NoParameters) -> ApiResult<Listing<Model>> {
    let models = context.app.options.models.iter().enumerate();
    let models = models.map(|(at, (name, model))| Model {
        name: name.clone(),
        provider: model.provider().to_owned(),
        model: model.name().to_owned(),
        default: at == 0,
    });
    Ok(Reply::ok(Listing::all(models.collect())))
}

fn replies(context: &RequestContext, _: ProjectQuery) -> ApiResult<List<RunningReply>> {
    context.list(context.app.replies.of(context.project()))
}

fn stop(context: &RequestContext, path: ReplyPath) -> ApiResult<Answer<RunningReply>> {
    let turn: Option<TurnId> = path.turn.parse().ok();
    let stopped = turn.and_then(|turn| context.app.replies.stop(context.project(), turn));
    context.ok(stopped.ok_or_else(|| {
        let why = format!("there is no reply in progress with the turn id {}", path.turn);
        Problem::new(ErrorKind::NotFound, why)
    })?)
}

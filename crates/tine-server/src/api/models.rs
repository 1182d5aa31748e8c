//! Models that answer, and answers that are being given.

use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use tine_api::{Answer, Listing};
use tine_core::{ErrorKind, TurnId};

use super::{List, Nowhere, OnlyProject, answer, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::replies::InWork;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Models";

parameters!(One {
    /// The turn that the answer becomes.
    turn: String,
});

/// A model that answers.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// The name by which it is asked for.
    name: String,
    /// The name of its provider; `tine` is built in.
    provider: String,
    /// What its provider calls it.
    model: String,
    /// Whether it answers where none is named.
    default: bool,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(
            "/api/v1/models",
            about("listModels", "Models that answer; none where none is configured"),
            list,
        )
        .get("/api/v1/replies", about("listReplies", "Answers that are being given"), replies)
        .route(
            Method::DELETE,
            "/api/v1/replies/{turn}",
            about("stopReply", "End an answer; what was said until then is kept"),
            stop,
        )
}

fn list(asked: &Asked, _: Nowhere, _: NoBody) -> Answered<Listing<Model>> {
    let models = asked.app.options.models.iter().enumerate();
    let models = models.map(|(at, (name, model))| Model {
        name: name.clone(),
        provider: model.provider().to_owned(),
        model: model.name().to_owned(),
        default: at == 0,
    });
    Ok(Reply::ok(Listing::all(models.collect())))
}

fn replies(asked: &Asked, _: OnlyProject, _: NoBody) -> Answered<List<InWork>> {
    Ok(Reply::ok(answer(asked, Listing::all(asked.app.replies.of(asked.project())))))
}

fn stop(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<InWork>> {
    let turn: Option<TurnId> = path.turn.parse().ok();
    let stopped = turn.and_then(|turn| asked.app.replies.stop(asked.project(), turn));
    let stopped = stopped.ok_or_else(|| {
        let why = format!("no answer is being given as the turn {}", path.turn);
        Problem::new(ErrorKind::NotFound, why)
    })?;
    Ok(Reply::ok(answer(asked, stopped)))
}

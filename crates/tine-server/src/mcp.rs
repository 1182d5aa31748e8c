//! Serves the Model Context Protocol at `/mcp`, with the access checks of every route.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use tine_engine::Engine;
use tine_mcp::{AccessScope, McpHttp, McpOptions, McpServer};

use crate::access::{Access, Caller};
use crate::app::{App, Options};
use crate::problem::Problem;
use crate::route;

/// Returns the handler of an engine. It never reads files by their paths.
pub(crate) fn handler(engine: &Engine, options: &Options) -> McpHttp {
    let server = McpServer::new(
        engine.clone(),
        McpOptions {
            actor: options.actor.clone(),
            redact: options.redact,
            ..McpOptions::default()
        },
    );
    McpHttp::new(server, engine.limits().body_bytes)
}

/// Answers any method of `/mcp`.
pub(crate) async fn answer(State(app): State<Arc<App>>, request: Request) -> Response {
    match forward(&app, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn forward(app: &Arc<App>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
    let claimed = parts.headers.get("x-tine-actor").and_then(|actor| actor.to_str().ok());
    let claimed = claimed.filter(|actor| !actor.is_empty()).map(str::to_owned);
    let still_valid = {
        let (app, caller) = (Arc::clone(app), caller.clone());
        Arc::new(move || app.tokens.still_admit(app.options.token_rule, &caller))
    };
    parts.extensions.insert(AccessScope {
        // A caller with a token is always recorded under the name of the token.
        actor: caller.name().or(claimed),
        project: caller.only_project(),
        write: caller.check_write(Access::Write).is_ok(),
        still_valid: Some(still_valid),
    });
    let (bytes, permit) = match parts.method {
        Method::POST => {
            let (bytes, permit) = route::read_body(app, &parts.headers, body).await?;
            (bytes, Some(permit))
        }
        _ => (Bytes::new(), None),
    };
    let response = app.mcp.answer(Request::from_parts(parts, bytes)).await;
    drop(permit);
    Ok(response.map(Body::new).into_response())
}

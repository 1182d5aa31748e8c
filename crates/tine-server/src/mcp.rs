//! `/mcp`: the tools for agents, behind the checks that every route has.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use tine_engine::Engine;
use tine_mcp::{Http, Reach, Tine};

use crate::access::{Access, Caller};
use crate::app::{App, Options};
use crate::problem::Problem;
use crate::route;

/// The handler for an engine. Files are never read by their paths here.
pub(crate) fn handler(engine: &Engine, options: &Options) -> Http {
    let tine = Tine::new(
        engine.clone(),
        tine_mcp::Options {
            actor: options.actor.clone(),
            redact: options.redact,
            ..tine_mcp::Options::default()
        },
    );
    Http::new(tine, engine.limits().body_bytes)
}

/// Any method of `/mcp`.
pub(crate) async fn answer(State(app): State<Arc<App>>, request: Request) -> Response {
    match handed_on(&app, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn handed_on(app: &Arc<App>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
    let claimed = parts.headers.get("x-tine-actor").and_then(|actor| actor.to_str().ok());
    let claimed = claimed.filter(|actor| !actor.is_empty()).map(str::to_owned);
    let still = {
        let (app, caller) = (Arc::clone(app), caller.clone());
        Arc::new(move || app.tokens.still_admit(app.options.token_rule, &caller))
    };
    parts.extensions.insert(Reach {
        // Whoever has a token is recorded under its name and no other.
        actor: caller.name().or(claimed),
        project: caller.only_project(),
        write: caller.check_write(Access::Write).is_ok(),
        still: Some(still),
    });
    let (bytes, room) = match parts.method {
        Method::POST => {
            let (bytes, room) = route::read_body(app, &parts.headers, body).await?;
            (bytes, Some(room))
        }
        _ => (Bytes::new(), None),
    };
    let response = app.mcp.answer(Request::from_parts(parts, bytes)).await;
    drop(room);
    Ok(response.map(Body::new).into_response())
}

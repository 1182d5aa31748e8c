//! Runs of interpreters over sources.

use std::time::{Duration, Instant};

use axum::http::Method;
use tine_api::bodies::{InterpretSource, Nothing};
use tine_api::{
    Answer, InterpretationView, Listing, Prompt, QueueStatus, Reinterpret, RunComparison, RunPair,
    RunQuery,
};
use tine_core::{Digest, ErrorKind, InterpretationId, SourceId};

use super::{List, ProjectQuery, SourcePath, parameters};
use crate::access::Access;
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{ApiResult, Reply, RequestContext, Routes};

const TAG: &str = "Interpretations";

/// How long a read-only caller waits for a run that others perform.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How often such a caller's request checks the run.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Additional parts of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "WithBytes")]
pub(crate) enum RunDetail {
    /// The bytes of the request to the model and of its response.
    Bytes,
}

parameters!(RunQueryParameters {
    /// The id of the run.
    interpretation: InterpretationId,
    /// Additional parts to include in the answer.
    include: Option<RunDetail>,
    /// Whether to answer only once the run has ended.
    wait: Option<bool>,
});

parameters!(RunPath {
    /// The id of the run.
    interpretation: InterpretationId,
});

parameters!(RunComparisonQuery {
    /// The id of the earlier run.
    interpretation: InterpretationId,
    /// The id of the later run.
    with: InterpretationId,
});

parameters!(paged RunsQuery {
    /// Only runs that are queued or running.
    open: Option<bool>,
});

parameters!(paged SourceRunsQuery {
    /// The id of the source.
    source: SourceId,
    /// Only runs that are queued or running.
    open: Option<bool>,
});

parameters!(PromptPath {
    /// The hash of the prompt, as runs name it.
    hash: Digest,
});

const RUN: &[Link] = &[Link {
    to: "getInterpretation",
    parameter: "interpretation",
    from: "$response.body#/interpretation_id",
}];

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(
            "/api/v1/interpretations",
            about("listInterpretations", "List runs, in the order in which they were requested"),
            list,
        )
        .route(
            Method::POST,
            "/api/v1/interpretations",
            about("reinterpret", "Interpret sources again; earlier runs are kept")
                .also(&[201])
                .body_required()
                .example(r#"{"mime_type": "text/plain", "failed": true}"#),
            reinterpret,
        )
        .get(
            "/api/v1/interpretations/queue",
            about("getInterpretationQueue", "Retrieve the queue and the available interpreters"),
            queue,
        )
        .get(
            "/api/v1/interpretations/{interpretation}",
            about("getInterpretation", "Retrieve a run"),
            get,
        )
        .route(
            Method::POST,
            "/api/v1/interpretations/{interpretation}/retry",
            about("retryInterpretation", "Retry a failed run").also(&[201]).links(RUN),
            retry,
        )
        .get(
            "/api/v1/interpretations/{interpretation}/compare",
            about("compareInterpretations", "Compare the findings of two runs"),
            compare,
        )
        .get(
            "/api/v1/sources/{source}/interpretations",
            about("listSourceInterpretations", "List the runs over a source"),
            of_source,
        )
        .route(
            Method::POST,
            "/api/v1/sources/{source}/interpretations",
            about("interpretSource", "Interpret a source again; earlier runs are kept")
                .also(&[201])
                .example(r#"{"interpreter": "rules", "wait": true}"#)
                .links(RUN),
            interpret,
        )
        .get("/api/v1/prompts/{hash}", about("getPrompt", "Retrieve a prompt by its hash"), prompt)
}

fn list(context: &RequestContext, query: RunsQuery) -> ApiResult<List<InterpretationView>> {
    let wanted = RunQuery { source: None, open: query.open.unwrap_or(false) };
    context.ok(context.engine().interpretations(&context.call, wanted, query.page())?)
}

fn of_source(
    context: &RequestContext,
    query: SourceRunsQuery,
) -> ApiResult<List<InterpretationView>> {
    let wanted = RunQuery { source: Some(query.source), open: query.open.unwrap_or(false) };
    context.ok(context.engine().interpretations(&context.call, wanted, query.page())?)
}

fn reinterpret(
    context: &RequestContext,
    _: ProjectQuery,
    request: Reinterpret,
) -> ApiResult<List<InterpretationView>> {
    let _permit = context.wait_permit(request.wait)?;
    let made = context.engine().reinterpret(&context.call, request)?;
    context.app.bell.ring();
    context.made(!made.is_empty(), Listing::all(made))
}

fn interpret(
    context: &RequestContext,
    path: SourcePath,
    body: InterpretSource,
) -> ApiResult<Answer<InterpretationView>> {
    let request = body.into_request(path.source);
    let _permit = context.wait_permit(request.wait)?;
    let made = context.engine().reinterpret(&context.call, request)?.pop();
    context.app.bell.ring();
    let made = made.ok_or_else(|| Problem::new(ErrorKind::Internal, "the run was not queued"))?;
    context.created(made)
}

fn queue(context: &RequestContext, _: ProjectQuery) -> ApiResult<Answer<QueueStatus>> {
    context.ok(context.engine().interpretation_queue(&context.call)?)
}

fn get(
    context: &RequestContext,
    query: RunQueryParameters,
) -> ApiResult<Answer<InterpretationView>> {
    let run = query.interpretation;
    let found = match query.wait.unwrap_or(false) {
        true => ended(context, run)?,
        false => context.engine().interpretation(&context.call, run)?,
    };
    context.ok(match query.include {
        Some(RunDetail::Bytes) => found,
        None => found.without_bytes(),
    })
}

/// Waits until a run has ended. Callers who may write perform it meanwhile.
fn ended(context: &RequestContext, run: InterpretationId) -> Result<InterpretationView, Problem> {
    let engine = context.engine();
    let _permit = context.wait_permit(true)?;
    if context.caller.check_write(Access::Write).is_ok() {
        return Ok(engine.await_interpretation(&context.call, run)?);
    }
    let since = Instant::now();
    loop {
        let found = engine.interpretation(&context.call, run)?;
        if !found.status.is_open() {
            return Ok(found);
        }
        if since.elapsed() > LONGEST_WAIT || *context.app.stopping.borrow() {
            let why = format!("{run} is still running; try again later");
            return Err(Problem::new(ErrorKind::Busy, why));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn retry(
    context: &RequestContext,
    path: RunPath,
    _: Nothing,
) -> ApiResult<Answer<InterpretationView>> {
    let made = context.engine().retry_interpretation(&context.call, path.interpretation)?;
    context.app.bell.ring();
    context.created(made.without_bytes())
}

fn compare(
    context: &RequestContext,
    query: RunComparisonQuery,
) -> ApiResult<Answer<RunComparison>> {
    let pair = RunPair { before: query.interpretation, after: query.with };
    context.ok(context.engine().compare_interpretations(&context.call, pair)?)
}

fn prompt(context: &RequestContext, path: PromptPath) -> ApiResult<Answer<Prompt>> {
    let prompt = context.engine().prompt(&context.call, path.hash)?;
    Ok(Reply::ok(context.answer(Prompt { prompt_hash: path.hash.to_hex(), prompt })))
}

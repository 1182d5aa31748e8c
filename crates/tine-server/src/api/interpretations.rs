//! Runs of interpreters over sources.

use std::time::{Duration, Instant};
use tine_api::{Answer, Listing, Prompt, QueueStatus, RunComparison};

use axum::http::Method;
use tine_api::bodies;
use tine_core::{Digest, ErrorKind, InterpretationId, SourceId};
use tine_engine::{InterpretationView, RunPair, RunQuery};

use super::{List, OnlyProject, answer, id, page, parameters};
use crate::access::Access;
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Interpretations";

/// How long somebody who may not do a run waits for those who do.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How often such a one looks.
const LOOK: Duration = Duration::from_millis(50);

/// What an answer holds besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WithBytes {
    /// The bytes of request and response.
    Bytes,
}

parameters!(One {
    /// The run's id.
    interpretation: String,
    /// What the answer holds besides.
    include: Option<WithBytes>,
    /// Whether the answer comes when the run has ended.
    wait: Option<bool>,
});

parameters!(Named {
    /// The run's id.
    interpretation: String,
});

parameters!(Compared {
    /// The earlier run's id.
    interpretation: String,
    /// The later run's id.
    with: String,
});

parameters!(All {
    /// Only those that wait or work.
    open: Option<bool>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Runs in a page.
    limit: Option<u64>,
});

parameters!(OfSource {
    /// The source's id.
    source: String,
    /// Only those that wait or work.
    open: Option<bool>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Runs in a page.
    limit: Option<u64>,
});

parameters!(Over {
    /// The source's id.
    source: String,
});

parameters!(PromptNamed {
    /// The prompt's hash, as runs name it.
    hash: String,
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
            about("listInterpretations", "Runs in the order in which they were asked for"),
            list,
        )
        .route(
            Method::POST,
            "/api/v1/interpretations",
            about("reinterpret", "Read sources again; old runs stay")
                .also(&[201])
                .body_required()
                .example(r#"{"mime_type": "text/plain", "failed": true}"#),
            reinterpret,
        )
        .get(
            "/api/v1/interpretations/queue",
            about("getInterpretationQueue", "What waits and works, and who can be asked"),
            queue,
        )
        .get("/api/v1/interpretations/{interpretation}", about("getInterpretation", "One run"), get)
        .route(
            Method::POST,
            "/api/v1/interpretations/{interpretation}/retry",
            about("retryInterpretation", "Try a failed run again").also(&[201]).links(RUN),
            retry,
        )
        .get(
            "/api/v1/interpretations/{interpretation}/compare",
            about("compareInterpretations", "How two runs differ in what they found"),
            compare,
        )
        .get(
            "/api/v1/sources/{source}/interpretations",
            about("listSourceInterpretations", "The runs over a source"),
            of_source,
        )
        .route(
            Method::POST,
            "/api/v1/sources/{source}/interpretations",
            about("interpretSource", "Read a source again; old runs stay")
                .also(&[201])
                .example(r#"{"interpreter": "rules", "wait": true}"#)
                .links(RUN),
            interpret,
        )
        .get("/api/v1/prompts/{hash}", about("getPrompt", "A prompt by its hash"), prompt)
}

fn shown(runs: Vec<InterpretationView>) -> Listing<InterpretationView> {
    Listing::all(runs.into_iter().collect())
}

fn list(asked: &Asked, query: All, _: NoBody) -> Answered<List<InterpretationView>> {
    let wanted = RunQuery { source: None, open: query.open.unwrap_or(false) };
    let page = page(query.cursor, query.limit)?;
    let found = asked.engine().interpretations(&asked.call, wanted, page)?;
    Ok(Reply::ok(answer(asked, found)))
}

fn of_source(asked: &Asked, query: OfSource, _: NoBody) -> Answered<List<InterpretationView>> {
    let source: SourceId = id(&query.source)?;
    let wanted = RunQuery { source: Some(source), open: query.open.unwrap_or(false) };
    let page = page(query.cursor, query.limit)?;
    let found = asked.engine().interpretations(&asked.call, wanted, page)?;
    Ok(Reply::ok(answer(asked, found)))
}

fn reinterpret(
    asked: &Asked,
    _: OnlyProject,
    body: bodies::Reinterpret,
) -> Answered<List<InterpretationView>> {
    let request = body.into_request()?;
    let _room = asked.room_to_wait(request.wait)?;
    let made = asked.engine().reinterpret(&asked.call, request)?;
    asked.app.bell.ring();
    Ok(Reply::made(!made.is_empty(), answer(asked, shown(made))))
}

fn interpret(
    asked: &Asked,
    path: Over,
    body: bodies::InterpretSource,
) -> Answered<Answer<InterpretationView>> {
    let request = body.into_request(id(&path.source)?);
    let _room = asked.room_to_wait(request.wait)?;
    let made = asked.engine().reinterpret(&asked.call, request)?.pop();
    asked.app.bell.ring();
    let made = made.ok_or_else(|| Problem::new(ErrorKind::Internal, "the run was not queued"))?;
    Ok(Reply::created(answer(asked, made)))
}

fn queue(asked: &Asked, _: OnlyProject, _: NoBody) -> Answered<Answer<QueueStatus>> {
    Ok(Reply::ok(answer(asked, asked.engine().interpretation_queue(&asked.call)?)))
}

fn get(asked: &Asked, query: One, _: NoBody) -> Answered<Answer<InterpretationView>> {
    let run = id(&query.interpretation)?;
    let found = match query.wait.unwrap_or(false) {
        true => ended(asked, run)?,
        false => asked.engine().interpretation(&asked.call, run)?,
    };
    let told = match query.include {
        Some(WithBytes::Bytes) => found,
        None => InterpretationView::without_bytes(found),
    };
    Ok(Reply::ok(answer(asked, told)))
}

/// A run when it has ended. Only who may change something does it meanwhile.
fn ended(asked: &Asked, run: InterpretationId) -> Result<InterpretationView, Problem> {
    let engine = asked.engine();
    let _room = asked.room_to_wait(true)?;
    if asked.caller.check_write(Access::Write).is_ok() {
        return Ok(engine.await_interpretation(&asked.call, run)?);
    }
    let since = Instant::now();
    loop {
        let found = engine.interpretation(&asked.call, run)?;
        if !found.status.is_open() {
            return Ok(found);
        }
        if since.elapsed() > LONGEST_WAIT || *asked.app.stopping.borrow() {
            return Err(Problem::new(
                ErrorKind::Busy,
                format!("{run} is still at work; ask again"),
            ));
        }
        std::thread::sleep(LOOK);
    }
}

fn retry(asked: &Asked, path: Named, _: bodies::Nothing) -> Answered<Answer<InterpretationView>> {
    let made = asked.engine().retry_interpretation(&asked.call, id(&path.interpretation)?)?;
    asked.app.bell.ring();
    Ok(Reply::created(answer(asked, InterpretationView::without_bytes(made))))
}

fn compare(asked: &Asked, query: Compared, _: NoBody) -> Answered<Answer<RunComparison>> {
    let pair = RunPair { before: id(&query.interpretation)?, after: id(&query.with)? };
    Ok(Reply::ok(answer(asked, asked.engine().compare_interpretations(&asked.call, pair)?)))
}

fn prompt(asked: &Asked, path: PromptNamed, _: NoBody) -> Answered<Answer<Prompt>> {
    let hash: Digest = path.hash.parse().map_err(|error: tine_core::hash::DigestError| {
        Problem::new(ErrorKind::Invalid, error.to_string())
    })?;
    let prompt = asked.engine().prompt(&asked.call, hash)?;
    Ok(Reply::ok(answer(asked, Prompt { prompt_hash: hash.to_hex(), prompt })))
}

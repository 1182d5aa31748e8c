//! Storing: turns of hosts that track no branches, and facts that the caller extracted.

use axum::http::Method;
use tine_api::bodies::{Store, StoreParts};
use tine_api::{
    Answer, Call, Interpret, Leading, NewSource, Outcome, Reinterpret, RunSummary, StoreFacts,
    StoreTurn, StoredFactsAnswer, StoredSource, StoredSourceAnswer, StoredTurnAnswer,
};
use tine_core::{Digest, ErrorKind, Json};
use tine_formats::redact::{self, Redacted};

use super::turns::add;
use super::{ProjectQuery, parameters};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{ApiResult, Reply, RequestContext, Routes, etag};
use crate::sources::redact_source;

const TAG: &str = "Store";

/// Additional parts of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WithTurn {
    /// The turn itself.
    Turn,
}

parameters!(StoreTurnQuery {
    /// Additional parts to include in the answer.
    include: Option<WithTurn>,
});

const STORED: &[Link] = &[
    Link { to: "getTurn", parameter: "turn", from: "$response.body#/turn_id" },
    Link { to: "getEntity", parameter: "entity", from: "$response.body#/entity_id" },
    Link { to: "listObservations", parameter: "entity", from: "$response.body#/entity_id" },
];

const FACTS: &[Link] = &[
    Link { to: "getEntity", parameter: "entity", from: "$response.body#/entities/0/entity_id" },
    Link { to: "correctEntity", parameter: "entity", from: "$response.body#/entities/0/entity_id" },
    Link { to: "getSource", parameter: "source", from: "$response.body#/source/source_id" },
];

const TURN: &str = r#"{"conversation_id": "trip", "turn_id": "1", "role": "user",
    "content": "I met Alice Chen in Tokyo.", "interpret": "queue"}"#;

const STORE: &str = r#"{"entities": [
    {"entity_type": "person", "fields": {"name": "Alice Chen"}},
    {"entity_type": "task", "title": "Call Alice back"}],
    "relationships": [{"type": "REFERS_TO", "source_index": 1, "target_index": 0}]}"#;

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .route(
            Method::POST,
            "/api/v1/store/turn",
            about("storeTurn", "Store a turn of a host that tracks no branches")
                .also(&[201])
                .conditional()
                .body_required()
                .example(TURN)
                .links(STORED),
            store_turn,
        )
        .route(
            Method::POST,
            "/api/v1/store",
            about("store", "Store facts that the caller extracted, a file, or both")
                .also(&[201])
                .body_required()
                .example(STORE)
                .links(FACTS),
            store,
        )
}

fn store_turn(
    context: &RequestContext,
    query: StoreTurnQuery,
    mut request: StoreTurn,
) -> ApiResult<Leading<StoredTurnAnswer>> {
    let with_turn = context.fields.return_turn || query.include == Some(WithTurn::Turn);
    let call = context.redacting(|redacted| {
        add(redacted, redact::messages(std::slice::from_mut(&mut request.message)));
        add(redacted, redact::messages(&mut request.history));
    });
    let _permit = context.wait_permit(request.interpret == Interpret::Wait)?;
    let done = context.engine().store_turn(&call, request)?;
    if done.interpretation.is_some() {
        context.app.bell.ring();
    }
    let tag = etag(&done.branch);
    let new = done.outcome == Outcome::Created && !done.replayed;
    let redacted = call.redacted;
    let answer = StoredTurnAnswer { redacted, ..StoredTurnAnswer::new(done, with_turn) };
    Ok(Reply::made(new, Leading::new(context.project(), answer)).with_etag(tag))
}

/// Returns the call of one step of a store, which is safe to retry if the store is.
fn step(call: &Call, name: &str) -> Call {
    let key = call.idempotency_key.as_ref();
    let idempotency_key = key.map(|key| format!("{name}-{}", Digest::of(key.as_bytes()).to_hex()));
    Call { idempotency_key, ..call.clone() }
}

fn store(
    context: &RequestContext,
    _: ProjectQuery,
    body: Store,
) -> ApiResult<Answer<StoredFactsAnswer>> {
    let engine = context.engine();
    let StoreParts { mut file, mut facts, run } = body.into_parts()?;
    let mut call = context.call.clone();
    if context.app.options.redact {
        if let Some(file) = &mut file {
            add(&mut call.redacted, redact_source(file, engine.limits().body_bytes)?);
        }
        if let Some(facts) = &mut facts {
            redact_facts(facts, &mut call.redacted);
        }
    }
    let waits = |interpret: Interpret| interpret == Interpret::Wait;
    let _permit = context.wait_permit(
        file.as_ref().is_some_and(|file| waits(file.interpret))
            || run.as_ref().is_some_and(|(interpret, _)| waits(*interpret)),
    )?;
    let stored = match file {
        None => None,
        Some(file) => Some(store_file(context, &call, file, facts.is_some())?),
    };
    let redacted = call.redacted.clone();
    let Some(mut facts) = facts else {
        let stored = stored.map(|stored| StoredSourceAnswer::new(stored, false));
        let stored = stored.ok_or_else(|| {
            let why = "there is nothing to store: no entity, no relationship, no file";
            Problem::new(ErrorKind::Invalid, why)
        })?;
        let new = stored.outcome == Outcome::Created && !stored.replayed;
        let answer = StoredFactsAnswer { redacted, ..StoredFactsAnswer::of_file(stored) };
        return context.made(new, answer);
    };
    if let Some(stored) = &stored {
        facts.source = Some(stored.source.id);
    }
    let done = engine.store_facts(&call, facts)?;
    let new = !done.replayed;
    let interpretation = match run {
        None => None,
        Some((interpret, interpreter)) => {
            let (sources, wait) = (vec![done.source.id], waits(interpret));
            let request = Reinterpret { sources, interpreter, wait, ..Reinterpret::default() };
            engine.reinterpret(&step(&context.call, "interpret"), request)?.pop()
        }
    };
    if interpretation.is_some() {
        context.app.bell.ring();
    }
    let answer = StoredFactsAnswer {
        file: stored.map(|stored| StoredSourceAnswer::new(stored, false)),
        interpretation: interpretation.as_ref().map(RunSummary::from),
        redacted,
        ..done.into()
    };
    context.made(new, answer)
}

/// Stores the file of a store, as a step of its own if facts follow.
fn store_file(
    context: &RequestContext,
    call: &Call,
    file: NewSource,
    facts_follow: bool,
) -> Result<StoredSource, Problem> {
    let call = if facts_follow { step(call, "file") } else { call.clone() };
    let stored = context.engine().store_source(&call, file)?;
    if stored.interpretation.is_some() {
        context.app.bell.ring();
    }
    Ok(stored)
}

fn redact_facts(facts: &mut StoreFacts, redacted: &mut Redacted) {
    let mut clean = |json: &mut Json| {
        let (value, found) = redact::value(std::mem::replace(json, Json::Null));
        *json = value;
        add(redacted, found);
    };
    for fact in &mut facts.entities {
        let mut fields = Json::Object(std::mem::take(&mut fact.fields));
        clean(&mut fields);
        if let Json::Object(fields) = fields {
            fact.fields = fields;
        }
    }
    for relationship in &mut facts.relationships {
        clean(&mut relationship.metadata);
    }
    clean(&mut facts.agent);
}

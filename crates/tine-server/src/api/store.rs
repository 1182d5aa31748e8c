//! Storing: turns of hosts that track no branches, and facts that a caller structured itself.

use axum::http::Method;
use tine_api::bodies;
use tine_api::bodies::StoreParts;
use tine_api::{
    Answer, Leading, RunSummary, StoredFactsAnswer, StoredSourceAnswer, StoredTurnAnswer,
};
use tine_core::{Digest, Json};
use tine_engine::{Call, Interpret, NewSource, Outcome, Reinterpret};
use tine_formats::redact::{self, Redacted};

use super::turns::add;
use super::{OnlyProject, answer, parameters};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{Answered, Asked, Reply, Routes, etag};
use crate::sources::scrub;

const TAG: &str = "Store";

/// What an answer holds besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WithTurn {
    /// The turn itself.
    Turn,
}

parameters!(StoreTurnQuery {
    /// What the answer holds besides.
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
            about("store", "Store facts that the caller structured, a file, or both")
                .also(&[201])
                .body_required()
                .example(STORE)
                .links(FACTS),
            store,
        )
}

fn store_turn(
    asked: &Asked,
    query: StoreTurnQuery,
    body: bodies::StoreTurn,
) -> Answered<Leading<StoredTurnAnswer>> {
    let mut body = body;
    let with_turn = body.return_turn || query.include == Some(WithTurn::Turn);
    let mut redacted = bodies::redacted(std::mem::take(&mut body.redacted))?;
    let mut request = body.into_request(asked.engine().limits())?;
    if asked.app.options.redact {
        add(&mut redacted, redact::messages(std::slice::from_mut(&mut request.message)));
        add(&mut redacted, redact::messages(&mut request.history));
    }
    let _room = asked.room_to_wait(request.interpret == Interpret::Wait)?;
    let call = asked.call.clone().with_redacted(redacted.clone());
    let done = asked.engine().store_turn(&call, request)?;
    if done.interpretation.is_some() {
        asked.app.bell.ring();
    }
    let tag = etag(&done.branch);
    let new = done.outcome == Outcome::Created && !done.replayed;
    let told = StoredTurnAnswer { redacted, ..StoredTurnAnswer::new(done, with_turn) };
    Ok(Reply::made(new, Leading::new(asked.project(), told)).with_etag(tag))
}

/// A call for one step of a store, safe to repeat if the store is.
fn step(call: &Call, name: &str) -> Call {
    let key = call.idempotency_key.as_ref();
    let idempotency_key = key.map(|key| format!("{name}-{}", Digest::of(key.as_bytes()).to_hex()));
    Call { idempotency_key, ..call.clone() }
}

fn store(
    asked: &Asked,
    _: OnlyProject,
    body: bodies::Store,
) -> Answered<Answer<StoredFactsAnswer>> {
    let (engine, mut body) = (asked.engine(), body);
    let mut redacted = bodies::redacted(std::mem::take(&mut body.redacted))?;
    let StoreParts { mut file, mut facts, run } = body.into_parts(engine.limits())?;
    if asked.app.options.redact {
        if let Some(file) = &mut file {
            add(&mut redacted, scrub(file, engine.limits().body_bytes)?);
        }
        if let Some(facts) = &mut facts {
            redact_facts(facts, &mut redacted);
        }
    }
    let waits = |wanted: Interpret| wanted == Interpret::Wait;
    let _room = asked.room_to_wait(
        file.as_ref().is_some_and(|file| waits(file.interpret))
            || run.as_ref().is_some_and(|(wanted, _)| waits(*wanted)),
    )?;
    let call = asked.call.clone().with_redacted(redacted.clone());
    let kept = match file {
        None => None,
        Some(file) => Some(keep(asked, &call, file, facts.is_some())?),
    };
    let Some(mut facts) = facts else {
        let kept = kept.map(|kept| StoredSourceAnswer::new(kept, false));
        let kept = kept.ok_or_else(|| {
            let why = "there is nothing to store: no entity, no relationship, no file";
            Problem::new(tine_core::ErrorKind::Invalid, why)
        })?;
        let new = kept.outcome == Outcome::Created && !kept.replayed;
        let told = StoredFactsAnswer { redacted, ..StoredFactsAnswer::of_file(kept) };
        return Ok(Reply::made(new, answer(asked, told)));
    };
    if let Some(kept) = &kept {
        facts.source = Some(kept.source.id);
    }
    let done = engine.store_facts(&call, facts)?;
    let new = !done.replayed;
    let interpretation = match run {
        None => None,
        Some((wanted, interpreter)) => {
            let sources = vec![done.source.id];
            let wait = waits(wanted);
            let request = Reinterpret { sources, interpreter, wait, ..Reinterpret::default() };
            engine.reinterpret(&step(&asked.call, "interpret"), request)?.pop()
        }
    };
    if interpretation.is_some() {
        asked.app.bell.ring();
    }
    let told = StoredFactsAnswer {
        file: kept.map(|kept| StoredSourceAnswer::new(kept, false)),
        interpretation: interpretation.as_ref().map(RunSummary::from),
        redacted,
        ..done.into()
    };
    Ok(Reply::made(new, answer(asked, told)))
}

/// Keeps the file of a store: a step of its own, where facts follow.
fn keep(
    asked: &Asked,
    call: &Call,
    file: NewSource,
    facts_follow: bool,
) -> Result<tine_engine::StoredSource, Problem> {
    let call = if facts_follow { step(call, "file") } else { call.clone() };
    let kept = asked.engine().store_source(&call, file)?;
    if kept.interpretation.is_some() {
        asked.app.bell.ring();
    }
    Ok(kept)
}

fn redact_facts(facts: &mut tine_engine::StoreFacts, redacted: &mut Redacted) {
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

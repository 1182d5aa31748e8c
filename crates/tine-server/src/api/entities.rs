//! Entities: what holds of them, since when, and by which bytes.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, EntityView, FieldProvenance, Listing, ObservationView, TimelineEntry};
use tine_core::EntityId;
use tine_engine::{AsOf, EntityQuery};

use super::{List, answer, conversation, id, page, parameters};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Entities";

parameters!(All {
    /// Only those of a type.
    entity_type: Option<String>,
    /// Only those whose fields hold these words.
    q: Option<String>,
    /// Deleted ones too.
    deleted: Option<bool>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Entities in a page.
    limit: Option<u64>,
});

parameters!(One {
    /// The entity's id.
    entity: String,
});

parameters!(OneAsOf {
    /// The entity's id.
    entity: String,
    /// Only what was observed by then: a time or a day.
    at: Option<String>,
    /// Only what was stored by then: a time or a day.
    at_stored: Option<String>,
});

parameters!(OfTurn {
    /// The conversation.
    conversation_id: String,
    /// The host's id of the turn.
    turn_id: String,
});

parameters!(Observed {
    /// The entity's id.
    entity: String,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Observations in a page.
    limit: Option<u64>,
});

parameters!(OneField {
    /// The entity's id.
    entity: String,
    /// Only this field.
    field: Option<String>,
});

parameters!(Dated {
    /// Not earlier than this time or day.
    from: Option<String>,
    /// Earlier than this time or day.
    to: Option<String>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Entries in a page.
    limit: Option<u64>,
});

const OBSERVED: &[Link] =
    &[Link { to: "getEntity", parameter: "entity", from: "$response.body#/entity_id" }];

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(
            "/api/v1/entities",
            about("listEntities", "Entities type by type, in the order they were first seen"),
            list,
        )
        .get(
            "/api/v1/entities/{entity}",
            about("getEntity", "What holds of an entity, now or at a time"),
            get,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/slots",
            about("listSlots", "The messages that a host stored under its id of a turn"),
            slots,
        )
        .get(
            "/api/v1/entities/{entity}/observations",
            about("listObservations", "Everything that was ever observed of it"),
            observations,
        )
        .get(
            "/api/v1/entities/{entity}/provenance",
            about("getFieldProvenance", "The way from each value back to the bytes"),
            provenance,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/corrections",
            about("correctEntity", "Say what is right")
                .also(&[201])
                .body_required()
                .example(r#"{"fields": {"name": "Alice Chen"}}"#)
                .links(OBSERVED),
            correct,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/merge",
            about("mergeEntity", "Make two entities one")
                .body_required()
                .example(r#"{"into": "ent_00000000000000000000000000000000"}"#),
            merge,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/separate",
            about("separateEntity", "Make one entity two")
                .body_required()
                .example(r#"{"observations": ["obs_00000000000000000000000000000000_1"]}"#),
            separate,
        )
        .route(
            Method::DELETE,
            "/api/v1/entities/{entity}",
            about("deleteEntity", "Hide it from listings"),
            delete,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/restore",
            about("restoreEntity", "Show it again"),
            restore,
        )
        .get("/api/v1/timeline", about("getTimeline", "What has a date, in order"), timeline)
}

fn list(asked: &Asked, query: All, _: NoBody) -> Answered<List<EntityView>> {
    let wanted = EntityQuery {
        entity_type: query.entity_type,
        text: query.q,
        deleted: query.deleted.unwrap_or(false),
    };
    let page = page(query.cursor, query.limit)?;
    Ok(Reply::ok(answer(asked, asked.engine().entities(&asked.call, wanted, page)?)))
}

fn get(asked: &Asked, query: OneAsOf, _: NoBody) -> Answered<Answer<EntityView>> {
    let moment = |what, text: Option<&str>| text.map(|text| bodies::moment(what, text)).transpose();
    let as_of = AsOf {
        observed: moment("at", query.at.as_deref())?,
        stored: moment("at_stored", query.at_stored.as_deref())?,
    };
    let entity = id(&query.entity)?;
    Ok(Reply::ok(answer(asked, asked.engine().entity(&asked.call, entity, as_of)?)))
}

fn slots(asked: &Asked, query: OfTurn, _: NoBody) -> Answered<List<EntityView>> {
    let within = conversation(&query.conversation_id, asked.engine().limits())?;
    let found = asked.engine().slots(&asked.call, &within, &query.turn_id)?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

fn observations(asked: &Asked, query: Observed, _: NoBody) -> Answered<List<ObservationView>> {
    let (entity, page) = (id(&query.entity)?, page(query.cursor, query.limit)?);
    Ok(Reply::ok(answer(asked, asked.engine().observations(&asked.call, entity, page)?)))
}

fn provenance(asked: &Asked, query: OneField, _: NoBody) -> Answered<List<FieldProvenance>> {
    let (entity, field) = (id(&query.entity)?, query.field.as_deref());
    let found = asked.engine().field_provenance(&asked.call, entity, field)?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

fn correct(asked: &Asked, path: One, body: bodies::Correct) -> Answered<Answer<ObservationView>> {
    let request = body.into_request(id(&path.entity)?, asked.engine().limits())?;
    Ok(Reply::created(answer(asked, asked.engine().correct(&asked.call, request)?)))
}

fn merge(asked: &Asked, path: One, body: bodies::MergeEntity) -> Answered<Answer<EntityView>> {
    let request = body.into_request(id(&path.entity)?)?;
    Ok(Reply::ok(answer(asked, asked.engine().merge_entities(&asked.call, request)?)))
}

fn separate(
    asked: &Asked,
    path: One,
    body: bodies::SeparateEntity,
) -> Answered<Answer<EntityView>> {
    let request = body.into_request(id(&path.entity)?)?;
    Ok(Reply::ok(answer(asked, asked.engine().separate_entity(&asked.call, request)?)))
}

fn set_deleted(asked: &Asked, entity: &str, deleted: bool) -> Result<EntityView, Problem> {
    let entity: EntityId = id(entity)?;
    Ok(asked.engine().set_entity_deleted(&asked.call, entity, deleted)?)
}

fn delete(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<EntityView>> {
    Ok(Reply::ok(answer(asked, set_deleted(asked, &path.entity, true)?)))
}

fn restore(asked: &Asked, path: One, _: bodies::Nothing) -> Answered<Answer<EntityView>> {
    Ok(Reply::ok(answer(asked, set_deleted(asked, &path.entity, false)?)))
}

fn timeline(asked: &Asked, query: Dated, _: NoBody) -> Answered<List<TimelineEntry>> {
    let moment = |what, text: Option<&str>| text.map(|text| bodies::moment(what, text)).transpose();
    let from = moment("from", query.from.as_deref())?;
    let to = moment("to", query.to.as_deref())?;
    let page = page(query.cursor, query.limit)?;
    Ok(Reply::ok(answer(asked, asked.engine().timeline(&asked.call, from, to, page)?)))
}

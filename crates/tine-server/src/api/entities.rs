//! Entities: their current and past fields, and the evidence for them.

use axum::http::Method;
use tine_api::bodies::{Nothing, moment};
use tine_api::{
    Answer, AsOf, Correct, EntityQuery, EntityView, FieldProvenance, Merge, ObservationView,
    Separate, TimelineEntry,
};
use tine_core::{ConversationId, EntityId, Timestamp};

use super::{List, parameters};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Entities";

parameters!(paged EntitiesQuery {
    /// Only entities of this type.
    entity_type: Option<String>,
    /// Only entities whose fields contain these words.
    q: Option<String>,
    /// Whether to include deleted entities.
    deleted: Option<bool>,
});

parameters!(EntityPath {
    /// The id of the entity.
    entity: EntityId,
});

parameters!(EntityAsOf {
    /// The id of the entity.
    entity: EntityId,
    /// Only what was observed by this time or day.
    at: Option<String>,
    /// Only what was stored by this time or day.
    at_stored: Option<String>,
});

parameters!(SlotsQuery {
    /// The conversation.
    conversation_id: ConversationId,
    /// The host's id of the turn.
    turn_id: String,
});

parameters!(paged ObservationsQuery {
    /// The id of the entity.
    entity: EntityId,
});

parameters!(ProvenanceQuery {
    /// The id of the entity.
    entity: EntityId,
    /// Only this field.
    field: Option<String>,
});

parameters!(paged TimelineQuery {
    /// The earliest time or day.
    from: Option<String>,
    /// Only entries before this time or day.
    to: Option<String>,
});

const OBSERVED: &[Link] =
    &[Link { to: "getEntity", parameter: "entity", from: "$response.body#/entity_id" }];

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(
            "/api/v1/entities",
            about("listEntities", "List entities by type, in order of first observation"),
            list,
        )
        .get(
            "/api/v1/entities/{entity}",
            about("getEntity", "Retrieve an entity, now or at a point in time"),
            get,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/slots",
            about("listSlots", "List the messages that a host stored under one of its turn ids"),
            slots,
        )
        .get(
            "/api/v1/entities/{entity}/observations",
            about("listObservations", "List all observations of an entity"),
            observations,
        )
        .get(
            "/api/v1/entities/{entity}/provenance",
            about("getFieldProvenance", "Trace the value of each field back to its source"),
            provenance,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/corrections",
            about("correctEntity", "Correct fields of an entity")
                .also(&[201])
                .body_required()
                .example(r#"{"fields": {"name": "Alice Chen"}}"#)
                .links(OBSERVED),
            correct,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/merge",
            about("mergeEntity", "Merge an entity into another")
                .body_required()
                .example(r#"{"into": "ent_00000000000000000000000000000000"}"#),
            merge,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/separate",
            about("separateEntity", "Split an entity in two")
                .body_required()
                .example(r#"{"observations": ["obs_00000000000000000000000000000000_1"]}"#),
            separate,
        )
        .delete(
            "/api/v1/entities/{entity}",
            about("deleteEntity", "Hide an entity from listings"),
            delete,
        )
        .route(
            Method::POST,
            "/api/v1/entities/{entity}/restore",
            about("restoreEntity", "Show a deleted entity in listings again"),
            restore,
        )
        .get("/api/v1/timeline", about("getTimeline", "List dated facts, in order"), timeline)
}

fn list(context: &RequestContext, query: EntitiesQuery) -> ApiResult<List<EntityView>> {
    let page = query.page();
    let wanted = EntityQuery {
        entity_type: query.entity_type,
        text: query.q,
        deleted: query.deleted.unwrap_or(false),
    };
    context.ok(context.engine().entities(&context.call, wanted, page)?)
}

/// Parses an optional time or day.
fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    Ok(text.map(|text| moment(field, text)).transpose()?)
}

fn get(context: &RequestContext, query: EntityAsOf) -> ApiResult<Answer<EntityView>> {
    let as_of = AsOf {
        observed: time("at", query.at.as_deref())?,
        stored: time("at_stored", query.at_stored.as_deref())?,
    };
    context.ok(context.engine().entity(&context.call, query.entity, as_of)?)
}

fn slots(context: &RequestContext, query: SlotsQuery) -> ApiResult<List<EntityView>> {
    let (conversation, turn) = (&query.conversation_id, &query.turn_id);
    context.list(context.engine().slots(&context.call, conversation, turn)?)
}

fn observations(
    context: &RequestContext,
    query: ObservationsQuery,
) -> ApiResult<List<ObservationView>> {
    let page = query.page();
    context.ok(context.engine().observations(&context.call, query.entity, page)?)
}

fn provenance(
    context: &RequestContext,
    query: ProvenanceQuery,
) -> ApiResult<List<FieldProvenance>> {
    let field = query.field.as_deref();
    context.list(context.engine().field_provenance(&context.call, query.entity, field)?)
}

fn correct(
    context: &RequestContext,
    path: EntityPath,
    request: Correct,
) -> ApiResult<Answer<ObservationView>> {
    let request = Correct { entity: path.entity, ..request };
    context.created(context.engine().correct(&context.call, request)?)
}

fn merge(
    context: &RequestContext,
    path: EntityPath,
    request: Merge,
) -> ApiResult<Answer<EntityView>> {
    let request = Merge { from: path.entity, ..request };
    context.ok(context.engine().merge_entities(&context.call, request)?)
}

fn separate(
    context: &RequestContext,
    path: EntityPath,
    request: Separate,
) -> ApiResult<Answer<EntityView>> {
    let request = Separate { entity: path.entity, ..request };
    context.ok(context.engine().separate_entity(&context.call, request)?)
}

fn delete(context: &RequestContext, path: EntityPath) -> ApiResult<Answer<EntityView>> {
    context.ok(context.engine().set_entity_deleted(&context.call, path.entity, true)?)
}

fn restore(
    context: &RequestContext,
    path: EntityPath,
    _: Nothing,
) -> ApiResult<Answer<EntityView>> {
    context.ok(context.engine().set_entity_deleted(&context.call, path.entity, false)?)
}

fn timeline(context: &RequestContext, query: TimelineQuery) -> ApiResult<List<TimelineEntry>> {
    let (from, to) = (time("from", query.from.as_deref())?, time("to", query.to.as_deref())?);
    context.ok(context.engine().timeline(&context.call, from, to, query.page())?)
}

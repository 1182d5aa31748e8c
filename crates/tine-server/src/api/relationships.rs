//! How things hang together, and what types of entities hold.

use axum::http::Method;
use tine_api::bodies;
use tine_api::bodies::EndIds;
use tine_api::{Answer, Listing, RelationshipView, Removed};
use tine_engine::{Outcome, RelationshipQuery};

use super::{List, OnlyProject, answer, page, parameters};
use crate::openapi::Operation;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Relationships";

parameters!(Related {
    /// Only those of this entity.
    entity_id: Option<String>,
    /// Only those of this turn.
    turn_id: Option<String>,
    /// Only those of this source.
    source_id: Option<String>,
    /// Only those of this conversation.
    conversation_id: Option<String>,
    /// Only those that lead away from it, or to it; `both` without it.
    direction: Option<bodies::Direction>,
    /// Only those of this type.
    r#type: Option<String>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Relationships in a page.
    limit: Option<u64>,
});

parameters!(Removal {
    /// Its type.
    r#type: String,
    /// From an entity …
    source_entity_id: Option<String>,
    /// … or a turn …
    source_turn_id: Option<String>,
    /// … or a source …
    source_source_id: Option<String>,
    /// … or a conversation.
    source_conversation_id: Option<String>,
    /// To an entity …
    target_entity_id: Option<String>,
    /// … or a turn …
    target_turn_id: Option<String>,
    /// … or a source …
    target_source_id: Option<String>,
    /// … or a conversation.
    target_conversation_id: Option<String>,
});

parameters!(SchemaOf {
    /// The type.
    entity_type: String,
    /// One version; the newest without it.
    version: Option<u32>,
});

const RELATE: &str = r#"{"type": "REFERS_TO", "source_turn_id": "main",
    "target_entity_id": "ent_00000000000000000000000000000000"}"#;

const SCHEMA: &str = r#"{"entity_type": "recipe", "description": "How a dish is made.",
    "fields": {"name": "name", "servings": "number",
    "ingredients": {"kind": "list", "strategy": "merged_set"}}, "identity": ["name"]}"#;

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    let schemas = |id, summary| Operation::new("Schemas", id, summary);
    routes
        .get(
            "/api/v1/relationships",
            about("listRelationships", "Relationships of one thing, or all"),
            list,
        )
        .route(
            Method::POST,
            "/api/v1/relationships",
            about("createRelationship", "Relate two things")
                .also(&[201])
                .body_required()
                .example(RELATE),
            create,
        )
        .route(
            Method::DELETE,
            "/api/v1/relationships",
            about("deleteRelationship", "Remove a relationship; undo brings it back"),
            delete,
        )
        .get(
            "/api/v1/schemas",
            schemas("listSchemas", "The newest schema of every type"),
            list_schemas,
        )
        .route(
            Method::POST,
            "/api/v1/schemas",
            schemas("registerSchema", "Register the next version of a type")
                .also(&[201])
                .body_required()
                .example(SCHEMA),
            register,
        )
        .get(
            "/api/v1/schemas/{entity_type}",
            schemas("getSchema", "A type's newest schema, or one version"),
            get_schema,
        )
}

fn list(asked: &Asked, query: Related, _: NoBody) -> Answered<List<RelationshipView>> {
    let end = EndIds {
        entity_id: query.entity_id,
        turn_id: query.turn_id,
        source_id: query.source_id,
        conversation_id: query.conversation_id,
        index: None,
    };
    let wanted = RelationshipQuery {
        end: end.read()?,
        direction: query.direction.map(Into::into).unwrap_or_default(),
        relation: query.r#type,
    };
    let page = page(query.cursor, query.limit)?;
    Ok(Reply::ok(answer(asked, asked.engine().relationships(&asked.call, wanted, page)?)))
}

fn create(
    asked: &Asked,
    _: OnlyProject,
    body: bodies::NewRelationship,
) -> Answered<Answer<RelationshipView>> {
    let request = body.into_request(asked.engine().limits())?;
    let made = asked.engine().create_relationship(&asked.call, request)?;
    Ok(Reply::made(made.outcome == Some(Outcome::Created), answer(asked, made)))
}

fn delete(asked: &Asked, query: Removal, _: NoBody) -> Answered<Answer<Removed>> {
    let request = bodies::NewRelationship {
        relation: query.r#type,
        source_entity_id: query.source_entity_id,
        source_turn_id: query.source_turn_id,
        source_source_id: query.source_source_id,
        source_conversation_id: query.source_conversation_id,
        target_entity_id: query.target_entity_id,
        target_turn_id: query.target_turn_id,
        target_source_id: query.target_source_id,
        target_conversation_id: query.target_conversation_id,
        ..bodies::NewRelationship::default()
    };
    let request = request.into_request(asked.engine().limits())?;
    asked.engine().delete_relationship(&asked.call, request)?;
    Ok(Reply::ok(answer(asked, Removed { deleted: true })))
}

fn list_schemas(
    asked: &Asked,
    _: OnlyProject,
    _: NoBody,
) -> Answered<List<tine_core::facts::Schema>> {
    let found = asked.engine().schemas(&asked.call)?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

fn register(
    asked: &Asked,
    _: OnlyProject,
    body: bodies::NewSchema,
) -> Answered<Answer<tine_core::facts::Schema>> {
    let request = body.into_request(asked.engine().limits())?;
    let made = asked.engine().register_schema(&asked.call, request)?;
    Ok(Reply::created(answer(asked, made)))
}

fn get_schema(
    asked: &Asked,
    query: SchemaOf,
    _: NoBody,
) -> Answered<Answer<tine_core::facts::Schema>> {
    let found = asked.engine().schema(&asked.call, &query.entity_type, query.version)?;
    Ok(Reply::ok(answer(asked, found)))
}

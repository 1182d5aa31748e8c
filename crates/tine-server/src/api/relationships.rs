//! Relationships, and the schemas of entity types.

use axum::http::Method;
use tine_api::bodies::EndIds;
use tine_api::{
    Answer, Direction, NewRelationship, NewSchema, Outcome, RelationshipQuery, RelationshipView,
    Removed,
};
use tine_core::Json;
use tine_core::facts::Schema;

use super::{List, ProjectQuery, parameters};
use crate::openapi::Operation;
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Relationships";

parameters!(paged RelationshipsQuery {
    /// Only relationships of this entity.
    entity_id: Option<String>,
    /// Only relationships of this turn.
    turn_id: Option<String>,
    /// Only relationships of this source.
    source_id: Option<String>,
    /// Only relationships of this conversation.
    conversation_id: Option<String>,
    /// Only relationships in this direction; `both` by default.
    direction: Option<Direction>,
    /// Only relationships of this type.
    r#type: Option<String>,
});

parameters!(RelationshipEnds {
    /// The type of the relationship.
    r#type: String,
    /// The source, if it is an entity.
    source_entity_id: Option<String>,
    /// The source, if it is a turn: any reference.
    source_turn_id: Option<String>,
    /// The source, if it is a source.
    source_source_id: Option<String>,
    /// The source, if it is a conversation.
    source_conversation_id: Option<String>,
    /// The target, if it is an entity.
    target_entity_id: Option<String>,
    /// The target, if it is a turn: any reference.
    target_turn_id: Option<String>,
    /// The target, if it is a source.
    target_source_id: Option<String>,
    /// The target, if it is a conversation.
    target_conversation_id: Option<String>,
});

parameters!(SchemaPath {
    /// The entity type.
    entity_type: String,
    /// The version; the newest by default.
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
            about("listRelationships", "List relationships of a record, or all"),
            list,
        )
        .route(
            Method::POST,
            "/api/v1/relationships",
            about("createRelationship", "Create a relationship")
                .also(&[201])
                .body_required()
                .example(RELATE),
            create,
        )
        .delete(
            "/api/v1/relationships",
            about("deleteRelationship", "Delete a relationship; undo restores it"),
            delete,
        )
        .get(
            "/api/v1/schemas",
            schemas("listSchemas", "List the newest schema of every type"),
            list_schemas,
        )
        .route(
            Method::POST,
            "/api/v1/schemas",
            schemas("registerSchema", "Register the next version of a schema")
                .also(&[201])
                .body_required()
                .example(SCHEMA),
            register,
        )
        .get(
            "/api/v1/schemas/{entity_type}",
            schemas("getSchema", "Retrieve a schema: the newest, or one version"),
            get_schema,
        )
}

fn list(context: &RequestContext, query: RelationshipsQuery) -> ApiResult<List<RelationshipView>> {
    let page = query.page();
    let end = EndIds {
        entity_id: query.entity_id,
        turn_id: query.turn_id,
        source_id: query.source_id,
        conversation_id: query.conversation_id,
        index: None,
    };
    let wanted = RelationshipQuery {
        end: end.read()?,
        direction: query.direction.unwrap_or_default(),
        relation: query.r#type,
    };
    context.ok(context.engine().relationships(&context.call, wanted, page)?)
}

fn create(
    context: &RequestContext,
    _: ProjectQuery,
    request: NewRelationship,
) -> ApiResult<Answer<RelationshipView>> {
    let made = context.engine().create_relationship(&context.call, request)?;
    context.made(made.outcome == Some(Outcome::Created), made)
}

fn delete(context: &RequestContext, query: RelationshipEnds) -> ApiResult<Answer<Removed>> {
    let source = EndIds {
        entity_id: query.source_entity_id,
        turn_id: query.source_turn_id,
        source_id: query.source_source_id,
        conversation_id: query.source_conversation_id,
        index: None,
    };
    let target = EndIds {
        entity_id: query.target_entity_id,
        turn_id: query.target_turn_id,
        source_id: query.target_source_id,
        conversation_id: query.target_conversation_id,
        index: None,
    };
    let request = NewRelationship {
        relation: query.r#type,
        source: source.required("source")?,
        target: target.required("target")?,
        metadata: Json::Null,
    };
    context.engine().delete_relationship(&context.call, request)?;
    context.ok(Removed { deleted: true })
}

fn list_schemas(context: &RequestContext, _: ProjectQuery) -> ApiResult<List<Schema>> {
    context.list(context.engine().schemas(&context.call)?)
}

fn register(
    context: &RequestContext,
    _: ProjectQuery,
    request: NewSchema,
) -> ApiResult<Answer<Schema>> {
    context.created(context.engine().register_schema(&context.call, request)?)
}

fn get_schema(context: &RequestContext, path: SchemaPath) -> ApiResult<Answer<Schema>> {
    context.ok(context.engine().schema(&context.call, &path.entity_type, path.version)?)
}

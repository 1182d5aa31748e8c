//! Differences between branches, turns and commits, and where values and texts come from.

use tine_api::{
    Answer, BisectQuery, Bisected, BlameOf, BlameQuery, Blamed, Diff, DiffQuery, Drift, Predicate,
    TurnRef,
};
use tine_core::{ConversationId, EntityId, ErrorKind, Json, Reference, json};

use super::{List, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Comparing";

parameters!(DiffParameters {
    /// The first side: a turn, a branch, a commit, or a range of turns `a..b`.
    from: String,
    /// The second side, in the same form.
    to: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
    /// The maximum number of changes to list.
    #[schemars(with = "Option<u64>")]
    limit: Option<usize>,
});

parameters!(BlameParameters {
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
    /// The turn at the end of the path, or a branch; `main` by default.
    at: Option<Reference>,
    /// The text to look for. Excludes `entity_id` and `field`.
    text: Option<String>,
    /// The entity whose field to look for.
    entity_id: Option<EntityId>,
    /// The field of the entity.
    field: Option<String>,
});

parameters!(BisectParameters {
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
    /// The turn at the end of the path, or a branch; `main` by default.
    at: Option<Reference>,
    /// The text that a turn must contain. Excludes `entity_id`, `field` and `value`.
    contains: Option<String>,
    /// The entity whose field to look for.
    entity_id: Option<EntityId>,
    /// The field of the entity.
    field: Option<String>,
    /// The value of the field, as JSON or else as text; any value by default.
    value: Option<String>,
});

parameters!(DriftQuery {
    /// The conversation.
    conversation_id: ConversationId,
    /// The branch, by name or id; `main` by default.
    branch: Option<String>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/diff", about("getDiff", "Compare two turns, branches or commits"), diff)
        .get(
            "/api/v1/blame",
            about("getBlame", "Find the turns that a text or the value of a field comes from"),
            blame,
        )
        .get(
            "/api/v1/bisect",
            about("bisectPath", "Find the first turn on a path that matches a condition"),
            bisect,
        )
        .get(
            "/api/v1/drift",
            about("getDrift", "Measure how far each commit of a branch has moved, oldest first"),
            drift,
        )
}

fn diff(context: &RequestContext, query: DiffParameters) -> ApiResult<Answer<Diff>> {
    let DiffParameters { from, to, conversation_id: conversation, limit, .. } = query;
    let request = DiffQuery { conversation, from, to, limit };
    context.ok(context.engine().diff(&context.call, request)?)
}

/// Returns the end of a path: a turn, or the tip of `main`.
fn end(at: Option<Reference>, conversation: Option<ConversationId>) -> Result<TurnRef, Problem> {
    let main = || Reference::parse("main").map_err(tine_api::Error::from);
    Ok(TurnRef { turn: at.map_or_else(main, Ok)?, conversation })
}

fn blame(context: &RequestContext, query: BlameParameters) -> ApiResult<List<Blamed>> {
    let of = match (query.text, query.entity_id, query.field) {
        (Some(text), None, None) => BlameOf::Text(text),
        (None, Some(entity), Some(field)) => BlameOf::Field { entity, field },
        _ => {
            let why = "give `text`, or `entity_id` and `field`";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    let at = end(query.at, query.conversation_id)?;
    context.list(context.engine().blame(&context.call, BlameQuery { at, of })?)
}

fn bisect(context: &RequestContext, query: BisectParameters) -> ApiResult<Answer<Bisected>> {
    let depth = context.engine().limits().json_depth;
    let value = |text: String| json::parse(text.as_bytes(), depth).unwrap_or(Json::String(text));
    let predicate = match (query.contains, query.entity_id, query.field, query.value) {
        (Some(text), None, None, None) => Predicate::Contains(text),
        (None, Some(entity), Some(field), given) => {
            Predicate::Fact { entity, field, value: given.map(value) }
        }
        _ => {
            let why = "give `contains`, or `entity_id` and `field`, with a `value` or without";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    let at = end(query.at, query.conversation_id)?;
    context.ok(context.engine().bisect(&context.call, BisectQuery { at, predicate })?)
}

fn drift(context: &RequestContext, query: DriftQuery) -> ApiResult<List<Drift>> {
    let branch = query.branch.as_deref().unwrap_or("main");
    context.list(context.engine().drift(&context.call, &query.conversation_id, branch)?)
}

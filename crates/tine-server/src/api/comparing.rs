//! What branches, turns and commits differ in, and where something comes from.

use tine_api::bodies;
use tine_api::{Answer, Bisected, Blamed, Diff, Drift, Listing};
use tine_core::{ErrorKind, Json, json};
use tine_engine::{BisectQuery, BlameOf, BlameQuery, DiffQuery, Predicate, TurnRef};

use super::{List, answer, conversation, id, parameters, turn};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Comparing";

parameters!(Pair {
    /// A turn, a branch, a commit, or a stretch of turns `a..b`.
    from: String,
    /// What it is compared with.
    to: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
    /// Changes that are told one by one at most.
    limit: Option<u64>,
});

parameters!(Origin {
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
    /// The turn at the end of the path, or a branch; `main` without it.
    at: Option<String>,
    /// A piece of text …
    text: Option<String>,
    /// … or an entity …
    entity_id: Option<String>,
    /// … and its field.
    field: Option<String>,
});

parameters!(First {
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
    /// The turn at the end of the path, or a branch; `main` without it.
    at: Option<String>,
    /// What a turn says …
    contains: Option<String>,
    /// … or an entity …
    entity_id: Option<String>,
    /// … and its field …
    field: Option<String>,
    /// … with this value: JSON, or else a text; any value without it.
    value: Option<String>,
});

parameters!(OfBranch {
    /// The conversation.
    conversation_id: String,
    /// The branch, by name or id; `main` without it.
    branch: Option<String>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/diff", about("getDiff", "Compare two turns, branches or commits"), diff)
        .get(
            "/api/v1/blame",
            about("getBlame", "The turn that a piece of text or a value comes from"),
            blame,
        )
        .get(
            "/api/v1/bisect",
            about("bisectPath", "The first turn on a path for which something holds"),
            bisect,
        )
        .get(
            "/api/v1/drift",
            about("getDrift", "How far each commit of a branch has moved, the oldest first"),
            drift,
        )
}

fn diff(asked: &Asked, query: Pair, _: NoBody) -> Answered<Answer<Diff>> {
    let limits = asked.engine().limits();
    let within = query.conversation_id.as_deref().map(|id| conversation(id, limits)).transpose()?;
    let request = DiffQuery {
        conversation: within,
        from: query.from,
        to: query.to,
        limit: query.limit.map(|limit| bodies::size("the limit", limit)).transpose()?,
    };
    Ok(Reply::ok(answer(asked, asked.engine().diff(&asked.call, request)?)))
}

fn end(asked: &Asked, at: Option<&str>, within: Option<&str>) -> Result<TurnRef, Problem> {
    turn(asked, at.unwrap_or("main"), within)
}

fn blame(asked: &Asked, query: Origin, _: NoBody) -> Answered<List<Blamed>> {
    let of = match (query.text, query.entity_id, query.field) {
        (Some(text), None, None) => BlameOf::Text(text),
        (None, Some(entity), Some(field)) => BlameOf::Field { entity: id(&entity)?, field },
        _ => {
            return Err(Problem::new(
                ErrorKind::Invalid,
                "give `text`, or `entity_id` and `field`",
            ));
        }
    };
    let at = end(asked, query.at.as_deref(), query.conversation_id.as_deref())?;
    let found = asked.engine().blame(&asked.call, BlameQuery { at, of })?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

fn bisect(asked: &Asked, query: First, _: NoBody) -> Answered<Answer<Bisected>> {
    let depth = asked.engine().limits().json_depth;
    let value = |text: String| json::parse(text.as_bytes(), depth).unwrap_or(Json::String(text));
    let predicate = match (query.contains, query.entity_id, query.field, query.value) {
        (Some(text), None, None, None) => Predicate::Contains(text),
        (None, Some(entity), Some(field), given) => {
            Predicate::Fact { entity: id(&entity)?, field, value: given.map(value) }
        }
        _ => {
            let why = "give `contains`, or `entity_id` and `field`, with a `value` or without";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    let at = end(asked, query.at.as_deref(), query.conversation_id.as_deref())?;
    let found = asked.engine().bisect(&asked.call, BisectQuery { at, predicate })?;
    Ok(Reply::ok(answer(asked, found)))
}

fn drift(asked: &Asked, query: OfBranch, _: NoBody) -> Answered<List<Drift>> {
    let id = conversation(&query.conversation_id, asked.engine().limits())?;
    let branch = query.branch.as_deref().unwrap_or("main");
    let found = asked.engine().drift(&asked.call, &id, branch)?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

//! Sources without their bytes; those come and go elsewhere, piece by piece.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, Purged, SourceView};
use tine_engine::{Purge, PurgeTarget};

use super::{List, Listed, answer, id, parameters};
use crate::openapi::Operation;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Sources";

parameters!(One {
    /// The source's id.
    source: String,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(
            "/api/v1/sources",
            about("listSources", "Sources in the order in which they came"),
            list,
        )
        .get("/api/v1/sources/{source}", about("getSource", "One source without its bytes"), get)
        .route(
            Method::POST,
            "/api/v1/sources/{source}/purge",
            about("purgeSource", "Erase its bytes and all that was learned from them, for ever"),
            purge,
        )
}

fn list(asked: &Asked, query: Listed, _: NoBody) -> Answered<List<SourceView>> {
    Ok(Reply::ok(answer(asked, asked.engine().sources(&asked.call, query.page()?)?)))
}

fn get(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<SourceView>> {
    Ok(Reply::ok(answer(asked, asked.engine().source(&asked.call, id(&path.source)?)?)))
}

fn purge(asked: &Asked, path: One, body: bodies::Purge) -> Answered<Answer<Purged>> {
    let request = Purge { target: PurgeTarget::Source(id(&path.source)?), confirm: body.confirm };
    Ok(Reply::ok(answer(asked, asked.engine().purge(&asked.call, request)?)))
}

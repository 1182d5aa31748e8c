//! Sources, without their bytes.

use axum::http::Method;
use tine_api::bodies::PurgeBody;
use tine_api::{Answer, Purge, PurgeTarget, Purged, SourceView};

use super::{List, PageQuery, SourcePath};
use crate::openapi::Operation;
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Sources";

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/sources", about("listSources", "List sources, in order of storage"), list)
        .get(
            "/api/v1/sources/{source}",
            about("getSource", "Retrieve a source, without its bytes"),
            get,
        )
        .route(
            Method::POST,
            "/api/v1/sources/{source}/purge",
            about("purgeSource", "Permanently erase a source and everything derived from it"),
            purge,
        )
}

fn list(context: &RequestContext, query: PageQuery) -> ApiResult<List<SourceView>> {
    context.ok(context.engine().sources(&context.call, query.page())?)
}

fn get(context: &RequestContext, path: SourcePath) -> ApiResult<Answer<SourceView>> {
    context.ok(context.engine().source(&context.call, path.source)?)
}

fn purge(context: &RequestContext, path: SourcePath, body: PurgeBody) -> ApiResult<Answer<Purged>> {
    let request = Purge { target: PurgeTarget::Source(path.source), confirm: body.confirm };
    context.ok(context.engine().purge(&context.call, request)?)
}

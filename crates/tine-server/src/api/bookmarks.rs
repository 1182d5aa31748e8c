//! Bookmarks.

use axum::http::Method;
use tine_api::{Answer, BookmarkView, TurnRef};
use tine_core::Name;

use super::{List, PageQuery, parameters};
use crate::openapi::Operation;
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Bookmarks";
const ONE: &str = "/api/v1/bookmarks/{name}";

parameters!(BookmarkPath {
    /// The name of the bookmark.
    name: Name,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/bookmarks", about("listBookmarks", "List bookmarks"), list)
        .get(ONE, about("getBookmark", "Retrieve a bookmark"), get)
        .route(
            Method::PUT,
            ONE,
            about("putBookmark", "Set a bookmark on a turn").body_required(),
            put,
        )
        .delete(ONE, about("deleteBookmark", "Delete a bookmark"), delete)
}

fn list(context: &RequestContext, query: PageQuery) -> ApiResult<List<BookmarkView>> {
    context.ok(context.engine().bookmarks(&context.call, query.page())?)
}

fn get(context: &RequestContext, path: BookmarkPath) -> ApiResult<Answer<BookmarkView>> {
    context.ok(context.engine().bookmark(&context.call, &path.name)?)
}

fn put(
    context: &RequestContext,
    path: BookmarkPath,
    turn: TurnRef,
) -> ApiResult<Answer<BookmarkView>> {
    context.ok(context.engine().set_bookmark(&context.call, path.name, turn)?)
}

fn delete(context: &RequestContext, path: BookmarkPath) -> ApiResult<Answer<BookmarkView>> {
    context.ok(context.engine().delete_bookmark(&context.call, &path.name)?)
}

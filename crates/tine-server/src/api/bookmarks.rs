//! Bookmarks.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, BookmarkView};

use super::{List, Listed, answer, name, parameters, turn};
use crate::openapi::Operation;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Bookmarks";

parameters!(One {
    /// The bookmark.
    name: String,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/bookmarks", about("listBookmarks", "All bookmarks of the project"), list)
        .get("/api/v1/bookmarks/{name}", about("getBookmark", "One bookmark"), get)
        .route(
            Method::PUT,
            "/api/v1/bookmarks/{name}",
            about("putBookmark", "Put it on a turn").body_required(),
            put,
        )
        .route(
            Method::DELETE,
            "/api/v1/bookmarks/{name}",
            about("deleteBookmark", "Remove it"),
            delete,
        )
}

fn list(asked: &Asked, query: Listed, _: NoBody) -> Answered<List<BookmarkView>> {
    let found = asked.engine().bookmarks(&asked.call, query.page()?)?;
    Ok(Reply::ok(answer(asked, found)))
}

fn get(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<BookmarkView>> {
    let name = name(&path.name, asked.engine().limits())?;
    Ok(Reply::ok(answer(asked, asked.engine().bookmark(&asked.call, &name)?)))
}

fn put(asked: &Asked, path: One, body: bodies::PutBookmark) -> Answered<Answer<BookmarkView>> {
    let name = name(&path.name, asked.engine().limits())?;
    let turn = turn(asked, &body.turn, body.conversation_id.as_deref())?;
    Ok(Reply::ok(answer(asked, asked.engine().set_bookmark(&asked.call, name, turn)?)))
}

fn delete(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<BookmarkView>> {
    let name = name(&path.name, asked.engine().limits())?;
    let gone = asked.engine().delete_bookmark(&asked.call, &name)?;
    Ok(Reply::ok(answer(asked, gone)))
}

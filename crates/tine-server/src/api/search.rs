//! Full-text search.

use tine_api::bodies::Speaker;
use tine_api::{Answer, Page, SearchPage, SearchQuery};
use tine_core::{ConversationId, Timestamp};

use super::parameters;
use crate::openapi::Operation;
use crate::route::{ApiResult, RequestContext, Routes};

parameters!(paged SearchParameters {
    /// The query: words, `"phrases"`, prefixes (`word*`), `OR` between terms, and `-` to exclude a
    /// term.
    q: String,
    /// Only this conversation, even if it is archived.
    conversation_id: Option<ConversationId>,
    /// Only the path of this branch: a name, together with a conversation, or an id.
    branch: Option<String>,
    /// Only turns of this role.
    role: Option<Speaker>,
    /// Only turns created at this time or later.
    since: Option<Timestamp>,
    /// Only turns created before this time.
    until: Option<Timestamp>,
    /// Only turns with all of these tags, separated by commas.
    tag: Option<String>,
    /// Whether to include archived conversations.
    archived: Option<bool>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = Operation::new("Search", "searchTurns", "Search turns");
    routes.get("/api/v1/search", about, search)
}

fn search(context: &RequestContext, query: SearchParameters) -> ApiResult<Answer<SearchPage>> {
    let Page { cursor, limit } = query.page();
    let tags = query.tag.as_deref().unwrap_or_default().split(',').map(str::trim);
    let request = SearchQuery {
        words: query.q,
        conversation: query.conversation_id,
        branch: query.branch,
        role: query.role.map(Speaker::role),
        from: query.since,
        to: query.until,
        tags: tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        archived: query.archived.unwrap_or(false),
        cursor,
        limit,
    };
    context.ok(context.engine().search(&context.call, request)?)
}

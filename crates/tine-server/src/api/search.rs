//! Full-text search.

use tine_api::bodies;
use tine_api::{Answer, SearchPage};
use tine_core::Timestamp;
use tine_engine::SearchQuery;

use super::{answer, conversation, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

parameters!(Words {
    /// Words, `"phrases"`, beginnings (`word*`), `OR` between neighbours, `-` before what must not
    /// be there.
    q: String,
    /// Only in this conversation, also when it is archived.
    conversation_id: Option<String>,
    /// Only on the path of this branch: its name, with a conversation, or its id.
    branch: Option<String>,
    /// Only by this speaker.
    role: Option<bodies::Speaker>,
    /// Not earlier than this time.
    since: Option<String>,
    /// Earlier than this time.
    until: Option<String>,
    /// With all of these labels, separated by commas.
    tag: Option<String>,
    /// Also in archived conversations.
    archived: Option<bool>,
    /// Goes on behind an earlier page of the same search.
    cursor: Option<String>,
    /// Hits in a page; 20 without it.
    limit: Option<u64>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = Operation::new("Search", "searchTurns", "Find turns by what they say");
    routes.get("/api/v1/search", about, search)
}

fn search(asked: &Asked, query: Words, _: NoBody) -> Answered<Answer<SearchPage>> {
    let limits = asked.engine().limits();
    let id = query.conversation_id.as_deref().map(|id| conversation(id, limits)).transpose()?;
    let tags = query.tag.as_deref().unwrap_or_default().split(',').map(str::trim);
    let request = SearchQuery {
        words: query.q,
        conversation: id,
        branch: query.branch,
        role: query.role.map(bodies::Speaker::role),
        from: query.since.as_deref().map(time).transpose()?,
        to: query.until.as_deref().map(time).transpose()?,
        tags: tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        archived: query.archived.unwrap_or(false),
        cursor: query.cursor,
        limit: query.limit.map(|limit| bodies::size("the limit", limit)).transpose()?,
    };
    Ok(Reply::ok(answer(asked, asked.engine().search(&asked.call, request)?)))
}

fn time(text: &str) -> Result<Timestamp, Problem> {
    text.parse().map_err(|error: tine_core::time::TimestampError| {
        Problem::new(tine_core::ErrorKind::Invalid, error.to_string())
    })
}

//! What a store compares with another before it requests what it lacks.

use tine_api::{Answer, Listing, LogEnd, LogHashes, LogMerges};
use tine_core::{ConversationId, ErrorKind};

use super::{List, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes};

pub(crate) const TAG: &str = "Sync";

/// The most entries of one request for hashes.
const ENTRIES: usize = 100;

parameters!(paged LogsQuery {
    /// Only the log of this conversation.
    conversation_id: Option<ConversationId>,
});

parameters!(LogHashesQuery {
    /// The conversation of the log; `~project` for the log of the project itself.
    conversation_id: ConversationId,
    /// The numbers of at most 100 entries, separated by commas.
    seq: String,
});

parameters!(LogMergesQuery {
    /// The conversation of the log.
    conversation_id: ConversationId,
    /// Only entries after this one.
    behind: Option<u64>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/sync/logs", about("listLogs", "List the last entry of each log"), logs)
        .get(
            "/api/v1/sync/hashes",
            about("getLogHashes", "Retrieve the hashes of entries of a log"),
            hashes,
        )
        .get(
            "/api/v1/sync/merges",
            about("listMerges", "List what a log has merged from other logs"),
            merges,
        )
}

fn logs(context: &RequestContext, query: LogsQuery) -> ApiResult<List<LogEnd>> {
    let (engine, call) = (context.engine(), &context.call);
    let page = query.page();
    let found = match query.conversation_id {
        None => engine.log_ends(call, page)?,
        Some(conversation) => {
            let end = engine.log_end(call, &conversation)?;
            let end = end.map(|end| LogEnd { conversation, end });
            Listing::all(end.into_iter().collect())
        }
    };
    context.ok(found)
}

fn hashes(context: &RequestContext, query: LogHashesQuery) -> ApiResult<Answer<LogHashes>> {
    let entries: Vec<u64> =
        query.seq.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| {
            let why = "`seq` must be numbers of entries, separated by commas, such as 1,5,9";
            Problem::new(ErrorKind::Invalid, why)
        })?;
    if entries.len() > ENTRIES {
        let why = format!("at most {ENTRIES} entries at once, not {}", entries.len());
        return Err(Problem::new(ErrorKind::TooLarge, why));
    }
    let id = &query.conversation_id;
    let hashes = context.engine().log_hashes(&context.call, id, &entries)?;
    context.ok(LogHashes { hashes })
}

fn merges(context: &RequestContext, query: LogMergesQuery) -> ApiResult<Answer<LogMerges>> {
    let after = query.behind.unwrap_or_default();
    context.ok(context.engine().log_merges(&context.call, &query.conversation_id, after)?)
}

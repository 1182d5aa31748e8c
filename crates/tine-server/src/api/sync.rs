//! What another store compares before it asks for what it has not.

use tine_api::{Answer, Listing, LogEnd, LogHashes, LogMerges};
use tine_core::ErrorKind;

use super::{List, answer, conversation, page, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

pub(crate) const TAG: &str = "Sync";

/// Entries whose hashes are told at once.
const ENTRIES: usize = 100;

parameters!(Ends {
    /// Only the log of this conversation.
    conversation_id: Option<String>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Logs in a page.
    limit: Option<u64>,
});

parameters!(Hashes {
    /// The conversation whose log it is; `~project` for what was done outside of conversations.
    conversation_id: String,
    /// Numbers of entries, separated by commas; at most 100.
    seq: String,
});

parameters!(Merges {
    /// The conversation whose log it is.
    conversation_id: String,
    /// Only what stands behind this entry.
    behind: Option<u64>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/sync/logs", about("listLogs", "How far each log has come"), logs)
        .get("/api/v1/sync/hashes", about("getLogHashes", "Hashes of entries of a log"), hashes)
        .get("/api/v1/sync/merges", about("listMerges", "What a log has from other logs"), merges)
}

fn logs(asked: &Asked, query: Ends, _: NoBody) -> Answered<List<LogEnd>> {
    let (engine, call) = (asked.engine(), &asked.call);
    let page = page(query.cursor, query.limit)?;
    let found = match query.conversation_id {
        None => engine.log_ends(call, page)?,
        Some(id) => {
            let conversation = conversation(&id, engine.limits())?;
            let end = engine.log_end(call, &conversation)?;
            let end = end.map(|end| tine_engine::LogEnd { conversation, end });
            Listing::all(end.into_iter().collect())
        }
    };
    Ok(Reply::ok(answer(asked, found)))
}

fn hashes(asked: &Asked, query: Hashes, _: NoBody) -> Answered<Answer<LogHashes>> {
    let id = conversation(&query.conversation_id, asked.engine().limits())?;
    let entries: Vec<u64> =
        query.seq.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| {
            let why = "`seq` must be numbers of entries, separated by commas, such as 1,5,9";
            Problem::new(ErrorKind::Invalid, why)
        })?;
    if entries.len() > ENTRIES {
        let why = format!("at most {ENTRIES} entries at once, not {}", entries.len());
        return Err(Problem::new(ErrorKind::TooLarge, why));
    }
    let hashes = asked.engine().log_hashes(&asked.call, &id, &entries)?;
    Ok(Reply::ok(answer(asked, LogHashes { hashes })))
}

fn merges(asked: &Asked, query: Merges, _: NoBody) -> Answered<Answer<LogMerges>> {
    let id = conversation(&query.conversation_id, asked.engine().limits())?;
    let behind = query.behind.unwrap_or_default();
    let found = asked.engine().log_merges(&asked.call, &id, behind)?;
    Ok(Reply::ok(answer(asked, found)))
}

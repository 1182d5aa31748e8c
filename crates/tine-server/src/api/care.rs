//! The state of the store.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, Stats, Verified};

use super::{Nowhere, answer, conversation, parameters};
use crate::access::Access;
use crate::openapi::Operation;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Store";

parameters!(Of {
    /// Also the totals of this conversation.
    conversation_id: Option<String>,
    /// Also tokens and cost by conversation, branch and model; without a word about it, those of
    /// a conversation that is named.
    usage: Option<bool>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/api/v1/stats", Operation::new(TAG, "getStats", "Count what is there"), stats)
        .route(
            Method::POST,
            "/api/v1/verify",
            Operation::new(TAG, "verifyStore", "Recompute every hash of the store").reads(),
            verify,
        )
}

fn stats(asked: &Asked, query: Of, _: NoBody) -> Answered<Answer<Stats>> {
    let limits = asked.engine().limits();
    let id = query.conversation_id.as_deref().map(|id| conversation(id, limits)).transpose()?;
    let mut stats = asked.engine().stats(&asked.call, id.as_ref())?;
    if query.usage.unwrap_or(id.is_some()) {
        stats.usage = Some(asked.engine().usage(&asked.call, id.as_ref())?);
    }
    Ok(Reply::ok(answer(asked, stats)))
}

fn verify(asked: &Asked, _: Nowhere, _: bodies::Nothing) -> Answered<Verified> {
    asked.caller.check_store(Access::Read)?;
    Ok(Reply::ok(asked.engine().verify()?))
}

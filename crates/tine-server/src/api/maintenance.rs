//! Totals and verification of the store.

use axum::http::Method;
use tine_api::bodies::Nothing;
use tine_api::{Answer, Stats, Verified};
use tine_core::ConversationId;

use super::{NoParameters, parameters};
use crate::access::Access;
use crate::openapi::Operation;
use crate::route::{ApiResult, Reply, RequestContext, Routes};

const TAG: &str = "Store";

parameters!(StatsQuery {
    /// Includes the totals of this conversation.
    conversation_id: Option<ConversationId>,
    /// Whether to include tokens and cost by conversation, branch and model. By default only if a
    /// conversation is named.
    usage: Option<bool>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    routes.get("/api/v1/stats", Operation::new(TAG, "getStats", "Retrieve totals"), stats).route(
        Method::POST,
        "/api/v1/verify",
        Operation::new(TAG, "verifyStore", "Recompute every hash of the store").reads(),
        verify,
    )
}

fn stats(context: &RequestContext, query: StatsQuery) -> ApiResult<Answer<Stats>> {
    let id = query.conversation_id.as_ref();
    let mut stats = context.engine().stats(&context.call, id)?;
    if query.usage.unwrap_or(id.is_some()) {
        stats.usage = Some(context.engine().usage(&context.call, id)?);
    }
    context.ok(stats)
}

fn verify(context: &RequestContext, _: NoParameters, _: Nothing) -> ApiResult<Verified> {
    context.caller.check_store(Access::Read)?;
    Ok(Reply::ok(context.engine().verify()?))
}

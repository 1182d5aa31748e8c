//! Totals and verification of the store.

use axum::http::Method;
use tine_api::bodies::Nothing;
use tine_api::{Answer, Stats, UsageDimension, UsageQuery, UsageReport, Verified};
use tine_core::{ConversationId, ErrorKind, Timestamp};

use super::{NoParameters, parameters};
use crate::access::Access;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, Reply, RequestContext, Routes};

const TAG: &str = "Store";

parameters!(StatsQuery {
    /// Includes the totals of this conversation.
    conversation_id: Option<ConversationId>,
    /// Whether to include tokens and cost by conversation, branch and model. By default only if a
    /// conversation is named.
    usage: Option<bool>,
});

parameters!(UsageReportQuery {
    /// The dimensions to group by, separated by commas: `day`, `program`, `folder`, `model`. Without
    /// any, the report has only a total.
    by: Option<String>,
    /// Only turns created at this time or later.
    since: Option<Timestamp>,
    /// Only turns created before this time.
    until: Option<Timestamp>,
    /// Only conversations of this program, such as `claude-code`.
    program: Option<String>,
    /// Only conversations about this folder or one below it. A name without slashes is compared with
    /// the last part of the folder.
    folder: Option<String>,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let usage_operation = Operation::new(TAG, "getUsage", "Report tokens and cost of a project");
    let routes = routes.get("/api/v1/usage", usage_operation, usage_report);
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

fn usage_report(
    context: &RequestContext,
    query: UsageReportQuery,
) -> ApiResult<Answer<UsageReport>> {
    let dimension = |name: &str| {
        UsageDimension::named(name).ok_or_else(|| {
            let why = format!("expected day, program, folder or model in `by`, got `{name}`");
            Problem::new(ErrorKind::Invalid, why)
        })
    };
    let by = query.by.as_deref().filter(|by| !by.is_empty());
    let query = UsageQuery {
        by: by.into_iter().flat_map(|by| by.split(',')).map(dimension).collect::<Result<_, _>>()?,
        since: query.since,
        until: query.until,
        program: query.program,
        folder: query.folder,
        prices: context.app.options.prices.clone(),
    };
    context.ok(context.engine().usage_report(&context.call, &query)?)
}

fn verify(context: &RequestContext, _: NoParameters, _: Nothing) -> ApiResult<Verified> {
    context.caller.check_store(Access::Read)?;
    Ok(Reply::ok(context.engine().verify()?))
}

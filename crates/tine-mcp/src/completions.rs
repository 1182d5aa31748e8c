//! Completions of ids and names.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use tine_engine::{Call, Engine, EntityQuery, Page};

use crate::access_scope::AccessScope;
use crate::mcp_error::McpError;
use crate::server::McpOptions;
use crate::shared_arguments::conversation;

/// The most records read for one completion.
const LOOKED_AT: usize = 1_000;

pub(crate) fn complete(
    engine: &Engine,
    options: &McpOptions,
    scope: &AccessScope,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, McpError> {
    let project = scope.project(None, &options.project);
    scope.check(&project, false)?;
    let call = Call::by(options.actor.clone()).in_project(project);
    let typed = request.argument.value.as_str();
    let page = Page { cursor: None, limit: Some(LOOKED_AT.min(engine.limits().page_rows)) };
    let named = match &request.r#ref {
        Reference::Resource(resource) => {
            let kind = resource.uri.strip_prefix("tine://").and_then(|rest| rest.split_once('/'));
            kind.map_or("", |(kind, _)| kind)
        }
        _ => request.argument.name.as_str(),
    };
    let found: Vec<String> = match named {
        "conversation" | "conversation_id" => {
            let all = engine.conversations(&call, false, page)?.items;
            all.into_iter().map(|it| it.id.to_string()).collect()
        }
        "branch" | "branch_a" | "branch_b" => {
            let chosen = request.context.as_ref().and_then(|context| context.arguments.as_ref());
            match chosen.and_then(|arguments| arguments.get("conversation_id")) {
                None => Vec::new(),
                Some(id) => {
                    let id = conversation(id, engine.limits())?;
                    let all = engine.branches(&call, &id)?;
                    all.into_iter().map(|it| it.name.to_string()).collect()
                }
            }
        }
        "turn" => tips(engine, &call)?,
        "entity" => {
            let by_name =
                !typed.is_empty() && !"ent_".starts_with(typed) && !typed.starts_with("ent_");
            let query =
                EntityQuery { text: by_name.then(|| typed.to_owned()), ..EntityQuery::default() };
            let all = engine.entities(&call, query, page)?.items;
            let ids: Vec<String> = all.into_iter().map(|it| it.id.to_string()).collect();
            return answer(ids, if by_name { "" } else { typed });
        }
        "source" => {
            let all = engine.sources(&call, page)?.items;
            all.into_iter().map(|it| it.id.to_string()).collect()
        }
        _ => Vec::new(),
    };
    answer(found, typed)
}

/// Returns the tips of branches, which are the most likely turns.
fn tips(engine: &Engine, call: &Call) -> Result<Vec<String>, McpError> {
    let page = Page { cursor: None, limit: Some(CompletionInfo::MAX_VALUES) };
    let mut found = Vec::new();
    for conversation in engine.conversations(call, false, page)?.items {
        let branches = engine.branches(call, &conversation.id)?;
        found.extend(branches.iter().filter_map(|branch| branch.tip).map(|tip| tip.to_string()));
        if found.len() >= LOOKED_AT {
            break;
        }
    }
    Ok(found)
}

fn answer(found: Vec<String>, typed: &str) -> Result<CompleteResult, McpError> {
    let mut fitting: Vec<String> = found.into_iter().filter(|it| it.starts_with(typed)).collect();
    fitting.dedup();
    let total = fitting.len();
    fitting.truncate(CompletionInfo::MAX_VALUES);
    let more = total > fitting.len();
    let total = u32::try_from(total).ok();
    let info = CompletionInfo::with_pagination(fitting, total, more).map_err(McpError::invalid)?;
    Ok(CompleteResult::new(info))
}

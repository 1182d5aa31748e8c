//! Tool calls without a result. Providers require a result for every call, so before a conversation
//! continues, a placeholder result is recorded for each and marked as such.

use tine_core::json::{Json, object};
use tine_core::{Message, Metadata, Role};
use tine_engine::{BranchView, Call, Engine, PathQuery, Result, Selection, TurnView};
use tine_store::Content;

use crate::session_updates::SYNTHETIC;

const NO_RESULT: &str = "[no result: the conversation went on before there was one]";

/// Turns read at first to find unanswered calls.
const LOOK_BACK: usize = 32;

/// Returns a placeholder result for each call of a branch that has no result.
pub(crate) fn placeholder_results(
    engine: &Engine,
    call: &Call,
    branch: &BranchView,
) -> Result<Vec<Message>> {
    Ok(unanswered_in_branch(engine, call, branch)?.iter().map(|call| no_result(call)).collect())
}

/// Returns the calls after the last question that have no result.
fn unanswered_in_branch(engine: &Engine, call: &Call, branch: &BranchView) -> Result<Vec<String>> {
    let Some(tip) = branch.tip else { return Ok(Vec::new()) };
    let mut look_back = LOOK_BACK;
    loop {
        let query = PathQuery {
            selection: Selection::Last(look_back),
            ..PathQuery::of(branch.conversation.clone()).to(tip)
        };
        let mut turns = Vec::new();
        let mut cursor = None;
        loop {
            let page = engine.path(call, PathQuery { cursor, ..query.clone() })?;
            turns.extend(page.turns);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let question = turns.iter().rposition(|turn| turn.role == Role::User);
        if question.is_some() || turns.len() < look_back {
            return Ok(unanswered(&turns[question.map_or(0, |at| at + 1)..]));
        }
        look_back = look_back.saturating_mul(4);
    }
}

/// Returns a placeholder result, marked as synthetic.
fn no_result(call: &str) -> Message {
    let custom_data = Some(object([(SYNTHETIC, true.into())]));
    let metadata = Metadata { custom_data, ..Metadata::default() };
    Message { metadata, ..Message::tool(call, NO_RESULT) }
}

/// Returns the calls in these turns that have no result among them.
fn unanswered(turns: &[TurnView]) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for turn in turns {
        if let Some(answered) = &turn.tool_call_id {
            open.retain(|call| call != answered);
        }
        let Content::Kept(body) = &turn.content else { continue };
        for block in body.blocks().unwrap_or_default() {
            let member = |name| block.get(name).and_then(Json::as_str);
            if let (Some("tool-use"), Some(call)) = (member("type"), member("id")) {
                open.push(call.to_owned());
            }
        }
    }
    open
}

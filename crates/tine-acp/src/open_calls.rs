//! Calls that nobody answered: every provider wants a result for each, so one is made up, and marked
//! so, before the conversation goes on.

use tine_core::json::{Json, object};
use tine_core::{Message, Metadata, Role};
use tine_engine::{BranchView, Call, Engine, PathQuery, Result, Selection, TurnView};
use tine_store::Content;

use crate::show;

/// What is recorded for a call that nobody answered.
const NO_RESULT: &str = "[no result: the conversation went on before there was one]";

/// Turns that are read at first to find open calls.
const LOOK_BACK: usize = 32;

/// A result for each call of a branch that has none.
pub(crate) fn answered(engine: &Engine, call: &Call, branch: &BranchView) -> Result<Vec<Message>> {
    Ok(open(engine, call, branch)?.iter().map(|call| no_result(call)).collect())
}

/// Calls behind the last question that have no result.
fn open(engine: &Engine, call: &Call, branch: &BranchView) -> Result<Vec<String>> {
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

/// A result for a call that nobody answered, marked as such.
fn no_result(call: &str) -> Message {
    let custom_data = Some(object([(show::SYNTHETIC, true.into())]));
    let metadata = Metadata { custom_data, ..Metadata::default() };
    Message { metadata, ..Message::tool(call, NO_RESULT) }
}

/// Calls in these turns that none of them answers.
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

//! What listings show of a conversation: a label, how much it holds, which program it comes from.
//!
//! Nothing of this is stored. A label is the title or the first question, so conversations imported
//! by any version have one. Cost does not grow with a conversation's length: one branch's tip, and
//! the first turns of its path.

use tine_core::text::preview;
use tine_core::{ConversationId, Json, Role, Timestamp};
use tine_store::{Branch, Content, Conversation, Read, SegmentNo, Turn};

use crate::Result;
use crate::tree::shown::{SegmentRun, Tree, TurnState};

/// The longest label, in characters.
const LABEL: usize = 200;

/// Turns at the beginning of a path in which the first question is looked for.
const FIRST_TURNS: u32 = 32;

/// The tag of messages that a program sent in the user's name.
const HIDDEN: &str = "hidden";

/// Returns when the last message on any branch was sent; without any, when the conversation was
/// created.
pub(crate) fn active_at(records: &dyn Read, conversation: &Conversation) -> Result<Timestamp> {
    let mut newest = None;
    for branch in records.branches(conversation.key)? {
        if let Some(tip) = branch.tip {
            newest = newest.max(records.turn_time(tip)?);
        }
    }
    Ok(newest.unwrap_or(conversation.created_at))
}

/// Returns the title or the beginning of the first question; `None` if nothing was said.
pub(crate) fn label(records: &dyn Read, conversation: &Conversation) -> Result<Option<String>> {
    if let Some(title) = conversation.title.as_deref().filter(|title| !title.trim().is_empty()) {
        return Ok(Some(preview(title, LABEL)));
    }
    let branches = records.branches(conversation.key)?;
    let is_main = |branch: &&Branch| branch.name.as_str() == "main" && branch.tip.is_some();
    let main = branches.iter().find(is_main);
    let Some(tip) = main.or_else(|| branches.iter().find(|it| it.tip.is_some())) else {
        return Ok(None);
    };
    let tree = Tree::new(records, conversation.key);
    let runs = tip.tip.map(|tip| tree.path_runs(tip)).transpose()?.unwrap_or_default();
    first_question(&tree, &runs)
}

/// Returns the beginning of the first message that a user wrote on a path. Messages that programs
/// add in the user's name only count if there is no other.
fn first_question(tree: &Tree<'_>, runs: &[SegmentRun]) -> Result<Option<String>> {
    let mut second_choice: Option<String> = None;
    let mut left = FIRST_TURNS;
    for run in runs {
        let mut found = None;
        let mut outcome = Ok(());
        let to = run.to.min(run.from.saturating_add(left));
        tree.records().turns(run.segment, run.from, to, &mut |turn| {
            left = left.saturating_sub(1);
            match question(tree, &turn) {
                Ok(Some(Question::Asked(text))) => found = Some(text),
                Ok(Some(Question::Added(text))) => {
                    second_choice.get_or_insert(text);
                }
                Ok(None) => {}
                Err(error) => outcome = Err(error),
            }
            Ok(found.is_none() && outcome.is_ok() && left > 0)
        })?;
        outcome?;
        if found.is_some() || left == 0 {
            return Ok(found.or(second_choice));
        }
    }
    Ok(second_choice)
}

enum Question {
    /// A user wrote it.
    Asked(String),
    /// A program added it, or it is not a user's message at all.
    Added(String),
}

fn question(tree: &Tree<'_>, turn: &Turn) -> Result<Option<Question>> {
    let Content::Kept(body) = &turn.content else { return Ok(None) };
    if matches!(tree.state(turn.loc)?, TurnState::Bridged(_) | TurnState::Gone(_)) {
        return Ok(None);
    }
    let text = body.preview(LABEL);
    if text.is_empty() {
        return Ok(None);
    }
    if turn.role != Role::User || turn.metadata.tags.iter().any(|tag| tag == HIDDEN) {
        return Ok(Some(Question::Added(text)));
    }
    let whole = body.text_only();
    Ok(Some(match whole.as_deref().map(without_elements) {
        None => Question::Asked(text),
        Some(rest) if rest.trim().is_empty() => Question::Added(text),
        Some(rest) => Question::Asked(preview(&rest, LABEL)),
    }))
}

/// Removes elements such as `<ide_selection>…</ide_selection>` that begin a line. Programs put what
/// they add to a message into such elements.
fn without_elements(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        match element_end(rest) {
            Some(end) => rest = &rest[end..],
            None => {
                kept.push_str(&rest[..line_end]);
                rest = &rest[line_end..];
            }
        }
    }
    kept
}

/// Returns where the element that a text begins with ends.
fn element_end(text: &str) -> Option<usize> {
    let indent = text.len() - text.trim_start().len();
    let inner = text[indent..].strip_prefix('<')?;
    let name_end =
        inner.find(|symbol: char| !(symbol.is_ascii_alphanumeric() || "_-".contains(symbol)))?;
    let name = &inner[..name_end];
    // HTML is more likely to be what a user asks about.
    if !name.contains(['_', '-']) {
        return None;
    }
    let close = format!("</{name}>");
    text.find(&close).map(|at| at + close.len())
}

/// Returns the number of turns that are shown: all but those that are hidden or shown as halves.
pub(crate) fn turns(records: &dyn Read, conversation: &Conversation) -> Result<u64> {
    let key = conversation.key;
    let all: u64 = records.segments(key)?.iter().map(|extent| u64::from(extent.turns)).sum();
    let wholes = records.splits(key)?.into_iter().map(|split| split.whole);
    let wholes = wholes.map(|whole| (whole.segment, whole.index, whole.index));
    let hidden = records.hidden(key)?.into_iter().map(|run| (run.segment, run.from, run.to));
    let mut runs: Vec<(SegmentNo, u32, u32)> = hidden.chain(wholes).collect();
    runs.sort_unstable_by_key(|(segment, from, _)| (segment.0, *from));
    let mut missing = 0;
    let mut end: Option<(SegmentNo, u32)> = None;
    for (segment, from, to) in runs {
        // Several operations may have hidden the same turn.
        let from = match end {
            Some((last, index)) if last == segment => from.max(index + 1),
            _ => from,
        };
        if from <= to {
            missing += u64::from(to - from) + 1;
            end = Some((segment, to));
        }
    }
    Ok(all.saturating_sub(missing))
}

/// Returns the program that a conversation comes from, by its metadata: the format of an import, or
/// the agent that was recorded.
pub(crate) fn program(metadata: &Json) -> Option<&str> {
    let imported = metadata.get("imported").and_then(|it| it.get("format"));
    let recorded = || metadata.get("acp").and_then(|it| it.get("agent"));
    imported.or_else(recorded).and_then(Json::as_str)
}

/// Returns the folder that a conversation was about, by its metadata.
pub(crate) fn folder(metadata: &Json) -> Option<&str> {
    let recorded = || metadata.get("acp").and_then(|it| it.get("cwd"));
    metadata.get("folder").or_else(recorded).and_then(Json::as_str).filter(|it| !it.is_empty())
}

/// Returns the ids of conversations that this one started, as its import recorded them.
pub(crate) fn started(metadata: &Json) -> impl Iterator<Item = ConversationId> {
    let list = metadata.get("imported").and_then(|it| it.get("started"));
    let list = list.and_then(Json::as_array).unwrap_or_default().to_vec();
    list.into_iter().filter_map(|id| id.as_str().map(ConversationId::from_stored))
}

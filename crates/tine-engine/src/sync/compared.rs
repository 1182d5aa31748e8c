//! How far logs that went another way were looked through without finding anything new.
//!
//! What brings something new says so in its own entry of the log (`merged`). What brings nothing
//! has no entry, and gets none: that would be news to every other store. So it is kept beside the
//! log, tells nothing that could not be found out again, and never travels.

use tine_core::json::{self, Json};
use tine_core::{ConversationId, ProjectId};
use tine_store::{EntryKind, Read, Write};

use super::delta::{mark_from_json, mark_json};
use crate::LogMerge;
use crate::Result;

/// Marks that are kept for a conversation, the newest; one for each store that it is synced with
/// would do.
const KEPT: usize = 32;

/// The marks of a conversation, oldest first. Each says where its own log ended then.
pub(super) fn compared(
    records: &dyn Read,
    project: &ProjectId,
    id: &ConversationId,
) -> Result<Vec<LogMerge>> {
    let text = records.entry(project, EntryKind::Compared, id.as_str().as_bytes())?;
    let marks = text.and_then(|text| json::parse(text.as_bytes(), json::MAX_DEPTH).ok());
    let mark = |json: &Json| {
        let (seq, of) = (json.get("seq")?.as_u64()?, mark_from_json(json.get("of")?)?);
        Some(LogMerge { seq, of })
    };
    Ok(marks
        .as_ref()
        .and_then(Json::as_array)
        .unwrap_or_default()
        .iter()
        .filter_map(mark)
        .collect())
}

/// Remembers that nothing up to a place in another log is new to this one, which ends at `seq`.
pub(crate) fn remember(
    records: &mut dyn Write,
    project: &ProjectId,
    id: &ConversationId,
    mark: LogMerge,
) -> Result<()> {
    let mut marks = compared(records, project, id)?;
    marks.retain(|known| known.of != mark.of);
    marks.push(mark);
    let surplus = marks.len().saturating_sub(KEPT);
    let told = marks.into_iter().skip(surplus);
    let told = told.map(|it| json::object([("of", mark_json(it.of)), ("seq", it.seq.into())]));
    let text = Json::Array(told.collect()).to_canonical();
    Ok(records.put_entry(project, EntryKind::Compared, id.as_str().as_bytes(), &text)?)
}

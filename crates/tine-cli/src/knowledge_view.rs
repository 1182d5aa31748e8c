//! Knowledge records as text: one line per source, run, entity or observation, and tables of names
//! and values.

use std::io::Write;

use tine_core::Json;
use tine_core::json::Object;
use tine_core::{EntityId, ObservationId};
use tine_engine::{
    EntityView, InterpretationView, ObservationView, RunStatus, SourceView, StoredTurn,
};

use crate::command_error::Result;
use crate::record_args::turn_key;
use crate::terminal::text::{count, cut, visible, width};
use crate::terminal::{Screen, short_time};

/// Maximum width of the column of names.
const MAX_NAME_COLUMNS: usize = 24;

/// Maximum width of a value when the terminal's width is unknown.
const MAX_VALUE_COLUMNS: usize = 400;

/// Writes rows of a name and a value, with the values aligned.
pub(crate) fn write_rows(
    out: &mut dyn Write,
    screen: &Screen,
    indent: usize,
    rows: &[(String, String)],
) -> Result<()> {
    let column = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0).min(MAX_NAME_COLUMNS);
    for (name, value) in rows {
        let gap = " ".repeat(column.saturating_sub(width(name)));
        let name = screen.paint.dim(name);
        let line = format!("{:indent$}{name}{gap}  {value}", "");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Builds a row of a name and a displayable value.
pub(crate) fn row(name: &str, value: impl ToString) -> (String, String) {
    (visible(name).into_owned(), value.to_string())
}

/// Formats a value on one line: strings as they are, anything else as JSON.
pub(crate) fn value(value: &Json, columns: usize) -> String {
    match value {
        Json::String(text) => cut(text, columns),
        other => cut(&other.to_canonical(), columns),
    }
}

/// Returns one row per field.
pub(crate) fn field_rows(screen: &Screen, fields: &Object) -> Vec<(String, String)> {
    let column = fields.keys().map(width).max().unwrap_or(0).min(MAX_NAME_COLUMNS);
    let room =
        screen.columns.map_or(MAX_VALUE_COLUMNS, |all| all.saturating_sub(column + 4).max(20));
    fields.iter().map(|(name, it)| row(name, value(it, room))).collect()
}

/// Formats fields on one line.
pub(crate) fn fields_line(fields: &Object, columns: usize) -> String {
    let each = fields.iter().map(|(name, it)| format!("{name}={}", value(it, MAX_VALUE_COLUMNS)));
    cut(&each.collect::<Vec<_>>().join("  "), columns)
}

/// Returns the columns that remain when `others` are taken.
pub(crate) fn room(screen: &Screen, others: usize) -> usize {
    screen.columns.map_or(200, |all| all.saturating_sub(others).max(20))
}

/// Formats a source on one line.
pub(crate) fn source_line(screen: &Screen, it: &SourceView) -> String {
    let name = match &it.original_filename {
        Some(name) => format!("  {}", cut(name, 60)),
        None => String::new(),
    };
    let turn = it.turn.map(|turn| format!("  turn {turn}")).unwrap_or_default();
    let purged = if it.purged { screen.paint.warning("  (purged)") } else { String::new() };
    format!(
        "{}  {}  {:>10}  {}{name}{turn}{purged}",
        screen.paint.hash(&it.id.to_string()),
        screen.paint.dim(&short_time(it.stored_at)),
        count(it.size_bytes, "byte"),
        cut(&it.mime_type, 60),
    )
}

/// Formats an interpretation run on one line.
pub(crate) fn run_line(screen: &Screen, run: &InterpretationView) -> String {
    let status = match run.status {
        RunStatus::Failed => screen.paint.warning(run.status.as_str()),
        other => other.as_str().to_owned(),
    };
    let end = match (run.status, &run.error) {
        (_, Some(error)) => cut(error, room(screen, 70)),
        (RunStatus::Completed, None) => count(run.observations.len() as u64, "observation"),
        _ => format!("over {}", run.source),
    };
    format!(
        "{}  {}  {status}  {}  {end}",
        screen.paint.hash(&run.id.to_string()),
        screen.paint.dim(&short_time(run.queued_at)),
        visible(&run.interpreter),
    )
}

/// Formats an entity on one line.
pub(crate) fn entity_line(screen: &Screen, it: &EntityView) -> String {
    let name = match turn_key(it) {
        Some(key) => key,
        None => {
            it.name.clone().unwrap_or_else(|| fields_line(&it.snapshot.fields, MAX_VALUE_COLUMNS))
        }
    };
    let deleted =
        if it.deleted_at.is_some() { screen.paint.warning("  (deleted)") } else { String::new() };
    format!(
        "{}  {:<13}  {}{deleted}",
        screen.paint.hash(&it.id.to_string()),
        it.entity_type,
        cut(&name, room(screen, 36 + 2 + 13 + 2 + 12)),
    )
}

/// Formats an observation on one line: the content for a version of a turn, otherwise the fields.
/// If `beside` is its entity, only the last part of the id is shown.
pub(crate) fn observation_line(
    screen: &Screen,
    it: &ObservationView,
    beside: Option<EntityId>,
) -> String {
    let one = &it.observation;
    let short = |id: ObservationId| match beside {
        Some(entity) if entity == id.entity => format!("{:016x}", id.seq),
        _ => id.to_string(),
    };
    let id = short(one.id);
    let mut marks = Vec::new();
    if one.correction {
        marks.push("correction".to_owned());
    }
    if let Some(seq) = one.retracts {
        marks.push(format!("retracts {}", short(ObservationId { seq, ..one.id })));
    }
    if it.retracted {
        marks.push("retracted".to_owned());
    }
    let marks = match marks.is_empty() {
        true => String::new(),
        false => format!("  ({})", marks.join(", ")),
    };
    let room = room(screen, width(&id) + 2 + 16 + 2 + 6 + 2 + width(&marks));
    let content_text = match (one.fields.get("turn_hash"), one.fields.get("content")) {
        (Some(Json::String(hash)), Some(content)) => {
            let hash = hash.trim_start_matches("sha256:").get(..12).unwrap_or(hash);
            format!("{}  {}", screen.paint.hash(hash), value(content, room.saturating_sub(14)))
        }
        _ => fields_line(&one.fields, room),
    };
    let line = format!(
        "{}  {}  {:<6}  {content_text}",
        screen.paint.hash(&id),
        screen.paint.dim(&short_time(one.observed_at)),
        one.origin.as_str(),
    );
    format!("{}{}", line.trim_end(), screen.paint.warning(&marks))
}

/// Returns rows that describe a stored turn.
pub(crate) fn stored_turn_rows(screen: &Screen, done: &StoredTurn) -> Vec<(String, String)> {
    let paint = screen.paint;
    let key = done.slot.turn_key(&done.conversation);
    let hash = paint.hash(&done.turn.hash.short());
    let mut rows = vec![
        row("conversation", visible(done.conversation.as_str())),
        row("turn key", visible(&key)),
        row("observation", done.observation),
        row("turn", format!("{hash}  {}", done.outcome.as_str())),
    ];
    if let Some(old) = done.superseded {
        rows.push(row("supersedes", old));
    }
    let tip = match done.branch.tip_hash {
        Some(hash) => paint.hash(&hash.short()),
        None => "root".to_owned(),
    };
    let label = paint.branch(&format!("[{}]", visible(done.branch.name.as_str())));
    rows.push(row("branch", format!("{label} ends on {tip}")));
    if let Some(source) = done.source {
        rows.push(row("source", source));
    }
    rows
}

/// Returns the row of the run that a store started, if it started one.
pub(crate) fn run_row(screen: &Screen, run: Option<&InterpretationView>) -> Vec<(String, String)> {
    run.map(|run| row("run", run_line(screen, run))).into_iter().collect()
}

/// Writes whether the answer is replayed or undone, and the warnings.
pub(crate) fn write_notes(
    out: &mut dyn Write,
    warnings: &[String],
    replayed: bool,
    undone: bool,
) -> Result<()> {
    if replayed {
        writeln!(out, "(result of an earlier call with this key)")?;
    }
    if undone {
        writeln!(out, "(undone since)")?;
    }
    for warning in warnings {
        writeln!(out, "warning: {}", visible(warning))?;
    }
    Ok(())
}

//! Turns as text: a heading with metadata, then the indented content.

use std::io::Write;

use tine_core::{Body, Json, Role, Status};
use tine_engine::{Presence, TurnView};
use tine_store::Content;

use crate::command_error::Result;
use crate::commit_view::first_line;
use crate::labels::Labels;
use crate::terminal::text::{cut, visible, wrap};
use crate::terminal::{Screen, short_time};

/// Indentation of content.
const INDENT: usize = 4;

/// Maximum width of a commit's message in a heading.
const MESSAGE: usize = 40;

/// Formats a turn on one line: hash, role and a preview. `others` columns stay free.
pub(crate) fn one_line(screen: &Screen, turn: &TurnView, others: usize) -> String {
    let paint = screen.paint;
    let room = screen.columns.map_or(80, |all| all.saturating_sub(12 + 2 + 9 + 2 + others));
    let hash = paint.hash(&turn.hash.short());
    let role = paint.role(turn.role, &format!("{:9}", turn.role.as_str()));
    format!("{hash}  {role}  {}", preview(turn, room))
}

/// Returns the title, or the beginning of the content, on one line.
pub(crate) fn preview(turn: &TurnView, columns: usize) -> String {
    match (&turn.metadata.title, &turn.content) {
        (Some(title), _) => cut(title, columns),
        (None, Content::Kept(body)) => cut(&body.preview(columns.min(400)), columns),
        (None, Content::Purged(_)) => "(purged)".to_owned(),
    }
}

/// Formats the heading of a turn.
pub(crate) fn heading(screen: &Screen, turn: &TurnView, labels: &Labels) -> String {
    let paint = screen.paint;
    let mut parts = vec![
        paint.hash(&turn.hash.short()),
        paint.role(turn.role, turn.role.as_str()),
        paint.dim(&short_time(turn.created_at)),
    ];
    for name in labels.branches(&turn.id) {
        parts.push(paint.branch(&format!("[{}]", visible(name))));
    }
    for name in labels.bookmarks(&turn.id) {
        parts.push(paint.bookmark(&format!("[★ {}]", visible(name))));
    }
    for commit in labels.commits(turn) {
        let message = cut(first_line(&commit.commit.message), MESSAGE);
        parts.push(paint.hash(&format!("[commit {}: {message}]", commit.hash.short())));
    }
    for tag in &turn.metadata.tags {
        parts.push(paint.tag(&format!("#{}", visible(tag))));
    }
    parts.extend(badges(turn).into_iter().map(|mark| paint.warning(&format!("({mark})"))));
    parts.join("  ")
}

/// Returns the states that differ from a complete, live turn.
pub(crate) fn badges(turn: &TurnView) -> Vec<&'static str> {
    let mut marks = Vec::new();
    if turn.status == Status::Partial {
        marks.push("partial");
    }
    match turn.presence {
        Presence::Live => {}
        Presence::Deleted => marks.push("deleted"),
        Presence::Split => marks.push("shown as two"),
    }
    if matches!(turn.content, Content::Purged(_)) {
        marks.push("purged");
    }
    marks
}

/// Writes a turn's heading, title and content.
pub(crate) fn write_turn(
    out: &mut dyn Write,
    screen: &Screen,
    turn: &TurnView,
    labels: &Labels,
) -> Result<()> {
    writeln!(out, "{}", heading(screen, turn, labels))?;
    if let Some(title) = &turn.metadata.title {
        let room = screen.columns.map_or(usize::MAX, |columns| columns.saturating_sub(INDENT));
        write_indented(out, &screen.paint.bold(&cut(title, room)))?;
    }
    write_content(out, screen, turn)
}

/// Writes the whole content of a turn.
pub(crate) fn write_content(out: &mut dyn Write, screen: &Screen, turn: &TurnView) -> Result<()> {
    if let Some(call) = &turn.tool_call_id {
        let line = format!("answers the call {}", visible(call));
        write_indented(out, &screen.paint.dim(&line))?;
    }
    match &turn.content {
        Content::Purged(digest) => {
            let line = format!("(purged; its message digest was {digest})");
            write_indented(out, &screen.paint.dim(&line))
        }
        Content::Kept(body) => write_body(out, screen, body),
    }
}

fn write_body(out: &mut dyn Write, screen: &Screen, body: &Body) -> Result<()> {
    let blocks = body.blocks()?;
    for block in &blocks {
        let member = |name| block.get(name).and_then(Json::as_str).unwrap_or_default();
        match member("type") {
            "text" => write_wrapped(out, screen, member("text"), None)?,
            "thinking" => write_wrapped(out, screen, member("text"), Some("thinking: "))?,
            "tool-use" => {
                let parameters = block.get("parameters").map(Json::to_canonical);
                let call = format!("→ {} {}", member("name"), parameters.unwrap_or_default());
                let line = format!("{} {}", call.trim_end(), member("id"));
                write_wrapped_with(out, screen, &line, |line| screen.paint.role(Role::Tool, line))?;
            }
            other => {
                let line = format!("[{other}] {}", block.to_canonical());
                write_wrapped_with(out, screen, &line, |line| screen.paint.dim(line))?;
            }
        }
    }
    Ok(())
}

/// Writes wrapped text; with a prefix, dimmed.
pub(crate) fn write_wrapped(
    out: &mut dyn Write,
    screen: &Screen,
    text: &str,
    aside: Option<&str>,
) -> Result<()> {
    match aside {
        None => write_wrapped_with(out, screen, text, str::to_owned),
        Some(prefix) => {
            let text = format!("{prefix}{text}");
            write_wrapped_with(out, screen, &text, |line| screen.paint.dim(line))
        }
    }
}

fn write_wrapped_with(
    out: &mut dyn Write,
    screen: &Screen,
    text: &str,
    paint: impl Fn(&str) -> String,
) -> Result<()> {
    let columns = screen.columns.map(|columns| columns.saturating_sub(INDENT));
    for line in wrap(text, columns) {
        write_indented(out, &paint(&line))?;
    }
    Ok(())
}

/// Writes one line, already painted, with indentation.
fn write_indented(out: &mut dyn Write, line: &str) -> Result<()> {
    let line = format!("{:INDENT$}{line}", "");
    Ok(writeln!(out, "{}", line.trim_end())?)
}

//! Turns as people read them: a line of facts, then what was said, indented.

use std::io::Write;

use tine_core::{Body, Json, Role, Status};
use tine_engine::{Presence, TurnView};
use tine_store::Content;

use crate::commit_view::first_line;
use crate::failure::Result;
use crate::labels::Labels;
use crate::terminal::text::{cut, visible, wrap};
use crate::terminal::{Screen, short_time};

/// Columns before what was said.
const INDENT: usize = 4;

/// Columns of a commit's message in the line of facts.
const MESSAGE: usize = 40;

/// A turn on one line: hash, role and the beginning of what was said, with some columns left for
/// what else stands on that line.
pub(crate) fn one_line(screen: &Screen, turn: &TurnView, others: usize) -> String {
    let paint = screen.paint;
    let room = screen.columns.map_or(80, |all| all.saturating_sub(12 + 2 + 9 + 2 + others));
    let hash = paint.hash(&turn.hash.short());
    let role = paint.role(turn.role, &format!("{:9}", turn.role.as_str()));
    format!("{hash}  {role}  {}", preview(turn, room))
}

/// The beginning of what a turn says, on one line.
pub(crate) fn preview(turn: &TurnView, columns: usize) -> String {
    match (&turn.metadata.title, &turn.content) {
        (Some(title), _) => cut(title, columns),
        (None, Content::Kept(body)) => cut(&body.preview(columns.min(400)), columns),
        (None, Content::Purged(_)) => "(purged)".to_owned(),
    }
}

/// The line of facts above a turn.
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
    parts.extend(marks(turn).into_iter().map(|mark| paint.warning(&format!("({mark})"))));
    parts.join("  ")
}

/// What is unusual about a turn.
pub(crate) fn marks(turn: &TurnView) -> Vec<&'static str> {
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

/// A turn's line of facts, its title, and all that it says.
pub(crate) fn write_turn(
    out: &mut dyn Write,
    screen: &Screen,
    turn: &TurnView,
    labels: &Labels,
) -> Result<()> {
    writeln!(out, "{}", heading(screen, turn, labels))?;
    if let Some(title) = &turn.metadata.title {
        let room = screen.columns.map_or(usize::MAX, |columns| columns.saturating_sub(INDENT));
        indented(out, &screen.paint.bold(&cut(title, room)))?;
    }
    write_content(out, screen, turn)
}

/// All that a turn says.
pub(crate) fn write_content(out: &mut dyn Write, screen: &Screen, turn: &TurnView) -> Result<()> {
    if let Some(call) = &turn.tool_call_id {
        let line = format!("answers the call {}", visible(call));
        indented(out, &screen.paint.dim(&line))?;
    }
    match &turn.content {
        Content::Purged(digest) => {
            let line = format!("(purged; its message digest was {digest})");
            indented(out, &screen.paint.dim(&line))
        }
        Content::Kept(body) => write_body(out, screen, body),
    }
}

fn write_body(out: &mut dyn Write, screen: &Screen, body: &Body) -> Result<()> {
    let blocks = body.blocks()?;
    for block in &blocks {
        let member = |name| block.get(name).and_then(Json::as_str).unwrap_or_default();
        match member("type") {
            "text" => wrapped(out, screen, member("text"), None)?,
            "thinking" => wrapped(out, screen, member("text"), Some("thinking: "))?,
            "tool-use" => {
                let parameters = block.get("parameters").map(Json::to_canonical);
                let call = format!("→ {} {}", member("name"), parameters.unwrap_or_default());
                let line = format!("{} {}", call.trim_end(), member("id"));
                wrapped_in(out, screen, &line, |line| screen.paint.role(Role::Tool, line))?;
            }
            other => {
                let line = format!("[{other}] {}", block.to_canonical());
                wrapped_in(out, screen, &line, |line| screen.paint.dim(line))?;
            }
        }
    }
    Ok(())
}

/// A text as the system prompt or another text outside of any turn.
pub(crate) fn wrapped(
    out: &mut dyn Write,
    screen: &Screen,
    text: &str,
    aside: Option<&str>,
) -> Result<()> {
    match aside {
        None => wrapped_in(out, screen, text, str::to_owned),
        Some(prefix) => {
            let text = format!("{prefix}{text}");
            wrapped_in(out, screen, &text, |line| screen.paint.dim(line))
        }
    }
}

fn wrapped_in(
    out: &mut dyn Write,
    screen: &Screen,
    text: &str,
    paint: impl Fn(&str) -> String,
) -> Result<()> {
    let columns = screen.columns.map(|columns| columns.saturating_sub(INDENT));
    for line in wrap(text, columns) {
        indented(out, &paint(&line))?;
    }
    Ok(())
}

/// One line that is painted already.
fn indented(out: &mut dyn Write, line: &str) -> Result<()> {
    let line = format!("{:INDENT$}{line}", "");
    Ok(writeln!(out, "{}", line.trim_end())?)
}

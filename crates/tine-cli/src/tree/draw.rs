//! Draws rows as text: gutters, marks, and previews that fit the terminal.

use std::io::{self, Write};

use tine_core::{Role, Status};
use tine_engine::{Presence, TopologyRow};

use super::layout::TreeRow;
use crate::terminal::Paint;
use crate::terminal::text::{cut, visible, width};

/// Columns before the gutter: a short hash and a space.
const HASH_COLUMNS: usize = 13;
/// Columns of the mark of a turn, its role, and a space after each.
const ROLE_COLUMNS: usize = 7;
/// The gutter takes at most one part in this many of the terminal's width.
const GUTTER_SHARE: usize = 3;
/// Width of a preview without a terminal.
const UNLIMITED: usize = 10_000;

/// Output settings of a drawing.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    /// Colours.
    pub paint: Paint,
    /// Width of the terminal; without it, nothing is truncated.
    pub columns: Option<usize>,
}

/// The first row: the root of the conversation.
#[derive(Clone, Debug, Default)]
pub struct RootRow {
    /// Text of the row.
    pub text: String,
    /// Branches that end on the root.
    pub branches: Vec<String>,
}

/// Writes the root and the lines below it.
pub fn draw(
    out: &mut dyn Write,
    drawing: &Drawing,
    head: Option<&RootRow>,
    rows: &[TopologyRow],
    lines: &[TreeRow],
) -> io::Result<()> {
    if let Some(head) = head {
        let paint = drawing.paint;
        let room = drawing.columns.map_or(UNLIMITED, |all| all.saturating_sub(HASH_COLUMNS + 2));
        let (labels, taken) = labels(paint, &head.branches, &[], room / 2);
        let text = paint.bold(&cut(&head.text, room.saturating_sub(taken)));
        let root = paint.hash(&format!("{:12}", "root"));
        writeln!(out, "{root} ◆ {labels}{text}")?;
    }
    for line in lines {
        let row = row(drawing, &rows[line.row], line);
        writeln!(out, "{row}")?;
    }
    Ok(())
}

fn row(drawing: &Drawing, row: &TopologyRow, line: &TreeRow) -> String {
    let paint = drawing.paint;
    let gutter = gutter(line, drawing.columns);
    let room = drawing.columns.map_or(UNLIMITED, |columns| {
        columns.saturating_sub(HASH_COLUMNS + width(&gutter) + ROLE_COLUMNS)
    });
    let mark = match (row.presence, line.reached) {
        (Presence::Deleted, _) => "×",
        (_, true) => "●",
        (_, false) => "○",
    };
    let (labels, taken) = labels(paint, &names(&row.branches), &names(&row.bookmarks), room / 2);
    let (suffix, suffix_columns) = suffix(paint, row, line, room.saturating_sub(taken) / 2);
    let text = text(paint, row, line, room.saturating_sub(taken + suffix_columns));
    let suffix = if text.is_empty() { suffix.trim_start() } else { suffix.as_str() };
    let whole = format!(
        "{} {}{} {} {labels}{text}{suffix}",
        paint.hash(&row.hash.short()),
        paint.dim(&gutter),
        paint.role(row.role, mark),
        paint.role(row.role, short_role(row.role)),
    );
    whole.trim_end().to_owned()
}

fn names(names: &[tine_core::Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

const fn short_role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "asst",
        Role::Tool => "tool",
        Role::System => "sys ",
    }
}

/// Draws the lines that continue below. In a narrow terminal the outermost ones are omitted.
fn gutter(line: &TreeRow, columns: Option<usize>) -> String {
    let most = columns.map_or(usize::MAX, |columns| columns / GUTTER_SHARE / 2);
    let shown = line.level.min(most);
    let mut gutter = String::new();
    if shown < line.level {
        gutter.push('⋯');
    }
    for level in 0..shown {
        let last = level + 1 == shown;
        gutter.push_str(if last && line.side { "├─" } else { "│ " });
    }
    gutter
}

/// Formats names in brackets, each followed by a space, and returns their width.
fn labels(paint: Paint, branches: &[String], bookmarks: &[String], room: usize) -> (String, usize) {
    let branches = branches.iter().map(|name| (false, format!("[{}]", visible(name))));
    let bookmarks = bookmarks.iter().map(|name| (true, format!("[★ {}]", visible(name))));
    let all: Vec<(bool, String)> = branches.chain(bookmarks).collect();
    let (mut out, mut taken) = (String::new(), 0);
    for (place, (bookmark, label)) in all.iter().enumerate() {
        let label = if place == 0 { cut(label, room) } else { label.clone() };
        if taken + width(&label) + 1 > room && place > 0 {
            let rest = format!("[+{}] ", all.len() - place);
            taken += width(&rest);
            out.push_str(&rest);
            break;
        }
        taken += width(&label) + 1;
        out.push_str(&if *bookmark { paint.bookmark(&label) } else { paint.branch(&label) });
        out.push(' ');
    }
    (out, taken)
}

/// Formats the title or the preview.
fn text(paint: Paint, row: &TopologyRow, line: &TreeRow, room: usize) -> String {
    match &row.title {
        Some(title) => paint.bold(&cut(title, room)),
        None if row.purged => String::new(),
        None => {
            let text = cut(&row.preview, room);
            if line.reached { text } else { paint.dim(&text) }
        }
    }
}

/// Formats what follows the text: states, the number of folded turns, and tags that fit.
fn suffix(paint: Paint, row: &TopologyRow, line: &TreeRow, room: usize) -> (String, usize) {
    let marks = [
        (row.purged, "(purged)"),
        (row.status == Status::Partial, "(partial)"),
        (row.presence == Presence::Deleted, "(deleted)"),
        (row.presence == Presence::Split, "(shown as two)"),
    ];
    let mut notes: Vec<(String, String)> = marks
        .iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, mark)| ((*mark).to_owned(), paint.warning(mark)))
        .collect();
    if line.folded {
        let count = format!("×{}", row.descendants);
        let painted = paint.bold(&count);
        notes.push((count, painted));
    }
    let mut taken: usize = notes.iter().map(|(plain, _)| width(plain) + 1).sum();
    for tag in &row.tags {
        let tag = format!("#{}", visible(tag));
        if taken + width(&tag) + 1 > room {
            break;
        }
        taken += width(&tag) + 1;
        let painted = paint.tag(&tag);
        notes.push((tag, painted));
    }
    (notes.iter().map(|(_, painted)| format!(" {painted}")).collect(), taken)
}

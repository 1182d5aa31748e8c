//! Markdown: a path for people to read.
//!
//! One heading for each turn, texts as they are, thinking as a quotation, calls and results in
//! fences that nothing inside can close. Nothing is paired, moved or closed: this is not sent to
//! anybody. Neighbours of one role are merged under one heading.

use std::fmt::Write;

use tine_core::Role;

use super::media::{Media, MediaKind, Source};
use super::notes::Notes;
use super::turn_parts::{ParsedTurns, Part, PartKind, TurnParts, labeled_summary};

pub(super) fn write(script: &ParsedTurns, notes: &mut Notes) -> String {
    let mut out = String::new();
    let mut before: Option<&TurnParts> = None;
    for said in &script.said {
        let goes_on = before.is_some_and(|it| it.role == said.role && it.is_text())
            && said.is_text()
            && said.role != Role::Tool;
        if goes_on {
            if !said.joins {
                out.push_str("\n\n");
            }
        } else {
            if before.is_some() {
                out.push_str("\n\n");
            }
            out.push_str(&heading(said));
        }
        write_parts(&mut out, said, goes_on, notes);
        before = Some(said);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn heading(said: &TurnParts) -> String {
    match (&said.answers, said.role) {
        (Some(call), _) => format!("## Result of {}", code(call)),
        (None, Role::System) => "## System".to_owned(),
        (None, Role::Assistant) => "## Assistant".to_owned(),
        (None, Role::User | Role::Tool) => "## User".to_owned(),
    }
}

fn write_parts(out: &mut String, said: &TurnParts, goes_on: bool, notes: &mut Notes) {
    let mut apart = !goes_on;
    for part in &said.parts {
        if apart {
            out.push_str("\n\n");
        }
        // Texts of one turn are joined by nothing, all else stands apart.
        apart = !said.is_text();
        write_part(out, said, part, notes);
    }
}

fn write_part(out: &mut String, said: &TurnParts, part: &Part, notes: &mut Notes) {
    match &part.what {
        PartKind::Text(text) if said.role == Role::Tool => out.push_str(&fenced("", text)),
        PartKind::Text(text) => out.push_str(text),
        PartKind::Summary(text) => out.push_str(&labeled_summary(text)),
        PartKind::Thinking { text, .. } => out.push_str(&quoted(text)),
        PartKind::Call(call) => {
            let parameters = fenced("json", &call.parameters.to_canonical());
            let _ = write!(out, "**Call {}** {}\n\n{parameters}", code(&call.id), code(&call.name));
        }
        PartKind::Media(media) => write_media(out, part, media, notes),
        PartKind::Other { kind, json } => {
            let _ =
                write!(out, "**Block** {}\n\n{}", code(kind), fenced("json", &json.to_canonical()));
        }
    }
}

fn write_media(out: &mut String, part: &Part, media: &Media, notes: &mut Notes) {
    match &media.source {
        Source::Text { .. } | Source::Link(_) => {
            out.push_str(&media.as_text().unwrap_or_default());
        }
        Source::Url(url) if media.kind == MediaKind::Image => {
            let _ = write!(out, "![{}](<{url}>)", media.name.as_deref().unwrap_or("image"));
        }
        Source::Url(url) => {
            let _ = write!(out, "[{}](<{url}>)", media.describe());
        }
        Source::Data(data) => {
            // Base64 has four letters for three bytes.
            let _ = write!(out, "*[{}, {} bytes]*", media.describe(), data.len() / 4 * 3);
            notes.left_out(part.at, media.describe(), "Markdown cannot contain its data");
        }
    }
}

fn quoted(text: &str) -> String {
    let lines = text.split('\n').map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The longest run of backticks in a text.
fn ticks(text: &str) -> usize {
    let runs = text.split(|symbol: char| symbol != '`').map(str::len);
    runs.max().unwrap_or(0)
}

fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(ticks(text).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

fn code(text: &str) -> String {
    let text = text.replace('\n', " ");
    let marks = "`".repeat(ticks(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}

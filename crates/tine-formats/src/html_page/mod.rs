//! Exports conversations as a self-contained HTML page, which can be imported again.
//!
//! The page holds the [`bundle`](crate::bundle), the texts of its turns rendered from Markdown, and
//! a small script that shows a path, with a pager at every turn that has siblings. Its content
//! security policy forbids network access. Texts are rendered [here](markdown), as HTML without
//! scripts, images or raw HTML; the script sets everything else as text.
//!
//! In the page, `<` of the bundle is written as `\u003c`. In a bundle `<` occurs only within
//! strings, where the escape is equivalent, and canonical JSON never uses that escape: the
//! conversion is reversible.

mod markdown;

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use tine_core::json::{self, MAX_DEPTH};
use tine_core::{ConversationId, Json};
use tine_engine::{Call, Engine};

use crate::bundle::{BundleError, spool, write_bundle};
use crate::render::summary_text;

/// The marker at the beginning of a page.
pub const MARK: &str = "<!-- tine-page 1 -->";
/// The tag before the bundle.
pub const OPEN: &str = "<script type=\"application/x-tine-bundle\" id=\"bundle\">";
/// The tag after the bundle.
pub const CLOSE: &str = "</script>";

const TEMPLATE: &str = include_str!("page.html");
const BUNDLE_PLACEHOLDER: &str = "<!-- bundle -->";

/// Writes conversations as a page.
pub fn write_page(
    engine: &Engine,
    call: &Call,
    conversations: &[ConversationId],
    out: &mut dyn Write,
) -> Result<(), BundleError> {
    wrap(out, |out| write_bundle(engine, call, conversations, out).map(|_| ()))
}

/// Writes a page around a bundle that the callback writes.
pub fn wrap<E: From<BundleError>>(
    out: &mut dyn Write,
    bundle: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let (before, after) = TEMPLATE.split_once(BUNDLE_PLACEHOLDER).unwrap_or((TEMPLATE, ""));
    let failed = |source| E::from(BundleError::Write { source });
    write!(out, "{before}{OPEN}").map_err(failed)?;
    let mut page = PageWriter::new(out).map_err(failed)?;
    bundle(&mut page)?;
    page.finish(after).map_err(failed)
}

/// Writes a bundle into a page: escaped, so that nothing in it closes the script element. The
/// rendered texts are collected in a temporary file and follow the bundle.
struct PageWriter<'w> {
    out: &'w mut dyn Write,
    line: Vec<u8>,
    conversations: usize,
    rendered: BufWriter<File>,
}

impl<'w> PageWriter<'w> {
    fn new(out: &'w mut dyn Write) -> io::Result<Self> {
        let rendered = BufWriter::new(spool::create()?);
        Ok(PageWriter { out, line: Vec::new(), conversations: 0, rendered })
    }

    fn finish(self, after: &str) -> io::Result<()> {
        let mut rendered = self.rendered.into_inner()?;
        rendered.seek(SeekFrom::Start(0))?;
        writeln!(self.out, "{CLOSE}")?;
        io::copy(&mut rendered, self.out)?;
        self.out.write_all(after.as_bytes())
    }

    /// Renders the texts of the line that is complete.
    fn render_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        // A line that cannot be parsed is reported by the import.
        let Ok(record) = json::parse(&line, MAX_DEPTH) else { return Ok(()) };
        let member = |name: &str| record.get(name).and_then(Json::as_str);
        match member("record") {
            Some("conversation") => {
                if let Some(prompt) = member("system_prompt") {
                    self.render_text(&format!("system-{}", self.conversations), prompt)?;
                }
                self.conversations += 1;
            }
            Some("turn") if member("role") != Some("tool") => {
                let id = member("turn_id").unwrap_or_default();
                let blocks = record.get("content").and_then(Json::as_array).unwrap_or_default();
                for (nth, block) in blocks.iter().enumerate() {
                    if let Some(text) = text_of(block) {
                        self.render_text(&format!("{id}-{nth}"), text)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn render_text(&mut self, key: &str, text: &str) -> io::Result<()> {
        let html = markdown::to_safe_html(text);
        writeln!(self.rendered, "<template id=\"text-{key}\">{html}</template>")
    }
}

/// Returns the text of a block that is written in Markdown.
fn text_of(block: &Json) -> Option<&str> {
    match block.get("type")?.as_str()? {
        "text" | "thinking" => block.get("text")?.as_str(),
        "summary" => summary_text(block),
        _ => None,
    }
}

impl Write for PageWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (nth, piece) in bytes.split(|byte| *byte == b'<').enumerate() {
            if nth > 0 {
                self.out.write_all(b"\\u003c")?;
            }
            self.out.write_all(piece)?;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.render_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the bundle in a page as `text`.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        if let Some(tail) = escape.strip_prefix("\\u003c") {
            out.push('<');
            rest = tail;
        } else {
            // Skip the whole escape: the second of two backslashes does not begin one.
            let whole = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            out.push_str(&escape[..whole]);
            rest = &escape[whole..];
        }
    }
    out.push_str(rest);
    out
}

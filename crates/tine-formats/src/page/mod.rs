//! Exports conversations as a self-contained HTML page, which can be imported again.
//!
//! The page holds the [`bundle`](crate::bundle) and a small script that shows it: a path, with a
//! pager at every turn that has siblings. Its content security policy forbids network access, and
//! message content is only ever set as text.
//!
//! In the page, `<` is written as `\u003c`. In a bundle `<` occurs only within strings, where the
//! escape is equivalent, and canonical JSON never uses that escape: the conversion is reversible.

use std::io::{self, Write};

use tine_core::ConversationId;
use tine_engine::{Call, Engine};

use crate::bundle::{BundleError, write_bundle};

/// The marker at the beginning of a page.
pub const MARK: &str = "<!-- tine-page 1 -->";
/// The tag before the bundle.
pub const OPEN: &str = "<script type=\"application/x-tine-bundle\" id=\"bundle\">";
/// The tag after the bundle.
pub const CLOSE: &str = "</script>";

const TEMPLATE: &str = include_str!("page.html");
const PLACE: &str = "<!-- bundle -->";

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
    let (before, after) = TEMPLATE.split_once(PLACE).unwrap_or((TEMPLATE, ""));
    let written =
        |done: io::Result<()>| done.map_err(|source| E::from(BundleError::Write { source }));
    written(out.write_all(before.as_bytes()))?;
    written(out.write_all(OPEN.as_bytes()))?;
    bundle(&mut Escaped { inner: out })?;
    written(out.write_all(CLOSE.as_bytes()))?;
    written(out.write_all(after.as_bytes()))
}

/// Escapes a bundle so that nothing in it closes the script element.
struct Escaped<'w> {
    inner: &'w mut dyn Write,
}

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (nth, piece) in bytes.split(|byte| *byte == b'<').enumerate() {
            if nth > 0 {
                self.inner.write_all(b"\\u003c")?;
            }
            self.inner.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the bundle that stands in a page as `text`.
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

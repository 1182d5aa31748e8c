//! Conversations as one page that needs nothing else: to be read by people, and imported again.
//!
//! The page holds the [`bundle`](crate::bundle) as it is, and a small script that shows it: a path,
//! with a pager at every turn that has siblings. It loads nothing and sends nothing: its policy
//! forbids that, and what was said is only ever set as text.
//!
//! In the page `<` is written `\u003c`. It occurs in a bundle only within strings, where that means
//! the same, and a canonical text never says it so: the way back is exact.

use std::io::{self, Write};

use tine_core::ConversationId;
use tine_engine::{Call, Engine};

use crate::bundle::{BundleError, write_bundle};

/// What a page says of itself at its beginning.
pub const MARK: &str = "<!-- tine-page 1 -->";
/// What stands before the bundle.
pub const OPEN: &str = "<script type=\"application/x-tine-bundle\" id=\"bundle\">";
/// What stands behind it.
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

/// Writes a page around a bundle that somebody else writes.
pub fn wrap<E: From<BundleError>>(
    out: &mut dyn Write,
    bundle: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let (before, behind) = TEMPLATE.split_once(PLACE).unwrap_or((TEMPLATE, ""));
    let written =
        |done: io::Result<()>| done.map_err(|source| E::from(BundleError::Write { source }));
    written(out.write_all(before.as_bytes()))?;
    written(out.write_all(OPEN.as_bytes()))?;
    bundle(&mut Escaped { inner: out })?;
    written(out.write_all(CLOSE.as_bytes()))?;
    written(out.write_all(behind.as_bytes()))
}

/// Writes a bundle so that nothing in it ends the element that it stands in.
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

/// The bundle that stands in a page as `text`.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        if let Some(behind) = escape.strip_prefix("\\u003c") {
            out.push('<');
            rest = behind;
        } else {
            // An escape is taken whole: the second of two backslashes begins none.
            let whole = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            out.push_str(&escape[..whole]);
            rest = &escape[whole..];
        }
    }
    out.push_str(rest);
    out
}

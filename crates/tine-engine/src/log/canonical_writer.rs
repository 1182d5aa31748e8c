//! A writer for canonical JSON objects, for the hot path of appends: no intermediate value is
//! built.

use std::fmt::{Display, Write as _};

use tine_core::json::{self, Json, write_canonical_string};

/// Writes one object into a string. Members must be written in canonical order.
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut String,
    last: &'static str,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        ObjectWriter { out, last: "" }
    }

    /// Writes a member's key; its value must be written next.
    pub(crate) fn key(&mut self, name: &'static str) -> &mut String {
        debug_assert!(self.last < name, "`{name}` comes before `{}`", self.last);
        if !self.last.is_empty() {
            self.out.push(',');
        }
        self.last = name;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    pub(crate) fn text(&mut self, name: &'static str, text: Option<&str>) {
        let out = self.key(name);
        match text {
            Some(text) => write_canonical_string(out, text),
            None => out.push_str("null"),
        }
    }

    /// Writes a string that needs no escaping: an id, a hash, a time.
    pub(crate) fn unescaped(&mut self, name: &'static str, value: Option<impl Display>) {
        let out = self.key(name);
        let written = match value {
            Some(value) => write!(out, "\"{value}\""),
            None => out.write_str("null"),
        };
        written.expect("writing to a text does not fail");
    }

    pub(crate) fn literal(&mut self, name: &'static str, value: impl Display) {
        let written = write!(self.key(name), "{value}");
        written.expect("writing to a text does not fail");
    }

    pub(crate) fn json(&mut self, name: &'static str, value: &Json) {
        value.write_canonical(self.key(name));
    }

    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        value: Option<T>,
        write: impl FnOnce(T, &mut String),
    ) {
        let out = self.key(name);
        match value {
            Some(value) => write(value, out),
            None => out.push_str("null"),
        }
    }

    pub(crate) fn end(self) {
        self.out.push('}');
    }
}

/// Writes an array, each item by `write`.
pub(crate) fn write_array<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Returns the canonical form of a JSON text, for debug assertions.
pub(crate) fn canonicalize(text: &str) -> Option<String> {
    Some(json::parse(text.as_bytes(), json::MAX_DEPTH).ok()?.to_canonical())
}

/// Parses JSON that a writer of this crate has written. What is nested too deep to be parsed stays
/// a text, which identifies it as well.
pub(crate) fn parse_canonical(canonical: &str) -> Json {
    let parsed = json::parse(canonical.as_bytes(), json::MAX_DEPTH);
    parsed.unwrap_or_else(|_| canonical.into())
}

//! Redaction: a corpus of secrets and of what only looks like one, and what holds for any text.

mod corpus;
mod random;

use tine_formats::redact::{self, Redacted};

/// A text without its secrets, and what was found.
fn clean(text: &str) -> (String, Redacted) {
    let mut found = Redacted::new();
    let clean = redact::text(text, &mut found);
    (clean.unwrap_or_else(|| text.to_owned()), found)
}

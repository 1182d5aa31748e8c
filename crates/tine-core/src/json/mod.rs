//! Exact JSON: a value, a strict reader, and canonical output.
//!
//! Canonical output is RFC 8785 (JCS) with one addition: an *integer literal* beyond
//! ±(2^53−1) keeps its digits, because agents send 64-bit ids as plain numbers. Everything
//! else follows the RFC to the letter.
//!
//! Invariants:
//!
//! - Two values are equal exactly when their canonical bytes are equal.
//! - Canonical bytes are a fixed point: reading them gives the value that wrote them.
//! - The reader never guesses. A text that two readers could take for different values
//!   (duplicate keys, lone surrogates, numbers that overflow a double) is refused, with the
//!   byte offset of the fault.
//!
//! This is written by hand rather than with `serde_json` for two reasons. `serde_json` drops
//! the digits of large integer literals unless its feature `arbitrary_precision` is on, which
//! Cargo switches on for the whole program and which breaks untagged enums in other crates.
//! And of duplicate keys it silently keeps the last, so that a signed or hashed message could
//! mean one thing here and another elsewhere.
//!
//! [`exact`] lets a value be a field of a serde type, [`de`] makes serde types of values, and
//! [`Scanner`] finds where strings begin and end.
//!
//! Deliberately absent: pretty printing, comments and other dialects, streaming, and key order as
//! it was sent (an object is always in canonical order).

mod canonical;
pub mod de;
pub mod exact;
mod number;
mod reader;
mod scan;
pub mod text_fields;
mod value;

pub use canonical::{compare_keys, write_canonical_string};
pub use number::{NotFinite, Number};
pub use reader::{MAX_DEPTH, parse};
pub use scan::{BytePart, Scanner};
pub use value::{Json, Object, object};

/// Why a text was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at byte {offset})")]
pub struct JsonError {
    /// Offset in bytes from the start of the text to the fault.
    pub offset: usize,
    /// What is wrong there.
    pub kind: JsonErrorKind,
}

impl JsonError {
    /// Returns whether the text may be well formed but exceeds the nesting limit.
    pub fn is_too_deep(&self) -> bool {
        matches!(self.kind, JsonErrorKind::TooDeep { .. })
    }
}

/// What is wrong with a refused text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The text stops inside a value, or there is none.
    #[error("the text ends before the value is complete; check that it was not cut off")]
    UnexpectedEnd,
    /// A byte that cannot stand here.
    #[error("expected {expected} but found {}", describe_byte(*found))]
    UnexpectedByte {
        /// The byte that was found.
        found: u8,
        /// What could have stood there.
        expected: &'static str,
    },
    /// An object has the same key twice; the offset is that of the second.
    #[error("the key {key:?} occurs more than once in the same object; keep one of them")]
    DuplicateKey {
        /// The repeated key, with its escapes resolved.
        key: String,
    },
    /// A number that does not fit in a double.
    #[error("the number {literal} is too large for a double; send it as a string")]
    NumberOverflow {
        /// The number as written; a long one is cut and ends in `…`.
        literal: String,
    },
    /// A number such as `01`.
    #[error("a number must not begin with extra zeros; remove them, or send it as a string")]
    LeadingZero,
    /// A `\u` escape that is half of a surrogate pair.
    #[error(
        "the \\u escape is half of a surrogate pair and stands for no character on its own; \
         send whole characters"
    )]
    LoneSurrogate,
    /// The text is not UTF-8.
    #[error("the text is not valid UTF-8; encode it as UTF-8")]
    InvalidUtf8,
    /// A raw control character in a string.
    #[error("a control character must be escaped inside a string, for example as \\n or \\u0000")]
    ControlCharacter,
    /// Arrays and objects inside each other beyond the limit.
    #[error("arrays and objects are nested more than {limit} deep; flatten the value")]
    TooDeep {
        /// The deepest nesting allowed.
        limit: usize,
    },
    /// Something other than whitespace follows the value.
    #[error("there is more text after the end of the value; send exactly one value")]
    TrailingBytes,
}

/// Returns the byte as a user sees it: the character when it has a visible form, else its hex code.
fn describe_byte(byte: u8) -> String {
    if byte.is_ascii_graphic() {
        format!("`{}`", char::from(byte))
    } else {
        format!("the byte 0x{byte:02x}")
    }
}

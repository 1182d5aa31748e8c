//! References to turns: ids, hashes, branch and bookmark names, and `~N`.

use std::num::{IntErrorKind, ParseIntError};

use crate::hash::{Digest, PREFIX, TurnHash};
use crate::ids::TurnId;

/// A parsed turn reference.
///
/// Lookups try its possible meanings in this order: id, hash, branch, bookmark, hash prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    text: String,
    base: String,
    back: usize,
}

/// The shortest hash prefix that is looked up.
pub const SHORTEST_PREFIX: usize = 8;

/// The reference cannot mean anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// Nothing was given.
    #[error("a turn reference must not be empty; give an id, a hash, a branch or a bookmark")]
    Empty,
    /// No number follows `~`.
    #[error("`{text}` has no number after `~`; write main~2 for two turns before the tip")]
    Count {
        /// What was given.
        text: String,
    },
}

impl Reference {
    /// Parses a reference.
    ///
    /// ```
    /// use tine_core::Reference;
    /// let two_before = Reference::parse("main~2").unwrap();
    /// assert_eq!((two_before.base(), two_before.back()), ("main", 2));
    /// ```
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(ReferenceError::Empty);
        }
        let (base, back) = match trimmed.split_once('~') {
            None => (trimmed, 0),
            Some((base, "")) => (base, 1),
            Some((base, count)) => {
                let count = count.parse().or_else(|error: ParseIntError| match error.kind() {
                    // Further back than any root.
                    IntErrorKind::PosOverflow => Ok(usize::MAX),
                    _ => Err(ReferenceError::Count { text: text.to_owned() }),
                });
                (base, count?)
            }
        };
        if base.is_empty() {
            return Err(ReferenceError::Empty);
        }
        Ok(Reference { text: trimmed.to_owned(), base: base.to_owned(), back })
    }

    /// Returns the reference as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the reference without `~N`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns how many turns to go back from there.
    pub fn back(&self) -> usize {
        self.back
    }

    /// Returns whether it names the root.
    pub fn is_root(&self) -> bool {
        self.base == "root"
    }

    /// Parses the base as a turn id.
    pub fn turn_id(&self) -> Option<TurnId> {
        self.base.parse().ok()
    }

    /// Parses the base as a full hash.
    pub fn turn_hash(&self) -> Option<TurnHash> {
        self.base.parse().ok()
    }

    /// Parses the base as a hash prefix, returned as lower-case hexadecimal digits.
    pub fn hash_prefix(&self) -> Option<String> {
        let hex = self.base.strip_prefix(PREFIX).unwrap_or(&self.base);
        let fits = (SHORTEST_PREFIX..=64).contains(&hex.len());
        let digits = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        (fits && digits).then(|| hex.to_ascii_lowercase())
    }
}

impl From<TurnId> for Reference {
    fn from(id: TurnId) -> Self {
        let text = id.to_string();
        Reference { base: text.clone(), text, back: 0 }
    }
}

impl From<TurnHash> for Reference {
    fn from(hash: TurnHash) -> Self {
        let text = hash.to_string();
        Reference { base: text.clone(), text, back: 0 }
    }
}

/// Returns the smallest and the largest digest that begin with these hexadecimal digits.
pub fn digest_range(prefix: &str) -> Option<(Digest, Digest)> {
    let low: Digest = format!("{prefix:0<64}").parse().ok()?;
    let high: Digest = format!("{prefix:f<64}").parse().ok()?;
    Some((low, high))
}

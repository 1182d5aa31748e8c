//! Tine's own bundle: whole conversations as JSON Lines, verifiable without Tine.
//!
//! A bundle is a header line, one line for each record of each conversation, and an end line
//! that counts them and holds the SHA-256 of every byte before it. Each line is one canonical
//! (RFC 8785) JSON object. `docs/bundle.md` describes every key, and `docs/verify_bundle.py`
//! recomputes every hash of a bundle without any of this code.
//!
//! Invariants:
//!
//! - The bytes are a function of the content: they contain no time of export, no host and no details
//!   of a store. An import that is exported again gives the same bytes.
//! - [`BundleWriter`] makes every check that [`BundleReader`] makes, so that a damaged store fails on
//!   export and not on import.
//! - Everything has one spelling. Other formatting, an unknown key, a missing line or a changed byte
//!   is an error that names the line.
//! - Nothing is imported before the whole bundle, down to its end line, has been checked.
//!
//! Not included: compression, encryption, signatures, and other versions of the format.

mod checker;
mod decode;
mod delta;
mod encode;
mod error;
mod fields;
mod import;
mod lines;
mod reader;
pub(crate) mod spool;
mod writer;

use tine_core::{Digest, Limits};

pub use delta::{read_delta, write_delta};
pub use error::{BundleError, Fault};
pub use import::{read_bundle, read_bundle_in_place, verify_bundle};
pub use reader::BundleReader;
pub use writer::{BundleWriter, write_bundle, write_bundles};

/// The name of the format in the header.
pub const FORMAT: &str = "tine-bundle";

/// The version of the format that is written and read here.
pub const VERSION: u64 = 1;

/// The contents of a bundle, as stated in its end line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Conversations.
    pub conversations: u64,
    /// Turns, also hidden and purged ones.
    pub turns: u64,
    /// Operations.
    pub operations: u64,
    /// The digest of everything before the end line.
    pub digest: Digest,
}

/// Returns the longest line, in bytes, without its newline.
///
/// A body is limited as it was sent, and control characters grow sixfold when they are escaped: four
/// times the limit is enough for the largest body and the other keys of its line.
fn longest_line(limits: &Limits) -> usize {
    limits.body_bytes.saturating_mul(4)
}

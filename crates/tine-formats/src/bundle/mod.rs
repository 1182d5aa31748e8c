//! Tine's own bundle: whole conversations as JSON Lines, verifiable without Tine.
//!
//! A bundle is a header line, one line for each record of each conversation, and an end line
//! that counts them and holds the SHA-256 of every byte before it. Each line is one canonical
//! (RFC 8785) JSON object. `docs/bundle.md` describes every key, and `docs/verify_bundle.py`
//! recomputes every hash of a bundle without any of this code.
//!
//! Invariants:
//!
//! - The bytes are a function of the content: no time of export, no host, no trace of how a
//!   store lays things out. What is imported and exported again gives the same bytes.
//! - What can be written can be read: [`BundleWriter`] makes every check that [`BundleReader`] makes, so a
//!   damaged store fails on export rather than on the day its bundle is needed.
//! - [`BundleReader`] has one spelling for everything. Another formatting, an unknown key, an absent
//!   line, a single other byte is an error that names the line.
//! - Nothing is imported from a bundle before the whole of it, down to its end line, has been
//!   checked.
//!
//! Deliberately absent: compression, encryption, signatures, and any reading of older or newer
//! versions of the format.

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

/// What the header calls the format.
pub const FORMAT: &str = "tine-bundle";

/// The version of the format that is written and read here.
pub const VERSION: u64 = 1;

/// What a bundle holds, as its end line says.
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
/// A block is measured as it was sent, and a text of control characters grows sixfold when it
/// is escaped: four bodies hold the largest block in its largest form and all that is known
/// besides.
fn longest_line(limits: &Limits) -> usize {
    limits.body_bytes.saturating_mul(4)
}

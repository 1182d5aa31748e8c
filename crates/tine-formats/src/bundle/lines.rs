//! Reads lines of limited length, and computes the digest of all lines before.

use std::io::{BufRead, Read as _, Write};

use sha2::{Digest as _, Sha256};
use tine_core::Digest;

use super::error::{BundleError, Fault};

/// Whole lines of an input.
pub(super) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    /// Takes a copy of every line, for an input that can be read only once.
    copy: Option<&'a mut dyn Write>,
    line: Vec<u8>,
    number: u64,
    before: Sha256,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead, copy: Option<&'a mut dyn Write>) -> Self {
        Lines { input, copy, line: Vec::new(), number: 0, before: Sha256::new() }
    }

    /// Returns the number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the line that was read last, without its newline.
    pub(super) fn current(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    /// Returns the digest of every byte before the line that was read last.
    pub(super) fn digest_before(&self) -> Digest {
        Digest(self.before.clone().finalize().into())
    }

    /// Reads the next line; `false` at the end of the input.
    pub(super) fn advance(&mut self, limit: usize) -> Result<bool, BundleError> {
        self.before.update(&self.line);
        self.line.clear();
        // One byte for the newline, so that a line of exactly the limit passes.
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        (&mut *self.input)
            .take(most)
            .read_until(b'\n', &mut self.line)
            .map_err(|source| BundleError::Read { line: self.number, source })?;
        if self.line.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        if self.line.last() != Some(&b'\n') {
            let fault = if self.line.len() > limit { Fault::TooLong { limit } } else { Fault::Cut };
            return Err(self.fault(fault));
        }
        if let Some(copy) = &mut self.copy {
            copy.write_all(&self.line).map_err(|source| BundleError::Spool { source })?;
        }
        Ok(true)
    }

    /// Returns an error about the line that was read last.
    pub(super) fn fault(&self, fault: Fault) -> BundleError {
        BundleError::Line { line: self.number, fault }
    }

    /// Returns an error about the line that should follow.
    pub(super) fn missing(&self) -> BundleError {
        BundleError::Line { line: self.number + 1, fault: Fault::Cut }
    }
}

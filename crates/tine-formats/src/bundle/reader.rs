//! Reads a bundle record by record, each checked against everything before it.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use tine_core::{Limits, TurnHash, TurnId};
use tine_engine::{BundleRecord, LogMark};

use super::checker::BundleChecker;
use super::decode::{self, DecodedLine};
use super::error::{BundleError, Fault};
use super::lines::Lines;
use super::{Written, longest_line};

/// The maximum length of the header, so that other input is not read to its first newline.
const HEADER_BYTES: usize = 1 << 10;

/// Reads the records of a bundle.
///
/// Records are returned before the end line was checked. Storing them immediately may store parts of a
/// truncated bundle; [`read_bundle`](super::read_bundle) therefore reads twice.
pub struct BundleReader<'a> {
    lines: Lines<'a>,
    limits: Limits,
    checker: BundleChecker,
    /// Turns that a delta refers to but does not contain.
    pub(super) known: BTreeMap<TurnId, TurnHash>,
    /// The last operation of the last conversation.
    pub(super) log_end: Option<LogMark>,
    end: Option<Written>,
}

impl<'a> BundleReader<'a> {
    /// Reads the header.
    pub fn new(input: &'a mut dyn BufRead, limits: &Limits) -> Result<Self, BundleError> {
        BundleReader::copying(input, None, limits)
    }

    /// Reads the header; every complete line is also written to `copy`.
    pub(super) fn copying(
        input: &'a mut dyn BufRead,
        copy: Option<&'a mut dyn Write>,
        limits: &Limits,
    ) -> Result<Self, BundleError> {
        let mut lines = Lines::new(input, copy);
        let first = match lines.advance(HEADER_BYTES) {
            Ok(true) => decode::header(lines.current()),
            // An empty file, or one without a complete first line, is not a bundle.
            Ok(false) | Err(BundleError::Line { .. }) => Err(Fault::NotABundle),
            Err(other) => return Err(other),
        };
        first.map_err(|fault| BundleError::Line { line: 1, fault })?;
        Ok(BundleReader::after_header(lines, BundleChecker::default(), limits))
    }

    /// Reads what follows a header that was read.
    pub(super) fn after_header(lines: Lines<'a>, checker: BundleChecker, limits: &Limits) -> Self {
        BundleReader {
            lines,
            limits: *limits,
            checker,
            known: BTreeMap::new(),
            log_end: None,
            end: None,
        }
    }

    /// Returns the number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Returns the contents of the end line, once it has been reached and checked.
    pub fn end(&self) -> Option<Written> {
        self.end
    }

    /// Returns the next record; `None` once the end line has been reached and checked.
    pub fn next_record(&mut self) -> Result<Option<BundleRecord>, BundleError> {
        while self.end.is_none() {
            if !self.lines.advance(longest_line(&self.limits))? {
                return Err(self.lines.missing());
            }
            match self.check() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) if self.end.is_some() => return self.nothing_follows(),
                Ok(None) => {}
                Err(fault) => return Err(self.lines.fault(fault)),
            }
        }
        Ok(None)
    }

    /// Returns the current line as a record; `None` for the end line and for a known turn.
    fn check(&mut self) -> Result<Option<BundleRecord>, Fault> {
        match decode::line(self.lines.current(), &self.limits)? {
            DecodedLine::Record(record, stated) => {
                let actual = self.checker.link(&record)?;
                if stated != actual {
                    let operation = matches!(record, BundleRecord::Operation(_));
                    let key = if operation { "previous" } else { "parent_turn_hash" };
                    return Err(Fault::Link { key, stated, actual });
                }
                self.checker.accept(&record)?;
                Ok(Some(record))
            }
            DecodedLine::KnownTurn(turn, hash) => {
                self.checker.accept_known_turn(turn, hash)?;
                self.known.insert(turn, hash);
                Ok(None)
            }
            DecodedLine::End(stated) => {
                self.log_end = self.checker.log_end();
                self.checker.end_conversation()?;
                let counts = [
                    ("conversations", stated.conversations, self.checker.conversations),
                    ("turns", stated.turns, self.checker.turns),
                    ("operations", stated.operations, self.checker.operations),
                ];
                for (what, stated, counted) in counts {
                    if stated != counted {
                        return Err(Fault::Count { what, stated, counted });
                    }
                }
                if stated.digest != self.lines.digest_before() {
                    return Err(Fault::EndDigest);
                }
                self.end = Some(stated);
                Ok(None)
            }
        }
    }

    fn nothing_follows(&mut self) -> Result<Option<BundleRecord>, BundleError> {
        match self.lines.advance(0) {
            Ok(false) => Ok(None),
            Ok(true) | Err(BundleError::Line { .. }) => {
                self.end = None;
                Err(self.lines.fault(Fault::AfterEnd))
            }
            Err(other) => Err(other),
        }
    }
}

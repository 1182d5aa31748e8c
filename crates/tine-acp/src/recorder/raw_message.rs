//! A message of either side: the line, and its parsed value.
//!
//! The recorder is transparent. It forwards the line itself and replaces only the members that
//! differ between the two sides: the ids of requests, sessions and messages. It records the value
//! that the strict reader parsed from the line.
//!
//! Some lines are JSON but break the reader's rules: a key is repeated, a string has a lone
//! surrogate, a number overflows a double, or the nesting is too deep. Two programs may read such a
//! line differently, so no content is derived from it. The line is forwarded like any other; its
//! turn gets a placeholder block (see [`gap`](super::gap)), and the recorded events have the line
//! as a string. Requests that the recorder handles itself (`initialize` and the session methods)
//! are the exception: it has to read them, and refuses such a line with the reader's error.

use tine_core::json::JsonErrorKind;
use tine_core::{Json, Limits};

use super::json_splice;
use crate::json_rpc::{self, UnreadableLine};
use crate::outline::OutlineScanner;

/// A message of the client or the agent.
#[derive(Clone, Debug)]
pub(super) struct RawMessage {
    line: Vec<u8>,
    /// The parsed line; the outline of a line that breaks the rules.
    pub json: Json,
    /// The rule that the line breaks.
    pub broken_rule: Option<String>,
}

impl RawMessage {
    /// Parses a line. Fails if it is not JSON at all.
    pub(super) fn read(line: Vec<u8>, limits: &Limits) -> Result<RawMessage, UnreadableLine> {
        match json_rpc::parse(&line, limits) {
            Ok(json) => Ok(RawMessage { line, json, broken_rule: None }),
            Err(error) if is_json(&error.kind) => {
                let json = OutlineScanner::of(&line);
                Ok(RawMessage { line, json, broken_rule: Some(error.to_string()) })
            }
            Err(error) => Err(UnreadableLine::of(&line, &error)),
        }
    }

    /// Creates a message of the recorder's own.
    pub(super) fn own(json: Json) -> RawMessage {
        RawMessage { line: json.to_canonical().into_bytes(), json, broken_rule: None }
    }

    /// Returns the line without surrounding whitespace.
    pub(super) fn line(&self) -> &[u8] {
        self.line.trim_ascii()
    }

    /// Returns the line with members replaced.
    pub(super) fn with(&self, members: &[(&[&str], Json)]) -> Vec<u8> {
        let mut line = self.line().to_vec();
        for (path, value) in members {
            json_splice::set(&mut line, path, &value.to_canonical());
        }
        line
    }

    /// Returns whether the line has a member, even one that could not be read.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        !json_splice::find(&self.line, path).is_empty()
    }

    /// Returns a string member.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        self.json.at(path)?.as_str()
    }
}

/// Returns whether a line that was refused with this error is grammatical JSON.
fn is_json(kind: &JsonErrorKind) -> bool {
    matches!(
        kind,
        JsonErrorKind::DuplicateKey { .. }
            | JsonErrorKind::NumberOverflow { .. }
            | JsonErrorKind::LoneSurrogate
            | JsonErrorKind::TooDeep { .. }
    )
}

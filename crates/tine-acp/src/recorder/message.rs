//! A message of either side: the line as it came, and what it says.
//!
//! The recorder is transparent. What it forwards is the line itself, in which only the members are
//! replaced that differ between the two sides: ids of requests, sessions and messages. What it
//! records is the value that the strict reader parsed from that line.
//!
//! Some lines are JSON and still break the reader's rules: a key is repeated, a string holds half a
//! surrogate pair, a number overflows a double, or the nesting is too deep. Two programs can take
//! such a line for different messages, so the recorder derives no content from it. The line is
//! forwarded like any other; in its place a turn gets a block that says so (see
//! [`gap`](super::gap)), and the recorded events keep the line as a string. The requests that the
//! recorder answers itself (`initialize` and the management of sessions) are the exception: it has
//! to read them, and refuses them with the reader's sentence.

use tine_core::json::JsonErrorKind;
use tine_core::{Json, Limits};

use super::splice;
use crate::skim::Skim;
use crate::wire::{self, Unreadable};

/// One message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    line: Vec<u8>,
    /// What the line says; of a line that breaks the rules, its outline.
    pub json: Json,
    /// The rule that the line breaks.
    pub broken_rule: Option<String>,
}

impl Message {
    /// Reads a line. One that is not JSON at all is an error.
    pub(super) fn read(line: Vec<u8>, limits: &Limits) -> Result<Message, Unreadable> {
        match wire::parse(&line, limits) {
            Ok(json) => Ok(Message { line, json, broken_rule: None }),
            Err(error) if is_json(&error.kind) => {
                let json = Skim::of(&line);
                Ok(Message { line, json, broken_rule: Some(error.to_string()) })
            }
            Err(error) => Err(Unreadable::of(&line, &error)),
        }
    }

    /// A message of the recorder's own.
    pub(super) fn own(json: Json) -> Message {
        Message { line: json.to_canonical().into_bytes(), json, broken_rule: None }
    }

    /// Returns the line without the whitespace around it.
    pub(super) fn line(&self) -> &[u8] {
        self.line.trim_ascii()
    }

    /// Returns the line with members replaced.
    pub(super) fn with(&self, members: &[(&[&str], Json)]) -> Vec<u8> {
        let mut line = self.line().to_vec();
        for (path, value) in members {
            splice::set(&mut line, path, &value.to_canonical());
        }
        line
    }

    /// Returns whether the line has a member, whether or not it could be read.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        !splice::find(&self.line, path).is_empty()
    }

    /// Returns a text member.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        self.json.at(path)?.as_str()
    }
}

/// Whether a text that is refused for this is JSON by its grammar.
fn is_json(kind: &JsonErrorKind) -> bool {
    matches!(
        kind,
        JsonErrorKind::DuplicateKey { .. }
            | JsonErrorKind::NumberOverflow { .. }
            | JsonErrorKind::LoneSurrogate
            | JsonErrorKind::TooDeep { .. }
    )
}

//! Reads texts and messages from arguments, files and standard input.
//!
//! All input is bounded: a file or stream over the limit for one request is refused without being
//! read to its end.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use tine_core::json::{self, Json, JsonError, JsonErrorKind};
use tine_core::{Body, ErrorKind, Limits, Message, Role};
use tine_engine::Error;

use crate::command_error::{CommandError, Result};

/// Standard input or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputSource {
    /// `-`
    Stdin,
    File(PathBuf),
}

impl InputSource {
    /// Interprets `-` as standard input and everything else as a file.
    pub(crate) fn from_path(path: &Path) -> Self {
        if path == Path::new("-") { InputSource::Stdin } else { InputSource::File(path.to_owned()) }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            InputSource::Stdin => "standard input".to_owned(),
            InputSource::File(path) => path.display().to_string(),
        }
    }

    fn open(&self) -> Result<Box<dyn Read>> {
        match self {
            InputSource::Stdin => Ok(Box::new(io::stdin())),
            InputSource::File(_) => Ok(Box::new(self.open_file()?)),
        }
    }

    pub(crate) fn open_file(&self) -> Result<File> {
        let path = match self {
            InputSource::Stdin => Path::new("-"),
            InputSource::File(path) => path,
        };
        File::open(path).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> CommandError {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Invalid,
        };
        CommandError::refused(kind, format!("{} cannot be read: {error}", self.describe()))
    }

    /// Reads all bytes, up to the limit for one request.
    pub(crate) fn read_bytes(&self, limits: &Limits) -> Result<Vec<u8>> {
        let limit = limits.body_bytes;
        let mut bytes = Vec::new();
        let bounded = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.open()?.take(bounded).read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(&error))?;
        if bytes.len() > limit {
            let name = self.describe();
            let why = format!(
                "{name} holds more than {limit} bytes, the limit for one request; nothing was stored"
            );
            return Err(CommandError::refused(ErrorKind::TooLarge, why));
        }
        Ok(bytes)
    }

    /// Reads UTF-8 text and removes the final line ending.
    pub(crate) fn read_text(&self, limits: &Limits) -> Result<String> {
        let bytes = self.read_bytes(limits)?;
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            let name = self.describe();
            CommandError::invalid(format!("{name} is not valid UTF-8: the byte at offset {offset}"))
        })?;
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Ok(text)
    }
}

/// Joins words into a text, or reads standard input: for `-`, and without words if it is not a
/// terminal.
pub(crate) fn text_or_stdin(words: &[String], limits: &Limits) -> Result<String> {
    match words {
        [only] if only == "-" => InputSource::Stdin.read_text(limits),
        [] if io::stdin().is_terminal() => {
            Err(CommandError::invalid("no text given; pass TEXT, or `-` to type it"))
        }
        [] => InputSource::Stdin.read_text(limits),
        words => Ok(words.join(" ")),
    }
}

/// Returns the argument itself, or reads the file for `@FILE` and standard input for `@-`.
pub(crate) fn text_or_file(argument: &str, limits: &Limits) -> Result<String> {
    match argument.strip_prefix('@') {
        Some(path) => InputSource::from_path(Path::new(path)).read_text(limits),
        None => Ok(argument.to_owned()),
    }
}

/// Converts a text to the content of a turn.
pub(crate) fn body(text: String, role: Role, limits: &Limits) -> Result<Body> {
    content(Json::String(text), role, limits)
}

/// Converts a JSON string or an array of blocks to the content of a turn.
pub(crate) fn content(content: Json, role: Role, limits: &Limits) -> Result<Body> {
    let body = Body::from_request(content, role, limits);
    Ok(body.map_err(|source| Error::Message { index: 0, source })?)
}

/// Parses a JSON argument.
pub(crate) fn json_argument(name: &str, text: &str, limits: &Limits) -> Result<Json> {
    json::parse(text.as_bytes(), limits.json_depth).map_err(|error| json_error(name, &error))
}

fn json_error(place: &str, error: &JsonError) -> CommandError {
    let kind = if error.is_too_deep() { ErrorKind::TooLarge } else { ErrorKind::Invalid };
    CommandError::refused(kind, format!("{place}: invalid JSON: {error}"))
}

/// Messages that were read from a file.
pub(crate) struct InputMessages {
    /// The system prompt of a request.
    pub prompt: Option<String>,
    pub messages: Vec<Message>,
}

/// Reads messages in any common form: an array, one object, a request object with `messages`, or
/// JSON Lines.
pub(crate) fn read_messages(source: &InputSource, limits: &Limits) -> Result<InputMessages> {
    let bytes = source.read_bytes(limits)?;
    let mut prompt = None;
    let values = match json::parse(&bytes, limits.json_depth) {
        Ok(Json::Array(values)) => values,
        Ok(Json::Object(mut fields)) if fields.contains_key("messages") => {
            let list = fields.remove("messages");
            prompt = match fields.remove("system") {
                None | Some(Json::Null) => None,
                Some(Json::String(prompt)) => Some(prompt),
                Some(_) => return Err(CommandError::invalid("`system` must be a text")),
            };
            if let Some(other) = fields.keys().next() {
                let why = format!("unknown field `{other}` beside `messages`; leave it out");
                return Err(CommandError::invalid(why));
            }
            match list {
                Some(Json::Array(values)) => values,
                _ => return Err(CommandError::invalid("`messages` must be an array of messages")),
            }
        }
        Ok(value) => vec![value],
        // More data follows the first value: the file is JSON Lines.
        Err(JsonError { kind: JsonErrorKind::TrailingBytes, .. }) => {
            read_json_lines(source, &bytes, limits)?
        }
        Err(error) => return Err(json_error(&source.describe(), &error)),
    };
    Ok(InputMessages { prompt, messages: tine_api::bodies::messages(values, limits)? })
}

fn read_json_lines(source: &InputSource, bytes: &[u8], limits: &Limits) -> Result<Vec<Json>> {
    let name = source.describe();
    bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(number, line)| {
            json::parse(line, limits.json_depth)
                .map_err(|error| json_error(&format!("{name}, line {}", number + 1), &error))
        })
        .collect()
}

/// Reads one JSON value.
pub(crate) fn read_json(source: &InputSource, limits: &Limits) -> Result<Json> {
    parse_json(source, &source.read_bytes(limits)?, limits)
}

/// Parses bytes that were read from a source.
pub(crate) fn parse_json(source: &InputSource, bytes: &[u8], limits: &Limits) -> Result<Json> {
    json::parse(bytes, limits.json_depth).map_err(|error| json_error(&source.describe(), &error))
}

//! What a command reads: texts and messages from arguments, files and standard input.
//!
//! Everything is bounded before it is kept: a file or a stream over the limit for one request is
//! refused without being read to its end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tine_core::json::{self, Json, JsonError, JsonErrorKind};
use tine_core::{Body, Kind, Limits, Message, Role};
use tine_engine::Error;

use crate::failure::{Failure, Result};

/// Where bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputSource {
    /// `-`
    Stdin,
    /// A file.
    File(PathBuf),
}

impl InputSource {
    /// `-` is standard input, everything else a file.
    pub(crate) fn named(path: &Path) -> Self {
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

    /// Opens a file.
    pub(crate) fn open_file(&self) -> Result<File> {
        let path = match self {
            InputSource::Stdin => Path::new("-"),
            InputSource::File(path) => path,
        };
        File::open(path).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Invalid,
        };
        Failure::refused(kind, format!("{} cannot be read: {error}", self.describe()))
    }

    /// All its bytes, if there are not more than one request may hold.
    pub(crate) fn bytes(&self, limits: &Limits) -> Result<Vec<u8>> {
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
            return Err(Failure::refused(Kind::TooLarge, why));
        }
        Ok(bytes)
    }

    /// Its text, without the line end that shells and editors put behind the last line.
    pub(crate) fn text(&self, limits: &Limits) -> Result<String> {
        let bytes = self.bytes(limits)?;
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            let name = self.describe();
            Failure::invalid(format!("{name} is not valid UTF-8: the byte at offset {offset}"))
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

/// A text given as words, or as `-` for standard input.
pub(crate) fn words_or_stdin(words: &[String], limits: &Limits) -> Result<String> {
    match words {
        [only] if only == "-" => InputSource::Stdin.text(limits),
        words => Ok(words.join(" ")),
    }
}

/// A text given directly, or as `@FILE`, or as `@-` for standard input.
pub(crate) fn text_or_file(argument: &str, limits: &Limits) -> Result<String> {
    match argument.strip_prefix('@') {
        Some(path) => InputSource::named(Path::new(path)).text(limits),
        None => Ok(argument.to_owned()),
    }
}

/// A text as the content of a turn.
pub(crate) fn body(text: String, role: Role, limits: &Limits) -> Result<Body> {
    content(Json::String(text), role, limits)
}

/// A string or an array of blocks as the content of a turn.
pub(crate) fn content(content: Json, role: Role, limits: &Limits) -> Result<Body> {
    let body = Body::received(content, role, limits);
    Ok(body.map_err(|source| Error::Message { index: 0, source })?)
}

/// JSON given as an argument.
pub(crate) fn json_argument(name: &str, text: &str, limits: &Limits) -> Result<Json> {
    json::parse(text.as_bytes(), limits.json_depth).map_err(|error| located(name, &error))
}

fn located(place: &str, error: &JsonError) -> Failure {
    let kind = if error.is_too_deep() { Kind::TooLarge } else { Kind::Invalid };
    Failure::refused(kind, format!("{place}: invalid JSON: {error}"))
}

/// What a file of messages holds.
pub(crate) struct InputMessages {
    /// The system prompt of a request.
    pub prompt: Option<String>,
    pub messages: Vec<Message>,
}

/// Messages in any of the forms that people have lying about: an array, one object, an object
/// with `messages` as requests are, or one object on each line.
pub(crate) fn messages(source: &InputSource, limits: &Limits) -> Result<InputMessages> {
    let bytes = source.bytes(limits)?;
    let mut prompt = None;
    let values = match json::parse(&bytes, limits.json_depth) {
        Ok(Json::Array(values)) => values,
        Ok(Json::Object(mut fields)) if fields.contains_key("messages") => {
            let list = fields.remove("messages");
            prompt = match fields.remove("system") {
                None | Some(Json::Null) => None,
                Some(Json::String(prompt)) => Some(prompt),
                Some(_) => return Err(Failure::invalid("`system` must be a text")),
            };
            if let Some(other) = fields.keys().next() {
                let why = format!("unknown field `{other}` beside `messages`; leave it out");
                return Err(Failure::invalid(why));
            }
            match list {
                Some(Json::Array(values)) => values,
                _ => return Err(Failure::invalid("`messages` must be an array of messages")),
            }
        }
        Ok(value) => vec![value],
        // Something stands behind the first value: one message on each line.
        Err(JsonError { kind: JsonErrorKind::TrailingBytes, .. }) => lines(source, &bytes, limits)?,
        Err(error) => return Err(located(&source.describe(), &error)),
    };
    Ok(InputMessages { prompt, messages: tine_api::bodies::messages(values, limits)? })
}

fn lines(source: &InputSource, bytes: &[u8], limits: &Limits) -> Result<Vec<Json>> {
    let name = source.describe();
    bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(number, line)| {
            json::parse(line, limits.json_depth)
                .map_err(|error| located(&format!("{name}, line {}", number + 1), &error))
        })
        .collect()
}

/// One JSON value.
pub(crate) fn json_file(source: &InputSource, limits: &Limits) -> Result<Json> {
    json(source, &source.bytes(limits)?, limits)
}

/// The JSON value of bytes that were read already.
pub(crate) fn json(source: &InputSource, bytes: &[u8], limits: &Limits) -> Result<Json> {
    json::parse(bytes, limits.json_depth).map_err(|error| located(&source.describe(), &error))
}

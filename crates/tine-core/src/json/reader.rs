//! The strict reader: bytes to a [`Json`] value, or the first fault and its offset.
//!
//! The grammar is RFC 8259 with nothing added, minus the texts that readers disagree about:
//! duplicate keys, lone surrogates, numbers beyond a double, a byte order mark.
//!
//! Invariants: the text is checked to be UTF-8 once, before anything else, and every slice
//! taken from it begins and ends next to an ASCII byte. Nesting is checked before descending,
//! so no input can exhaust the stack. Work is linear in the input, save for the sorting of
//! objects whose keys arrive out of order.
//!
//! Deliberately absent: recovery, more than one error at a time, reading from a stream.

use std::collections::HashSet;

use super::canonical::plain_run;
use super::number::Number;
use super::value::{Json, Object};
use super::{JsonError, JsonErrorKind};

/// The deepest nesting [`parse`] accepts whatever its caller allows: reading, writing and
/// dropping a value recurse, and this depth is safe on a thread with a 2 MiB stack.
pub const MAX_DEPTH: usize = 512;

/// How much of an overflowing number an error quotes; a hostile one can be megabytes long.
const QUOTED_LITERAL: usize = 40;

const ANY_VALUE: &str = "a value";

type Result<T> = std::result::Result<T, JsonError>;

/// Reads exactly one JSON value.
///
/// A scalar is 0 deep, `[]` is 1 and `[[]]` is 2; a value deeper than `max_depth` (or than
/// [`MAX_DEPTH`]) is refused.
///
/// ```
/// use tine_core::json::{JsonErrorKind, parse};
///
/// let value = parse(br#"{"id": 9223372036854775807, "a": 1.0}"#, 16)?;
/// assert_eq!(value.to_canonical(), r#"{"a":1,"id":9223372036854775807}"#);
///
/// let error = parse(br#"{"a": 1, "a": 2}"#, 16).unwrap_err();
/// assert_eq!(error.offset, 9);
/// assert!(matches!(error.kind, JsonErrorKind::DuplicateKey { .. }));
/// # Ok::<(), tine_core::json::JsonError>(())
/// ```
pub fn parse(bytes: &[u8], max_depth: usize) -> Result<Json> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
        offset: error.valid_up_to(),
        kind: JsonErrorKind::InvalidUtf8,
    })?;
    let mut reader = Reader { text, bytes, pos: 0, limit: max_depth.min(MAX_DEPTH) };
    reader.skip_whitespace();
    let value = reader.value(0)?;
    reader.skip_whitespace();
    match reader.peek() {
        None => Ok(value),
        Some(_) => reader.fail(JsonErrorKind::TrailingBytes),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// The bytes of `text`.
    bytes: &'a [u8],
    pos: usize,
    limit: usize,
}

impl<'a> Reader<'a> {
    /// Reads a value that stands inside `depth` arrays and objects.
    fn value(&mut self, depth: usize) -> Result<Json> {
        match self.peek() {
            Some(b'"') => self.string().map(Json::String),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            Some(b't') => self.word(b"true", Json::Bool(true)),
            Some(b'f') => self.word(b"false", Json::Bool(false)),
            Some(b'n') => self.word(b"null", Json::Null),
            _ => self.unexpected(ANY_VALUE),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json> {
        self.descend(depth)?;
        let mut items = Vec::new();
        if self.accept(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_whitespace();
            if self.accept(b',') {
                self.skip_whitespace();
            } else if self.accept(b']') {
                return Ok(Json::Array(items));
            } else {
                return self.unexpected("`,` or `]`");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json> {
        self.descend(depth)?;
        let start = self.pos;
        let mut entries = Vec::new();
        if self.accept(b'}') {
            return Ok(Json::Object(Object::new()));
        }
        loop {
            let key = self.key()?;
            entries.push((key, self.value(depth + 1)?));
            if !self.next_member()? {
                break;
            }
        }
        match Object::from_unique(entries) {
            Some(object) => Ok(Json::Object(object)),
            None => self.repeated_key(start, depth),
        }
    }

    /// Reads an object's members again from `start` to say where its first repeated key is.
    ///
    /// Offsets are wanted only for this error, so they are found here rather than kept for
    /// every key. A text fails once, so this at most doubles the work.
    fn repeated_key(&mut self, start: usize, depth: usize) -> Result<Json> {
        self.pos = start;
        let mut seen = HashSet::new();
        loop {
            let offset = self.pos;
            let key = self.key()?;
            if seen.contains(&key) {
                return Err(JsonError { offset, kind: JsonErrorKind::DuplicateKey { key } });
            }
            seen.insert(key);
            self.value(depth + 1)?;
            let more = self.next_member()?;
            assert!(more, "only called for an object that repeats a key");
        }
    }

    /// Reads a key and its colon, up to the start of the member's value.
    fn key(&mut self) -> Result<String> {
        if self.peek() != Some(b'"') {
            return self.unexpected("a key in double quotes");
        }
        let key = self.string()?;
        self.skip_whitespace();
        if !self.accept(b':') {
            return self.unexpected("`:`");
        }
        self.skip_whitespace();
        Ok(key)
    }

    /// After a member: true when another follows, false at the end of the object.
    fn next_member(&mut self) -> Result<bool> {
        self.skip_whitespace();
        if self.accept(b',') {
            self.skip_whitespace();
            Ok(true)
        } else if self.accept(b'}') {
            Ok(false)
        } else {
            self.unexpected("`,` or `}`")
        }
    }

    /// Steps over the opening bracket of an array or object that stands inside `depth` others.
    fn descend(&mut self, depth: usize) -> Result<()> {
        if depth >= self.limit {
            let limit = self.limit;
            return self.fail(JsonErrorKind::TooDeep { limit });
        }
        self.pos += 1;
        self.skip_whitespace();
        Ok(())
    }

    fn string(&mut self) -> Result<String> {
        self.pos += 1;
        let run = self.plain_run();
        if self.accept(b'"') {
            return Ok(run.to_owned());
        }
        // There is an escape, or a fault.
        let mut out = String::with_capacity(run.len() + 16);
        out.push_str(run);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return self.fail(JsonErrorKind::ControlCharacter),
                None => return self.fail(JsonErrorKind::UnexpectedEnd),
            }
            out.push_str(self.plain_run());
        }
    }

    /// Takes everything up to the next quote, backslash or control character.
    fn plain_run(&mut self) -> &'a str {
        let start = self.pos;
        self.pos += plain_run(&self.bytes[start..]);
        &self.text[start..self.pos]
    }

    fn escape(&mut self) -> Result<char> {
        let start = self.pos;
        self.pos += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.pos += 1;
                return self.unicode_escape(start);
            }
            _ => return self.unexpected("one of `\"\\/bfnrtu` after a backslash"),
        };
        self.pos += 1;
        Ok(plain)
    }

    /// Reads the rest of an escape that began at `start`, after its `\u`.
    fn unicode_escape(&mut self, start: usize) -> Result<char> {
        let lone = JsonError { offset: start, kind: JsonErrorKind::LoneSurrogate };
        let first = self.four_hex_digits()?;
        if let Some(plain) = char::from_u32(first) {
            return Ok(plain);
        }
        if first >= 0xdc00 || !self.bytes[self.pos..].starts_with(b"\\u") {
            return Err(lone);
        }
        self.pos += 2;
        let second = self.four_hex_digits()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(lone);
        }
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        Ok(char::from_u32(code).expect("a surrogate pair always stands for a character"))
    }

    fn four_hex_digits(&mut self) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.unexpected("four hexadecimal digits after `\\u`");
            };
            code = code * 16 + digit;
            self.pos += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Number> {
        let start = self.pos;
        self.accept(b'-');
        if self.accept(b'0') {
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.pos -= 1;
                return self.fail(JsonErrorKind::LeadingZero);
            }
        } else {
            self.digits()?;
        }
        let mut is_integer = true;
        if self.accept(b'.') {
            is_integer = false;
            self.digits()?;
        }
        if self.accept(b'e') || self.accept(b'E') {
            is_integer = false;
            let _signed = self.accept(b'+') || self.accept(b'-');
            self.digits()?;
        }
        let literal = &self.text[start..self.pos];
        let number = if is_integer {
            Number::from_integer_literal(literal)
        } else {
            Number::from_double_literal(literal)
        };
        number.ok_or_else(|| JsonError {
            offset: start,
            kind: JsonErrorKind::NumberOverflow { literal: quote_literal(literal) },
        })
    }

    /// Steps over one digit or more.
    fn digits(&mut self) -> Result<()> {
        let start = self.pos;
        while let Some(b'0'..=b'9') = self.peek() {
            self.pos += 1;
        }
        if self.pos == start {
            return self.unexpected("a digit");
        }
        Ok(())
    }

    fn word(&mut self, word: &'static [u8], value: Json) -> Result<Json> {
        for &letter in word {
            if !self.accept(letter) {
                return self.unexpected("`true`, `false` or `null`");
            }
        }
        Ok(value)
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.pos += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    #[cold]
    fn unexpected<T>(&self, expected: &'static str) -> Result<T> {
        self.fail(match self.peek() {
            Some(found) => JsonErrorKind::UnexpectedByte { found, expected },
            None => JsonErrorKind::UnexpectedEnd,
        })
    }

    #[cold]
    fn fail<T>(&self, kind: JsonErrorKind) -> Result<T> {
        Err(JsonError { offset: self.pos, kind })
    }
}

/// Returns the literal for an error message, cut when it is long.
fn quote_literal(literal: &str) -> String {
    match literal.get(..QUOTED_LITERAL) {
        Some(beginning) if literal.len() > QUOTED_LITERAL => format!("{beginning}…"),
        _ => literal.to_owned(),
    }
}

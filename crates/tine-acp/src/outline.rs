//! The outline of a message that is not parsed as a whole because it is too long or breaks the
//! rules of the strict reader. Found while scanning, in constant memory.
//!
//! Written by hand because a JSON reader needs the whole message, which may be larger than memory,
//! and returns nothing for a message that it refuses. The outline has the short strings, numbers
//! and literals that are members of the message or of objects near its top; of a repeated member,
//! the last.

use tine_core::Json;
use tine_core::json::{BytePart, Object, Scanner, parse};

/// Nesting levels of objects whose members are kept.
const LEVELS: usize = 3;

/// The longest name or value that is kept.
const BYTES: usize = 1 << 10;

/// The most members that are kept.
const MEMBERS: usize = 64;

/// Scans a message piece by piece.
#[derive(Debug, Default)]
pub(crate) struct OutlineScanner {
    outline: Object,
    members: usize,
    /// The names of the open objects, without the message itself.
    path: Vec<String>,
    begun: bool,
    /// The name of the member whose value follows.
    name: Option<String>,
    /// Open arrays and objects inside a value that is not kept.
    skipped_depth: usize,
    scanner: Scanner,
    /// The string that is being read, with its quotes.
    text: Vec<u8>,
    /// The number or literal that is being read.
    word: Vec<u8>,
}

impl OutlineScanner {
    /// Returns the outline of a complete message.
    pub(crate) fn of(message: &[u8]) -> Json {
        let mut skim = OutlineScanner::default();
        skim.read(message);
        skim.outline()
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    pub(crate) fn outline(mut self) -> Json {
        self.end_word();
        Json::Object(self.outline)
    }

    fn step(&mut self, byte: u8) {
        let part = self.scanner.step(byte);
        if part != BytePart::Outside {
            if self.text.len() < BYTES {
                self.text.push(byte);
            }
            if part == BytePart::TextEnd {
                self.end_text();
            }
            return;
        }
        match byte {
            b'{' if self.skipped_depth == 0 && self.opens() => {}
            b'{' | b'[' => self.skipped_depth += 1,
            b'}' | b']' => self.close(),
            b',' | b' ' | b'\t' | b'\r' => self.end_word(),
            b':' => {}
            _ if self.skipped_depth == 0 && self.word.len() < BYTES => self.word.push(byte),
            _ => {}
        }
    }

    /// Returns whether the members of the object that begins are kept.
    fn opens(&mut self) -> bool {
        if !self.begun {
            self.begun = true;
            return true;
        }
        match self.name.take() {
            Some(name) if self.path.len() + 1 < LEVELS => {
                self.path.push(name);
                true
            }
            _ => false,
        }
    }

    fn close(&mut self) {
        self.end_word();
        match self.skipped_depth {
            0 => drop(self.path.pop()),
            _ => self.skipped_depth -= 1,
        }
        self.name = None;
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if self.skipped_depth > 0 {
            return;
        }
        let whole = parse(&text, 0).ok();
        match (self.name.take(), whole) {
            (None, Some(Json::String(name))) => self.name = Some(name),
            (None, _) => self.name = Some(String::new()),
            (Some(name), Some(text)) => self.keep(name, text),
            (Some(_), None) => {}
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if let (Ok(value), Some(name)) = (parse(&word, 0), self.name.take_if(|_| !word.is_empty()))
        {
            self.keep(name, value);
        }
    }

    fn keep(&mut self, name: String, value: Json) {
        let mut place = &mut self.outline;
        for name in &self.path {
            if !place.contains_key(name) {
                place.insert(name, Json::Object(Object::new()));
            }
            let Some(Json::Object(members)) = place.get_mut(name) else { return };
            place = members;
        }
        if self.members < MEMBERS {
            self.members += 1;
            place.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_macro::json;

    fn outline(text: &str) -> Json {
        let mut skim = OutlineScanner::default();
        text.as_bytes().chunks(3).for_each(|piece| skim.read(piece));
        skim.outline()
    }

    #[test]
    fn short_members_are_kept_wherever_they_are() {
        let long = "x".repeat(BYTES * 3);
        let message = json!({
            "jsonrpc": "2.0", "id": 7, "method": "session/update",
            "params": {
                "content": long.as_str(), "sessionId": "a \"b\" \u{e9} \\", "update": {
                    "sessionUpdate": "tool_call_update", "status": null,
                    "rawInput": { "sessionId": "another", "deep": [{ "id": [1, "}"] }] },
                    "toolCallId": "call",
                },
            },
        });
        let wanted = json!({
            "jsonrpc": "2.0", "id": 7, "method": "session/update",
            "params": {
                "sessionId": "a \"b\" \u{e9} \\",
                "update": { "sessionUpdate": "tool_call_update", "status": null, "toolCallId": "call" },
            },
        });
        assert_eq!(outline(&message.to_string()), wanted);
        let behind = format!("{{ \"result\" : [\"{long}\", {{\"id\":2}}] , \"id\" : -3.5e1 }}");
        assert_eq!(outline(&behind), json!({ "id": (-35) }));
    }

    #[test]
    fn text_that_is_no_message_has_no_outline() {
        for text in ["", "x", "[1,2]", "\"id\"", "}{", "{\"id\"", "{{{{", "]]]]"] {
            assert_eq!(outline(text), json!({}), "{text}");
        }
        let many: String = (0..200).map(|nth| format!("\"{nth}\":{nth},")).collect();
        let kept = outline(&format!("{{{many}"));
        assert_eq!(kept.as_object().map(Object::len), Some(MEMBERS));
    }
}

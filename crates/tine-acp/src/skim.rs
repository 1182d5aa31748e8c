//! The outline of a message that is not read as a whole, because it is too long or breaks the
//! rules of the strict reader: what it is about, picked out while it goes past, in little memory.
//!
//! It is written by hand because a JSON reader needs the whole message, which may be larger than
//! memory, and returns nothing for one that it refuses. Short strings, numbers and the like are kept
//! that are members of the message or of an object not too deep in it; of a repeated member the
//! last. The rest is not looked at.

use tine_core::Json;
use tine_core::json::{BytePart, Object, Scanner, parse};

/// Objects within each other whose members are kept.
const LEVELS: usize = 3;

/// Bytes of a name or a value that is kept.
const BYTES: usize = 1 << 10;

/// Members that are kept.
const MEMBERS: usize = 64;

/// Reads a message as it comes.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    outline: Object,
    members: usize,
    /// The names of the objects that are open, without the message itself.
    path: Vec<String>,
    begun: bool,
    /// The name of the member whose value is next.
    name: Option<String>,
    /// Lists and objects that are open inside of something that is not kept.
    passed_over: usize,
    scanner: Scanner,
    /// A text that is being read, with its quotes.
    text: Vec<u8>,
    /// A number or a word that is being read.
    word: Vec<u8>,
}

impl Skim {
    /// Returns the outline of a message that is there as a whole.
    pub(crate) fn of(message: &[u8]) -> Json {
        let mut skim = Skim::default();
        skim.read(message);
        skim.outline()
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    /// What was kept.
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
            b'{' if self.passed_over == 0 && self.opens() => {}
            b'{' | b'[' => self.passed_over += 1,
            b'}' | b']' => self.close(),
            b',' | b' ' | b'\t' | b'\r' => self.end_word(),
            b':' => {}
            _ if self.passed_over == 0 && self.word.len() < BYTES => self.word.push(byte),
            _ => {}
        }
    }

    /// Whether the object that begins is one whose members are kept.
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
        match self.passed_over {
            0 => drop(self.path.pop()),
            _ => self.passed_over -= 1,
        }
        self.name = None;
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if self.passed_over > 0 {
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
    use crate::json::json;

    fn outline(text: &str) -> Json {
        let mut skim = Skim::default();
        // In small pieces, as lines come.
        text.as_bytes().chunks(3).for_each(|piece| skim.read(piece));
        skim.outline()
    }

    #[test]
    fn what_a_message_is_about_is_kept_wherever_it_stands() {
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
    fn what_is_no_message_has_no_outline() {
        for text in ["", "x", "[1,2]", "\"id\"", "}{", "{\"id\"", "{{{{", "]]]]"] {
            assert_eq!(outline(text), json!({}), "{text}");
        }
        let many: String = (0..200).map(|nth| format!("\"{nth}\":{nth},")).collect();
        let kept = outline(&format!("{{{many}"));
        assert_eq!(kept.as_object().map(Object::len), Some(MEMBERS));
    }
}

//! Messages, and what whoever sent something that is none is told.
//!
//! The SDK passes over what it cannot read, so that whoever sent it would wait for ever, or
//! answers without saying to what. Reading is therefore done here: what is wrong is only looked
//! for once reading has failed, so that good messages are read once.
//!
//! Nobody waits for an answer to a notification or to an answer, whatever is wrong with it.

use rmcp::model::ClientJsonRpcMessage;
use serde_json::{Value, json};
use tine_core::json::{BytePart, Scanner, parse};

/// The deepest nesting that the SDK reads.
const DEEPEST: usize = 127;

/// Bytes of a request's id.
const ID_BYTES: usize = 256;

/// Bytes of a member's name that are looked at; more than the longest that matters.
const NAME_BYTES: usize = 8;

/// The request is none, or too much of one.
const INVALID_REQUEST: i32 = -32600;

/// What came is no JSON.
const PARSE_ERROR: i32 = -32700;

/// Reads a message, or says what is wrong with it.
pub(crate) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Unreadable> {
    serde_json::from_slice(bytes).map_err(|_| {
        let mut sender = Sender::default();
        sender.read(bytes);
        let (code, why) = match parse(bytes, DEEPEST) {
            Err(error) if error.is_too_deep() => (INVALID_REQUEST, error.to_string()),
            Err(error) => (PARSE_ERROR, error.to_string()),
            Ok(_) => (
                INVALID_REQUEST,
                "the message is JSON, but no request: send an object with \"jsonrpc\": \"2.0\", \
                 an `id` that is a string or an integer, a `method` and its `params`"
                    .to_owned(),
            ),
        };
        Unreadable { sender, code, why }
    })
}

/// Something that is no message.
pub(crate) struct Unreadable {
    sender: Sender,
    code: i32,
    pub why: String,
}

impl Unreadable {
    /// A message that is longer than it may be.
    pub(crate) fn too_long(sender: Sender, most_bytes: usize) -> Self {
        let why = format!("the message is longer than {most_bytes} bytes; send less at once");
        Unreadable { sender, code: INVALID_REQUEST, why }
    }

    /// The answer, which says to which request it is where that can be told.
    pub(crate) fn answer(&self) -> Value {
        let error = json!({ "code": self.code, "message": self.why });
        match self.sender.id() {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            None => json!({ "jsonrpc": "2.0", "error": error }),
        }
    }

    /// Whether somebody may wait for the answer.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.sender.answers && !self.sender.notifies()
    }
}

/// What can be told of a message, piece by piece and whatever is wrong with it: its `id`, and
/// whether it is a request, a notification or an answer. Written by hand because a JSON reader
/// gives nothing of a message that it refuses, and this one answers exactly those.
#[derive(Default)]
pub(crate) struct Sender {
    depth: usize,
    scanner: Scanner,
    /// The text that is read or was read last, as far as it may be a name.
    text: Vec<u8>,
    /// Whether the member `id` at the top has begun.
    asks: bool,
    id: Vec<u8>,
    id_is_read: bool,
    names_method: bool,
    answers: bool,
}

impl Sender {
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.asks && !self.id_is_read {
            let ends = !self.scanner.is_in_text() && matches!(byte, b',' | b'}' | b'\n');
            if ends || self.id.len() > ID_BYTES {
                self.id_is_read = true;
            } else {
                self.id.push(byte);
            }
        }
        match self.scanner.step(byte) {
            BytePart::Outside => {}
            BytePart::TextStart => return self.text.clear(),
            BytePart::Text if self.depth == 1 && self.text.len() < NAME_BYTES => {
                return self.text.push(byte);
            }
            BytePart::Text | BytePart::TextEnd => return,
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => self.member(),
            b',' => self.text.clear(),
            _ => {}
        }
    }

    /// A member at the top begins.
    fn member(&mut self) {
        match self.text.as_slice() {
            b"id" => self.asks = true,
            b"method" => self.names_method = true,
            b"result" | b"error" => self.answers = true,
            _ => {}
        }
    }

    /// The id, if there is one that a request can have. That of an answer is one of ours.
    fn id(&self) -> Option<Value> {
        let id: Value = serde_json::from_slice(&self.id).ok()?;
        (!self.answers && (id.is_string() || id.is_number())).then_some(id)
    }

    fn notifies(&self) -> bool {
        self.names_method && !self.asks
    }
}

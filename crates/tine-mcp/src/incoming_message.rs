//! Incoming messages: parsed strictly, and answered if they cannot be parsed.
//!
//! The SDK parses JSON leniently: it keeps the last of two equal keys, rounds integers beyond 64
//! bits, and drops a message that it cannot parse, so that the sender waits forever. Each message
//! is therefore parsed here first, by the core's strict reader. The arguments of a tool call are
//! then removed ([`ExactArguments`]) and travel next to the message, of which the SDK parses the
//! rest. The bytes are scanned a second time only after parsing failed.
//!
//! Notifications and responses are never answered, whatever is wrong with them.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions};
use rmcp::service::RequestContext;
use tine_core::Limits;
use tine_core::json::{BytePart, Json, JsonError, Object, Scanner, object, parse};

/// The deepest nesting that the SDK parses.
const SDK_DEPTH: usize = 127;

/// The levels of a message around the value of an argument: the message, `params` and `arguments`.
const ENVELOPE_DEPTH: usize = 3;

/// The longest request id that is repeated in an error, in bytes.
const ID_BYTES: usize = 256;

/// Bytes of a member's name that are kept; more than the longest that matters.
const NAME_BYTES: usize = 8;

/// The JSON-RPC code for a message that is not a request, or exceeds a limit.
const INVALID_REQUEST: i32 = -32600;

/// The JSON-RPC code for a message that is not JSON, or that parsers could read differently.
const PARSE_ERROR: i32 = -32700;

/// The method whose arguments are removed from the message.
const CALL_TOOL: &str = "tools/call";

/// The arguments of a tool call as they were sent: each key once, each integer with all its digits.
///
/// A transport puts them into the extensions of the request and leaves the SDK's own copy out.
#[derive(Clone, Debug)]
pub struct ExactArguments(Arc<Object>);

impl ExactArguments {
    /// Takes the arguments out of the request's extensions. Returns `None` if the transport did not
    /// put them there.
    pub fn take(context: &mut RequestContext<RoleServer>) -> Option<Object> {
        let direct = context.extensions.remove::<ExactArguments>();
        let found = direct.or_else(|| {
            context.extensions.get_mut::<http::request::Parts>()?.extensions.remove()
        })?;
        Some(Arc::unwrap_or_clone(found.0))
    }
}

/// A message that the strict reader accepted.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    message: Json,
    /// The arguments of a tool call, removed from the message; empty if it has none.
    pub arguments: Option<ExactArguments>,
}

/// Returns the nesting allowed in a message, so that the values of arguments keep to the limits.
pub(crate) fn message_depth(limits: &Limits) -> usize {
    limits.json_depth.saturating_add(ENVELOPE_DEPTH).min(SDK_DEPTH)
}

impl IncomingMessage {
    /// Parses a message strictly and removes the arguments of a tool call.
    pub(crate) fn parse(bytes: &[u8], max_depth: usize) -> Result<Self, UnreadableMessage> {
        let mut message =
            parse(bytes, max_depth).map_err(|error| UnreadableMessage::json(bytes, &error))?;
        let arguments = take_arguments(&mut message);
        let arguments = arguments.map(|arguments| ExactArguments(Arc::new(arguments)));
        Ok(IncomingMessage { message, arguments })
    }

    /// Returns the tool whose arguments were removed.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.arguments.as_ref()?;
        self.message.get("params")?.get("name")?.as_str()
    }

    /// Returns the message without the arguments.
    pub(crate) fn envelope(&self) -> String {
        self.message.to_canonical()
    }

    /// Turns the message into the SDK's form, with the arguments in its extensions. `bytes` are
    /// those that were parsed.
    pub(crate) fn into_sdk(self, bytes: &[u8]) -> Result<ClientJsonRpcMessage, UnreadableMessage> {
        let mut message = serde_json::from_str(&self.envelope())
            .map_err(|_| UnreadableMessage::not_a_request(bytes))?;
        if let ClientJsonRpcMessage::Request(request) = &mut message
            && let Some(arguments) = self.arguments
        {
            request.request.extensions_mut().insert(arguments);
        }
        Ok(message)
    }
}

/// Removes the arguments of a tool call. Arguments that are not an object are left to the SDK,
/// which refuses them.
fn take_arguments(message: &mut Json) -> Option<Object> {
    if message.get("method")?.as_str()? != CALL_TOOL {
        return None;
    }
    let Json::Object(members) = message else { return None };
    let Some(Json::Object(params)) = members.get_mut("params") else { return None };
    match params.remove("arguments") {
        Some(Json::Object(arguments)) => Some(arguments),
        None | Some(Json::Null) => Some(Object::new()),
        Some(other) => {
            params.insert("arguments", other);
            None
        }
    }
}

/// A message that cannot be parsed, and why.
pub(crate) struct UnreadableMessage {
    envelope: EnvelopeScan,
    code: i32,
    pub why: String,
}

impl UnreadableMessage {
    /// Describes bytes that the strict reader refused.
    fn json(bytes: &[u8], error: &JsonError) -> Self {
        let code = if error.is_too_deep() { INVALID_REQUEST } else { PARSE_ERROR };
        UnreadableMessage { envelope: EnvelopeScan::of(bytes), code, why: error.to_string() }
    }

    /// Describes JSON that is not a JSON-RPC message.
    pub(crate) fn not_a_request(bytes: &[u8]) -> Self {
        let why = "the message is JSON but not a request: send an object with \"jsonrpc\": \"2.0\", \
                   an `id` that is a string or an integer, a `method` and its `params`";
        UnreadableMessage {
            envelope: EnvelopeScan::of(bytes),
            code: INVALID_REQUEST,
            why: why.to_owned(),
        }
    }

    /// Describes a message that exceeds the size limit.
    pub(crate) fn too_long(envelope: EnvelopeScan, most_bytes: usize) -> Self {
        let why =
            format!("the message is longer than {most_bytes} bytes; split it into several calls");
        UnreadableMessage { envelope, code: INVALID_REQUEST, why }
    }

    /// Returns the error response, with the id of the request if it can be found.
    pub(crate) fn answer(&self) -> String {
        let error = object([("code", self.code.into()), ("message", self.why.as_str().into())]);
        let answer = match self.envelope.id() {
            Some(id) => object([("jsonrpc", "2.0".into()), ("id", id), ("error", error)]),
            None => object([("jsonrpc", "2.0".into()), ("error", error)]),
        };
        answer.to_canonical()
    }

    /// Returns whether the sender may be waiting for a response.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.envelope.is_response && !self.envelope.is_notification()
    }
}

/// Finds the `id` of a message that cannot be parsed, and whether it is a request, a notification
/// or a response. Scans the bytes piece by piece, in constant memory. Written by hand because a
/// JSON parser returns nothing for a message that it refuses.
#[derive(Default)]
pub(crate) struct EnvelopeScan {
    depth: usize,
    scanner: Scanner,
    /// The beginning of the last string, which may be a member's name.
    text: Vec<u8>,
    /// Whether the top-level member `id` has begun.
    has_id: bool,
    id: Vec<u8>,
    id_is_complete: bool,
    has_method: bool,
    is_response: bool,
}

impl EnvelopeScan {
    fn of(bytes: &[u8]) -> Self {
        let mut scan = EnvelopeScan::default();
        scan.read(bytes);
        scan
    }

    /// Scans the next piece of the message.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.has_id && !self.id_is_complete {
            let ends = !self.scanner.is_in_text() && matches!(byte, b',' | b'}' | b'\n');
            if ends || self.id.len() > ID_BYTES {
                self.id_is_complete = true;
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

    /// Notes the top-level member that begins.
    fn member(&mut self) {
        match self.text.as_slice() {
            b"id" => self.has_id = true,
            b"method" => self.has_method = true,
            b"result" | b"error" => self.is_response = true,
            _ => {}
        }
    }

    /// Returns the id, if a request can have it. The id of a response is the server's own.
    fn id(&self) -> Option<Json> {
        let id = parse(&self.id, 0).ok()?;
        let can_be_id = matches!(id, Json::String(_) | Json::Number(_));
        (!self.is_response && can_be_id).then_some(id)
    }

    fn is_notification(&self) -> bool {
        self.has_method && !self.has_id
    }
}

//! Incoming messages: read strictly, and answered if they cannot be read.
//!
//! The SDK reads JSON leniently: it keeps the last of two equal keys, rounds integers beyond
//! 64 bits, and drops a message that it cannot read, so that its sender waits forever. Each message
//! is therefore read here first, by the strict reader of the core. The arguments of a tool call are
//! then taken out ([`ExactArguments`]) and travel beside the message; the SDK reads what is left.
//! What is wrong with a message is looked for only once reading has failed, so that good messages
//! are parsed once.
//!
//! Notifications and responses are never answered, whatever is wrong with them.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions};
use rmcp::service::RequestContext;
use tine_core::Limits;
use tine_core::json::{BytePart, Json, JsonError, Object, Scanner, object, parse};

/// The deepest nesting that the SDK reads.
const SDK_DEPTH: usize = 127;

/// The levels of a message around the value of an argument: the message, `params` and `arguments`.
const ENVELOPE_DEPTH: usize = 3;

/// The longest id of a request that is repeated in an error, in bytes.
const ID_BYTES: usize = 256;

/// Bytes of a member's name that are kept; more than the longest that matters.
const NAME_BYTES: usize = 8;

/// The JSON-RPC code for a message that is not a request, or exceeds a limit.
const INVALID_REQUEST: i32 = -32600;

/// The JSON-RPC code for a message that is not JSON, or is JSON that readers disagree about.
const PARSE_ERROR: i32 = -32700;

/// The method whose arguments are taken out.
const CALL_TOOL: &str = "tools/call";

/// The arguments of a tool call as they were sent: each key once, each integer with all its digits.
///
/// A transport puts them into the extensions of the request, and the SDK's own copy is left out.
#[derive(Clone, Debug)]
pub struct ExactArguments(Arc<Object>);

impl ExactArguments {
    /// Takes the arguments out of the request's extensions, where a transport has put them.
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
pub(crate) struct Incoming {
    message: Json,
    /// The arguments of a tool call, which are no longer in the message.
    pub arguments: Option<ExactArguments>,
}

/// The nesting that a message may have, so that the value of an argument keeps to the limits.
pub(crate) fn message_depth(limits: &Limits) -> usize {
    limits.json_depth.saturating_add(ENVELOPE_DEPTH).min(SDK_DEPTH)
}

impl Incoming {
    /// Parses a message strictly and takes the arguments of a tool call out of it.
    pub(crate) fn parse(bytes: &[u8], max_depth: usize) -> Result<Self, Unreadable> {
        let mut message =
            parse(bytes, max_depth).map_err(|error| Unreadable::json(bytes, &error))?;
        let arguments = take_arguments(&mut message);
        let arguments = arguments.map(|arguments| ExactArguments(Arc::new(arguments)));
        Ok(Incoming { message, arguments })
    }

    /// Returns the tool whose arguments were taken out.
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
    pub(crate) fn into_sdk(self, bytes: &[u8]) -> Result<ClientJsonRpcMessage, Unreadable> {
        let mut message =
            serde_json::from_str(&self.envelope()).map_err(|_| Unreadable::not_a_request(bytes))?;
        if let ClientJsonRpcMessage::Request(request) = &mut message
            && let Some(arguments) = self.arguments
        {
            request.request.extensions_mut().insert(arguments);
        }
        Ok(message)
    }
}

/// Takes the arguments out of a tool call. Arguments that are no object are left to the SDK, which
/// refuses them.
fn take_arguments(message: &mut Json) -> Option<Object> {
    if message.get("method")?.as_str()? != CALL_TOOL {
        return None;
    }
    let Json::Object(members) = message else { return None };
    let Some(Json::Object(params)) = members.get_mut("params") else { return None };
    params.get("arguments")?.as_object()?;
    match params.remove("arguments") {
        Some(Json::Object(arguments)) => Some(arguments),
        _ => None,
    }
}

/// A message that cannot be read, and why.
pub(crate) struct Unreadable {
    envelope: EnvelopeScan,
    code: i32,
    pub why: String,
}

impl Unreadable {
    /// Describes bytes that the strict reader refused.
    fn json(bytes: &[u8], error: &JsonError) -> Self {
        let code = if error.is_too_deep() { INVALID_REQUEST } else { PARSE_ERROR };
        Unreadable { envelope: EnvelopeScan::of(bytes), code, why: error.to_string() }
    }

    /// Describes JSON that is not a JSON-RPC message.
    pub(crate) fn not_a_request(bytes: &[u8]) -> Self {
        let why = "the message is JSON, but no request: send an object with \"jsonrpc\": \"2.0\", \
                   an `id` that is a string or an integer, a `method` and its `params`";
        Unreadable { envelope: EnvelopeScan::of(bytes), code: INVALID_REQUEST, why: why.to_owned() }
    }

    /// Describes a message that exceeds the size limit.
    pub(crate) fn too_long(envelope: EnvelopeScan, most_bytes: usize) -> Self {
        let why = format!("the message is longer than {most_bytes} bytes; send less at once");
        Unreadable { envelope, code: INVALID_REQUEST, why }
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
/// or a response. Takes the bytes piece by piece, in constant memory. Written by hand because a
/// JSON reader returns nothing of a message that it refuses, and those are the ones answered here.
#[derive(Default)]
pub(crate) struct EnvelopeScan {
    depth: usize,
    scanner: Scanner,
    /// The beginning of the last text, which may be a member's name.
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

    /// Reads the next piece of the message.
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

    /// Returns the id, if it is one that a request can have. The id of a response is the server's.
    fn id(&self) -> Option<Json> {
        let id = parse(&self.id, 0).ok()?;
        let can_be_id = matches!(id, Json::String(_) | Json::Number(_));
        (!self.is_response && can_be_id).then_some(id)
    }

    fn is_notification(&self) -> bool {
        self.has_method && !self.has_id
    }
}

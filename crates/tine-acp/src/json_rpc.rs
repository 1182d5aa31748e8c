//! JSON-RPC 2.0 over exact values: parsing messages, errors, responses, notifications.

use std::fmt;
use std::path::Path;

use tine_core::json::{JsonError, JsonErrorKind, Object};
use tine_core::{ErrorKind, Json, Limits};
use tine_engine::Error;

use crate::json_macro::json;
use crate::outline::OutlineScanner;

/// The line is not JSON, or breaks the rules of the strict reader.
pub(crate) const PARSE_ERROR: i32 = -32700;

/// The message is not a valid request.
pub(crate) const INVALID_REQUEST: i32 = -32600;

/// The method does not exist.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;

/// A message from the client.
#[derive(Debug)]
pub(crate) enum RpcMessage {
    Request {
        id: Json,
        method: String,
        params: Json,
    },
    Notification {
        method: String,
        params: Json,
    },
    /// A response, although this side sent no request.
    Answer,
}

/// A line that was not accepted.
#[derive(Debug)]
pub(crate) struct UnreadableLine {
    /// The id to respond to; `None` if no response is expected.
    pub(crate) answer_to: Option<Json>,
    pub(crate) error: RpcError,
}

impl RpcMessage {
    /// Parses a line with the strict reader.
    pub(crate) fn read(line: &[u8], limits: &Limits) -> Result<RpcMessage, UnreadableLine> {
        let mut message = parse(line, limits).map_err(|error| UnreadableLine::of(line, &error))?;
        check(&message)?;
        let Some(members) = message.as_object_mut() else { return Ok(RpcMessage::Answer) };
        let Some(Json::String(method)) = members.remove("method") else {
            return Ok(RpcMessage::Answer);
        };
        let params = members.remove("params").filter(|params| !params.is_null());
        let params = params.unwrap_or_else(|| json!({}));
        Ok(match members.remove("id") {
            Some(id) => RpcMessage::Request { id, method, params },
            None => RpcMessage::Notification { method, params },
        })
    }
}

/// Parses a line. The nesting limit counts from the message, not from the content in it.
pub(crate) fn parse(line: &[u8], limits: &Limits) -> Result<Json, JsonError> {
    tine_core::json::parse(line, limits.json_depth)
}

/// Checks that a value is a JSON-RPC message.
pub(crate) fn check(message: &Json) -> Result<(), UnreadableLine> {
    let unreadable = |id: &Json, error| UnreadableLine { answer_to: Some(id.clone()), error };
    let invalid_request =
        |id: &Json, why: &str| unreadable(id, RpcError::new(INVALID_REQUEST, why));
    let Json::Object(members) = message else {
        let why = "expected one JSON object per line; batches are not supported";
        return Err(invalid_request(&Json::Null, why));
    };
    let id = match members.get("id") {
        None => &Json::Null,
        Some(id @ (Json::String(_) | Json::Number(_) | Json::Null)) => id,
        Some(_) => return Err(invalid_request(&Json::Null, "`id` must be a string or a number")),
    };
    if members.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(invalid_request(id, "`jsonrpc` must be \"2.0\""));
    }
    match members.get("method") {
        Some(Json::String(_)) => {}
        None if members.contains_key("result") || members.contains_key("error") => return Ok(()),
        _ => return Err(invalid_request(id, "`method` must be a string")),
    }
    match members.get("params") {
        None | Some(Json::Null | Json::Object(_)) => Ok(()),
        Some(_) => Err(unreadable(id, RpcError::invalid("`params` must be an object"))),
    }
}

impl UnreadableLine {
    /// Describes a line that the strict reader refused, in the reader's words. The id is found by
    /// scanning the line, unless the line is truncated: the id could be truncated too.
    pub(crate) fn of(line: &[u8], json_error: &JsonError) -> Self {
        let error = RpcError::new(PARSE_ERROR, json_error.to_string());
        let outline = match json_error.kind {
            JsonErrorKind::UnexpectedEnd => json!({}),
            _ => OutlineScanner::of(line),
        };
        let id = outline.get("id").filter(|id| matches!(id, Json::String(_) | Json::Number(_)));
        let answer_to = match (id, outline.get("method")) {
            (Some(id), Some(_)) => Some(id.clone()),
            (None, None) => Some(Json::Null),
            // A response or a notification.
            (Some(_), None) | (None, Some(_)) => None,
        };
        UnreadableLine { answer_to, error }
    }
}

pub(crate) type RpcResult<T> = Result<T, RpcError>;

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
    data: Option<Json>,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }

    pub(crate) fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        RpcError::new(kind.json_rpc_code(), message)
    }

    /// Creates an error for invalid parameters.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        RpcError::of(ErrorKind::Invalid, message)
    }

    pub(crate) fn no_session(id: &str, why: &str) -> Self {
        let data = json!({ "sessionId": id });
        RpcError::of(ErrorKind::NotFound, format!("there is no session `{id}`{why}"))
            .with_data(data)
    }

    /// Creates an error about the message with this id.
    pub(crate) fn bad_message(id: &str, why: impl Into<String>) -> Self {
        RpcError::invalid(why).with_data(json!({ "messageId": id }))
    }

    /// Creates an error for a line that exceeds the size limit.
    pub(crate) fn too_long(bytes: usize, most: usize) -> Self {
        let why = format!("the line has {bytes} bytes and was dropped; the limit is {most} bytes");
        RpcError::new(INVALID_REQUEST, why)
    }

    /// Returns the error with another message.
    pub(crate) fn with_message(&self, message: String) -> Self {
        RpcError { message, ..self.clone() }
    }

    pub(crate) fn with_data(self, data: Json) -> Self {
        RpcError { data: Some(data), ..self }
    }
}

impl RpcError {
    /// Converts an error response of the recorded agent, to be sent on to the client.
    pub(crate) fn from_agent(error: &Json) -> Self {
        let code = error.get("code").and_then(|code| code.as_number()?.as_i64());
        let code = code.and_then(|code| code.try_into().ok());
        let message =
            error.get("message").and_then(Json::as_str).unwrap_or("the agent gave no reason");
        let code = code.unwrap_or_else(|| ErrorKind::Internal.json_rpc_code());
        RpcError { code, message: message.to_owned(), data: error.get("data").cloned() }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        let kind = error.kind();
        RpcError::of(kind, error.to_string()).with_data(json!({ "code": kind.code() }))
    }
}

/// Returns the response to a request.
pub(crate) fn response(id: &Json, result: RpcResult<Json>) -> Json {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id.clone(), "result": result }),
        Err(RpcError { code, message, data }) => {
            let mut error = Object::new();
            error.insert("code", code.into());
            error.insert("message", message.into());
            if let Some(data) = data {
                error.insert("data", data);
            }
            json!({ "jsonrpc": "2.0", "id": id.clone(), "error": error })
        }
    }
}

/// Returns a `session/update` notification.
pub(crate) fn session_update(session: &str, update: Json) -> Json {
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// Adds a note of Tine's to the `_meta` of a result.
pub(crate) fn add_note(answer: &mut Json, note: Json) {
    let Some(members) = answer.as_object_mut() else { return };
    let meta = with_note(members.remove("_meta"), note);
    members.insert("_meta", meta);
}

/// Returns `_meta` with a note of Tine's.
pub(crate) fn with_note(meta: Option<Json>, note: Json) -> Json {
    let mut members = match meta {
        Some(Json::Object(members)) => members,
        _ => Object::new(),
    };
    members.insert("tine", note);
    Json::Object(members)
}

/// Returns a required string parameter.
pub(crate) fn required_text<'v>(params: &'v Json, name: &str) -> RpcResult<&'v str> {
    optional_text(params, name)?.ok_or_else(|| RpcError::invalid(format!("`{name}` is missing")))
}

/// Returns an optional string parameter; `null` counts as absent.
pub(crate) fn optional_text<'v>(params: &'v Json, name: &str) -> RpcResult<Option<&'v str>> {
    match params.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(RpcError::invalid(format!("`{name}` must be a string"))),
    }
}

/// Returns the working directory of a session.
pub(crate) fn cwd(params: &Json) -> RpcResult<&str> {
    check_absolute(required_text(params, "cwd")?)
}

/// Returns the working directory that a list is limited to.
pub(crate) fn optional_cwd(params: &Json) -> RpcResult<Option<&str>> {
    optional_text(params, "cwd")?.map(check_absolute).transpose()
}

/// Checks that a path is absolute.
fn check_absolute(path: &str) -> RpcResult<&str> {
    if Path::new(path).is_absolute() {
        return Ok(path);
    }
    Err(RpcError::invalid("`cwd` must be an absolute path"))
}

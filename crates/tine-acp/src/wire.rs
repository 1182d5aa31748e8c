//! JSON-RPC 2.0 as exact values: what comes in, refusals, answers and notifications.

use std::fmt;
use std::path::Path;

use tine_core::json::{JsonError, JsonErrorKind, Object};
use tine_core::{ErrorKind, Json, Limits};
use tine_engine::Error;

use crate::json::json;
use crate::skim::Skim;

/// A line that is not JSON, or that breaks the rules of the strict reader.
pub(crate) const NO_JSON: i32 = -32700;

/// What is no request.
pub(crate) const NO_REQUEST: i32 = -32600;

/// A method that is not there.
pub(crate) const NO_METHOD: i32 = -32601;

/// What came in on one line.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message that expects an answer.
    Request { id: Json, method: String, params: Json },
    /// A message that expects none.
    Notification { method: String, params: Json },
    /// An answer, though nothing was asked.
    Answer,
}

/// A line that is not taken.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The id to answer to, as far as there is one; `None` if no answer is expected.
    pub(crate) answer_to: Option<Json>,
    pub(crate) refusal: Refusal,
}

impl Incoming {
    /// Parses one line with the strict reader.
    pub(crate) fn read(line: &[u8], limits: &Limits) -> Result<Incoming, Unreadable> {
        let mut message = parse(line, limits).map_err(|error| Unreadable::of(line, &error))?;
        check(&message)?;
        let Some(members) = message.as_object_mut() else { return Ok(Incoming::Answer) };
        let Some(Json::String(method)) = members.remove("method") else {
            return Ok(Incoming::Answer);
        };
        let params = members.remove("params").filter(|params| !params.is_null());
        let params = params.unwrap_or_else(|| json!({}));
        Ok(match members.remove("id") {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        })
    }
}

/// Parses a line. The limit on nesting counts from the message, not from the content in it.
pub(crate) fn parse(line: &[u8], limits: &Limits) -> Result<Json, JsonError> {
    tine_core::json::parse(line, limits.json_depth)
}

/// Checks that a value is a JSON-RPC message.
pub(crate) fn check(message: &Json) -> Result<(), Unreadable> {
    let unreadable = |id: &Json, refusal| Unreadable { answer_to: Some(id.clone()), refusal };
    let no_request = |id: &Json, why: &str| unreadable(id, Refusal::new(NO_REQUEST, why));
    let Json::Object(members) = message else {
        let why = "a message is one JSON object on one line; there are no batches";
        return Err(no_request(&Json::Null, why));
    };
    let id = match members.get("id") {
        None => &Json::Null,
        Some(id @ (Json::String(_) | Json::Number(_) | Json::Null)) => id,
        Some(_) => return Err(no_request(&Json::Null, "`id` must be a string or a number")),
    };
    if members.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(no_request(id, "`jsonrpc` must be \"2.0\""));
    }
    match members.get("method") {
        Some(Json::String(_)) => {}
        None if members.contains_key("result") || members.contains_key("error") => return Ok(()),
        _ => return Err(no_request(id, "`method` must be a string")),
    }
    match members.get("params") {
        None | Some(Json::Null | Json::Object(_)) => Ok(()),
        Some(_) => Err(unreadable(id, Refusal::invalid("`params` must be an object"))),
    }
}

impl Unreadable {
    /// A line that the strict reader refuses, with the reader's sentence. The id is picked out of
    /// the line; of one that is cut off it could be cut as well.
    pub(crate) fn of(line: &[u8], error: &JsonError) -> Self {
        let refusal = Refusal::new(NO_JSON, error.to_string());
        let outline = match error.kind {
            JsonErrorKind::UnexpectedEnd => json!({}),
            _ => Skim::of(line),
        };
        let id = outline.get("id").filter(|id| matches!(id, Json::String(_) | Json::Number(_)));
        let answer_to = match (id, outline.get("method")) {
            (Some(id), Some(_)) => Some(id.clone()),
            (None, None) => Some(Json::Null),
            // An answer, or a notification.
            (Some(_), None) | (None, Some(_)) => None,
        };
        Unreadable { answer_to, refusal }
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    code: i32,
    message: String,
    data: Option<Json>,
}

impl Refusal {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), data: None }
    }

    pub(crate) fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Refusal::new(kind.json_rpc_code(), message)
    }

    /// The parameters are wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Refusal::of(ErrorKind::Invalid, message)
    }

    /// There is no such session.
    pub(crate) fn no_session(id: &str, why: &str) -> Self {
        let data = json!({ "sessionId": id });
        Refusal::of(ErrorKind::NotFound, format!("there is no session `{id}`{why}")).with(data)
    }

    /// The message cannot be what it was named for.
    pub(crate) fn message(id: &str, why: impl Into<String>) -> Self {
        Refusal::invalid(why).with(json!({ "messageId": id }))
    }

    /// A line had more bytes than any may have.
    pub(crate) fn too_long(bytes: usize, most: usize) -> Self {
        let why =
            format!("a line has at most {most} bytes, and this one had {bytes}; it is dropped");
        Refusal::new(NO_REQUEST, why)
    }

    /// The same in other words.
    pub(crate) fn put(&self, message: String) -> Self {
        Refusal { message, ..self.clone() }
    }

    pub(crate) fn with(self, data: Json) -> Self {
        Refusal { data: Some(data), ..self }
    }
}

impl Refusal {
    /// An error of somebody else, handed on.
    pub(crate) fn passed(error: &Json) -> Self {
        let code = error.get("code").and_then(|code| code.as_number()?.as_i64());
        let code = code.and_then(|code| code.try_into().ok());
        let message = error.get("message").and_then(Json::as_str).unwrap_or("no reason is given");
        let code = code.unwrap_or_else(|| ErrorKind::Internal.json_rpc_code());
        Refusal { code, message: message.to_owned(), data: error.get("data").cloned() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let kind = error.kind();
        Refusal::of(kind, error.to_string()).with(json!({ "code": kind.code() }))
    }
}

/// The answer to a request, as a line.
pub(crate) fn answer(id: &Json, result: Result<Json, Refusal>) -> Json {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id.clone(), "result": result }),
        Err(Refusal { code, message, data }) => {
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

/// Something that a client is told about a session.
pub(crate) fn update(session: &str, update: Json) -> Json {
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// Adds a note of ours to an answer.
pub(crate) fn note(answer: &mut Json, note: Json) {
    let Some(members) = answer.as_object_mut() else { return };
    let meta = noted(members.remove("_meta"), note);
    members.insert("_meta", meta);
}

/// Returns `_meta` with a note of ours.
pub(crate) fn noted(meta: Option<Json>, note: Json) -> Json {
    let mut members = match meta {
        Some(Json::Object(members)) => members,
        _ => Object::new(),
    };
    members.insert("tine", note);
    Json::Object(members)
}

/// A member that must be a text.
pub(crate) fn text<'v>(params: &'v Json, name: &str) -> Result<&'v str, Refusal> {
    optional_text(params, name)?.ok_or_else(|| Refusal::invalid(format!("`{name}` is missing")))
}

/// A member that may be a text; `null` is as good as none.
pub(crate) fn optional_text<'v>(params: &'v Json, name: &str) -> Result<Option<&'v str>, Refusal> {
    match params.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::invalid(format!("`{name}` must be a string"))),
    }
}

/// The folder that a session works in.
pub(crate) fn folder(params: &Json) -> Result<&str, Refusal> {
    absolute(text(params, "cwd")?)
}

/// A path that needs no other to be found.
pub(crate) fn absolute(path: &str) -> Result<&str, Refusal> {
    if Path::new(path).is_absolute() {
        return Ok(path);
    }
    Err(Refusal::invalid("`cwd` must be an absolute path"))
}

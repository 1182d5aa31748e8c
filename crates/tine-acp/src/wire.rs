//! JSON-RPC 2.0 as raw values: what comes in, refusals, answers and notifications.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};
use tine_core::{Json, Kind, Limits, json as strict_json};
use tine_engine::Error;

/// What is no JSON.
pub(crate) const NO_JSON: i32 = -32700;

/// What is no request.
pub(crate) const NO_REQUEST: i32 = -32600;

/// A method that is not there.
pub(crate) const NO_METHOD: i32 = -32601;

/// What came in on one line.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Somebody waits for an answer.
    Request { id: Value, method: String, params: Value },
    /// Nobody does.
    Notification { method: String, params: Value },
    /// An answer, though nothing was asked.
    Answer,
}

impl Incoming {
    /// Reads one line. A refusal comes with the id that it is for, as far as there is one.
    pub(crate) fn read(line: &[u8]) -> Result<Incoming, (Value, Refusal)> {
        let no_request = |id: Value, why: &str| (id, Refusal::new(NO_REQUEST, why));
        let value: Value = serde_json::from_slice(line)
            .map_err(|_| (Value::Null, Refusal::new(NO_JSON, "the line is no JSON")))?;
        let Value::Object(mut message) = value else {
            let why = "a message is one JSON object on one line; there are no batches";
            return Err(no_request(Value::Null, why));
        };
        let id = message.remove("id");
        let known = match &id {
            None => Value::Null,
            Some(id @ (Value::String(_) | Value::Number(_) | Value::Null)) => id.clone(),
            Some(_) => {
                return Err(no_request(Value::Null, "`id` must be a string or a number"));
            }
        };
        if message.get("jsonrpc") != Some(&Value::from("2.0")) {
            return Err(no_request(known, "`jsonrpc` must be \"2.0\""));
        }
        let method = match message.remove("method") {
            Some(Value::String(method)) => method,
            None if message.contains_key("result") || message.contains_key("error") => {
                return Ok(Incoming::Answer);
            }
            _ => return Err(no_request(known, "`method` must be a string")),
        };
        let params = match message.remove("params") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(params @ Value::Object(_)) => params,
            Some(_) => {
                let why = "`params` must be an object";
                return Err((known, Refusal::invalid(why)));
            }
        };
        Ok(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        })
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Refusal {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), data: None }
    }

    pub(crate) fn of(kind: Kind, message: impl Into<String>) -> Self {
        Refusal::new(kind.json_rpc_code(), message)
    }

    /// The parameters are wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Refusal::of(Kind::Invalid, message)
    }

    /// There is no such session.
    pub(crate) fn no_session(id: &str, why: &str) -> Self {
        let data = json!({ "sessionId": id });
        Refusal::of(Kind::NotFound, format!("there is no session `{id}`{why}")).with(data)
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

    pub(crate) fn with(self, data: Value) -> Self {
        Refusal { data: Some(data), ..self }
    }
}

impl Refusal {
    /// An error of somebody else, handed on.
    pub(crate) fn passed(error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64).and_then(|it| it.try_into().ok());
        let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason is given");
        let code = code.unwrap_or_else(|| Kind::Internal.json_rpc_code());
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
pub(crate) fn answer(id: &Value, result: Result<Value, Refusal>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Refusal { code, message, data }) => {
            let mut error = json!({ "code": code, "message": message });
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// Something that a client is told about a session.
pub(crate) fn update(session: &str, update: Value) -> Value {
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// Adds a note of ours to an answer.
pub(crate) fn note(answer: &mut Value, note: Value) {
    let Some(members) = answer.as_object_mut() else { return };
    let meta = members.entry("_meta").or_insert(Value::Null);
    if !meta.is_object() {
        *meta = Value::Object(Map::new());
    }
    meta["tine"] = note;
}

/// A member that must be a text.
pub(crate) fn text<'v>(params: &'v Value, name: &str) -> Result<&'v str, Refusal> {
    optional_text(params, name)?.ok_or_else(|| Refusal::invalid(format!("`{name}` is missing")))
}

/// A member that may be a text; `null` is as good as none.
pub(crate) fn optional_text<'v>(params: &'v Value, name: &str) -> Result<Option<&'v str>, Refusal> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::invalid(format!("`{name}` must be a string"))),
    }
}

/// The folder that a session works in.
pub(crate) fn folder(params: &Value) -> Result<&str, Refusal> {
    absolute(text(params, "cwd")?)
}

/// A path that needs no other to be found.
pub(crate) fn absolute(path: &str) -> Result<&str, Refusal> {
    if Path::new(path).is_absolute() {
        return Ok(path);
    }
    Err(Refusal::invalid("`cwd` must be an absolute path"))
}

/// A value as the engine keeps it.
pub(crate) fn exact(value: &Value, limits: &Limits) -> Result<Json, Refusal> {
    let bytes = value.to_string();
    Ok(strict_json::parse(bytes.as_bytes(), limits.json_depth).map_err(Error::from)?)
}

/// What the engine keeps, as a value. Whole numbers beyond 64 bits are rounded here.
pub(crate) fn value(json: &Json) -> Value {
    serde_json::from_str(&json.to_canonical()).unwrap_or(Value::Null)
}

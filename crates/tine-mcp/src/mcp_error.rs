//! Errors of tools, resources and prompts: what is wrong, and what to send instead.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use tine_core::ErrorKind;
use tine_engine::Error;
use tine_formats::render::RenderError;

/// Why a call was refused.
#[derive(Debug)]
pub(crate) struct McpError {
    error: Box<tine_api::Error>,
    next: Option<String>,
}

impl McpError {
    pub(crate) fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        tine_api::Error::new(kind, why).into()
    }

    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        McpError::new(ErrorKind::Invalid, why)
    }

    /// Adds what to do next.
    pub(crate) fn next(self, next: impl Into<String>) -> Self {
        McpError { next: Some(next.into()), ..self }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.error.kind
    }

    /// Returns the message for an error of the protocol, which has no field for what to do next.
    pub(crate) fn into_message(self) -> String {
        match self.next {
            Some(next) => format!("{}; {next}", self.error.message),
            None => self.error.message.clone(),
        }
    }

    /// Returns the error as the result of a tool.
    pub(crate) fn into_result(self, tool: &str) -> CallToolResult {
        let next = self.next.or_else(|| advice(&self.error, tool));
        let mut error = match serde_json::to_value(&*self.error) {
            Ok(Value::Object(error)) => error,
            _ => Map::new(),
        };
        let mut text = format!("{}: {}", self.error.kind.code(), self.error.message);
        if let Some(next) = next {
            text.push_str(&format!(" Next: {next}."));
            error.insert("next".to_owned(), next.into());
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({ "error": error }));
        result
    }
}

impl From<Error> for McpError {
    fn from(error: Error) -> Self {
        let error = match error {
            // The engine's advice names commands of the CLI, which an agent does not have.
            Error::NotFound { what, name, .. } => Error::NotFound { what, name, advice: "" },
            error => error,
        };
        tine_api::Error::from(error).into()
    }
}

impl From<tine_api::Error> for McpError {
    fn from(error: tine_api::Error) -> Self {
        McpError { error: Box::new(error), next: None }
    }
}

impl From<RenderError> for McpError {
    fn from(error: RenderError) -> Self {
        tine_api::Error::from(error).into()
    }
}

/// Returns what to do next after an error that does not say it itself.
fn advice(error: &tine_api::Error, tool: &str) -> Option<String> {
    let known = &error.details;
    if let Some(tip) = &known.actual_tip {
        let turn = tip.turn.map_or_else(|| "root".to_owned(), |turn| turn.to_string());
        return Some(format!(
            "read the branch with get_path(to: \"{}\"), then call {tool} again with \
             expected_tip \"{turn}\"",
            tip.branch
        ));
    }
    if let Some(operation) = known.deleted_by {
        return Some(format!("undo_operation(operation: {operation}) brings the turn back"));
    }
    if let Some(last) = known.depended_on_by.last() {
        return Some(format!("undo_operation(operation: {last}) first, then this one"));
    }
    if known.candidates.iter().any(|candidate| candidate.commit.is_some()) {
        return Some("send more digits of the commit's hash; candidates has it".into());
    }
    if !known.candidates.is_empty() {
        return Some("send the conversation_id, or the id of one of the candidates".into());
    }
    match error.kind {
        ErrorKind::NotFound => Some(
            "find turns with search_turns or get_tree, entities with retrieve_entities; ids of \
             other projects are not visible here"
                .to_owned(),
        ),
        ErrorKind::IdempotencyMismatch => {
            Some("send a new idempotency_key; repeat a key only to retry the same call".to_owned())
        }
        ErrorKind::Busy => Some("call again in a second".to_owned()),
        ErrorKind::TooLarge => Some("split it into several calls".to_owned()),
        _ => None,
    }
}

//! Refusals that teach: what was wrong, how things stand, what to send instead.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use tine_core::ErrorKind;
use tine_engine::Error;
use tine_formats::render::RenderError;

/// Why a call was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    error: Box<tine_api::Error>,
    next: Option<String>,
}

impl Refusal {
    pub(crate) fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        tine_api::Error::new(kind, why).into()
    }

    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Refusal::new(ErrorKind::Invalid, why)
    }

    /// The same, with what to do next.
    pub(crate) fn next(self, next: impl Into<String>) -> Self {
        Refusal { next: Some(next.into()), ..self }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.error.kind
    }

    /// As an error of the protocol, which has no field for what to do next.
    pub(crate) fn into_message(self) -> String {
        match self.next {
            Some(next) => format!("{}; {next}", self.error.message),
            None => self.error.message.clone(),
        }
    }

    /// As the result of a tool.
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

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let error = match error {
            // The engine's advice names commands, which an agent does not have.
            Error::NotFound { what, name, .. } => Error::NotFound { what, name, advice: "" },
            error => error,
        };
        tine_api::Error::from(error).into()
    }
}

impl From<tine_api::Error> for Refusal {
    fn from(error: tine_api::Error) -> Self {
        Refusal { error: Box::new(error), next: None }
    }
}

impl From<RenderError> for Refusal {
    fn from(error: RenderError) -> Self {
        tine_api::Error::from(error).into()
    }
}

/// What to do about a refusal that does not say it itself.
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
        return Some("give more digits of the commit's hash, as candidates have it".into());
    }
    if !known.candidates.is_empty() {
        return Some("name the conversation_id, or the turn by one of the candidates' ids".into());
    }
    match error.kind {
        ErrorKind::NotFound => Some(
            "search_turns or get_tree find turns, retrieve_entities finds entities; ids of \
             another project are not seen here"
                .to_owned(),
        ),
        ErrorKind::IdempotencyMismatch => {
            Some("send a new idempotency_key; a key is repeated only for the same call".to_owned())
        }
        ErrorKind::Busy => Some("call again in a second".to_owned()),
        ErrorKind::TooLarge => Some(
            "send less in one call; what belongs together can be several \
             stores"
                .to_owned(),
        ),
        _ => None,
    }
}

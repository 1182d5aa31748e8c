//! Errors over HTTP: `application/problem+json` (RFC 9457), with the code of the engine.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use tine_api::ErrorDetails;
use tine_core::ErrorKind;

/// The media type of an error.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was refused.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The documentation of the code.
    #[serde(rename = "type")]
    page: String,
    /// The code as words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What is wrong, and what to do.
    detail: Box<str>,
    /// The stable code of the kind of error.
    code: &'static str,
    /// What to do next, if `detail` does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    #[serde(flatten)]
    details: Box<ErrorDetails>,
    #[serde(skip)]
    wait: Option<u32>,
}

impl Problem {
    /// Returns an error of a kind, with a message.
    pub(crate) fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        tine_api::Error::new(kind, why).into()
    }

    /// Sets another status, such as 412 for a conditional request.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Problem { status: status.as_u16(), ..self }
    }

    /// Sets the number of seconds to wait before a retry.
    pub(crate) fn after(self, seconds: u32) -> Self {
        Problem { wait: Some(seconds), ..self }
    }

    pub(crate) fn is(&self, kind: ErrorKind) -> bool {
        self.code == kind.code()
    }
}

impl<E: Into<tine_api::Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        let tine_api::Error { kind, message, details, .. } = error.into();
        Problem {
            page: format!("/docs#{}", kind.code()),
            title: kind.code().replace('_', " "),
            status: kind.http_status(),
            detail: message.into(),
            code: kind.code(),
            hint: details.missing.as_deref().and_then(where_to_look),
            details,
            wait: (kind == ErrorKind::Busy).then_some(1),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if let Some(seconds) = self.wait {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

/// Returns where the API lists records of a kind.
fn where_to_look(missing: &str) -> Option<&'static str> {
    Some(match missing {
        "project" => "GET /api/v1/projects lists them",
        "conversation" => "GET /api/v1/conversations lists them",
        "branch" => "GET /api/v1/conversations/{conversation_id}/branches lists them",
        "turn, branch or bookmark" => {
            "GET /api/v1/conversations/{conversation_id}/topology shows them"
        }
        "bookmark" => "GET /api/v1/bookmarks lists them",
        "commit" | "branch or commit" => "GET /api/v1/commits lists them",
        "schema" => "GET /api/v1/schemas lists them",
        "entity" => "GET /api/v1/entities lists them",
        "source" => "GET /api/v1/sources lists them",
        "interpretation" => "GET /api/v1/interpretations lists them",
        _ => return None,
    })
}

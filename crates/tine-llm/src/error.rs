//! Errors of model calls.
//!
//! No error contains an API key: response text is scrubbed before it gets here.

use std::time::Duration;

/// The longest part of a response body in an error, in characters.
const EXCERPT: usize = 300;

/// Where an answer was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The connection ended before the answer did.
    Connection,
    /// The answer reached the token limit.
    Length,
}

/// Why a model gave no answer.
///
/// `provider` is the name under which the provider is configured; `body` is an excerpt of the
/// response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum ModelError {
    /// The model, or a content filter, refused to answer.
    #[error("`{provider}` refused to answer ({why}); ask another model, or leave this text out")]
    Refused { provider: String, why: String },
    /// The endpoint requires a key, or does not accept this one.
    #[error("`{provider}` answered {status} ({body}); {}", key_advice(key_env.as_deref()))]
    Unauthorized { provider: String, status: u16, key_env: Option<String>, body: String },
    #[error(
        "the rate limit of `{provider}` is reached ({body}); try again {}, or ask for a higher limit",
        later(*retry_after)
    )]
    RateLimited { provider: String, retry_after: Option<Duration>, body: String },
    /// The answer did not arrive in time; `field` is the setting of the timeout.
    #[error(
        "`{provider}` did not answer within {} ms; try again, or raise `{field}`",
        after.as_millis()
    )]
    Timeout { provider: String, after: Duration, field: &'static str },
    /// The answer was cut off.
    #[error("the answer of `{provider}` was cut off {}", cut_advice(*cut))]
    Truncated { provider: String, cut: Truncation },
    /// The answer does not follow the protocol, or is not what was requested.
    #[error(
        "the answer of `{provider}` cannot be used: {what}; check `kind`, `base_url` and `model`"
    )]
    Malformed { provider: String, what: String },
    /// The answer is too large.
    #[error(
        "the answer of `{provider}` is larger than {limit_bytes} bytes; ask for less, or raise \
         `max_answer_bytes`"
    )]
    TooLarge { provider: String, limit_bytes: u64 },
    #[error(
        "the budget of `{provider}` is used up ({spent} of {limit}); raise `budget` in its \
         configuration, or restart the program"
    )]
    Budget { provider: String, spent: String, limit: String },
    /// The endpoint cannot be reached; `again` says whether a retry may help.
    #[error("`{provider}` at {address} cannot be reached ({why}); {}", reach_advice(*again))]
    Unreachable { provider: String, address: String, why: String, again: bool },
    /// The endpoint answered with any other status.
    #[error("`{provider}` answered {status} ({body}); {}", status_advice(*status))]
    Http { provider: String, status: u16, body: String },
    #[error(
        "the environment variable {env} contains no key for `{provider}`; set it, or set `key_env` to \
         the variable with the key"
    )]
    MissingKey { provider: String, env: String },
}

impl ModelError {
    /// Returns whether the same call may succeed later.
    pub fn transient(&self) -> bool {
        match self {
            ModelError::RateLimited { .. } | ModelError::Timeout { .. } => true,
            ModelError::Truncated { cut, .. } => *cut == Truncation::Connection,
            ModelError::Unreachable { again, .. } => *again,
            ModelError::Http { status, .. } => matches!(status, 408 | 409 | 500..=599),
            ModelError::Refused { .. }
            | ModelError::Unauthorized { .. }
            | ModelError::Malformed { .. }
            | ModelError::TooLarge { .. }
            | ModelError::Budget { .. }
            | ModelError::MissingKey { .. } => false,
        }
    }

    /// Returns the error for an HTTP status other than success.
    pub(crate) fn of_status(
        provider: &crate::Provider,
        status: u16,
        retry_after: Option<Duration>,
        body: &[u8],
    ) -> ModelError {
        let name = provider.name.clone();
        let body = excerpt(body);
        match status {
            401 | 403 | 407 => ModelError::Unauthorized {
                provider: name,
                status,
                key_env: provider.key_env.clone(),
                body,
            },
            429 => ModelError::RateLimited { provider: name, retry_after, body },
            _ => ModelError::Http { provider: name, status, body },
        }
    }
}

/// Shortens a response body to one line: its error message if it has one.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| {
        ["/error/message", "/error", "/message", "/detail"]
            .iter()
            .find_map(|path| json.pointer(path)?.as_str())
    });
    let text = message.map_or_else(|| String::from_utf8_lossy(body), Into::into);
    let words: Vec<&str> = text.split(|it: char| it.is_whitespace() || it.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT) {
        _ if line.is_empty() => "no message".to_owned(),
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

fn key_advice(key_env: Option<&str>) -> String {
    match key_env {
        Some(name) => format!("check the key in {name} and its permissions"),
        None => "set `key_env` to the variable with its key".to_owned(),
    }
}

fn later(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(time) => format!("in {} s", time.as_secs_f64().ceil()),
        None => "later".to_owned(),
    }
}

fn cut_advice(cut: Truncation) -> &'static str {
    match cut {
        Truncation::Connection => "before it was complete; try again",
        Truncation::Length => "at the token limit; raise `max_tokens`, or ask for less",
    }
}

fn reach_advice(again: bool) -> &'static str {
    match again {
        true => "is it running, and is `base_url` right?",
        false => "check `base_url`; SSL_CERT_FILE adds the certificates of your own authority",
    }
}

fn status_advice(status: u16) -> &'static str {
    match status {
        300..=399 => "redirects are not followed: set `base_url` to the new address",
        404 => "check `base_url`, and whether it has the `model`",
        413 => "send a shorter text",
        408 | 409 | 500..=599 => "try again later",
        _ => "check `model` and the parameters set for it",
    }
}

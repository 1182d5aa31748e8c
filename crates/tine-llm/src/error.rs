//! Errors of model calls.
//!
//! No error contains an API key: response text is scrubbed before it gets here.

use std::time::Duration;

/// The largest part of an endpoint's own words that an error repeats, in characters.
const EXCERPT: usize = 300;

/// Where an answer was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The connection ended before the answer did.
    Connection,
    /// The model reached the most tokens that it may write.
    Length,
}

/// Why a model gave no answer.
///
/// `provider` is the name that the model was configured under.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The model, or a filter in front of it, does not want to answer.
    #[error("`{provider}` refused to answer ({why}); ask another model, or leave this text out")]
    Refused {
        /// Who.
        provider: String,
        /// In its own words.
        why: String,
    },
    /// The endpoint does not accept the key, or wants one.
    #[error("`{provider}` answered {status} ({body}); {}", key_advice(key_env.as_deref()))]
    Unauthorized {
        /// Who.
        provider: String,
        /// 401, 403 or 407.
        status: u16,
        /// Where the key came from.
        key_env: Option<String>,
        /// The endpoint's words, in part.
        body: String,
    },
    /// The endpoint wants fewer requests.
    #[error(
        "`{provider}` takes no more requests for now ({body}); try again {}, or ask for a higher \
         limit", later(*retry_after)
    )]
    RateLimited {
        /// Who.
        provider: String,
        /// When it will take one, if it said so.
        retry_after: Option<Duration>,
        /// The endpoint's words, in part.
        body: String,
    },
    /// No answer in time.
    #[error(
        "`{provider}` did not answer within {} ms; try again, or raise `{field}`",
        after.as_millis()
    )]
    Timeout {
        /// Who.
        provider: String,
        /// The time that passed.
        after: Duration,
        /// The setting that says so.
        field: &'static str,
    },
    /// The answer broke off.
    #[error("the answer of `{provider}` broke off {}", cut_advice(*cut))]
    Truncated {
        /// Who.
        provider: String,
        /// Where.
        cut: Truncation,
    },
    /// The answer is none that this protocol knows, or not what was asked for.
    #[error(
        "the answer of `{provider}` cannot be used: {what}; check `kind`, `base_url` and `model`"
    )]
    Malformed {
        /// Who.
        provider: String,
        /// What is wrong with it.
        what: String,
    },
    /// The answer is larger than it may be.
    #[error(
        "the answer of `{provider}` is larger than {limit_bytes} bytes; ask for less, or raise \
         `max_answer_bytes`"
    )]
    TooLarge {
        /// Who.
        provider: String,
        /// The largest answer that is taken.
        limit_bytes: u64,
    },
    /// What may be spent is spent.
    #[error(
        "the budget of `{provider}` is spent ({spent} of {limit}); raise `budget` in its \
         configuration, or restart the program"
    )]
    Budget {
        /// Who.
        provider: String,
        /// What was spent.
        spent: String,
        /// What may be spent.
        limit: String,
    },
    /// There is no connection to the endpoint.
    #[error("`{provider}` at {address} cannot be reached ({why}); {}", reach_advice(*again))]
    Unreachable {
        /// Who.
        provider: String,
        /// Where.
        address: String,
        /// What happened.
        why: String,
        /// Whether another try may help.
        again: bool,
    },
    /// The endpoint answered with a status that is none of the above.
    #[error("`{provider}` answered {status} ({body}); {}", status_advice(*status))]
    Http {
        /// Who.
        provider: String,
        /// The status.
        status: u16,
        /// The endpoint's words, in part.
        body: String,
    },
    /// The environment holds no key.
    #[error(
        "the environment variable {env} holds no key that can be sent to `{provider}`; set it, or \
         set `key_env` to the variable that holds the key"
    )]
    MissingKey {
        /// Whom it is for.
        provider: String,
        /// The variable that was looked at.
        env: String,
    },
}

impl ModelError {
    /// Returns whether the same call may succeed later without anybody changing anything.
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
        _ if line.is_empty() => "without a word".to_owned(),
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

fn key_advice(key_env: Option<&str>) -> String {
    match key_env {
        Some(name) => format!("check the key in {name}, and what it is allowed to do"),
        None => "name the variable that holds its key in `key_env`".to_owned(),
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
        Truncation::Connection => "before it was whole; try again",
        Truncation::Length => {
            "at the most tokens that it may have; raise `max_tokens`, or ask for less"
        }
    }
}

fn reach_advice(again: bool) -> &'static str {
    match again {
        true => "is it running, and is `base_url` right?",
        false => {
            "check `base_url`; SSL_CERT_FILE names the certificates of an authority of your own"
        }
    }
}

fn status_advice(status: u16) -> &'static str {
    match status {
        300..=399 => "nothing is sent elsewhere: set `base_url` to where it really is",
        404 => "check `base_url`, and that it has the `model`",
        413 => "send less",
        408 | 409 | 500..=599 => "try again later",
        _ => "check `model` and the parameters set for it",
    }
}

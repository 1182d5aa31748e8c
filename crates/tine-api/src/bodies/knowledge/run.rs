//! Runs that are asked for.

use crate::{self as api, Result};
use tine_core::SourceId;

use super::{ids, moment};
use crate::bodies::request;

request! {
    /// A run over one source.
    InterpretSource {
        /// By which interpreter; the default one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpreter: Option<String>,
        /// Whether the answer comes when it is done.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        wait: bool,
    }
}

impl InterpretSource {
    /// What the engine is asked about a source.
    pub fn into_request(self, source: SourceId) -> api::Reinterpret {
        api::Reinterpret {
            sources: vec![source],
            interpreter: self.interpreter,
            wait: self.wait,
            ..api::Reinterpret::default()
        }
    }
}

request! {
    /// Which sources are read again: those named, or all that a filter finds.
    Reinterpret {
        /// These.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        source_ids: Vec<String>,
        /// All of a mime type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// All that came at this time or later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        /// All that came before this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<String>,
        /// All whose last run failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
        /// By which interpreter; the default one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpreter: Option<String>,
        /// Whether the answer comes when all are done.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        wait: bool,
    }
}

impl Reinterpret {
    /// What the engine is asked.
    pub fn into_request(self) -> Result<api::Reinterpret> {
        Ok(api::Reinterpret {
            sources: ids(&self.source_ids)?,
            mime_type: self.mime_type,
            since: self.since.as_deref().map(|text| moment("since", text)).transpose()?,
            until: self.until.as_deref().map(|text| moment("until", text)).transpose()?,
            failed: self.failed,
            interpreter: self.interpreter,
            wait: self.wait,
        })
    }
}

impl From<api::Reinterpret> for Reinterpret {
    fn from(request: api::Reinterpret) -> Self {
        Reinterpret {
            source_ids: request.sources.iter().map(ToString::to_string).collect(),
            mime_type: request.mime_type,
            since: request.since.map(|at| at.to_string()),
            until: request.until.map(|at| at.to_string()),
            failed: request.failed,
            interpreter: request.interpreter,
            wait: request.wait,
            ..Reinterpret::default()
        }
    }
}

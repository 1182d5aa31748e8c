//! What a caller may access.

use std::fmt;
use std::sync::Arc;

use tine_core::{ErrorKind, ProjectId};

use crate::mcp_error::McpError;

/// Who calls, and what that caller may access. An HTTP server puts one into the extensions of each
/// request that it passes on; without one, everything is allowed.
#[derive(Clone)]
pub struct AccessScope {
    /// The actor of changes.
    pub actor: Option<String>,
    /// The only accessible project; `None` for all.
    pub project: Option<ProjectId>,
    /// Whether changes are allowed.
    pub write: bool,
    /// Whether the scope is still valid, checked again by long-running requests.
    pub still_valid: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccessScope { actor, project, write, .. } = self;
        write!(f, "AccessScope({actor:?}, {project:?}, write: {write})")
    }
}

impl Default for AccessScope {
    fn default() -> Self {
        AccessScope { actor: None, project: None, write: true, still_valid: None }
    }
}

impl AccessScope {
    /// Returns whether the scope is still valid.
    pub(crate) fn is_valid(&self) -> bool {
        self.still_valid.as_ref().is_none_or(|check| check())
    }

    /// Returns the project of a call: the one it names, otherwise the only accessible one,
    /// otherwise the server's.
    pub(crate) fn project(&self, named: Option<ProjectId>, default: &ProjectId) -> ProjectId {
        named.or_else(|| self.project.clone()).unwrap_or_else(|| default.clone())
    }

    /// Refuses access that the caller does not have.
    pub(crate) fn check(&self, project: &ProjectId, write: bool) -> Result<(), McpError> {
        if let Some(only) = self.project.as_ref().filter(|only| *only != project) {
            let why = format!("this token is for the project {only}, not {project}");
            return Err(McpError::new(ErrorKind::Forbidden, why)
                .next(format!("call again with project_id \"{only}\", or without it")));
        }
        if write && !self.write {
            let why = "this connection is read-only";
            return Err(McpError::new(ErrorKind::Forbidden, why)
                .next("ask the user for a token with write access"));
        }
        Ok(())
    }
}

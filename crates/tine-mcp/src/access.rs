//! How far a caller reaches.

use std::fmt;
use std::sync::Arc;

use tine_core::{ErrorKind, ProjectId};

use crate::refusal::Refusal;

/// Who calls, and what that caller may do. An HTTP server puts one into the extensions of each
/// request that it hands on; without one a caller may do everything.
#[derive(Clone)]
pub struct Reach {
    /// The name that changes are recorded under.
    pub actor: Option<String>,
    /// The one project within reach; all of them without.
    pub project: Option<ProjectId>,
    /// Whether something may be changed.
    pub write: bool,
    /// Whether all this still holds, asked again by whatever goes on for long.
    pub still: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reach { actor, project, write, .. } = self;
        write!(f, "Reach({actor:?}, {project:?}, write: {write})")
    }
}

impl Default for Reach {
    fn default() -> Self {
        Reach { actor: None, project: None, write: true, still: None }
    }
}

impl Reach {
    /// Whether it still holds.
    pub(crate) fn holds(&self) -> bool {
        self.still.as_ref().is_none_or(|still| still())
    }

    /// The project that a call is about: the one it names, else the only one within reach, else
    /// the server's.
    pub(crate) fn project(&self, named: Option<ProjectId>, default: &ProjectId) -> ProjectId {
        named.or_else(|| self.project.clone()).unwrap_or_else(|| default.clone())
    }

    /// Refuses what the caller may not do.
    pub(crate) fn check(&self, project: &ProjectId, write: bool) -> Result<(), Refusal> {
        if let Some(only) = self.project.as_ref().filter(|only| *only != project) {
            let why = format!("this token reaches the project {only}, not {project}");
            return Err(Refusal::new(ErrorKind::Forbidden, why)
                .next(format!("call again with project_id \"{only}\", or without it")));
        }
        if write && !self.write {
            let why = "this connection may only read";
            return Err(Refusal::new(ErrorKind::Forbidden, why)
                .next("ask for a token that may write, or leave the change to somebody else"));
        }
        Ok(())
    }
}

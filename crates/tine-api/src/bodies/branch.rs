//! Bodies about branches and bookmarks.

use crate::{self as api, Error, ForkPoint, Result};
use tine_core::{Limits, Name, Reference};

use super::{conversation_id, reference, request};

request! {
    /// A branch to be made.
    NewBranch {
        /// Its name; `fork-1`, `fork-2` … without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The turn that it ends on, or `root`; the tip of `main` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The turn that it ends before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    }
}

impl NewBranch {
    /// What the engine is asked about a conversation.
    pub fn into_request(self, conversation: &str, limits: &Limits) -> Result<api::Fork> {
        let point = match (self.at, self.before) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid("give either `at` or `before`, not both"));
            }
            (None, Some(turn)) => ForkPoint::Before(Reference::parse(&turn)?),
            (at, None) => ForkPoint::At(Reference::parse(at.as_deref().unwrap_or("main"))?),
        };
        Ok(api::Fork {
            conversation: Some(conversation_id(conversation, limits)?),
            point,
            name: self.name.map(|name| Name::new(name, limits)).transpose()?,
        })
    }
}

request! {
    /// What changes of a branch.
    BranchPatch {
        /// Its new name; its id stays.
        name: String,
    }
}

request! {
    /// Where a branch goes.
    MoveBranch {
        /// The turn, or `root`. Restoring without it takes the last revert back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// Where the caller thinks that the branch ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_tip: Option<String>,
    }
}

impl MoveBranch {
    /// What the engine is asked about a branch.
    pub fn into_request(
        self,
        conversation: &str,
        branch: &str,
        limits: &Limits,
    ) -> Result<api::MoveBranch> {
        Ok(api::MoveBranch {
            conversation: conversation_id(conversation, limits)?,
            branch: branch.to_owned(),
            to: reference(self.to.as_deref())?,
            expected_tip: reference(self.expected_tip.as_deref())?,
        })
    }
}

impl From<api::MoveBranch> for MoveBranch {
    fn from(request: api::MoveBranch) -> Self {
        let text = |reference: &Reference| reference.as_str().to_owned();
        MoveBranch {
            to: request.to.as_ref().map(text),
            expected_tip: request.expected_tip.as_ref().map(text),
            ..MoveBranch::default()
        }
    }
}

request! {
    /// Where a bookmark is put.
    PutBookmark {
        /// The turn.
        turn: String,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}

//! Bodies about commits and merges.

use crate::{self as api, Error, Result, Take, TurnRef, WindowRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{Limits, Reference};

use super::{conversation_id, given, request, size};
use crate::bodies::FreeForm;

/// The ends of a stretch of turns, both of them in it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnRange {
    /// The first turn: its hash, or any other name of a turn.
    pub start_turn_hash: String,
    /// The last turn.
    pub end_turn_hash: String,
}

request! {
    /// A commit to be made.
    NewCommit {
        /// The conversation.
        conversation_id: String,
        /// The turns; without them all that no commit of the branch covers yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_window: Option<TurnRange>,
        /// The branch, by name or id. Without it: `main` if the turns lie there, else the only
        /// branch on which they do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// What it is about.
        message: String,
        /// Who made it; whoever calls without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
    }
}

impl NewCommit {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::NewCommit> {
        let window = |range: TurnRange| -> Result<WindowRef> {
            Ok(WindowRef {
                start: Reference::parse(&range.start_turn_hash)?,
                end: Reference::parse(&range.end_turn_hash)?,
            })
        };
        Ok(api::NewCommit {
            conversation: conversation_id(&self.conversation_id, limits)?,
            branch: self.branch,
            window: self.turn_window.map(window).transpose()?,
            message: self.message,
            author: self.author,
        })
    }
}

impl From<api::NewCommit> for NewCommit {
    fn from(request: api::NewCommit) -> Self {
        let range = |window: WindowRef| TurnRange {
            start_turn_hash: window.start.as_str().to_owned(),
            end_turn_hash: window.end.as_str().to_owned(),
        };
        NewCommit {
            conversation_id: request.conversation.to_string(),
            turn_window: request.window.map(range),
            branch: request.branch,
            message: request.message,
            author: request.author,
            ..NewCommit::default()
        }
    }
}

request! {
    /// A signature of a commit.
    SignCommit {
        /// The signer's Ed25519 key, in hexadecimal digits.
        public_key: String,
        /// The signature of the text of the commit's hash, `sha256:…`, in hexadecimal digits.
        value: String,
    }
}

/// What a merge says about the other side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MergeSummary {
    /// `true` for what the facets, facts and decisions of the other side say.
    Made(bool),
    /// Words of your own.
    Text(String),
}

request! {
    /// A branch or a commit to be merged.
    Merge {
        /// The conversation.
        conversation_id: String,
        /// The other side: a branch by name or id, or a commit by its hash.
        from: String,
        /// The branch on which the merge is made; `main` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<String>,
        /// What it is about; `Merge …` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Who made it; whoever calls without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
        /// A turn about the other side is said on the branch; none without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<MergeSummary>,
        /// Only say what would come of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        dry_run: bool,
    }
}

impl Merge {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::MergeBranches> {
        Ok(api::MergeBranches {
            conversation: conversation_id(&self.conversation_id, limits)?,
            from: self.from,
            into: self.into,
            message: self.message,
            author: self.author,
            summary: match self.summary {
                None | Some(MergeSummary::Made(false)) => api::Summary::None,
                Some(MergeSummary::Made(true)) => api::Summary::Generated,
                Some(MergeSummary::Text(words)) => api::Summary::Text(words),
            },
            dry_run: self.dry_run,
        })
    }
}

impl From<api::MergeBranches> for Merge {
    fn from(request: api::MergeBranches) -> Self {
        Merge {
            conversation_id: request.conversation.to_string(),
            from: request.from,
            into: request.into,
            message: request.message,
            author: request.author,
            summary: match request.summary {
                api::Summary::None => None,
                api::Summary::Generated => Some(MergeSummary::Made(true)),
                api::Summary::Text(words) => Some(MergeSummary::Text(words)),
            },
            dry_run: request.dry_run,
            ..Merge::default()
        }
    }
}

/// A decision about one field: by one of the sides, by a value, or by nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The entity.
    pub entity_id: String,
    /// Its field.
    pub field: String,
    /// What one side says, counted from 1 as the conflict lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<u64>,
    /// This value.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<FreeForm>,
    /// `true` for no value at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
}

impl Decision {
    fn into_request(self, limits: &Limits) -> Result<api::Decision> {
        let take = match (self.side, self.value, self.nothing) {
            (Some(side), None, false) => Take::Side(size("the side", side)?),
            (None, Some(value), false) => Take::Value(value.within(limits)?),
            (None, None, true) => Take::Nothing,
            _ => {
                let why = "a decision is one of `side`, `value` and `nothing: true`";
                return Err(Error::invalid(why));
            }
        };
        Ok(api::Decision { entity: self.entity_id.parse()?, field: self.field, take })
    }
}

impl From<api::Decision> for Decision {
    fn from(decision: api::Decision) -> Self {
        let (entity_id, field) = (decision.entity.to_string(), decision.field);
        let about = Decision { entity_id, field, ..Decision::default() };
        match decision.take {
            Take::Side(side) => Decision { side: Some(side as u64), ..about },
            Take::Value(value) => Decision { value: Some(FreeForm(value)), ..about },
            Take::Nothing => Decision { nothing: true, ..about },
        }
    }
}

request! {
    /// Conflicts of a branch to be decided.
    ResolveConflicts {
        /// At least one.
        decisions: Vec<Decision>,
        /// What the commit is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Who made it; whoever calls without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
    }
}

impl ResolveConflicts {
    /// What the engine is asked about a branch.
    pub fn into_request(
        self,
        conversation: &str,
        branch: &str,
        limits: &Limits,
    ) -> Result<api::ResolveConflicts> {
        let decisions = self.decisions.into_iter().map(|one| one.into_request(limits));
        Ok(api::ResolveConflicts {
            conversation: conversation_id(conversation, limits)?,
            branch: Some(branch.to_owned()),
            decisions: decisions.collect::<Result<_>>()?,
            message: self.message,
            author: self.author,
        })
    }
}

impl From<api::ResolveConflicts> for ResolveConflicts {
    fn from(request: api::ResolveConflicts) -> Self {
        ResolveConflicts {
            decisions: request.decisions.into_iter().map(Decision::from).collect(),
            message: request.message,
            author: request.author,
            ..ResolveConflicts::default()
        }
    }
}

request! {
    /// Where a turn is said again.
    Inject {
        /// The conversation that it comes to.
        conversation_id: String,
        /// The branch at whose end it is said, by name or id; `main` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_conversation_id: Option<String>,
    }
}

impl Inject {
    /// What the engine is asked about a turn.
    pub fn into_request(self, turn: &str, limits: &Limits) -> Result<api::Inject> {
        let from = self.from_conversation_id.as_deref();
        let from = from.map(|id| conversation_id(id, limits)).transpose()?;
        Ok(api::Inject {
            turn: TurnRef { conversation: from, turn: Reference::parse(turn)? },
            conversation: conversation_id(&self.conversation_id, limits)?,
            branch: self.branch,
        })
    }
}

impl From<api::Inject> for Inject {
    fn from(request: api::Inject) -> Self {
        Inject {
            conversation_id: request.conversation.to_string(),
            branch: request.branch,
            from_conversation_id: request.turn.conversation.map(|id| id.to_string()),
            ..Inject::default()
        }
    }
}

//! Two sides compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::ConversationId;
use tine_core::commit::{self, SeenAt};
use tine_engine as engine;

use super::FieldChange;
use crate::view::reading::{self, Unreadable, each, parse, parse_all, parse_option};
use crate::view::{text, texts};

/// Two sides compared.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The one.
    pub from: DiffSide,
    /// The other.
    pub to: DiffSide,
    /// The last turn that both have.
    pub common_turn_hash: Option<String>,
    /// The last commits that both build on, where two commits are compared.
    pub bases: Vec<String>,
    /// What was said on one side and not on the other; nothing where two commits are compared.
    pub changes: Vec<TurnChange>,
    /// Changes that are not told.
    pub left_out: u64,
    /// Names.
    pub entities: SeenDiff,
    /// Keywords.
    pub keywords: SeenDiff,
    /// Topics.
    pub topics: SeenDiff,
    /// What is known.
    pub facts: Vec<FieldChange>,
}

impl From<engine::Diff> for Diff {
    fn from(diff: engine::Diff) -> Self {
        Diff {
            from: diff.from.into(),
            to: diff.to.into(),
            common_turn_hash: diff.common.map(text),
            bases: texts(diff.bases),
            changes: diff.changes.into_iter().map(TurnChange::from).collect(),
            left_out: diff.left_out,
            entities: diff.entities.into(),
            keywords: diff.keywords.into(),
            topics: diff.topics.into(),
            facts: diff.facts.into_iter().map(FieldChange::from).collect(),
        }
    }
}

impl TryFrom<Diff> for engine::Diff {
    type Error = Unreadable;

    fn try_from(view: Diff) -> Result<Self, Unreadable> {
        Ok(engine::Diff {
            from: view.from.try_into()?,
            to: view.to.try_into()?,
            common: parse_option("common_turn_hash", view.common_turn_hash)?,
            bases: parse_all("bases", view.bases)?,
            changes: each(view.changes)?,
            left_out: view.left_out,
            entities: view.entities.try_into()?,
            keywords: view.keywords.try_into()?,
            topics: view.topics.try_into()?,
            facts: each(view.facts)?,
        })
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffSide {
    /// What was asked for.
    pub name: String,
    /// Its conversation.
    pub conversation_id: String,
    /// Its last turn.
    pub turn_hash: Option<String>,
    /// The commit, if it is one.
    pub commit_hash: Option<String>,
    /// Turns that only this side has.
    pub turns: u64,
    /// Commits that only this side has, where two commits are compared.
    pub commits: Vec<String>,
}

impl From<engine::DiffSide> for DiffSide {
    fn from(side: engine::DiffSide) -> Self {
        DiffSide {
            name: side.name,
            conversation_id: text(side.conversation),
            turn_hash: side.turn.map(text),
            commit_hash: side.commit.map(text),
            turns: side.turns,
            commits: texts(side.commits),
        }
    }
}

impl TryFrom<DiffSide> for engine::DiffSide {
    type Error = Unreadable;

    fn try_from(view: DiffSide) -> Result<Self, Unreadable> {
        Ok(engine::DiffSide {
            name: view.name,
            conversation: ConversationId::from_stored(view.conversation_id),
            turn: parse_option("turn_hash", view.turn_hash)?,
            commit: parse_option("commit_hash", view.commit_hash)?,
            turns: view.turns,
            commits: parse_all("commits", view.commits)?,
        })
    }
}

/// A turn as a comparison shows it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffTurn {
    /// Its id.
    pub turn_id: String,
    /// Its hash.
    pub turn_hash: String,
    /// Who said it.
    pub role: String,
    /// What it says; empty once it was purged.
    pub text: String,
}

impl From<engine::DiffTurn> for DiffTurn {
    fn from(turn: engine::DiffTurn) -> Self {
        DiffTurn {
            turn_id: text(turn.id),
            turn_hash: text(turn.hash),
            role: turn.role.as_str().to_owned(),
            text: turn.text,
        }
    }
}

impl TryFrom<DiffTurn> for engine::DiffTurn {
    type Error = Unreadable;

    fn try_from(view: DiffTurn) -> Result<Self, Unreadable> {
        Ok(engine::DiffTurn {
            id: parse("turn_id", &view.turn_id)?,
            hash: parse("turn_hash", &view.turn_hash)?,
            role: reading::role(&view.role)?,
            text: view.text,
        })
    }
}

/// A turn that two sides do not share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum TurnChange {
    /// Said on both sides in the same words, in turns of their own.
    Equal {
        /// There.
        from: DiffTurn,
        /// And here.
        to: DiffTurn,
    },
    /// Said on both sides in other words.
    Changed {
        /// There.
        from: DiffTurn,
        /// And here.
        to: DiffTurn,
        /// Word by word.
        words: Vec<WordChange>,
    },
    /// Only said on the first side.
    Lost {
        /// There.
        from: DiffTurn,
    },
    /// Only said on the second side.
    Gained {
        /// Here.
        to: DiffTurn,
    },
}

/// Words of two versions of a text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WordChange {
    /// In both.
    Kept(String),
    /// Only in the first.
    Lost(String),
    /// Only in the second.
    Gained(String),
}

impl From<engine::TurnChange> for TurnChange {
    fn from(change: engine::TurnChange) -> Self {
        let word = |word| match word {
            engine::WordChange::Kept(text) => WordChange::Kept(text),
            engine::WordChange::Lost(text) => WordChange::Lost(text),
            engine::WordChange::Gained(text) => WordChange::Gained(text),
        };
        match change {
            engine::TurnChange::Equal { from, to } => {
                TurnChange::Equal { from: from.into(), to: to.into() }
            }
            engine::TurnChange::Changed { from, to, words } => TurnChange::Changed {
                from: from.into(),
                to: to.into(),
                words: words.into_iter().map(word).collect(),
            },
            engine::TurnChange::Lost(turn) => TurnChange::Lost { from: turn.into() },
            engine::TurnChange::Gained(turn) => TurnChange::Gained { to: turn.into() },
        }
    }
}

impl TryFrom<TurnChange> for engine::TurnChange {
    type Error = Unreadable;

    fn try_from(view: TurnChange) -> Result<Self, Unreadable> {
        let word = |word| match word {
            WordChange::Kept(text) => engine::WordChange::Kept(text),
            WordChange::Lost(text) => engine::WordChange::Lost(text),
            WordChange::Gained(text) => engine::WordChange::Gained(text),
        };
        Ok(match view {
            TurnChange::Equal { from, to } => {
                engine::TurnChange::Equal { from: from.try_into()?, to: to.try_into()? }
            }
            TurnChange::Changed { from, to, words } => engine::TurnChange::Changed {
                from: from.try_into()?,
                to: to.try_into()?,
                words: words.into_iter().map(word).collect(),
            },
            TurnChange::Lost { from } => engine::TurnChange::Lost(from.try_into()?),
            TurnChange::Gained { to } => engine::TurnChange::Gained(to.try_into()?),
        })
    }
}

/// Words of two sides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeenDiff {
    /// Only on the second side.
    pub gained: Vec<Seen>,
    /// Only on the first side.
    pub lost: Vec<Seen>,
    /// On both.
    pub kept: Vec<Seen>,
}

impl From<engine::SeenDiff> for SeenDiff {
    fn from(diff: engine::SeenDiff) -> Self {
        let all = |seen: Vec<commit::Seen>| seen.into_iter().map(Seen::from).collect();
        SeenDiff { gained: all(diff.gained), lost: all(diff.lost), kept: all(diff.kept) }
    }
}

impl TryFrom<SeenDiff> for engine::SeenDiff {
    type Error = Unreadable;

    fn try_from(view: SeenDiff) -> Result<Self, Unreadable> {
        Ok(engine::SeenDiff {
            gained: each(view.gained)?,
            lost: each(view.lost)?,
            kept: each(view.kept)?,
        })
    }
}

/// A word or name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// As it was said first.
    pub text: String,
    /// In how many turns it was said.
    pub turns: u64,
    /// The turn that said it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_hash: Option<String>,
    /// Where in that turn's text, in Unicode scalar values: from, and up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<[u64; 2]>,
}

impl From<commit::Seen> for Seen {
    fn from(seen: commit::Seen) -> Self {
        Seen {
            text: seen.text,
            turns: seen.turns,
            turn_hash: seen.at.as_ref().map(|at| text(at.turn)),
            span: seen.at.map(|at| at.span.into()),
        }
    }
}

impl TryFrom<Seen> for commit::Seen {
    type Error = Unreadable;

    fn try_from(view: Seen) -> Result<Self, Unreadable> {
        let turn = parse_option("turn_hash", view.turn_hash)?;
        let at = turn.zip(view.span).map(|(turn, span)| SeenAt { turn, span: span.into() });
        Ok(commit::Seen { text: view.text, at, turns: view.turns })
    }
}

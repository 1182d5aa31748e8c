//! What a search found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name};
use tine_engine as engine;

use super::reading::{Unreadable, each, parse, role};
use super::{text, texts};

/// A page of hits, best first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<SearchHit>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A turn that says what was looked for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// Its conversation.
    pub conversation_id: String,
    /// The title of that.
    pub conversation_title: Option<String>,
    /// Whether that is archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The turn.
    pub turn_id: String,
    /// Its hash.
    pub turn_hash: String,
    /// Who spoke.
    pub role: String,
    /// When.
    pub created_at: String,
    /// Raw distance from the root.
    pub depth: u32,
    /// The turn's own title.
    pub title: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Branches on whose paths it lies, `main` first; the first 50.
    pub branches: Vec<String>,
    /// How many there are.
    pub branch_count: usize,
    /// The part of the turn that says it, on one line.
    pub snippet: String,
    /// Where in the snippet, in Unicode scalar values: first, and behind the last.
    pub highlights: Vec<[usize; 2]>,
    /// How well it fits.
    pub score: f64,
    /// What opens the turns around it.
    pub window: SearchWindow,
}

/// A turn, and the branch whose line goes on behind it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchWindow {
    /// The turn in the middle.
    pub turn_id: String,
    /// The branch; `null` for a turn that no branch leads to.
    pub branch: Option<String>,
}

impl From<engine::SearchPage> for SearchPage {
    fn from(page: engine::SearchPage) -> Self {
        SearchPage { hits: page.hits.into_iter().map(SearchHit::from).collect(), next: page.next }
    }
}

impl From<engine::SearchHit> for SearchHit {
    fn from(hit: engine::SearchHit) -> Self {
        let branch = hit.branches.first().map(text);
        SearchHit {
            conversation_id: text(&hit.conversation),
            conversation_title: hit.conversation_title,
            archived: hit.archived,
            turn_id: text(hit.turn),
            turn_hash: text(hit.hash),
            role: hit.role.as_str().to_owned(),
            created_at: text(hit.created_at),
            depth: hit.depth,
            title: hit.title,
            tags: hit.tags,
            branches: texts(hit.branches),
            branch_count: hit.branch_count,
            snippet: hit.snippet,
            highlights: hit.highlights.into_iter().map(<[usize; 2]>::from).collect(),
            score: hit.score as f64 / 100.0,
            window: SearchWindow { turn_id: text(hit.turn), branch },
        }
    }
}

impl TryFrom<SearchPage> for engine::SearchPage {
    type Error = Unreadable;

    fn try_from(view: SearchPage) -> Result<Self, Unreadable> {
        Ok(engine::SearchPage { hits: each(view.hits)?, next: view.next })
    }
}

impl TryFrom<SearchHit> for engine::SearchHit {
    type Error = Unreadable;

    fn try_from(view: SearchHit) -> Result<Self, Unreadable> {
        Ok(engine::SearchHit {
            conversation: ConversationId::from_stored(view.conversation_id),
            conversation_title: view.conversation_title,
            archived: view.archived,
            turn: parse("turn_id", &view.turn_id)?,
            hash: parse("turn_hash", &view.turn_hash)?,
            role: role(&view.role)?,
            created_at: parse("created_at", &view.created_at)?,
            depth: view.depth,
            title: view.title,
            tags: view.tags,
            branches: view.branches.into_iter().map(Name::from_stored).collect(),
            branch_count: view.branch_count,
            snippet: view.snippet,
            highlights: view.highlights.into_iter().map(|[from, to]| (from, to)).collect(),
            // Hundredths, which a number of this size holds exactly.
            score: (view.score * 100.0).round() as i64,
        })
    }
}

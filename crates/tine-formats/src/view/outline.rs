//! A tree at a glance, in columns: one list for each field, since a hundred thousand objects of
//! a dozen fields each are slow to send, to read and to keep.
//!
//! Drawn by pages and not read back here: programs in Rust have the topology.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tine_core::{Role, Status};
use tine_engine as engine;

use super::text;

/// Stands for the root among the parents.
const ROOT: i64 = -1;

/// Stands for a turn that is in no row of the answer.
const ELSEWHERE: i64 = -2;

/// A tree at a glance, or what has come to it. All columns have one entry for each row.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Outline {
    /// The conversation.
    pub conversation_id: String,
    /// The last operation of the conversation's log that is in this answer: `since` takes it.
    pub seq: u64,
    /// Turns of the tree.
    pub total: u64,
    /// `true`: the rows are the tree, parents before children, first children first. `false`: they
    /// are the turns that are new since then, each the last child of its parent, and those whose
    /// title or tags may have changed.
    pub whole: bool,
    /// The turns.
    pub ids: Vec<String>,
    /// The row of each parent, counted over all pages; -1 is the root, -2 a turn that `parent_ids`
    /// names.
    pub parents: Vec<i64>,
    /// Parents that are in no row of this answer, by row.
    pub parent_ids: BTreeMap<String, String>,
    /// Who spoke, a letter each: `u`ser, `a`ssistant, `t`ool, `s`ystem.
    pub roles: String,
    /// What each consists of, a letter each: `t`ext, `c`alls of tools, `b`oth, `r`esult of a call,
    /// thin`k`ing, `o`ther.
    pub kinds: String,
    /// When, in milliseconds since 1970.
    pub times: Vec<i64>,
    /// The beginning of what was said, on one line.
    pub previews: Vec<String>,
    /// The model that said it, as a place in `model_names`; `null` where that is not told.
    pub models: Vec<Option<usize>>,
    /// Names of models.
    pub model_names: Vec<String>,
    /// Tokens that it cost; `null` where that is not told.
    pub tokens: Vec<Option<u64>>,
    /// Titles, by row.
    pub titles: BTreeMap<String, String>,
    /// Labels, by row.
    pub tags: BTreeMap<String, Vec<String>>,
    /// Rows of turns that broke off.
    pub partial: Vec<usize>,
    /// Rows of turns whose content was erased.
    pub purged: Vec<usize>,
    /// All branches, by name.
    pub branches: Vec<Tip>,
    /// All bookmarks on turns of the conversation, by name.
    pub bookmarks: Vec<Mark>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Where a branch ends.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tip {
    /// The branch.
    pub branch_id: String,
    /// Its name.
    pub name: String,
    /// The turn; `null` is the root.
    pub turn_id: Option<String>,
    /// Counts its changes.
    pub version: u64,
}

/// Where a bookmark lies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// The turn.
    pub turn_id: String,
}

impl From<engine::Outline> for Outline {
    fn from(outline: engine::Outline) -> Self {
        let tips = outline.tips.into_iter().map(|tip| Tip {
            branch_id: text(tip.branch),
            name: text(tip.name),
            turn_id: tip.turn.map(text),
            version: tip.version,
        });
        let marks = outline.marks.into_iter();
        let marks = marks.map(|mark| Mark { name: text(mark.name), turn_id: text(mark.turn) });
        let mut view = Outline {
            conversation_id: text(outline.conversation),
            seq: outline.seq,
            total: outline.total,
            whole: outline.whole,
            branches: tips.collect(),
            bookmarks: marks.collect(),
            next: outline.next,
            ..Outline::default()
        };
        let mut names = BTreeMap::new();
        for row in outline.rows {
            view.add(row, &mut names);
        }
        view
    }
}

impl Outline {
    fn add(&mut self, row: engine::OutlineRow, names: &mut BTreeMap<String, usize>) {
        let at = self.ids.len();
        self.ids.push(text(row.id));
        self.parents.push(match row.above {
            engine::Above::Root => ROOT,
            engine::Above::Row(row) => i64::try_from(row).unwrap_or(i64::MAX),
            engine::Above::Turn(id) => {
                self.parent_ids.insert(text(at), text(id));
                ELSEWHERE
            }
        });
        self.roles.push(match row.role {
            Role::User => 'u',
            Role::Assistant => 'a',
            Role::Tool => 't',
            Role::System => 's',
        });
        self.kinds.push(match row.substance {
            engine::Substance::Text => 't',
            engine::Substance::TextAndCalls => 'b',
            engine::Substance::Calls => 'c',
            engine::Substance::Result => 'r',
            engine::Substance::Thinking => 'k',
            engine::Substance::Other => 'o',
        });
        self.times.push(row.created_at.as_millis());
        self.previews.push(row.preview);
        self.models.push(row.model.map(|name| match names.get(&name) {
            Some(place) => *place,
            None => {
                let place = self.model_names.len();
                self.model_names.push(name.clone());
                names.insert(name, place);
                place
            }
        }));
        self.tokens.push(row.tokens);
        if let Some(title) = row.title {
            self.titles.insert(text(at), title);
        }
        if !row.tags.is_empty() {
            self.tags.insert(text(at), row.tags);
        }
        if row.status == Status::Partial {
            self.partial.push(at);
        }
        if row.purged {
            self.purged.push(at);
        }
    }
}

//! After any step, whoever asks only for what is new has the same tree as the topology shows.

use std::collections::{BTreeMap, HashMap};

use tine_core::TurnId;
use tine_engine::{Engine, Outline, OutlineParent, OutlineQuery, OutlineRow, TopologyRow};

use super::judge::same;
use super::{Checked, Machine};
use crate::model::Ix;

/// What somebody has drawn of a conversation: the children of each turn, and each turn's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawn {
    seq: u64,
    children: HashMap<Option<TurnId>, Vec<TurnId>>,
    rows: BTreeMap<TurnId, (Option<TurnId>, OutlineRow)>,
}

impl Drawn {
    fn take(&mut self, outline: Outline) -> Checked {
        if outline.whole {
            *self = Drawn::default();
        }
        self.seq = outline.seq;
        let ids: Vec<TurnId> = outline.rows.iter().map(|row| row.id).collect();
        for row in outline.rows {
            let parent = match row.above {
                OutlineParent::Root => None,
                OutlineParent::Row(at) => Some(ids[at]),
                OutlineParent::Turn(id) => Some(id),
            };
            if parent.is_some_and(|parent| !self.rows.contains_key(&parent)) {
                return Err(format!("the outline tells of {} before its parent", row.id));
            }
            let id = row.id;
            if self.rows.insert(id, (parent, row)).is_none() {
                self.children.entry(parent).or_default().push(id);
            }
        }
        Ok(())
    }

    /// The turns in order, with what a row shows of each.
    fn in_order(&self) -> Vec<Shown> {
        let first = self.children.get(&None).cloned().unwrap_or_default();
        let mut pending: Vec<TurnId> = first.into_iter().rev().collect();
        let mut shown = vec![];
        while let Some(id) = pending.pop() {
            let (parent, row) = &self.rows[&id];
            let (title, tags) = (row.title.clone(), row.tags.clone());
            shown.push((id, *parent, row.preview.clone(), title, tags));
            let below = self.children.get(&Some(id)).cloned().unwrap_or_default();
            pending.extend(below.into_iter().rev());
        }
        shown
    }
}

/// A turn, its parent, its preview, its title and its tags.
type Shown = (TurnId, Option<TurnId>, String, Option<String>, Vec<String>);

impl Machine {
    /// Brings what was drawn of a conversation up to date and compares it with the topology.
    pub(crate) fn check_outline(&mut self, ix: Ix, topology: &[TopologyRow]) -> Checked {
        let mut drawn = self.drawn.remove(&ix);
        let news = self.outline(&self.memory, ix, drawn.as_ref().map(|drawn| drawn.seq))?;
        if let Some(embedded) = &self.embedded {
            let other = self.outline(embedded, ix, drawn.as_ref().map(|drawn| drawn.seq))?;
            same("the outline of the embedded store", &other, &news)?;
        }
        let mine = drawn.get_or_insert_default();
        mine.take(news)?;
        let shown = topology.iter().map(|row| {
            let (title, tags) = (row.title.clone(), row.tags.clone());
            (row.id, row.parent, row.preview.clone(), title, tags)
        });
        same("the tree as it was drawn", &mine.in_order(), &shown.collect())?;
        self.drawn.extend(drawn.map(|drawn| (ix, drawn)));
        Ok(())
    }

    fn outline(&self, engine: &Engine, ix: Ix, since: Option<u64>) -> Result<Outline, String> {
        let id = self.model.conversations[ix].id.clone();
        let query = OutlineQuery { since, ..OutlineQuery::of(id) };
        engine.outline(&self.call, query).map_err(|error| format!("an outline failed: {error}"))
    }
}

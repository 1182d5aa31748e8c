//! Checks that a client that only reads outline changes has the same tree as the topology.

use std::collections::{BTreeMap, HashMap};

use tine_core::TurnId;
use tine_engine::{Engine, Outline, OutlineParent, OutlineQuery, OutlineRow, TopologyRow};

use super::compare::same;
use super::{Checked, Machine};
use crate::model::Ix;

/// A client's copy of a conversation: the children of each turn, and each turn's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutlineReplica {
    seq: u64,
    children: HashMap<Option<TurnId>, Vec<TurnId>>,
    rows: BTreeMap<TurnId, (Option<TurnId>, OutlineRow)>,
}

impl OutlineReplica {
    fn take(&mut self, outline: Outline) -> Checked {
        if outline.whole {
            *self = OutlineReplica::default();
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

    /// Returns the turns in order, with what a row shows of each.
    fn in_order(&self) -> Vec<OutlineEntry> {
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
type OutlineEntry = (TurnId, Option<TurnId>, String, Option<String>, Vec<String>);

impl Machine {
    /// Updates the copy of a conversation and compares it with the topology.
    pub(crate) fn check_outline(&mut self, ix: Ix, topology: &[TopologyRow]) -> Checked {
        let mut replica = self.replicas.remove(&ix);
        let news = self.outline(&self.memory, ix, replica.as_ref().map(|replica| replica.seq))?;
        if let Some(embedded) = &self.embedded {
            let other = self.outline(embedded, ix, replica.as_ref().map(|replica| replica.seq))?;
            same("the outline of the embedded store", &other, &news)?;
        }
        let mine = replica.get_or_insert_default();
        mine.take(news)?;
        let shown = topology.iter().map(|row| {
            let (title, tags) = (row.title.clone(), row.tags.clone());
            (row.id, row.parent, row.preview.clone(), title, tags)
        });
        same("the tree as it was drawn", &mine.in_order(), &shown.collect())?;
        self.replicas.extend(replica.map(|replica| (ix, replica)));
        Ok(())
    }

    fn outline(&self, engine: &Engine, ix: Ix, since: Option<u64>) -> Result<Outline, String> {
        let id = self.model.conversations[ix].id.clone();
        let query = OutlineQuery { since, ..OutlineQuery::of(id) };
        engine.outline(&self.call, query).map_err(|error| format!("an outline failed: {error}"))
    }
}

//! Builds a tree from messages that name their parents, in any order.
//!
//! Any input gives a tree: a repeated id is used once, a missing parent or a cycle is cut and
//! noted, a message without content is bridged. No message with content is dropped.

use std::collections::HashMap;

use crate::{Attachment, ImportedMessage, ImportedPath};

/// A message that is not yet part of the tree.
pub(crate) struct PendingMessage {
    pub id: String,
    /// The id of the message before it.
    pub parent: Option<String>,
    /// The content; without it, the children are attached to the message's parent.
    pub message: Option<tine_core::Message>,
    pub attachments: Vec<Attachment>,
    /// The line of the file.
    pub line: Option<u64>,
}

impl PendingMessage {
    pub(crate) fn new(
        id: String,
        parent: Option<String>,
        message: Option<tine_core::Message>,
        line: Option<u64>,
    ) -> Self {
        PendingMessage { id, parent, message, attachments: Vec::new(), line }
    }
}

/// A tree, and the faults found while building it.
#[derive(Default)]
pub(crate) struct BuiltTree {
    pub nodes: Vec<ImportedMessage>,
    /// The index of the message of each id; of a message without content, that of its parent.
    pub places: HashMap<String, Option<usize>>,
    pub faults: Vec<(Option<u64>, String)>,
}

/// Builds a tree. Children keep the order in which they were given.
pub(crate) fn build_tree(pending: Vec<PendingMessage>) -> BuiltTree {
    let mut tree = BuiltTree::default();
    let mut by_id: HashMap<String, usize> = HashMap::with_capacity(pending.len());
    let mut kept: Vec<Option<PendingMessage>> = Vec::with_capacity(pending.len());
    for message in pending {
        match by_id.get(&message.id).copied() {
            None => {
                by_id.insert(message.id.clone(), kept.len());
                kept.push(Some(message));
            }
            Some(first) => {
                let same =
                    kept[first].as_ref().is_some_and(|first| first.message == message.message);
                if !same {
                    let what = format!(
                        "the id {} occurs again with other content; kept as a version",
                        message.id
                    );
                    tree.faults.push((message.line, what));
                    let parent = kept[first].as_ref().and_then(|first| first.parent.clone());
                    let id = format!("{}#{}", message.id, kept.len());
                    by_id.insert(id.clone(), kept.len());
                    kept.push(Some(PendingMessage { id, parent, ..message }));
                }
            }
        }
    }
    let parents = parents(&kept, &by_id, &mut tree.faults);
    let mut places: Vec<Option<Option<usize>>> = vec![None; kept.len()];
    let mut unplaced = Vec::new();
    for start in 0..kept.len() {
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| places[*index].is_none()) {
            unplaced.push(index);
            next = parents[index];
        }
        let mut above = next.and_then(|index| places[index].flatten());
        while let Some(index) = unplaced.pop() {
            let Some(PendingMessage { id, message, attachments, .. }) = kept[index].take() else {
                continue;
            };
            if let Some(message) = message {
                tree.nodes.push(ImportedMessage {
                    id: id.clone(),
                    parent: above,
                    message,
                    attachments,
                });
                above = Some(tree.nodes.len() - 1);
            }
            places[index] = Some(above);
            tree.places.insert(id, above);
        }
    }
    tree
}

/// Returns the parents, with cycles cut and missing ones replaced.
fn parents(
    kept: &[Option<PendingMessage>],
    by_id: &HashMap<String, usize>,
    faults: &mut Vec<(Option<u64>, String)>,
) -> Vec<Option<usize>> {
    let mut parents: Vec<Option<usize>> = Vec::with_capacity(kept.len());
    for (index, message) in kept.iter().enumerate() {
        let Some(PendingMessage { parent: Some(parent), line, .. }) = message else {
            parents.push(None);
            continue;
        };
        let found = by_id.get(parent).copied();
        if found.is_none() {
            // The message before it in the file is the best guess.
            let what = format!("the parent {parent} is missing; attached to the message before");
            faults.push((*line, what));
        }
        parents.push(found.or_else(|| index.checked_sub(1)));
    }
    // 0: not visited; otherwise the number of the walk that visited it.
    let mut visited_by = vec![0_usize; kept.len()];
    for start in 0..kept.len() {
        let walk = start + 1;
        let mut index = start;
        while visited_by[index] == 0 {
            visited_by[index] = walk;
            match parents[index] {
                Some(parent) if visited_by[parent] == walk => {
                    let line = kept[index].as_ref().and_then(|message| message.line);
                    faults.push((line, "the parents form a cycle; cut".to_owned()));
                    parents[index] = None;
                    break;
                }
                Some(parent) => index = parent,
                None => break,
            }
        }
    }
    parents
}

impl BuiltTree {
    /// Returns every path of the tree. `main` ends at `active`, or else at the last message; `name`
    /// names the others, and those without a name are abandoned.
    pub(crate) fn paths(
        &self,
        active: Option<usize>,
        mut name: impl FnMut(usize) -> Option<String>,
    ) -> Vec<ImportedPath> {
        let Some(active) = active.or_else(|| self.nodes.len().checked_sub(1)) else {
            return Vec::new();
        };
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut pending = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            match node.parent {
                Some(parent) => below[parent].push(place),
                None => pending.push(place),
            }
        }
        // Paths come in the order of siblings, which is the order of the imported turns.
        pending.reverse();
        let mut leaves = Vec::new();
        while let Some(place) = pending.pop() {
            pending.extend(below[place].iter().rev());
            if below[place].is_empty() {
                leaves.push(place);
            }
        }
        let main = || Some("main".to_owned());
        let path =
            |tip| ImportedPath { tip, branch: if tip == active { main() } else { name(tip) } };
        let mut paths: Vec<ImportedPath> = leaves.into_iter().map(path).collect();
        if !below[active].is_empty() {
            paths.push(ImportedPath { tip: active, branch: main() });
        }
        paths
    }

    /// Gives messages without a time that of their parent, or else the given one.
    pub(crate) fn fill_times(&mut self, first: Option<tine_core::Timestamp>) {
        for place in 0..self.nodes.len() {
            if self.nodes[place].message.created_at.is_none() {
                let above = self.nodes[place].parent.map(|above| &self.nodes[above]);
                let time = above.map_or(first, |above| above.message.created_at);
                self.nodes[place].message.created_at = time;
            }
        }
    }
}

/// Returns names for branches: `branch-1`, `branch-2` …
pub(crate) fn numbered_branches() -> impl FnMut(usize) -> Option<String> {
    let mut number = 0;
    move |_| {
        number += 1;
        Some(format!("branch-{number}"))
    }
}

//! How far a conversation has moved, commit by commit.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::ConversationId;
use tine_core::commit::{FacetTerm, Facets};

use super::commit_graph::CommitReader;
use super::make::head_of;
use crate::Drift;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::{Call, Engine, Result};

impl Engine {
    /// For each commit of a branch how far its words are from those of its parent and of the
    /// first one, the oldest first. Commits whose facets were erased have no distance.
    pub fn drift(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<Vec<Drift>> {
        self.read(|records| {
            let owner = resolve::conversation(records, call, conversation)?;
            let branch = resolve::branch(records, call, owner.key, branch)?;
            let reader = CommitReader::new(records, &call.project);
            let graph = reader.graph(conversation)?;
            let tree = Tree::new(records, owner.key);
            let mut line = Vec::new();
            let mut at = head_of(&reader, &graph, &tree, &branch)?.map(|head| head.hash);
            while let Some(hash) = at {
                let commit = reader.commit(hash)?;
                at = commit.parents.first().copied();
                line.push((hash, commit));
            }
            line.reverse();
            let mut series: Vec<Drift> = Vec::with_capacity(line.len());
            let first = line.first().and_then(|(_, commit)| commit.facets.clone());
            let mut parent: Option<&Facets> = None;
            for (at, (hash, commit)) in line.iter().enumerate() {
                let facets = commit.facets.as_ref();
                let from = |other: Option<&Facets>| Some(distance(other?, facets?));
                series.push(Drift {
                    hash: *hash,
                    message: commit.message.clone(),
                    created_at: commit.created_at,
                    from_parent: if at == 0 { None } else { from(parent) },
                    from_first: if at == 0 { None } else { from(first.as_ref()) },
                });
                parent = facets;
            }
            Ok(series)
        })
    }
}

/// Returns one less the weighted Jaccard similarity of what two commits are about; each word weighs
/// by the share of it among all that its commit says. Rounded to four digits.
fn distance(a: &Facets, b: &Facets) -> f64 {
    let (a, b) = (weights(a), weights(b));
    let terms: BTreeSet<&(u8, &String)> = a.keys().chain(b.keys()).collect();
    let (mut least, mut most) = (0.0, 0.0);
    for term in terms {
        let weight = |of: &BTreeMap<(u8, &String), f64>| of.get(term).copied().unwrap_or(0.0);
        let (x, y) = (weight(&a), weight(&b));
        least += x.min(y);
        most += x.max(y);
    }
    if most == 0.0 { 0.0 } else { ((1.0 - least / most) * 10_000.0).round() / 10_000.0 }
}

fn weights(facets: &Facets) -> BTreeMap<(u8, &String), f64> {
    let sets = [&facets.entities, &facets.keywords, &facets.topics];
    let total: u64 = sets.iter().flat_map(|set| set.values()).map(|seen| seen.turns).sum();
    let share = |seen: &FacetTerm| seen.turns as f64 / total as f64;
    let mut found = BTreeMap::new();
    for (kind, set) in (0..).zip(sets) {
        found.extend(set.iter().map(|(word, seen)| ((kind, word), share(seen))));
    }
    found
}

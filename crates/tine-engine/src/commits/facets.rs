//! What the turns of a commit are about, out of their rings and of what was found in them.

use tine_core::commit::{Facets, SeenAt, State};
use tine_core::facts::Origin;
use tine_store::Turn;

use super::TurnRings;
use super::rings::{self, extractor};
use super::window::Stretch;
use crate::Result;
use crate::log::Mutation;
use crate::path::fetch;

/// Keywords, and names, that one commit keeps at most.
pub(super) const KEPT: usize = 1_000;

/// The facets of a stretch of turns; those that are deleted or purged have none.
pub(super) fn of(mutation: &mut Mutation<'_>, stretch: &Stretch, state: State) -> Result<Facets> {
    let mut facets = Facets { extractor: extractor(), state, ..Facets::default() };
    for turn in shown(mutation, stretch)? {
        let project = &mutation.call.project;
        let Some(found) = rings::keep(mutation.records, project, &turn)? else {
            continue;
        };
        see(&mut facets, &turn, &found);
        for one in mutation.ledger().about_turn(&turn.id)? {
            let Some(run) = one.interpretation else {
                continue;
            };
            if one.origin == Origin::Turn {
                continue;
            }
            if let Some(name) = one.fields.get("name").and_then(|name| name.as_str()) {
                Facets::see(&mut facets.entities, name, None);
                facets.interpretations.insert(run);
            }
        }
    }
    facets.bound(KEPT);
    Ok(facets)
}

/// Notes what a turn is about.
pub(super) fn see(facets: &mut Facets, turn: &Turn, found: &TurnRings) {
    let at = |start: usize, end: usize| {
        Some(SeenAt { turn: turn.hash, span: (start as u64, end as u64) })
    };
    for keyword in &found.rings.keywords {
        let span = keyword.span;
        Facets::see(&mut facets.keywords, &keyword.text, at(span.start, span.end));
    }
    for facet in &found.rings.facets {
        let span = facet.span;
        Facets::see(&mut facets.topics, facet.name, at(span.start, span.end));
    }
    for name in &found.names {
        Facets::see(&mut facets.entities, &name.name, at(name.span.0, name.span.1));
    }
}

fn shown(mutation: &Mutation<'_>, stretch: &Stretch) -> Result<Vec<Turn>> {
    let tree = mutation.tree();
    let mut turns = Vec::new();
    for turn in fetch(mutation.reader(), &stretch.locs())? {
        if tree.is_shown(turn.loc)? {
            turns.push(turn);
        }
    }
    Ok(turns)
}

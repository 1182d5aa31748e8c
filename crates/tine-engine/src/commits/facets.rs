//! What the turns of a commit are about, out of their rings and of what was found in them.

use tine_core::commit::{Facets, SeenAt, State};
use tine_core::facts::Origin;
use tine_store::Turn;

use super::TurnRings;
use super::known::observed;
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
    let turns = shown(mutation, stretch)?;
    for turn in &turns {
        let project = &mutation.call.project;
        if let Some(found) = rings::keep(mutation.records, project, turn)? {
            see(&mut facets, turn, &found);
        }
    }
    let ledger = mutation.ledger();
    let ids = turns.iter().map(|turn| (turn.id, ())).collect();
    for (_, id) in observed(&ledger, &ids)? {
        let Some(one) = ledger.observation(id)?.filter(|one| one.origin != Origin::Turn) else {
            continue;
        };
        let name = one.fields.get("name").and_then(|name| name.as_str());
        if let (Some(run), Some(name)) = (one.interpretation, name) {
            Facets::see(&mut facets.entities, name, None);
            facets.interpretations.insert(run);
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

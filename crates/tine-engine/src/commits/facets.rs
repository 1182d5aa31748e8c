//! What the turns of a commit are about, out of their rings and of what was found in them.

use std::collections::{BTreeSet, HashMap};

use tine_core::commit::{
    FacetTerm, FacetTerms, Facets, FactState, FirstOccurrence, keep_most_frequent,
};
use tine_core::facts::ObservationOrigin;
use tine_core::facts::identity::fold;
use tine_store::Turn;

use super::path_facts::observed;
use super::rings::{PreparedRings, TurnAnalysis, extractor};
use super::window::PathRange;
use crate::Result;
use crate::log::mutation::Mutation;
use crate::tree::path::fetch;

/// Keywords, and names, that one commit keeps at most.
pub(super) const KEPT: usize = 1_000;

/// Computes the facets of a range of turns; deleted and purged turns have none.
pub(super) fn of(
    mutation: &mut Mutation<'_>,
    range: &PathRange,
    state: FactState,
    rings: &PreparedRings,
) -> Result<Facets> {
    let mut collector = FacetCollector::default();
    let mut interpretations = BTreeSet::new();
    let turns = shown(mutation, range)?;
    for turn in &turns {
        let project = &mutation.call.project;
        rings
            .visit(mutation.records, project, turn, &mut |about| collector.add_turn(turn, about))?;
    }
    let knowledge = mutation.knowledge();
    let ids = turns.iter().map(|turn| (turn.id, ())).collect();
    for (_, id) in observed(&knowledge, &ids)? {
        let Some(one) =
            knowledge.observation(id)?.filter(|one| one.origin != ObservationOrigin::Turn)
        else {
            continue;
        };
        let name = one.fields.get("name").and_then(|name| name.as_str());
        if let (Some(run), Some(name)) = (one.interpretation, name) {
            collector.entities.add(name, None);
            interpretations.insert(run);
        }
    }
    let mut facets = collector.bounded(KEPT);
    (facets.extractor, facets.interpretations, facets.state) =
        (extractor(), interpretations, state);
    Ok(facets)
}

/// Counts terms in order of first occurrence, keyed by their folded form.
#[derive(Default)]
struct OccurrenceCounter {
    places: HashMap<Box<str>, usize>,
    seen: Vec<FacetTerm>,
}

impl OccurrenceCounter {
    fn add(&mut self, text: &str, at: Option<FirstOccurrence>) {
        let form = fold(text);
        match self.places.get(form.as_ref()) {
            Some(place) => self.seen[*place].turns += 1,
            None => {
                self.places.insert(form.into(), self.seen.len());
                self.seen.push(FacetTerm { text: text.to_owned(), at, turns: 1 });
            }
        }
    }

    /// Returns the most frequent terms, up to a limit, and how many are left out.
    fn bounded(self, limit: usize) -> (FacetTerms, u64) {
        let OccurrenceCounter { places, mut seen } = self;
        let mut counted: Vec<(u64, Box<str>, usize)> =
            places.into_iter().map(|(form, place)| (seen[place].turns, form, place)).collect();
        let over = keep_most_frequent(&mut counted, limit);
        let nothing = || FacetTerm { text: String::new(), at: None, turns: 0 };
        let left = counted.into_iter().map(|(_, form, place)| {
            (String::from(form), std::mem::replace(&mut seen[place], nothing()))
        });
        (left.collect(), over)
    }
}

/// Collects facets turn by turn.
#[derive(Default)]
pub(super) struct FacetCollector {
    entities: OccurrenceCounter,
    keywords: OccurrenceCounter,
    topics: OccurrenceCounter,
}

impl FacetCollector {
    /// Notes what a turn is about.
    pub(super) fn add_turn(&mut self, turn: &Turn, found: &TurnAnalysis) {
        let at = |start: usize, end: usize| {
            Some(FirstOccurrence { turn: turn.hash, span: (start as u64, end as u64) })
        };
        for keyword in &found.rings.keywords {
            let span = keyword.span;
            self.keywords.add(&keyword.text, at(span.start, span.end));
        }
        for facet in &found.rings.facets {
            let span = facet.span;
            self.topics.add(facet.name, at(span.start, span.end));
        }
        for name in &found.names {
            self.entities.add(&name.name, at(name.span.0, name.span.1));
        }
    }

    /// Returns the facets, with at most `limit` keywords and names each.
    pub(super) fn bounded(self, limit: usize) -> Facets {
        let (entities, over) = self.entities.bounded(limit);
        let (keywords, more) = self.keywords.bounded(limit);
        let (topics, _) = self.topics.bounded(usize::MAX);
        Facets { entities, keywords, topics, left_out: over + more, ..Facets::default() }
    }
}

fn shown(mutation: &Mutation<'_>, range: &PathRange) -> Result<Vec<Turn>> {
    let tree = mutation.tree();
    let mut turns = Vec::new();
    for turn in fetch(mutation.reader(), &range.locs())? {
        if tree.is_shown(turn.loc)? {
            turns.push(turn);
        }
    }
    Ok(turns)
}

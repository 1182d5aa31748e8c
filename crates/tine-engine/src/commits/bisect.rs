//! The first turn on a path for which something holds.

use tine_core::commit::FieldState;
use tine_store::{Content, Read, Turn};

use super::path_facts::PathFacts;
use super::rings;
use crate::knowledge::KnowledgeReader;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::tree::views;
use crate::{BisectQuery, Bisected, Predicate};
use crate::{Call, Engine, Error, Result};

/// The result of testing one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectVerdict {
    /// It holds here.
    Holds,
    /// It does not hold here.
    DoesNot,
    /// Undecidable here.
    Skip,
}

/// Why no first index was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFirst {
    /// It does not hold at the end.
    Never,
    /// Too many positions were skipped.
    Skipped,
}

/// Finds the first index for which a predicate holds, by binary search; it must then hold for all
/// later ones. Returns the index and the number of tests.
///
/// ```
/// use tine_engine::{BisectVerdict, bisect_range};
/// let found = bisect_range(100, |index| {
///     Ok::<_, ()>(if index >= 42 { BisectVerdict::Holds } else { BisectVerdict::DoesNot })
/// });
/// let (first, tested) = found.unwrap().unwrap();
/// assert_eq!(first, 42);
/// assert!(tested <= 8);
/// ```
pub fn bisect_range<E>(
    count: usize,
    mut test: impl FnMut(usize) -> std::result::Result<BisectVerdict, E>,
) -> std::result::Result<std::result::Result<(usize, usize), NoFirst>, E> {
    let mut tested = 0;
    let mut skipped = std::collections::BTreeSet::new();
    let Some(last) = count.checked_sub(1) else {
        return Ok(Err(NoFirst::Never));
    };
    tested += 1;
    match test(last)? {
        BisectVerdict::Holds => {}
        BisectVerdict::DoesNot => return Ok(Err(NoFirst::Never)),
        BisectVerdict::Skip => return Ok(Err(NoFirst::Skipped)),
    }
    // It holds at `high`, and nowhere before `low`.
    let (mut low, mut high) = (0, last);
    while low < high {
        let middle = low + (high - low) / 2;
        let candidates = (middle..high).chain((low..middle).rev());
        let Some(index) = candidates.into_iter().find(|index| !skipped.contains(index)) else {
            return Ok(Err(NoFirst::Skipped));
        };
        tested += 1;
        match test(index)? {
            BisectVerdict::Holds => high = index,
            BisectVerdict::DoesNot => low = index + 1,
            BisectVerdict::Skip => {
                skipped.insert(index);
            }
        }
    }
    Ok(Ok((high, tested)))
}

impl Engine {
    /// Finds the first turn on a path from which on a condition holds.
    pub fn bisect(&self, call: &Call, query: BisectQuery) -> Result<Bisected> {
        self.read(|records| {
            let place = resolve::place(records, call, &query.at)?;
            let tree = Tree::new(records, place.conversation.key);
            let path = crate::tree::path::shown(records, &place)?;
            let found = match &query.predicate {
                Predicate::Contains(text) => first_containing(&path, text)?,
                Predicate::Fact { .. } => bisect_range(path.len(), |index| {
                    holds(records, call, &tree, &path[index], &query.predicate)
                })?,
            };
            let (first, tested) = found.map_err(|_| {
                Error::invalid(
                    "the condition does not hold at the end of the path, so no turn matches first",
                )
            })?;
            let turn = views::turn_at(&tree, &place.conversation.id, path[first].loc)?;
            Ok(Bisected { turn, path: path.len(), tested })
        })
    }
}

/// Text that occurs on a path stays on it, so the first turn that contains it is the answer.
fn first_containing(
    path: &[Turn],
    wanted: &str,
) -> Result<std::result::Result<(usize, usize), NoFirst>> {
    if wanted.is_empty() {
        return Err(Error::invalid("the text to search for is empty; give some text"));
    }
    let says = |turn: &Turn| match &turn.content {
        Content::Kept(body) => rings::body_text(body).contains(wanted),
        Content::Purged(_) => false,
    };
    let first = path.iter().position(says);
    Ok(first.map(|first| (first, first + 1)).ok_or(NoFirst::Never))
}

fn holds(
    records: &dyn Read,
    call: &Call,
    tree: &Tree<'_>,
    turn: &Turn,
    predicate: &Predicate,
) -> Result<BisectVerdict> {
    let Predicate::Fact { entity, field, value } = predicate else {
        return Ok(BisectVerdict::Skip);
    };
    let knowledge = KnowledgeReader::new(records, &call.project);
    let entity = knowledge.canonical_entity(knowledge.require_entity(*entity)?)?;
    let path_facts = PathFacts::at(&knowledge, tree, Some(turn.loc))?;
    let holds = match path_facts.state.field(entity.id, field) {
        Some(FieldState::Value(current)) => value.is_none() || current.json == *value,
        _ => false,
    };
    Ok(if holds { BisectVerdict::Holds } else { BisectVerdict::DoesNot })
}

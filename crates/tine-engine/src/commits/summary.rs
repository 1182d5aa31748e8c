//! Summaries of the other side of a merge, each line with its source.

use std::collections::BTreeSet;

use tine_analysis::rings::Intent;
use tine_core::CommitHash;
use tine_core::commit::{FacetTerm, Facets, FieldState};
use tine_store::{Content, TurnLoc};

use super::commit_graph::CommitReader;
use super::rings;
use super::window::{PathRange, passes};
use crate::Result;
use crate::tree::path::fetch;
use crate::tree::shown::Tree;
use crate::{FieldChange, SummaryLine};

/// Decisions that a summary quotes at most.
const DECISIONS: usize = 20;

/// Keywords that it names at most.
const KEYWORDS: usize = 12;

/// Decisions of the other side, what it knows differently, and what it was about.
pub(super) fn lines(
    reader: &CommitReader<'_>,
    tree: &Tree<'_>,
    here: Option<TurnLoc>,
    commits: &BTreeSet<CommitHash>,
    incoming: &Facets,
    changes: &[FieldChange],
) -> Result<Vec<SummaryLine>> {
    let mut lines = decisions(reader, tree, here, commits)?;
    for change in changes {
        let name = change.name.as_deref().unwrap_or(&change.entity_type);
        let field = &change.field;
        let (text, from) = match &change.to {
            Some(FieldState::Value(value)) => {
                let shown_value = value.json.as_ref().map_or_else(String::new, readable);
                (format!("{name}: {field} is {shown_value}"), value.from.first())
            }
            Some(FieldState::Conflict(conflict)) => {
                let sides = conflict.sides.iter();
                let sides = sides
                    .map(|side| side.json.as_ref().map_or_else(|| "nothing".to_owned(), readable));
                let sides = sides.collect::<Vec<_>>().join(" or ");
                (format!("{name}: {field} is undecided: {sides}"), None)
            }
            None => (format!("{name}: {field} is gone"), None),
        };
        let turn = match from {
            Some(observation) => turn_of(reader, observation)?,
            None => None,
        };
        lines.push(SummaryLine { text, turn });
    }
    let mut keywords: Vec<_> = incoming.keywords.values().collect();
    keywords.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.text.cmp(&b.text)));
    let mut new_keywords = Vec::new();
    for seen in keywords {
        if new_keywords.len() < KEYWORDS && !is_here(reader, tree, here, seen)? {
            new_keywords.push(seen);
        }
    }
    let keywords = new_keywords;
    if let Some(first) = keywords.first() {
        let turn = first.at.as_ref().map(|at| at.turn);
        let list = keywords.iter().map(|seen| seen.text.as_str()).collect::<Vec<_>>().join(", ");
        lines.push(SummaryLine { text: format!("It was about: {list}"), turn });
    }
    Ok(lines)
}

fn turn_of(
    reader: &CommitReader<'_>,
    observation: &tine_core::ObservationId,
) -> Result<Option<tine_core::TurnHash>> {
    let knowledge = crate::knowledge::KnowledgeReader::new(reader.records, reader.project);
    let Some(turn) = knowledge.observation(*observation)?.and_then(|one| one.turn) else {
        return Ok(None);
    };
    let Some((_, loc)) = reader.records.find_turn(reader.project, &turn)? else {
        return Ok(None);
    };
    Ok(reader.records.turn(loc)?.map(|turn| turn.hash))
}

/// Returns whether a keyword occurs in a turn that the target has as well.
fn is_here(
    reader: &CommitReader<'_>,
    tree: &Tree<'_>,
    here: Option<TurnLoc>,
    seen: &FacetTerm,
) -> Result<bool> {
    let (Some(here), Some(at)) = (here, &seen.at) else {
        return Ok(false);
    };
    let found = reader.records.find_hashes(tree.conversation(), &at.turn.0, &at.turn.0, 1)?;
    match found.first() {
        Some(loc) => passes(tree, *loc, here),
        None => Ok(false),
    }
}

/// Returns what was decided in the turns of these commits that the target does not have.
fn decisions(
    reader: &CommitReader<'_>,
    tree: &Tree<'_>,
    here: Option<TurnLoc>,
    commits: &BTreeSet<CommitHash>,
) -> Result<Vec<SummaryLine>> {
    let mut found = Vec::new();
    for hash in commits {
        let commit = reader.commit(*hash)?;
        let Some(range) = PathRange::of_window(reader.records, tree, &commit)? else {
            continue;
        };
        for turn in fetch(reader.records, &range.locs())? {
            let on_target = match here {
                Some(here) => passes(tree, turn.loc, here)?,
                None => false,
            };
            if on_target || !tree.is_shown(turn.loc)? {
                continue;
            }
            let Some(about) = rings::of(reader.records, reader.project, &turn)? else {
                continue;
            };
            if let (Intent::Decision, Content::Kept(body)) = (about.rings.intent, &turn.content) {
                let text = rings::body_text(body);
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                found.push((
                    turn.depth,
                    SummaryLine { text: clipped(&text), turn: Some(turn.hash) },
                ));
            }
        }
    }
    found.sort_by_key(|(depth, _)| *depth);
    found.truncate(DECISIONS);
    Ok(found.into_iter().map(|(_, line)| line).collect())
}

/// Letters that a quoted decision has at most.
const QUOTED: usize = 280;

fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Formats a value for people.
fn readable(value: &tine_core::Json) -> String {
    value.as_str().map_or_else(|| value.to_canonical(), str::to_owned)
}

/// Returns the text of the turn that a merge adds.
pub(super) fn text(name: &str, lines: &[SummaryLine]) -> String {
    let mut text = format!("From the branch {name}:\n");
    for line in lines {
        text.push_str("- ");
        text.push_str(&line.text);
        if let Some(turn) = &line.turn {
            text.push_str(&format!(" [{}]", turn.short()));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

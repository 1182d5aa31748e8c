//! Blame: the turn that something comes from, and the merge that added it.

use tine_core::commit::{FieldState, FieldValue};
use tine_core::{CommitHash, EntityId, ObservationId};
use tine_store::{Branch, Conversation, Turn, TurnLoc};

use super::commit_graph::{CommitGraph, CommitReader};
use super::make::{head_of, state_at};
use super::rings;
use super::window::{PathRange, passes};
use crate::knowledge::KnowledgeReader;
use crate::tree::path::fetch;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::{BlameOf, BlameQuery, Blamed};
use crate::{Call, Engine, Error, Result};

impl Engine {
    /// Finds the turns and spans that a field or a text comes from.
    pub fn blame(&self, call: &Call, query: BlameQuery) -> Result<Vec<Blamed>> {
        if matches!(&query.of, BlameOf::Text(text) if text.trim().is_empty()) {
            return Err(Error::invalid("the text to search for is empty; give some text"));
        }
        self.read(|records| {
            let place = resolve::place(records, call, &query.at)?;
            let name = query.at.turn.as_str();
            let branch = resolve::find_branch(records, call, place.conversation.key, name)?;
            let blame = Blame {
                reader: CommitReader::new(records, &call.project),
                graph: CommitReader::new(records, &call.project).graph(&place.conversation.id)?,
                tree: Tree::new(records, place.conversation.key),
                conversation: place.conversation,
                branch,
                end: place.turn,
            };
            match &query.of {
                BlameOf::Field { entity, field } => blame.field(*entity, field),
                BlameOf::Text(text) => blame.text(text),
            }
        })
    }
}

struct Blame<'r> {
    reader: CommitReader<'r>,
    graph: CommitGraph,
    tree: Tree<'r>,
    conversation: Conversation,
    branch: Option<Branch>,
    end: Option<TurnLoc>,
}

impl Blame<'_> {
    fn field(&self, entity: EntityId, field: &str) -> Result<Vec<Blamed>> {
        let knowledge = KnowledgeReader::new(self.reader.records, self.reader.project);
        let entity = knowledge.canonical_entity(knowledge.require_entity(entity)?)?;
        let head = self.head()?;
        let (state, _) = state_at(&self.reader, &self.tree, head.as_ref(), self.end)?;
        let values: Vec<&FieldValue> = match state.field(entity.id, field) {
            Some(FieldState::Value(value)) => vec![value],
            Some(FieldState::Conflict(conflict)) => conflict.sides.iter().collect(),
            None => Vec::new(),
        };
        let mut found = Vec::new();
        for value in values {
            for observation in &value.from {
                found.push(self.observed(&knowledge, *observation, value)?);
            }
        }
        if found.is_empty() {
            return Err(Error::invalid(format!("{}.{field} has no value on this path", entity.id)));
        }
        Ok(found)
    }

    fn observed(
        &self,
        knowledge: &KnowledgeReader<'_>,
        id: ObservationId,
        value: &FieldValue,
    ) -> Result<Blamed> {
        let one = knowledge.observation(id)?;
        let turn = match one.as_ref().and_then(|one| one.turn) {
            Some(turn) => match self.reader.records.find_turn(self.reader.project, &turn)? {
                Some((_, loc)) => self.reader.records.turn(loc)?,
                None => None,
            },
            None => None,
        };
        let mut blamed = self.blamed(turn.as_ref())?;
        blamed.value = value.json.clone();
        blamed.observation = Some(id);
        if let (Some(turn), Some(span)) = (&turn, one.and_then(|one| one.span))
            && let tine_store::Content::Kept(body) = &turn.content
        {
            let text = rings::body_text(body);
            let bytes = usize::try_from(span.start).unwrap_or(usize::MAX)
                ..usize::try_from(span.end).unwrap_or(usize::MAX);
            blamed.quote = text.get(bytes.clone()).map(str::to_owned);
            blamed.span = blamed.quote.as_ref().map(|quote| scalars(&text, bytes.start, quote));
        }
        Ok(blamed)
    }

    fn text(&self, wanted: &str) -> Result<Vec<Blamed>> {
        let path = match self.end {
            Some(end) => PathRange::to(&self.tree, end)?.locs(),
            None => Vec::new(),
        };
        if let Some(found) = self.first_saying(&path, wanted)? {
            return Ok(vec![found]);
        }
        // It may come from a merged branch.
        let before = self.head()?.map(|head| self.graph.before(head.hash)).unwrap_or_default();
        for listed in self.graph.in_order().iter().filter(|one| before.contains(&one.hash)) {
            let commit = self.reader.commit(listed.hash)?;
            let Some(range) = PathRange::of_window(self.reader.records, &self.tree, &commit)?
            else {
                continue;
            };
            if let Some(found) = self.first_saying(&range.locs(), wanted)? {
                return Ok(vec![found]);
            }
        }
        Err(Error::not_found("turn on this path that says", wanted))
    }

    fn first_saying(&self, locs: &[TurnLoc], wanted: &str) -> Result<Option<Blamed>> {
        for some in locs.chunks(1_000) {
            for turn in fetch(self.reader.records, some)? {
                let tine_store::Content::Kept(body) = &turn.content else {
                    continue;
                };
                let text = rings::body_text(body);
                let Some(at) = text.find(wanted) else {
                    continue;
                };
                if !self.tree.is_shown(turn.loc)? {
                    continue;
                }
                let span = Some(scalars(&text, at, wanted));
                let quote = Some(wanted.to_owned());
                return Ok(Some(Blamed { span, quote, ..self.blamed(Some(&turn))? }));
            }
        }
        Ok(None)
    }

    fn head(&self) -> Result<Option<tine_store::CommitListing>> {
        match &self.branch {
            Some(branch) => head_of(&self.reader, &self.graph, &self.tree, branch),
            None => Ok(None),
        }
    }

    /// Returns a turn, the commit that covers it, and the merge that added it.
    fn blamed(&self, turn: Option<&Turn>) -> Result<Blamed> {
        let mut blamed = Blamed {
            turn: turn.map(|turn| turn.hash),
            turn_id: turn.map(|turn| turn.id),
            role: turn.map(|turn| turn.role),
            said_at: turn.map(|turn| turn.created_at),
            span: None,
            quote: None,
            value: None,
            observation: None,
            commit: None,
            merge: None,
        };
        let Some(turn) = turn else {
            return Ok(blamed);
        };
        blamed.commit = self.covering(turn)?;
        let on_path = match self.end {
            Some(end) => passes(&self.tree, turn.loc, end)?,
            None => false,
        };
        if !on_path && let Some(commit) = blamed.commit {
            let merges = self.graph.in_order().into_iter().filter(|one| one.parents.len() > 1);
            let mut merges = merges.filter(|one| self.graph.before(one.hash).contains(&commit));
            blamed.merge = merges.next().map(|one| one.hash);
        }
        Ok(blamed)
    }

    /// Returns the first commit that covers a turn.
    fn covering(&self, turn: &Turn) -> Result<Option<CommitHash>> {
        for listed in self.graph.in_order() {
            // Cheap first: what a commit covers lies before its last turn.
            let Some(anchor) = self.reader.anchor(listed)? else {
                continue;
            };
            if !passes(&self.tree, turn.loc, anchor)? {
                continue;
            }
            let commit = self.reader.commit(listed.hash)?;
            if commit.conversation != self.conversation.id {
                continue;
            }
            let window = PathRange::of_window(self.reader.records, &self.tree, &commit)?;
            let covers = window.is_some_and(|window| {
                window.runs.iter().any(|run| {
                    run.segment == turn.loc.segment && (run.from..=run.to).contains(&turn.loc.index)
                })
            });
            if covers {
                return Ok(Some(listed.hash));
            }
        }
        Ok(None)
    }
}

/// Returns the span of a passage in Unicode scalar values.
fn scalars(text: &str, byte: usize, passage: &str) -> (u64, u64) {
    let start = text.get(..byte).map_or(0, |before| before.chars().count()) as u64;
    (start, start + passage.chars().count() as u64)
}

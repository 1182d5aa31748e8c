//! Updates the search index from the feed.
//!
//! An operation adds the turns that it made, replaces those whose metadata it changed, and erases
//! those that it purged. Deleting, undoing and splitting change nothing here: what is shown is
//! asked of the tree when something is found.
//!
//! An index that does not belong to this log (the store was replaced by an older copy) is rebuilt.

use std::collections::HashMap;

use tine_core::{Json, ProjectId, TurnId, search_text};
use tine_store::{
    Content, ConversationKey, FeedPosition, Index, IndexDocument, IndexMark, IndexState, Operation,
    Read, Result as Stored, Turn,
};

use crate::log::change::LoggedChange;
use crate::log::history::detail;
use crate::ops::undo::{REDO, UNDO};
use crate::{Engine, Error, Refreshed, Result};

/// Operations of one batch at most.
const BATCH_OPERATIONS: usize = 16_384;

/// Bytes of text after which a batch ends.
const BATCH_BYTES: usize = 32 << 20;

impl Engine {
    /// Updates the search index. A search does so by itself; a long-running process can call this
    /// periodically so that searches have less to do.
    pub fn refresh_search(&self) -> Result<Refreshed> {
        let end = self.read(|records| Ok(records.feed_end()?))?;
        self.update_index(end)
    }

    /// Updates the search index at least up to an operation.
    pub(super) fn update_index(&self, end: Option<IndexMark>) -> Result<Refreshed> {
        let mut done = Refreshed::default();
        while !self.index_covers(end)? {
            self.store().index(&mut |index| {
                self.store().read(&mut |records| {
                    let mut batch =
                        IndexBatch { records, index, projects: HashMap::new(), bytes: 0 };
                    let added = batch.run()?;
                    done.operations += added.operations;
                    done.turns += added.turns;
                    Ok(())
                })
            })?;
        }
        Ok(done)
    }

    fn index_covers(&self, end: Option<IndexMark>) -> Result<bool> {
        let state = self.store().index_state()?;
        match (state, end) {
            (IndexState::NotNeeded, _) | (IndexState::Empty, None) => Ok(true),
            (IndexState::Empty, Some(_)) => Ok(false),
            (IndexState::Through(mark), Some(end)) if mark == end => Ok(true),
            (IndexState::Through(mark), end) => {
                let far = end.is_some_and(|end| mark.at > end.at);
                self.read(|records| Ok(far && is_from_log(records, mark)?))
            }
        }
    }

    /// Takes erased turns out of the index at once.
    pub(crate) fn unindex(&self, project: &ProjectId, turns: &[TurnId]) -> Result<()> {
        let locs = self.read(|records| {
            let found = turns.iter().map(|turn| records.find_turn(project, turn));
            let found = found.collect::<Stored<Vec<_>>>()?;
            Ok(found.into_iter().flatten().map(|(_, loc)| loc).collect::<Vec<_>>())
        })?;
        self.store().unindex(&locs).map_err(Error::NotSwept)
    }
}

/// Returns whether an index with this mark was made from this log.
fn is_from_log(records: &dyn Read, mark: IndexMark) -> Stored<bool> {
    let before = FeedPosition(mark.at.0.saturating_sub(1));
    let there = records.feed(before, 1)?;
    Ok(there.first().is_some_and(|(at, there)| *at == mark.at && there.hash == mark.hash))
}

/// One batch of operations to index.
struct IndexBatch<'b> {
    records: &'b dyn Read,
    index: &'b mut dyn Index,
    projects: HashMap<ConversationKey, Option<ProjectId>>,
    bytes: usize,
}

impl IndexBatch<'_> {
    fn run(&mut self) -> Stored<Refreshed> {
        let mut done = Refreshed::default();
        let after = match self.index.state()? {
            IndexState::NotNeeded => return Ok(done),
            IndexState::Through(mark) if is_from_log(self.records, mark)? => mark.at,
            IndexState::Through(_) => {
                self.index.clear()?;
                FeedPosition::default()
            }
            IndexState::Empty => FeedPosition::default(),
        };
        for (at, operation) in self.records.feed(after, BATCH_OPERATIONS)? {
            done.turns += self.index_operation(at, &operation)?;
            done.operations += 1;
            self.index.advance(IndexMark { at, hash: operation.hash })?;
            if self.bytes >= BATCH_BYTES {
                break;
            }
        }
        Ok(done)
    }

    fn index_operation(&mut self, at: FeedPosition, operation: &Operation) -> Stored<u64> {
        let key = operation.conversation;
        let Some(project) = self.project(key)? else { return Ok(0) };
        let mut turns = 0;
        for (first, count) in self.records.made_by(at)? {
            let last = first.index.saturating_add(count.saturating_sub(1));
            let records = self.records;
            records.turns(first.segment, first.index, last, &mut |turn| {
                turns += 1;
                self.put(key, &project, &turn)?;
                Ok(true)
            })?;
        }
        let touched = touched(self.records, operation)?;
        for (turn, erased) in touched {
            let Some((owner, loc)) = self.records.find_turn(&project, &turn)? else { continue };
            match self.records.turn(loc)? {
                Some(turn) if !erased => self.put(owner, &project, &turn)?,
                _ => self.index.erase(loc)?,
            }
        }
        Ok(turns)
    }

    fn put(&mut self, key: ConversationKey, project: &ProjectId, turn: &Turn) -> Stored<()> {
        let Content::Kept(body) = &turn.content else {
            return self.index.erase(turn.loc);
        };
        let pieces = search_text::pieces(body, &turn.metadata);
        self.bytes += pieces.iter().map(String::len).sum::<usize>();
        self.index.put(&IndexDocument {
            loc: turn.loc,
            conversation: key,
            project,
            role: turn.role,
            at: turn.created_at,
            pieces: &pieces,
            tags: &turn.metadata.tags,
        })
    }

    fn project(&mut self, key: ConversationKey) -> Stored<Option<ProjectId>> {
        if let Some(cached) = self.projects.get(&key) {
            return Ok(cached.clone());
        }
        let project = self.records.conversation_by_key(key)?.map(|found| found.project);
        self.projects.insert(key, project.clone());
        Ok(project)
    }
}

/// Turns whose metadata an operation changed, or that it erased. A detail that cannot be read says
/// nothing: it was erased with its turns.
fn touched(records: &dyn Read, operation: &Operation) -> Stored<Vec<(TurnId, bool)>> {
    let entry = match operation.kind.as_str() {
        // Most operations are appends, and an append touches no turn but its own.
        "append" => return Ok(Vec::new()),
        UNDO | REDO => match detail(operation).ok().and_then(|entry| entry.target_operation()) {
            Some(seq) => records.operation(operation.conversation, seq)?,
            None => None,
        },
        _ => None,
    };
    let Ok(entry) = detail(entry.as_ref().unwrap_or(operation)) else { return Ok(Vec::new()) };
    let changed = entry.changes.iter().filter_map(|change| match change {
        LoggedChange::Metadata { turn, .. } => Some((*turn, false)),
        _ => None,
    });
    let erased = entry.facts.get("turn_ids").and_then(Json::as_array).unwrap_or_default();
    let erased = erased.iter().filter_map(|id| Some((id.as_str()?.parse().ok()?, true)));
    Ok(changed.chain(erased).collect())
}

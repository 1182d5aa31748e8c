//! What stays of a conversation, into the new store.

use std::collections::HashMap;
use std::sync::Arc;

use tine_core::hash::{OperationSeal, operation_hash};
use tine_core::json::Json;
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, Detail, Operation, Project, SegmentNo, Split,
    Turn, TurnLoc, Write,
};

use super::salvage::SalvagedConversation;
use super::{KIND, LeftOut};
use crate::log::change::OperationDetail;
use crate::maintenance::expected::ExpectedState;
use crate::maintenance::verify::check;
use crate::maintenance::verify::knowledge::mismatched_records;
use crate::tree::shown::{Tree, hide};
use crate::{Engine, Error, Result};

/// What was stored of a conversation.
pub(super) struct CopiedConversation {
    pub(super) turns: u64,
    pub(super) operations: u64,
    /// Tips and bookmarks that had to be moved or left out.
    pub(super) left_out: Vec<LeftOut>,
}

/// One conversation to be stored. A store may run it more than once.
pub(super) struct CopyJob {
    pub(super) engine: Engine,
    /// Who repairs.
    pub(super) actor: String,
    pub(super) project: Project,
    pub(super) kept: Arc<SalvagedConversation>,
    /// Records that were left out so far.
    pub(super) left_out: usize,
}

impl CopyJob {
    /// Stores the conversation and checks it; an error takes all of it back.
    pub(super) fn store(&self, records: &mut dyn Write) -> Result<CopiedConversation> {
        let kept = &*self.kept;
        if records.project(&self.project.id)?.is_none() {
            records.insert_project(&self.project)?;
        }
        let key = records.insert_conversation(&kept.conversation)?;
        for operation in &kept.operations {
            records.insert_operation(&Operation { conversation: key, ..operation.clone() })?;
        }
        let mut copy =
            ConversationCopy { records, kept, key, places: HashMap::new(), left_out: Vec::new() };
        let turns = copy.turns()?;
        copy.marks()?;
        copy.branches()?;
        copy.bookmarks()?;
        copy.knowledge()?;
        let left_out = copy.left_out;
        let mut operations = kept.operations.len() as u64;
        if self.left_out + left_out.len() > 0 {
            records.insert_operation(&self.entry(key, self.left_out + left_out.len()))?;
            operations += 1;
        }
        let stored = Conversation { key, ..kept.conversation.clone() };
        let found = check(&*records, &stored)?;
        match found.problems.first() {
            None => Ok(CopiedConversation { turns, operations, left_out }),
            Some(problem) => Err(Error::Invalid(format!("{}: {}", problem.record, problem.why))),
        }
    }

    /// Returns the log entry that marks a conversation as repaired.
    fn entry(&self, key: ConversationKey, left_out: usize) -> Operation {
        let kept = &*self.kept;
        let mut entry_detail = OperationDetail::default();
        let incomplete = kept.incomplete.iter().map(|seq| Json::from(*seq)).collect();
        entry_detail.facts.insert("incomplete", Json::Array(incomplete));
        entry_detail.facts.insert("left_out", (left_out as u64).into());
        let detail = Detail::Kept(entry_detail.to_canonical());
        let (seq, at) = (kept.operations.len() as u64 + 1, self.engine.now());
        let hash = operation_hash(&OperationSeal {
            conversation_id: kept.conversation.id.as_str(),
            seq,
            previous: kept.operations.last().map(|last| &last.hash),
            kind: KIND,
            actor: &self.actor,
            at,
            detail: &detail.digest(),
        });
        Operation {
            conversation: key,
            seq,
            kind: KIND.to_owned(),
            actor: self.actor.clone(),
            at,
            detail,
            hash,
            undone: false,
            idempotency: None,
        }
    }
}

struct ConversationCopy<'c> {
    records: &'c mut dyn Write,
    kept: &'c SalvagedConversation,
    key: ConversationKey,
    /// Where each segment of the damaged store is now.
    places: HashMap<SegmentNo, SegmentNo>,
    left_out: Vec<LeftOut>,
}

impl ConversationCopy<'_> {
    fn leave_out(&mut self, record: String, why: &str) {
        let project = Some(self.kept.conversation.project.clone());
        let conversation = Some(self.kept.conversation.id.clone());
        let why = why.to_owned();
        self.left_out.push(LeftOut { project, conversation, record, why, turn: None });
    }

    /// Returns the new place of a kept turn.
    fn moved(&self, loc: TurnLoc) -> Result<TurnLoc> {
        let segment = tine_store::required(self.places.get(&loc.segment).copied(), || {
            format!("segment {}", loc.segment.0)
        })?;
        Ok(TurnLoc { segment, ..loc })
    }

    /// Leaves out the records that the log mentions and that did not come over.
    fn knowledge(&mut self) -> Result<()> {
        let mut expected = ExpectedState::new();
        for operation in &self.kept.operations {
            expected.add(operation);
        }
        let project = &self.kept.conversation.project;
        for problem in mismatched_records(&*self.records, project, &expected)? {
            self.leave_out(problem.record, &problem.why);
        }
        Ok(())
    }

    fn turns(&mut self) -> Result<u64> {
        let mut stored = 0;
        for (segment, turns) in &self.kept.segments {
            let parent = segment.parent.map(|at| self.moved(at)).transpose()?;
            let no = self.records.insert_segment(self.key, parent, segment.base_depth)?;
            self.places.insert(segment.no, no);
            for turn in turns {
                let loc = TurnLoc { segment: no, ..turn.loc };
                self.records.insert_turn(self.key, &Turn { loc, ..turn.clone() })?;
                stored += 1;
            }
        }
        Ok(stored)
    }

    /// Returns the new place of a turn that is kept and named by its id.
    fn find(&self, id: &tine_core::TurnId) -> Result<TurnLoc> {
        self.moved(tine_store::required(self.kept.place(id), || format!("turn {id}"))?)
    }

    fn marks(&mut self) -> Result<()> {
        let conversation = self.key;
        for (whole, (operation, left, right)) in &self.kept.splits {
            let (whole, left, right) = (self.find(whole)?, self.find(left)?, self.find(right)?);
            let operation = *operation;
            self.records.insert_split(&Split { conversation, whole, left, right, operation })?;
        }
        for (operation, root, by) in &self.kept.hidden {
            let root = self.find(root)?;
            hide(self.records, conversation, root, *by, *operation)?;
        }
        Ok(())
    }

    /// Returns the shown turn at or above a place of the damaged store, and whether it is the same
    /// one.
    fn shown(&self, loc: TurnLoc) -> Result<(Option<TurnLoc>, bool)> {
        let (nearest, same) = self.kept.nearest(loc);
        let Some(nearest) = nearest else {
            return Ok((None, false));
        };
        let nearest = self.moved(nearest)?;
        let live = Tree::new(&*self.records, self.key).nearest_live(nearest)?;
        Ok((live, same && live == Some(nearest)))
    }

    fn branches(&mut self) -> Result<()> {
        for branch in &self.kept.branches {
            let (tip, same) = match branch.tip {
                Some(tip) => self.shown(tip)?,
                None => (None, true),
            };
            if !same {
                let record = format!("tip of branch {}", branch.name);
                self.leave_out(record, "its turn is left out; it ends on the last one above it");
            }
            let forked_from = branch.forked_from.filter(|turn| self.kept.place(turn).is_some());
            if forked_from != branch.forked_from {
                let record = format!("turn from which branch {} was forked", branch.name);
                self.leave_out(record, "it is left out");
            }
            let conversation = self.key;
            self.records.put_branch(&Branch {
                conversation,
                tip,
                forked_from,
                ..branch.clone()
            })?;
        }
        Ok(())
    }

    fn bookmarks(&mut self) -> Result<()> {
        for bookmark in &self.kept.bookmarks {
            match self.shown(bookmark.turn)? {
                (Some(turn), true) => {
                    let conversation = self.key;
                    let moved = Bookmark { conversation, turn, ..bookmark.clone() };
                    self.records.put_bookmark(&moved)?;
                }
                _ => {
                    let record = format!("bookmark {}", bookmark.name);
                    self.leave_out(record, "its turn is left out");
                }
            }
        }
        Ok(())
    }
}

//! A new store from a damaged one: whatever can be shown to be as it was, and a list of the rest.
//!
//! Conversation by conversation. One that is whole is copied as it is, so that its export is the
//! same, byte for byte. Of a damaged one everything stays whose own bytes can be read and whose
//! hash chain holds up to it: a beginning of the log, and every turn down to the first damaged one
//! on its line. Turns after a damaged one cannot be verified; they are reported as read, for a
//! person to review, and not stored.
//!
//! Invariants: the damaged store is only read; every conversation that is stored passes the same
//! check as `verify`, in the transaction that stores it; one that is not as it was says so in its
//! log, in an entry of the kind `repair`.

mod copy;
mod orphans;
mod records;
mod salvage;

use std::collections::BTreeSet;
use std::sync::Arc;

use tine_core::{ConversationId, ProjectId, TurnId};

use tine_store::{
    Conversation, ConversationKey, DamagedRecord, FeedPosition, LostRecord, Project, Read, Store,
    Turn,
};

use self::salvage::SalvagedConversation;
use crate::maintenance::conversation_pages::{self, damage};
use crate::{Call, Engine, Error, Result};

/// The kind of the entry that a repair leaves in a log.
pub(crate) const KIND: &str = "repair";

/// Why something is left out that only look-up tables know of.
const GONE: &str = "it cannot be read any more";

/// Operations read at once when looking for conversations that have lost their record.
const OPERATIONS_PER_READ: usize = 1_000;

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Conversations that were whole and are as they were.
    pub whole: u64,
    /// Conversations of which a part is kept.
    pub in_part: u64,
    /// Conversations of which nothing is kept.
    pub lost: u64,
    /// Turns kept.
    pub turns: u64,
    /// Operations kept.
    pub operations: u64,
    /// Records that were left out or are not as they were.
    pub left_out: u64,
}

/// A record that is not in the new store, or not as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Its project, where it is known.
    pub project: Option<ProjectId>,
    /// Its conversation, where it is known.
    pub conversation: Option<ConversationId>,
    /// Which record.
    pub record: String,
    /// What is wrong with it.
    pub why: String,
    /// The turn itself, as far as it can be read, with its raw parent. Nothing vouches for it.
    pub turn: Option<Box<(Turn, Option<TurnId>)>>,
}

impl Engine {
    /// Copies what is whole of a damaged store into this one, which should be new. `lost` is
    /// what the damaged store is known to have lost already.
    pub fn repair(
        &self,
        call: &Call,
        damaged: &dyn Store,
        lost: &[LostRecord],
        left_out: &mut dyn FnMut(LeftOut) -> Result<()>,
    ) -> Result<Repaired> {
        let done = Repaired::default();
        let mut repair = Repair { engine: self, call, damaged, lost, left_out, done };
        let mut visited = BTreeSet::new();
        for project in repair.read(|records| Ok(records.projects()?))? {
            repair.project(&project, &mut visited)?;
        }
        repair.orphans(&visited)?;
        for gone in lost {
            if gone.conversation.is_none_or(|key| !visited.contains(&key)) {
                let record = gone.record.clone();
                let (project, conversation, turn) = (None, None, None);
                let why = GONE.to_owned();
                repair.leave_out(vec![LeftOut { project, conversation, record, why, turn }])?;
            }
        }
        Ok(repair.done)
    }
}

struct Repair<'r> {
    engine: &'r Engine,
    call: &'r Call,
    damaged: &'r dyn Store,
    lost: &'r [LostRecord],
    left_out: &'r mut dyn FnMut(LeftOut) -> Result<()>,
    done: Repaired,
}

impl Repair<'_> {
    fn read<T>(&self, body: impl Fn(&dyn Read) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.damaged.read(&mut |records| {
            answer = Some(body(records));
            Ok(())
        })?;
        answer.unwrap_or_else(|| Err(Error::invalid("the damaged store could not be read")))
    }

    fn leave_out(&mut self, records: Vec<LeftOut>) -> Result<()> {
        for record in records {
            self.done.left_out += 1;
            (self.left_out)(record)?;
        }
        Ok(())
    }

    fn project(
        &mut self,
        project: &Project,
        visited: &mut BTreeSet<ConversationKey>,
    ) -> Result<()> {
        self.records(project)?;
        let mut after = None;
        loop {
            let page =
                self.read(|records| conversation_pages::page(records, &project.id, after))?;
            for DamagedRecord { record, why } in page.problems {
                self.done.lost += 1;
                let project = Some(project.id.clone());
                let lost = LeftOut { project, conversation: None, record, why, turn: None };
                self.leave_out(vec![lost])?;
            }
            for conversation in page.conversations {
                visited.insert(conversation.key);
                self.conversation(project, conversation)?;
            }
            match page.last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    fn conversation(&mut self, project: &Project, conversation: Conversation) -> Result<()> {
        let lost: Vec<&str> = self
            .lost
            .iter()
            .filter(|gone| gone.conversation == Some(conversation.key))
            .map(|gone| gone.record.as_str())
            .collect();
        let mut kept =
            self.read(|records| SalvagedConversation::of(records, conversation.clone(), &lost))?;
        let mut left_out = std::mem::take(&mut kept.left_out);
        let kept = Arc::new(kept);
        let copy = copy::CopyJob {
            engine: self.engine.clone(),
            actor: self.call.actor.clone(),
            project: project.clone(),
            kept: Arc::clone(&kept),
            left_out: left_out.len(),
        };
        match self.engine.write(move |records| copy.store(records)) {
            Ok(stored) => {
                left_out.extend(stored.left_out);
                match left_out.is_empty() {
                    true => self.done.whole += 1,
                    false => self.done.in_part += 1,
                }
                self.done.turns += stored.turns;
                self.done.operations += stored.operations;
            }
            Err(error) if is_about_the_new_store(&error) => return Err(error),
            Err(error) => {
                self.done.lost += 1;
                left_out.extend(kept.give_up(&error.to_string()));
            }
        }
        self.leave_out(left_out)
    }

    /// Reports the turns of conversations whose own record is lost.
    fn orphans(&mut self, visited: &BTreeSet<ConversationKey>) -> Result<()> {
        let mut found: BTreeSet<ConversationKey> = BTreeSet::new();
        let mut after = FeedPosition::default();
        let mut unreadable = 0;
        loop {
            let limit = if unreadable > 0 { 1 } else { OPERATIONS_PER_READ };
            match self.read(|records| Ok(records.feed(after, limit)?)) {
                Ok(page) => {
                    let Some((last, _)) = page.last() else {
                        break;
                    };
                    after = *last;
                    unreadable = 0;
                    found.extend(page.iter().map(|(_, operation)| operation.conversation));
                }
                Err(error) => {
                    damage(error)?;
                    // After a row that cannot be read, rows are tried one by one.
                    unreadable += 1;
                    if unreadable > 1 {
                        after.0 += 1;
                    }
                    if unreadable > OPERATIONS_PER_READ {
                        break;
                    }
                }
            }
        }
        for key in found.difference(visited) {
            let lost = self.read(|records| orphans::left_of(records, *key))?;
            self.done.lost += 1;
            self.leave_out(lost)?;
        }
        Ok(())
    }
}

/// Returns whether a failure to store a conversation says something about the new store rather than
/// about the conversation.
fn is_about_the_new_store(error: &Error) -> bool {
    use tine_store::StoreError;
    matches!(
        error,
        Error::Store(
            StoreError::DiskFull
                | StoreError::Busy { .. }
                | StoreError::Stopped { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::Io { .. }
        )
    )
}

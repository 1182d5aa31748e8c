//! What stays of one conversation.

mod state;
mod turns;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tine_core::hash::root_hash;
use tine_core::json::Json;
use tine_core::{TurnHash, TurnId};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, HiddenBy, Operation, Read, Segment, Turn,
    TurnLoc, Visibility,
};

use super::{GONE, LeftOut};
use crate::Result;
use crate::log::history::detail;
use crate::log::mutation::seal;
use crate::maintenance::conversation_pages::damage;
use crate::maintenance::expected::ExpectedState;

/// Entries of a log that are tried one by one before the rest is given up as unreadable.
const UNREADABLE_IN_A_ROW: u64 = 1_000;

const AS_LOGGED: &str = "it was not as the log left it; the log's is kept";

type Deletions = BTreeSet<(u64, TurnId, HiddenBy)>;
type SplitMap = BTreeMap<TurnId, (u64, TurnId, TurnId)>;

/// The records of one conversation that can be shown to be as they were.
pub(super) struct SalvagedConversation {
    pub(super) conversation: Conversation,
    /// A beginning of the log.
    pub(super) operations: Vec<Operation>,
    /// Segments, each after its parent, and a beginning of their turns.
    pub(super) segments: Vec<(Segment, Vec<Turn>)>,
    pub(super) splits: SplitMap,
    pub(super) hidden: Deletions,
    pub(super) branches: Vec<Branch>,
    pub(super) bookmarks: Vec<Bookmark>,
    /// Operations of which not every turn is kept.
    pub(super) incomplete: BTreeSet<u64>,
    pub(super) left_out: Vec<LeftOut>,
    /// Where each kept turn lies in the damaged store.
    places: HashMap<TurnLoc, (TurnId, TurnHash, u32)>,
    ids: HashMap<TurnId, TurnLoc>,
}

impl SalvagedConversation {
    /// `lost` is what is known to be gone already.
    pub(super) fn of(
        records: &dyn Read,
        conversation: Conversation,
        lost: &[&str],
    ) -> Result<Self> {
        let mut kept = SalvagedConversation {
            conversation,
            operations: Vec::new(),
            segments: Vec::new(),
            splits: BTreeMap::new(),
            hidden: BTreeSet::new(),
            branches: Vec::new(),
            bookmarks: Vec::new(),
            incomplete: BTreeSet::new(),
            left_out: Vec::new(),
            places: HashMap::new(),
            ids: HashMap::new(),
        };
        for record in lost {
            kept.leave_out(*record, GONE);
        }
        kept.operations(records)?;
        let log_is_whole = kept.left_out.is_empty();
        let mut expected = ExpectedState::new();
        for operation in &kept.operations {
            expected.add(operation);
        }
        kept.root();
        kept.turns(records)?;
        kept.chains(&expected);
        kept.marks(records, &expected)?;
        if !log_is_whole {
            // The last changes are after the end of what is left of the log.
            expected.forget_movable_state();
        }
        kept.fields(&expected);
        kept.branches(records, &expected, log_is_whole)?;
        kept.bookmarks(records, &expected)?;
        Ok(kept)
    }

    /// Returns all that would have been kept, when nothing of the conversation can be stored after
    /// all.
    pub(super) fn give_up(&self, why: &str) -> Vec<LeftOut> {
        let project = Some(self.conversation.project.clone());
        let conversation = Some(self.conversation.id.clone());
        let left_out = |record, why: &str, turn| {
            let (project, conversation) = (project.clone(), conversation.clone());
            LeftOut { project, conversation, record, why: why.to_owned(), turn }
        };
        let record = format!("conversation {}", self.conversation.id);
        let mut all = vec![left_out(record, &format!("it could not be stored: {why}"), None)];
        for (_, turns) in &self.segments {
            let mut parent = None;
            for turn in turns {
                let why = "its conversation could not be stored";
                let whole = Some(Box::new((turn.clone(), parent)));
                all.push(left_out(format!("turn {}", turn.id), why, whole));
                parent = Some(turn.id);
            }
        }
        all
    }

    fn leave_out(&mut self, record: impl Into<String>, why: impl Into<String>) {
        let project = Some(self.conversation.project.clone());
        let conversation = Some(self.conversation.id.clone());
        let (record, why) = (record.into(), why.into());
        self.left_out.push(LeftOut { project, conversation, record, why, turn: None });
    }

    fn turn_left_out(&mut self, turn: Turn, parent: Option<TurnId>, why: &str) {
        self.leave_out(format!("turn {}", turn.id), why);
        if let Some(last) = self.left_out.last_mut() {
            last.turn = Some(Box::new((turn, parent)));
        }
    }

    /// The log up to the first entry that is damaged or missing.
    fn operations(&mut self, records: &dyn Read) -> Result<()> {
        let (all, problems) = read_operations(records, self.conversation.key)?;
        let mut whole = true;
        for operation in all {
            let record = format!("operation {}", operation.seq);
            let next = self.operations.len() as u64 + 1;
            let previous = self.operations.last().map(|last| &last.hash);
            let fits = operation.seq == next
                && seal(&self.conversation.id, &operation, previous) == operation.hash;
            if whole && fits {
                self.operations.push(operation);
                continue;
            }
            let why = match (whole, operation.seq == next) {
                (false, _) => "an entry of the log before it is damaged or missing".to_owned(),
                (true, false) => format!("operation {next} is missing before it"),
                (true, true) => "its hash does not match its content".to_owned(),
            };
            whole = false;
            self.leave_out(format!("{record} ({}, {})", operation.kind, operation.hash), why);
        }
        // The project's own log may be there before anything is in it.
        let is_talk = self.conversation.visibility != Visibility::ProjectLog;
        if is_talk && self.operations.is_empty() && whole && problems.is_empty() {
            self.leave_out("log, and all turns that it tells of", GONE);
        }
        for (seq, why) in problems {
            self.leave_out(format!("operation {seq}"), why);
        }
        Ok(())
    }

    /// A root that does not fit its hash is left out; the log, if it is whole, has the hash.
    fn root(&mut self) {
        let conversation = &mut self.conversation;
        let logged = self.operations.first().and_then(|first| detail(first).ok());
        let logged = logged
            .and_then(|entry| entry.facts.get("root_hash").and_then(Json::as_str)?.parse().ok());
        let computed = conversation
            .root
            .as_ref()
            .map(|root| root_hash(root.system_prompt.as_deref(), &root.config));
        let stated = conversation.root_hash;
        let right = logged.unwrap_or(stated);
        conversation.root_hash = right;
        if computed.is_some_and(|computed| computed != right) {
            conversation.root = None;
            self.leave_out("root", "its hash does not match its content");
        }
        if stated != right {
            self.leave_out("hash of the root", AS_LOGGED);
        }
        let created_at = match self.operations.first() {
            Some(first) if matches!(first.kind.as_str(), "create" | "derive") => first.at,
            _ => self.conversation.created_at,
        };
        if created_at != self.conversation.created_at {
            self.conversation.created_at = created_at;
            self.leave_out("time of creation", AS_LOGGED);
        }
    }

    /// Returns the place of a kept turn.
    pub(super) fn place(&self, id: &TurnId) -> Option<TurnLoc> {
        self.ids.get(id).copied()
    }

    /// Returns the kept turn at or above a place, `None` for the root, and whether it is the same
    /// one.
    pub(super) fn nearest(&self, loc: TurnLoc) -> (Option<TurnLoc>, bool) {
        if self.places.contains_key(&loc) {
            return (Some(loc), true);
        }
        let segment = self.segments.iter().find(|(segment, _)| segment.no == loc.segment);
        (segment.and_then(|(_, turns)| turns.last()).map(|turn| turn.loc), false)
    }
}

/// An entry that cannot be read, and why.
pub(super) type UnreadableEntry = (u64, String);

/// Every entry of a log that can be read, and what is wrong with the others.
pub(super) fn read_operations(
    records: &dyn Read,
    key: ConversationKey,
) -> Result<(Vec<Operation>, Vec<UnreadableEntry>)> {
    let mut operations: Vec<Operation> = Vec::new();
    let mut problems = Vec::new();
    let (mut next, mut unreadable) = (1, 0);
    while unreadable < UNREADABLE_IN_A_ROW {
        let before = operations.len();
        let read = records.operations(key, next, u64::MAX, &mut |operation| {
            operations.push(operation);
            Ok(true)
        });
        let Err(error) = read else {
            break;
        };
        unreadable = if operations.len() > before { 1 } else { unreadable + 1 };
        if let Some(last) = operations[before..].last() {
            next = last.seq + 1;
        }
        problems.push((next, damage(error.into())?.why));
        next += 1;
    }
    Ok((operations, problems))
}

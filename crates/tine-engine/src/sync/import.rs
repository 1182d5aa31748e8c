//! In: a conversation from records, every hash recomputed before anything is kept.
//!
//! What was stored passes the check of `verify` before the transaction ends: forged records with
//! recomputed hashes are rejected like damaged ones.
//!
//! A conversation that is there already is only ever carried forward: its log must be a beginning
//! of the bundle's. An older bundle adds nothing, a diverged one is a conflict. Content purged here
//! is therefore never restored by an older bundle.

use std::collections::HashMap;

use tine_core::hash::{root_hash, turn_hash};
use tine_core::{Limits, Name, OperationHash, ProjectId, Timestamp, TurnHash, TurnId};
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, DamagedRecord, Detail, HiddenBy,
    Operation, Project, SEGMENT_TURNS, Split, Turn, TurnLoc, Visibility, Write, required,
};

use super::BundleRecord;
use super::knowledge::{IncomingRecords, LoggedRecords};
use crate::commits::commit_maintenance;
use crate::knowledge::erase;
use crate::log::change::{BookmarkImage, LoggedChange};
use crate::log::history::detail;
use crate::log::mutation::{PROJECT_LOG, seal};
use crate::maintenance::sweep;
use crate::maintenance::verify::check;
use crate::tree::shown::hide;
use crate::{Engine, Error, Result};
use crate::{Imported, Renamed};

impl Engine {
    /// Takes conversations in, each in one transaction: whole, or not at all.
    ///
    /// `project` replaces the one that the records name.
    pub fn import(
        &self,
        project: Option<&ProjectId>,
        records: &mut dyn Iterator<Item = Result<BundleRecord>>,
    ) -> Result<Imported> {
        let policy = ImportPolicy { names: NameConflicts::Refused, erasures: ErasurePolicy::Done };
        Ok(self.import_as(policy, project, records)?.imported)
    }

    /// Imports conversations by a policy for names and erasures.
    pub(super) fn import_as(
        &self,
        policy: ImportPolicy,
        project: Option<&ProjectId>,
        records: &mut dyn Iterator<Item = Result<BundleRecord>>,
    ) -> Result<ImportOutcome> {
        let mut outcome = ImportOutcome::default();
        let mut bundle: Option<IncomingConversation> = None;
        for record in records {
            let record = record?;
            if let BundleRecord::Conversation(_) = record {
                if let Some(whole) = bundle.take() {
                    self.import_one(whole, &mut outcome)?;
                }
                bundle = Some(IncomingConversation::begin(record, project, policy, self.limits())?);
            } else {
                let open = bundle
                    .as_mut()
                    .ok_or_else(|| Error::invalid("the first record must be a conversation"))?;
                open.add(record);
            }
        }
        if let Some(whole) = bundle {
            self.import_one(whole, &mut outcome)?;
        }
        Ok(outcome)
    }

    fn import_one(&self, bundle: IncomingConversation, outcome: &mut ImportOutcome) -> Result<()> {
        bundle.verify()?;
        let (project, now) = (bundle.conversation.project.clone(), self.now());
        let (id, seq) = (bundle.conversation.id.clone(), bundle.log_end());
        let (added, erased) = self.write(move |records| bundle.store(records, now))?;
        if let Some(turns) = erased {
            self.unindex(&project, &turns)?;
            self.store().scrub().map_err(Error::NotSwept)?;
            self.swept(&project, &id, seq)?;
        }
        let ImportOutcome { imported, renamed, keys } = added;
        outcome.imported.conversations += imported.conversations;
        outcome.imported.extended += imported.extended;
        outcome.imported.unchanged += imported.unchanged;
        outcome.imported.turns += imported.turns;
        outcome.imported.operations += imported.operations;
        outcome.renamed.extend(renamed);
        outcome.keys += keys;
        Ok(())
    }
}

/// What to do about a bookmark or idempotency key that is in use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameConflicts {
    /// Its conversation is refused.
    Refused,
    /// What is here stays. The bookmark that arrives gets a number, the key that arrives is not
    /// taken over: keys are in no hash.
    Numbered,
}

/// What happens where something was erased that is still here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErasurePolicy {
    /// It is erased here, too.
    Done,
    /// Its conversation is refused.
    Refused,
}

/// How an import treats existing records.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImportPolicy {
    pub names: NameConflicts,
    pub erasures: ErasurePolicy,
}

/// What an import did, including names that were taken.
#[derive(Default)]
pub(super) struct ImportOutcome {
    pub imported: Imported,
    pub renamed: Vec<Renamed>,
    pub keys: u64,
}

/// One conversation's records.
struct IncomingConversation {
    policy: ImportPolicy,
    limits: Limits,
    conversation: Conversation,
    /// Turns with their raw parents.
    turns: Vec<(Option<TurnId>, Turn)>,
    splits: Vec<(TurnId, TurnId, TurnId, u64)>,
    hidden: Vec<(TurnId, HiddenBy, u64)>,
    branches: Vec<(Branch, Option<TurnId>)>,
    bookmarks: Vec<(Name, TurnId, Timestamp)>,
    operations: Vec<Operation>,
    incoming: IncomingRecords,
}

impl IncomingConversation {
    fn begin(
        record: BundleRecord,
        project: Option<&ProjectId>,
        policy: ImportPolicy,
        limits: &Limits,
    ) -> Result<Self> {
        let BundleRecord::Conversation(mut conversation) = record else {
            return Err(Error::invalid("the first record must be a conversation"));
        };
        if let Some(project) = project {
            conversation.project = project.clone();
        }
        let Conversation { project, id, .. } = &conversation;
        tine_core::ids::check_key("project id", project.as_str(), limits)?;
        tine_core::ids::check_key("conversation id", id.as_str(), limits)?;
        if id.as_str() == PROJECT_LOG {
            conversation.visibility = Visibility::ProjectLog;
        } else if id.as_str().starts_with('~') {
            let why = format!("`{id}`: ids that begin with ~ are reserved for Tine");
            return Err(Error::Invalid(why));
        }
        Ok(IncomingConversation {
            policy,
            limits: *limits,
            conversation,
            turns: Vec::new(),
            splits: Vec::new(),
            hidden: Vec::new(),
            branches: Vec::new(),
            bookmarks: Vec::new(),
            operations: Vec::new(),
            incoming: IncomingRecords::default(),
        })
    }

    fn add(&mut self, record: BundleRecord) {
        match record {
            BundleRecord::Conversation(_) => {}
            BundleRecord::Turn { parent, turn } => self.turns.push((parent, turn)),
            BundleRecord::Split { whole, left, right, operation } => {
                self.splits.push((whole, left, right, operation));
            }
            BundleRecord::Hidden { root, by, operation } => self.hidden.push((root, by, operation)),
            BundleRecord::Branch { branch, tip } => self.branches.push((branch, tip)),
            BundleRecord::Bookmark { name, turn, created_at } => {
                self.bookmarks.push((name, turn, created_at));
            }
            BundleRecord::Operation(operation) => self.operations.push(operation),
            BundleRecord::Record(record) => self.incoming.records.push(record),
            BundleRecord::Piece { source, nth, bytes } => {
                self.incoming.pieces.push((source, nth, bytes));
            }
        }
    }

    /// Returns the number of its last operation.
    fn log_end(&self) -> u64 {
        self.operations.last().map_or(0, |last| last.seq)
    }

    /// Recomputes every hash. What fails is named.
    fn verify(&self) -> Result<()> {
        let conversation = &self.conversation;
        let damaged = |record: String, why: &str| {
            Error::Invalid(format!("the bundle is damaged: {record}: {why}"))
        };
        if let Some(root) = &conversation.root
            && root_hash(root.system_prompt.as_deref(), &root.config) != conversation.root_hash
        {
            let record = format!("root of conversation {}", conversation.id);
            return Err(damaged(record, "its hash does not match its content"));
        }
        let mut hashes: HashMap<TurnId, TurnHash> = HashMap::new();
        for (parent, turn) in &self.turns {
            let record = || format!("turn {}", turn.id);
            let parent = match parent {
                None => None,
                Some(parent) => Some(
                    hashes
                        .get(parent)
                        .ok_or_else(|| damaged(record(), "its parent does not come before it"))?,
                ),
            };
            if let Content::Kept(body) = &turn.content {
                let call = turn.tool_call_id.as_deref();
                let computed = turn_hash(parent, turn.role, body, call, turn.created_at);
                if computed != turn.hash {
                    return Err(damaged(record(), "its hash does not match its content"));
                }
            }
            let logged = u64::try_from(self.operations.len()).unwrap_or(u64::MAX);
            if turn.operation == 0 || turn.operation > logged {
                return Err(damaged(record(), "the operation that made it is not in the bundle"));
            }
            if hashes.insert(turn.id, turn.hash).is_some() {
                return Err(damaged(record(), "it occurs twice"));
            }
        }
        let mut previous: Option<&OperationHash> = None;
        for (seq, operation) in (1..).zip(&self.operations) {
            let record =
                || format!("operation {} of conversation {}", operation.seq, conversation.id);
            if operation.seq != seq {
                return Err(damaged(record(), "it is out of order"));
            }
            if seal(&conversation.id, operation, previous) != operation.hash {
                return Err(damaged(record(), "its hash does not match its content"));
            }
            previous = Some(&operation.hash);
        }
        Ok(())
    }

    /// Adds what is missing. The caller's transaction makes it all or nothing. Answers the turns
    /// that were erased as well, if anything was.
    fn store(
        &self,
        records: &mut dyn Write,
        now: Timestamp,
    ) -> Result<(ImportOutcome, Option<Vec<TurnId>>)> {
        let wanted = &self.conversation;
        if records.project(&wanted.project)?.is_none() {
            let (id, created_at) = (wanted.project.clone(), wanted.created_at);
            records.insert_project(&Project { id, created_at })?;
        }
        let mut outcome = ImportOutcome::default();
        let imported = &mut outcome.imported;
        let mut erases = false;
        let mut erased = erase::ErasurePlan::default();
        let (key, stored_operations) = match records.conversation(&wanted.project, &wanted.id)? {
            None => {
                imported.conversations = 1;
                (records.insert_conversation(wanted)?, 0)
            }
            Some(present) => {
                let Some(stored_operations) = self.ahead_of(records, &present)? else {
                    imported.unchanged = 1;
                    return Ok((outcome, None));
                };
                imported.extended = 1;
                erases = present.root.is_some() && wanted.root.is_none();
                let next = Conversation { key: present.key, ..wanted.clone() };
                records.update_conversation(&next)?;
                (present.key, stored_operations)
            }
        };
        let locs =
            self.store_turns(records, key, stored_operations, &mut imported.turns, &mut erased)?;
        outcome.imported.operations =
            self.store_operations(records, key, stored_operations, &mut erases, &mut outcome.keys)?;
        outcome.renamed = self.store_state(records, key, stored_operations, &locs)?;
        let owned = wanted.visibility == Visibility::ProjectLog;
        self.incoming.store(records, &wanted.project, owned, &mut erased)?;
        if owned {
            let mut logged = LoggedRecords::default();
            for operation in &self.operations {
                if let Detail::Kept(detail) = &operation.detail {
                    logged.add(detail);
                }
            }
            self.incoming.remove_absent(records, &wanted.project, logged)?;
        }
        erases |= commit_maintenance::import(
            records,
            &wanted.project,
            &wanted.id,
            &self.incoming.records,
        )?;
        if !erased.is_empty() {
            erases = true;
            erased.erase(records, &wanted.project, now)?;
        }
        if erases && self.policy.erasures == ErasurePolicy::Refused {
            let (turns, sources) = (erased.turns.len(), erased.sources.len());
            return Err(Error::WouldErase { turns, sources });
        }
        let stored = Conversation { key, ..wanted.clone() };
        if let Some(DamagedRecord { record, why }) = check(&*records, &stored)?.problems.first() {
            let what = match outcome.imported.extended {
                0 => "the bundle is damaged",
                _ => "the bundle does not fit the conversation in this store",
            };
            return Err(Error::Invalid(format!("{what}: {record}: {why}")));
        }
        if erases {
            sweep::note(records, &wanted.project, &wanted.id, self.log_end())?;
        }
        let turns = erases.then(|| erased.turns.into_iter().collect());
        Ok((outcome, turns))
    }

    /// Returns how many operations are here already, if the bundle has more; `None` if it has not.
    fn ahead_of(&self, records: &dyn Write, present: &Conversation) -> Result<Option<u64>> {
        let refused =
            |advice| Error::Exists { what: "conversation", name: present.id.to_string(), advice };
        if present.root_hash != self.conversation.root_hash {
            return Err(refused(" with another root; import into another project"));
        }
        let stored_operations = records.last_operation(present.key)?.map_or(0, |last| last.seq);
        let offered = u64::try_from(self.operations.len()).unwrap_or(u64::MAX);
        let common = stored_operations.min(offered);
        if common > 0 {
            let here = required(records.operation(present.key, common)?, || {
                format!("operation {common}")
            })?;
            let there = usize::try_from(common - 1).ok().and_then(|at| self.operations.get(at));
            if there.is_none_or(|there| there.hash != here.hash) {
                return Err(refused(" whose history has diverged; import into another project"));
            }
        }
        Ok((offered > stored_operations).then_some(stored_operations))
    }

    fn store_operations(
        &self,
        records: &mut dyn Write,
        key: ConversationKey,
        stored_operations: u64,
        erases: &mut bool,
        keys: &mut u64,
    ) -> Result<u64> {
        let mut added = 0;
        for operation in &self.operations {
            if operation.seq > stored_operations {
                let mut operation = Operation { conversation: key, ..operation.clone() };
                if let Some(first) = &operation.idempotency
                    && records.idempotent(&self.conversation.project, &first.key)?.is_some()
                {
                    if self.policy.names == NameConflicts::Refused {
                        let (what, name) = ("idempotency key", first.key.clone());
                        let advice = " in this project; import into another one";
                        return Err(Error::Exists { what, name, advice });
                    }
                    operation.idempotency = None;
                    *keys += 1;
                }
                records.insert_operation(&operation)?;
                added += 1;
                continue;
            }
            let here = required(records.operation(key, operation.seq)?, || {
                format!("operation {}", operation.seq)
            })?;
            if here.undone != operation.undone {
                records.set_undone(key, operation.seq, operation.undone)?;
            }
            if matches!((&here.detail, &operation.detail), (Detail::Kept(_), Detail::Purged(_))) {
                records.purge_operation(key, operation.seq)?;
                *erases = true;
            }
        }
        Ok(added)
    }

    fn store_turns(
        &self,
        records: &mut dyn Write,
        key: ConversationKey,
        stored_operations: u64,
        added: &mut u64,
        erased: &mut erase::ErasurePlan,
    ) -> Result<HashMap<TurnId, (TurnLoc, u32)>> {
        let mut locs: HashMap<TurnId, (TurnLoc, u32)> = HashMap::new();
        for (parent, turn) in &self.turns {
            let present = records.find_turn(&self.conversation.project, &turn.id)?;
            if let Some((owner, loc)) = present {
                if owner != key || turn.operation > stored_operations {
                    let (what, name) = ("turn", turn.id.to_string());
                    let advice = " in this project; import into another one";
                    return Err(Error::Exists { what, name, advice });
                }
                let here = required(records.turn(loc)?, || format!("turn {}", turn.id))?;
                if here.hash != turn.hash {
                    let why =
                        "its content differs from that of the turn with this id in this store";
                    return Err(Error::Invalid(format!("turn {}: {why}", turn.id)));
                }
                if carry_forward(records, &here, turn)? {
                    erased.turns.insert(turn.id);
                }
                locs.insert(turn.id, (loc, here.depth));
                continue;
            }
            let parent = parent.and_then(|parent| locs.get(&parent).copied());
            let depth = parent.map_or(1, |(_, depth)| depth + 1);
            let loc = next_place(records, key, parent.map(|(loc, _)| loc), depth)?;
            records.insert_turn(key, &Turn { loc, depth, ..turn.clone() })?;
            locs.insert(turn.id, (loc, depth));
            *added += 1;
        }
        Ok(locs)
    }

    /// Replaces everything that may change by what the bundle says. Answers the bookmarks that got
    /// another name.
    fn store_state(
        &self,
        records: &mut dyn Write,
        key: ConversationKey,
        stored_operations: u64,
        locs: &HashMap<TurnId, (TurnLoc, u32)>,
    ) -> Result<Vec<Renamed>> {
        let find = |id: &TurnId| -> Result<TurnLoc> {
            Ok(required(locs.get(id), || format!("turn {id}, which another record names"))?.0)
        };
        for split in records.splits(key)? {
            records.delete_split(key, split.whole)?;
        }
        for hidden in records.hidden(key)? {
            records.delete_hidden(key, hidden.operation)?;
        }
        for branch in records.branches(key)? {
            records.delete_branch(key, &branch.id)?;
        }
        let before = records.bookmarks_in(key)?;
        for bookmark in &before {
            records.delete_bookmark(&bookmark.project, &bookmark.name)?;
        }
        for (whole, left, right, operation) in &self.splits {
            records.insert_split(&Split {
                conversation: key,
                whole: find(whole)?,
                left: find(left)?,
                right: find(right)?,
                operation: *operation,
            })?;
        }
        for (root, by, operation) in &self.hidden {
            let root = find(root)?;
            hide(records, key, root, *by, *operation)?;
        }
        for (branch, tip) in &self.branches {
            let tip = tip.as_ref().map(find).transpose()?;
            records.put_branch(&Branch { conversation: key, tip, ..branch.clone() })?;
        }
        let mut renamed = Vec::new();
        for (name, turn, created_at) in &self.bookmarks {
            let project = self.conversation.project.clone();
            let (turn, created_at) = (find(turn)?, *created_at);
            let mut bookmark =
                Bookmark { project, name: name.clone(), conversation: key, turn, created_at };
            let previous = self.previous_bookmark(&before, &bookmark);
            self.choose_bookmark_name(records, stored_operations, previous, &mut bookmark)?;
            records.put_bookmark(&bookmark)?;
            let new = !before.iter().any(|it| it.name == bookmark.name);
            let from = match previous {
                Some(previous) => {
                    Some(&previous.name).filter(|previous| **previous != bookmark.name)
                }
                None => Some(name).filter(|name| **name != bookmark.name && new),
            };
            renamed
                .extend(from.map(|from| Renamed { from: from.clone(), to: bookmark.name.clone() }));
        }
        Ok(renamed)
    }

    /// Returns the existing bookmark that corresponds to an incoming one: it may have one name here
    /// and another one there, and may have followed a turn that was split or deleted.
    fn previous_bookmark<'b>(
        &self,
        before: &'b [Bookmark],
        bookmark: &Bookmark,
    ) -> Option<&'b Bookmark> {
        let (limits, name) = (&self.limits, &bookmark.name);
        let related = |it: &&Bookmark| {
            it.name.is_numbered(name, limits) || name.is_numbered(&it.name, limits)
        };
        let same = || before.iter().filter(|it| it.created_at == bookmark.created_at);
        let unmoved = || same().filter(|it| it.turn == bookmark.turn);
        let exact = same().find(|it| it.name == *name);
        exact.or_else(|| unmoved().find(related)).or_else(|| same().find(related))
    }

    /// Returns whether a name is used for something else in this conversation: another incoming
    /// bookmark, a logged one, or a branch.
    fn is_other_name(&self, name: &Name, bookmark: &Bookmark) -> bool {
        let logged = |operation: &Operation| {
            let changes = detail(operation).map(|entry| entry.changes).unwrap_or_default();
            changes.into_iter().rev().find_map(|change| match change {
                LoggedChange::Bookmark { name: logged, after, .. } if logged == *name => {
                    Some(after)
                }
                _ => None,
            })
        };
        let last = self.operations.iter().rev().filter(|it| !it.undone).find_map(logged);
        let is_it = |image: BookmarkImage| image.created_at == bookmark.created_at;
        self.bookmarks.iter().any(|(arrives, ..)| arrives == name)
            || self.branches.iter().any(|(branch, _)| branch.name == *name)
            || last.is_some_and(|image| !image.is_some_and(is_it))
    }

    /// Finds the name for a bookmark that arrives: the one that it had here before; its own, if
    /// that is free or was taken away from the turn that has it here; else one with a number.
    fn choose_bookmark_name(
        &self,
        records: &mut dyn Write,
        stored_operations: u64,
        previous: Option<&Bookmark>,
        bookmark: &mut Bookmark,
    ) -> Result<()> {
        let name = bookmark.name.clone();
        // Each side keeps its own name.
        if self.policy.names == NameConflicts::Numbered
            && let Some(previous) = previous
            && (previous.name == name || !self.is_other_name(&previous.name, bookmark))
            && records.bookmark(&bookmark.project, &previous.name)?.is_none()
        {
            bookmark.name = previous.name.clone();
            return Ok(());
        }
        let Some(other) = records.bookmark(&bookmark.project, &name)? else { return Ok(()) };
        if self.policy.names == NameConflicts::Refused {
            let (what, name) = ("bookmark", name.to_string());
            let advice = " in this project; import into another one, or remove it first";
            return Err(Error::Exists { what, name, advice });
        }
        if self.moved_bookmark(records, stored_operations, &other)? {
            return Ok(records.delete_bookmark(&other.project, &other.name)?);
        }
        for number in 1_u64.. {
            let free = name.numbered(number, &self.limits);
            if records.bookmark(&bookmark.project, &free)?.is_none()
                && !self.is_other_name(&free, bookmark)
            {
                bookmark.name = free;
                break;
            }
        }
        Ok(())
    }

    /// Returns whether an operation that is new here moved this very bookmark into the
    /// conversation.
    fn moved_bookmark(
        &self,
        records: &dyn Write,
        stored_operations: u64,
        other: &Bookmark,
    ) -> Result<bool> {
        let named = || format!("bookmark {}", other.name);
        let owner = required(records.conversation_by_key(other.conversation)?, named)?;
        let turn = required(records.turn(other.turn)?, named)?;
        let here =
            BookmarkImage { conversation: owner.id, turn: turn.id, created_at: other.created_at };
        let newer = self.operations.iter().filter(|it| it.seq > stored_operations && !it.undone);
        let changes = newer
            .filter_map(|it| detail(it).ok())
            .flat_map(|stored_operations| stored_operations.changes);
        Ok(changes.into_iter().any(|change| match change {
            LoggedChange::Bookmark { name, before, .. } => {
                name == other.name && before.as_ref() == Some(&here)
            }
            _ => false,
        }))
    }
}

/// Updates the mutable fields of an existing turn; returns whether it was erased.
fn carry_forward(records: &mut dyn Write, here: &Turn, there: &Turn) -> Result<bool> {
    match (&here.content, &there.content) {
        (Content::Kept(_), Content::Purged(digest)) => {
            records.purge_turn(here.loc, digest)?;
            return Ok(true);
        }
        (Content::Kept(_), Content::Kept(_)) if here.metadata != there.metadata => {
            records.set_metadata(here.loc, &there.metadata)?;
        }
        _ => {}
    }
    Ok(false)
}

/// Returns where the next child of a turn goes: the first in its parent's segment, others in a new
/// one.
fn next_place(
    records: &mut dyn Write,
    key: ConversationKey,
    parent: Option<TurnLoc>,
    depth: u32,
) -> Result<TurnLoc> {
    if let Some(parent) = parent
        && parent.index + 1 < SEGMENT_TURNS
        && records.last_index(parent.segment)? == parent.index
    {
        return Ok(parent.next());
    }
    let segment = records.insert_segment(key, parent, depth)?;
    Ok(TurnLoc { segment, index: 0 })
}

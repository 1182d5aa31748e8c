//! Running a change: idempotency first, then the rules, then one entry in the log.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tine_core::hash::{self, OperationSeal};
use tine_core::ids::check_key;
use tine_core::json::{Json, Object};
use tine_core::{
    BranchId, ConversationId, Digest, EntityId, InterpretationId, Name, OperationHash, ProjectId,
    Timestamp, TurnHash, TurnId,
};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, Detail, HiddenBy, Idempotency, Operation,
    Project, Read, Root, Turn, TurnLoc, Visibility, Write, required,
};

use crate::log::canonical_writer::canonicalize;
use crate::log::change::{BookmarkImage, BranchImage, LoggedChange, OperationDetail};
use crate::tree::shown::{Tree, hide};
use crate::tree::views::{self, ViewOrId};
use crate::{
    BookmarkView, BranchView, Call, ConversationView, Engine, Error, Purged, Result, TurnView,
    Undone,
};

/// The answer to a change, as stored for replays. It holds no content: content is looked up again,
/// so that an erasure leaves nothing here.
pub(crate) trait Receipt: Serialize + DeserializeOwned {
    /// Reads a receipt, also one of an earlier release.
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Loads the views that a replayed answer only names. Runs in the call's transaction, so that
    /// all records come from one snapshot.
    fn load_views(&mut self, _records: &dyn Read, _project: &ProjectId) -> Result<()> {
        Ok(())
    }
}

macro_rules! receipts {
    ($($type:ty),*) => {
        $(impl Receipt for $type {})*
    };
}

// Answers without content are their own receipts.
receipts! { (), BookmarkView, BranchView, EntityId, Purged, Undone }

/// What an idempotency key covers, as canonical JSON.
pub(crate) struct Payload(pub String);

impl From<Json> for Payload {
    fn from(json: Json) -> Self {
        Payload(json.to_canonical())
    }
}

/// Whether an answer is fresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    pub replayed: bool,
    /// The work that the first call did has been undone since.
    pub undone: bool,
}

/// The id under which the log of what is done outside of every conversation is found.
pub(crate) const PROJECT_LOG: &str = "~project";

/// The ids that a call has minted. A store may run a transaction more than once; every attempt gets
/// the same ids.
#[derive(Default)]
struct MintedIds {
    ids: RefCell<Vec<[u8; 16]>>,
    next: Cell<usize>,
}

impl MintedIds {
    fn begin(&self) {
        self.next.set(0);
    }

    fn next(&self, draw: impl FnOnce() -> [u8; 16]) -> [u8; 16] {
        let mut ids = self.ids.borrow_mut();
        let next = self.next.replace(self.next.get() + 1);
        if next == ids.len() {
            ids.push(draw());
        }
        ids[next]
    }
}

/// A change in progress: the transaction, and what is to be logged.
pub(crate) struct Mutation<'m> {
    pub engine: &'m Engine,
    pub call: &'m Call,
    pub records: &'m mut dyn Write,
    pub now: Timestamp,
    pub kind: &'static str,
    pub conversation: Option<Conversation>,
    minted: &'m MintedIds,
    /// The id of the next turn, if it was promised.
    promised: Cell<Option<TurnId>>,
    seq: u64,
    /// The hash of the operation before this one.
    previous: Option<OperationHash>,
    /// Ids and hashes of turns read or made so far.
    turn_names: RefCell<HashMap<TurnLoc, (TurnId, TurnHash)>>,
    changes: Vec<LoggedChange>,
    depends_on: BTreeSet<u64>,
    facts: Object,
}

impl Engine {
    /// Runs the rules of one operation in one transaction.
    ///
    /// `payload` is what the call's key stands for: everything that the caller sent.
    pub(crate) fn mutate<Q: Send + 'static, P: Into<Payload>, R: Receipt + Send + 'static>(
        &self,
        call: &Call,
        kind: &'static str,
        request: Q,
        payload: impl FnOnce(&Q) -> P,
        rules: impl Fn(&mut Mutation<'_>, &Q) -> Result<R> + Send + 'static,
    ) -> Result<(R, Replay)> {
        self.mutate_if(true, call, kind, request, payload, rules)
    }

    /// Like `mutate`, but rolls the transaction back unless `keep` is set: a dry run with the same
    /// answer.
    pub(crate) fn mutate_if<Q: Send + 'static, P: Into<Payload>, R: Receipt + Send + 'static>(
        &self,
        keep: bool,
        call: &Call,
        kind: &'static str,
        request: Q,
        payload: impl FnOnce(&Q) -> P,
        rules: impl Fn(&mut Mutation<'_>, &Q) -> Result<R> + Send + 'static,
    ) -> Result<(R, Replay)> {
        let fingerprint = match &call.idempotency_key {
            None => None,
            Some(key) => {
                check_key("idempotency key", key, self.limits())?;
                let Payload(payload) = payload(&request).into();
                let signed = format!("{{\"operation\":\"{kind}\",\"payload\":{payload}}}");
                debug_assert_eq!(canonicalize(&signed).as_ref(), Some(&signed));
                Some(Digest::of(signed.as_bytes()))
            }
        };
        check_key("actor", &call.actor, self.limits())?;
        let now = self.now();
        let (engine, call, minted) = (self.clone(), call.clone(), MintedIds::default());
        self.write_if(keep, move |records| {
            minted.begin();
            if let (Some(key), Some(fingerprint)) = (&call.idempotency_key, fingerprint)
                && let Some(first) = records.idempotent(&call.project, key)?
            {
                let (mut receipt, replay): (R, Replay) = replay(key, &fingerprint, &first)?;
                receipt.load_views(&*records, &call.project)?;
                return Ok((receipt, replay));
            }
            let mut mutation = Mutation::begin(&engine, &call, records, now, kind, &minted);
            let receipt = rules(&mut mutation, &request)?;
            mutation.note_redacted();
            mutation.record(fingerprint, &receipt)?;
            Ok((receipt, Replay::default()))
        })
    }
}

/// Several operations in one transaction, committed or rolled back as a whole.
pub(crate) struct OperationBatch<'m> {
    engine: &'m Engine,
    call: &'m Call,
    records: &'m mut dyn Write,
    now: Timestamp,
    minted: &'m MintedIds,
}

impl OperationBatch<'_> {
    /// Runs the rules of the next operation. One that changes nothing leaves no entry in the log.
    pub(crate) fn operation<T>(
        &mut self,
        kind: &'static str,
        rules: impl FnOnce(&mut Mutation<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut mutation =
            Mutation::begin(self.engine, self.call, self.records, self.now, kind, self.minted);
        let answer = rules(&mut mutation)?;
        mutation.note_redacted();
        mutation.record(None, &())?;
        Ok(answer)
    }

    pub(crate) fn reader(&self) -> &dyn Read {
        &*self.records
    }

    /// Returns the records, for writes that are not logged.
    pub(crate) fn records(&mut self) -> &mut dyn Write {
        self.records
    }

    pub(crate) fn call(&self) -> &Call {
        self.call
    }
}

impl Engine {
    /// Runs several operations in one transaction. They take no key: repeating them must add
    /// nothing by their own rules.
    pub(crate) fn mutate_batch<Q: Send + 'static, T: Send + 'static>(
        &self,
        call: &Call,
        request: Q,
        rules: impl Fn(&mut OperationBatch<'_>, &Q) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        check_key("actor", &call.actor, self.limits())?;
        let now = self.now();
        let (engine, call, minted) = (self.clone(), call.clone(), MintedIds::default());
        self.write(move |records| {
            minted.begin();
            let mut steps =
                OperationBatch { engine: &engine, call: &call, records, now, minted: &minted };
            rules(&mut steps, &request)
        })
    }
}

/// Returns the chain hash of an operation that follows `previous`.
pub(crate) fn seal(
    conversation: &ConversationId,
    operation: &Operation,
    previous: Option<&OperationHash>,
) -> OperationHash {
    hash::operation_hash(&OperationSeal {
        conversation_id: conversation.as_str(),
        seq: operation.seq,
        previous,
        kind: &operation.kind,
        actor: &operation.actor,
        at: operation.at,
        detail: &operation.detail.digest(),
    })
}

fn replay<R: Receipt>(key: &str, fingerprint: &Digest, first: &Operation) -> Result<(R, Replay)> {
    let idempotency = required(first.idempotency.as_ref(), || format!("key {key}"))?;
    if idempotency.fingerprint != *fingerprint {
        return Err(Error::IdempotencyMismatch { key: key.to_owned() });
    }
    let receipt = required(R::read(&idempotency.answer), || format!("answer to key {key}"))?;
    Ok((receipt, Replay { replayed: true, undone: first.undone }))
}

impl<'m> Mutation<'m> {
    /// Refuses a promised id that a turn already has.
    pub(crate) fn refuse_existing_turn(&self, id: TurnId) -> Result<()> {
        match self.reader().find_turn(&self.call.project, &id)? {
            None => Ok(()),
            Some(_) => {
                let advice = "; promise another id";
                Err(Error::Exists { what: "turn", name: id.to_string(), advice })
            }
        }
    }

    fn begin(
        engine: &'m Engine,
        call: &'m Call,
        records: &'m mut dyn Write,
        now: Timestamp,
        kind: &'static str,
        minted: &'m MintedIds,
    ) -> Self {
        Mutation {
            engine,
            call,
            records,
            now,
            kind,
            conversation: None,
            minted,
            promised: Cell::default(),
            seq: 0,
            previous: None,
            turn_names: RefCell::default(),
            changes: Vec::new(),
            depends_on: BTreeSet::new(),
            facts: Object::new(),
        }
    }

    /// Logs how many secrets were redacted.
    fn note_redacted(&mut self) {
        if !self.call.redacted.is_empty() {
            let counts =
                self.call.redacted.iter().map(|(kind, count)| (kind.clone(), (*count).into()));
            self.fact_if_changed("redacted", counts.collect::<Object>());
        }
    }

    /// The next turn has this id.
    pub(crate) fn promise(&self, id: TurnId) {
        self.promised.set(Some(id));
    }

    pub(crate) fn new_turn_id(&self) -> TurnId {
        self.promised.take().unwrap_or_else(|| TurnId::from_bytes(self.new_id()))
    }

    pub(crate) fn new_branch_id(&self) -> BranchId {
        BranchId::from_bytes(self.new_id())
    }

    pub(crate) fn new_interpretation_id(&self) -> InterpretationId {
        InterpretationId::from_bytes(self.new_id())
    }

    pub(crate) fn new_entity_id(&self) -> EntityId {
        EntityId::from_bytes(self.new_id())
    }

    /// Returns a sequence number for an observation: milliseconds and two random bytes.
    pub(crate) fn new_seq(&self) -> u64 {
        let id = self.new_id();
        let time = id.iter().take(6).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        time << 16 | u64::from(id[14]) << 8 | u64::from(id[15])
    }

    fn new_id(&self) -> [u8; 16] {
        self.minted.next(|| self.engine.new_id(self.now))
    }

    /// Selects the conversation whose log this operation is appended to.
    pub(crate) fn open(&mut self, conversation: Conversation) -> Result<()> {
        let (seq, hash) = self.records.log_end(conversation.key)?.unzip();
        self.previous = hash;
        self.seq = seq.unwrap_or(0) + 1;
        self.conversation = Some(conversation);
        Ok(())
    }

    /// Selects the project's own log, unless a log is selected already: records stored along with a
    /// turn are logged in the turn's conversation.
    pub(crate) fn open_project_log(&mut self) -> Result<()> {
        if self.conversation.is_some() {
            return Ok(());
        }
        let project = &self.call.project;
        let id = ConversationId::from_stored(PROJECT_LOG);
        if let Some(existing) = self.records.conversation(project, &id)? {
            return self.open(existing);
        }
        self.ensure_project()?;
        let root = Root { system_prompt: None, config: Json::Null };
        let mut log = Conversation {
            key: ConversationKey::NONE,
            project: self.call.project.clone(),
            id,
            root_hash: hash::root_hash(None, &root.config),
            root: Some(root),
            title: None,
            metadata: Json::Object(Object::new()),
            created_at: self.now,
            derived_from: None,
            visibility: Visibility::ProjectLog,
        };
        log.key = self.records.insert_conversation(&log)?;
        self.open(log)
    }

    pub(crate) fn ensure_project(&mut self) -> Result<()> {
        let (id, created_at) = (self.call.project.clone(), self.now);
        if self.records.project(&id)?.is_none() {
            self.records.insert_project(&Project { id, created_at })?;
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> &dyn Read {
        &*self.records
    }

    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree::new(self.reader(), self.key())
    }

    /// Returns the conversation's key. Every rule opens its conversation first.
    pub(crate) fn key(&self) -> ConversationKey {
        self.conversation().key
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        self.conversation.as_ref().expect("every rule opens its conversation first")
    }

    /// Returns the number that this operation will have in the log.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Adds a change. Several changes of one record are combined: its state before the first and
    /// after the last.
    pub(crate) fn changed(&mut self, change: LoggedChange) {
        if let LoggedChange::Observed { .. } = change {
            return self.changes.push(change);
        }
        match self.changes.iter_mut().find(|earlier| earlier.same_record(&change)) {
            Some(earlier) => earlier.then(change),
            None => self.changes.push(change),
        }
    }

    /// Drops all changes except observations.
    pub(crate) fn forget_changes(&mut self) {
        self.changes.retain(|change| matches!(change, LoggedChange::Observed { .. }));
    }

    pub(crate) fn depends_on(&mut self, operation: u64) {
        self.depends_on.insert(operation);
    }

    pub(crate) fn depends_on_all(&mut self, operations: impl IntoIterator<Item = u64>) {
        self.depends_on.extend(operations);
    }

    pub(crate) fn fact(&mut self, name: &str, value: impl Into<Json>) {
        self.facts.insert(name, value.into());
    }

    /// Adds a fact under a name; several become a list.
    pub(crate) fn fact_also(&mut self, name: &str, value: impl Into<Json>) {
        let value = value.into();
        let values = match self.facts.remove(name) {
            None => value,
            Some(Json::Array(mut values)) => {
                values.push(value);
                Json::Array(values)
            }
            Some(first) => Json::Array(vec![first, value]),
        };
        self.facts.insert(name, values);
    }

    /// A fact that matters only when something happened.
    pub(crate) fn fact_if_changed(&mut self, name: &str, value: impl Into<Json>) {
        if !self.changes.is_empty() {
            self.fact(name, value);
        }
    }

    /// Adds a dependency on the operation that made a turn.
    pub(crate) fn depends_on_turn(&mut self, loc: Option<TurnLoc>) -> Result<()> {
        if let Some(loc) = loc {
            let turn = self.tree().turn(loc)?;
            self.remember_turn(&turn);
            self.depends_on(turn.operation);
        }
        Ok(())
    }

    /// Caches a turn's id and hash.
    pub(crate) fn remember_turn(&self, turn: &Turn) {
        self.turn_names.borrow_mut().insert(turn.loc, (turn.id, turn.hash));
    }

    fn id_and_hash(&self, loc: Option<TurnLoc>) -> Result<Option<(TurnId, TurnHash)>> {
        let Some(loc) = loc else {
            return Ok(None);
        };
        if let Some(cached) = self.turn_names.borrow().get(&loc) {
            return Ok(Some(*cached));
        }
        let turn = self.tree().turn(loc)?;
        self.remember_turn(&turn);
        Ok(Some((turn.id, turn.hash)))
    }

    /// Refuses the call when its branch is not in the state that the caller has seen.
    pub(crate) fn check_seen(&self, branch: Option<&Branch>, name: &Name) -> Result<()> {
        let Some(seen) = self.call.if_branch else {
            return Ok(());
        };
        if branch.is_some_and(|branch| (branch.id, branch.version) == (seen.id, seen.version)) {
            return Ok(());
        }
        let tip = self.id_and_hash(branch.and_then(|branch| branch.tip))?;
        let (actual, actual_hash) = tip.unzip();
        Err(Error::Stale { branch: name.clone(), actual, actual_hash })
    }

    /// Returns a turn of the open conversation as this operation leaves it.
    pub(crate) fn viewed_turn(&self, loc: TurnLoc) -> Result<ViewOrId<TurnView>> {
        let id = &self.conversation().id;
        Ok(ViewOrId::view(views::turn_at(&self.tree(), id, loc)?))
    }

    /// Returns the open conversation as this operation leaves it.
    pub(crate) fn conversation_view(&self) -> Result<ConversationView> {
        let mut view = views::conversation(self.reader(), self.conversation())?;
        if self.is_recorded() {
            view.changed_at = self.now;
        }
        Ok(view)
    }

    /// Returns whether there will be an entry in the log. A call that changed nothing leaves none,
    /// unless it has an idempotency key.
    fn is_recorded(&self) -> bool {
        let remembered = self.call.idempotency_key.is_some();
        remembered || !self.changes.is_empty() || !self.facts.is_empty()
    }

    /// Returns a branch of the open conversation as callers see it.
    pub(crate) fn branch_view(&self, branch: &Branch) -> Result<BranchView> {
        let (tip, tip_hash) = self.id_and_hash(branch.tip)?.unzip();
        let conversation = self.conversation().id.clone();
        Ok(views::branch_with(conversation, branch, tip, tip_hash))
    }

    pub(crate) fn branch_image(&self, branch: &Branch) -> Result<BranchImage> {
        Ok(BranchImage {
            name: branch.name.clone(),
            tip: self.id_and_hash(branch.tip)?.map(|(id, _)| id),
            forked_from: branch.forked_from,
            created_at: branch.created_at,
            version: branch.version,
        })
    }

    /// Adds, moves or renames a branch and notes the change.
    pub(crate) fn put_branch(&mut self, before: Option<&Branch>, after: &Branch) -> Result<()> {
        let change = LoggedChange::Branch {
            id: after.id,
            before: before.map(|branch| self.branch_image(branch)).transpose()?,
            after: Some(self.branch_image(after)?),
        };
        self.records.put_branch(after)?;
        self.changed(change);
        Ok(())
    }

    /// Moves a branch's tip.
    pub(crate) fn move_branch(&mut self, branch: &Branch, tip: Option<TurnLoc>) -> Result<Branch> {
        let moved = Branch { tip, version: branch.version + 1, ..branch.clone() };
        self.put_branch(Some(branch), &moved)?;
        Ok(moved)
    }

    /// Removes a branch and notes the change.
    pub(crate) fn delete_branch(&mut self, branch: &Branch) -> Result<()> {
        let before = Some(self.branch_image(branch)?);
        self.records.delete_branch(branch.conversation, &branch.id)?;
        self.changed(LoggedChange::Branch { id: branch.id, before, after: None });
        Ok(())
    }

    pub(crate) fn bookmark_image(&self, bookmark: &Bookmark) -> Result<BookmarkImage> {
        let owner = self.reader().conversation_by_key(bookmark.conversation)?;
        let owner = required(owner, || format!("conversation of bookmark {}", bookmark.name))?;
        let turn = self.reader().turn(bookmark.turn)?;
        let turn = required(turn, || format!("turn of bookmark {}", bookmark.name))?;
        Ok(BookmarkImage { conversation: owner.id, turn: turn.id, created_at: bookmark.created_at })
    }

    /// Adds, moves or removes a bookmark and notes the change.
    pub(crate) fn change_bookmark(
        &mut self,
        before: Option<&Bookmark>,
        after: Option<&Bookmark>,
    ) -> Result<()> {
        let Some(bookmark_record) = before.or(after) else {
            return Ok(());
        };
        let (name, project) = (bookmark_record.name.clone(), bookmark_record.project.clone());
        let before = before.map(|bookmark| self.bookmark_image(bookmark)).transpose()?;
        let image = after.map(|bookmark| self.bookmark_image(bookmark)).transpose()?;
        match after {
            Some(bookmark) => self.records.put_bookmark(bookmark)?,
            None => self.records.delete_bookmark(&project, &name)?,
        }
        self.changed(LoggedChange::Bookmark { name, before, after: image });
        Ok(())
    }

    /// Hides a turn, alone or with all below it, under this operation or an earlier one.
    pub(crate) fn hide(&mut self, root: TurnLoc, by: HiddenBy, operation: u64) -> Result<()> {
        let conversation = self.key();
        hide(self.records, conversation, root, by, operation)
    }

    /// Writes the log's entry, if there is to be one.
    fn record<R: Receipt>(&mut self, fingerprint: Option<Digest>, receipt: &R) -> Result<()> {
        if !self.is_recorded() {
            return Ok(());
        }
        self.depends_on.remove(&self.seq);
        let detail = OperationDetail {
            changes: std::mem::take(&mut self.changes),
            depends_on: self.depends_on.iter().copied().collect(),
            facts: std::mem::take(&mut self.facts),
        };
        let detail = Detail::Kept(detail.to_canonical());
        let conversation = self.conversation();
        let digest = detail.digest();
        let hash = hash::operation_hash(&OperationSeal {
            conversation_id: conversation.id.as_str(),
            seq: self.seq,
            previous: self.previous.as_ref(),
            kind: self.kind,
            actor: &self.call.actor,
            at: self.now,
            detail: &digest,
        });
        let idempotency = match (&self.call.idempotency_key, fingerprint) {
            (Some(key), Some(fingerprint)) => {
                let answer = serde_json::to_string(receipt);
                let answer = answer.expect("a receipt has no maps with other keys than texts");
                Some(Idempotency { key: key.clone(), fingerprint, answer })
            }
            _ => None,
        };
        let operation = Operation {
            conversation: conversation.key,
            seq: self.seq,
            kind: self.kind.to_owned(),
            actor: self.call.actor.clone(),
            at: self.now,
            detail,
            hash,
            undone: false,
            idempotency,
        };
        self.records.insert_operation(&operation)?;
        Ok(())
    }
}

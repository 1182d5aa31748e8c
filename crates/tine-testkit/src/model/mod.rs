//! The reference model: the simplest possible implementation of the tree, which the engine is
//! checked against.
//!
//! Everything that can change is one map from [`Key`] to [`ModelValue`]; an operation is a list of
//! what it read and wrote there, so that undo, redo and dependencies need no rules of their own.
//! Turns are a vector that only grows; every question is answered by walking the whole tree.
//!
//! Where the contract leaves two behaviours open, the model says so ([`ReferenceModel::tolerate`],
//! [`Stop::Unspecified`], [`Recorded::Maybe`]) and follows the engine; everything else must be
//! exactly as the model says.
//!
//! Deliberately absent: persistence, segments, any idea of cost, and any line of engine code.
//! Ids are taken from the engine's answers, because only it can generate them.

mod append;
mod change;
mod predict;
mod remove;
mod roots;
mod tree;
mod undo;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use tine_core::hash::{message_digest, turn_hash};
use tine_core::metadata::MetadataKey;
use tine_core::{
    Body, BranchId, ConversationId, Digest, ErrorKind, Json, Message, Metadata, Role, RootHash,
    Status, Timestamp, TurnHash, TurnId,
};

pub use self::predict::{Expected, Prediction};
pub use self::tree::ShownTurn;

/// A position in one of the model's vectors.
pub type Ix = usize;

/// Whether and why a turn is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelTurnState {
    /// Its making was undone.
    Unborn,
    Live,
    Split {
        left: Ix,
        right: Ix,
    },
    /// Deleted, with everything below.
    Cascade,
    /// Deleted alone.
    Reparent,
}

/// Which half of a split turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Left,
    Right,
}

/// The immutable part of a turn.
#[derive(Clone, Debug)]
pub struct ModelTurn {
    pub conversation: Ix,
    /// Its raw parent; `None` is the root.
    pub parent: Option<Ix>,
    pub role: Role,
    pub body: Body,
    pub call: Option<String>,
    /// The digest that identifies equal messages.
    pub digest: Digest,
    pub created_at: Timestamp,
    pub status: Status,
    /// The turn it is a version of.
    pub edited_from: Option<Ix>,
    /// The turn it is a copy of.
    pub derived_from: Option<Ix>,
    /// The turn it is a half of.
    pub part: Option<(Half, Ix)>,
    pub hash: TurnHash,
    /// Raw distance from the root.
    pub depth: u32,
    /// Its id, once the engine has returned it.
    pub id: Option<TurnId>,
    pub purged: bool,
}

/// The immutable part of a conversation.
#[derive(Clone, Debug)]
pub struct ModelConversation {
    pub id: ConversationId,
    pub root_hash: RootHash,
    pub prompt: Option<String>,
    pub config: Json,
    /// The conversation and turn it comes from.
    pub derived_from: Option<(Ix, Option<Ix>)>,
    pub created_at: Timestamp,
    /// Entries of its log.
    pub log: u64,
}

/// The immutable part of a branch.
#[derive(Clone, Debug)]
pub struct ModelBranch {
    pub conversation: Ix,
    /// Its id, once the engine has returned it.
    pub id: Option<BranchId>,
}

/// Names one record that can change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Conversation(Ix),
    /// A conversation's title, metadata or archive mark.
    Field(Ix, &'static str),
    Turn(Ix),
    /// One key of a turn's metadata.
    Meta(Ix, MetadataKey),
    /// Which branch has a name.
    Name(Ix, String),
    Tip(Ix),
    Mark(String),
}

/// The value of a record; absent records are `Nothing`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ModelValue {
    #[default]
    Nothing,
    There,
    State(ModelTurnState),
    Json(Json),
    Branch(Ix),
    /// A turn or the root.
    Place(Option<Ix>),
}

/// One change of one record.
#[derive(Clone, Debug)]
pub struct ModelChange {
    pub key: Key,
    pub before: ModelValue,
    pub after: ModelValue,
    /// Whether the contract leaves open that this counts as a write.
    pub weak: bool,
}

/// One entry of the log.
#[derive(Clone, Debug, Default)]
pub struct Op {
    pub conversation: Ix,
    /// Its place in that conversation's log.
    pub seq: u64,
    pub kind: &'static str,
    /// Records that it read.
    pub reads: BTreeSet<Key>,
    /// Records for which the contract leaves open whether it read them.
    pub weak_reads: BTreeSet<Key>,
    pub writes: Vec<ModelChange>,
    /// When it was undone, counted in undos; `None` while it holds.
    pub undone: Option<u64>,
    /// Where in all logs together it was last undone or redone: what came before that stood on
    /// another state of its records.
    pub since: Option<Ix>,
    /// Branch, tip before, tip after: for a revert.
    pub revert: Option<(Ix, Option<Ix>, Option<Ix>)>,
}

impl Op {
    /// Returns whether it can be undone at all.
    pub fn is_work(&self) -> bool {
        !matches!(self.kind, "undo" | "redo")
    }
}

/// Why a prediction stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The engine must refuse, with one of these kinds.
    Refuse(Vec<ErrorKind>),
    /// The contract says nothing; the step is left out.
    Unspecified,
}

/// Whether a call leaves an entry in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    Yes,
    No,
    /// The contract leaves it open.
    Maybe,
}

pub(crate) type Rule<T> = Result<T, Stop>;

pub(crate) fn refuse<T>(kinds: &[ErrorKind]) -> Rule<T> {
    Err(Stop::Refuse(kinds.to_vec()))
}

/// The state of the whole store.
#[derive(Clone, Debug, Default)]
pub struct ReferenceModel {
    pub nodes: Vec<ModelTurn>,
    pub conversations: Vec<ModelConversation>,
    pub branches: Vec<ModelBranch>,
    pub values: BTreeMap<Key, ModelValue>,
    /// Every entry of every log, in order.
    pub ops: Vec<Op>,
    /// Idempotency keys: fingerprint, operation.
    pub keys: BTreeMap<String, (String, Option<Ix>)>,
    pub(crate) open: Op,
    pub(crate) tolerated: Vec<ErrorKind>,
    pub(crate) undos: u64,
}

impl ReferenceModel {
    /// What a record says now.
    pub fn get(&self, key: &Key) -> ModelValue {
        self.values.get(key).cloned().unwrap_or_default()
    }

    /// The engine may refuse with this kind instead.
    pub(crate) fn tolerate(&mut self, kinds: &[ErrorKind]) {
        self.tolerated.extend_from_slice(kinds);
    }

    pub(crate) fn read(&mut self, key: Key) {
        self.open.reads.insert(key);
    }

    pub(crate) fn weak_read(&mut self, key: Key) {
        self.open.weak_reads.insert(key);
    }

    pub(crate) fn set(&mut self, key: Key, after: ModelValue) {
        self.change(key, after, false);
    }

    pub(crate) fn weak_set(&mut self, key: Key, after: ModelValue) {
        self.change(key, after, true);
    }

    fn change(&mut self, key: Key, after: ModelValue, weak: bool) {
        let before = self.get(&key);
        if before == after {
            return;
        }
        self.values.insert(key.clone(), after.clone());
        match self.open.writes.iter_mut().find(|change| change.key == key) {
            Some(earlier) => earlier.after = after,
            None => self.open.writes.push(ModelChange { key, before, after, weak }),
        }
    }

    /// Adds the open operation to a log, if it changed something or has to be remembered.
    pub(crate) fn record(&mut self, conversation: Ix, kind: &'static str, keyed: bool) -> Recorded {
        let open = std::mem::take(&mut self.open);
        if open.writes.is_empty() && !keyed && !matches!(kind, "undo" | "redo" | "purge") {
            // Said outright for an append; for the others the contract leaves it open.
            return if kind == "append" { Recorded::No } else { Recorded::Maybe };
        }
        let log = &mut self.conversations[conversation].log;
        *log += 1;
        let mut reads = open.reads;
        reads.insert(Key::Conversation(conversation));
        self.ops.push(Op { conversation, seq: *log, kind, reads, ..open });
        Recorded::Yes
    }

    /// Adds an entry that changed nothing, where the engine chose to keep one.
    pub fn record_nothing(&mut self, conversation: Ix) {
        let log = &mut self.conversations[conversation].log;
        *log += 1;
        let reads = BTreeSet::from([Key::Conversation(conversation)]);
        self.ops.push(Op { conversation, seq: *log, kind: "nothing", reads, ..Op::default() });
    }

    /// Returns a conversation that is there.
    pub fn conversation(&self, id: &ConversationId) -> Rule<Ix> {
        let found = (0..self.conversations.len()).rev().find(|&ix| {
            self.conversations[ix].id == *id
                && self.get(&Key::Conversation(ix)) == ModelValue::There
        });
        found.ok_or(Stop::Refuse(vec![ErrorKind::NotFound]))
    }

    /// Makes a turn under a live turn or the root; a hash that is taken moves its time on.
    pub(crate) fn make(
        &mut self,
        conversation: Ix,
        parent: Option<Ix>,
        message: &Message,
        now: Timestamp,
    ) -> Ix {
        let parent_hash = parent.map(|parent| self.nodes[parent].hash);
        let call = message.tool_call_id.as_deref();
        let hash_at = |at| turn_hash(parent_hash.as_ref(), message.role, &message.body, call, at);
        let mut created_at = message.created_at.unwrap_or(now);
        while self
            .nodes
            .iter()
            .any(|node| node.conversation == conversation && node.hash == hash_at(created_at))
        {
            created_at = created_at.next();
        }
        let ix = self.nodes.len();
        self.nodes.push(ModelTurn {
            conversation,
            parent,
            role: message.role,
            body: message.body.clone(),
            call: message.tool_call_id.clone(),
            digest: message_digest(message.role, &message.body, call),
            created_at,
            status: message.status,
            edited_from: None,
            derived_from: None,
            part: None,
            hash: hash_at(created_at),
            depth: parent.map_or(1, |parent| self.nodes[parent].depth + 1),
            id: None,
            purged: false,
        });
        self.set(Key::Turn(ix), ModelValue::State(ModelTurnState::Live));
        for key in MetadataKey::ALL {
            let value = message.metadata.get(key);
            if !value.is_null() {
                self.set(Key::Meta(ix, key), ModelValue::Json(value));
            }
        }
        ix
    }

    /// Takes over what the engine chose for a turn: only where the contract leaves it open.
    pub fn adopt(&mut self, turn: Ix, at: Timestamp, status: Status, metadata: &Metadata) {
        let node = &self.nodes[turn];
        let parent = node.parent.map(|parent| self.nodes[parent].hash);
        let hash = turn_hash(parent.as_ref(), node.role, &node.body, node.call.as_deref(), at);
        let node = &mut self.nodes[turn];
        (node.created_at, node.status, node.hash) = (at, status, hash);
        for key in MetadataKey::ALL {
            let value = metadata.get(key);
            let value = if value.is_null() { ModelValue::Nothing } else { ModelValue::Json(value) };
            self.values.insert(Key::Meta(turn, key), value);
        }
    }
}

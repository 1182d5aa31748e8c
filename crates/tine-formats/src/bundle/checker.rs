//! Checks that span the lines of a bundle: order, references, hash chains.
//!
//! The reader and the writer run the same checks. Memory is bounded by one conversation: an id
//! and a hash for each of its turns.
//!
//! Checks that need the store are left to the engine: whether the halves of a split make up its
//! turn, whether an id is taken, whether a history diverges from the stored one.

use std::collections::{HashMap, HashSet};

use tine_core::hash::{OperationSeal, operation_hash, root_hash, turn_hash};
use tine_core::{ConversationId, Digest, Name, OperationHash, SourceId, TurnHash, TurnId};
use tine_engine::{BundleRecord, DeltaScope, LogMark};
use tine_store::{Branch, Content, Conversation, Operation, RecordKey, Turn};

use super::encode;
use super::error::Fault;

/// The state of the checks after the lines read so far.
#[derive(Default)]
pub(super) struct BundleChecker {
    /// The range of a delta; `None` for a bundle of whole conversations.
    part: Option<DeltaRange>,
    /// The conversation that the current lines belong to.
    current: Option<ConversationProgress>,
    pub(super) conversations: u64,
    pub(super) turns: u64,
    pub(super) operations: u64,
}

/// The part of a conversation that a delta covers.
#[derive(Clone, Copy)]
pub(super) struct DeltaRange {
    pub(super) scope: DeltaScope,
    pub(super) since: Option<LogMark>,
}

struct ConversationProgress {
    id: ConversationId,
    /// The type of the last line.
    last: &'static str,
    turns: HashMap<TurnId, TurnHash>,
    hashes: HashSet<TurnHash>,
    /// The last name among records that are sorted by name.
    last_name: Option<Name>,
    last_operation: Option<OperationHash>,
    last_seq: u64,
    /// The highest operation that a record refers to.
    named_operation: u64,
    last_entry: Option<RecordKey>,
    last_piece: Option<(SourceId, u32)>,
}

impl BundleChecker {
    /// Creates a checker for the lines of a delta.
    pub(super) fn for_delta(part: DeltaRange) -> Self {
        BundleChecker { part: Some(part), ..BundleChecker::default() }
    }

    /// Accepts a turn that a delta refers to but does not contain.
    pub(super) fn accept_known_turn(&mut self, turn: TurnId, hash: TurnHash) -> Result<(), Fault> {
        if self.part.is_none() {
            return Err(Fault::UnknownRecord { record: KNOWN.to_owned() });
        }
        let current = self.current.as_mut().ok_or(Fault::Homeless { record: KNOWN })?;
        current.enter(KNOWN)?;
        match current.turns.insert(turn, hash) {
            None => Ok(()),
            Some(_) => Err(Fault::RepeatedTurn { turn }),
        }
    }

    /// Returns the hash that the record links to: of a turn's raw parent, or of the previous
    /// operation.
    pub(super) fn link(&self, record: &BundleRecord) -> Result<Option<Digest>, Fault> {
        if let BundleRecord::Conversation(_) = record {
            return Ok(None);
        }
        let homeless = Fault::Homeless { record: encode::name(record) };
        let current = self.current.as_ref().ok_or(homeless)?;
        match record {
            BundleRecord::Turn { parent: Some(parent), .. } => {
                Ok(Some(current.require_turn("parent_id", parent)?.0))
            }
            BundleRecord::Operation(_) => Ok(current.last_operation.map(|hash| hash.0)),
            _ => Ok(None),
        }
    }

    /// Checks a record against all records before it, and remembers it.
    pub(super) fn accept(&mut self, record: &BundleRecord) -> Result<(), Fault> {
        let link = self.link(record)?;
        if let BundleRecord::Conversation(Conversation { id, root_hash: stated, root, .. }) = record
        {
            self.end_conversation()?;
            if let Some(root) = root {
                let computed = root_hash(root.system_prompt.as_deref(), &root.config);
                check_hash(|| format!("root of `{id}`"), computed.0, stated.0)?;
            }
            self.current =
                Some(ConversationProgress::new(id.clone(), self.part.and_then(|part| part.since)));
            self.conversations += 1;
            return Ok(());
        }
        let kind = encode::name(record);
        let current = self.current.as_mut().ok_or(Fault::Homeless { record: kind })?;
        current.enter(kind)?;
        current.accept(record, link)?;
        match record {
            BundleRecord::Turn { .. } => self.turns += 1,
            BundleRecord::Operation(_) => self.operations += 1,
            _ => {}
        }
        Ok(())
    }

    /// Returns the last operation of the conversation so far.
    pub(super) fn log_end(&self) -> Option<LogMark> {
        let current = self.current.as_ref()?;
        current.last_operation.map(|hash| LogMark { seq: current.last_seq, hash })
    }

    /// Runs the checks that need all lines of a conversation.
    pub(super) fn end_conversation(&mut self) -> Result<(), Fault> {
        let current = self.current.take();
        if self.part.is_some_and(|part| part.scope == DeltaScope::Turns) {
            return Ok(());
        }
        match current {
            Some(ConversationProgress { last_seq: 0, id, .. }) => {
                Err(Fault::NoOperation { conversation: id })
            }
            Some(ConversationProgress { named_operation: named, last_seq: last, .. })
                if named > last =>
            {
                Err(Fault::UnknownOperation { named, last })
            }
            _ => Ok(()),
        }
    }
}

/// The record type of a turn that precedes a delta.
const KNOWN: &str = "known";

/// The order of the lines within a conversation.
const ORDER: [&str; 10] = [
    "conversation",
    KNOWN,
    "turn",
    "split",
    "hidden",
    "branch",
    "bookmark",
    "operation",
    "entry",
    "piece",
];

impl ConversationProgress {
    fn new(id: ConversationId, since: Option<LogMark>) -> Self {
        ConversationProgress {
            id,
            last: ORDER[0],
            turns: HashMap::new(),
            hashes: HashSet::new(),
            last_name: None,
            last_operation: since.map(|mark| mark.hash),
            last_seq: since.map_or(0, |mark| mark.seq),
            named_operation: 0,
            last_entry: None,
            last_piece: None,
        }
    }

    /// Checks the order of record types: grouped, in a fixed order.
    fn enter(&mut self, record: &'static str) -> Result<(), Fault> {
        let place = |name| ORDER.iter().position(|entry| *entry == name);
        if place(record) < place(self.last) {
            return Err(Fault::Order { record, after: self.last });
        }
        if record != self.last {
            self.last = record;
            self.last_name = None;
        }
        Ok(())
    }

    fn accept(&mut self, record: &BundleRecord, link: Option<Digest>) -> Result<(), Fault> {
        match record {
            BundleRecord::Conversation(_) => {}
            BundleRecord::Turn { turn, .. } => {
                let Turn { id, hash, role, content, tool_call_id, created_at, operation, .. } =
                    turn;
                if let Content::Kept(body) = content {
                    let parent = link.map(TurnHash);
                    let call = tool_call_id.as_deref();
                    let computed = turn_hash(parent.as_ref(), *role, body, call, *created_at);
                    check_hash(|| format!("turn {id}"), computed.0, hash.0)?;
                }
                if self.turns.insert(*id, *hash).is_some() || !self.hashes.insert(*hash) {
                    return Err(Fault::RepeatedTurn { turn: *id });
                }
                self.note_operation(*operation);
            }
            BundleRecord::Split { whole, left, right, operation } => {
                self.require_turn("turn_id", whole)?;
                self.require_turn("left_id", left)?;
                self.require_turn("right_id", right)?;
                self.note_operation(*operation);
            }
            BundleRecord::Hidden { root, operation, .. } => {
                self.require_turn("turn_id", root)?;
                self.note_operation(*operation);
            }
            BundleRecord::Branch { branch: Branch { name, forked_from, .. }, tip } => {
                for (key, turn) in [("tip", tip), ("forked_from", forked_from)] {
                    turn.as_ref().map(|turn| self.require_turn(key, turn)).transpose()?;
                }
                self.sorted("branch", name)?;
            }
            BundleRecord::Bookmark { name, turn, .. } => {
                self.require_turn("turn_id", turn)?;
                self.sorted("bookmark", name)?;
            }
            BundleRecord::Operation(operation) => {
                let Operation { seq, kind, actor, at, detail, hash, .. } = operation;
                let expected = self.last_seq.saturating_add(1);
                if *seq != expected {
                    return Err(Fault::Seq { expected, found: *seq });
                }
                let computed = operation_hash(&OperationSeal {
                    conversation_id: self.id.as_str(),
                    seq: *seq,
                    previous: self.last_operation.as_ref(),
                    kind,
                    actor,
                    at: *at,
                    detail: &detail.digest(),
                });
                check_hash(|| format!("operation {seq} of `{}`", self.id), computed.0, hash.0)?;
                self.last_operation = Some(*hash);
                self.last_seq = *seq;
            }
            BundleRecord::Record(record) => {
                if self.last_entry.as_ref().is_some_and(|last| last >= record.key()) {
                    let name = record.key().to_string();
                    return Err(Fault::Unsorted { record: "entry", name });
                }
                self.last_entry = Some(record.key().clone());
            }
            BundleRecord::Piece { source, nth, .. } => {
                let place = (*source, *nth);
                let follows = match self.last_piece {
                    Some((last, before)) if last == *source => *nth == before + 1,
                    Some((last, _)) => last < *source && *nth == 0,
                    None => *nth == 0,
                };
                if !follows {
                    let name = format!("{nth} of source {source}");
                    return Err(Fault::Unsorted { record: "piece", name });
                }
                self.last_piece = Some(place);
            }
        }
        Ok(())
    }

    fn require_turn(&self, key: &'static str, turn: &TurnId) -> Result<TurnHash, Fault> {
        self.turns.get(turn).copied().ok_or(Fault::UnknownTurn { key, turn: *turn })
    }

    /// Remembers a reference to an operation. Operations come last, so it is checked at the end.
    fn note_operation(&mut self, operation: u64) {
        self.named_operation = self.named_operation.max(operation);
    }

    fn sorted(&mut self, record: &'static str, name: &Name) -> Result<(), Fault> {
        if self.last_name.as_ref().is_some_and(|last| last >= name) {
            return Err(Fault::Unsorted { record, name: name.to_string() });
        }
        self.last_name = Some(name.clone());
        Ok(())
    }
}

fn check_hash(
    what: impl FnOnce() -> String,
    computed: Digest,
    stated: Digest,
) -> Result<(), Fault> {
    if computed == stated {
        return Ok(());
    }
    Err(Fault::Hash { what: what(), computed, stated })
}

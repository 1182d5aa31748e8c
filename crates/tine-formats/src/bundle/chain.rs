//! What must hold between the lines of a bundle: order, references, hash chains.
//!
//! The reader and the writer run the same checks. Memory is bounded by one conversation: an id
//! and a hash for each of its turns.
//!
//! Left to the engine, which sees the store as well: whether a split's halves make up its turn,
//! whether an id is taken, whether a history fits the one that is there.

use std::collections::{HashMap, HashSet};

use tine_core::hash::{OperationSeal, operation_hash, root_hash, turn_hash};
use tine_core::{ConversationId, Digest, Name, OperationHash, SourceId, TurnHash, TurnId};
use tine_engine::{BundleRecord, LogMark, Scope};
use tine_store::{Content, RecordKey};

use super::encode;
use super::error::Fault;

/// What has been seen so far.
#[derive(Default)]
pub(super) struct Chain {
    /// What the lines are of, where it is not whole conversations.
    part: Option<Part>,
    /// The conversation that lines belong to at present.
    current: Option<Current>,
    pub(super) conversations: u64,
    pub(super) turns: u64,
    pub(super) operations: u64,
}

/// Which part of a conversation is told.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) scope: Scope,
    pub(super) since: Option<LogMark>,
}

/// One conversation.
struct Current {
    id: ConversationId,
    /// The type of the last line.
    last: &'static str,
    turns: HashMap<TurnId, TurnHash>,
    hashes: HashSet<TurnHash>,
    /// The last name among records that are sorted by name.
    last_name: Option<Name>,
    last_operation: Option<OperationHash>,
    last_seq: u64,
    /// The latest operation that a record names as its maker.
    named_operation: u64,
    last_entry: Option<RecordKey>,
    last_piece: Option<(SourceId, u32)>,
}

impl Chain {
    /// A chain of lines that tell a part.
    pub(super) fn of(part: Part) -> Self {
        Chain { part: Some(part), ..Chain::default() }
    }

    /// Takes note of a turn that lines of a part name and do not bring.
    pub(super) fn know(&mut self, turn: TurnId, hash: TurnHash) -> Result<(), Fault> {
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

    /// The hash of what the record follows: of a turn's raw parent, of the operation before.
    pub(super) fn link(&self, record: &BundleRecord) -> Result<Option<Digest>, Fault> {
        if let BundleRecord::Conversation { .. } = record {
            return Ok(None);
        }
        let homeless = Fault::Homeless { record: encode::name(record) };
        let current = self.current.as_ref().ok_or(homeless)?;
        match record {
            BundleRecord::Turn { parent: Some(parent), .. } => {
                Ok(Some(current.known("parent_id", parent)?.0))
            }
            BundleRecord::Operation { .. } => Ok(current.last_operation.map(|hash| hash.0)),
            _ => Ok(None),
        }
    }

    /// Checks a record against all that came before it, and remembers it.
    pub(super) fn accept(&mut self, record: &BundleRecord) -> Result<(), Fault> {
        let link = self.link(record)?;
        if let BundleRecord::Conversation { id, root_hash: stated, root, .. } = record {
            self.end_conversation()?;
            if let Some(root) = root {
                let computed = root_hash(root.system_prompt.as_deref(), &root.config);
                check_hash(|| format!("root of `{id}`"), computed.0, stated.0)?;
            }
            self.current = Some(Current::new(id.clone(), self.part.and_then(|part| part.since)));
            self.conversations += 1;
            return Ok(());
        }
        let kind = encode::name(record);
        let current = self.current.as_mut().ok_or(Fault::Homeless { record: kind })?;
        current.enter(kind)?;
        current.accept(record, link)?;
        match record {
            BundleRecord::Turn { .. } => self.turns += 1,
            BundleRecord::Operation { .. } => self.operations += 1,
            _ => {}
        }
        Ok(())
    }

    /// The last operation of the conversation so far.
    pub(super) fn log_end(&self) -> Option<LogMark> {
        let current = self.current.as_ref()?;
        current.last_operation.map(|hash| LogMark { seq: current.last_seq, hash })
    }

    /// Checks what can be known only once all lines of a conversation are there.
    pub(super) fn end_conversation(&mut self) -> Result<(), Fault> {
        let current = self.current.take();
        if self.part.is_some_and(|part| part.scope == Scope::Turns) {
            return Ok(());
        }
        match current {
            Some(Current { last_seq: 0, id, .. }) => Err(Fault::NoOperation { conversation: id }),
            Some(Current { named_operation: named, last_seq: last, .. }) if named > last => {
                Err(Fault::UnknownOperation { named, last })
            }
            _ => Ok(()),
        }
    }
}

/// A line of a part about a turn from before it.
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

impl Current {
    fn new(id: ConversationId, since: Option<LogMark>) -> Self {
        Current {
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

    /// Records of one type stand together, the types in a fixed order.
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
            BundleRecord::Conversation { .. } => {}
            BundleRecord::Turn {
                id,
                hash,
                role,
                content,
                tool_call_id,
                created_at,
                operation,
                ..
            } => {
                if let Content::Kept(body) = content {
                    let parent = link.map(TurnHash);
                    let call = tool_call_id.as_deref();
                    let computed = turn_hash(parent.as_ref(), *role, body, call, *created_at);
                    check_hash(|| format!("turn {id}"), computed.0, hash.0)?;
                }
                if self.turns.insert(*id, *hash).is_some() || !self.hashes.insert(*hash) {
                    return Err(Fault::RepeatedTurn { turn: *id });
                }
                self.made_by(*operation);
            }
            BundleRecord::Split { whole, left, right, operation } => {
                self.known("turn_id", whole)?;
                self.known("left_id", left)?;
                self.known("right_id", right)?;
                self.made_by(*operation);
            }
            BundleRecord::Hidden { root, operation, .. } => {
                self.known("turn_id", root)?;
                self.made_by(*operation);
            }
            BundleRecord::Branch { name, tip, forked_from, .. } => {
                for (key, turn) in [("tip", tip), ("forked_from", forked_from)] {
                    turn.as_ref().map(|turn| self.known(key, turn)).transpose()?;
                }
                self.sorted("branch", name)?;
            }
            BundleRecord::Bookmark { name, turn, .. } => {
                self.known("turn_id", turn)?;
                self.sorted("bookmark", name)?;
            }
            BundleRecord::Operation { seq, kind, actor, at, detail, hash, .. } => {
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

    fn known(&self, key: &'static str, turn: &TurnId) -> Result<TurnHash, Fault> {
        self.turns.get(turn).copied().ok_or(Fault::UnknownTurn { key, turn: *turn })
    }

    /// Operations come last, so whether the named one is there is checked at the end.
    fn made_by(&mut self, operation: u64) {
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

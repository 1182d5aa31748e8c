//! Everything that can be read, read after each step and compared with the model; and the
//! invariants that need no model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tine_core::hash::{OperationSeal, operation_hash, turn_hash};
use tine_core::{Reference, TurnHash, TurnId};
use tine_engine::{
    BranchView, BundleRecord, ConversationView, Engine, FeedFilter, OperationView, Page, PathQuery,
    Tail, TopologyQuery, TopologyRow, TurnView,
};
use tine_store::{Content, FeedPosition, MemoryStore, Operation, Turn, copy::copy};

use super::compare::{same, without_digest};
use super::{Checked, Machine, engine};
use crate::model::{Ix, Key, ModelValue};
use crate::stores::FailingStore;

/// All that an engine returns for one conversation.
#[derive(Debug, PartialEq)]
struct ConversationReads {
    conversation: ConversationView,
    branches: Vec<BranchView>,
    topology: Vec<TopologyRow>,
    first: Vec<TurnId>,
    paths: Vec<Vec<TurnView>>,
    tails: Vec<Tail>,
    operations: Vec<OperationView>,
}

fn read_result<T>(result: tine_engine::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("a reading failed: {error}"))
}

impl Machine {
    pub(crate) fn there(&self) -> Vec<Ix> {
        let all = 0..self.model.conversations.len();
        all.filter(|&ix| self.model.get(&Key::Conversation(ix)) == ModelValue::There).collect()
    }

    /// Returns the export of everything, record by record.
    pub(crate) fn exports(&self, engine: &Engine) -> Result<Vec<BundleRecord>, String> {
        let mut records = vec![];
        for ix in self.there() {
            let id = &self.model.conversations[ix].id;
            read_result(engine.export(&self.call, id, &mut |record| {
                records.push(record);
                Ok(())
            }))?;
        }
        Ok(records)
    }

    /// Returns a path in pages of three.
    pub(crate) fn whole_path(
        &self,
        engine: &Engine,
        conversation: Ix,
        to: &str,
    ) -> Result<Vec<TurnView>, String> {
        let id = self.model.conversations[conversation].id.clone();
        let to = Reference::parse(to).map_err(|error| error.to_string())?;
        let mut turns = vec![];
        let mut cursor = None;
        loop {
            let query =
                PathQuery { cursor, limit: Some(3), ..PathQuery::of(id.clone()).to(to.clone()) };
            let page = read_result(engine.path(&self.call, query))?;
            turns.extend(page.turns);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(turns);
            }
        }
    }

    fn read_all(&self, engine: &Engine, ix: Ix) -> Result<ConversationReads, String> {
        let id = &self.model.conversations[ix].id;
        let branches = read_result(engine.branches(&self.call, id))?;
        let mut topology = vec![];
        let mut first = vec![];
        let mut cursor = None;
        loop {
            let query = TopologyQuery { cursor, limit: Some(7), ..TopologyQuery::of(id.clone()) };
            let page = read_result(engine.topology(&self.call, query))?;
            first = if topology.is_empty() { page.first } else { first };
            topology.extend(page.rows);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let leaves = topology.iter().filter(|row| row.children.is_empty());
        let paths = leaves.map(|leaf| self.whole_path(engine, ix, &leaf.id.to_string()));
        let paths = paths.collect::<Result<_, _>>()?;
        let tails = read_result(engine.tails(&self.call, id))?;
        let operations = read_result(engine.operations(&self.call, id, Page::default()))?.items;
        let conversation = read_result(engine.conversation(&self.call, id))?;
        Ok(ConversationReads { conversation, branches, topology, first, paths, tails, operations })
    }

    /// Returns where the contract leaves open that a call without effect is logged, the engine
    /// decides.
    pub(crate) fn adopt_log(&mut self) -> Checked {
        for ix in self.there() {
            let id = &self.model.conversations[ix].id;
            let newest = read_result(self.memory.operations(
                &self.call,
                id,
                Page { limit: Some(1), cursor: None },
            ))?;
            let log = newest.items.first().map_or(0, |op| op.seq);
            if log == self.model.conversations[ix].log + 1 {
                self.model.record_nothing(ix);
            }
        }
        Ok(())
    }

    /// Checks everything that can be seen, on both engines.
    pub(crate) fn check(&mut self) -> Checked {
        for ix in self.there() {
            let reading = self.read_all(&self.memory, ix)?;
            self.check_reading(ix, &reading)?;
            if let Some(embedded) = &self.embedded {
                same("what the embedded store shows", &self.read_all(embedded, ix)?, &reading)?;
            }
            self.check_outline(ix, &reading.topology)?;
        }
        let exports = self.exports(&self.memory)?;
        self.check_chain(&exports)?;
        check_verified(&self.memory)?;
        if let Some(embedded) = &self.embedded {
            same("the embedded store's export", &self.exports(embedded)?, &exports)?;
            if self.steps % 8 == 0 {
                check_verified(embedded)?;
            }
        }
        Ok(())
    }

    fn check_reading(&self, ix: Ix, got: &ConversationReads) -> Checked {
        let model = &self.model;
        let view = &got.conversation;
        let fields = (view.title.clone(), view.metadata.clone(), view.archived);
        same("title, metadata, archived", &fields, &model.fields(ix))?;
        let want = &model.conversations[ix];
        same("the root", &view.root_hash, &want.root_hash)?;
        same("the time of creation", &view.created_at, &want.created_at)?;
        let rows = model.topology(ix);
        same("the order of the tree", &ids(&got.topology), &ids(&rows))?;
        for (got, want) in got.topology.iter().zip(&rows) {
            let preview = if want.purged { got.preview.clone() } else { want.preview.clone() };
            same("a row of the topology", got, &TopologyRow { preview, ..want.clone() })?;
        }
        let first: Vec<TurnId> =
            rows.iter().filter(|row| row.parent.is_none()).map(|row| row.id).collect();
        same("the first turns", &got.first, &first)?;
        let leaves = model.shown(ix);
        let leaves = leaves.iter().filter(|row| model.children(ix, Some(row.turn)).is_empty());
        for (leaf, path) in leaves.zip(&got.paths) {
            let want: Vec<_> = model
                .path(Some(leaf.turn))
                .iter()
                .map(|&turn| without_digest(model.view(turn)))
                .collect();
            let path: Vec<_> = path.iter().cloned().map(without_digest).collect();
            same("a path", &path, &want)?;
        }
        let want: Vec<_> = model
            .branches_of(ix)
            .into_iter()
            .map(|(name, branch)| {
                let tip = model.tip(branch).and_then(|tip| model.nodes[tip].id);
                (name, model.branches[branch].id, tip)
            })
            .collect();
        let branches: Vec<_> = got
            .branches
            .iter()
            .map(|view| (view.name.to_string(), Some(view.id), view.tip))
            .collect();
        same("the branches", &branches, &want)?;
        let by_leaf = |tails: &[Tail]| -> BTreeMap<TurnId, (TurnId, u64)> {
            tails.iter().map(|tail| (tail.leaf, (tail.first, tail.turns))).collect()
        };
        same("the tails", &by_leaf(&got.tails), &by_leaf(&model.tails(ix)))?;
        same("the number of tails", &got.tails.len(), &model.tails(ix).len())?;
        let log: Vec<_> = got.operations.iter().rev().map(|op| (op.seq, op.undone)).collect();
        let ops = model.ops.iter().filter(|op| op.conversation == ix);
        let want: Vec<_> = ops.map(|op| (op.seq, op.undone.is_some())).collect();
        same("the log (entry, undone)", &log, &want)
    }

    /// What must hold of any export: the chains, the uniqueness, and that raw turns never change.
    fn check_chain(&self, records: &[BundleRecord]) -> Checked {
        let mut conversation = None;
        let mut previous = None;
        let mut hashes: BTreeMap<TurnId, TurnHash> = BTreeMap::new();
        let mut seen: BTreeSet<TurnHash> = BTreeSet::new();
        for record in records {
            match record {
                BundleRecord::Conversation(found) => {
                    conversation = Some(found.id.clone());
                    previous = None;
                    seen.clear();
                }
                BundleRecord::Turn { parent, turn } => {
                    let Turn { id, hash, role, content, created_at, tool_call_id, .. } = turn;
                    let above = match parent {
                        Some(parent) => {
                            Some(hashes.get(parent).ok_or("a turn comes before its parent")?)
                        }
                        None => None,
                    };
                    if let Content::Kept(body) = content {
                        let call = tool_call_id.as_deref();
                        let again = turn_hash(above, *role, body, call, *created_at);
                        same("a recomputed turn hash", hash, &again)?;
                    }
                    if !seen.insert(*hash) {
                        return Err(format!("the hash {hash} is there twice"));
                    }
                    let node = self.model.nodes.iter().find(|node| node.id == Some(*id));
                    let node = node.ok_or_else(|| format!("no operation made the turn {id}"))?;
                    let raw = node.parent.and_then(|parent| self.model.nodes[parent].id);
                    same("a raw parent", parent, &raw)?;
                    same("a raw hash", hash, &node.hash)?;
                    if hashes.insert(*id, *hash).is_some() {
                        return Err(format!("the id {id} is there twice"));
                    }
                }
                BundleRecord::Operation(operation) => {
                    let Operation { seq, kind, actor, at, detail, hash, .. } = operation;
                    let id = conversation.as_ref().ok_or("an operation before a conversation")?;
                    let again = operation_hash(&OperationSeal {
                        conversation_id: id.as_str(),
                        seq: *seq,
                        previous: previous.as_ref(),
                        kind,
                        actor,
                        at: *at,
                        detail: &detail.digest(),
                    });
                    same("a recomputed operation hash", hash, &again)?;
                    previous = Some(*hash);
                }
                _ => {}
            }
        }
        let there = self.there();
        let made = self.model.nodes.iter().filter(|node| there.contains(&node.conversation));
        same("the number of turns kept", &hashes.len(), &made.count())
    }

    /// Returns an export imports into an empty store and comes out equal.
    pub(crate) fn round_trip(&self) -> Checked {
        let records = self.exports(&self.memory)?;
        let fresh = engine(Arc::new(MemoryStore::new()), self.clock.clone());
        let mut source = records.iter().cloned().map(Ok);
        read_result(fresh.import(None, &mut source))?;
        check_verified(&fresh)?;
        let again = self.exports(&fresh)?;
        let differ = records.iter().zip(&again).find(|(one, two)| one != two);
        if records == again {
            return Ok(());
        }
        Err(format!("an export changed on the way through an import: {differ:?}"))
    }

    /// Returns a copy of the other store, begun, broken off and gone on with, is equal, also in its
    /// log.
    pub(crate) fn copy(&self) -> Checked {
        let from = self.embedded.as_ref().unwrap_or(&self.memory);
        let target = Arc::new(FailingStore::new(Arc::new(MemoryStore::new())));
        target.fail_after(u64::try_from(self.steps).unwrap_or(0) * 2);
        // Where it breaks off is a matter of luck; it may also get through.
        copy(from.store(), &*target, &mut |_| {}).ok();
        target.recover();
        let failed = |error| format!("a copy failed: {error}");
        copy(from.store(), &*target, &mut |_| {}).map_err(failed)?;
        let fresh = engine(target, self.clock.clone());
        check_verified(&fresh)?;
        same("an export of a copy", &self.exports(&fresh)?, &self.exports(from)?)?;
        let log = |engine: &Engine| {
            let (entries, _) = read_result(engine.feed(
                FeedPosition::default(),
                &FeedFilter::default(),
                usize::MAX,
            ))?;
            Ok::<_, String>(entries.into_iter().map(|entry| entry.operation).collect::<Vec<_>>())
        };
        same("the log of a copy", &log(&fresh)?, &log(from)?)
    }
}

fn ids(rows: &[TopologyRow]) -> Vec<TurnId> {
    rows.iter().map(|row| row.id).collect()
}

fn check_verified(engine: &Engine) -> Checked {
    same("what verify finds", &read_result(engine.verify())?.problems, &vec![])
}

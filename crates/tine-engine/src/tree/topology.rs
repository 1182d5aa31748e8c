//! The tree without its content, and the lines that no branch leads to.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tine_core::{ConversationId, Name, TurnId};
use tine_store::{Content, Conversation, ConversationKey, Read, Turn, TurnLoc};

use crate::ops::conversation::bad_cursor;
use crate::ops::metadata::shown_title;
use crate::tree::path::fetch;
use crate::tree::resolve;
use crate::tree::shown::{Tree, TurnState};
use crate::{
    Call, ConversationStats, Engine, Presence, Result, Tail, TopologyPage, TopologyQuery,
    TopologyRow, TurnRef,
};

/// Characters of a turn that a listing shows.
const PREVIEW: usize = 80;

impl Engine {
    /// Returns the tree without its content, parents before children, one page of it.
    pub fn topology(&self, call: &Call, query: TopologyQuery) -> Result<TopologyPage> {
        let limit = self.page_limit(query.limit)?;
        self.read(|records| topology(records, self.tree_orders(), call, &query, limit))
    }

    /// Lines of turns that no branch leads to, oldest first.
    pub fn tails(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<Tail>> {
        self.read(|records| {
            let found = resolve::conversation(records, call, conversation)?;
            let tree = Tree::new(records, found.key);
            let order = TreeOrder::shown(&tree, None)?;
            let mut tails = Vec::new();
            for line in uncovered(records, &found, &order)? {
                let leaf = tree.turn(order.nodes[line.leaf].loc)?;
                tails.push(Tail {
                    leaf: leaf.id,
                    leaf_hash: leaf.hash,
                    first: tree.turn(order.nodes[line.first].loc)?.id,
                    turns: line.turns,
                    preview: preview(&leaf),
                    created_at: leaf.created_at,
                });
            }
            tails.sort_by_key(|tail| tail.leaf);
            Ok(tails)
        })
    }
}

/// One turn's place in the order of a topology.
struct TopologyNode {
    loc: TurnLoc,
    parent: Option<usize>,
    level: u32,
    children: Vec<usize>,
    descendants: u64,
}

/// All turns of a tree, parents before children, first children first.
pub(crate) struct TreeOrder {
    nodes: Vec<TopologyNode>,
    first: Vec<usize>,
}

impl TreeOrder {
    /// The tree as shown, whole or below a turn.
    fn shown(tree: &Tree<'_>, under: Option<TurnLoc>) -> Result<Self> {
        tree.preload()?;
        TreeOrder::walk(under.map(|loc| vec![loc]), |parent| tree.shown_children(parent))
    }

    /// The raw tree, with everything that is hidden.
    fn raw(tree: &Tree<'_>, under: Option<TurnLoc>) -> Result<Self> {
        tree.preload()?;
        TreeOrder::walk(under.map(|loc| vec![loc]), |parent| tree.raw_children(parent))
    }

    fn walk(
        start: Option<Vec<TurnLoc>>,
        children: impl Fn(Option<TurnLoc>) -> Result<Vec<TurnLoc>>,
    ) -> Result<Self> {
        let start = match start {
            Some(start) => start,
            None => children(None)?,
        };
        let mut nodes: Vec<TopologyNode> = Vec::new();
        let mut first = Vec::new();
        let mut pending: Vec<(TurnLoc, Option<usize>)> =
            start.into_iter().rev().map(|loc| (loc, None)).collect();
        while let Some((loc, parent)) = pending.pop() {
            let at = nodes.len();
            let level = parent.map_or(1, |parent| nodes[parent].level + 1);
            nodes.push(TopologyNode { loc, parent, level, children: Vec::new(), descendants: 0 });
            match parent {
                Some(parent) => nodes[parent].children.push(at),
                None => first.push(at),
            }
            pending.extend(children(Some(loc))?.into_iter().rev().map(|child| (child, Some(at))));
        }
        for at in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[at].parent {
                nodes[parent].descendants += nodes[at].descendants + 1;
            }
        }
        Ok(TreeOrder { nodes, first })
    }

    /// Turns in it.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns where some of them lie.
    pub(crate) fn locs(&self, page: std::ops::Range<usize>) -> Vec<TurnLoc> {
        self.nodes[page].iter().map(|node| node.loc).collect()
    }

    /// Returns the place of a turn's parent in it.
    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        self.nodes[at].parent
    }

    pub(crate) fn has_children(&self, at: usize) -> bool {
        !self.nodes[at].children.is_empty()
    }
}

/// A cache of tree orders. A page of a large tree needs the order of the whole tree; later pages
/// reuse the order computed for the first, unless the tree has changed since.
#[derive(Default)]
pub(crate) struct TreeOrderCache {
    entries: Mutex<Vec<(TreeOrderKey, Arc<TreeOrder>)>>,
}

/// The conversation, its newest operation, the turn on top, and whether hidden turns are in it.
type TreeOrderKey = (ConversationKey, u64, Option<TurnLoc>, bool);

/// The most cached orders.
const ORDERS: usize = 4;

impl TreeOrderCache {
    /// Returns the whole tree as shown, as it is at an operation.
    pub(crate) fn shown(
        &self,
        tree: &Tree<'_>,
        conversation: ConversationKey,
        seq: u64,
    ) -> Result<Arc<TreeOrder>> {
        self.get_or_make((conversation, seq, None, false), || TreeOrder::shown(tree, None))
    }

    fn get_or_make(
        &self,
        name: TreeOrderKey,
        make: impl FnOnce() -> Result<TreeOrder>,
    ) -> Result<Arc<TreeOrder>> {
        let lock = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, order)) = lock().iter().find(|(cached, _)| *cached == name) {
            return Ok(Arc::clone(order));
        }
        let order = Arc::new(make()?);
        let mut entries = lock();
        entries.truncate(ORDERS - 1);
        entries.insert(0, (name, Arc::clone(&order)));
        Ok(order)
    }
}

fn topology(
    records: &dyn Read,
    tree_orders: &TreeOrderCache,
    call: &Call,
    query: &TopologyQuery,
    limit: usize,
) -> Result<TopologyPage> {
    let conversation = resolve::conversation(records, call, &query.conversation)?;
    let under = match &query.under {
        Some(under) => {
            let wanted = TurnRef::within(query.conversation.clone(), under.clone());
            resolve::place(records, call, &wanted)?.turn
        }
        None => None,
    };
    let tree = Tree::new(records, conversation.key);
    let last = records.last_operation(conversation.key)?.map_or(0, |last| last.seq);
    let name = (conversation.key, last, under, query.include_deleted);
    let order = tree_orders.get_or_make(name, || match query.include_deleted {
        true => TreeOrder::raw(&tree, under),
        false => TreeOrder::shown(&tree, under),
    })?;
    let start = match &query.cursor {
        None => 0,
        Some(cursor) => {
            let last: TurnId = cursor.parse().map_err(|_| bad_cursor(cursor))?;
            let found = records.find_turn(&call.project, &last)?;
            let (_, loc) = found.ok_or_else(|| bad_cursor(cursor))?;
            let position = order.nodes.iter().position(|node| node.loc == loc);
            position.ok_or_else(|| bad_cursor(cursor))? + 1
        }
    };
    let end = order.nodes.len().min(start + limit);
    let rows = rows(records, &tree, &conversation, &order, start..end)?;
    let next = match rows.last() {
        Some(last) if end < order.nodes.len() => Some(last.id.to_string()),
        _ => None,
    };
    let first = order.first.iter().map(|at| Ok(tree.turn(order.nodes[*at].loc)?.id));
    Ok(TopologyPage {
        conversation: conversation.id.clone(),
        first: first.collect::<Result<_>>()?,
        total: u64::try_from(order.nodes.len()).unwrap_or(u64::MAX),
        rows,
        next,
    })
}

fn rows(
    records: &dyn Read,
    tree: &Tree<'_>,
    conversation: &Conversation,
    order: &TreeOrder,
    page: std::ops::Range<usize>,
) -> Result<Vec<TopologyRow>> {
    let locs = order.locs(page.clone());
    let turns = fetch(records, &locs)?;
    let mut ids: HashMap<TurnLoc, TurnId> = turns.iter().map(|turn| (turn.loc, turn.id)).collect();
    let mut id_of = |loc: TurnLoc| -> Result<TurnId> {
        if let Some(id) = ids.get(&loc) {
            return Ok(*id);
        }
        let id = tree.turn(loc)?.id;
        ids.insert(loc, id);
        Ok(id)
    };
    let mut branches: HashMap<TurnLoc, Vec<Name>> = HashMap::new();
    for branch in records.branches(conversation.key)? {
        if let Some(tip) = branch.tip {
            branches.entry(tip).or_default().push(branch.name);
        }
    }
    let mut bookmarks: HashMap<TurnLoc, Vec<Name>> = HashMap::new();
    for bookmark in records.bookmarks_in(conversation.key)? {
        bookmarks.entry(bookmark.turn).or_default().push(bookmark.name);
    }
    let mut rows = Vec::with_capacity(turns.len());
    for (turn, node) in turns.iter().zip(&order.nodes[page]) {
        let children = node.children.iter().map(|at| id_of(order.nodes[*at].loc));
        rows.push(TopologyRow {
            id: turn.id,
            hash: turn.hash,
            children: children.collect::<Result<_>>()?,
            parent: match node.parent {
                Some(parent) => Some(id_of(order.nodes[parent].loc)?),
                // The row that the page was asked to begin with may have a parent of its own.
                None => tree.shown_parent(turn.loc)?.map(&mut id_of).transpose()?,
            },
            role: turn.role,
            level: node.level,
            created_at: turn.created_at,
            preview: preview(turn),
            title: shown_title(&turn.metadata, !node.children.is_empty()),
            tags: turn.metadata.tags.iter().cloned().collect(),
            descendants: node.descendants,
            branches: branches.remove(&turn.loc).unwrap_or_default(),
            bookmarks: bookmarks.remove(&turn.loc).unwrap_or_default(),
            status: turn.status,
            presence: match tree.state(turn.loc)? {
                TurnState::Live => Presence::Live,
                TurnState::Split(_) => Presence::Split,
                TurnState::Bridged(_) | TurnState::Gone(_) => Presence::Deleted,
            },
            purged: matches!(turn.content, Content::Purged(_)),
        });
    }
    Ok(rows)
}

pub(crate) fn preview(turn: &Turn) -> String {
    match &turn.content {
        Content::Kept(body) => body.preview(PREVIEW),
        Content::Purged(_) => String::new(),
    }
}

/// A leaf that no branch leads to, and where its line leaves what branches lead to.
struct UncoveredTail {
    leaf: usize,
    first: usize,
    turns: u64,
}

fn uncovered(
    records: &dyn Read,
    conversation: &Conversation,
    order: &TreeOrder,
) -> Result<Vec<UncoveredTail>> {
    let at: HashMap<TurnLoc, usize> =
        order.nodes.iter().enumerate().map(|(at, node)| (node.loc, at)).collect();
    let mut covered = HashSet::new();
    for branch in records.branches(conversation.key)? {
        let mut node = branch.tip.and_then(|tip| at.get(&tip).copied());
        while let Some(here) = node
            && covered.insert(here)
        {
            node = order.nodes[here].parent;
        }
    }
    let mut lines = Vec::new();
    for (leaf, node) in order.nodes.iter().enumerate() {
        if !node.children.is_empty() || covered.contains(&leaf) {
            continue;
        }
        let mut first = leaf;
        let mut turns = 1;
        while let Some(parent) = order.nodes[first].parent
            && !covered.contains(&parent)
        {
            first = parent;
            turns += 1;
        }
        lines.push(UncoveredTail { leaf, first, turns });
    }
    Ok(lines)
}

/// Totals of one conversation.
pub(crate) fn totals(records: &dyn Read, conversation: &Conversation) -> Result<ConversationStats> {
    let tree = Tree::new(records, conversation.key);
    let order = TreeOrder::shown(&tree, None)?;
    let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
    let extents = records.segments(conversation.key)?;
    let all: u64 = extents.iter().map(|extent| u64::from(extent.turns)).sum();
    let wholes = count(records.splits(conversation.key)?.len());
    let turns = count(order.nodes.len());
    let level = order.nodes.iter().map(|node| node.level).max().unwrap_or(0);
    Ok(ConversationStats {
        turns,
        deleted: all.saturating_sub(turns).saturating_sub(wholes),
        forks: count(order.nodes.iter().filter(|node| node.children.len() > 1).count()),
        leaves: count(order.nodes.iter().filter(|node| node.children.is_empty()).count()),
        longest_path: u64::from(level),
        branches: count(records.branches(conversation.key)?.len()),
        tails: count(uncovered(records, conversation, &order)?.len()),
        operations: records.last_operation(conversation.key)?.map_or(0, |last| last.seq),
    })
}

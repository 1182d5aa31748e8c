//! An outline of the tree, and what was added since: for user interfaces that draw it.
//!
//! A topology holds everything about a turn but its content; an outline holds only what one row on
//! a screen shows, in answers large enough for a tree of a hundred thousand turns. A client with an
//! outline requests only what was added or renamed since; if anything else happened, the answer is
//! the whole outline.

use std::collections::{BTreeSet, HashMap};

use tine_core::{Json, Role, TurnId, Usage};
use tine_store::{Content, Conversation, Read, SEGMENT_TURNS, Turn, TurnLoc};

use crate::log::change::LoggedChange;
use crate::log::history::detail;
use crate::maintenance::purge;
use crate::ops::conversation::bad_cursor;
use crate::ops::metadata::shown_title;
use crate::ops::undo::is_undo_or_redo;
use crate::tree::path::fetch;
use crate::tree::resolve;
use crate::tree::shown::{Tree, TurnState};
use crate::tree::topology::{TreeOrder, TreeOrderCache, preview};
use crate::{
    Call, ContentKind, Engine, Error, OUTLINE_ROWS, Outline, OutlineBookmark, OutlineParent,
    OutlineQuery, OutlineRow, Result, Tip,
};

/// The most operations scanned for changes; beyond that, the whole outline is returned.
const OPERATIONS: u64 = 1_000;

/// Returns whether operations of a kind change what was there, beyond what their changes say.
fn is_beyond_adding(kind: &str) -> bool {
    is_undo_or_redo(kind) || kind == purge::KIND
}

impl Engine {
    /// Returns the outline of the tree: all of it, or what was added and renamed since an
    /// operation.
    pub fn outline(&self, call: &Call, query: OutlineQuery) -> Result<Outline> {
        let limit = match query.rows {
            None => OUTLINE_ROWS,
            Some(0) => {
                return Err(Error::invalid(
                    "a page holds at least one row; `rows` is 0; give 1 or more",
                ));
            }
            Some(given) if given > OUTLINE_ROWS => {
                let limit = OUTLINE_ROWS;
                return Err(Error::TooLarge { what: "rows in an outline", limit, given });
            }
            Some(given) => given,
        };
        self.read(|records| outline(records, self.tree_orders(), call, &query, limit))
    }
}

fn outline(
    records: &dyn Read,
    tree_orders: &TreeOrderCache,
    call: &Call,
    query: &OutlineQuery,
    limit: usize,
) -> Result<Outline> {
    let conversation = resolve::conversation(records, call, &query.conversation)?;
    let tree = Tree::new(records, conversation.key);
    let seq = records.log_end(conversation.key)?.map_or(0, |(seq, _)| seq);
    let (start, since) = match &query.cursor {
        Some(cursor) => (go_on(cursor, seq)?, None),
        None => (0, query.since),
    };
    let added = match since {
        Some(since) => added(records, call, &conversation, &tree, since, seq)?,
        None => None,
    };
    let (rows, total, whole, next) = match added {
        Some(locs) => {
            let total = records.segments(conversation.key)?;
            let total = total.iter().map(|extent| u64::from(extent.turns)).sum();
            (rows_since(records, &tree, &locs)?, total, false, None)
        }
        None => {
            let order = tree_orders.shown(&tree, conversation.key, seq)?;
            let end = order.len().min(start.saturating_add(limit));
            let rows = rows(records, &order, start..end)?;
            let next = (end < order.len()).then(|| format!("{seq}.{end}"));
            (rows, u64::try_from(order.len()).unwrap_or(u64::MAX), true, next)
        }
    };
    Ok(Outline {
        conversation: conversation.id.clone(),
        seq,
        total,
        whole,
        rows,
        tips: tips(records, &tree, &conversation)?,
        marks: marks(records, &tree, &conversation)?,
        next,
    })
}

/// Parses a cursor: the row at which a page begins.
fn go_on(cursor: &str, seq: u64) -> Result<usize> {
    let parts = cursor.split_once('.');
    let parts = parts.and_then(|(seq, at)| Some((seq.parse::<u64>().ok()?, at.parse().ok()?)));
    let (then, at) = parts.ok_or_else(|| bad_cursor(cursor))?;
    if then != seq {
        let why = "the tree has changed since the page before; begin again without a cursor";
        return Err(Error::invalid(why));
    }
    Ok(at)
}

/// Returns the turns that were made or renamed after an operation, parents before children; `None`
/// if anything else happened.
fn added(
    records: &dyn Read,
    call: &Call,
    conversation: &Conversation,
    tree: &Tree<'_>,
    since: u64,
    seq: u64,
) -> Result<Option<Vec<TurnLoc>>> {
    // A client that has seen more operations than there are has seen another store.
    if seq.checked_sub(since).is_none_or(|operations| operations > OPERATIONS) {
        return Ok(None);
    }
    let (mut found, mut only_added) = (BTreeSet::new(), true);
    records.operations(conversation.key, since + 1, seq, &mut |operation| {
        let changes = detail(&operation).map(|detail| detail.changes);
        let changes = changes.ok().filter(|_| !is_beyond_adding(&operation.kind));
        only_added = changes.is_some_and(|changes| {
            changes.iter().all(|change| match change {
                LoggedChange::Created { first, count, .. } => {
                    found.insert((*first, *count));
                    true
                }
                LoggedChange::Metadata { turn, .. } => {
                    found.insert((*turn, 1));
                    true
                }
                LoggedChange::Hidden { .. } | LoggedChange::Split { .. } => false,
                LoggedChange::Branch { .. }
                | LoggedChange::Bookmark { .. }
                | LoggedChange::Conversation { .. }
                | LoggedChange::Observed { .. }
                | LoggedChange::Record { .. } => true,
            })
        });
        Ok(only_added)
    })?;
    if !only_added {
        return Ok(None);
    }
    let mut locs = BTreeSet::new();
    for (first, count) in found {
        let Some((_, mut loc)) = records.find_turn(&call.project, &first)? else { continue };
        // A chain that continues in another segment.
        if u64::from(loc.index) + count > u64::from(SEGMENT_TURNS) {
            return Ok(None);
        }
        // What a turn is called may change with its first child.
        locs.extend(tree.shown_parent(loc)?);
        for _ in 0..count {
            if matches!(tree.state(loc)?, TurnState::Live) {
                locs.insert(loc);
            }
            loc = loc.next();
        }
    }
    Ok(Some(locs.into_iter().collect()))
}

/// Rows of the whole tree, in its order.
fn rows(
    records: &dyn Read,
    order: &TreeOrder,
    page: std::ops::Range<usize>,
) -> Result<Vec<OutlineRow>> {
    let turns = fetch(records, &order.locs(page.clone()))?;
    let rows = turns.iter().zip(page).map(|(turn, at)| {
        let above = order.parent(at).map_or(OutlineParent::Root, OutlineParent::Row);
        row(turn, above, order.has_children(at))
    });
    Ok(rows.collect())
}

/// Rows of some turns, in the order in which they lie.
fn rows_since(records: &dyn Read, tree: &Tree<'_>, locs: &[TurnLoc]) -> Result<Vec<OutlineRow>> {
    let at: HashMap<TurnLoc, usize> = locs.iter().enumerate().map(|(at, loc)| (*loc, at)).collect();
    let mut rows = Vec::with_capacity(locs.len());
    for (here, turn) in fetch(records, locs)?.iter().enumerate() {
        let above = match tree.shown_parent(turn.loc)? {
            None => OutlineParent::Root,
            Some(parent) => match at.get(&parent) {
                Some(row) if *row < here => OutlineParent::Row(*row),
                _ => OutlineParent::Turn(tree.turn(parent)?.id),
            },
        };
        rows.push(row(turn, above, !tree.shown_children(Some(turn.loc))?.is_empty()));
    }
    Ok(rows)
}

fn row(turn: &Turn, above: OutlineParent, has_children: bool) -> OutlineRow {
    let source_info = turn.metadata.source_info.as_ref();
    let model = source_info.and_then(|info| info.get("model")).and_then(Json::as_str);
    OutlineRow {
        id: turn.id,
        above,
        role: turn.role,
        substance: substance(turn),
        created_at: turn.created_at,
        preview: preview(turn),
        title: shown_title(&turn.metadata, has_children),
        tags: turn.metadata.tags.iter().cloned().collect(),
        model: model.filter(|name| !name.is_empty()).map(str::to_owned),
        tokens: source_info.and_then(Usage::from_source_info).map(|usage| usage.total),
        status: turn.status,
        purged: matches!(turn.content, Content::Purged(_)),
    }
}

fn substance(turn: &Turn) -> ContentKind {
    let Content::Kept(body) = &turn.content else { return ContentKind::Other };
    if turn.role == Role::Tool {
        return ContentKind::ToolResult;
    }
    let tine_core::Body::Blocks(_) = body else { return ContentKind::Text };
    let blocks = body.blocks().unwrap_or_default();
    let kind = |block: &Json| block.get("type").and_then(Json::as_str).map(str::to_owned);
    let kinds: BTreeSet<String> = blocks.iter().filter_map(kind).collect();
    match (kinds.contains("text"), kinds.contains("tool-use")) {
        (true, true) => ContentKind::TextAndCalls,
        (false, true) => ContentKind::Calls,
        (true, false) => ContentKind::Text,
        (false, false) if kinds.contains("thinking") && kinds.len() == 1 => ContentKind::Thinking,
        (false, false) => ContentKind::Other,
    }
}

fn tips(records: &dyn Read, tree: &Tree<'_>, conversation: &Conversation) -> Result<Vec<Tip>> {
    let branches = records.branches(conversation.key)?.into_iter();
    branches
        .map(|branch| {
            let turn = id_of(tree, branch.tip)?;
            Ok(Tip { branch: branch.id, name: branch.name, turn, version: branch.version })
        })
        .collect()
}

fn marks(
    records: &dyn Read,
    tree: &Tree<'_>,
    conversation: &Conversation,
) -> Result<Vec<OutlineBookmark>> {
    let bookmarks = records.bookmarks_in(conversation.key)?.into_iter();
    bookmarks
        .map(|bookmark| {
            Ok(OutlineBookmark { turn: tree.turn(bookmark.turn)?.id, name: bookmark.name })
        })
        .collect()
}

fn id_of(tree: &Tree<'_>, loc: Option<TurnLoc>) -> Result<Option<TurnId>> {
    loc.map(|loc| Ok(tree.turn(loc)?.id)).transpose()
}

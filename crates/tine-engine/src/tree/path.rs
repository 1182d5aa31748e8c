//! Reading: one turn, its relatives, paths and windows.

use tine_core::{ConversationId, Reference, Role, TurnId};
use tine_store::{Read, Turn, TurnLoc};

use crate::ops::conversation::bad_cursor;
use crate::tree::resolve::{self, TreePosition};
use crate::tree::shown::{SegmentRun, Tree, TurnState};
use crate::tree::views::{self, ViewOrId};
use crate::{
    BranchTurnsQuery, BranchView, Call, Engine, Error, PathPage, PathQuery, Presence, Result,
    Selection, TurnRef, TurnView, Window, WindowQuery,
};

impl Engine {
    /// Returns one turn, shown or not.
    pub fn turn(&self, call: &Call, turn: TurnRef) -> Result<TurnView> {
        self.read(|records| {
            let place = resolve::find(records, call, &turn)?;
            let loc = place.require_turn()?;
            let tree = Tree::new(records, place.conversation.key);
            views::turn_at(&tree, &place.conversation.id, loc)
        })
    }

    /// Loads the turn of an answer, if it is given by id.
    pub(crate) fn load_turn(&self, call: &Call, turn: ViewOrId<TurnView>) -> Result<TurnView> {
        match turn {
            ViewOrId::View(view) => Ok(*view),
            ViewOrId::Id(id) => self.read(|records| views::turn_by_id(records, &call.project, &id)),
        }
    }

    /// Children as shown, in order; those of `root` are the first turns.
    pub fn children(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>> {
        self.relatives(call, &turn, |tree, place| tree.shown_children(place.turn))
    }

    /// Returns all children of the turn's parent as shown, the turn among them.
    pub fn siblings(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>> {
        self.relatives(call, &turn, |tree, place| {
            let loc = place.require_turn()?;
            tree.shown_children(tree.shown_parent(loc)?)
        })
    }

    /// Returns the turn, what it was edited from and what was edited from it, oldest first.
    pub fn versions(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>> {
        self.relatives(call, &turn, |tree, place| {
            let loc = place.require_turn()?;
            versions(tree, loc)
        })
    }

    fn relatives(
        &self,
        call: &Call,
        turn: &TurnRef,
        find: impl Fn(&Tree<'_>, &TreePosition) -> Result<Vec<TurnLoc>>,
    ) -> Result<Vec<TurnView>> {
        self.read(|records| {
            let place = resolve::place(records, call, turn)?;
            let tree = Tree::new(records, place.conversation.key);
            let found = find(&tree, &place)?;
            found.iter().map(|loc| views::turn_at(&tree, &place.conversation.id, *loc)).collect()
        })
    }

    /// Returns the path from the root to a turn, one page of it.
    ///
    /// The cursor names the end of the path and the last turn read, so that pages stay consistent
    /// while branches move and turns are added.
    pub fn path(&self, call: &Call, query: PathQuery) -> Result<PathPage> {
        let limit = self.page_limit(query.limit)?;
        self.read(|records| path(records, call, &query, None, limit))
    }

    /// Reads a branch and a page of its turns from one snapshot.
    pub fn branch_turns(
        &self,
        call: &Call,
        query: BranchTurnsQuery,
    ) -> Result<(BranchView, PathPage)> {
        let limit = self.page_limit(query.limit)?;
        self.read(|records| {
            let found = resolve::conversation(records, call, &query.conversation)?;
            let branch = resolve::branch(records, call, found.key, &query.branch)?;
            let branch = views::branch(records, &found.id, &branch)?;
            let to = Some(Reference::parse(&branch.id.to_string())?);
            let cursor = query.cursor.clone();
            let turns = PathQuery { to, cursor, ..PathQuery::of(query.conversation.clone()) };
            let page = path(records, call, &turns, query.role, limit)?;
            Ok((branch, page))
        })
    }

    /// Reads the turns before and after a turn on one line.
    pub fn window(&self, call: &Call, query: WindowQuery) -> Result<Window> {
        let most = self.limits().page_rows;
        let given = query.before.saturating_add(query.after).saturating_add(1);
        if given > most {
            return Err(Error::TooLarge { what: "turns in a window", limit: most, given });
        }
        self.read(|records| window(records, call, &query))
    }
}

/// Returns the versions of a turn among its raw siblings: all that lead to one original by edits.
fn versions(tree: &Tree<'_>, loc: TurnLoc) -> Result<Vec<TurnLoc>> {
    let mut family = Vec::new();
    for sibling in tree.raw_children(tree.raw_parent(loc)?)? {
        family.push(tree.turn(sibling)?);
    }
    let original = |turn: &Turn| {
        let mut oldest = turn;
        // An edit is younger than what it was made from, so this ends.
        while let Some(older) =
            oldest.origin.edited_from.and_then(|from| family.iter().find(|turn| turn.id == from))
        {
            oldest = older;
        }
        oldest.id
    };
    let Some(this) = family.iter().find(|turn| turn.loc == loc) else {
        return Ok(vec![loc]);
    };
    let wanted = original(this);
    let mut found = Vec::new();
    for turn in family.iter().filter(|turn| original(turn) == wanted) {
        if tree.state(turn.loc)? == TurnState::Live {
            found.push(turn.loc);
        }
    }
    Ok(found)
}

/// Every turn of a path as shown, root first.
pub(crate) fn shown(records: &dyn Read, place: &TreePosition) -> Result<Vec<Turn>> {
    let Some(to) = place.turn else {
        return Ok(Vec::new());
    };
    let tree = Tree::new(records, place.conversation.key);
    let raw_path = RawPath::to(&tree, to)?;
    let (locs, _) = raw_path.forward(&tree, None, usize::MAX)?;
    fetch(records, &locs)
}

/// A raw path, as runs of segments.
struct RawPath {
    runs: Vec<SegmentRun>,
}

impl RawPath {
    fn to(tree: &Tree<'_>, to: TurnLoc) -> Result<Self> {
        Ok(RawPath { runs: tree.path_runs(to)? })
    }

    /// Returns the shown turns after a given one, and whether there are more.
    fn forward(
        &self,
        tree: &Tree<'_>,
        after: Option<TurnLoc>,
        limit: usize,
    ) -> Result<(Vec<TurnLoc>, bool)> {
        let mut found = Vec::new();
        let (run, index) = match after {
            None => (0, 0),
            Some(after) => {
                let (run, anchor) = self.anchor(tree, after)?;
                // Further halves of the same turn may follow.
                let mut halves = Vec::new();
                expand(tree, anchor, &mut halves)?;
                let position = halves.iter().position(|half| *half == after);
                found.extend(halves.split_off(position.map_or(halves.len(), |at| at + 1)));
                (run, anchor.index + 1)
            }
        };
        let mut from = index;
        for run in &self.runs[run..] {
            if tree.is_plain(run.segment)? {
                // One more than the limit shows that there are more.
                let room = limit.saturating_add(1).saturating_sub(found.len());
                let on = |index| TurnLoc { segment: run.segment, index };
                found.extend((from..=run.to).take(room).map(on));
                from = 0;
                continue;
            }
            for index in from..=run.to {
                if found.len() > limit {
                    break;
                }
                expand(tree, TurnLoc { segment: run.segment, index }, &mut found)?;
            }
            from = 0;
        }
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }

    /// Returns where a shown turn, or the whole it is a half of, lies on the line.
    fn anchor(&self, tree: &Tree<'_>, turn: TurnLoc) -> Result<(usize, TurnLoc)> {
        let mut turn = turn;
        loop {
            let on = |run: &SegmentRun| run.segment == turn.segment && turn.index <= run.to;
            if let Some(run) = self.runs.iter().position(on) {
                return Ok((run, turn));
            }
            match tree.split_with_half(turn)? {
                Some(split) => turn = split.whole,
                None => return Err(Error::invalid("the turn is not on this path")),
            }
        }
    }
}

/// What is shown in the place of a raw turn: itself, its halves, or nothing.
fn expand(tree: &Tree<'_>, loc: TurnLoc, out: &mut Vec<TurnLoc>) -> Result<()> {
    let mut next = Some(loc);
    // Halves can be split again, as often as there are letters.
    let mut later = Vec::new();
    while let Some(loc) = next {
        next = match tree.state(loc)? {
            TurnState::Live => {
                out.push(loc);
                later.pop()
            }
            TurnState::Split(split) => {
                later.push(split.right);
                Some(split.left)
            }
            TurnState::Bridged(_) | TurnState::Gone(_) => later.pop(),
        };
    }
    Ok(())
}

/// Reads turns in the given order, neighbours in one scan.
pub(crate) fn fetch(records: &dyn Read, locs: &[TurnLoc]) -> Result<Vec<Turn>> {
    let mut turns = Vec::with_capacity(locs.len());
    let mut rest = locs;
    while let Some(first) = rest.first() {
        let run = rest.windows(2).take_while(|pair| pair[1] == pair[0].next()).count();
        let last = rest[run];
        records.turns(first.segment, first.index, last.index, &mut |turn| {
            turns.push(turn);
            Ok(true)
        })?;
        rest = &rest[run + 1..];
    }
    Ok(turns)
}

/// Turns that follow each other on a line, with their parents.
fn path_views(
    records: &dyn Read,
    tree: &Tree<'_>,
    id: &ConversationId,
    locs: &[TurnLoc],
) -> Result<Vec<TurnView>> {
    let mut views: Vec<TurnView> = Vec::with_capacity(locs.len());
    let mut above: Option<(TurnLoc, tine_core::TurnHash, TurnId)> = None;
    for turn in fetch(records, locs)? {
        let (loc, hash, turn_id) = (turn.loc, turn.hash, turn.id);
        let view = match above {
            Some((parent, parent_hash, parent_id)) if tree.raw_parent(loc)? == Some(parent) => {
                let continues = views::continued(tree, &turn)?;
                let (hash, parent) = (Some(parent_hash), Some(parent_id));
                let view = views::turn_with(id, turn, hash, parent, Presence::Live);
                TurnView { continues, ..view }
            }
            _ => views::turn(tree, id, turn)?,
        };
        views.push(view);
        above = Some((loc, hash, turn_id));
    }
    Ok(views)
}

fn path(
    records: &dyn Read,
    call: &Call,
    query: &PathQuery,
    role: Option<Role>,
    limit: usize,
) -> Result<PathPage> {
    let cursor = query.cursor.as_deref().map(read_cursor).transpose()?;
    let place = match (&cursor, &query.to) {
        (Some((to, _)), _) => resolve::place(records, call, &TurnRef::of(*to))?,
        (None, Some(to)) => {
            let wanted = TurnRef { conversation: query.conversation.clone(), turn: to.clone() };
            resolve::place(records, call, &wanted)?
        }
        (None, None) => main_tip(records, call, query.conversation.as_ref())?,
    };
    let id = place.conversation.id.clone();
    let root = place.conversation.root.clone();
    let Some(to) = place.turn else {
        return Ok(PathPage { conversation: id, root, to: None, turns: Vec::new(), next: None });
    };
    let tree = Tree::new(records, place.conversation.key);
    let raw_path = RawPath::to(&tree, to)?;
    let after = match (cursor, query.selection) {
        (Some((_, last)), _) => {
            let found = records.find_turn(&call.project, &last)?;
            Some(found.ok_or_else(|| bad_cursor(query.cursor.as_deref().unwrap_or_default()))?.1)
        }
        (None, Selection::Whole) => None,
        (None, Selection::Last(count)) => nth_ancestor(&tree, to, count)?,
    };
    let (mut turns, mut after) = (Vec::new(), after);
    let more = loop {
        let (locs, more) = raw_path.forward(&tree, after, limit)?;
        let page = path_views(records, &tree, &id, &locs)?;
        turns.extend(page.into_iter().filter(|turn| role.is_none_or(|role| turn.role == role)));
        // Of a role, one turn more than the limit shows that there are more.
        if !more || role.is_none() || turns.len() > limit {
            break more && role.is_none() || turns.len() > limit;
        }
        after = locs.last().copied();
    };
    turns.truncate(limit);
    let to = tree.turn(to)?.id;
    let next = match turns.last() {
        Some(last) if more => Some(format!("{to}.{}", last.id)),
        _ => None,
    };
    Ok(PathPage { conversation: id, root, to: Some(to), turns, next })
}

/// Returns the turn `count` before this one as shown, or the root.
fn nth_ancestor(tree: &Tree<'_>, from: TurnLoc, count: usize) -> Result<Option<TurnLoc>> {
    let (mut turn, mut count) = (Some(from), count);
    while let Some(loc) = turn
        && count > 0
    {
        let count_in_segment = match tree.is_plain(loc.segment)? {
            true => loc.index.min(u32::try_from(count).unwrap_or(u32::MAX)),
            false => 0,
        };
        if count_in_segment > 0 {
            turn = Some(TurnLoc { index: loc.index - count_in_segment, ..loc });
            count -= usize::try_from(count_in_segment).unwrap_or(count);
        } else {
            turn = tree.shown_parent(loc)?;
            count -= 1;
        }
    }
    Ok(turn)
}

fn read_cursor(cursor: &str) -> Result<(TurnId, TurnId)> {
    let (to, last) = cursor.split_once('.').ok_or_else(|| bad_cursor(cursor))?;
    let parse = |text: &str| text.parse().map_err(|_| bad_cursor(cursor));
    Ok((parse(to)?, parse(last)?))
}

fn main_tip(records: &dyn Read, call: &Call, id: Option<&ConversationId>) -> Result<TreePosition> {
    let id =
        id.ok_or_else(|| Error::invalid("name the conversation, or the turn where the path ends"))?;
    let conversation = resolve::conversation(records, call, id)?;
    let main = records.branch(conversation.key, &tine_core::Name::main())?;
    Ok(TreePosition { conversation, turn: main.and_then(|main| main.tip) })
}

fn window(records: &dyn Read, call: &Call, query: &WindowQuery) -> Result<Window> {
    let place = resolve::place(records, call, &query.turn)?;
    let loc = place.require_turn()?;
    let id = place.conversation.id.clone();
    let tree = Tree::new(records, place.conversation.key);

    let mut locs = Vec::new();
    let mut above = tree.shown_parent(loc)?;
    while let Some(parent) = above
        && locs.len() < query.before
    {
        locs.push(parent);
        above = tree.shown_parent(parent)?;
    }
    locs.reverse();
    let focus = locs.len();
    locs.push(loc);
    let (later, more_after) = match tip_through(records, call, &tree, &place, query)? {
        Some(to) => RawPath::to(&tree, to)?.forward(&tree, Some(loc), query.after)?,
        None => first_children(&tree, loc, query.after)?,
    };
    locs.extend(later);
    let turns = path_views(records, &tree, &id, &locs)?;
    Ok(Window { conversation: id, turns, focus, more_before: above.is_some(), more_after })
}

/// Returns the tip of the branch whose line is followed after a turn.
fn tip_through(
    records: &dyn Read,
    call: &Call,
    tree: &Tree<'_>,
    place: &TreePosition,
    query: &WindowQuery,
) -> Result<Option<TurnLoc>> {
    let key = place.conversation.key;
    if let Some(name) = &query.branch {
        let branch = resolve::branch(records, call, key, name)?;
        if !tree.on_shown_path(place.turn, branch.tip)? {
            let why = format!("the turn is not on the line of the branch `{}`", branch.name);
            return Err(Error::Invalid(why));
        }
        return Ok(branch.tip);
    }
    // There may be many others.
    if let Some(main) = records.branch(key, &tine_core::Name::main())?
        && tree.on_shown_path(place.turn, main.tip)?
    {
        return Ok(main.tip);
    }
    for branch in records.branches(key)? {
        if tree.on_shown_path(place.turn, branch.tip)? {
            return Ok(branch.tip);
        }
    }
    Ok(None)
}

fn first_children(tree: &Tree<'_>, from: TurnLoc, limit: usize) -> Result<(Vec<TurnLoc>, bool)> {
    let mut found = Vec::new();
    let mut child = tree.shown_children(Some(from))?.first().copied();
    while let Some(loc) = child
        && found.len() < limit
    {
        found.push(loc);
        child = tree.shown_children(Some(loc))?.first().copied();
    }
    Ok((found, child.is_some()))
}

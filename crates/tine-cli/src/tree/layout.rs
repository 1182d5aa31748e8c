//! Computes the order and indentation of rows.

use std::collections::HashMap;

use tine_core::TurnId;
use tine_engine::TopologyRow;

/// One row of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// Index of the row in the topology.
    pub row: usize,
    /// Indentation level.
    pub level: usize,
    /// Whether a side line starts here.
    pub side: bool,
    /// Whether a branch leads to the turn; otherwise it is on a tail.
    pub reached: bool,
    /// Whether its descendants are omitted.
    pub folded: bool,
}

/// Orders the rows of a topology for drawing.
///
/// `line` is the tip of the line to follow. Side lines more than `depth` forks away from it are
/// folded into their first row.
pub fn lay_out(
    rows: &[TopologyRow],
    first: &[TurnId],
    line: Option<TurnId>,
    depth: Option<usize>,
) -> Vec<TreeRow> {
    let index: HashMap<TurnId, usize> =
        rows.iter().enumerate().map(|(index, row)| (row.id, index)).collect();
    let parent = |row: usize| rows[row].parent.and_then(|parent| index.get(&parent)).copied();
    let mark_up_from = |marked: &mut Vec<bool>, start: Option<usize>| {
        let mut at = start;
        while let Some(row) = at
            && !marked[row]
        {
            marked[row] = true;
            at = parent(row);
        }
    };
    let mut on_line = vec![false; rows.len()];
    mark_up_from(&mut on_line, line.and_then(|tip| index.get(&tip)).copied());
    let mut reached = vec![false; rows.len()];
    for (row, facts) in rows.iter().enumerate() {
        if !facts.branches.is_empty() {
            mark_up_from(&mut reached, Some(row));
        }
    }

    let mut lines = Vec::with_capacity(rows.len());
    // Stack of rows to draw; the next one is last.
    let mut waiting: Vec<(usize, usize, bool)> = Vec::new();
    let queue = |waiting: &mut Vec<(usize, usize, bool)>, children: &[TurnId], level: usize| {
        let children: Vec<usize> =
            children.iter().filter_map(|child| index.get(child)).copied().collect();
        let weight = |row: usize| (on_line[row], reached[row], rows[row].descendants);
        // Among equals, `max_by_key` returns the last: the newest.
        let Some(next) = children.iter().copied().max_by_key(|child| weight(*child)) else {
            return;
        };
        waiting.push((next, level, false));
        let sides = children.into_iter().rev().filter(|child| *child != next);
        waiting.extend(sides.map(|child| (child, level + 1, true)));
    };
    queue(&mut waiting, first, 0);
    while let Some((row, level, side)) = waiting.pop() {
        let children = &rows[row].children;
        let folded = depth.is_some_and(|depth| level > depth) && !children.is_empty();
        lines.push(TreeRow { row, level, side, reached: reached[row], folded });
        if !folded {
            queue(&mut waiting, children, level);
        }
    }
    lines
}

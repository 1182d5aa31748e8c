//! The order of the rows and how far each is indented.

use std::collections::HashMap;

use tine_core::TurnId;
use tine_engine::TopologyRow;

/// One row of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// Which of the topology's rows.
    pub row: usize,
    /// Steps to the right.
    pub level: usize,
    /// Whether a side line begins here.
    pub side: bool,
    /// Whether a branch leads to it; if not, it lies on a tail.
    pub reached: bool,
    /// Whether everything below it is left out.
    pub folded: bool,
}

/// Puts the rows of a topology in the order of the drawing.
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
    // What is still to be drawn, the next one last.
    let mut waiting: Vec<(usize, usize, bool)> = Vec::new();
    let queue = |waiting: &mut Vec<(usize, usize, bool)>, children: &[TurnId], level: usize| {
        let children: Vec<usize> =
            children.iter().filter_map(|child| index.get(child)).copied().collect();
        let weight = |row: usize| (on_line[row], reached[row], rows[row].descendants);
        // Of equal ones the last: the newest.
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

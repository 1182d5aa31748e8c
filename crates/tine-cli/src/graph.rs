//! Draws a commit graph, newest first.
//!
//! Each commit has a row of its own; rows between commits fork and join lines. A line is a column
//! that waits for a commit; a commit is drawn in the first column that waits for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;

/// A commit to draw.
#[derive(Clone, Debug)]
pub struct GraphNode<T> {
    /// Identifies the commit.
    pub id: T,
    /// Ids of its parents.
    pub parents: Vec<T>,
}

/// A row of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRow {
    /// The lines, as text.
    pub lines: String,
    /// Index of the commit in this row; `None` for a row between commits.
    pub node: Option<usize>,
}

/// Returns the indices of nodes in topological order, children before parents, otherwise in the
/// given order.
pub fn ordered<T: Copy + Eq + Hash>(nodes: &[GraphNode<T>]) -> Vec<usize> {
    let places: HashMap<T, usize> =
        nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
    let parents = |place: usize| {
        let present = nodes[place].parents.iter().filter_map(|id| places.get(id).copied());
        present.collect::<HashSet<usize>>()
    };
    let mut waiting_for = vec![0_usize; nodes.len()];
    for place in 0..nodes.len() {
        for parent in parents(place) {
            waiting_for[parent] += 1;
        }
    }
    let mut free: BTreeSet<usize> =
        (0..nodes.len()).filter(|place| waiting_for[*place] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(place) = free.pop_first() {
        order.push(place);
        for parent in parents(place) {
            waiting_for[parent] -= 1;
            if waiting_for[parent] == 0 {
                free.insert(parent);
            }
        }
    }
    order
}

/// Draws nodes that are in topological order.
pub fn draw<T: Copy + Eq>(nodes: &[GraphNode<T>]) -> Vec<GraphRow> {
    let mut rows = Vec::new();
    let mut columns: Vec<Option<T>> = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        let waiting: Vec<usize> =
            (0..columns.len()).filter(|column| columns[*column] == Some(node.id)).collect();
        let own = match waiting.split_first() {
            Some((own, others)) => {
                join_lines(&mut rows, &mut columns, *own, others);
                *own
            }
            None => take_column(&mut columns, node.id),
        };
        let cell = |(at, line): (usize, &Option<T>)| match line {
            Some(_) if at == own => '○',
            Some(_) => '│',
            None => ' ',
        };
        rows.push(GraphRow {
            lines: spaced(columns.iter().enumerate().map(cell)),
            node: Some(place),
        });
        fork_lines(&mut rows, &mut columns, own, &node.parents);
    }
    rows
}

/// Joins lines that lead to the same commit.
fn join_lines<T: Copy>(
    rows: &mut Vec<GraphRow>,
    columns: &mut [Option<T>],
    own: usize,
    others: &[usize],
) {
    if others.is_empty() {
        return;
    }
    let mut cells = Cells::through(columns);
    for other in others {
        cells.connect(own, *other);
        cells.end(*other);
        columns[*other] = None;
    }
    rows.push(cells.row());
}

/// Continues a commit's line to its first parent and starts or connects lines to the others.
fn fork_lines<T: Copy + Eq>(
    rows: &mut Vec<GraphRow>,
    columns: &mut Vec<Option<T>>,
    own: usize,
    parents: &[T],
) {
    columns[own] = parents.first().copied();
    let mut links = BTreeMap::new();
    for parent in parents.iter().skip(1) {
        let existing = columns.iter().position(|column| *column == Some(*parent));
        let begins = existing.is_none();
        let column = existing.unwrap_or_else(|| take_column(columns, *parent));
        if column != own {
            links.insert(column, begins);
        }
    }
    if !links.is_empty() {
        let mut cells = Cells::through(columns);
        for (column, begins) in links {
            cells.connect(own, column);
            if begins {
                cells.begin(column);
            }
        }
        rows.push(cells.row());
    }
    while columns.last().is_some_and(Option::is_none) {
        columns.pop();
    }
}

/// Assigns the first free column to a line.
fn take_column<T: Copy>(columns: &mut Vec<Option<T>>, id: T) -> usize {
    match columns.iter().position(Option::is_none) {
        Some(free) => {
            columns[free] = Some(id);
            free
        }
        None => {
            columns.push(Some(id));
            columns.len() - 1
        }
    }
}

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// A row between two commits: the directions of the lines in each column.
struct Cells(Vec<u8>);

impl Cells {
    fn through<T>(columns: &[Option<T>]) -> Self {
        Cells(columns.iter().map(|line| if line.is_some() { UP | DOWN } else { 0 }).collect())
    }

    fn connect(&mut self, one: usize, other: usize) {
        let (left, right) = (one.min(other), one.max(other));
        self.0[left] |= RIGHT;
        self.0[right] |= LEFT;
        for between in &mut self.0[left + 1..right] {
            *between |= LEFT | RIGHT;
        }
    }

    fn end(&mut self, column: usize) {
        self.0[column] &= !DOWN;
    }

    fn begin(&mut self, column: usize) {
        self.0[column] &= !UP;
    }

    fn row(&self) -> GraphRow {
        let mut lines = String::new();
        for cell in &self.0 {
            lines.push(glyph(*cell));
            lines.push(if cell & RIGHT == 0 { ' ' } else { '─' });
        }
        GraphRow { lines: lines.trim_end().to_owned(), node: None }
    }
}

const fn glyph(cell: u8) -> char {
    match (cell & UP != 0, cell & DOWN != 0, cell & LEFT != 0, cell & RIGHT != 0) {
        (false, false, false, false) => ' ',
        (true, true, false, false) | (true, false, false, false) | (false, true, false, false) => {
            '│'
        }
        (true, true, false, true) => '├',
        (true, true, true, false) => '┤',
        (true, true, true, true) => '┼',
        (false, true, true, false) => '╮',
        (true, false, true, false) => '╯',
        (false, true, false, true) => '╭',
        (true, false, false, true) => '╰',
        (true, false, true, true) => '┴',
        (false, true, true, true) => '┬',
        (false, false, _, _) => '─',
    }
}

fn spaced(cells: impl Iterator<Item = char>) -> String {
    let mut lines = String::new();
    for cell in cells {
        lines.push(cell);
        lines.push(' ');
    }
    lines.trim_end().to_owned()
}

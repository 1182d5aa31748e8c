//! Graphs of commits, on commits made up for it.

use tine_cli::graph::{GraphNode, draw, ordered};

/// Draws `child: parents` lines, newest first, each commit one letter.
fn drawn(lines: &str) -> String {
    let nodes: Vec<GraphNode<char>> = lines
        .lines()
        .map(|line| {
            let (id, parents) = line.split_once(':').expect("a child and its parents");
            let id = id.trim().chars().next().expect("a letter");
            GraphNode { id, parents: parents.chars().filter(|it| it.is_alphabetic()).collect() }
        })
        .collect();
    let order = ordered(&nodes);
    let nodes: Vec<GraphNode<char>> = order.into_iter().map(|place| nodes[place].clone()).collect();
    let rows = draw(&nodes).into_iter().map(|row| match row.node {
        Some(place) => format!("{} {}", row.lines, nodes[place].id),
        None => row.lines,
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn check(lines: &str, wanted: &str) {
    assert_eq!(drawn(lines), wanted, "\n{}\n", drawn(lines));
}

#[test]
fn a_chain_is_one_line() {
    check("c: b\nb: a\na:", "○ c\n○ b\n○ a");
    check("", "");
}

#[test]
fn a_merge_parts_and_joins() {
    check("d: b c\nc: a\nb: a\na:", "○ d\n├─╮\n│ ○ c\n○ │ b\n├─╯\n○ a");
}

#[test]
fn branches_that_were_never_merged_stand_side_by_side() {
    check("c: a\nb: a\na:", "○ c\n│ ○ b\n├─╯\n○ a");
    check("b:\na:", "○ b\n○ a");
}

#[test]
fn lines_that_cross_are_drawn_as_crossing() {
    // Two branches that merged each other.
    check(
        "f: d e\ne: c b\nd: b c\nc: a\nb: a\na:",
        "○ f\n├─╮\n│ ○ e\n│ ├─╮\n○ │ │ d\n├─┤ │\n│ ○ │ c\n├─┼─╯\n○ │ b\n├─╯\n○ a",
    );
    check("e: b d\nd: a\nc: a\nb: a\na:", "○ e\n├─╮\n│ ○ d\n│ │ ○ c\n○ │ │ b\n├─┴─╯\n○ a");
}

#[test]
fn what_lies_behind_the_last_row_stays_open() {
    check("c: b\nb: a", "○ c\n○ b");
    check("d: b c", "○ d\n├─╮");
}

#[test]
fn parents_never_come_before_their_children() {
    // As a clock that went backwards would list them.
    assert_eq!(drawn("a:\nb: a\nc: b"), "○ c\n○ b\n○ a");
}

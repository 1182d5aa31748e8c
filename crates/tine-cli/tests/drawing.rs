//! The drawing of trees, on rows made up for it.

use tine_cli::terminal::Paint;
use tine_cli::terminal::text::{cut, visible, width, wrap};
use tine_cli::tree::{Drawing, RootRow, TreeRow, draw, lay_out};
use tine_core::{Digest, Name, Role, Status, Timestamp, TurnHash, TurnId};
use tine_engine::{Presence, TopologyRow};

fn id(number: usize) -> TurnId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
    TurnId::from_bytes(bytes)
}

/// A tree given by each turn's parent (a smaller number, or none).
fn rows(parents: &[Option<usize>]) -> Vec<TopologyRow> {
    let mut rows: Vec<TopologyRow> = parents
        .iter()
        .enumerate()
        .map(|(number, parent)| TopologyRow {
            id: id(number),
            hash: TurnHash(Digest::of(&number.to_be_bytes())),
            parent: parent.map(id),
            children: Vec::new(),
            role: if number % 2 == 0 { Role::User } else { Role::Assistant },
            level: 1,
            created_at: Timestamp::from_millis(0),
            preview: format!("turn {number}"),
            title: None,
            tags: Vec::new(),
            descendants: 0,
            branches: Vec::new(),
            bookmarks: Vec::new(),
            status: Status::Complete,
            presence: Presence::Live,
            purged: false,
        })
        .collect();
    for (number, parent) in parents.iter().enumerate().rev() {
        if let Some(parent) = *parent {
            rows[parent].children.insert(0, id(number));
            rows[parent].descendants += rows[number].descendants + 1;
        }
    }
    rows
}

fn first(rows: &[TopologyRow]) -> Vec<TurnId> {
    rows.iter().filter(|row| row.parent.is_none()).map(|row| row.id).collect()
}

fn branch(rows: &mut [TopologyRow], number: usize, name: &str) {
    rows[number].branches.push(Name::from_stored(name));
}

fn drawn(rows: &[TopologyRow], line: Option<usize>, columns: Option<usize>) -> String {
    let lines = lay_out(rows, &first(rows), line.map(id), None);
    written(rows, &lines, columns)
}

fn written(rows: &[TopologyRow], lines: &[TreeRow], columns: Option<usize>) -> String {
    let drawing = Drawing { paint: Paint::new(false), columns };
    let head = RootRow { text: "test".to_owned(), branches: Vec::new() };
    let mut out = Vec::new();
    draw(&mut out, &drawing, Some(&head), rows, lines).expect("memory can be written");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_straight_chain_is_flush() {
    let parents: Vec<_> = (0..5_usize).map(|number| number.checked_sub(1)).collect();
    let mut rows = rows(&parents);
    branch(&mut rows, 4, "main");
    insta::assert_snapshot!("drawn_chain", drawn(&rows, Some(4), Some(60)));
}

#[test]
fn side_lines_come_first_and_the_line_goes_on_flush() {
    // 0 - 1 - 2 - 3        main ends on 3
    //     |\- 4 - 5        a branch
    //     |    \- 6        a tail of it
    //      \- 7            another tail
    let mut rows = rows(&[None, Some(0), Some(1), Some(2), Some(1), Some(4), Some(4), Some(1)]);
    branch(&mut rows, 3, "main");
    branch(&mut rows, 5, "side");
    insta::assert_snapshot!("drawn_fork", drawn(&rows, Some(3), Some(60)));
    // The line of another branch, when that is asked for.
    insta::assert_snapshot!("drawn_fork_side", drawn(&rows, Some(5), Some(60)));
}

#[test]
fn a_wide_fork_indents_once() {
    let mut parents = vec![None];
    parents.extend(std::iter::repeat_n(Some(0), 50));
    let rows = rows(&parents);
    let lines = lay_out(&rows, &first(&rows), Some(id(7)), None);
    assert_eq!(lines.iter().map(|line| line.level).max(), Some(1));
    assert_eq!(lines.last().map(|line| (line.row, line.level)), Some((7, 0)));
    let order: Vec<usize> = lines[1..50].iter().map(|line| line.row).collect();
    assert!(order.is_sorted(), "siblings stay in order");
}

#[test]
fn several_first_turns_fork_at_the_root() {
    let mut rows = rows(&[None, Some(0), None, Some(2), None]);
    branch(&mut rows, 1, "main");
    branch(&mut rows, 3, "other");
    insta::assert_snapshot!("drawn_roots", drawn(&rows, Some(1), Some(60)));
}

#[test]
fn marks_labels_and_titles_are_drawn_and_cut() {
    let mut rows = rows(&[None, Some(0), Some(1), Some(2), Some(3), Some(4)]);
    rows[0].preview =
        "日本語の長い文章は二列ずつ幅を取るので端末の幅に合わせて切られます".to_owned();
    rows[1].title = Some("A title instead of the preview".to_owned());
    rows[1].tags = vec!["one".to_owned(), "two".to_owned()];
    rows[2].status = Status::Partial;
    rows[2].preview = "x".repeat(80);
    rows[3].purged = true;
    rows[3].preview = String::new();
    rows[4].presence = Presence::Deleted;
    rows[5].branches = ["main", "a-second-branch", "a-third-branch", "a-fourth-branch"]
        .map(Name::from_stored)
        .to_vec();
    rows[5].bookmarks = vec![Name::from_stored("here")];
    for columns in [60, 80, 40] {
        let drawn = drawn(&rows, Some(5), Some(columns));
        for line in drawn.lines() {
            assert!(width(line) <= columns, "{columns}: {line}");
        }
        insta::assert_snapshot!(format!("drawn_marks_{columns}"), drawn);
    }
}

#[test]
fn folding_leaves_the_line_and_counts_the_rest() {
    let mut rows = rows(&[None, Some(0), Some(1), Some(2), Some(1), Some(4), Some(4), Some(1)]);
    branch(&mut rows, 3, "main");
    let lines = lay_out(&rows, &first(&rows), Some(id(3)), Some(0));
    insta::assert_snapshot!("drawn_folded", written(&rows, &lines, Some(60)));
    let lines = lay_out(&rows, &first(&rows), Some(id(3)), Some(1));
    assert_eq!(lines.iter().filter(|line| line.folded).count(), 0);
}

/// Numbers that look random and are the same every time.
fn scrambled(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn check_shape(rows: &[TopologyRow], lines: &[TreeRow], steps: usize) {
    assert_eq!(lines.len(), rows.len(), "every turn is drawn once");
    let mut seen = vec![false; rows.len()];
    for line in lines {
        assert!(!std::mem::replace(&mut seen[line.row], true));
    }
    let deepest = lines.iter().map(|line| line.level).max().unwrap_or(0);
    assert!(deepest <= steps, "{deepest} steps to the right");
}

#[test]
fn three_thousand_turns_stay_readable() {
    let mut next = scrambled(1);
    // Mostly straight, as conversations are: one turn in ten forks off somewhere earlier.
    let parents: Vec<Option<usize>> = (0..3_000_usize)
        .map(|number| match number {
            0 => None,
            number if next().is_multiple_of(10) => Some(next() as usize % number),
            number => Some(number - 1),
        })
        .collect();
    let mut rows = rows(&parents);
    branch(&mut rows, 2_999, "main");
    let lines = lay_out(&rows, &first(&rows), Some(id(2_999)), None);
    check_shape(&rows, &lines, 8);
    let drawn = written(&rows, &lines, Some(80));
    assert_eq!(drawn.lines().count(), 3_001);
    assert!(drawn.lines().all(|line| width(line) <= 80));
    // The line of main is flush from the root to its tip.
    let main = lines.iter().filter(|line| line.level == 0).count();
    assert!(main > 10 && lines.last().map(|line| line.row) == Some(2_999));
}

#[test]
fn a_hundred_thousand_turns_of_any_shape_indent_by_the_logarithm() {
    const TURNS: usize = 100_000;
    let mut next = scrambled(2);
    let chain: Vec<_> = (0..TURNS).map(|number| number.checked_sub(1)).collect();
    let random: Vec<_> =
        (0..TURNS).map(|number| (number > 0).then(|| next() as usize % number)).collect();
    let binary: Vec<_> = (0..TURNS).map(|number| (number > 0).then(|| (number - 1) / 2)).collect();
    // Each turn of a line has a second child without children.
    let comb: Vec<_> = (0..TURNS).map(|number| number.checked_sub(1 + number % 2)).collect();
    let star: Vec<_> = (0..TURNS).map(|number| (number > 0).then_some(0)).collect();
    for (parents, steps) in [(chain, 0), (random, 18), (binary, 17), (comb, 1), (star, 1)] {
        let mut rows = fast_rows(&parents);
        branch(&mut rows, TURNS - 1, "main");
        for number in (0..TURNS).step_by(997) {
            branch(&mut rows, number, "other");
        }
        let lines = lay_out(&rows, &first(&rows), Some(id(TURNS - 1)), None);
        check_shape(&rows, &lines, steps);
        assert_eq!(written(&rows, &lines, Some(80)).lines().count(), TURNS + 1);
    }
}

/// As `rows`, without moving a wide fork's children again for each of them.
fn fast_rows(parents: &[Option<usize>]) -> Vec<TopologyRow> {
    let mut all = rows(&vec![None; parents.len()]);
    for (number, parent) in parents.iter().enumerate() {
        all[number].parent = parent.map(id);
        if let Some(parent) = *parent {
            all[parent].children.push(id(number));
        }
    }
    for number in (0..parents.len()).rev() {
        if let Some(parent) = parents[number] {
            all[parent].descendants += all[number].descendants + 1;
        }
    }
    all
}

#[test]
fn a_narrow_terminal_leaves_the_outermost_gutters_out() {
    // Eight levels of forks: each side line forks again.
    let parents: Vec<_> =
        (0..511_usize).map(|number| (number > 0).then(|| (number - 1) / 2)).collect();
    let rows = rows(&parents);
    let drawn = drawn(&rows, None, Some(36));
    assert!(drawn.lines().all(|line| width(line) <= 36));
    assert!(drawn.contains('⋯'));
}

#[test]
fn text_is_measured_cut_and_wrapped_in_columns() {
    assert_eq!(width("日本"), 4);
    assert_eq!(cut("日本語", 5), "日本…");
    assert_eq!(cut("日本語", 4), "日…");
    assert_eq!(cut("plain", 5), "plain");
    assert_eq!(cut("two\nlines", 20), "two lines");
    assert_eq!(cut("x", 0), "");
    assert_eq!(visible("a\u{1b}[0mb"), "a␛[0mb");
    assert_eq!(wrap("one two three", Some(10)), ["one two", "three"]);
    assert_eq!(wrap("a\n\nb", None), ["a", "", "b"]);
    assert_eq!(wrap(&"x".repeat(25), Some(10)), ["x".repeat(10), "x".repeat(10), "x".repeat(5)]);
    assert!(wrap("日本語の長い文章", Some(10)).iter().all(|line| width(line) <= 10));
}

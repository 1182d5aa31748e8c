//! Alignment of turns, and word diffs.

use std::collections::VecDeque;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use tine_core::{Digest, Role};
use unicode_segmentation::UnicodeSegmentation;

use crate::{DiffTurn, TurnChange, WordChange};

/// The most words compared one by one; the middle of longer texts is one change.
const MAX_COMPARED_WORDS: usize = 4_000;

/// A turn to compare.
#[derive(Clone, Debug)]
pub(super) struct ComparedTurn {
    /// Equal for turns with equal content.
    pub digest: Digest,
    pub turn: DiffTurn,
}

/// Aligns two lists of turns. Between equal turns, turns of one role in the same position are
/// changed. Returns at most `limit` changes, and how many are left out.
pub(super) fn turns(
    from: &[ComparedTurn],
    to: &[ComparedTurn],
    limit: usize,
) -> (Vec<TurnChange>, u64) {
    let (a, b): (Vec<_>, Vec<_>) =
        (from.iter().map(|it| it.digest).collect(), to.iter().map(|it| it.digest).collect());
    let mut changes = Vec::new();
    for op in capture_diff_slices(Algorithm::Patience, &a, &b) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                for at in 0..len {
                    let (from, to) = (&from[old_index + at], &to[new_index + at]);
                    let (from, to) = (from.turn.clone(), to.turn.clone());
                    changes.push(TurnChange::Equal { from, to });
                }
            }
            op => {
                let (old, new) = (op.old_range(), op.new_range());
                pair_by_role(&from[old], &to[new], &mut changes);
            }
        }
    }
    let left_out = changes.len().saturating_sub(limit) as u64;
    changes.truncate(limit);
    for change in &mut changes {
        if let TurnChange::Changed { from, to, words } = change {
            *words = self::word_changes(&from.text, &to.text);
        }
    }
    (changes, left_out)
}

/// Turns that differ: those of one role are paired in order, their words still to be compared.
fn pair_by_role(from: &[ComparedTurn], to: &[ComparedTurn], changes: &mut Vec<TurnChange>) {
    let mut rest: VecDeque<&ComparedTurn> = to.iter().collect();
    for old in from {
        let same_role = |it: &&ComparedTurn, role: Role| it.turn.role == role;
        let Some(at) = rest.iter().position(|it| same_role(it, old.turn.role)) else {
            changes.push(TurnChange::Lost { from: old.turn.clone() });
            continue;
        };
        for passed in rest.drain(..at) {
            changes.push(TurnChange::Gained { to: passed.turn.clone() });
        }
        if let Some(new) = rest.pop_front() {
            let (from, to) = (old.turn.clone(), new.turn.clone());
            changes.push(TurnChange::Changed { from, to, words: Vec::new() });
        }
    }
    changes.extend(rest.into_iter().map(|it| TurnChange::Gained { to: it.turn.clone() }));
}

/// Two texts word by word: what is kept and lost makes up the first, what is kept and gained the
/// second.
pub(super) fn word_changes(from: &str, to: &str) -> Vec<WordChange> {
    let (a, b): (Vec<&str>, Vec<&str>) =
        (from.split_word_bounds().collect(), to.split_word_bounds().collect());
    let prefix = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - prefix;
    let suffix = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (middle_a, middle_b) = (&a[prefix..a.len() - suffix], &b[prefix..b.len() - suffix]);
    let mut changes = Vec::new();
    push(&mut changes, &a[..prefix], WordChange::Kept);
    if middle_a.len().max(middle_b.len()) > MAX_COMPARED_WORDS {
        push(&mut changes, middle_a, WordChange::Lost);
        push(&mut changes, middle_b, WordChange::Gained);
    } else {
        for op in capture_diff_slices(Algorithm::Myers, middle_a, middle_b) {
            match op {
                DiffOp::Equal { old_index, len, .. } => {
                    push(&mut changes, &middle_a[old_index..old_index + len], WordChange::Kept);
                }
                op => {
                    push(&mut changes, &middle_a[op.old_range()], WordChange::Lost);
                    push(&mut changes, &middle_b[op.new_range()], WordChange::Gained);
                }
            }
        }
    }
    push(&mut changes, &a[a.len() - suffix..], WordChange::Kept);
    changes
}

fn push(changes: &mut Vec<WordChange>, run: &[&str], kind: fn(String) -> WordChange) {
    if run.is_empty() {
        return;
    }
    match (changes.last_mut(), kind(run.concat())) {
        (Some(WordChange::Kept(text)), WordChange::Kept(more))
        | (Some(WordChange::Lost(text)), WordChange::Lost(more))
        | (Some(WordChange::Gained(text)), WordChange::Gained(more)) => text.push_str(&more),
        (_, change) => changes.push(change),
    }
}

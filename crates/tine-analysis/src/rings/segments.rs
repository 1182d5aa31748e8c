//! Splits a text into sentences.
//!
//! The rules are those of Unicode (UAX #29), except that a fenced block of code is one segment, a
//! wrapped line continues in the next one, and the period of an abbreviation, an ordinal or a list
//! number ends no sentence.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::rings::fold::fold;

/// A sentence, or a block of code.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The bytes, without surrounding white space.
    pub at: Range<usize>,
    pub block: SegmentBlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentBlock {
    /// A sentence of running text.
    Prose,
    /// An item of a list, or a part of one.
    Item,
    /// A quoted line.
    Quote,
    /// A fenced block of code.
    Code,
}

/// The minimum length of a line that may be wrapped.
const WRAPPED_LINE_BYTES: usize = 60;

/// Folded abbreviations that end no sentence, without the last period.
const ABBREVIATIONS: &str = "mr mrs ms dr prof st vs e.g eg i.e ie approx dept vol z.b d.h u.a nr str hr \
    fr evtl ggf inkl vgl bsp tel abs p.ex mme mlle sra srta dra ud uds pag num aprox p.ej ee.uu gen rev sgt \
    capt lt gov sen ca cf resp";

/// Returns the sentences of a text, in order. Every character that is not white space is in one.
pub(crate) fn segments(text: &str) -> Vec<Segment> {
    let mut found = Vec::new();
    for (at, block) in blocks(text) {
        match block {
            SegmentBlock::Code => push(text, at, block, &mut found),
            _ => sentences(text, at, block, &mut found),
        }
    }
    found
}

/// Returns fenced blocks of code, and paragraphs.
fn blocks(text: &str) -> Vec<(Range<usize>, SegmentBlock)> {
    let mut found: Vec<(Range<usize>, SegmentBlock)> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut goes_on = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let line_text = line.trim();
        let marks = ["```", "~~~"].into_iter().find(|marks| line_text.starts_with(marks));
        if let Some(open) = fence {
            extend(&mut found, end);
            if line_text.starts_with(open) && line_text.trim_matches(['`', '~']).is_empty() {
                (fence, goes_on) = (None, false);
            }
        } else if let Some(marks) = marks.filter(|marks| !line_text[marks.len()..].contains(marks))
        {
            fence = Some(marks);
            found.push((start..end, SegmentBlock::Code));
        } else {
            let block = block(line_text);
            let joins = goes_on
                && block == SegmentBlock::Prose
                && line_text.starts_with(char::is_lowercase);
            match joins {
                true => extend(&mut found, end),
                false => found.push((start..end, block)),
            }
            goes_on = line_text.len() >= WRAPPED_LINE_BYTES
                && !line_text.ends_with(['.', ':', '!', '?', '|']);
        }
        start = end;
    }
    found
}

fn extend(found: &mut [(Range<usize>, SegmentBlock)], end: usize) {
    if let Some((at, _)) = found.last_mut() {
        at.end = end;
    }
}

fn block(line: &str) -> SegmentBlock {
    let digits = line.trim_start_matches(|it: char| it.is_ascii_digit());
    let numbered = digits.len() < line.len() && line.len() - digits.len() <= 3;
    let bullet = ["- ", "* ", "+ ", "• ", "– ", "・", "|"].iter().any(|it| line.starts_with(it));
    match line {
        _ if line.starts_with('>') => SegmentBlock::Quote,
        _ if bullet => SegmentBlock::Item,
        _ if numbered && (digits.starts_with(". ") || digits.starts_with(") ")) => {
            SegmentBlock::Item
        }
        _ => SegmentBlock::Prose,
    }
}

fn sentences(text: &str, at: Range<usize>, block: SegmentBlock, found: &mut Vec<Segment>) {
    let mut start = at.start;
    let mut open: Option<Range<usize>> = None;
    for piece in text[at].split_sentence_bounds() {
        let range = start..start + piece.len();
        start = range.end;
        open = match open.take() {
            Some(before) if goes_on(&text[before.clone()], piece) => Some(before.start..range.end),
            Some(before) => {
                push(text, before, block, found);
                Some(range)
            }
            None => Some(range),
        };
    }
    if let Some(last) = open {
        push(text, last, block, found);
    }
}

/// Returns whether a sentence continues in the next piece, since its period ends no sentence.
fn goes_on(before: &str, next: &str) -> bool {
    let line_text = before.trim_end();
    if before.ends_with('\n') && !line_text.ends_with(['.', '!', '?', '。', '！', '？']) {
        return true;
    }
    if next.trim().is_empty() || !line_text.ends_with('.') {
        return false;
    }
    let from = line_text.char_indices().rev().nth(11).map_or(0, |(at, _)| at);
    let tail = &line_text[from..];
    let word = tail.rsplit(|it: char| it.is_whitespace() || "([{\"'«“„".contains(it)).next();
    let word = word.unwrap_or(tail).trim_end_matches('.');
    let is_number = (1..=2).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_digit());
    let is_initial =
        word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    let folded = fold(word);
    is_number || is_initial || ABBREVIATIONS.split_whitespace().any(|it| it == folded)
}

/// Adds a segment without surrounding white space, unless it is blank.
fn push(text: &str, at: Range<usize>, block: SegmentBlock, found: &mut Vec<Segment>) {
    let line_text = &text[at.clone()];
    let start = at.start + (line_text.len() - line_text.trim_start().len());
    let end = at.start + line_text.trim_end().len();
    if start < end {
        let floor = found.last().map_or(0, |last: &Segment| last.at.end);
        found.push(Segment { at: whole_start(text, start, floor)..whole_end(text, end), block });
    }
}

/// Returns the beginning of the grapheme cluster at a byte: a mark may be attached to white space.
fn whole_start(text: &str, start: usize, floor: usize) -> usize {
    let mut cursor = GraphemeCursor::new(start, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(start).max(floor),
        _ => start,
    }
}

/// Returns the end of the grapheme cluster before a byte.
fn whole_end(text: &str, end: usize) -> usize {
    let mut cursor = GraphemeCursor::new(end, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(end),
        _ => end,
    }
}

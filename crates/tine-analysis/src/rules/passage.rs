//! Splits a text into the sentences that rules read.
//!
//! Code (fenced, indented or between backticks) and quoted blocks are not the author's words and
//! are left out. A sentence is never longer than [`MAX_SENTENCE_BYTES`], so that the cost of a text
//! is linear in its length, whatever a rule does with one sentence.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::links;
use super::tokens::{self, Word, among};

/// The longest sentence; a longer one is split between two words.
const MAX_SENTENCE_BYTES: usize = 1_000;

/// The minimum length of a line that may be wrapped.
const WRAPPED_LINE_BYTES: usize = 60;

/// The kind of block that a sentence is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentenceBlock {
    /// Running text.
    Prose,
    /// A heading, by its mark.
    Heading,
    /// An item of a list.
    Item,
    /// An item with an empty checkbox, or after `TODO`.
    Open,
    /// An item with a ticked box.
    Done,
}

/// The section that the heading above a sentence begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// Any other section.
    Any,
    Tasks,
    Decisions,
}

pub(super) struct Sentence<'a> {
    pub text: &'a str,
    /// The text with links, email addresses and code replaced by underscores of the same length.
    pub plain: String,
    /// The first byte in the whole text.
    pub start: usize,
    pub block: SentenceBlock,
    pub section: Section,
    /// Whether it ends with a question mark.
    pub asks: bool,
    /// Whether it is the first of its paragraph.
    pub first: bool,
    pub words: Vec<Word>,
}

impl Sentence<'_> {
    /// Returns the text of a range of the sentence, with its white space collapsed.
    pub fn text_of(&self, at: &Range<usize>) -> String {
        self.text[at.clone()].replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A paragraph: lines that belong together.
struct Paragraph {
    at: Range<usize>,
    block: SentenceBlock,
    section: Section,
}

pub(super) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        let cut = cut(&text[paragraph.at.clone()]);
        for (no, at) in cut.into_iter().enumerate() {
            let sentence = &text[paragraph.at.start + at.start..paragraph.at.start + at.end];
            let plain = mask(sentence);
            found.push(Sentence {
                text: sentence,
                words: tokens::tokenize(&plain),
                plain,
                start: paragraph.at.start + at.start,
                block: paragraph.block,
                section: paragraph.section,
                asks: sentence.trim_end_matches(['"', '”', ')', '*', '_', ' ']).ends_with('?'),
                first: no == 0,
            });
        }
    }
    found
}

static MARK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:(?P<heading>#{1,6})\s+|(?:[-*+•]|\d{1,3}[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?|\[(?P<bare>[ xX])\]\s+)",
    )
});

static TODO: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?i:to-?do|action item)s?\b\s*[:\-–]\s*"));

static TASKS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W*(?:(?:my |our |the )?(?:action items?|actions|to-?dos?|to-?do list|tasks?|next steps|follow-?ups?|open items|things to do|still to do)(?:(?: for| this| before| by| until| on)\b[^.!?]{0,40}:)?|(?:things |stuff |what )?(?:i|we) (?:still )?(?:need|have) to(?: do)?\b[^.!?]{0,30}:)\W*$",
    )
});

static DECISIONS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^\W*(?:key )?(?:decisions?(?: made)?|resolutions?|agreed)\W*$"));

/// Compiles a pattern of this crate.
pub(super) fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a pattern written in this crate is well formed")
}

fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut fence, mut open, mut section) = (None, false, Section::Any);
    let (mut blank, mut start) = (true, 0);
    for line in text.split_inclusive('\n') {
        let begins = start;
        start += line.len();
        let bare = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        if let Some(mark) = mark.filter(|mark| fence.is_none_or(|fence| fence == *mark)) {
            fence = if fence.is_some() { None } else { Some(mark) };
            open = false;
            continue;
        }
        let indented = blank && !open && (line.starts_with("    ") || line.starts_with('\t'));
        let code = fence.is_some() || (indented && MARK.find(line).is_none());
        if bare.is_empty() || code || bare.starts_with('>') {
            // Indented code continues after blank lines.
            blank |= bare.is_empty();
            open = false;
            continue;
        }
        let stated = heading(line, bare);
        let (block, skip) = if stated { (SentenceBlock::Heading, 0) } else { begin(line) };
        let skip = if stated { MARK.find(line).map_or(0, |mark| mark.end()) } else { skip };
        let goes_on = open
            && block == SentenceBlock::Prose
            && found.last().is_some_and(|last| continues(&text[last.at.clone()], bare));
        blank = false;
        if goes_on {
            if let Some(last) = found.last_mut() {
                last.at.end = begins + line.trim_end().len();
            }
            continue;
        }
        if stated {
            section = kind(bare);
        } else if block == SentenceBlock::Prose && section != Section::Any && bare.len() > 3 {
            section = Section::Any;
        }
        let indent = line.len() - line.trim_start().len();
        let at = begins + skip.max(indent)..begins + line.trim_end().len().max(skip.max(indent));
        found.push(Paragraph { at, block, section });
        open = block != SentenceBlock::Heading;
    }
    found
}

/// Returns whether a line is a heading: with a marker, or a line that announces a list.
fn heading(line: &str, bare: &str) -> bool {
    let marked = MARK.captures(line).is_some_and(|mark| mark.name("heading").is_some());
    marked || kind(bare) != Section::Any
}

fn kind(bare: &str) -> Section {
    if TASKS.is_match(bare) {
        Section::Tasks
    } else if DECISIONS.is_match(bare) {
        Section::Decisions
    } else {
        Section::Any
    }
}

/// Returns the kind of block that a line begins, and the length of its marker.
fn begin(line: &str) -> (SentenceBlock, usize) {
    let (mut block, mut skip) = (SentenceBlock::Prose, 0);
    if let Some(mark) = MARK.captures(line) {
        let ticked = mark.name("box").or(mark.name("bare")).map(|mark| mark.as_str() != " ");
        block = match ticked {
            Some(true) => SentenceBlock::Done,
            Some(false) => SentenceBlock::Open,
            None => SentenceBlock::Item,
        };
        skip = mark.get(0).map_or(0, |mark| mark.end());
    }
    if let Some(todo) = TODO.find(&line[skip..]) {
        (block, skip) = (SentenceBlock::Open, skip + todo.end());
    }
    (block, skip)
}

fn continues(above: &str, line: &str) -> bool {
    let last = above.rsplit('\n').next().unwrap_or(above).trim_end();
    let lower = line.chars().next().is_some_and(char::is_lowercase);
    lower || (last.len() >= WRAPPED_LINE_BYTES && !last.ends_with(':'))
}

fn cut(paragraph: &str) -> Vec<Range<usize>> {
    static END: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"(?:[.!?…]+["'”’)\]*_]*|[;:]["”]?)(?:\s+|$)|\s+[—–]\s+"#));
    let mut found = Vec::new();
    let mut start = 0;
    for end in END.find_iter(paragraph) {
        let mark = end.as_str();
        let ends = match mark.trim_start().chars().next() {
            Some('.') => !is_abbreviation(&paragraph[start..end.start()], &paragraph[end.end()..]),
            Some(';') => true,
            Some(':' | '—' | '–') => false,
            _ => true,
        };
        if ends {
            shorten(paragraph, start..end.start() + mark.trim_end().len(), &mut found);
            start = end.end();
        }
    }
    shorten(paragraph, start..paragraph.len(), &mut found);
    found
}

/// Returns whether a period belongs to the word before it.
fn is_abbreviation(before: &str, after: &str) -> bool {
    const ALWAYS: &str = "dr mr mrs ms prof st e.g i.e vs approx no gen sen rep capt lt rev mt cf";
    const WITHIN: &str = "a.m p.m inc ltd co corp etc jr sr dept ave rd blvd jan feb mar apr jun jul aug sept \
        sep oct nov dec u.s";
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or(before);
    let small = after.chars().next().is_some_and(|next| next.is_lowercase() || next.is_numeric());
    let folded = word.to_ascii_lowercase();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    // "No." may be a sentence.
    (among(ALWAYS, &folded) && (folded != "no" || small))
        || initial
        || (small && among(WITHIN, &folded))
}

/// Adds a sentence, split if it is too long.
fn shorten(paragraph: &str, mut at: Range<usize>, found: &mut Vec<Range<usize>>) {
    while at.len() > MAX_SENTENCE_BYTES {
        let mut limit = at.start + MAX_SENTENCE_BYTES;
        while !paragraph.is_char_boundary(limit) {
            limit -= 1;
        }
        let piece = &paragraph[at.start..limit];
        let end = piece.rfind(char::is_whitespace).filter(|end| *end > 0).unwrap_or(piece.len());
        found.push(at.start..at.start + end);
        at.start += end;
    }
    let piece = &paragraph[at.clone()];
    at.start += piece.len() - piece.trim_start().len();
    if !piece.trim().is_empty() {
        found.push(at);
    }
}

/// Replaces links, email addresses and code by underscores, byte for byte.
fn mask(sentence: &str) -> String {
    static CODE: LazyLock<Regex> = LazyLock::new(|| pattern("`[^`\n]*`"));
    let mut plain = sentence.to_owned();
    let code = CODE.find_iter(sentence).map(|code| code.range());
    let links = links::ranges(sentence).into_iter();
    for at in code.chain(links) {
        plain.replace_range(at.clone(), &"_".repeat(at.len()));
    }
    // Emphasis markers would separate words.
    plain.replace("**", "  ")
}

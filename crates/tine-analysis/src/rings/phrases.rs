//! Searches for many phrases at once.

use rustc_hash::FxHashMap;

use crate::rings::fold;
use crate::rings::plain::is_boundary;
use crate::rings::script::is_east_asian;

/// A trie of phrases, each with a tag.
#[derive(Default)]
pub(crate) struct PhraseTrie {
    next: FxHashMap<(u32, char), u32>,
    ends: FxHashMap<u32, Vec<PhraseEnd>>,
    nodes: u32,
}

#[derive(Clone, Copy)]
struct PhraseEnd {
    tag: u8,
    /// Whether the word may continue.
    open: bool,
}

/// A phrase that was found.
#[derive(Clone, Copy)]
pub(crate) struct PhraseMatch {
    /// The end of the phrase, or of the whole word if a stem was found.
    pub end: usize,
    pub tag: u8,
}

impl PhraseTrie {
    /// Adds a phrase; one that ends in `*` is the beginning of a word.
    pub fn add(&mut self, phrase: &str, tag: u8) {
        let (stem, open) = match phrase.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (phrase, false),
        };
        let mut node = 0;
        for symbol in fold::fold(stem).chars() {
            let fresh = self.nodes + 1;
            node = *self.next.entry((node, symbol)).or_insert(fresh);
            self.nodes = self.nodes.max(node);
        }
        self.ends.entry(node).or_default().push(PhraseEnd { tag, open });
    }

    /// Calls `each` for every phrase that begins at a byte of a folded text, the shortest first.
    pub fn at(&self, text: &str, start: usize, each: &mut dyn FnMut(PhraseMatch)) {
        let mut node = 0;
        for (at, symbol) in text[start..].char_indices() {
            let Some(next) = self.next.get(&(node, symbol)) else { return };
            node = *next;
            let Some(ends) = self.ends.get(&node) else { continue };
            let end = start + at + symbol.len_utf8();
            let following = text[end..].chars().next();
            let whole = is_east_asian(symbol) || is_boundary(Some(symbol), following);
            for found in ends.iter().filter(|it| whole || it.open) {
                let end = if whole { end } else { word_end(text, end) };
                each(PhraseMatch { end, tag: found.tag });
            }
        }
    }

    /// Returns the end of the longest phrase that begins at a byte.
    pub fn longest(&self, text: &str, start: usize) -> Option<PhraseMatch> {
        let mut longest = None;
        self.at(text, start, &mut |found| longest = Some(found));
        longest
    }

    /// Returns the length of the longest phrase at the beginning of the characters.
    pub fn longest_of(&self, symbols: &[char]) -> Option<usize> {
        let (mut node, mut longest) = (0, None);
        for (no, symbol) in symbols.iter().enumerate() {
            let Some(next) = self.next.get(&(node, *symbol)) else { break };
            node = *next;
            longest = self.ends.get(&node).map(|_| no + 1).or(longest);
        }
        longest
    }

    /// Returns whether a text contains a phrase.
    pub fn occur_in(&self, text: &str) -> bool {
        starts(text).any(|start| self.longest(text, start).is_some())
    }
}

/// Returns the starts of words; in scripts without spaces, of every character.
pub(crate) fn starts(text: &str) -> impl Iterator<Item = usize> {
    let mut before = None;
    text.char_indices().filter_map(move |(at, symbol)| {
        let begins = symbol.is_alphanumeric() && is_boundary(before, Some(symbol));
        before = Some(symbol);
        begins.then_some(at)
    })
}

fn word_end(text: &str, from: usize) -> usize {
    let mut rest = text[from..].char_indices();
    let stop = rest.find(|(_, symbol)| is_boundary(Some('a'), Some(*symbol)));
    stop.map_or(text.len(), |(at, _)| from + at)
}

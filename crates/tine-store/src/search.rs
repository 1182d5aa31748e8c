//! Full-text search: queries, candidates, and the index.
//!
//! A store finds *candidates*: turns that matched when they were indexed. The engine decides whether
//! they are visible, and checks their present content. So an index may hold too much (deleted turns,
//! outdated text), but never too little.
//!
//! An index is derived: it can be deleted and rebuilt from the records. It follows the feed: its
//! [`IndexMark`] names the last operation that it covers, and a search updates it first. A store
//! without an index reads all turns instead ([`crate::scan`]).

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

use tine_core::tokenizer::{self, TermKind, TermSpan};
use tine_core::{OperationHash, ProjectId, Role, Timestamp};

use crate::Result;
use crate::records::{ConversationKey, FeedPosition, TurnLoc};

/// Consecutive terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// At least one.
    pub terms: Vec<String>,
    /// Whether the last term is a prefix.
    pub open: bool,
    /// Whether that prefix is a single character of a script without spaces.
    pub single: bool,
}

impl Phrase {
    /// Parses a phrase; `None` if the text has no word. With `prefix`, the last word is a prefix.
    pub fn new(text: &str, prefix: bool) -> Option<Self> {
        let mut terms = tokenizer::terms(text);
        let (_, last, _) = terms.last()?;
        let mut single = false;
        let mut open = prefix && *last == TermKind::Word;
        if *last == TermKind::LastChar {
            // The end of the phrase need not be the end of a run in the text.
            let pair = terms.len() >= 2 && terms[terms.len() - 2].1 == TermKind::Bigram;
            if pair {
                terms.pop();
            } else {
                (open, single) = (true, true);
            }
        }
        Some(Phrase { terms: terms.into_iter().map(|(term, ..)| term).collect(), open, single })
    }

    /// Returns every occurrence in a text, as ranges of Unicode scalar values.
    pub fn find(&self, text: &[(String, TermKind, TermSpan)]) -> Vec<Range<usize>> {
        let last = self.terms.len() - 1;
        let matches = |window: &[(String, TermKind, TermSpan)]| {
            self.terms.iter().zip(window).enumerate().all(|(at, (want, (term, ..)))| {
                if at == last && self.open { term.starts_with(want) } else { term == want }
            })
        };
        let windows = text.windows(self.terms.len()).filter(|window| matches(window));
        let range = |window: &[(String, TermKind, TermSpan)]| {
            let end = window[last].2;
            window[0].2.start..if self.single { end.first_end } else { end.end }
        };
        windows.map(range).collect()
    }
}

/// A full-text query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextQuery {
    /// At least one phrase of each group must occur; there is at least one group.
    pub all: Vec<Vec<Phrase>>,
    /// None of these may occur.
    pub none: Vec<Phrase>,
}

/// Restricts a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFilter {
    /// The project to search.
    pub project: ProjectId,
    /// Only this conversation.
    pub conversation: Option<ConversationKey>,
    /// Only turns with this role.
    pub role: Option<Role>,
    /// The earliest time, inclusive.
    pub from: Option<Timestamp>,
    /// The latest time, exclusive.
    pub to: Option<Timestamp>,
    /// Only turns with all of these labels.
    pub tags: BTreeSet<String>,
}

/// A turn that may match a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchCandidate {
    /// The turn.
    pub loc: TurnLoc,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The BM25 score in hundredths; rounding lets turns of about equal score sort by time.
    pub score: i64,
    /// The turn's time.
    pub at: Timestamp,
}

/// A better candidate is greater; of two with equal scores, the newer one is better.
impl Ord for SearchCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |it: &SearchCandidate| (it.score, it.at, it.loc);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for SearchCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Candidates, best first, sorted lazily.
#[derive(Clone, Debug, Default)]
pub struct Ranked(BinaryHeap<SearchCandidate>);

impl Ranked {
    /// Keeps the candidates after one of an earlier page: after its present rank, or, if it is no
    /// longer among them, after its former rank.
    pub fn after(self, last: SearchCandidate) -> Self {
        let now = self.0.iter().find(|candidate| candidate.loc == last.loc).copied();
        let last = now.unwrap_or(last);
        Ranked(self.0.into_iter().filter(|candidate| *candidate < last).collect())
    }

    /// Returns the number of candidates.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<SearchCandidate> for Ranked {
    fn from_iter<I: IntoIterator<Item = SearchCandidate>>(candidates: I) -> Self {
        Ranked(candidates.into_iter().collect::<Vec<_>>().into())
    }
}

impl Iterator for Ranked {
    type Item = SearchCandidate;

    fn next(&mut self) -> Option<SearchCandidate> {
        self.0.pop()
    }
}

/// The last operation that an index covers. The hash ensures that the index belongs to this log, and
/// not to a copy that has diverged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexMark {
    /// The position in the feed.
    pub at: FeedPosition,
    /// The chain hash.
    pub hash: OperationHash,
}

/// The state of a store's search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The store has no index: a search reads the records.
    NotNeeded,
    /// The index is empty.
    Empty,
    /// The index covers everything up to this mark.
    Through(IndexMark),
}

/// A turn to be indexed.
#[derive(Clone, Debug)]
pub struct IndexDocument<'d> {
    /// The turn.
    pub loc: TurnLoc,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The project of the conversation.
    pub project: &'d ProjectId,
    /// The turn's role.
    pub role: Role,
    /// The turn's time.
    pub at: Timestamp,
    /// The text of the turn, in pieces; no phrase spans two of them.
    pub pieces: &'d [String],
    /// The turn's labels.
    pub tags: &'d BTreeSet<String>,
}

/// An index transaction: all of its changes take effect together, or none.
pub trait Index {
    /// Returns the state of the index.
    fn state(&self) -> Result<IndexState>;
    /// Removes everything.
    fn clear(&mut self) -> Result<()>;
    /// Adds a turn, or replaces it.
    fn put(&mut self, document: &IndexDocument<'_>) -> Result<()>;
    /// Removes a turn; none of its terms may remain in the index.
    fn erase(&mut self, loc: TurnLoc) -> Result<()>;
    /// Records that the index covers everything up to an operation.
    fn advance(&mut self, to: IndexMark) -> Result<()>;
}

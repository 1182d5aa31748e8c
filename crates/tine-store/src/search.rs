//! Looking for words: what is asked, what is found, and the index in between.
//!
//! A store finds *candidates*: turns that once said what is asked for. Whether they are still
//! shown, and where, is for the rules to say, which also look at what the turn says now. So an
//! index may hold too much (deleted turns, titles of yesterday), never too little.
//!
//! An index is derived: it can be thrown away and made again from the records. It follows the
//! feed: its [`IndexMark`] names the last operation that is in it, and whoever searches brings it
//! forward first. A store without an index reads everything instead ([`crate::scan`]).

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

use tine_core::tokenizer::{self, TermKind, TermSpan};
use tine_core::{OperationHash, ProjectId, Role, Timestamp};

use crate::Result;
use crate::records::{ConversationKey, FeedPosition, TurnLoc};

/// Terms that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// At least one.
    pub terms: Vec<String>,
    /// Whether the last one is only the beginning of what is looked for.
    pub open: bool,
    /// Whether that beginning is one character of a script without spaces.
    pub single: bool,
}

impl Phrase {
    /// The phrase that a text asks for, if there is a word in it. With `prefix`, its last word is
    /// a beginning.
    pub fn new(text: &str, prefix: bool) -> Option<Self> {
        let mut terms = tokenizer::terms(text);
        let (_, last, _) = terms.last()?;
        let mut single = false;
        let mut open = prefix && *last == TermKind::Word;
        if *last == TermKind::LastChar {
            // The end of what is asked for need not be the end of a run in the text.
            let pair = terms.len() >= 2 && terms[terms.len() - 2].1 == TermKind::Bigram;
            if pair {
                terms.pop();
            } else {
                (open, single) = (true, true);
            }
        }
        Some(Phrase { terms: terms.into_iter().map(|(term, ..)| term).collect(), open, single })
    }

    /// Everywhere that a text says it, in Unicode scalar values.
    pub fn find(&self, text: &[(String, TermKind, TermSpan)]) -> Vec<Range<usize>> {
        let last = self.terms.len() - 1;
        let fits = |window: &[(String, TermKind, TermSpan)]| {
            self.terms.iter().zip(window).enumerate().all(|(at, (want, (term, ..)))| {
                if at == last && self.open { term.starts_with(want) } else { term == want }
            })
        };
        let windows = text.windows(self.terms.len()).filter(|window| fits(window));
        let range = |window: &[(String, TermKind, TermSpan)]| {
            let end = window[last].2;
            window[0].2.start..if self.single { end.first_end } else { end.end }
        };
        windows.map(range).collect()
    }
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextQuery {
    /// Of each group at least one phrase must be there; at least one group.
    pub all: Vec<Vec<Phrase>>,
    /// None of these may be there.
    pub none: Vec<Phrase>,
}

/// Which turns come into question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFilter {
    /// Their project.
    pub project: ProjectId,
    /// Only of this conversation.
    pub conversation: Option<ConversationKey>,
    /// Only by this speaker.
    pub role: Option<Role>,
    /// Not earlier.
    pub from: Option<Timestamp>,
    /// Earlier than this.
    pub to: Option<Timestamp>,
    /// With all of these labels.
    pub tags: BTreeSet<String>,
}

/// A turn that may be what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The turn.
    pub loc: TurnLoc,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// How well it fits: BM25 in hundredths, so that turns that fit about equally well are
    /// ordered by time.
    pub score: i64,
    /// When it was said.
    pub at: Timestamp,
}

/// Better ones are greater; the newer of two that fit equally well is the better one.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |it: &Candidate| (it.score, it.at, it.loc);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Candidates, best first. Only as much of the order is made as is asked for.
#[derive(Clone, Debug, Default)]
pub struct Ranked(BinaryHeap<Candidate>);

impl Ranked {
    /// Only what comes behind a candidate of an earlier answer: behind where it stands now, or,
    /// when it is no longer among them, behind where it stood.
    pub fn behind(self, last: Candidate) -> Self {
        let now = self.0.iter().find(|candidate| candidate.loc == last.loc).copied();
        let last = now.unwrap_or(last);
        Ranked(self.0.into_iter().filter(|candidate| *candidate < last).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Candidate> for Ranked {
    fn from_iter<I: IntoIterator<Item = Candidate>>(candidates: I) -> Self {
        Ranked(candidates.into_iter().collect::<Vec<_>>().into())
    }
}

impl Iterator for Ranked {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        self.0.pop()
    }
}

/// The last operation that an index holds. The hash tells whether it is the index of this very
/// log, and not of a copy that went another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexMark {
    /// Its place in the feed.
    pub at: FeedPosition,
    /// Its chain hash.
    pub hash: OperationHash,
}

/// How far a store's index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// There is none: a search reads the records themselves.
    Needless,
    /// There is one, and it is empty.
    Empty,
    /// It holds everything up to here.
    Through(IndexMark),
}

/// A turn to be indexed.
#[derive(Clone, Debug)]
pub struct Document<'d> {
    /// The turn.
    pub loc: TurnLoc,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The project of that.
    pub project: &'d ProjectId,
    /// Who spoke.
    pub role: Role,
    /// When.
    pub at: Timestamp,
    /// Its words.
    pub pieces: &'d [String],
    /// Its labels.
    pub tags: &'d BTreeSet<String>,
}

/// An index that is being brought forward. Everything that is done to it in one go counts
/// together, or not at all.
pub trait Index {
    /// How far it is.
    fn state(&self) -> Result<IndexState>;
    /// Forgets everything.
    fn clear(&mut self) -> Result<()>;
    /// Adds a turn, or replaces it.
    fn put(&mut self, document: &Document<'_>) -> Result<()>;
    /// Removes a turn; what it said must leave the index altogether.
    fn erase(&mut self, loc: TurnLoc) -> Result<()>;
    /// Notes that everything up to an operation is in it.
    fn advance(&mut self, to: IndexMark) -> Result<()>;
}

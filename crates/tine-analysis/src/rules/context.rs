//! The context of a sentence that every family of rules needs: its source, clauses, names and time
//! expressions, and whether a clause states anything at all.

use std::ops::Range;
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;
use tine_core::Role;

use super::lists::ACTION_WORDS;
use super::names::{self, Mention};
use super::passage::{Sentence, pattern};
use super::time_expressions::{self, TimeExpression};
use super::tokens::{Gap, Word, word_from};

/// Where a sentence comes from: turns and documents state facts in different words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextSource {
    /// A turn of a conversation.
    Turn(Role),
    /// Any other text.
    Document,
}

pub(super) struct SentenceContext<'a> {
    pub sentence: &'a Sentence<'a>,
    pub source: TextSource,
    pub times: Vec<TimeExpression>,
    pub names: Vec<Mention>,
    /// Whether it is the first sentence of the text.
    pub opens: bool,
    /// The clauses, in order.
    pub clauses: Vec<Range<usize>>,
    /// Text between quotation marks.
    quoted: Vec<Range<usize>>,
}

/// Pronouns that begin a clause.
const PRONOUNS: &str = "i i'm i've i'd i'll we we're we'll we've you you'll you're you've he he's he'll she she's \
    she'll it it's it'll they they're they'll they've this that that's these those";

/// Other words that begin a clause as its subject.
const SUBJECTS: &str = "there there's let's lets everyone everybody someone somebody nobody who which where what \
    how here's can could mornings";

/// Words that begin a clause without a subject.
const OPENERS: &str =
    "need gotta got please pls maybe also never always otherwise remind thanks because then";

const VERBS: &str = "is are was were has have had will must should shall needs need can could wants wanted \
    would said says told asked thinks knows prefers likes loves hates leaves starts begins \
    takes comes does did doesn't didn't isn't isnt costs agreed decided suggested ends";

impl<'a> SentenceContext<'a> {
    pub fn new(
        sentence: &'a Sentence<'a>,
        before: Option<&Sentence<'_>>,
        source: TextSource,
        reference_date: Option<NaiveDate>,
    ) -> SentenceContext<'a> {
        static QUOTED: LazyLock<Regex> =
            LazyLock::new(|| pattern(r#""[^"]*(?:"|$)|“[^”]*(?:”|$)"#));
        let times = time_expressions::find(&sentence.plain, reference_date);
        let names = names::mentions(sentence, before, source, &times);
        let quoted = QUOTED.find_iter(&sentence.plain).map(|quoted| quoted.range()).collect();
        let clauses = clauses(sentence, &times);
        SentenceContext { sentence, opens: before.is_none(), source, times, names, clauses, quoted }
    }

    /// Returns the clause around a byte.
    pub fn clause(&self, byte: usize) -> Range<usize> {
        let whole = 0..self.sentence.plain.len();
        self.clauses.iter().find(|clause| clause.contains(&byte)).cloned().unwrap_or(whole)
    }

    /// Returns whether a clause is asserted: not negated, hypothetical, a question or quoted.
    pub fn is_stated(&self, byte: usize) -> bool {
        static UNREAL: LazyLock<Regex> = LazyLock::new(|| {
            pattern(concat!(
                r"(?i)\b(?:not|never|nobody|no one|nothing|none|no need|hardly|if|unless|whether|",
                r"would|might|may|could|maybe|perhaps|wish|suppose|supposing|imagine|pretend|",
                r"wonder|wondering|unsure|what|which|how|why|everything|anything|all that|as though)\b|n['’]t\b"
            ))
        });
        static ASKING: LazyLock<Regex> = LazyLock::new(|| {
            pattern(concat!(
                r"(?i)^\W*(?:and |but |so |or |also )?(?:do|does|did|should|shall|can|could|would|will|",
                r"is|are|was|were|has|have|what|when|where|who|whom|which|why|how|am)\b"
            ))
        });
        static SUPPOSED: LazyLock<Regex> = LazyLock::new(|| {
            pattern(
                r"(?i)^\W*(?:and |but |so |or )?(?:if|unless|suppose|supposing|imagine|what if|assuming|in (?:the|a|chapter|scene|season|episode) (?:\d+|show|movie|film|book|novel|story|game|episode|series))\b|\bwish\b|\bpretend\b",
            )
        });
        let plain = &self.sentence.plain;
        if self.is_quoted(byte) || SUPPOSED.is_match(plain) {
            return false;
        }
        let clause = self.clause(byte);
        let asks = self.sentence.asks
            && (ASKING.is_match(&plain[clause.clone()]) || clause.end >= plain.trim_end().len());
        !asks && !UNREAL.is_match(&plain[clause.start..byte.max(clause.start)])
    }

    /// Returns whether a byte is inside of quotation marks.
    pub fn is_quoted(&self, byte: usize) -> bool {
        self.quoted.iter().any(|quoted| quoted.contains(&byte))
    }

    /// Trims white space, punctuation and filler words from a range.
    pub fn trimmed(&self, at: Range<usize>) -> Range<usize> {
        static TAIL: LazyLock<Regex> = LazyLock::new(|| {
            pattern(concat!(
                r"(?i)(?:^|[\s,]+)(?:please|pls|too|also|before|beforehand|asap|then|though|anyway|instead|",
                r"and|or|but|so|to|by|on|at|for|now|tho|thanks|thx|ok|okay|first|as well|afterwards|soon|still)$"
            ))
        });
        let plain = &self.sentence.plain;
        let mut at = at;
        loop {
            let piece = &plain[at.clone()];
            let loose = |c: char| c.is_whitespace() || ".,;:!?…–—*|\"“”".contains(c);
            let front = piece.len() - piece.trim_start_matches(loose).len();
            let back = piece.trim_end_matches(loose).len();
            let (start, end) = (at.start + front.min(back), at.start + back.max(front.min(back)));
            match TAIL.find(&plain[start..end]) {
                Some(tail) if tail.start() > 0 => at = start..start + tail.start(),
                _ => return start..end,
            }
        }
    }

    /// Returns the first time expression in a range.
    pub fn time_in(&self, at: &Range<usize>) -> Option<&TimeExpression> {
        self.times.iter().find(|time| time.at.start >= at.start && time.at.end <= at.end)
    }

    /// Returns the person who is named right before a byte.
    pub fn person_before(&self, byte: usize) -> Option<&Mention> {
        let end = self.sentence.plain[..byte].trim_end().len();
        self.names.iter().find(|name| name.kind == names::NameKind::Person && name.at.end == end)
    }

    /// Returns the person or organisation that is named right before a byte.
    pub fn agent_before(&self, byte: usize) -> Option<&Mention> {
        let end = self.sentence.plain[..byte].trim_end().len();
        let acts = |name: &&Mention| {
            matches!(name.kind, names::NameKind::Person | names::NameKind::Organization)
        };
        self.names.iter().filter(acts).find(|name| name.at.end == end)
    }

    /// Returns the words of the sentence.
    pub fn words(&self) -> &[Word] {
        &self.sentence.words
    }
}

fn clauses(sentence: &Sentence<'_>, times: &[TimeExpression]) -> Vec<Range<usize>> {
    static BREAK: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"(?i)[;|()\[\]]|\s[-–—]+\s|:\s|…|\.\.\.|,\s+|",
            r"\s+(?:because|cause|cuz|although|though|unless|whereas|otherwise|if|so that|given that|even though|,)\s+|",
            r"\s+(?:and|but|so|or|then|since|while|when|once|before|after|until|as|plus)\s+"
        ))
    });
    let plain = sentence.plain.as_str();
    let words = &sentence.words;
    let (mut found, mut start) = (Vec::new(), 0);
    for cut in BREAK.find_iter(plain) {
        if times.iter().any(|time| time.at.start < cut.start() && cut.end() < time.at.end) {
            continue;
        }
        let mark = cut.as_str().trim().to_ascii_lowercase();
        let next = word_from(words, cut.end());
        let ends = match mark.as_str() {
            "," => comma_ends(words, next),
            "and" | "but" | "so" | "or" | "then" | "plus" => {
                begins_clause(words, next) || mark == "but" || mark == "so"
            }
            "since" | "while" | "when" | "once" | "before" | "after" | "until" | "as" => {
                words.get(next).is_some_and(|word| word.is(PRONOUNS))
            }
            _ => true,
        };
        if ends && cut.start() >= start {
            // "If" and "unless" belong to the clause that they begin.
            let ties = mark == "if" || mark == "unless";
            let space = cut.as_str().len() - cut.as_str().trim_start().len();
            found.push(start..cut.start());
            start = if ties { cut.start() + space } else { cut.end() };
        }
    }
    found.push(start..plain.len());
    found
}

/// Returns whether a comma ends a clause, by what follows, or separates a list.
fn comma_ends(words: &[Word], next: usize) -> bool {
    const TIES: &str = "and but so or which who where because since although then plus";
    let Some(word) = words.get(next) else { return true };
    if word.is("and or plus then") {
        return begins_clause(words, next + 1);
    }
    word.is(TIES) || begins_clause(words, next)
}

/// Returns whether a clause of its own begins with a word.
fn begins_clause(words: &[Word], at: usize) -> bool {
    const LINKS: &str = "and or at from of in on for with by about as";
    let Some(word) = words.get(at) else { return false };
    if word.is(PRONOUNS) || word.is(SUBJECTS) || word.is(OPENERS) {
        return true;
    }
    let rest = &words[at + 1..];
    let reach = rest.iter().take(5).take_while(|word| matches!(word.gap, Gap::Space | Gap::Point));
    if word.is_name_shaped() {
        let following = reach.clone().find(|word| !word.is_name_shaped());
        // An event follows its name: "the review and Ben's party" is one list.
        return following.is_some_and(|word| !word.is(LINKS)) && !word.owns;
    }
    let subject = word.is("the my our his her their a an your each")
        || !ACTION_WORDS.contains(word.folded.as_str());
    subject && reach.clone().any(|word| word.is(VERBS))
}

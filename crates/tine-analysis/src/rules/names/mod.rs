//! Names of people, organisations, places and documents.
//!
//! A name is a run of capitalised words. Its kind follows from its own words and those around it; a
//! run without such evidence is not a finding. At the beginning of a sentence capitalisation is no
//! evidence, so a word there needs more.

mod organizations;
mod people;
mod places;

use std::ops::Range;

use super::FoundFact;
use super::context::{SentenceContext, TextSource};
use super::links;
use super::lists::{COMMON, FIRST_NAMES, NOT_NAMES, ORGANIZATIONS, PLACES};
use super::passage::{Sentence, SentenceBlock};
use super::time_expressions::TimeExpression;
use super::tokens::{Gap, Word, WordShape};

const MAX_NAME_WORDS: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    Person,
    Organization,
    Place,
    Document,
}

/// A name in a sentence.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub kind: NameKind,
    /// The bytes, without titles.
    pub at: Range<usize>,
    pub name: String,
    /// A person's role: a relationship to the author, or a profession.
    pub role: Option<String>,
}

/// A run of words that could be a name, with its context.
#[derive(Clone, Copy)]
pub(super) struct NameRun<'a> {
    pub sentence: &'a Sentence<'a>,
    pub words: &'a [Word],
    /// The indices of the first and last word.
    pub first: usize,
    pub last: usize,
    pub source: TextSource,
    /// Whether the sentence has a time expression.
    pub timed: bool,
}

impl<'a> NameRun<'a> {
    /// Returns the words of the run.
    pub fn own(&self) -> &'a [Word] {
        &self.words[self.first..=self.last]
    }

    pub fn len(&self) -> usize {
        self.last - self.first + 1
    }

    /// Returns the bytes in the sentence.
    pub fn at(&self) -> Range<usize> {
        self.words[self.first].at.start..self.words[self.last].at.end
    }

    pub fn text(&self) -> &'a str {
        &self.sentence.text[self.at()]
    }

    /// Returns the word a number of places before the run.
    pub fn before(&self, places: usize) -> Option<&'a Word> {
        self.first.checked_sub(places).and_then(|at| self.words.get(at))
    }

    /// Returns the word a number of places after the run.
    pub fn after(&self, places: usize) -> Option<&'a Word> {
        self.words.get(self.last + places)
    }

    /// Returns whether the word right before it is in a list.
    pub fn follows(&self, any: &str) -> bool {
        self.own()[0].gap == Gap::Space && self.before(1).is_some_and(|word| word.is(any))
    }

    /// Returns whether the word right after it is in a list.
    pub fn precedes(&self, any: &str) -> bool {
        self.after(1).is_some_and(|word| word.gap == Gap::Space && word.is(any))
            && !self.own().last().is_some_and(|word| word.owns)
    }

    /// Returns whether it may be capitalised because it begins a sentence.
    pub fn opens(&self) -> bool {
        matches!(self.own()[0].gap, Gap::Start | Gap::Other | Gap::Point)
    }

    /// Returns whether it is capitalised like the name of a person.
    pub fn is_capitalised(&self) -> bool {
        self.own()
            .iter()
            .all(|word| word.shape == WordShape::Capital || is_particle(word) || is_initial(word))
    }

    /// Returns whether it contains a digit, as in "Q3".
    pub fn has_digit(&self) -> bool {
        self.text().contains(|c: char| c.is_ascii_digit())
    }

    fn mention(&self, kind: NameKind) -> Mention {
        Mention { kind, at: self.at(), name: self.sentence.text_of(&self.at()), role: None }
    }
}

/// Returns the names of a sentence, in order.
pub(super) fn mentions(
    sentence: &Sentence<'_>,
    before: Option<&Sentence<'_>>,
    source: TextSource,
    times: &[TimeExpression],
) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let words = &sentence.words;
    let titled = is_title_case(sentence);
    for (first, last) in runs(words, times) {
        let run = NameRun { sentence, words, first, last, source, timed: !times.is_empty() };
        if let Some(mention) = named(run, &found, titled) {
            found.push(mention);
        }
    }
    for street in places::streets(sentence) {
        found.retain(|mention| {
            mention.at.end <= street.at.start || street.at.end <= mention.at.start
        });
        found.push(street);
    }
    people::listed(sentence, before, source, &mut found);
    found.sort_by_key(|mention| mention.at.start);
    found
}

/// Returns the mention of a run, or of the rest of it after a word that only begins the sentence.
fn named(run: NameRun<'_>, earlier: &[Mention], titled: bool) -> Option<Mention> {
    let mut run = run;
    while run.first < run.last && run.opens() && begins_sentence(run) {
        run.first += 1;
    }
    run = people::without_titles(run);
    let whole = classify(run, earlier, titled);
    if whole.is_some() || run.len() == 1 {
        return whole;
    }
    // "London Heathrow", "Ask Bob": a known name at the end of a run that is not a name.
    let mut rest = run;
    rest.first = rest.last;
    let alone = rest.own()[0].folded.as_str();
    let known = FIRST_NAMES.get(alone) == Some(&true) || PLACES.get(rest.text()) == Some(&true);
    (known && run.opens() && run.len() == 2 && !titled)
        .then(|| classify(rest, earlier, titled))
        .flatten()
}

/// Returns whether the first word of a run only begins the sentence.
fn begins_sentence(run: NameRun<'_>) -> bool {
    let word = &run.own()[0];
    let folded = word.folded.as_str();
    let whole = run.text();
    let known = ORGANIZATIONS.contains_key(whole) || PLACES.contains_key(whole);
    COMMON.contains(folded) && !known && !places::begins_name(folded) && !people::is_title(folded)
}

fn classify(run: NameRun<'_>, earlier: &[Mention], titled: bool) -> Option<Mention> {
    let own = run.own();
    let single = own.len() == 1;
    if own.iter().all(|word| COMMON.contains(word.folded.as_str())) && run.opens() {
        return None;
    }
    if let Some(title) = people::titled(run) {
        return Some(title);
    }
    if !single && is_paper(run) {
        return Some(run.mention(NameKind::Document));
    }
    if organizations::is_by_name(run) {
        return Some(run.mention(NameKind::Organization));
    }
    if places::is_by_name(run) {
        return Some(run.mention(NameKind::Place));
    }
    // In a title-case line, only known names can be distinguished from words.
    if titled && !(FIRST_NAMES.get(own[0].folded.as_str()) == Some(&true) && own.len() < 4) {
        return None;
    }
    if people::is_by_name(run) {
        return Some(people::mention(run));
    }
    if organizations::is_by_place(run, earlier) {
        return Some(run.mention(NameKind::Organization));
    }
    if places::is_by_place(run) {
        return Some(run.mention(NameKind::Place));
    }
    if people::is_by_place(run) {
        return Some(people::mention(run));
    }
    organizations::is_likely(run).then(|| run.mention(NameKind::Organization))
}

/// Returns whether a run is the title of a document: "The Data Retention Policy".
fn is_paper(run: NameRun<'_>) -> bool {
    const PAPERS: &str = "policy report handbook agreement contract guide guidelines manual proposal charter \
        whitepaper specification roadmap checklist memo act regulation directive treaty \
        playbook runbook brief lease questionnaire addendum protocol minutes plan spec survey \
        summary invoice strategy deck";
    let last = run.own().last();
    let led = run
        .before(1)
        .is_some_and(|word| word.is("the our a my your this their in of read per see new"));
    last.is_some_and(|word| word.is(PAPERS) && !word.owns) && led && run.is_capitalised()
}

/// Returns the runs of words that could be names, by the indices of their first and last words.
fn runs(words: &[Word], times: &[TimeExpression]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        // "Swiss Air": a word that is only in names of organisations.
        let next = words.get(at + 1).filter(|next| next.gap == Gap::Space);
        let adjective = words[at].is_name_shaped() && next.is_some_and(organizations::may_own);
        if !(is_part(&words[at], times) || adjective) || is_particle(&words[at]) {
            at += 1;
            continue;
        }
        let mut last = at;
        while let Some(next) = continues(words, at, last, times) {
            last = next;
        }
        found.push((at, last));
        at = last + 1;
    }
    found
}

/// Returns the next last word of a run, perhaps after a particle.
fn continues(words: &[Word], first: usize, last: usize, times: &[TimeExpression]) -> Option<usize> {
    if last + 1 - first >= MAX_NAME_WORDS {
        return None;
    }
    let word = words.get(last + 1)?;
    let before = &words[last];
    let near = match word.gap {
        Gap::Space => true,
        Gap::Point => is_initial(before) || before.is("st mt dr prof mr mrs ms"),
        // "Weber & Partner", but not "Anna & Tom".
        Gap::Ampersand => {
            let someone = |word: &Word| FIRST_NAMES.get(word.folded.as_str()) == Some(&true);
            !(someone(before) && someone(word))
        }
        _ => false,
    };
    // "Miller's Garage" is a name, "Anna's Garage" too; "Anna's Monday" is not.
    let owner = before.owns && !organizations::may_own(word);
    if !near || owner {
        return None;
    }
    if is_part(word, times) && !is_particle(word) {
        return Some(last + 1);
    }
    // "University of Toronto", "Vincent van Gogh", "Dar es Salaam"
    let ties = word.is("of") && organizations::takes_of(before) || is_particle(word);
    let second = words.get(last + 2)?;
    if ties && second.gap == Gap::Space && is_part(second, times) {
        return Some(last + 2);
    }
    let third = words.get(last + 3)?;
    let both = word.is("of de") && second.is("the la") && organizations::takes_of(before);
    (both && is_part(third, times)).then_some(last + 3)
}

fn is_particle(word: &Word) -> bool {
    word.shape == WordShape::Lower
        && word.is("de van von der den del della di da la le bin al el es zu ten ter dos")
}

fn is_initial(word: &Word) -> bool {
    word.at.len() == 1 && word.shape == WordShape::Capital
}

/// Returns whether a word may be part of a name.
fn is_part(word: &Word, times: &[TimeExpression]) -> bool {
    let dated = times.iter().any(|time| time.at.contains(&word.at.start) && time.is_definite());
    if is_particle(word) {
        return true;
    }
    word.is_name_shaped()
        && !dated
        && !NOT_NAMES.contains(word.folded.as_str())
        && !word.folded.contains('_')
}

/// Returns whether nearly every word of a sentence has a capital letter, as in a title.
fn is_title_case(sentence: &Sentence<'_>) -> bool {
    let words =
        sentence.words.iter().filter(|word| word.shape != WordShape::Number && word.at.len() > 3);
    let (count, named) = words.fold((0, 0), |(count, named), word| {
        (count + 1, named + usize::from(word.is_name_shaped()))
    });
    sentence.block == SentenceBlock::Heading
        || (count >= 4 && named * 5 >= count * 4 && !sentence.plain.contains(','))
}

/// Adds the names of a sentence as facts.
pub(super) fn found(context: &SentenceContext<'_>, found: &mut Vec<FoundFact>) {
    let emails = links::emails(context.sentence.text);
    for mention in &context.names {
        let kind = match mention.kind {
            NameKind::Person => "person",
            NameKind::Organization => "organization",
            NameKind::Place => "place",
            NameKind::Document => continue,
        };
        let mut fact = FoundFact::new(kind, mention.at.clone()).text("name", mention.name.clone());
        if mention.kind == NameKind::Person {
            if let Some(email) = people::address(context, mention, &emails) {
                fact = fact.text("email", email);
            }
            if let Some(role) = &mention.role {
                fact = fact.text("role", role.clone());
            }
        }
        found.push(fact);
    }
}

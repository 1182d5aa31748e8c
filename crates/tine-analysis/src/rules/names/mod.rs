//! Names of people, organisations, places and papers.
//!
//! A name is a run of words with capital letters. What it names is told by the words that it is
//! made of and by those around it; a run that nothing speaks for is no finding. At the beginning
//! of a sentence a capital letter says nothing, so there a word needs more than that.

mod organizations;
mod people;
mod places;

use std::ops::Range;

use super::Found;
use super::links;
use super::lists::{COMMON, FIRST_NAMES, NOT_NAMES, ORGANIZATIONS, PLACES};
use super::passage::{Block, Sentence};
use super::scene::{Reader, Scene};
use super::when::When;
use super::words::{Gap, Shape, Word};

/// The most words of a name.
const MAX_NAME_WORDS: usize = 7;

/// What a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Person,
    Organization,
    Place,
    Document,
}

/// A name in a sentence.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub kind: Kind,
    /// Its bytes, without titles.
    pub at: Range<usize>,
    pub name: String,
    /// What a person is to whoever speaks, or in their work.
    pub role: Option<String>,
}

/// A run of words that could be a name, with what stands around it.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub sentence: &'a Sentence<'a>,
    pub words: &'a [Word],
    /// The words of the run, by number.
    pub first: usize,
    pub last: usize,
    pub reader: Reader,
    /// Whether something in the sentence says when.
    pub timed: bool,
}

impl<'a> Run<'a> {
    /// The words of the run.
    pub fn own(&self) -> &'a [Word] {
        &self.words[self.first..=self.last]
    }

    pub fn len(&self) -> usize {
        self.last - self.first + 1
    }

    /// Its bytes in the sentence.
    pub fn at(&self) -> Range<usize> {
        self.words[self.first].at.start..self.words[self.last].at.end
    }

    /// As it is written.
    pub fn text(&self) -> &'a str {
        &self.sentence.text[self.at()]
    }

    /// The word so many places before the run.
    pub fn before(&self, places: usize) -> Option<&'a Word> {
        self.first.checked_sub(places).and_then(|at| self.words.get(at))
    }

    /// The word so many places behind the run.
    pub fn after(&self, places: usize) -> Option<&'a Word> {
        self.words.get(self.last + places)
    }

    /// Whether the word before it is one of these, with nothing but space between.
    pub fn follows(&self, any: &str) -> bool {
        self.own()[0].gap == Gap::Space && self.before(1).is_some_and(|word| word.is(any))
    }

    /// Whether the word behind it is one of these, with nothing but space between.
    pub fn precedes(&self, any: &str) -> bool {
        self.after(1).is_some_and(|word| word.gap == Gap::Space && word.is(any))
            && !self.own().last().is_some_and(|word| word.owns)
    }

    /// Whether its capital letter could be that of the sentence.
    pub fn opens(&self) -> bool {
        matches!(self.own()[0].gap, Gap::Start | Gap::Other | Gap::Point)
    }

    /// Whether it is written as names of people are.
    pub fn is_capitalised(&self) -> bool {
        self.own()
            .iter()
            .all(|word| word.shape == Shape::Capital || is_particle(word) || is_initial(word))
    }

    /// Whether there is a figure in it, as in "Q3".
    pub fn has_digit(&self) -> bool {
        self.text().contains(|c: char| c.is_ascii_digit())
    }

    fn mention(&self, kind: Kind) -> Mention {
        Mention { kind, at: self.at(), name: self.sentence.said(&self.at()), role: None }
    }
}

/// The names of a sentence, in order.
pub(super) fn mentions(
    sentence: &Sentence<'_>,
    before: Option<&Sentence<'_>>,
    reader: Reader,
    whens: &[When],
) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let words = &sentence.words;
    let titled = is_title_case(sentence);
    for (first, last) in runs(words, whens) {
        let run = Run { sentence, words, first, last, reader, timed: !whens.is_empty() };
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
    people::listed(sentence, before, reader, &mut found);
    found.sort_by_key(|mention| mention.at.start);
    found
}

/// What a run names, or what is left of it without a word that only begins the sentence.
fn named(run: Run<'_>, earlier: &[Mention], titled: bool) -> Option<Mention> {
    let mut run = run;
    while run.first < run.last && run.opens() && begins_sentence(run) {
        run.first += 1;
    }
    run = people::without_titles(run);
    let whole = classify(run, earlier, titled);
    if whole.is_some() || run.len() == 1 {
        return whole;
    }
    // "London Heathrow", "Ask Bob": a known name at the end of a run that is none.
    let mut rest = run;
    rest.first = rest.last;
    let alone = rest.own()[0].folded.as_str();
    let known = FIRST_NAMES.get(alone) == Some(&true) || PLACES.get(rest.text()) == Some(&true);
    (known && run.opens() && run.len() == 2 && !titled)
        .then(|| classify(rest, earlier, titled))
        .flatten()
}

/// Whether the first word of a run only begins the sentence.
fn begins_sentence(run: Run<'_>) -> bool {
    let word = &run.own()[0];
    let folded = word.folded.as_str();
    let whole = run.text();
    let known = ORGANIZATIONS.contains_key(whole) || PLACES.contains_key(whole);
    COMMON.contains(folded) && !known && !places::begins_name(folded) && !people::is_title(folded)
}

fn classify(run: Run<'_>, earlier: &[Mention], titled: bool) -> Option<Mention> {
    let own = run.own();
    let single = own.len() == 1;
    if own.iter().all(|word| COMMON.contains(word.folded.as_str())) && run.opens() {
        return None;
    }
    if let Some(title) = people::titled(run) {
        return Some(title);
    }
    if !single && is_paper(run) {
        return Some(run.mention(Kind::Document));
    }
    if organizations::is_by_name(run) {
        return Some(run.mention(Kind::Organization));
    }
    if places::is_by_name(run) {
        return Some(run.mention(Kind::Place));
    }
    // In a line of capitals nothing but a known name can be told from a word.
    if titled && !(FIRST_NAMES.get(own[0].folded.as_str()) == Some(&true) && own.len() < 4) {
        return None;
    }
    if people::is_by_name(run) {
        return Some(people::mention(run));
    }
    if organizations::is_by_place(run, earlier) {
        return Some(run.mention(Kind::Organization));
    }
    if places::is_by_place(run) {
        return Some(run.mention(Kind::Place));
    }
    if people::is_by_place(run) {
        return Some(people::mention(run));
    }
    organizations::is_likely(run).then(|| run.mention(Kind::Organization))
}

/// "The Data Retention Policy": a paper with a title of its own.
fn is_paper(run: Run<'_>) -> bool {
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

/// Runs of words that could be names, by the numbers of their first and last words.
fn runs(words: &[Word], whens: &[When]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        // "Swiss Air": a word that is in no name but that of an organisation.
        let next = words.get(at + 1).filter(|next| next.gap == Gap::Space);
        let adjective = words[at].is_name_shaped() && next.is_some_and(organizations::may_own);
        if !(is_part(&words[at], whens) || adjective) || is_particle(&words[at]) {
            at += 1;
            continue;
        }
        let mut last = at;
        while let Some(next) = continues(words, at, last, whens) {
            last = next;
        }
        found.push((at, last));
        at = last + 1;
    }
    found
}

/// The next word of a run behind its last one, over what ties names together.
fn continues(words: &[Word], first: usize, last: usize, whens: &[When]) -> Option<usize> {
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
    if is_part(word, whens) && !is_particle(word) {
        return Some(last + 1);
    }
    // "University of Toronto", "Vincent van Gogh", "Dar es Salaam"
    let ties = word.is("of") && organizations::takes_of(before) || is_particle(word);
    let second = words.get(last + 2)?;
    if ties && second.gap == Gap::Space && is_part(second, whens) {
        return Some(last + 2);
    }
    let third = words.get(last + 3)?;
    let both = word.is("of de") && second.is("the la") && organizations::takes_of(before);
    (both && is_part(third, whens)).then_some(last + 3)
}

fn is_particle(word: &Word) -> bool {
    word.shape == Shape::Lower
        && word.is("de van von der den del della di da la le bin al el es zu ten ter dos")
}

fn is_initial(word: &Word) -> bool {
    word.at.len() == 1 && word.shape == Shape::Capital
}

/// Whether a word may be part of a name.
fn is_part(word: &Word, whens: &[When]) -> bool {
    let dated = whens.iter().any(|when| when.at.contains(&word.at.start) && when.is_definite());
    if is_particle(word) {
        return true;
    }
    word.is_name_shaped()
        && !dated
        && !NOT_NAMES.contains(word.folded.as_str())
        && !word.folded.contains('_')
}

/// Whether nearly every word of a sentence has a capital letter, as in a title.
fn is_title_case(sentence: &Sentence<'_>) -> bool {
    let words =
        sentence.words.iter().filter(|word| word.shape != Shape::Number && word.at.len() > 3);
    let (count, named) = words.fold((0, 0), |(count, named), word| {
        (count + 1, named + usize::from(word.is_name_shaped()))
    });
    sentence.block == Block::Heading
        || (count >= 4 && named * 5 >= count * 4 && !sentence.plain.contains(','))
}

/// The names of a scene as facts.
pub(super) fn found(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let emails = links::emails(scene.sentence.text);
    for mention in &scene.names {
        let kind = match mention.kind {
            Kind::Person => "person",
            Kind::Organization => "organization",
            Kind::Place => "place",
            Kind::Document => continue,
        };
        let mut fact = Found::new(kind, mention.at.clone()).text("name", mention.name.clone());
        if mention.kind == Kind::Person {
            if let Some(email) = people::address(scene, mention, &emails) {
                fact = fact.text("email", email);
            }
            if let Some(role) = &mention.role {
                fact = fact.text("role", role.clone());
            }
        }
        found.push(fact);
    }
}

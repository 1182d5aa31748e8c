//! Compares the rings of a corpus of turns with what people expect of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use tine_analysis::rings::rings;
use unicode_normalization::UnicodeNormalization;

/// How many of the first keywords are judged.
const JUDGED: usize = 5;

/// One turn of a corpus, and what is expected of it.
#[derive(Deserialize)]
struct Turn {
    id: String,
    language: String,
    text: String,
    intent: String,
    keywords: Vec<String>,
    facets: Vec<String>,
}

/// Sums over turns.
#[derive(Clone, Default)]
pub struct Score {
    turns: usize,
    keyworded: usize,
    /// Precision at five, summed.
    precision: f64,
    intents: usize,
    facets_right: usize,
    facets_told: usize,
    facets_expected: usize,
}

impl Score {
    /// Expected keywords among the first five, of as many as there could be; the mean over turns
    /// that have any.
    pub fn precision(&self) -> f64 {
        self.precision / self.keyworded.max(1) as f64
    }

    /// Turns whose intent is right.
    pub fn intent(&self) -> f64 {
        self.intents as f64 / self.turns.max(1) as f64
    }

    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.keyworded += other.keyworded;
        self.precision += other.precision;
        self.intents += other.intents;
        self.facets_right += other.facets_right;
        self.facets_told += other.facets_told;
        self.facets_expected += other.facets_expected;
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let right = self.facets_right as f64;
        let precision = right / self.facets_told.max(1) as f64;
        let recall = right / self.facets_expected.max(1) as f64;
        write!(f, "{:4} turns  keywords {:.3}  ", self.turns, self.precision())?;
        write!(f, "intent {:.3}  facets {precision:.3} / {recall:.3}", self.intent())
    }
}

/// What came out.
#[derive(Default)]
pub struct Verdict {
    /// By language.
    pub languages: BTreeMap<String, Score>,
    /// Each turn that is not as expected, in words.
    pub misses: Vec<String>,
}

impl Verdict {
    /// All languages together.
    pub fn overall(&self) -> Score {
        let mut sum = Score::default();
        self.languages.values().for_each(|score| sum.add(score));
        sum
    }
}

/// Judges a file with one turn a line.
pub fn judge(file: &Path) -> Verdict {
    let text = std::fs::read_to_string(file).expect("the corpus can be read");
    let mut verdict = Verdict::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let turn: Turn = serde_json::from_str(line).expect("a turn a line");
        let (score, miss) = compare(&turn);
        verdict.languages.entry(turn.language).or_default().add(&score);
        verdict.misses.extend(miss);
    }
    verdict
}

fn compare(turn: &Turn) -> (Score, Option<String>) {
    let found = rings(&turn.text);
    let expected: BTreeSet<String> = turn.keywords.iter().map(|it| folded(it)).collect();
    let first: Vec<String> =
        found.keywords.iter().take(JUDGED).map(|it| folded(&it.text)).collect();
    let right =
        first.iter().collect::<BTreeSet<_>>().into_iter().filter(|it| expected.contains(*it));
    let possible = expected.len().min(JUDGED);
    let precision = right.count().min(possible) as f64 / possible.max(1) as f64;
    let told: BTreeSet<&str> = found.facets.iter().map(|it| it.name).collect();
    let facets: BTreeSet<&str> = turn.facets.iter().map(String::as_str).collect();
    let is_intent = found.intent.as_str() == turn.intent;
    let score = Score {
        turns: 1,
        keyworded: usize::from(possible > 0),
        precision: if possible > 0 { precision } else { 0.0 },
        intents: usize::from(is_intent),
        facets_right: told.intersection(&facets).count(),
        facets_told: told.len(),
        facets_expected: facets.len(),
    };
    let fine = is_intent && told == facets && (possible == 0 || precision > 0.99);
    let miss = (!fine).then(|| {
        let all: Vec<&str> = found.keywords.iter().map(|it| it.text.as_str()).collect();
        format!(
            "{} {}\n  intent {} expected {}\n  keywords {all:?}\n  expected {:?}\n  facets +{:?} -{:?}",
            turn.id,
            turn.text,
            found.intent,
            turn.intent,
            turn.keywords,
            told.difference(&facets).collect::<Vec<_>>(),
            facets.difference(&told).collect::<Vec<_>>(),
        )
    });
    (score, miss)
}

fn folded(keyword: &str) -> String {
    keyword.trim().nfc().flat_map(char::to_lowercase).collect()
}

//! Compares what rules find with what a corpus says there is. The test that holds the figure and
//! the example that prints it both use this, so that they cannot differ.
//!
//! The format of a corpus and the rules of matching are in `tests/rules/corpus/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use tine_analysis::rules::Rules;
use tine_analysis::{Account, Finding, Interpreter, Material, Subject};
use tine_core::json::{self, Object};
use tine_core::{Json, Role};

/// The share of words that two phrases must have in common.
const OVERLAP: f64 = 0.5;

/// Words that say nothing about whether two phrases mean the same.
const STOP_WORDS: &str = "a an the and or but of to in on at by for from with about as is are be \
    am was were it its this that these those i i'm i've i'd i'll we we'll we're you he she they me \
    my our your his her their him them us so if not no do does will would should";

/// Found and expected facts of one type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Found as expected.
    pub right: usize,
    /// Found in all.
    pub found: usize,
    /// Expected in all.
    pub expected: usize,
}

impl Score {
    /// The share of what was found that is right.
    pub fn precision(&self) -> f64 {
        ratio(self.right, self.found)
    }

    /// The share of what there is that was found.
    pub fn recall(&self) -> f64 {
        ratio(self.right, self.expected)
    }

    fn add(&mut self, other: &Score) {
        self.right += other.right;
        self.found += other.found;
        self.expected += other.expected;
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (precision, recall) = (self.precision(), self.recall());
        let Score { right, found, expected } = self;
        write!(
            f,
            "precision {precision:.3} ({right}/{found})  recall {recall:.3} ({right}/{expected})"
        )
    }
}

/// What came out for a corpus.
#[derive(Default)]
pub struct Verdict {
    /// By type.
    pub types: BTreeMap<String, Score>,
    /// What was not found, and what was found and is not there, a line each.
    pub misses: Vec<String>,
}

impl Verdict {
    /// All types together.
    pub fn overall(&self) -> Score {
        self.types.values().fold(Score::default(), |mut all, score| {
            all.add(score);
            all
        })
    }
}

/// Reads every turn of a corpus and compares.
pub fn judge(corpus: &Path) -> Verdict {
    let bytes = std::fs::read(corpus).expect("the corpus can be read");
    let corpus = json::parse(&bytes, 16).expect("the corpus is JSON");
    let mut verdict = Verdict::default();
    for turn in corpus.as_array().expect("the corpus is an array") {
        compare(turn, &mut verdict);
    }
    verdict
}

fn compare(turn: &Json, verdict: &mut Verdict) {
    let text = |field: &str| turn.get(field).and_then(Json::as_str);
    let role = match text("role") {
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    };
    let said = text("text").expect("a turn has a text");
    let material = Material {
        text: said,
        subject: Subject::Turn(role),
        authored_at: text("said_at").and_then(|at| at.parse().ok()),
    };
    let found = Rules.interpret(&material, &mut Account::default()).expect("rules never fail");
    let expected = turn.get("facts").and_then(Json::as_array).expect("a turn has facts");
    let id = text("id").unwrap_or("?");
    let mut free: Vec<&Finding> = found.iter().collect();
    for fact in expected {
        let kind = fact.get("entity_type").and_then(Json::as_str).expect("a fact has a type");
        let fields = fact.get("fields").and_then(Json::as_object).expect("a fact has fields");
        let score = verdict.types.entry(kind.to_owned()).or_default();
        score.expected += 1;
        match free.iter().position(|it| it.entity_type == kind && agree(kind, fields, &it.fields)) {
            Some(at) => {
                free.remove(at);
                score.right += 1;
            }
            None => verdict.misses.push(format!("{id} not found: {kind} {}", shown(fields))),
        }
    }
    for finding in &found {
        verdict.types.entry(finding.entity_type.clone()).or_default().found += 1;
    }
    for finding in free {
        let (kind, fields) = (&finding.entity_type, shown(&finding.fields));
        verdict.misses.push(format!("{id} not there: {kind} {fields}"));
    }
}

fn shown(fields: &Object) -> String {
    Json::from(fields.clone()).to_canonical()
}

/// Whether a finding is the fact that is expected.
fn agree(kind: &str, expected: &Object, found: &Object) -> bool {
    let same = |field: &str| expected.get(field) == found.get(field);
    let folded = |fields: &Object, field: &str| {
        fields.get(field).and_then(Json::as_str).map(str::to_lowercase)
    };
    let dated = |field: &str| !expected.contains_key(field) || same(field);
    match kind {
        "person" | "organization" | "place" => folded(expected, "name") == folded(found, "name"),
        "document" => folded(expected, "title") == folded(found, "title"),
        "link" => same("url"),
        "amount" => {
            let value = |fields: &Object| {
                fields.get("value").and_then(Json::as_number).map(|number| number.as_f64())
            };
            value(expected) == value(found) && same("unit")
        }
        "task" => overlap(expected, found, "title") && dated("due"),
        "event" => overlap(expected, found, "title") && dated("date"),
        _ => overlap(expected, found, "statement"),
    }
}

fn overlap(expected: &Object, found: &Object, field: &str) -> bool {
    let words =
        |fields: &Object| content_words(fields.get(field).and_then(Json::as_str).unwrap_or(""));
    let (expected, found) = (words(expected), words(found));
    let common = expected.intersection(&found).count();
    ratio(common, expected.union(&found).count()) >= OVERLAP
}

fn content_words(text: &str) -> BTreeSet<String> {
    let stop: BTreeSet<&str> = STOP_WORDS.split_whitespace().collect();
    let folded = text.to_lowercase().replace('’', "'");
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '-' | '_' | '.');
    folded
        .split(|c: char| !inner(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty() && !stop.contains(word))
        .map(str::to_owned)
        .collect()
}

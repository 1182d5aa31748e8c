//! The interpreter `rules`: extracts facts from English sentences, without network or model.
//!
//! A text is cut into sentences (`passage`). In each, names and time expressions are found first;
//! then the families of rules run in a fixed order, and a phrase that one family of statements has
//! claimed (a task, a decision, a preference, an event) is not used by another. Turns and documents
//! share the families, which treat them differently where needed (`context::TextSource`).
//!
//! Invariants: the same material gives the same findings; they are sorted by span; spans are whole
//! characters of the text; a fact is found once in a text; there are never more than
//! [`MAX_FINDINGS`]. Rules prefer precision to recall: ambiguous statements are left to a model.

mod amounts;
mod calendar;
mod context;
mod decisions;
mod documents;
mod events;
mod links;
mod lists;
mod names;
mod passage;
mod preferences;
mod tasks;
mod time_expressions;
mod tokens;

use std::collections::HashMap;
use std::ops::Range;

use chrono::{DateTime, NaiveDate};
use tine_core::Json;
use tine_core::json::{Object, object};

use crate::{
    Account, Finding, Interpreter, InterpreterFailure, InterpreterInfo, InterpreterKind, Material,
    Subject,
};
use context::{SentenceContext, TextSource};

/// The maximum number of findings in a text; the rest of the text is ignored.
pub const MAX_FINDINGS: usize = 1_000;

/// The built-in interpreter.
///
/// ```
/// use tine_core::Role;
/// use tine_analysis::{Account, Interpreter, Material, Subject, rules::Rules};
///
/// let material = Material {
///     text: "I need to call Anna tomorrow.",
///     subject: Subject::Turn(Role::User),
///     authored_at: "2025-03-03T09:00:00Z".parse().ok(),
/// };
/// let found = Rules.interpret(&material, &mut Account::default())?;
/// assert_eq!(found[0].entity_type, "task");
/// assert_eq!(found[0].fields.get("title"), Some(&"call Anna".into()));
/// assert_eq!(found[0].fields.get("due"), Some(&"2025-03-04".into()));
/// assert_eq!(found[1].fields.get("name"), Some(&"Anna".into()));
/// # Ok::<(), tine_analysis::InterpreterFailure>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules;

impl Interpreter for Rules {
    fn about(&self) -> InterpreterInfo {
        InterpreterInfo {
            name: "rules".into(),
            version: "1".into(),
            kind: InterpreterKind::Rules,
            provider: None,
            model: None,
            parameters: object([]),
            seed: None,
        }
    }

    fn interpret(
        &self,
        material: &Material<'_>,
        account: &mut Account,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        account.tries += 1;
        Ok(read(material))
    }

    /// Interprets the text again: rules have no response.
    fn replay(
        &self,
        material: &Material<'_>,
        _response: Option<&[u8]>,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        Ok(read(material))
    }
}

#[derive(Clone, Debug)]
struct FoundFact {
    kind: &'static str,
    /// The bytes in the sentence.
    at: Range<usize>,
    fields: Object,
}

impl FoundFact {
    fn new(kind: &'static str, at: Range<usize>) -> FoundFact {
        FoundFact { kind, at, fields: Object::new() }
    }

    fn text(self, field: &str, text: impl Into<String>) -> FoundFact {
        self.value(field, Json::String(text.into()))
    }

    fn value(mut self, field: &str, value: Json) -> FoundFact {
        self.fields.insert(field, value);
        self
    }

    /// Adds a date, if there is one.
    fn day(self, field: &str, day: Option<NaiveDate>) -> FoundFact {
        match day {
            Some(day) => self.text(field, day.format("%Y-%m-%d").to_string()),
            None => self,
        }
    }
}

/// Returns the findings of a text, in order.
fn read(material: &Material<'_>) -> Vec<Finding> {
    let reference_date =
        material.authored_at.and_then(|at| DateTime::from_timestamp_millis(at.as_millis()));
    let reference_date = reference_date.map(|at| at.date_naive());
    let source = match material.subject {
        Subject::Turn(role) => TextSource::Turn(role),
        Subject::Document => TextSource::Document,
    };
    let mut findings = Findings::default();
    let sentences = passage::sentences(material.text);
    for (no, sentence) in sentences.iter().enumerate() {
        if findings.kept.len() >= MAX_FINDINGS {
            break;
        }
        let before = no.checked_sub(1).and_then(|no| sentences.get(no));
        let context = SentenceContext::new(sentence, before, source, reference_date);
        for found in facts(&context) {
            findings.add(sentence.start, found);
        }
    }
    findings.done()
}

fn facts(context: &SentenceContext<'_>) -> Vec<FoundFact> {
    let mut found = Vec::new();
    links::find(context.sentence, &mut found);
    amounts::find(context.sentence, &context.times, &mut found);
    documents::find(context, &mut found);
    names::found(context, &mut found);
    // Statements; each claims its phrase.
    let mut taken: Vec<Range<usize>> = Vec::new();
    for family in [preferences::find, decisions::find, tasks::find, events::find] {
        let stated = family(context, &taken);
        taken.extend(stated.iter().map(|found| found.at.clone()));
        found.extend(stated);
    }
    found
}

/// Findings of a text so far, without duplicates.
#[derive(Default)]
struct Findings {
    kept: Vec<Finding>,
    /// Indices of findings by type and identity.
    index: HashMap<(&'static str, String), usize>,
}

impl Findings {
    /// Adds a fact of a sentence, or merges its fields into an equal one.
    fn add(&mut self, start: usize, found: FoundFact) {
        if self.kept.len() >= MAX_FINDINGS {
            return;
        }
        let key = (found.kind, identity(&found));
        if let Some(&at) = self.index.get(&key) {
            let fields = &mut self.kept[at].fields;
            for (field, value) in found.fields {
                if !fields.contains_key(&field) {
                    fields.insert(field, value);
                }
            }
            return;
        }
        // A part of a full name refers to the same person.
        let at = self.kept.len();
        if found.kind == "person" {
            for part in key.1.split_whitespace().filter(|_| key.1.contains(' ')) {
                self.index.entry(("person", part.to_owned())).or_insert(at);
            }
        }
        self.index.insert(key, at);
        self.kept.push(Finding {
            entity_type: found.kind.to_owned(),
            fields: found.fields,
            span: Some(start + found.at.start..start + found.at.end),
        });
    }

    fn done(mut self) -> Vec<Finding> {
        let place = |finding: &Finding| finding.span.as_ref().map(|span| (span.start, span.end));
        // Stable: facts of one span stay in the order of their families.
        self.kept.sort_by_key(place);
        self.kept
    }
}

/// Returns the text by which facts of a type are compared.
fn identity(found: &FoundFact) -> String {
    let own = match found.kind {
        "person" | "organization" | "place" => ["name"].as_slice(),
        "document" => &["title"],
        _ => &[],
    };
    let fields: Vec<String> = found
        .fields
        .iter()
        .filter(|(field, _)| own.is_empty() || own.contains(field))
        .map(|(_, value)| match value {
            Json::String(text) => text.to_lowercase(),
            other => other.to_canonical(),
        })
        .collect();
    fields.join("\n")
}

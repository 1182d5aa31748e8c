//! The interpreter `rules`: facts in plain English sentences, without network, weights or clock.
//!
//! A text is cut into sentences (`passage`). In each, names and what says when are found first;
//! then the families of facts read it in a fixed order, and a phrase that one family of statements
//! has taken (a task, a decision, a preference, an event) is no other's. Turns and documents share
//! the families, and each family says where it reads them differently (`scene::Reader`).
//!
//! What always holds: the same material gives the same findings; they are sorted by span; spans
//! are whole characters of the text; a fact is found once in a text; there are never more than
//! [`MAX_FINDINGS`]. Rules are precise before they are complete: what could as well be something
//! else is left to a model.

mod amounts;
mod calendar;
mod decisions;
mod documents;
mod events;
mod links;
mod lists;
mod names;
mod passage;
mod preferences;
mod scene;
mod tasks;
mod when;
mod words;

use std::collections::HashMap;
use std::ops::Range;

use chrono::{DateTime, NaiveDate};
use tine_core::Json;
use tine_core::json::{Object, object};

use crate::{About, Account, Failure, Finding, Interpreter, Kind, Material, Subject};
use scene::{Reader, Scene};

/// The most findings of one text; what stands behind them is not found.
pub const MAX_FINDINGS: usize = 1_000;

/// The interpreter that is built in.
///
/// ```
/// use tine_core::Role;
/// use tine_analysis::{Account, Interpreter, Material, Subject, rules::Rules};
///
/// let material = Material {
///     text: "I need to call Anna tomorrow.",
///     subject: Subject::Turn(Role::User),
///     said_at: "2025-03-03T09:00:00Z".parse().ok(),
/// };
/// let found = Rules.interpret(&material, &mut Account::default())?;
/// assert_eq!(found[0].entity_type, "task");
/// assert_eq!(found[0].fields.get("title"), Some(&"call Anna".into()));
/// assert_eq!(found[0].fields.get("due"), Some(&"2025-03-04".into()));
/// assert_eq!(found[1].fields.get("name"), Some(&"Anna".into()));
/// # Ok::<(), tine_analysis::Failure>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules;

impl Interpreter for Rules {
    fn about(&self) -> About {
        About {
            name: "rules".into(),
            version: "1".into(),
            kind: Kind::Rules,
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
    ) -> Result<Vec<Finding>, Failure> {
        account.tries += 1;
        Ok(read(material))
    }

    /// Rules have no response to keep: reading again gives the same.
    fn replay(
        &self,
        material: &Material<'_>,
        _response: Option<&[u8]>,
    ) -> Result<Vec<Finding>, Failure> {
        Ok(read(material))
    }
}

/// A fact in a sentence.
#[derive(Clone, Debug)]
struct Found {
    kind: &'static str,
    /// Its bytes in the sentence.
    at: Range<usize>,
    fields: Object,
}

impl Found {
    fn new(kind: &'static str, at: Range<usize>) -> Found {
        Found { kind, at, fields: Object::new() }
    }

    fn text(self, field: &str, text: impl Into<String>) -> Found {
        self.value(field, Json::String(text.into()))
    }

    fn value(mut self, field: &str, value: Json) -> Found {
        self.fields.insert(field, value);
        self
    }

    /// With a day, if there is one.
    fn day(self, field: &str, day: Option<NaiveDate>) -> Found {
        match day {
            Some(day) => self.text(field, day.format("%Y-%m-%d").to_string()),
            None => self,
        }
    }
}

/// The findings of a text, in order.
fn read(material: &Material<'_>) -> Vec<Finding> {
    let said = material.said_at.and_then(|at| DateTime::from_timestamp_millis(at.as_millis()));
    let said = said.map(|at| at.date_naive());
    let reader = match material.subject {
        Subject::Turn(role) => Reader::Turn(role),
        Subject::Document => Reader::Document,
    };
    let mut findings = Findings::default();
    let sentences = passage::sentences(material.text);
    for (no, sentence) in sentences.iter().enumerate() {
        if findings.kept.len() >= MAX_FINDINGS {
            break;
        }
        let before = no.checked_sub(1).and_then(|no| sentences.get(no));
        let scene = Scene::new(sentence, before, reader, said);
        for found in facts(&scene) {
            findings.add(sentence.start, found);
        }
    }
    findings.done()
}

/// The facts of one sentence.
fn facts(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    links::find(scene.sentence, &mut found);
    amounts::find(scene.sentence, &scene.whens, &mut found);
    documents::find(scene, &mut found);
    names::found(scene, &mut found);
    // Statements, each of which takes its phrase.
    let mut taken: Vec<Range<usize>> = Vec::new();
    for family in [preferences::find, decisions::find, tasks::find, events::find] {
        let stated = family(scene, &taken);
        taken.extend(stated.iter().map(|found| found.at.clone()));
        found.extend(stated);
    }
    found
}

/// What was found in a text so far.
#[derive(Default)]
struct Findings {
    kept: Vec<Finding>,
    /// Where facts of a type and a name are among them.
    known: HashMap<(&'static str, String), usize>,
}

impl Findings {
    /// Adds a fact of a sentence, or what it says more about one that is there.
    fn add(&mut self, start: usize, found: Found) {
        if self.kept.len() >= MAX_FINDINGS {
            return;
        }
        let key = (found.kind, identity(&found));
        if let Some(&at) = self.known.get(&key) {
            let fields = &mut self.kept[at].fields;
            for (field, value) in found.fields {
                if !fields.contains_key(&field) {
                    fields.insert(field, value);
                }
            }
            return;
        }
        // Whoever was named in full is the same when named by a part of it.
        let at = self.kept.len();
        if found.kind == "person" {
            for part in key.1.split_whitespace().filter(|_| key.1.contains(' ')) {
                self.known.entry(("person", part.to_owned())).or_insert(at);
            }
        }
        self.known.insert(key, at);
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

/// What tells two facts of a type apart.
fn identity(found: &Found) -> String {
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

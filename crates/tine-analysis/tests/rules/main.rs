//! What the interpreter `rules` finds, family by family; what holds for any text; and the figures
//! that it has to keep on a corpus that it was not made from.

mod dates;
mod figures;
mod judge;
mod measures;
mod names;
mod random;
mod reading;
mod statements;

use tine_analysis::rules::Rules;
use tine_analysis::{Account, Finding, Interpreter, Material, Subject};
use tine_core::{Json, Role};

/// A Monday.
const SAID_AT: &str = "2025-03-03T09:00:00Z";

/// What is found in a text of a kind, said on a Monday.
fn read(subject: Subject, text: &str) -> Vec<Finding> {
    let material = Material { text, subject, authored_at: SAID_AT.parse().ok() };
    Rules.interpret(&material, &mut Account::default()).expect("rules never fail")
}

/// The facts of one type: the field that names each, then the others as `field=value`.
fn shown(kind: &str, findings: &[Finding]) -> Vec<String> {
    let of_kind = findings.iter().filter(|finding| finding.entity_type == kind);
    of_kind.map(described).collect()
}

fn described(finding: &Finding) -> String {
    let plain = |value: &Json| match value {
        Json::String(text) => text.clone(),
        other => other.to_canonical(),
    };
    let naming = ["name", "title", "statement", "url", "value"];
    let named = naming.iter().find_map(|field| finding.fields.get(field)).map(plain);
    let others = finding.fields.iter().filter(|(field, _)| !naming.contains(field));
    let others = others.map(|(field, value)| format!(" {field}={}", plain(value)));
    named.unwrap_or_default() + &others.collect::<String>()
}

/// Facts of one type in a user's turn.
fn said(kind: &str, text: &str) -> Vec<String> {
    shown(kind, &read(Subject::Turn(Role::User), text))
}

/// Facts of one type in an assistant's turn.
fn answered(kind: &str, text: &str) -> Vec<String> {
    shown(kind, &read(Subject::Turn(Role::Assistant), text))
}

/// Facts of one type in a document.
fn written(kind: &str, text: &str) -> Vec<String> {
    shown(kind, &read(Subject::Document, text))
}

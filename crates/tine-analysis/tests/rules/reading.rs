//! What is read of a text, and in which order findings come.

use tine_analysis::rules::{MAX_FINDINGS, Rules};
use tine_analysis::{Interpreter, InterpreterKind, Material, Subject};
use tine_core::{Json, Role};

use super::{SAID_AT, read, said, written};

const NONE: [&str; 0] = [];

#[test]
fn the_rules_identify_themselves() {
    let about = Rules.about();
    assert_eq!(
        (about.name.as_str(), about.version.as_str(), about.kind),
        ("rules", "1", InterpreterKind::Rules)
    );
    assert_eq!((about.provider, about.model, about.seed), (None, None, None));
}

#[test]
fn code_and_quoted_blocks_are_skipped_in_turns_and_documents() {
    let text = "Look:\n```\nI need to call Anna.\n```\n> I need to call Ben.\n\n    I need to call Carl.\n\nAnd `I need to call Dora`.";
    for kind in ["task", "person"] {
        assert_eq!(said(kind, text), NONE, "{kind}");
        assert_eq!(written(kind, text), NONE, "{kind}");
    }
}

#[test]
fn an_unclosed_fence_hides_the_rest() {
    assert_eq!(said("task", "```\nI need to call Anna.\n\nI need to call Ben."), NONE);
}

#[test]
fn wrapped_lines_are_one_sentence_and_list_items_are_several() {
    assert_eq!(
        said("task", "I need to call\nthe bank tomorrow."),
        ["call the bank due=2025-03-04"]
    );
    let list = "- [ ] call Anna\n- [ ] call Ben";
    assert_eq!(said("task", list), ["call Anna", "call Ben"]);
}

#[test]
fn abbreviations_do_not_end_sentences() {
    assert_eq!(said("person", "I met Dr. Keller at 3 p.m. yesterday."), ["Keller"]);
}

#[test]
fn spans_are_the_bytes_of_the_fact() {
    let text = "Grüße! I need to call Ana Kovač tomorrow.";
    let found = read(Subject::Turn(Role::User), text);
    let spans: Vec<&str> =
        found.iter().filter_map(|it| text.get(it.span.clone().unwrap_or_default())).collect();
    assert_eq!(spans, ["call Ana Kovač", "Ana Kovač"]);
}

#[test]
fn multibyte_white_space_and_apostrophes_are_handled() {
    let odd = "I need to call Ben\u{a0}if\u{a0}I need to. Lunch tomorrow for Anna’s.";
    assert_eq!(said("task", odd), ["call Ben"]);
    assert_eq!(said("event", odd), ["Lunch date=2025-03-04"]);
    let owned = "Tomorrow there is a lunch for Anna’s.";
    assert_eq!(said("event", owned), ["lunch for Anna’s date=2025-03-04"]);
}

#[test]
fn a_replay_interprets_the_text_again() {
    let material = Material {
        text: "We decided to move to Lisbon.",
        subject: Subject::Turn(Role::User),
        authored_at: SAID_AT.parse().ok(),
    };
    let replayed = Rules.replay(&material, None).expect("rules never fail");
    assert_eq!(replayed, read(material.subject, material.text));
}

#[test]
fn a_text_has_no_more_findings_than_the_limit() {
    let text: String = (0..MAX_FINDINGS * 2).map(|no| format!("It costs ${no}.\n")).collect();
    let found = read(Subject::Document, &text);
    assert_eq!(found.len(), MAX_FINDINGS);
    let last = found.last().and_then(|it| it.fields.get("value"));
    assert_eq!(last.and_then(Json::as_u64), u64::try_from(MAX_FINDINGS - 1).ok());
}

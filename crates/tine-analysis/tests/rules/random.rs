//! What holds for any text.

use proptest::prelude::*;
use tine_analysis::rules::{MAX_FINDINGS, Rules};
use tine_analysis::{Account, Finding, Interpreter, Material, Subject};
use tine_core::{Json, Role, Timestamp};

use super::read;

/// Texts of pieces that rules look at, so that they often lie side by side.
fn texts() -> impl Strategy<Value = String> {
    let phrase = prop::sample::select(vec![
        "I need to ",
        "we decided to ",
        "I don't like ",
        "remind me to ",
        "let's go with ",
        "by Friday",
        "on March 3",
        " at 3pm",
        "tomorrow",
        "in two weeks",
        "3/14",
        "2025-02-30",
        "Anna ",
        "Dr. ",
        "Anna's ",
        "O'Neil & Co",
        "University of ",
        "New York",
        "meeting with ",
        "$1,200.50",
        "5kg",
        "1e9 %",
        "https://a.example/(b",
        "www.x",
        "ann@x.example",
        "plan.pdf",
        "```\n",
        "> ",
        "# ",
        "- [ ] ",
        "    ",
        "**",
        "`",
        "\"",
        "“",
        "’s ",
        ", ",
        ". ",
        "? ",
        ": ",
        " – ",
        "\n",
        "\n\n",
        "\r\n",
        "Best,\n",
        "Present: ",
        "if ",
        "not ",
        "Łukasz ",
        "ß",
        "İ",
        "🙂",
    ]);
    let piece = prop_oneof![4 => phrase.prop_map(str::to_owned), 1 => any::<String>(), 1 => "[A-Za-z' ]{0,12}"];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn subjects() -> impl Strategy<Value = Subject> {
    prop_oneof![
        Just(Subject::Document),
        prop::sample::select(Role::ALL.to_vec()).prop_map(Subject::Turn),
    ]
}

fn interpret(text: &str, subject: Subject, millis: Option<i64>) -> Vec<Finding> {
    let material = Material { text, subject, authored_at: millis.map(Timestamp::from_millis) };
    Rules.interpret(&material, &mut Account::default()).expect("rules never fail")
}

proptest! {
    #[test]
    fn any_text_at_any_time_gives_sorted_findings_with_whole_spans(
        text in texts(), subject in subjects(), millis in any::<Option<i64>>(),
    ) {
        let found = interpret(&text, subject, millis);
        prop_assert!(found.len() <= MAX_FINDINGS);
        let mut before = 0;
        for finding in &found {
            let span = finding.span.clone().expect("rules know where");
            prop_assert!(span.start < span.end && text.get(span.clone()).is_some(), "{:?}", finding);
            prop_assert!(before <= span.start);
            prop_assert!(!finding.fields.is_empty());
            before = span.start;
        }
        prop_assert_eq!(interpret(&text, subject, millis), found);
    }

    #[test]
    fn statements_do_not_overlap(text in texts()) {
        let kinds = ["task", "event", "decision", "preference"];
        let found = interpret(&text, Subject::Turn(Role::User), Some(1_741_000_000_000));
        let mut spans: Vec<_> = found
            .iter()
            .filter(|it| kinds.contains(&it.entity_type.as_str()))
            .filter_map(|it| it.span.clone())
            .collect();
        spans.sort_by_key(|span| span.start);
        prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{:?}", spans);
    }

    #[test]
    fn every_date_is_a_date(text in texts(), millis in any::<i64>()) {
        for finding in interpret(&text, Subject::Document, Some(millis)) {
            for field in ["due", "date"] {
                let Some(day) = finding.fields.get(field).and_then(Json::as_str) else { continue };
                prop_assert!(chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok(), "{}", day);
            }
        }
    }
}

/// A megabyte of each is read to its end: nothing in it makes a rule go over it again and again.
#[test]
fn long_texts_of_any_kind_terminate() {
    const MEGABYTE: usize = 1_000_000;
    let pieces = ["é", "and ", "x. ", "`https://", "We went for a long walk by the sea. "];
    for piece in pieces {
        let text = piece.repeat(MEGABYTE / piece.len());
        let found = read(Subject::Turn(Role::User), &text);
        assert!(found.len() <= MAX_FINDINGS, "{piece:?}");
    }
}

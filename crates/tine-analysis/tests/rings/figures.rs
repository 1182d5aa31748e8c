//! The figures on two corpora. The frozen one was written by somebody who had not seen the rules;
//! it is judged and never looked at.

use std::path::PathBuf;

use super::judge::judge;

fn corpus(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rings").join(file)
}

#[test]
fn six_of_ten_keywords_and_seventeen_of_twenty_intents_of_the_frozen_corpus_are_found() {
    let overall = judge(&corpus("corpus/turns.jsonl")).overall();
    assert!(overall.precision() >= 0.6 && overall.intent() >= 0.85, "{overall}");
}

#[test]
fn rings_are_as_accurate_on_the_development_turns_as_before() {
    let verdict = judge(&corpus("own.jsonl"));
    let overall = verdict.overall();
    let kept = overall.precision() >= 0.9 && overall.intent() >= 0.97;
    assert!(kept, "{overall}\n{}", verdict.misses.join("\n"));
}

#[test]
fn intents_are_as_accurate_on_the_development_sentences_as_before() {
    let intent = judge(&corpus("intents.jsonl")).overall().intent();
    assert!(intent >= 0.97, "{intent}");
}

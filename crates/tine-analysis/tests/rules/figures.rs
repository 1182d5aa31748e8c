//! The figures on the two corpora. The frozen one was written before the rules found anything, by
//! somebody who had not seen them; it is judged and never looked at.

use std::path::PathBuf;

use super::judge::judge;

fn corpus(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rules/corpus").join(file)
}

#[test]
fn nine_of_ten_findings_on_the_frozen_corpus_are_right_and_six_of_ten_facts_are_found() {
    let overall = judge(&corpus("frozen.json")).overall();
    assert!(overall.precision() >= 0.9 && overall.recall() >= 0.6, "{overall}");
}

#[test]
fn the_rules_are_as_accurate_on_the_development_corpus_as_before() {
    let verdict = judge(&corpus("dev.json"));
    let overall = verdict.overall();
    let kept = overall.precision() >= 0.97 && overall.recall() >= 0.97;
    assert!(kept, "{overall}\n{}", verdict.misses.join("\n"));
}

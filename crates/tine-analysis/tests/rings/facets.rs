//! Facets.

use tine_analysis::rings::rings;

use super::{facets, slice};

fn check(text: &str, expected: &[&str]) {
    assert_eq!(facets(text), expected, "{text}");
}

#[test]
fn each_language_has_its_words() {
    check("The recipe needs butter.", &["food"]);
    check("Das Rezept braucht Butter.", &["food"]);
    check("La recette demande du beurre.", &["food"]);
    check("La receta lleva mantequilla.", &["food"]);
    check("这个食谱需要面粉", &["food"]);
    check("このレシピには小麦粉が必要です", &["food"]);
}

#[test]
fn words_of_another_language_indicate_no_facets() {
    check("Der Chef bekommt ein Gift.", &["work"]);
    check("The gift is for you.", &["shopping"]);
}

#[test]
fn stems_and_parts_of_compounds_are_found() {
    check("Die Reiseversicherung lohnt sich.", &["money", "travel"]);
    check("Rainy weather again.", &["weather"]);
}

#[test]
fn only_whole_words_indicate_facets() {
    check("The carport is planetary.", &[]);
    check("A scarlet planet.", &[]);
}

#[test]
fn when_indicates_timing_only_in_questions() {
    check("When does it open?", &["timing"]);
    check("It stops when it gets dark.", &[]);
}

#[test]
fn a_facet_has_the_span_of_its_first_word() {
    let text = "Été 🌞: l’hôtel coûte cher.";
    let told: Vec<(&str, String)> =
        rings(text).facets.iter().map(|it| (it.name, slice(text, it.span))).collect();
    assert_eq!(told, [("money", "coûte".to_owned()), ("travel", "hôtel".to_owned())]);
}

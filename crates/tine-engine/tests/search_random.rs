//! Random texts and queries: what a search finds is what a naive reading finds, over every store.
//!
//! The naive reading knows nothing of terms and pairs. It sees a text as cells, a word or one
//! character of a script without spaces each, and looks whether the cells of a phrase are there.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tine_engine::{Append, SearchQuery};

use crate::search::page;
use crate::world::{for_each_store, ids, spoken};

#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Word(String),
    /// With whether it ends its run.
    Character(char, bool),
}

/// Written naively: the few letters of these tests, folded by hand.
fn cells(text: &str) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut within = false;
    for symbol in text.chars() {
        let folded = match symbol {
            'A' | 'á' | 'Á' => 'a',
            'B' => 'b',
            other => other,
        };
        match folded {
            '東' | '京' | '都' | 'ア' | '한' => {
                if within && let Some(Cell::Character(_, last)) = cells.last_mut() {
                    *last = false;
                }
                cells.push(Cell::Character(folded, true));
                within = true;
            }
            'a'..='z' | '0'..='9' => {
                match cells.last_mut() {
                    Some(Cell::Word(word)) if within => word.push(folded),
                    _ => cells.push(Cell::Word(folded.to_string())),
                }
                within = true;
            }
            '\u{301}' => {}
            _ => within = false,
        }
    }
    cells
}

fn says(text: &[Cell], phrase: &[Cell], prefix: bool) -> bool {
    let fits = |window: &[Cell]| {
        phrase.iter().zip(window).enumerate().all(|(at, pair)| {
            let is_end = at + 1 == phrase.len();
            match pair {
                (Cell::Word(want), Cell::Word(word)) if is_end && prefix => word.starts_with(want),
                (Cell::Word(want), Cell::Word(word)) => want == word,
                (Cell::Character(want, last), Cell::Character(there, ends)) => {
                    want == there && (is_end || last == ends)
                }
                _ => false,
            }
        })
    };
    !phrase.is_empty() && text.windows(phrase.len()).any(fits)
}

/// A phrase as it is typed.
#[derive(Clone, Debug)]
struct Typed {
    text: String,
    quoted: bool,
    prefix: bool,
}

impl Typed {
    fn typed(&self) -> String {
        let star = if self.prefix { "*" } else { "" };
        match self.quoted {
            true => format!("\"{}\"{star}", self.text),
            false => format!("{}{star}", self.text),
        }
    }

    fn is_said(&self, text: &[Cell]) -> bool {
        says(text, &cells(&self.text), self.prefix)
    }

    fn is_empty(&self) -> bool {
        cells(&self.text).is_empty()
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    let pieces = [
        "a",
        "ab",
        "b",
        "abb",
        "A",
        "á",
        "a\u{301}",
        "東",
        "京",
        "東京",
        "都",
        "東京都",
        "ア",
        "한",
        "1",
        " ",
        " ",
        "-",
        "、",
    ];
    proptest::sample::select(pieces.to_vec())
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 1..8).prop_map(|pieces| pieces.concat())
}

fn typed() -> impl Strategy<Value = Typed> {
    let parts = proptest::collection::vec(piece(), 1..4);
    (parts, any::<bool>(), any::<bool>()).prop_map(|(parts, quoted, prefix)| {
        let mut text = parts.concat();
        if !quoted {
            // A word as it is typed has no spaces, and no hyphen at its front.
            text = text.replace(' ', "");
            text = text.trim_start_matches('-').to_owned();
        }
        Typed { text, quoted, prefix }
    })
}

type Query = (Vec<Vec<Typed>>, Vec<Typed>);

fn query() -> impl Strategy<Value = Query> {
    let group = proptest::collection::vec(typed(), 1..3);
    (proptest::collection::vec(group, 1..3), proptest::collection::vec(typed(), 0..2)).prop_map(
        |(all, none)| {
            let solid = |phrases: Vec<Typed>| -> Vec<Typed> {
                phrases.into_iter().filter(|phrase| !phrase.is_empty()).collect()
            };
            let all = all.into_iter().map(solid).filter(|group| !group.is_empty()).collect();
            (all, solid(none))
        },
    )
}

fn written((all, none): &Query) -> String {
    let group =
        |group: &Vec<Typed>| group.iter().map(Typed::typed).collect::<Vec<_>>().join(" OR ");
    let mut parts: Vec<String> = all.iter().map(group).collect();
    parts.extend(none.iter().map(|phrase| format!("-{}", phrase.typed())));
    parts.join(" ")
}

#[test]
fn a_search_finds_what_a_naive_reading_finds() {
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let texts = proptest::collection::vec(text(), 1..6);
    let queries = proptest::collection::vec(query(), 12);
    let outcome = runner.run(&(texts, queries), |(texts, queries)| {
        let texts: Vec<&str> =
            texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        for_each_store(|world| {
            let talk = world.talk("talk");
            let said = ids(&world.append(Append::to(talk, spoken(&texts))));
            for query in queries.iter().filter(|(all, _)| !all.is_empty()) {
                let words = written(query);
                let expected: Vec<_> = said
                    .iter()
                    .zip(&texts)
                    .filter(|(_, text)| {
                        let text = cells(text);
                        let any = |group: &Vec<Typed>| group.iter().any(|it| it.is_said(&text));
                        query.0.iter().all(any) && !query.1.iter().any(|it| it.is_said(&text))
                    })
                    .map(|(turn, _)| *turn)
                    .collect();
                let found = page(world, SearchQuery::of(words.clone())).hits;
                for hit in &found {
                    let length = hit.snippet.chars().count();
                    assert!(!hit.highlights.is_empty(), "{words:?} marks nothing");
                    assert!(hit.highlights.iter().all(|(from, to)| from < to && *to <= length));
                }
                let mut turns: Vec<_> = found.iter().map(|hit| hit.turn).collect();
                turns.sort();
                assert_eq!(turns, expected, "{words:?} in {texts:?}");
            }
        });
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

//! The word lists of the rules.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Words in lower case.
pub(super) type WordSet = HashSet<&'static str>;

/// Names, and whether the name alone is enough evidence; an ambiguous one is not.
pub(super) type Names = HashMap<&'static str, bool>;

/// First names, in lower case.
pub(super) static FIRST_NAMES: LazyLock<Names> = LazyLock::new(|| {
    names(lines(include_str!("lists/first_names.txt")).flat_map(str::split_whitespace))
});

/// Cities, countries and regions.
pub(super) static PLACES: LazyLock<Names> =
    LazyLock::new(|| names(lines(include_str!("lists/places.txt"))));

/// Well-known organisations.
pub(super) static ORGANIZATIONS: LazyLock<Names> =
    LazyLock::new(|| names(lines(include_str!("lists/organizations.txt"))));

/// Words at the beginning of sentences that are not names.
pub(super) static COMMON: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/common.txt")));

/// Capitalised words that are not in names.
pub(super) static NOT_NAMES: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/not_names.txt")));

/// Last words of names of organisations.
pub(super) static ORGANIZATION_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/organization_words.txt")));

/// First (`^`) and last (`$`) words of names of places.
pub(super) static PLACE_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/place_words.txt")));

/// Event nouns.
pub(super) static EVENT_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/event_words.txt")));

/// Verbs of tasks.
pub(super) static ACTION_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/action_words.txt")));

/// Units by spelling, in lower case and singular.
pub(super) static UNITS: LazyLock<HashMap<String, &'static str>> =
    LazyLock::new(|| spellings(include_str!("lists/units.txt")));

/// Currency codes by sign and name, in lower case and singular.
pub(super) static CURRENCIES: LazyLock<HashMap<String, &'static str>> =
    LazyLock::new(|| spellings(include_str!("lists/currencies.txt")));

fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn words(list: &'static str) -> WordSet {
    lines(list).flat_map(str::split_whitespace).collect()
}

fn names(list: impl Iterator<Item = &'static str>) -> Names {
    list.map(|name| match name.strip_suffix('~') {
        Some(name) => (name, false),
        None => (name, true),
    })
    .collect()
}

fn spellings(list: &'static str) -> HashMap<String, &'static str> {
    let split = lines(list).filter_map(|line| line.split_once(": "));
    split
        .flat_map(|(name, all)| all.split_whitespace().map(move |it| (it.replace('_', " "), name)))
        .collect()
}

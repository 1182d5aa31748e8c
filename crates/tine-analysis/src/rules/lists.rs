//! The word lists that come with the rules, read once.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Words in lower case.
pub(super) type WordSet = HashSet<&'static str>;

/// Names, and whether a name alone is enough. One that is also something else is not.
pub(super) type Names = HashMap<&'static str, bool>;

/// First names, in lower case.
pub(super) static FIRST_NAMES: LazyLock<Names> = LazyLock::new(|| {
    names(lines(include_str!("lists/first_names.txt")).flat_map(str::split_whitespace))
});

/// Cities, countries and regions, as they are written.
pub(super) static PLACES: LazyLock<Names> =
    LazyLock::new(|| names(lines(include_str!("lists/places.txt"))));

/// Well-known organisations, as they are written.
pub(super) static ORGANIZATIONS: LazyLock<Names> =
    LazyLock::new(|| names(lines(include_str!("lists/organizations.txt"))));

/// Words that begin sentences and no names.
pub(super) static COMMON: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/common.txt")));

/// Words with a capital letter that are in no name.
pub(super) static NOT_NAMES: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/not_names.txt")));

/// Last words of names of organisations.
pub(super) static ORGANIZATION_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/organization_words.txt")));

/// First (`^`) and last (`$`) words of names of places.
pub(super) static PLACE_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/place_words.txt")));

/// Things that happen at a time.
pub(super) static EVENT_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/event_words.txt")));

/// Verbs of what people have to do.
pub(super) static ACTION_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/action_words.txt")));

/// Units by their spellings, in lower case and singular.
pub(super) static UNITS: LazyLock<HashMap<String, &'static str>> =
    LazyLock::new(|| spellings(include_str!("lists/units.txt")));

/// Codes of currencies by their signs and names, in lower case and singular.
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

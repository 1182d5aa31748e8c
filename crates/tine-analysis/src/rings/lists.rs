//! The word lists of each language.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::rings::cues::Cues;
use crate::rings::facets::Lexicon;
use crate::rings::fold::fold;
use crate::rings::language::Language;
use crate::rings::phrases::PhraseTrie;

/// Folded words.
pub(crate) type WordSet = FxHashSet<String>;

pub(crate) struct Lists {
    /// Words that are in no keyword.
    pub stop: WordSet,
    /// Words that are keywords only in phrases.
    pub weak: WordSet,
    pub verbs: WordSet,
    pub cues: Cues,
    pub facets: Lexicon,
}

macro_rules! lists {
    ($folder:literal) => {
        LazyLock::new(|| Lists {
            stop: words(include_str!(concat!("lists/", $folder, "/stop.txt"))),
            weak: words(include_str!(concat!("lists/", $folder, "/weak.txt"))),
            verbs: words(include_str!(concat!("lists/", $folder, "/verbs.txt"))),
            cues: Cues::new(include_str!(concat!("lists/", $folder, "/cues.txt"))),
            facets: Lexicon::new(include_str!(concat!("lists/", $folder, "/facets.txt"))),
        })
    };
}

static ENGLISH: LazyLock<Lists> = lists!("en");
static GERMAN: LazyLock<Lists> = lists!("de");
static FRENCH: LazyLock<Lists> = lists!("fr");
static SPANISH: LazyLock<Lists> = lists!("es");
static CHINESE: LazyLock<Lists> = lists!("zh");
static JAPANESE: LazyLock<Lists> = lists!("ja");

/// Words that indicate facets in every language.
pub(crate) static ANY_FACETS: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::new(include_str!("lists/any/facets.txt")));

/// Units after numbers.
pub(crate) static UNITS: LazyLock<WordSet> =
    LazyLock::new(|| words(include_str!("lists/any/units.txt")));

/// Japanese nouns in mixed scripts.
pub(crate) static JAPANESE_NOUNS: LazyLock<PhraseTrie> = LazyLock::new(|| {
    let mut nouns = PhraseTrie::default();
    words(include_str!("lists/ja/mixed.txt")).iter().for_each(|noun| nouns.add(noun, 0));
    nouns
});

/// Returns the lists of a language; English for an unknown one.
pub(crate) fn of(language: Language) -> &'static Lists {
    match language {
        Language::English | Language::Other => &ENGLISH,
        Language::German => &GERMAN,
        Language::French => &FRENCH,
        Language::Spanish => &SPANISH,
        Language::Chinese => &CHINESE,
        Language::Japanese => &JAPANESE,
    }
}

/// Returns the lines of a list, without its comments.
pub(crate) fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn words(list: &'static str) -> WordSet {
    lines(list).flat_map(str::split_whitespace).map(fold).collect()
}

//! Money and measures.
//!
//! A count of things ("three people") is not an amount, nor is an age, the "a month" of a rate, or a
//! time expression ("in two weeks").

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use tine_core::Json;
use tine_core::json::Number;

use super::FoundFact;
use super::lists::{CURRENCIES, UNITS};
use super::passage::{Sentence, pattern};
use super::time_expressions::TimeExpression;

const NUMBER: &str = r"\d{1,3}(?:[,’'   ]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?";
const WORDS: &str = r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|half an?)(?:\s+(?:hundred|thousand|million|billion))?";
const SCALE: &str = r"(?:\s?(?P<scale>k|m|bn|mn|million|billion|thousand|hundred)\b)?";

static SIGN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)(?P<unit>us\$|a\$|c\$|[$€£¥₹]|\b(?:usd|eur|gbp|jpy|chf|cad|aud|sek|nok|dkk|pln|inr|cny))\s?(?P<number>{NUMBER}){SCALE}"
    ))
});

static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    let all = UNITS.keys().chain(CURRENCIES.keys());
    // Only spellings in letters; signs are matched separately.
    let mut units: Vec<&str> = all.map(String::as_str).filter(|unit| !unit.contains('$')).collect();
    // The longest first, since the first alternative that matches is used.
    units.sort_by_key(|unit| (std::cmp::Reverse(unit.len()), *unit));
    let units = units.join("|");
    pattern(&format!(
        r"(?i)(?:(?P<number>\b(?:{NUMBER}))|\b(?P<words>{WORDS}))(?:(?:\s|-)?(?P<scale>k|bn|mn|million|billion|thousand|hundred)\b)?(?:(?:[ \t ]|-)?(?:(?:us\s)?(?P<unit>{units})(?:s|es)?\b\.?)|\s?(?P<sign>%|€|£|\$|m²))"
    ))
});

/// Finds the amounts of a sentence, outside of time expressions.
pub(super) fn find(sentence: &Sentence<'_>, times: &[TimeExpression], found: &mut Vec<FoundFact>) {
    static WISHED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\bwish\b|\bif (?:i|we|you) (?:ever )?(?:had|won|were)\b|\bimagine\b|\bsuppose\b",
        )
    });
    static WEIGHT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:weighs?|weighed|weighing|heavy|heavier|lighter|lift(?:ed|ing)?|(?:lose|lost|gain|gained) (?:\w+ )?\w+ pounds)\b",
        )
    });
    let text = sentence.plain.as_str();
    if WISHED.is_match(text) {
        return;
    }
    let mut taken: Vec<Range<usize>> = Vec::new();
    for pattern in [&*SIGN, &*UNIT] {
        for captures in pattern.captures_iter(text) {
            let Some(at) = captures.get(0).map(|all| all.range()) else { continue };
            let crosses = |other: &Range<usize>| other.start < at.end && at.start < other.end;
            let in_when = times.iter().any(|time| crosses(&time.at));
            if in_when || taken.iter().any(crosses) || is_part_of_more(text, &at) {
                continue;
            }
            let unit =
                captures.name("unit").or(captures.name("sign")).map_or("", |unit| unit.as_str());
            // Pounds are money unless the sentence is about weight.
            let weighed = unit.eq_ignore_ascii_case("pound") && WEIGHT.is_match(text);
            let unit = if weighed { "lb" } else { unit };
            let Some((unit, money)) = canonical(unit) else { continue };
            let rate = captures.name("words").is_some_and(|words| is_article(words.as_str()));
            let Some(value) = value(&captures) else { continue };
            let other = is_age_or_past(&text[at.end..]) || is_letter(text, &at, unit);
            if rate || (other && !money) {
                continue;
            }
            taken.push(at.clone());
            found.push(FoundFact::new("amount", at).value("value", value).text("unit", unit));
        }
    }
}

/// Returns whether a number is an article: "a month" is a rate or a figure of speech.
fn is_article(words: &str) -> bool {
    matches!(words.to_ascii_lowercase().as_str(), "a" | "an")
}

/// Returns whether the match is part of a version, a name or a larger number.
fn is_part_of_more(text: &str, at: &Range<usize>) -> bool {
    let before = text[..at.start].chars().next_back();
    let after = text[at.end..].chars().next();
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#');
    let range_start = before.is_some_and(|c| joins(c) || matches!(c, '.' | ',' | ':' | '/'));
    // The end of "2-3 weeks" is not a separate amount.
    let ranged = text[..at.start].ends_with(['-', '–'])
        && text[..at.start].trim_end_matches(['-', '–']).ends_with(|c: char| c.is_ascii_digit());
    ranged
        || range_start
        || after.is_some_and(|c| {
            joins(c) || c == '/' && !text[at.end + 1..].starts_with(char::is_alphabetic)
        })
}

/// Returns whether an age or a time in the past follows: "3 years old", "two days ago".
fn is_age_or_past(rest: &str) -> bool {
    static AFTER: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)^[\s-]*(?:old\b|ago\b|from now\b|of age\b|later\b)"));
    AFTER.is_match(rest)
}

/// Returns whether a unit is a letter or an ordinal: "7 H", "the 2 second time".
fn is_letter(text: &str, at: &Range<usize>, unit: &str) -> bool {
    let phrase = &text[at.clone()];
    let letter = phrase.chars().next_back().is_some_and(|c| c.is_ascii_uppercase());
    matches!(unit, "m" | "g" | "liter" | "hour")
        && letter
        && phrase.chars().rev().nth(1).is_some_and(|c| !c.is_alphabetic())
        || unit == "second" && text[at.end..].trim_start().starts_with("time")
}

fn canonical(unit: &str) -> Option<(&'static str, bool)> {
    let folded = unit.to_lowercase();
    if folded == "%" {
        return Some(("%", false));
    }
    let money = CURRENCIES.get(&folded).map(|unit| (*unit, true));
    money.or_else(|| UNITS.get(&folded).map(|unit| (*unit, false)))
}

fn value(captures: &regex::Captures<'_>) -> Option<Json> {
    let mut value = match (captures.name("number"), captures.name("words")) {
        (Some(number), _) => figure(number.as_str())?,
        (None, Some(words)) => spoken(words.as_str())?,
        _ => return None,
    };
    if let Some(scale) = captures.name("scale") {
        value *= factor(scale.as_str());
    }
    // Smaller fractions are rounding errors of the multiplication.
    let value = (value * 1e6).round() / 1e6;
    Number::try_from(value).ok().map(Json::from)
}

/// Parses digits: a comma before three digits separates thousands, another one is a decimal point.
fn figure(text: &str) -> Option<f64> {
    let plain: String =
        text.chars().filter(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).collect();
    let grouped = plain
        .split(',')
        .skip(1)
        .all(|group| group.split('.').next().is_some_and(|whole| whole.len() == 3));
    let plain = if grouped { plain.replace(',', "") } else { plain.replace(',', ".") };
    plain.parse().ok()
}

fn spoken(words: &str) -> Option<f64> {
    let folded = words.to_ascii_lowercase();
    if folded.starts_with("half") {
        return Some(0.5);
    }
    let mut value = 0.0;
    for word in folded.split_whitespace() {
        value = match word {
            "a" | "an" => 1.0,
            "hundred" | "thousand" | "million" | "billion" => value * factor(word),
            word => f64::from(number_word(word)?),
        };
    }
    Some(value)
}

fn factor(scale: &str) -> f64 {
    match scale.to_ascii_lowercase().as_str() {
        "hundred" => 1e2,
        "k" | "thousand" => 1e3,
        "m" | "mn" | "million" => 1e6,
        "bn" | "billion" => 1e9,
        _ => 1.0,
    }
}

/// Returns a number in words, up to ninety.
pub(super) fn number_word(word: &str) -> Option<u32> {
    const UNITS: &str = "one two three four five six seven eight nine ten eleven twelve";
    const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";
    let position =
        |list: &str| list.split(' ').zip(1..).find_map(|(it, no)| (it == word).then_some(no));
    match word {
        "fifteen" => Some(15),
        _ => position(UNITS).or_else(|| Some(10 * (position(TENS)? + 1))),
    }
}

//! Finds time expressions in a sentence: days and times of day.

use std::ops::Range;
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::{Captures, Regex};

use super::amounts::number_word;
use super::calendar;
use super::passage::pattern;
use super::tokens::among;

/// Hour and minute.
type Hour = (u32, u32);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeExpression {
    /// The bytes in the sentence, with the preposition.
    pub at: Range<usize>,
    /// The day, if it can be determined.
    pub date: Option<NaiveDate>,
    /// The time of day, if it can be determined.
    pub time: Option<Hour>,
    /// Whether it is only a period such as "this year", without a day.
    pub vague: bool,
}

impl TimeExpression {
    /// Returns whether it names a day or a time of day, even one that needs a reference date.
    pub fn is_definite(&self) -> bool {
        !self.vague
    }
}

/// Interprets a match: `None` if it is not a time expression, or else its date if known.
type DateParser = fn(&Captures<'_>, Option<NaiveDate>) -> Option<Option<NaiveDate>>;

const BEFORE: &str = r"(?:\b(?:(?:no |not )?later than|due(?: on| by)?|by|on|before|until|till|for|from|since|starting|as of|at)\s+)?(?:\bthe\s+)?";
const MONTH: &str = r"(?P<month>jan(?:uary)?\b\.?|feb(?:ruary)?\b\.?|mar(?:ch)?\b\.?|apr(?:il)?\b\.?|may\b|june?\b\.?|july?\b\.?|aug(?:ust)?\b\.?|sept?(?:ember)?\b\.?|oct(?:ober)?\b\.?|nov(?:ember)?\b\.?|dec(?:ember)?\b\.?)";
const WEEKDAY: &str = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?-i:Mon|Tues?|Wed|Thurs?|Thu|Fri|Sat|Sun)\b\.?)";
const PART: &str = r"(?:,?\s+(?:in the\s+)?(?:morning|afternoon|evening|night|noon))?";

struct DatePattern {
    pattern: Regex,
    parse: DateParser,
    vague: bool,
}

static DATE_PATTERNS: LazyLock<Vec<DatePattern>> = LazyLock::new(|| {
    let date_pattern = |source: String, vague: bool, parse: DateParser| DatePattern {
        pattern: pattern(&format!("(?i){source}")),
        parse,
        vague,
    };
    let named = format!(r"(?:{WEEKDAY},?\s+(?:the\s+|on\s+)?)?");
    vec![
        date_pattern(format!(r"{BEFORE}\b(?P<year>\d{{4}})-(?P<no>\d{{2}})-(?P<day>\d{{2}})\b"), false, dated),
        date_pattern(
            format!(r"{BEFORE}{named}\b{MONTH}\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>(?:19|20)\d{{2}})\b)?{PART}"),
            false,
            dated,
        ),
        date_pattern(
            format!(r"{BEFORE}{named}\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?{MONTH}(?:,?\s+(?P<year>(?:19|20)\d{{2}})\b)?{PART}"),
            false,
            dated,
        ),
        date_pattern(
            format!(r"(?:{BEFORE})(?P<first>\b\d{{1,2}})/(?P<second>\d{{1,2}})/(?P<year>\d{{4}}|\d{{2}})\b"),
            false,
            slashed,
        ),
        // Two numbers with a slash are a date only where one is expected: they may be a fraction.
        date_pattern(
            r"\b(?:on|by|before|until|till|due(?: on| by)?|from|since|for)\s+(?P<first>\d{1,2})/(?P<second>\d{1,2})\b".into(),
            false,
            slashed,
        ),
        date_pattern(r"(?:\bby\s+|\bon\s+)?\bthe day after tomorrow\b".into(), false, |_, reference_date| {
            Some(calendar::days_on(reference_date, 2))
        }),
        date_pattern(
            format!(r"(?:\b(?:due|by|on|before|until|till|for|from|starting)\s+)?\b(?:later\s+)?(?P<word>today|tonight|tomorrow|tmrw|tmr|tomorow|yesterday|this (?:morning|afternoon|evening)|last night)\b{PART}"),
            false,
            relative,
        ),
        date_pattern(
            format!(r"(?:\b(?P<unit>week)\s+(?:from|on)\s+){WEEKDAY}"),
            false,
            |found, reference_date| {
                let name = found[0].rsplit(' ').next().unwrap_or_default().to_ascii_lowercase();
                let day = calendar::weekday(reference_date, calendar::day_of_week(&name)?, "");
                Some(calendar::days_on(day, 7))
            },
        ),
        date_pattern(
            format!(r"{BEFORE}(?:\b(?P<which>this|next|last|coming|this coming|upcoming)\s+)?\b(?P<name>{WEEKDAY})(?:\s+(?P<later>next week|this week))?(?:\s+the\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th))?{PART}"),
            false,
            weekday,
        ),
        date_pattern(
            r"\b(?:with)?in\s+(?:about\s+|the next\s+)?(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|a couple of)\s+(?P<unit>days?|weeks?|fortnights?|months?|years?)(?:['’]s?)?(?:\s+time)?\b".into(),
            false,
            counted,
        ),
        date_pattern(
            r"\b(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve)\s+(?P<unit>days?|weeks?|months?|years?)\s+from\s+(?:now|today)\b".into(),
            false,
            counted,
        ),
        date_pattern(
            r"(?:\b(?:by|at|before|until)\s+)?(?:the\s+)?\bend of (?:the\s+|this\s+)?(?P<which>next\s+)?(?P<unit>month|week|day)\b|\bby (?:eod|close of business|cob)\b".into(),
            false,
            ending,
        ),
        date_pattern(
            r"\b(?:on|by|before|until|till|from|for|to)\s+the\s+(?P<day>\d{1,2})(?:st|nd|rd|th)\b".into(),
            false,
            |found, reference_date| {
                let day = found["day"].parse().ok().filter(|day| (1..=31).contains(day))?;
                Some(calendar::day_of_month(reference_date, day))
            },
        ),
        date_pattern(
            format!(r"\b(?:in|by|since|until|from|during|for|of)\s+(?:early\s+|late\s+|mid-?\s*)?{MONTH}(?:\s+(?P<year>(?:19|20)\d{{2}}))?\b|\b(?:in|by|since|until)\s+(?:19|20)\d{{2}}\b"),
            true,
            |_, _| Some(None),
        ),
        date_pattern(
            r"(?:\b(?:by|on|for|until|during|in|at|over)\s+)?(?:\b(?:this|next|last|the|the coming|later this)\s+)(?:week(?:end)?|month|quarter|year|spring|summer|autumn|fall|winter)\b|\bthese days\b|\bin the (?:morning|afternoon|evening)\b|\bat night\b|\bfrom now on\b|\bthis time\b|\b(?:on|at) weekends?\b".into(),
            true,
            |_, _| Some(None),
        ),
    ]
});

fn dated(found: &Captures<'_>, reference_date: Option<NaiveDate>) -> Option<Option<NaiveDate>> {
    let day = found["day"].parse().ok()?;
    let month = match found.name("no") {
        Some(no) => no.as_str().parse().ok()?,
        None => calendar::month(&found["month"].to_ascii_lowercase())?,
    };
    let year = found.name("year").and_then(|year| year.as_str().parse().ok());
    checked_date(reference_date, year, month, day)
}

/// Parses a date with slashes, month first unless that is impossible.
fn slashed(found: &Captures<'_>, reference_date: Option<NaiveDate>) -> Option<Option<NaiveDate>> {
    let (first, second) = (found["first"].parse().ok()?, found["second"].parse().ok()?);
    let (month, day) = if first > 12 { (second, first) } else { (first, second) };
    if (first, second) == (24, 7) {
        return None;
    }
    let year = found.name("year").and_then(|year| year.as_str().parse().ok());
    checked_date(reference_date, year, month, day)
}

/// Returns a date, or `None` if it exists in no year.
fn checked_date(
    reference_date: Option<NaiveDate>,
    year: Option<i32>,
    month: u32,
    day: u32,
) -> Option<Option<NaiveDate>> {
    const LEAP_YEAR: i32 = 2024;
    NaiveDate::from_ymd_opt(LEAP_YEAR, month, day)?;
    Some(calendar::date(reference_date, year, month, day))
}

fn relative(found: &Captures<'_>, reference_date: Option<NaiveDate>) -> Option<Option<NaiveDate>> {
    let days = match found["word"].to_ascii_lowercase().as_str() {
        "tomorrow" | "tmrw" | "tmr" | "tomorow" => 1,
        "yesterday" | "last night" => -1,
        _ => 0,
    };
    Some(calendar::days_on(reference_date, days))
}

fn weekday(found: &Captures<'_>, reference_date: Option<NaiveDate>) -> Option<Option<NaiveDate>> {
    let name = found["name"].to_ascii_lowercase();
    // "On Fridays" is a habit, not a day.
    if name.ends_with("days") {
        return None;
    }
    if let Some(day) = found.name("day") {
        return Some(calendar::day_of_month(reference_date, day.as_str().parse().ok()?));
    }
    let later =
        found.name("later").is_some_and(|later| later.as_str().eq_ignore_ascii_case("next week"));
    let which =
        found.name("which").map_or(String::new(), |which| which.as_str().to_ascii_lowercase());
    let which = if later { "next" } else { which.as_str() };
    Some(calendar::weekday(reference_date, calendar::day_of_week(&name)?, which))
}

fn counted(found: &Captures<'_>, reference_date: Option<NaiveDate>) -> Option<Option<NaiveDate>> {
    let word = found["count"].to_ascii_lowercase();
    let count = match word.as_str() {
        "a" | "an" => 1,
        "a couple of" => 2,
        word => word.parse().ok().or_else(|| number_word(word))?,
    };
    Some(calendar::units_on(reference_date, count, &found["unit"].to_ascii_lowercase()))
}

fn ending(found: &Captures<'_>, reference_date: Option<NaiveDate>) -> Option<Option<NaiveDate>> {
    let unit =
        found.name("unit").map_or(String::from("day"), |unit| unit.as_str().to_ascii_lowercase());
    if unit == "day" {
        return Some(reference_date);
    }
    Some(calendar::end_of(reference_date, &unit, found.name("which").is_some()))
}

/// Finds the time expressions of a sentence, in order, without overlaps.
pub(super) fn find(sentence: &str, reference_date: Option<NaiveDate>) -> Vec<TimeExpression> {
    let mut found: Vec<TimeExpression> = Vec::new();
    let free = |found: &[TimeExpression], at: &Range<usize>| {
        found.iter().all(|time| time.at.end <= at.start || at.end <= time.at.start)
    };
    for date_pattern in DATE_PATTERNS.iter() {
        for captures in date_pattern.pattern.captures_iter(sentence) {
            let Some(at) = captures.get(0).map(|all| all.range()) else { continue };
            if !free(&found, &at) {
                continue;
            }
            if let Some(date) = (date_pattern.parse)(&captures, reference_date) {
                found.push(TimeExpression { at, date, time: None, vague: date_pattern.vague });
            }
        }
    }
    for (at, time) in times(sentence) {
        if free(&found, &at) {
            found.push(TimeExpression { at, date: None, time, vague: false });
        }
    }
    found.sort_by_key(|time| time.at.start);
    join(sentence, found)
}

/// Merges adjacent dates and times of day.
fn join(sentence: &str, found: Vec<TimeExpression>) -> Vec<TimeExpression> {
    let mut joined: Vec<TimeExpression> = Vec::new();
    for time in found {
        if let Some(last) = joined.last_mut() {
            let between = sentence[last.at.end..time.at.start].trim();
            let beside = matches!(between, "" | "," | "at" | "-" | "–" | "(" | "@");
            let fits = last.time.is_none() || time.time.is_none();
            let days = [last.date, time.date].iter().flatten().count();
            if beside && fits && days < 2 {
                last.at.end = time.at.end;
                last.date = last.date.or(time.date);
                last.time = last.time.or(time.time);
                last.vague &= time.vague;
                continue;
            }
        }
        joined.push(time);
    }
    joined
}

fn times(sentence: &str) -> Vec<(Range<usize>, Option<Hour>)> {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        let before = r"(?:\b(?:at|by|from|around|about|before|until|till|after|between)\s+)?(?:around\s+|about\s+)?";
        let until = r"(?:\s*(?:-|–|to|until|till|and)\s*\d{1,2}(?::\d{2})?\s*(?:[ap]\.?m\b\.?)?)?";
        pattern(&format!(
            r"(?i){before}\b(?:(?P<hour>\d{{1,2}})(?::(?P<minute>\d{{2}}))?(?:\s*(?:-|–|to)\s*\d{{1,2}}(?::\d{{2}})?)?\s*(?P<half>[ap])\.?m\b\.?|(?P<clock>[01]?\d|2[0-3]):(?P<past>[0-5]\d)\b(?:\s*h\b)?{until}|(?P<named>noon|midnight)\b)|\b(?:at|around|before|after|@)\s+(?P<bare>\d{{1,2}})(?:\s+o['’]clock)?\b|\bbetween\s+(?P<first>\d{{1,2}})\s+and\s+\d{{1,2}}\b"
        ))
    });
    TIME.captures_iter(sentence)
        .filter_map(|found| {
            let all = found.get(0)?;
            let number =
                |name: &str| found.name(name).and_then(|it| it.as_str().parse::<u32>().ok());
            let time = if let Some(half) = found.name("half") {
                let hour = number("hour").filter(|hour| (1..=12).contains(hour))?;
                let after_noon = if half.as_str().eq_ignore_ascii_case("p") { 12 } else { 0 };
                (hour % 12 + after_noon, number("minute").unwrap_or(0))
            } else if let Some(clock) = number("clock") {
                (clock, number("past")?)
            } else if let Some(name) = found.name("named") {
                (if name.as_str().eq_ignore_ascii_case("noon") { 12 } else { 0 }, 0)
            } else {
                if !ends_phrase(&sentence[all.end()..]) {
                    return None;
                }
                let hour = number("bare").or(number("first")).filter(|hour| *hour < 24)?;
                // "At 7" may be in the morning or in the evening.
                return Some((all.range(), (hour > 7).then_some((hour, 0))));
            };
            (time.1 < 60).then_some((all.range(), Some(time)))
        })
        .collect()
}

/// Returns whether a bare number before this text is an hour, not a count.
fn ends_phrase(rest: &str) -> bool {
    const NEXT: &str = "on today tomorrow tonight next this and with in for sharp at to until but so or \
        because if please";
    let trimmed = rest.trim_start();
    if rest.starts_with(['%', '/', '°', '-'])
        || rest.get(..2).is_some_and(|two| {
            two.starts_with(['.', ',']) && two.ends_with(|c: char| c.is_ascii_digit())
        })
    {
        return false;
    }
    let word: String = trimmed.chars().take_while(|c| c.is_alphanumeric()).collect();
    let folded = word.to_ascii_lowercase();
    word.is_empty() || among(NEXT, &folded) || calendar::day_of_week(&folded).is_some()
}

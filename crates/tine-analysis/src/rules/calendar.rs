//! Which day a phrase means.
//!
//! A day of the week is the first such day behind the day on which it was said; with `next` it is
//! that of the week that follows, weeks beginning on Monday; with `last` it is the nearest one
//! before. A month and a day without a year are the next such date, today included. What cannot
//! be told (a relative phrase without a day to count from, the 31st of June) is no date.

use chrono::{Datelike, Days, Months, NaiveDate};

/// The last two digits of a year belong to this century.
const CENTURY: i32 = 2000;

/// Today, tomorrow …: so many days behind the day it was said on.
pub(super) fn days_on(said: Option<NaiveDate>, days: i64) -> Option<NaiveDate> {
    let said = said?;
    match u64::try_from(days) {
        Ok(days) => said.checked_add_days(Days::new(days)),
        Err(_) => said.checked_sub_days(Days::new(days.unsigned_abs())),
    }
}

/// In so many days, weeks, months or years.
pub(super) fn units_on(said: Option<NaiveDate>, count: u32, unit: &str) -> Option<NaiveDate> {
    let said = said?;
    match unit.trim_end_matches('s') {
        "day" => said.checked_add_days(Days::new(u64::from(count))),
        "week" => said.checked_add_days(Days::new(u64::from(count) * 7)),
        "fortnight" => said.checked_add_days(Days::new(u64::from(count) * 14)),
        "month" => said.checked_add_months(Months::new(count)),
        "year" => said.checked_add_months(Months::new(count.checked_mul(12)?)),
        _ => None,
    }
}

/// A day of the week, counted from Monday = 0, with the word before it.
pub(super) fn weekday(said: Option<NaiveDate>, day: u32, which: &str) -> Option<NaiveDate> {
    let today = said?.weekday().num_days_from_monday();
    let ahead = match (day + 7 - today) % 7 {
        0 => 7,
        ahead => ahead,
    };
    let days = match which {
        "next" => i64::from(day) + 7 - i64::from(today),
        "last" => i64::from(ahead) - 7,
        _ => i64::from(ahead),
    };
    // "Last Friday" on a Friday is a week ago.
    days_on(said, if which == "last" && days == 0 { -7 } else { days })
}

/// A day of a month, of a year if there is one.
pub(super) fn date(
    said: Option<NaiveDate>,
    year: Option<i32>,
    month: u32,
    day: u32,
) -> Option<NaiveDate> {
    if let Some(year) = year {
        let year = if year < 100 { CENTURY + year } else { year };
        return NaiveDate::from_ymd_opt(year, month, day);
    }
    let said = said?;
    // The 29th of February can be eight years away.
    let mut years = said.year()..=said.year() + 8;
    years.find_map(|year| NaiveDate::from_ymd_opt(year, month, day).filter(|date| *date >= said))
}

/// "The 14th": the next such day of a month.
pub(super) fn day_of_month(said: Option<NaiveDate>, day: u32) -> Option<NaiveDate> {
    let said = said?;
    let first = said.with_day(1)?;
    (0..=12).find_map(|months| {
        let month = first.checked_add_months(Months::new(months))?;
        month.with_day(day).filter(|date| *date >= said)
    })
}

/// The last day of the month or the week of the day, or of the next one.
pub(super) fn end_of(said: Option<NaiveDate>, unit: &str, next: bool) -> Option<NaiveDate> {
    let said = said?;
    match unit {
        "month" => {
            let months = if next { 2 } else { 1 };
            said.with_day(1)?.checked_add_months(Months::new(months))?.pred_opt()
        }
        // The week of work ends on Friday, for whoever speaks on a weekday.
        "week" => {
            let today = i64::from(said.weekday().num_days_from_monday());
            let friday = if today > 4 { 6 - today } else { 4 - today };
            days_on(Some(said), if next { 11 - today } else { friday })
        }
        _ => None,
    }
}

/// A month by its first letters, in lower case.
pub(super) fn month(name: &str) -> Option<u32> {
    const MONTHS: &[&str] =
        &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = MONTHS.iter().position(|month| name.starts_with(month))?;
    u32::try_from(at + 1).ok()
}

/// A day of the week by its first letters, in lower case, counted from Monday = 0.
pub(super) fn day_of_week(name: &str) -> Option<u32> {
    const DAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let at = DAYS.iter().position(|day| name.starts_with(day))?;
    u32::try_from(at).ok()
}

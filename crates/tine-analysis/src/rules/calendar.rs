//! Resolves dates.
//!
//! A day of the week is the first such day after the reference date; with `next` it is in the next
//! week, which begins on Monday; with `last` it is the nearest one before. A month and a day without
//! a year are the next such date, today included. An unresolvable phrase (a relative date without a
//! reference date, the 31st of June) is not a date.

use chrono::{Datelike, Days, Months, NaiveDate};

/// The century of years with two digits.
const CENTURY: i32 = 2000;

/// Returns the date a number of days after the reference date.
pub(super) fn days_on(reference_date: Option<NaiveDate>, days: i64) -> Option<NaiveDate> {
    let reference_date = reference_date?;
    match u64::try_from(days) {
        Ok(days) => reference_date.checked_add_days(Days::new(days)),
        Err(_) => reference_date.checked_sub_days(Days::new(days.unsigned_abs())),
    }
}

/// Returns the date a number of days, weeks, months or years after the reference date.
pub(super) fn units_on(
    reference_date: Option<NaiveDate>,
    count: u32,
    unit: &str,
) -> Option<NaiveDate> {
    let reference_date = reference_date?;
    match unit.trim_end_matches('s') {
        "day" => reference_date.checked_add_days(Days::new(u64::from(count))),
        "week" => reference_date.checked_add_days(Days::new(u64::from(count) * 7)),
        "fortnight" => reference_date.checked_add_days(Days::new(u64::from(count) * 14)),
        "month" => reference_date.checked_add_months(Months::new(count)),
        "year" => reference_date.checked_add_months(Months::new(count.checked_mul(12)?)),
        _ => None,
    }
}

/// Returns a day of the week, counted from Monday = 0, with the word before it.
pub(super) fn weekday(
    reference_date: Option<NaiveDate>,
    day: u32,
    which: &str,
) -> Option<NaiveDate> {
    let today = reference_date?.weekday().num_days_from_monday();
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
    days_on(reference_date, if which == "last" && days == 0 { -7 } else { days })
}

/// Returns a day of a month, of the given year or the next one with that date.
pub(super) fn date(
    reference_date: Option<NaiveDate>,
    year: Option<i32>,
    month: u32,
    day: u32,
) -> Option<NaiveDate> {
    if let Some(year) = year {
        let year = if year < 100 { CENTURY + year } else { year };
        return NaiveDate::from_ymd_opt(year, month, day);
    }
    let reference_date = reference_date?;
    // The 29th of February may be eight years away.
    let mut years = reference_date.year()..=reference_date.year() + 8;
    years.find_map(|year| {
        NaiveDate::from_ymd_opt(year, month, day).filter(|date| *date >= reference_date)
    })
}

/// Returns the next date with a day of the month ("the 14th").
pub(super) fn day_of_month(reference_date: Option<NaiveDate>, day: u32) -> Option<NaiveDate> {
    let reference_date = reference_date?;
    let first = reference_date.with_day(1)?;
    (0..=12).find_map(|months| {
        let month = first.checked_add_months(Months::new(months))?;
        month.with_day(day).filter(|date| *date >= reference_date)
    })
}

/// Returns the last day of the current or the next month or week.
pub(super) fn end_of(
    reference_date: Option<NaiveDate>,
    unit: &str,
    next: bool,
) -> Option<NaiveDate> {
    let reference_date = reference_date?;
    match unit {
        "month" => {
            let months = if next { 2 } else { 1 };
            reference_date.with_day(1)?.checked_add_months(Months::new(months))?.pred_opt()
        }
        // On a weekday, the week ends on Friday.
        "week" => {
            let today = i64::from(reference_date.weekday().num_days_from_monday());
            let friday = if today > 4 { 6 - today } else { 4 - today };
            days_on(Some(reference_date), if next { 11 - today } else { friday })
        }
        _ => None,
    }
}

/// Returns a month by its first letters, in lower case.
pub(super) fn month(name: &str) -> Option<u32> {
    const MONTHS: &[&str] =
        &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = MONTHS.iter().position(|month| name.starts_with(month))?;
    u32::try_from(at + 1).ok()
}

/// Returns a day of the week by its first letters, in lower case, counted from Monday = 0.
pub(super) fn day_of_week(name: &str) -> Option<u32> {
    const DAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let at = DAYS.iter().position(|day| name.starts_with(day))?;
    u32::try_from(at).ok()
}

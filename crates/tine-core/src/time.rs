//! Instants in UTC with millisecond precision, and their one text form.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, Utc};

/// Milliseconds since 1970-01-01T00:00:00Z.
///
/// The text form is RFC 3339 in UTC with `Z`; trailing zeros of the fraction, and an empty
/// fraction, are dropped, so that one instant has one spelling and therefore one hash.
///
/// ```
/// use tine_core::Timestamp;
/// let at: Timestamp = "2024-01-15T11:30:00.2509+01:00".parse().unwrap();
/// assert_eq!(at.to_string(), "2024-01-15T10:30:00.25Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is not an RFC 3339 time between the years 0 and 9999.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an RFC 3339 time such as 2024-01-15T10:30:00Z")]
pub struct TimestampError {
    /// What was given.
    pub text: String,
}

const FIRST_MS: i64 = -62_167_219_200_000; // 0000-01-01T00:00:00Z
const LAST_MS: i64 = 253_402_300_799_999; // 9999-12-31T23:59:59.999Z

impl Timestamp {
    /// Returns the instant `millis` after the epoch, clamped to the years 0 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Timestamp(millis.clamp(FIRST_MS, LAST_MS))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Appends the text form.
    pub fn write(self, out: &mut String) {
        const MS_PER_DAY: i64 = 86_400_000;
        let (days, in_day) = (self.0.div_euclid(MS_PER_DAY), self.0.rem_euclid(MS_PER_DAY));
        let (year, month, day) = civil(days);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, digits: usize, mut value: i64| {
            for place in (at..at + digits).rev() {
                text[place] = b'0' + u8::try_from(value % 10).unwrap_or(0);
                value /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, in_day / 3_600_000);
        put(14, 2, in_day / 60_000 % 60);
        put(17, 2, in_day / 1_000 % 60);
        put(20, 3, in_day % 1_000);
        // The fraction ends with its last digit that is not zero; an empty one goes with its point.
        let mut end = 23;
        while text[end - 1] == b'0' && end > 20 {
            end -= 1;
        }
        if end == 20 {
            end = 19;
        }
        out.push_str(std::str::from_utf8(&text[..end]).unwrap_or_default());
        out.push('Z');
    }

    /// Returns the next distinguishable instant, one millisecond later.
    pub fn next(self) -> Self {
        Timestamp::from_millis(self.0 + 1)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(24);
        self.write(&mut text);
        f.write_str(&text)
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar carried on
/// before its beginning. Years are counted from March, so that the leap day is the last of one.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    let days = days + 719_468;
    let (era, in_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (year + era * 400, if month < 10 { month + 3 } else { month - 9 });
    (year + i64::from(month <= 2), month, day)
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || TimestampError { text: text.to_owned() };
        let at = DateTime::parse_from_rfc3339(text).map_err(|_| error())?;
        let utc = at.with_timezone(&Utc);
        if !(0..=9999).contains(&utc.year()) {
            return Err(error());
        }
        Ok(Timestamp(utc.timestamp_millis().clamp(FIRST_MS, LAST_MS)))
    }
}

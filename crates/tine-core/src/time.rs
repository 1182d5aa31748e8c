//! Instants in UTC with millisecond precision, and their one text form.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, SecondsFormat, Utc};

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
    /// The instant that many milliseconds after the epoch, brought into the years 0 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Timestamp(millis.clamp(FIRST_MS, LAST_MS))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The next instant that can be told apart from this one.
    pub fn next(self) -> Self {
        Timestamp::from_millis(self.0 + 1)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = DateTime::<Utc>::from_timestamp_millis(self.0)
            .expect("the constructor keeps the year between 0 and 9999");
        let text = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        // The fraction is always there, so its point ends the run of zeros.
        let trimmed = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
        write!(f, "{trimmed}Z")
    }
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

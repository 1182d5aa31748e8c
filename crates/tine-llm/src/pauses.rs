//! How long to wait before another try.
//!
//! The same calls wait the same times: there is no chance in it. An endpoint that says when to
//! come back is heeded, within a bound.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// The pause before the second try; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause, also when the endpoint asks for a longer one.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause after so many tries.
pub(crate) fn pause(tries: u32, wanted: Option<Duration>) -> Duration {
    let doubled = FIRST_PAUSE * (1 << tries.saturating_sub(1).min(10));
    doubled.max(wanted.unwrap_or_default()).min(LONGEST_PAUSE)
}

/// When an endpoint wants to be asked again. A date is not read: there is no clock here.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1_000.0)
        .or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue};

    use super::{pause, retry_after};

    #[test]
    fn pauses_double_heed_the_endpoint_and_are_bounded() {
        let millis =
            |tries, wanted: Option<u64>| pause(tries, wanted.map(Duration::from_secs)).as_millis();
        assert_eq!([1, 2, 3, 4].map(|tries| millis(tries, None)), [500, 1_000, 2_000, 4_000]);
        assert_eq!(millis(1, Some(7)), 7_000);
        assert_eq!(millis(4, Some(1)), 4_000);
        assert_eq!(millis(1, Some(3_600)), 30_000);
        assert_eq!(millis(u32::MAX, None), 30_000);
    }

    #[test]
    fn a_time_to_come_back_is_read_in_both_spellings_and_never_guessed() {
        let read = |name: &'static str, value: &'static str| {
            retry_after(&HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]))
        };
        assert_eq!(read("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for wrong in ["-1", "NaN", "inf", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
            assert_eq!(read("retry-after", wrong), None, "{wrong}");
        }
    }
}

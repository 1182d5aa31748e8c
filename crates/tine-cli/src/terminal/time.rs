//! Formats times in the local time zone.

use chrono::{DateTime, Local, Utc};
use tine_core::Timestamp;

/// Formats a local time as `2024-01-15 10:30`.
pub(crate) fn short_time(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M")
}

/// Formats a local time as `2024-01-15 10:30:05`.
pub(crate) fn precise_time(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M:%S")
}

fn local(at: Timestamp, form: &str) -> String {
    match DateTime::<Utc>::from_timestamp_millis(at.as_millis()) {
        Some(time) => time.with_timezone(&Local).format(form).to_string(),
        None => at.to_string(),
    }
}

//! Ids, names and times.

use proptest::prelude::*;
use tine_core::ids::{IdSource, Name, NameError, check_key};
use tine_core::{ConversationId, ErrorKind, Limits, Timestamp, TurnId};

fn refused(name: &str) -> NameError {
    Name::new(name, &Limits::default()).unwrap_err()
}

#[test]
fn names_that_mean_something_else_are_refused() {
    for name in ["root", "main~2", "deadbeef", "DEADBEEF00", "sha256:deadbeef", " main", "main "] {
        assert!(matches!(refused(name), NameError::Reserved { .. }), "{name}");
    }
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert!(matches!(refused(id), NameError::Reserved { .. }));
}

#[test]
fn ordinary_names_are_accepted() {
    for name in ["main", "try/2", "feed", "deadbee", "café", "東京", "fork-1", "a b"] {
        assert!(Name::new(name, &Limits::default()).is_ok(), "{name}");
    }
}

#[test]
fn keys_are_not_empty_not_too_long_and_hold_no_control_characters() {
    let limits = Limits::default();
    assert_eq!(check_key("key", "", &limits), Err(NameError::Empty { what: "key" }));
    assert!(check_key("key", &"x".repeat(512), &limits).is_ok());
    assert!(check_key("key", &"x".repeat(513), &limits).unwrap_err().is_too_long());
    assert!(check_key("key", "a\nb", &limits).is_err());
    assert!(ConversationId::new("chat/2024 «x»", &limits).is_ok());
}

#[test]
fn ids_increase_within_a_millisecond_and_when_the_clock_goes_back() {
    let mut source = IdSource::default();
    let mut last = source.turn(Timestamp::from_millis(1_700_000_000_000), [255; 10]);
    for (millis, byte) in [(1_700_000_000_000, 0), (1_699_999_999_000, 255), (1_700_000_000_001, 7)]
    {
        for _ in 0..1_000 {
            let next = source.turn(Timestamp::from_millis(millis), [byte; 10]);
            assert!(next > last, "{next} after {last}");
            let bytes = next.as_bytes();
            assert_eq!(bytes[6] >> 4, 7, "version of {next}");
            assert_eq!(bytes[8] >> 6, 0b10, "variant of {next}");
            last = next;
        }
    }
}

#[test]
fn the_first_eight_bytes_tell_ids_apart_however_quickly_they_are_made() {
    let mut source = IdSource::default();
    let now = 1_700_000_000_000;
    let mut seen = std::collections::HashSet::new();
    let mut last = 0;
    for number in 0..100_000_u64 {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        let id = source.turn(Timestamp::from_millis(now), random);
        let beginning = u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap());
        assert!(seen.insert(beginning), "{id}");
        last = beginning >> 16;
    }
    let ahead = last - u64::try_from(now).unwrap();
    assert!(ahead <= 100_000 / 4_096 + 1, "{ahead} ms ahead of the clock");
}

#[test]
fn an_id_is_read_back_from_its_text() {
    let id = IdSource::default().turn(Timestamp::from_millis(1), [3; 10]);
    assert_eq!(id.to_string().parse::<TurnId>().unwrap(), id);
    assert!("not-an-id".parse::<TurnId>().is_err());
}

#[test]
fn times_have_one_spelling() {
    for (given, kept) in [
        ("2024-01-15T10:30:00Z", "2024-01-15T10:30:00Z"),
        ("2024-01-15T10:30:00.000Z", "2024-01-15T10:30:00Z"),
        ("2024-01-15T10:30:00.250Z", "2024-01-15T10:30:00.25Z"),
        ("2024-01-15T10:30:00.2509999Z", "2024-01-15T10:30:00.25Z"),
        ("2024-01-15t10:30:00.1+05:30", "2024-01-15T05:00:00.1Z"),
        ("2024-01-15T10:30:00-00:00", "2024-01-15T10:30:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(given.parse::<Timestamp>().unwrap().to_string(), kept);
    }
    for bad in ["", "2024-01-15", "2024-01-15T10:30:00", "yesterday", "2024-13-01T00:00:00Z"] {
        assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
    }
}

#[test]
fn every_error_kind_has_its_own_code_and_exit_code() {
    let codes: std::collections::BTreeSet<_> =
        ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
    let exits: std::collections::BTreeSet<_> =
        ErrorKind::ALL.iter().map(|kind| kind.exit_code()).collect();
    let rpc: std::collections::BTreeSet<_> =
        ErrorKind::ALL.iter().map(|kind| kind.json_rpc_code()).collect();
    assert_eq!((codes.len(), exits.len(), rpc.len()), (13, 13, 13));
    assert!(!exits.contains(&0));
}

#[test]
fn the_error_table_of_the_documentation_is_the_one_in_the_code() {
    let documentation = include_str!("../../../docs/errors.md");
    for kind in ErrorKind::ALL {
        let row = format!(
            "| `{}` | {} | {} | {} |",
            kind.code(),
            kind.http_status(),
            kind.json_rpc_code(),
            kind.exit_code()
        );
        assert!(documentation.contains(&row), "docs/errors.md lacks the row {row}");
    }
}

proptest! {
    #[test]
    fn a_time_is_read_back_from_its_text(millis in -62_167_219_200_000_i64..253_402_300_800_000) {
        let time = Timestamp::from_millis(millis);
        prop_assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
    }
}

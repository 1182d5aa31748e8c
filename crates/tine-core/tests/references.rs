//! References taken apart.

use tine_core::Reference;
use tine_core::reference::{ReferenceError, digest_range};

fn parse(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

#[test]
fn counting_back_is_split_off() {
    assert_eq!((parse("main").base(), parse("main").back()), ("main", 0));
    assert_eq!((parse("main~").base(), parse("main~").back()), ("main", 1));
    assert_eq!((parse("main~12").base(), parse("main~12").back()), ("main", 12));
    assert!(parse("root").is_root());
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(Reference::parse("  "), Err(ReferenceError::Empty));
    assert_eq!(Reference::parse("~2"), Err(ReferenceError::Empty));
    for text in ["main~x", "main~-1", "main~1~2"] {
        assert!(matches!(Reference::parse(text), Err(ReferenceError::Count { .. })), "{text}");
    }
}

#[test]
fn a_prefix_has_eight_to_sixty_four_digits() {
    assert_eq!(parse("deadbee").hash_prefix(), None);
    assert_eq!(parse("DEADBEEF").hash_prefix().as_deref(), Some("deadbeef"));
    assert_eq!(parse("sha256:deadbeef").hash_prefix().as_deref(), Some("deadbeef"));
    assert_eq!(parse(&"a".repeat(65)).hash_prefix(), None);
    assert!(parse(&"a".repeat(64)).turn_hash().is_some());
    assert_eq!(parse("deadbeeg").hash_prefix(), None);
}

#[test]
fn a_prefix_stands_for_a_range_of_hashes() {
    let (low, high) = digest_range("deadbeef1").unwrap();
    assert!(low.to_hex().starts_with("deadbeef10000"));
    assert!(high.to_hex().starts_with("deadbeef1ffff"));
    assert!(low < high);
    assert_eq!(digest_range("xyz"), None);
}

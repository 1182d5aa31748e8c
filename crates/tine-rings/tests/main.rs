//! What the rings of a text are, ring by ring and language by language; what holds for any text.

use tine_rings::{Intent, rings};

#[test]
fn the_example_of_the_design_holds() {
    let rings = rings("What's the best time to visit Tokyo?");
    let keywords: Vec<&str> = rings.keywords.iter().map(|it| it.text.as_str()).collect();
    for expected in ["best time", "visit", "Tokyo"] {
        assert!(keywords.contains(&expected), "{expected} is not in {keywords:?}");
    }
    assert_eq!(rings.intent, Intent::Question);
    let facets: Vec<&str> = rings.facets.iter().map(|it| it.name).collect();
    assert_eq!(facets, ["timing", "travel"]);
    assert_eq!(rings.segments.len(), 1);
}

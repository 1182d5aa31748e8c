//! Computes keywords, intent, facets and sentences of a turn from its text alone.
//!
//! Everything here is pure: the same text has the same rings on every machine. Rings do not depend
//! on other turns, so they can be recomputed at any time; [`EXTRACTOR`] names the version of the
//! rules.

mod cues;
mod facets;
mod fold;
mod intent;
mod keywords;
mod language;
mod lists;
mod phrases;
mod plain;
mod script;
mod segments;
mod sentences;
mod tokens;

pub use tine_core::rings::{FACETS, Facet, Intent, Keyword, Rings, Span};

/// Name and version of the extractor; any change of the output requires a new version. Without the
/// dictionary of the feature `cjk`, Chinese text has other keywords, so the name differs.
pub const EXTRACTOR: &str = if cfg!(feature = "cjk") { "rings/1" } else { "rings/1-basic" };

/// The maximum number of keywords of a turn.
pub const MAX_KEYWORDS: usize = 16;

/// The maximum number of segments of a turn; the last one takes the rest of the text.
pub const MAX_SEGMENTS: usize = 4_096;

/// Returns the rings of a text.
///
/// ```
/// use tine_analysis::rings::{Intent, rings};
/// let rings = rings("What's the best time to visit Tokyo?");
/// let keywords: Vec<&str> = rings.keywords.iter().map(|it| it.text.as_str()).collect();
/// assert_eq!(keywords, ["Tokyo", "best time", "visit"]);
/// assert_eq!(rings.intent, Intent::Question);
/// let facets: Vec<&str> = rings.facets.iter().map(|it| it.name).collect();
/// assert_eq!(facets, ["timing", "travel"]);
/// assert_eq!(rings.segments.len(), 1);
/// ```
pub fn rings(text: &str) -> Rings {
    let segments = segments::segments(text);
    let sentences = sentences::sentences(text, &segments);
    Rings {
        keywords: keywords::keywords(text, &sentences),
        intent: intent::intent(&sentences),
        facets: facets::facets(&sentences),
        segments: spans(text, &segments),
    }
}

/// Returns the spans of segments; beyond the maximum, the last one takes the rest.
fn spans(text: &str, segments: &[segments::Segment]) -> Vec<Span> {
    let (mut byte, mut at) = (0, 0);
    let mut scalars = |to: usize| {
        at += text[byte..to].chars().count();
        byte = to;
        at
    };
    let mut found: Vec<Span> = Vec::new();
    for segment in segments {
        let span = Span { start: scalars(segment.at.start), end: scalars(segment.at.end) };
        let full = found.len() == MAX_SEGMENTS;
        match found.last_mut() {
            Some(last) if full => last.end = span.end,
            _ => found.push(span),
        }
    }
    found
}

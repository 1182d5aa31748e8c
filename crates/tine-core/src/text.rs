//! Cutting text at grapheme boundaries.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// Why a text cannot be split at an offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// There is nothing between two characters.
    #[error("a text of one character has no place to split it at")]
    TooShort,
    /// Both halves must hold something.
    #[error("the offset must lie between 1 and {last}; {offset} leaves one half empty")]
    OutOfRange {
        /// What was asked for.
        offset: usize,
        /// The last offset that leaves something on the right.
        last: usize,
    },
    /// The offset lies inside a grapheme cluster.
    #[error("the offset {offset} lies inside the character `{cluster}`; use {before} or {after}")]
    InsideCharacter {
        /// What was asked for.
        offset: usize,
        /// The grapheme cluster around it.
        cluster: String,
        /// The boundary before it.
        before: usize,
        /// The boundary after it.
        after: usize,
    },
}

/// Cuts a text at an offset counted in Unicode scalar values.
///
/// ```
/// use tine_core::text::split_at_scalar;
/// assert_eq!(split_at_scalar("naïve", 3).unwrap(), ("naï", "ve"));
/// assert!(split_at_scalar("👩‍🚀 up", 1).is_err());
/// ```
pub fn split_at_scalar(text: &str, offset: usize) -> Result<(&str, &str), SplitError> {
    let byte = match text.char_indices().nth(offset) {
        Some((byte, _)) if byte > 0 => byte,
        _ => {
            return Err(match text.chars().count() {
                0 | 1 => SplitError::TooShort,
                count => SplitError::OutOfRange { offset, last: count - 1 },
            });
        }
    };
    let boundary = GraphemeCursor::new(byte, text.len(), true)
        .is_boundary(text, 0)
        .expect("the whole text is given as one chunk, and char_indices yields a char boundary");
    if boundary {
        return Ok(text.split_at(byte));
    }
    let (start, cluster) = text
        .grapheme_indices(true)
        .take_while(|(start, _)| *start < byte)
        .last()
        .expect("a byte after the first has a cluster before it");
    let before = text[..start].chars().count();
    let after = before + cluster.chars().count();
    let cluster = cluster.to_owned();
    Err(SplitError::InsideCharacter { offset, cluster, before, after })
}

/// Returns the beginning of a text on one line: white space collapsed, at most `limit` characters,
/// ending in an ellipsis when something was cut off.
pub fn preview(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut taken = 0;
    for piece in text.split_whitespace().flat_map(|word| [" ", word]).skip(1) {
        // Most words of most texts: looking for characters in them would take most of the time.
        if piece.len() <= limit - taken && piece.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            out.push_str(piece);
            taken += piece.len();
            continue;
        }
        for cluster in piece.graphemes(true) {
            let size = cluster.chars().count();
            if taken + size > limit {
                let mut cut: Vec<char> = out.chars().collect();
                cut.truncate(limit.saturating_sub(1));
                out = cut.into_iter().collect();
                out.push('…');
                return out;
            }
            taken += size;
            if !cluster.chars().any(char::is_control) {
                out.push_str(cluster);
            }
        }
    }
    out
}

/// Returns a range of a text, counted in Unicode scalar values and widened to grapheme boundaries,
/// as its actual start and the slice.
///
/// ```
/// use tine_core::text::slice_graphemes;
/// assert_eq!(slice_graphemes("up 👩‍🚀 down", 4..5), (3, "👩‍🚀"));
/// ```
pub fn slice_graphemes(text: &str, wanted: std::ops::Range<usize>) -> (usize, &str) {
    let byte = |offset| text.char_indices().nth(offset).map_or(text.len(), |(byte, _)| byte);
    let cursor = |at| GraphemeCursor::new(at, text.len(), true);
    let (start, end) = (byte(wanted.start), byte(wanted.end));
    let is_boundary = |at| matches!(cursor(at).is_boundary(text, 0), Ok(true));
    let from = match is_boundary(start) {
        true => start,
        false => cursor(start).prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    };
    let to = match is_boundary(end) {
        true => end,
        false => cursor(end).next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    };
    let skipped = text[from..start].chars().count();
    (wanted.start.saturating_sub(skipped), &text[from..to])
}

//! A line as a shell takes it apart: words between spaces, quotes that keep spaces, and a
//! backslash that keeps any sign. Nothing is expanded, and `#` begins no comment: whatever is
//! typed counts.

/// A line taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineTokens {
    /// The words, without their quotes.
    pub(super) tokens: Vec<String>,
    /// Where the last word begins, if the line ends within it.
    pub(super) open_at: Option<usize>,
    /// The quote that was never closed.
    pub(super) open_quote: Option<char>,
}

/// Takes a line apart.
pub(super) fn tokenize(line: &str) -> LineTokens {
    let mut tokens = LineTokens::default();
    let mut word: Option<String> = None;
    let mut start = 0;
    let mut quote = None;
    let mut chars = line.char_indices();
    while let Some((at, character)) = chars.next() {
        match (quote, character) {
            (None, space) if space.is_whitespace() => tokens.tokens.extend(word.take()),
            (None, '"' | '\'') => {
                start = if word.is_none() { at } else { start };
                word.get_or_insert_default();
                quote = Some(character);
            }
            (Some(open), close) if open == close => quote = None,
            // Within double quotes a backslash keeps only what would mean something there.
            (Some('"'), '\\') => {
                let next = chars.clone().next().map(|(_, next)| next);
                let kept = next.filter(|next| matches!(next, '"' | '\\'));
                if kept.is_some() {
                    chars.next();
                }
                word.get_or_insert_default().push(kept.unwrap_or('\\'));
            }
            (None, '\\') => {
                start = if word.is_none() { at } else { start };
                let kept = chars.next().map_or('\\', |(_, next)| next);
                word.get_or_insert_default().push(kept);
            }
            (_, character) => {
                start = if word.is_none() { at } else { start };
                word.get_or_insert_default().push(character);
            }
        }
    }
    tokens.open_at = word.is_some().then_some(start);
    tokens.tokens.extend(word);
    tokens.open_quote = quote;
    tokens
}

/// A word as it has to be typed.
pub(super) fn quote(word: &str) -> String {
    let plain =
        |character: char| !character.is_whitespace() && !matches!(character, '"' | '\'' | '\\');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

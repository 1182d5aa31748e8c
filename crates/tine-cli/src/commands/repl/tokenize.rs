//! Splits a line into tokens as a shell does: at spaces, with quotes and backslash escapes. There
//! is no expansion, and `#` does not start a comment.

/// The tokens of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineTokens {
    /// Tokens without their quotes.
    pub(super) tokens: Vec<String>,
    /// Start of the last token, if the line ends within it.
    pub(super) open_at: Option<usize>,
    /// A quote that is not closed.
    pub(super) open_quote: Option<char>,
}

/// Splits a line into tokens.
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
            // Within double quotes a backslash escapes only quotes and backslashes.
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

/// Quotes a token so that `tokenize` returns it unchanged.
pub(super) fn quote(word: &str) -> String {
    let plain =
        |character: char| !character.is_whitespace() && !matches!(character, '"' | '\'' | '\\');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

//! Measures, truncates and wraps text in terminal columns.
//!
//! CJK characters and emoji are two columns wide. Grapheme clusters are never split.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the width of a text in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Formats a number with a noun: `1 turn`, `2 turns`.
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Quotes a word for a shell, where it needs quotes.
pub fn shell_word(word: &str) -> String {
    let word = visible(word);
    let plain = |symbol: char| symbol.is_alphanumeric() || "-_./:@+,".contains(symbol);
    match word.chars().all(plain) && !word.is_empty() && !word.starts_with('-') {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Formats a number with a noun of irregular plural: `1 branch`, `2 branches`.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Replaces control characters, except line feeds and tabs, with visible symbols.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_terminal_control) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(
                |symbol| if is_terminal_control(symbol) { control_picture(symbol) } else { symbol },
            )
            .collect(),
    )
}

fn is_terminal_control(symbol: char) -> bool {
    let direction = matches!(symbol, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    direction || symbol.is_control() && symbol != '\n' && symbol != '\t'
}

/// Returns the Unicode picture of a control character, or U+FFFD if it has none.
fn control_picture(symbol: char) -> char {
    match u32::from(symbol) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// Puts a text on one line of at most `columns` columns; truncation is marked with an ellipsis.
pub fn cut(text: &str, columns: usize) -> String {
    let text = visible(text);
    let text = if text.contains(['\n', '\t']) {
        Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "))
    } else {
        text
    };
    if width(&text) <= columns {
        return text.into_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut out = String::new();
    let mut taken = 0;
    for cluster in text.graphemes(true) {
        let size = width(cluster);
        if taken + size > room {
            break;
        }
        taken += size;
        out.push_str(cluster);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Wraps text to lines of at most `columns` columns, between words where possible. Without
/// `columns`, lines stay as they are.
pub fn wrap(text: &str, columns: Option<usize>) -> Vec<String> {
    let text = visible(text);
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    match columns {
        Some(columns) => lines.flat_map(|line| wrap_line(line, columns.max(10))).collect(),
        None => lines.map(str::to_owned).collect(),
    }
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let line = line.replace('\t', "    ");
    if width(&line) <= columns {
        return vec![line];
    }
    let mut lines = Vec::new();
    let (mut current, mut taken) = (String::new(), 0);
    for piece in line.split_word_bounds() {
        let size = width(piece);
        if taken + size > columns && taken > 0 {
            let full = std::mem::take(&mut current);
            lines.push(full.trim_end().to_owned());
            taken = 0;
            if piece.trim().is_empty() {
                continue;
            }
        }
        if size <= columns {
            current.push_str(piece);
            taken += size;
            continue;
        }
        // A word longer than a line is broken at the end of the line.
        for cluster in piece.graphemes(true) {
            let size = width(cluster);
            if taken + size > columns {
                lines.push(std::mem::take(&mut current));
                taken = 0;
            }
            current.push_str(cluster);
            taken += size;
        }
    }
    if !current.is_empty() {
        lines.push(current);
    }
    lines
}

/// Returns whether bytes are UTF-8 text without terminal controls. Bytes arrive in chunks, so a
/// character may be incomplete at either end.
pub fn is_plain(bytes: &[u8]) -> bool {
    let begun = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let bytes = &bytes[begun..];
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !whole.chars().any(|symbol| is_terminal_control(symbol) && symbol != '\r')
}

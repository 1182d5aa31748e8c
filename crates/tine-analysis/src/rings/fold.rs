//! Folds text for the word lists: lower case, no accents, one form of apostrophes and widths.

use unicode_normalization::char::{compose, decompose_canonical};

/// Appends the folded form of a character to a text.
pub(crate) fn push(symbol: char, out: &mut String) {
    match symbol {
        _ if symbol.is_ascii() => out.push(symbol.to_ascii_lowercase()),
        '’' | '‘' | 'ʼ' | '＇' => out.push('\''),
        '‐' | '‑' => out.push('-'),
        'ß' | 'ẞ' => out.push_str("ss"),
        'æ' | 'Æ' => out.push_str("ae"),
        'œ' | 'Œ' => out.push_str("oe"),
        'ø' | 'Ø' => out.push('o'),
        '\u{300}'..='\u{36f}' => {}
        '\u{3099}' | '\u{309a}' => voice(symbol, out),
        '\u{ff01}'..='\u{ff5e}' => {
            let narrow = char::from_u32(u32::from(symbol) - 0xfee0).unwrap_or(symbol);
            out.push(narrow.to_ascii_lowercase());
        }
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => out.push(base(symbol)),
        _ => out.extend(symbol.to_lowercase()),
    }
}

/// Returns the folded form of a text.
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|symbol| push(symbol, &mut out));
    out
}

/// Returns a Latin letter without its accents, in lower case.
fn base(symbol: char) -> char {
    let mut first = None;
    decompose_canonical(symbol, |part| {
        first.get_or_insert(part);
    });
    let letter = first.unwrap_or(symbol);
    letter.to_lowercase().next().unwrap_or(letter)
}

/// Combines a voicing mark with the kana before it.
fn voice(mark: char, out: &mut String) {
    if let Some(voiced) = out.chars().next_back().and_then(|kana| compose(kana, mark)) {
        out.pop();
        out.push(voiced);
    }
}

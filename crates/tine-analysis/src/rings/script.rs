//! Classifies characters by script.

/// Returns whether a character is a Chinese character.
pub(crate) fn is_han(symbol: char) -> bool {
    matches!(symbol, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' | '々' | '〇' | 'ヶ')
}

pub(crate) fn is_hiragana(symbol: char) -> bool {
    matches!(symbol, '\u{3041}'..='\u{309f}')
}

pub(crate) fn is_katakana(symbol: char) -> bool {
    matches!(symbol, '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{ff66}'..='\u{ff9f}')
}

pub(crate) fn is_kana(symbol: char) -> bool {
    is_hiragana(symbol) || is_katakana(symbol)
}

/// Returns whether a character belongs to a script without spaces.
pub(crate) fn is_east_asian(symbol: char) -> bool {
    is_han(symbol) || is_kana(symbol)
}

/// Returns whether a character is a letter, digit or mark of a script with spaces.
pub(crate) fn is_word(symbol: char) -> bool {
    if symbol.is_ascii() {
        return symbol.is_ascii_alphanumeric();
    }
    (symbol.is_alphanumeric() && !is_east_asian(symbol)) || is_mark(symbol)
}

/// Returns whether a character is a combining accent or vowel sign.
pub(crate) fn is_mark(symbol: char) -> bool {
    matches!(symbol, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{903}'
        | '\u{93a}'..='\u{94f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}')
}

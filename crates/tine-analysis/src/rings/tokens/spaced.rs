//! Words of languages with spaces; names, identifiers, numbers and addresses.

use super::{RingToken, TokenKind, TokenReader, is_part, listed};
use crate::rings::language::Language;
use crate::rings::lists;
use crate::rings::script::is_word;
use crate::rings::sentences::Sentence;

/// Words that French joins to the next with an apostrophe.
const ELIDED: [&str; 13] =
    ["l", "d", "j", "m", "t", "s", "n", "c", "qu", "jusqu", "lorsqu", "puisqu", "quelqu"];

/// Words inside of terms: `base de données`, `carta de presentación`.
const LINKS: [&str; 2] = ["de", "d'"];

/// Words in -ly that are not adverbs.
const NO_ADVERBS: &str = " family reply supply assembly monopoly anomaly italy july butterfly jelly belly \
    elderly friendly weekly monthly daily fly apply ";

/// Words in -ar, -er and -ir that are not verbs.
const NO_INFINITIVES: &str = " lugar hogar mujer taller alquiler azucar militar familiar similar particular \
    popular escolar dolar celular placer super calamar altar pilar radar solar lunar titular ejemplar porvenir \
    cadaver caracter lider computer router server order poster master number docker user driver container \
    buffer header footer folder printer tanner marker hacer cualquier primer tercer ayer ser bar mar par ";

pub(super) fn begins(reader: &TokenReader<'_>) -> bool {
    let Some(symbol) = reader.peek(0) else { return false };
    let next = reader.peek(1);
    match symbol {
        '`' => true,
        '$' | '€' | '£' | '¥' | '#' | '@' => next.is_some_and(|it| it.is_ascii_alphanumeric()),
        '/' | '~' | '.' => !is_part(reader.before()) && path(reader) > 0,
        _ => is_word(symbol),
    }
}

pub(super) fn read(reader: &mut TokenReader<'_>) {
    match reader.peek(0) {
        Some('`') => return code(reader),
        Some('@') => return reader.pass(1),
        Some('#') => return reader.pass(1),
        _ => {}
    }
    let link = address(reader);
    if link > 0 {
        return reader.pass(link);
    }
    let path = path(reader);
    if path > 0 {
        return reader.take(path, TokenKind::Identifier);
    }
    let money = matches!(reader.peek(0), Some('$' | '€' | '£' | '¥'));
    if money || reader.peek(0).is_some_and(|it| it.is_numeric()) {
        return number(reader, usize::from(money));
    }
    word(reader);
}

/// Reads code between backticks, which is an identifier if it has no spaces.
fn code(reader: &mut TokenReader<'_>) {
    let inside =
        (1..=super::MAX_WORD).take_while(|no| reader.peek(*no).is_some_and(|it| it != '`')).count();
    let closed = inside > 0 && reader.peek(inside + 1) == Some('`');
    let spaced = (1..=inside).any(|no| reader.peek(no).is_some_and(char::is_whitespace));
    let telling = (1..=inside).any(|no| is_part(reader.peek(no)));
    reader.pass(1);
    if closed && !spaced && telling {
        reader.take(inside, TokenKind::Identifier);
        reader.pass(1);
    }
}

/// Returns the length of a URL or email address that begins here, or 0.
fn address(reader: &TokenReader<'_>) -> usize {
    let begins = |text: &str| text.chars().enumerate().all(|(no, it)| reader.peek(no) == Some(it));
    let goes_on = |symbol: char| !symbol.is_whitespace() && !"<>\"'()，。、".contains(symbol);
    let length = || (0..).take_while(|no| reader.peek(*no).is_some_and(goes_on)).count();
    if ["http://", "https://", "www."].into_iter().any(begins) {
        return length();
    }
    let local = |symbol: char| symbol.is_ascii_alphanumeric() || "._+-".contains(symbol);
    let name = (0..=64).take_while(|no| reader.peek(*no).is_some_and(local)).count();
    match reader.peek(name) == Some('@') && is_part(reader.peek(name + 1)) {
        true => length(),
        false => 0,
    }
}

/// Returns the length of a file path that begins here, or 0.
fn path(reader: &TokenReader<'_>) -> usize {
    let goes_on = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-~".contains(symbol);
    let length = (0..64).take_while(|no| reader.peek(*no).is_some_and(goes_on)).count();
    let mut path: String = (0..length).filter_map(|no| reader.peek(no)).collect();
    path.truncate(path.trim_end_matches(['.', '-', '/']).len());
    let rooted = ["/", "./", "../", "~/"].iter().any(|it| path.starts_with(it));
    let folders = path.matches('/').count();
    let ending = path.rsplit('/').next().and_then(|file| file.rsplit_once('.')).map(|it| it.1);
    let has_ending = ending.is_some_and(|it| (1..=5).contains(&it.len()));
    let letters = path.chars().filter(char::is_ascii_alphabetic).count();
    let is_path = folders > 0 && letters > 1 && ((rooted && letters > 2) || has_ending);
    if is_path { path.len() } else { 0 }
}

/// Reads a number with a currency sign, a percent sign or a unit.
fn number(reader: &mut TokenReader<'_>, sign: usize) {
    let mut length = sign;
    while let Some(symbol) = reader.peek(length) {
        let inner =
            ".,:/-".contains(symbol) && reader.peek(length + 1).is_some_and(|it| it.is_numeric());
        if !symbol.is_numeric() && (!inner || length == sign) {
            break;
        }
        length += 1;
    }
    // `3D`, `5kg`, `2fa`: letters that touch the number.
    let letters = (length..).take_while(|no| is_part(reader.peek(*no))).count();
    let tail: String = (length..length + letters.min(8)).filter_map(|no| reader.peek(no)).collect();
    let unit = lists::UNITS.contains(&crate::rings::fold::fold(&tail));
    if letters > 0 {
        let kind = if unit { TokenKind::Amount } else { TokenKind::Identifier };
        return reader.take(length + letters, kind);
    }
    if let Some(counter) = counter(reader, length) {
        return reader.take(length + counter, TokenKind::Amount);
    }
    let behind = matches!(reader.peek(length), Some('%' | '€' | '$' | '£' | '°' | '％'));
    let amount = behind || sign > 0;
    reader.take(
        length + usize::from(behind),
        if amount { TokenKind::Amount } else { TokenKind::Number },
    );
}

/// Returns the length of a Chinese or Japanese counter.
fn counter(reader: &TokenReader<'_>, at: usize) -> Option<usize> {
    const COUNTERS: [&str; 37] = [
        "時間", "日間", "週間", "年間", "分間", "ヶ月", "か月", "カ月", "万円", "千円", "小时",
        "分钟", "公里", "公斤", "万元", "个月", "天", "元", "块", "岁", "米", "円", "年", "月",
        "日", "時", "分", "秒", "人", "個", "泊", "歳", "度", "回", "点", "周", "个",
    ];
    let fits = |it: &&str| it.chars().enumerate().all(|(no, it)| reader.peek(at + no) == Some(it));
    COUNTERS.iter().find(|it| fits(it)).map(|it| it.chars().count())
}

/// Reads a word or an identifier: `CamelCase`, `snake_case`, `main.rs`, `std::fs`, `C++`.
fn word(reader: &mut TokenReader<'_>) {
    let mut length = 0;
    let (mut code, mut upper) = (false, 0);
    while let Some(symbol) = reader.peek(length) {
        let next = reader.peek(length + 1);
        match symbol {
            _ if is_word(symbol) => {
                upper += usize::from(symbol.is_uppercase());
                code |= symbol.is_ascii_digit();
            }
            '_' => code = true,
            '-' | '‑' if is_part(next) => {}
            '.' if next.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit()) => {
                code |= !is_abbreviation(reader, length);
            }
            ':' if next == Some(':') && is_part(reader.peek(length + 2)) => {
                code = true;
                length += 1;
            }
            '\'' | '’' if is_part(next) => {
                let elided = elided(reader, length);
                if elided {
                    return elision(reader, length + 1);
                }
                if possessive(reader, length) {
                    break;
                }
            }
            '+' | '#' if (symbol == '+' || length == 1) && !is_part(next) => code = true,
            _ => break,
        }
        length += 1;
        if length > 4 * super::MAX_WORD {
            let rest = (length..).take_while(|no| is_part(reader.peek(*no))).count();
            return reader.pass(length + rest);
        }
    }
    let text: String = (0..length).filter_map(|no| reader.peek(no)).collect();
    reader.take(length, kind(&text, code, upper));
    if matches!(reader.peek(0), Some('\'' | '’')) && is_part(reader.peek(1)) {
        reader.pass(2);
    }
    if reader.peek(0) == Some('(') && reader.peek(1) == Some(')') {
        if let Some(last) = reader.found.last_mut() {
            last.kind = TokenKind::Identifier;
        }
        reader.pass(2);
    }
}

/// Returns whether a period is between single letters: `z.B`, `e.g`, `a.m`.
fn is_abbreviation(reader: &TokenReader<'_>, point: usize) -> bool {
    let alone = |no: Option<usize>| no.is_none_or(|no| !is_part(reader.peek(no)));
    alone(point.checked_sub(2)) && alone(Some(point + 2))
}

fn elided(reader: &TokenReader<'_>, length: usize) -> bool {
    let text: String = (0..length.min(8)).filter_map(|no| reader.peek(no)).collect();
    length <= 7
        && reader.sentence.language == Language::French
        && ELIDED.contains(&crate::rings::fold::fold(&text).as_str())
}

fn elision(reader: &mut TokenReader<'_>, length: usize) {
    reader.take(length, TokenKind::Stop);
    if let Some(last) = reader.found.last_mut() {
        last.links = LINKS.contains(&last.folded.as_str());
    }
}

/// Returns whether a word ends with a possessive `'s` and is not a stop word with it.
fn possessive(reader: &TokenReader<'_>, length: usize) -> bool {
    let ends =
        !is_part(reader.peek(length + 2)) && matches!(reader.peek(length + 1), Some('s' | 'S'));
    let text: String = (0..length.min(12)).filter_map(|no| reader.peek(no)).collect();
    let whole = crate::rings::fold::fold(&text) + "'s";
    ends && !lists::of(reader.sentence.language).stop.contains(&whole)
}

/// Classifies a word by its letters.
fn kind(text: &str, code: bool, upper: usize) -> TokenKind {
    let letters = text.chars().filter(|it| it.is_alphabetic()).count();
    let inner =
        text.chars().skip(1).any(char::is_uppercase) && text.chars().any(char::is_lowercase);
    let parts_capital =
        text.split(['-', '’', '\'']).all(|part| part.starts_with(char::is_uppercase));
    match text {
        _ if code && letters > 0 => TokenKind::Identifier,
        // The letter of `option B` belongs to the word before it.
        _ if letters == 1 && upper == 1 && text != "I" => TokenKind::Number,
        _ if letters < 2 => TokenKind::Stop,
        _ if upper == letters && letters > 1 => TokenKind::Name,
        _ if inner && !parts_capital && !text.contains('-') => TokenKind::Identifier,
        _ if upper > 0 => TokenKind::Name,
        _ => TokenKind::Word,
    }
}

/// Classifies the words of a sentence by lists and by their neighbours.
pub(super) fn settle(sentence: &Sentence<'_>, tokens: &mut [RingToken]) {
    let language = match sentence.language {
        Language::Chinese | Language::Japanese => Language::English,
        language => language,
    };
    let shouted = is_shouted(sentence.text);
    let titled = is_titled(tokens);
    for (no, token) in tokens.iter_mut().enumerate() {
        if token.folded.starts_with(is_word) {
            let expected = no == 0 || shouted || titled;
            token.kind = alone(language, token, expected, shouted);
            token.links |= is_link(language, &token.folded);
        }
    }
    let kinds: Vec<TokenKind> = (0..tokens.len()).map(|no| beside(language, tokens, no)).collect();
    tokens.iter_mut().zip(kinds).for_each(|(token, kind)| token.kind = kind);
    units(tokens);
}

/// Classifies a word by itself. `expected` says that its initial capital is no evidence of a name.
fn alone(language: Language, token: &RingToken, expected: bool, shouted: bool) -> TokenKind {
    match token.kind {
        TokenKind::Name => name(language, &token.folded, expected, shouted),
        TokenKind::Word => word_kind(language, &token.folded),
        TokenKind::Identifier if listed(language, &token.folded) == Some(TokenKind::Stop) => {
            TokenKind::Stop
        }
        other => other,
    }
}

/// Returns whether a word may be inside of a term.
fn is_link(language: Language, folded: &str) -> bool {
    match language {
        Language::French => LINKS.contains(&folded) || folded == "a",
        Language::Spanish => LINKS.contains(&folded),
        _ => false,
    }
}

/// Classifies a word by its context: `the offer` is a noun, `they offer` a verb.
fn beside(language: Language, tokens: &[RingToken], no: usize) -> TokenKind {
    const NOUN_BEHIND: &str = " a an the my your his her its our their this that these those each every some any \
        no of for in on with about by from another new old good ";
    let token = &tokens[no];
    let last = no.checked_sub(1).and_then(|no| tokens.get(no)).filter(|_| token.joined);
    let behind = |words: &str| last.is_some_and(|it| among(words, &it.folded));
    let next = tokens.get(no + 1).filter(|it| it.joined);
    match (language, token.kind) {
        (Language::English, TokenKind::Verb) => {
            let noun = last.is_some_and(|it| {
                matches!(it.kind, TokenKind::Word | TokenKind::Weak) && !it.folded.ends_with('s')
            }) && !token.folded.ends_with("ed");
            let gerund =
                token.folded.ends_with("ing") && next.is_none_or(|it| it.kind == TokenKind::Stop);
            if noun || (behind(NOUN_BEHIND) && !gerund) { TokenKind::Word } else { TokenKind::Verb }
        }
        (Language::English, TokenKind::Word) => {
            let subject =
                behind(" i you he she we they it who which that and to i'll we'll you'll ");
            let ends = |ending: &str| token.folded.len() > 4 && token.folded.ends_with(ending);
            let object = next.is_some_and(|it| {
                matches!(it.kind, TokenKind::Word | TokenKind::Name | TokenKind::Identifier)
                    || among(NOUN_BEHIND, &it.folded)
            });
            let noun = last.is_some_and(|it| {
                matches!(it.kind, TokenKind::Word | TokenKind::Weak | TokenKind::Name)
            });
            let doing = ends("ing") && object && !noun && !behind(NOUN_BEHIND);
            let does = subject
                && (behind(" i you we they to i'll we'll you'll ") || ends("s") || ends("ed"));
            let acts = ends("s") && is_determined(next) && is_listed_verb(&token.folded);
            if doing || acts || (does && !ends("ss")) { TokenKind::Verb } else { TokenKind::Word }
        }
        (Language::French, TokenKind::Word)
            if behind(
                " je j' tu il elle on nous vous ils elles ai as a avons avez ont ne n' se s' me m' te t' ",
            ) =>
        {
            TokenKind::Verb
        }
        (Language::Spanish, TokenKind::Word)
            if behind(" yo he has ha hemos han se me te le nos no ") =>
        {
            TokenKind::Verb
        }
        (Language::German, TokenKind::Word)
            if no == 0 && next.is_some_and(|it| among("sie du wir ich ihr", &it.folded)) =>
        {
            TokenKind::Verb
        }
        (_, kind) => kind,
    }
}

/// Returns whether a determiner follows.
fn is_determined(next: Option<&RingToken>) -> bool {
    const ARTICLES: &str = "a an the my your his her its our their this that these those";
    next.is_some_and(|it| among(ARTICLES, &it.folded))
}

/// Returns whether a word is in a list separated by spaces.
fn among(few: &str, word: &str) -> bool {
    few.split_ascii_whitespace().any(|it| it == word)
}

/// Returns whether a word in -s is a form of a verb in the list.
fn is_listed_verb(folded: &str) -> bool {
    let verbs = &lists::of(Language::English).verbs;
    ["s", "es"]
        .iter()
        .filter_map(|ending| folded.strip_suffix(ending))
        .any(|stem| verbs.contains(stem))
}

/// Classifies a word with a capital letter.
fn name(language: Language, folded: &str, expected: bool, shouted: bool) -> TokenKind {
    let listed = listed(language, folded);
    match (language, listed) {
        (_, Some(TokenKind::Stop)) if folded != "us" || expected => TokenKind::Stop,
        (_, Some(TokenKind::Weak)) => TokenKind::Weak,
        (Language::German, Some(kind)) if expected => kind,
        (Language::German, _) if shouted => word_kind(language, folded),
        (Language::German, _) => TokenKind::Word,
        (_, Some(kind)) if expected => kind,
        _ if expected => word_kind(language, folded),
        _ => TokenKind::Name,
    }
}

/// Classifies a word in lower case.
fn word_kind(language: Language, folded: &str) -> TokenKind {
    if let Some(kind) = listed(language, folded) {
        return kind;
    }
    let ends = |endings: &[&str]| endings.iter().any(|it| folded.ends_with(it));
    let length = folded.chars().count();
    match language {
        Language::English if length > 4 && ends(&["ly"]) && !among(NO_ADVERBS, folded) => {
            TokenKind::Stop
        }
        Language::English if is_english_verb(folded) => TokenKind::Verb,
        Language::English if ends(&["n't", "'re", "'ve", "'ll"]) => TokenKind::Stop,
        Language::German if folded.starts_with(|it: char| it.is_ascii_lowercase()) => {
            TokenKind::Weak
        }
        Language::French
            if length > 6 && ends(&["ement", "amment", "emment"]) && !is_noun_in_ment(folded) =>
        {
            TokenKind::Weak
        }
        Language::Spanish if ends(&["mente"]) => TokenKind::Stop,
        Language::Spanish
            if length > 4
                && ends(&[
                    "ar", "er", "ir", "arme", "erme", "irme", "arlo", "erlo", "arla", "erla",
                ])
                && !among(NO_INFINITIVES, folded) =>
        {
            TokenKind::Verb
        }
        Language::Other if length < 4 && folded.is_ascii() => TokenKind::Stop,
        Language::Other if length < 3 => TokenKind::Stop,
        _ => TokenKind::Word,
    }
}

/// Returns whether a French word in -ement is probably a noun.
fn is_noun_in_ment(folded: &str) -> bool {
    !["ellement", "iquement", "alement", "ivement", "usement", "ablement", "ement"]
        .iter()
        .any(|it| folded.ends_with(it) && *it != "ement")
}

/// Returns whether a word is a form of a listed verb: `writing`, `planned`.
fn is_english_verb(folded: &str) -> bool {
    let verbs = &lists::of(Language::English).verbs;
    let known = |stem: &str| {
        let doubled =
            stem.len() > 3 && stem.as_bytes()[stem.len() - 1] == stem.as_bytes()[stem.len() - 2];
        verbs.contains(stem)
            || verbs.contains(&format!("{stem}e"))
            || (doubled && verbs.contains(&stem[..stem.len() - 1]))
    };
    if !folded.is_ascii() {
        return false;
    }
    ["ing", "ed"]
        .iter()
        .filter_map(|ending| folded.strip_suffix(ending))
        .any(|stem| stem.len() > 1 && known(stem))
}

/// Returns whether a sentence is in capitals, which then are no evidence of names.
fn is_shouted(text: &str) -> bool {
    let letters = || text.chars().filter(|it| it.is_alphabetic());
    let upper = letters().filter(|it| it.is_uppercase()).count();
    upper > 12 && upper * 10 > letters().count() * 7
}

/// Returns whether nearly every word has a capital, as in a heading.
fn is_titled(tokens: &[RingToken]) -> bool {
    let words =
        tokens.iter().filter(|it| matches!(it.kind, TokenKind::Name | TokenKind::Word)).count();
    let capital = tokens.iter().filter(|it| it.kind == TokenKind::Name).count();
    words > 3 && capital * 10 >= words * 8
}

/// Merges a number and its unit into one amount.
fn units(tokens: &mut [RingToken]) {
    for no in 1..tokens.len() {
        let (before, rest) = tokens.split_at_mut(no);
        let (number, unit) = (&mut before[no - 1], &mut rest[0]);
        let fits =
            number.kind == TokenKind::Number && unit.joined && lists::UNITS.contains(&unit.folded);
        if fits {
            number.kind = TokenKind::Amount;
            number.at.end = unit.at.end;
            number.span.end = unit.span.end;
            number.folded = format!("{} {}", number.folded, unit.folded);
            unit.kind = TokenKind::Stop;
        }
    }
}

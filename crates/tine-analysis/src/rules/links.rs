//! Links and email addresses.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::FoundFact;
use super::passage::{Sentence, pattern};

static LINK: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)\b(?:https?://|www\.)[^\s<>"“”`]+"#));

static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b[a-z0-9][a-z0-9._%+-]*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b")
});

pub(super) fn find(sentence: &Sentence<'_>, found: &mut Vec<FoundFact>) {
    for at in links(sentence.text) {
        found.push(FoundFact::new("link", at.clone()).text("url", &sentence.text[at]));
    }
}

/// Returns the ranges of links and email addresses, which other rules ignore.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut all = links(text);
    all.extend(emails(text));
    all
}

pub(super) fn emails(text: &str) -> Vec<Range<usize>> {
    EMAIL.find_iter(text).map(|email| email.range()).collect()
}

fn links(text: &str) -> Vec<Range<usize>> {
    let trimmed = |at: Range<usize>| at.start..at.start + trim(&text[at.clone()]).len();
    LINK.find_iter(text).map(|link| trimmed(link.range())).filter(|at| at.len() > 8).collect()
}

/// Returns a link without the punctuation of the sentence around it.
fn trim(mut link: &str) -> &str {
    loop {
        let Some(last) = link.chars().next_back() else { return link };
        let opens = match last {
            ')' => Some('('),
            ']' => Some('['),
            '}' => Some('{'),
            _ => None,
        };
        // A closing bracket belongs to the link if it was opened there.
        let balanced =
            opens.is_some_and(|open| link.matches(open).count() >= link.matches(last).count());
        let loose = opens.is_some() && !balanced;
        if !loose && !matches!(last, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '’' | '_') {
            return link;
        }
        link = &link[..link.len() - last.len_utf8()];
    }
}

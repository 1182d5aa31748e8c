//! Documents: files by name, papers by title, and the title of the text if it is a document.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::FoundFact;
use super::context::{SentenceContext, TextSource};
use super::links;
use super::names::NameKind;
use super::passage::{SentenceBlock, pattern};

/// A file name: no spaces, and a known extension.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:^|[\s(\[`\x22'“*,:])(?P<name>[\p{L}\p{N}_][\p{L}\p{N}_.\-]*\.(?:pdf|docx?|xlsx?|pptx?|odt|ods|odp|rtf|txt|md|csv|tsv|",
        r"json|xml|ya?ml|toml|html?|zip|tar\.gz|tgz|gz|7z|rar|png|jpe?g|gif|svg|webp|heic|tiff?|psd|ai|fig|sketch|dwg|",
        r"mp3|mp4|m4a|wav|mov|avi|mkv|apk|ipa|exe|dmg|iso|epub|key|pages|numbers|ics|eml|log|sql|db|ipynb|tex|bib|",
        r"vsdx?|drawio|pst|bak|stl|step|gpx|kml|py|rs|java|cpp|sh|css|ini|conf|ods|numbers))(?:$|[\s)\]`\x22'”*,:;!?]|\.(?:\s|$))"
    ))
});

/// Nouns for documents.
const PAPER: &str = "(?:document|report|paper|article|book|memo|file|doc|spreadsheet|presentation|\
                     deck|essay|guide|manual|handbook|contract|proposal|thesis|letter)";

/// A quoted title beside a noun for a document.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    let title = r#"["“](?P<NAME>[^"“”]{2,80})["”]"#;
    let (behind, before) = (title.replace("NAME", "name"), title.replace("NAME", "first"));
    pattern(&format!(
        r"(?i)\b{PAPER}\s+(?:called\s+|titled\s+|named\s+|entitled\s+)?{behind}|{before}\s+{PAPER}\b"
    ))
});

pub(super) fn find(context: &SentenceContext<'_>, found: &mut Vec<FoundFact>) {
    let text = context.sentence.text;
    let masked = links::ranges(text);
    let mut add = |at: Range<usize>| {
        let in_link = masked.iter().any(|link| link.start < at.end && at.start < link.end);
        if !in_link {
            found.push(FoundFact::new("document", at.clone()).text("title", &text[at]));
        }
    };
    let mut from = 0;
    // The separator after one name may be the one before the next.
    while let Some(name) = FILE.captures_at(text, from).and_then(|captures| captures.name("name")) {
        add(name.range());
        from = name.end();
    }
    for captures in QUOTED.captures_iter(text) {
        if let Some(name) = captures.name("name").or(captures.name("first")) {
            add(name.range());
        }
    }
    if context.source == TextSource::Document
        && context.opens
        && context.sentence.block == SentenceBlock::Heading
    {
        add(0..text.trim_end().len());
    }
    for name in context.names.iter().filter(|name| name.kind == NameKind::Document) {
        found.push(FoundFact::new("document", name.at.clone()).text("title", name.name.clone()));
    }
}

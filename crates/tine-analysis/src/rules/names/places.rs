//! Evidence for names of places.

use std::sync::LazyLock;

use regex::Regex;

use super::super::lists::{COMMON, FIRST_NAMES, PLACE_WORDS, PLACES};
use super::super::passage::{Sentence, pattern};
use super::super::tokens::{Gap, WordShape};
use super::{Mention, NameKind, NameRun};

/// Prepositions of place.
const TOWARDS: &str = "in to from near at around through via outside across between into visit";

/// Returns whether a word begins names of places.
pub(super) fn begins_name(folded: &str) -> bool {
    PLACE_WORDS.contains(format!("^{folded}").as_str())
}

/// Returns whether a word ends names of places.
pub(super) fn ends_name(folded: &str) -> bool {
    PLACE_WORDS.contains(format!("${folded}").as_str())
}

/// Returns whether the words of a run name a place.
pub(super) fn is_by_name(run: NameRun<'_>) -> bool {
    let own = run.own();
    let (first, last) = (own[0].folded.as_str(), own[own.len() - 1].folded.as_str());
    match PLACES.get(run.text()) {
        // "Paris said": a known place that speaks is a person.
        Some(true) => return !run.precedes("said says asked told"),
        Some(false) => return run.follows(TOWARDS) || is_in_state(run),
        None => {}
    }
    if own.len() == 1 {
        return ["straße", "strasse", "platz", "gasse", "allee", "plein", "straat"]
            .iter()
            .any(|end| last.len() > end.len() + 2 && last.ends_with(end));
    }
    let named = begins_name(first) && !COMMON.contains(own[1].folded.as_str());
    let plain = own[..own.len() - 1].iter().all(|word| COMMON.contains(word.folded.as_str()));
    named || ends_name(last) && !(plain && run.opens())
}

/// Returns whether a state follows: "Austin, TX", "Cambridge, Massachusetts".
fn is_in_state(run: NameRun<'_>) -> bool {
    run.after(1).is_some_and(|next| {
        let code = next.shape == WordShape::Upper && next.at.len() == 2;
        next.gap == Gap::Comma && (code || PLACES.contains_key(&run.sentence.text[next.at.clone()]))
    })
}

/// Returns whether the context of a run is that of a place.
pub(super) fn is_by_place(run: NameRun<'_>) -> bool {
    const MOVES: &str = "live lives lived living move moved moving fly flying flew flight flights trip travel \
        travelling traveling train bus ferry drive driving drove based born stay staying \
        stayed arrive arriving weekend holiday vacation grew cabin cottage apartment flat \
        house hotel office wedding conference week days city town village offsite retreat hike \
        ticket tickets";
    const MEALS: &str = "dinner lunch breakfast brunch drinks table reservation coffee party concert wedding \
        eat ate meet meeting stay room booked rooms show gig reception checked staying";
    let own = run.own();
    if !run.is_capitalised()
        || FIRST_NAMES.get(own[0].folded.as_str()) == Some(&true) && own.len() > 1
    {
        return false;
    }
    let near = |words: &str, reach: usize| {
        (2..=reach).any(|places| run.before(places).is_some_and(|word| word.is(words)))
    };
    let known_name = FIRST_NAMES.contains_key(own[0].folded.as_str());
    let moving = run.follows("in to from near through via") && near(MOVES, 3);
    let dining = run.follows("at") && near(MEALS, 7);
    let kind = run.follows("of")
        && run.before(2).is_some_and(|word| word.is("city town village port district region"));
    let called = run.follows("called")
        && run
            .before(2)
            .is_some_and(|word| word.is("place restaurant hotel bar café cafe village town"));
    let kinds = own[0].gap == Gap::Space
        && run.before(1).is_some_and(|word| word.is("restaurant hotel café cafe bar pub"));
    !known_name && (moving || dining || kind || called || kinds)
}

/// Returns streets with house numbers.
pub(super) fn streets(sentence: &Sentence<'_>) -> Vec<Mention> {
    static STREET: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"\b\d{1,5}[a-zA-Z]?\s+(?:(?:[NSEW]|North|South|East|West)\.?\s+)?(?:\p{Lu}[\p{L}'’-]+\s+){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Square|Court|Ct|Place|Pl|Way|Terrace|Crescent)\b|\b\p{Lu}[\p{L}-]*(?:straße|strasse|gasse|platz|allee|weg|straat)\s+\d{1,4}[a-z]?\b",
        )
    });
    let mention = |at: std::ops::Range<usize>| Mention {
        kind: NameKind::Place,
        name: sentence.text_of(&at),
        at,
        role: None,
    };
    STREET.find_iter(&sentence.plain).map(|street| mention(street.range())).collect()
}

//! Preferences: likes, dislikes, and what a person always or never does.
//!
//! The statement includes the verb, which distinguishes likes from dislikes. A negated like is a
//! dislike; other negated or hypothetical sentences are not preferences.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::FoundFact;
use super::context::SentenceContext;
use super::lists::ACTION_WORDS;
use super::passage::{SentenceBlock, pattern};
use super::tokens::{Word, among, word_from};

/// Adverbs between a subject and its verb.
const ADVERBS: &str = r"(?:(?:really|also|much|generally|usually|just|still|absolutely|strongly|definitely|personally|mostly|do|actually|quite|kind of|both|all|truly|particularly|especially|honestly|rather|tend to|try to|tries to)\s+)*";

static LIKES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)\b{ADVERBS}(?P<verb>(?:prefer|love|enjoy|adore|like)s?|would prefer|would rather|['’]d (?:much )?(?:rather|prefer)|can['’]?t get enough of|(?:am|is|are|['’]m|['’]s|['’]re) (?:a |really |quite |very )*(?:big |huge )?(?:fan of|fond of|keen on|into))\s+(?P<not>not\s+)?(?P<what>\S+)"
    ))
});

static DISLIKES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)\b{ADVERBS}(?P<verb>(?:hate|dislike|detest|loathe|despise|avoid)s?|can['’]?t (?:stand|bear)|cannot (?:stand|bear)|(?:do not|don['’]?t|does not|doesn['’]?t) (?:really |much |particularly )?(?:like|enjoy|love|care for|eat|drink)|can(?:no|['’]?)t (?:eat|drink)|(?:am|is|are|['’]m|['’]s|['’]re) (?:not (?:a )?(?:really )?(?:big |huge )?(?:fan of|fond of|keen on|into)|(?:severely |very |badly |deathly )?allergic to|(?:lactose|gluten)[ -]intolerant|vegetarian|vegan|(?:a )(?:vegetarian|vegan)))(?:\s+(?P<what>\S+)|\W*$)"
    ))
});

static HABIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?P<how>always|never|only ever|only)\s+(?P<what>[\p{L}'’-]+)")
});

/// A preference without a subject.
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)(?:^|[,;:.]\s+|\band\s+)(?P<verb>(?:would |i['’]?d )?(?:prefer|rather)\s+\S)")
});

static FAVOURITE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:my|our|his|her|their|(?-i:\p{Lu}\p{L}+)['’]s) (?:all-time )?favou?rite\b.*?\b(?:is|are)\s+\S+",
    )
});

pub(super) fn find(context: &SentenceContext<'_>, taken: &[Range<usize>]) -> Vec<FoundFact> {
    let mut found: Vec<FoundFact> = Vec::new();
    if matches!(
        context.sentence.block,
        SentenceBlock::Heading | SentenceBlock::Done | SentenceBlock::Open
    ) {
        return found;
    }
    let plain = context.sentence.plain.as_str();
    let starts = starts(context);
    for (no, (from, polarity)) in starts.iter().enumerate() {
        // "… is allergic to latex and prefers paper" is two preferences.
        let next = starts.get(no + 1).map_or(plain.len(), |(next, _)| *next);
        let at = context.trimmed(*from..context.clause(*from).end.min(next));
        let apart = taken.iter().all(|other| other.end <= at.start || at.end <= other.start);
        if at.len() < 4 || !apart {
            continue;
        }
        let fact = FoundFact::new("preference", at.clone())
            .text("statement", context.sentence.text_of(&at));
        found.push(match polarity {
            Some(polarity) => fact.text("polarity", *polarity),
            None => fact,
        });
    }
    found
}

/// Returns the beginnings of preferences, in order, with their polarity if it is known.
fn starts(context: &SentenceContext<'_>) -> Vec<(usize, Option<&'static str>)> {
    let plain = context.sentence.plain.as_str();
    let mut starts = Vec::new();
    for (verbs, polarity) in [(&*DISLIKES, "dislike"), (&*LIKES, "like")] {
        for captures in verbs.captures_iter(plain) {
            let Some(all) = captures.get(0) else { continue };
            let subject = subject(context, all.start());
            let Some(from) = subject.filter(|from| context.is_stated(*from)) else { continue };
            let what = captures.name("what").map_or("", |what| what.as_str());
            if is_empty_object(what, &captures["verb"]) {
                continue;
            }
            let denied = captures.name("not").is_some();
            starts.push((from, Some(if denied { "dislike" } else { polarity })));
        }
    }
    for captures in HABIT.captures_iter(plain) {
        let Some(all) = captures.get(0) else { continue };
        let verb = captures["what"].to_lowercase();
        let how = captures["how"].to_lowercase();
        let owner = subject(context, all.start());
        let command = owner.is_none() && is_first(context, all.start());
        let known = ACTION_WORDS.contains(verb.as_str()) || among(HABITS, &verb);
        let known = known && !among(MISHAPS, &verb);
        // "I only wanted" and "I only just" are not habits.
        let owner = owner.filter(|_| how != "only" || known);
        let habit =
            owner.is_some() && !is_past(&verb) && !among(MISHAPS, &verb) || command && known;
        if habit && context.is_stated(owner.unwrap_or(all.start())) {
            starts.push((owner.unwrap_or(all.start()), (how == "never").then_some("dislike")));
        }
    }
    for favourite in FAVOURITE.find_iter(plain) {
        if context.is_stated(favourite.start()) {
            starts.push((favourite.start(), Some("like")));
        }
    }
    for bare in BARE.captures_iter(plain).filter_map(|captures| captures.name("verb")) {
        if context.is_stated(bare.start())
            && context.trimmed(context.clause(bare.start())).start == bare.start()
        {
            starts.push((bare.start(), Some("like")));
        }
    }
    starts.sort_by_key(|(from, _)| *from);
    starts.dedup_by_key(|(from, _)| *from);
    starts
}

/// Verbs of involuntary habits.
const MISHAPS: &str =
    "forget lose miss confuse mix get have seem fail struggle wonder think thought end run try";

const HABITS: &str = "use put do eat drink fly sit wear sleep work keep include";

/// Returns whether a byte is at the beginning of its clause, after an optional "please".
fn is_first(context: &SentenceContext<'_>, byte: usize) -> bool {
    let clause = context.clause(byte);
    let before =
        context.sentence.plain[clause.start..byte].trim_matches(|c: char| !c.is_alphabetic());
    before.is_empty() || ["please", "pls"].contains(&before.to_lowercase().as_str())
}

/// Returns the beginning of a verb's subject, if that can have preferences.
fn subject(context: &SentenceContext<'_>, verb: usize) -> Option<usize> {
    let words = context.words();
    let at = word_from(words, verb);
    if let Some(name) = context.person_before(verb) {
        return Some(name.at.start);
    }
    // A contracted subject is inside of the match: "I'd rather".
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    let inside = words.iter().find(|word| word.at.start < verb && verb < word.at.end);
    let word = inside.or(before)?;
    // "I'd like to" is a request; "I'd rather" and "I'd prefer" are preferences.
    if is_person(word) && (inside.is_some() || !word.folded.contains('\'')) {
        return Some(word.at.start);
    }
    // "My wife prefers …", "and hates …" with the subject at the beginning of the clause.
    let owner = words.get(at.checked_sub(2)?)?;
    if word.is(KIN) && owner.is("my our his her their the") {
        return Some(owner.at.start);
    }
    if word.is("and but") {
        let clause = context.clause(word.at.start);
        let first = words.get(word_from(words, clause.start))?;
        let named = context.names.iter().any(|name| name.at.start == first.at.start);
        return (is_person(first) || named).then_some(verb);
    }
    None
}

const KIN: &str = "wife husband partner mother father mom mum dad sister brother son daughter boss manager \
    client customer team kids parents friend girlfriend boyfriend grandma grandpa grandmother \
    grandfather aunt uncle cousin roommate flatmate colleague landlord neighbor";

fn is_person(word: &Word) -> bool {
    let stem = word.folded.split('\'').next().unwrap_or_default();
    ["i", "we", "he", "she", "they"].contains(&stem)
}

/// Returns whether the object carries no information: "I like it", "I'd love to".
fn is_empty_object(what: &str, verb: &str) -> bool {
    let folded = what.to_lowercase();
    let bare = folded.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'');
    let liking = verb.to_lowercase().starts_with("like") || verb.to_lowercase().starts_with("love");
    let ended = what.ends_with(['.', ',', '!', '?', ';', ')']);
    if ["that", "when", "how", "if"].contains(&bare) {
        return true;
    }
    let pronoun = ["it", "that", "this", "them", "you", "him", "her"].contains(&bare);
    pronoun && (ended || liking) || liking && ["how", "what", "your"].contains(&bare)
}

/// Returns whether a verb is in the past tense: "I never got it" is not a habit.
fn is_past(verb: &str) -> bool {
    const PAST: &str = "got had was were did said knew thought saw came went made took gave told heard felt \
        found left met paid sent wrote been mind worked";
    among(PAST, verb) || (verb.ends_with("ed") && verb != "need" && verb != "feed")
}

//! Events: they have a date or a time of day in their clause.
//!
//! There are two forms: a sentence whose predicate is the time ("The exam is on Friday"), with any
//! subject, and an event noun beside a time ("dentist appointment tomorrow"), with the phrase around
//! it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::FoundFact;
use super::context::SentenceContext;
use super::lists::{ACTION_WORDS, COMMON, EVENT_WORDS, FIRST_NAMES};
use super::names::NameKind;
use super::passage::{SentenceBlock, pattern};
use super::time_expressions::TimeExpression;
use super::tokens::{Gap, Word, WordShape};

/// The maximum number of words in a title.
const MAX_TITLE_WORDS: usize = 9;

/// The words between an event and its time.
static PREDICATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)^(?P<event>.*?)(?:\s+(?P<plain>is|are|['’]s|will be)(?: now| still| again| only| already)?|['’]s|",
        r"\s+(?P<sure>(?:(?:is|are|was|were|has been|got|gets|will be)\s+)?(?:now\s+)?(?:booked|scheduled|set|planned|confirmed|moved|rescheduled|postponed|pushed|arranged|fixed|happening|taking place)(?:\s+(?:in|for|to|on|back to))?|takes? place|happens|is happening|will take place)|",
        r"\s+(?P<start>starts|begins|leaves|departs|lands|arrives|ends|closes|opens|kicks off|runs|expires|was)|\s*(?P<colon>:))\s*$"
    ))
});

/// Words that end the phrase to their right.
const STOPS: &str = "have has had having got get is are was were be been and or but so for to at in on of with \
    from by about before after during until there's there book booked schedule scheduled \
    attend attending plan planned some any no another also will see as if when what hold \
    holding host hosting then please moved move it's that's make add put set confirm join \
    hosts not up reminder";

/// Words before a phrase that are not part of it.
const DETERMINERS: &str = "a an the my our your his her their this that these those i i've i'm we we've we're you he \
    she it they";

/// Event nouns that are also verbs: at the beginning of a clause they are imperatives.
const ALSO_VERBS: &str = "call visit play test review train move date show talk race ride vote sync release launch \
    demo screen match service trial drill scan hike tour pitch cruise";

/// Event nouns with other meanings: they need another noun before them.
const NEED_COMPANY: &str = "final date train bus move sale coffee test play service vote class course release \
    migration maintenance planning show operation dentist delivery";

pub(super) fn find(context: &SentenceContext<'_>, taken: &[Range<usize>]) -> Vec<FoundFact> {
    let mut found: Vec<FoundFact> = Vec::new();
    if matches!(context.sentence.block, SentenceBlock::Done | SentenceBlock::Open) {
        return found;
    }
    for time in context.times.iter().filter(|time| time.is_definite()) {
        if context.is_quoted(time.at.start) || !is_real(context, time) {
            continue;
        }
        let Some(at) = by_predicate(context, time)
            .or_else(|| by_word(context, time))
            .or_else(|| by_itself(context, time))
        else {
            continue;
        };
        let free = |other: &Range<usize>| other.end <= at.start || at.end <= other.start;
        let apart = |other: &Range<usize>| free(other) && !other.contains(&time.at.start);
        if !taken.iter().all(apart) || !found.iter().all(|it| free(&it.at)) {
            continue;
        }
        found.push(described(context, time, at));
    }
    found
}

/// Returns whether a word is an event noun, singular or plural.
pub(super) fn is_event(word: &Word) -> bool {
    let one = word.folded.strip_suffix('s').unwrap_or(&word.folded);
    EVENT_WORDS.contains(word.folded.as_str()) || EVENT_WORDS.contains(one)
}

/// Returns whether the clause of a time states that something happens.
fn is_real(context: &SentenceContext<'_>, time: &TimeExpression) -> bool {
    static UNREAL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:if|unless|wish|might|could|would|not|never|cancel(?:l?ed)?|no longer|maybe|perhaps|should)\b|n['’]t\b",
        )
    });
    let clause = context.clause(time.at.start);
    let asks = context.sentence.asks && clause.end >= context.sentence.plain.trim_end().len();
    !asks && !UNREAL.is_match(&context.sentence.plain[clause])
}

/// Returns the event of a clause whose predicate is the time.
fn by_predicate(context: &SentenceContext<'_>, time: &TimeExpression) -> Option<Range<usize>> {
    let plain = context.sentence.plain.as_str();
    let clause = context.clause(time.at.start);
    let mut start = clause.start;
    if plain[start.min(time.at.start)..time.at.start].trim().is_empty() {
        // "Next meeting: June 9"
        let before = context
            .clauses
            .iter()
            .rfind(|before| before.end <= time.at.start && before.end <= start)?;
        start = before.start;
    }
    let captures = PREDICATE.captures(&plain[start..time.at.start])?;
    let event = captures.name("event")?;
    let at = context.trimmed(start + event.start()..start + event.end());
    let words: Vec<&Word> =
        context.words().iter().filter(|word| at.contains(&word.at.start)).collect();
    let head = words.iter().any(|word| is_event(word));
    let sure = captures.name("sure").is_some()
        || captures.name("plain").is_some() && spells_on(&plain[time.at.clone()]);
    let first = words.first()?;
    // "It is on Friday" does not name the event.
    const PRONOUNS: &str =
        "it that this there he she they we i you what today everything when here which who";
    const ALONE: &str = "all these those date next";
    let named = words.len() == 1 && first.is(ALONE);
    let pronoun = first.is(PRONOUNS) && !(first.is("this that all") && head);
    if named
        || pronoun
        || words.len() > MAX_TITLE_WORDS + 2
        || !(head || sure)
        || is_person_alone(context, &at)
    {
        return None;
    }
    let at = without_determiner(&words)..at.end;
    Some(shortened(context, at))
}

/// Returns whether a time expression begins with a preposition.
fn spells_on(time: &str) -> bool {
    let folded = time.to_ascii_lowercase();
    ["on ", "at ", "from "].iter().any(|word| folded.starts_with(word))
}

fn is_person_alone(context: &SentenceContext<'_>, at: &Range<usize>) -> bool {
    context.names.iter().any(|name| name.at == *at && name.kind == NameKind::Person)
}

/// Returns the beginning of a phrase after words such as "the" and "oh, and my".
fn without_determiner(words: &[&Word]) -> usize {
    const LEADING: &str =
        "the a an my our your his her their this and also oh so but reminder btw ok plus that";
    let first = words.iter().find(|word| !word.is(LEADING)).or(words.last());
    first.map_or(0, |word| word.at.start)
}

/// Shortens a title: it ends before "at" and has a maximum length.
fn shortened(context: &SentenceContext<'_>, at: Range<usize>) -> Range<usize> {
    let words: Vec<&Word> =
        context.words().iter().filter(|word| at.contains(&word.at.start)).collect();
    let stop = words.iter().skip(1).position(|word| word.is("at")).map(|no| no + 1);
    let limit = stop.unwrap_or(words.len()).min(MAX_TITLE_WORDS);
    let end =
        limit.checked_sub(1).and_then(|last| words.get(last)).map_or(at.end, |word| word.at.end);
    if limit == words.len() { at } else { context.trimmed(at.start..end) }
}

/// Returns the phrase around an event noun in the clause of a time.
fn by_word(context: &SentenceContext<'_>, time: &TimeExpression) -> Option<Range<usize>> {
    let words = context.words();
    let clause = context.clause(time.at.start);
    // Something due by a day does not happen on it.
    let phrase = context.sentence.plain[time.at.clone()].to_ascii_lowercase();
    if ["by ", "before ", "until ", "till ", "due "].iter().any(|word| phrase.starts_with(word)) {
        return None;
    }
    let inside = |word: &Word| clause.contains(&word.at.start) && !time.at.contains(&word.at.start);
    let heads =
        words.iter().enumerate().filter(|(_, word)| inside(word) && is_event(word) && !word.owns);
    // The nearest before the time, or else the first after it.
    let heads: Vec<usize> =
        heads.map(|(no, _)| no).filter(|no| is_noun(words, *no, &clause)).collect();
    let before = heads.iter().rfind(|no| words[**no].at.start < time.at.start);
    let head = *before.or(heads.first())?;
    let start = left(words, head, &clause);
    // "Dentist tomorrow" is an event, "the dentist … tomorrow" is not.
    let beside = context.sentence.plain[words[head].at.end..].trim_start().len()
        == context.sentence.plain.len() - time.at.start;
    let opens = context.trimmed(clause.clone()).start == words[head].at.start;
    if words[head].is(NEED_COMPANY) && start == head && !(beside && opens) {
        return None;
    }
    let end = right(context, head, &clause, time);
    Some(context.trimmed(words[start].at.start..end))
}

/// Returns a phrase without a verb before a time, alone in its sentence: "Garden club on Thursday
/// at 5".
fn by_itself(context: &SentenceContext<'_>, time: &TimeExpression) -> Option<Range<usize>> {
    let clause = context.clause(time.at.start);
    let words: Vec<&Word> = context
        .words()
        .iter()
        .filter(|word| clause.contains(&word.at.start) && word.at.start < time.at.start)
        .collect();
    let rest = context.trimmed(time.at.end..clause.end.max(time.at.end));
    let noun = |word: &&Word| {
        let common = COMMON.contains(word.folded.as_str()) && !word.owns;
        let verbal = word.folded.ends_with("ed") || word.folded.ends_with("ing");
        !common
            && !verbal
            && word.shape != WordShape::Number
            && !word.is(STOPS)
            && !word.is(DETERMINERS)
    };
    let first = words.first()?;
    let opens = clause.start == 0 && (2..=4).contains(&words.len());
    let acts = ACTION_WORDS.contains(first.folded.as_str());
    let ahead = time.date.is_some() && spells_on(&context.sentence.plain[time.at.clone()]);
    (opens && !acts && ahead && rest.is_empty() && words.iter().all(noun))
        .then(|| context.trimmed(first.at.start..time.at.start))
}

/// Returns whether an event noun that may be a verb is a noun here.
fn is_noun(words: &[Word], head: usize, clause: &Range<usize>) -> bool {
    let word = &words[head];
    if !word.is(ALSO_VERBS) {
        return true;
    }
    let before = head.checked_sub(1).map(|no| &words[no]).filter(|it| it.at.start >= clause.start);
    let followed = words.get(head + 1).is_some_and(|next| next.is("with is about at"));
    const VERB_BEFORE: &str = "to i we you they he she will can could should must please i'll we'll not and let's \
        she'll he'll they'll who might would never always just you'll also";
    match before {
        None => followed && !word.is("play move show visit test"),
        Some(before) if before.is(VERB_BEFORE) => false,
        // "help Diego move"
        Some(before) if FIRST_NAMES.contains_key(before.folded.as_str()) => before.owns,
        Some(before) => word.gap == Gap::Space || before.owns,
    }
}

/// Returns the first word of the phrase that ends with a head.
fn left(words: &[Word], head: usize, clause: &Range<usize>) -> usize {
    let mut start = head;
    while let Some(before) = start.checked_sub(1).map(|no| &words[no]) {
        let stops = (before.is(STOPS) || before.is(DETERMINERS)) && !before.owns;
        let apart = words[start].gap != Gap::Space || before.at.start < clause.start;
        let verb =
            before.shape == WordShape::Lower && before.folded.ends_with("ing") && start + 1 < head;
        if stops || apart || verb || head - start >= 4 || before.shape == WordShape::Number {
            break;
        }
        start -= 1;
    }
    start
}

/// Returns the end of the phrase of a head, with its objects ("with Anna", "to Paris").
fn right(
    context: &SentenceContext<'_>,
    head: usize,
    clause: &Range<usize>,
    time: &TimeExpression,
) -> usize {
    let words = context.words();
    let mut end = words[head].at.end;
    let mut no = head + 1;
    while let Some(word) = words.get(no) {
        let linked = word.is("with to for about of between in");
        let limit = if time.at.start > words[head].at.start { time.at.start } else { clause.end };
        if !linked || word.gap != Gap::Space || word.at.start >= limit {
            break;
        }
        let object = words[no + 1..].iter().take(5).take_while(|word| {
            let stops = word.is(STOPS) || word.is("leaves starts begins i'll i");
            word.at.start < limit && matches!(word.gap, Gap::Space | Gap::Point) && !stops
        });
        let Some(last) = object.last() else { break };
        end = last.end;
        no = words.partition_point(|it| it.at.start <= last.at.start);
    }
    end.min(clause.end)
}

/// Returns the event with its date, time and place.
fn described(context: &SentenceContext<'_>, time: &TimeExpression, at: Range<usize>) -> FoundFact {
    let clause = context.clause(time.at.start);
    let title = context.sentence.text_of(&at);
    let mut fact = FoundFact::new("event", at.clone()).text("title", title).day("date", time.date);
    let other = context
        .times
        .iter()
        .find(|it| clause.contains(&it.at.start) && it.date.is_none() && it.time.is_some());
    if let Some((hour, minute)) = time.time.or(other.and_then(|it| it.time)) {
        fact = fact.text("time", format!("{hour:02}:{minute:02}"));
    }
    let place = context.names.iter().find(|name| {
        let before = context.sentence.plain[..name.at.start].trim_end().to_ascii_lowercase();
        let led = ["in", "at"]
            .iter()
            .any(|word| before.strip_suffix(word).is_some_and(|rest| rest.ends_with(' ')));
        let named = matches!(name.kind, NameKind::Place | NameKind::Organization);
        named && led && clause.contains(&name.at.start)
    });
    match place {
        Some(place) => fact.text("place", place.name.clone()),
        None => fact,
    }
}

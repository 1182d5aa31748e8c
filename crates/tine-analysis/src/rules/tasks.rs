//! Tasks.
//!
//! In turns they are obligations of the author or of others ("I need to", "Oleg should", "remind me
//! to") and an assistant's "you should", but not a user's immediate requests to an assistant. In
//! documents they are stated with "shall" and "must", and by items below "Action items".

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use tine_core::Role;

use super::FoundFact;
use super::context::{SentenceContext, TextSource};
use super::events::is_event;
use super::lists::ACTION_WORDS;
use super::names::NameKind;
use super::passage::{Section, SentenceBlock, pattern};
use super::tokens::{among, word_from};

const ADVERBS: &str = r"(?:(?:really|also|still|just|definitely|probably|now|then|first|only|quickly|finally|urgently|please|both|all|at least|actually|absolutely|already|immediately|maybe|go and|either)\s+)*";

/// Modal verbs of obligation; a weak one needs an action verb after it.
static DUTY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)(?:\b{ADVERBS}(?P<strong>(?:will (?:need|have) to)|needs? to|ha(?:ve|s)(?: got)? to|got to|gotta|must|should|ought to|had better|better|(?:am|are|is) (?:supposed|required|expected|obliged) to|promised to|offered to|volunteered to|need|shall)|['’](?P<owed>ll (?:need|have) to|ve got to|s got to|d better|m supposed to|re supposed to|s supposed to)|\b(?P<weak>will|(?:am|are|is) going to|(?:am|are|is) gonna)|['’](?P<short>ll|m going to|re going to|s going to|m gonna|re gonna))\s+{ADVERBS}(?P<verb>[\p{{L}}_-]+)"
    ))
});

/// Phrases that make what follows a task, without a subject.
static REMINDER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:remind (?:me|us)(?: again)?(?: (?:that )?(?:i|we) (?:need|have) to| to)|(?:don['’]?t|do not|mustn['’]?t|must not|can['’]?t)(?: let me)? forget to|(?:must|need to|have to|should|please|and|also|,|^)\s*remember to|(?:my|our|your) (?:next )?(?:job|task|todo|to-do|homework|next step) is to|(?:note to self|todo|to-do|action item|action)\s*[:\-–]|reminder to|reminder\s*[:\-–])\s*(?P<verb>\S)",
    )
});

/// An obligation without a subject, at the beginning of a clause.
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)^\W*(?:(?:and|but|so|also|then|oh|ok|plus|first|today|tomorrow)\s+)*{ADVERBS}(?:need to|have to|got to|gotta|must|should)\s+{ADVERBS}(?P<verb>[\p{{L}}-]+)"
    ))
});

/// An item that names its assignee.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\W*(?:@?(?P<who>\p{Lu}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)?)(?:\]|\))?(?:\s*:\s+|\s+[-–—]\s+|\s+(?:to|will|should|must|needs to|has to|shall)\s+))(?P<verb>\S)",
    )
});

/// Verbs after which an obligation is not a task: "I have to say".
const STATES: &str = "be have know say admit mention note feel like think stay remain mean want see seem not \
    never always i we you confess wonder hope love believe agree work wait help happen \
    understand imagine consider warn stress emphasize do exist get live sleep apologise \
    apologize keep exceed worry";

/// Verbs of attending an event, which is the fact then.
const GOING: &str = "attend go be join meet";

/// Nouns for people who may have tasks.
const SOMEBODY: &str = "wife husband partner mother father mom mum dad mama papa sister brother son daughter boss \
    manager team kids parents friend girlfriend boyfriend grandma grandpa aunt uncle cousin \
    roommate flatmate colleague landlord tenant assistant accountant lawyer doctor plumber \
    electrician contractor supplier vendor client customer designer developer engineer intern \
    nurse teacher somebody someone everyone everybody legal finance hr marketing procurement \
    management ops support";

pub(super) fn find(context: &SentenceContext<'_>, taken: &[Range<usize>]) -> Vec<FoundFact> {
    let mut found: Vec<FoundFact> = Vec::new();
    let sentence = context.sentence;
    if matches!(sentence.block, SentenceBlock::Heading | SentenceBlock::Done) {
        return found;
    }
    let mut starts = leads(context);
    let listed = sentence.block == SentenceBlock::Open
        || sentence.section == Section::Tasks && sentence.block == SentenceBlock::Item;
    if listed && sentence.first {
        // The whole item is the task.
        let assigned = ASSIGNED.captures(&sentence.plain);
        let who = assigned
            .as_ref()
            .and_then(|it| it.name("who"))
            .filter(|who| is_person(context, who.start()));
        let verb = assigned.as_ref().and_then(|it| it.name("verb")).filter(|_| who.is_some());
        let start = verb.map_or(starts.first().map_or(0, |start| start.verb), |verb| verb.start());
        starts = vec![TaskLead { verb: start, who: who.map(|who| who.as_str().to_owned()) }];
    }
    for lead in starts {
        for (at, fact) in tasks_from(context, &lead) {
            let free = |other: &Range<usize>| other.end <= at.start || at.end <= other.start;
            if at.len() > 2 && taken.iter().all(free) && found.iter().all(|it| free(&it.at)) {
                found.push(fact);
            }
        }
    }
    found.sort_by_key(|fact| fact.at.start);
    found
}

/// The beginning of a task, and its assignee.
struct TaskLead {
    verb: usize,
    who: Option<String>,
}

fn leads(context: &SentenceContext<'_>) -> Vec<TaskLead> {
    let plain = context.sentence.plain.as_str();
    let mut found = Vec::new();
    for captures in REMINDER.captures_iter(plain) {
        let Some(verb) = captures.name("verb") else { continue };
        if !context.is_quoted(verb.start()) {
            found.push(TaskLead { verb: verb.start(), who: None });
        }
    }
    for captures in DUTY.captures_iter(plain) {
        let Some(verb) = captures.name("verb") else { continue };
        let Some(all) = captures.get(0) else { continue };
        let folded = verb.as_str().to_lowercase();
        let weak = captures.name("weak").or(captures.name("short")).is_some();
        let bare_need = captures.name("strong").is_some_and(|strong| {
            ["need", "better"].contains(&strong.as_str().to_ascii_lowercase().as_str())
        });
        if among(STATES, &folded) && !is_doing(plain, verb.range(), &folded) || bare_need {
            continue;
        }
        let Some((start, who)) = subject(context, all.start(), weak) else { continue };
        let action = ACTION_WORDS.contains(folded.as_str());
        let third =
            context.words().iter().any(|word| word.at.start == start && word.is("he she they"));
        if (third && !action)
            || (weak && (!action || is_momentary(context, &verb.range(), &folded)))
            || !context.is_stated(start)
            || goes_to_event(context, verb.start(), &folded)
        {
            continue;
        }
        found.push(TaskLead { verb: verb.start(), who });
    }
    for clause in &context.clauses {
        let Some(captures) = BARE.captures(&plain[clause.clone()]) else { continue };
        let Some(verb) = captures.name("verb") else { continue };
        let folded = verb.as_str().to_lowercase();
        let at = clause.start + verb.start();
        if ACTION_WORDS.contains(folded.as_str())
            && context.is_stated(at)
            && !goes_to_event(context, at, &folded)
        {
            found.push(TaskLead { verb: at, who: None });
        }
    }
    found.sort_by_key(|lead| lead.verb);
    found.dedup_by_key(|lead| lead.verb);
    found
}

/// Returns whether an action is immediate ("I'll take a look"), unless there is a date.
fn is_momentary(context: &SentenceContext<'_>, verb: &Range<usize>, folded: &str) -> bool {
    const AT_ONCE: &str =
        "try look take wait watch show tell give go follow start leave stop read learn get run";
    let clause = context.clause(verb.start);
    among(AT_ONCE, folded) && context.time_in(&clause).is_none()
}

/// Returns whether a state verb is an action by its object: "get a quote", "do the laundry".
fn is_doing(plain: &str, verb: Range<usize>, folded: &str) -> bool {
    static OBJECT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^\s+(?:a|an|the|my|our|his|her|their|your|some|new|back|rid|in touch|two|three|\d+)\b",
        )
    });
    let rest = &plain[verb.end..];
    match folded {
        "get" | "do" | "consider" => OBJECT.is_match(rest),
        "see" => {
            rest.trim_start().to_lowercase().starts_with("a ")
                || rest.trim_start().starts_with("the ")
        }
        "help" => rest.trim_start().starts_with(char::is_uppercase) || OBJECT.is_match(rest),
        _ => false,
    }
}

/// Returns the beginning of the subject and the assignee; `None` if the subject cannot have tasks.
fn subject(
    context: &SentenceContext<'_>,
    duty: usize,
    weak: bool,
) -> Option<(usize, Option<String>)> {
    if let Some(name) = context.agent_before(duty) {
        let who = (name.kind == NameKind::Person).then(|| name.name.clone());
        return Some((name.at.start, who));
    }
    let words = context.words();
    let inside = words.iter().find(|word| word.at.start < duty && duty < word.at.end);
    let at = word_from(words, duty);
    let word = inside.or_else(|| words.get(at.checked_sub(1)?))?;
    let stem = word.folded.split('\'').next().unwrap_or_default();
    let assistant = context.source == TextSource::Turn(Role::Assistant);
    match stem {
        // An assistant does immediately what it announces.
        "i" if assistant && weak => None,
        "i" | "we" | "he" | "she" | "they" => Some((word.at.start, None)),
        "you" if assistant || context.source == TextSource::Document => Some((word.at.start, None)),
        _ if word.is(SOMEBODY) => Some((word.at.start, None)),
        // The parties of a contract, the parts of a team: "The vendor shall deliver".
        _ if context.source == TextSource::Document && !weak => {
            let clause = context.clause(word.at.start);
            Some((context.trimmed(clause).start, None))
        }
        _ => None,
    }
}

fn is_person(context: &SentenceContext<'_>, start: usize) -> bool {
    context.names.iter().any(|name| name.kind == NameKind::Person && name.at.start == start)
}

/// Returns whether the clause is about attending an event: "I have to attend the workshop on Friday".
fn goes_to_event(context: &SentenceContext<'_>, verb: usize, folded: &str) -> bool {
    let clause = verb..context.clause(verb).end;
    among(GOING, folded)
        && context.time_in(&clause).is_some_and(|time| time.is_definite())
        && context.words().iter().any(|word| clause.contains(&word.at.start) && is_event(word))
}

/// Returns the task that begins with a verb, and those that follow after a date and an "and".
fn tasks_from(context: &SentenceContext<'_>, lead: &TaskLead) -> Vec<(Range<usize>, FoundFact)> {
    let mut found = Vec::new();
    let end = context.clause(lead.verb).end;
    let mut from = lead.verb;
    while from < end {
        let (at, title, due, next) = action(context, from..end);
        // "We need to talk" is not a task.
        if title.is_empty() || title.eq_ignore_ascii_case("talk") {
            break;
        }
        let due = due.or_else(|| leading_day(context, lead.verb).filter(|_| from == lead.verb));
        let mut fact = FoundFact::new("task", at.clone()).text("title", title).day("due", due);
        if let Some(who) = &lead.who {
            fact = fact.text("assignee", who.clone());
        }
        found.push((at, fact));
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    found
}

/// Returns the action of a range: its bytes, its title without time expressions, its date, and the
/// beginning of another action.
fn action(
    context: &SentenceContext<'_>,
    at: Range<usize>,
) -> (Range<usize>, String, Option<chrono::NaiveDate>, Option<usize>) {
    static GOES_ON: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)^[\s,]*(?:about|to|with|at|from|for|in|regarding|into|on|and ask|of)\s+\S")
    });
    static ANOTHER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)^[\s,]*(?:and|then|and then|and also)\s+(?:to\s+)?(?P<verb>[\p{L}-]+)")
    });
    let plain = context.sentence.plain.as_str();
    let mut times =
        context.times.iter().filter(|time| at.start <= time.at.start && time.at.end <= at.end);
    // A vague time is part of the phrase, unless it is at its end.
    let cut = times.find(|time| time.is_definite() || plain[time.at.end..at.end].trim().len() < 2);
    let Some(time) = cut else {
        let at = context.trimmed(at);
        return (at.clone(), context.sentence.text_of(&at), None, None);
    };
    let (before, after) = (at.start..time.at.start, time.at.end..at.end);
    let head = context.trimmed(before);
    if head.is_empty() {
        let rest = context.trimmed(after);
        return (rest.clone(), context.sentence.text_of(&rest), time.date, None);
    }
    let rest = &plain[after.clone()];
    let verb = ANOTHER.captures(rest).and_then(|it| it.name("verb"));
    let verb = verb.filter(|verb| ACTION_WORDS.contains(verb.as_str().to_lowercase().as_str()));
    if let Some(verb) = verb {
        return (
            head.clone(),
            context.sentence.text_of(&head),
            time.date,
            Some(after.start + verb.start()),
        );
    }
    let second =
        context.times.iter().find(|next| next.at.start >= after.start && next.at.end <= at.end);
    let limit = second.map_or(at.end, |next| next.at.start);
    let tail = context.trimmed(after.start..limit);
    if GOES_ON.is_match(rest) && !tail.is_empty() {
        let title =
            format!("{} {}", context.sentence.text_of(&head), context.sentence.text_of(&tail));
        return (head.start..tail.end, title, time.date, None);
    }
    (head.clone(), context.sentence.text_of(&head), time.date, None)
}

/// Returns the date at the beginning of the clause: "Tomorrow I have to …".
fn leading_day(context: &SentenceContext<'_>, verb: usize) -> Option<chrono::NaiveDate> {
    let start = context.clause(verb).start;
    // After a comma it may be a separate clause.
    let before = context.clauses.iter().rfind(|clause| clause.end <= start);
    let alone = |clause: &Range<usize>| {
        context
            .time_in(clause)
            .filter(|time| context.trimmed(clause.clone()) == context.trimmed(time.at.clone()))
    };
    let own = context.time_in(&(start..verb));
    own.or_else(|| before.and_then(alone)).and_then(|time| time.date)
}

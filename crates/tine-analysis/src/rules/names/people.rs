//! Evidence for names of people.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use tine_core::Role;

use super::super::context::{SentenceContext, TextSource};
use super::super::lists::{COMMON, FIRST_NAMES, NOT_NAMES, ORGANIZATIONS, PLACES};
use super::super::passage::{Sentence, SentenceBlock, pattern};
use super::super::tokens::{Gap, Word, WordShape, among};
use super::{Mention, NameKind, NameRun};

/// Titles before a name, which are not part of it.
const TITLES: &str = "dr mr mrs ms miss prof professor doctor sir dame lady lord captain capt uncle aunt auntie \
    cousin grandma grandpa judge senator president chancellor sister father herr frau coach \
    madame";

/// Kinship and professions.
const KIN: &str = "wife husband partner mother father mom mum dad sister brother son daughter boss manager \
    friend girlfriend boyfriend fiancé fiancée fiance fiancee aunt uncle cousin nephew niece \
    grandma grandpa grandmother grandfather grandson granddaughter roommate flatmate colleague \
    coworker neighbor neighbour landlord landlady tenant teacher tutor coach therapist dentist \
    doctor lawyer accountant assistant designer developer engineer architect plumber \
    electrician intern recruiter professor supervisor mentor cto ceo cfo director lead nanny \
    babysitter trainer advisor buddy guide";

/// Verbs after names of people.
const SPEAKING: &str = "said says told tells asked asks wrote writes mentioned thinks thought wants wanted \
    suggested suggests called emailed replied knows knew believes prefers likes loves hates \
    dislikes agreed agrees joined joins left will should must has needs is was can decided \
    promised offered volunteered enjoys sent texted complained recommended recommends moved \
    lives works worked hopes feels argued confirmed reported explained plans got would doesn't \
    hasn't can't won't";

/// The verbs among these whose subjects are only people.
const ONLY_PEOPLE: &str = "said says told tells asked asks wrote mentioned thinks thought wants wanted suggested \
    suggests emailed replied knows knew believes prefers likes loves hates dislikes agreed \
    agrees promised volunteered enjoys texted complained recommended hopes feels argued lives \
    explained decided joked insists laughed";

/// Returns whether a word is a title before names.
pub(super) fn is_title(folded: &str) -> bool {
    among(TITLES, folded)
}

pub(super) fn without_titles(mut run: NameRun<'_>) -> NameRun<'_> {
    while run.first < run.last && is_title(run.own()[0].folded.as_str()) {
        run.first += 1;
    }
    run
}

/// Returns the person after a title.
pub(super) fn titled(run: NameRun<'_>) -> Option<Mention> {
    let gap = run.own()[0].gap;
    let title = run.before(1)?;
    let led = is_title(&title.folded) && matches!(gap, Gap::Space | Gap::Point);
    // "my sister Ann" is a relative, "the president France" is not a person.
    let spelled = title.shape == WordShape::Capital || gap == Gap::Point;
    (led && spelled && run.is_capitalised() && run.len() <= 4).then(|| mention(run))
}

/// Returns the mention of a person, with the role.
pub(super) fn mention(run: NameRun<'_>) -> Mention {
    let mut found = run.mention(NameKind::Person);
    found.role = role(run);
    found
}

/// Returns the role of a person: "my wife Ann", "Ann, our accountant".
fn role(run: NameRun<'_>) -> Option<String> {
    static BEHIND: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:,\s+| is |\s+\()(?:my|our|the|an?|his|her|their)\s+(?P<role>(?:[\p{L}-]+\s+){0,2}?[\p{L}-]+)\s*(?:[,.;)]|$)",
        )
    });
    let beside = matches!(run.own()[0].gap, Gap::Space | Gap::Comma);
    if let Some(word) = run.before(1).filter(|word| beside && word.is(KIN)) {
        return Some(word.folded.clone());
    }
    let rest = &run.sentence.plain[run.at().end..];
    let behind = BEHIND.captures(rest)?.name("role")?;
    let role = behind.as_str().to_lowercase();
    let last = role.split_whitespace().next_back()?;
    among(KIN, last).then(|| role.clone())
}

/// Returns whether a run begins with a first name and may be a person.
pub(super) fn is_by_name(run: NameRun<'_>) -> bool {
    let own = run.own();
    if !run.is_capitalised() || own.len() > 4 {
        return false;
    }
    let Some(&alone) = FIRST_NAMES.get(own[0].folded.as_str()) else { return false };
    if own.len() > 1 {
        let second = &own[1];
        let surname = !COMMON.contains(second.folded.as_str()) || is_surname_like(second);
        let owned = own[0].owns;
        return !owned
            && surname
            && (alone || !run.opens() || is_led(run) || is_speaking(run, SPEAKING));
    }
    // An ambiguous name needs evidence in its context.
    alone
        || is_led(run)
        || (!is_month_or_place(run) && !run.opens() && !run.follows("the a an this in on of")
            || is_speaking(run, ONLY_PEOPLE))
}

/// Returns whether a common word is also a surname.
fn is_surname_like(word: &Word) -> bool {
    word.is("best young short long day cook moss park price page drew post call good fry")
}

fn is_month_or_place(run: NameRun<'_>) -> bool {
    let word = &run.own()[0];
    word.is("april may june august jan summer dawn christian roman said will")
        || PLACES.contains_key(run.text())
}

/// Returns whether the context of an unknown name is that of a person.
pub(super) fn is_by_place(run: NameRun<'_>) -> bool {
    let own = run.own();
    let strange = |word: &Word| {
        COMMON.contains(word.folded.as_str()) || NOT_NAMES.contains(word.folded.as_str())
    };
    if !run.is_capitalised() || own.len() > 3 || own.iter().any(strange) || run.has_digit() {
        return false;
    }
    if ORGANIZATIONS.contains_key(run.text()) || PLACES.contains_key(run.text()) {
        return false;
    }
    if is_led(run) || is_speaking(run, ONLY_PEOPLE) || is_greeted(run) {
        return true;
    }
    // "The tour is tomorrow with Kristjan."
    let alone = run.own().len() == 1;
    let pair = run.precedes("and") && run.after(2).is_some_and(|word| word.is("i"));
    let duty = run.precedes("should must")
        || run.precedes("has needs have") && run.after(2).is_some_and(|word| word.is("to"));
    (run.follows("with") && run.timed)
        || pair
        || (duty && (!run.opens() || !alone))
        || (duty && alone && is_no_noun(run))
}

/// Returns whether the first word of a sentence ("Kristjan has to") has no ending of a noun.
fn is_no_noun(run: NameRun<'_>) -> bool {
    let word = &run.own()[0];
    const ENDINGS: &[&str] = &[
        "tion", "ness", "ment", "ing", "ity", "ance", "ence", "ers", "ism", "ship", "age", "ies",
        "time", "ures",
    ];
    let plural = word.folded.ends_with('s');
    !plural && !ENDINGS.iter().any(|end| word.folded.ends_with(end)) && run.precedes("has needs")
}

/// Returns whether the words before a run introduce a person.
fn is_led(run: NameRun<'_>) -> bool {
    const CONTACT: &str = "ask asked tell told thank thanks ping remind invite invited text texted meet met cc \
        meeting interviewed interviewing hire hired asking telling named inviting dear";
    let kin = matches!(run.own()[0].gap, Gap::Space | Gap::Comma)
        && run.before(1).is_some_and(|word| word.is(KIN))
        && run.before(2).is_some_and(|word| {
            word.is("my our his her their your old best new good older younger") || word.owns
        });
    let spoken = run.follows("to with from by")
        && run.before(2).is_some_and(|word| {
            word.is("talk talked speak spoke speaking talking lunch dinner chat chatted meeting \
                call interview married reply email message letter wrote written screen coffee \
                catch sync appointment session consultation lesson reports introduced led run \
                hosted signed approved 1:1")
        });
    let strong = run.follows(CONTACT);
    let weak = run.follows("call email emailed message phone called")
        && (run.len() > 1 || FIRST_NAMES.contains_key(run.own()[0].folded.as_str()));
    kin || spoken || strong || weak
}

fn is_speaking(run: NameRun<'_>, verbs: &str) -> bool {
    let plain = run.precedes(verbs);
    // "Tom also wants"
    let later = run.precedes("also just really never always already")
        && run.after(2).is_some_and(|word| word.is(verbs));
    plain || later
}

/// Returns whether a run is greeted in a turn: "Hi Xochitl,".
fn is_greeted(run: NameRun<'_>) -> bool {
    let turn = matches!(run.source, TextSource::Turn(Role::User | Role::Assistant));
    let ends = run.sentence.plain[run.at().end..].trim_start().starts_with([',', '!', '.'])
        || run.sentence.plain[run.at().end..].trim().is_empty();
    turn && ends
        && run.own()[0].gap != Gap::Other
        && run.before(1).is_some_and(|word| word.is("hi hello hey dear thanks cheers"))
}

/// Adds people in lists and signatures: "Present: A, B", "Best, / Ann".
pub(super) fn listed(
    sentence: &Sentence<'_>,
    before: Option<&Sentence<'_>>,
    source: TextSource,
    found: &mut Vec<Mention>,
) {
    static LIST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^\W*(?:present|attendees|attending|participants|attended by|cc|in attendance|team|speakers?|guests?|hosts?|authors?|invited|absent|apologies|regrets|from|contact|organi[sz]er|instructor|owner|assignee|lead|facilitator|chair|note-?taker)\s*:\s*",
        )
    });
    static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^\W*(?:best|(?:best|kind|warm) (?:regards|wishes)|regards|cheers|thanks|thank you|many thanks|sincerely|yours(?: truly| sincerely)?|love|greetings|all the best)\W*$",
        )
    });
    static SEPARATOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"[,;&]|\sand\s"));
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^\s*(?:(?:Dr|Mr|Mrs|Ms|Prof)\.?\s+)?(?P<name>\p{Lu}[\p{L}'’-]+(?:\s+(?:\p{Lu}\.|van|von|de|der|da|di|la))*(?:\s+\p{Lu}[\p{L}'’-]+){0,2})(?:\s*\([^)]*\))?[\s.]*$",
        )
    });
    let plain = sentence.plain.as_str();
    let add = |at: Range<usize>, found: &mut Vec<Mention>| {
        let apart = |it: &Mention| it.at.end <= at.start || at.end <= it.at.start;
        let word = plain[at.clone()].split_whitespace().next().unwrap_or_default().to_lowercase();
        if found.iter().all(apart)
            && !COMMON.contains(word.as_str())
            && !NOT_NAMES.contains(word.as_str())
        {
            let name = sentence.text_of(&at);
            found.push(Mention { kind: NameKind::Person, at, name, role: None });
        }
    };
    if let Some(list) = LIST.find(plain) {
        let label = list.as_str().trim().to_lowercase();
        // After these labels, only a name with a known first name is a person.
        let strict = label.contains("from") || label.contains("contact") || label.contains("team");
        let mut start = list.end();
        let rest = SEPARATOR.find_iter(&plain[start..]).map(|it| it.range());
        let end = plain.len() - start;
        for separator in rest.chain(std::iter::once(end..end)) {
            let piece = &plain[start..list.end() + separator.start];
            if let Some(name) = NAME.captures(piece).and_then(|name| name.name("name")) {
                let first = name.as_str().split_whitespace().next().unwrap_or_default();
                if !strict || FIRST_NAMES.contains_key(first.to_lowercase().as_str()) {
                    add(start + name.start()..start + name.end(), found);
                }
            }
            start = list.end() + separator.end;
        }
    }
    let closes = before.is_some_and(|before| CLOSING.is_match(&before.plain));
    let signed =
        closes && sentence.block == SentenceBlock::Prose && source != TextSource::Turn(Role::Tool);
    let name = NAME.captures(plain).filter(|_| signed).and_then(|name| name.name("name"));
    if let Some(name) = name {
        add(name.range(), found);
    }
}

/// Returns the email address beside a name.
pub(super) fn address(
    context: &SentenceContext<'_>,
    mention: &Mention,
    emails: &[Range<usize>],
) -> Option<String> {
    static BETWEEN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:\s*[<(,:\[]\s*|['’]s (?:e-?mail|address|e-?mail address) is\s+|\s+(?:at|via|on|is)\s+|\s+)(?:mailto:)?$",
        )
    });
    let plain = &context.sentence.plain;
    let next = emails.iter().find(|email| email.start >= mention.at.end)?;
    BETWEEN
        .is_match(&plain[mention.at.end..next.start])
        .then(|| context.sentence.text[next.clone()].to_owned())
}

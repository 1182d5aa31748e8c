//! Decisions, for or against something.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::FoundFact;
use super::context::{SentenceContext, TextSource};
use super::passage::{Section, SentenceBlock, pattern};

const WHO: &str = r"(?:\b(?:i|we|they|he|she|you|everyone|everybody|the (?:team|board|committee|group|council|client|majority|company|family)|(?-i:\p{Lu}\p{Ll}[\p{L}-]*(?: \p{Lu}[\p{L}-]+)?))(?:\s+have|\s+has|['’]ve|['’]s)?\s+(?:(?:all|finally|also|now|both|just|already|eventually|unanimously|jointly|ultimately|then|have)\s+)*)";

/// Verbs of choice: "let's go with", "we'll take".
const CHOICE: &str = r"(?:go(?:ing)?(?: ahead)? with|use|using|take|keep|keeping|stick(?:ing)? (?:with|to)|switch(?:ing)? (?:to|from|over)|drop(?:ping)?|skip|choose|pick|adopt|mov(?:e|ing) (?:to|forward with|ahead with|away from)|stay(?:ing)? with|stay at|postpone|cancel|do without|opt for|standardi[sz]e on|settle on|make it|leave it at|go for|build on|start with|rely on|not (?:do|go|renew|hire|buy|use|take|sign|ship)|call it|limit|cap|run with|scrap)";

static DECIDED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i){WHO}(?:(?:(?:went with|picked|selected)\s+(?P<picked>(?:the|an?|our)\s))|(?:(?:decided|agreed|chose|opted|resolved|voted|elected|settled|determined|chosen|concluded)\s+(?:(?:on|for|against|that|in favou?r of|upon)\s+)?(?:to\s+(?P<to>be\s+)?)?(?P<what>\S))|(?:made (?:the|a|our|my) (?:final )?decision to\s+(?P<made>\S)))"
    ))
});

static CHOSEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?i)(?:\blet['’]?s|\bwe['’]ll|\bwe will|\bi['’]ll|\bi will|\bwe['’]re|\bwe are|\bi['’]m|\bi am|\bthey['’]re|\bthey['’]ll|\bthey will|\bthey are)\s+(?:(?:just|all|both|definitely|now|then|therefore|indeed|finally|only|going to|gonna|simply)\s+)*(?P<what>{CHOICE})\b"
    ))
});

/// Verbs that are a decision after "let's" or "we won't", but only a plan after "we'll".
static PROPOSED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:let['’]?s\s+(?:(?:just|all|both|definitely|then)\s+)*(?P<what>(?:not\s+)?(?:host|replace|buy|hire|launch|name|have it|order|book|invite|hold|meet|paint|rent|sign|ship|split|get|add|remove|schedule|set|focus on|put))|we\s+(?P<wont>(?:won['’]t|will not|are not going to)\s+(?:renew|hire|buy|use|ship|sign|support|extend|order|book|offer|launch|invite|sell|attend|charge|change|move|pay|accept|switch|release|publish|host|replace)))\b",
    )
});

static LABELLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W*(?:(?:final |key |the |our )?(?:decision|decided|resolved|resolution|agreed)\s*(?:\([^)]*\)|\d+)?\s*(?::|-|–|—)|the (?:final )?decision (?:is|was) (?:to|that)?|it (?:was|is|has been) (?:decided|agreed|resolved) (?:to|that))\W*(?P<what>\S)",
    )
});

pub(super) fn find(context: &SentenceContext<'_>, taken: &[Range<usize>]) -> Vec<FoundFact> {
    let mut found: Vec<FoundFact> = Vec::new();
    let sentence = context.sentence;
    if matches!(sentence.block, SentenceBlock::Heading | SentenceBlock::Done | SentenceBlock::Open)
    {
        return found;
    }
    let plain = sentence.plain.as_str();
    let mut starts: Vec<(usize, usize)> = Vec::new();
    for captures in DECIDED.captures_iter(plain) {
        let what = captures
            .name("picked")
            .or(captures.name("to"))
            .or(captures.name("what"))
            .or(captures.name("made"));
        if let (Some(all), Some(what)) = (captures.get(0), what) {
            starts.push((all.start(), what.start()));
        }
    }
    for captures in CHOSEN.captures_iter(plain) {
        if let (Some(all), Some(what)) = (captures.get(0), captures.name("what")) {
            let alone = all.as_str().trim_start().to_ascii_lowercase();
            if alone.starts_with('i')
                && !what.as_str().to_ascii_lowercase().starts_with("go")
                && !is_own_choice(what.as_str())
            {
                continue;
            }
            starts.push((all.start(), what.start()));
        }
    }
    for captures in PROPOSED.captures_iter(plain) {
        let what = captures.name("what").or(captures.name("wont"));
        if let (Some(all), Some(what)) = (captures.get(0), what) {
            starts.push((all.start(), what.start()));
        }
    }
    let labelled = LABELLED.captures(plain).and_then(|captures| captures.name("what"));
    if let Some(what) = labelled {
        starts.clear();
        starts.push((what.start(), what.start()));
    } else if starts.is_empty()
        && sentence.section == Section::Decisions
        && sentence.block == SentenceBlock::Item
    {
        starts.push((0, 0));
    }
    for (lead, what) in starts {
        if !context.is_stated(lead) || is_undecided(&plain[what..]) {
            continue;
        }
        let at = statement(context, what, labelled.is_some());
        let free = |other: &Range<usize>| other.end <= at.start || at.end <= other.start;
        if at.len() > 2 && taken.iter().all(free) && found.iter().all(|it| free(&it.at)) {
            found.push(
                FoundFact::new("decision", at.clone()).text("statement", sentence.text_of(&at)),
            );
        }
    }
    found
}

/// Returns whether a verb after "I'll" states a choice; "I'll take the bus" is a plan.
fn is_own_choice(verb: &str) -> bool {
    let folded = verb.to_ascii_lowercase();
    ["stick", "opt", "switch", "choose", "pick", "adopt", "settle", "stay"]
        .iter()
        .any(|start| folded.starts_with(start))
}

/// Returns whether nothing was decided: "decided whether", "agreed on what".
fn is_undecided(what: &str) -> bool {
    static OPEN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:whether|if|what|which|who|how|when|where|yet|with (?:me|you|him|her|them|us|that|this)\b|pick (?:\S+ )?up\b|drop (?:\S+ )?off\b|take (?:care|a look|over|out|off|it|notes)\b|keep (?:you|in|an eye|on|it)\b|use the (?:bathroom|restroom|toilet)\b|it\b\W*$|[.,!?]|later\b)",
        )
    });
    OPEN.is_match(what)
}

/// Returns the statement from its first word, without a date at its end.
fn statement(context: &SentenceContext<'_>, what: usize, whole: bool) -> Range<usize> {
    let clause = if whole && context.source == TextSource::Document {
        what..context.sentence.plain.len()
    } else {
        what..context.clause(what).end
    };
    let mut at = context.trimmed(clause);
    if let Some(time) =
        context.times.iter().find(|time| time.is_definite() && time.at.end == at.end)
    {
        at = context.trimmed(at.start..time.at.start.max(at.start));
    }
    at
}

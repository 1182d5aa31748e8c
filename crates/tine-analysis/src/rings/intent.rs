//! Determines the intent of a turn.
//!
//! Each sentence is classified by the cues of its language. The last question, request or decision
//! determines the intent: a long story that ends in a request is a request.

use tine_core::rings::Intent;

use crate::rings::cues::{CueKind, Cues};
use crate::rings::language::Language;
use crate::rings::lists;
use crate::rings::script::is_east_asian;
use crate::rings::segments::SegmentBlock;
use crate::rings::sentences::Sentence;

/// The most sentences of a turn that is read as a whole; of a longer one, only both ends are read.
const SHORT_TURN: usize = 8;

/// The most words of an acknowledgement with a remark.
const SHORT_REMARK_WORDS: usize = 12;

/// The speech act of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Question,
    Request,
    /// An imperative, which may be a step of instructions.
    Instruction,
    Decision,
    Correction,
    Acknowledgement,
    Greeting,
    /// Something offered at the end of an answer.
    Offer,
    Statement,
}

/// Returns the intent of a turn, given its sentences.
pub(crate) fn intent(sentences: &[Sentence<'_>]) -> Intent {
    let prose: Vec<&Sentence<'_>> = sentences
        .iter()
        .filter(|it| {
            !matches!(it.block, SegmentBlock::Quote | SegmentBlock::Code)
                && !it.plain.text.is_empty()
        })
        .collect();
    let count = prose.len();
    let read = |no: usize| no < 3 || count <= SHORT_TURN || no + 3 >= count;
    let acts: Vec<Act> =
        prose.iter().enumerate().filter(|(no, _)| read(*no)).map(|(_, it)| act(it)).collect();
    let words = prose.iter().map(|it| length(&it.plain.text)).sum();
    settle(&acts, words, count > SHORT_TURN)
}

/// Returns the intent of a turn, given the acts of its sentences.
fn settle(acts: &[Act], words: usize, long: bool) -> Intent {
    let all = |some: &[Act]| !acts.is_empty() && acts.iter().all(|act| some.contains(act));
    if all(&[Act::Greeting]) {
        return Intent::Greeting;
    }
    let thanks = acts.contains(&Act::Acknowledgement);
    if all(&[Act::Acknowledgement, Act::Greeting])
        || (thanks && all(&[Act::Acknowledgement, Act::Greeting, Act::Offer]))
    {
        return Intent::Acknowledgement;
    }
    let opening = acts.iter().filter(|act| !matches!(act, Act::Greeting | Act::Acknowledgement));
    if opening.take(2).any(|act| *act == Act::Correction) {
        return Intent::Correction;
    }
    let decisive = acts.iter().enumerate().rev().find_map(|(no, act)| match act {
        Act::Question => Some(Intent::Question),
        Act::Request => Some(Intent::Request),
        Act::Instruction if !long || no == 0 || no + 1 == acts.len() => Some(Intent::Request),
        Act::Decision => Some(Intent::Decision),
        _ => None,
    });
    if let Some(decisive) = decisive {
        return decisive;
    }
    let first = acts.iter().find(|act| **act != Act::Greeting);
    match first {
        Some(Act::Acknowledgement) if words <= SHORT_REMARK_WORDS => Intent::Acknowledgement,
        Some(Act::Offer) if acts.len() == 1 => Intent::Question,
        _ => Intent::Statement,
    }
}

fn act(sentence: &Sentence<'_>) -> Act {
    let cues = &lists::of(sentence.language).cues;
    let plain = sentence.plain.text.as_str();
    let asks = asks(sentence.text);
    if cues.is_greeting(plain) || (!asks && greets_by_name(cues, sentence)) {
        return Act::Greeting;
    }
    if !asks && cues.is_acknowledgement(plain) {
        return Act::Acknowledgement;
    }
    let openings = cues.without_openings(plain);
    let begins = |sort| cues.begins(sort, &openings);
    if cues.begins(CueKind::Correction, &[plain])
        || (!asks && cues.contains(CueKind::Correction, plain))
    {
        return Act::Correction;
    }
    if begins(CueKind::Offer) {
        return Act::Offer;
    }
    if begins(CueKind::Correction) {
        return Act::Correction;
    }
    let wants = begins(CueKind::Request) || cues.contains(CueKind::Request, plain);
    match () {
        () if asks => asked(cues, plain, &openings),
        () if begins(CueKind::Statement) => Act::Statement,
        () if begins(CueKind::Decision) || cues.ends(CueKind::Decision, plain) => Act::Decision,
        () if cues.contains_strong(CueKind::Question, plain)
            && !cues.ends(CueKind::Request, plain) =>
        {
            Act::Question
        }
        () if begins(CueKind::Acknowledgement) && !wants => Act::Acknowledgement,
        () => statement_act(sentence, cues, plain, &openings),
    }
}

/// Returns whether a sentence is a greeting with a name of one or two words.
fn greets_by_name(cues: &Cues, sentence: &Sentence<'_>) -> bool {
    let named = |name: &str| name.split(' ').count() <= 2;
    let mut last = sentence.text.split_whitespace().rev();
    cues.after_greeting(&sentence.plain.text).is_some_and(named)
        && last.next().is_some_and(|word| word.starts_with(char::is_uppercase))
}

/// Classifies a sentence with a question mark.
fn asked(cues: &Cues, plain: &str, openings: &[&str]) -> Act {
    let wants = cues.begins(CueKind::Request, openings)
        || cues.contains(CueKind::Request, plain)
        || cues.ends(CueKind::Request, plain);
    let asks = cues.contains(CueKind::Question, plain) && !is_east_asian_text(plain)
        || cues.contains_strong(CueKind::Question, plain)
            && !cues.ends(CueKind::Request, plain)
            && !cues.contains(CueKind::Request, plain);
    match wants && !asks {
        true => Act::Request,
        false => Act::Question,
    }
}

/// Classifies a sentence without a question mark that has none of the clearest cues.
fn statement_act(sentence: &Sentence<'_>, cues: &Cues, plain: &str, openings: &[&str]) -> Act {
    let rest = openings.last().copied().unwrap_or(plain);
    let wants = cues.beginning(CueKind::Request, openings);
    let begins = cues.beginning(CueKind::Question, openings);
    let item = sentence.block == SegmentBlock::Item;
    let stopped = sentence.text.trim_end().ends_with(['。', '！', '!', '：', ':']);
    let unsure = is_east_asian_text(plain) && stopped;
    let asks = begins > wants
        || cues.ends(CueKind::Question, plain) && !cues.ends(CueKind::Request, plain);
    match () {
        () if cues.ends(CueKind::Request, plain) => Act::Request,
        () if asks && !item => Act::Question,
        () if cues.contains(CueKind::Decision, plain) => Act::Decision,
        () if cues.contains(CueKind::Request, plain) => Act::Request,
        () if cues.ends(CueKind::Statement, plain) => Act::Statement,
        () if wants > 0 && !item => Act::Instruction,
        () if is_imperative(sentence.language, rest) && !item => Act::Instruction,
        () if !unsure && cues.contains(CueKind::Question, plain) => Act::Question,
        () => Act::Statement,
    }
}

/// Returns whether a sentence is a question, with or without a question mark.
pub(crate) fn is_question(sentence: &Sentence<'_>) -> bool {
    let cues = &lists::of(sentence.language).cues;
    let openings = cues.without_openings(&sentence.plain.text);
    asks(sentence.text)
        || (cues.begins(CueKind::Question, &openings)
            && !cues.begins(CueKind::Statement, &openings))
}

/// Returns whether a sentence ends with a question mark, or contains an opening one.
fn asks(text: &str) -> bool {
    let closing = |it: char| !matches!(it, '?' | '？' | '⁇' | '⁉') && !it.is_alphanumeric();
    text.trim_end_matches(closing).ends_with(['?', '？', '⁇', '⁉']) || text.contains('¿')
}

/// Returns whether a sentence begins with an imperative: in English a verb in its base form, in other
/// languages a word before an article.
fn is_imperative(language: Language, rest: &str) -> bool {
    const NO_OBJECT: &str = "is are was were has have had will would can could should may might \
        isn't aren't wasn't of seems looks does did says said shows suggests states";
    const GERMAN: &str = "den die das dem mir mich uns alles diesen diese dieses meinen meine mein \
        einen eine ein es ihn mal";
    const FRENCH: &str = "le la les un une des ce cette ces mon ma mes tout toutes";
    const SPANISH: &str = "el la los las un una este esta estos mi mis todo todas";
    const VERB_BEFORE_SUBJECT: &str = "falta faltan queda quedan llega llegan viene sale empieza";
    let mut words = rest.split(' ');
    let (Some(first), next) = (words.next(), words.next().unwrap_or("")) else { return false };
    let among = |few: &str, word: &str| few.split_whitespace().any(|it| it == word);
    let lists = lists::of(language);
    let known = lists.stop.contains(first) || lists.weak.contains(first);
    match language {
        Language::English | Language::Other => {
            lists.verbs.contains(first) && !among(NO_OBJECT, next)
        }
        Language::German => !known && among(GERMAN, next) && !first.ends_with(['t', 'n', 's']),
        Language::French => {
            !known
                && (among(FRENCH, next) || next.starts_with("l'"))
                && first.ends_with(['e', 's', 'z'])
        }
        Language::Spanish => {
            let object = among(SPANISH, next) && first.ends_with(['a', 'e']);
            let me = ["ame", "eme", "anos", "alo", "alos", "ala", "amelo"];
            let told = first.len() > 5 && me.iter().any(|it| first.ends_with(it));
            !known && !among(VERB_BEFORE_SUBJECT, first) && (object || told)
        }
        Language::Chinese | Language::Japanese => false,
    }
}

fn is_east_asian_text(plain: &str) -> bool {
    plain.chars().any(is_east_asian)
}

/// Counts words, or in scripts without spaces pairs of characters.
fn length(plain: &str) -> usize {
    let east_asian = plain.chars().filter(|it| is_east_asian(*it)).count();
    plain.split(' ').count() + east_asian / 2
}

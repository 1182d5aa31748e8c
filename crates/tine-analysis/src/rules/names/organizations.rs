//! Evidence for names of organisations.

use super::super::lists::{COMMON, FIRST_NAMES, ORGANIZATION_WORDS, ORGANIZATIONS, PLACES};
use super::super::tokens::{Gap, Word, WordShape};
use super::{Mention, NameKind, NameRun};

/// Words that continue with "of": "University of Toronto".
const WITH_OF: &str = "university bank ministry institute department college house school academy museum church \
    chamber office board council bureau";

/// Words inside of names of organisations.
const INNER: &str = "air bank university airlines airways institute hospital insurance";

/// Returns whether "of" after a word continues the name.
pub(super) fn takes_of(word: &Word) -> bool {
    word.is(WITH_OF)
}

/// Returns whether a word may continue a name after a possessive: "Miller's Garage".
pub(super) fn may_own(word: &Word) -> bool {
    word.is_name_shaped()
        && (ORGANIZATION_WORDS.contains(word.folded.as_str())
            || super::places::ends_name(word.folded.as_str()))
}

/// Returns whether the words of a run name an organisation.
pub(super) fn is_by_name(run: NameRun<'_>) -> bool {
    let own = run.own();
    let last = own[own.len() - 1].folded.as_str();
    match ORGANIZATIONS.get(run.text()) {
        Some(true) => return true,
        Some(false) => return is_evident(run),
        None => {}
    }
    if own.len() < 2 {
        return false;
    }
    let of = own.iter().any(takes_of) && own.iter().any(|word| word.is("of"))
        || takes_of(&own[0]) && own.len() > 1 && own[0].is("university");
    let joined = run.text().contains(" & ");
    // "TAP Air Portugal": a word that occurs only in names.
    let inner = own.len() > 2 && own.iter().any(|word| word.is(INNER));
    // "Team Health", "Best Travel" are not names at the beginning of a sentence.
    let plain = own[..own.len() - 1].iter().all(|word| COMMON.contains(word.folded.as_str()));
    let joined =
        joined && (ORGANIZATION_WORDS.contains(last) || run.follows("at from for with by to"));
    of || joined || inner || ORGANIZATION_WORDS.contains(last) && !(plain && run.opens())
}

/// Returns whether the context of a run is that of an organisation.
pub(super) fn is_by_place(run: NameRun<'_>, earlier: &[Mention]) -> bool {
    let own = run.own();
    let first = own[0].folded.as_str();
    if COMMON.contains(first) && own.len() == 1 || PLACES.contains_key(run.text()) {
        return false;
    }
    let someone = FIRST_NAMES.get(first) == Some(&true);
    if is_evident(run) && !someone {
        return true;
    }
    // "Isabel Moreno from Quantum Freight"
    let person = run.follows("at from of")
        && run.before(1).is_some_and(|link| link.gap == Gap::Space)
        && run.before(2).is_some_and(|word| {
            earlier.iter().any(|it| it.kind == NameKind::Person && it.at.end == word.at.end)
        });
    let strange = own.iter().any(|word| word.shape != WordShape::Capital) || own.len() > 1;
    let known_place = own.len() == 1 && run.follows("from");
    person && !someone && (strange || !known_place)
}

/// Returns whether a name of several unknown words stands where organisations do: "a quote from …".
pub(super) fn is_likely(run: NameRun<'_>) -> bool {
    const PAPERS: &str = "invoice quote email mail delivery order letter bill parcel package offer reply \
        contract deal partnership account policy booked estimate refund shipment feedback news \
        payment check booking subscription loan mortgage insurance agreement sold bought \
        ordered applied apply application pitch presentation proposal contact someone somebody \
        people folks team guys rented rent switch switched switching negotiating working \
        recruiter";
    let own = run.own();
    let first = own[0].folded.as_str();
    let word_like = own.iter().any(|word| word.is("day eve time week year"));
    if run.opens()
        || run.has_digit()
        || word_like
        || FIRST_NAMES.contains_key(first)
        || COMMON.contains(first)
    {
        return false;
    }
    let near = (2..=3).any(|places| run.before(places).is_some_and(|word| word.is(PAPERS)));
    let began = run.follows("at")
        && run.before(2).is_some_and(|word| word.is("started starts starting start"));
    let from = began || run.follows("from with to at by for") && near;
    let several = own.len() > 1 && own.iter().all(|word| word.shape != WordShape::Lower);
    let there = several && run.follows("at from for");
    let given = several
        && run.follows("to")
        && (2..=8).any(|places| {
            run.before(places).is_some_and(|word| {
                word.is("send sent pay paid submit deliver return invoice write")
            })
        });
    let thing = run.follows("the our")
        && run.precedes(
            "contract invoice account deal proposal order project pitch partnership app website \
            team office offer",
        )
        && several;
    let paid = run.follows("pay paid invoice invoiced");
    from || there || given || thing || paid
}

/// Returns whether the context of a run states that it is an organisation.
fn is_evident(run: NameRun<'_>) -> bool {
    const KINDS: &str = "company startup firm supplier vendor client customer employer agency bank insurer \
        provider manufacturer contractor airline carrier publisher retailer distributor \
        partner competitor nonprofit charity organization organisation sponsor landlord \
        wholesaler dealer broker";
    const WORKING: &str = "study studies studied studying teach teaches enrolled graduated work works worked \
        working job interview interviewing internship intern offer ceo cto cfo founder employed \
        recruiter engineer consultant position account manager contract";
    let first = &run.own()[0];
    let linked = matches!(first.gap, Gap::Space | Gap::Comma);
    let kind = linked
        && run.before(1).is_some_and(|word| word.is(KINDS))
        && !run.before(2).is_some_and(|word| word.is("to can"));
    let called = run.follows("called named") && run.before(2).is_some_and(|word| word.is(KINDS));
    let working =
        run.follows("at for with of from") && run.before(2).is_some_and(|word| word.is(WORKING));
    let joining = run.follows("joined joining acquired acquire founded hired")
        && !FIRST_NAMES.contains_key(first.folded.as_str());
    let acts = run.precedes(
        "told charges released launched sued charged announced offers offered quoted raised \
        sells delivers invoiced billed hired acquired shipped wants sent confirmed replied",
    ) && (run.len() > 1 || ORGANIZATIONS.contains_key(run.text()))
        && !FIRST_NAMES.contains_key(first.folded.as_str());
    // "Lumora, our supplier"
    let appositive =
        run.after(1).is_some_and(|word| word.gap == Gap::Comma && word.is("our my the a an their"))
            && (2..=3).any(|places| run.after(places).is_some_and(|word| word.is(KINDS)));
    let after = run.after(1).is_some_and(|word| {
        word.gap == Gap::Space
            && word.is("employees shares stock ceo account invoice shareholders headquarters hq")
    }) && first.shape == WordShape::Capital
        && !first.owns;
    kind || called || appositive || working || joining || acts || (after && !run.opens())
}

//! Rings: what a turn is about, computed when somebody asks and kept from then on.

use tine_core::json::{Json, object};
use tine_core::{Body, Digest, ProjectId};
use tine_interpret::rules::Rules;
use tine_interpret::{Account, Interpreter, Material, Subject};
use tine_rings::{FACETS, Facet, Intent, Keyword, Rings, Span};
use tine_store::{Content, EntryKind, Read, Turn, TurnLoc, Write};

use super::{NameFound, TurnRings};
use crate::learned::parse;
use crate::resolve;
use crate::{Call, Engine, Error, Result, TurnRef};

/// Turns whose rings are kept in one transaction.
const KEPT_AT_ONCE: usize = 256;

/// Types of entities whose name a facet snapshot lists.
const NAMED: [&str; 3] = ["person", "organization", "place"];

impl Engine {
    /// What a turn is about.
    pub fn rings(&self, call: &Call, turn: TurnRef) -> Result<TurnRings> {
        self.read(|records| {
            let place = resolve::find(records, call, &turn)?;
            let loc = place.require_turn()?;
            let turn = tine_store::required(records.turn(loc)?, || "a turn".to_owned())?;
            let Some(rings) = of(records, &call.project, &turn)? else {
                return Err(Error::invalid("the turn was purged; nothing is known of it"));
            };
            Ok(rings)
        })
    }

    /// Computes the rings of turns and keeps them, so that whoever needs them all at once has
    /// them: outside of the transaction that needs them.
    pub(super) fn prepare_rings(&self, project: &ProjectId, turns: &[TurnLoc]) -> Result<()> {
        let by = extractor();
        for some in turns.chunks(KEPT_AT_ONCE) {
            let missing = self.read(|records| {
                let mut missing = Vec::new();
                for turn in crate::path::fetch(records, some)? {
                    let found = records.entry(project, EntryKind::Rings, turn.id.as_bytes())?;
                    if !found.is_some_and(|text| is_by(&text, &by))
                        && let Some(rings) = computed(&turn)
                    {
                        missing.push((turn.loc, sealed(turn.id.as_bytes(), &rings)));
                    }
                }
                Ok(missing)
            })?;
            if missing.is_empty() {
                continue;
            }
            let project = project.clone();
            self.write(move |records| {
                for (loc, text) in &missing {
                    // What was erased in the meantime has none.
                    if let Some(turn) = records.turn(*loc)?
                        && matches!(turn.content, Content::Kept(_))
                    {
                        records.put_entry(&project, EntryKind::Rings, turn.id.as_bytes(), text)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Whether rings that were kept are those of an extractor, as far as their beginning tells.
fn is_by(kept: &str, extractor: &str) -> bool {
    let text = kept.get(SEAL..).and_then(|text| text.strip_prefix("{\"extractor\":\""));
    text.and_then(|text| text.strip_prefix(extractor)).is_some_and(|rest| rest.starts_with('"'))
}

/// The rings of a turn; none of one that was purged.
pub(super) fn of(
    records: &dyn Read,
    project: &ProjectId,
    turn: &Turn,
) -> Result<Option<TurnRings>> {
    Ok(match kept(records, project, turn)? {
        Some(rings) => Some(rings),
        None => computed(turn),
    })
}

/// The rings of a turn, kept from now on.
pub(super) fn keep(
    records: &mut dyn Write,
    project: &ProjectId,
    turn: &Turn,
) -> Result<Option<TurnRings>> {
    if let Some(rings) = kept(&*records, project, turn)? {
        return Ok(Some(rings));
    }
    let Some(rings) = computed(turn) else {
        return Ok(None);
    };
    let text = sealed(turn.id.as_bytes(), &rings);
    records.put_entry(project, EntryKind::Rings, turn.id.as_bytes(), &text)?;
    Ok(Some(rings))
}

/// What was computed before by the rules of today.
fn kept(records: &dyn Read, project: &ProjectId, turn: &Turn) -> Result<Option<TurnRings>> {
    let Content::Kept(body) = &turn.content else {
        return Ok(None);
    };
    let found = records.entry(project, EntryKind::Rings, turn.id.as_bytes())?;
    let found = found.as_deref().and_then(|text| unsealed(turn.id.as_bytes(), text));
    let found = found.and_then(|json| from_json(&json));
    let found = found.filter(|(by, ..)| *by == extractor());
    Ok(found.map(|(extractor, rings, names)| TurnRings {
        extractor,
        rings,
        names,
        text: said(body),
    }))
}

/// Digits of the digest before rings that are kept.
const SEAL: usize = 16;

fn seal(turn: &[u8], text: &str) -> String {
    Digest::of(&[turn, text.as_bytes()].concat()).to_hex()[..SEAL].to_owned()
}

/// Rings as they are kept: whatever is flipped in them is noticed.
fn sealed(turn: &[u8], rings: &TurnRings) -> String {
    let text = to_json(rings).to_canonical();
    seal(turn, &text) + &text
}

/// Rings that were kept, if they are as they were.
pub(super) fn unsealed(turn: &[u8], kept: &str) -> Option<Json> {
    let (digits, text) = kept.split_at_checked(SEAL)?;
    if seal(turn, text) != digits {
        return None;
    }
    parse(text)
}

fn computed(turn: &Turn) -> Option<TurnRings> {
    let Content::Kept(body) = &turn.content else {
        return None;
    };
    let text = said(body);
    let material =
        Material { text: &text, subject: Subject::Turn(turn.role), said_at: Some(turn.created_at) };
    let findings = Rules.interpret(&material, &mut Account::default()).unwrap_or_default();
    let mut places = Places::new(&text);
    let names = findings.into_iter().filter(|it| NAMED.contains(&it.entity_type.as_str()));
    let names = names.filter_map(|finding| {
        let name = finding.fields.get("name")?.as_str()?.to_owned();
        let span = finding.span?;
        let span = (places.of(span.start), places.of(span.end));
        Some(NameFound { name, entity_type: finding.entity_type, span })
    });
    let names = names.collect();
    Some(TurnRings { extractor: extractor(), rings: tine_rings::rings(&text), names, text })
}

/// Who finds rings and names, in which version.
pub(super) fn extractor() -> String {
    format!("{} rules/{}", tine_rings::EXTRACTOR, Rules.about().version)
}

/// The text of a turn: its text blocks, a blank line between them.
pub(super) fn said(body: &Body) -> String {
    match body {
        Body::Text(text) => text.clone(),
        Body::Blocks(_) => {
            let blocks = body.blocks().unwrap_or_default();
            let texts = blocks
                .iter()
                .filter(|block| block.get("type").and_then(Json::as_str) == Some("text"));
            let texts = texts.filter_map(|block| block.get("text").and_then(Json::as_str));
            texts.collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// From bytes of a text to Unicode scalar values, for places that come in order.
struct Places<'t> {
    text: &'t str,
    byte: usize,
    count: usize,
}

impl<'t> Places<'t> {
    fn new(text: &'t str) -> Self {
        Places { text, byte: 0, count: 0 }
    }

    fn of(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            (self.byte, self.count) = (0, 0);
        }
        self.count += self.text.get(self.byte..byte).map_or(0, |between| between.chars().count());
        self.byte = byte;
        self.count
    }
}

fn number(value: usize) -> Json {
    u64::try_from(value).unwrap_or(u64::MAX).into()
}

fn to_json(found: &TurnRings) -> Json {
    let rings = &found.rings;
    let told = |text: &str, span: &Span| {
        Json::Array(vec![text.into(), number(span.start), number(span.end)])
    };
    let names = found.names.iter().map(|it| {
        let (start, end) = it.span;
        let (name, entity_type) = (it.name.as_str().into(), it.entity_type.as_str().into());
        Json::Array(vec![name, entity_type, number(start), number(end)])
    });
    object([
        ("extractor", found.extractor.as_str().into()),
        ("intent", rings.intent.as_str().into()),
        (
            "keywords",
            Json::Array(rings.keywords.iter().map(|it| told(&it.text, &it.span)).collect()),
        ),
        ("facets", Json::Array(rings.facets.iter().map(|it| told(it.name, &it.span)).collect())),
        (
            "segments",
            Json::Array(
                rings
                    .segments
                    .iter()
                    .map(|it| Json::Array(vec![number(it.start), number(it.end)]))
                    .collect(),
            ),
        ),
        ("names", Json::Array(names.collect())),
    ])
}

fn from_json(json: &Json) -> Option<(String, Rings, Vec<NameFound>)> {
    let count = |json: &Json| usize::try_from(json.as_u64()?).ok();
    let list = |name: &str| json.get(name)?.as_array();
    let told = |item: &Json| match item.as_array()? {
        [text, start, end] => {
            Some((text.as_str()?.to_owned(), Span { start: count(start)?, end: count(end)? }))
        }
        _ => None,
    };
    let facet = |item: &Json| {
        let (name, span) = told(item)?;
        let name = FACETS.iter().find(|known| **known == name)?;
        Some(Facet { name, span })
    };
    let segment = |item: &Json| match item.as_array()? {
        [start, end] => Some(Span { start: count(start)?, end: count(end)? }),
        _ => None,
    };
    let name = |item: &Json| match item.as_array()? {
        [name, entity_type, start, end] => Some(NameFound {
            name: name.as_str()?.to_owned(),
            entity_type: entity_type.as_str()?.to_owned(),
            span: (count(start)?, count(end)?),
        }),
        _ => None,
    };
    let keywords = list("keywords")?.iter().map(|item| {
        let (text, span) = told(item)?;
        Some(Keyword { text, span })
    });
    let rings = Rings {
        keywords: keywords.collect::<Option<_>>()?,
        intent: Intent::from_name(json.get("intent")?.as_str()?)?,
        facets: list("facets")?.iter().map(facet).collect::<Option<_>>()?,
        segments: list("segments")?.iter().map(segment).collect::<Option<_>>()?,
    };
    let names = list("names")?.iter().map(name).collect::<Option<_>>()?;
    Some((json.get("extractor")?.as_str()?.to_owned(), rings, names))
}

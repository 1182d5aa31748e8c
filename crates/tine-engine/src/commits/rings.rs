//! Rings: what a turn is about, computed on demand and cached.

use std::collections::{BTreeMap, BTreeSet};

use tine_analysis::rings::{FACETS, Facet, Intent, Keyword, Rings, Span};
use tine_analysis::rules::Rules;
use tine_analysis::{Account, Interpreter, Material, Subject};
use tine_core::json::{Json, object};
use tine_core::{Body, ProjectId, TurnId};
use tine_store::{
    Content, Read, Record, RecordKey, RecordQuery, RingsRecord, Turn, TurnLoc, Write, WriteFamilies,
};

use crate::tree::resolve;
use crate::{Call, Engine, Error, Result, TurnRef};
use crate::{NameFound, TurnRings};

/// Turns whose rings are kept in one transaction.
const KEPT_AT_ONCE: usize = 256;

/// Turns whose rings are held in memory; those of further ones are looked up one by one.
const AT_HAND: usize = 10_000;

/// Types of entities whose name a facet snapshot lists.
const NAMED: [&str; 3] = ["person", "organization", "place"];

impl Engine {
    /// Returns what a turn is about.
    pub fn rings(&self, call: &Call, turn: TurnRef) -> Result<TurnRings> {
        self.read(|records| {
            let place = resolve::find(records, call, &turn)?;
            let loc = place.require_turn()?;
            let turn = tine_store::required(records.turn(loc)?, || "a turn".to_owned())?;
            let about = of(records, &call.project, &turn)?;
            let (Some(TurnAnalysis { rings, names }), Content::Kept(body)) = (about, &turn.content)
            else {
                return Err(Error::invalid("the turn was purged, so it cannot be analysed"));
            };
            Ok(TurnRings { extractor: extractor(), rings, names, text: body_text(body) })
        })
    }

    /// Computes and caches missing rings of turns, outside of the transaction that needs them.
    pub(super) fn prepare_rings(
        &self,
        project: &ProjectId,
        turns: &[TurnLoc],
    ) -> Result<PreparedRings> {
        let mut prepared = PreparedRings::default();
        for some in turns.chunks(KEPT_AT_ONCE) {
            let (found, missing) = self.read(|records| {
                let (mut found, mut missing) = (Vec::new(), Vec::new());
                let turns = crate::tree::path::fetch(records, some)?;
                let kept = stored_rings(records, project, &turns)?;
                for turn in turns {
                    if let Some(about) = kept.get(&turn.id).and_then(read) {
                        found.push((turn.id, about));
                    } else if let Some(about) = compute_analysis(&turn) {
                        missing.push((turn.loc, Record::of(&record(turn.id, &about))));
                        found.push((turn.id, about));
                    }
                }
                Ok((found, missing))
            })?;
            let room = AT_HAND.saturating_sub(prepared.0.len());
            prepared.0.extend(found.into_iter().take(room));
            if missing.is_empty() {
                continue;
            }
            let project = project.clone();
            self.write(move |records| {
                for (loc, rings) in &missing {
                    // What was erased in the meantime has none.
                    if let Some(turn) = records.turn(*loc)?
                        && matches!(turn.content, Content::Kept(_))
                    {
                        records.put_record(&project, rings)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(prepared)
    }
}

/// The rings and names of a turn.
pub(super) struct TurnAnalysis {
    pub rings: Rings,
    pub names: Vec<NameFound>,
}

/// Rings of turns, looked up before the transaction that needs them, and kept. What a turn is
/// about never changes: they hold for as long as it is not erased.
#[derive(Default)]
pub(super) struct PreparedRings(BTreeMap<TurnId, TurnAnalysis>);

impl PreparedRings {
    /// Visits the analysis of a turn, and caches it; purged turns are skipped.
    pub(super) fn visit(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        turn: &Turn,
        note: &mut dyn FnMut(&TurnAnalysis),
    ) -> Result<()> {
        if !matches!(turn.content, Content::Kept(_)) {
            return Ok(());
        }
        if let Some(about) = self.0.get(&turn.id) {
            note(about);
        } else if let Some(about) = stored_analysis(&*records, project, turn)? {
            note(&about);
        } else if let Some(about) = compute_analysis(turn) {
            records.put(project, &record(turn.id, &about))?;
            note(&about);
        }
        Ok(())
    }
}

/// Returns the cached rings of turns.
fn stored_rings(
    records: &dyn Read,
    project: &ProjectId,
    turns: &[Turn],
) -> Result<BTreeMap<TurnId, Record>> {
    let ids: BTreeSet<TurnId> = turns.iter().map(|turn| turn.id).collect();
    let mut found = BTreeMap::new();
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Ok(found);
    };
    // Turns made in sequence have adjacent keys.
    let query = RecordQuery::rings_between(first, last);
    let page = records.records(project, &query, ids.len())?;
    let whole = page.len() < ids.len();
    for record in page {
        if let RecordKey::Rings(id) = record.key()
            && ids.contains(id)
        {
            found.insert(*id, record);
        }
    }
    if !whole {
        for id in ids {
            if !found.contains_key(&id)
                && let Some(record) = records.record(project, &RecordKey::Rings(id))?
            {
                found.insert(id, record);
            }
        }
    }
    Ok(found)
}

/// Returns what a turn is about; nothing of one that was purged.
pub(super) fn of(
    records: &dyn Read,
    project: &ProjectId,
    turn: &Turn,
) -> Result<Option<TurnAnalysis>> {
    Ok(match stored_analysis(records, project, turn)? {
        Some(about) => Some(about),
        None => compute_analysis(turn),
    })
}

/// Returns the cached analysis, if the present rules made it.
fn stored_analysis(
    records: &dyn Read,
    project: &ProjectId,
    turn: &Turn,
) -> Result<Option<TurnAnalysis>> {
    if !matches!(turn.content, Content::Kept(_)) {
        return Ok(None);
    }
    let found = records.record(project, &RecordKey::Rings(turn.id))?;
    Ok(found.as_ref().and_then(read))
}

/// Returns what is kept, if it is intact and made by the present rules.
fn read(kept: &Record) -> Option<TurnAnalysis> {
    let rings = kept.decode::<RingsRecord>()?.rings;
    if rings.get("extractor")?.as_str()? != extractor() {
        return None;
    }
    from_json(&rings)
}

fn record(turn: TurnId, about: &TurnAnalysis) -> RingsRecord {
    RingsRecord { turn, rings: to_json(about) }
}

fn compute_analysis(turn: &Turn) -> Option<TurnAnalysis> {
    let Content::Kept(body) = &turn.content else {
        return None;
    };
    let text = body_text(body);
    let material = Material {
        text: &text,
        subject: Subject::Turn(turn.role),
        authored_at: Some(turn.created_at),
    };
    let findings = Rules.interpret(&material, &mut Account::default()).unwrap_or_default();
    let mut places = ScalarOffsets::new(&text);
    let names = findings.into_iter().filter(|it| NAMED.contains(&it.entity_type.as_str()));
    let names = names.filter_map(|finding| {
        let name = finding.fields.get("name")?.as_str()?.to_owned();
        let span = finding.span?;
        let span = (places.of(span.start), places.of(span.end));
        Some(NameFound { name, entity_type: finding.entity_type, span })
    });
    let names = names.collect();
    Some(TurnAnalysis { rings: tine_analysis::rings::rings(&text), names })
}

/// Returns the name and version of the rules that find rings and names.
pub(super) fn extractor() -> String {
    format!("{} rules/{}", tine_analysis::rings::EXTRACTOR, Rules.about().version)
}

/// Returns the text of a turn: its text blocks, a blank line between them.
pub(super) fn body_text(body: &Body) -> String {
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
struct ScalarOffsets<'t> {
    text: &'t str,
    byte: usize,
    count: usize,
}

impl<'t> ScalarOffsets<'t> {
    fn new(text: &'t str) -> Self {
        ScalarOffsets { text, byte: 0, count: 0 }
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

/// Lists are flat, since they are read often: each text is followed by where it begins and ends.
fn to_json(found: &TurnAnalysis) -> Json {
    let TurnAnalysis { rings, names } = found;
    let flat = |text: &str, start: usize, end: usize| [text.into(), number(start), number(end)];
    let keywords = rings.keywords.iter().flat_map(|it| flat(&it.text, it.span.start, it.span.end));
    let facets = rings.facets.iter().flat_map(|it| flat(it.name, it.span.start, it.span.end));
    let segments = rings.segments.iter().flat_map(|it| [number(it.start), number(it.end)]);
    let names = names.iter().flat_map(|it| {
        let [name, start, end] = flat(&it.name, it.span.0, it.span.1);
        [name, it.entity_type.as_str().into(), start, end]
    });
    object([
        ("extractor", extractor().into()),
        ("intent", rings.intent.as_str().into()),
        ("keywords", Json::Array(keywords.collect())),
        ("facets", Json::Array(facets.collect())),
        ("segments", Json::Array(segments.collect())),
        ("names", Json::Array(names.collect())),
    ])
}

fn from_json(json: &Json) -> Option<TurnAnalysis> {
    fn each<const N: usize, T>(
        json: &Json,
        name: &str,
        read: impl Fn(&[Json; N]) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (items, rest) = json.get(name)?.as_array()?.as_chunks::<N>();
        if !rest.is_empty() {
            return None;
        }
        items.iter().map(read).collect()
    }
    let count = |json: &Json| usize::try_from(json.as_u64()?).ok();
    let span = |start: &Json, end: &Json| Some(Span { start: count(start)?, end: count(end)? });
    let rings = Rings {
        keywords: each(json, "keywords", |[text, start, end]| {
            Some(Keyword { text: text.as_str()?.to_owned(), span: span(start, end)? })
        })?,
        intent: Intent::from_name(json.get("intent")?.as_str()?)?,
        facets: each(json, "facets", |[text, start, end]| {
            let text = text.as_str()?;
            let name = FACETS.iter().find(|facet| **facet == text)?;
            Some(Facet { name, span: span(start, end)? })
        })?,
        segments: each(json, "segments", |[start, end]| span(start, end))?,
    };
    let names = each(json, "names", |[name, entity_type, start, end]| {
        Some(NameFound {
            name: name.as_str()?.to_owned(),
            entity_type: entity_type.as_str()?.to_owned(),
            span: (count(start)?, count(end)?),
        })
    })?;
    Some(TurnAnalysis { rings, names })
}

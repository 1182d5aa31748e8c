//! What a turn is about. Places count Unicode scalar values of the turn's text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_analysis::rings::{FACETS, Facet, Intent, Keyword, Span};
use tine_engine as engine;

use crate::view::Turn;
use crate::view::reading::{Unreadable, count};

/// What a turn is about, ring by ring.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rings {
    /// The words that tell most.
    pub ring1: Ring1,
    /// What the turn does, and in which subjects.
    pub ring2: Ring2,
    /// Its sentences.
    pub ring3: Ring3,
    /// Names of people, organisations and places.
    pub names: Vec<NameFound>,
    /// Which rules found all this.
    pub extractor: String,
}

/// The words of a turn that tell most.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ring1 {
    /// Best first, as they occur first.
    pub keywords: Vec<String>,
    /// Where each of them occurs first: from, and up to.
    pub spans: Vec<[u64; 2]>,
}

/// What a turn does, and in which subjects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ring2 {
    /// `question`, `request`, `statement`, `decision`, `acknowledgement` …
    pub intent: String,
    /// Subjects, sorted.
    pub facets: Vec<String>,
    /// The word that told each of them: from, and up to.
    pub spans: Vec<[u64; 2]>,
}

/// The sentences of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ring3 {
    /// In order.
    pub segments: Vec<String>,
    /// Where each of them stands: from, and up to.
    pub offsets: Vec<[u64; 2]>,
}

/// A name in a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NameFound {
    /// The name.
    pub name: String,
    /// What it is the name of: `person`, `organization` or `place`.
    pub entity_type: String,
    /// Where it stands: from, and up to.
    pub span: [u64; 2],
}

/// What a turn is about, with the text that the places count.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnRings {
    /// The rings.
    #[serde(flatten)]
    pub rings: Rings,
    /// The turn's text: its text blocks, a blank line between them.
    pub text: String,
}

/// A turn with what it is about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TurnWithRings {
    /// The turn.
    #[serde(flatten)]
    pub turn: Turn,
    /// What it is about; not there once it was purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rings: Option<Rings>,
}

impl From<engine::TurnRings> for TurnRings {
    fn from(found: engine::TurnRings) -> Self {
        let text = found.text.clone();
        TurnRings { rings: found.into(), text }
    }
}

impl From<engine::TurnRings> for Rings {
    fn from(found: engine::TurnRings) -> Self {
        let rings = found.rings;
        let segments = pieces(&found.text, &rings.segments);
        let names = found.names.into_iter().map(|it| NameFound {
            name: it.name,
            entity_type: it.entity_type,
            span: [it.span.0 as u64, it.span.1 as u64],
        });
        Rings {
            ring1: Ring1 {
                spans: rings.keywords.iter().map(|it| place(it.span)).collect(),
                keywords: rings.keywords.into_iter().map(|it| it.text).collect(),
            },
            ring2: Ring2 {
                intent: rings.intent.as_str().to_owned(),
                facets: rings.facets.iter().map(|it| it.name.to_owned()).collect(),
                spans: rings.facets.iter().map(|it| place(it.span)).collect(),
            },
            ring3: Ring3 {
                segments,
                offsets: rings.segments.iter().map(|span| place(*span)).collect(),
            },
            names: names.collect(),
            extractor: found.extractor,
        }
    }
}

fn place(span: Span) -> [u64; 2] {
    [span.start as u64, span.end as u64]
}

/// The stretches of a text, which come in order, in one pass over it.
fn pieces(text: &str, spans: &[Span]) -> Vec<String> {
    let mut characters = text.chars();
    let mut at = 0;
    let mut taken = |count: usize| characters.by_ref().take(count).collect::<String>();
    let mut pieces = Vec::with_capacity(spans.len());
    for span in spans {
        taken(span.start.saturating_sub(at));
        pieces.push(taken(span.end.saturating_sub(span.start)));
        at = span.end;
    }
    pieces
}

impl TryFrom<TurnRings> for engine::TurnRings {
    type Error = Unreadable;

    fn try_from(view: TurnRings) -> Result<Self, Unreadable> {
        let Rings { ring1, ring2, ring3, names, extractor } = view.rings;
        let keyword = |(text, place): (String, [u64; 2])| {
            Ok(Keyword { text, span: span("ring1.spans", place)? })
        };
        let facet = |(name, place): (String, [u64; 2])| {
            let known = FACETS.iter().find(|known| **known == name);
            let unknown = || Unreadable::new("ring2.facets", format!("`{name}` is unknown"));
            Ok(Facet { name: known.ok_or_else(unknown)?, span: span("ring2.spans", place)? })
        };
        let intent = Intent::from_name(&ring2.intent);
        let segments = ring3.offsets.into_iter().map(|place| span("ring3.offsets", place));
        let rings = tine_analysis::rings::Rings {
            keywords: both("ring1.spans", ring1.keywords, ring1.spans, keyword)?,
            intent: intent.ok_or_else(|| Unreadable::new("ring2.intent", "it is unknown"))?,
            facets: both("ring2.spans", ring2.facets, ring2.spans, facet)?,
            segments: segments.collect::<Result<_, _>>()?,
        };
        let name = |it: NameFound| {
            let Span { start, end } = span("names", it.span)?;
            Ok(engine::NameFound { name: it.name, entity_type: it.entity_type, span: (start, end) })
        };
        let names = names.into_iter().map(name).collect::<Result<_, _>>()?;
        Ok(engine::TurnRings { extractor, rings, names, text: view.text })
    }
}

fn span(field: &'static str, [start, end]: [u64; 2]) -> Result<Span, Unreadable> {
    Ok(Span { start: count(field, start)?, end: count(field, end)? })
}

/// What two lists of one length say together.
fn both<T>(
    field: &'static str,
    texts: Vec<String>,
    places: Vec<[u64; 2]>,
    one: impl FnMut((String, [u64; 2])) -> Result<T, Unreadable>,
) -> Result<Vec<T>, Unreadable> {
    if texts.len() != places.len() {
        return Err(Unreadable::new(field, "there is not one for each"));
    }
    texts.into_iter().zip(places).map(one).collect()
}

//! What a turn is about. Spans count Unicode scalar values of the turn's text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::rings::{FACETS, Facet, Intent, Keyword, Rings, Span};

use crate::TurnView;

/// What a turn is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TurnRingsJson", into = "TurnRingsJson")]
pub struct TurnRings {
    /// Which rules found it.
    pub extractor: String,
    /// Keywords, intent, facets and segments.
    pub rings: Rings,
    /// Names of people, organisations and places.
    pub names: Vec<NameFound>,
    /// The text that the spans count.
    pub text: String,
}

schema_of!(TurnRings, TurnRingsJson);

/// A name in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameFound {
    /// The name.
    pub name: String,
    /// The type of entity: `person`, `organization` or `place`.
    pub entity_type: String,
    /// Where the name is: start and end.
    #[schemars(with = "[usize; 2]")]
    pub span: (usize, usize),
}

/// What a turn is about, ring by ring.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rings")]
pub struct RingsJson {
    /// Keywords.
    ring1: Ring1,
    /// Intent and subjects.
    ring2: Ring2,
    /// Sentences.
    ring3: Ring3,
    /// Names of people, organisations and places.
    names: Vec<NameFound>,
    /// Which rules found all this.
    extractor: String,
}

/// The keywords of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Ring1 {
    /// Best first, as they first occur.
    keywords: Vec<String>,
    /// Where each keyword first occurs: start and end.
    spans: Vec<[usize; 2]>,
}

/// The intent and subjects of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Ring2 {
    /// `question`, `request`, `statement`, `decision`, `acknowledgement` …
    intent: Intent,
    /// Subjects, sorted.
    facets: Vec<String>,
    /// The word that shows each subject: start and end.
    spans: Vec<[usize; 2]>,
}

/// The sentences of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Ring3 {
    /// In order.
    segments: Vec<String>,
    /// Where each sentence is: start and end.
    offsets: Vec<[usize; 2]>,
}

/// What a turn is about, with the text that the spans count.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TurnRings")]
struct TurnRingsJson {
    /// The rings.
    #[serde(flatten)]
    rings: RingsJson,
    /// The turn's text: its text blocks, joined by blank lines.
    text: String,
}

/// A turn with what it is about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TurnWithRings {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnView,
    /// What the turn is about; absent if its content was purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rings: Option<RingsJson>,
}

impl From<TurnRings> for TurnRingsJson {
    fn from(found: TurnRings) -> Self {
        let text = found.text.clone();
        TurnRingsJson { rings: found.into(), text }
    }
}

impl From<TurnRings> for RingsJson {
    fn from(found: TurnRings) -> Self {
        let rings = found.rings;
        let pair = |span: &Span| [span.start, span.end];
        RingsJson {
            ring1: Ring1 {
                spans: rings.keywords.iter().map(|it| pair(&it.span)).collect(),
                keywords: rings.keywords.into_iter().map(|it| it.text).collect(),
            },
            ring2: Ring2 {
                intent: rings.intent,
                facets: rings.facets.iter().map(|it| it.name.to_owned()).collect(),
                spans: rings.facets.iter().map(|it| pair(&it.span)).collect(),
            },
            ring3: Ring3 {
                segments: slices(&found.text, &rings.segments),
                offsets: rings.segments.iter().map(pair).collect(),
            },
            names: found.names,
            extractor: found.extractor,
        }
    }
}

/// Returns the slices of a text at ordered spans, in one pass.
fn slices(text: &str, spans: &[Span]) -> Vec<String> {
    let mut characters = text.chars();
    let mut at = 0;
    let mut take = |count: usize| characters.by_ref().take(count).collect::<String>();
    let mut slices = Vec::with_capacity(spans.len());
    for span in spans {
        take(span.start.saturating_sub(at));
        slices.push(take(span.end.saturating_sub(span.start)));
        at = span.end;
    }
    slices
}

impl TryFrom<TurnRingsJson> for TurnRings {
    type Error = String;

    fn try_from(form: TurnRingsJson) -> Result<Self, String> {
        let RingsJson { ring1, ring2, ring3, names, extractor } = form.rings;
        let span = |[start, end]: [usize; 2]| Span { start, end };
        let (keywords, facets) = (ring1.keywords.into_iter(), ring2.facets.into_iter());
        if keywords.len() != ring1.spans.len() || facets.len() != ring2.spans.len() {
            return Err("the rings have another number of spans than of words".to_owned());
        }
        let facet = |(name, at): (String, [usize; 2])| match FACETS.iter().find(|it| **it == name) {
            Some(name) => Ok(Facet { name, span: span(at) }),
            None => Err(format!("unknown facet `{name}`")),
        };
        let keyword = |(text, at): (String, [usize; 2])| Keyword { text, span: span(at) };
        let rings = Rings {
            keywords: keywords.zip(ring1.spans).map(keyword).collect(),
            intent: ring2.intent,
            facets: facets.zip(ring2.spans).map(facet).collect::<Result<_, _>>()?,
            segments: ring3.offsets.into_iter().map(span).collect(),
        };
        Ok(TurnRings { extractor, rings, names, text: form.text })
    }
}

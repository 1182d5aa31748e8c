//! Facets of a commit: the entities, keywords and topics of its turns, each with its first
//! occurrence.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::identity::folded;
use crate::json::{Json, object};
use crate::{InterpretationId, TurnHash};

use super::state::FactState;
use super::{map, texts};

/// Where a term first occurs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstOccurrence {
    /// The first turn that contains it.
    pub turn: TurnHash,
    /// Start and end in the turn's text, in Unicode scalar values.
    pub span: (u64, u64),
}

/// One keyword, topic or entity name of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FacetTermJson", into = "FacetTermJson")]
pub struct FacetTerm {
    /// The text of its first occurrence.
    pub text: String,
    /// Where it first occurs, if known.
    pub at: Option<FirstOccurrence>,
    /// The number of turns that contain it.
    pub turns: u64,
}

/// Terms by their folded form, so that different spellings of one term share an entry.
pub type FacetTerms = BTreeMap<String, FacetTerm>;

/// Everything that a commit records about the content of its turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facets {
    /// Names of people, organisations, places and other entities.
    pub entities: FacetTerms,
    /// Keywords of the turns.
    pub keywords: FacetTerms,
    /// General subjects of the turns.
    pub topics: FacetTerms,
    /// The number of entities and keywords dropped by [`Facets::bound`].
    pub left_out: u64,
    /// The name of the keyword extractor.
    pub extractor: String,
    /// The interpreter runs that contributed entities.
    pub interpretations: BTreeSet<InterpretationId>,
    /// The facts known at the commit.
    pub state: FactState,
}

impl Facets {
    /// Adds the terms and interpretations of another commit; `state` is left alone.
    pub fn join(&mut self, other: &Facets) {
        let sets = [
            (&mut self.entities, &other.entities),
            (&mut self.keywords, &other.keywords),
            (&mut self.topics, &other.topics),
        ];
        for (mine, theirs) in sets {
            for (key, seen) in theirs {
                match mine.get_mut(key) {
                    Some(existing) => existing.turns += seen.turns,
                    None => {
                        mine.insert(key.clone(), seen.clone());
                    }
                }
            }
        }
        self.interpretations.extend(&other.interpretations);
    }

    /// Keeps at most `limit` entities and `limit` keywords: those that occur in the most turns.
    pub fn bound(&mut self, limit: usize) {
        for set in [&mut self.entities, &mut self.keywords] {
            let all = std::mem::take(set).into_iter();
            let mut all = all.map(|(key, seen)| (seen.turns, key, seen)).collect();
            self.left_out += keep_most_frequent(&mut all, limit);
            set.extend(all.into_iter().map(|(_, key, seen)| (key, seen)));
        }
    }

    /// Returns the JSON form, which is hashed, stored and shown.
    pub fn to_json(&self) -> Json {
        let (facts, conflicts) = self.state.to_json();
        let mut facets = object([
            ("entities", listed(&self.entities)),
            ("keywords", listed(&self.keywords)),
            ("topics", listed(&self.topics)),
            ("extractor", self.extractor.as_str().into()),
            (
                "interpretations",
                Json::Array(
                    self.interpretations.iter().map(|run| run.to_string().into()).collect(),
                ),
            ),
            (
                "evidence",
                object([
                    ("entities", evidence(&self.entities)),
                    ("keywords", evidence(&self.keywords)),
                    ("topics", evidence(&self.topics)),
                ]),
            ),
            ("facts", facts),
            ("conflicts", conflicts),
        ]);
        if let (Json::Object(members), true) = (&mut facets, self.left_out > 0) {
            members.insert("left_out", self.left_out.into());
        }
        facets
    }

    /// Reads facets from their JSON.
    pub fn from_json(json: &Json) -> Option<Facets> {
        let evidence = json.get("evidence")?;
        let set = |name: &str| seen(json.get(name)?, evidence.get(name)?);
        let runs = json.get("interpretations")?.as_array()?.iter();
        Some(Facets {
            entities: set("entities")?,
            keywords: set("keywords")?,
            topics: set("topics")?,
            left_out: json.get("left_out").and_then(Json::as_u64).unwrap_or(0),
            extractor: json.get("extractor")?.as_str()?.to_owned(),
            interpretations: runs.map(|run| run.as_str()?.parse().ok()).collect::<Option<_>>()?,
            state: FactState::from_json(json.get("facts")?, json.get("conflicts")?)?,
        })
    }
}

/// Truncates `all`, whose items start with their number of turns, to the `limit` most frequent and
/// returns how many were dropped. Ties are broken by key: the largest keys are dropped.
pub fn keep_most_frequent<K: Ord, T>(all: &mut Vec<(u64, K, T)>, limit: usize) -> u64 {
    let over = all.len().saturating_sub(limit);
    if over > 0 {
        all.select_nth_unstable_by(limit, |(a, x, _), (b, y, _)| b.cmp(a).then_with(|| x.cmp(y)));
        all.truncate(limit);
    }
    over as u64
}

/// Returns the texts of a set, sorted.
fn listed(set: &FacetTerms) -> Json {
    let sorted: BTreeSet<&String> = set.values().map(|seen| &seen.text).collect();
    texts(sorted)
}

fn evidence(set: &FacetTerms) -> Json {
    map(set.values().map(|seen| {
        let mut record = object([("turns", seen.turns.into())]);
        if let (Json::Object(members), Some(at)) = (&mut record, &seen.at) {
            let span = Json::Array(vec![at.span.0.into(), at.span.1.into()]);
            members.insert("turn_hash", at.turn.to_string().into());
            members.insert("span", span);
        }
        (seen.text.clone(), record)
    }))
}

fn seen(listed: &Json, evidence: &Json) -> Option<FacetTerms> {
    let mut set = FacetTerms::new();
    for text in listed.as_array()? {
        let text = text.as_str()?;
        let record = evidence.get(text)?;
        let at = match (record.get("turn_hash"), record.get("span")) {
            (Some(turn), Some(span)) => {
                let [start, end] = span.as_array()? else {
                    return None;
                };
                let turn = turn.as_str()?.parse().ok()?;
                Some(FirstOccurrence { turn, span: (start.as_u64()?, end.as_u64()?) })
            }
            _ => None,
        };
        let turns = record.get("turns")?.as_u64()?;
        set.insert(folded(text), FacetTerm { text: text.to_owned(), at, turns });
    }
    Some(set)
}

/// A word or name.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Seen")]
struct FacetTermJson {
    /// As it first occurs.
    text: String,
    /// In how many turns it occurs.
    turns: u64,
    /// The turn in which it first occurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn_hash: Option<TurnHash>,
    /// Where in that turn's text, in Unicode scalar values: start and end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span: Option<[u64; 2]>,
}

impl From<FacetTerm> for FacetTermJson {
    fn from(seen: FacetTerm) -> Self {
        FacetTermJson {
            text: seen.text,
            turns: seen.turns,
            turn_hash: seen.at.as_ref().map(|at| at.turn),
            span: seen.at.map(|at| at.span.into()),
        }
    }
}

impl From<FacetTermJson> for FacetTerm {
    fn from(form: FacetTermJson) -> Self {
        let at = form.turn_hash.zip(form.span);
        let at = at.map(|(turn, span)| FirstOccurrence { turn, span: span.into() });
        FacetTerm { text: form.text, at, turns: form.turns }
    }
}

impl JsonSchema for FacetTerm {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        FacetTermJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FacetTermJson::json_schema(generator)
    }
}

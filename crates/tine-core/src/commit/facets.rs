//! What the turns of a commit are about, each word of it with a place where it was said.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::identity::folded;
use crate::json::{Json, object};
use crate::{InterpretationId, TurnHash};

use super::state::State;
use super::{map, texts};

/// Where something was said first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenAt {
    /// The turn.
    pub turn: TurnHash,
    /// Where in its text, in Unicode scalar values.
    pub span: (u64, u64),
}

/// One word or name of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SeenJson", into = "SeenJson")]
pub struct Seen {
    /// As it was said first.
    pub text: String,
    /// Where that was.
    pub at: Option<SeenAt>,
    /// In how many turns it was said.
    pub turns: u64,
}

/// Words and names, each once however it is written, under the form in which they are compared.
pub type SeenSet = BTreeMap<String, Seen>;

/// What a commit tells of its turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facets {
    /// People, organisations, places and other things with a name.
    pub entities: SeenSet,
    /// Keywords of the turns.
    pub keywords: SeenSet,
    /// What the turns are about, in general words.
    pub topics: SeenSet,
    /// Keywords that were left out because there were too many.
    pub left_out: u64,
    /// Which extractor found them.
    pub extractor: String,
    /// Runs of interpreters whose findings are among the entities.
    pub interpretations: BTreeSet<InterpretationId>,
    /// What is known at the commit.
    pub state: State,
}

impl Facets {
    /// Takes in what another commit's turns are about.
    pub fn join(&mut self, other: &Facets) {
        let sets = [
            (&mut self.entities, &other.entities),
            (&mut self.keywords, &other.keywords),
            (&mut self.topics, &other.topics),
        ];
        for (mine, theirs) in sets {
            for (key, seen) in theirs {
                match mine.get_mut(key) {
                    Some(known) => known.turns += seen.turns,
                    None => {
                        mine.insert(key.clone(), seen.clone());
                    }
                }
            }
        }
        self.interpretations.extend(&other.interpretations);
    }

    /// Keeps at most so many keywords and names: those that most turns say.
    pub fn bound(&mut self, limit: usize) {
        for set in [&mut self.entities, &mut self.keywords] {
            let all = std::mem::take(set).into_iter();
            let mut all = all.map(|(key, seen)| (seen.turns, key, seen)).collect();
            self.left_out += leave_most_said(&mut all, limit);
            set.extend(all.into_iter().map(|(_, key, seen)| (key, seen)));
        }
    }

    /// Returns the facets as they are hashed, stored and shown.
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
            state: State::from_json(json.get("facts")?, json.get("conflicts")?)?,
        })
    }
}

/// Leaves at most so many words or names, those that most turns say, each given with its number of
/// turns; answers how many are left out. Of equally rare ones those at the end of the alphabet go.
pub fn leave_most_said<K: Ord, T>(all: &mut Vec<(u64, K, T)>, limit: usize) -> u64 {
    let over = all.len().saturating_sub(limit);
    if over > 0 {
        all.select_nth_unstable_by(limit, |(a, x, _), (b, y, _)| b.cmp(a).then_with(|| x.cmp(y)));
        all.truncate(limit);
    }
    over as u64
}

/// The texts of a set, sorted.
fn listed(set: &SeenSet) -> Json {
    let sorted: BTreeSet<&String> = set.values().map(|seen| &seen.text).collect();
    texts(sorted)
}

fn evidence(set: &SeenSet) -> Json {
    map(set.values().map(|seen| {
        let mut told = object([("turns", seen.turns.into())]);
        if let (Json::Object(members), Some(at)) = (&mut told, &seen.at) {
            let span = Json::Array(vec![at.span.0.into(), at.span.1.into()]);
            members.insert("turn_hash", at.turn.to_string().into());
            members.insert("span", span);
        }
        (seen.text.clone(), told)
    }))
}

fn seen(listed: &Json, evidence: &Json) -> Option<SeenSet> {
    let mut set = SeenSet::new();
    for text in listed.as_array()? {
        let text = text.as_str()?;
        let told = evidence.get(text)?;
        let at = match (told.get("turn_hash"), told.get("span")) {
            (Some(turn), Some(span)) => {
                let [start, end] = span.as_array()? else {
                    return None;
                };
                let turn = turn.as_str()?.parse().ok()?;
                Some(SeenAt { turn, span: (start.as_u64()?, end.as_u64()?) })
            }
            _ => None,
        };
        let turns = told.get("turns")?.as_u64()?;
        set.insert(folded(text), Seen { text: text.to_owned(), at, turns });
    }
    Some(set)
}

/// A word or name.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Seen")]
struct SeenJson {
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

impl From<Seen> for SeenJson {
    fn from(seen: Seen) -> Self {
        SeenJson {
            text: seen.text,
            turns: seen.turns,
            turn_hash: seen.at.as_ref().map(|at| at.turn),
            span: seen.at.map(|at| at.span.into()),
        }
    }
}

impl From<SeenJson> for Seen {
    fn from(form: SeenJson) -> Self {
        let at = form.turn_hash.zip(form.span);
        let at = at.map(|(turn, span)| SeenAt { turn, span: span.into() });
        Seen { text: form.text, at, turns: form.turns }
    }
}

impl JsonSchema for Seen {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SeenJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        SeenJson::json_schema(generator)
    }
}

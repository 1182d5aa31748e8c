//! Combined stores: a turn, bytes and facts in one transaction.
//!
//! The parts are those of the stores that take one alone, and keep their rules. What joins them:
//! bytes are attached to the turn, facts are taken from the bytes and said by the turn, and the
//! message refers to what the facts are about. All of it is one entry in the log of the turn's
//! conversation, or in the project's own without a turn; one undo takes it back.
//!
//! A rehearsal runs the same rules and keeps nothing.

use tine_core::facts::{Endpoint, Relation, envelope};
use tine_core::json::{Json, object};
use tine_core::{ProjectId, SourceId};
use tine_store::{Edge, Read};

use super::facts::{self, StoreReceipt};
use super::sources::{self, PreparedSource, SourceReceipt};
use super::turns::{self, TurnReceipt};
use crate::log::change::{all_parsed, parsed, text, texts};
use crate::log::mutation::{Mutation, Receipt};
use crate::tree::views::ViewOrId;
use crate::{Call, Engine, Error, Outcome, Result};
use crate::{NewSource, StoreFacts, StoreTurn, StoredParts};
use crate::{StoreCombined, StoredCombined, StoredRelationship};

/// What is stored, with the digests that were taken before the transaction.
struct CombinedParts {
    turn: Option<StoreTurn>,
    source: Option<(NewSource, PreparedSource)>,
    facts: Option<(StoreFacts, PreparedSource)>,
}

impl Engine {
    /// Stores a turn, bytes and facts in one transaction: all or nothing. Runs are queued, not
    /// waited for.
    pub fn store_combined(&self, call: &Call, request: StoreCombined) -> Result<StoredCombined> {
        let StoreCombined { turn, source, facts, dry_run } = request;
        if turn.is_none() && source.is_none() && facts.is_none() {
            return Err(Error::invalid("there is nothing to store: no turn, no bytes, no facts"));
        }
        if let Some(turn) = &turn {
            self.check_turn(turn)?;
        }
        if let Some(facts) = &facts {
            self.check_facts(facts)?;
        }
        let source = match source {
            None => None,
            Some(source) if envelope::is_envelope(&source.mime_type) => {
                return Err(Error::invalid(
                    "the envelope of a turn is stored by itself; here, give the turn",
                ));
            }
            Some(source) => {
                let prepared = self.prepared(&source)?;
                Some((source, prepared))
            }
        };
        let facts = facts.map(|facts| {
            let sent =
                PreparedSource::from_bytes(facts::as_sent(&facts).to_canonical().into_bytes());
            (facts, sent)
        });
        let parts = CombinedParts { turn, source, facts };
        let (receipt, replay) =
            self.mutate_if(!dry_run, call, "store_together", parts, payload, store)?;
        let turn = match receipt.turn {
            None => None,
            Some(turn) => {
                Some(self.finish_turn(call, TurnReceipt { run: None, ..turn }, replay, false)?)
            }
        };
        let mut parts = receipt.parts;
        if let Some(run) = parts.interpretation.filter(|_| replay.replayed) {
            parts.unknown_fields = self.interpretation(call, run)?.unknown_fields;
        }
        Ok(StoredCombined {
            turn,
            parts,
            replayed: replay.replayed,
            undone: replay.undone,
            dry_run,
        })
    }
}

fn payload(parts: &CombinedParts) -> Json {
    let source = parts.source.as_ref();
    let source = source.map(|(source, prepared)| sources::payload(source, &prepared.digest));
    object([
        ("turn", parts.turn.as_ref().map(turns::payload).into()),
        ("source", source.into()),
        ("facts", parts.facts.as_ref().map(|(facts, _)| facts::as_sent(facts)).into()),
    ])
}

fn store(mutation: &mut Mutation<'_>, parts: &CombinedParts) -> Result<CombinedReceipt> {
    let mut done = StoredParts::default();
    let turn = match &parts.turn {
        None => None,
        Some(turn) => Some(turns::store_with_run(mutation, turn)?),
    };
    let message_of_turn = match &turn {
        Some(TurnReceipt { turn: ViewOrId::View(view), observation, .. }) => {
            Some((view.id, Endpoint::Entity(observation.entity)))
        }
        _ => None,
    };
    if let Some(turn) = &turn {
        done.runs.extend(turn.run);
    }
    if let Some((source, prepared)) = &parts.source {
        let kept = sources::store(mutation, source, prepared, None, None)?;
        let SourceReceipt { source, created, run, warnings, .. } = kept;
        done.source = Some((source, Outcome::from_created(created)));
        done.runs.extend(run);
        done.warnings.extend(warnings);
        if let Some((_, message)) = message_of_turn {
            relate(mutation, Relation::Embeds, message, Endpoint::Source(source), true)?;
        }
    }
    if let Some((facts, prepared)) = &parts.facts {
        let mut facts = facts.clone();
        facts.source = facts.source.or(done.source.map(|(id, _)| id));
        if let Some((turn, _)) = message_of_turn {
            for fact in &mut facts.entities {
                fact.turn.get_or_insert_with(|| turn.into());
            }
        }
        let kept = facts::store(mutation, &facts, prepared)?;
        if let Some((_, message)) = message_of_turn {
            for fact in &kept.entities {
                let about = Endpoint::Entity(fact.entity);
                relate(mutation, Relation::RefersTo, message, about, false)?;
            }
        }
        take_facts(&mut done, kept);
    }
    Ok(CombinedReceipt { turn, parts: done })
}

fn relate(
    mutation: &mut Mutation<'_>,
    relation: Relation,
    source: Endpoint,
    target: Endpoint,
    structural: bool,
) -> Result<()> {
    mutation.relate(&Edge { relation, source, target }, Json::Null, structural)?;
    Ok(())
}

fn take_facts(parts: &mut StoredParts, kept: StoreReceipt) {
    parts.facts_source = Some(kept.source);
    parts.interpretation = Some(kept.run);
    parts.entities = kept.entities;
    parts.unknown_fields = kept.unknown_fields;
    parts.warnings.extend(kept.warnings);
    let edges = kept.relationships.into_iter();
    parts.relationships = edges
        .map(|(edge, created)| StoredRelationship {
            relation: edge.relation,
            source: edge.source,
            target: edge.target,
            outcome: Outcome::from_created(created),
        })
        .collect();
}

/// What a store did, as a repeated call finds it.
struct CombinedReceipt {
    turn: Option<TurnReceipt>,
    parts: StoredParts,
}

impl Receipt for CombinedReceipt {
    fn to_json(&self) -> Json {
        let facts = self.parts.interpretation.zip(self.parts.facts_source).map(|(run, source)| {
            let related = self.parts.relationships.iter().map(|it| {
                let edge = Edge { relation: it.relation, source: it.source, target: it.target };
                (edge, it.outcome == Outcome::Created)
            });
            let receipt = StoreReceipt {
                source,
                run,
                entities: self.parts.entities.clone(),
                relationships: related.collect(),
                unknown_fields: self.parts.unknown_fields.clone(),
                warnings: Vec::new(),
            };
            receipt.to_json()
        });
        let source = self.parts.source.map(|(id, outcome)| {
            object([("source_id", text(&id)), ("created", (outcome == Outcome::Created).into())])
        });
        object([
            ("turn", self.turn.as_ref().map(Receipt::to_json).into()),
            ("source", source.into()),
            ("facts", facts.into()),
            ("runs", texts(&self.parts.runs)),
            ("warnings", texts(&self.parts.warnings)),
        ])
    }

    fn from_json(json: &Json) -> Option<Self> {
        let mut parts = StoredParts::default();
        if let Some(facts) = json.get("facts").filter(|facts| !facts.is_null()) {
            take_facts(&mut parts, StoreReceipt::from_json(facts)?);
        }
        if let Some(source) = json.get("source").filter(|source| !source.is_null()) {
            let id: SourceId = parsed(source, "source_id")?;
            parts.source = Some((id, Outcome::from_created(source.get("created")?.as_bool()?)));
        }
        parts.runs = all_parsed(json, "runs")?;
        parts.warnings.extend(all_parsed::<String>(json, "warnings")?);
        let turn = match json.get("turn")? {
            Json::Null => None,
            turn => Some(TurnReceipt::from_json(turn)?),
        };
        Some(CombinedReceipt { turn, parts })
    }

    fn load_views(&mut self, records: &dyn Read, project: &ProjectId) -> Result<()> {
        self.turn.iter_mut().try_for_each(|turn| turn.load_views(records, project))
    }
}

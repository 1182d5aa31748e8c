//! Combined stores: a turn, bytes and facts in one transaction.
//!
//! The parts are those of the stores that take one alone, and keep their rules. What joins them:
//! bytes are attached to the turn, facts are taken from the bytes and said by the turn, and the
//! message refers to what the facts are about. All of it is one entry in the log of the turn's
//! conversation, or in the project's own without a turn; one undo takes it back.
//!
//! A rehearsal runs the same rules and keeps nothing.

use serde::{Deserialize, Serialize};
use tine_core::facts::{Endpoint, Relation, envelope};
use tine_core::json::{Json, object};
use tine_core::{InterpretationId, ProjectId, SourceId};
use tine_store::{Edge, Read};

use super::facts::{self, StoreReceipt};
use super::relations::EdgeReceipt;
use super::sources::{self, PreparedSource, SourceReceipt};
use super::turns::{self, TurnReceipt};
use crate::log::mutation::{Mutation, Receipt};
use crate::tree::views::{self, ViewOrId};
use crate::{Call, Engine, Error, Outcome, Result};
use crate::{NewSource, StoreFacts, StoreTurn, StoredFact, StoredParts};
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
            return Err(Error::invalid("there is nothing to store; give a turn, bytes or facts"));
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
                    "a turn envelope cannot be part of a combined store; give the turn instead",
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
        let (mut receipt, replay) =
            self.mutate_if(!dry_run, call, "store_together", parts, payload, store)?;
        let turn = match receipt.turn.take() {
            None => None,
            Some(turn) => {
                Some(self.finish_turn(call, TurnReceipt { run: None, ..turn }, replay, false)?)
            }
        };
        let mut parts = receipt.parts();
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
    let mut done = CombinedReceipt::default();
    if let Some(turn) = &parts.turn {
        done.turn = Some(turns::store_with_run(mutation, turn)?);
    }
    let message_of_turn = match &done.turn {
        Some(TurnReceipt { turn: ViewOrId::View(view), observation, .. }) => {
            Some((view.id, Endpoint::Entity(observation.entity)))
        }
        _ => None,
    };
    done.runs.extend(done.turn.as_ref().and_then(|turn| turn.run));
    if let Some((source, prepared)) = &parts.source {
        let kept = sources::store(mutation, source, prepared, None, None)?;
        let SourceReceipt { source, created, run, warnings, .. } = kept;
        done.source = Some(KeptReceipt { source, outcome: Outcome::from_created(created) });
        done.runs.extend(run);
        done.warnings.extend(warnings);
        if let Some((_, message)) = message_of_turn {
            relate(mutation, Relation::Embeds, message, Endpoint::Source(source), true)?;
        }
    }
    if let Some((facts, prepared)) = &parts.facts {
        let mut facts = facts.clone();
        facts.source = facts.source.or(done.source.map(|kept| kept.source));
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
        done.facts = Some(kept);
    }
    Ok(done)
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

/// What a store did, as a repeated call finds it.
#[derive(Default, Serialize, Deserialize)]
struct CombinedReceipt {
    turn: Option<TurnReceipt>,
    source: Option<KeptReceipt>,
    facts: Option<StoreReceipt>,
    runs: Vec<InterpretationId>,
    warnings: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct KeptReceipt {
    #[serde(rename = "source_id")]
    source: SourceId,
    #[serde(rename = "created", with = "views::created")]
    outcome: Outcome,
}

impl CombinedReceipt {
    /// Returns everything that was stored except the turn.
    fn parts(self) -> StoredParts {
        let mut parts = StoredParts {
            source: self.source.map(|kept| (kept.source, kept.outcome)),
            runs: self.runs,
            warnings: self.warnings,
            ..StoredParts::default()
        };
        if let Some(facts) = self.facts {
            parts.facts_source = Some(facts.source);
            parts.interpretation = Some(facts.run);
            parts.entities = facts.entities.into_iter().map(StoredFact::from).collect();
            parts.unknown_fields = facts.unknown_fields;
            parts.warnings.extend(facts.warnings);
            let related = facts.relationships.into_iter().map(|EdgeReceipt { edge, outcome }| {
                let Edge { relation, source, target } = edge;
                StoredRelationship { relation, source, target, outcome }
            });
            parts.relationships = related.collect();
        }
        parts
    }
}

impl Receipt for CombinedReceipt {
    fn load_views(&mut self, records: &dyn Read, project: &ProjectId) -> Result<()> {
        self.turn.iter_mut().try_for_each(|turn| turn.load_views(records, project))
    }
}

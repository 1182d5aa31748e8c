//! Provenance: from a value back to the bytes that state it.

use std::collections::BTreeMap;

use tine_core::facts::Observation;
use tine_core::{EntityId, Limits, ObservationId, SourceId};
use tine_store::{EntityRecord, required};

use super::entities::{fill, view};
use super::reader::KnowledgeReader;
use super::runs::run_view;
use super::runs::without_bytes;
use super::sources::read;
use crate::{AsOf, Evidence, FieldProvenance, ObservationView};
use crate::{Call, Engine, Error, Result};

impl Engine {
    /// Observations by their ids, each with the text of its span.
    pub(crate) fn observations_by_id(
        &self,
        call: &Call,
        ids: &[ObservationId],
    ) -> Result<Vec<ObservationView>> {
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let mut texts = SourceTexts::new(self.limits());
            let mut found = Vec::new();
            for id in ids {
                if let Some(one) = knowledge.observation(*id)? {
                    found.push(evidence_view(&knowledge, &mut texts, one)?);
                }
            }
            Ok(found)
        })
    }

    /// Traces each field, or one of them, back to the bytes it comes from.
    pub fn field_provenance(
        &self,
        call: &Call,
        id: EntityId,
        field: Option<&str>,
    ) -> Result<Vec<FieldProvenance>> {
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let entity = knowledge.canonical_entity(knowledge.require_entity(id)?)?;
            let view = view(&knowledge, &entity, AsOf::default())?;
            if let Some(field) = field
                && view.snapshot.fields.get(field).is_none()
            {
                let present: Vec<&str> = view.snapshot.fields.keys().collect();
                return Err(Error::not_found(
                    "field",
                    format!("{field}` of {id}, which has `{}", present.join("`, `")),
                ));
            }
            let mut texts = SourceTexts::new(self.limits());
            let mut found = Vec::new();
            for (name, value) in view.snapshot.fields.iter() {
                if field.is_some_and(|field| field != name) {
                    continue;
                }
                let from = view.snapshot.provenance.get(name);
                let mut evidence = Vec::new();
                for id in from.into_iter().flatten() {
                    evidence.push(self::evidence(&knowledge, &entity, &mut texts, *id)?);
                }
                found.push(FieldProvenance {
                    field: name.to_owned(),
                    value: value.clone(),
                    evidence,
                });
            }
            Ok(found)
        })
    }
}

/// The texts of sources that were read for one answer: those that spans in them count.
struct SourceTexts<'l> {
    limits: &'l Limits,
    read: BTreeMap<SourceId, Option<String>>,
}

impl<'l> SourceTexts<'l> {
    fn new(limits: &'l Limits) -> Self {
        SourceTexts { limits, read: BTreeMap::new() }
    }

    fn of(&mut self, knowledge: &KnowledgeReader<'_>, id: SourceId) -> Result<Option<&str>> {
        if !self.read.contains_key(&id) {
            let text = match knowledge.source(id)? {
                Some(source) => match read(knowledge, self.limits, &source) {
                    Ok(reading) => Some(reading.text),
                    Err(Error::Store(error)) => return Err(Error::Store(error)),
                    Err(_) => None,
                },
                None => None,
            };
            self.read.insert(id, text);
        }
        Ok(self.read.get(&id).and_then(Option::as_deref))
    }
}

fn evidence_view(
    knowledge: &KnowledgeReader<'_>,
    texts: &mut SourceTexts<'_>,
    one: Observation,
) -> Result<ObservationView> {
    let quote = match (&one.span, one.source) {
        (Some(span), Some(source)) => {
            let bounds = (usize::try_from(span.start), usize::try_from(span.end));
            match (texts.of(knowledge, source)?, bounds) {
                (Some(text), (Ok(start), Ok(end))) => text.get(start..end).map(str::to_owned),
                _ => None,
            }
        }
        _ => None,
    };
    Ok(ObservationView { observation: one, retracted: false, quote })
}

fn evidence(
    knowledge: &KnowledgeReader<'_>,
    entity: &EntityRecord,
    texts: &mut SourceTexts<'_>,
    id: ObservationId,
) -> Result<Evidence> {
    let mut one = required(knowledge.observation(id)?, || format!("observation {id}"))?;
    fill(knowledge, entity, &mut one)?;
    let interpretation = match one.interpretation {
        Some(run) => knowledge.run(run)?.map(|run| without_bytes(run_view(run))),
        None => None,
    };
    let source = match one.source {
        Some(source) => knowledge.source(source)?,
        None => None,
    };
    let turn = one.turn;
    let observation = evidence_view(knowledge, texts, one)?;
    Ok(Evidence { observation, interpretation, source, turn })
}

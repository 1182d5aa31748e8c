//! What was learned, on its way between stores: everything that a log tells of, and nothing else.
//!
//! Look-ups are not carried: they are made again from the entries. Entities keep their ids, also
//! in another project; there, an entity of the id that the same name would get is merged into
//! the one that came, so that what is stored by name reaches it.

use std::collections::BTreeSet;

use tine_core::facts::{Endpoint, Observation, identity};
use tine_core::json::Json;
use tine_core::{Digest, EntityId, InterpretationId, ObservationId, ProjectId, SourceId};
use tine_store::{EntryKind, PIECE_BYTES, Read, Write, required};

use super::BundleRecord;
use crate::commits::upkeep;
use crate::knowledge::{
    EntityRecord, Ledger, RunRecord, SourceRecord, erase, keys, parse, put_observation, sealed, set,
};
use crate::log::change::{Change, OperationDetail};
use crate::{Error, Result};

/// What a log tells of.
#[derive(Default)]
pub(super) struct Told {
    observed: BTreeSet<ObservationId>,
    /// Entries that the log itself changed.
    changed: BTreeSet<(EntryKind, Vec<u8>)>,
    runs: BTreeSet<InterpretationId>,
    sources: BTreeSet<SourceId>,
}

impl Told {
    /// Takes in the detail of an operation.
    pub(super) fn add(&mut self, detail: &str) {
        let Some(known) = parse(detail).and_then(|json| OperationDetail::from_json(&json)) else {
            return;
        };
        for change in &known.changes {
            match change {
                Change::Observed { id, .. } => {
                    self.observed.insert(*id);
                }
                Change::Entry { kind, key, .. } => {
                    self.changed.insert((*kind, key.clone()));
                }
                _ => {}
            }
        }
        self.sources.extend(known.told::<SourceId>("source_id"));
        self.runs.extend(known.told::<InterpretationId>("interpretation_id"));
    }

    /// Entries that the log changed, whether they are there still or not.
    pub(super) fn changed(self) -> BTreeSet<(EntryKind, Vec<u8>)> {
        self.changed
    }

    /// Hands out the entries, sorted by kind and key, and then the bytes of the sources.
    pub(super) fn export(
        mut self,
        records: &dyn Read,
        project: &ProjectId,
        visit: &mut dyn FnMut(BundleRecord) -> Result<()>,
    ) -> Result<()> {
        let ledger = Ledger::new(records, project);
        let wanted = self.everything(&ledger)?;
        for (kind, key) in &wanted {
            let Some(text) = records.entry(project, *kind, key)? else {
                continue;
            };
            let text = match kind {
                // Merging and deleting is the project's affair.
                EntryKind::Entity if !self.changed.contains(&(*kind, key.clone())) => {
                    base_form(key, &text)?
                }
                _ => text,
            };
            visit(BundleRecord::Entry { kind: *kind, key: key.clone(), text })?;
        }
        for source in &self.sources {
            let Some(known) = ledger.source(*source)?.filter(|known| !known.purged) else {
                continue;
            };
            let mut left = known.size_bytes;
            let mut nth = 0;
            while left > 0 {
                let bytes = records.piece(project, source, nth)?;
                let bytes = required(bytes, || format!("piece {nth} of source {source}"))?;
                left = left.saturating_sub(bytes.len() as u64);
                visit(BundleRecord::Piece { source: *source, nth, bytes })?;
                nth += 1;
            }
        }
        Ok(())
    }

    /// Follows what the log tells of to all that it rests on.
    fn everything(&mut self, ledger: &Ledger<'_>) -> Result<BTreeSet<(EntryKind, Vec<u8>)>> {
        let mut wanted = self.changed.clone();
        for (_, key) in self.changed.iter().filter(|(kind, _)| *kind == EntryKind::CommitListed) {
            let commit = upkeep::commit_of_listed(key);
            wanted.extend(commit.map(|commit| (EntryKind::Commit, commit)));
        }
        let mut ends = BTreeSet::new();
        for id in &self.observed {
            wanted.insert((EntryKind::Observation, keys::observation(*id)));
            wanted.insert((EntryKind::Entity, id.entity.as_bytes().to_vec()));
            let Some(one) = ledger.observation(*id)? else {
                continue;
            };
            wanted.insert((EntryKind::Schema, keys::schema(&one.entity_type, one.schema_version)));
            self.runs.extend(one.interpretation);
            self.sources.extend(one.source);
            if one.origin == tine_core::facts::Origin::Turn {
                ends.insert(Endpoint::Entity(id.entity));
                ends.extend(one.turn.map(Endpoint::Turn));
            }
        }
        for run in &self.runs {
            wanted.insert((EntryKind::Run, run.as_bytes().to_vec()));
            if let Some(run) = ledger.run(*run)? {
                self.sources.insert(run.view.source);
                let prompt = run.view.detail.get("prompt_hash").and_then(Json::as_str);
                if let Some(hash) = prompt.and_then(|hash| hash.parse::<Digest>().ok()) {
                    wanted.insert((EntryKind::Prompt, hash.0.to_vec()));
                }
            }
        }
        for end in ends {
            for key in ledger.under(EntryKind::Relationship, &end.to_bytes())? {
                // An attachment comes along with its message.
                if let Some(Endpoint::Source(source)) = keys::Edge::from_key(&key).map(|e| e.target)
                {
                    self.sources.insert(source);
                }
                wanted.insert((EntryKind::Relationship, key));
            }
        }
        for source in &self.sources {
            wanted.insert((EntryKind::Source, source.as_bytes().to_vec()));
        }
        Ok(wanted)
    }
}

/// An entity without what the project did to it.
fn base_form(key: &[u8], text: &str) -> Result<String> {
    let entity = keys::entity_at_end(key)
        .and_then(|id| parse(text).and_then(|json| EntityRecord::from_json(id, &json)));
    let entity = required(entity, || "an entity".to_owned())?;
    let base = EntityRecord { merged: None, deleted_at: None, ..entity };
    Ok(base.to_json().to_canonical())
}

/// Entries and bytes that came with a conversation.
#[derive(Default)]
pub(super) struct Brought {
    pub entries: Vec<(EntryKind, Vec<u8>, String)>,
    pub pieces: Vec<(SourceId, u32, Vec<u8>)>,
}

impl Brought {
    /// Adds what is not here yet. `owned` says that the log is the project's own, whose word on
    /// entities counts.
    pub(super) fn store(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        owned: bool,
        erased: &mut erase::Plan,
    ) -> Result<()> {
        for (kind, key, text) in &self.entries {
            let present = records.entry(project, *kind, key)?;
            if present.as_ref() == Some(text) {
                continue;
            }
            let entry = (*kind, key.as_slice(), text.as_str());
            self.entry(records, project, owned, entry, present.as_deref(), erased)?;
        }
        Ok(())
    }

    /// Removes what the project's own log tells of and did not bring: it was removed there.
    pub(super) fn remove_absent(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        told: Told,
    ) -> Result<()> {
        let brought: BTreeSet<(EntryKind, &[u8])> =
            self.entries.iter().map(|(kind, key, _)| (*kind, key.as_slice())).collect();
        for (kind, key) in told.changed() {
            let removable = matches!(kind, EntryKind::Relationship | EntryKind::Moved);
            if removable
                && !brought.contains(&(kind, key.as_slice()))
                && records.entry(project, kind, &key)?.is_some()
            {
                set(records, project, kind, &key, None)?;
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        owned: bool,
        (kind, key, text): (EntryKind, &[u8], &str),
        present: Option<&str>,
        erased: &mut erase::Plan,
    ) -> Result<()> {
        let name = || format!("{} {}", kind.as_str(), tine_core::hash::to_hex(key));
        let json = || damaged(parse(text), name);
        match kind {
            EntryKind::Entity if present.is_none() || owned => {
                set(records, project, kind, key, Some(&json()?))?;
                let id = damaged(keys::entity_at_end(key), name)?;
                let entity = damaged(EntityRecord::from_json(id, &json()?), name)?;
                lead_by_name(records, project, &entity)
            }
            EntryKind::Moved | EntryKind::Schema | EntryKind::Relationship
                if present.is_none() || owned =>
            {
                set(records, project, kind, key, Some(&json()?))
            }
            EntryKind::Observation if present.is_none() => {
                let id = damaged(keys::observation_at_end(key), name)?;
                match json()?.get("purged") {
                    Some(_) => Ok(records.put_entry(project, kind, key, text)?),
                    None => {
                        let one = damaged(Observation::from_json(id, &json()?), name)?;
                        put_observation(records, project, &one, text)
                    }
                }
            }
            EntryKind::Observation => {
                if present.and_then(sealed) != sealed(text) {
                    let why = "another observation of the same id is here";
                    return Err(Error::Invalid(format!("{}: {why}", name())));
                }
                if json()?.get("purged").is_some() {
                    erased.observations.insert(damaged(keys::observation_at_end(key), name)?);
                }
                Ok(())
            }
            EntryKind::Source if present.is_none() => {
                let id = damaged(keys::source_at_end(key), name)?;
                let source = damaged(SourceRecord::from_json(id, &json()?), name)?;
                self.source(records, project, &source)?;
                set(records, project, kind, key, Some(&json()?))
            }
            EntryKind::Source if is_purged(&json()?) && !present.is_some_and(is_purged_text) => {
                let id = damaged(keys::source_at_end(key), name)?;
                erased.add_source(&Ledger::new(&*records, project), id)
            }
            EntryKind::Run => {
                let id = damaged(keys::run_at_end(key), name)?;
                let run = damaged(RunRecord::from_json(id, &json()?), name)?;
                let known = present.and_then(parse);
                let known = known.and_then(|json| RunRecord::from_json(id, &json));
                // One that has ended here stays as it ended, unless what was said in it is gone.
                let is_purged = |run: &RunRecord| run.view.detail.get("purged").is_some();
                let purged = is_purged(&run);
                erased.answers |= purged && known.as_ref().is_some_and(|known| !is_purged(known));
                if known.is_none_or(|known| purged || known.view.status.is_open()) {
                    run.write(records, project)?;
                }
                Ok(())
            }
            EntryKind::Prompt if present.is_none() => {
                if Digest::of(text.as_bytes()).0.as_slice() != key {
                    return Err(Error::Invalid(format!("{}: its hash does not fit it", name())));
                }
                Ok(records.put_entry(project, kind, key, text)?)
            }
            EntryKind::Entity
            | EntryKind::Moved
            | EntryKind::Schema
            | EntryKind::Relationship
            | EntryKind::Source
            | EntryKind::Prompt => Ok(()),
            kind if upkeep::is_commit_kind(kind) => Ok(()),
            _ => Err(Error::Invalid(format!("{}: a look-up is made, not brought", name()))),
        }
    }

    fn source(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        source: &SourceRecord,
    ) -> Result<()> {
        if source.purged {
            return Ok(());
        }
        let mut hash = tine_core::hash::Hasher::default();
        let (mut size, mut next) = (0_u64, 0);
        // They come sorted by source.
        let first = self.pieces.partition_point(|(of, ..)| *of < source.id);
        for (of, nth, bytes) in &self.pieces[first..] {
            if *of != source.id {
                break;
            }
            if *nth != next || bytes.len() > PIECE_BYTES {
                break;
            }
            hash.update(bytes);
            size += bytes.len() as u64;
            next += 1;
            records.insert_piece(project, &source.id, *nth, bytes)?;
        }
        if hash.finish() != source.content_hash || size != source.size_bytes {
            return Err(Error::Invalid(format!(
                "the bundle is damaged: source {}: its bytes do not fit its hash",
                source.id
            )));
        }
        Ok(())
    }
}

fn is_purged(json: &Json) -> bool {
    json.get("purged").and_then(Json::as_bool) == Some(true)
}

fn is_purged_text(text: &str) -> bool {
    parse(text).is_some_and(|json| is_purged(&json))
}

fn damaged<T>(found: Option<T>, what: impl Fn() -> String) -> Result<T> {
    found.ok_or_else(|| Error::Invalid(format!("the bundle is damaged: {}", what())))
}

/// Makes what is stored by name in this project reach an entity that came from another.
fn lead_by_name(records: &mut dyn Write, project: &ProjectId, entity: &EntityRecord) -> Result<()> {
    if entity.key.is_null() || entity.conversation.is_some() {
        return Ok(());
    }
    let here: EntityId = identity::entity_id(project, &entity.entity_type, &entity.key);
    let key = here.as_bytes().as_slice();
    if here == entity.id || records.entry(project, EntryKind::Entity, key)?.is_some() {
        return Ok(());
    }
    let lead = EntityRecord {
        id: here,
        merged: Some((entity.id, entity.first_seen)),
        deleted_at: None,
        ..entity.clone()
    };
    set(records, project, EntryKind::Entity, key, Some(&lead.to_json()))
}

//! Whether what was learned is what the logs say and the hashes seal.

use std::collections::BTreeMap;

use tine_core::hash::Hasher;
use tine_core::json::Json;
use tine_core::{Digest, ObservationId, ProjectId, SourceId};
use tine_store::{EntryKind, KeyRange, Problem, Read};

use super::Checker;
use crate::census::damage;
use crate::commits::upkeep;
use crate::expected::Expected;
use crate::learned::{Ledger, keys, parse, sealed};
use crate::{Engine, Result};

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// Observations that the logs of a project tell of, with what they seal.
pub(super) type Observed = BTreeMap<ObservationId, Digest>;

impl Checker<'_> {
    /// Every observation that the log tells of is there as it was made, and every entry that
    /// only this log changes is as it left it.
    pub(super) fn learned(&mut self, expected: &Expected) -> Result<()> {
        let project = &self.conversation.project;
        for Problem { record, why } in not_as_told(self.records, project, expected)? {
            self.problem(record, why);
        }
        for Problem { record, why } in upkeep::check(self.records, self.conversation, expected)? {
            self.problem(record, why);
        }
        Ok(())
    }
}

/// What was learned and is not as a log tells of it.
pub(crate) fn not_as_told(
    records: &dyn Read,
    project: &ProjectId,
    expected: &Expected,
) -> Result<Vec<Problem>> {
    let mut found = Vec::new();
    let mut problem = |record: String, why: &str| {
        found.push(Problem { record, why: why.to_owned() });
    };
    for (id, digest) in &expected.observed {
        let key = keys::observation(*id);
        match records.entry(project, EntryKind::Observation, &key)? {
            None => problem(format!("observation {id}"), "it is missing"),
            Some(text) if sealed(&text) != Some(*digest) => {
                problem(format!("observation {id}"), "it is not as it was made");
            }
            Some(_) => {}
        }
    }
    for ((kind, key), value) in &expected.entries {
        // Others are changed from several logs.
        let own = [EntryKind::Entity, EntryKind::Moved, EntryKind::Schema].contains(kind)
            || upkeep::is_commit_kind(*kind);
        let present = records.entry(project, *kind, key)?;
        let present = present.as_deref().and_then(parse);
        if own && expected.complete && present != *value {
            let what = format!("{} {}", kind.as_str(), crate::change::hex(key));
            problem(what, "it is not as the log left it");
        }
    }
    Ok(found)
}

impl Engine {
    /// The part that belongs to no log alone: the bytes of sources, and observations that no log
    /// tells of.
    pub(super) fn verify_learned(
        &self,
        project: &ProjectId,
        observed: Option<&Observed>,
        problems: &mut Vec<Problem>,
    ) -> Result<u64> {
        let mut sources = 0;
        for (key, text) in self.all(project, EntryKind::Source, problems)? {
            sources += 1;
            let id = keys::source_at_end(&key);
            let checked = self.read(|records| check_source(records, project, id, &text));
            let found = match checked {
                Ok(None) => continue,
                Ok(Some(why)) => Problem { record: source_name(id), why },
                Err(error) => damage(error)?,
            };
            problems.push(found);
        }
        match self.read(|records| upkeep::check_rings(records, project)) {
            Ok(found) => problems.extend(found),
            Err(error) => problems.push(damage(error)?),
        }
        let Some(observed) = observed else {
            return Ok(sources);
        };
        for (key, _) in self.all(project, EntryKind::Observation, problems)? {
            let known = keys::observation_at_end(&key);
            if !known.is_some_and(|id| observed.contains_key(&id)) {
                let name = known.map_or_else(|| "an observation".to_owned(), |id| id.to_string());
                let why = "no log tells of it".to_owned();
                problems.push(Problem { record: format!("observation {name}"), why });
            }
        }
        Ok(sources)
    }

    /// All entries of a kind: an observation's and a source's are small.
    fn all(
        &self,
        project: &ProjectId,
        kind: EntryKind,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<(Vec<u8>, String)>> {
        let mut found = Vec::new();
        let mut range = KeyRange::prefix(&[]);
        loop {
            let page = match self.read(|records| Ok(records.entries(project, kind, &range, PAGE)?))
            {
                Ok(page) => page,
                Err(error) => {
                    problems.push(damage(error)?);
                    return Ok(found);
                }
            };
            let Some(last) = page.last() else {
                return Ok(found);
            };
            range = KeyRange::behind(&[], &last.key);
            found.extend(page.into_iter().map(|entry| (entry.key, entry.text)));
        }
    }
}

fn source_name(id: Option<SourceId>) -> String {
    id.map_or_else(|| "a source".to_owned(), |id| format!("source {id}"))
}

/// What is wrong with a source, if anything.
fn check_source(
    records: &dyn Read,
    project: &ProjectId,
    id: Option<SourceId>,
    text: &str,
) -> Result<Option<String>> {
    let unreadable = || Some("it cannot be read".to_owned());
    let (Some(id), Some(json)) = (id, parse(text)) else {
        return Ok(unreadable());
    };
    if json.get("purged").and_then(Json::as_bool) == Some(true) {
        return Ok(None);
    }
    let Some(source) = Ledger::new(records, project).source(id)? else {
        return Ok(unreadable());
    };
    let mut hash = Hasher::default();
    let (mut size, mut nth) = (0_u64, 0);
    while let Some(piece) = records.piece(project, &id, nth)? {
        hash.update(&piece);
        size += piece.len() as u64;
        nth += 1;
    }
    if hash.finish() != source.content_hash || size != source.size_bytes {
        return Ok(Some("its bytes do not fit its hash".to_owned()));
    }
    Ok(None)
}

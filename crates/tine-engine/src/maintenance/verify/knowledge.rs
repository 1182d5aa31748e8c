//! Whether what was learned is what the logs say and the hashes seal.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use tine_core::hash::Hasher;
use tine_core::json::Json;
use tine_core::{Digest, ObservationId, ProjectId, SourceId};
use tine_store::{Entry, EntryKind, FeedPosition, KeyRange, Problem, Read};

use super::Checker;
use crate::commits::upkeep;
use crate::knowledge::{Ledger, keys, look_ups, parse, sealed};
use crate::log::change::Change;
use crate::log::history::detail;
use crate::maintenance::census::damage;
use crate::maintenance::expected::Expected;
use crate::{Engine, Result};

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// What is said of an observation that nobody made.
const UNTOLD: &str = "no log tells of it";

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
            let what = format!("{} {}", kind.as_str(), tine_core::hash::to_hex(key));
            problem(what, "it is not as the log left it");
        }
    }
    Ok(found)
}

impl Engine {
    /// The part that belongs to no log alone: the bytes of sources, observations that no log
    /// tells of, and what leads from one entry to another.
    pub(super) fn verify_learned(
        &self,
        project: &ProjectId,
        observed: Option<&Observed>,
        began: FeedPosition,
        problems: &mut Vec<Problem>,
    ) -> Result<u64> {
        let mut sources = 0;
        for kind in EntryKind::ALL {
            let mut range = KeyRange::prefix(&[]);
            loop {
                let read = self.read(|records| {
                    let page = records.entries(project, kind, &range, PAGE)?;
                    let ledger = Ledger::new(records, project);
                    let mut found = Vec::new();
                    let newer = OnceCell::new();
                    for entry in &page {
                        let mut wrong = check_entry(&ledger, kind, entry, observed)?;
                        // Operations that came since the logs were read tell of what they made.
                        if wrong == Some(UNTOLD) {
                            let newer: &BTreeSet<_> = match newer.get() {
                                Some(newer) => newer,
                                None => {
                                    let found = observed_since(records, began)?;
                                    newer.get_or_init(|| found)
                                }
                            };
                            let id = keys::observation_at_end(&entry.key);
                            wrong = wrong.filter(|_| !id.is_some_and(|id| newer.contains(&id)));
                        }
                        found.extend(wrong.map(|why| problem(kind, &entry.key, why)));
                    }
                    Ok((page, found))
                });
                let page = match read {
                    Ok((page, found)) => {
                        problems.extend(found);
                        page
                    }
                    Err(error) => {
                        problems.push(damage(error)?);
                        break;
                    }
                };
                let Some(last) = page.last() else {
                    break;
                };
                range = KeyRange::behind(&[], &last.key);
                if kind == EntryKind::Source {
                    sources += page.len() as u64;
                    self.verify_sources(project, &page, problems)?;
                }
            }
        }
        match self.read(|records| upkeep::check_rings(records, project)) {
            Ok(found) => problems.extend(found),
            Err(error) => problems.push(damage(error)?),
        }
        Ok(sources)
    }

    /// One read for each source: its bytes may be many.
    fn verify_sources(
        &self,
        project: &ProjectId,
        page: &[Entry],
        problems: &mut Vec<Problem>,
    ) -> Result<()> {
        for entry in page {
            let id = keys::source_at_end(&entry.key);
            match self.read(|records| check_source(records, project, id, &entry.key)) {
                Ok(None) => {}
                Ok(Some(why)) => problems.push(Problem { record: source_name(id), why }),
                Err(error) => problems.push(damage(error)?),
            }
        }
        Ok(())
    }
}

/// What was observed since a place in the feed.
fn observed_since(records: &dyn Read, began: FeedPosition) -> Result<BTreeSet<ObservationId>> {
    let mut found = BTreeSet::new();
    let mut after = began;
    loop {
        let page = records.feed(after, PAGE)?;
        let Some((last, _)) = page.last() else {
            return Ok(found);
        };
        after = *last;
        for (_, operation) in &page {
            let changes = detail(operation).map_or_else(|_| Vec::new(), |detail| detail.changes);
            found.extend(changes.iter().filter_map(|change| match change {
                Change::Observed { id, .. } => Some(*id),
                _ => None,
            }));
        }
    }
}

fn problem(kind: EntryKind, key: &[u8], why: &str) -> Problem {
    let name = match (kind, keys::observation_at_end(key)) {
        (EntryKind::Observation, Some(id)) => id.to_string(),
        _ => tine_core::hash::to_hex(key),
    };
    Problem { record: format!("{} {name}", kind.as_str()), why: why.to_owned() }
}

/// What is wrong with an entry in the eyes of the others, if anything.
fn check_entry(
    ledger: &Ledger<'_>,
    kind: EntryKind,
    entry: &Entry,
    observed: Option<&Observed>,
) -> Result<Option<&'static str>> {
    if look_ups::is_look_up(kind) {
        return Ok((!leads_somewhere(ledger, kind, entry)?).then_some("it leads nowhere"));
    }
    if kind == EntryKind::Prompt {
        let fits = Digest::of(entry.text.as_bytes()).0.as_slice() == entry.key;
        return Ok((!fits).then_some("its hash does not fit it"));
    }
    if kind == EntryKind::Observation {
        let id = keys::observation_at_end(&entry.key);
        if observed.is_some_and(|all| id.is_none_or(|id| !all.contains_key(&id))) {
            return Ok(Some(UNTOLD));
        }
        if id.is_none_or(|id| matches!(ledger.entity(id.entity), Ok(None))) {
            return Ok(Some("its entity is missing"));
        }
    }
    let value = parse(&entry.text).unwrap_or(Json::Null);
    for (kind, key, text) in look_ups::of(kind, &entry.key, &value) {
        if ledger.records.entry(ledger.project, kind, &key)? != Some(text) {
            return Ok(Some("what leads to it is missing"));
        }
    }
    Ok(None)
}

fn leads_somewhere(ledger: &Ledger<'_>, kind: EntryKind, entry: &Entry) -> Result<bool> {
    let Some((of, key)) = look_ups::owner(kind, &entry.key, &entry.text) else {
        return Ok(false);
    };
    let Some(value) = ledger.entry(of, &key)? else {
        return Ok(false);
    };
    // What was erased once kept the turn that it was about.
    let erased = kind == EntryKind::ObservationOfTurn && value.get("purged").is_some();
    let this = (kind, entry.key.clone(), entry.text.clone());
    Ok(erased || look_ups::of(of, &key, &value).contains(&this))
}

fn source_name(id: Option<SourceId>) -> String {
    id.map_or_else(|| "a source".to_owned(), |id| format!("source {id}"))
}

/// What is wrong with a source, if anything.
fn check_source(
    records: &dyn Read,
    project: &ProjectId,
    id: Option<SourceId>,
    key: &[u8],
) -> Result<Option<String>> {
    let unreadable = || Some("it cannot be read".to_owned());
    // As it is by now: it may have been erased since it was listed.
    let text = records.entry(project, EntryKind::Source, key)?;
    let (Some(id), Some(json)) = (id, text.as_deref().and_then(parse)) else {
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

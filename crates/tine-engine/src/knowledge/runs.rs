//! Runs of interpreters over sources: queued with a store, leased to one process, done in a
//! transaction of their own, and kept with everything that happened in them.
//!
//! A run ends once: `completed` or `failed` for ever. Trying again, or with another interpreter,
//! is another run. Neither changes the source.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tine_analysis::{Interpreter, InterpreterKind};
use tine_core::json::{Json, Object, object};
use tine_core::{Digest, InterpretationId, SourceId, Timestamp};
use tine_store::{
    Family, IndexKey, IndexQuery, PromptRecord, ReadFamilies, RecordIndex, RecordKey, RecordQuery,
    RunRecord, WriteFamilies, required,
};

use super::pages::{PagedQuery, page, resume};
use super::reader::KnowledgeReader;
use crate::log::change::{text, texts};
use crate::log::mutation::{Mutation, Receipt};
use crate::{Call, Engine, Error, Listing, Page, Result};
use crate::{
    ChangedFinding, InterpretationView, ObservationView, QueueStatus, Reinterpret, RunComparison,
    RunPair, RunQuery, RunStatus,
};

/// The interpreter that is always there.
pub const RULES: &str = "rules";

/// Sources that one call may queue.
const QUEUED_AT_ONCE: usize = 1_000;

/// The interpreters that an engine can ask, by name.
#[derive(Clone)]
pub struct Interpreters {
    by_name: BTreeMap<String, Arc<dyn Interpreter>>,
    default: String,
}

impl Interpreters {
    /// Returns the built-in interpreter alone.
    pub fn rules() -> Self {
        let rules: Arc<dyn Interpreter> = Arc::new(tine_analysis::rules::Rules);
        let by_name = BTreeMap::from([(RULES.to_owned(), rules)]);
        Interpreters { by_name, default: RULES.to_owned() }
    }

    /// Adds an interpreter.
    pub fn with(mut self, interpreter: Arc<dyn Interpreter>) -> Self {
        self.by_name.insert(interpreter.about().name, interpreter);
        self
    }

    /// Sets the default interpreter, which must be available.
    pub fn by_default(self, name: &str) -> Result<Self> {
        self.get(Some(name))?;
        Ok(Interpreters { default: name.to_owned(), ..self })
    }

    pub(crate) fn get(&self, name: Option<&str>) -> Result<&Arc<dyn Interpreter>> {
        let name = name.unwrap_or(&self.default);
        self.by_name.get(name).ok_or_else(|| {
            let available: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            Error::invalid(format!(
                "there is no interpreter `{name}` here; available: {}",
                available.join(", ")
            ))
        })
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(crate) fn default_name(&self) -> &str {
        &self.default
    }
}

/// Returns the run as callers see it.
pub(super) fn run_view(run: RunRecord) -> InterpretationView {
    InterpretationView {
        id: run.id,
        source: run.source,
        status: run.status,
        interpreter: run.interpreter,
        queued_at: run.queued_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
        attempts: run.attempts,
        retry_of: run.retry_of,
        observations: run.observations,
        unknown_fields: run.unknown_fields,
        notes: run.notes,
        error: run.error,
        detail: run.detail,
    }
}

/// Makes a run that waits.
pub(super) fn new_run(
    mutation: &Mutation<'_>,
    id: InterpretationId,
    source: SourceId,
    interpreter: &str,
) -> RunRecord {
    RunRecord {
        id,
        source,
        status: RunStatus::Queued,
        interpreter: interpreter.to_owned(),
        queued_at: mutation.now,
        started_at: None,
        finished_at: None,
        attempts: 0,
        retry_of: None,
        observations: Vec::new(),
        unknown_fields: Vec::new(),
        notes: Vec::new(),
        error: None,
        detail: Object::new(),
        due: mutation.now,
        owner: None,
        requested_by: mutation.call.actor.clone(),
    }
}

/// Returns whether a process holds the lease of a run.
pub(super) fn is_leased(run: &RunRecord, now: Timestamp) -> bool {
    run.status == RunStatus::Running && run.due > now
}

/// Queues a run in the transaction of whatever stored its source.
pub(crate) fn queue(
    mutation: &mut Mutation<'_>,
    source: SourceId,
    interpreter: Option<&str>,
    retry_of: Option<InterpretationId>,
) -> Result<InterpretationId> {
    let name = interpreter.unwrap_or(mutation.engine.interpreters().default_name());
    let id = mutation.new_interpretation_id();
    let run = RunRecord { retry_of, ..new_run(mutation, id, source, name) };
    mutation.records.insert(&mutation.call.project, &run)?;
    mutation.fact_also("interpretation_id", text(&id));
    Ok(id)
}

/// The runs that a call queued.
#[derive(Serialize, Deserialize)]
struct QueuedRuns(Vec<InterpretationId>);

impl Receipt for QueuedRuns {}

impl Engine {
    /// Returns one run, with everything that was kept of it.
    pub fn interpretation(&self, call: &Call, id: InterpretationId) -> Result<InterpretationView> {
        self.read(|records| {
            Ok(run_view(KnowledgeReader::new(records, &call.project).require_run(id)?))
        })
    }

    /// Runs in the order in which they were asked for, those of a source or those that wait or
    /// work; without the bytes of requests and responses.
    pub fn interpretations(
        &self,
        call: &Call,
        query: RunQuery,
        Page { limit, cursor }: Page,
    ) -> Result<Listing<InterpretationView>> {
        let limit = self.page_limit(limit)?;
        let indexed = match (query.source, query.open) {
            (Some(source), _) => IndexQuery::runs_of(&source),
            (None, true) => IndexQuery::all(RecordIndex::QueuedRun),
            (None, false) => {
                let all = resume(RecordQuery::all(Family::Run), cursor.as_deref())?;
                return self.list_runs(call, &query, all, limit, |it| Some(it.key().clone()));
            }
        };
        let indexed = resume(indexed, cursor.as_deref())?;
        self.list_runs(call, &query, indexed, limit, IndexKey::owner)
    }

    fn list_runs<Q: PagedQuery + Clone>(
        &self,
        call: &Call,
        query: &RunQuery,
        listed: Q,
        limit: usize,
        key_of: impl Fn(&Q::Item) -> Option<RecordKey>,
    ) -> Result<Listing<InterpretationView>> {
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            if let Some(source) = query.source {
                knowledge.require_source(source)?;
            }
            page(&knowledge, listed.clone(), limit, |item| {
                let Some(RecordKey::Run(id)) = key_of(item) else {
                    return Ok(None);
                };
                let run = knowledge.require_run(id)?;
                let listed = !query.open || run.status.is_open();
                Ok(listed.then(|| without_bytes(run_view(run))))
            })
        })
    }

    /// Returns the state of the queue and the available interpreters.
    pub fn interpretation_queue(&self, call: &Call) -> Result<QueueStatus> {
        let interpreters = self.interpreters();
        let descriptions = interpreters.by_name.iter().map(|(name, it)| {
            let about = it.about();
            let kind = kind_name(about.kind);
            let model = about.model.map_or(String::new(), |model| format!(", {model}"));
            (name.clone(), format!("{kind} {}{model}", about.version))
        });
        let mut status = QueueStatus {
            interpreters: descriptions.collect(),
            default: interpreters.default.clone(),
            ..QueueStatus::default()
        };
        let mut page = Page::default();
        loop {
            let query = RunQuery { open: true, ..RunQuery::default() };
            let found = self.interpretations(call, query, page)?;
            for run in &found.items {
                match run.status {
                    RunStatus::Running => status.running += 1,
                    _ => status.queued += 1,
                }
            }
            match found.next {
                Some(next) => page = Page { cursor: Some(next), ..Page::default() },
                None => return Ok(status),
            }
        }
    }

    /// Queues runs over sources that are here already. Old runs and the sources stay as they are.
    pub fn reinterpret(
        &self,
        call: &Call,
        request: Reinterpret,
    ) -> Result<Vec<InterpretationView>> {
        self.interpreter(request.interpreter.as_deref())?;
        let by_filter = request.sources.is_empty();
        if by_filter
            && request.mime_type.is_none()
            && request.since.is_none()
            && request.until.is_none()
            && !request.failed
        {
            return Err(Error::invalid("choose sources by id, mime type, time or failure"));
        }
        let sources = match by_filter {
            true => self.sources_to_read(call, &request)?,
            false => request.sources.clone(),
        };
        if sources.len() > QUEUED_AT_ONCE {
            let (what, limit, given) = ("sources in one call", QUEUED_AT_ONCE, sources.len());
            return Err(Error::TooLarge { what, limit, given });
        }
        let wait = request.wait;
        let payload = |(request, sources): &(Reinterpret, Vec<SourceId>)| {
            object([
                ("interpreter", request.interpreter.clone().into()),
                ("sources", texts(sources)),
            ])
        };
        let selection = (request, sources);
        let (queued, _) = self.mutate(
            call,
            "reinterpret",
            selection,
            payload,
            |mutation, (request, sources)| {
                mutation.open_project_log()?;
                let mut queued = Vec::new();
                for source in sources {
                    let record = mutation.knowledge().require_source(*source)?;
                    if record.purged {
                        let why = format!("the bytes of {source} were purged");
                        return Err(Error::Unsupported(why));
                    }
                    let interpreter = request.interpreter.as_deref();
                    queued.push(queue(mutation, *source, interpreter, None)?);
                }
                Ok(QueuedRuns(queued))
            },
        )?;
        let mut views = Vec::new();
        for run in queued.0 {
            if wait {
                self.run_now(call, run)?;
            }
            views.push(without_bytes(self.interpretation(call, run)?));
        }
        Ok(views)
    }

    /// Sources that a filter names and that can be read.
    fn sources_to_read(&self, call: &Call, request: &Reinterpret) -> Result<Vec<SourceId>> {
        let mut found = Vec::new();
        let mut page = Page::default();
        loop {
            let listed = self.sources(call, page)?;
            for source in &listed.items {
                let named = request.mime_type.as_ref().is_none_or(|it| *it == source.mime_type)
                    && request.since.is_none_or(|since| source.stored_at >= since)
                    && request.until.is_none_or(|until| source.stored_at < until)
                    && !source.purged
                    && super::sources::is_text(&source.mime_type);
                if named && (!request.failed || self.last_run_failed(call, source.id)?) {
                    found.push(source.id);
                }
            }
            match listed.next {
                Some(next) if found.len() <= QUEUED_AT_ONCE => {
                    page = Page { cursor: Some(next), ..Page::default() };
                }
                _ => return Ok(found),
            }
        }
    }

    fn last_run_failed(&self, call: &Call, source: SourceId) -> Result<bool> {
        self.read(|records| {
            let newest_first = IndexQuery::runs_of(&source).backwards();
            let last = records.index_keys(&call.project, &newest_first, 1)?.pop();
            let Some(IndexKey::RunOfSource { run, .. }) = last else {
                return Ok(false);
            };
            let run = KnowledgeReader::new(records, &call.project).require_run(run)?;
            Ok(run.status == RunStatus::Failed)
        })
    }

    /// Tries a failed run again: another run over the same source by the same interpreter.
    pub fn retry_interpretation(
        &self,
        call: &Call,
        id: InterpretationId,
    ) -> Result<InterpretationView> {
        let payload = |id: &InterpretationId| object([("interpretation_id", text(id))]);
        let (queued, _) =
            self.mutate(call, "retry_interpretation", id, payload, |mutation, id| {
                mutation.open_project_log()?;
                let failed = mutation.knowledge().require_run(*id)?;
                if failed.status != RunStatus::Failed {
                    return Err(Error::invalid(format!(
                        "{id} is {}; only a failed run can be retried; reinterpret the source instead",
                        failed.status.as_str()
                    )));
                }
                let interpreter = Some(failed.interpreter.as_str());
                Ok(QueuedRuns(vec![queue(mutation, failed.source, interpreter, Some(*id))?]))
            })?;
        let run = queued.0.first().copied();
        self.interpretation(call, required(run, || format!("retry of {id}"))?)
    }

    /// Compares the findings of two runs.
    pub fn compare_interpretations(&self, call: &Call, pair: RunPair) -> Result<RunComparison> {
        let found = |id: InterpretationId| -> Result<Vec<ObservationView>> {
            let run = self.interpretation(call, id)?;
            self.observations_by_id(call, &run.observations)
        };
        let (before, after) = (found(pair.before)?, found(pair.after)?);
        Ok(compare(pair, before, after))
    }
}

/// Findings match when they speak of the same entity; of several about one, those that say the
/// same match first.
fn compare(
    pair: RunPair,
    before: Vec<ObservationView>,
    after: Vec<ObservationView>,
) -> RunComparison {
    let mut comparison = RunComparison {
        before: pair.before,
        after: pair.after,
        gained: Vec::new(),
        lost: before,
        changed: Vec::new(),
        same: 0,
    };
    let mut rest = Vec::new();
    for one in after {
        let same = |old: &ObservationView| {
            let (old, new) = (&old.observation, &one.observation);
            old.id.entity == new.id.entity && old.fields == new.fields && old.span == new.span
        };
        match comparison.lost.iter().position(same) {
            Some(at) => {
                comparison.lost.remove(at);
                comparison.same += 1;
            }
            None => rest.push(one),
        }
    }
    for one in rest {
        let entity = one.observation.id.entity;
        let about = |old: &ObservationView| old.observation.id.entity == entity;
        match comparison.lost.iter().position(about) {
            Some(at) => {
                let old = comparison.lost.remove(at);
                let fields = differing(&old.observation.fields, &one.observation.fields);
                comparison.changed.push(ChangedFinding { before: old, after: one, fields });
            }
            None => comparison.gained.push(one),
        }
    }
    comparison
}

fn differing(before: &Object, after: &Object) -> Vec<String> {
    let mut names: Vec<&str> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| before.get(name) != after.get(name));
    names.into_iter().map(str::to_owned).collect()
}

/// Returns a run as it is listed: without the bytes of its request and response.
pub(crate) fn without_bytes(mut view: InterpretationView) -> InterpretationView {
    view.detail.remove("request");
    view.detail.remove("response");
    view
}

pub(crate) fn kind_name(kind: InterpreterKind) -> &'static str {
    match kind {
        InterpreterKind::Rules => "rules",
        InterpreterKind::Model => "model",
        InterpreterKind::Agent => "agent",
    }
}

/// Bytes as they are kept in a run: text as it is, anything else in hexadecimal digits.
pub(crate) fn bytes_json(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => object([("hex", tine_core::hash::to_hex(bytes).into())]),
    }
}

/// Decodes bytes that [`bytes_json`] encoded.
pub(crate) fn bytes_from(json: &Json) -> Option<Vec<u8>> {
    match json {
        Json::String(text) => Some(text.clone().into_bytes()),
        other => tine_core::hash::from_hex(other.get("hex")?.as_str()?),
    }
}

/// Keeps a prompt once, under its hash.
pub(crate) fn keep_prompt(mutation: &mut Mutation<'_>, prompt: &str) -> Result<Digest> {
    let (digest, project) = (Digest::of(prompt.as_bytes()), &mutation.call.project);
    if !mutation.reader().has(project, &RecordKey::Prompt(digest))? {
        mutation.records.insert(project, &PromptRecord { digest, text: prompt.to_owned() })?;
    }
    Ok(digest)
}

impl Engine {
    /// Returns a prompt by its hash.
    pub fn prompt(&self, call: &Call, hash: Digest) -> Result<String> {
        let found = self.read(|records| Ok(records.get::<PromptRecord>(&call.project, &hash)?))?;
        Ok(found.ok_or_else(|| Error::not_found("prompt", hash.to_hex()))?.text)
    }
}

//! Execution of a run: claimed, executed outside of transactions, finished in one.
//!
//! A run is leased to one worker at a time, also across processes. The worker renews its lease; if
//! it dies, the lease expires and another worker starts over.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tine_analysis::{Account, Finding, Interpreter, InterpreterFailure, InterpreterKind};
use tine_core::facts::{Endpoint, Observation, ObservationOrigin, Relation, builtin, identity};
use tine_core::json::{Json, Object, object};
use tine_core::{Digest, EntityId, InterpretationId, ObservationId, ProjectId, Timestamp};
use tine_store::{
    Edge, EntityRecord, IndexKey, IndexQuery, RunRecord, SourceRecord, WriteFamilies, required,
};

use super::reader::KnowledgeReader;
use super::runs::{bytes_from, bytes_json, is_leased, keep_prompt, kind_name};
use super::sources::read;
use crate::log::mutation::Mutation;
use crate::{Call, Engine, Error, Result};
use crate::{InterpretationView, RunStatus};

/// How long a claim holds without being renewed.
const LEASE: Duration = Duration::from_secs(60);

/// How often a claim is renewed.
const RENEWED_EVERY: Duration = Duration::from_secs(20);

/// A run that was begun so often and never ended fails.
const MOST_ATTEMPTS: u32 = 5;

/// Runs that are looked at to find one that can be claimed here.
const CANDIDATES: usize = 100;

/// How long to wait for a run that another process executes.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// What became of an attempt to claim a run.
enum RunClaim {
    Mine(Box<RunRecord>),
    Elsewhere,
    Ended,
}

impl Engine {
    /// Executes one queued run, in any project, and returns its id. Runs of interpreters that are
    /// not available here are left to other workers.
    pub fn run_next(&self) -> Result<Option<InterpretationId>> {
        for project in self.projects()? {
            let call = Call::by("tine").in_project(project.id);
            for id in self.due(&call)? {
                if let RunClaim::Mine(run) = self.claim(&call, id)? {
                    self.execute_run(&call, *run)?;
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }

    /// Executes all queued runs and returns their number.
    pub fn run_pending(&self) -> Result<usize> {
        let mut done = 0;
        while self.run_next()?.is_some() {
            done += 1;
        }
        Ok(done)
    }

    /// Executes a run now, or waits until the worker that has it is done.
    pub(crate) fn run_now(&self, call: &Call, id: InterpretationId) -> Result<()> {
        let since = Instant::now();
        loop {
            let run =
                self.read(|records| KnowledgeReader::new(records, &call.project).require_run(id))?;
            if !run.status.is_open() {
                return Ok(());
            }
            if !is_leased(&run, self.now()) {
                self.interpreter(Some(&run.interpreter))?;
                match self.claim(call, id)? {
                    RunClaim::Mine(run) => return self.execute_run(call, *run),
                    RunClaim::Ended => return Ok(()),
                    RunClaim::Elsewhere => {}
                }
            }
            if since.elapsed() > LONGEST_WAIT {
                return Err(Error::Unsupported(format!(
                    "{id} is still running elsewhere; read it again later"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a run has ended; executes it here if no other worker does.
    pub fn await_interpretation(
        &self,
        call: &Call,
        id: InterpretationId,
    ) -> Result<InterpretationView> {
        self.run_now(call, id)?;
        self.interpretation(call, id)
    }

    fn due(&self, call: &Call) -> Result<Vec<InterpretationId>> {
        let now = self.now();
        self.read(|records| {
            let mut query = IndexQuery::runs_due(now);
            loop {
                let found = records.index_keys(&call.project, &query, CANDIDATES)?;
                let runnable = found.iter().filter_map(|key| match key {
                    IndexKey::QueuedRun { run, interpreter, .. } => {
                        self.interpreters().knows(interpreter).then_some(*run)
                    }
                    _ => None,
                });
                let runnable: Vec<InterpretationId> = runnable.collect();
                match found.last() {
                    Some(last) if runnable.is_empty() && found.len() == CANDIDATES => {
                        query = query.after(last);
                    }
                    _ => return Ok(runnable),
                }
            }
        })
    }

    fn claim(&self, call: &Call, id: InterpretationId) -> Result<RunClaim> {
        let (project, now) = (call.project.clone(), self.now());
        let owner = self.worker();
        self.write(move |records| {
            let mut run = KnowledgeReader::new(records, &project).require_run(id)?;
            if !run.status.is_open() {
                return Ok(RunClaim::Ended);
            }
            if is_leased(&run, now) {
                return Ok(RunClaim::Elsewhere);
            }
            if run.attempts == MOST_ATTEMPTS {
                run.status = RunStatus::Failed;
                run.finished_at = Some(now);
                run.error =
                    Some(format!("it was begun {MOST_ATTEMPTS} times and never came to an end"));
                run.owner = None;
                records.put(&project, &run)?;
                return Ok(RunClaim::Ended);
            }
            run.attempts += 1;
            run.status = RunStatus::Running;
            run.started_at = Some(now);
            run.due = after(now, LEASE);
            run.owner = Some(owner.clone());
            records.put(&project, &run)?;
            Ok(RunClaim::Mine(Box::new(run)))
        })
    }

    /// Interprets a claimed run's source and stores the result.
    fn execute_run(&self, call: &Call, run: RunRecord) -> Result<()> {
        let interpreter = self.interpreter(Some(&run.interpreter))?;
        let source = self.read(|records| {
            KnowledgeReader::new(records, &call.project).require_source(run.source)
        })?;
        let began = Instant::now();
        let mut account = Account::default();
        let reading = self.read(|records| {
            read(&KnowledgeReader::new(records, &call.project), self.limits(), &source)
        });
        let found = match &reading {
            Err(error) => Err(InterpreterFailure { message: error.to_string(), transient: false }),
            Ok(reading) => self.with_lease(call, &run, || {
                interpreter.interpret(&reading.material(), &mut account)
            }),
        };
        let input = reading.as_ref().ok().map(|reading| Digest::of(reading.text.as_bytes()));
        let result = RunResult {
            said_at: reading.ok().map(|reading| reading.said_at),
            detail: detail(&*interpreter, input, &account, began.elapsed()),
            prompt: account.prompt.clone(),
            notes: account.notes.clone(),
            kind: interpreter.about().kind,
            found,
        };
        self.finish_run(call, &run, &source, result)
    }

    /// Renews the lease of a run while `work` runs.
    fn with_lease<T>(&self, call: &Call, run: &RunRecord, work: impl FnOnce() -> T) -> T {
        let (done, wait) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while wait.recv_timeout(RENEWED_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                    // A lease that cannot be renewed expires; `finish_run` then detects it.
                    let _ = self.renew(&call.project, run.id);
                }
            });
            let answer = work();
            drop(done);
            answer
        })
    }

    fn renew(&self, project: &ProjectId, id: InterpretationId) -> Result<()> {
        let (project, now, owner) = (project.clone(), self.now(), self.worker());
        self.write(move |records| {
            let mut run = KnowledgeReader::new(records, &project).require_run(id)?;
            if run.status == RunStatus::Running && run.owner.as_ref() == Some(&owner) {
                run.due = after(now, LEASE);
                records.put(&project, &run)?;
            }
            Ok(())
        })
    }

    /// Stores the findings of a run, or its failure, in one transaction. Does nothing if another
    /// worker has taken the run over.
    fn finish_run(
        &self,
        call: &Call,
        run: &RunRecord,
        source: &SourceRecord,
        result: RunResult,
    ) -> Result<()> {
        let by =
            Call::by(format!("interpreter:{}", run.interpreter)).in_project(call.project.clone());
        let request = (run.clone(), source.clone(), result);
        let (owner, payload) =
            (self.worker(), |_: &(RunRecord, SourceRecord, RunResult)| Json::Null);
        self.mutate(&by, "interpret", request, payload, move |mutation, request| {
            let (run, source, result) = request;
            open_log_of(mutation, source)?;
            let mut run = mutation.knowledge().require_run(run.id)?;
            if run.status != RunStatus::Running || run.owner.as_ref() != Some(&owner) {
                return Ok(());
            }
            run.finished_at = Some(mutation.now);
            run.detail = result.detail.clone();
            run.notes = result.notes.clone();
            if let Some(prompt) = &result.prompt {
                let hash = keep_prompt(mutation, prompt)?;
                run.detail.insert("prompt_hash", hash.to_hex().into());
            }
            let found = match is_shown(mutation, source)? {
                true => result.found.as_deref().map_err(|failure| failure.message.as_str()),
                false => Err("its turn is not shown any more"),
            };
            match found {
                Ok(findings) => {
                    run.status = RunStatus::Completed;
                    let made = FindingsWriter { run: &run, source, result };
                    let made = made.all(mutation, findings)?;
                    run.observations = made.observations;
                    run.unknown_fields = made.unknown_fields;
                    run.notes.extend(made.notes);
                }
                Err(why) => {
                    run.status = RunStatus::Failed;
                    run.error = Some(why.to_owned());
                }
            }
            run.owner = None;
            mutation.records.put(&mutation.call.project, &run)?;
            mutation.fact("interpretation_id", run.id.to_string());
            mutation.fact("status", run.status.as_str());
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the findings of a run that took place, worked out again from the bytes that were
    /// kept.
    pub fn replay_interpretation(&self, call: &Call, id: InterpretationId) -> Result<Vec<Finding>> {
        let run = self.interpretation(call, id)?;
        let interpreter = self.interpreter(Some(&run.interpreter))?;
        let reading = self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            read(&knowledge, self.limits(), &knowledge.require_source(run.source)?)
        })?;
        let response = run.detail.get("response").and_then(bytes_from);
        let found = interpreter.replay(&reading.material(), response.as_deref());
        found.map_err(|failure| Error::Unsupported(failure.message))
    }
}

/// The result of a run.
#[derive(Clone)]
struct RunResult {
    found: std::result::Result<Vec<Finding>, InterpreterFailure>,
    said_at: Option<Timestamp>,
    detail: Object,
    prompt: Option<String>,
    notes: Vec<String>,
    kind: InterpreterKind,
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(millis))
}

/// The log that a run over a source enters: that of the source's conversation, if it has one.
pub(super) fn open_log_of(mutation: &mut Mutation<'_>, source: &SourceRecord) -> Result<()> {
    if let Some(turn) = &source.turn
        && let Some((key, loc)) = mutation.reader().find_turn(&mutation.call.project, turn)?
    {
        let found = mutation.reader().conversation_by_key(key)?;
        mutation.open(required(found, || format!("conversation of turn {turn}"))?)?;
        // What is found in a turn builds on it.
        return mutation.depends_on_turn(Some(loc));
    }
    mutation.open_project_log()
}

/// Returns whether the turn that a source is the envelope of is still shown, if it has one.
fn is_shown(mutation: &Mutation<'_>, source: &SourceRecord) -> Result<bool> {
    let Some(turn) = &source.turn else {
        return Ok(true);
    };
    match mutation.reader().find_turn(&mutation.call.project, turn)? {
        Some((_, loc)) => mutation.tree().is_shown(loc),
        None => Ok(true),
    }
}

fn detail(
    interpreter: &dyn Interpreter,
    input: Option<Digest>,
    account: &Account,
    took: Duration,
) -> Object {
    let about = interpreter.about();
    let mut fields = Object::new();
    fields.insert("version", about.version.into());
    fields.insert("kind", kind_name(about.kind).into());
    fields.insert("provider", about.provider.into());
    fields.insert("model", about.model.into());
    fields.insert("parameters", about.parameters);
    fields.insert("seed", about.seed.into());
    fields.insert("input_hash", input.map(|digest| digest.to_hex()).into());
    fields.insert("model_answered", account.model_answered.clone().into());
    fields.insert("tries", account.tries.into());
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    fields.insert("duration_ms", millis.into());
    let usage = &account.usage;
    fields.insert(
        "usage",
        object([
            ("input_tokens", usage.input.into()),
            ("output_tokens", usage.output.into()),
            ("total_tokens", usage.total.into()),
        ]),
    );
    if let Some(request) = &account.request {
        fields.insert("request", bytes_json(request));
    }
    if let Some(response) = &account.response {
        fields.insert("response", bytes_json(response));
    }
    fields
}

#[derive(Default)]
struct LandedFindings {
    observations: Vec<ObservationId>,
    unknown_fields: Vec<String>,
    notes: Vec<String>,
}

/// Writes the findings of a run.
struct FindingsWriter<'l> {
    run: &'l RunRecord,
    source: &'l SourceRecord,
    result: &'l RunResult,
}

impl FindingsWriter<'_> {
    fn all(&self, mutation: &mut Mutation<'_>, findings: &[Finding]) -> Result<LandedFindings> {
        let from = self.refers_from(mutation)?;
        let mut made = LandedFindings::default();
        for (nth, finding) in findings.iter().enumerate() {
            self.one(mutation, from, nth, finding, &mut made)?;
        }
        made.unknown_fields.sort();
        made.unknown_fields.dedup();
        Ok(made)
    }

    fn one(
        &self,
        mutation: &mut Mutation<'_>,
        from: Endpoint,
        nth: usize,
        finding: &Finding,
        made: &mut LandedFindings,
    ) -> Result<()> {
        let entity_type = finding.entity_type.as_str();
        if let Err(error) = tine_core::facts::schema::check_name("a type", entity_type) {
            made.notes.push(error.to_string());
            return Ok(());
        }
        if builtin::is_structural(entity_type) {
            made.notes.push(format!("`{entity_type}` is made by Tine alone"));
            return Ok(());
        }
        let schema = mutation.knowledge().newest_schema(entity_type)?;
        let mut fields = finding.fields.clone();
        while let Some((name, kind)) = schema.misfit(&fields) {
            let name = name.to_owned();
            made.notes.push(format!("{entity_type}.{name} takes {}", kind.wants()));
            fields.remove(&name);
        }
        if fields.is_empty() {
            return Ok(());
        }
        let unknown = fields.keys().filter(|name| !schema.declares(name));
        made.unknown_fields.extend(unknown.map(|name| format!("{entity_type}.{name}")));
        let key = identity::key(&schema, &fields);
        let id = match &key {
            Some(key) => identity::entity_id(&mutation.call.project, entity_type, key),
            None => self.minted(mutation, entity_type, nth, finding),
        };
        let key = key.unwrap_or(Json::Null);
        mutation.ensure_entity(EntityRecord::new(id, entity_type, key, mutation.now))?;
        let origin = match self.result.kind {
            InterpreterKind::Rules => ObservationOrigin::Rules,
            InterpreterKind::Model => ObservationOrigin::Model,
            InterpreterKind::Agent => ObservationOrigin::Agent,
        };
        let draft = mutation.draft(id, entity_type, origin);
        let observation = mutation.observe(Observation {
            fields,
            source: Some(self.source.id),
            interpretation: Some(self.run.id),
            turn: self.source.turn,
            span: finding.span.as_ref().map(|span| span.start as u64..span.end as u64),
            observed_at: self.result.said_at.unwrap_or(mutation.now),
            schema_version: schema.version,
            ..draft
        })?;
        made.observations.push(observation);
        let edge =
            Edge { relation: Relation::RefersTo, source: from, target: Endpoint::Entity(id) };
        mutation.relate(&edge, Json::Null, false)?;
        Ok(())
    }

    /// Returns an id for what no field identifies: the same for the same place in the same source,
    /// so that reading it again speaks of the same thing.
    fn minted(
        &self,
        mutation: &Mutation<'_>,
        entity_type: &str,
        nth: usize,
        finding: &Finding,
    ) -> EntityId {
        let place = match &finding.span {
            Some(span) => Json::Array(vec![(span.start as u64).into(), (span.end as u64).into()]),
            None => (nth as u64).into(),
        };
        let key = Json::Array(vec![self.source.id.to_string().into(), place]);
        identity::entity_id(&mutation.call.project, entity_type, &key)
    }

    /// Returns what refers to the findings: the message, where the source is one, else the source.
    fn refers_from(&self, mutation: &Mutation<'_>) -> Result<Endpoint> {
        let Some(turn) = &self.source.turn else {
            return Ok(Endpoint::Source(self.source.id));
        };
        let about = mutation.knowledge().about_turn(turn)?;
        let slot = about.iter().find(|one| one.origin == ObservationOrigin::Turn);
        Ok(slot.map_or(Endpoint::Turn(*turn), |one| Endpoint::Entity(one.id.entity)))
    }
}

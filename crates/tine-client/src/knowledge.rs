//! Knowledge operations, and turns of hosts that do not track branches, as requests.
//!
//! Responses to writes are short; the rest of the engine's answer (the whole run) is requested
//! separately.

use http::Method;
use tine_api::bodies::{EndIds, Nothing, Store};
use tine_api::{
    AsOf, Call, Correct, EntityQuery, EntityView, FieldProvenance, Interpret, InterpretationView,
    Knowledge, Listing, Merge, NewRelationship, NewSchema, NewSource, ObservationView, Page,
    Prompt, QueueStatus, Reinterpret, RelationshipQuery, RelationshipView, Removed, Result,
    RunComparison, RunPair, RunQuery, RunSummary, Separate, SourceView, StoreFacts, StoreTurn,
    StoredFacts, StoredFactsAnswer, StoredSource, StoredSourceAnswer, StoredTurn, StoredTurnAnswer,
    TimelineEntry,
};
use tine_core::facts::Schema;
use tine_core::limits::PIECE_BYTES;
use tine_core::{ConversationId, Digest, EntityId, InterpretationId, SourceId, Timestamp};

use crate::Client;
use crate::exchange::{AnswerTimeout, Upload};
use crate::operations::unreadable;
use crate::url_path::UrlPath;

fn timeout(wait: bool) -> AnswerTimeout {
    if wait { AnswerTimeout::Long } else { AnswerTimeout::Ordinary }
}

fn source_at(id: SourceId, rest: &[&str]) -> UrlPath {
    let id = id.to_string();
    let mut pieces = vec!["sources", &id];
    pieces.extend(rest);
    UrlPath::of(&pieces)
}

fn run_at(id: InterpretationId, rest: &[&str]) -> UrlPath {
    let id = id.to_string();
    let mut pieces = vec!["interpretations", &id];
    pieces.extend(rest);
    UrlPath::of(&pieces)
}

fn entity_at(id: EntityId, rest: &[&str]) -> UrlPath {
    let id = id.to_string();
    let mut pieces = vec!["entities", &id];
    pieces.extend(rest);
    UrlPath::of(&pieces)
}

/// Adds one end of a relationship to a path, its id after a prefix.
fn with_end(address: UrlPath, prefix: &str, end: EndIds) -> UrlPath {
    address
        .with_option(&format!("{prefix}entity_id"), end.entity_id)
        .with_option(&format!("{prefix}turn_id"), end.turn_id)
        .with_option(&format!("{prefix}source_id"), end.source_id)
        .with_option(&format!("{prefix}conversation_id"), end.conversation_id)
}

impl Client {
    /// Returns the run that an answer summarizes.
    fn whole_run(
        &self,
        call: &Call,
        brief: Option<&RunSummary>,
    ) -> Result<Option<InterpretationView>> {
        brief.map(|brief| self.interpretation(call, brief.interpretation_id)).transpose()
    }

    fn run(&self, call: &Call, address: UrlPath, wait: bool) -> Result<InterpretationView> {
        let address = address.with("include", "bytes");
        self.get_patiently(call, address, timeout(wait))
    }
}

impl Knowledge for Client {
    fn store_turn(&self, call: &Call, request: StoreTurn) -> Result<StoredTurn> {
        let wait = request.interpret == Interpret::Wait;
        let address = UrlPath::of(&["store", "turn"]);
        let done: StoredTurnAnswer =
            self.send_patiently(call, Method::POST, address, request, timeout(wait))?;
        let run = self.whole_run(call, done.interpretation.as_ref())?;
        done.into_stored(run).map_err(unreadable)
    }

    fn store_source(&self, call: &Call, request: NewSource) -> Result<StoredSource> {
        let wait = request.interpret == Interpret::Wait;
        // The type is in the query: as Content-Type, JSON would mean something else.
        let address = UrlPath::of(&["sources"])
            .with("project_id", &call.project)
            .with("mime_type", &request.mime_type)
            .with_option("original_filename", request.original_filename.as_ref())
            .with("interpret", request.interpret.as_str())
            .with_option("interpreter", request.interpreter.as_ref())
            .with("return_turn", true)
            .with_option("idempotency_key", call.idempotency_key.as_ref());
        let done: StoredSourceAnswer = self.exchange.upload(&Upload {
            address,
            call,
            content: &*request.content,
            timeout: timeout(wait),
        })?;
        let run = self.whole_run(call, done.interpretation.as_ref())?;
        done.into_stored(run).map_err(unreadable)
    }

    fn source(&self, call: &Call, id: SourceId) -> Result<SourceView> {
        self.get(call, source_at(id, &[]))
    }

    fn sources(&self, call: &Call, page: Page) -> Result<Listing<SourceView>> {
        let address = UrlPath::of(&["sources"]);
        self.listing(call, &address, page)
    }

    fn source_piece(&self, call: &Call, id: SourceId, nth: u32) -> Result<Option<Vec<u8>>> {
        let size = PIECE_BYTES as u64;
        let first = u64::from(nth) * size;
        let address = source_at(id, &["content"]).with("project_id", &call.project);
        self.exchange.part(&address, call, first, first + size - 1)
    }

    fn store_facts(&self, call: &Call, request: StoreFacts) -> Result<StoredFacts> {
        let (address, body) = (UrlPath::of(&["store"]), Store::from(request));
        let done: StoredFactsAnswer = self.send(call, Method::POST, address, body)?;
        done.into_stored().map_err(unreadable)
    }

    fn interpretation(&self, call: &Call, id: InterpretationId) -> Result<InterpretationView> {
        self.run(call, run_at(id, &[]), false)
    }

    fn interpretations(
        &self,
        call: &Call,
        query: RunQuery,
        page: Page,
    ) -> Result<Listing<InterpretationView>> {
        let address = match query.source {
            Some(source) => source_at(source, &["interpretations"]),
            None => UrlPath::of(&["interpretations"]),
        };
        let address = address.with("open", query.open);
        self.listing(call, &address, page)
    }

    fn interpretation_queue(&self, call: &Call) -> Result<QueueStatus> {
        self.get(call, UrlPath::of(&["interpretations", "queue"]))
    }

    fn reinterpret(&self, call: &Call, request: Reinterpret) -> Result<Vec<InterpretationView>> {
        let wait = request.wait;
        let address = UrlPath::of(&["interpretations"]);
        let made: Listing<_> =
            self.send_patiently(call, Method::POST, address, request, timeout(wait))?;
        Ok(made.items)
    }

    fn retry_interpretation(
        &self,
        call: &Call,
        id: InterpretationId,
    ) -> Result<InterpretationView> {
        self.send(call, Method::POST, run_at(id, &["retry"]), Nothing {})
    }

    fn await_interpretation(
        &self,
        call: &Call,
        id: InterpretationId,
    ) -> Result<InterpretationView> {
        self.run(call, run_at(id, &[]).with("wait", true), true)
    }

    fn compare_interpretations(&self, call: &Call, pair: RunPair) -> Result<RunComparison> {
        let address = run_at(pair.before, &["compare"]).with("with", pair.after);
        self.get(call, address)
    }

    fn prompt(&self, call: &Call, hash: Digest) -> Result<String> {
        let found: Prompt = self.get(call, UrlPath::of(&["prompts", &hash.to_hex()]))?;
        Ok(found.prompt)
    }

    fn entity(&self, call: &Call, id: EntityId, as_of: AsOf) -> Result<EntityView> {
        let address = entity_at(id, &[])
            .with_option("at", as_of.observed)
            .with_option("at_stored", as_of.stored);
        self.get(call, address)
    }

    fn entities(&self, call: &Call, query: EntityQuery, page: Page) -> Result<Listing<EntityView>> {
        let address = UrlPath::of(&["entities"])
            .with_option("entity_type", query.entity_type)
            .with_option("q", query.text)
            .with("deleted", query.deleted);
        self.listing(call, &address, page)
    }

    fn slots(
        &self,
        call: &Call,
        conversation: &ConversationId,
        turn_id: &str,
    ) -> Result<Vec<EntityView>> {
        let address = UrlPath::of(&["conversations", conversation.as_str(), "slots"]);
        self.items(call, address.with("turn_id", turn_id))
    }

    fn observations(
        &self,
        call: &Call,
        id: EntityId,
        page: Page,
    ) -> Result<Listing<ObservationView>> {
        let address = entity_at(id, &["observations"]);
        self.listing(call, &address, page)
    }

    fn field_provenance(
        &self,
        call: &Call,
        id: EntityId,
        field: Option<&str>,
    ) -> Result<Vec<FieldProvenance>> {
        let address = entity_at(id, &["provenance"]).with_option("field", field);
        self.items(call, address)
    }

    fn timeline(
        &self,
        call: &Call,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        page: Page,
    ) -> Result<Listing<TimelineEntry>> {
        let address = UrlPath::of(&["timeline"]).with_option("from", from).with_option("to", to);
        self.listing(call, &address, page)
    }

    fn correct(&self, call: &Call, request: Correct) -> Result<ObservationView> {
        let address = entity_at(request.entity, &["corrections"]);
        self.send(call, Method::POST, address, request)
    }

    fn merge_entities(&self, call: &Call, request: Merge) -> Result<EntityView> {
        self.send(call, Method::POST, entity_at(request.from, &["merge"]), request)
    }

    fn separate_entity(&self, call: &Call, request: Separate) -> Result<EntityView> {
        let address = entity_at(request.entity, &["separate"]);
        self.send(call, Method::POST, address, request)
    }

    fn set_entity_deleted(&self, call: &Call, id: EntityId, deleted: bool) -> Result<EntityView> {
        match deleted {
            true => self.remove(call, entity_at(id, &[])),
            false => self.send(call, Method::POST, entity_at(id, &["restore"]), Nothing {}),
        }
    }

    fn create_relationship(
        &self,
        call: &Call,
        request: NewRelationship,
    ) -> Result<RelationshipView> {
        self.send(call, Method::POST, UrlPath::of(&["relationships"]), request)
    }

    fn delete_relationship(&self, call: &Call, request: NewRelationship) -> Result<()> {
        let address = UrlPath::of(&["relationships"]).with("type", &request.relation);
        let address = with_end(address, "source_", request.source.into());
        let address = with_end(address, "target_", request.target.into());
        let _: Removed = self.remove(call, address)?;
        Ok(())
    }

    fn relationships(
        &self,
        call: &Call,
        query: RelationshipQuery,
        page: Page,
    ) -> Result<Listing<RelationshipView>> {
        let address = UrlPath::of(&["relationships"])
            .with("direction", query.direction.as_str())
            .with_option("type", query.relation);
        let address = with_end(address, "", query.end.map(Into::into).unwrap_or_default());
        self.listing(call, &address, page)
    }

    fn register_schema(&self, call: &Call, request: NewSchema) -> Result<Schema> {
        self.send(call, Method::POST, UrlPath::of(&["schemas"]), request)
    }

    fn schema(&self, call: &Call, entity_type: &str, version: Option<u32>) -> Result<Schema> {
        let address = UrlPath::of(&["schemas", entity_type]).with_option("version", version);
        self.get(call, address)
    }

    fn schemas(&self, call: &Call) -> Result<Vec<Schema>> {
        self.items(call, UrlPath::of(&["schemas"]))
    }
}

//! Tools that store turns, facts, sources, or all of them at once.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tine_api::bodies::{self, Speaker};
use tine_core::InterpretationId;
use tine_core::facts::envelope;
use tine_core::json::{Json, Object};
use tine_engine::{
    Call, Interpret, NewFact, NewRelationship, NewSource, StoreCombined, StoreFacts, StoreTurn,
    StoredSource, StoredTurn,
};
use tine_formats::redact;

use super::{ToolContext, ToolSpec, tools};
use crate::answer::{ToolAnswer, Truncator, counted, list_or_null, members_of, without_nulls};
use crate::mcp_error::McpError;
use crate::record_json;
use crate::shared_arguments::{
    content, conversation, end, entity, messages, optional_time, reference, source,
};
use crate::typed_arguments::{AnyValue, FromObject, Members, arguments, choices};

pub(super) const TOOLS: &[ToolSpec] = tools! {
    Additive store_conversation_turn(TurnArguments) [core]
        [("conversation_id", "string"), ("turn_id", "string"), ("turn_key", "string"),
         ("entity_id", "string"), ("outcome", "string")]
        "Record one message of this chat. Call it for every user message, tool result and reply; \
         edits and reverts need no other tool.";
    Additive store(StoreArguments) [core] [("committed", "boolean")]
        "Store facts, a file and a turn in one transaction. For a message alone use \
         store_conversation_turn.";
    Additive store_structured(FactsArguments) [memory_only]
        [("entities", "array"), ("source_id", "string")]
        "Store facts that you extracted yourself; you are recorded as their interpreter.";
    Idempotent store_unstructured(StoreSourceArguments) [memory_only]
        [("source_id", "string"), ("outcome", "string")]
        "Store a text or file unchanged and interpret it. Equal bytes are stored once.";
};

/// When stored content is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InterpretMode {
    None,
    Queue,
    Wait,
}

impl InterpretMode {
    /// Converts to the engine's form. Waiting happens here, where progress can be reported.
    fn request(self) -> Interpret {
        match self {
            InterpretMode::None => Interpret::None,
            InterpretMode::Queue | InterpretMode::Wait => Interpret::Queue,
        }
    }
}

choices!(InterpretMode);

arguments!(TurnArguments {
    conversation_id: Option<String>,
    turn_id: Option<String>,
    role: Speaker,
    /// Text
    content: Option<String>,
    /// Instead of content: {type, …} blocks
    content_blocks: Option<Vec<Members>>,
    /// For role tool
    tool_call_id: Option<String>,
    /// Only if the host names it
    parent_message_id: Option<String>,
    /// Only if the host names it
    branch_id: Option<String>,
    /// All earlier messages
    history: Option<Vec<Members>>,
    attachment_source_ids: Option<Vec<String>>,
    /// Title of a new conversation
    title: Option<String>,
    created_at: Option<String>,
    /// {source_info, tags, …}
    metadata: Option<Members>,
    interpret: Option<InterpretMode>,
});

arguments!(StoreArguments {
    /// {entity_type, fields, entity_id?, observed_at?, turn?}
    entities: Option<Vec<Members>>,
    /// {type, source, target}; an end is an id or an index into entities
    relationships: Option<Vec<Members>>,
    /// Arguments of store_conversation_turn
    turn: Option<Members>,
    text: Option<String>,
    /// Base64
    file_content: Option<String>,
    file_path: Option<String>,
    mime_type: Option<String>,
    original_filename: Option<String>,
    interpret: Option<InterpretMode>,
    /// false: dry run
    commit: Option<bool>,
});

arguments!(FactsArguments {
    /// {entity_type, fields, entity_id?, observed_at?, turn?, span?, priority?}
    entities: Option<Vec<Members>>,
    /// {type, source, target, metadata?}
    relationships: Option<Vec<Members>>,
    /// Where the facts come from
    source_id: Option<String>,
    /// You: {name, model, …}
    agent: Option<Members>,
});

arguments!(StoreSourceArguments {
    text: Option<String>,
    /// Base64
    file_content: Option<String>,
    /// In an allowed folder on this machine
    file_path: Option<String>,
    mime_type: Option<String>,
    original_filename: Option<String>,
    /// Default queue
    interpret: Option<InterpretMode>,
    interpreter: Option<String>,
});

arguments!(FactMembers {
    entity_type: String,
    fields: Members,
    entity_id: Option<String>,
    observed_at: Option<String>,
    turn: Option<String>,
    span: Option<(u64, u64)>,
    priority: Option<i64>,
    specificity: Option<i64>,
});

arguments!(RelationshipMembers {
    r#type: String,
    source: AnyValue,
    target: AnyValue,
    metadata: Option<Members>,
});

/// Renames arguments of a turn that hosts know by other names.
pub(crate) fn rename_synonyms(arguments: &mut Object) -> Result<(), McpError> {
    let mut rename = |from: &str, to: &str| {
        if !arguments.contains_key(to)
            && let Some(value) = arguments.remove(from)
        {
            arguments.insert(to, number_as_text(value));
        }
    };
    rename("session_id", "conversation_id");
    rename("thread_id", "conversation_id");
    // With another id for the conversation, it names a branch.
    rename("thread_id", "branch_id");
    rename("branch", "branch_id");
    rename("turn_number", "turn_id");
    if let Some(turn_id) = arguments.get_mut("turn_id").filter(|id| id.as_u64().is_some()) {
        *turn_id = number_as_text(std::mem::take(turn_id));
    }
    if let Some(number) = arguments.remove("turn_number")
        && arguments.get("turn_id") != Some(&number_as_text(number))
    {
        let why = "`turn_id` and `turn_number` differ";
        return Err(McpError::invalid(why).next("send `turn_id` alone"));
    }
    Ok(())
}

/// Converts a number that is used as an id to a string.
fn number_as_text(value: Json) -> Json {
    match value {
        Json::Number(number) => Json::String(number.to_string()),
        other => other,
    }
}

impl TurnArguments {
    fn into_request(
        self,
        context: &ToolContext,
    ) -> Result<(StoreTurn, Call, InterpretMode), McpError> {
        let limits = context.limits();
        let mut fields = Object::new();
        fields.insert("role", self.role.as_str().into());
        fields.insert("content", content(self.content, self.content_blocks)?);
        let mut set = |name: &str, value: Option<Json>| {
            if let Some(value) = value {
                fields.insert(name, value);
            }
        };
        set("tool_call_id", self.tool_call_id.map(Json::from));
        set("created_at", self.created_at.map(Json::from));
        set("metadata", self.metadata.map(Json::from));
        let history = self.history.unwrap_or_default();
        let index = history.len();
        let mut messages = messages(history, limits)?;
        messages.push(bodies::message(Json::Object(fields), index, limits)?);
        let mut call = context.call.clone();
        if context.options.redact {
            call = call.with_redacted(redact::messages(&mut messages));
        }
        let Some(said) = messages.pop() else {
            return Err(McpError::invalid("`content` is missing"));
        };
        let interpret = self.interpret.unwrap_or(InterpretMode::None);
        let attachments = self.attachment_source_ids.unwrap_or_default();
        let attachments = attachments.iter().map(|id| source(id)).collect::<Result<_, _>>()?;
        let request = StoreTurn {
            conversation: self.conversation_id,
            turn_id: self.turn_id,
            branch: self.branch_id,
            parent_message: self.parent_message_id,
            history: messages,
            attachments,
            title: self.title,
            interpret: interpret.request(),
            ..StoreTurn::new("", "", said)
        };
        Ok((request, call, interpret))
    }
}

fn store_conversation_turn(
    context: &ToolContext,
    arguments: TurnArguments,
) -> Result<ToolAnswer, McpError> {
    let (request, call, interpret) = arguments.into_request(context)?;
    let mut done = context.engine.store_turn(&call, request)?;
    if interpret == InterpretMode::Wait
        && let Some(run) = done.interpretation.as_ref().map(|run| run.id)
    {
        done.interpretation = Some(wait(context, &[run])?.remove(0));
    }
    let text = stored_turn_summary(&done);
    Ok(ToolAnswer::new(text, Value::Object(record_json::stored_turn(&done))))
}

fn stored_turn_summary(done: &StoredTurn) -> String {
    let mut text = format!(
        "conversation_id {}: turn {} {} on {}",
        done.conversation,
        done.turn.id,
        record_json::outcome(done.outcome),
        done.branch.name
    );
    if done.replayed {
        text.push_str("; replayed from an earlier call with this key");
    }
    if let Some(old) = done.superseded {
        text.push_str(&format!("; replaces {old}, which is kept"));
    }
    for warning in &done.warnings {
        text.push_str(&format!("; {warning}"));
    }
    text + "."
}

/// Waits for runs one after the other, until the call is cancelled.
pub(super) fn wait(
    context: &ToolContext,
    runs: &[InterpretationId],
) -> Result<Vec<tine_engine::InterpretationView>, McpError> {
    let total = runs.len() as f64;
    let mut done = Vec::with_capacity(runs.len());
    for (at, run) in runs.iter().enumerate() {
        context.check_not_cancelled()?;
        (context.progress)(at as f64, Some(total), format!("interpreting: {at} of {total} done"));
        done.push(context.engine.await_interpretation(&context.call, *run)?);
    }
    (context.progress)(total, Some(total), "interpreted".to_owned());
    Ok(done)
}

fn facts(
    context: &ToolContext,
    entities: Vec<Members>,
    relationships: Vec<Members>,
) -> Result<StoreFacts, McpError> {
    let mut request = StoreFacts::default();
    for (at, one) in entities.into_iter().enumerate() {
        let fact: FactMembers = nested(&format!("entities[{at}]"), one)?;
        request.entities.push(NewFact {
            entity: fact.entity_id.as_deref().map(|id| entity(context, id)).transpose()?,
            observed_at: optional_time("observed_at", fact.observed_at.as_deref())?,
            turn: fact.turn.as_deref().map(reference).transpose()?,
            span: fact.span,
            priority: fact.priority,
            specificity: fact.specificity,
            ..NewFact::of(fact.entity_type, fact.fields.0)
        });
    }
    for (at, one) in relationships.into_iter().enumerate() {
        let name = format!("relationships[{at}]");
        let edge: RelationshipMembers = nested(&name, one)?;
        request.relationships.push(NewRelationship {
            relation: edge.r#type,
            source: end(context, &format!("{name}.source"), &edge.source.0)?,
            target: end(context, &format!("{name}.target"), &edge.target.0)?,
            metadata: metadata(edge.metadata),
        });
    }
    Ok(request)
}

/// Converts an optional object to the engine's form.
pub(super) fn metadata(given: Option<Members>) -> Json {
    given.map_or(Json::Null, Json::from)
}

/// Reads an object within the arguments.
fn nested<T: FromObject>(name: &str, members: Members) -> Result<T, McpError> {
    let Members(mut members) = members;
    members.retain(|_, value| !value.is_null());
    T::from_object(name, members)
}

/// Returns the source in whichever argument has its bytes.
fn source_from(
    context: &ToolContext,
    text: Option<String>,
    file_content: Option<String>,
    file_path: Option<String>,
    mime_type: Option<String>,
    original_filename: Option<String>,
) -> Result<Option<NewSource>, McpError> {
    let given = [text.is_some(), file_content.is_some(), file_path.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(McpError::invalid(
            "more than one of `text`, `file_content` and `file_path` was given",
        )
        .next("send one of them"));
    }
    let (content, mime_type, name): (Arc<dyn tine_engine::SourceBytes>, _, _) = if let Some(text) =
        text
    {
        (Arc::new(text.into_bytes()), mime_type.unwrap_or_else(|| "text/plain".to_owned()), None)
    } else if let Some(encoded) = file_content {
        let bytes = STANDARD.decode(encoded.trim().as_bytes()).map_err(|error| {
            McpError::invalid(format!("`file_content` is not base64: {error}"))
                .next("send plain text as `text` instead")
        })?;
        let mime_type = mime_type.ok_or_else(|| {
            McpError::invalid("the argument `mime_type` is missing")
                .next("send the type of `file_content`, such as application/pdf")
        })?;
        (Arc::new(bytes), mime_type, None)
    } else if let Some(path) = file_path {
        let file = context.options.files.open(&path).map_err(McpError::from)?;
        let mime_type = mime_type.unwrap_or_else(|| file.mime_type().to_owned());
        let name = file.name();
        (Arc::new(file), mime_type, name)
    } else {
        return Ok(None);
    };
    Ok(Some(NewSource {
        content,
        mime_type,
        original_filename: original_filename.or(name),
        interpret: Interpret::None,
        interpreter: None,
    }))
}

fn store(context: &ToolContext, arguments: StoreArguments) -> Result<ToolAnswer, McpError> {
    let entities = arguments.entities.unwrap_or_default();
    let relationships = arguments.relationships.unwrap_or_default();
    let facts = match entities.is_empty() && relationships.is_empty() {
        true => None,
        false => Some(facts(context, entities, relationships)?),
    };
    let source = source_from(
        context,
        arguments.text,
        arguments.file_content,
        arguments.file_path,
        arguments.mime_type,
        arguments.original_filename,
    )?;
    let mut call = context.call.clone();
    let mut turn = None;
    let mut interpret = arguments.interpret.unwrap_or(match source {
        Some(_) => InterpretMode::Queue,
        None => InterpretMode::None,
    });
    if let Some(mut given) = arguments.turn {
        given.0.retain(|_, value| !value.is_null());
        rename_synonyms(&mut given.0)?;
        let given: TurnArguments = nested("turn", given)?;
        let (request, with_redacted, asked_for) = given.into_request(context)?;
        if asked_for != InterpretMode::None {
            interpret = asked_for;
        }
        (turn, call) = (Some(request), with_redacted);
    }
    let source = source.map(|source| NewSource { interpret: interpret.request(), ..source });
    if let Some(turn) = &mut turn
        && source.is_none()
    {
        turn.interpret = interpret.request();
    }
    let commit = arguments.commit.unwrap_or(true);
    // One part alone is the same request as that of its own tool, with the same key.
    let alone = [turn.is_some(), source.is_some(), facts.is_some()];
    if commit && alone.iter().filter(|given| **given).count() == 1 {
        let mut answer = match (turn, source, facts) {
            (Some(turn), ..) => {
                let done = context.engine.store_turn(&call, turn)?;
                let runs: Vec<_> = done.interpretation.iter().map(|run| run.id).collect();
                answer_with_runs(
                    context,
                    stored_turn_summary(&done),
                    record_json::stored_turn(&done),
                    &runs,
                    interpret,
                )?
            }
            (_, Some(source), _) => stored_source(context, &call, source, interpret)?,
            (_, _, Some(facts)) => stored_facts(context, &call, facts)?,
            _ => return Err(McpError::invalid("nothing to store")),
        };
        answer.data.insert("committed".to_owned(), true.into());
        return Ok(answer);
    }
    if let Some(one) = &source
        && envelope::is_envelope(&one.mime_type)
    {
        return Err(McpError::invalid(
            "the envelope of a turn cannot be combined with other parts",
        )
        .next("send the message as `turn` instead, or the envelope with store_unstructured"));
    }
    store_combined(
        context,
        &call,
        StoreCombined { turn, source, facts, dry_run: !commit },
        interpret,
    )
}

fn store_combined(
    context: &ToolContext,
    call: &Call,
    request: StoreCombined,
    interpret: InterpretMode,
) -> Result<ToolAnswer, McpError> {
    let done = context.engine.store_combined(call, request)?;
    let parts = &done.parts;
    let related = parts
        .relationships
        .iter()
        .map(|it| relationship_form(it.relation.as_str(), &it.source, &it.target, it.outcome));
    let related: Vec<_> = related.collect();
    let data = without_nulls(json!({
        "committed": !done.dry_run,
        "turn": done.turn.as_ref().map(|turn| Value::Object(record_json::stored_turn(turn))),
        "conversation_id": done.turn.as_ref().map(|turn| turn.conversation.as_str()),
        "source_id": parts.source.or(parts.facts_source.map(|id| (id, tine_engine::Outcome::Reused)))
            .map(|(id, _)| id.to_string()),
        "entities": entities_form(&parts.entities),
        "relationships": list_or_null(related),
        "interpretation_id": parts.interpretation.map(|id| id.to_string()),
        "unknown_fields": list_or_null(parts.unknown_fields.clone()),
        "warnings": list_or_null(parts.warnings.clone()),
        "replayed": record_json::true_or_null(done.replayed),
    }));
    let mut text = match done.dry_run {
        true => "Dry run, nothing stored. It would store".to_owned(),
        false => "Stored".to_owned(),
    };
    if let Some(turn) = &done.turn {
        text.push_str(&format!(" turn {} in {};", turn.turn.id, turn.conversation));
    }
    if let Some((source, _)) = parts.source {
        text.push_str(&format!(" source {source};"));
    }
    text.push_str(&format!(
        " {}, {}.",
        counted(parts.entities.len(), "entities"),
        counted(parts.relationships.len(), "relationships")
    ));
    if done.dry_run {
        return Ok(ToolAnswer::new(text, data));
    }
    answer_with_runs(context, text, members_of(data), &parts.runs, interpret)
}

/// Waits for the runs if the call asks for that, and answers.
fn answer_with_runs(
    context: &ToolContext,
    text: String,
    mut data: Map<String, Value>,
    runs: &[InterpretationId],
    interpret: InterpretMode,
) -> Result<ToolAnswer, McpError> {
    if interpret == InterpretMode::Wait && !runs.is_empty() {
        let done = wait(context, runs)?;
        let mut truncator = Truncator::new(1_000);
        let done: Vec<_> =
            done.iter().map(|run| record_json::interpretation(run, &mut truncator)).collect();
        data.insert("interpretations".to_owned(), done.into());
    } else if !runs.is_empty() {
        let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
        data.insert("queued_interpretations".to_owned(), runs.into());
    }
    Ok(ToolAnswer::new(text, Value::Object(data)))
}

fn entities_form(entities: &[tine_engine::StoredFact]) -> Value {
    if entities.is_empty() {
        return Value::Null;
    }
    let form = |fact: &tine_engine::StoredFact| {
        json!({
            "entity_id": fact.entity.to_string(),
            "observation_id": fact.observation.to_string(),
            "outcome": record_json::outcome(fact.outcome),
        })
    };
    entities.iter().map(form).collect()
}

fn relationship_form(
    relation: &str,
    source: &impl ToString,
    target: &impl ToString,
    outcome: impl Into<Option<tine_engine::Outcome>>,
) -> Value {
    json!({
        "type": relation,
        "source": source.to_string(),
        "target": target.to_string(),
        "outcome": record_json::outcome(outcome),
    })
}

fn store_structured(
    context: &ToolContext,
    arguments: FactsArguments,
) -> Result<ToolAnswer, McpError> {
    let entities = arguments.entities.unwrap_or_default();
    let mut request = facts(context, entities, arguments.relationships.unwrap_or_default())?;
    request.source = arguments.source_id.as_deref().map(source).transpose()?;
    request.agent = metadata(arguments.agent);
    stored_facts(context, &context.call, request)
}

fn stored_facts(
    context: &ToolContext,
    call: &Call,
    request: StoreFacts,
) -> Result<ToolAnswer, McpError> {
    let done = context.engine.store_facts(call, request)?;
    let related = done
        .relationships
        .iter()
        .map(|it| relationship_form(it.relation.as_str(), &it.source, &it.target, it.outcome));
    let related: Vec<_> = related.collect();
    let mut text = format!(
        "Stored {}, {}.",
        counted(done.entities.len(), "entities"),
        counted(done.relationships.len(), "relationships")
    );
    if !done.unknown_fields.is_empty() {
        text.push_str(&format!(
            " Not declared by their schemas, and kept: {}.",
            done.unknown_fields.join(", ")
        ));
    }
    let entities = match entities_form(&done.entities) {
        Value::Null => Value::Array(Vec::new()),
        entities => entities,
    };
    Ok(ToolAnswer::new(
        text,
        json!({
            "entities": entities,
            "relationships": list_or_null(related),
            "source_id": done.source.id.to_string(),
            "interpretation_id": done.interpretation.to_string(),
            "unknown_fields": list_or_null(done.unknown_fields),
            "warnings": list_or_null(done.warnings),
            "replayed": record_json::true_or_null(done.replayed),
        }),
    ))
}

fn store_unstructured(
    context: &ToolContext,
    arguments: StoreSourceArguments,
) -> Result<ToolAnswer, McpError> {
    let source = source_from(
        context,
        arguments.text,
        arguments.file_content,
        arguments.file_path,
        arguments.mime_type,
        arguments.original_filename,
    )?;
    let Some(source) = source else {
        return Err(McpError::invalid("nothing to store")
            .next("send text, file_content (base64) or file_path"));
    };
    let interpret = arguments.interpret.unwrap_or(InterpretMode::Queue);
    let source = NewSource { interpreter: arguments.interpreter, ..source };
    stored_source(context, &context.call, source, interpret)
}

fn stored_source(
    context: &ToolContext,
    call: &Call,
    source: NewSource,
    interpret: InterpretMode,
) -> Result<ToolAnswer, McpError> {
    let source = NewSource { interpret: interpret.request(), ..source };
    let done: StoredSource = context.engine.store_source(call, source)?;
    let mut data = members_of(record_json::source(&done.source));
    data.insert("outcome".to_owned(), record_json::outcome(done.outcome).into());
    if let Some(turn) = &done.turn {
        data.insert("turn".to_owned(), Value::Object(record_json::stored_turn(turn)));
    }
    if !done.warnings.is_empty() {
        data.insert("warnings".to_owned(), done.warnings.clone().into());
    }
    if done.replayed {
        data.insert("replayed".to_owned(), true.into());
    }
    let mut text = format!(
        "Source {} {}, {} bytes.",
        done.source.id,
        record_json::outcome(done.outcome),
        done.source.size_bytes
    );
    for warning in &done.warnings {
        text.push_str(&format!(" Note: {warning}."));
    }
    let runs: Vec<_> = done.interpretation.iter().map(|run| run.id).collect();
    answer_with_runs(context, text, data, &runs, interpret)
}

/// Parses a conversation id.
pub(super) fn conversation_of(
    context: &ToolContext,
    id: &str,
) -> Result<tine_core::ConversationId, McpError> {
    conversation(id, context.limits())
}

//! Tools that store: turns, facts, bytes, or all of them at once.

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

use super::{Effect, Spec, ToolContext, typed};
use crate::answer::{Answer, Cuts, count, lean, list_or_null};
use crate::arguments::{content, conversation, end, entity, messages, reference, source, times};
use crate::forms;
use crate::refusal::Refusal;
use crate::schema;
use crate::typed::{AnyValue, FromObject, Members, arguments, choices};

pub(super) const TOOLS: &[Spec] = &[
    Spec {
        name: "store_conversation_turn",
        about: "Record one message of this chat. Call it for every user message, tool result and \
                reply; edits and reverts need nothing else.",
        effect: Effect::Adds,
        core: true,
        memory: None,
        paged: false,
        input: schema::of::<TurnArguments>,
        output: &[
            ("conversation_id", "string"),
            ("turn_id", "string"),
            ("turn_key", "string"),
            ("entity_id", "string"),
            ("outcome", "string"),
        ],
        run: typed!(TurnArguments, store_turn),
    },
    Spec {
        name: "store",
        about: "Store facts, a file and a turn in one transaction, all or nothing. \
                For a message alone use store_conversation_turn.",
        effect: Effect::Adds,
        core: true,
        memory: None,
        paged: false,
        input: schema::of::<StoreArguments>,
        output: &[("committed", "boolean")],
        run: typed!(StoreArguments, store),
    },
    Spec {
        name: "store_structured",
        about: "Store facts that you have structured yourself; they are logged as your reading.",
        effect: Effect::Adds,
        core: false,
        memory: Some(true),
        paged: false,
        input: schema::of::<FactsArguments>,
        output: &[("entities", "array"), ("source_id", "string")],
        run: typed!(FactsArguments, store_structured),
    },
    Spec {
        name: "store_unstructured",
        about: "Keep a text or a file as it is, and have it interpreted. The same bytes are kept \
                once.",
        effect: Effect::Settles,
        core: false,
        memory: Some(true),
        paged: false,
        input: schema::of::<SourceArguments>,
        output: &[("source_id", "string"), ("outcome", "string")],
        run: typed!(SourceArguments, store_unstructured),
    },
];

/// Whether what is stored is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InterpretMode {
    None,
    Queue,
    Wait,
}

impl InterpretMode {
    /// As the engine is asked. Waiting is done here, where it can be told how far it is.
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
    /// The text
    content: Option<String>,
    /// Instead of content: {type, …} blocks
    content_blocks: Option<Vec<Members>>,
    /// For role tool
    tool_call_id: Option<String>,
    /// Only if the host names it
    parent_message_id: Option<String>,
    /// Only if the host names it
    branch_id: Option<String>,
    /// All messages before this one
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
    /// As store_conversation_turn takes it
    turn: Option<Members>,
    text: Option<String>,
    /// Base64
    file_content: Option<String>,
    file_path: Option<String>,
    mime_type: Option<String>,
    original_filename: Option<String>,
    interpret: Option<InterpretMode>,
    /// false: only say what would happen
    commit: Option<bool>,
});

arguments!(FactsArguments {
    /// {entity_type, fields, entity_id?, observed_at?, turn?, span?, priority?}
    entities: Option<Vec<Members>>,
    /// {type, source, target, metadata?}
    relationships: Option<Vec<Members>>,
    /// Where the facts were read
    source_id: Option<String>,
    /// {name, model, …} of yourself
    agent: Option<Members>,
});

arguments!(SourceArguments {
    text: Option<String>,
    /// Base64
    file_content: Option<String>,
    /// On this machine, in an allowed folder
    file_path: Option<String>,
    mime_type: Option<String>,
    original_filename: Option<String>,
    /// Default queue
    interpret: Option<InterpretMode>,
    interpreter: Option<String>,
});

arguments!(Fact {
    entity_type: String,
    fields: Members,
    entity_id: Option<String>,
    observed_at: Option<String>,
    turn: Option<String>,
    span: Option<(u64, u64)>,
    priority: Option<i64>,
    specificity: Option<i64>,
});

arguments!(Edge {
    r#type: String,
    source: AnyValue,
    target: AnyValue,
    metadata: Option<Members>,
});

/// Renames the arguments of a turn that hosts know by other names.
pub(crate) fn translate(arguments: &mut Object) -> Result<(), Refusal> {
    let mut rename = |from: &str, to: &str| {
        if !arguments.contains_key(to)
            && let Some(value) = arguments.remove(from)
        {
            arguments.insert(to, number_as_text(value));
        }
    };
    rename("session_id", "conversation_id");
    rename("thread_id", "conversation_id");
    // Beside a conversation it names a branch.
    rename("thread_id", "branch_id");
    rename("branch", "branch_id");
    rename("turn_number", "turn_id");
    if let Some(turn_id) = arguments.get_mut("turn_id").filter(|id| id.as_u64().is_some()) {
        *turn_id = number_as_text(std::mem::take(turn_id));
    }
    if let Some(number) = arguments.remove("turn_number")
        && arguments.get("turn_id") != Some(&number_as_text(number))
    {
        let why = "`turn_id` and `turn_number` say different things";
        return Err(Refusal::invalid(why).next("send `turn_id` alone"));
    }
    Ok(())
}

/// Returns a number that serves as an id as its digits.
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
    ) -> Result<(StoreTurn, Call, InterpretMode), Refusal> {
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
            return Err(Refusal::invalid("nothing is said"));
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

fn store_turn(context: &ToolContext, arguments: TurnArguments) -> Result<Answer, Refusal> {
    let (request, call, interpret) = arguments.into_request(context)?;
    let mut done = context.engine.store_turn(&call, request)?;
    if interpret == InterpretMode::Wait
        && let Some(run) = done.interpretation.as_ref().map(|run| run.id)
    {
        done.interpretation = Some(wait(context, &[run])?.remove(0));
    }
    let text = stored_turn_summary(&done);
    Ok(Answer::new(text, Value::Object(forms::stored_turn(&done))))
}

fn stored_turn_summary(done: &StoredTurn) -> String {
    let mut text = format!(
        "conversation_id {}: turn {} {} on {}",
        done.conversation,
        done.turn.id,
        forms::outcome(done.outcome),
        done.branch.name
    );
    if done.replayed {
        text.push_str("; the answer of an earlier call with this key");
    }
    if let Some(old) = done.superseded {
        text.push_str(&format!("; it takes the place of {old}, which is kept"));
    }
    for warning in &done.warnings {
        text.push_str(&format!("; {warning}"));
    }
    text + "."
}

/// Waits for runs, one after the other, as long as the caller wants to know.
pub(super) fn wait(
    context: &ToolContext,
    runs: &[InterpretationId],
) -> Result<Vec<tine_engine::InterpretationView>, Refusal> {
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
) -> Result<StoreFacts, Refusal> {
    let mut request = StoreFacts::default();
    for (at, one) in entities.into_iter().enumerate() {
        let fact: Fact = nested(&format!("entities[{at}]"), one)?;
        request.entities.push(NewFact {
            entity: fact.entity_id.as_deref().map(|id| entity(context, id)).transpose()?,
            observed_at: times("observed_at", fact.observed_at.as_deref())?,
            turn: fact.turn.as_deref().map(reference).transpose()?,
            span: fact.span,
            priority: fact.priority,
            specificity: fact.specificity,
            ..NewFact::of(fact.entity_type, fact.fields.0)
        });
    }
    for (at, one) in relationships.into_iter().enumerate() {
        let name = format!("relationships[{at}]");
        let edge: Edge = nested(&name, one)?;
        request.relationships.push(NewRelationship {
            relation: edge.r#type,
            source: end(context, &format!("{name}.source"), &edge.source.0)?,
            target: end(context, &format!("{name}.target"), &edge.target.0)?,
            metadata: metadata(edge.metadata),
        });
    }
    Ok(request)
}

/// Returns an optional object as the engine takes it.
pub(super) fn metadata(given: Option<Members>) -> Json {
    given.map_or(Json::Null, Json::from)
}

/// Reads an object within the arguments.
fn nested<T: FromObject>(name: &str, members: Members) -> Result<T, Refusal> {
    let Members(mut members) = members;
    members.retain(|_, value| !value.is_null());
    T::from_object(name, members)
}

/// Bytes out of whichever argument holds them.
fn bytes(
    context: &ToolContext,
    text: Option<String>,
    file_content: Option<String>,
    file_path: Option<String>,
    mime_type: Option<String>,
    original_filename: Option<String>,
) -> Result<Option<NewSource>, Refusal> {
    let given = [text.is_some(), file_content.is_some(), file_path.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(Refusal::invalid("the bytes are given more than once")
            .next("send one of text, file_content and file_path"));
    }
    let (content, mime_type, name): (Arc<dyn tine_engine::SourceBytes>, _, _) = if let Some(text) =
        text
    {
        (Arc::new(text.into_bytes()), mime_type.unwrap_or_else(|| "text/plain".to_owned()), None)
    } else if let Some(encoded) = file_content {
        let bytes = STANDARD.decode(encoded.trim().as_bytes()).map_err(|error| {
            Refusal::invalid(format!("`file_content` is not base64: {error}"))
                .next("send plain text as `text` instead")
        })?;
        let mime_type = mime_type.ok_or_else(|| {
            Refusal::invalid("the argument `mime_type` is missing")
                .next("say what `file_content` is, such as application/pdf")
        })?;
        (Arc::new(bytes), mime_type, None)
    } else if let Some(path) = file_path {
        let file = context.options.files.open(&path).map_err(Refusal::from)?;
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

fn store(context: &ToolContext, arguments: StoreArguments) -> Result<Answer, Refusal> {
    let entities = arguments.entities.unwrap_or_default();
    let relationships = arguments.relationships.unwrap_or_default();
    let facts = match entities.is_empty() && relationships.is_empty() {
        true => None,
        false => Some(facts(context, entities, relationships)?),
    };
    let source = bytes(
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
        translate(&mut given.0)?;
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
    // One part alone is the same request as the tool for it makes, under the same key.
    let alone = [turn.is_some(), source.is_some(), facts.is_some()];
    if commit && alone.iter().filter(|given| **given).count() == 1 {
        let mut answer = match (turn, source, facts) {
            (Some(turn), ..) => {
                let done = context.engine.store_turn(&call, turn)?;
                let runs: Vec<_> = done.interpretation.iter().map(|run| run.id).collect();
                finish(
                    context,
                    stored_turn_summary(&done),
                    forms::stored_turn(&done),
                    &runs,
                    interpret,
                )?
            }
            (_, Some(source), _) => stored_source(context, &call, source, interpret)?,
            (_, _, Some(facts)) => stored_facts(context, &call, facts)?,
            _ => return Err(Refusal::invalid("there is nothing to store")),
        };
        answer.data.insert("committed".to_owned(), true.into());
        return Ok(answer);
    }
    if let Some(one) = &source
        && envelope::is_envelope(&one.mime_type)
    {
        return Err(Refusal::invalid("the envelope of a turn is stored by itself")
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
) -> Result<Answer, Refusal> {
    let done = context.engine.store_combined(call, request)?;
    let parts = &done.parts;
    let related = parts.relationships.iter().map(|it| {
        json!({
            "type": it.relation.as_str(),
            "source": it.source.to_string(),
            "target": it.target.to_string(),
            "outcome": forms::outcome(it.outcome),
        })
    });
    let related: Vec<Value> = related.collect();
    let data = lean(json!({
        "committed": !done.dry_run,
        "turn": done.turn.as_ref().map(|turn| Value::Object(forms::stored_turn(turn))),
        "conversation_id": done.turn.as_ref().map(|turn| turn.conversation.as_str()),
        "source_id": parts.source.or(parts.facts_source.map(|id| (id, tine_engine::Outcome::Reused)))
            .map(|(id, _)| id.to_string()),
        "entities": entities_form(&parts.entities),
        "relationships": if related.is_empty() { Value::Null } else { related.into() },
        "interpretation_id": parts.interpretation.map(|id| id.to_string()),
        "unknown_fields": list_or_null(parts.unknown_fields.clone()),
        "warnings": list_or_null(parts.warnings.clone()),
        "replayed": if done.replayed { Value::Bool(true) } else { Value::Null },
    }));
    let mut text = match done.dry_run {
        true => "Nothing was stored (commit: false). It would store".to_owned(),
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
        count(parts.entities.len(), "entities"),
        count(parts.relationships.len(), "relationships")
    ));
    if done.dry_run {
        return Ok(Answer::new(text, data));
    }
    let data = match data {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    finish(context, text, data, &parts.runs, interpret)
}

/// Waits for the runs of a store if that was asked for, and answers.
fn finish(
    context: &ToolContext,
    text: String,
    mut data: Map<String, Value>,
    runs: &[InterpretationId],
    interpret: InterpretMode,
) -> Result<Answer, Refusal> {
    if interpret == InterpretMode::Wait && !runs.is_empty() {
        let done = wait(context, runs)?;
        let mut cuts = Cuts::new(1_000);
        let done: Vec<_> = done.iter().map(|run| forms::interpretation(run, &mut cuts)).collect();
        data.insert("interpretations".to_owned(), done.into());
    } else if !runs.is_empty() {
        let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
        data.insert("queued_interpretations".to_owned(), runs.into());
    }
    Ok(Answer::new(text, Value::Object(data)))
}

fn entities_form(entities: &[tine_engine::StoredFact]) -> Value {
    if entities.is_empty() {
        return Value::Null;
    }
    let form = |fact: &tine_engine::StoredFact| {
        json!({
            "entity_id": fact.entity.to_string(),
            "observation_id": fact.observation.to_string(),
            "outcome": forms::outcome(fact.outcome),
        })
    };
    entities.iter().map(form).collect()
}

fn store_structured(context: &ToolContext, arguments: FactsArguments) -> Result<Answer, Refusal> {
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
) -> Result<Answer, Refusal> {
    let done = context.engine.store_facts(call, request)?;
    let related = done.relationships.iter().map(|view| {
        json!({
            "type": view.relation.as_str(),
            "source": view.source.to_string(),
            "target": view.target.to_string(),
            "outcome": forms::outcome(view.outcome),
        })
    });
    let related: Vec<Value> = related.collect();
    let mut text = format!(
        "Stored {}, {}.",
        count(done.entities.len(), "entities"),
        count(done.relationships.len(), "relationships")
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
    Ok(Answer::new(
        text,
        json!({
            "entities": entities,
            "relationships": if related.is_empty() { Value::Null } else { related.into() },
            "source_id": done.source.id.to_string(),
            "interpretation_id": done.interpretation.to_string(),
            "unknown_fields": list_or_null(done.unknown_fields),
            "warnings": list_or_null(done.warnings),
            "replayed": if done.replayed { Value::Bool(true) } else { Value::Null },
        }),
    ))
}

fn store_unstructured(
    context: &ToolContext,
    arguments: SourceArguments,
) -> Result<Answer, Refusal> {
    let source = bytes(
        context,
        arguments.text,
        arguments.file_content,
        arguments.file_path,
        arguments.mime_type,
        arguments.original_filename,
    )?;
    let Some(source) = source else {
        return Err(Refusal::invalid("there is nothing to store")
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
) -> Result<Answer, Refusal> {
    let source = NewSource { interpret: interpret.request(), ..source };
    let done: StoredSource = context.engine.store_source(call, source)?;
    let mut data = match forms::source(&done.source) {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    data.insert("outcome".to_owned(), forms::outcome(done.outcome).into());
    if let Some(turn) = &done.turn {
        data.insert("turn".to_owned(), Value::Object(forms::stored_turn(turn)));
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
        forms::outcome(done.outcome),
        done.source.size_bytes
    );
    for warning in &done.warnings {
        text.push_str(&format!(" Note: {warning}."));
    }
    let runs: Vec<_> = done.interpretation.iter().map(|run| run.id).collect();
    finish(context, text, data, &runs, interpret)
}

/// The conversation that an argument names.
pub(super) fn conversation_of(
    context: &ToolContext,
    id: &str,
) -> Result<tine_core::ConversationId, Refusal> {
    conversation(id, context.limits())
}

//! Tools that let a model search and extend the store it is talking in.
//!
//! Arguments come from a model, so errors are returned to it as text, and results are bounded. A
//! model cannot remove anything here: facts are observations, which are only ever added.

use serde_json::{Value, json};
use tine_core::json::{Json, JsonError, Object};
use tine_core::{Limits, TurnId};
use tine_engine::{Call, Engine, EntityQuery, NewFact, Page, SearchQuery, StoreFacts};
use tine_llm::{Tool, ToolCall};

use crate::json_macro::json as exact_json;

/// Turns or entities in one result.
const FOUND: usize = 8;

/// Characters in one result.
const ANSWER: usize = 8_000;

const FACTS: usize = 50;

/// The result of a tool call.
pub(crate) struct ToolOutcome {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

/// Returns the tools in the form that models take.
pub(crate) fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, parameters: Value| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    };
    vec![
        tool(
            "search_turns",
            "Searches all earlier conversations. Use it when the answer may already be there.",
            json!({
                "type": "object",
                "properties": { "query": { "type": "string", "description":
                    "Words, \"phrases\", prefix*, a OR b, -excluded" } },
                "required": ["query"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "store_facts",
            "Stores facts for later conversations. Store only what was said; do not guess.",
            json!({
                "type": "object",
                "properties": { "facts": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "entity_type": { "type": "string", "description":
                            "for example person, task, event, decision, preference" },
                        "fields": { "type": "object", "description":
                            "the facts about it; include a name or a title" },
                    },
                    "required": ["entity_type", "fields"],
                    "additionalProperties": false,
                } } },
                "required": ["facts"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "retrieve_entities",
            "Looks up what is known about people, tasks, events and other entities.",
            json!({
                "type": "object",
                "properties": {
                    "entity_type": { "type": "string" },
                    "text": { "type": "string", "description": "text in its fields" },
                },
                "additionalProperties": false,
            }),
        ),
    ]
}

/// Runs a tool call. Facts that it stores are attributed to `turn`.
pub(crate) fn run(engine: &Engine, call: &Call, turn: TurnId, wanted: &ToolCall) -> ToolOutcome {
    let answer = match wanted.name.as_str() {
        _ if !wanted.arguments.is_object() => Err("the arguments must be a JSON object".to_owned()),
        "search_turns" => search(engine, call, &wanted.arguments),
        "store_facts" => store(engine, call, turn, &wanted.arguments),
        "retrieve_entities" => retrieve(engine, call, &wanted.arguments),
        other => Err(format!("unknown tool `{other}`")),
    };
    let failed = answer.is_err();
    let text = answer.unwrap_or_else(|why| why);
    ToolOutcome { text: bounded(text), failed }
}

/// Truncates a result: the model reads all of it.
fn bounded(text: String) -> String {
    match text.char_indices().nth(ANSWER) {
        None => text,
        Some((end, _)) => format!("{} [truncated; narrow the request]", &text[..end]),
    }
}

type ToolResult = Result<String, String>;

fn member<'v>(arguments: &'v Value, name: &str) -> Result<Option<&'v str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` must be a string")),
    }
}

/// Converts a value parsed by the model's client.
pub(crate) fn exact(value: &Value, limits: &Limits) -> Result<Json, JsonError> {
    tine_core::json::parse(value.to_string().as_bytes(), limits.json_depth)
}

fn search(engine: &Engine, call: &Call, arguments: &Value) -> ToolResult {
    let words = member(arguments, "query")?.ok_or("`query` is missing")?;
    let query = SearchQuery { limit: Some(FOUND), ..SearchQuery::of(words) };
    let page = engine.search(call, query).map_err(|error| error.to_string())?;
    let hits: Vec<Value> = page
        .hits
        .iter()
        .map(|hit| {
            json!({
                "turn_id": hit.turn.to_string(),
                "said_by": hit.role.as_str(),
                "said_at": hit.created_at.to_string(),
                "conversation": hit.conversation_title,
                "text": hit.snippet,
            })
        })
        .collect();
    Ok(json!({ "found": hits, "more": page.next.is_some() }).to_string())
}

fn store(engine: &Engine, call: &Call, turn: TurnId, arguments: &Value) -> ToolResult {
    let facts = arguments.get("facts").and_then(Value::as_array).ok_or("`facts` is missing")?;
    if facts.is_empty() || facts.len() > FACTS {
        return Err(format!("`facts` must have 1 to {FACTS} items"));
    }
    let entities = facts.iter().map(|fact| new_fact(engine, turn, fact));
    let request =
        StoreFacts { entities: entities.collect::<Result<_, _>>()?, ..StoreFacts::default() };
    let stored = engine.store_facts(call, request).map_err(|error| error.to_string())?;
    let ids: Vec<String> = stored.entities.iter().map(|fact| fact.entity.to_string()).collect();
    Ok(json!({ "stored": ids, "warnings": stored.warnings }).to_string())
}

fn new_fact(engine: &Engine, turn: TurnId, fact: &Value) -> Result<NewFact, String> {
    let kind = member(fact, "entity_type")?.ok_or("`entity_type` is missing")?;
    let fields = fact.get("fields").filter(|fields| fields.is_object());
    let fields = fields.ok_or("`fields` must be an object")?;
    let fields = exact(fields, engine.limits()).map_err(|error| error.to_string())?;
    let fields: Object = fields.as_object().cloned().unwrap_or_default();
    Ok(NewFact { turn: Some(turn.into()), ..NewFact::of(kind, fields) })
}

fn retrieve(engine: &Engine, call: &Call, arguments: &Value) -> ToolResult {
    let query = EntityQuery {
        entity_type: member(arguments, "entity_type")?.map(str::to_owned),
        text: member(arguments, "text")?.map(str::to_owned),
        deleted: false,
    };
    let page = Page { cursor: None, limit: Some(FOUND) };
    let found = engine.entities(call, query, page).map_err(|error| error.to_string())?;
    let entities: Vec<Json> = found
        .items
        .iter()
        .map(|entity| {
            exact_json!({
                "entity_id": entity.id.to_string(),
                "entity_type": entity.entity_type.to_string(),
                "name": entity.name.clone(),
                "fields": entity.snapshot.fields.clone(),
            })
        })
        .collect();
    Ok(exact_json!({ "found": entities, "more": found.next.is_some() }).to_string())
}

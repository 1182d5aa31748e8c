//! The memory that a model is offered: tools over the store that it talks in.
//!
//! Arguments come from a model, so whatever is wrong with them is told back in words, and answers
//! are bounded. Nothing here is undone by a model: facts are observations, and only ever added.

use serde_json::{Value, json};
use tine_core::json::{Json, JsonError, Object};
use tine_core::{Limits, TurnId};
use tine_engine::{Call, Engine, EntityQuery, NewFact, Page, SearchQuery, StoreFacts};
use tine_llm::{Tool, ToolCall};

use crate::json::json as exact_json;

/// Turns or entities in one answer.
const FOUND: usize = 8;

/// Characters of one answer.
const ANSWER: usize = 8_000;

/// Facts in one call.
const FACTS: usize = 50;

/// What became of a call.
pub(crate) struct Done {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

/// The tools, as a model is told them.
pub(crate) fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, parameters: Value| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    };
    vec![
        tool(
            "search_turns",
            "Looks through everything that was said in earlier conversations. Use it when the \
             answer may have been said before.",
            json!({
                "type": "object",
                "properties": { "query": { "type": "string", "description":
                    "Words, \"phrases\", word*, OR between neighbours, -word" } },
                "required": ["query"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "store_facts",
            "Remembers what was learned, for later conversations. Store what was said, and nothing \
             that you guess.",
            json!({
                "type": "object",
                "properties": { "facts": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "entity_type": { "type": "string", "description":
                            "such as person, task, event, decision, preference" },
                        "fields": { "type": "object", "description":
                            "what is said of it; give it a name or a title" },
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
            "Reads what is known of people, tasks, events and the like.",
            json!({
                "type": "object",
                "properties": {
                    "entity_type": { "type": "string" },
                    "text": { "type": "string", "description": "something that is said of it" },
                },
                "additionalProperties": false,
            }),
        ),
    ]
}

/// Does what a model asks for. What is stored was said by `turn`.
pub(crate) fn run(engine: &Engine, call: &Call, turn: TurnId, wanted: &ToolCall) -> Done {
    let answer = match wanted.name.as_str() {
        _ if !wanted.arguments.is_object() => Err("the arguments must be a JSON object".to_owned()),
        "search_turns" => search(engine, call, &wanted.arguments),
        "store_facts" => store(engine, call, turn, &wanted.arguments),
        "retrieve_entities" => retrieve(engine, call, &wanted.arguments),
        other => Err(format!("there is no tool `{other}`")),
    };
    let failed = answer.is_err();
    let told = answer.unwrap_or_else(|why| why);
    Done { text: bounded(told), failed }
}

/// A model reads all of an answer, so there is an end to it.
fn bounded(told: String) -> String {
    match told.char_indices().nth(ANSWER) {
        None => told,
        Some((end, _)) => format!("{} [and more; ask for less]", &told[..end]),
    }
}

type Answer = Result<String, String>;

fn member<'v>(arguments: &'v Value, name: &str) -> Result<Option<&'v str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` must be a string")),
    }
}

/// Converts a value that the model's client has read.
pub(crate) fn exact(value: &Value, limits: &Limits) -> Result<Json, JsonError> {
    tine_core::json::parse(value.to_string().as_bytes(), limits.json_depth)
}

fn search(engine: &Engine, call: &Call, arguments: &Value) -> Answer {
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

fn store(engine: &Engine, call: &Call, turn: TurnId, arguments: &Value) -> Answer {
    let facts = arguments.get("facts").and_then(Value::as_array).ok_or("`facts` is missing")?;
    if facts.is_empty() || facts.len() > FACTS {
        return Err(format!("`facts` must be a list of 1 to {FACTS}"));
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

fn retrieve(engine: &Engine, call: &Call, arguments: &Value) -> Answer {
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

//! Schemas that every client accepts, and checking arguments against them.
//!
//! Schemas are derived from argument types. What the generator adds without need (titles, formats,
//! nulls in lists of types) is removed, because hosts pay for each token and some refuse it.
//! Arguments are checked against the same schema, so that an error can name the argument and what
//! it should be.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use tine_core::json::{Json, Object};

use crate::mcp_error::McpError;

/// Returns the schema of a type, without members that hosts do not need.
pub(crate) fn of<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    match schema {
        Value::Object(mut schema) => {
            schema.remove("description");
            schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            schema
        }
        _ => Map::new(),
    }
}

fn tidy(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    for name in ["$schema", "title", "format", "minimum", "maximum"] {
        if !members.get(name).is_some_and(Value::is_object) {
            members.remove(name);
        }
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if members.get("additionalProperties") == Some(&Value::Bool(true)) {
        members.remove("additionalProperties");
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if types.len() == 1 {
            let only = types.remove(0);
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if choices.len() == 1
            && let Value::Object(only) = choices.remove(0)
        {
            members.remove("anyOf");
            for (name, value) in only {
                members.entry(name).or_insert(value);
            }
        }
    }
    merge_constants(members);
    for (name, value) in members.iter_mut() {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(tidy),
            ("anyOf" | "oneOf", Value::Array(choices)) => choices.iter_mut().for_each(tidy),
            (_, value) => tidy(value),
        }
    }
}

/// Replaces a choice of described constants by the list of their values.
fn merge_constants(members: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = members.get("oneOf") else { return };
    let values: Option<Vec<Value>> = choices.iter().map(|it| it.get("const").cloned()).collect();
    if let Some(values) = values.filter(|values| values.iter().all(Value::is_string)) {
        members.remove("oneOf");
        members.insert("type".to_owned(), "string".into());
        members.insert("enum".to_owned(), values.into());
    }
}

/// Refuses arguments that do not match, naming the first mistake.
pub(crate) fn check(schema: &JsonObject, arguments: &Object) -> Result<(), McpError> {
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if let Some(unknown) = arguments.keys().find(|name| !known.contains_key(*name)) {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        let like = names.iter().find(|name| is_similar(unknown, name));
        let meant = like.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        let why = format!("unknown argument `{unknown}`{meant}");
        return Err(McpError::invalid(why).next(format!("the arguments are: {}", names.join(", "))));
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !arguments.contains_key(name) {
            let about = known.get(name).and_then(|it| it.get("description"));
            let about = about.and_then(Value::as_str).unwrap_or("it is required");
            let why = format!("the argument `{name}` is missing");
            return Err(McpError::invalid(why).next(format!("send `{name}`: {about}")));
        }
    }
    for (name, value) in arguments.iter() {
        if let Some(schema) = known.get(name) {
            check_value(name, schema, value)?;
        }
    }
    Ok(())
}

fn check_value(name: &str, schema: &Value, value: &Json) -> Result<(), McpError> {
    if let Some(Value::Array(values)) = schema.get("enum") {
        if values.iter().any(|known| known.as_str() == value.as_str() && known.is_string()) {
            return Ok(());
        }
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        let why = format!("`{name}` is {}", shown(value));
        return Err(
            McpError::invalid(why).next(format!("`{name}` is one of {}", values.join(", ")))
        );
    }
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let right = match wanted {
        "integer" => value.as_u64().is_some(),
        "string" | "number" | "boolean" | "array" | "object" => value.type_name() == wanted,
        _ => true,
    };
    if !right {
        return Err(wrong_type(name, wanted, value));
    }
    if let (Some(items), Json::Array(values)) = (schema.get("items"), value) {
        for (at, value) in values.iter().enumerate() {
            check_value(&format!("{name}[{at}]"), items, value)?;
        }
    }
    Ok(())
}

/// Returns the error for a value of the wrong JSON type.
pub(crate) fn wrong_type(name: &str, wanted: &str, value: &Json) -> McpError {
    let (a, what) = match wanted {
        "integer" => ("a", "non-negative integer"),
        "array" => ("an", "array"),
        "object" => ("an", "object"),
        other => ("a", other),
    };
    let why = format!("`{name}` must be {a} {what}, not {}", shown(value));
    McpError::invalid(why).next(format!("send `{name}` as {a} {what}"))
}

/// Returns a value as errors show it.
fn shown(value: &Json) -> String {
    match value {
        Json::Array(_) => "an array".to_owned(),
        Json::Object(_) => "an object".to_owned(),
        Json::String(text) if text.len() > 40 => "a long text".to_owned(),
        Json::Number(number) if number.to_string().len() > 40 => "a long number".to_owned(),
        other => other.to_canonical(),
    }
}

/// Returns whether one name may be a misspelling of the other.
fn is_similar(given: &str, known: &str) -> bool {
    let bare = |name: &str| name.to_ascii_lowercase().replace(['_', '-'], "");
    let (given, known) = (bare(given), bare(known));
    given == known
        || (given.len() > 3 && (known.starts_with(&given) || given.starts_with(&known)))
        || (given.len() == known.len()
            && given.chars().zip(known.chars()).filter(|(a, b)| a != b).count() <= 2)
}

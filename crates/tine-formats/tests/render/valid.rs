//! What each provider's documentation demands of a request, written apart from the renderings.

use std::collections::{BTreeSet, HashSet};

use tine_core::Json;
use tine_core::json::{self, MAX_DEPTH};
use tine_formats::render::Format;

pub fn check(format: Format, request: &Json) {
    let checked = match format {
        Format::OpenAi => openai(request),
        Format::Anthropic => anthropic(request),
        Format::Gemini => gemini(request),
        Format::Tine | Format::Markdown => Ok(()),
    };
    if let Err(why) = checked {
        panic!("{format:?}: {why}\n{request}");
    }
}

type Checked = Result<(), String>;

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(why()) }
}

fn list<'a>(json: &'a Json, name: &str) -> Result<&'a [Json], String> {
    json.get(name).and_then(Json::as_array).ok_or_else(|| format!("no list `{name}` in {json}"))
}

fn word<'a>(json: &'a Json, name: &str) -> Result<&'a str, String> {
    json.get(name).and_then(Json::as_str).ok_or_else(|| format!("no text `{name}` in {json}"))
}

fn said(text: &str) -> Checked {
    ensure(!text.trim().is_empty(), || "an empty text".to_owned())
}

fn identifier(text: &str, most: usize) -> Checked {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let sound = (1..=most).contains(&text.len()) && text.chars().all(plain);
    ensure(sound, || format!("`{text}` is no identifier"))
}

fn openai(request: &Json) -> Checked {
    let mut ids = HashSet::new();
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for message in list(request, "messages")? {
        let role = word(message, "role")?;
        if role == "tool" {
            let id = word(message, "tool_call_id")?;
            ensure(expected.remove(id), || format!("a result of {id}, which was not called"))?;
        } else {
            ensure(expected.is_empty(), || format!("no results of {expected:?} before {message}"))?;
        }
        let calls = message.get("tool_calls");
        match message.get("content") {
            Some(Json::Null) => ensure(calls.is_some(), || "null without calls".to_owned())?,
            Some(Json::String(text)) => said(text)?,
            Some(Json::Array(parts)) => {
                ensure(!parts.is_empty(), || "no parts".to_owned())?;
                parts.iter().try_for_each(|part| openai_part(part, role))?;
            }
            other => return Err(format!("content {other:?}")),
        }
        let Some(calls) = calls else { continue };
        ensure(role == "assistant", || format!("calls of {role}"))?;
        let calls = calls.as_array().unwrap_or_default();
        ensure(!calls.is_empty(), || "an empty list of calls".to_owned())?;
        for call in calls {
            let id = word(call, "id")?;
            identifier(id, 40)?;
            ensure(ids.insert(id.to_owned()), || format!("the id {id} twice"))?;
            ensure(word(call, "type")? == "function", || "no function".to_owned())?;
            let function = call.get("function").ok_or("no function")?;
            identifier(word(function, "name")?, 64)?;
            let arguments = json::parse(word(function, "arguments")?.as_bytes(), MAX_DEPTH);
            let is_object = arguments.is_ok_and(|it| it.as_object().is_some());
            ensure(is_object, || "arguments that are no JSON object".to_owned())?;
            expected.insert(id.to_owned());
        }
    }
    ensure(expected.is_empty(), || format!("no results of {expected:?}"))
}

fn openai_part(part: &Json, role: &str) -> Checked {
    match (word(part, "type")?, role) {
        ("text", _) => said(word(part, "text")?),
        ("image_url", "user") => {
            let url = word(part.get("image_url").ok_or("no image")?, "url")?;
            ensure(url.starts_with("http") || url.starts_with("data:image/"), || url.to_owned())
        }
        ("input_audio", "user") => {
            let format = word(part.get("input_audio").ok_or("no sound")?, "format")?;
            ensure(["wav", "mp3"].contains(&format), || format.to_owned())
        }
        ("file", "user") => {
            let data = word(part.get("file").ok_or("no file")?, "file_data")?;
            ensure(data.starts_with("data:application/pdf;base64,"), || data.to_owned())
        }
        (kind, role) => Err(format!("a part {kind} of {role}")),
    }
}

fn anthropic(request: &Json) -> Checked {
    if let Some(system) = request.get("system") {
        said(system.as_str().ok_or("system is no text")?)?;
    }
    let messages = list(request, "messages")?;
    let mut ids = HashSet::new();
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let role = ["user", "assistant"][index % 2];
        ensure(word(message, "role")? == role, || format!("message {index} is not {role}'s"))?;
        let single;
        let blocks = match message.get("content") {
            Some(Json::String(text)) => {
                single = [tine_core::message::text_block(text)];
                &single[..]
            }
            Some(Json::Array(blocks)) => blocks.as_slice(),
            other => return Err(format!("content {other:?}")),
        };
        ensure(!blocks.is_empty(), || format!("message {index} is empty"))?;
        let mut before = "tool_result";
        let mut called = BTreeSet::new();
        for block in blocks {
            let kind = word(block, "type")?;
            anthropic_block(block, kind, role)?;
            match kind {
                "tool_result" => {
                    let id = word(block, "tool_use_id")?;
                    ensure(before == "tool_result", || "results do not come first".to_owned())?;
                    ensure(expected.remove(id), || format!("a result of {id}, not called"))?;
                }
                "tool_use" => {
                    let id = word(block, "id")?;
                    ensure(ids.insert(id.to_owned()), || format!("the id {id} twice"))?;
                    called.insert(id.to_owned());
                }
                _ => ensure(before != "tool_use", || format!("{kind} behind a call"))?,
            }
            before = kind;
        }
        ensure(!before.ends_with("thinking"), || "ends in thinking".to_owned())?;
        ensure(expected.is_empty(), || format!("no results of {expected:?}"))?;
        expected = called;
        if index + 1 == messages.len() && role == "assistant" {
            let last = blocks.last().and_then(|block| block.get("text")).and_then(Json::as_str);
            let trimmed = last.is_none_or(|text| text == text.trim_end());
            ensure(trimmed, || "ends in white space".to_owned())?;
        }
    }
    ensure(expected.is_empty(), || format!("no results of {expected:?}"))
}

fn anthropic_block(block: &Json, kind: &str, role: &str) -> Checked {
    match (kind, role) {
        ("text", _) => said(word(block, "text")?),
        ("image" | "document", "user") => {
            let source = block.get("source").ok_or("no source")?;
            match word(source, "type")? {
                "url" => word(source, "url").map(|_| ()),
                "base64" => {
                    word(source, "media_type").and_then(|_| word(source, "data")).map(|_| ())
                }
                other => Err(format!("a source of type {other}")),
            }
        }
        ("thinking", "assistant") => said(word(block, "signature")?),
        ("redacted_thinking", "assistant") => said(word(block, "data")?),
        ("tool_use", "assistant") => {
            identifier(word(block, "id")?, 64)?;
            identifier(word(block, "name")?, 64)?;
            let input = block.get("input").and_then(Json::as_object);
            ensure(input.is_some(), || "input is no object".to_owned())
        }
        ("tool_result", "user") => match block.get("content") {
            Some(Json::String(text)) => said(text),
            Some(Json::Array(blocks)) if !blocks.is_empty() => {
                blocks.iter().try_for_each(|block| match word(block, "type")? {
                    kind @ ("text" | "image" | "document") => anthropic_block(block, kind, "user"),
                    other => Err(format!("{other} in a result")),
                })
            }
            other => Err(format!("a result of {other:?}")),
        },
        (kind, role) => Err(format!("a block {kind} of {role}")),
    }
}

fn gemini(request: &Json) -> Checked {
    if let Some(system) = request.get("systemInstruction") {
        list(system, "parts")?.iter().try_for_each(|part| said(word(part, "text")?))?;
    }
    let mut expected: BTreeSet<(String, String)> = BTreeSet::new();
    for (index, content) in list(request, "contents")?.iter().enumerate() {
        let role = ["user", "model"][index % 2];
        ensure(word(content, "role")? == role, || format!("content {index} is not {role}'s"))?;
        let parts = list(content, "parts")?;
        ensure(!parts.is_empty(), || format!("content {index} is empty"))?;
        let mut called = BTreeSet::new();
        for part in parts {
            let calls = called.len();
            gemini_part(part, role, calls == 0, &mut called, &mut expected)?;
        }
        ensure(expected.is_empty(), || format!("no responses of {expected:?}"))?;
        expected = called;
    }
    ensure(expected.is_empty(), || format!("no responses of {expected:?}"))
}

fn gemini_part(
    part: &Json,
    role: &str,
    first: bool,
    called: &mut BTreeSet<(String, String)>,
    expected: &mut BTreeSet<(String, String)>,
) -> Checked {
    let name = |function: &Json| -> Result<(String, String), String> {
        let name = word(function, "name")?;
        identifier(name, 64)?;
        let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        ensure(begins, || format!("a function named {name}"))?;
        Ok((word(function, "id")?.to_owned(), name.to_owned()))
    };
    if let Some(text) = part.get("text") {
        return said(text.as_str().ok_or("no text")?);
    }
    if let Some(call) = part.get("functionCall") {
        ensure(role == "model", || "a call of the user's".to_owned())?;
        ensure(call.get("args").and_then(Json::as_object).is_some(), || "no args".to_owned())?;
        let signed = part.get("thoughtSignature").is_some();
        ensure(signed || !first, || "the first call has no signature".to_owned())?;
        let named = name(call)?;
        return ensure(called.insert(named), || "a call twice".to_owned());
    }
    if let Some(response) = part.get("functionResponse") {
        ensure(role == "user", || "a response of the model's".to_owned())?;
        let object = response.get("response").and_then(Json::as_object);
        ensure(object.is_some(), || "a response that is no object".to_owned())?;
        let named = name(response)?;
        return ensure(expected.remove(&named), || format!("a response to nothing: {part}"));
    }
    match part.get("inlineData").or_else(|| part.get("fileData")) {
        Some(media) => word(media, "mimeType").map(|_| ()),
        None => Err(format!("an unknown part {part}")),
    }
}

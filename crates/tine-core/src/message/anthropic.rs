//! Messages in the form of Anthropic's Messages API, as turns.
//!
//! There, calls of tools and thoughts have other members, and the results of tools are blocks of
//! the user's next message; here each result is a turn of its own. Whatever is not of that form
//! stays as it is, value for value.

use super::MessageError;
use crate::json::{Json, Object};

/// How a request is cached: nothing of what was said.
const CACHE_CONTROL: &str = "cache_control";

/// What the results of one message may share, all together: each has its metadata.
const SHARED_BYTES: usize = 32 << 20;

/// A block, told by its members.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// `tool_use`: a call.
    Call {
        /// The call's id.
        id: Option<String>,
        /// The tool's name.
        name: Option<String>,
        /// Its parameters.
        input: Json,
        /// Members besides.
        rest: Object,
    },
    /// `tool_result`: what a tool answered.
    Result(ToolResult),
    /// `thinking`.
    Thinking {
        /// What was thought.
        text: String,
        /// What shows that the model thought it.
        signature: Option<String>,
        /// Members besides.
        rest: Object,
    },
    /// Anything else.
    Other(Json),
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call: Option<String>,
    /// A text, blocks or nothing.
    pub content: Json,
    /// Whether the call failed.
    pub failed: bool,
    /// Members besides.
    pub rest: Object,
}

/// The block's type, if it has another form than here.
fn kind(block: &Json) -> Option<&'static str> {
    let is_thought = || match (block.get("text"), block.get("thinking")) {
        (None, Some(Json::Null) | None) => block.get("signature").is_some(),
        (None, Some(thought)) => thought.as_str().is_some(),
        (Some(_), _) => false,
    };
    match block.get("type")?.as_str()? {
        "tool_use" => Some("tool_use"),
        "tool_result" => Some("tool_result"),
        "thinking" if is_thought() => Some("thinking"),
        _ => None,
    }
}

/// Reads a block.
pub fn block(block: Json) -> Block {
    let Some(kind) = kind(&block) else {
        return Block::Other(block);
    };
    let Json::Object(mut rest) = block else {
        return Block::Other(block);
    };
    rest.remove("type");
    rest.remove(CACHE_CONTROL);
    match kind {
        "tool_use" => Block::Call {
            id: text(&mut rest, "id"),
            name: text(&mut rest, "name"),
            input: rest.remove("input").unwrap_or(Json::Null),
            rest,
        },
        "tool_result" => Block::Result(ToolResult {
            call: text(&mut rest, "tool_use_id"),
            content: rest.remove("content").unwrap_or(Json::Null),
            failed: match rest.get("is_error") {
                Some(Json::Bool(_) | Json::Null) => {
                    rest.remove("is_error") == Some(Json::Bool(true))
                }
                _ => false,
            },
            rest,
        }),
        _ => Block::Thinking {
            text: match rest.remove("thinking") {
                Some(Json::String(thought)) => thought,
                _ => String::new(),
            },
            signature: text(&mut rest, "signature").filter(|signature| !signature.is_empty()),
            rest,
        },
    }
}

/// A text, which stays where it is if it is none.
fn text(fields: &mut Object, name: &str) -> Option<String> {
    let text = fields.get(name)?.as_str()?.to_owned();
    fields.remove(name);
    Some(text)
}

/// Canonical blocks, and results with their places in the message.
type ToldApart = (Vec<Json>, Vec<(usize, ToolResult)>);

/// Canonical blocks, and the results of tools that stood among them.
fn told_apart(blocks: Vec<Json>) -> Result<ToldApart, MessageError> {
    let (mut said, mut results) = (Vec::with_capacity(blocks.len()), Vec::new());
    for (index, json) in blocks.into_iter().enumerate() {
        match block(json) {
            Block::Call { id, name, input, mut rest } => {
                if rest.get("parameters").is_some() {
                    let why = "a `tool_use` block has `input`, a `tool-use` block `parameters`";
                    return Err(MessageError::Block { index, why: why.to_owned() });
                }
                rest.insert("type", "tool-use".into());
                id.map(|id| rest.insert("id", id.into()));
                name.map(|name| rest.insert("name", name.into()));
                let none = input.is_null();
                rest.insert("parameters", if none { Object::new().into() } else { input });
                said.push(rest.into());
            }
            Block::Thinking { text, signature, mut rest } => {
                rest.insert("type", "thinking".into());
                rest.insert("text", text.into());
                signature.map(|signature| rest.insert("signature", signature.into()));
                said.push(rest.into());
            }
            Block::Result(result) => results.push((index, result)),
            Block::Other(json) => said.push(json),
        }
    }
    Ok((said, results))
}

/// The messages that a message is here: the results of tools first, then what else is said. Each
/// has its time, status and metadata.
pub(super) fn messages(fields: Object) -> Result<Vec<Object>, MessageError> {
    let is_foreign = |content: &Json| match content {
        Json::Array(blocks) => blocks.iter().any(|block| kind(block).is_some()),
        _ => false,
    };
    // A tool's own message is no answer to another.
    let speaks = fields.get("role").and_then(Json::as_str) != Some("tool");
    if !speaks || !fields.get("content").is_some_and(is_foreign) {
        return Ok(vec![fields]);
    }
    let mut fields = fields;
    let Some(Json::Array(blocks)) = fields.remove("content") else {
        return Ok(vec![fields]);
    };
    let (said, results) = told_apart(blocks)?;
    if results.len() > 1 {
        check_shared(&fields, results.len())?;
    }
    let mut turns = Vec::with_capacity(results.len() + 1);
    for (index, result) in results {
        turns.push(answer(fields.clone(), index, result)?);
    }
    if !said.is_empty() {
        fields.insert("content", Json::Array(said));
        turns.push(fields);
    }
    Ok(turns)
}

/// Refuses what would be repeated more often than anybody means to.
fn check_shared(fields: &Object, times: usize) -> Result<(), MessageError> {
    let bytes = Json::from(fields.clone()).to_canonical().len();
    if bytes.saturating_mul(times) <= SHARED_BYTES {
        return Ok(());
    }
    let why = format!(
        "{times} results of tools share {bytes} bytes of metadata; send each as a `tool` message \
         of its own"
    );
    Err(MessageError::Block { index: 0, why })
}

/// A tool's message.
fn answer(fields: Object, index: usize, result: ToolResult) -> Result<Object, MessageError> {
    let wrong = |why: String| MessageError::Block { index, why };
    if fields.get("role").and_then(Json::as_str) != Some("user") {
        return Err(wrong("only a user's message brings a `tool_result`".to_owned()));
    }
    let mut fields = fields;
    let call = result
        .call
        .ok_or_else(|| wrong("a `tool_result` block needs a text as `tool_use_id`".to_owned()))?;
    if let Some(other) = result.rest.keys().next() {
        return Err(wrong(format!("unknown field `{other}` of a `tool_result` block")));
    }
    fields.insert("role", "tool".into());
    fields.insert("tool_call_id", call.into());
    let is_empty = result.content.as_array().is_some_and(|blocks| blocks.is_empty());
    let nothing = result.content.is_null() || is_empty;
    fields.insert("content", if nothing { "".into() } else { result.content });
    if result.failed {
        set_failed(&mut fields);
    }
    Ok(fields)
}

fn set_failed(fields: &mut Object) {
    let mut metadata = fields.remove("metadata").unwrap_or(Json::Null);
    if metadata.is_null() {
        metadata = Object::new().into();
    }
    if let Json::Object(metadata) = &mut metadata {
        let info = metadata.remove("source_info").unwrap_or(Json::Null);
        let mut info = if info.is_null() { Object::new().into() } else { info };
        if let Json::Object(info) = &mut info {
            info.insert("is_error", true.into());
        }
        metadata.insert("source_info", info);
    }
    fields.insert("metadata", metadata);
}

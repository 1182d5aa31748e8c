//! Converts messages of Anthropic's Messages API into turns.
//!
//! In that API, tool calls and thinking blocks have different members, and tool results are blocks
//! of the user's next message; here each result is a turn of its own. All other blocks are left
//! unchanged.

use super::MessageError;
use crate::json::{Json, Object};

/// A request's caching hint, which is not part of the content and is dropped.
const CACHE_CONTROL: &str = "cache_control";

/// Limit on the metadata that the tool results of one message repeat, summed over the results.
const SHARED_BYTES: usize = 32 << 20;

/// A block, classified by its type and members.
#[derive(Clone, Debug, PartialEq)]
pub enum AnthropicBlock {
    /// `tool_use`: a call.
    Call {
        /// The call's id.
        id: Option<String>,
        /// The tool's name.
        name: Option<String>,
        /// Its parameters.
        input: Json,
        /// Other members.
        rest: Object,
    },
    /// `tool_result`: the result of a call.
    Result(ToolResult),
    /// `thinking`.
    Thinking {
        /// The model's reasoning.
        text: String,
        /// The provider's signature of the reasoning.
        signature: Option<String>,
        /// Other members.
        rest: Object,
    },
    /// Anything else.
    Other(Json),
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call: Option<String>,
    /// A string, blocks or null.
    pub content: Json,
    /// Whether the call failed.
    pub failed: bool,
    /// Other members.
    pub rest: Object,
}

/// Returns the block's type if its form differs from the canonical one.
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

/// Classifies a block.
pub fn block(block: Json) -> AnthropicBlock {
    let Some(kind) = kind(&block) else {
        return AnthropicBlock::Other(block);
    };
    let Json::Object(mut rest) = block else {
        return AnthropicBlock::Other(block);
    };
    rest.remove("type");
    rest.remove(CACHE_CONTROL);
    match kind {
        "tool_use" => AnthropicBlock::Call {
            id: text(&mut rest, "id"),
            name: text(&mut rest, "name"),
            input: rest.remove("input").unwrap_or(Json::Null),
            rest,
        },
        "tool_result" => AnthropicBlock::Result(ToolResult {
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
        _ => AnthropicBlock::Thinking {
            text: match rest.remove("thinking") {
                Some(Json::String(thought)) => thought,
                _ => String::new(),
            },
            signature: text(&mut rest, "signature").filter(|signature| !signature.is_empty()),
            rest,
        },
    }
}

/// Removes and returns a member that is a string; any other value is left in place.
fn text(fields: &mut Object, name: &str) -> Option<String> {
    let text = fields.get(name)?.as_str()?.to_owned();
    fields.remove(name);
    Some(text)
}

/// Canonical blocks, and tool results with their index in the message.
type SplitBlocks = (Vec<Json>, Vec<(usize, ToolResult)>);

/// Separates tool results from the other blocks, which are converted to canonical form.
fn split_tool_results(blocks: Vec<Json>) -> Result<SplitBlocks, MessageError> {
    let (mut content, mut results) = (Vec::with_capacity(blocks.len()), Vec::new());
    for (index, json) in blocks.into_iter().enumerate() {
        match block(json) {
            AnthropicBlock::Call { id, name, input, mut rest } => {
                if rest.get("parameters").is_some() {
                    let why = "a `tool_use` block has `input`, a `tool-use` block `parameters`";
                    return Err(MessageError::Block { index, why: why.to_owned() });
                }
                rest.insert("type", "tool-use".into());
                id.map(|id| rest.insert("id", id.into()));
                name.map(|name| rest.insert("name", name.into()));
                let none = input.is_null();
                rest.insert("parameters", if none { Object::new().into() } else { input });
                content.push(rest.into());
            }
            AnthropicBlock::Thinking { text, signature, mut rest } => {
                rest.insert("type", "thinking".into());
                rest.insert("text", text.into());
                signature.map(|signature| rest.insert("signature", signature.into()));
                content.push(rest.into());
            }
            AnthropicBlock::Result(result) => results.push((index, result)),
            AnthropicBlock::Other(json) => content.push(json),
        }
    }
    Ok((content, results))
}

/// Converts one message into turns: tool results first, then the remaining content. Each turn gets
/// the message's time, status and metadata.
pub(super) fn messages(fields: Object) -> Result<Vec<Object>, MessageError> {
    let is_foreign = |content: &Json| match content {
        Json::Array(blocks) => blocks.iter().any(|block| kind(block).is_some()),
        _ => false,
    };
    // A tool's own message cannot contain results of other tools.
    let may_hold_results = fields.get("role").and_then(Json::as_str) != Some("tool");
    if !may_hold_results || !fields.get("content").is_some_and(is_foreign) {
        return Ok(vec![fields]);
    }
    let mut fields = fields;
    let Some(Json::Array(blocks)) = fields.remove("content") else {
        return Ok(vec![fields]);
    };
    let (content, results) = split_tool_results(blocks)?;
    if results.len() > 1 {
        check_shared(&fields, results.len())?;
    }
    let mut turns = Vec::with_capacity(results.len() + 1);
    for (index, result) in results {
        turns.push(tool_turn(fields.clone(), index, result)?);
    }
    if !content.is_empty() {
        fields.insert("content", Json::Array(content));
        turns.push(fields);
    }
    Ok(turns)
}

/// Rejects metadata that would be repeated beyond [`SHARED_BYTES`].
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

/// Builds the turn of a tool result.
fn tool_turn(fields: Object, index: usize, result: ToolResult) -> Result<Object, MessageError> {
    let wrong = |why: String| MessageError::Block { index, why };
    if fields.get("role").and_then(Json::as_str) != Some("user") {
        return Err(wrong("only a user's message can have a `tool_result`".to_owned()));
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

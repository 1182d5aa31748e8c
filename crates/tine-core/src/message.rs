//! Messages and their canonical form.
//!
//! A [`Body`] is always canonical: exactly one plain text block is kept as its bare text,
//! everything else as the RFC 8785 bytes of the block array. Two bodies are therefore equal
//! when they are equal byte for byte, and nothing has to be canonicalised twice.
//!
//! Unknown block types pass through unchanged. Unknown fields of a *message* are rejected, because
//! they would otherwise be dropped silently.

pub mod anthropic;

use std::str::FromStr;

use crate::hash::{self, Digest};
use crate::ids::{NameError, check_key};
use crate::json::{self, Json, JsonError, Object, write_canonical_string};
use crate::limits::Limits;
use crate::metadata::{Metadata, MetadataError};
use crate::text::preview;
use crate::time::{Timestamp, TimestampError};

/// Who is speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// A person.
    User,
    /// A model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// Instructions in the middle of a conversation; the root has its own.
    System,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::User, Role::Assistant, Role::Tool, Role::System];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::System => "system",
        }
    }
}

impl FromStr for Role {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Role::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| MessageError::UnknownRole { role: text.to_owned() })
    }
}

/// Whether the message is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// The whole message.
    #[default]
    Complete,
    /// A stream was cut off.
    Partial,
}

impl Status {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Partial => "partial",
        }
    }

    /// Returns the status of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Status::Complete, Status::Partial].into_iter().find(|status| status.as_str() == name)
    }
}

/// The content of a message, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// Exactly one plain text block.
    Text(String),
    /// The canonical JSON of any other block array.
    Blocks(String),
}

impl Body {
    /// Checks and canonicalises a `content` value: a string or an array of blocks.
    pub fn from_content(content: Json, role: Role, limits: &Limits) -> Result<Self, MessageError> {
        match content {
            Json::String(text) => {
                // Only a tool may have empty output.
                if text.is_empty() && role != Role::Tool {
                    return Err(MessageError::Empty);
                }
                check_size(text.len(), limits)?;
                Ok(Body::Text(text))
            }
            Json::Array(blocks) => Body::from_blocks(blocks, role, limits),
            other => Err(MessageError::ContentType { found: other.type_name() }),
        }
    }

    /// Reads content as callers send it for a turn whose role they do not name. What depends on the
    /// role ([`Message::check`]) is checked once the role is known.
    pub fn of_any_role(content: Json, limits: &Limits) -> Result<Self, MessageError> {
        match content {
            Json::String(_) => Body::from_content(content, Role::Tool, limits),
            content => Body::from_request(content, Role::Assistant, limits),
        }
    }

    /// Checks and canonicalises `content` from a request, which may be in Anthropic's form.
    pub fn from_request(content: Json, role: Role, limits: &Limits) -> Result<Self, MessageError> {
        let fields = [("role", role.as_str().into()), ("content", content)];
        let fields = fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let mut turns = anthropic::messages(fields)?;
        match (turns.pop(), turns.len()) {
            (Some(mut only), 0) if only.get("tool_call_id").is_none() => {
                Body::from_content(only.remove("content").unwrap_or(Json::Null), role, limits)
            }
            (_, before) => Err(MessageError::SeveralTurns { turns: before + 1 }),
        }
    }

    fn from_blocks(blocks: Vec<Json>, role: Role, limits: &Limits) -> Result<Self, MessageError> {
        if blocks.is_empty() {
            return Err(MessageError::Empty);
        }
        let mut canonical = String::from("[");
        for (index, block) in blocks.iter().enumerate() {
            check_block(index, block, role)?;
            if index > 0 {
                canonical.push(',');
            }
            let start = canonical.len();
            block.write_canonical(&mut canonical);
            check_size(canonical.len() - start, limits)?;
        }
        canonical.push(']');
        if let [block] = blocks.as_slice()
            && let Some(text) = plain_text(block)
        {
            return Ok(Body::Text(text.to_owned()));
        }
        Ok(Body::Blocks(canonical))
    }

    /// Parses the blocks.
    pub fn blocks(&self) -> Result<Vec<Json>, JsonError> {
        match self {
            Body::Text(text) => Ok(vec![text_block(text)]),
            Body::Blocks(canonical) => match json::parse(canonical.as_bytes(), STORED_DEPTH)? {
                Json::Array(blocks) => Ok(blocks),
                other => Ok(vec![other]),
            },
        }
    }

    /// Returns the concatenated text of a body that consists of text blocks only.
    pub fn text_only(&self) -> Option<String> {
        match self {
            Body::Text(text) => Some(text.clone()),
            Body::Blocks(_) => {
                let blocks = self.blocks().ok()?;
                blocks.iter().map(plain_text).collect()
            }
        }
    }

    /// Returns the beginning of the content on one line, for listings.
    pub fn preview(&self, limit: usize) -> String {
        match self {
            Body::Text(text) => preview(text, limit),
            Body::Blocks(_) => {
                let blocks = self.blocks().unwrap_or_default();
                let texts: Vec<String> = blocks.iter().map(block_preview).collect();
                preview(&texts.join(" "), limit)
            }
        }
    }

    /// Appends the canonical block array, the form in which `content` is returned and exported.
    pub fn write_blocks(&self, out: &mut String) {
        match self {
            Body::Text(text) => {
                out.push_str("[{\"text\":");
                write_canonical_string(out, text);
                out.push_str(",\"type\":\"text\"}]");
            }
            Body::Blocks(canonical) => out.push_str(canonical),
        }
    }

    /// Returns the canonical block array.
    pub fn to_blocks_string(&self) -> String {
        let mut out = String::with_capacity(self.stored_len() + 32);
        self.write_blocks(&mut out);
        out
    }

    /// Appends the form that is hashed: a single plain text block is its bare string.
    pub(crate) fn write_hashed_form(&self, out: &mut String) {
        match self {
            Body::Text(text) => write_canonical_string(out, text),
            Body::Blocks(canonical) => out.push_str(canonical),
        }
    }

    /// Returns the number of bytes that the body takes in a store.
    pub fn stored_len(&self) -> usize {
        match self {
            Body::Text(text) | Body::Blocks(text) => text.len(),
        }
    }
}

/// Stored bodies passed a depth check on the way in; this only bounds the recursion.
const STORED_DEPTH: usize = json::MAX_DEPTH;

/// One message to append.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The author's role.
    pub role: Role,
    /// The content.
    pub body: Body,
    /// The call that a tool turn answers.
    pub tool_call_id: Option<String>,
    /// The message's own timestamp, if it has one.
    pub created_at: Option<Timestamp>,
    /// Whether the message is complete.
    pub status: Status,
    /// Metadata, which is not hashed.
    pub metadata: Metadata,
}

/// Why a message is rejected. Nothing of the request that contains it is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum MessageError {
    #[error("a message must be an object with `role` and `content`, not {found}")]
    NotAnObject { found: &'static str },
    #[error("the message has no `{field}`")]
    Missing { field: &'static str },
    #[error("unknown field `{field}`; own data belongs under `metadata.custom_data`")]
    UnknownField { field: String },
    #[error("`{field}` must be {expected}, not {found}")]
    FieldType { field: &'static str, expected: &'static str, found: &'static str },
    #[error("unknown role `{role}`; use user, assistant, tool or system")]
    UnknownRole { role: String },
    #[error("unknown status `{status}`; use complete or partial")]
    UnknownStatus { status: String },
    #[error("the content is empty; give a text or at least one block")]
    Empty,
    #[error("`content` must be a string or an array of blocks, not {found}")]
    ContentType { found: &'static str },
    #[error("block {index}: {why}")]
    Block {
        /// Its position, from 0.
        index: usize,
        why: String,
    },
    #[error("block {index}: only an assistant's turn may hold `tool-use`, this one is {role}'s")]
    ToolUseRole {
        /// The block's position, from 0.
        index: usize,
        role: &'static str,
    },
    #[error("a tool turn needs `tool_call_id`, the id of the tool-use block it answers")]
    ToolCallIdMissing,
    #[error("only a tool turn has `tool_call_id`; this one is {role}'s")]
    ToolCallIdRole { role: &'static str },
    #[error("a block holds at most {limit} bytes; this one has {bytes}")]
    BlockTooLarge { limit: usize, bytes: usize },
    #[error(transparent)]
    Time(#[from] TimestampError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error(
        "each `tool_result` is a turn of its own, and what else the message says is another \
         ({turns} in all); send it in a list of `messages`"
    )]
    SeveralTurns { turns: usize },
    #[error("the arguments of tool call {index} are not valid JSON: {error}")]
    Arguments {
        /// Position among the calls, from 0.
        index: usize,
        error: JsonError,
    },
}

impl MessageError {
    /// Returns whether a limit was exceeded, as opposed to a malformed message.
    pub fn is_too_large(&self) -> bool {
        match self {
            MessageError::BlockTooLarge { .. } => true,
            MessageError::Name(error) | MessageError::Metadata(MetadataError::Name(error)) => {
                error.is_too_long()
            }
            MessageError::Arguments { error, .. } => error.is_too_deep(),
            _ => false,
        }
    }
}

impl Message {
    /// Creates a message of one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Message {
            role,
            body: Body::Text(text.into()),
            tool_call_id: None,
            created_at: None,
            status: Status::Complete,
            metadata: Metadata::default(),
        }
    }

    /// Creates a tool result.
    pub fn tool(call: impl Into<String>, text: impl Into<String>) -> Self {
        let tool_call_id = Some(call.into());
        Message { tool_call_id, ..Message::text(Role::Tool, text) }
    }

    /// Reads a message in canonical or legacy form (`content: string|null`, `tool_calls`), as found
    /// in records and files. For requests, use [`from_request`](Message::from_request).
    ///
    /// ```
    /// use tine_core::{json, Limits, Message, Role};
    /// let limits = Limits::default();
    /// let value = json::parse(br#"{"role":"user","content":"Hi"}"#, limits.json_depth).unwrap();
    /// assert_eq!(Message::from_json(value, &limits).unwrap(), Message::text(Role::User, "Hi"));
    /// ```
    pub fn from_json(json: Json, limits: &Limits) -> Result<Self, MessageError> {
        let Json::Object(mut fields) = json else {
            return Err(MessageError::NotAnObject { found: json.type_name() });
        };
        let role: Role = text_field(&mut fields, "role")?
            .ok_or(MessageError::Missing { field: "role" })?
            .parse()?;
        let calls = fields.remove("tool_calls").filter(|calls| !calls.is_null());
        let content = fields.remove("content").unwrap_or(Json::Null);
        let tool_call_id = text_field(&mut fields, "tool_call_id")?;
        let created_at = text_field(&mut fields, "created_at")?.map(|at| at.parse()).transpose()?;
        let status = match text_field(&mut fields, "status")?.as_deref() {
            None | Some("complete") => Status::Complete,
            Some("partial") => Status::Partial,
            Some(other) => {
                return Err(MessageError::UnknownStatus { status: other.to_owned() });
            }
        };
        let metadata = match fields.remove("metadata") {
            Some(metadata) => Metadata::from_json(&metadata, limits)?,
            None => Metadata::default(),
        };
        // Ignoring a null loses nothing.
        if let Some((field, _)) = fields.iter().find(|(_, value)| !value.is_null()) {
            return Err(MessageError::UnknownField { field: field.to_owned() });
        }
        let content = match calls {
            Some(calls) => legacy_content(content, calls, limits)?,
            None if content.is_null() => return Err(MessageError::Missing { field: "content" }),
            None => content,
        };
        let body = Body::from_content(content, role, limits)?;
        let message = Message { role, body, tool_call_id, created_at, status, metadata };
        message.check_call(limits)?;
        Ok(message)
    }

    /// Reads a message of a request, in canonical, legacy or Anthropic's form. Anthropic's puts
    /// tool results into the user's next message; here each of them becomes a turn of its own.
    ///
    /// ```
    /// use tine_core::{json, Limits, Message, Role};
    /// let limits = Limits::default();
    /// let sent = br#"{"role": "user", "content": [
    ///     {"type": "tool_result", "tool_use_id": "c1", "content": "Sunny."},
    ///     {"type": "text", "text": "And tomorrow?"}]}"#;
    /// let sent = json::parse(sent, limits.json_depth).unwrap();
    /// let turns = Message::from_request(sent, &limits).unwrap();
    /// assert_eq!(turns[0], Message::tool("c1", "Sunny."));
    /// assert_eq!(turns[1], Message::text(Role::User, "And tomorrow?"));
    /// ```
    pub fn from_request(json: Json, limits: &Limits) -> Result<Vec<Self>, MessageError> {
        let Json::Object(fields) = json else {
            return Err(MessageError::NotAnObject { found: json.type_name() });
        };
        let turns = anthropic::messages(fields)?;
        turns.into_iter().map(|turn| Message::from_json(turn.into(), limits)).collect()
    }

    /// Reads a message of a request that must be exactly one turn.
    pub fn single_from_request(json: Json, limits: &Limits) -> Result<Self, MessageError> {
        let mut turns = Message::from_request(json, limits)?;
        match (turns.pop(), turns.len()) {
            (Some(only), 0) => Ok(only),
            (_, before) => Err(MessageError::SeveralTurns { turns: before + 1 }),
        }
    }

    /// Checks that a tool turn names its call, and that no other turn does.
    fn check_call(&self, limits: &Limits) -> Result<(), MessageError> {
        match (self.role, &self.tool_call_id) {
            (Role::Tool, None) => Err(MessageError::ToolCallIdMissing),
            (Role::Tool, Some(call)) => Ok(check_key("tool_call_id", call, limits)?),
            (role, Some(_)) => Err(MessageError::ToolCallIdRole { role: role.as_str() }),
            (_, None) => Ok(()),
        }
    }

    /// Checks a message that was built in code as strictly as one that was parsed.
    pub fn check(&self, limits: &Limits) -> Result<(), MessageError> {
        match &self.body {
            Body::Text(text) if text.is_empty() && self.role != Role::Tool => {
                return Err(MessageError::Empty);
            }
            Body::Text(text) => check_size(text.len(), limits)?,
            // Blocks can only have come through the checks above; the role may have changed since.
            Body::Blocks(canonical)
                if self.role != Role::Assistant && canonical.contains("\"tool-use\"") =>
            {
                let blocks = self.body.blocks().unwrap_or_default();
                for (index, block) in blocks.iter().enumerate() {
                    check_block(index, block, self.role)?;
                }
            }
            Body::Blocks(_) => {}
        }
        self.check_call(limits)
    }

    /// Returns the digest of role, content and tool call id, which identifies equal messages.
    pub fn digest(&self) -> Digest {
        hash::message_digest(self.role, &self.body, self.tool_call_id.as_deref())
    }
}

/// Creates a plain text block.
pub fn text_block(text: &str) -> Json {
    json::object([("type", "text".into()), ("text", text.into())])
}

fn plain_text(block: &Json) -> Option<&str> {
    let object = block.as_object()?;
    let plain = object.len() == 2 && object.get("type")?.as_str()? == "text";
    plain.then(|| object.get("text")?.as_str()).flatten()
}

fn block_preview(block: &Json) -> String {
    let kind = block.get("type").and_then(Json::as_str).unwrap_or("?");
    let member = |name| block.get(name).and_then(Json::as_str).unwrap_or_default();
    match kind {
        "text" => member("text").to_owned(),
        "tool-use" => format!("→ {}", member("name")),
        "thinking" => format!("({})", member("text")),
        other => format!("[{other}]"),
    }
}

fn check_size(bytes: usize, limits: &Limits) -> Result<(), MessageError> {
    let limit = limits.block_bytes;
    if bytes > limit {
        return Err(MessageError::BlockTooLarge { limit, bytes });
    }
    Ok(())
}

fn check_block(index: usize, block: &Json, role: Role) -> Result<(), MessageError> {
    let wrong = |why: String| MessageError::Block { index, why };
    let Json::Object(object) = block else {
        return Err(wrong(format!("a block must be an object, not {}", block.type_name())));
    };
    let kind = match object.get("type") {
        Some(Json::String(kind)) if !kind.is_empty() => kind.as_str(),
        Some(other) => {
            return Err(wrong(format!(
                "`type` must be a non-empty string, not {}",
                other.type_name()
            )));
        }
        None => return Err(wrong("a block needs a `type`".to_owned())),
    };
    let required: &[&str] = match kind {
        "text" | "thinking" => &["text"],
        "tool-use" => &["id", "name"],
        _ => &[],
    };
    for name in required {
        match object.get(name) {
            Some(Json::String(text)) if !text.is_empty() || *name == "text" => {}
            Some(Json::String(_)) => return Err(wrong(format!("`{name}` must not be empty"))),
            Some(other) => {
                let found = other.type_name();
                return Err(wrong(format!("`{name}` must be a string, not {found}")));
            }
            None => return Err(wrong(format!("a `{kind}` block needs `{name}`"))),
        }
    }
    if kind == "tool-use" {
        if role != Role::Assistant {
            return Err(MessageError::ToolUseRole { index, role: role.as_str() });
        }
        if !matches!(object.get("parameters"), Some(Json::Object(_))) {
            return Err(wrong("a `tool-use` block needs an object as `parameters`".to_owned()));
        }
    }
    Ok(())
}

fn text_field(fields: &mut Object, field: &'static str) -> Result<Option<String>, MessageError> {
    match fields.remove(field) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => {
            let (expected, found) = ("a string", other.type_name());
            Err(MessageError::FieldType { field, expected, found })
        }
    }
}

/// Builds canonical content: text first, then one `tool-use` block per call.
fn legacy_content(content: Json, calls: Json, limits: &Limits) -> Result<Json, MessageError> {
    let mut blocks = match content {
        Json::Null => Vec::new(),
        Json::String(text) if text.is_empty() => Vec::new(),
        Json::String(text) => vec![text_block(&text)],
        Json::Array(blocks) => blocks,
        other => {
            return Err(MessageError::ContentType { found: other.type_name() });
        }
    };
    let Json::Array(calls) = calls else {
        let (field, expected, found) = ("tool_calls", "an array", calls.type_name());
        return Err(MessageError::FieldType { field, expected, found });
    };
    for (index, call) in calls.iter().enumerate() {
        blocks.push(legacy_call(index, call, limits)?);
    }
    Ok(Json::Array(blocks))
}

/// Converts `{id, function: {name, arguments}}`, or the same without the wrapper.
fn legacy_call(index: usize, call: &Json, limits: &Limits) -> Result<Json, MessageError> {
    let wrong = |why: &str| MessageError::Block { index, why: format!("tool call: {why}") };
    let inner = call.get("function").unwrap_or(call);
    let id = call.get("id").and_then(Json::as_str).ok_or_else(|| wrong("it has no `id`"))?;
    let name = inner.get("name").and_then(Json::as_str).ok_or_else(|| wrong("it has no `name`"))?;
    let parameters = match inner.get("arguments").or_else(|| inner.get("parameters")) {
        None | Some(Json::Null) => Json::Object(Object::new()),
        Some(Json::String(text)) if text.trim().is_empty() => Json::Object(Object::new()),
        Some(Json::String(text)) => json::parse(text.trim().as_bytes(), limits.json_depth)
            .map_err(|error| MessageError::Arguments { index, error })?,
        Some(value) => value.clone(),
    };
    if parameters.as_object().is_none() {
        return Err(wrong("its arguments must be a JSON object"));
    }
    Ok(json::object([
        ("type", "tool-use".into()),
        ("id", id.into()),
        ("name", name.into()),
        ("parameters", parameters),
    ]))
}

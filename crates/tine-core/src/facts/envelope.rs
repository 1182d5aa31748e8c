//! Turn envelopes: a turn of a conversation as a source, with its role, time and conversation.

use crate::json::{self, Json, Object};
use crate::{Limits, Role, SourceId, Timestamp};

/// Tine's own mime type of an envelope.
pub const MIME: &str = "application/vnd.tine.turn+json";
/// The mime type of the same format in Neotoma, where it originated.
pub const NEOTOMA_MIME: &str = "application/x-neotoma-conversation-turn";

/// Returns whether a mime type is that of an envelope, whatever its parameters and case.
pub fn is_envelope(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(MIME) || essence.eq_ignore_ascii_case(NEOTOMA_MIME)
}

/// One turn, as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The text that is interpreted.
    pub content: String,
    /// The time of the turn.
    pub timestamp: Option<Timestamp>,
    /// The host's id of the conversation.
    pub conversation_id: Option<String>,
    /// The host's id of the turn.
    pub turn_id: Option<String>,
    /// The author's role.
    pub role: Role,
    /// The call that a tool's turn answers.
    pub tool_call_id: Option<String>,
    /// Attached sources.
    pub attachments: Vec<SourceId>,
}

/// An envelope that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no turn envelope: {why}")]
pub struct EnvelopeError {
    /// What is wrong and what would be right.
    pub why: String,
}

impl Envelope {
    /// Parses an envelope. Unknown members are ignored: the source keeps the original bytes.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Envelope, EnvelopeError> {
        let json = json::parse(bytes, limits.json_depth)
            .map_err(|error| EnvelopeError { why: format!("it is not JSON: {error}") })?;
        let Some(members) = json.as_object() else {
            return wrong("it is a JSON object with a string `content`");
        };
        let Some(content) = members.get("content").and_then(Json::as_str) else {
            return wrong("it needs `content`, a string");
        };
        let timestamp = match string(members, "timestamp")? {
            None => None,
            Some(text) => match text.parse() {
                Ok(time) => Some(time),
                Err(_) => {
                    return wrong(format!("`timestamp` is `{text}`, not a time as in RFC 3339"));
                }
            },
        };
        let role = match string(members, "role")? {
            None => Role::User,
            Some(text) => match text.parse() {
                Ok(role) => role,
                Err(_) => {
                    return wrong(format!("`role` is `{text}`: user, assistant, tool or system"));
                }
            },
        };
        let attachments = match members.get("attachment_source_ids") {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::Array(ids)) => ids.iter().map(source).collect::<Result<_, _>>()?,
            Some(_) => return wrong("`attachment_source_ids` is an array of source ids"),
        };
        Ok(Envelope {
            content: content.to_owned(),
            timestamp,
            conversation_id: string(members, "conversation_id")?.map(str::to_owned),
            turn_id: string(members, "turn_id")?.map(str::to_owned),
            role,
            tool_call_id: string(members, "tool_call_id")?.map(str::to_owned),
            attachments,
        })
    }

    /// Returns the canonical bytes of an envelope.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut members = Object::new();
        members.insert("content", self.content.as_str().into());
        members.insert("role", self.role.as_str().into());
        let mut put = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                members.insert(name, value.into());
            }
        };
        put("timestamp", self.timestamp.map(|time| time.to_string()));
        put("conversation_id", self.conversation_id.clone());
        put("turn_id", self.turn_id.clone());
        put("tool_call_id", self.tool_call_id.clone());
        if !self.attachments.is_empty() {
            let ids = self.attachments.iter().map(|id| id.to_string().into()).collect();
            members.insert("attachment_source_ids", Json::Array(ids));
        }
        Json::Object(members).to_canonical().into_bytes()
    }
}

fn wrong<T>(why: impl Into<String>) -> Result<T, EnvelopeError> {
    Err(EnvelopeError { why: why.into() })
}

fn string<'o>(members: &'o Object, name: &str) -> Result<Option<&'o str>, EnvelopeError> {
    match members.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => wrong(format!("`{name}` is a string")),
    }
}

fn source(id: &Json) -> Result<SourceId, EnvelopeError> {
    match id.as_str().and_then(|text| text.parse().ok()) {
        Some(id) => Ok(id),
        None => wrong(format!("`attachment_source_ids` holds {id}, which is no source id")),
    }
}

//! Messages and metadata from a tiny alphabet.

use tine_core::{Body, Json, Limits, Message, Metadata, Role, Status, Timestamp, json};
use tine_engine::MetadataPatch;

use super::pick::nth;

pub(super) const TEXTS: [&str; 10] =
    ["ab", "a", "b", "abc", "e\u{301}f", "👩\u{200d}🚀x", "漢字", " ", "a b", "naïve"];

/// A message from the tiny alphabet.
#[derive(Clone, Copy, Debug)]
pub struct TinyMessage {
    pub(super) role: u8,
    pub(super) text: u8,
    pub(super) shape: u8,
    pub(super) time: u8,
    pub(super) extra: u8,
}

impl TinyMessage {
    /// Returns the message itself. A few shapes are wrong on purpose.
    pub fn message(self, start: Timestamp) -> Message {
        let role = nth(&[Role::User, Role::Assistant, Role::Tool, Role::System], self.role);
        let text = nth(&TEXTS, self.text);
        // Three of four messages are plain: what is equal to what is the point.
        let call = nth(&["call-0", "call-1"], self.extra);
        let mut message = Message::text(role, text);
        match (role, self.shape % 16) {
            (_, 15) => message.body = Body::Text(String::new()),
            (_, 14) if self.extra.is_multiple_of(4) => {
                message.tool_call_id = Some("stray".to_owned())
            }
            (Role::Assistant, 0..=2) => {
                let block = json::object([
                    ("type", "tool-use".into()),
                    ("id", call.into()),
                    ("name", "look".into()),
                    ("parameters", json::object([("q", text.into())])),
                ]);
                message.body = blocks(vec![block], role);
            }
            (Role::User, 0) => {
                let image = json::object([("type", "image".into()), ("url", text.into())]);
                message.body = blocks(vec![image], role);
            }
            (Role::User | Role::Assistant, 4) => {
                let part =
                    |text: &str| json::object([("type", "text".into()), ("text", text.into())]);
                message.body = blocks(vec![part("a"), part(text)], role);
            }
            _ => {}
        }
        if role == Role::Tool && self.shape % 16 != 13 {
            message.tool_call_id = Some(call.to_owned());
        }
        if self.time.is_multiple_of(4) {
            let at = start.as_millis() + i64::from(self.time / 64);
            message.created_at = Some(Timestamp::from_millis(at));
        }
        if self.extra % 16 == 15 {
            message.status = Status::Partial;
        }
        if self.extra % 8 == 3 {
            message.metadata = Metadata {
                title: (self.extra.is_multiple_of(3)).then(|| "set".to_owned()),
                auto_title: Some("guessed".to_owned()),
                tags: [text.trim().to_owned()].into_iter().filter(|tag| !tag.is_empty()).collect(),
                custom_data: Some(Json::from(i64::from(self.extra))),
                source_info: Some(json::object([("model", "m".into())])),
            };
        }
        message
    }
}

fn blocks(blocks: Vec<Json>, role: Role) -> Body {
    Body::from_content(Json::Array(blocks), role, &Limits::default()).expect("sound blocks")
}

pub(super) fn patch(what: u8, value: u8, force: bool) -> MetadataPatch {
    let text = || nth(&["x", "y", "z"], value).to_owned();
    let patch = match what % 6 {
        0 => MetadataPatch { title: Some(Some(text())), ..Default::default() },
        1 => MetadataPatch { auto_title: Some(Some(text())), ..Default::default() },
        2 => MetadataPatch { add_tags: vec![text()], ..Default::default() },
        3 => MetadataPatch { remove_tags: vec![text()], ..Default::default() },
        4 => MetadataPatch { tags: Some(vec![text(), "x".to_owned()]), ..Default::default() },
        _ => {
            MetadataPatch { custom_data: Some(Json::from(i64::from(value))), ..Default::default() }
        }
    };
    MetadataPatch { force, ..patch }
}

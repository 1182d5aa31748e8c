//! Collects the content of an answer while it is streamed.

use crate::{Delta, ToolCall};
use tine_core::Json;
use tine_core::json::{self, object};

/// Blocks of text and thinking, in order.
#[derive(Debug, Default)]
pub struct ReplyContent {
    blocks: Vec<(bool, String)>,
}

impl ReplyContent {
    /// Returns the index of the block that a piece belongs to: the last one, or the next.
    pub fn block_of(&self, piece: Delta<'_>) -> usize {
        let thought = matches!(piece, Delta::Thought(_));
        match self.blocks.last() {
            Some((last, _)) if *last == thought => self.blocks.len() - 1,
            _ => self.blocks.len(),
        }
    }

    /// Adds a piece.
    pub fn add(&mut self, piece: Delta<'_>) {
        let (thought, text) = match piece {
            Delta::Text(text) => (false, text),
            Delta::Thought(text) => (true, text),
            Delta::Silence => return,
        };
        match self.blocks.last_mut() {
            Some((last, block)) if *last == thought => block.push_str(text),
            _ => self.blocks.push((thought, text.to_owned())),
        }
    }

    /// Returns the text without thinking.
    pub fn text(&self) -> String {
        self.blocks.iter().filter(|(thought, _)| !thought).map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the blocks of a turn, with its tool calls; `None` if it is empty.
    pub fn into_content(self, calls: &[ToolCall]) -> Option<Json> {
        if calls.is_empty() && self.blocks.iter().all(|(_, text)| text.is_empty()) {
            return None;
        }
        let block = |(thought, text): (bool, String)| {
            let kind = if thought { "thinking" } else { "text" };
            object([("type", kind.into()), ("text", text.into())])
        };
        let blocks = self.blocks.into_iter().map(block);
        Some(Json::Array(blocks.chain(calls.iter().map(call_block)).collect()))
    }
}

/// Returns a call as a block of a turn.
fn call_block(call: &ToolCall) -> Json {
    let parameters = match call.arguments.is_object() {
        true => call.arguments.to_string(),
        false => format!("{{\"input\":{}}}", call.arguments),
    };
    let parameters = json::parse(parameters.as_bytes(), json::MAX_DEPTH);
    object([
        ("type", "tool-use".into()),
        ("id", call.id.as_str().into()),
        ("name", call.name.as_str().into()),
        ("parameters", parameters.unwrap_or_else(|_| object([]))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_kind_become_one_block() {
        let mut content = ReplyContent::default();
        let pieces = [Delta::Thought("h"), Delta::Thought("m"), Delta::Silence, Delta::Text("Yes")];
        let blocks: Vec<usize> = pieces
            .into_iter()
            .map(|piece| {
                let block = content.block_of(piece);
                content.add(piece);
                block
            })
            .collect();
        assert_eq!(blocks[..2], [0, 0]);
        assert_eq!(blocks[3], 1);
        let blocks = content.into_content(&[]).expect("there is content").to_canonical();
        assert_eq!(blocks, r#"[{"text":"hm","type":"thinking"},{"text":"Yes","type":"text"}]"#);
    }

    #[test]
    fn empty_pieces_make_no_content() {
        let mut content = ReplyContent::default();
        content.add(Delta::Silence);
        content.add(Delta::Text(""));
        assert!(content.into_content(&[]).is_none());
    }
}

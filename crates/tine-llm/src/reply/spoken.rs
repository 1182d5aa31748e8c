//! What a model has said so far.

use crate::{Delta, ToolCall};
use tine_core::Json;
use tine_core::json::{self, object};

/// Stretches of text and of thought, in order.
#[derive(Debug, Default)]
pub struct Spoken {
    blocks: Vec<(bool, String)>,
}

impl Spoken {
    /// The stretch that a piece belongs to, from 0: the last one, or the next.
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
            Some((last, said)) if *last == thought => said.push_str(text),
            _ => self.blocks.push((thought, text.to_owned())),
        }
    }

    /// What was said, without the thoughts.
    pub fn text(&self) -> String {
        self.blocks.iter().filter(|(thought, _)| !thought).map(|(_, text)| text.as_str()).collect()
    }

    /// The blocks of a turn that says it and calls tools; nothing if nothing was said or called.
    pub fn into_content(self, calls: &[ToolCall]) -> Option<Json> {
        if calls.is_empty() && self.blocks.iter().all(|(_, text)| text.is_empty()) {
            return None;
        }
        let block = |(thought, text): (bool, String)| {
            let kind = if thought { "thinking" } else { "text" };
            object([("type", kind.into()), ("text", text.into())])
        };
        let said = self.blocks.into_iter().map(block);
        Some(Json::Array(said.chain(calls.iter().map(called)).collect()))
    }
}

/// A call as a block of a turn.
fn called(call: &ToolCall) -> Json {
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
    fn pieces_of_one_sort_become_one_block() {
        let mut spoken = Spoken::default();
        let pieces = [Delta::Thought("h"), Delta::Thought("m"), Delta::Silence, Delta::Text("Yes")];
        let blocks: Vec<usize> = pieces
            .into_iter()
            .map(|piece| {
                let block = spoken.block_of(piece);
                spoken.add(piece);
                block
            })
            .collect();
        assert_eq!(blocks[..2], [0, 0]);
        assert_eq!(blocks[3], 1);
        let said = spoken.into_content(&[]).expect("something").to_canonical();
        assert_eq!(said, r#"[{"text":"hm","type":"thinking"},{"text":"Yes","type":"text"}]"#);
    }

    #[test]
    fn silence_says_nothing() {
        let mut spoken = Spoken::default();
        spoken.add(Delta::Silence);
        spoken.add(Delta::Text(""));
        assert!(spoken.into_content(&[]).is_none());
    }
}

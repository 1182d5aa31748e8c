//! Splits a stream of bytes into events: server-sent events, or JSON Lines.
//!
//! Only the data of a server-sent event is used. JSON Lines are split here and not by the shared
//! decoder, because a CR inside a line is white space.

use tine_net::sse::{Decoder, TooLarge};

use crate::provider::Protocol;

/// Splits a stream into events.
pub(crate) enum Frames {
    ServerSent(Decoder),
    /// JSON Lines: the incomplete line, and the maximum length of a line.
    Lines(Vec<u8>, usize),
}

impl Frames {
    pub(crate) fn new(kind: Protocol, limit_bytes: usize) -> Frames {
        match kind {
            Protocol::Ollama => Frames::Lines(Vec::new(), limit_bytes),
            Protocol::OpenAi | Protocol::Anthropic => Frames::ServerSent(Decoder::new(limit_bytes)),
        }
    }

    /// Returns the events that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut events = Vec::new();
        match self {
            Frames::ServerSent(decoder) => {
                decoder.push(bytes, |event| events.push(event.data))?;
            }
            Frames::Lines(line, limit_bytes) => {
                let limit_bytes = *limit_bytes;
                for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
                    if line.len() + piece.len() > limit_bytes {
                        return Err(TooLarge { limit_bytes });
                    }
                    line.extend_from_slice(piece);
                    if line.ends_with(b"\n") {
                        events.push(std::mem::take(line).trim_ascii().to_vec());
                    }
                }
            }
        }
        events.retain(|event| !event.is_empty());
        Ok(events)
    }

    /// Returns the event that the end of the stream completes. A stream may end without its last
    /// newline, but not in the middle of an event.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        let last = match self {
            Frames::ServerSent(decoder) => decoder.finish().ok()??.data,
            Frames::Lines(line, _) => std::mem::take(line),
        };
        let whole = last == b"[DONE]" || serde_json::from_slice::<serde_json::Value>(&last).is_ok();
        whole.then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::{Frames, Protocol};

    #[test]
    fn lines_do_not_depend_on_how_bytes_arrive_and_have_a_limit() {
        let stream = b"{\"x\":\r1}\r\n\n{}\n";
        let expected: Vec<Vec<u8>> = vec![b"{\"x\":\r1}".to_vec(), b"{}".to_vec()];
        for size in 1..=stream.len() {
            let mut frames = Frames::new(Protocol::Ollama, 16);
            let pieces = stream.chunks(size);
            let events: Vec<_> = pieces.flat_map(|it| frames.push(it).unwrap()).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
        assert!(Frames::new(Protocol::Ollama, 16).push(&[b'1'; 17]).is_err());
        assert!(Frames::new(Protocol::OpenAi, 16).push(&[b'1'; 17]).is_err());
    }

    #[test]
    fn the_end_completes_a_line_but_not_half_an_event() {
        let mut frames = Frames::new(Protocol::Ollama, 64);
        assert_eq!(frames.push(b"{\"done\":true}"), Ok(Vec::new()));
        assert_eq!(frames.end(), Some(b"{\"done\":true}".to_vec()));
        assert_eq!(frames.push(b"{\"done\":tr"), Ok(Vec::new()));
        assert_eq!(frames.end(), None);
    }
}

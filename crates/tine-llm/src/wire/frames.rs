//! Events out of bytes that come in any pieces: server-sent events, and JSON in lines.
//!
//! Only `data` matters of a server-sent event: each says inside what it is. How much is kept of
//! an unfinished line is bounded by whoever counts the bytes of the answer.

use crate::provider::Kind;

/// Cuts a stream into events.
pub(crate) struct Frames {
    /// JSON in lines instead of server-sent events.
    lines: bool,
    /// The line that is not whole yet.
    line: Vec<u8>,
    /// The data of the event that is not whole yet.
    data: Vec<u8>,
}

impl Frames {
    pub(crate) fn new(kind: Kind) -> Frames {
        Frames { lines: kind == Kind::Ollama, line: Vec::new(), data: Vec::new() }
    }

    /// The events that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            events.extend(self.take(line));
        }
        self.line.extend_from_slice(rest);
        events
    }

    /// The event that the end of the stream completes.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let last = self.take(line).or_else(|| self.take(Vec::new()))?;
        // A stream may end without its last newline, but not in the middle of an event.
        let whole = last == b"[DONE]" || serde_json::from_slice::<serde_json::Value>(&last).is_ok();
        whole.then_some(last)
    }

    fn take(&mut self, mut line: Vec<u8>) -> Option<Vec<u8>> {
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if self.lines {
            return (!line.trim_ascii().is_empty()).then_some(line);
        }
        if line.is_empty() {
            return (!self.data.is_empty()).then(|| std::mem::take(&mut self.data));
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Frames, Kind};

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let stream = b"event: a\r\ndata: {\"x\":\r\ndata: 1}\r\n\r\n: ping\n\ndata:[DONE]\n\n";
        let expected: Vec<Vec<u8>> = vec![b"{\"x\":\n1}".to_vec(), b"[DONE]".to_vec()];
        for size in 1..=stream.len() {
            let mut frames = Frames::new(Kind::OpenAi);
            let events: Vec<_> = stream.chunks(size).flat_map(|it| frames.push(it)).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_end_completes_a_line_and_never_half_an_event() {
        let mut frames = Frames::new(Kind::Ollama);
        assert!(frames.push(b"{\"done\":true}").is_empty());
        assert_eq!(frames.end(), Some(b"{\"done\":true}".to_vec()));
        assert!(frames.push(b"{\"done\":tr").is_empty());
        assert_eq!(frames.end(), None);
    }
}

//! Reading lines of bounded length, and writing whole lines.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tine_core::Json;

use crate::json_rpc::{self, RpcResult, UnreadableLine};
use crate::lock;
use crate::outline::OutlineScanner;

/// The default limit on the length of a line. Larger than anything that can be stored, so that an
/// oversized request is refused by the limit that it exceeds, with its own id.
pub const LINE_BYTES: usize = 64 << 20;

/// The size of the read buffer.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// A line, without its terminator.
    Whole(Vec<u8>),
    /// A line that exceeded the limit. Only its outline is kept.
    TooLong { bytes: usize, outline: Json },
}

/// Reads lines of bounded length.
pub(crate) struct LineReader<R> {
    input: BufReader<R>,
    max_bytes: usize,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(input: R, max_bytes: usize) -> Self {
        LineReader { input: BufReader::with_capacity(READ_BYTES, input), max_bytes }
    }

    /// Returns the next line that is not blank, or `None` at the end of the input.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            match self.read_line()? {
                Some(InputLine::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                line => return Ok(line),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<Option<InputLine>> {
        let mut line = Vec::new();
        let mut bytes = 0_usize;
        let mut scanner: Option<OutlineScanner> = None;
        loop {
            let piece = match self.input.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if piece.is_empty() && bytes == 0 {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            bytes += part.len();
            if bytes <= self.max_bytes {
                line.extend_from_slice(part);
            } else {
                let scanner = scanner.get_or_insert_default();
                scanner.read(&std::mem::take(&mut line));
                scanner.read(part);
            }
            let (used, ended) = (part.len() + usize::from(end.is_some()), piece.is_empty());
            self.input.consume(used);
            if end.is_some() || ended {
                return Ok(Some(match scanner {
                    None => InputLine::Whole(line),
                    Some(scanner) => InputLine::TooLong { bytes, outline: scanner.outline() },
                }));
            }
        }
    }
}

/// Writes whole lines, one at a time, and flushes each.
pub(crate) struct LineWriter {
    output: Mutex<Box<dyn Write + Send>>,
    closed: AtomicBool,
}

impl LineWriter {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        LineWriter { output: Mutex::new(Box::new(output)), closed: AtomicBool::new(false) }
    }

    /// Writes a message. Does nothing once the output is closed.
    pub(crate) fn send(&self, message: &Json) {
        self.send_line(message.to_canonical().into_bytes());
    }

    /// Responds to a request.
    pub(crate) fn respond(&self, id: &Json, result: RpcResult<Json>) {
        self.send(&json_rpc::response(id, result));
    }

    /// Responds to a line that was not accepted, if its sender expects a response.
    pub(crate) fn refuse(&self, line: UnreadableLine) {
        match line.answer_to {
            Some(id) => self.respond(&id, Err(line.error)),
            None => tracing::warn!("dropped a line that is not a message: {}", line.error),
        }
    }

    /// Sends an update of a session.
    pub(crate) fn send_update(&self, session: &str, update: Json) {
        self.send(&json_rpc::session_update(session, update));
    }

    /// Writes a line unchanged.
    pub(crate) fn send_line(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut output = lock(&self.output);
        if self.is_closed() {
            return;
        }
        if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
            tracing::info!(%error, "the output was closed");
            self.closed.store(true, Ordering::Release);
        }
    }

    /// Closes the output, which the reader on the other side notices.
    pub(crate) fn close(&self) {
        let mut output = lock(&self.output);
        *output = Box::new(io::sink());
        self.closed.store(true, Ordering::Release);
    }

    /// Returns whether the output was closed, by either side.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_macro::json;

    fn lines(bytes: &[u8], most: usize) -> Vec<InputLine> {
        // A small buffer, so that lines arrive in pieces.
        let mut input = LineReader { input: BufReader::with_capacity(3, bytes), max_bytes: most };
        let next = || input.next_line().expect("bytes can be read");
        std::iter::from_fn(next).collect()
    }

    fn whole(text: &str) -> InputLine {
        InputLine::Whole(text.into())
    }

    #[test]
    fn blank_lines_are_skipped_and_the_last_line_needs_no_terminator() {
        assert_eq!(lines(b"abcdefg\n\nxy", 10), [whole("abcdefg"), whole("xy")]);
        assert_eq!(lines(b"", 10), []);
        assert_eq!(lines(b" \n", 10), []);
    }

    #[test]
    fn an_oversized_line_is_skipped_and_the_next_is_read() {
        let bytes = b"0123456789\nabc\n{\"id\":1,\"x\":\"01234567890123456789\"}";
        let too_long = |bytes: usize, outline| InputLine::TooLong { bytes, outline };
        let wanted = [
            too_long(10, json!({})),
            whole("abc"),
            too_long(35, json!({ "id": 1, "x": "01234567890123456789" })),
        ];
        assert_eq!(lines(bytes, 9), wanted);
        assert_eq!(lines(b"0123456789\n", 10), [whole("0123456789")]);
    }
}

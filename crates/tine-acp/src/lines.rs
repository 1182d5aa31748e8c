//! Lines: bounded on the way in, whole on the way out.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tine_core::Json;

use crate::skim::Skim;

/// The longest line that is read. Larger than anything that is stored, so that whoever sends too
/// much is told by the limit that it is over, and which request it was.
pub const LINE_BYTES: usize = 64 << 20;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that was longer than any may be; it was passed over, but for what it is about.
    TooLong { bytes: usize, outline: Json },
    /// There are no more.
    End,
}

/// Reads one line of at most `most` bytes.
pub(crate) fn read(input: &mut impl BufRead, most: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut bytes = 0_usize;
    let mut skim: Option<Skim> = None;
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() && bytes == 0 {
            return Ok(Line::End);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let part = &piece[..end.unwrap_or(piece.len())];
        bytes += part.len();
        if bytes <= most {
            line.extend_from_slice(part);
        } else {
            let skim = skim.get_or_insert_default();
            skim.read(&std::mem::take(&mut line));
            skim.read(part);
        }
        let (used, ended) = (part.len() + usize::from(end.is_some()), piece.is_empty());
        input.consume(used);
        if end.is_some() || ended {
            return Ok(match skim {
                None => Line::Whole(line),
                Some(skim) => Line::TooLong { bytes, outline: skim.outline() },
            });
        }
    }
}

/// The one way out: whole lines, one at a time, each on its way before the next begins.
pub(crate) struct Out {
    output: Mutex<Box<dyn Write + Send>>,
    broken: AtomicBool,
}

impl Out {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        Out { output: Mutex::new(Box::new(output)), broken: AtomicBool::new(false) }
    }

    /// Writes a message. Once nobody reads any more, nothing is written any more.
    pub(crate) fn send(&self, message: &Json) {
        self.send_line(message.to_canonical().into_bytes());
    }

    /// Writes a line as it is.
    pub(crate) fn send_line(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if self.broken() {
            return;
        }
        if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
            tracing::info!(%error, "the other side reads no more");
            self.broken.store(true, Ordering::Release);
        }
    }

    /// Writes nothing more, and lets whoever reads know.
    pub(crate) fn close(&self) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        *output = Box::new(io::sink());
        self.broken.store(true, Ordering::Release);
    }

    /// Whether nobody reads any more.
    pub(crate) fn broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;
    use crate::json::json;

    fn lines(bytes: &[u8], most: usize) -> Vec<Line> {
        // A small buffer, so that lines come in pieces.
        let mut input = BufReader::with_capacity(3, bytes);
        let mut found = Vec::new();
        loop {
            match read(&mut input, most).expect("bytes can be read") {
                Line::End => return found,
                line => found.push(line),
            }
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[test]
    fn lines_come_whole_and_the_last_needs_no_end() {
        assert_eq!(lines(b"abcdefg\n\nxy", 10), [whole("abcdefg"), whole(""), whole("xy")]);
        assert_eq!(lines(b"", 10), []);
        assert_eq!(lines(b"\n", 10), [whole("")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let bytes = b"0123456789\nabc\n{\"id\":1,\"x\":\"01234567890123456789\"}";
        let too_long = |bytes: usize, outline| Line::TooLong { bytes, outline };
        let wanted = [
            too_long(10, json!({})),
            whole("abc"),
            too_long(35, json!({ "id": 1, "x": "01234567890123456789" })),
        ];
        assert_eq!(lines(bytes, 9), wanted);
        assert_eq!(lines(b"0123456789\n", 10), [whole("0123456789")]);
    }
}

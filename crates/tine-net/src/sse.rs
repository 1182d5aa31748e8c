//! Decodes server-sent events as the HTML standard defines them.
//!
//! A [`Decoder`] takes bytes in any pieces; [`Events`] reads them from a stream. Lines end with LF, CR
//! or CRLF. An event is complete at its blank line; an incomplete one at the end is returned only by
//! [`Decoder::finish`]. Unlike in the standard, an event with an id and without data is emitted: a
//! feed reports its position by it.
//!
//! Not included: reconnecting, and the `retry` field, which our servers do not send.

use std::collections::VecDeque;
use std::io::{self, Read};

/// The size of the read buffer.
const PIECE_BYTES: usize = 16 << 10;

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The last `id` field.
    pub id: Option<Vec<u8>>,
    /// The `data` fields, joined by LF; empty if there were none.
    pub data: Vec<u8>,
}

/// A line or event is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream exceeds {limit_bytes} bytes")]
pub struct TooLarge {
    /// The maximum size.
    pub limit_bytes: usize,
}

/// Splits bytes into events.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// The incomplete line.
    line: Vec<u8>,
    event: Event,
    /// Whether the event has a `data` field, which may be empty.
    has_data: bool,
    limit_bytes: usize,
    /// Whether the last byte was a CR, which may be followed by an LF of the same line end.
    after_cr: bool,
    /// Whether no line is complete yet; the first may begin with a byte order mark.
    at_start: bool,
}

impl Decoder {
    /// Creates a decoder with a maximum size of lines and of the data of events.
    pub fn new(limit_bytes: usize) -> Decoder {
        Decoder {
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            limit_bytes,
            after_cr: false,
            at_start: true,
        }
    }

    /// Takes bytes and passes each event that they complete to `each`.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), TooLarge> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r') {
            self.extend_line(&rest[..end])?;
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if let Some(event) = self.end_line()? {
                each(event);
            }
        }
        self.extend_line(rest)
    }

    /// Treats the end of the stream as the end of an event, for servers that omit the last blank line.
    /// The event may be truncated.
    pub fn finish(&mut self) -> Result<Option<Event>, TooLarge> {
        Ok(match self.end_line()? {
            Some(event) => Some(event),
            None => self.take_event(),
        })
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, bytes: usize) -> Result<(), TooLarge> {
        let limit_bytes = self.limit_bytes;
        if bytes > limit_bytes { Err(TooLarge { limit_bytes }) } else { Ok(()) }
    }

    fn end_line(&mut self) -> Result<Option<Event>, TooLarge> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return Ok(self.take_event());
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (&line[..], &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.check(self.event.data.len() + value.len() + 1)?;
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.event.id = Some(value.to_vec()),
            // Comments, which have no name, keep the connection open; the type is in the data.
            _ => {}
        }
        // The buffer is reused for the next line.
        line.clear();
        self.line = line;
        Ok(None)
    }

    fn take_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        let has_data = std::mem::take(&mut self.has_data);
        (event.id.is_some() || has_data).then_some(event)
    }
}

/// The events of a stream.
#[derive(Debug)]
pub struct Events<R> {
    input: R,
    decoder: Decoder,
    ready: VecDeque<Event>,
    piece: Vec<u8>,
}

impl<R: Read> Events<R> {
    /// Creates a reader with a maximum size of lines and of the data of events.
    pub fn new(input: R, limit_bytes: usize) -> Events<R> {
        let (decoder, ready) = (Decoder::new(limit_bytes), VecDeque::new());
        Events { input, decoder, ready, piece: vec![0; PIECE_BYTES] }
    }

    /// Waits for the next event; `None` at the end of the stream. An incomplete event at the end is
    /// dropped.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.input.read(&mut self.piece) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    let ready = &mut self.ready;
                    let pushed = self.decoder.push(&self.piece[..count], |it| ready.push_back(it));
                    pushed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

//! Server-sent events out of bytes that arrive in any pieces, as the HTML standard defines them.
//!
//! A [`Decoder`] takes bytes as they come; [`Events`] reads them from a stream. Lines end with LF,
//! CR or CRLF. An event is complete with its blank line; what comes after the last one is not, and
//! only [`Decoder::finish`] gives it out. Unlike the standard, an event that has an id and no data
//! is given out too: a feed says with it where it is.
//!
//! Deliberately absent: reconnecting, and the `retry` field, which no server of ours sends.

use std::collections::VecDeque;
use std::io::{self, Read};

/// How much is read at once.
const PIECE_BYTES: usize = 16 << 10;

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The last `id` field.
    pub id: Option<Vec<u8>>,
    /// The `data` fields, joined by LF; empty where there were none.
    pub data: Vec<u8>,
}

/// A line or event is larger than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream exceeds {limit_bytes} bytes")]
pub struct TooLarge {
    /// The bound.
    pub limit_bytes: usize,
}

/// Cuts bytes into events.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// The line that is not complete yet.
    line: Vec<u8>,
    event: Event,
    /// Whether the event has a `data` field, which may be empty.
    has_data: bool,
    limit_bytes: usize,
    /// Whether the last byte was a CR: an LF after it belongs to it.
    after_cr: bool,
    /// Whether no line was complete yet: the first may begin with a byte order mark.
    at_start: bool,
}

impl Decoder {
    /// Returns a decoder that refuses lines, and data of events, of more bytes than this.
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

    /// Takes bytes, and gives each event that they complete to `each`.
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

    /// Takes the end of the stream as the end of a line and of an event. Servers that do not write
    /// the last blank line are served by this; the event may be cut short.
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
        // The buffer of a short line serves the next one.
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
    /// Returns the events of this stream, each line and each event's data within a bound.
    pub fn new(input: R, limit_bytes: usize) -> Events<R> {
        let (decoder, ready) = (Decoder::new(limit_bytes), VecDeque::new());
        Events { input, decoder, ready, piece: vec![0; PIECE_BYTES] }
    }

    /// Waits for the next event; `None` at the end of the stream. An event that the end cuts short
    /// is dropped.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Decoder, Event, Events, TooLarge};

    fn event(id: Option<&str>, data: &str) -> Event {
        Event { id: id.map(|id| id.as_bytes().to_vec()), data: data.as_bytes().to_vec() }
    }

    fn in_pieces(stream: &[u8], size: usize) -> Vec<Event> {
        let (mut decoder, mut events) = (Decoder::new(1 << 20), Vec::new());
        for piece in stream.chunks(size) {
            decoder.push(piece, |it| events.push(it)).unwrap();
        }
        events
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut_and_lines_end() {
        let stream = "\u{feff}event: a\ndata: {\"x\":\ndata: 1}\n\n: ping\n\nid: 7\n\n\
                      id:8\ndata:[DONE]\nretry: 5\nunknown\n\ndata\ndata:  ü\ndata\n\nid: a\0b\n\n";
        let expected = [
            event(None, "{\"x\":\n1}"),
            event(Some("7"), ""),
            event(Some("8"), "[DONE]"),
            event(None, "\n ü\n"),
        ];
        for end in ["\n", "\r", "\r\n"] {
            let stream = stream.replace('\n', end);
            for size in 1..=stream.len() {
                assert_eq!(in_pieces(stream.as_bytes(), size), expected, "{end:?}, {size}");
            }
        }
    }

    #[test]
    fn an_event_is_given_out_with_its_blank_line_and_not_before() {
        let mut decoder = Decoder::new(100);
        let mut given = 0;
        for piece in ["data: 1", "\r", "\n"] {
            decoder.push(piece.as_bytes(), |_| given += 1).unwrap();
        }
        assert_eq!(given, 0);
        decoder.push(b"\r", |_| given += 1).unwrap();
        assert_eq!(given, 1, "a CR ends a line before it is known whether an LF follows");
        decoder.push(b"\ndata: 2\r\n", |_| given += 1).unwrap();
        assert_eq!(given, 1, "the LF belonged to the CR");
        assert_eq!(decoder.finish(), Ok(Some(event(None, "2"))));
        assert_eq!(decoder.finish(), Ok(None));
    }

    #[test]
    fn lines_and_events_have_a_bound() {
        let refused = Err(TooLarge { limit_bytes: 16 });
        assert_eq!(Decoder::new(16).push(&[b'x'; 17], |_| ()), refused);
        let mut slowly = Decoder::new(16);
        assert_eq!(slowly.push(&[b'x'; 16], |_| ()), Ok(()));
        assert_eq!(slowly.push(b"x", |_| ()), refused);
        let many = b"data: 12345\n".repeat(3);
        assert_eq!(Decoder::new(16).push(&many, |_| ()), refused);
        assert_eq!(Decoder::new(17).push(&many, |_| ()), Ok(()));
    }

    #[test]
    fn a_stream_that_ends_early_gives_what_is_complete() {
        let mut events = Events::new(&b"data: 1\n\ndata: 2\n"[..], 100);
        assert_eq!(events.next_event().unwrap(), Some(event(None, "1")));
        assert_eq!(events.next_event().unwrap(), None);
        let mut endless = Events::new(std::io::repeat(b'x'), 100_000);
        assert_eq!(endless.next_event().unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_bytes_give_the_same_events_in_any_pieces(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    &b"data"[..], b": ", b":", b"\r", b"\n", b"\r\n", b"id", b"x", b"\xff", b"\0",
                    b"\xef\xbb\xbf", b" ",
                ]),
                0..60,
            ),
            size in 1_usize..20,
        ) {
            let stream = pieces.concat();
            prop_assert_eq!(in_pieces(&stream, size), in_pieces(&stream, stream.len().max(1)));
        }
    }
}

//! The decoder of server-sent events.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use proptest::prelude::*;

use tine_net::sse::{Decoder, Event, Events, TooLarge};

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
fn an_event_is_emitted_at_its_blank_line() {
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
    fn events_do_not_depend_on_how_bytes_are_split(
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

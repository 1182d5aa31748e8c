//! Damaged streams.

use std::ops::ControlFlow;

use super::{Frames, StreamAssembly};
use crate::chat::Delta;
use crate::provider::Protocol;

const STREAMS: [(Protocol, &str); 3] = [
    (
        Protocol::OpenAi,
        "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"Zü\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ),
    (
        Protocol::Anthropic,
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n\
         data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Zü\"}}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    ),
    (
        Protocol::Ollama,
        "{\"message\":{\"content\":\"Zü\"},\"done\":false}\n{\"message\":{},\"done\":true}\n",
    ),
];

/// Returns the text of a stream if it is complete and valid.
fn stream_text(kind: Protocol, stream: &[u8]) -> Option<String> {
    let (mut frames, mut assembly) = (Frames::new(kind, 1 << 20), StreamAssembly::new(kind, false));
    let mut text = String::new();
    let mut each = |delta: Delta<'_>| {
        if let Delta::Text(piece) = delta {
            text.push_str(piece);
        }
        ControlFlow::Continue(())
    };
    let mut events = frames.push(stream).unwrap();
    events.extend(frames.end());
    let fine = events.iter().all(|event| assembly.event(event, &mut each).is_ok());
    let whole = fine && assembly.is_whole();
    assert_eq!(assembly.so_far().text, text, "the listener gets the same text");
    whole.then_some(text)
}

#[test]
fn a_damaged_stream_is_accepted_or_rejected_and_never_panics() {
    for (kind, stream) in STREAMS {
        assert_eq!(stream_text(kind, stream.as_bytes()).as_deref(), Some("Zü"));
        for at in 0..stream.len() {
            for byte in [0, b'\n', b'"', b'{', 0xff] {
                let mut damaged = stream.as_bytes().to_vec();
                damaged[at] = byte;
                stream_text(kind, &damaged);
            }
            stream_text(kind, &stream.as_bytes()[..at]);
        }
    }
}

//! The loop: lines in, requests handed out to threads, answers out as they are ready.
//!
//! What must happen in the order in which it comes happens on the loop itself: the beginning, the
//! claim of a prompt on its session, and the cancelling of one. So a cancellation right behind its
//! prompt finds it.

use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tine_core::{ErrorKind, Json};

use crate::agent::{Agent, Task};
use crate::lines::{self, LINE_BYTES, Line, Out};
use crate::wire::{self, Incoming, Refusal, Unreadable};

/// Requests that are worked on at once.
const REQUESTS_AT_ONCE: usize = 64;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Answers one client until it closes the input; what runs then is stopped, and what it said
/// until then recorded.
pub fn serve(
    agent: &Agent,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let out = Out::new(output);
    let working = AtomicUsize::new(0);
    let mut input = BufReader::with_capacity(READ_BYTES, input);
    thread::scope(|scope| {
        let ended = loop {
            let line = match lines::read(&mut input, LINE_BYTES) {
                Ok(Line::Whole(line)) => line,
                Ok(Line::TooLong { bytes, outline }) => {
                    let refusal = Refusal::too_long(bytes, LINE_BYTES);
                    let id = outline.get("id").unwrap_or(&Json::Null);
                    out.send(&wire::answer(id, Err(refusal)));
                    continue;
                }
                Ok(Line::End) => break Ok(()),
                Err(error) => break Err(error),
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let Some((id, task)) = take(agent, &out, &line) else { continue };
            if working.fetch_add(1, Ordering::AcqRel) >= REQUESTS_AT_ONCE {
                working.fetch_sub(1, Ordering::AcqRel);
                let why = format!("{REQUESTS_AT_ONCE} requests are worked on; wait for one");
                out.send(&wire::answer(&id, Err(Refusal::of(ErrorKind::Busy, why))));
                continue;
            }
            let (out, working) = (&out, &working);
            scope.spawn(move || {
                let done = agent.work(task, out);
                out.send(&wire::answer(&id, done));
                working.fetch_sub(1, Ordering::AcqRel);
            });
        };
        agent.stop_all();
        ended
    })
}

/// Does what must be done at once; what is left is somebody's request.
fn take(agent: &Agent, out: &Out, line: &[u8]) -> Option<(Json, Task)> {
    match Incoming::read(line, agent.engine.limits()) {
        Ok(Incoming::Request { id, method, params }) => {
            match agent.begin(&method, params) {
                Ok(task) => return Some((id, task)),
                Err(refusal) => out.send(&wire::answer(&id, Err(refusal))),
            };
        }
        Ok(Incoming::Notification { method, params }) => agent.notice(&method, &params),
        Ok(Incoming::Answer) => tracing::warn!("an answer came, and nothing was asked"),
        Err(Unreadable { answer_to: Some(id), refusal }) => {
            out.send(&wire::answer(&id, Err(refusal)));
        }
        Err(Unreadable { answer_to: None, refusal }) => {
            tracing::warn!("a message that expects no answer was dropped: {refusal}");
        }
    }
    None
}

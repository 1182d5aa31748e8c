//! The loop: reads lines, runs each request on a thread, writes responses as they are ready.
//!
//! Whatever depends on the order of arrival happens on the loop itself: `initialize`, claiming a
//! session for a prompt, and cancelling. A cancellation that directly follows its prompt therefore
//! finds it.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tine_core::{ErrorKind, Json};

use crate::agent::{Agent, Task};
use crate::json_rpc::{RpcError, RpcMessage};
use crate::line_io::{InputLine, LINE_BYTES, LineReader, LineWriter};

/// Requests that run at the same time.
const REQUESTS_AT_ONCE: usize = 64;

/// Serves one client until it closes the input. Prompts that run then are cancelled, and what was
/// said so far is recorded.
pub fn serve(
    agent: &Agent,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let out = LineWriter::new(output);
    let working = AtomicUsize::new(0);
    let mut lines = LineReader::new(input, LINE_BYTES);
    thread::scope(|scope| {
        let ended = loop {
            let line = match lines.next_line() {
                Ok(Some(InputLine::Whole(line))) => line,
                Ok(Some(InputLine::TooLong { bytes, outline })) => {
                    let id = outline.get("id").unwrap_or(&Json::Null);
                    out.respond(id, Err(RpcError::too_long(bytes, LINE_BYTES)));
                    continue;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            let Some((id, task)) = take(agent, &out, &line) else { continue };
            if working.fetch_add(1, Ordering::AcqRel) >= REQUESTS_AT_ONCE {
                working.fetch_sub(1, Ordering::AcqRel);
                let why = format!("{REQUESTS_AT_ONCE} requests are running; wait for one to end");
                out.respond(&id, Err(RpcError::of(ErrorKind::Busy, why)));
                continue;
            }
            let (out, working) = (&out, &working);
            scope.spawn(move || {
                let done = agent.work(task, out);
                out.respond(&id, done);
                working.fetch_sub(1, Ordering::AcqRel);
            });
        };
        agent.stop_all();
        ended
    })
}

/// Handles what must happen in order. Returns a request that is left to run.
fn take(agent: &Agent, out: &LineWriter, line: &[u8]) -> Option<(Json, Task)> {
    match RpcMessage::read(line, agent.engine.limits()) {
        Ok(RpcMessage::Request { id, method, params }) => {
            match agent.begin(&method, params) {
                Ok(task) => return Some((id, task)),
                Err(error) => out.respond(&id, Err(error)),
            };
        }
        Ok(RpcMessage::Notification { method, params }) => agent.notice(&method, &params),
        Ok(RpcMessage::Answer) => tracing::warn!("ignored a response: no request was sent"),
        Err(unreadable) => out.refuse(unreadable),
    }
    None
}

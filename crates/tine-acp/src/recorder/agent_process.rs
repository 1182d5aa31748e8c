//! The agent's process: its input, and the requests it has not answered yet.
//!
//! Requests of the client are forwarded under new ids, because the recorder sends requests of its
//! own. Requests of the agent keep their ids: the recorder sends the client none.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tine_core::Json;

use super::json_splice;
use super::recorded_sessions::RecordedSession;
use crate::json_macro::json;
use crate::json_rpc::RpcResult;
use crate::line_io::LineWriter;
use crate::lock;

/// How long an agent may take to exit after its input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// The interval at which its exit is polled.
const LOOK: Duration = Duration::from_millis(10);

/// Who waits for a response of the agent.
pub(super) enum PendingRequest {
    /// The client, which has its own id for the request.
    Client { id: Json, prompt: Option<Arc<RecordedSession>> },
    /// The recorder.
    Own(Sender<Result<Json, Json>>),
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum AgentError {
    /// The agent responded with this error.
    Refused(Json),
    /// The agent has ended.
    Gone,
}

#[derive(Default)]
struct PendingRequests {
    last: u64,
    waiting: HashMap<u64, PendingRequest>,
    gone: bool,
}

/// A running agent.
pub(super) struct AgentProcess {
    input: LineWriter,
    child: Mutex<Child>,
    pending: Mutex<PendingRequests>,
    /// The agent's response to `initialize`.
    pub(super) initialize_result: OnceLock<Json>,
}

impl AgentProcess {
    /// Starts an agent. Returns its output as well.
    pub(super) fn start(command: &[OsString]) -> io::Result<(AgentProcess, ChildStdout)> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::other("no command was given"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("the agent has no input or output"));
        };
        let (pending, initialize_result) = Default::default();
        Ok((
            AgentProcess {
                input: LineWriter::new(input),
                child: Mutex::new(child),
                pending,
                initialize_result,
            },
            output,
        ))
    }

    fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        lock(&self.pending)
    }

    /// Responds to a request of the agent.
    pub(super) fn respond(&self, id: &Json, result: RpcResult<Json>) {
        self.input.respond(id, result);
    }

    /// Sends a message that expects no response.
    pub(super) fn send(&self, message: &Json) {
        self.input.send(message);
    }

    /// Sends a line that expects no response.
    pub(super) fn send_line(&self, line: Vec<u8>) {
        self.input.send_line(line);
    }

    /// Forwards a request under a new id. Returns the waiting party if the agent has ended.
    pub(super) fn forward(
        &self,
        waiting: PendingRequest,
        mut request: Vec<u8>,
    ) -> Result<(), PendingRequest> {
        {
            let mut pending = self.pending();
            if pending.gone {
                return Err(waiting);
            }
            pending.last += 1;
            let id = pending.last;
            pending.waiting.insert(id, waiting);
            json_splice::set(&mut request, &["id"], &id.to_string());
        }
        self.input.send_line(request);
        Ok(())
    }

    /// Sends a request and waits for the response.
    pub(super) fn request(&self, method: &str, params: &Json) -> Result<Json, AgentError> {
        let (sender, answer) = mpsc::channel();
        let request = json!({ "jsonrpc": "2.0", "method": method, "params": params.clone() });
        self.forward(PendingRequest::Own(sender), request.to_canonical().into_bytes())
            .map_err(|_| AgentError::Gone)?;
        match answer.recv() {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(AgentError::Refused(error)),
            Err(_) => Err(AgentError::Gone),
        }
    }

    /// Removes and returns the request with this id.
    pub(super) fn take_pending(&self, id: &Json) -> Option<PendingRequest> {
        self.pending().waiting.remove(&id.as_u64()?)
    }

    /// Returns the id under which a request of the client was forwarded.
    pub(super) fn forwarded_id(&self, client: &Json) -> Option<u64> {
        let pending = self.pending();
        let mut known = pending.waiting.iter();
        known.find_map(|(id, waiting)| match waiting {
            PendingRequest::Client { id: client_id, .. } if client_id == client => Some(*id),
            _ => None,
        })
    }

    pub(super) fn is_gone(&self) -> bool {
        self.pending().gone
    }

    /// Notes that no more responses come. Returns the unanswered requests.
    pub(super) fn mark_gone(&self) -> Vec<PendingRequest> {
        let mut pending = self.pending();
        pending.gone = true;
        pending.waiting.drain().map(|(_, waiting)| waiting).collect()
    }

    /// Closes the agent's input and waits for it to exit; kills it after a grace period.
    pub(super) fn stop(&self) {
        self.input.close();
        let deadline = Instant::now() + GRACE;
        let mut child = lock(&self.child);
        while Instant::now() < deadline {
            match child.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                _ => return,
            }
        }
        tracing::warn!("the agent did not exit; killing it");
        if let Err(error) = child.kill().and_then(|()| child.wait()) {
            tracing::warn!(%error, "cannot kill the agent");
        }
    }

    /// Describes how the agent ended, after its output was closed.
    pub(super) fn exit_description(&self) -> String {
        let deadline = Instant::now() + GRACE;
        let mut child = lock(&self.child);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return format!("the agent ended ({status})"),
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK),
                _ => break,
            }
        }
        // An agent without an output is of no use.
        let _ = child.kill().and_then(|()| child.wait());
        "the agent closed its output".to_owned()
    }
}

//! The agent as a process: its input, and who waits for which of its answers.
//!
//! Requests of the client get ids of ours on their way, since some requests are ours alone. Those
//! of the agent keep theirs: nothing else asks the client.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tine_core::Json;

use super::session::Session;
use super::splice;
use crate::json::json;
use crate::lines::Out;

/// How long an agent may take to end once nobody talks to it any more.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked for its end meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// Who waits for an answer of the agent.
pub(super) enum Waiting {
    /// The client, under an id of its own.
    Client { id: Json, prompt: Option<Arc<Session>> },
    /// We do.
    Own(Sender<Result<Json, Json>>),
}

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Fault {
    /// The agent answered with this error.
    Refused(Json),
    /// The agent is gone.
    Gone,
}

#[derive(Default)]
struct Asked {
    last: u64,
    waiting: HashMap<u64, Waiting>,
    gone: bool,
}

/// A running agent.
pub(super) struct Link {
    input: Out,
    child: Mutex<Child>,
    asked: Mutex<Asked>,
    /// What the agent said of itself.
    pub(super) hello: OnceLock<Json>,
}

impl Link {
    /// Starts an agent; its output is for somebody to listen to.
    pub(super) fn start(command: &[OsString]) -> io::Result<(Link, ChildStdout)> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::other("no command is given"))?;
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
        let (asked, hello) = Default::default();
        Ok((Link { input: Out::new(input), child: Mutex::new(child), asked, hello }, output))
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something that nobody waits for an answer to.
    pub(super) fn send(&self, message: &Json) {
        self.input.send(message);
    }

    /// Sends a line that is no request.
    pub(super) fn send_line(&self, line: Vec<u8>) {
        self.input.send_line(line);
    }

    /// Forwards a request under an id of ours; returns the waiting party if the agent is gone.
    pub(super) fn pass(&self, waiting: Waiting, mut request: Vec<u8>) -> Result<(), Waiting> {
        {
            let mut asked = self.asked();
            if asked.gone {
                return Err(waiting);
            }
            asked.last += 1;
            let id = asked.last;
            asked.waiting.insert(id, waiting);
            splice::set(&mut request, &["id"], &id.to_string());
        }
        self.input.send_line(request);
        Ok(())
    }

    /// Asks the agent and waits for its answer.
    pub(super) fn ask(&self, method: &str, params: &Json) -> Result<Json, Fault> {
        let (sender, answer) = mpsc::channel();
        let request = json!({ "jsonrpc": "2.0", "method": method, "params": params.clone() });
        self.pass(Waiting::Own(sender), request.to_canonical().into_bytes())
            .map_err(|_| Fault::Gone)?;
        match answer.recv() {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(Fault::Refused(error)),
            Err(_) => Err(Fault::Gone),
        }
    }

    /// Who waits for the answer with this id.
    pub(super) fn answered(&self, id: &Json) -> Option<Waiting> {
        self.asked().waiting.remove(&id.as_u64()?)
    }

    /// The id under which a request of the client was passed on.
    pub(super) fn id_of(&self, client: &Json) -> Option<u64> {
        let asked = self.asked();
        let mut known = asked.waiting.iter();
        known.find_map(|(id, waiting)| match waiting {
            Waiting::Client { id: theirs, .. } if theirs == client => Some(*id),
            _ => None,
        })
    }

    pub(super) fn is_gone(&self) -> bool {
        self.asked().gone
    }

    /// Notes that no more answers come; whoever waits for one.
    pub(super) fn gone(&self) -> Vec<Waiting> {
        let mut asked = self.asked();
        asked.gone = true;
        asked.waiting.drain().map(|(_, waiting)| waiting).collect()
    }

    /// Nothing more is said to the agent: it ends, or is ended.
    pub(super) fn end(&self) {
        self.input.close();
        let deadline = Instant::now() + GRACE;
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        while Instant::now() < deadline {
            match child.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                _ => return,
            }
        }
        tracing::warn!("the agent does not end by itself; it is ended");
        if let Err(error) = child.kill().and_then(|()| child.wait()) {
            tracing::warn!(%error, "the agent cannot be ended");
        }
    }

    /// How the agent ended, in words, once its output has.
    pub(super) fn ending(&self) -> String {
        let deadline = Instant::now() + GRACE;
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return format!("the agent ended ({status})"),
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK),
                _ => break,
            }
        }
        // Without an output it is of no use to anybody.
        let _ = child.kill().and_then(|()| child.wait());
        "the agent closed its output".to_owned()
    }
}

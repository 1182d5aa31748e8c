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

use serde_json::{Value, json};

use super::session::Session;
use crate::lines::Out;

/// How long an agent may take to end once nobody talks to it any more.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked for its end meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// Who waits for an answer of the agent.
pub(super) enum Waiting {
    /// The client, under an id of its own.
    Client { id: Value, prompt: Option<Arc<Session>> },
    /// We do.
    Own(Sender<Result<Value, Value>>),
}

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Fault {
    /// The agent answered with this error.
    Refused(Value),
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
    pub(super) hello: OnceLock<Value>,
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
    pub(super) fn send(&self, message: &Value) {
        self.input.send(message);
    }

    /// Passes a request on under an id of ours; whoever waits comes back if the agent is gone.
    pub(super) fn pass(&self, waiting: Waiting, mut request: Value) -> Result<(), Waiting> {
        {
            let mut asked = self.asked();
            if asked.gone {
                return Err(waiting);
            }
            asked.last += 1;
            let id = asked.last;
            asked.waiting.insert(id, waiting);
            request["id"] = id.into();
        }
        self.input.send(&request);
        Ok(())
    }

    /// Asks the agent and waits for its answer.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        let (sender, answer) = mpsc::channel();
        let request = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.pass(Waiting::Own(sender), request).map_err(|_| Fault::Gone)?;
        match answer.recv() {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(Fault::Refused(error)),
            Err(_) => Err(Fault::Gone),
        }
    }

    /// Who waits for the answer with this id.
    pub(super) fn answered(&self, id: &Value) -> Option<Waiting> {
        self.asked().waiting.remove(&id.as_u64()?)
    }

    /// The id under which a request of the client was passed on.
    pub(super) fn id_of(&self, client: &Value) -> Option<u64> {
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

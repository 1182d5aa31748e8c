//! A client over pipes, and a store that several clients share.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tine_acp::{Agent, Recorder, Responder};
use tine_core::{BranchId, ConversationId, TurnId};
use tine_engine::{BranchView, Call, Engine, PathQuery, TurnRef, TurnView};
use tine_sqlite::SqliteStore;

/// Only a defect takes this long.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The working directory of sessions.
pub const CWD: &str = "/work";

pub struct TestStore {
    pub engine: Engine,
    pub call: Call,
    folder: TempDir,
}

impl TestStore {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        TestStore { engine: engine(&folder), call: Call::by("tester"), folder }
    }

    /// Returns an initialized client of an echoing agent.
    pub fn client(&self) -> Client {
        self.client_of(Responder::Echo)
    }

    /// Returns an initialized client of an agent with this model. Each agent has its own engine, as
    /// processes do.
    pub fn client_of(&self, model: Responder) -> Client {
        let mut client = self.uninitialized_client(model);
        let hello =
            json!({ "protocolVersion": 1, "clientInfo": { "name": "test", "version": "1" } });
        client.ask("initialize", hello);
        client
    }

    /// Returns a client that has not sent `initialize`.
    pub fn uninitialized_client(&self, model: Responder) -> Client {
        let agent = Agent::new(engine(&self.folder), self.call.clone(), model);
        Client::of(move |input, output| tine_acp::serve(&agent, input, output))
    }

    /// Returns a client of the recorder.
    pub fn recorded(&self, command: &[&str], line_bytes: usize) -> Client {
        let recorder = Recorder {
            engine: engine(&self.folder),
            call: self.call.clone(),
            command: command.iter().map(Into::into).collect(),
            redact: true,
            from: None,
            line_bytes,
        };
        Client::of(|input, output| recorder.record(input, output))
    }

    pub fn branch(&self, session: &str) -> BranchView {
        let id: BranchId = session.parse().expect("a session's id is a branch's");
        self.engine.branch_by_id(&self.call, id).expect("the branch of the session")
    }

    /// Returns the turns of a session, in order.
    pub fn turns(&self, session: &str) -> Vec<TurnView> {
        let branch = self.branch(session);
        let Some(tip) = branch.tip else { return Vec::new() };
        let query = PathQuery::of(branch.conversation).to(tip);
        self.engine.path(&self.call, query).expect("the path of the session").turns
    }

    pub fn turn(&self, conversation: &ConversationId, id: &str) -> TurnView {
        let id: TurnId = id.parse().expect("a message's id is a turn's");
        let turn = TurnRef::within(conversation.clone(), id);
        self.engine.turn(&self.call, turn).expect("the turn of the message")
    }

    pub fn verify(&self) {
        let found = self.engine.verify().expect("a store that can be read");
        assert!(found.problems.is_empty(), "{:?}", found.problems);
    }
}

fn engine(folder: &TempDir) -> Engine {
    Engine::new(SqliteStore::open(folder.path()).expect("a folder becomes a store"))
}

/// The result of a prompt.
pub struct Exchange {
    pub user: String,
    pub agent: String,
    pub text: String,
    pub answer: Value,
}

pub struct Client {
    input: Option<PipeWriter>,
    output: Receiver<Value>,
    serving: Option<JoinHandle<io::Result<()>>>,
    next: u64,
    /// Updates that were not asserted on yet.
    updates: Vec<Value>,
}

impl Client {
    fn of(serve: impl FnOnce(PipeReader, PipeWriter) -> io::Result<()> + Send + 'static) -> Self {
        let (agent_reads, input) = io::pipe().expect("a pipe");
        let (we_read, agent_writes) = io::pipe().expect("a pipe");
        let serving = thread::spawn(move || serve(agent_reads, agent_writes));
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(we_read).lines() {
                let line = line.expect("the agent writes text");
                let message = serde_json::from_str(&line).expect("every line is JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let serving = Some(serving);
        Client { input: Some(input), output, serving, next: 0, updates: Vec::new() }
    }

    pub fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line).and_then(|()| input.write_all(b"\n")).expect("the agent reads");
    }

    /// Returns the next message.
    pub fn next_message(&mut self) -> Value {
        let message = self.output.recv_timeout(TIMEOUT).expect("the agent says something");
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Sends a request without waiting for its response.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.line(request.to_string().as_bytes());
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let notification = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.line(notification.to_string().as_bytes());
    }

    /// Waits for the response to a request, and keeps the updates before it.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next_message();
            if message.get("method").is_some() {
                self.updates.push(message);
            } else {
                assert_eq!(message["id"], id, "{message}");
                return message;
            }
        }
    }

    /// Waits for the next update of a kind.
    pub fn await_update(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next_message();
            assert_eq!(message["method"], "session/update", "{message}");
            self.updates.push(message.clone());
            if message["params"]["update"]["sessionUpdate"] == kind {
                return message["params"]["update"].clone();
            }
        }
    }

    /// Sends a request and returns its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and returns its error.
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// Returns and clears the updates so far, which must all be of one session.
    pub fn updates(&mut self, session: &str) -> Vec<Value> {
        let mut updates = std::mem::take(&mut self.updates);
        for update in &updates {
            assert_eq!(update["params"]["sessionId"], session, "{update}");
        }
        updates.iter_mut().map(|update| update["params"]["update"].take()).collect()
    }

    pub fn new_session(&mut self) -> String {
        let made = self.ask("session/new", json!({ "cwd": CWD, "mcpServers": [] }));
        made["sessionId"].as_str().expect("a session's id").to_owned()
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> Exchange {
        self.updates.clear();
        let answer = self.ask("session/prompt", question(session, text));
        let updates = self.updates(session);
        let said = |kind: &str| {
            let chunks: Vec<&Value> =
                updates.iter().filter(|update| update["sessionUpdate"] == kind).collect();
            let id = chunks.first().map_or("", |first| first["messageId"].as_str().expect("an id"));
            assert!(chunks.iter().all(|chunk| chunk["messageId"] == id), "{updates:?}");
            let texts = chunks.iter().map(|chunk| chunk["content"]["text"].as_str().expect("text"));
            (id.to_owned(), texts.collect::<String>())
        };
        let (user, asked) = said("user_message_chunk");
        assert_eq!(asked, text);
        let (agent, text) = said("agent_message_chunk");
        Exchange { user, agent, text, answer }
    }

    pub fn fork(&mut self, session: &str, at: Option<&str>) -> String {
        let forked = self.ask("session/fork", fork(session, at));
        forked["sessionId"].as_str().expect("a session's id").to_owned()
    }

    /// Loads a session and returns the kind, message id and text of each replayed update.
    pub fn replay(&mut self, session: &str) -> Vec<(String, String, String)> {
        self.updates.clear();
        self.ask("session/load", json!({ "sessionId": session, "cwd": CWD, "mcpServers": [] }));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let updates = self.updates(session);
        let shown = updates.iter().map(|update| {
            let content = &update["content"]["text"];
            (text(&update["sessionUpdate"]), text(&update["messageId"]), text(content))
        });
        shown.collect()
    }

    /// Closes the input and waits for the agent to end.
    pub fn end(&mut self) {
        self.input = None;
        if let Some(serving) = self.serving.take() {
            serving.join().expect("no panic").expect("a clean end");
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

pub fn question(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

pub fn fork(session: &str, at: Option<&str>) -> Value {
    match at {
        Some(at) => json!({ "sessionId": session, "cwd": CWD, "messageId": at }),
        None => json!({ "sessionId": session, "cwd": CWD }),
    }
}

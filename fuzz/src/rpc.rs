//! JSON-RPC lines, as a client sends them to `tine acp`: none makes it panic, every answer is one line
//! of JSON, and what was recorded passes verification.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tine_acp::{Agent, Responder};
use tine_core::Limits;
use tine_engine::{Call, Engine, FixedEntropy, ManualClock};
use tine_store::MemoryStore;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The first lines of a client.
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/me","mcpServers":[]}}"#,
    "\n"
);

/// Runs the input of a client with a session; `SESSION` stands for its id.
pub fn rpc(data: &[u8]) {
    let now = "2026-06-01T00:00:00Z".parse().expect("a time");
    let (clock, entropy) = (Arc::new(ManualClock::new(now, 1)), Arc::new(FixedEntropy::new(1)));
    let store = Arc::new(MemoryStore::new());
    let engine = || Engine::with(store.clone(), clock.clone(), entropy.clone(), Limits::default());
    let agent = Agent::new(engine(), Call::by("fuzz"), Responder::Echo);
    let answers = said(&agent, HELLO.as_bytes());
    let session = answers.iter().find_map(|it| it["result"]["sessionId"].as_str());
    let session = session.expect("a session is made");
    let text = String::from_utf8_lossy(data);
    match data.is_ascii() {
        true => said(&agent, text.replace("SESSION", session).as_bytes()),
        false => said(&agent, data),
    };
    let found = engine().verify().expect("a store in memory can be read");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

/// Returns the agent's answers to an input.
fn said(agent: &Agent, input: &[u8]) -> Vec<serde_json::Value> {
    let written = Written::default();
    tine_acp::serve(agent, input, written.clone()).expect("bytes in memory can be read");
    let written = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answers: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_slice(line).expect("a line is JSON")).collect();
    assert!(answers.iter().all(|answer| answer["jsonrpc"] == "2.0"), "{answers:?}");
    answers
}

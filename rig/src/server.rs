//! `kill -9` on `tine serve`: what was acknowledged to a client must survive every restart.
//!
//! Several clients append over HTTP, each to its own conversation and with a key for every message.
//! The server is killed at any moment and restarted on the same store. A client without an answer
//! repeats the request; the message must be stored exactly once. This process keeps the ledger from
//! the answers alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::RigError;
use crate::check;
use crate::programs::{Programs, scratch};
use crate::report::{BrokenGuarantee, Tally, Violation};
use crate::seeded_rng::SeededRng;
use tine_core::{ConversationId, Limits};
use tine_engine::{Call, Engine, Page, PathQuery};
use tine_store::Content;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Cycles of starting, killing and checking.
    #[arg(long, default_value_t = 200)]
    pub cycles: usize,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The longest lifetime of a server, in milliseconds.
    #[arg(long, default_value_t = 400)]
    pub longest: usize,
}

/// Clients at once.
const CLIENTS: usize = 6;
/// Messages of all clients before a new store is created.
const MESSAGES: usize = 20_000;
/// How long a server may take to start or to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the cycles.
pub fn run(programs: &Programs, options: &Options) -> Result<Tally, RigError> {
    let mut tally = Tally::default();
    let mut target = KilledServer::new()?;
    for cycle in 0..options.cycles {
        let mut rng = SeededRng::at(options.seed ^ 0x5e12, &[u64::try_from(cycle)?]);
        let pause = rng.below(options.longest.max(1) * 1_000);
        tally.cases += 1;
        match target.cycle(programs, Duration::from_micros(u64::try_from(pause)?))? {
            Ok(calls) => tally.calls += calls,
            Err(violation) => {
                let replay = format!("kill-server --cycles {} --seed {}", cycle + 1, options.seed);
                let what = format!("cycle {cycle}: {}", violation.what);
                tally.record_violation(Violation { what, replay, ..violation });
                target = KilledServer::new()?;
            }
        }
        if target.answered() > MESSAGES {
            target = KilledServer::new()?;
        }
    }
    Ok(tally)
}

/// A store and what was acknowledged to its clients.
struct KilledServer {
    scratch: tempfile::TempDir,
    clients: Vec<Client>,
}

impl KilledServer {
    fn new() -> Result<Self, RigError> {
        let clients = (0..CLIENTS).map(Client::new).collect();
        Ok(KilledServer { scratch: scratch()?, clients })
    }

    fn answered(&self) -> usize {
        self.clients.iter().map(|client| client.answered.len()).sum()
    }

    /// Starts, lets the clients work, kills and checks; returns the number of acknowledged calls that
    /// were checked.
    fn cycle(
        &mut self,
        programs: &Programs,
        pause: Duration,
    ) -> Result<Result<usize, Violation>, RigError> {
        let (mut server, address) = self.start(programs)?;
        let stop = AtomicBool::new(false);
        let worked = std::thread::scope(|scope| {
            let stop = &stop;
            let clients = self.clients.iter_mut();
            let working: Vec<_> =
                clients.map(|client| scope.spawn(move || client.work(address, stop))).collect();
            std::thread::sleep(pause);
            let killed = server.kill();
            stop.store(true, Ordering::SeqCst);
            let worked: Vec<_> = working.into_iter().map(|it| it.join()).collect();
            killed.map(|()| worked)
        })?;
        server.wait()?;
        for outcome in worked {
            if let Err(violation) = outcome.map_err(|_| "a client panicked")? {
                return Ok(Err(violation));
            }
        }
        Ok(self.look())
    }

    /// Starts the server and waits for its address.
    fn start(&self, programs: &Programs) -> Result<(Child, SocketAddr), RigError> {
        let mut server = Command::new(&programs.command)
            .env_clear()
            .env("HOME", self.scratch.path())
            .env("USER", "rig")
            .env("TINE_STORE", self.scratch.path().join("store"))
            .current_dir(self.scratch.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "error"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = server.stderr.take().ok_or("the server has no standard error")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address.parse());
        match address {
            Some(Ok(address)) => Ok((server, address)),
            _ => {
                server.kill()?;
                Err(format!("the server did not start: {line}").into())
            }
        }
    }

    /// Checks that every client's path is what was acknowledged, in order, with at most the one message
    /// after it that was not answered.
    fn look(&self) -> Result<usize, Violation> {
        let engine = Engine::new(check::open(&self.scratch.path().join("store"), true)?);
        check::verify(&engine)?;
        for client in &self.clients {
            client.look(&engine)?;
        }
        Ok(self.answered())
    }
}

/// A client and what was acknowledged to it.
struct Client {
    conversation: String,
    made: bool,
    /// The turn ids of the messages, in order.
    answered: Vec<String>,
}

impl Client {
    fn new(number: usize) -> Self {
        Client { conversation: format!("client-{number}"), made: false, answered: Vec::new() }
    }

    /// Appends until the server is gone. Any answer other than success is a violation.
    fn work(&mut self, address: SocketAddr, stop: &AtomicBool) -> Result<(), Violation> {
        let Ok(mut line) = HttpConnection::open(address) else { return Ok(()) };
        while !stop.load(Ordering::SeqCst) {
            let (path, body) = self.next();
            let Some((status, answer)) = line.ask(&path, &body) else { return Ok(()) };
            if !(200..300).contains(&status) {
                let what = format!("{path} was answered with {status}: {answer}");
                return Err(Violation::new(BrokenGuarantee::Crashed, what));
            }
            if !self.made {
                self.made = true;
                continue;
            }
            match answer.pointer("/turns/0/turn_id").and_then(Value::as_str) {
                Some(turn) => self.answered.push(turn.to_owned()),
                None => {
                    let what = format!("an answer without a turn: {answer}");
                    return Err(Violation::new(BrokenGuarantee::Crashed, what));
                }
            }
        }
        Ok(())
    }

    /// Returns the next request, or the same one until it was answered.
    fn next(&self) -> (String, Value) {
        let (id, number) = (&self.conversation, self.answered.len());
        if !self.made {
            let body = json!({"conversation_id": id, "idempotency_key": format!("{id} begins")});
            return ("/api/v1/conversations".to_owned(), body);
        }
        let body = json!({
            "role": "user",
            "content": text(number),
            "reuse": false,
            "idempotency_key": format!("{id} {number}"),
        });
        (format!("/api/v1/conversations/{id}/turns"), body)
    }

    fn look(&self, engine: &Engine) -> Result<(), Violation> {
        let call = Call::by("rig");
        let half = |error: tine_engine::Error| {
            Violation::new(BrokenGuarantee::Inconsistent, error.to_string())
        };
        let id = ConversationId::new(&self.conversation, &Limits::default())
            .map_err(|error| Violation::new(BrokenGuarantee::Inconsistent, error.to_string()))?;
        if !self.made {
            // It may be there all the same; nothing was promised.
            return engine.conversations(&call, true, Page::default()).map(|_| ()).map_err(half);
        }
        let lost =
            |error: tine_engine::Error| Violation::new(BrokenGuarantee::Lost, error.to_string());
        let mut query = PathQuery::of(id);
        let mut found = Vec::new();
        loop {
            let page = engine.path(&call, query.clone()).map_err(lost)?;
            found.extend(page.turns);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => break,
            }
        }
        for (number, turn) in self.answered.iter().enumerate() {
            let there = found.get(number).map(|turn| turn.id.to_string());
            if there.as_ref() != Some(turn) {
                let what = format!(
                    "{}: message {number} was acknowledged as {turn}, and {there:?} is there",
                    self.conversation
                );
                return Err(Violation::new(BrokenGuarantee::Lost, what));
            }
        }
        if found.len() > self.answered.len() + 1 {
            let what = format!(
                "{}: {} messages were sent at most, {} are there",
                self.conversation,
                self.answered.len() + 1,
                found.len()
            );
            return Err(Violation::new(BrokenGuarantee::Repeated, what));
        }
        for (number, turn) in found.iter().enumerate() {
            let said = match &turn.content {
                Content::Kept(body) => body.text_only(),
                Content::Purged(_) => None,
            };
            if said.as_deref() != Some(text(number).as_str()) {
                let what = format!("{}: turn {number} says {said:?}", self.conversation);
                return Err(Violation::new(BrokenGuarantee::Inconsistent, what));
            }
        }
        Ok(())
    }
}

/// Returns the text of a message, long enough to fill pages.
fn text(number: usize) -> String {
    format!("message {number} {}", "and so on ".repeat(number % 60))
}

/// A connection for one request at a time.
struct HttpConnection {
    stream: BufReader<TcpStream>,
}

impl HttpConnection {
    fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(HttpConnection { stream: BufReader::new(stream) })
    }

    /// Sends a request and reads the answer; `None` if the server went away before it was complete.
    fn ask(&mut self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let (mut status, mut length, mut line) = (None, 0, String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                head => {
                    if status.is_none() {
                        status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
                    } else if let Some((name, value)) = head.split_once(": ")
                        && name.eq_ignore_ascii_case("content-length")
                    {
                        length = value.parse().ok()?;
                    }
                }
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).ok()?;
        Some((status?, serde_json::from_slice(&answer).ok()?))
    }
}

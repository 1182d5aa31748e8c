//! A command that speaks JSON-RPC over standard input and output, as its parent process sees it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::harness::Home;

/// A command that runs, and the lines to it and from it. It ends with its owner.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Peer {
    pub fn start(home: &Home, command: &str, more: &[&str]) -> Self {
        let mut child = home
            .command(&[&[command], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Peer { child, input, output, next: 0 }
    }

    pub fn line(&mut self, message: &Value) {
        self.raw_line(&message.to_string());
    }

    /// Sends a line as it is.
    pub fn raw_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Sends a request; its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message; every line is one.
    pub fn hear(&mut self) -> Value {
        let line = self.hear_raw();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    /// The next line as it is.
    pub fn hear_raw(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended");
        line
    }

    /// Sends a request and waits for its answer, whatever that is.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let answer = self.hear();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks, and takes the error.
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["result"].is_null(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// Takes the process away without a word.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the input, as editors and hosts do, and waits for the end.
    pub fn end(&mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A local endpoint of a chat completions API.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use serde_json::{Value, json};
use tine_acp::Responder;
use tine_llm::{Protocol, Provider, ProviderSettings};

/// What an endpoint does after the chunks of its answer.
#[derive(Clone, Copy)]
pub enum Then {
    /// Sends the finish reason.
    Stop(&'static str),
    /// Sends nothing more until the client disconnects.
    Stall,
    /// Closes the connection.
    Break,
}

/// A chunk of the answer.
pub fn said(text: &str) -> Value {
    json!({ "content": text })
}

/// Starts a model that begins to answer and then waits until it is stopped.
pub fn stalled() -> Responder {
    endpoint(vec![said("half")], Then::Stall).0
}

/// Starts a model that streams these chunks for every request. Also returns the requests it gets.
pub fn endpoint(pieces: Vec<Value>, then: Then) -> (Responder, Receiver<Value>) {
    in_turn(vec![pieces], then)
}

/// Starts a model with one answer for each request; the last one is repeated.
pub fn in_turn(answers: Vec<Vec<Value>>, then: Then) -> (Responder, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().flatten().enumerate() {
            let pieces = answers[nth.min(answers.len() - 1)].clone();
            let sender = sender.clone();
            // The client may disconnect at any time.
            thread::spawn(move || answer(stream, &pieces, then, &sender).ok());
        }
    });
    let settings = ProviderSettings {
        base_url: Some(format!("http://{address}/v1")),
        retries: Some(0),
        ..ProviderSettings::new(Protocol::OpenAi, "asked-for")
    };
    let provider = Provider::new("local", settings).expect("a sound provider");
    (Responder::Provider(tine_llm::Model::new(provider).expect("a model")), asked)
}

fn answer(
    mut stream: TcpStream,
    pieces: &[Value],
    then: Then,
    asked: &Sender<Value>,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let _ = asked.send(serde_json::from_slice(&body).expect("a request is JSON"));
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    )?;
    let mut event = |choices: Value, usage: Value| {
        let event = json!({ "id": "x", "model": "answered", "choices": choices, "usage": usage });
        write!(stream, "data: {event}\n\n")
    };
    for piece in pieces {
        event(json!([{ "index": 0, "delta": piece, "finish_reason": null }]), Value::Null)?;
    }
    match then {
        Then::Stop(why) => {
            event(json!([{ "index": 0, "delta": {}, "finish_reason": why }]), Value::Null)?;
            let usage = json!({ "prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12 });
            event(json!([]), usage)?;
            write!(stream, "data: [DONE]\n\n")
        }
        // Ends when the other side closes the connection.
        Then::Stall => reader.read(&mut [0]).map(|_| ()),
        Then::Break => Ok(()),
    }
}

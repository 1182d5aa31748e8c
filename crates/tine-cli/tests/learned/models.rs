//! Models of `tine.toml`, over HTTP at a scripted endpoint.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{items, text};
use crate::harness::{Home, Ran, Server, finish};

const KEY: &str = "sk-very-secret-0123456789";
const SAID: &str = "Anna leads it. Bob prefers tea.";

/// What was asked: the header with the key, and the body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// An endpoint that gives one answer to everybody.
struct Endpoint {
    url: String,
    asked: Asked,
}

impl Endpoint {
    fn start(status: u16, answer: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("it has one"));
        let asked = Asked::default();
        let noted = Arc::clone(&asked);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, status, &answer, &noted);
            }
        });
        Endpoint { url, asked }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, status: u16, answer: &Value, asked: &Asked) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => key = value.trim().to_owned(),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.lock().unwrap().push((key, serde_json::from_slice(&body).unwrap_or_default()));
    let answer = answer.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

fn findings() -> Value {
    let content = json!({ "findings": [
        { "entity_type": "person", "quote": "Anna",
          "fields": [{ "name": "name", "value": "Anna" }] },
        { "entity_type": "preference", "quote": "Bob prefers tea",
          "fields": [{ "name": "statement", "value": "Bob prefers tea" }] },
        { "entity_type": "person", "quote": "Zoe", "fields": [{ "name": "name", "value": "Zoe" }] },
    ] });
    json!({
        "model": "small-2025",
        "choices": [{ "finish_reason": "stop",
            "message": { "role": "assistant", "content": content.to_string() } }],
        "usage": { "prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17 },
    })
}

/// A home whose settings name the endpoint as the default.
fn home_with(endpoint: &Endpoint) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/tine")).unwrap();
    let settings = format!(
        "[interpret]\ndefault = \"small\"\n\n[models.small]\nkind = \"openai\"\n\
         base_url = \"{}\"\nmodel = \"small\"\nkey_env = \"TEST_KEY\"\nretries = 0\n",
        endpoint.url
    );
    home.write(".config/tine/tine.toml", settings);
    home
}

fn with_key(home: &Home, arguments: &[&str]) -> Ran {
    finish(home.command(arguments).env("TEST_KEY", KEY), b"")
}

fn store(home: &Home) -> Value {
    let ran = with_key(
        home,
        &["--json", "store", "turn", "c", "--turn-id", "1", "--interpret", "wait", SAID],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).expect("a document")
}

#[test]
fn a_configured_model_interprets_stored_turns() {
    let endpoint = Endpoint::start(200, findings());
    let home = home_with(&endpoint);
    let stored = store(&home);
    assert_eq!(stored["interpretation"]["status"], "completed");
    assert_eq!(stored["interpretation"]["interpreter"], "small");
    assert_eq!(stored["interpretation"]["observations"], 2);
    let asked = endpoint.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].0, format!("Bearer {KEY}"));
    assert!(asked[0].1["messages"].to_string().contains("Bob prefers tea"));

    let anna = text(&items(&home, &["entity", "list", "--type", "person"])[0], "/entity_id");
    let way = home.ok(&["entity", "provenance", &anna]);
    assert!(way.contains("small (model 1 small), completed"), "{way}");
    assert!(way.contains("“Anna”"), "{way}");
    let run = text(&stored, "/interpretation/interpretation_id");
    let kept = home.ok(&["interpret", "--show", &run, "--bytes"]);
    for part in ["small-2025", "finding 3 was left out", "\"total_tokens\":17", "prompt hash"] {
        assert!(kept.contains(part), "{part}: {kept}");
    }
    assert!(!kept.contains(KEY));
    let again = home.ok(&["interpret", "--replay", &run]);
    assert!(again.contains("2 findings recomputed"), "{again}");
    assert_eq!(endpoint.asked().len(), 1, "no request was repeated");

    // The rules are available too, for comparison.
    let source = text(&stored, "/source_id");
    home.ok(&["interpret", &source, "--interpreter", "rules", "--wait"]);
    let runs = items(&home, &["interpret", "--of", &source]);
    let rules = text(&runs[1], "/interpretation_id");
    assert!(home.ok(&["interpret", "--compare", &run, &rules]).contains("the same"));
    let status = home.ok(&["interpret", "--status"]);
    assert!(status.contains("small  model 1, small  (default)"), "{status}");
}

#[test]
fn a_model_that_refuses_fails_the_run_and_keeps_the_turn() {
    let refusal = json!({ "error": { "type": "invalid_request_error",
        "message": format!("the key {KEY} may not do this") } });
    let endpoint = Endpoint::start(403, refusal);
    let home = home_with(&endpoint);
    let stored = store(&home);
    assert_eq!(stored["outcome"], "created");
    assert_eq!(stored["interpretation"]["status"], "failed");
    let why = text(&stored, "/interpretation/error");
    assert!(why.contains("403") && !why.contains(KEY), "{why}");
    let run = text(&stored, "/interpretation/interpretation_id");
    let kept = home.ok(&["interpret", "--show", &run, "--bytes"]);
    assert!(kept.contains("may not do this") && !kept.contains(KEY), "{kept}");
    home.refused("unsupported", &["interpret", "--replay", &run]);
    let retried = with_key(&home, &["interpret", "--retry", &run, "--wait"]);
    assert!(retried.out.contains("failed"), "{retried:?}");
    assert_eq!(endpoint.asked().len(), 2);
}

#[test]
fn without_its_key_a_model_is_not_asked() {
    let endpoint = Endpoint::start(200, findings());
    let home = home_with(&endpoint);
    let stored = home.json(&["store", "turn", "c", "--interpret", "wait", SAID]);
    assert_eq!(stored["interpretation"]["status"], "failed");
    assert!(text(&stored, "/interpretation/error").contains("TEST_KEY"));
    assert_eq!(endpoint.asked().len(), 0);
}

#[test]
fn a_server_executes_queued_runs() {
    let home = Home::new();
    let file = home.write("notes.md", "TODO: pay the invoice.\n");
    let source = text(&home.json(&["store", "source", &file]), "/source_id");
    let _server = Server::start(&home.path("store"), "127.0.0.1:0", &[]);
    for _ in 0..400 {
        if items(&home, &["interpret", "--of", &source])[0]["status"] == "completed" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the server left the run waiting");
}

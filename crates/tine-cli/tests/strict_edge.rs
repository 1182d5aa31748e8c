//! Every surface reads JSON with the same strict reader: what two programs could take for different
//! values is refused with a sentence that says what to do, and integers keep their digits.
//!
//! One table of values, and one driver per surface. A driver sends a message whose content block
//! carries the value, byte for byte, and returns how the same surface shows the block afterwards,
//! or the sentence of its refusal. A new surface is one more driver.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::{Home, Server};
use crate::rpc::Peer;

/// A value, and what becomes of it.
enum Expected {
    /// It is stored and comes back with the same digits.
    Kept,
    /// It is refused; the sentence contains this.
    Refused(&'static str),
}

fn values() -> Vec<(&'static str, String, Expected)> {
    use Expected::{Kept, Refused};
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    vec![
        ("an integer beyond 64 bits", "12345678901234567890123".to_owned(), Kept),
        ("a negative one", "-12345678901234567890123".to_owned(), Kept),
        ("an integer beyond a double's precision", "9007199254740993".to_owned(), Kept),
        ("a surrogate pair", r#""\ud83c\udf38""#.to_owned(), Kept),
        ("nesting within the limit", nested(100), Kept),
        ("a repeated key", r#"{"a":1,"a":2}"#.to_owned(), Refused("keep one of them")),
        (
            "a repeated key, once escaped",
            r#"{"a":1,"\u0061":2}"#.to_owned(),
            Refused("keep one of them"),
        ),
        ("half a surrogate pair", r#""\ud83c""#.to_owned(), Refused("send whole characters")),
        ("the other half", r#""\udf38""#.to_owned(), Refused("send whole characters")),
        ("a number over a double", "1e999".to_owned(), Refused("send it as a string")),
        ("nesting over the limit", nested(400), Refused("flatten the value")),
    ]
}

/// How a stored value is written: the digits stay, and escapes become characters.
fn written(value: &str) -> String {
    value.replace(r"\ud83c\udf38", "🌸")
}

/// A content block that every surface takes.
fn block(value: &str) -> String {
    format!(r#"{{"type":"text","text":"hostile","annotations":{{"v":{value}}}}}"#)
}

/// Sends a block; returns what the surface shows of it, or the sentence of a refusal.
type Driver = fn(&Home, &str) -> Result<String, String>;

/// The surfaces that refuse. The recorder, which forwards, has a test of its own below.
const SURFACES: [(&str, Driver); 5] = [
    ("REST", rest),
    ("the command, from standard input", command_input),
    ("the command, from a file", command_file),
    ("ACP", acp),
    ("MCP", mcp),
];

#[test]
fn every_surface_reads_strictly_and_keeps_digits() {
    for (surface, driver) in SURFACES {
        let home = Home::new();
        home.ok(&["new", "edge"]);
        for (what, value, expected) in values() {
            let before = home.everything();
            let answer = driver(&home, &block(&value));
            match (expected, answer) {
                (Expected::Kept, Ok(shown)) => {
                    let member = format!("\"v\":{}", written(&value));
                    assert!(shown.contains(&member), "{surface}, {what}: {shown}");
                    let stored = home.everything();
                    assert!(stored.contains(&member), "{surface}, {what}: {stored}");
                }
                (Expected::Refused(why), Err(sentence)) => {
                    assert!(sentence.contains(why), "{surface}, {what}: {sentence}");
                    let after = home.everything();
                    let turns = |text: &str| text.matches("hostile").count();
                    assert_eq!(turns(&after), turns(&before), "{surface}, {what}: it was stored");
                }
                (Expected::Kept, Err(sentence)) => {
                    panic!("{surface}, {what}: refused with {sentence}");
                }
                (Expected::Refused(_), Ok(shown)) => {
                    panic!("{surface}, {what}: taken, and shown as {shown}");
                }
            }
        }
        home.ok(&["verify"]);
    }
}

fn command_input(home: &Home, block: &str) -> Result<String, String> {
    let message = format!(r#"{{"role":"user","content":[{block}]}}"#);
    let ran = home.run_with(&["--json", "append", "--messages", "-"], message.as_bytes());
    if ran.code == 0 { Ok(ran.out) } else { Err(ran.err) }
}

fn command_file(home: &Home, block: &str) -> Result<String, String> {
    let file = home.write("message.json", format!(r#"{{"role":"user","content":[{block}]}}"#));
    let ran = home.run(&["--json", "append", "--messages", &file]);
    if ran.code == 0 { Ok(home.ok(&["--json", "show", "main"])) } else { Err(ran.err) }
}

fn rest(home: &Home, block: &str) -> Result<String, String> {
    let server = Server::start(&home.path("store"), "127.0.0.1:0", &[]);
    let path = "/api/v1/conversations/edge/turns";
    let (status, answer) =
        http(&server.url, "POST", path, &format!(r#"{{"role":"user","content":[{block}]}}"#));
    match status {
        201 => Ok(http(&server.url, "GET", path, "").1),
        _ => Err(answer),
    }
}

fn http(url: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

fn mcp(home: &Home, block: &str) -> Result<String, String> {
    let mut host = Peer::start(home, "mcp", &[]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": { "name": "test", "version": "1" } });
    host.ask("initialize", hello);
    host.line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = |id: &str, tool: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        )
    };
    let arguments =
        format!(r#"{{"conversation_id":"mcp","role":"user","content_blocks":[{block}]}}"#);
    host.raw_line(&call("store", "store_conversation_turn", &arguments));
    let answer = answer_to(&mut host, "store");
    if answer.contains("\"error\"") || answer.contains("\"isError\":true") {
        return Err(answer);
    }
    // Answers show integers beyond 64 bits as strings, since the SDK's values cannot hold them.
    host.raw_line(&call("read", "get_path", r#"{"conversation_id":"mcp","last":1}"#));
    let mut answer = answer_to(&mut host, "read");
    for digits in ["12345678901234567890123", "-12345678901234567890123"] {
        answer = answer.replace(&format!("\"{digits}\""), digits);
    }
    Ok(answer)
}

fn acp(home: &Home, block: &str) -> Result<String, String> {
    let (mut editor, session) = editor(home, &[]);
    editor.raw_line(&prompt(&session, block));
    let answer = answer_to(&mut editor, "prompt");
    if answer.contains("\"error\"") {
        return Err(answer);
    }
    // What is shown of it again, out of the store.
    let load = json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] });
    editor.send("session/load", load);
    let shown = editor.hear_raw();
    editor.end();
    Ok(shown)
}

/// Starts an editor that has opened a session.
fn editor(home: &Home, more: &[&str]) -> (Peer, String) {
    let mut editor = Peer::start(home, "acp", more);
    editor.ask("initialize", json!({ "protocolVersion": 1 }));
    let opened = editor.ask("session/new", json!({ "cwd": "/work", "mcpServers": [] }));
    (editor, opened["sessionId"].as_str().unwrap().to_owned())
}

fn prompt(session: &str, block: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"prompt","method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{block}]}}}}"#
    )
}

/// Returns the line that answers a request; lines before it are passed over.
fn answer_to(peer: &mut Peer, id: &str) -> String {
    lines_until(peer, id).pop().unwrap()
}

/// Returns the lines up to the one that answers a request.
fn lines_until(peer: &mut Peer, id: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let line = peer.hear_raw();
        let is_answer = line.contains(&format!("\"id\":\"{id}\""));
        lines.push(line);
        if is_answer {
            return lines;
        }
    }
}

/// An agent that writes down each line it gets, and repeats the value of a prompt in a chunk, in
/// the input of a call, and in the answer to the prompt.
const REPEATING_AGENT: &str = r#"
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$1"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  value=$(printf '%s' "$line" | sed -n 's/.*"annotations":{"v":\(.*\)}}\]}}$/\1/p')
  update() {
    printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":'"$1"'}}}'
  }
  result='{}'
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) result='{"sessionId":"one"}' ;;
    *'"session/prompt"'*)
      update '"agent_message_chunk","content":{"type":"text","text":"said","annotations":{"v":'"$value"'}}'
      update '"tool_call","toolCallId":"c","title":"Look","status":"in_progress","rawInput":{"v":'"$value"'}'
      update '"tool_call_update","toolCallId":"c","status":"completed","rawOutput":"found"'
      result='{"stopReason":"end_turn","x":{"v":'"$value"'}}' ;;
  esac
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
done
"#;

#[test]
fn the_recorder_forwards_every_byte_and_labels_what_it_did_not_record() {
    let home = Home::new();
    let script = home.write("agent.sh", REPEATING_AGENT);
    let heard = home.path("heard");
    let (mut editor, session) = editor(&home, &["--", "sh", &script, heard.to_str().unwrap()]);
    for (what, value, expected) in values() {
        let block = block(&value);
        editor.raw_line(&prompt(&session, &block));
        let shown = lines_until(&mut editor, "prompt");
        let member = format!("\"v\":{value}");

        let heard = std::fs::read_to_string(&heard).unwrap();
        let asked = heard.lines().last().unwrap();
        assert!(asked.contains(&format!("\"prompt\":[{block}]")), "{what}: {asked}");
        for part in ["\"text\":\"said\"", "\"rawInput\"", "\"stopReason\""] {
            let line = shown.iter().find(|line| line.contains(part)).unwrap();
            assert!(line.contains(&member), "{what}, to the editor: {line}");
        }

        let turns = home.ok(&["--json", "path", &session, "--last", "4"]);
        let turns: Vec<Value> =
            serde_json::from_str::<Value>(&turns).unwrap()["turns"].as_array().unwrap().clone();
        let roles: Vec<&str> = turns.iter().map(|turn| turn["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "assistant", "tool"], "{what}");
        let stored: Vec<String> = turns
            .iter()
            .map(|turn| home.ok(&["--json", "show", turn["turn_id"].as_str().unwrap()]))
            .collect();
        let kept = format!("\"v\":{}", written(&value));
        for (turn, text) in turns.iter().zip(&stored).take(3) {
            match expected {
                Expected::Kept => {
                    assert!(text.contains(&kept), "{what}: {text}");
                    assert!(!text.contains("\"gap\""), "{what}: {text}");
                }
                Expected::Refused(why) => {
                    assert!(!text.contains(&kept), "{what}: {text}");
                    assert!(text.contains("\"gap\":{\"reason\""), "{what}: {text}");
                    assert!(text.contains(why), "{what}: {text}");
                }
            }
            // The line is there as it came: as a message, or as a string.
            let source = turn["metadata"]["source_info"]["events"]["source_id"].as_str().unwrap();
            let events = home.ok(&["source", "cat", source]);
            let as_string = serde_json::to_string(&member).unwrap();
            let as_string = as_string.trim_matches('"');
            assert!(events.contains(&member) || events.contains(as_string), "{what}: {events}");
            assert!(events.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
        }
    }
    editor.end();
    home.ok(&["verify"]);
}

#[test]
fn the_recorder_refuses_what_it_has_to_read_itself() {
    let home = Home::new();
    let script = home.write("agent.sh", REPEATING_AGENT);
    let heard = home.path("heard");
    let (mut editor, _) = editor(&home, &["--", "sh", &script, heard.to_str().unwrap()]);
    editor.raw_line(
        r#"{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/a","cwd":"/b","mcpServers":[]}}"#,
    );
    let answer = answer_to(&mut editor, "new");
    assert!(answer.contains("-32700") && answer.contains("keep one of them"), "{answer}");
    editor.end();
}

//! Lines that are not requests, and requests with invalid parameters.

use serde_json::{Value, json};
use tine_acp::Responder;

use crate::test_client::{CWD, TestStore, question};

#[test]
fn an_invalid_line_is_answered_and_the_next_is_read() {
    let store = TestStore::new();
    let mut client = store.client();
    let lines: [(&[u8], i64, Value); 12] = [
        (b"nonsense", -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1", -32700, Value::Null),
        (b"\xff\xfe", -32700, Value::Null),
        (b"[]", -32600, Value::Null),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}]", -32600, Value::Null),
        (b"7", -32600, Value::Null),
        (b"{\"id\":\"a\",\"method\":\"session/list\"}", -32600, json!("a")),
        (b"{\"jsonrpc\":\"1.0\",\"id\":4,\"method\":\"session/list\"}", -32600, json!(4)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5}", -32600, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"session/list\"}", -32600, Value::Null),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"session/list\",\"params\":[]}",
            -32602,
            json!(6),
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/rewind\"}", -32601, json!(7)),
    ];
    for (line, code, id) in lines {
        client.line(line);
        let answer = client.next_message();
        let shown = String::from_utf8_lossy(line).into_owned();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    client.line(deep.as_bytes());
    assert_eq!(client.next_message()["error"]["code"], -32700);
    // Messages that expect no response get none.
    for line in ["", "  ", "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"] {
        client.line(line.as_bytes());
    }
    client.notify("session/cancel", json!({ "sessionId": "nobody" }));
    client.notify("session/cancel", json!({}));
    client.notify("$/cancel_request", json!({ "requestId": 1 }));
    client.new_session();
}

#[test]
fn an_oversized_line_is_refused_and_the_next_is_read() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    // Within the limit on lines, but over the limit on blocks.
    let large = "x".repeat(17 << 20);
    let error = client.refused("session/prompt", question(&session, &large));
    assert_eq!(error["code"], -32602, "{}", error["message"]);
    client.line(&vec![b' '; (64 << 20) + 1]);
    let answer = client.next_message();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null));
    assert_eq!(client.prompt(&session, "still here").text, "still here");
    assert_eq!(store.turns(&session).len(), 2);
}

#[test]
fn requests_before_initialize_are_refused() {
    let store = TestStore::new();
    let mut client = store.uninitialized_client(Responder::Echo);
    let error = client.refused("session/new", json!({ "cwd": CWD, "mcpServers": [] }));
    assert_eq!(error["code"], -32600);
    let error = client.refused("initialize", json!({}));
    assert_eq!(error["code"], -32602);
    let hello = client.ask("initialize", json!({ "protocolVersion": 99 }));
    assert_eq!(hello["protocolVersion"], 1);
    client.new_session();
}

#[test]
fn invalid_parameters_are_refused() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let wrong = [
        ("session/new", json!({})),
        ("session/new", json!({ "cwd": "relative" })),
        ("session/new", json!({ "cwd": 7 })),
        ("session/load", json!({ "sessionId": session })),
        ("session/load", json!({ "cwd": CWD })),
        ("session/resume", json!({ "sessionId": session, "cwd": "." })),
        ("session/fork", json!({ "sessionId": session })),
        ("session/fork", json!({ "sessionId": session, "cwd": CWD, "messageId": 7 })),
        ("session/list", json!({ "cwd": "relative" })),
        ("session/list", json!({ "cursor": "nonsense" })),
        ("session/list", json!({ "cursor": 7 })),
        ("session/close", json!({})),
        ("session/delete", json!({ "sessionId": [] })),
        ("session/prompt", json!({ "sessionId": session })),
        ("session/prompt", json!({ "sessionId": session, "prompt": [] })),
        ("session/prompt", json!({ "sessionId": session, "prompt": "text" })),
        ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text" }] })),
        ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "tool-use" }] })),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "image", "data": "", "mimeType": "image/png" }] }),
        ),
    ];
    for (method, params) in wrong {
        let error = client.refused(method, params.clone());
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
    }
    assert!(store.turns(&session).is_empty(), "nothing of it was recorded");
    client.prompt(&session, "still promptable");
}

#[test]
fn an_unknown_session_is_refused_and_named() {
    let store = TestStore::new();
    let mut client = store.client();
    let unknown = "01890000-0000-7000-8000-000000000000";
    for method in ["session/load", "session/resume", "session/close", "session/prompt"] {
        let mut params = question(unknown, "x");
        params["cwd"] = CWD.into();
        let error = client.refused(method, params);
        assert_eq!(
            (&error["code"], &error["data"]["sessionId"]),
            (&json!(-32002), &json!(unknown)),
            "{method}"
        );
    }
}

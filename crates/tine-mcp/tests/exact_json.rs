//! JSON is exact in both directions, over stdio and HTTP: what two readers could take for different
//! values is refused, and no digit is lost.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use rmcp::model::{CallToolRequestParams, ClientConfig};
use rmcp::{ServiceExt, model::ReadResourceRequestParams};
use serde_json::{Value, json};
use tine_core::{Body, ConversationId, Limits, Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation, Page, SystemClock, SystemEntropy};
use tine_mcp::{McpHttp, McpOptions, McpServer, Toolset};
use tine_store::MemoryStore;

use crate::harness::{ProtocolEra, RawHost, host, initialize, initialized};

/// An integer beyond 64 bits that no double equals.
const LONG: &str = "12345678901234567890123";

/// A connection on which a test writes messages by hand.
enum Wire {
    Stdio(Box<RawHost>),
    Http { http: McpHttp, session: String },
}

impl Wire {
    /// Connects to an engine over both transports.
    async fn both(engine: &Engine) -> [Wire; 2] {
        let options = McpOptions { toolset: Toolset::All, ..McpOptions::default() };
        let tine = McpServer::new(engine.clone(), options);
        let http = McpHttp::new(tine.for_another(), engine.limits().body_bytes);
        let begun = http.answer(post(None, initialize().to_string())).await;
        let session = begun.headers()["mcp-session-id"].to_str().expect("an id").to_owned();
        let done = http.answer(post(Some(&session), initialized().to_string())).await;
        assert_eq!(done.status(), 202);
        [Wire::Stdio(Box::new(RawHost::of(tine).await)), Wire::Http { http, session }]
    }

    /// Sends a message and returns the text of the response.
    async fn ask(&mut self, message: &str) -> String {
        match self {
            Wire::Stdio(host) => {
                host.send(message).await;
                host.line().await
            }
            Wire::Http { http, session } => {
                text(http.answer(post(Some(session), message.to_owned())).await).await
            }
        }
    }

    async fn call(&mut self, tool: &str, arguments: &str) -> String {
        self.ask(&message(tool, arguments)).await
    }

    /// Calls a tool and returns the response, which must not be an error.
    async fn done(&mut self, tool: &str, arguments: &str) -> String {
        let answer = self.call(tool, arguments).await;
        let parsed: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(parsed["result"].is_object(), "{tool} {arguments}: {answer}");
        assert_ne!(parsed["result"]["isError"], true, "{tool} {arguments}: {answer}");
        answer
    }

    /// Reads a resource and returns its text.
    async fn resource(&mut self, uri: &str) -> String {
        let params = ReadResourceRequestParams::new(uri);
        let read =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": params });
        let answer = self.ask(&read.to_string()).await;
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["result"]["contents"][0]["text"].as_str().expect("a text").to_owned()
    }
}

fn message(tool: &str, arguments: &str) -> String {
    let arguments = arguments.replace('\n', " ");
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn post(session: Option<&str>, body: String) -> Request<bytes::Bytes> {
    let mut request = Request::post("http://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.body(body.into()).expect("a request")
}

/// Returns the message of a response: its body, or the last event of its stream.
async fn text<B: BodyExt>(response: Response<B>) -> String
where
    B::Error: std::fmt::Debug,
{
    let is_stream = response.headers()["content-type"] == "text/event-stream";
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let body = String::from_utf8(body.to_vec()).expect("UTF-8");
    match is_stream {
        true => {
            let mut events = body.lines().filter_map(|line| line.strip_prefix("data:"));
            events.next_back().expect("an event").trim().to_owned()
        }
        false => body,
    }
}

fn engine() -> Engine {
    Engine::new(MemoryStore::new())
}

/// Stores a turn whose content has a long integer.
fn append_long(engine: &Engine, conversation: &str) {
    let limits = engine.limits();
    let block = format!(r#"[{{"type":"odd","data":{LONG}}}]"#);
    let content = tine_core::json::parse(block.as_bytes(), limits.json_depth).expect("JSON");
    let body = Body::from_content(content, Role::User, limits).expect("a body");
    let message = Message { body, ..Message::text(Role::User, "") };
    let id = ConversationId::from_stored(conversation);
    let new = NewConversation { id: Some(id.clone()), ..NewConversation::default() };
    engine.create_conversation(&Call::by("t"), new).expect("a conversation");
    engine.append(&Call::by("t"), Append::to(id, vec![message])).expect("a turn");
}

fn conversations(engine: &Engine) -> usize {
    engine.conversations(&Call::by("t"), false, Page::default()).expect("a list").items.len()
}

fn said(more: &str) -> String {
    format!(r#"{{"conversation_id":"c","role":"assistant",{more}}}"#)
}

#[tokio::test]
async fn ambiguous_json_is_refused_and_nothing_is_stored() {
    let engine = engine();
    let deep = [&"[".repeat(1_000), "1", &"]".repeat(1_000)].concat();
    let store = "store_conversation_turn";
    let refused = [
        (message(store, &said(r#""content":"a","content":"b""#)), -32700, r#"the key "content""#),
        (message(store, &said(r#""content":"a","content":"a""#)), -32700, "more than once"),
        (message(store, &said(r#""content":"a","\u0063ontent":"b""#)), -32700, "keep one of them"),
        (
            message(store, &said(r#""content":"a","metadata":{"custom_data":{"x":1,"x":2}}"#)),
            -32700,
            r#"the key "x" occurs more than once"#,
        ),
        (
            message(store, &said(r#""content_blocks":[{"type":"text","text":"a","text":"b"}]"#)),
            -32700,
            r#"the key "text" occurs more than once"#,
        ),
        (message(store, &said(r#""content":"half: \ud83d""#)), -32700, "send whole characters"),
        (
            message(store, &said(r#""content":"a","metadata":{"custom_data":{"\udc00":1}}"#)),
            -32700,
            "half of a surrogate pair",
        ),
        (
            message(store, &said(r#""content":"a","metadata":{"custom_data":1e999}"#)),
            -32700,
            "1e999 is too large for a double; send it as a string",
        ),
        (
            message(
                store,
                &said(&format!(r#""content":"a","metadata":{{"custom_data":1{LONG:0>400}}}"#)),
            ),
            -32700,
            "too large for a double",
        ),
        (
            message(store, &said(&format!(r#""content_blocks":[{{"type":"odd","data":{deep}}}]"#))),
            -32600,
            "nested more than 127 deep; flatten the value",
        ),
        (
            message("store", r#"{"entities":[{"entity_type":"t","fields":{"a":1,"a":2}}]}"#),
            -32700,
            r#"the key "a" occurs more than once"#,
        ),
        (
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{store}","name":"store","arguments":{{}}}}}}"#
            ),
            -32700,
            r#"the key "name" occurs more than once"#,
        ),
    ];
    for mut wire in Wire::both(&engine).await {
        for (message, code, why) in &refused {
            let answer: Value = serde_json::from_str(&wire.ask(message).await).expect("JSON");
            assert_eq!(answer["id"], 7, "{message}: {answer}");
            assert_eq!(answer["error"]["code"], *code, "{message}: {answer}");
            let sentence = answer["error"]["message"].as_str().expect("a sentence");
            assert!(sentence.contains(why), "{message}: {answer}");
        }
        assert_eq!(conversations(&engine), 0);
        wire.done("get_tree", "{}").await;
    }
    let sources = engine.sources(&Call::by("t"), Page::default()).expect("a list");
    assert!(sources.items.is_empty(), "nothing was stored");
}

#[tokio::test]
async fn long_integers_keep_every_digit_in_both_directions() {
    for nth in 0..2 {
        let mut wires = Wire::both(&engine()).await;
        let wire = &mut wires[nth];
        let id = |answer: &str, name: &str| {
            let answer: Value = serde_json::from_str(answer).expect("JSON");
            let fields = &answer["result"]["structuredContent"];
            fields.pointer(name).and_then(Value::as_str).expect("an id").to_owned()
        };
        let as_number = format!(":{LONG}");
        let block = |name: &str| format!(r#"{{"type":"odd","{name}":{LONG}}}"#);

        let stored = wire
            .done(
                "store_conversation_turn",
                &said(&format!(
                    r#""content_blocks":[{}],"metadata":{{"custom_data":{{"in_data":{LONG}}}}},
                       "turn_number":{LONG},
                       "history":[{{"role":"assistant","content":[{}]}}]"#,
                    block("in_block"),
                    block("in_history"),
                )),
            )
            .await;
        assert!(stored.contains(&format!("c:{LONG}:assistant")), "{stored}");
        let turn = id(&stored, "/turn_id");
        let kept = wire.resource(&format!("tine://turn/{turn}")).await;
        assert!(kept.contains(&format!(r#""in_block"{as_number}"#)), "{kept}");
        assert!(kept.contains(&format!(r#""in_data"{as_number}"#)), "{kept}");
        let path = wire.done("get_path", r#"{"conversation_id":"c"}"#).await;
        assert!(path.contains(&format!(r#""in_block"{as_number}"#)), "{path}");
        assert!(path.contains(&format!(r#""in_history"{as_number}"#)), "{path}");

        let edited = wire
            .done(
                "edit_turn",
                &format!(r#"{{"turn":"{turn}","content_blocks":[{}]}}"#, block("in_edit")),
            )
            .await;
        let kept = wire.resource(&format!("tine://turn/{}", id(&edited, "/turn_id"))).await;
        assert!(kept.contains(&format!(r#""in_edit"{as_number}"#)), "{kept}");

        let appended = wire
            .done(
                "append_turns",
                &format!(
                    r#"{{"conversation_id":"c","messages":[{{"role":"assistant","content":[{}]}}]}}"#,
                    block("in_message")
                ),
            )
            .await;
        let kept =
            wire.resource(&format!("tine://turn/{}", id(&appended, "/turns/0/turn_id"))).await;
        assert!(kept.contains(&format!(r#""in_message"{as_number}"#)), "{kept}");

        let facts = wire
            .done(
                "store_structured",
                &format!(
                    r#"{{"entities":[{{"entity_type":"thing","fields":{{"number":{LONG},"small":-5,"part":1.5}}}},
                                     {{"entity_type":"thing","fields":{{"number":-{LONG}}}}}],
                         "relationships":[{{"type":"REFERS_TO","source":0,"target":1,
                                            "metadata":{{"weight":{LONG}}}}}]}}"#
                ),
            )
            .await;
        let entity = id(&facts, "/entities/0/entity_id");
        let uri = format!("tine://entity/{entity}");
        let kept = wire.resource(&uri).await;
        assert!(
            kept.contains(&format!(r#""fields":{{"number":{LONG},"part":1.5,"small":-5}}"#)),
            "{kept}"
        );
        let snapshot =
            wire.done("retrieve_entity_snapshot", &format!(r#"{{"entity_id":"{entity}"}}"#)).await;
        assert!(
            snapshot.contains(&format!(r#""number"{as_number},"part":1.5,"small":-5"#)),
            "{snapshot}"
        );
        let provenance =
            wire.done("retrieve_field_provenance", &format!(r#"{{"entity_id":"{entity}"}}"#)).await;
        assert!(provenance.contains(&format!(r#""value"{as_number}"#)), "{provenance}");
        let whole = wire.resource("tine://conversation/c").await;
        assert!(whole.contains(&format!(r#""in_block"{as_number}"#)), "{whole}");
        for related in [
            wire.done("list_relationships", "{}").await,
            wire.ask(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_relationships"}}"#,
            )
            .await,
        ] {
            assert!(related.contains(&format!(r#""weight"{as_number}"#)), "{related}");
        }
        wire.done(
            "correct",
            &format!(r#"{{"entity_id":"{entity}","fields":{{"number":{LONG}4}}}}"#),
        )
        .await;
        let kept = wire.resource(&uri).await;
        assert!(kept.contains(&format!(r#""number":{LONG}4,"#)), "{kept}");
    }
}

#[tokio::test]
async fn hosts_that_get_fields_as_text_get_every_digit() {
    let engine = engine();
    append_long(&engine, "c");
    let options = McpOptions { whole_text: true, ..McpOptions::default() };
    let mut host = RawHost::of(McpServer::new(engine, options)).await;
    host.send(message("get_path", r#"{"conversation_id":"c"}"#)).await;
    let answer = host.line().await;
    assert!(answer.contains(&format!(r#"\"data\":{LONG},"#)), "{answer}");
}

#[tokio::test]
async fn a_stored_text_is_never_written_as_an_integer() {
    for mut wire in Wire::both(&engine()).await {
        let texts = ["1", "-1", LONG, "integer:1", "a\\\"1"].map(|text| format!("\"{text}\""));
        for text in texts {
            let block = format!(r#""content_blocks":[{{"type":"odd","data":{text}}}]"#);
            wire.done("store_conversation_turn", &said(&block)).await;
            let path = wire.done("get_path", r#"{"conversation_id":"c"}"#).await;
            assert!(path.contains(&format!(r#""data":{text}"#)), "{path}");
        }
    }
}

#[tokio::test]
async fn nesting_is_bounded_by_the_limits_of_the_engine() {
    let limits = Limits { json_depth: 4, ..Limits::default() };
    let engine = Engine::with(
        Arc::new(MemoryStore::new()),
        Arc::new(SystemClock),
        Arc::new(SystemEntropy),
        limits,
    );
    let block = |levels: usize| {
        let value = ["[".repeat(levels), "]".repeat(levels)].concat();
        said(&format!(r#""content_blocks":[{{"type":"odd","data":{value}}}]"#))
    };
    for mut wire in Wire::both(&engine).await {
        wire.done("store_conversation_turn", &block(2)).await;
        let answer = wire.call("store_conversation_turn", &block(3)).await;
        assert!(answer.contains("nested more than 7 deep"), "{answer}");
    }
}

#[tokio::test]
async fn the_sdks_own_transports_work_with_long_integers_as_strings() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let engine = engine();
    append_long(&engine, "long");
    let tine = McpServer::new(engine, McpOptions::default());
    let server = tokio::spawn(async move { tine.serve(ours).await.expect("a server") });
    let client = ClientConfig::default().serve(theirs).await.expect("a client");
    let arguments = json!({ "conversation_id": "c", "role": "user", "content": "Hello" });
    let request = CallToolRequestParams::new("store_conversation_turn")
        .with_arguments(arguments.as_object().cloned().expect("an object"));
    let done = client.call_tool(request).await.expect("an answer");
    assert_eq!(done.structured_content.expect("fields")["outcome"], "created");
    let request = CallToolRequestParams::new("get_path")
        .with_arguments(json!({ "conversation_id": "long" }).as_object().cloned().expect("one"));
    let path = client.call_tool(request).await.expect("an answer");
    let block = &path.structured_content.expect("fields")["turns"][0]["content"][0];
    assert_eq!(block["data"], LONG, "the SDK's values cannot hold it as a number");
    server.await.expect("a server").cancel().await.expect("an end");
}

#[tokio::test]
async fn whole_numbers_count_as_integers() {
    let host = host(ProtocolEra::Stateless).await;
    let found = host.call("get_tree", json!({ "limit": 5.0 })).await;
    assert_eq!(found["project_id"], "default");
    let (code, text) = host.refused("get_tree", json!({ "limit": 5.5 })).await;
    assert_eq!(code, "invalid");
    assert!(text.contains("`limit` must be a non-negative integer, not 5.5"), "{text}");
}

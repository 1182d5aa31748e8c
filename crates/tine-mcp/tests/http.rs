//! MCP over HTTP, with the checks of the server that owns the route.

use std::net::SocketAddr;
use std::path::Path;

use rmcp::ClientServiceExt;
use rmcp::model::{CallToolRequestParams, ClientConfig};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tine_engine::Engine;
use tine_server::{Options, Server, Stopper, Token, TokenFile, TokenRule, token_digest};
use tine_sqlite::SqliteStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{ERAS, ProtocolEra, lifecycle};

struct Served {
    address: SocketAddr,
    stopper: Stopper,
    folder: TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// The tokens of the server, with their project and whether they may write.
const TOKENS: [(&str, Option<&str>, bool); 3] =
    [("all-words", None, true), ("trips-word", Some("trips"), true), ("eyes-only", None, false)];

fn write_tokens(path: &Path, tokens: &[(&str, Option<&str>, bool)]) {
    let tokens = tokens.iter().map(|(word, project, write)| Token {
        name: word.replace('-', " "),
        digest: token_digest(word),
        project: project.map(str::to_owned),
        write: *write,
        created_at: String::new(),
    });
    TokenFile { tokens: tokens.collect() }.write(path).expect("tokens");
}

async fn serve(token_rule: TokenRule) -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("store")).expect("a store");
    let tokens = folder.path().join("tokens.json");
    write_tokens(&tokens, &TOKENS);
    let options = Options { tokens: Some(tokens), token_rule, ..Options::default() };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(Engine::new(store), any, options).await.expect("a port");
    let (address, stopper) = (server.address(), server.stopper());
    tokio::spawn(server.run());
    Served { address, stopper, folder }
}

type Connected = RunningService<RoleClient, ClientConfig>;

async fn connect(served: &Served, era: ProtocolEra, token: Option<&str>, query: &str) -> Connected {
    let url = format!("http://{}/mcp{query}", served.address);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    if let Some(token) = token {
        config = config.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::from_config(config);
    let connected = ClientConfig::default().serve_with_lifecycle(transport, lifecycle(era)).await;
    connected.expect("a client")
}

async fn call(client: &Connected, tool: &'static str, arguments: Value) -> (bool, Value) {
    let request = CallToolRequestParams::new(tool)
        .with_arguments(arguments.as_object().cloned().expect("an object"));
    let result = client.call_tool(request).await.expect("an answer");
    (result.is_error != Some(true), result.structured_content.expect("fields"))
}

fn hello(id: &str) -> Value {
    json!({ "conversation_id": id, "turn_id": "1", "role": "user", "content": "Hello" })
}

#[tokio::test]
async fn hosts_of_either_era_work_over_http_and_choose_their_tools() {
    let served = serve(TokenRule::Never).await;
    for era in ERAS {
        let client = connect(&served, era, None, "").await;
        assert_eq!(client.list_all_tools().await.expect("tools").len(), 12);
        let (good, done) = call(&client, "store_conversation_turn", hello("trip")).await;
        assert!(good, "{done}");
        let (good, path) = call(&client, "get_path", json!({ "conversation_id": "trip" })).await;
        assert!(good);
        assert_eq!(path["turns"][0]["text"], "Hello");
        client.cancel().await.expect("an end");
        let all = connect(&served, era, None, "?toolset=all").await;
        assert_eq!(all.list_all_tools().await.expect("tools").len(), 24);
        let (good, found) = call(&all, "list_relationships", json!({})).await;
        assert!(good, "{found}");
        // Over HTTP, no file can be read by path.
        let (good, refused) = call(&all, "store", json!({ "file_path": "/etc/hostname" })).await;
        assert!(!good);
        assert_eq!(refused["error"]["code"], "forbidden");
    }
}

#[tokio::test]
async fn tokens_have_the_same_scope_over_mcp() {
    let served = serve(TokenRule::Always).await;
    for era in ERAS {
        let reader = connect(&served, era, Some("eyes-only"), "").await;
        let (good, refused) = call(&reader, "store_conversation_turn", hello("c")).await;
        assert!(!good);
        assert_eq!(refused["error"]["code"], "forbidden");
        assert!(call(&reader, "get_tree", json!({})).await.0);

        let trips = connect(&served, era, Some("trips-word"), "").await;
        let (good, done) = call(&trips, "store_conversation_turn", hello("c")).await;
        assert!(good, "{done}");
        assert_eq!(done["project_id"], "trips", "the one within reach");
        for project in ["default", "other"] {
            let mut elsewhere = hello("c");
            elsewhere["project_id"] = project.into();
            let (good, refused) = call(&trips, "store_conversation_turn", elsewhere).await;
            assert!(!good);
            assert_eq!(refused["error"]["code"], "forbidden");
        }
        let uri = "tine://conversation/c?project_id=default";
        let read = rmcp::model::ReadResourceRequestParams::new(uri);
        assert!(trips.read_resource(read).await.is_err());

        let all = connect(&served, era, Some("all-words"), "").await;
        let (good, tree) =
            call(&all, "get_tree", json!({ "conversation_id": "c", "project_id": "trips" })).await;
        assert!(good, "{tree}");
    }
    let engine =
        Engine::new(SqliteStore::open(&served.folder.path().join("store")).expect("a store"));
    let by = tine_engine::Call::by("t").in_project(tine_core::ProjectId::from_stored("trips"));
    let id = tine_core::ConversationId::from_stored("c");
    let log = engine.operations(&by, &id, tine_engine::Page::default()).expect("a log");
    assert!(log.items.iter().all(|entry| entry.actor == "trips word"), "recorded under its name");
}

/// Sends a request written by hand and returns the response.
async fn raw(served: &Served, head: &str, body: impl AsRef<[u8]>) -> String {
    let body = body.as_ref();
    let mut stream = TcpStream::connect(served.address).await.expect("a connection");
    let head = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).await.expect("a request");
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains("\r\n\r\n") {
        let count = stream.read(&mut piece).await.expect("an answer");
        if count == 0 {
            break;
        }
        answer.extend(&piece[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

const JSON: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

fn initialize() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } } })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_ends_while_it_is_used_is_not_found() {
    let served = serve(TokenRule::Never).await;
    let host = format!("Host: {}\r\n{JSON}", served.address);
    for _ in 0..200 {
        let begun = raw(&served, &format!("POST /mcp HTTP/1.1\r\n{host}"), initialize()).await;
        let session = begun.lines().find(|line| line.starts_with("mcp-session-id")).expect("an id");
        let with_session = format!("{host}{session}\r\n");
        let open = format!("GET /mcp HTTP/1.1\r\n{with_session}");
        let end = format!("DELETE /mcp HTTP/1.1\r\n{with_session}");
        let (opened, ended) = tokio::join!(raw(&served, &open, ""), raw(&served, &end, ""));
        assert!(ended.starts_with("HTTP/1.1 204"), "{ended}");
        let allowed = ["HTTP/1.1 200", "HTTP/1.1 404"];
        assert!(allowed.iter().any(|status| opened.starts_with(status)), "{opened}");
    }
}

#[tokio::test]
async fn a_forged_origin_or_host_is_refused() {
    let served = serve(TokenRule::Never).await;
    let at = served.address;
    let head =
        |host: &str, more: &str| format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{JSON}{more}");
    let own = at.to_string();
    let good = raw(&served, &head(&own, ""), initialize()).await;
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
    let same = raw(&served, &head(&own, &format!("Origin: http://{at}\r\n")), initialize()).await;
    assert!(same.starts_with("HTTP/1.1 200"), "{same}");
    for origin in
        ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1.evil.example"]
    {
        let refused =
            raw(&served, &head(&own, &format!("Origin: {origin}\r\n")), initialize()).await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{origin}: {refused}");
    }
    for host in ["evil.example", "evil.example:8000", "localhost.evil.example"] {
        let refused = raw(&served, &head(host, ""), initialize()).await;
        assert!(refused.starts_with("HTTP/1.1 421"), "{host}: {refused}");
    }
    // Event streams are checked as well.
    let stream = format!(
        "GET /mcp HTTP/1.1\r\nHost: {own}\r\nAccept: text/event-stream\r\nOrigin: http://evil.example\r\n"
    );
    assert!(raw(&served, &stream, "").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn a_request_without_a_required_token_is_unauthorized() {
    let served = serve(TokenRule::Always).await;
    let own = served.address.to_string();
    let head = |more: &str| format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\n{JSON}{more}");
    let refused = raw(&served, &head(""), initialize()).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("www-authenticate: bearer"), "{refused}");
    let wrong = raw(&served, &head("Authorization: Bearer guess\r\n"), initialize()).await;
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
}

#[tokio::test]
async fn a_deleted_session_is_not_found() {
    let served = serve(TokenRule::Never).await;
    let own = served.address.to_string();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\n{JSON}");
    let begun = raw(&served, &head, initialize()).await;
    let id = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("an id");
    let end = format!("DELETE /mcp HTTP/1.1\r\nHost: {own}\r\nMcp-Session-Id: {id}\r\n");
    assert!(raw(&served, &end, "").await.starts_with("HTTP/1.1 204"));
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let over = raw(&served, &format!("{head}Mcp-Session-Id: {id}\r\n"), &ping).await;
    assert!(over.starts_with("HTTP/1.1 404"), "{over}");
}

#[tokio::test]
async fn a_body_that_cannot_be_parsed_is_a_bad_request_with_a_reason() {
    let served = serve(TokenRule::Never).await;
    let own = served.address.to_string();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\n{JSON}");
    let call = |content: &[u8]| {
        let before = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":""#;
        [before, content, br#""}}"#].concat()
    };
    for (body, id, code, why) in [
        (call(br"\ud800"), json!(7), -32700, "send whole characters"),
        (call(b"\xff"), json!(7), -32700, "encode it as UTF-8"),
        (b"[]".to_vec(), Value::Null, -32600, "not a request"),
    ] {
        let answer = raw(&served, &head, &body).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!((&body["id"], &body["error"]["code"]), (&id, &json!(code)), "{body}");
        assert!(body["error"]["message"].as_str().expect("a sentence").contains(why), "{body}");
    }
    let plain = head.replace("Type: application/json", "Type: text/plain");
    assert!(raw(&served, &plain, initialize()).await.starts_with("HTTP/1.1 415"));
}

#[tokio::test]
async fn malformed_http_requests_get_a_response() {
    let served = serve(TokenRule::Never).await;
    let own = served.address.to_string();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\n{JSON}");
    for body in ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "\u{0}"] {
        let answer = raw(&served, &head, body).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{body:?}: {answer}");
    }
    let plain = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\nContent-Type: text/plain\r\n");
    assert!(raw(&served, &plain, initialize()).await.starts_with("HTTP/1.1 4"));
    let put = format!("PUT /mcp HTTP/1.1\r\nHost: {own}\r\n{JSON}");
    assert!(raw(&served, &put, "{}").await.starts_with("HTTP/1.1 405"));
    let session = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\n{JSON}Mcp-Session-Id: nobody\r\n");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert!(raw(&served, &session, &ping).await.starts_with("HTTP/1.1 4"));
    // A body is not read if its declared size exceeds the limit.
    let mut stream = TcpStream::connect(served.address).await.expect("a connection");
    let huge = format!("{head}Content-Length: 999999999\r\n\r\n");
    stream.write_all(huge.as_bytes()).await.expect("a head");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 413");
    let client = connect(&served, ProtocolEra::Stateless, None, "").await;
    assert!(call(&client, "get_tree", json!({})).await.0, "and it goes on");
}

//! A server over an in-memory engine, with a client of either protocol era.

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion, Tool};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, ServiceError};
use serde_json::{Map, Value, json};
use tine_engine::Engine;
use tine_mcp::{McpOptions, McpServer, Toolset, serve_lines};
use tine_store::MemoryStore;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// The protocol era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolEra {
    Stateless,
    /// With an `initialize` handshake.
    Handshake,
}

pub const ERAS: [ProtocolEra; 2] = [ProtocolEra::Stateless, ProtocolEra::Handshake];

/// Returns how a client of this era connects.
pub fn lifecycle(era: ProtocolEra) -> ClientLifecycleMode {
    match era {
        ProtocolEra::Stateless => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        ProtocolEra::Handshake => ClientLifecycleMode::Initialize,
    }
}

/// A client and the engine of its server.
pub struct Host {
    pub client: RunningService<RoleClient, ClientConfig>,
    pub engine: Engine,
}

/// Returns a host of all tools over an empty store.
pub async fn host(era: ProtocolEra) -> Host {
    let options = McpOptions { toolset: Toolset::All, ..McpOptions::default() };
    host_of(Engine::new(MemoryStore::new()), options, era).await
}

pub async fn host_of(engine: Engine, options: McpOptions, era: ProtocolEra) -> Host {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let tine = McpServer::new(engine.clone(), options);
    let (read, write) = tokio::io::split(ours);
    tokio::spawn(async move { serve_lines(tine, read, write).await.expect("an end") });
    let client = ClientConfig::default()
        .serve_with_lifecycle(theirs, lifecycle(era))
        .await
        .expect("a client");
    Host { client, engine }
}

impl Host {
    pub async fn raw(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let mut request = CallToolRequestParams::new(tool.to_owned());
        if let Value::Object(arguments) = arguments {
            request = request.with_arguments(arguments);
        }
        self.client.call_tool(request).await
    }

    /// Calls a tool and returns the fields of its answer, which must not be an error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Map<String, Value> {
        let result = self.raw(tool, arguments).await.expect("an answer");
        assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
        let text = text(&result);
        assert!(!text.is_empty() && text.len() < 600, "{tool} says: {text}");
        match result.structured_content {
            Some(Value::Object(fields)) => fields,
            other => panic!("{tool} answers {other:?}"),
        }
    }

    /// Calls a tool that must fail, and returns the error's code and text.
    pub async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.raw(tool, arguments).await.expect("an answer");
        assert_eq!(result.is_error, Some(true), "{tool}: {result:?}");
        let text = text(&result);
        let fields = result.structured_content.expect("fields");
        let code = fields["error"]["code"].as_str().expect("a code").to_owned();
        (code, text)
    }

    pub async fn tools(&self) -> Vec<Tool> {
        self.client.list_all_tools().await.expect("tools")
    }
}

pub fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    texts.map(|text| text.text.as_str()).collect()
}

/// The message that starts a connection with a handshake.
pub fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } } })
}

/// The message that ends the handshake.
pub fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// A host that writes its lines by hand.
pub struct RawHost {
    answers: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub write: WriteHalf<DuplexStream>,
}

impl RawHost {
    pub async fn new() -> Self {
        RawHost::of(McpServer::new(Engine::new(MemoryStore::new()), McpOptions::default())).await
    }

    pub async fn of(tine: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        tokio::spawn(async move { serve_lines(tine, input, output).await });
        let (read, write) = tokio::io::split(theirs);
        let mut host = RawHost { answers: BufReader::new(read).lines(), write };
        host.send(initialize().to_string()).await;
        assert_eq!(host.answer().await["id"], "hello");
        host.send(initialized().to_string()).await;
        host
    }

    pub async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.write.write_all(line.as_ref()).await.expect("a line");
        self.write.write_all(b"\n").await.expect("a line");
    }

    /// Returns the server's next line.
    pub async fn line(&mut self) -> String {
        let line = tokio::time::timeout(Duration::from_secs(60), self.answers.next_line()).await;
        line.expect("an answer").expect("a line").expect("the service goes on")
    }

    pub async fn answer(&mut self) -> Value {
        serde_json::from_str(&self.line().await).expect("JSON")
    }
}

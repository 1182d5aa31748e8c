//! A server over an engine in memory, and a client of either era beside it.

use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion, Tool};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, ServiceError};
use serde_json::{Map, Value};
use tine_engine::Engine;
use tine_mcp::{Options, Tine, Toolset, serve_lines};
use tine_store::MemoryStore;

/// Which protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Without sessions.
    Stateless,
    /// Beginning with `initialize`.
    Handshake,
}

/// Both.
pub const ERAS: [Era; 2] = [Era::Stateless, Era::Handshake];

/// How a client begins.
pub fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Stateless => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        Era::Handshake => ClientLifecycleMode::Initialize,
    }
}

/// A client and the engine behind its server.
pub struct Host {
    pub client: RunningService<RoleClient, ClientConfig>,
    pub engine: Engine,
}

/// All tools over an empty store.
pub async fn host(era: Era) -> Host {
    let options = Options { toolset: Toolset::All, ..Options::default() };
    host_of(Engine::new(MemoryStore::new()), options, era).await
}

pub async fn host_of(engine: Engine, options: Options, era: Era) -> Host {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let tine = Tine::new(engine.clone(), options);
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

    /// The fields of a good answer.
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

    /// The code and the whole text of a refusal.
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

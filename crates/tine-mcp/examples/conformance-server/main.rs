//! A server for the protocol's conformance suite: `tine serve` with the fixtures of the suite.
//!
//! [`ConformanceServer`] wraps the production handler. It answers the tools, resources and prompts
//! that the suite prescribes (`fixtures`) and passes everything else on, so that the suite talks to
//! the production server through its own HTTP checks, and none of the fixtures is in the product.
//!
//! Usage: `TINE_STORE=FOLDER conformance-server serve --listen ADDRESS`; other options are ignored,
//! so that scripts can start it like `tine`.

// The suite still covers logging and the older way to subscribe.
#![allow(deprecated)]

mod fixtures;

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tine_engine::Engine;
use tine_mcp::{McpHttp, McpOptions, McpServer};
use tine_server::Server;
use tine_sqlite::SqliteStore;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The production handler with the fixtures of the suite in front of it, for one connection.
#[derive(Clone)]
struct ConformanceServer {
    tine: McpServer,
    /// The streams of all hosts that listen for changes.
    listeners: Arc<Mutex<Vec<SubscriptionSink>>>,
}

impl ConformanceServer {
    fn for_another(&self) -> Self {
        ConformanceServer { tine: self.tine.for_another(), ..self.clone() }
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<SubscriptionSink>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.tine.get_info();
        fixtures::add_capabilities(&mut info.capabilities);
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.tine.list_tools(request, context).await?;
        fixtures::add_tools(&mut listed.tools);
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        fixtures::tool(name).or_else(|| self.tine.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if fixtures::is_tool(&request.name) {
            let listeners = self.listeners().clone();
            return fixtures::call(request, context, listeners).await;
        }
        self.tine.call_tool(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.tine.list_resources(request, context).await?;
        fixtures::add_resources(&mut listed.resources);
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.tine.list_resource_templates(request, context).await?;
        listed.resource_templates.push(fixtures::template());
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match fixtures::read(&request.uri) {
            Some(found) => Ok(found.into()),
            None => self.tine.read_resource(request, context).await,
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = self.tine.accepted_subscription_filter(requested)?;
        let uris = requested.resource_subscriptions.iter().flatten();
        let uris = uris.filter(|uri| fixtures::is_resource(uri)).cloned();
        if let Some(accepted) = &mut accepted.resource_subscriptions {
            accepted.extend(uris);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listeners().push(context.sink().clone());
        self.tine.listen(context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Resources of the suite never change.
        if fixtures::is_resource(&request.uri) {
            return Ok(());
        }
        self.tine.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tine.unsubscribe(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.tine.list_prompts(request, context).await?;
        fixtures::add_prompts(&mut listed.prompts);
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match fixtures::prompt(&request) {
            Some(rendered) => rendered,
            None => self.tine.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.tine.complete(request, context).await
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // As in `tine`, the SDK logs nothing: it reports every connection that a client closes.
    let levels =
        Targets::new().with_default(LevelFilter::ERROR).with_target("rmcp", LevelFilter::OFF);
    let output = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(output).with(levels).init();
    let mut arguments = std::env::args().skip_while(|argument| argument != "--listen").skip(1);
    let listen: SocketAddr = arguments.next().ok_or("pass --listen ADDRESS")?.parse()?;
    let store = std::env::var("TINE_STORE").map_err(|_| "set TINE_STORE to a folder")?;
    let engine = Engine::new(SqliteStore::open(Path::new(&store))?);
    let tine = McpServer::new(engine.clone(), McpOptions::default());
    let handler = ConformanceServer { tine, listeners: Arc::default() };
    let mcp = McpHttp::with_handler(move || handler.for_another(), engine.limits());
    let options = tine_server::Options::default();
    let server = Server::bind_with_mcp(engine, listen, options, mcp).await?;
    eprintln!("tine with the fixtures of the conformance suite: http://{}", server.address());
    server.run().await?;
    Ok(())
}

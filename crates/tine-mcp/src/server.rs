//! The server: passes each request to the module that handles it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, GetPromptRequestParams, GetPromptResponse, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tine_core::json::{self, Json, Object};
use tine_core::{ErrorKind, Limits, ProjectId};
use tine_engine::{Engine, Error};
use tokio::sync::{Notify, mpsc};

use crate::access_scope::AccessScope;
use crate::allowed_folders::AllowedFolders;
use crate::incoming_message::ExactArguments;
use crate::mcp_error::McpError;
use crate::subscriptions::Subscriptions;
use crate::tools::{self, Effect, ToolContext, Toolset};
use crate::{INSTRUCTIONS, completions, exact_integers, prompts, resources};

/// How long a host may cache lists that hardly ever change.
pub(crate) const LIST_TTL_MS: u64 = 3_600_000;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct McpOptions {
    /// The actor of changes.
    pub actor: String,
    /// The project of calls that name none.
    pub project: ProjectId,
    /// The tools that are offered.
    pub toolset: Toolset,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Folders whose files may be stored by path.
    pub files: AllowedFolders,
    /// Whether secrets are redacted from what is stored.
    pub redact: bool,
    /// Whether the text of an answer has all its fields, for hosts that show a model only the text.
    pub whole_text: bool,
    /// Whether this server runs queued interpretations in the background.
    pub interprets: bool,
}

impl Default for McpOptions {
    fn default() -> Self {
        McpOptions {
            actor: "mcp".to_owned(),
            project: ProjectId::default(),
            toolset: Toolset::Core,
            read_only: false,
            files: AllowedFolders::default(),
            redact: false,
            whole_text: false,
            interprets: false,
        }
    }
}

/// The server of one engine, for one connection. [`McpServer::for_another`] creates one for the
/// next.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) engine: Engine,
    pub(crate) options: Arc<McpOptions>,
    pub(crate) subscriptions: Subscriptions,
    interpretation: Arc<InterpretationWorker>,
}

/// The background task that runs queued interpretations.
#[derive(Default)]
struct InterpretationWorker {
    is_running: AtomicBool,
    requested: Notify,
}

impl McpServer {
    /// Creates a server over an engine.
    pub fn new(engine: Engine, options: McpOptions) -> Self {
        let subscriptions = Subscriptions::new(engine.clone());
        McpServer {
            engine,
            options: Arc::new(options),
            subscriptions,
            interpretation: Arc::default(),
        }
    }

    /// Returns the same server for another connection, with its own subscriptions.
    pub fn for_another(&self) -> Self {
        McpServer { subscriptions: self.subscriptions.for_another(), ..self.clone() }
    }

    /// Starts queued interpretations in the background if this server runs them. Needs a runtime.
    pub(crate) fn interpret_in_background(&self) {
        if !self.options.interprets {
            return;
        }
        self.interpretation.requested.notify_one();
        if self.interpretation.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        let (engine, worker) = (self.engine.clone(), Arc::clone(&self.interpretation));
        tokio::spawn(async move {
            loop {
                worker.requested.notified().await;
                let engine = engine.clone();
                match tokio::task::spawn_blocking(move || engine.run_pending()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "interpreting failed"),
                    Err(error) => tracing::error!(%error, "interpreting panicked"),
                }
            }
        });
    }

    async fn run_tool(
        &self,
        request: CallToolRequestParams,
        context: &mut RequestContext<RoleServer>,
    ) -> Result<CallToolResult, McpError> {
        let options = request_options(&self.options, context);
        let known = tools::find(&request.name, &options)?;
        let scope = scope(context);
        let limits = self.engine.limits();
        // A transport that passes exact arguments also writes exact answers.
        let (arguments, transport_is_exact) = match ExactArguments::take(context) {
            Some(arguments) => (arguments, true),
            None => (sdk_arguments(request.arguments, limits)?, false),
        };
        let common = tools::common(known, arguments, &scope, &options, limits)?;
        let project = common.call.project.clone();
        let (report, mut reported) = mpsc::unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        // Cancels the tool even if the host disconnects without cancelling.
        let _stop = CancelOnDrop(Arc::clone(&stop));
        let tool_context = ToolContext {
            engine: self.engine.clone(),
            call: common.call,
            options,
            budget: common.budget,
            stop,
            progress: Box::new(move |done, total, message| {
                // The call may have ended.
                let _ = report.send((done, total, message));
            }),
        };
        let (run, arguments) = (known.spec.run, common.arguments);
        let mut work = tokio::task::spawn_blocking(move || run(&tool_context, arguments));
        let token = context.meta.get_progress_token();
        let done = loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => {
                    return Err(McpError::new(ErrorKind::Conflict, "the call was cancelled"));
                }
                Some((done, total, message)) = reported.recv() => {
                    if let Some(token) = &token {
                        let mut step = ProgressNotificationParam::new(token.clone(), done)
                            .with_message(message);
                        step.total = total;
                        // A lost progress notification does no harm.
                        let _ = context.peer.notify_progress(step).await;
                    }
                }
                done = &mut work => break done,
            }
        };
        if known.spec.effect != Effect::ReadOnly {
            self.interpret_in_background();
        }
        let answer = done.map_err(|error| {
            tracing::error!(%error, tool = known.spec.name, "a tool panicked");
            McpError::new(ErrorKind::Internal, "internal error; the server's log has the details")
        })??;
        let mut result = answer
            .into_result(&project, self.options.whole_text || lacks_structured_content(context));
        if let (false, Some(fields)) = (transport_is_exact, &mut result.structured_content) {
            exact_integers::to_digit_strings(fields);
        }
        Ok(result)
    }

    /// Runs work that may block on the store.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine, &McpOptions) -> Result<T, McpError> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let (engine, options) = (self.engine.clone(), Arc::clone(&self.options));
        let done = tokio::task::spawn_blocking(move || work(&engine, &options)).await;
        match done {
            Ok(done) => done.map_err(ErrorData::from),
            Err(_) => Err(ErrorData::internal_error("internal error", None)),
        }
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Converts arguments that the SDK's own transports parsed, which round long integers.
fn sdk_arguments(arguments: Option<JsonObject>, limits: &Limits) -> Result<Object, McpError> {
    let Some(arguments) = arguments else { return Ok(Object::new()) };
    let text = serde_json::Value::Object(arguments).to_string();
    match json::parse(text.as_bytes(), limits.json_depth).map_err(Error::from)? {
        Json::Object(arguments) => Ok(arguments),
        other => Err(McpError::invalid(format!("`arguments` must be an object, not {other}"))),
    }
}

/// Returns what the caller may access: as the HTTP server says, or everything over stdio.
pub(crate) fn scope(context: &RequestContext<RoleServer>) -> AccessScope {
    let parts = context.extensions.get::<http::request::Parts>();
    parts.and_then(|parts| parts.extensions.get::<AccessScope>()).cloned().unwrap_or_default()
}

/// Returns the options of a request: a host may choose its toolset in the URL.
fn request_options(
    options: &Arc<McpOptions>,
    context: &RequestContext<RoleServer>,
) -> Arc<McpOptions> {
    let parts = context.extensions.get::<http::request::Parts>();
    let query = parts.and_then(|parts| parts.uri.query()).unwrap_or_default();
    let named = query.split('&').find_map(|pair| pair.strip_prefix("toolset="));
    match Toolset::ALL.into_iter().find(|set| Some(set.as_str()) == named) {
        Some(toolset) => Arc::new(McpOptions { toolset, ..McpOptions::clone(options) }),
        None => Arc::clone(options),
    }
}

/// Returns whether the host predates structured content.
fn lacks_structured_content(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() < "2025-06-18")
}

impl From<McpError> for ErrorData {
    fn from(error: McpError) -> Self {
        let kind = error.kind();
        let message = error.into_message();
        match kind {
            ErrorKind::NotFound => ErrorData::resource_not_found(message, None),
            ErrorKind::Internal | ErrorKind::Corrupt => ErrorData::internal_error(message, None),
            kind => {
                let data = serde_json::json!({ "code": kind.code() });
                ErrorData::invalid_params(message, Some(data))
            }
        }
    }
}

/// Adds the URI of the resource to an error.
fn error_about(mut error: ErrorData, uri: &str) -> ErrorData {
    let data = error.data.get_or_insert_with(|| serde_json::json!({}));
    if let Some(members) = data.as_object_mut() {
        members.insert("uri".to_owned(), uri.into());
    }
    error
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("tine", env!("CARGO_PKG_VERSION")).with_title("Tine"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let options = request_options(&self.options, &context);
        let tools = tools::of(options.toolset, options.read_only);
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(tools::find(name, &self.options).ok()?.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Err(error) = tools::find(&request.name, &request_options(&self.options, &context)) {
            return Err(ErrorData::invalid_params(error.into_message(), None));
        }
        let name = request.name.to_string();
        let result = match self.run_tool(request, &mut context).await {
            Ok(result) => result,
            Err(error) => error.into_result(&name),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (scope, cursor) = (scope(&context), request.and_then(|page| page.cursor));
        self.blocking(move |engine, options| resources::list(engine, options, &scope, cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (scope, uri) = (scope(&context), request.uri);
        let wanted = uri.clone();
        let read = self
            .blocking(move |engine, options| resources::read(engine, options, &scope, &wanted))
            .await;
        read.map(Into::into).map_err(|error| error_about(error, &uri))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.subscriptions.note_accepted();
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| resources::can_be_subscribed(uri));
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let scope = scope(context.request_context());
        self.subscriptions.listen(context, scope, &self.options).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let scope = scope(&context);
        self.subscriptions.subscribe(request.uri, scope, context.peer, &self.options).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.unsubscribe(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let scope = scope(&context);
        let made = self
            .blocking(move |engine, options| prompts::get(engine, options, &scope, &request))
            .await?;
        Ok(made.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let scope = scope(&context);
        self.blocking(move |engine, options| {
            completions::complete(engine, options, &scope, &request)
        })
        .await
    }
}

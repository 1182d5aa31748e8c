//! The server: passes each request of the protocol to the module that answers it.

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

use crate::access::Reach;
use crate::files::Allowed;
use crate::follow::Followers;
use crate::incoming::ExactArguments;
use crate::refusal::Refusal;
use crate::tools::{self, Effect, ToolContext, Toolset};
use crate::{INSTRUCTIONS, complete, prompts, resources};

/// How long a host may keep what hardly ever changes.
pub(crate) const LISTS_FRESH_MS: u64 = 3_600_000;

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is recorded as the author of changes.
    pub actor: String,
    /// The project of calls that name none.
    pub project: ProjectId,
    /// Which tools are offered.
    pub toolset: Toolset,
    /// Whether nothing can be changed.
    pub read_only: bool,
    /// Folders whose files may be stored by path.
    pub files: Allowed,
    /// Whether secrets are taken out of what is stored.
    pub redact: bool,
    /// Whether the text of an answer is all of it, for hosts that show a model nothing else.
    pub whole_text: bool,
    /// Whether queued interpretations are done here, in the background.
    pub interprets: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            actor: "mcp".to_owned(),
            project: ProjectId::default(),
            toolset: Toolset::Core,
            read_only: false,
            files: Allowed::default(),
            redact: false,
            whole_text: false,
            interprets: false,
        }
    }
}

/// The server of one engine, for one connection. [`Tine::for_another`] makes one for the next.
#[derive(Clone)]
pub struct Tine {
    pub(crate) engine: Engine,
    pub(crate) options: Arc<Options>,
    pub(crate) followers: Followers,
    work: Arc<Work>,
}

/// The background task that runs queued interpretations.
#[derive(Default)]
struct Work {
    begun: AtomicBool,
    wanted: Notify,
}

impl Tine {
    /// Creates a server over an engine.
    pub fn new(engine: Engine, options: Options) -> Self {
        let followers = Followers::new(engine.clone());
        Tine { engine, options: Arc::new(options), followers, work: Arc::default() }
    }

    /// Returns the same server for another connection, with subscriptions of its own.
    pub fn for_another(&self) -> Self {
        Tine { followers: self.followers.for_another(), ..self.clone() }
    }

    /// Starts queued interpretations in the background if this server runs them. Needs a runtime.
    pub(crate) fn interpret_in_background(&self) {
        if !self.options.interprets {
            return;
        }
        self.work.wanted.notify_one();
        if self.work.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let (engine, work) = (self.engine.clone(), Arc::clone(&self.work));
        tokio::spawn(async move {
            loop {
                work.wanted.notified().await;
                let engine = engine.clone();
                match tokio::task::spawn_blocking(move || engine.run_pending()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "interpreting failed"),
                    Err(error) => tracing::error!(%error, "interpreting met a defect"),
                }
            }
        });
    }

    async fn run_tool(
        &self,
        request: CallToolRequestParams,
        context: &mut RequestContext<RoleServer>,
    ) -> Result<CallToolResult, Refusal> {
        let options = chosen(&self.options, context);
        let known = tools::find(&request.name, &options)?;
        let reach = reach(context);
        let limits = self.engine.limits();
        let arguments = match ExactArguments::take(context) {
            Some(arguments) => arguments,
            None => sdk_arguments(request.arguments, limits)?,
        };
        let common = tools::common(known, arguments, &reach, &options, limits)?;
        let project = common.call.project.clone();
        let (report, mut reported) = mpsc::unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        // Stops the tool also if the host disconnects without cancelling.
        let _stop = StopOnDrop(Arc::clone(&stop));
        let tool_context = ToolContext {
            engine: self.engine.clone(),
            call: common.call,
            options,
            room: common.room,
            stop,
            progress: Box::new(move |done, total, message| {
                // The call may have ended already.
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
                    return Err(Refusal::new(ErrorKind::Conflict, "the call was cancelled"));
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
        if known.spec.effect != Effect::Reads {
            self.interpret_in_background();
        }
        let answer = done.map_err(|error| {
            tracing::error!(%error, tool = known.spec.name, "a tool met a defect");
            Refusal::new(ErrorKind::Internal, "the call met a defect; it is in the server's log")
        })??;
        Ok(answer.into_result(&project, self.options.whole_text || is_old(context)))
    }

    /// Runs work that may block on the store.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine, &Options) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let (engine, options) = (self.engine.clone(), Arc::clone(&self.options));
        let done = tokio::task::spawn_blocking(move || work(&engine, &options)).await;
        match done {
            Ok(done) => done.map_err(ErrorData::from),
            Err(_) => Err(ErrorData::internal_error("the request met a defect", None)),
        }
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads arguments that came over a transport of the SDK alone, which has rounded long integers.
fn sdk_arguments(arguments: Option<JsonObject>, limits: &Limits) -> Result<Object, Refusal> {
    let Some(arguments) = arguments else { return Ok(Object::new()) };
    let text = serde_json::Value::Object(arguments).to_string();
    match json::parse(text.as_bytes(), limits.json_depth).map_err(Error::from)? {
        Json::Object(arguments) => Ok(arguments),
        other => Err(Refusal::invalid(format!("`arguments` must be an object, not {other}"))),
    }
}

/// Returns what the caller may do: as the HTTP server says, or everything over stdio.
pub(crate) fn reach(context: &RequestContext<RoleServer>) -> Reach {
    let parts = context.extensions.get::<http::request::Parts>();
    parts.and_then(|parts| parts.extensions.get::<Reach>()).cloned().unwrap_or_default()
}

/// Returns the options of this request: a host may choose its toolset in the URL.
fn chosen(options: &Arc<Options>, context: &RequestContext<RoleServer>) -> Arc<Options> {
    let parts = context.extensions.get::<http::request::Parts>();
    let query = parts.and_then(|parts| parts.uri.query()).unwrap_or_default();
    let named = query.split('&').find_map(|pair| pair.strip_prefix("toolset="));
    match Toolset::ALL.into_iter().find(|set| Some(set.as_str()) == named) {
        Some(toolset) => Arc::new(Options { toolset, ..Options::clone(options) }),
        None => Arc::clone(options),
    }
}

/// Returns whether the host predates structured content.
fn is_old(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() < "2025-06-18")
}

impl From<Refusal> for ErrorData {
    fn from(refusal: Refusal) -> Self {
        let kind = refusal.kind();
        let message = refusal.into_message();
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

impl ServerHandler for Tine {
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
        let options = chosen(&self.options, &context);
        let tools = tools::of(options.toolset, options.read_only);
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LISTS_FRESH_MS)
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
        if let Err(refusal) = tools::find(&request.name, &chosen(&self.options, &context)) {
            return Err(ErrorData::invalid_params(refusal.into_message(), None));
        }
        let name = request.name.to_string();
        let result = match self.run_tool(request, &mut context).await {
            Ok(result) => result,
            Err(refusal) => refusal.into_result(&name),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (reach, cursor) = (reach(&context), request.and_then(|page| page.cursor));
        self.blocking(move |engine, options| resources::list(engine, options, &reach, cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(LISTS_FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (reach, uri) = (reach(&context), request.uri);
        let wanted = uri.clone();
        let read = self
            .blocking(move |engine, options| resources::read(engine, options, &reach, &wanted))
            .await;
        read.map(Into::into).map_err(|error| error_about(error, &uri))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.followers.promise();
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| resources::can_be_followed(uri));
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let reach = reach(context.request_context());
        self.followers.listen(context, reach, &self.options).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let reach = reach(&context);
        self.followers.subscribe(request.uri, reach, context.peer, &self.options).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.followers.unsubscribe(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list())
            .with_ttl_ms(LISTS_FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let reach = reach(&context);
        let made = self
            .blocking(move |engine, options| prompts::get(engine, options, &reach, &request))
            .await?;
        Ok(made.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let reach = reach(&context);
        self.blocking(move |engine, options| complete::complete(engine, options, &reach, &request))
            .await
    }
}

//! The agent: the methods of the protocol, over the engine, the open sessions and the model.

use std::sync::{Arc, Mutex};

use tine_core::{BranchId, Json, Reference};
use tine_engine::{BranchView, Call, Engine, Error, Fork, ForkPoint, NewConversation};
use tine_llm::reply::Responder;

use crate::json_macro::json;
use crate::json_rpc::{self, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError, RpcResult};
use crate::line_io::LineWriter;
use crate::lock;
use crate::open_sessions::{ClaimError, OpenSessions, PromptClaim};
use crate::prompt::PromptRun;
use crate::{fork_point, session_branches, session_list};

/// The protocol version that this agent speaks.
const PROTOCOL: u64 = 1;

pub(crate) type MethodResult = RpcResult<Json>;

/// An agent over an engine. Serves one client.
pub struct Agent {
    pub(crate) engine: Engine,
    pub(crate) call: Call,
    pub(crate) model: Responder,
    pub(crate) redact: bool,
    sessions: Arc<OpenSessions>,
    /// The client's `clientInfo`; `None` before `initialize`.
    client: Mutex<Option<Json>>,
    /// Held while the metadata of a conversation is read and written.
    noting: Mutex<()>,
}

/// A request that [`Agent::begin`] accepted.
pub(crate) enum Task {
    Answered(Json),
    Method(Method, Json),
    /// A prompt, which has claimed its session.
    Prompt(PromptClaim, Json),
}

/// A method that reads or changes the store and asks no model.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    New,
    Load,
    Resume,
    List,
    Fork,
    Close,
    Delete,
}

impl Agent {
    /// Creates an agent that makes its changes as the call's actor, in the call's project.
    pub fn new(engine: Engine, call: Call, model: Responder) -> Self {
        let (sessions, client, noting) = Default::default();
        Agent { engine, call, model, redact: false, sessions, client, noting }
    }

    /// Sets whether secrets are redacted from what is recorded.
    pub fn redacting(self, redact: bool) -> Self {
        Agent { redact, ..self }
    }

    /// Begins a request. Called in the order in which requests arrive.
    pub(crate) fn begin(&self, method: &str, params: Json) -> RpcResult<Task> {
        if method == "initialize" {
            return self.initialize(&params).map(Task::Answered);
        }
        if self.client().is_none() {
            return Err(RpcError::new(INVALID_REQUEST, "`initialize` must come first"));
        }
        let method = match method {
            "session/prompt" => return Ok(Task::Prompt(self.claim(&params)?, params)),
            "session/new" => Method::New,
            "session/load" => Method::Load,
            "session/resume" => Method::Resume,
            "session/list" => Method::List,
            "session/fork" => Method::Fork,
            "session/close" => Method::Close,
            "session/delete" => Method::Delete,
            _ => {
                return Err(RpcError::new(
                    METHOD_NOT_FOUND,
                    format!("there is no method `{method}`"),
                ));
            }
        };
        Ok(Task::Method(method, params))
    }

    /// Handles a notification.
    pub(crate) fn notice(&self, method: &str, params: &Json) {
        match (method, json_rpc::required_text(params, "sessionId").map(str::parse)) {
            ("session/cancel", Ok(Ok(id))) => self.sessions.stop(id),
            _ => tracing::debug!(method, "ignored a notification"),
        }
    }

    /// Runs a task to completion.
    pub(crate) fn work(&self, task: Task, out: &LineWriter) -> MethodResult {
        match task {
            Task::Answered(answer) => Ok(answer),
            Task::Prompt(claim, params) => PromptRun::new(self, out, claim)?.run(&params),
            Task::Method(method, params) => match method {
                Method::New => self.new_session(&params),
                Method::Load => self.load(&params, out),
                Method::Resume => self.resume(&params),
                Method::List => self.list(&params),
                Method::Fork => self.fork(&params),
                Method::Close => self.close(&params),
                Method::Delete => self.delete(&params),
            },
        }
    }

    /// Cancels all running prompts.
    pub(crate) fn stop_all(&self) {
        self.sessions.stop_all();
    }

    /// Returns the client's `clientInfo`, which is recorded with its messages.
    pub(crate) fn client(&self) -> Option<Json> {
        lock(&self.client).clone()
    }

    fn initialize(&self, params: &Json) -> MethodResult {
        if params.get("protocolVersion").and_then(Json::as_u64).is_none() {
            return Err(RpcError::invalid("`protocolVersion` must be a number"));
        }
        let client = match params.get("clientInfo") {
            Some(info @ Json::Object(_)) => info.clone(),
            _ => Json::Null,
        };
        *lock(&self.client) = Some(client);
        // The proposal's place for the marker, and `_meta`, which survives clients that drop
        // members unknown to their schema.
        let fork = json!({ "atMessageId": true, "_meta": { "atMessageId": true } });
        Ok(json!({
            "protocolVersion": PROTOCOL,
            "agentInfo": {
                "name": "tine",
                "title": "Tine",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": {
                    "list": {}, "resume": {}, "close": {}, "delete": {}, "fork": fork,
                },
            },
            "authMethods": [],
        }))
    }

    fn new_session(&self, params: &Json) -> MethodResult {
        let cwd = json_rpc::cwd(params)?;
        let metadata =
            session_list::new_session_metadata(cwd, self.client().unwrap_or(Json::Null), None);
        let new = NewConversation { metadata, ..NewConversation::default() };
        let conversation = self.engine.create_conversation(&self.call, new)?;
        let main = self.engine.branch(&self.call, &conversation.id, "main")?;
        self.sessions.open(main.id, cwd);
        Ok(with_mcp_note(json!({ "sessionId": main.id.to_string() }), params))
    }

    fn load(&self, params: &Json, out: &LineWriter) -> MethodResult {
        let (session, cwd) = (self.session(params)?, json_rpc::cwd(params)?);
        session_branches::replay(&self.engine, &self.call, &session.id.to_string(), &session, out)?;
        self.sessions.open(session.id, cwd);
        Ok(with_mcp_note(json!({}), params))
    }

    fn resume(&self, params: &Json) -> MethodResult {
        let (session, cwd) = (self.session(params)?, json_rpc::cwd(params)?);
        self.sessions.open(session.id, cwd);
        Ok(with_mcp_note(json!({}), params))
    }

    fn list(&self, params: &Json) -> MethodResult {
        let cwd = json_rpc::optional_cwd(params)?;
        let cursor = json_rpc::optional_text(params, "cursor")?;
        let (sessions, next) = session_list::page(&self.engine, &self.call, cwd, cursor, None)?;
        Ok(session_list::list_result(sessions, next))
    }

    fn fork(&self, params: &Json) -> MethodResult {
        let (session, cwd) = (self.session(params)?, json_rpc::cwd(params)?);
        let at = match fork_point::message_id(params)? {
            Some(message) => {
                session_branches::message_turn(&self.engine, &self.call, &session, message)?.into()
            }
            None => Reference::parse(&session.id.to_string()).map_err(Error::from)?,
        };
        let conversation = Some(session.conversation);
        let request = Fork { conversation, point: ForkPoint::At(at), name: None };
        let fork = self.engine.fork(&self.call, request)?;
        {
            let _noting = lock(&self.noting);
            session_list::record_fork(&self.engine, &self.call, &fork, cwd, None)?;
        }
        self.sessions.open(fork.id, cwd);
        Ok(with_mcp_note(json!({ "sessionId": fork.id.to_string() }), params))
    }

    fn close(&self, params: &Json) -> MethodResult {
        let text = json_rpc::required_text(params, "sessionId")?;
        let was_open = text.parse().is_ok_and(|id| self.sessions.close(id));
        if !was_open {
            self.session(params)?;
        }
        Ok(json!({}))
    }

    /// Deletes the session's branch; its turns stay. Does nothing if there is no such branch.
    fn delete(&self, params: &Json) -> MethodResult {
        let Ok(id) = json_rpc::required_text(params, "sessionId")?.parse::<BranchId>() else {
            return Ok(json!({}));
        };
        self.sessions.close(id);
        session_branches::delete(&self.engine, &self.call, id)?;
        Ok(json!({}))
    }

    fn session(&self, params: &Json) -> RpcResult<BranchView> {
        session_branches::find(
            &self.engine,
            &self.call,
            json_rpc::required_text(params, "sessionId")?,
        )
    }

    fn claim(&self, params: &Json) -> RpcResult<PromptClaim> {
        let text = json_rpc::required_text(params, "sessionId")?;
        let unknown = || RpcError::no_session(text, " open here; load or resume it first");
        let id = text.parse().map_err(|_| unknown())?;
        self.sessions.claim(id).map_err(|why| match why {
            ClaimError::Closed => unknown(),
            ClaimError::Running => {
                let why =
                    "a prompt is already running in this session; wait for it to end, or cancel it";
                RpcError::new(INVALID_REQUEST, why).with_data(json!({ "sessionId": text }))
            }
        })
    }
}

/// Adds a note to a response if the client offered MCP servers, which are not used.
fn with_mcp_note(mut answer: Json, params: &Json) -> Json {
    let offered = params.get("mcpServers").and_then(Json::as_array).map_or(0, <[Json]>::len);
    if offered > 0 {
        let why = "this agent uses no MCP servers; the servers offered were ignored";
        tracing::warn!(offered, "{why}");
        json_rpc::add_note(&mut answer, json!({ "mcpServers": why }));
    }
    answer
}

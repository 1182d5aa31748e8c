//! The agent: the methods of the protocol, each a few lines over engine, sessions and model.

use std::sync::{Arc, Mutex, PoisonError};

use tine_core::{BranchId, Json, Reference};
use tine_engine::{BranchView, Call, Engine, Error, Fork, ForkPoint, NewConversation};
use tine_llm::reply::Responder;

use crate::json::json;
use crate::lines::Out;
use crate::prompt::Prompt;
use crate::sessions::{Claim, Sessions, Unclaimed};
use crate::wire::{self, NO_METHOD, NO_REQUEST, Refusal};
use crate::{anchor, branches, listing};

/// The version of the protocol that is spoken.
const PROTOCOL: u64 = 1;

/// What a method answers.
pub(crate) type Answer = Result<Json, Refusal>;

/// An agent over an engine. Serves one client.
pub struct Agent {
    pub(crate) engine: Engine,
    pub(crate) call: Call,
    pub(crate) model: Responder,
    pub(crate) redact: bool,
    sessions: Arc<Sessions>,
    /// Who is served; nobody before the beginning.
    client: Mutex<Option<Json>>,
    /// Held while the metadata of a conversation is read and written.
    noting: Mutex<()>,
}

/// A request that was begun and is to be worked on.
pub(crate) enum Task {
    /// It is answered already.
    Done(Json),
    /// One that holds nobody up.
    Call(Method, Json),
    /// A prompt, which has claimed its session.
    Prompt(Claim, Json),
}

/// A method that is one look into the store, or one change of it.
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
    /// An agent whose changes are made by that call's actor, in its project.
    pub fn new(engine: Engine, call: Call, model: Responder) -> Self {
        let (sessions, client, noting) = Default::default();
        Agent { engine, call, model, redact: false, sessions, client, noting }
    }

    /// The same, which takes secrets out of what it records.
    pub fn redacting(self, redact: bool) -> Self {
        Agent { redact, ..self }
    }

    /// Begins a request, in the order in which requests come.
    pub(crate) fn begin(&self, method: &str, params: Json) -> Result<Task, Refusal> {
        if method == "initialize" {
            return self.initialize(&params).map(Task::Done);
        }
        if self.client().is_none() {
            return Err(Refusal::new(NO_REQUEST, "nothing goes before `initialize`"));
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
            _ => return Err(Refusal::new(NO_METHOD, format!("there is no method `{method}`"))),
        };
        Ok(Task::Call(method, params))
    }

    /// Hears what needs no answer.
    pub(crate) fn notice(&self, method: &str, params: &Json) {
        match (method, wire::text(params, "sessionId").map(str::parse)) {
            ("session/cancel", Ok(Ok(id))) => self.sessions.stop(id),
            _ => tracing::debug!(method, "a notification was passed over"),
        }
    }

    /// Works on a request to its end.
    pub(crate) fn work(&self, task: Task, out: &Out) -> Answer {
        match task {
            Task::Done(answer) => Ok(answer),
            Task::Prompt(claim, params) => Prompt::new(self, out, claim)?.run(&params),
            Task::Call(method, params) => match method {
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

    /// Stops everything that runs.
    pub(crate) fn stop_all(&self) {
        self.sessions.stop_all();
    }

    /// Who is served, as it is noted with what is said.
    pub(crate) fn client(&self) -> Option<Json> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn initialize(&self, params: &Json) -> Answer {
        if params.get("protocolVersion").and_then(Json::as_u64).is_none() {
            return Err(Refusal::invalid("`protocolVersion` must be a number"));
        }
        let client = match params.get("clientInfo") {
            Some(info @ Json::Object(_)) => info.clone(),
            _ => Json::Null,
        };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
        // Beside the proposal's place for the marker also under `_meta`, where it survives clients
        // that keep only what their schema knows.
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

    fn new_session(&self, params: &Json) -> Answer {
        let cwd = wire::folder(params)?;
        let metadata = listing::began(cwd, self.client().unwrap_or(Json::Null), None);
        let new = NewConversation { metadata, ..NewConversation::default() };
        let conversation = self.engine.create_conversation(&self.call, new)?;
        let main = self.engine.branch(&self.call, &conversation.id, "main")?;
        self.sessions.open(main.id, cwd);
        Ok(noted(json!({ "sessionId": main.id.to_string() }), params))
    }

    fn load(&self, params: &Json, out: &Out) -> Answer {
        let (session, cwd) = (self.session(params)?, wire::folder(params)?);
        branches::replay(&self.engine, &self.call, &session.id.to_string(), &session, out)?;
        self.sessions.open(session.id, cwd);
        Ok(noted(json!({}), params))
    }

    fn resume(&self, params: &Json) -> Answer {
        let (session, cwd) = (self.session(params)?, wire::folder(params)?);
        self.sessions.open(session.id, cwd);
        Ok(noted(json!({}), params))
    }

    fn list(&self, params: &Json) -> Answer {
        let cwd = wire::optional_text(params, "cwd")?.map(wire::absolute).transpose()?;
        let cursor = wire::optional_text(params, "cursor")?;
        let (sessions, next) = listing::page(&self.engine, &self.call, cwd, cursor, None)?;
        Ok(listing::told(sessions, next))
    }

    fn fork(&self, params: &Json) -> Answer {
        let (session, cwd) = (self.session(params)?, wire::folder(params)?);
        let at = match anchor::read(params)? {
            Some(message) => {
                branches::message_of(&self.engine, &self.call, &session, message)?.into()
            }
            None => Reference::parse(&session.id.to_string()).map_err(Error::from)?,
        };
        let conversation = Some(session.conversation);
        let request = Fork { conversation, point: ForkPoint::At(at), name: None };
        let fork = self.engine.fork(&self.call, request)?;
        {
            let _noting = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
            listing::forked(&self.engine, &self.call, &fork, cwd, None)?;
        }
        self.sessions.open(fork.id, cwd);
        Ok(noted(json!({ "sessionId": fork.id.to_string() }), params))
    }

    fn close(&self, params: &Json) -> Answer {
        let text = wire::text(params, "sessionId")?;
        let was_open = text.parse().is_ok_and(|id| self.sessions.close(id));
        if !was_open {
            self.session(params)?;
        }
        Ok(json!({}))
    }

    /// Removes the branch; its turns stay. What is not there is gone already.
    fn delete(&self, params: &Json) -> Answer {
        let Ok(id) = wire::text(params, "sessionId")?.parse::<BranchId>() else {
            return Ok(json!({}));
        };
        self.sessions.close(id);
        branches::delete(&self.engine, &self.call, id)?;
        Ok(json!({}))
    }

    fn session(&self, params: &Json) -> Result<BranchView, Refusal> {
        branches::named(&self.engine, &self.call, wire::text(params, "sessionId")?)
    }

    fn claim(&self, params: &Json) -> Result<Claim, Refusal> {
        let text = wire::text(params, "sessionId")?;
        let unknown = || Refusal::no_session(text, " that is open here; load or resume it first");
        let id = text.parse().map_err(|_| unknown())?;
        self.sessions.claim(id).map_err(|why| match why {
            Unclaimed::Closed => unknown(),
            Unclaimed::Running => {
                let why = "a prompt runs in this session; wait for its end, or cancel it";
                Refusal::new(NO_REQUEST, why).with(json!({ "sessionId": text }))
            }
        })
    }
}

/// An answer with a note about servers that were offered and are not used.
fn noted(mut answer: Json, params: &Json) -> Json {
    let offered = params.get("mcpServers").and_then(Json::as_array).map_or(0, <[Json]>::len);
    if offered > 0 {
        let why = "this agent uses no MCP servers; those that were offered are left alone";
        tracing::warn!(offered, "{why}");
        wire::note(&mut answer, json!({ "mcpServers": why }));
    }
    answer
}

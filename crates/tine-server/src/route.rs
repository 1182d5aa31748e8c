//! Routes whose types describe them.
//!
//! A route is a function over the engine with typed parameters, a typed body and a typed answer.
//! The same types read the request, write the response and make the entry in the API's
//! description, so that the two cannot disagree.
//!
//! A function runs on the thread that read its request, and may wait there for the store: another
//! thread takes over the connections meanwhile, so that nobody else waits.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http_body_util::{BodyExt, LengthLimitError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tine_api::bodies::{self, Common};
use tine_core::ids::check_key;
use tine_core::{ErrorKind, ProjectId};
use tine_engine::{BranchVersion, Call, Engine};
use tokio::runtime::RuntimeFlavor;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::openapi::{Description, Operation};
use crate::parameters;
use crate::problem::Problem;
use crate::room::Held;

/// What a function answers.
pub(crate) type Answered<R> = Result<Reply<R>, Problem>;

/// A route's function.
pub(crate) type Handler<P, B, R> = fn(&Asked, P, B) -> Answered<R>;

/// Parameters of path and query.
pub(crate) trait Parameters: DeserializeOwned + JsonSchema + Send + 'static {
    /// Whether a call that names no project is about the default one. Where it is not, the
    /// function itself looks how far its caller reaches.
    const IN_PROJECT: bool = true;

    /// The project that the query names.
    fn project_id(&self) -> Option<&str> {
        None
    }
}

/// Who asks, and for which project.
pub(crate) struct Asked {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) call: Call,
    /// Whether the request named a state of the branch that it is about.
    pub(crate) conditional: bool,
}

impl Asked {
    pub(crate) fn engine(&self) -> &Engine {
        &self.app.engine
    }

    /// Room for a request that waits until a run has ended, if it does.
    pub(crate) fn room_to_wait(&self, waits: bool) -> Result<Option<Held>, Problem> {
        waits.then(|| self.app.wait_room.take()).transpose()
    }

    pub(crate) fn project(&self) -> &ProjectId {
        &self.call.project
    }
}

/// An answer with its status and headers.
pub(crate) struct Reply<R> {
    status: StatusCode,
    etag: Option<String>,
    body: R,
}

impl<R> Reply<R> {
    pub(crate) fn ok(body: R) -> Self {
        Reply { status: StatusCode::OK, etag: None, body }
    }

    pub(crate) fn created(body: R) -> Self {
        Reply { status: StatusCode::CREATED, ..Reply::ok(body) }
    }

    /// 201 if something was made, 200 if it was there.
    pub(crate) fn made(new: bool, body: R) -> Self {
        if new { Reply::created(body) } else { Reply::ok(body) }
    }

    pub(crate) fn with_etag(self, etag: String) -> Self {
        Reply { etag: Some(etag), ..self }
    }
}

/// A body that no request has.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
pub(crate) struct NoBody {}

impl Common for NoBody {
    fn project_id(&self) -> Option<&str> {
        None
    }

    fn idempotency_key(&self) -> Option<&str> {
        None
    }
}

/// Describes a route.
type Describe = Box<dyn FnOnce(&mut Description)>;

/// All routes, and what describes them once somebody asks: that takes longer than all else that a
/// server does before it listens.
pub(crate) struct Routes {
    router: Router<Arc<App>>,
    described: Vec<Describe>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Routes { router: Router::new(), described: Vec::new() }
    }

    pub(crate) fn router(self) -> Router<Arc<App>> {
        self.router
    }

    pub(crate) fn describe(self) -> Description {
        let mut description = Description::new();
        for describe in self.described {
            describe(&mut description);
        }
        description
    }

    /// A route that only reads.
    pub(crate) fn get<P: Parameters, R: Serialize + JsonSchema + Send + 'static>(
        self,
        path: &'static str,
        about: Operation,
        handler: Handler<P, NoBody, R>,
    ) -> Self {
        self.route(Method::GET, path, about, handler)
    }

    /// A route that changes something.
    pub(crate) fn route<P, B, R>(
        mut self,
        method: Method,
        path: &'static str,
        about: Operation,
        handler: Handler<P, B, R>,
    ) -> Self
    where
        P: Parameters,
        B: Common + DeserializeOwned + JsonSchema + Default + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let (described, named) = (about.clone(), method.clone());
        self.described.push(Box::new(move |description| {
            description.add::<P, B, R>(&named, path, &described);
        }));
        let filter = MethodFilter::try_from(method.clone()).expect("a method that has a filter");
        let reads = method == Method::GET || about.reads;
        let has_body = method != Method::GET && method != Method::DELETE;
        let required = about.body_required;
        self.router = self.router.route(
            path,
            on(filter, async move |State(app): State<Arc<App>>, request: Request| {
                let (mut parts, body) = request.into_parts();
                let read = async {
                    let parameters = parameters::<P>(&mut parts).await?;
                    let (body, room) = match has_body {
                        true => read_json::<B>(&app, &parts.headers, body, required).await?,
                        false => (B::default(), None),
                    };
                    let access = if reads { Access::Read } else { Access::Write };
                    let named = parameters.project_id();
                    let asked = asked(app, &parts, named, P::IN_PROJECT, access, &body)?;
                    Ok::<_, Problem>((asked, parameters, body, room))
                };
                match read.await {
                    Ok((asked, parameters, body, room)) => {
                        let answer =
                            blocking(|| respond(&asked, handler(&asked, parameters, body)));
                        drop(room);
                        answer
                    }
                    Err(problem) => problem.into_response(),
                }
            }),
        );
        self
    }
}

/// What a request is about, if its caller may ask for it.
pub(crate) fn asked(
    app: Arc<App>,
    parts: &Parts,
    in_query: Option<&str>,
    in_project: bool,
    access: Access,
    body: &impl Common,
) -> Result<Asked, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
    let named = match (in_query, body.project_id()) {
        (Some(one), Some(other)) if one != other => {
            let why = "the query and the body name different projects";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        (one, other) => one.or(other),
    };
    let project = bodies::project(named, app.engine.limits())?;
    match named.is_some() || in_project {
        true => caller.check(&project, access)?,
        false => caller.check_write(access)?,
    }
    let call = call(&app, &caller, project, &parts.headers, body)?;
    let conditional = call.if_branch.is_some();
    Ok(Asked { app, caller, call, conditional })
}

/// Runs something that may wait for the store. A hop to another thread and back would take a fifth
/// more of the processor for each append of a lone client.
pub(crate) fn blocking(work: impl FnOnce() -> Response) -> Response {
    match tokio::runtime::Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => work(),
        _ => tokio::task::block_in_place(work),
    }
}

/// The answer to a request on which the server itself failed.
pub(crate) fn defect() -> Response {
    Problem::new(ErrorKind::Internal, "the request met a defect; it is in the log").into_response()
}

pub(crate) fn respond<R: Serialize>(asked: &Asked, answer: Answered<R>) -> Response {
    match answer {
        Ok(reply) => {
            let mut headers = HeaderMap::new();
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
            if let Some(Ok(etag)) = reply.etag.map(HeaderValue::try_from) {
                headers.insert(header::ETAG, etag);
            }
            match serde_json::to_vec(&reply.body) {
                Ok(body) => (reply.status, headers, body).into_response(),
                Err(error) => Problem::new(ErrorKind::Internal, error.to_string()).into_response(),
            }
        }
        Err(problem) if asked.conditional && problem.is(ErrorKind::Conflict) => {
            problem.with_status(StatusCode::PRECONDITION_FAILED).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Reads path and query as one set of parameters.
pub(crate) async fn parameters<P: DeserializeOwned>(parts: &mut Parts) -> Result<P, Problem> {
    let path = RawPathParams::from_request_parts(parts, &()).await;
    let path = path.map_err(|error| Problem::new(ErrorKind::Invalid, error.to_string()))?;
    let path = path.iter().map(|(name, value)| (name.into(), value.into()));
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    parameters::from_pairs(path.chain(query)).map_err(|why| Problem::new(ErrorKind::Invalid, why))
}

/// The parameters of a route that is no function over the engine.
pub(crate) struct Wanted<P>(pub(crate) P);

impl<P: DeserializeOwned, S: Sync> FromRequestParts<S> for Wanted<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Wanted(parameters(parts).await?))
    }
}

/// Refuses a body that is not sent as it should be: its type, and no compression.
pub(crate) fn check_content(headers: &HeaderMap, wanted: &'static str) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(wanted) {
        let why = format!("the body must be sent with `Content-Type: {wanted}`");
        return Err(
            Problem::new(ErrorKind::Invalid, why).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
    }
    check_encoding(headers)
}

/// Refuses a body that is compressed.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let coding = headers.get(header::CONTENT_ENCODING);
    match coding.map(|value| value.to_str().unwrap_or("unknown")) {
        None | Some("" | "identity") => Ok(()),
        Some(_) => {
            let why = "a body is sent as it is, without Content-Encoding";
            Err(Problem::new(ErrorKind::Invalid, why)
                .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
        }
    }
}

/// How long a body says that it is.
pub(crate) fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body without keeping it.
pub(crate) async fn discard(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// Reads a whole body, up to the limit. One that says that it is longer is not read at all.
pub(crate) async fn read_body(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Held), Problem> {
    let limit = app.engine.limits().body_bytes;
    let too_large = || {
        let why = format!("the body: at most {limit} bytes; nothing was stored");
        Problem::new(ErrorKind::TooLarge, why)
    };
    let length = announced(headers);
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let room = match app.body_room.take(length.unwrap_or(limit)) {
        Ok(room) => room,
        Err(full) => {
            // A client that is still sending would not hear the answer.
            tokio::time::timeout(app.options.body_timeout, discard(body)).await.ok();
            return Err(full);
        }
    };
    let read = tokio::time::timeout(app.options.body_timeout, to_bytes(body, limit));
    match read.await {
        Ok(Ok(bytes)) => Ok((bytes, room)),
        Ok(Err(error)) => {
            let over = std::error::Error::source(&error)
                .is_some_and(|source| source.is::<LengthLimitError>());
            Err(match over {
                true => too_large(),
                false => Problem::new(ErrorKind::Invalid, format!("the body broke off: {error}")),
            })
        }
        Err(_) => Err(Problem::new(ErrorKind::Invalid, "the body took too long to come")
            .with_status(StatusCode::REQUEST_TIMEOUT)),
    }
}

/// Reads a body of JSON; an empty one has its defaults, where none is required.
pub(crate) async fn read_json<B: DeserializeOwned + Default>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    required: bool,
) -> Result<(B, Option<Held>), Problem> {
    let (bytes, room) = read_body(app, headers, body).await?;
    if bytes.is_empty() && !required {
        return Ok((B::default(), None));
    }
    check_content(headers, "application/json")?;
    // What reads the fields would also take a list of them in order; a request is no such list.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| *byte != b'{') {
        return Err(Problem::new(ErrorKind::Invalid, "the body must be a JSON object"));
    }
    Ok((bodies::read(&bytes, app.engine.limits())?, Some(room)))
}

fn call(
    app: &App,
    caller: &Caller,
    project: ProjectId,
    headers: &HeaderMap,
    body: &impl Common,
) -> Result<Call, Problem> {
    let header = |name: &str| -> Result<Option<String>, Problem> {
        let Some(value) = headers.get(name) else { return Ok(None) };
        let text = std::str::from_utf8(value.as_bytes());
        let text =
            text.map_err(|_| Problem::new(ErrorKind::Invalid, format!("{name} is not UTF-8")))?;
        Ok(Some(text.to_owned()))
    };
    // Whoever has a token is recorded under its name and no other.
    let claimed = header("x-tine-actor")?.filter(|actor| !actor.is_empty());
    let actor = caller.name().or(claimed).unwrap_or_else(|| app.options.actor.clone());
    let mut call = Call::by(actor).in_project(project);
    call.idempotency_key = match (header("idempotency-key")?, body.idempotency_key()) {
        (Some(one), Some(other)) if one != other => {
            let why = "the header Idempotency-Key and the field idempotency_key differ";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        (one, other) => one.or(other.map(str::to_owned)),
    };
    if let Some(key) = &call.idempotency_key {
        check_key("idempotency key", key, app.engine.limits()).map_err(tine_engine::Error::from)?;
    }
    if let Some(seen) = header("if-match")? {
        call.if_branch = parse_etag(&seen)?;
    }
    Ok(call)
}

/// A branch's state as an entity tag.
pub(crate) fn etag(branch: &tine_engine::BranchView) -> String {
    format!("\"{}.{}\"", branch.id, branch.version)
}

/// The state that a tag stands for; `*` is any.
fn parse_etag(text: &str) -> Result<Option<BranchVersion>, Problem> {
    if text.trim() == "*" {
        return Ok(None);
    }
    let seen = text.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let seen = seen.and_then(|text| text.rsplit_once('.')).and_then(|(id, version)| {
        Some(BranchVersion { id: id.parse().ok()?, version: version.parse().ok()? })
    });
    match seen {
        Some(seen) => Ok(Some(seen)),
        None => {
            let why = "If-Match must be the ETag of a branch, as reading the branch answers it";
            Err(Problem::new(ErrorKind::Invalid, why))
        }
    }
}

//! Routes described by their types.
//!
//! A route is a function over the engine with typed parameters, a typed body and a typed answer.
//! The same types read the request, write the response and make the entry in the API's
//! description, so that the two cannot disagree.
//!
//! A function runs on the thread that read its request and may wait there for the store: another
//! thread takes over the connections meanwhile, so that no other request waits.

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
use tine_api::bodies::{self, CallFields, RequestBody};
use tine_api::{Answer, BranchVersion, Call, Listing};
use tine_core::ids::check_key;
use tine_core::{ErrorKind, ProjectId};
use tine_engine::Engine;
use tine_formats::redact::Redacted;
use tokio::runtime::RuntimeFlavor;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::capacity::Permit;
use crate::openapi::{Description, Operation};
use crate::parameters;
use crate::problem::Problem;

/// What a route returns.
pub(crate) type ApiResult<R> = Result<Reply<R>, Problem>;

/// The function of a route without a body.
pub(crate) type Handler<P, R> = fn(&RequestContext, P) -> ApiResult<R>;

/// Parameters of path and query.
pub(crate) trait Parameters: DeserializeOwned + JsonSchema + Send + 'static {
    /// Whether a request that names no project uses the default one. Otherwise the function itself
    /// checks what its caller can access.
    const IN_PROJECT: bool = true;

    /// The project in the path or query.
    fn project_id(&self) -> Option<&ProjectId> {
        None
    }
}

/// The caller of a request, its project, and the fields that its body shares with others.
pub(crate) struct RequestContext {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) call: Call,
    pub(crate) fields: CallFields,
    /// Whether the request requires a certain version of its branch.
    pub(crate) conditional: bool,
}

impl RequestContext {
    pub(crate) fn engine(&self) -> &Engine {
        &self.app.engine
    }

    pub(crate) fn project(&self) -> &ProjectId {
        &self.call.project
    }

    /// Acquires a permit for a request that waits until a run has ended.
    pub(crate) fn wait_permit(&self, waits: bool) -> Result<Option<Permit>, Problem> {
        waits.then(|| self.app.waits.acquire()).transpose()
    }

    /// Returns the call after redacting its content, if the server redacts.
    pub(crate) fn redacting(&self, redact: impl FnOnce(&mut Redacted)) -> Call {
        let mut call = self.call.clone();
        if self.app.options.redact {
            redact(&mut call.redacted);
        }
        call
    }

    /// Returns an answer with its project.
    pub(crate) fn answer<T>(&self, body: T) -> Answer<T> {
        Answer::new(self.project(), body)
    }

    /// Answers with status 200.
    pub(crate) fn ok<T>(&self, body: T) -> ApiResult<Answer<T>> {
        self.made(false, body)
    }

    /// Answers with status 201.
    pub(crate) fn created<T>(&self, body: T) -> ApiResult<Answer<T>> {
        self.made(true, body)
    }

    /// Answers with status 201 if something was created, otherwise 200.
    pub(crate) fn made<T>(&self, new: bool, body: T) -> ApiResult<Answer<T>> {
        Ok(Reply::made(new, self.answer(body)))
    }

    /// Answers with a list of one page.
    pub(crate) fn list<T>(&self, items: Vec<T>) -> ApiResult<Answer<Listing<T>>> {
        self.ok(Listing::all(items))
    }
}

/// An answer with its status and headers.
pub(crate) struct Reply<R> {
    status: StatusCode,
    etag: Option<String>,
    body: R,
}

impl<R> Reply<R> {
    /// Returns an answer with status 200.
    pub(crate) fn ok(body: R) -> Self {
        Reply::made(false, body)
    }

    /// Returns an answer with status 201 if something was created, otherwise 200.
    pub(crate) fn made(new: bool, body: R) -> Self {
        let status = if new { StatusCode::CREATED } else { StatusCode::OK };
        Reply { status, etag: None, body }
    }

    pub(crate) fn with_etag(self, etag: String) -> Self {
        Reply { etag: Some(etag), ..self }
    }
}

/// The body of a request that has none.
#[derive(Debug, serde::Deserialize, JsonSchema)]
struct NoBody {}

impl bodies::Request for NoBody {
    const CALL_FIELDS: &'static [&'static str] = &[];
}

/// Describes a route.
type Describe = Box<dyn FnOnce(&mut Description)>;

/// All routes, and the functions that describe them. Describing takes longer than everything else
/// that a server does before it listens, so it is left until the description is requested.
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

    /// Adds a read-only route.
    pub(crate) fn get<P: Parameters, R: Serialize + JsonSchema + Send + 'static>(
        self,
        path: &'static str,
        about: Operation,
        handler: Handler<P, R>,
    ) -> Self {
        self.route(Method::GET, path, about, move |context, parameters, NoBody {}| {
            handler(context, parameters)
        })
    }

    /// Adds a route that deletes something.
    pub(crate) fn delete<P: Parameters, R: Serialize + JsonSchema + Send + 'static>(
        self,
        path: &'static str,
        about: Operation,
        handler: Handler<P, R>,
    ) -> Self {
        self.route(Method::DELETE, path, about, move |context, parameters, NoBody {}| {
            handler(context, parameters)
        })
    }

    /// Adds a route that changes something.
    pub(crate) fn route<P, B, R>(
        mut self,
        method: Method,
        path: &'static str,
        about: Operation,
        handler: impl Fn(&RequestContext, P, B) -> ApiResult<R> + Copy + Send + Sync + 'static,
    ) -> Self
    where
        P: Parameters,
        B: bodies::Request + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let (described, named) = (about.clone(), method.clone());
        self.described.push(Box::new(move |description| {
            description.add::<P, RequestBody<B>, R>(&named, path, &described);
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
                    let parameters = parameters::<P>(&app, &mut parts).await?;
                    let (body, permit) = match has_body {
                        true => read_json::<B>(&app, &parts.headers, body, required).await?,
                        false => (empty_body(&app)?, None),
                    };
                    let access = if reads { Access::Read } else { Access::Write };
                    let RequestBody { request, fields } = body;
                    let named = parameters.project_id();
                    let context =
                        request_context(app, &parts, named, P::IN_PROJECT, access, fields)?;
                    Ok::<_, Problem>((context, parameters, request, permit))
                };
                match read.await {
                    Ok((context, parameters, request, permit)) => {
                        let answer =
                            blocking(|| respond(&context, handler(&context, parameters, request)));
                        drop(permit);
                        answer
                    }
                    Err(problem) => problem.into_response(),
                }
            }),
        );
        self
    }
}

/// Returns the context of a request, if its caller may make it.
pub(crate) fn request_context(
    app: Arc<App>,
    parts: &Parts,
    in_query: Option<&ProjectId>,
    in_project: bool,
    access: Access,
    fields: CallFields,
) -> Result<RequestContext, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
    let named = match (in_query, &fields.project_id) {
        (Some(one), Some(other)) if one != other => {
            let why = "the query and the body name different projects";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        (one, other) => one.or(other.as_ref()),
    };
    let project = named.cloned().unwrap_or_default();
    match named.is_some() || in_project {
        true => caller.check(&project, access)?,
        false => caller.check_write(access)?,
    }
    let call = call(&app, &caller, project, &parts.headers, &fields)?;
    let conditional = call.if_branch.is_some();
    Ok(RequestContext { app, caller, call, fields, conditional })
}

/// Runs work that may wait for the store. Handing it to another thread and back would cost a fifth
/// more processor time for each append of a single client.
pub(crate) fn blocking(work: impl FnOnce() -> Response) -> Response {
    match tokio::runtime::Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => work(),
        _ => tokio::task::block_in_place(work),
    }
}

/// Returns the refusal of a request on which the server itself failed.
pub(crate) fn internal_error() -> Problem {
    Problem::new(ErrorKind::Internal, "internal error; see the server log")
}

pub(crate) fn respond<R: Serialize>(context: &RequestContext, answer: ApiResult<R>) -> Response {
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
        Err(problem) if context.conditional && problem.is(ErrorKind::Conflict) => {
            problem.with_status(StatusCode::PRECONDITION_FAILED).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Reads path and query as one set of parameters.
pub(crate) async fn parameters<P: DeserializeOwned>(
    app: &App,
    parts: &mut Parts,
) -> Result<P, Problem> {
    let path = RawPathParams::from_request_parts(parts, &()).await;
    let path = path.map_err(|error| Problem::new(ErrorKind::Invalid, error.to_string()))?;
    let path = path.iter().map(|(name, value)| (name.into(), value.into()));
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    Ok(parameters::from_pairs(path.chain(query), app.engine.limits())?)
}

/// The parameters of a route that is not a function over the engine.
pub(crate) struct UrlParameters<P>(pub(crate) P);

impl<P: DeserializeOwned> FromRequestParts<Arc<App>> for UrlParameters<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        Ok(UrlParameters(parameters(app, parts).await?))
    }
}

/// Refuses a body of another media type, or a compressed one.
pub(crate) fn check_content(headers: &HeaderMap, media_type: &'static str) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(media_type) {
        let why = format!("the body must be sent with `Content-Type: {media_type}`");
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
            let why = "compressed bodies are not supported; send the body without Content-Encoding";
            Err(Problem::new(ErrorKind::Invalid, why)
                .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
        }
    }
}

/// Returns the length of a body according to its header.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body without keeping it.
pub(crate) async fn discard(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// Reads a whole body, up to the limit. A body whose header announces more is not read at all.
pub(crate) async fn read_body(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Permit), Problem> {
    let limit = app.engine.limits().body_bytes;
    let too_large = || {
        let why = format!("the body: at most {limit} bytes; nothing was stored");
        Problem::new(ErrorKind::TooLarge, why)
    };
    let length = content_length(headers);
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let permit = match app.body_memory.acquire(length.unwrap_or(limit)) {
        Ok(permit) => permit,
        Err(full) => {
            // A client that is still sending would not hear the answer.
            tokio::time::timeout(app.options.body_timeout, discard(body)).await.ok();
            return Err(full);
        }
    };
    let read = tokio::time::timeout(app.options.body_timeout, to_bytes(body, limit));
    match read.await {
        Ok(Ok(bytes)) => Ok((bytes, permit)),
        Ok(Err(error)) => {
            let over = std::error::Error::source(&error)
                .is_some_and(|source| source.is::<LengthLimitError>());
            Err(match over {
                true => too_large(),
                false => Problem::new(ErrorKind::Invalid, format!("the body ended early: {error}")),
            })
        }
        Err(_) => Err(Problem::new(ErrorKind::Invalid, "the body arrived too slowly")
            .with_status(StatusCode::REQUEST_TIMEOUT)),
    }
}

/// Reads a JSON body. An empty one stands for `{}`, where no body is required.
pub(crate) async fn read_json<B: bodies::Request>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    required: bool,
) -> Result<(RequestBody<B>, Option<Permit>), Problem> {
    let (bytes, permit) = read_body(app, headers, body).await?;
    if bytes.is_empty() && !required {
        return Ok((empty_body(app)?, None));
    }
    check_content(headers, "application/json")?;
    // serde would also accept the fields as an array, in order.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| *byte != b'{') {
        return Err(Problem::new(ErrorKind::Invalid, "the body must be a JSON object"));
    }
    Ok((bodies::read(&bytes, app.engine.limits())?, Some(permit)))
}

fn empty_body<B: bodies::Request>(app: &App) -> Result<RequestBody<B>, Problem> {
    Ok(bodies::read(b"{}", app.engine.limits())?)
}

fn call(
    app: &App,
    caller: &Caller,
    project: ProjectId,
    headers: &HeaderMap,
    fields: &CallFields,
) -> Result<Call, Problem> {
    let header = |name: &str| -> Result<Option<String>, Problem> {
        let Some(value) = headers.get(name) else { return Ok(None) };
        let text = std::str::from_utf8(value.as_bytes());
        let text =
            text.map_err(|_| Problem::new(ErrorKind::Invalid, format!("{name} is not UTF-8")))?;
        Ok(Some(text.to_owned()))
    };
    // A caller with a token is always recorded under the name of the token.
    let claimed = header("x-tine-actor")?.filter(|actor| !actor.is_empty());
    let actor = caller.name().or(claimed).unwrap_or_else(|| app.options.actor.clone());
    let mut call = Call::by(actor).in_project(project);
    call.redacted = fields.checked_redacted()?;
    call.idempotency_key = match (header("idempotency-key")?, &fields.idempotency_key) {
        (Some(one), Some(other)) if one != *other => {
            let why = "the header Idempotency-Key and the field idempotency_key differ";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        (one, other) => one.or_else(|| other.clone()),
    };
    if let Some(key) = &call.idempotency_key {
        check_key("idempotency key", key, app.engine.limits()).map_err(tine_api::Error::from)?;
    }
    if let Some(seen) = header("if-match")? {
        call.if_branch = parse_etag(&seen)?;
    }
    Ok(call)
}

/// Returns the ETag of a branch.
pub(crate) fn etag(branch: &tine_api::BranchView) -> String {
    format!("\"{}.{}\"", branch.id, branch.version)
}

/// Parses the ETag of a branch; `*` matches any version.
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
            let why = "If-Match must be the ETag of a branch, as returned when the branch is read";
            Err(Problem::new(ErrorKind::Invalid, why))
        }
    }
}

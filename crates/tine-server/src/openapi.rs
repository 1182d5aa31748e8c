//! Generates the OpenAPI 3.1 document from the types of the routes.

use axum::http::Method;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use tine_api::bodies::RequestBody;
use tine_api::{Answer, Imported, NewSource, Pulled, StoredSourceAnswer};
use tine_core::{ErrorKind, Limits};

use crate::api::sync;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::{sources, transfer};

/// The description of a route.
#[derive(Clone)]
pub(crate) struct Operation {
    /// The name in generated clients.
    pub(crate) id: &'static str,
    /// The section of the document.
    pub(crate) tag: &'static str,
    /// A one-line summary.
    pub(crate) summary: &'static str,
    /// Statuses of success, beside 200.
    pub(crate) also: &'static [u16],
    /// Whether it accepts `If-Match`.
    pub(crate) conditional: bool,
    /// Whether a body is required.
    pub(crate) body_required: bool,
    /// Whether it is read-only although its method is not GET.
    pub(crate) reads: bool,
    /// An example of the body, as JSON.
    pub(crate) example: Option<&'static str>,
    /// Operations of the same project that take values of the answer.
    pub(crate) links: &'static [Link],
}

/// An operation that takes a value of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) to: &'static str,
    pub(crate) parameter: &'static str,
    pub(crate) from: &'static str,
}

impl Operation {
    pub(crate) const fn new(tag: &'static str, id: &'static str, summary: &'static str) -> Self {
        Operation {
            id,
            tag,
            summary,
            also: &[],
            conditional: false,
            body_required: false,
            reads: false,
            example: None,
            links: &[],
        }
    }

    pub(crate) const fn also(self, also: &'static [u16]) -> Self {
        Operation { also, ..self }
    }

    pub(crate) const fn conditional(self) -> Self {
        Operation { conditional: true, ..self }
    }

    pub(crate) const fn body_required(self) -> Self {
        Operation { body_required: true, ..self }
    }

    pub(crate) const fn reads(self) -> Self {
        Operation { reads: true, ..self }
    }

    pub(crate) const fn example(self, example: &'static str) -> Self {
        Operation { example: Some(example), ..self }
    }

    pub(crate) const fn links(self, links: &'static [Link]) -> Self {
        Operation { links, ..self }
    }
}

/// The document while routes are added.
pub(crate) struct Description {
    generator: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Description {
    pub(crate) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Description { generator: settings.into_generator(), paths: Map::new() }
    }

    fn schema<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().into()
    }

    pub(crate) fn add<P: JsonSchema, B: JsonSchema, R: JsonSchema>(
        &mut self,
        method: &Method,
        path: &str,
        about: &Operation,
    ) {
        let answer = json!({ "application/json": { "schema": self.schema::<R>() } });
        let body = (*method != Method::GET && *method != Method::DELETE).then(|| {
            let form = with_example(self.schema::<B>(), about.example);
            json!({
                "required": about.body_required,
                "content": { "application/json": form },
            })
        });
        let changes = *method != Method::GET && !about.reads;
        let parameters = self.parameters::<P>(path, about, changes);
        self.insert(method, path, about, parameters, body, answer);
    }

    /// Adds a route whose body or answer is not JSON.
    pub(crate) fn add_other<P: JsonSchema>(
        &mut self,
        method: &Method,
        path: &str,
        about: &Operation,
        body: Option<&str>,
        answer: Value,
    ) {
        let parameters = self.parameters::<P>(path, about, false);
        let body = body.map(|kind| {
            json!({ "required": true, "content": { kind: { "schema": { "type": "string" } } } })
        });
        self.insert(method, path, about, parameters, body, answer);
    }

    /// Adds a route that takes JSON and answers with a stream of events.
    pub(crate) fn add_stream<P: JsonSchema, B: JsonSchema>(
        &mut self,
        method: &Method,
        path: &str,
        about: &Operation,
    ) {
        let form = with_example(self.schema::<B>(), about.example);
        let body = json!({ "required": false, "content": { "application/json": form } });
        // One event; its data is JSON as a string.
        let event = json!({
            "type": "object",
            "properties": { "event": { "type": "string" }, "data": { "type": "string" } },
            "required": ["event", "data"],
        });
        let stream = json!({ "text/event-stream": { "schema": event } });
        let parameters = self.parameters::<P>(path, about, true);
        self.insert(method, path, about, parameters, Some(body), stream);
    }

    /// Adds the route that imports a bundle.
    pub(crate) fn add_import(&mut self, about: &Operation) {
        let answer = json!({ "application/json": { "schema": self.schema::<Answer<Imported>>() } });
        let body = Some(transfer::MEDIA_TYPE);
        self.add_other::<transfer::ImportQuery>(
            &Method::POST,
            "/api/v1/import",
            about,
            body,
            answer,
        );
    }

    /// Adds the routes that send and receive deltas.
    pub(crate) fn add_deltas(&mut self) {
        let about =
            Operation::new(sync::TAG, "getDelta", "Retrieve the entries of a log after an entry");
        let path = "/api/v1/sync/delta";
        let lines = json!({ transfer::MEDIA_TYPE: { "schema": { "type": "string" } } });
        self.add_other::<transfer::DeltaQuery>(&Method::GET, path, &about, None, lines);
        let about = Operation::new(sync::TAG, "takeDelta", "Apply a delta, verifying every hash");
        let answer = json!({ "application/json": { "schema": self.schema::<Answer<Pulled>>() } });
        let body = Some(transfer::MEDIA_TYPE);
        self.add_other::<transfer::DeltaTarget>(&Method::POST, path, &about, body, answer);
    }

    /// Adds the routes that upload and download the bytes of sources.
    pub(crate) fn add_sources(&mut self) {
        let about = Operation::new(
            "Sources",
            "storeSource",
            "Store a source; a body that is not JSON is the source itself",
        )
        .also(&[201])
        .links(&[Link {
            to: "getSource",
            parameter: "source",
            from: "$response.body#/source_id",
        }]);
        let answer = json!({ "application/json": { "schema": self.schema::<Answer<StoredSourceAnswer>>() } });
        let example = r#"{"text": "Alice Chen moves to Tokyo in March.",
            "mime_type": "text/plain", "original_filename": "note.txt"}"#;
        let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
        let body = json!({ "required": true, "content": {
            "application/json": with_example(self.schema::<RequestBody<NewSource>>(), Some(example)),
            "application/octet-stream": bytes,
        } });
        let parameters = self.parameters::<sources::UploadQuery>(sources::PATH, &about, true);
        self.insert(&Method::POST, sources::PATH, &about, parameters, Some(body), answer);

        let about = Operation::new("Sources", "getSourceContent", "Download the bytes of a source")
            .also(&[206]);
        // The source can be of any type, including JSON.
        let answer = json!({ "*/*": { "schema": {} } });
        let path = sources::CONTENT_PATH;
        let mut parameters = self.parameters::<sources::ContentPath>(path, &about, false);
        parameters.push(json!({
            "name": "Range", "in": "header", "required": false,
            "description": "A single range, such as `bytes=0-1023`; other forms are ignored.",
            "schema": { "type": "string" },
        }));
        self.insert(&Method::GET, path, &about, parameters, None, answer);
        let responses = &mut self.paths[path]["get"]["responses"];
        let refusal = responses["400"]["content"].clone();
        responses["304"] = json!({ "description": "Not modified." });
        responses["416"] = json!({ "description": "Range not satisfiable.", "content": refusal });
    }

    fn insert(
        &mut self,
        method: &Method,
        path: &str,
        about: &Operation,
        parameters: Vec<Value>,
        body: Option<Value>,
        answer: Value,
    ) {
        let mut responses = Map::new();
        let links: Map<String, Value> = about
            .links
            .iter()
            .map(|link| {
                let parameters = json!({
                    link.parameter: link.from,
                    "project_id": "$response.body#/project_id",
                });
                (link.to.to_owned(), json!({ "operationId": link.to, "parameters": parameters }))
            })
            .collect();
        for status in std::iter::once(&200).chain(about.also) {
            let what = match status {
                201 => "Created.",
                206 => "Partial content.",
                _ => "OK.",
            };
            let mut response = json!({ "description": what, "content": answer.clone() });
            if !links.is_empty() {
                response["links"] = Value::Object(links.clone());
            }
            responses.insert(status.to_string(), response);
        }
        let problem = json!({ MEDIA_TYPE: { "schema": self.schema::<Problem>() } });
        let mut refusals: Vec<u16> = ErrorKind::ALL.iter().map(|kind| kind.http_status()).collect();
        refusals.extend([405, 408, 415, 421, 429]);
        if about.conditional {
            refusals.push(412);
        }
        refusals.sort_unstable();
        refusals.dedup();
        for status in refusals {
            let kinds: Vec<&str> = ErrorKind::ALL
                .iter()
                .filter(|kind| kind.http_status() == status)
                .map(|kind| kind.code())
                .collect();
            let what = match status {
                405 => "Method not allowed.".to_owned(),
                408 => "The body arrived too slowly.".to_owned(),
                412 => "`conflict`: the branch has changed.".to_owned(),
                415 => "Unsupported media type or compression.".to_owned(),
                421 => "The host is not a name of this server.".to_owned(),
                429 => "Too many requests.".to_owned(),
                _ => kinds.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", "),
            };
            let response = json!({ "description": what, "content": problem.clone() });
            responses.insert(status.to_string(), response);
        }
        let mut entry = json!({
            "operationId": about.id,
            "tags": [about.tag],
            "summary": about.summary,
            "parameters": parameters,
            "responses": responses,
        });
        if let Some(body) = body {
            entry["requestBody"] = body;
        }
        let methods = self.paths.entry(path).or_insert_with(|| json!({}));
        methods[method.as_str().to_ascii_lowercase()] = entry;
    }

    fn parameters<P: JsonSchema>(
        &mut self,
        path: &str,
        about: &Operation,
        changes: bool,
    ) -> Vec<Value> {
        let schema: Schema = P::json_schema(&mut self.generator);
        let schema: Value = schema.into();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let mut parameters: Vec<Value> = properties
            .iter()
            .map(|(name, schema)| {
                let in_path = path.contains(&format!("{{{name}}}"));
                let mut schema = schema.clone();
                let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
                let mut schema = not_null(schema);
                bounded(name, &mut schema);
                json!({
                    "name": name,
                    "in": if in_path { "path" } else { "query" },
                    "required": in_path || required.contains(&Value::from(name.as_str())),
                    "description": about.unwrap_or_default(),
                    "schema": schema,
                })
            })
            .collect();
        let header = |name: &str, about: &str, schema: Value| {
            json!({
                "name": name, "in": "header", "required": false, "description": about,
                "schema": schema,
            })
        };
        if changes {
            let about = "Makes the call safe to retry: a repeated call returns the first answer.";
            let longest = Limits::default().name_bytes;
            let schema = json!({ "type": "string", "minLength": 1, "maxLength": longest });
            parameters.push(header("Idempotency-Key", about, schema));
        }
        if about.conditional {
            let about = "The expected ETag of the branch; if the branch has changed, the request fails with status 412.";
            let schema =
                json!({ "type": "string", "pattern": r#"^(\*|"[0-9a-f-]{36}\.[0-9]+")$"# });
            parameters.push(header("If-Match", about, schema));
        }
        parameters
    }

    /// Returns the document.
    pub(crate) fn finish(mut self) -> Value {
        let schemas = self.generator.take_definitions(true);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Tine",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Version control for conversations.",
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "security": [{}, { "token": [] }],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            },
        })
    }
}

/// Returns the content of a body: its schema, and an example.
fn with_example(schema: Value, example: Option<&str>) -> Value {
    let mut form = json!({ "schema": schema });
    if let Some(example) = example {
        form["example"] = serde_json::from_str(example).expect("examples are JSON");
    }
    form
}

/// Adds the constraints that follow from the name of a parameter.
fn bounded(name: &str, schema: &mut Value) {
    let limits = Limits::default();
    match name {
        "conversation_id" | "project_id" | "project" => {
            schema["minLength"] = 1.into();
            schema["maxLength"] = limits.name_bytes.into();
            schema["pattern"] = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$".into();
        }
        "entity" => schema["pattern"] = "^ent_[0-9a-f]{32}$".into(),
        "source" => schema["pattern"] = "^src_[0-9a-f]{32}$".into(),
        "interpretation" | "with" => schema["pattern"] = "^int_[0-9a-f]{32}$".into(),
        "hash" => schema["pattern"] = "^(sha256:)?[0-9a-f]{64}$".into(),
        name if name.ends_with("entity_id") => {
            schema["pattern"] = "^ent_[0-9a-f]{32}$".into();
        }
        "source_id" | "source_source_id" | "target_source_id" => {
            schema["pattern"] = "^src_[0-9a-f]{32}$".into();
        }
        "limit" | "window" => {
            schema["minimum"] = 1.into();
            schema["maximum"] = limits.page_rows.into();
        }
        "rows" => {
            schema["minimum"] = 1.into();
            schema["maximum"] = tine_engine::OUTLINE_ROWS.into();
        }
        _ => {}
    }
}

/// Removes `null` from the schema of a parameter: an absent parameter is never null.
fn not_null(mut schema: Value) -> Value {
    if let Some(types) = schema["type"].as_array() {
        let rest: Vec<&Value> = types.iter().filter(|it| *it != "null").collect();
        if let [only] = rest.as_slice() {
            schema["type"] = (*only).clone();
        }
    }
    if let Some(object) = schema.as_object_mut()
        && let Some(Value::Array(forms)) = object.get("anyOf")
    {
        let rest: Vec<Value> = forms.iter().filter(|it| it["type"] != "null").cloned().collect();
        if let [only] = rest.as_slice() {
            return only.clone();
        }
    }
    if let Some(object) = schema.as_object_mut() {
        object.remove("default");
    }
    schema
}

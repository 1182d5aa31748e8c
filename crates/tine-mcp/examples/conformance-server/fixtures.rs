//! The tools, resources and prompts that the protocol's conformance suite expects of a server, by
//! the names and with the behaviour that it prescribes.

// Logging, sampling and roots are on their way out of the protocol, and in the suite.
#![allow(deprecated)]
#![allow(clippy::unwrap_used, reason = "constants that the suite prescribes")]

use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionSink};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tine_mcp::ExactArguments;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const KEY: &[u8] = b"the suite seals nothing that is secret, so any key will do";

/// Tools without arguments.
const PLAIN: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
];

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn with_arguments() -> Vec<Tool> {
    let one = |tool: &'static str, name: &str| {
        let schema = json!({
            "type": "object",
            "properties": { name: { "type": "string" } },
            "required": [name],
        });
        Tool::new(tool, "For the suite", object(schema))
    };
    let everything = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "address",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
        },
        "allOf": [{ "anyOf": [{ "required": ["name"] }, { "required": ["address"] }] }],
        "if": { "required": ["address"] },
        "then": { "properties": { "address": { "required": ["street"] } } },
        "else": { "required": ["name"] },
        "additionalProperties": false,
    });
    vec![
        one("test_sampling", "prompt"),
        one("test_elicitation", "message"),
        Tool::new("json_schema_2020_12_tool", "For the suite", object(everything)),
        header_tool(),
    ]
}

fn header_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "value": { "type": "string", "x-mcp-header": "Value" } },
        "required": ["value"],
    });
    Tool::new("test_custom_header", "For the suite", object(schema))
}

/// Returns the tool whose argument is sent as a header as well.
pub(crate) fn tool(name: &str) -> Option<Tool> {
    (name == "test_custom_header").then(header_tool)
}

/// Adds the capabilities that the suite expects.
pub(crate) fn add_capabilities(capabilities: &mut ServerCapabilities) {
    capabilities.logging = Some(JsonObject::new());
    if let Some(tools) = &mut capabilities.tools {
        tools.list_changed = Some(true);
    }
    if let Some(prompts) = &mut capabilities.prompts {
        prompts.list_changed = Some(true);
    }
}

/// Adds the tools of the suite.
pub(crate) fn add_tools(tools: &mut Vec<Tool>) {
    let nothing = || object(json!({ "type": "object", "properties": {} }));
    tools.extend(PLAIN.iter().map(|name| Tool::new(*name, "For the suite", nothing())));
    tools.extend(with_arguments());
}

/// Returns whether a tool is one of the suite.
pub(crate) fn is_tool(name: &str) -> bool {
    name.starts_with("test_") || name == "json_schema_2020_12_tool"
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn embedded(uri: &str, mime_type: &str, said: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(said, uri).with_mime_type(mime_type))
}

async fn log(context: &RequestContext<RoleServer>, level: LoggingLevel, message: &str) {
    let said = LoggingMessageNotificationParam::new(level, json!(message)).with_logger("tine");
    let _ = context.peer.notify_logging_message(said).await;
}

/// Calls a tool of the suite. `listeners` are notified by the tools that change a list.
pub(crate) async fn call(
    request: CallToolRequestParams,
    mut context: RequestContext<RoleServer>,
    listeners: Vec<SubscriptionSink>,
) -> Result<CallToolResponse, ErrorData> {
    if request.name.starts_with("test_input_required_result_") {
        return with_input(&request, &context.meta);
    }
    let arguments = ExactArguments::take(&mut context).unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(|value| value.as_str());
    let image = || ContentBlock::image(PNG, "image/png");
    let pause = || tokio::time::sleep(Duration::from_millis(50));
    let result = match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => CallToolResult::success(vec![image()]),
        "test_audio_content" => {
            CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")])
        }
        "test_embedded_resource" => CallToolResult::success(vec![embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            image(),
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ]),
        "test_tool_with_logging" => {
            for message in
                ["Tool execution started", "Tool processing data", "Tool execution completed"]
            {
                log(&context, LoggingLevel::Info, message).await;
                pause().await;
            }
            text("Logging test completed")
        }
        "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )]),
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let step = ProgressNotificationParam::new(token, progress).with_total(100.0);
                    let _ = context.peer.notify_progress(step).await;
                }
                pause().await;
            }
            text("Progress test completed")
        }
        "test_custom_header" => match argument("value") {
            Some(value) => text(value),
            None => return Err(ErrorData::invalid_params("value must be a string", None)),
        },
        "test_sampling" => {
            let prompt = argument("prompt").unwrap_or("Hello");
            let asked = vec![SamplingMessage::user_text(prompt)];
            let asked = CreateMessageRequestParams::new(asked, 100);
            match context.peer.create_message(asked).await {
                Ok(answer) => {
                    let said = answer.message.content.first().and_then(|it| it.as_text());
                    text(format!("LLM response: {}", said.map_or("", |said| said.text.as_str())))
                }
                Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
            }
        }
        "test_elicitation" => {
            let message = argument("message").unwrap_or("Please provide your information");
            let properties = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            elicited(&context, message, properties, json!(["username", "email"])).await
        }
        "test_elicitation_sep1034_defaults" => {
            let properties = json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": { "type": "boolean", "default": true },
            });
            elicited(&context, "Please provide values", properties, json!([])).await
        }
        "test_elicitation_sep1330_enums" => {
            let titled = |name: &str| {
                json!([
                    { "const": "value1", "title": format!("First {name}") },
                    { "const": "value2", "title": format!("Second {name}") },
                    { "const": "value3", "title": format!("Third {name}") },
                ])
            };
            let options = ["option1", "option2", "option3"];
            let properties = json!({
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titled("Option") },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": { "type": "string", "enum": options },
                },
                "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
            });
            elicited(&context, "Please choose", properties, json!([])).await
        }
        "json_schema_2020_12_tool" => {
            text(format!("Hello, {}!", argument("name").unwrap_or("world")))
        }
        "test_reconnection" => {
            pause().await;
            text("Reconnection test completed")
        }
        change @ ("test_trigger_tool_change" | "test_trigger_prompt_change") => {
            for sink in listeners {
                let _ = match change {
                    "test_trigger_tool_change" => sink.notify_tool_list_changed().await,
                    _ => sink.notify_prompt_list_changed().await,
                };
            }
            text("Change triggered")
        }
        "test_missing_capability" => {
            let capabilities = context.meta.client_capabilities().unwrap_or_default();
            if capabilities.sampling.is_none() {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            text("Required capability declared")
        }
        "test_streaming_elicitation" => {
            let asked = ask("Provide a value", "value", "string");
            return Ok(required([("streaming_elicitation", asked)]));
        }
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                log(&context, level, "logLevel was requested").await;
            }
            text("Logging tool completed")
        }
        other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
    };
    Ok(result.into())
}

fn form(message: &str, properties: Value, required: Value) -> ElicitRequestParams {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).unwrap(),
    }
}

async fn elicited(
    context: &RequestContext<RoleServer>,
    message: &str,
    properties: Value,
    required: Value,
) -> CallToolResult {
    match context.peer.create_elicitation(form(message, properties, required)).await {
        Ok(answer) => {
            let action = match answer.action {
                ElicitationAction::Accept => "accept",
                ElicitationAction::Decline => "decline",
                _ => "cancel",
            };
            let content = answer.content.map(|it| json!(it)).unwrap_or_default();
            text(format!("User response: action={action}, content={content}"))
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

fn ask(message: &str, name: &str, kind: &str) -> InputRequest {
    let properties = json!({ name: { "type": kind } });
    InputRequest::Elicitation(ElicitRequest::new(form(message, properties, json!([name]))))
}

fn ask_name() -> InputRequest {
    ask("What is your name?", "name", "string")
}

fn ask_model(prompt: &str) -> InputRequest {
    let asked = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    InputRequest::CreateMessage(CreateMessageRequest::new(asked))
}

fn ask_roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

fn requests<const N: usize>(all: [(&str, InputRequest); N]) -> InputRequests {
    let mut requests = InputRequests::new();
    for (name, request) in all {
        requests.insert(name.into(), request);
    }
    requests
}

fn required<const N: usize>(all: [(&str, InputRequest); N]) -> CallToolResponse {
    InputRequiredResult::from_input_requests(requests(all)).into()
}

fn sealed<const N: usize>(
    all: [(&str, InputRequest); N],
    state: Value,
) -> Result<CallToolResponse, ErrorData> {
    let state = codec().seal_json(&state);
    let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(InputRequiredResult::new(Some(requests(all)), Some(state)).into())
}

fn codec() -> RequestStateCodec {
    RequestStateCodec::new_unchecked(KEY)
}

fn opened(state: &str) -> Result<Value, ErrorData> {
    codec()
        .open_json(state)
        .map_err(|_| ErrorData::invalid_params("requestState failed verification", None))
}

/// Returns a response of the client, if it is an object.
fn response<'r>(responses: Option<&'r InputResponses>, name: &str) -> Option<&'r Value> {
    responses?.get(name).filter(|response| response.is_object())
}

fn with_input(
    request: &CallToolRequestParams,
    meta: &RequestMetaObject,
) -> Result<CallToolResponse, ErrorData> {
    let responses = request.input_responses.as_ref();
    let given = |name: &str| response(responses, name);
    let state = request.request_state.as_deref().map(opened).transpose()?;
    let kind = request.name.trim_start_matches("test_input_required_result_");
    match kind {
        "elicitation" => Ok(match given("user_name") {
            Some(said) => {
                let name = said.pointer("/content/name").and_then(Value::as_str);
                text(format!("Hello, {}!", name.unwrap_or("friend"))).into()
            }
            None => required([("user_name", ask_name())]),
        }),
        "sampling" => Ok(match given("capital_question") {
            Some(said) => {
                let said = said.pointer("/content/text").and_then(Value::as_str);
                text(format!("Sampling response: {}", said.unwrap_or_default())).into()
            }
            None => required([("capital_question", ask_model("What is the capital of France?"))]),
        }),
        "list_roots" => Ok(match given("client_roots") {
            Some(said) => text(format!("Client roots: {}", said["roots"])).into(),
            None => required([("client_roots", ask_roots())]),
        }),
        "request_state" | "tampered_state" => match state {
            None => {
                sealed([("confirm", ask("Please confirm", "ok", "boolean"))], json!({ "at": 1 }))
            }
            Some(_) => Ok(text("Confirmed: state-ok").into()),
        },
        "multiple_inputs" => {
            let all = ["user_name", "greeting", "client_roots"];
            if state.is_some() && all.iter().all(|name| given(name).is_some()) {
                return Ok(text("All inputs received").into());
            }
            let wanted = [
                ("user_name", ask_name()),
                ("greeting", ask_model("Generate a greeting")),
                ("client_roots", ask_roots()),
            ];
            sealed(wanted, json!({ "at": 1 }))
        }
        "multi_round" => match state.and_then(|state| state["round"].as_i64()).unwrap_or(0) {
            0 => sealed(
                [("step1", ask("Step 1: your name?", "name", "string"))],
                json!({ "round": 1 }),
            ),
            1 => sealed(
                [("step2", ask("Step 2: a color?", "color", "string"))],
                json!({ "round": 2 }),
            ),
            _ => Ok(text("Multi-round flow complete").into()),
        },
        "capabilities" => {
            if responses.is_some() {
                return Ok(text("Capability-aware flow complete").into());
            }
            let capabilities = meta.client_capabilities().unwrap_or_default();
            let mut wanted = InputRequests::new();
            if capabilities.elicitation.is_some() {
                wanted.insert("user_name".into(), ask_name());
            }
            if capabilities.sampling.is_some() {
                wanted.insert("greeting".into(), ask_model("Generate a greeting"));
            }
            if capabilities.roots.is_some() {
                wanted.insert("client_roots".into(), ask_roots());
            }
            match wanted.is_empty() {
                true => Ok(text("The client can be asked for nothing").into()),
                false => Ok(InputRequiredResult::from_input_requests(wanted).into()),
            }
        }
        other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
    }
}

/// Adds the resources of the suite.
pub(crate) fn add_resources(resources: &mut Vec<Resource>) {
    let one = |uri: &str, mime_type: &str| {
        Resource::new(uri, uri).with_description("For the suite").with_mime_type(mime_type)
    };
    resources.push(one("test://static-text", "text/plain"));
    resources.push(one("test://static-binary", "image/png"));
    resources.push(one("test://watched-resource", "text/plain"));
}

/// Returns whether a resource is one of the suite.
pub(crate) fn is_resource(uri: &str) -> bool {
    uri.starts_with("test://")
}

/// Returns the template of the suite.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "data")
        .with_description("For the suite")
        .with_mime_type("application/json")
}

/// Reads a resource of the suite.
pub(crate) fn read(uri: &str) -> Option<ReadResourceResult> {
    let contents = match uri {
        "test://static-text" | "test://watched-resource" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
        }
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        other => {
            let id = other.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    let read = ReadResourceResult::new(vec![contents]);
    Some(read.with_ttl_ms(60_000).with_cache_scope(CacheScope::Private))
}

/// Adds the prompts of the suite.
pub(crate) fn add_prompts(prompts: &mut Vec<Prompt>) {
    let argument = |name: &str, required| {
        PromptArgument::new(name).with_description("For the suite").with_required(required)
    };
    let plain = |name: &str| Prompt::new(name, Some("For the suite"), None);
    prompts.push(plain("test_simple_prompt"));
    prompts.push(Prompt::new(
        "test_prompt_with_arguments",
        Some("For the suite"),
        Some(vec![argument("arg1", true), argument("arg2", false)]),
    ));
    prompts.push(plain("test_prompt_with_embedded_resource"));
    prompts.push(plain("test_prompt_with_image"));
    prompts.push(plain("test_input_required_result_prompt"));
}

/// Renders a prompt of the suite.
pub(crate) fn prompt(
    request: &GetPromptRequestParams,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    let said = |text: String| PromptMessage::new_text(Role::User, text);
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![said("This is a simple test prompt.".to_owned())],
        "test_prompt_with_arguments" => vec![said(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => {
            let uri = match argument("resourceUri") {
                "" => "test://static-text",
                uri => uri,
            };
            let resource = embedded(uri, "text/plain", "Embedded resource content for testing.");
            vec![
                PromptMessage::new(Role::User, resource),
                said("Please process the embedded resource above.".to_owned()),
            ]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            said("Please analyze the image above.".to_owned()),
        ],
        "test_input_required_result_prompt" => {
            match response(request.input_responses.as_ref(), "user_context") {
                None => {
                    let asked = ask("What context should the prompt use?", "context", "string");
                    let wanted = requests([("user_context", asked)]);
                    return Some(Ok(InputRequiredResult::from_input_requests(wanted).into()));
                }
                Some(given) => {
                    let context = given.pointer("/content/context").and_then(Value::as_str);
                    vec![said(format!("Prompt with context: {}", context.unwrap_or_default()))]
                }
            }
        }
        _ => return None,
    };
    Some(Ok(GetPromptResult::new(messages).into()))
}

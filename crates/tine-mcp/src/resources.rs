//! Resources: conversations, turns, entities and sources by URI.
//!
//! A resource is complete where the answers of tools are truncated, up to its own size limit. A URI
//! without a project means the project of calls that name none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CacheScope, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};
use tine_api::{Answer, TurnView};
use tine_core::{ConversationId, EntityId, ErrorKind, ProjectId, SourceId};
use tine_engine::{AsOf, Call, Engine, Error, Page, PathQuery, RecentQuery, TurnRef};

use crate::access_scope::AccessScope;
use crate::answer::{RECORDED_NOTE, Truncator};
use crate::exact_integers;
use crate::mcp_error::McpError;
use crate::record_json;
use crate::server::McpOptions;
use crate::shared_arguments;

/// The largest resource.
const MAX_BYTES: usize = 16 << 20;

/// The last turns of the main branch in the resource of a conversation.
const LAST_TURNS: usize = 1_000;

const PAGE_CONVERSATIONS: usize = 50;

/// How long a host may cache a source, whose bytes never change.
const SOURCE_TTL_MS: u64 = 60_000;

/// What a URI names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourceTarget {
    Conversation(String),
    Turn(String),
    Entity(String),
    Source(String),
}

/// A parsed URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceUri {
    pub target: ResourceTarget,
    pub project: Option<String>,
}

impl ResourceUri {
    pub(crate) fn parse(uri: &str) -> Result<Self, McpError> {
        let unknown = || {
            McpError::new(ErrorKind::NotFound, format!("there is no resource `{}`", shown(uri)))
                .next(
                    "resources are tine://conversation/ID, tine://turn/ID, tine://entity/ID and \
                 tine://source/ID",
                )
        };
        let rest = uri.strip_prefix("tine://").ok_or_else(unknown)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (kind, id) = path.split_once('/').ok_or_else(unknown)?;
        let id = percent_decoded(id).filter(|id| !id.is_empty()).ok_or_else(unknown)?;
        let target = match kind {
            "conversation" => ResourceTarget::Conversation(id),
            "turn" => ResourceTarget::Turn(id),
            "entity" => ResourceTarget::Entity(id),
            "source" => ResourceTarget::Source(id),
            _ => return Err(unknown()),
        };
        let project = match query.split_once('=') {
            None if query.is_empty() => None,
            Some(("project_id", project)) => Some(percent_decoded(project).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        };
        Ok(ResourceUri { target, project })
    }

    /// Returns the call that reads the resource, if the caller has access.
    pub(crate) fn call(
        &self,
        engine: &Engine,
        options: &McpOptions,
        scope: &AccessScope,
    ) -> Result<Call, McpError> {
        let named = self.project.as_deref().map(|id| ProjectId::new(id, engine.limits()));
        let named = named.transpose().map_err(Error::from)?;
        let project = scope.project(named, &options.project);
        scope.check(&project, false)?;
        Ok(Call::by(options.actor.clone()).in_project(project))
    }
}

fn shown(uri: &str) -> String {
    uri.chars().take(200).collect()
}

/// Decodes a percent-encoded part of a URI.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let value = digit(rest.next())? * 16 + digit(rest.next())?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Percent-encodes a part of a URI.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Returns whether a URI can be subscribed to.
pub(crate) fn can_be_subscribed(uri: &str) -> bool {
    ResourceUri::parse(uri).is_ok()
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type("application/json")
    };
    vec![
        template(
            "tine://conversation/{id}",
            "conversation",
            "A conversation with its branches and the turns of main",
        ),
        template("tine://turn/{id}", "turn", "A complete turn"),
        template("tine://entity/{id}", "entity", "An entity with all its fields"),
        ResourceTemplate::new("tine://source/{id}", "source")
            .with_description("The original bytes of a source"),
    ]
}

/// Lists conversations, most recently active first.
pub(crate) fn list(
    engine: &Engine,
    options: &McpOptions,
    scope: &AccessScope,
    cursor: Option<String>,
) -> Result<ListResourcesResult, McpError> {
    let project = scope.project(None, &options.project);
    scope.check(&project, false)?;
    let call = Call::by(options.actor.clone()).in_project(project);
    let page = Page { cursor, limit: Some(PAGE_CONVERSATIONS) };
    let found = engine.recent_conversations(&call, &RecentQuery::default(), page)?;
    let resource = |found: &tine_engine::ConversationView| {
        let uri = format!("tine://conversation/{}", percent_encoded(found.id.as_str()));
        let resource = Resource::new(uri, found.id.as_str()).with_mime_type("application/json");
        match found.label() {
            Some(label) => resource.with_title(label),
            None => resource,
        }
    };
    let resources: Vec<Resource> = found.items.iter().map(resource).collect();
    let mut result = ListResourcesResult::with_all_items(resources)
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private);
    result.next_cursor = found.next;
    Ok(result)
}

/// Reads a resource.
pub(crate) fn read(
    engine: &Engine,
    options: &McpOptions,
    scope: &AccessScope,
    uri: &str,
) -> Result<ReadResourceResult, McpError> {
    let address = ResourceUri::parse(uri)?;
    let call = address.call(engine, options, scope)?;
    let (contents, fresh_ms) = match &address.target {
        ResourceTarget::Conversation(id) => {
            (json_contents(uri, exact_json(&conversation(engine, &call, id)?))?, 0)
        }
        ResourceTarget::Turn(id) => {
            let turn = TurnRef { conversation: None, turn: shared_arguments::reference(id)? };
            let turn = engine.turn(&call, turn)?;
            (serialised(uri, &call, &turn)?, 0)
        }
        ResourceTarget::Entity(id) => {
            let id: EntityId = id.parse().map_err(Error::Name)?;
            let found = engine.entity(&call, id, AsOf::default())?;
            let form =
                with_project(record_json::entity(found, &mut Truncator::new(usize::MAX)), &call);
            (json_contents(uri, exact_json(&form))?, 0)
        }
        ResourceTarget::Source(id) => (source(engine, &call, uri, id)?, SOURCE_TTL_MS),
    };
    Ok(ReadResourceResult::new(vec![contents])
        .with_ttl_ms(fresh_ms)
        .with_cache_scope(CacheScope::Private))
}

fn exact_json(form: &Value) -> String {
    exact_integers::write_numbers(form.to_string())
}

fn with_project(mut form: Value, call: &Call) -> Value {
    form["project_id"] = call.project.as_str().into();
    form["note"] = RECORDED_NOTE.into();
    form
}

fn conversation(engine: &Engine, call: &Call, id: &str) -> Result<Value, McpError> {
    let id = ConversationId::new(id, engine.limits()).map_err(Error::from)?;
    let found = engine.conversation(call, &id)?;
    let branches = engine.branches(call, &id)?;
    let selection = tine_engine::Selection::Last(LAST_TURNS);
    let path = engine.path(call, PathQuery { selection, ..PathQuery::of(id.clone()) })?;
    let mut truncator = Truncator::new(MAX_BYTES / 64);
    let mut turns: Vec<Value> =
        path.turns.into_iter().map(|turn| record_json::turn(turn, &mut truncator)).collect();
    let mut bytes = turns.iter().map(crate::answer::json_bytes).sum::<usize>();
    let mut left_out = 0;
    while bytes > MAX_BYTES / 4 && turns.len() > 1 {
        bytes -= crate::answer::json_bytes(&turns.remove(0));
        left_out += 1;
    }
    if left_out > 0 {
        truncator.notes.push(format!("{left_out} earlier turns; get_path pages through them"));
    }
    let mut form = record_json::conversation(&found);
    form["branches"] = branches.iter().map(record_json::branch).collect();
    form["turns"] = turns.into();
    form["cut"] = truncator.into_field();
    Ok(crate::answer::without_nulls(with_project(form, call)))
}

fn serialised(uri: &str, call: &Call, turn: &TurnView) -> Result<ResourceContents, McpError> {
    // Serialised directly, so that numbers keep every digit.
    let text = serde_json::to_string(&Answer::new(&call.project, turn));
    let text = text.map_err(|error| McpError::new(ErrorKind::Internal, error.to_string()))?;
    json_contents(uri, text)
}

fn json_contents(uri: &str, text: String) -> Result<ResourceContents, McpError> {
    bounded(text.len())?;
    Ok(ResourceContents::text(text, uri).with_mime_type("application/json"))
}

fn bounded(bytes: usize) -> Result<(), McpError> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let why = format!("the resource has {bytes} bytes; the limit is {MAX_BYTES}");
    Err(McpError::new(ErrorKind::TooLarge, why))
}

fn source(engine: &Engine, call: &Call, uri: &str, id: &str) -> Result<ResourceContents, McpError> {
    let id: SourceId = id.parse().map_err(Error::Name)?;
    let found = engine.source(call, id)?;
    let size = usize::try_from(found.size_bytes).unwrap_or(usize::MAX);
    if size > MAX_BYTES {
        let why = format!(
            "the source has {size} bytes, more than a resource may have; read it in pieces with \
             retrieve_source"
        );
        return Err(McpError::new(ErrorKind::TooLarge, why));
    }
    let mut bytes = Vec::with_capacity(size);
    let mut nth = 0;
    while let Some(piece) = engine.source_piece(call, id, nth)? {
        bytes.extend(piece);
        nth += 1;
    }
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri),
    };
    let about = json!({ "note": RECORDED_NOTE, "content_hash": found.content_hash.to_string() });
    let meta = match about {
        Value::Object(about) => rmcp::model::MetaObject(about),
        _ => rmcp::model::MetaObject::default(),
    };
    Ok(contents.with_mime_type(found.mime_type).with_meta(meta))
}

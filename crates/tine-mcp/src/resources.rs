//! Resources: conversations, turns, entities and sources by their addresses.
//!
//! A resource is whole where the tools' answers are cut, up to a bound of its own. An address
//! without a project is about the project that calls without one are about.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CacheScope, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};
use tine_api::{Answer, TurnView};
use tine_core::json::{Json, MAX_DEPTH, parse};
use tine_core::{ConversationId, EntityId, ErrorKind, ProjectId, SourceId};
use tine_engine::{AsOf, Call, Engine, EntityView, Error, Page, PathQuery, TurnRef};

use crate::access::Reach;
use crate::answer::{Cuts, RECORDED};
use crate::arguments;
use crate::forms;
use crate::refusal::Refusal;
use crate::server::Options;

/// Bytes of one resource.
const MOST_BYTES: usize = 16 << 20;

/// Turns of a conversation that are read at once: the last ones of its main line.
const LAST_TURNS: usize = 1_000;

/// Conversations in a page.
const PAGE: usize = 50;

/// How long something that cannot change may be kept.
const FRESH_MS: u64 = 60_000;

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Conversation(String),
    Turn(String),
    Entity(String),
    Source(String),
}

/// An address taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub thing: Thing,
    pub project: Option<String>,
}

impl Address {
    pub(crate) fn parse(uri: &str) -> Result<Self, Refusal> {
        let unknown = || {
            Refusal::new(ErrorKind::NotFound, format!("there is no resource `{}`", shown(uri)))
                .next(
                    "resources are tine://conversation/ID, tine://turn/ID, tine://entity/ID and \
                 tine://source/ID",
                )
        };
        let rest = uri.strip_prefix("tine://").ok_or_else(unknown)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (kind, id) = path.split_once('/').ok_or_else(unknown)?;
        let id = decoded(id).filter(|id| !id.is_empty()).ok_or_else(unknown)?;
        let thing = match kind {
            "conversation" => Thing::Conversation(id),
            "turn" => Thing::Turn(id),
            "entity" => Thing::Entity(id),
            "source" => Thing::Source(id),
            _ => return Err(unknown()),
        };
        let project = match query.split_once('=') {
            None if query.is_empty() => None,
            Some(("project_id", project)) => Some(decoded(project).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        };
        Ok(Address { thing, project })
    }

    /// The call that reading it is, if the caller reaches it.
    pub(crate) fn call(
        &self,
        engine: &Engine,
        options: &Options,
        reach: &Reach,
    ) -> Result<Call, Refusal> {
        let named = self.project.as_deref().map(|id| ProjectId::new(id, engine.limits()));
        let named = named.transpose().map_err(Error::from)?;
        let project = reach.project(named, &options.project);
        reach.check(&project, false)?;
        Ok(Call::by(options.actor.clone()).in_project(project))
    }
}

fn shown(uri: &str) -> String {
    uri.chars().take(200).collect()
}

/// A part of an address with its escapes resolved.
fn decoded(text: &str) -> Option<String> {
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

/// A part of an address with everything escaped that might mean something there.
pub(crate) fn encoded(text: &str) -> String {
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

/// Returns whether a resource can be followed.
pub(crate) fn can_be_followed(uri: &str) -> bool {
    Address::parse(uri).is_ok()
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type("application/json")
    };
    vec![
        template("tine://conversation/{id}", "conversation", "A conversation: branches, main line"),
        template("tine://turn/{id}", "turn", "One turn in full"),
        template("tine://entity/{id}", "entity", "What holds of an entity, with all its fields"),
        ResourceTemplate::new("tine://source/{id}", "source")
            .with_description("The bytes of a source as they came"),
    ]
}

/// Conversations, in the order in which they were made.
pub(crate) fn list(
    engine: &Engine,
    options: &Options,
    reach: &Reach,
    cursor: Option<String>,
) -> Result<ListResourcesResult, Refusal> {
    let project = reach.project(None, &options.project);
    reach.check(&project, false)?;
    let call = Call::by(options.actor.clone()).in_project(project);
    let page = Page { cursor, limit: Some(PAGE) };
    let found = engine.conversations(&call, false, page)?;
    let resource = |found: &tine_engine::ConversationView| {
        let uri = format!("tine://conversation/{}", encoded(found.id.as_str()));
        let resource = Resource::new(uri, found.id.as_str()).with_mime_type("application/json");
        match &found.title {
            Some(title) => resource.with_title(title.as_str()),
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

/// One resource.
pub(crate) fn read(
    engine: &Engine,
    options: &Options,
    reach: &Reach,
    uri: &str,
) -> Result<ReadResourceResult, Refusal> {
    let address = Address::parse(uri)?;
    let call = address.call(engine, options, reach)?;
    let (contents, fresh_ms) = match &address.thing {
        Thing::Conversation(id) => {
            (json_contents(uri, conversation(engine, &call, id)?.to_string())?, 0)
        }
        Thing::Turn(id) => {
            let turn = TurnRef { conversation: None, turn: arguments::reference(id)? };
            let turn = engine.turn(&call, turn)?;
            (serialised(uri, &call, &turn)?, 0)
        }
        Thing::Entity(id) => {
            let id: EntityId = id.parse().map_err(Error::Name)?;
            let found = engine.entity(&call, id, AsOf::default())?;
            (json_contents(uri, entity(found, &call)?)?, 0)
        }
        Thing::Source(id) => (source(engine, &call, uri, id)?, FRESH_MS),
    };
    Ok(ReadResourceResult::new(vec![contents])
        .with_ttl_ms(fresh_ms)
        .with_cache_scope(CacheScope::Private))
}

fn with_project(mut form: Value, call: &Call) -> Value {
    form["project_id"] = call.project.as_str().into();
    form["note"] = RECORDED.into();
    form
}

fn conversation(engine: &Engine, call: &Call, id: &str) -> Result<Value, Refusal> {
    let id = ConversationId::new(id, engine.limits()).map_err(Error::from)?;
    let found = engine.conversation(call, &id)?;
    let branches = engine.branches(call, &id)?;
    let selection = tine_engine::Selection::Last(LAST_TURNS);
    let path = engine.path(call, PathQuery { selection, ..PathQuery::of(id.clone()) })?;
    let mut cuts = Cuts::new(MOST_BYTES / 64);
    let mut turns: Vec<Value> =
        path.turns.into_iter().map(|turn| forms::turn(turn, &mut cuts)).collect();
    let mut bytes = turns.iter().map(crate::answer::size).sum::<usize>();
    let mut left_out = 0;
    while bytes > MOST_BYTES / 4 && turns.len() > 1 {
        bytes -= crate::answer::size(&turns.remove(0));
        left_out += 1;
    }
    if left_out > 0 {
        cuts.told.push(format!("{left_out} earlier turns; get_path reads them page by page"));
    }
    let mut form = forms::conversation(&found);
    form["branches"] = branches.iter().map(forms::branch).collect();
    form["turns"] = turns.into();
    form["cut"] = cuts.into_field();
    Ok(crate::answer::lean(with_project(form, call)))
}

/// Returns the form of an entity with its fields as they were stored: no number loses a digit.
fn entity(mut found: EntityView, call: &Call) -> Result<String, Refusal> {
    let fields = std::mem::take(&mut found.snapshot.fields);
    let form = forms::entity(found, &mut Cuts::new(usize::MAX));
    let form = with_project(form, call).to_string();
    let mut form = parse(form.as_bytes(), MAX_DEPTH).map_err(Error::from)?;
    if let Json::Object(members) = &mut form {
        members.insert("fields", fields.into());
    }
    Ok(form.to_canonical())
}

fn serialised(uri: &str, call: &Call, turn: &TurnView) -> Result<ResourceContents, Refusal> {
    // Written as it is, so that no number loses a digit.
    let text = serde_json::to_string(&Answer::new(&call.project, turn));
    let text = text.map_err(|error| Refusal::new(ErrorKind::Internal, error.to_string()))?;
    json_contents(uri, text)
}

fn json_contents(uri: &str, text: String) -> Result<ResourceContents, Refusal> {
    bounded(text.len())?;
    Ok(ResourceContents::text(text, uri).with_mime_type("application/json"))
}

fn bounded(bytes: usize) -> Result<(), Refusal> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let why = format!("this resource has {bytes} bytes; at most {MOST_BYTES} are read at once");
    Err(Refusal::new(ErrorKind::TooLarge, why))
}

fn source(engine: &Engine, call: &Call, uri: &str, id: &str) -> Result<ResourceContents, Refusal> {
    let id: SourceId = id.parse().map_err(Error::Name)?;
    let found = engine.source(call, id)?;
    let size = usize::try_from(found.size_bytes).unwrap_or(usize::MAX);
    if size > MOST_BYTES {
        let why = format!(
            "the source has {size} bytes, more than are read at once; retrieve_source reads it \
             piece by piece"
        );
        return Err(Refusal::new(ErrorKind::TooLarge, why));
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
    let about = json!({ "note": RECORDED, "content_hash": found.content_hash.to_string() });
    let meta = match about {
        Value::Object(about) => rmcp::model::MetaObject(about),
        _ => rmcp::model::MetaObject::default(),
    };
    Ok(contents.with_mime_type(found.mime_type).with_meta(meta))
}

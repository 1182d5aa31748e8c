//! The tools: what each is called, what it takes, what it does.
//!
//! A tool is one entry in its family's table and one function over the engine. What all tools
//! take (the project, the key that makes a change safe to repeat, limit and cursor) is added to
//! their schemas here and read here.

mod memory;
mod store;
mod tree;
mod version;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use tine_core::ids::check_key;
use tine_core::json::{Json, Object};
use tine_core::{ErrorKind, Limits, ProjectId};
use tine_engine::{Call, Engine, Error};

use crate::access::Reach;
use crate::answer::{Answer, Room};
use crate::refusal::Refusal;
use crate::schema;
use crate::server::Options;

/// Which tools a host is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toolset {
    /// The dozen for daily work.
    #[default]
    Core,
    /// Everything about what was learned.
    Memory,
    /// Everything about the tree.
    Tree,
    /// All of them.
    All,
}

impl Toolset {
    /// Every set.
    pub const ALL: [Toolset; 4] = [Toolset::Core, Toolset::Memory, Toolset::Tree, Toolset::All];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Toolset::Core => "core",
            Toolset::Memory => "memory",
            Toolset::Tree => "tree",
            Toolset::All => "all",
        }
    }
}

/// What a tool does to the store, as the protocol's hints have it. No tool destroys anything, and
/// none reaches beyond the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// Adds something each time.
    Adds,
    /// Leads to the same state however often it is called.
    Settles,
}

/// A tool.
pub(crate) struct Spec {
    pub name: &'static str,
    pub about: &'static str,
    pub effect: Effect,
    /// Whether it is one of the dozen.
    pub core: bool,
    /// Whether it is about what was learned; else about the tree. `None`: both.
    pub memory: Option<bool>,
    pub paged: bool,
    pub input: fn() -> JsonObject,
    /// Fields that are always in its answer, and their types.
    pub output: &'static [(&'static str, &'static str)],
    pub run: fn(&ToolContext, Object) -> Result<Answer, Refusal>,
}

/// Makes a tool's function out of one with typed arguments.
macro_rules! typed {
    ($arguments:ty, $run:path) => {
        |context, arguments| {
            let arguments = <$arguments as crate::typed::FromObject>::from_object("", arguments)?;
            $run(context, arguments)
        }
    };
}
pub(crate) use typed;

/// What a tool runs with: the engine, the caller, the project, and how to report progress.
pub(crate) struct ToolContext {
    pub engine: Engine,
    pub call: Call,
    pub options: Arc<Options>,
    pub room: Room,
    pub stop: Arc<AtomicBool>,
    pub progress: Box<dyn Fn(f64, Option<f64>, String) + Send>,
}

impl ToolContext {
    pub(crate) fn limits(&self) -> &Limits {
        self.engine.limits()
    }

    /// Refuses to continue once the call is cancelled.
    pub(crate) fn check_not_cancelled(&self) -> Result<(), Refusal> {
        if self.stop.load(Ordering::Relaxed) {
            let why = "the call was cancelled; what was stored before that stays";
            return Err(Refusal::new(ErrorKind::Conflict, why));
        }
        Ok(())
    }
}

fn specs() -> impl Iterator<Item = &'static Spec> {
    [store::TOOLS, memory::TOOLS, tree::TOOLS, version::TOOLS].into_iter().flatten()
}

/// A tool with its schema, which is generated once.
pub(crate) struct OfferedTool {
    pub spec: &'static Spec,
    pub tool: Tool,
}

/// Returns every tool by name.
pub(crate) fn by_name() -> &'static BTreeMap<&'static str, OfferedTool> {
    static TOOLS: OnceLock<BTreeMap<&'static str, OfferedTool>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        specs().map(|spec| (spec.name, OfferedTool { spec, tool: described(spec) })).collect()
    })
}

/// Returns the tools of a set in the order of their tables, the most used first.
pub(crate) fn of(set: Toolset, read_only: bool) -> Vec<Tool> {
    let wanted = specs().filter(|spec| offered(spec, set, read_only));
    wanted.filter_map(|spec| Some(by_name().get(spec.name)?.tool.clone())).collect()
}

fn offered(spec: &Spec, set: Toolset, read_only: bool) -> bool {
    let in_set = match set {
        Toolset::Core => spec.core,
        Toolset::Memory => spec.memory != Some(false),
        Toolset::Tree => spec.memory != Some(true),
        Toolset::All => true,
    };
    in_set && (!read_only || spec.effect == Effect::Reads)
}

/// Finds a tool of the set by its name; the refusal lists the tools that are offered.
pub(crate) fn find(name: &str, options: &Options) -> Result<&'static OfferedTool, Refusal> {
    let there: Vec<&str> = specs()
        .filter(|spec| offered(spec, options.toolset, options.read_only))
        .map(|spec| spec.name)
        .collect();
    match by_name().get(name) {
        Some(known) if there.contains(&name) => Ok(known),
        other => {
            let set = options.toolset.as_str();
            let why = match other {
                Some(_) => format!("the tool `{name}` is not offered here (toolset {set})"),
                None => format!("there is no tool `{name}`"),
            };
            Err(Refusal::new(ErrorKind::NotFound, why)
                .next(format!("the tools here are: {}", there.join(", "))))
        }
    }
}

fn described(spec: &Spec) -> Tool {
    let mut input = (spec.input)();
    if let Some(Value::Object(properties)) = input.get_mut("properties") {
        if spec.paged {
            properties.insert("limit".to_owned(), json!({ "type": "integer" }));
            properties.insert("cursor".to_owned(), json!({ "type": "string" }));
        }
        properties.insert("project_id".to_owned(), json!({ "type": "string" }));
        if spec.effect != Effect::Reads {
            properties.insert("idempotency_key".to_owned(), json!({ "type": "string" }));
        }
    }
    let mut properties = Map::new();
    for (name, kind) in spec.output {
        properties.insert((*name).to_owned(), json!({ "type": kind }));
    }
    // None of them is required: a refusal has others, and some hosts check it all the same.
    let mut output = Map::new();
    output.insert("type".to_owned(), "object".into());
    output.insert("properties".to_owned(), Value::Object(properties));
    let hints = ToolAnnotations::new()
        .read_only(spec.effect == Effect::Reads)
        .destructive(false)
        .idempotent(spec.effect != Effect::Adds)
        .open_world(false);
    Tool::new(spec.name, spec.about, Arc::new(input))
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(hints)
}

/// A call with the arguments that all tools share taken out.
pub(crate) struct Common {
    pub call: Call,
    pub room: Room,
    pub arguments: Object,
}

/// Checks the arguments of a call, and reads those that every tool takes.
pub(crate) fn common(
    known: &OfferedTool,
    mut arguments: Object,
    reach: &Reach,
    options: &Options,
    limits: &Limits,
) -> Result<Common, Refusal> {
    // Hosts that fill in every argument send null for those that they leave out.
    arguments.retain(|_, value| !value.is_null());
    if known.spec.name == "store_conversation_turn" {
        store::translate(&mut arguments)?;
    }
    schema::check(&known.tool.input_schema, &arguments)?;
    let mut take = |name: &str| match arguments.remove(name) {
        Some(Json::String(text)) => Some(text),
        _ => None,
    };
    let named = match take("project_id") {
        Some(id) => Some(ProjectId::new(id, limits).map_err(Error::from)?),
        None => None,
    };
    let project = reach.project(named, &options.project);
    reach.check(&project, known.spec.effect != Effect::Reads)?;
    let actor = reach.actor.clone().unwrap_or_else(|| options.actor.clone());
    let mut call = Call::by(actor).in_project(project);
    if known.spec.effect != Effect::Reads {
        call.idempotency_key = take("idempotency_key");
        if let Some(key) = &call.idempotency_key {
            check_key("idempotency key", key, limits).map_err(Error::from)?;
        }
    }
    let mut room = Room::new(None, None);
    if known.spec.paged {
        let cursor = take("cursor");
        let limit = arguments.remove("limit").and_then(|limit| limit.as_u64());
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        if limit == Some(0) || limit.is_some_and(|limit| limit > limits.page_rows) {
            let why = format!("`limit` is from 1 to {}", limits.page_rows);
            return Err(Refusal::invalid(why).next("leave it out for as much as fits in 8 kB"));
        }
        room = Room::new(cursor, limit);
    }
    Ok(Common { call, room, arguments })
}

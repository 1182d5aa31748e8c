//! The tools: names, arguments, functions.
//!
//! A tool is an entry in its family's table and a function over the engine. Arguments that all
//! tools share (project, idempotency key, limit, cursor) are added to the schemas and read here.

mod commits;
mod knowledge;
mod store;
mod tree;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use tine_core::ids::check_key;
use tine_core::json::{Json, Object};
use tine_core::{ErrorKind, Limits, ProjectId};
use tine_engine::{Call, Engine, Error};

use crate::access_scope::AccessScope;
use crate::answer::{AnswerBudget, ToolAnswer};
use crate::mcp_error::McpError;
use crate::schema;
use crate::server::McpOptions;

/// Which tools a host is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toolset {
    /// The twelve tools for daily work.
    #[default]
    Core,
    /// The tools for facts.
    Memory,
    /// The tools for the tree.
    Tree,
    /// Every tool.
    All,
}

impl Toolset {
    /// Every toolset.
    pub const ALL: [Toolset; 4] = [Toolset::Core, Toolset::Memory, Toolset::Tree, Toolset::All];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Toolset::Core => "core",
            Toolset::Memory => "memory",
            Toolset::Tree => "tree",
            Toolset::All => "all",
        }
    }
}

/// What a tool does to the store, for the protocol's hints. No tool destroys anything, and none
/// acts outside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    ReadOnly,
    /// Adds something with every call.
    Additive,
    /// Repeated calls lead to the same state.
    Idempotent,
}

pub(crate) struct ToolSpec {
    pub name: &'static str,
    pub about: &'static str,
    pub effect: Effect,
    pub is_core: bool,
    pub family: ToolFamily,
    pub is_paged: bool,
    pub input: fn() -> JsonObject,
    /// Fields of its answer and their types.
    pub output: &'static [(&'static str, &'static str)],
    pub run: fn(&ToolContext, Object) -> Result<ToolAnswer, McpError>,
}

/// Which toolsets a tool is in, besides `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolFamily {
    Memory,
    Tree,
    Both,
}

impl ToolSpec {
    const fn core(self) -> Self {
        ToolSpec { is_core: true, ..self }
    }

    const fn memory_only(self) -> Self {
        ToolSpec { family: ToolFamily::Memory, ..self }
    }

    const fn tree_only(self) -> Self {
        ToolSpec { family: ToolFamily::Tree, ..self }
    }

    const fn paged(self) -> Self {
        ToolSpec { is_paged: true, ..self }
    }
}

/// Describes a family of tools. Each entry has the tool's effect, the function that is the tool
/// with the type of its arguments, flags, fields of the answer, and the description.
macro_rules! tools {
    ($($effect:ident $name:ident($arguments:ty) [$($flag:ident)*] [$($field:expr),*]
       $about:expr;)*) => {
        &[$(super::ToolSpec {
            name: stringify!($name),
            about: $about,
            effect: super::Effect::$effect,
            is_core: false,
            family: super::ToolFamily::Both,
            is_paged: false,
            input: crate::schema::of::<$arguments>,
            output: &[$($field),*],
            run: |context, arguments| {
                let arguments = crate::typed_arguments::FromObject::from_object("", arguments)?;
                $name(context, arguments)
            },
        }$(.$flag())*),*]
    };
}
use tools;

/// What a tool runs with.
pub(crate) struct ToolContext {
    pub engine: Engine,
    pub call: Call,
    pub options: Arc<McpOptions>,
    pub budget: AnswerBudget,
    pub stop: Arc<AtomicBool>,
    pub progress: Box<dyn Fn(f64, Option<f64>, String) + Send>,
}

impl ToolContext {
    pub(crate) fn limits(&self) -> &Limits {
        self.engine.limits()
    }

    /// Fails if the call was cancelled.
    pub(crate) fn check_not_cancelled(&self) -> Result<(), McpError> {
        if self.stop.load(Ordering::Relaxed) {
            let why = "the call was cancelled; what it stored before stays";
            return Err(McpError::new(ErrorKind::Conflict, why));
        }
        Ok(())
    }
}

fn specs() -> impl Iterator<Item = &'static ToolSpec> {
    [store::TOOLS, knowledge::TOOLS, tree::TOOLS, commits::TOOLS].into_iter().flatten()
}

/// A tool with its schema, which is generated once.
pub(crate) struct OfferedTool {
    pub spec: &'static ToolSpec,
    pub tool: Tool,
}

/// Returns every tool by name.
pub(crate) fn by_name() -> &'static BTreeMap<&'static str, OfferedTool> {
    static TOOLS: OnceLock<BTreeMap<&'static str, OfferedTool>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        specs().map(|spec| (spec.name, OfferedTool { spec, tool: described(spec) })).collect()
    })
}

/// Returns the tools of a set, in the order of their tables: the most used first.
pub(crate) fn of(set: Toolset, read_only: bool) -> Vec<Tool> {
    let wanted = specs().filter(|spec| offered(spec, set, read_only));
    wanted.filter_map(|spec| Some(by_name().get(spec.name)?.tool.clone())).collect()
}

fn offered(spec: &ToolSpec, set: Toolset, read_only: bool) -> bool {
    let in_set = match set {
        Toolset::Core => spec.is_core,
        Toolset::Memory => spec.family != ToolFamily::Tree,
        Toolset::Tree => spec.family != ToolFamily::Memory,
        Toolset::All => true,
    };
    in_set && (!read_only || spec.effect == Effect::ReadOnly)
}

/// Finds a tool of the set by name. The error lists the tools that are offered.
pub(crate) fn find(name: &str, options: &McpOptions) -> Result<&'static OfferedTool, McpError> {
    let there: Vec<&str> = specs()
        .filter(|spec| offered(spec, options.toolset, options.read_only))
        .map(|spec| spec.name)
        .collect();
    match by_name().get(name) {
        Some(known) if there.contains(&name) => Ok(known),
        other => {
            let set = options.toolset.as_str();
            let why = match other {
                Some(_) => format!("the tool `{name}` is not in the toolset {set}"),
                None => format!("unknown tool `{name}`"),
            };
            Err(McpError::new(ErrorKind::NotFound, why)
                .next(format!("the tools are: {}", there.join(", "))))
        }
    }
}

fn described(spec: &ToolSpec) -> Tool {
    let mut input = (spec.input)();
    if let Some(Value::Object(properties)) = input.get_mut("properties") {
        if spec.is_paged {
            properties.insert("limit".to_owned(), json!({ "type": "integer" }));
            properties.insert("cursor".to_owned(), json!({ "type": "string" }));
        }
        properties.insert("project_id".to_owned(), json!({ "type": "string" }));
        if spec.effect != Effect::ReadOnly {
            properties.insert("idempotency_key".to_owned(), json!({ "type": "string" }));
        }
    }
    let mut properties = Map::new();
    for (name, kind) in spec.output {
        properties.insert((*name).to_owned(), json!({ "type": kind }));
    }
    // None is required: an error has other fields, and some hosts validate it too.
    let mut output = Map::new();
    output.insert("type".to_owned(), "object".into());
    output.insert("properties".to_owned(), Value::Object(properties));
    let hints = ToolAnnotations::new()
        .read_only(spec.effect == Effect::ReadOnly)
        .destructive(false)
        .idempotent(spec.effect != Effect::Additive)
        .open_world(false);
    Tool::new(spec.name, spec.about, Arc::new(input))
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(hints)
}

/// A call without the arguments that all tools share.
pub(crate) struct CommonArguments {
    pub call: Call,
    pub budget: AnswerBudget,
    pub arguments: Object,
}

/// Checks the arguments of a call and takes those that all tools share.
pub(crate) fn common(
    known: &OfferedTool,
    mut arguments: Object,
    scope: &AccessScope,
    options: &McpOptions,
    limits: &Limits,
) -> Result<CommonArguments, McpError> {
    // Hosts that fill in every argument send null for absent ones.
    arguments.retain(|_, value| !value.is_null());
    if known.spec.name == "store_conversation_turn" {
        store::rename_synonyms(&mut arguments)?;
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
    let project = scope.project(named, &options.project);
    scope.check(&project, known.spec.effect != Effect::ReadOnly)?;
    let actor = scope.actor.clone().unwrap_or_else(|| options.actor.clone());
    let mut call = Call::by(actor).in_project(project);
    if known.spec.effect != Effect::ReadOnly {
        call.idempotency_key = take("idempotency_key");
        if let Some(key) = &call.idempotency_key {
            check_key("idempotency key", key, limits).map_err(Error::from)?;
        }
    }
    let mut budget = AnswerBudget::new(None, None);
    if known.spec.is_paged {
        let cursor = take("cursor");
        let limit = arguments.remove("limit").and_then(|limit| limit.as_u64());
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        if limit == Some(0) || limit.is_some_and(|limit| limit > limits.page_rows) {
            let why = format!("`limit` must be from 1 to {}", limits.page_rows);
            return Err(McpError::invalid(why).next("leave it out to get what fits in 8 kB"));
        }
        budget = AnswerBudget::new(cursor, limit);
    }
    Ok(CommonArguments { call, budget, arguments })
}

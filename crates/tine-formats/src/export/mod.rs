//! Exports conversations in formats of other programs.
//!
//! [`ExportFormat::Markdown`] is for people; [`ExportFormat::OpenAi`] and [`ExportFormat::Anthropic`]
//! are JSON Lines, one request for each path; [`ExportFormat::ChatGpt`] is a tree in the format of
//! ChatGPT's export, which keeps every branch and can be imported again. Tine's own forms are
//! [`bundle`](crate::bundle) and [`html_page`](crate::html_page).
//!
//! Only shown turns are written; deleted turns and the log are in bundles.

mod mapping;

use std::collections::HashSet;
use std::io::{self, Write};

use tine_api::{Call, Operations, PathPage, PathQuery};
use tine_core::json::{Object, object};
use tine_core::{ConversationId, Json, Reference, TurnId};

use crate::render::{Format, OpenCalls, Options, RenderError, Rendered, render, whole_path};

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Readable text.
    Markdown,
    /// Requests of OpenAI's chat completions, one on each line.
    OpenAi,
    /// Requests of Anthropic's Messages API, one on each line.
    Anthropic,
    /// A list of conversations in the format of ChatGPT's export.
    ChatGpt,
}

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The conversation could not be read.
    #[error(transparent)]
    Engine(#[from] tine_api::Error),
    /// A path cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The output could not be written.
    #[error("the export could not be written: {0}")]
    Write(#[from] io::Error),
}

/// A path of a tree, from the root to a leaf.
struct LeafPath {
    /// The branch that ends there; an abandoned path has none.
    branch: Option<String>,
    tip: Option<TurnId>,
}

/// Writes conversations, or of each only the path to a turn.
pub fn write(
    engine: &dyn Operations,
    call: &Call,
    conversations: &[ConversationId],
    to: Option<&Reference>,
    form: ExportFormat,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    if form == ExportFormat::ChatGpt {
        out.write_all(b"[")?;
    }
    for (nth, id) in conversations.iter().enumerate() {
        match form {
            ExportFormat::Markdown => {
                if nth > 0 {
                    out.write_all(b"\n---\n\n")?;
                }
                markdown(engine, call, id, to, out)?;
            }
            ExportFormat::OpenAi => requests(engine, call, id, to, Format::OpenAi, out)?,
            ExportFormat::Anthropic => requests(engine, call, id, to, Format::Anthropic, out)?,
            ExportFormat::ChatGpt => {
                if nth > 0 {
                    out.write_all(b",\n")?;
                }
                let tree = mapping::conversation(engine, call, id, to)?;
                out.write_all(tree.to_canonical().as_bytes())?;
            }
        }
    }
    if form == ExportFormat::ChatGpt {
        out.write_all(b"]\n")?;
    }
    Ok(out.flush()?)
}

/// Returns the paths of a conversation: `main` first, other branches by name, then abandoned paths.
fn leaf_paths(
    engine: &dyn Operations,
    call: &Call,
    id: &ConversationId,
) -> Result<Vec<LeafPath>, ExportError> {
    let mut branches = engine.branches(call, id)?;
    branches.sort_by_key(|branch| (branch.name.as_str() != "main", branch.name.clone()));
    let named = |branch: tine_api::BranchView| LeafPath {
        branch: Some(branch.name.to_string()),
        tip: branch.tip,
    };
    let mut paths: Vec<LeafPath> = branches.into_iter().map(named).collect();
    let tails = engine.tails(call, id)?;
    paths.extend(tails.into_iter().map(|tail| LeafPath { branch: None, tip: Some(tail.leaf) }));
    // A second branch at the same turn has the same path.
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(path.tip) || path.tip.is_none());
    Ok(paths)
}

fn path(
    engine: &dyn Operations,
    call: &Call,
    id: &ConversationId,
    to: Reference,
) -> Result<PathPage, ExportError> {
    Ok(whole_path(engine, call, PathQuery::of(id.clone()).to(to))?)
}

fn markdown(
    engine: &dyn Operations,
    call: &Call,
    id: &ConversationId,
    to: Option<&Reference>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let about = engine.conversation(call, id)?;
    writeln!(out, "# {}\n", about.label().unwrap_or(id.as_str()))?;
    let options = Options { open_calls: OpenCalls::Keep, ..Options::of(Format::Markdown) };
    if let Some(to) = to {
        let made = render(&path(engine, call, id, to.clone())?, &options)?;
        return Ok(out.write_all(made.text().as_bytes())?);
    }
    let mut written: HashSet<TurnId> = HashSet::new();
    for (nth, leaf) in leaf_paths(engine, call, id)?.into_iter().enumerate() {
        let Some(tip) = leaf.tip else { continue };
        let mut whole = path(engine, call, id, tip.into())?;
        let shared = whole.turns.iter().take_while(|turn| written.contains(&turn.id)).count();
        if shared == whole.turns.len() && nth > 0 {
            continue;
        }
        if nth > 0 {
            let name = match &leaf.branch {
                Some(name) => format!("Branch `{name}`"),
                None => "Abandoned path".to_owned(),
            };
            let from = match shared {
                0 => "from the beginning".to_owned(),
                _ => format!("after {shared} shared turns"),
            };
            writeln!(out, "\n# {name}, {from}\n")?;
        }
        written.extend(whole.turns.iter().map(|turn| turn.id));
        whole.turns.drain(..shared);
        let options = Options { system: nth == 0, ..options };
        out.write_all(render(&whole, &options)?.text().as_bytes())?;
    }
    Ok(())
}

fn requests(
    engine: &dyn Operations,
    call: &Call,
    id: &ConversationId,
    to: Option<&Reference>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let ends: Vec<Reference> = match to {
        Some(to) => vec![to.clone()],
        None => {
            let paths = leaf_paths(engine, call, id)?;
            paths.into_iter().filter_map(|path| path.tip).map(Reference::from).collect()
        }
    };
    for end in ends {
        let path = path(engine, call, id, end)?;
        let Rendered::Request(Json::Object(request)) =
            render(&path, &Options::of(format))?.rendered
        else {
            continue;
        };
        let mut line: Object = request;
        let model = path.turns.iter().rev().find_map(|turn| {
            turn.metadata.source_info.as_ref()?.get("model")?.as_str().map(str::to_owned)
        });
        if let Some(model) = model {
            line.insert("model", model.into());
        }
        writeln!(out, "{}", Json::Object(line).to_canonical())?;
    }
    Ok(())
}

/// Returns a member for each branch: its name, and the id of the turn that it ends on.
fn branch_map(paths: &[LeafPath]) -> Json {
    let named = paths.iter().filter_map(|path| {
        let tip = path.tip.map_or(Json::Null, |tip| tip.to_string().into());
        Some((path.branch.clone()?, tip))
    });
    Json::Object(named.collect())
}

/// Returns the content of a text message in ChatGPT's format.
fn text_part(text: &str) -> Json {
    object([("content_type", "text".into()), ("parts", Json::Array(vec![text.into()]))])
}

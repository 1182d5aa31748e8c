//! A conversation in the format of ChatGPT's export: a `mapping` of nodes.
//!
//! What the format does not have (blocks other than text, calls and results, metadata, branch names)
//! is in additional members `tine`, which other programs ignore and Tine imports again. The readable
//! text is there for both.

use std::collections::{BTreeMap, HashMap};

use tine_api::{Call, Operations, TopologyQuery, TurnRef, TurnView};
use tine_core::json::{Number, Object, object};
use tine_core::{ConversationId, Json, Reference, Timestamp, TurnId};
use tine_store::Content;

use super::{ExportError, branch_map, leaf_paths, path, text_part};

/// The id of the root node.
const ROOT: &str = "root";

pub(super) fn conversation(
    engine: &dyn Operations,
    call: &Call,
    id: &ConversationId,
    to: Option<&Reference>,
) -> Result<Json, ExportError> {
    let about = engine.conversation(call, id)?;
    let (turns, current, branches) = match to {
        Some(to) => {
            let path = path(engine, call, id, to.clone())?;
            let current = path.turns.last().map(|turn| turn.id);
            (path.turns, current, Json::Null)
        }
        None => {
            let paths = leaf_paths(engine, call, id)?;
            let current = paths.first().and_then(|path| path.tip);
            (all(engine, call, id)?, current, branch_map(&paths))
        }
    };
    let mut children: HashMap<Option<TurnId>, Vec<Json>> = HashMap::new();
    let mut mapping = BTreeMap::new();
    for turn in &turns {
        children.entry(turn.parent).or_default().push(turn.id.to_string().into());
    }
    let below = |id: Option<TurnId>| Json::Array(children.get(&id).cloned().unwrap_or_default());
    let root = [
        ("id", ROOT.into()),
        ("parent", Json::Null),
        ("message", Json::Null),
        ("children", below(None)),
    ];
    mapping.insert(ROOT.to_owned(), object(root));
    for turn in &turns {
        let parent = turn.parent.map_or_else(|| ROOT.to_owned(), |parent| parent.to_string());
        let node = [
            ("id", turn.id.to_string().into()),
            ("parent", parent.into()),
            ("message", message(turn)),
            ("children", below(Some(turn.id))),
        ];
        mapping.insert(turn.id.to_string(), object(node));
    }
    let prompt = about.root.as_ref().and_then(|root| root.system_prompt.clone());
    let last = turns.iter().map(|turn| turn.created_at).max().unwrap_or(about.created_at);
    let own = id.as_str().strip_prefix("chatgpt:").unwrap_or(id.as_str());
    Ok(object([
        ("id", own.into()),
        ("conversation_id", own.into()),
        ("title", about.label().unwrap_or_default().into()),
        ("create_time", seconds(about.created_at)),
        ("update_time", seconds(last)),
        ("current_node", current.map_or(ROOT.into(), |id| id.to_string().into())),
        ("mapping", Json::Object(mapping.into_iter().collect::<Object>())),
        ("tine", object([("branches", branches), ("system_prompt", prompt.into())])),
    ]))
}

/// Returns every shown turn, parents first.
fn all(
    engine: &dyn Operations,
    call: &Call,
    id: &ConversationId,
) -> Result<Vec<TurnView>, ExportError> {
    let mut turns = Vec::new();
    let mut query = TopologyQuery::of(id.clone());
    loop {
        let page = engine.topology(call, query.clone())?;
        for row in page.rows {
            turns.push(engine.turn(call, TurnRef::of(row.id))?);
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(turns),
        }
    }
}

fn message(turn: &TurnView) -> Json {
    let Content::Kept(body) = &turn.content else { return Json::Null };
    let blocks = Json::Array(body.blocks().unwrap_or_default());
    let texts: Vec<String> = blocks.as_array().unwrap_or_default().iter().map(readable).collect();
    let model = turn.metadata.source_info.as_ref().and_then(|info| info.get("model")).cloned();
    let own = object([
        ("content", blocks),
        ("metadata", turn.metadata.to_json()),
        ("status", turn.status.as_str().into()),
        ("tool_call_id", turn.tool_call_id.clone().into()),
    ]);
    object([
        ("id", turn.id.to_string().into()),
        ("author", object([("role", turn.role.as_str().into())])),
        ("create_time", seconds(turn.created_at)),
        ("content", text_part(&texts.join("\n\n"))),
        ("status", "finished_successfully".into()),
        ("recipient", "all".into()),
        ("weight", 1.into()),
        ("metadata", object([("model_slug", model.unwrap_or(Json::Null)), ("tine", own)])),
    ])
}

fn readable(block: &Json) -> String {
    match block.get("text").and_then(Json::as_str) {
        Some(text) => text.to_owned(),
        None => block.to_canonical(),
    }
}

/// Seconds since the epoch; milliseconds survive in a double.
fn seconds(at: Timestamp) -> Json {
    #[allow(clippy::cast_precision_loss, reason = "times of four-digit years are far below 2^53")]
    let value = at.as_millis() as f64 / 1000.0;
    Number::try_from(value).map_or(Json::Null, Json::from)
}

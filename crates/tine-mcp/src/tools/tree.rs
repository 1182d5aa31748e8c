//! Tools for the tree: reading, adding, moving branches.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tine_api::bodies::Speaker;
use tine_core::json::{MAX_DEPTH, parse};
use tine_core::{Body, Name};
use tine_engine::{
    Append, Edit, Error, Fork, ForkPoint, MoveBranch, OnConflict, Outcome, PathQuery, RecentQuery,
    SearchQuery, Selection, TopologyQuery, TurnRef, WindowQuery,
};
use tine_formats::{redact, render};

use super::knowledge::listed;
use super::store::conversation_of;
use super::{ToolContext, ToolSpec, tools};
use crate::answer::{ToolAnswer, Truncator, counted, json_bytes, list_or_null, without_nulls};
use crate::mcp_error::McpError;
use crate::record_json;
use crate::shared_arguments::{content, messages, optional_reference, optional_time, reference};
use crate::typed_arguments::{Members, arguments, choices};

pub(super) const TOOLS: &[ToolSpec] = tools! {
    ReadOnly search_turns(SearchArguments) [core paged] [("hits", "array")]
        "Search turns: words, \"phrases\", prefix*, OR, -not; best first. For context, call \
         get_path with around.";
    ReadOnly get_path(PathArguments) [core tree_only paged] [("conversation_id", "string")]
        "Read a path of turns in order, or the window around one turn; optionally rendered for a \
         provider.";
    ReadOnly get_tree(TreeArguments) [core tree_only paged] []
        "Outline of a conversation: all paths with previews, branches, and tails that no branch \
         leads to. Without conversation_id: list conversations.";
    Additive fork_conversation(ForkArguments) [core tree_only]
        [("conversation_id", "string"), ("name", "string")]
        "Create a branch that ends at a turn. Nothing is copied.";
    Idempotent edit_turn(EditArguments) [core tree_only]
        [("turn_id", "string"), ("outcome", "string")]
        "Add a new version of a turn as its sibling; the old one is kept. With branch, that \
         branch moves to it.";
    Idempotent revert_branch(RevertArguments) [core tree_only]
        [("conversation_id", "string"), ("name", "string")]
        "Move a branch back to an earlier turn, or forward again. All turns are kept.";
    Additive undo_operation(UndoArguments) [core tree_only] [("undone", "integer")]
        "Undo the last change of a conversation, or the operation with a number; redo: true \
         redoes it.";
    Idempotent append_turns(AppendArguments) [tree_only]
        [("conversation_id", "string"), ("turns", "array")]
        "Append messages to a branch, for callers that track branches. With parent root you may \
         resend the whole list: existing turns are reused.";
};

arguments!(SearchArguments {
    query: String,
    conversation_id: Option<String>,
    branch: Option<String>,
    role: Option<Speaker>,
    since: Option<String>,
    until: Option<String>,
    include_archived: Option<bool>,
});

/// The form of a rendered path.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PathFormat {
    Openai,
    Anthropic,
    Gemini,
    Markdown,
}

arguments!(PathArguments {
    conversation_id: Option<String>,
    /// Last turn or branch; default main
    to: Option<String>,
    /// Only the last turns
    last: Option<u64>,
    /// A turn to show with 5 before and after
    around: Option<String>,
    format: Option<PathFormat>,
    /// With format: keep only the end that fits
    max_tokens: Option<u64>,
});

arguments!(TreeArguments {
    conversation_id: Option<String>,
    /// Only below this turn
    under: Option<String>,
    include_deleted: Option<bool>,
});

arguments!(ForkArguments {
    conversation_id: Option<String>,
    /// Last turn of the branch
    at: Option<String>,
    /// Instead of at: first turn left out
    before: Option<String>,
    name: Option<String>,
});

arguments!(EditArguments {
    conversation_id: Option<String>,
    turn: String,
    content: Option<String>,
    content_blocks: Option<Vec<Members>>,
    branch: Option<String>,
});

arguments!(RevertArguments {
    conversation_id: String,
    /// Turn to end on
    to: String,
    /// Default main
    branch: Option<String>,
    expected_tip: Option<String>,
});

arguments!(UndoArguments {
    conversation_id: String,
    operation: Option<u64>,
    redo: Option<bool>,
});

/// What to do if the branch has moved.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConflictMode {
    Refuse,
    Fork,
}

choices!(PathFormat, ConflictMode);

arguments!(AppendArguments {
    conversation_id: String,
    /// {role, content, tool_call_id?, created_at?, metadata?}
    messages: Vec<Members>,
    /// Turn or root; default the tip
    parent: Option<String>,
    /// Default main
    branch: Option<String>,
    expected_tip: Option<String>,
    on_conflict: Option<ConflictMode>,
    /// false: equal messages become siblings
    reuse: Option<bool>,
});

fn turn_ref(
    context: &ToolContext,
    conversation_id: Option<&str>,
    turn: &str,
) -> Result<TurnRef, McpError> {
    let conversation = conversation_id.map(|id| conversation_of(context, id)).transpose()?;
    Ok(TurnRef { conversation, turn: reference(turn)? })
}

fn search_turns(context: &ToolContext, arguments: SearchArguments) -> Result<ToolAnswer, McpError> {
    let conversation = arguments.conversation_id.as_deref();
    let query = SearchQuery {
        words: arguments.query,
        conversation: conversation.map(|id| conversation_of(context, id)).transpose()?,
        branch: arguments.branch,
        role: arguments.role.map(Speaker::role),
        from: optional_time("since", arguments.since.as_deref())?,
        to: optional_time("until", arguments.until.as_deref())?,
        archived: arguments.include_archived.unwrap_or(false),
        ..SearchQuery::default()
    };
    let rows = context.budget.rows(
        |page| {
            let (cursor, limit) = (page.cursor, page.limit.map(|limit| limit.min(100)));
            let query = SearchQuery { cursor, limit, ..query.clone() };
            let found = context.engine.search(&context.call, query)?;
            Ok((found.hits, found.next))
        },
        |hit, _| record_json::hit(hit),
    )?;
    Ok(listed("hits", "hits", rows, json!({})))
}

/// Turns before and after the one in the middle of a window.
const AROUND: usize = 5;

fn get_path(context: &ToolContext, arguments: PathArguments) -> Result<ToolAnswer, McpError> {
    let named = arguments.conversation_id.as_deref();
    if let Some(around) = &arguments.around {
        return window(context, named, around, arguments.to);
    }
    if named.is_none() && arguments.to.is_none() {
        return Err(McpError::invalid("`conversation_id` or `to` is required")
            .next("send conversation_id for its main branch, or `to` with a turn's id"));
    }
    let query = PathQuery {
        conversation: named.map(|id| conversation_of(context, id)).transpose()?,
        to: optional_reference(arguments.to.as_deref())?,
        selection: match arguments.last {
            Some(last) => Selection::Last(usize::try_from(last).unwrap_or(usize::MAX)),
            None => Selection::Whole,
        },
        cursor: None,
        limit: None,
    };
    if let Some(format) = arguments.format {
        return rendered(context, query, format, arguments.max_tokens);
    }
    let head = std::cell::RefCell::new((String::new(), None, None));
    let rows = context.budget.rows(
        |page| {
            let (cursor, limit) = (page.cursor, page.limit);
            let found =
                context.engine.path(&context.call, PathQuery { cursor, limit, ..query.clone() })?;
            let system = found.root.and_then(|root| root.system_prompt);
            *head.borrow_mut() = (found.conversation.to_string(), found.to, system);
            Ok((found.turns, found.next))
        },
        record_json::turn,
    )?;
    let (conversation, to, system) = head.into_inner();
    let more = json!({
        "conversation_id": conversation,
        "to": to.map(|turn| turn.to_string()),
        "system_prompt": system.map(|text| {
            Truncator::new(1_000).text(text, &format!("tine://conversation/{conversation}"))
        }),
    });
    Ok(listed("turns", "turns", rows, more))
}

fn window(
    context: &ToolContext,
    conversation_id: Option<&str>,
    around: &str,
    branch: Option<String>,
) -> Result<ToolAnswer, McpError> {
    let turn = turn_ref(context, conversation_id, around)?;
    let query = WindowQuery { turn, branch, before: AROUND, after: AROUND };
    let found = context.engine.window(&context.call, query)?;
    let mut truncator = Truncator::new(context.budget.text_bytes() / 3);
    let text = format!("{} around {around}.", counted(found.turns.len(), "turns"));
    let turns: Vec<_> =
        found.turns.into_iter().map(|turn| record_json::turn(turn, &mut truncator)).collect();
    Ok(ToolAnswer::new(
        text,
        json!({
            "conversation_id": found.conversation.as_str(),
            "turns": turns,
            "focus": found.focus,
            "more_before": found.more_before,
            "more_after": found.more_after,
            "cut": truncator.into_field(),
        }),
    )
    .recorded())
}

fn rendered(
    context: &ToolContext,
    query: PathQuery,
    format: PathFormat,
    max_tokens: Option<u64>,
) -> Result<ToolAnswer, McpError> {
    let mut options = render::Options::of(match format {
        PathFormat::Openai => render::Format::OpenAi,
        PathFormat::Anthropic => render::Format::Anthropic,
        PathFormat::Gemini => render::Format::Gemini,
        PathFormat::Markdown => render::Format::Markdown,
    });
    let room = context.budget.bytes();
    // About four bytes per token; the size is checked again below.
    let most = u64::try_from(room / 4).unwrap_or(u64::MAX);
    let asked_for = max_tokens.unwrap_or(most);
    options.budget =
        Some(render::Budget { max_tokens: asked_for, count: &tine_llm::tokens::count });
    let made = render::render_path(&context.engine, &context.call, query, &options)?;
    let (id, turns) = (made.conversation.to_string(), made.turns);
    let form = rendering_form(&render::RenderingJson::from(made))?;
    let bytes = json_bytes(&form);
    if max_tokens.is_some() && bytes > MAX_RENDERED_BYTES {
        let why = format!("the rendering has {bytes} bytes, more than an answer may have");
        return Err(McpError::new(tine_core::ErrorKind::TooLarge, why)
            .next("lower max_tokens, or read tine://conversation/{id}"));
    }
    let turns_cut = form.get("turns_cut").and_then(Value::as_u64).unwrap_or(0);
    let text = format!("{} rendered, {turns_cut} left out.", counted(turns, "turns"));
    let mut form = without_nulls(form);
    form["conversation_id"] = id.into();
    if turns_cut > 0 {
        form["cut"] = json!([format!("{turns_cut} earlier turns; raise max_tokens")]);
    }
    Ok(ToolAnswer::new(text, form).recorded())
}

/// Converts a rendering to the form of an answer, with exact integers.
fn rendering_form(made: &render::RenderingJson) -> Result<Value, McpError> {
    let text = serde_json::to_string(made)
        .map_err(|error| McpError::new(tine_core::ErrorKind::Internal, error.to_string()))?;
    let json = parse(text.as_bytes(), MAX_DEPTH).map_err(Error::from)?;
    Ok(record_json::value(&json))
}

/// The largest rendering that a number of tokens may ask for.
const MAX_RENDERED_BYTES: usize = 1_000_000;

fn get_tree(context: &ToolContext, arguments: TreeArguments) -> Result<ToolAnswer, McpError> {
    let Some(id) = arguments.conversation_id.as_deref() else {
        let rows = context.budget.rows(
            |page| {
                let query = RecentQuery::default();
                let found = context.engine.recent_conversations(&context.call, &query, page)?;
                Ok((found.items, found.next))
            },
            |found, truncator| {
                let mut form = record_json::conversation(&found);
                if let Some(Value::String(prompt)) = form.get("system_prompt").cloned() {
                    let whole = format!("tine://conversation/{}", found.id);
                    form["system_prompt"] = truncator.text(prompt, &whole).into();
                }
                form
            },
        )?;
        return Ok(listed("conversations", "conversations", rows, json!({})));
    };
    let conversation = conversation_of(context, id)?;
    let query = TopologyQuery {
        under: optional_reference(arguments.under.as_deref())?,
        include_deleted: arguments.include_deleted.unwrap_or(false),
        ..TopologyQuery::of(conversation.clone())
    };
    let total = std::cell::Cell::new(0);
    let rows = context.budget.rows(
        |page| {
            let (cursor, limit) = (page.cursor, page.limit);
            let query = TopologyQuery { cursor, limit, ..query.clone() };
            let found = context.engine.topology(&context.call, query)?;
            total.set(found.total);
            Ok((found.rows, found.next))
        },
        |row, _| record_json::topology_row(row, 0),
    )?;
    let branches = context.engine.branches(&context.call, &conversation)?;
    let tails = context.engine.tails(&context.call, &conversation)?;
    let tail = |tail: &tine_engine::Tail| json!({ "leaf": tail.leaf.to_string(), "turns": tail.turns, "preview": tail.preview });
    let more = json!({
        "conversation_id": conversation.as_str(),
        "total": total.get(),
        "branches": branches.iter().take(BRANCHES_SHOWN).map(record_json::branch).collect::<Vec<_>>(),
        "branch_count": branches.len(),
        "tails": tails.iter().take(TAILS_SHOWN).map(tail).collect::<Vec<_>>(),
        "tail_count": tails.len(),
    });
    Ok(listed("turns", "turns", rows, more))
}

/// The most branches and tails listed with a tree.
const BRANCHES_SHOWN: usize = 20;
const TAILS_SHOWN: usize = 10;

fn fork_conversation(
    context: &ToolContext,
    arguments: ForkArguments,
) -> Result<ToolAnswer, McpError> {
    let point = match (&arguments.at, &arguments.before) {
        (Some(at), None) => ForkPoint::At(reference(at)?),
        (None, Some(before)) => ForkPoint::Before(reference(before)?),
        _ => {
            return Err(McpError::invalid("exactly one of `at` and `before` is required")
                .next("send `at` (the branch's last turn) or `before` (the first turn left out)"));
        }
    };
    let named = arguments.conversation_id.as_deref();
    let request = Fork {
        conversation: named.map(|id| conversation_of(context, id)).transpose()?,
        point,
        name: arguments
            .name
            .map(|name| Name::new(name, context.limits()))
            .transpose()
            .map_err(Error::from)?,
    };
    let made = context.engine.fork(&context.call, request)?;
    let text = format!(
        "Branch {} ends on {}; store or append with this branch to continue there.",
        made.name,
        made.tip.map_or_else(|| "the root".to_owned(), |tip| tip.to_string())
    );
    let mut form = record_json::branch(&made);
    form["conversation_id"] = made.conversation.as_str().into();
    Ok(ToolAnswer::new(text, form))
}

fn edit_turn(context: &ToolContext, arguments: EditArguments) -> Result<ToolAnswer, McpError> {
    let turn = turn_ref(context, arguments.conversation_id.as_deref(), &arguments.turn)?;
    let content = content(arguments.content, arguments.content_blocks)?;
    let body = Body::of_any_role(content, context.limits());
    let mut body = body.map_err(|source| Error::Message { index: 0, source })?;
    let mut call = context.call.clone();
    if context.options.redact {
        call = call.with_redacted(redact::body(&mut body));
    }
    let request = Edit { turn, body, branch: arguments.branch, reuse: true };
    let done = context.engine.edit(&call, request)?;
    let outcome = record_json::outcome(done.turn.outcome);
    let text = match &done.branch {
        Some(branch) => format!("Turn {} {outcome}; {} now ends on it.", done.turn.id, branch.name),
        None => format!("Turn {} {outcome}; no branch moved.", done.turn.id),
    };
    Ok(ToolAnswer::new(
        text,
        json!({
            "conversation_id": done.turn.conversation.as_str(),
            "turn_id": done.turn.id.to_string(),
            "turn_hash": done.turn.hash.to_string(),
            "edited_from": done.turn.origin.edited_from.map(|id| id.to_string()),
            "outcome": outcome,
            "branch": done.branch.as_ref().map(|branch| branch.name.as_str()),
        }),
    ))
}

fn revert_branch(
    context: &ToolContext,
    arguments: RevertArguments,
) -> Result<ToolAnswer, McpError> {
    let request = MoveBranch {
        conversation: conversation_of(context, &arguments.conversation_id)?,
        branch: arguments.branch.unwrap_or_else(|| "main".to_owned()),
        to: Some(reference(&arguments.to)?),
        expected_tip: optional_reference(arguments.expected_tip.as_deref())?,
    };
    // Moving forward is a restore. The engine knows which way a turn is.
    let moved = match context.engine.revert(&context.call, request.clone()) {
        Ok(moved) => moved,
        Err(why @ (Error::Invalid(_) | Error::IdempotencyMismatch { .. })) => {
            context.engine.restore(&context.call, request).map_err(|_| why)?
        }
        Err(why) => return Err(why.into()),
    };
    let tip = moved.tip.map_or_else(|| "the root".to_owned(), |tip| tip.to_string());
    let text = format!(
        "{} now ends on {tip}; the turns after it are kept (see tails in get_tree).",
        moved.name
    );
    let mut form = record_json::branch(&moved);
    form["conversation_id"] = moved.conversation.as_str().into();
    Ok(ToolAnswer::new(text, form))
}

fn undo_operation(context: &ToolContext, arguments: UndoArguments) -> Result<ToolAnswer, McpError> {
    let conversation = conversation_of(context, &arguments.conversation_id)?;
    let redo = arguments.redo.unwrap_or(false);
    let done = match redo {
        true => context.engine.redo(&context.call, &conversation, arguments.operation)?,
        false => context.engine.undo(&context.call, &conversation, arguments.operation)?,
    };
    let verb = if redo { "Redone" } else { "Undone" };
    let text = format!("{verb}: operation {} ({}).", done.target, done.kind);
    Ok(ToolAnswer::new(
        text,
        json!({
            "conversation_id": conversation.as_str(),
            "undone": done.target,
            "kind": done.kind,
            "operation": done.seq,
        }),
    ))
}

/// The most turns in the answer of an append.
const APPENDED_SHOWN: usize = 40;

fn append_turns(context: &ToolContext, arguments: AppendArguments) -> Result<ToolAnswer, McpError> {
    let mut said = messages(arguments.messages, context.limits())?;
    let mut call = context.call.clone();
    if context.options.redact {
        call = call.with_redacted(redact::messages(&mut said));
    }
    let conversation = conversation_of(context, &arguments.conversation_id)?;
    let request = Append {
        parent: optional_reference(arguments.parent.as_deref())?,
        branch: arguments.branch,
        expected_tip: optional_reference(arguments.expected_tip.as_deref())?,
        on_conflict: match arguments.on_conflict {
            Some(ConflictMode::Fork) => OnConflict::Fork,
            _ => OnConflict::Refuse,
        },
        reuse: arguments.reuse.unwrap_or(true),
        ..Append::to(conversation, said)
    };
    let done = context.engine.append(&call, request)?;
    let made = done.turns.iter().filter(|turn| turn.outcome == Some(Outcome::Created)).count();
    let left = done.turns.len().saturating_sub(APPENDED_SHOWN);
    let text = format!(
        "{made} turns created, {} reused; {} ends on {}.",
        done.turns.len() - made,
        done.branch.name,
        done.branch.tip.map_or_else(|| "the root".to_owned(), |tip| tip.to_string())
    );
    let turns = done.turns.iter().skip(left).map(|turn| {
        json!({
            "turn_id": turn.id.to_string(),
            "turn_hash": turn.hash.to_string(),
            "outcome": record_json::outcome(turn.outcome),
        })
    });
    let turns: Vec<Value> = turns.collect();
    let notes = match left {
        0 => Vec::new(),
        left => vec![format!("the first {left} turns; read them with get_path")],
    };
    Ok(ToolAnswer::new(
        text,
        json!({
            "conversation_id": done.branch.conversation.as_str(),
            "turns": turns,
            "branch": done.branch.name.as_str(),
            "tip": done.branch.tip.map(|tip| tip.to_string()),
            "forked": done.forked,
            "replayed": record_json::true_or_null(done.replayed),
            "cut": list_or_null(notes),
        }),
    ))
}

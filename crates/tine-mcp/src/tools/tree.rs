//! Tools about the tree: reading it, adding to it, moving in it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tine_api::bodies::Speaker;
use tine_core::json::{MAX_DEPTH, parse};
use tine_core::{Body, Name};
use tine_engine::{
    Append, Edit, Error, Fork, ForkPoint, MoveBranch, OnConflict, Outcome, PathQuery, SearchQuery,
    Selection, TopologyQuery, TurnRef, WindowQuery,
};
use tine_formats::{redact, render};

use super::memory::listed;
use super::store::conversation_of;
use super::{Effect, Spec, ToolContext, typed};
use crate::answer::{Answer, Cuts, count, lean, list_or_null, size};
use crate::arguments::{content, messages, reference, references, times};
use crate::forms;
use crate::refusal::Refusal;
use crate::schema;
use crate::typed::{Members, arguments, choices};

pub(super) const TOOLS: &[Spec] = &[
    Spec {
        name: "search_turns",
        about: "Find turns by words, \"phrases\", begin*, OR, -not; best first. Then get_path \
                with around for what surrounds a hit.",
        effect: Effect::Reads,
        core: true,
        memory: None,
        paged: true,
        input: schema::of::<SearchArguments>,
        output: &[("hits", "array")],
        run: typed!(SearchArguments, search_turns),
    },
    Spec {
        name: "get_path",
        about: "Read a line of turns, first turn first, or the window around one turn; or \
                rendered for a provider.",
        effect: Effect::Reads,
        core: true,
        memory: Some(false),
        paged: true,
        input: schema::of::<PathArguments>,
        output: &[("conversation_id", "string")],
        run: typed!(PathArguments, get_path),
    },
    Spec {
        name: "get_tree",
        about: "The shape of a conversation: every line with previews, branches and tails left \
                behind. Without conversation_id: the conversations.",
        effect: Effect::Reads,
        core: true,
        memory: Some(false),
        paged: true,
        input: schema::of::<TreeArguments>,
        output: &[],
        run: typed!(TreeArguments, get_tree),
    },
    Spec {
        name: "fork_conversation",
        about: "Make a branch that ends at a turn; nothing is copied.",
        effect: Effect::Adds,
        core: true,
        memory: Some(false),
        paged: false,
        input: schema::of::<ForkArguments>,
        output: &[("conversation_id", "string"), ("name", "string")],
        run: typed!(ForkArguments, fork_conversation),
    },
    Spec {
        name: "edit_turn",
        about: "Make another version of a turn beside it; the old one stays. With branch, that \
                branch moves to it.",
        effect: Effect::Settles,
        core: true,
        memory: Some(false),
        paged: false,
        input: schema::of::<EditArguments>,
        output: &[("turn_id", "string"), ("outcome", "string")],
        run: typed!(EditArguments, edit_turn),
    },
    Spec {
        name: "revert_branch",
        about: "Move a branch back to an earlier turn, or forward again; what it leaves is kept.",
        effect: Effect::Settles,
        core: true,
        memory: Some(false),
        paged: false,
        input: schema::of::<RevertArguments>,
        output: &[("conversation_id", "string"), ("name", "string")],
        run: typed!(RevertArguments, revert_branch),
    },
    Spec {
        name: "undo_operation",
        about: "Take the last change of a conversation back, or one by its number; redo brings \
                it again.",
        effect: Effect::Adds,
        core: true,
        memory: Some(false),
        paged: false,
        input: schema::of::<UndoArguments>,
        output: &[("undone", "integer")],
        run: typed!(UndoArguments, undo_operation),
    },
    Spec {
        name: "append_turns",
        about: "Append messages to a branch, for callers that track branches. Sending the whole \
                list with parent root each time is fine: what is there is reused.",
        effect: Effect::Settles,
        core: false,
        memory: Some(false),
        paged: false,
        input: schema::of::<AppendArguments>,
        output: &[("conversation_id", "string"), ("turns", "array")],
        run: typed!(AppendArguments, append_turns),
    },
];

arguments!(SearchArguments {
    query: String,
    conversation_id: Option<String>,
    branch: Option<String>,
    role: Option<Speaker>,
    since: Option<String>,
    until: Option<String>,
    include_archived: Option<bool>,
});

/// For whom a path is rendered.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Openai,
    Anthropic,
    Gemini,
    Markdown,
}

arguments!(PathArguments {
    conversation_id: Option<String>,
    /// Turn or branch at its end; default main
    to: Option<String>,
    /// Only the last turns
    last: Option<u64>,
    /// Instead: a turn, with 5 before and behind
    around: Option<String>,
    format: Option<Format>,
    /// With format: the end that fits
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
    /// Instead: first turn left out
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
    /// The turn to end on
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

/// What to do when somebody else was first.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Conflict {
    Refuse,
    Fork,
}

choices!(Format, Conflict);

arguments!(AppendArguments {
    conversation_id: String,
    /// {role, content, tool_call_id?, created_at?, metadata?}
    messages: Vec<Members>,
    /// Turn or root; default the tip
    parent: Option<String>,
    /// Default main
    branch: Option<String>,
    expected_tip: Option<String>,
    on_conflict: Option<Conflict>,
    /// false: equal messages become siblings
    reuse: Option<bool>,
});

fn turn_ref(
    context: &ToolContext,
    conversation_id: Option<&str>,
    turn: &str,
) -> Result<TurnRef, Refusal> {
    let conversation = conversation_id.map(|id| conversation_of(context, id)).transpose()?;
    Ok(TurnRef { conversation, turn: reference(turn)? })
}

fn search_turns(context: &ToolContext, arguments: SearchArguments) -> Result<Answer, Refusal> {
    let conversation = arguments.conversation_id.as_deref();
    let query = SearchQuery {
        words: arguments.query,
        conversation: conversation.map(|id| conversation_of(context, id)).transpose()?,
        branch: arguments.branch,
        role: arguments.role.map(Speaker::role),
        from: times("since", arguments.since.as_deref())?,
        to: times("until", arguments.until.as_deref())?,
        archived: arguments.include_archived.unwrap_or(false),
        ..SearchQuery::default()
    };
    let rows = context.room.rows(
        |page| {
            let (cursor, limit) = (page.cursor, page.limit.map(|limit| limit.min(100)));
            let query = SearchQuery { cursor, limit, ..query.clone() };
            let found = context.engine.search(&context.call, query)?;
            Ok((found.hits, found.next))
        },
        |hit, _| forms::hit(hit),
    )?;
    Ok(listed("hits", "hits", rows, json!({})))
}

/// Turns before and behind the one in the middle of a window.
const AROUND: usize = 5;

fn get_path(context: &ToolContext, arguments: PathArguments) -> Result<Answer, Refusal> {
    let named = arguments.conversation_id.as_deref();
    if let Some(around) = &arguments.around {
        return window(context, named, around, arguments.to);
    }
    if named.is_none() && arguments.to.is_none() {
        return Err(Refusal::invalid("nothing says which path")
            .next("send conversation_id for its main branch, or `to`: a turn's id"));
    }
    let query = PathQuery {
        conversation: named.map(|id| conversation_of(context, id)).transpose()?,
        to: references(arguments.to.as_deref())?,
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
    let rows = context.room.rows(
        |page| {
            let (cursor, limit) = (page.cursor, page.limit);
            let found =
                context.engine.path(&context.call, PathQuery { cursor, limit, ..query.clone() })?;
            let system = found.root.and_then(|root| root.system_prompt);
            *head.borrow_mut() = (found.conversation.to_string(), found.to, system);
            Ok((found.turns, found.next))
        },
        forms::turn,
    )?;
    let (conversation, to, system) = head.into_inner();
    let more = json!({
        "conversation_id": conversation,
        "to": to.map(|turn| turn.to_string()),
        "system_prompt": system.map(|text| {
            Cuts::new(1_000).text(text, &format!("tine://conversation/{conversation}"))
        }),
    });
    Ok(listed("turns", "turns", rows, more))
}

fn window(
    context: &ToolContext,
    conversation_id: Option<&str>,
    around: &str,
    branch: Option<String>,
) -> Result<Answer, Refusal> {
    let turn = turn_ref(context, conversation_id, around)?;
    let query = WindowQuery { turn, branch, before: AROUND, after: AROUND };
    let found = context.engine.window(&context.call, query)?;
    let mut cuts = Cuts::new(context.room.text_bytes() / 3);
    let text = format!("{} around {around}.", count(found.turns.len(), "turns"));
    let turns: Vec<_> = found.turns.into_iter().map(|turn| forms::turn(turn, &mut cuts)).collect();
    Ok(Answer::new(
        text,
        json!({
            "conversation_id": found.conversation.as_str(),
            "turns": turns,
            "focus": found.focus,
            "more_before": found.more_before,
            "more_after": found.more_after,
            "cut": cuts.into_field(),
        }),
    )
    .recorded())
}

fn rendered(
    context: &ToolContext,
    query: PathQuery,
    format: Format,
    max_tokens: Option<u64>,
) -> Result<Answer, Refusal> {
    let mut options = render::Options::of(match format {
        Format::Openai => render::Format::OpenAi,
        Format::Anthropic => render::Format::Anthropic,
        Format::Gemini => render::Format::Gemini,
        Format::Markdown => render::Format::Markdown,
    });
    let room = context.room.bytes();
    // About four bytes to a token; the answer is looked at again before it goes out.
    let most = u64::try_from(room / 4).unwrap_or(u64::MAX);
    let asked_for = max_tokens.unwrap_or(most);
    options.budget =
        Some(render::Budget { max_tokens: asked_for, count: &tine_llm::tokens::count });
    let made = render::render_path(&context.engine, &context.call, query, &options)?;
    let (id, turns) = (made.conversation.to_string(), made.turns);
    let form = rendering_form(&render::RenderingJson::from(made))?;
    let bytes = size(&form);
    if max_tokens.is_some() && bytes > MOST_RENDERED {
        let why = format!("the rendering has {bytes} bytes, more than an answer holds");
        return Err(Refusal::new(tine_core::ErrorKind::TooLarge, why)
            .next("ask for fewer max_tokens, or read tine://conversation/{id}"));
    }
    let turns_cut = form.get("turns_cut").and_then(Value::as_u64).unwrap_or(0);
    let text = format!("{} rendered, {turns_cut} cut.", count(turns, "turns"));
    let mut form = lean(form);
    form["conversation_id"] = id.into();
    if turns_cut > 0 {
        form["cut"] = json!([format!("{turns_cut} earlier turns; ask for more max_tokens")]);
    }
    Ok(Answer::new(text, form).recorded())
}

/// Converts a rendering to the form of an answer, without rounding the integers of its request.
fn rendering_form(made: &render::RenderingJson) -> Result<Value, Refusal> {
    let text = serde_json::to_string(made)
        .map_err(|error| Refusal::new(tine_core::ErrorKind::Internal, error.to_string()))?;
    let json = parse(text.as_bytes(), MAX_DEPTH).map_err(Error::from)?;
    Ok(forms::value(&json))
}

/// Bytes of a rendering that was asked for by its tokens.
const MOST_RENDERED: usize = 1_000_000;

fn get_tree(context: &ToolContext, arguments: TreeArguments) -> Result<Answer, Refusal> {
    let Some(id) = arguments.conversation_id.as_deref() else {
        let rows = context.room.rows(
            |page| {
                let found = context.engine.conversations(&context.call, false, page)?;
                Ok((found.items, found.next))
            },
            |found, cuts| {
                let mut form = forms::conversation(&found);
                if let Some(Value::String(prompt)) = form.get("system_prompt").cloned() {
                    let whole = format!("tine://conversation/{}", found.id);
                    form["system_prompt"] = cuts.text(prompt, &whole).into();
                }
                form
            },
        )?;
        return Ok(listed("conversations", "conversations", rows, json!({})));
    };
    let conversation = conversation_of(context, id)?;
    let query = TopologyQuery {
        under: references(arguments.under.as_deref())?,
        include_deleted: arguments.include_deleted.unwrap_or(false),
        ..TopologyQuery::of(conversation.clone())
    };
    let total = std::cell::Cell::new(0);
    let rows = context.room.rows(
        |page| {
            let (cursor, limit) = (page.cursor, page.limit);
            let query = TopologyQuery { cursor, limit, ..query.clone() };
            let found = context.engine.topology(&context.call, query)?;
            total.set(found.total);
            Ok((found.rows, found.next))
        },
        |row, _| forms::topology_row(row, 0),
    )?;
    let branches = context.engine.branches(&context.call, &conversation)?;
    let tails = context.engine.tails(&context.call, &conversation)?;
    let tail = |tail: &tine_engine::Tail| json!({ "leaf": tail.leaf.to_string(), "turns": tail.turns, "preview": tail.preview });
    let more = json!({
        "conversation_id": conversation.as_str(),
        "total": total.get(),
        "branches": branches.iter().take(BRANCHES_SHOWN).map(forms::branch).collect::<Vec<_>>(),
        "branch_count": branches.len(),
        "tails": tails.iter().take(TAILS_SHOWN).map(tail).collect::<Vec<_>>(),
        "tail_count": tails.len(),
    });
    Ok(listed("turns", "turns", rows, more))
}

/// Branches and tails that are listed beside a tree.
const BRANCHES_SHOWN: usize = 20;
const TAILS_SHOWN: usize = 10;

fn fork_conversation(context: &ToolContext, arguments: ForkArguments) -> Result<Answer, Refusal> {
    let point = match (&arguments.at, &arguments.before) {
        (Some(at), None) => ForkPoint::At(reference(at)?),
        (None, Some(before)) => ForkPoint::Before(reference(before)?),
        _ => {
            return Err(Refusal::invalid("nothing says where to fork, or two things do").next(
                "send `at` (the last turn that belongs to it) or `before` (the first that \
                       does not)",
            ));
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
        "Branch {} ends on {}; store or append with this branch to go on there.",
        made.name,
        made.tip.map_or_else(|| "the root".to_owned(), |tip| tip.to_string())
    );
    let mut form = forms::branch(&made);
    form["conversation_id"] = made.conversation.as_str().into();
    Ok(Answer::new(text, form))
}

fn edit_turn(context: &ToolContext, arguments: EditArguments) -> Result<Answer, Refusal> {
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
    let outcome = forms::outcome(done.turn.outcome);
    let text = match &done.branch {
        Some(branch) => format!("Turn {} {outcome}; {} ends on it.", done.turn.id, branch.name),
        None => format!("Turn {} {outcome}; no branch moved.", done.turn.id),
    };
    Ok(Answer::new(
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

fn revert_branch(context: &ToolContext, arguments: RevertArguments) -> Result<Answer, Refusal> {
    let request = MoveBranch {
        conversation: conversation_of(context, &arguments.conversation_id)?,
        branch: arguments.branch.unwrap_or_else(|| "main".to_owned()),
        to: Some(reference(&arguments.to)?),
        expected_tip: references(arguments.expected_tip.as_deref())?,
    };
    // Forward is a restoration; the engine knows which way a turn lies.
    let moved = match context.engine.revert(&context.call, request.clone()) {
        Ok(moved) => moved,
        Err(why @ (Error::Invalid(_) | Error::IdempotencyMismatch { .. })) => {
            context.engine.restore(&context.call, request).map_err(|_| why)?
        }
        Err(why) => return Err(why.into()),
    };
    let tip = moved.tip.map_or_else(|| "the root".to_owned(), |tip| tip.to_string());
    let text = format!("{} ends on {tip}; what it left is kept (get_tree: tails).", moved.name);
    let mut form = forms::branch(&moved);
    form["conversation_id"] = moved.conversation.as_str().into();
    Ok(Answer::new(text, form))
}

fn undo_operation(context: &ToolContext, arguments: UndoArguments) -> Result<Answer, Refusal> {
    let conversation = conversation_of(context, &arguments.conversation_id)?;
    let redo = arguments.redo.unwrap_or(false);
    let done = match redo {
        true => context.engine.redo(&context.call, &conversation, arguments.operation)?,
        false => context.engine.undo(&context.call, &conversation, arguments.operation)?,
    };
    let verb = if redo { "Done again" } else { "Undone" };
    let text = format!("{verb}: operation {} ({}).", done.target, done.kind);
    Ok(Answer::new(
        text,
        json!({
            "conversation_id": conversation.as_str(),
            "undone": done.target,
            "kind": done.kind,
            "operation": done.seq,
        }),
    ))
}

/// Turns whose ids are in the answer of an append.
const APPENDED_SHOWN: usize = 40;

fn append_turns(context: &ToolContext, arguments: AppendArguments) -> Result<Answer, Refusal> {
    let mut said = messages(arguments.messages, context.limits())?;
    let mut call = context.call.clone();
    if context.options.redact {
        call = call.with_redacted(redact::messages(&mut said));
    }
    let conversation = conversation_of(context, &arguments.conversation_id)?;
    let request = Append {
        parent: references(arguments.parent.as_deref())?,
        branch: arguments.branch,
        expected_tip: references(arguments.expected_tip.as_deref())?,
        on_conflict: match arguments.on_conflict {
            Some(Conflict::Fork) => OnConflict::Fork,
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
            "outcome": forms::outcome(turn.outcome),
        })
    });
    let turns: Vec<Value> = turns.collect();
    let told = match left {
        0 => Vec::new(),
        left => vec![format!("the first {left} turns; get_path shows them")],
    };
    Ok(Answer::new(
        text,
        json!({
            "conversation_id": done.branch.conversation.as_str(),
            "turns": turns,
            "branch": done.branch.name.as_str(),
            "tip": done.branch.tip.map(|tip| tip.to_string()),
            "forked": done.forked,
            "replayed": if done.replayed { Value::Bool(true) } else { Value::Null },
            "cut": list_or_null(told),
        }),
    ))
}

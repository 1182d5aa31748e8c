//! Tools for commits: sealing turns, comparing.

use serde_json::{Value, json};
use tine_core::commit::{FacetTerm, FieldState};
use tine_engine::{
    Diff, DiffQuery, DiffSide, DiffTurn, FieldChange, NewCommit, SeenDiff, TurnChange, WindowRef,
    WordChange,
};
use tine_formats::redact;

use super::store::conversation_of;
use super::{ToolContext, ToolSpec, tools};
use crate::answer::{ToolAnswer, Truncator, counted, json_bytes, list_or_null, without_nulls};
use crate::mcp_error::McpError;
use crate::record_json;
use crate::shared_arguments::reference;
use crate::typed_arguments::arguments;

pub(super) const TOOLS: &[ToolSpec] = tools! {
    Additive commit_turns(CommitArguments) [tree_only] [("commit_hash", "string")]
        "Seal turns as a checkpoint with their topics and the facts known at that point. Default: \
         all new turns of the branch.";
    ReadOnly diff_turns(DiffArguments) [tree_only] [("changes", "array")]
        "Compare two turns, branches, commits or ranges a..b: messages, topics and facts.";
};

arguments!(CommitArguments {
    conversation_id: String,
    message: String,
    /// First turn
    start: Option<String>,
    /// Last turn
    end: Option<String>,
    branch: Option<String>,
});

arguments!(DiffArguments {
    from: String,
    to: String,
    conversation_id: Option<String>,
});

/// The most terms of one kind in an answer.
const WORDS_SHOWN: usize = 20;

/// The longest term in an answer.
const WORD_BYTES: usize = 80;

/// The most turns in a comparison.
const CHANGES_SHOWN: usize = 50;

fn commit_turns(context: &ToolContext, arguments: CommitArguments) -> Result<ToolAnswer, McpError> {
    let window = match (&arguments.start, &arguments.end) {
        (Some(start), Some(end)) => {
            Some(WindowRef { start: reference(start)?, end: reference(end)? })
        }
        (None, None) => None,
        _ => {
            let why = "`start` and `end` must be given together";
            return Err(McpError::invalid(why).next("send both, or neither for all new turns"));
        }
    };
    let mut message = arguments.message;
    let mut call = context.call.clone();
    if context.options.redact {
        call = call.with_redacted(redact::string(&mut message));
    }
    let request = NewCommit {
        conversation: conversation_of(context, &arguments.conversation_id)?,
        branch: arguments.branch,
        window,
        message,
        author: None,
    };
    let made = context.engine.commit(&call, request)?;
    let commit = made.commit;
    let facets = commit.facets.unwrap_or_default();
    let turns = counted(usize::try_from(commit.turns).unwrap_or(usize::MAX), "turns");
    let text = format!("Sealed {turns}: {}.", made.hash);
    Ok(ToolAnswer::new(
        text,
        json!({
            "commit_hash": made.hash.to_string(),
            "conversation_id": commit.conversation.as_str(),
            "branch": commit.branch.as_str(),
            "parent_hashes": list_or_null(commit.parents.iter().map(ToString::to_string).collect()),
            "start_turn_hash": commit.window.map(|window| window.start.to_string()),
            "end_turn_hash": commit.window.map(|window| window.end.to_string()),
            "turn_count": commit.turns,
            "entities": most(facets.entities.values()),
            "keywords": most(facets.keywords.values()),
            "topics": most(facets.topics.values()),
            "conflicts": some_number(facets.state.conflicts().count()),
        }),
    )
    .recorded())
}

/// Returns the most frequent terms, without overlong ones.
fn most<'s>(seen: impl Iterator<Item = &'s FacetTerm>) -> Value {
    let mut seen: Vec<&FacetTerm> = seen.filter(|one| one.text.len() <= WORD_BYTES).collect();
    seen.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.text.cmp(&b.text)));
    list_or_null(seen.into_iter().take(WORDS_SHOWN).map(|one| one.text.clone()).collect())
}

fn some_number(number: usize) -> Value {
    if number == 0 { Value::Null } else { number.into() }
}

fn diff_turns(context: &ToolContext, arguments: DiffArguments) -> Result<ToolAnswer, McpError> {
    let conversation = arguments.conversation_id.as_deref();
    let query = DiffQuery {
        conversation: conversation.map(|id| conversation_of(context, id)).transpose()?,
        from: arguments.from,
        to: arguments.to,
        limit: Some(CHANGES_SHOWN),
    };
    let Diff { from, to, common, bases, changes, left_out, entities, keywords, topics, facts } =
        context.engine.diff(&context.call, query)?;
    let (turns, fields) = (counted(changes.len(), "turns"), counted(facts.len(), "fields"));
    let text = format!("{turns} and {fields} differ.");
    let mut truncator = Truncator::new(context.budget.text_bytes() / 3);
    let room = context.budget.bytes() / 3;
    let (changes, more) = fitting(changes, room, |it| change(it, &mut truncator));
    let left_out = usize::try_from(left_out).unwrap_or(usize::MAX).saturating_add(more);
    let (facts, facts_left) = fitting(facts, room, |it| field(it, &mut truncator));
    let mut notes = truncator.notes;
    if left_out > 0 {
        notes.push(format!("{left_out} turns; compare shorter ranges a..b"));
    }
    if facts_left > 0 {
        notes.push(format!("{facts_left} fields; read them with retrieve_entity_snapshot"));
    }
    Ok(ToolAnswer::new(
        text,
        json!({
            "from": side(from),
            "to": side(to),
            "common_turn_hash": common.map(|hash| hash.to_string()),
            "bases": list_or_null(bases.iter().map(ToString::to_string).collect()),
            "changes": changes,
            "entities": words(&entities),
            "keywords": words(&keywords),
            "topics": words(&topics),
            "facts": if facts.is_empty() { Value::Null } else { facts.into() },
            "cut": list_or_null(notes),
        }),
    )
    .recorded())
}

/// Returns the forms that fit, and the number of those left out.
fn fitting<T>(all: Vec<T>, room: usize, mut form: impl FnMut(T) -> Value) -> (Vec<Value>, usize) {
    let total = all.len();
    let (mut shown, mut used) = (Vec::new(), 0);
    for one in all {
        let one = form(one);
        used += json_bytes(&one);
        if used > room && !shown.is_empty() {
            break;
        }
        shown.push(one);
    }
    let left = total - shown.len();
    (shown, left)
}

fn side(side: DiffSide) -> Value {
    without_nulls(json!({
        "conversation_id": side.conversation.as_str(),
        "turn_hash": side.turn.map(|hash| hash.to_string()),
        "commit_hash": side.commit.map(|hash| hash.to_string()),
        "turns": side.turns,
        "commits": some_number(side.commits.len()),
    }))
}

fn change(change: TurnChange, truncator: &mut Truncator) -> Value {
    let mut one = |kind: &str, turn: DiffTurn| {
        let whole = record_json::turn_uri(turn.id);
        json!({
            "change": kind,
            "turn_id": turn.id.to_string(),
            "role": turn.role.as_str(),
            "text": truncator.text(turn.text, &whole),
        })
    };
    match change {
        TurnChange::Lost { from } => one("lost", from),
        TurnChange::Gained { to } => one("gained", to),
        TurnChange::Equal { from, to } => json!({
            "change": "equal",
            "from": from.id.to_string(),
            "to": to.id.to_string(),
        }),
        TurnChange::Changed { from, to, words } => {
            let whole = record_json::turn_uri(to.id);
            json!({
                "change": "changed",
                "from": from.id.to_string(),
                "to": to.id.to_string(),
                "role": to.role.as_str(),
                "words": truncator.text(words.into_iter().map(marked).collect(), &whole),
            })
        }
    }
}

/// Marks changed words in the usual notation.
fn marked(change: WordChange) -> String {
    match change {
        WordChange::Kept(text) => text,
        WordChange::Lost(text) => format!("[-{text}-]"),
        WordChange::Gained(text) => format!("{{+{text}+}}"),
    }
}

fn words(diff: &SeenDiff) -> Value {
    let form = without_nulls(json!({
        "gained": most(diff.gained.iter()),
        "lost": most(diff.lost.iter()),
        "kept": some_number(diff.kept.len()),
    }));
    if form == json!({}) { Value::Null } else { form }
}

fn field(change: FieldChange, truncator: &mut Truncator) -> Value {
    let whole = format!("tine://entity/{}", change.entity);
    let mut held = |held: Option<FieldState>| match held {
        None => Value::Null,
        Some(FieldState::Value(value)) => {
            let value = value.json.as_ref().map_or(Value::Null, record_json::value);
            truncator.value(value, &whole)
        }
        Some(FieldState::Conflict(conflict)) => {
            let sides = conflict.sides.iter();
            let sides =
                sides.map(|side| side.json.as_ref().map_or(Value::Null, record_json::value));
            json!({ "undecided": truncator.value(sides.collect(), &whole) })
        }
    };
    without_nulls(json!({
        "entity_id": change.entity.to_string(),
        "name": change.name.filter(|name| name.len() <= WORD_BYTES),
        "field": change.field,
        "from": held(change.from),
        "to": held(change.to),
    }))
}

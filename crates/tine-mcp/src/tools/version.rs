//! Tools about commits: sealing turns, comparing.

use serde_json::{Value, json};
use tine_core::commit::{FacetTerm, FieldState};
use tine_engine::{
    Diff, DiffQuery, DiffSide, DiffTurn, FieldChange, NewCommit, SeenDiff, TurnChange, WindowRef,
    WordChange,
};
use tine_formats::redact;

use super::store::conversation_of;
use super::{Effect, Spec, ToolContext, typed};
use crate::answer::{Answer, Cuts, count, lean, list_or_null, size};
use crate::arguments::reference;
use crate::forms;
use crate::refusal::Refusal;
use crate::schema;
use crate::typed::arguments;

pub(super) const TOOLS: &[Spec] = &[
    Spec {
        name: "commit_turns",
        about: "Seal turns as a checkpoint with what they are about and what is known then. \
                Without start and end: all that is new on the branch.",
        effect: Effect::Adds,
        core: false,
        memory: Some(false),
        paged: false,
        input: schema::of::<CommitArguments>,
        output: &[("commit_hash", "string")],
        run: typed!(CommitArguments, commit_turns),
    },
    Spec {
        name: "diff_turns",
        about: "Compare two turns, branches, commits or stretches a..b: what was said, what it \
                is about, what is known.",
        effect: Effect::Reads,
        core: false,
        memory: Some(false),
        paged: false,
        input: schema::of::<DiffArguments>,
        output: &[("changes", "array")],
        run: typed!(DiffArguments, diff_turns),
    },
];

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

/// Words of one sort that an answer names.
const WORDS_SHOWN: usize = 20;

/// Bytes of a word that an answer names.
const WORD_BYTES: usize = 80;

/// Turns that a comparison tells one by one.
const CHANGES_SHOWN: usize = 50;

fn commit_turns(context: &ToolContext, arguments: CommitArguments) -> Result<Answer, Refusal> {
    let window = match (&arguments.start, &arguments.end) {
        (Some(start), Some(end)) => {
            Some(WindowRef { start: reference(start)?, end: reference(end)? })
        }
        (None, None) => None,
        _ => {
            let why = "`start` and `end` are the first and the last turn of a stretch";
            return Err(Refusal::invalid(why).next("send both, or none for all that is new"));
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
    let turns = count(usize::try_from(commit.turns).unwrap_or(usize::MAX), "turns");
    let text = format!("{turns} sealed: {}.", made.hash);
    Ok(Answer::new(
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

/// The words that most turns say. What is longer is hardly a word.
fn most<'s>(seen: impl Iterator<Item = &'s FacetTerm>) -> Value {
    let mut seen: Vec<&FacetTerm> = seen.filter(|one| one.text.len() <= WORD_BYTES).collect();
    seen.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.text.cmp(&b.text)));
    list_or_null(seen.into_iter().take(WORDS_SHOWN).map(|one| one.text.clone()).collect())
}

fn some_number(number: usize) -> Value {
    if number == 0 { Value::Null } else { number.into() }
}

fn diff_turns(context: &ToolContext, arguments: DiffArguments) -> Result<Answer, Refusal> {
    let conversation = arguments.conversation_id.as_deref();
    let query = DiffQuery {
        conversation: conversation.map(|id| conversation_of(context, id)).transpose()?,
        from: arguments.from,
        to: arguments.to,
        limit: Some(CHANGES_SHOWN),
    };
    let Diff { from, to, common, bases, changes, left_out, entities, keywords, topics, facts } =
        context.engine.diff(&context.call, query)?;
    let (turns, fields) = (count(changes.len(), "turns"), count(facts.len(), "fields"));
    let text = format!("{turns} and {fields} differ.");
    let mut cuts = Cuts::new(context.room.text_bytes() / 3);
    let room = context.room.bytes() / 3;
    let (changes, more) = fitting(changes, room, |it| change(it, &mut cuts));
    let left_out = usize::try_from(left_out).unwrap_or(usize::MAX).saturating_add(more);
    let (facts, facts_left) = fitting(facts, room, |it| field(it, &mut cuts));
    let mut told = cuts.told;
    if left_out > 0 {
        told.push(format!("{left_out} turns; compare shorter stretches a..b"));
    }
    if facts_left > 0 {
        told.push(format!("{facts_left} fields; retrieve_entity_snapshot reads them"));
    }
    Ok(Answer::new(
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
            "cut": list_or_null(told),
        }),
    )
    .recorded())
}

/// As many forms as fit, and how many do not.
fn fitting<T>(all: Vec<T>, room: usize, mut form: impl FnMut(T) -> Value) -> (Vec<Value>, usize) {
    let total = all.len();
    let (mut shown, mut used) = (Vec::new(), 0);
    for one in all {
        let one = form(one);
        used += size(&one);
        if used > room && !shown.is_empty() {
            break;
        }
        shown.push(one);
    }
    let left = total - shown.len();
    (shown, left)
}

fn side(side: DiffSide) -> Value {
    lean(json!({
        "conversation_id": side.conversation.as_str(),
        "turn_hash": side.turn.map(|hash| hash.to_string()),
        "commit_hash": side.commit.map(|hash| hash.to_string()),
        "turns": side.turns,
        "commits": some_number(side.commits.len()),
    }))
}

fn change(change: TurnChange, cuts: &mut Cuts) -> Value {
    let mut one = |kind: &str, turn: DiffTurn| {
        let whole = forms::turn_uri(turn.id);
        json!({
            "change": kind,
            "turn_id": turn.id.to_string(),
            "role": turn.role.as_str(),
            "text": cuts.text(turn.text, &whole),
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
            let whole = forms::turn_uri(to.id);
            json!({
                "change": "changed",
                "from": from.id.to_string(),
                "to": to.id.to_string(),
                "role": to.role.as_str(),
                "words": cuts.text(words.into_iter().map(marked).collect(), &whole),
            })
        }
    }
}

/// Words as people mark them who compare texts.
fn marked(change: WordChange) -> String {
    match change {
        WordChange::Kept(text) => text,
        WordChange::Lost(text) => format!("[-{text}-]"),
        WordChange::Gained(text) => format!("{{+{text}+}}"),
    }
}

fn words(diff: &SeenDiff) -> Value {
    let form = lean(json!({
        "gained": most(diff.gained.iter()),
        "lost": most(diff.lost.iter()),
        "kept": some_number(diff.kept.len()),
    }));
    if form == json!({}) { Value::Null } else { form }
}

fn field(change: FieldChange, cuts: &mut Cuts) -> Value {
    let whole = format!("tine://entity/{}", change.entity);
    let mut held = |held: Option<FieldState>| match held {
        None => Value::Null,
        Some(FieldState::Value(value)) => {
            let value = value.json.as_ref().map_or(Value::Null, forms::value);
            cuts.value(value, &whole)
        }
        Some(FieldState::Conflict(conflict)) => {
            let sides = conflict.sides.iter();
            let sides = sides.map(|side| side.json.as_ref().map_or(Value::Null, forms::value));
            json!({ "undecided": cuts.value(sides.collect(), &whole) })
        }
    };
    lean(json!({
        "entity_id": change.entity.to_string(),
        "name": change.name.filter(|name| name.len() <= WORD_BYTES),
        "field": change.field,
        "from": held(change.from),
        "to": held(change.to),
    }))
}

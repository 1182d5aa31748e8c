//! Rules that all providers share: matching tool calls with their results, and merging texts.
//!
//! - The results of a turn's calls come right after it.
//! - Each call has one result and each result one call, matched by a unique id.
//! - A result without a call becomes a user message, which no provider rejects.
//! - Adjacent turns of one role that are only text become one: the halves of a split text are
//!   joined directly, other texts by a blank line. Blank texts are left out.

use std::collections::{HashMap, HashSet};

use tine_api::TurnOpenCalls;
use tine_core::{Digest, Role, TurnId};

use super::notes::{BlockRef, Notes};
use super::turn_parts::{Part, PartKind, ToolCall, TurnParts};
use super::{Format, OpenCalls, Options, RenderError};

/// The result that is added for a call without one.
const NO_RESULT: &str = "No result was recorded for this call.";

/// The text that replaces an empty result.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// The longest id of a call that every provider accepts.
const ID_LENGTH: usize = 40;

/// The longest function name.
const NAME_LENGTH: usize = 64;

pub(super) enum RequestStep {
    /// A message without tool calls.
    Message(TurnParts),
    /// Tool calls of the assistant, with their results.
    ToolCalls { calls: TurnParts, results: Vec<ToolResult> },
}

pub(super) struct ToolResult {
    pub at: BlockRef,
    pub wire_id: String,
    /// The function's name in the call.
    pub name: String,
    /// Texts and media; never empty.
    pub parts: Vec<Part>,
    pub is_error: bool,
}

/// Arranges turns as steps in an order that every provider accepts.
pub(super) fn steps(
    turns: Vec<TurnParts>,
    options: &Options<'_>,
    notes: &mut Notes,
) -> Result<Vec<RequestStep>, RenderError> {
    let mut pairing = CallPairing::new(options.format);
    for turn in turns {
        match turn.role {
            Role::Assistant if turn.has_calls() => pairing.add_calls(turn, notes),
            Role::Tool => pairing.add_result(turn, notes),
            Role::User | Role::Assistant | Role::System => {
                pairing.steps.push(RequestStep::Message(turn))
            }
        }
    }
    pairing.finish(options.open_calls, notes)?;
    Ok(merge_adjacent_texts(pairing.steps, notes))
}

/// Reports open calls in formats that need no pairing, if the caller asked for it.
pub(super) fn check_open_calls(turns: &[TurnParts], choice: OpenCalls) -> Result<(), RenderError> {
    if choice != OpenCalls::Report {
        return Ok(());
    }
    let mut open: Vec<(TurnId, &str)> = Vec::new();
    for turn in turns {
        for part in &turn.parts {
            if let (PartKind::Call(call), Some(turn)) = (&part.kind, turn.turn_id) {
                open.push((turn, &call.id));
            }
        }
        if let Some(answered) = &turn.tool_call_id
            && let Some(at) = open.iter().rposition(|(_, call)| call == answered)
        {
            open.remove(at);
        }
    }
    report(open.into_iter().map(|(turn, call)| (turn, call.to_owned())))
}

fn report(open: impl Iterator<Item = (TurnId, String)>) -> Result<(), RenderError> {
    let mut found: Vec<TurnOpenCalls> = Vec::new();
    for (turn, call) in open {
        match found.last_mut() {
            Some(last) if last.turn == turn => last.calls.push(call),
            _ => found.push(TurnOpenCalls { turn, calls: vec![call] }),
        }
    }
    if found.is_empty() { Ok(()) } else { Err(RenderError::OpenCalls(found)) }
}

struct CallPairing {
    format: Format,
    steps: Vec<RequestStep>,
    /// By id on the path; the newest last.
    open: HashMap<String, Vec<OpenCall>>,
    used_ids: HashSet<String>,
}

/// A call without a result so far.
struct OpenCall {
    step: usize,
    wire_id: String,
    name: String,
}

impl CallPairing {
    fn new(format: Format) -> Self {
        let (open, used_ids) = (HashMap::new(), HashSet::new());
        CallPairing { format, steps: Vec::new(), open, used_ids }
    }

    fn add_calls(&mut self, mut turn: TurnParts, notes: &mut Notes) {
        let at = BlockRef::turn(turn.turn_id);
        let last = self.steps.len().checked_sub(1);
        // Some clients record each call of a message as a turn of its own.
        let joins = match self.steps.last_mut() {
            Some(RequestStep::ToolCalls { results, .. }) if results.is_empty() => last,
            _ => None,
        };
        let step = joins.unwrap_or(self.steps.len());
        for part in &mut turn.parts {
            if let PartKind::Call(call) = &mut part.kind {
                self.name(call, part.at, notes);
                let ask = OpenCall { step, wire_id: call.wire_id.clone(), name: call.name.clone() };
                self.open.entry(call.id.clone()).or_default().push(ask);
            }
        }
        match self.steps.last_mut() {
            Some(RequestStep::ToolCalls { calls, .. }) if joins.is_some() => {
                let why = "consecutive calls without results in between belong to one turn";
                notes.changed(at, "a turn with tool calls, merged with the turn before it", why);
                calls.parts.append(&mut turn.parts);
            }
            _ => self.steps.push(RequestStep::ToolCalls { calls: turn, results: Vec::new() }),
        }
    }

    /// Gives a call an id and a name that the provider accepts.
    fn name(&mut self, call: &mut ToolCall, at: BlockRef, notes: &mut Notes) {
        call.wire_id = wire_id(&call.id, &mut self.used_ids);
        if call.wire_id != call.id {
            let why = format!(
                "it is now `{}`: ids are unique and have at most {ID_LENGTH} letters, digits, _ and -",
                call.wire_id
            );
            notes.changed(at, format!("the id `{}` of a tool call", call.id), why);
        }
        let name = wire_name(&call.name, self.format);
        if name != call.name {
            let why = format!(
                "it is now `{name}`: names have at most {NAME_LENGTH} letters, digits, _ and -"
            );
            notes.changed(at, format!("the function name `{}`", call.name), why);
            call.name = name;
        }
    }

    fn add_result(&mut self, turn: TurnParts, notes: &mut Notes) {
        let id = turn.tool_call_id.clone().unwrap_or_default();
        let at = BlockRef::turn(turn.turn_id);
        let Some(ask) = self.open.get_mut(&id).and_then(Vec::pop) else {
            let why = "there is no such call before it; it is written as a user message";
            notes.changed(at, format!("the result of the call `{id}`"), why);
            self.steps.push(RequestStep::Message(unmatched_result(turn, &id)));
            return;
        };
        if ask.step + 1 < self.steps.len() {
            let why = "it is written right after its call";
            notes.changed(at, format!("the place of the result of the call `{id}`"), why);
        }
        let is_error = turn.is_error;
        let parts = non_empty_result(turn.parts, at, notes);
        let result = ToolResult { at, wire_id: ask.wire_id, name: ask.name, parts, is_error };
        if let Some(RequestStep::ToolCalls { results, .. }) = self.steps.get_mut(ask.step) {
            results.push(result);
        }
    }

    fn finish(&mut self, choice: OpenCalls, notes: &mut Notes) -> Result<(), RenderError> {
        let mut still_open: Vec<(TurnId, String)> = Vec::new();
        for step in &mut self.steps {
            let RequestStep::ToolCalls { calls, results } = step else { continue };
            for part in &calls.parts {
                let PartKind::Call(call) = &part.kind else { continue };
                if results.iter().any(|result| result.wire_id == call.wire_id) {
                    continue;
                }
                let what = format!("the tool call `{}`", call.id);
                match choice {
                    OpenCalls::Report => {
                        still_open.extend(part.at.turn.map(|turn| (turn, call.id.clone())));
                    }
                    OpenCalls::Keep => {
                        notes.kept(
                            part.at,
                            what,
                            "it has no result, and providers reject such a call",
                        );
                    }
                    OpenCalls::Close => {
                        let what = format!("a result of {what}");
                        notes.added(part.at, what, "the path has none");
                        let at = part.at;
                        let parts = vec![Part { at, kind: PartKind::Text(NO_RESULT.to_owned()) }];
                        results.push(ToolResult {
                            at,
                            wire_id: call.wire_id.clone(),
                            name: call.name.clone(),
                            parts,
                            is_error: true,
                        });
                    }
                }
            }
        }
        report(still_open.into_iter())
    }
}

/// Returns a result without its call as a user message.
fn unmatched_result(turn: TurnParts, id: &str) -> TurnParts {
    let heading = format!("[Result of the tool call {id}]");
    let mut parts = turn.parts;
    match parts.first_mut() {
        Some(Part { kind: PartKind::Text(text), .. }) => *text = format!("{heading}\n\n{text}"),
        _ => {
            let at = BlockRef::turn(turn.turn_id);
            parts.insert(0, Part { at, kind: PartKind::Text(heading) });
        }
    }
    TurnParts { role: Role::User, parts, tool_call_id: None, continues_previous: false, ..turn }
}

/// Returns the parts of a result. A placeholder replaces a blank result, since providers reject
/// blank texts.
fn non_empty_result(parts: Vec<Part>, at: BlockRef, notes: &mut Notes) -> Vec<Part> {
    let blank = |part: &Part| matches!(&part.kind, PartKind::Text(text) if text.trim().is_empty());
    let (blanks, mut parts): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(blank);
    if parts.is_empty() {
        let why = format!("providers reject blank texts; it is replaced by {NO_OUTPUT}");
        notes.changed(at, "an empty result", why);
        parts.push(Part { at, kind: PartKind::Text(NO_OUTPUT.to_owned()) });
    } else {
        for blank in blanks {
            notes.left_out(blank.at, "a blank text", "providers reject it");
        }
    }
    parts
}

/// Merges adjacent texts and leaves blank ones out.
fn merge_adjacent_texts(steps: Vec<RequestStep>, notes: &mut Notes) -> Vec<RequestStep> {
    let mut joined: Vec<RequestStep> = Vec::with_capacity(steps.len());
    let mut steps = steps.into_iter().peekable();
    while let Some(mut step) = steps.next() {
        // A half of a split text may be blank, and is merged with the other half.
        let in_split = matches!(&step, RequestStep::Message(turn) if turn.continues_previous)
            || matches!(steps.peek(), Some(RequestStep::Message(next)) if next.continues_previous);
        if !in_split {
            let (RequestStep::Message(turn) | RequestStep::ToolCalls { calls: turn, .. }) =
                &mut step;
            drop_blank_texts(turn, notes);
        }
        match (joined.last_mut(), step) {
            (Some(RequestStep::Message(before)), RequestStep::Message(turn))
                if before.role == turn.role && before.is_text() && turn.is_text() =>
            {
                join(before, turn);
            }
            (_, RequestStep::Message(mut turn)) => {
                if turn.is_text() {
                    merge_text_parts(&mut turn);
                }
                joined.push(RequestStep::Message(turn));
            }
            (_, tool_calls) => joined.push(tool_calls),
        }
    }
    for step in &mut joined {
        if let RequestStep::Message(turn) = step {
            drop_blank_texts(turn, notes);
        }
    }
    joined.retain(|step| !matches!(step, RequestStep::Message(turn) if turn.parts.is_empty()));
    joined
}

/// Joins the texts of a turn directly.
fn merge_text_parts(turn: &mut TurnParts) {
    let mut parts = std::mem::take(&mut turn.parts).into_iter();
    let Some(mut first) = parts.next() else { return };
    for part in parts {
        if let (PartKind::Text(all), PartKind::Text(more)) = (&mut first.kind, part.kind) {
            all.push_str(&more);
            first.at.block = None;
        }
    }
    turn.parts.push(first);
}

fn join(before: &mut TurnParts, mut turn: TurnParts) {
    merge_text_parts(&mut turn);
    let Some(Part { kind: PartKind::Text(more), .. }) = turn.parts.pop() else { return };
    match before.parts.last_mut() {
        Some(Part { kind: PartKind::Text(all), at }) => {
            if !turn.continues_previous {
                all.push_str("\n\n");
            }
            all.push_str(&more);
            at.block = None;
        }
        _ => {
            let at = BlockRef::turn(turn.turn_id);
            before.parts.push(Part { at, kind: PartKind::Text(more) });
        }
    }
}

fn drop_blank_texts(turn: &mut TurnParts, notes: &mut Notes) {
    turn.parts.retain(|part| match &part.kind {
        PartKind::Text(text) | PartKind::Summary(text) if text.trim().is_empty() => {
            notes.left_out(part.at, "a blank text", "providers reject it");
            false
        }
        _ => true,
    });
}

fn is_id_char(symbol: char) -> bool {
    symbol.is_ascii_alphanumeric() || symbol == '_' || symbol == '-'
}

/// Returns an unused id in characters that every provider accepts.
fn wire_id(id: &str, used: &mut HashSet<String>) -> String {
    let valid = !id.is_empty() && id.len() <= ID_LENGTH && id.chars().all(is_id_char);
    if valid && used.insert(id.to_owned()) {
        return id.to_owned();
    }
    let stem: String =
        id.chars().map(|it| if is_id_char(it) { it } else { '_' }).take(24).collect();
    let mut round = 0_u64;
    loop {
        let digest = Digest::of(format!("{round}:{id}").as_bytes()).to_hex();
        let made = format!("{stem}_{}", &digest[..12]);
        if used.insert(made.clone()) {
            return made;
        }
        round += 1;
    }
}

fn wire_name(name: &str, format: Format) -> String {
    let mut made: String =
        name.chars().map(|it| if is_id_char(it) { it } else { '_' }).take(NAME_LENGTH).collect();
    let begins_well = made.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if format == Format::Gemini && !begins_well {
        made.insert(0, '_');
        made.truncate(NAME_LENGTH);
    }
    made
}

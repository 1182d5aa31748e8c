//! Tool calls and their results, and coalescing: what all providers ask for alike.
//!
//! - The results of a turn's calls come right behind it, before anything else.
//! - Each call has one result and each result one call, matched by an id that occurs once.
//! - A result without a call becomes something that the user said: it is not lost, and nobody
//!   refuses it.
//! - Neighbours of one role that are text alone become one, joined by nothing between the parts
//!   of a split text and by a blank line otherwise. Texts of white space alone are left out.

use std::collections::{HashMap, HashSet};

use tine_core::{Digest, Role, TurnId};

use super::notes::{BlockRef, Notes};
use super::turn_parts::{ParsedTurns, Part, PartKind, ToolCall, TurnParts};
use tine_api::TurnOpenCalls;

use super::{Format, OpenCalls, Options, RenderError};

/// What a call without a result is answered with.
pub(super) const NO_RESULT: &str = "No result was recorded for this call.";

/// What stands for a result that says nothing.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// Letters that every provider takes in the id of a call, and how many of them.
const ID_LENGTH: usize = 40;

/// Letters of a function's name.
const NAME_LENGTH: usize = 64;

/// One step of a conversation.
pub(super) enum RequestStep {
    /// Somebody says something; no calls.
    Say(TurnParts),
    /// The assistant calls tools, and they answer.
    Exchange { asks: TurnParts, answers: Vec<ToolResult> },
}

/// The result of one call.
pub(super) struct ToolResult {
    pub at: BlockRef,
    pub wire_id: String,
    /// The function's name, as in the call.
    pub name: String,
    /// Texts and media; never empty.
    pub parts: Vec<Part>,
    pub is_error: bool,
}

/// The steps of a script, in an order that every provider takes.
pub(super) fn steps(
    script: ParsedTurns,
    options: &Options<'_>,
    notes: &mut Notes,
) -> Result<Vec<RequestStep>, RenderError> {
    let mut pairing = CallPairing::new(options.format);
    for said in script.said {
        match said.role {
            Role::Assistant if said.has_calls() => pairing.add_calls(said, notes),
            Role::Tool => pairing.add_result(said, notes),
            Role::User | Role::Assistant | Role::System => {
                pairing.steps.push(RequestStep::Say(said))
            }
        }
    }
    pairing.finish(options.open_calls, notes)?;
    Ok(merge_adjacent_texts(pairing.steps, notes))
}

/// Refuses open calls for formats that need no pairing, when they are to be reported.
pub(super) fn check_open_calls(script: &ParsedTurns, choice: OpenCalls) -> Result<(), RenderError> {
    if choice != OpenCalls::Report {
        return Ok(());
    }
    let mut open: Vec<(TurnId, &str)> = Vec::new();
    for said in &script.said {
        for part in &said.parts {
            if let (PartKind::Call(call), Some(turn)) = (&part.what, said.turn) {
                open.push((turn, &call.id));
            }
        }
        if let Some(answered) = &said.answers
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
    /// By the id that the path has; the newest last.
    open: HashMap<String, Vec<OpenCall>>,
    used_ids: HashSet<String>,
}

/// A call that waits for its result.
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

    fn add_calls(&mut self, said: TurnParts, notes: &mut Notes) {
        let mut said = said;
        let at = BlockRef::turn(said.turn);
        let last = self.steps.len().checked_sub(1);
        // Some clients record each call of one answer as a turn of its own.
        let joins = match self.steps.last_mut() {
            Some(RequestStep::Exchange { answers, .. }) if answers.is_empty() => last,
            _ => None,
        };
        let step = joins.unwrap_or(self.steps.len());
        for part in &mut said.parts {
            if let PartKind::Call(call) = &mut part.what {
                self.name(call, part.at, notes);
                let ask = OpenCall { step, wire_id: call.wire_id.clone(), name: call.name.clone() };
                self.open.entry(call.id.clone()).or_default().push(ask);
            }
        }
        match self.steps.last_mut() {
            Some(RequestStep::Exchange { asks, .. }) if joins.is_some() => {
                let why = "consecutive calls without results in between belong to one turn";
                notes.changed(at, "a turn with tool calls, merged with the turn before it", why);
                asks.parts.append(&mut said.parts);
            }
            _ => self.steps.push(RequestStep::Exchange { asks: said, answers: Vec::new() }),
        }
    }

    /// Gives a call an id and a name that the provider takes.
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

    fn add_result(&mut self, said: TurnParts, notes: &mut Notes) {
        let id = said.answers.clone().unwrap_or_default();
        let place = BlockRef::turn(said.turn);
        let Some(ask) = self.open.get_mut(&id).and_then(Vec::pop) else {
            let why = "there is no such call before it; it is written as a user message";
            notes.changed(place, format!("the result of the call `{id}`"), why);
            self.steps.push(RequestStep::Say(unmatched_result(said, &id)));
            return;
        };
        if ask.step + 1 < self.steps.len() {
            let why = "it is written right after its call";
            notes.changed(place, format!("the place of the result of the call `{id}`"), why);
        }
        let is_error = said.failed;
        let parts = non_empty_result(said.parts, place, notes);
        let answer =
            ToolResult { at: place, wire_id: ask.wire_id, name: ask.name, parts, is_error };
        if let Some(RequestStep::Exchange { answers, .. }) = self.steps.get_mut(ask.step) {
            answers.push(answer);
        }
    }

    fn finish(&mut self, choice: OpenCalls, notes: &mut Notes) -> Result<(), RenderError> {
        let mut still_open: Vec<(TurnId, String)> = Vec::new();
        for step in &mut self.steps {
            let RequestStep::Exchange { asks, answers } = step else { continue };
            for part in &asks.parts {
                let PartKind::Call(call) = &part.what else { continue };
                if answers.iter().any(|answer| answer.wire_id == call.wire_id) {
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
                        let parts = vec![Part { at, what: PartKind::Text(NO_RESULT.to_owned()) }];
                        answers.push(ToolResult {
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

/// A result without its call, as something that the user said.
fn unmatched_result(said: TurnParts, id: &str) -> TurnParts {
    let heading = format!("[Result of the tool call {id}]");
    let mut parts = said.parts;
    match parts.first_mut() {
        Some(Part { what: PartKind::Text(text), .. }) => *text = format!("{heading}\n\n{text}"),
        _ => {
            let at = BlockRef::turn(said.turn);
            parts.insert(0, Part { at, what: PartKind::Text(heading) });
        }
    }
    TurnParts { role: Role::User, parts, answers: None, joins: false, ..said }
}

/// The parts of a result; one that is blank says so, since providers refuse empty texts.
fn non_empty_result(parts: Vec<Part>, place: BlockRef, notes: &mut Notes) -> Vec<Part> {
    let blank = |part: &Part| matches!(&part.what, PartKind::Text(text) if text.trim().is_empty());
    let (blanks, mut parts): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(blank);
    if parts.is_empty() {
        let why = format!("providers reject blank texts; it is replaced by {NO_OUTPUT}");
        notes.changed(place, "an empty result", why);
        parts.push(Part { at: place, what: PartKind::Text(NO_OUTPUT.to_owned()) });
    } else {
        for blank in blanks {
            notes.left_out(blank.at, "a blank text", "providers reject it");
        }
    }
    parts
}

/// Joins neighbours and leaves blank texts out.
fn merge_adjacent_texts(steps: Vec<RequestStep>, notes: &mut Notes) -> Vec<RequestStep> {
    let mut joined: Vec<RequestStep> = Vec::with_capacity(steps.len());
    let mut steps = steps.into_iter().peekable();
    while let Some(mut step) = steps.next() {
        // A part of a split text may be blank; joined to its neighbours it is not.
        let in_split = matches!(&step, RequestStep::Say(said) if said.joins)
            || matches!(steps.peek(), Some(RequestStep::Say(next)) if next.joins);
        if !in_split {
            let (RequestStep::Say(said) | RequestStep::Exchange { asks: said, .. }) = &mut step;
            drop_blank_texts(said, notes);
        }
        match (joined.last_mut(), step) {
            (Some(RequestStep::Say(before)), RequestStep::Say(said))
                if before.role == said.role && before.is_text() && said.is_text() =>
            {
                join(before, said);
            }
            (_, RequestStep::Say(mut said)) => {
                if said.is_text() {
                    merge_text_parts(&mut said);
                }
                joined.push(RequestStep::Say(said));
            }
            (_, exchange) => joined.push(exchange),
        }
    }
    for step in &mut joined {
        if let RequestStep::Say(said) = step {
            drop_blank_texts(said, notes);
        }
    }
    joined.retain(|step| !matches!(step, RequestStep::Say(said) if said.parts.is_empty()));
    joined
}

/// The texts of one turn as one, joined by nothing.
fn merge_text_parts(said: &mut TurnParts) {
    let mut parts = std::mem::take(&mut said.parts).into_iter();
    let Some(mut first) = parts.next() else { return };
    for part in parts {
        if let (PartKind::Text(all), PartKind::Text(more)) = (&mut first.what, part.what) {
            all.push_str(&more);
            first.at.block = None;
        }
    }
    said.parts.push(first);
}

fn join(before: &mut TurnParts, said: TurnParts) {
    let mut said = said;
    merge_text_parts(&mut said);
    let Some(Part { what: PartKind::Text(more), .. }) = said.parts.pop() else { return };
    match before.parts.last_mut() {
        Some(Part { what: PartKind::Text(all), at }) => {
            if !said.joins {
                all.push_str("\n\n");
            }
            all.push_str(&more);
            at.block = None;
        }
        _ => {
            let at = BlockRef::turn(said.turn);
            before.parts.push(Part { at, what: PartKind::Text(more) });
        }
    }
}

fn drop_blank_texts(said: &mut TurnParts, notes: &mut Notes) {
    said.parts.retain(|part| match &part.what {
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

/// An id in the letters that every provider takes, not used before.
fn wire_id(id: &str, used: &mut HashSet<String>) -> String {
    let sound = !id.is_empty() && id.len() <= ID_LENGTH && id.chars().all(is_id_char);
    if sound && used.insert(id.to_owned()) {
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

//! Finds the longest end of a path that fits a token budget.
//!
//! A suffix begins at a turn that needs no earlier one (no result whose call was cut, no second half
//! of a split text), at a user turn if one is near enough. The system prompt is always included. If
//! a `summary` block on the path replaces turns that were cut, it is put in their place.
//!
//! Lengths are counted on the rendering itself. Suffixes of twice as many turns are tried each time,
//! then a binary search follows: the work depends on the length of the suffix, not of the path.

use std::collections::HashMap;

use tine_api::{PathPage, TurnView};
use tine_core::{Json, Role, TurnId};
use tine_store::Content;

use super::notes::{BlockRef, Notes};
use super::turn_parts::summary_text;
use super::{Budget, Format, OpenCalls, Options, RenderError, Rendered, Rendering, Tokens, write};

/// Tokens of a message in addition to its text, as documented for chat completions.
const PER_MESSAGE: u64 = 3;

/// Tokens of the beginning of the reply.
const PER_REPLY: u64 = 3;

/// Estimated tokens of an image: one of 1024 × 1024, to which most are scaled down.
const PER_IMAGE: u64 = 765;

/// Estimated bytes per token of audio and documents.
const BYTES_PER_TOKEN: usize = 100;

/// A path whose beginning is cut.
pub(super) struct PathCut {
    /// The index of the first remaining turn.
    pub start: usize,
    /// Summaries that replace the turns that were cut.
    pub summaries: Vec<MovedSummary>,
    /// The number of turns that they replace.
    covered_turns: usize,
}

/// A summary that is moved to the beginning.
pub(super) struct MovedSummary {
    pub turn: usize,
    pub block: usize,
    pub text: String,
    pub json: Json,
}

impl PathCut {
    pub(super) fn none() -> Self {
        PathCut { start: 0, summaries: Vec::new(), covered_turns: 0 }
    }

    pub(super) fn is_moved(&self, turn: usize, block: usize) -> bool {
        self.summaries.iter().any(|moved| (moved.turn, moved.block) == (turn, block))
    }

    pub(super) fn begins_at(&self, path: &PathPage) -> Option<TurnId> {
        (self.start > 0).then(|| path.turns.get(self.start).map(|turn| turn.id)).flatten()
    }

    pub(super) fn note(&self, path: &PathPage, notes: &mut Notes) {
        if self.start == 0 {
            return;
        }
        let count = |turns: usize| match turns {
            1 => "1 turn".to_owned(),
            turns => format!("{turns} turns"),
        };
        let what = format!("the first {}", count(self.start));
        let mut why = "they do not fit".to_owned();
        if let Some(first) = path.turns.get(self.start) {
            why.push_str(&format!("; the first that fits is {}", first.id));
        }
        if self.covered_turns > 0 {
            why.push_str(&format!("; a summary replaces {} of them", self.covered_turns));
        }
        notes.left_out(BlockRef::default(), what, why);
        for moved in &self.summaries {
            let at = BlockRef { turn: Some(path.turns[moved.turn].id), block: Some(moved.block) };
            let why = "it replaces turns that were cut, and is written in their place";
            if moved.turn < self.start {
                notes.added(at, "a summary", why);
            } else {
                notes.changed(at, "the place of a summary", why);
            }
        }
    }
}

/// Renders the longest end of a path that fits.
pub(super) fn longest_that_fits(
    path: &PathPage,
    options: &Options<'_>,
    budget: Budget<'_>,
) -> Result<Rendering, RenderError> {
    let summaries = Summaries::read(path)?;
    // Open calls matter only in the suffix that is chosen.
    let report = options.open_calls == OpenCalls::Report;
    let open_calls = if report { OpenCalls::Close } else { options.open_calls };
    let tried = Options { open_calls, ..*options };
    let measured = |start: usize| {
        let mut rendering = write(path, &tried, &summaries.cut(start))?;
        rendering.tokens = Some(tokens(&rendering, budget.count));
        Ok(rendering)
    };
    let mut candidates = start_indices(&path.turns)?;
    if candidates.is_empty() {
        // The root alone.
        candidates.push(0);
    }
    let users =
        candidates.iter().copied().filter(|at| *at == 0 || path.turns[*at].role == Role::User);
    let users: Vec<usize> = users.collect();
    for places in [&users, &candidates] {
        if let Some(found) = longest_suffix(places, budget.max_tokens, &measured)? {
            if report {
                write(path, options, &summaries.cut(found.turns_cut))?;
            }
            return Ok(found);
        }
    }
    let mut needed = u64::MAX;
    for last in users.last().into_iter().chain(candidates.last()) {
        needed = needed.min(length(&measured(*last)?));
    }
    Err(RenderError::TooLong { limit: budget.max_tokens, needed })
}

fn length(rendering: &Rendering) -> u64 {
    rendering.tokens.map_or(0, |tokens| tokens.count)
}

/// Renders from the earliest of the indices, given in order, from which the rest fits.
fn longest_suffix(
    places: &[usize],
    limit: u64,
    measured: &dyn Fn(usize) -> Result<Rendering, RenderError>,
) -> Result<Option<Rendering>, RenderError> {
    let at = |back: usize| measured(places[places.len() - back]);
    let mut best: Option<Rendering> = None;
    // From `good` indices before the end on it fits, from `bad` on it does not.
    let (mut good, mut bad) = (0, places.len() + 1);
    let mut step = 1;
    while bad - good > 1 {
        let back = if bad <= places.len() { good + (bad - good) / 2 } else { good + step };
        let back = back.min(places.len());
        let rendering = at(back)?;
        if length(&rendering) <= limit {
            best = Some(rendering);
            good = back;
            step *= 2;
        } else {
            bad = back;
        }
    }
    Ok(best)
}

/// Returns the indices of the turns at which a path can begin, in order.
fn start_indices(turns: &[TurnView]) -> Result<Vec<usize>, RenderError> {
    // The turns with each call; a result belongs to the newest one.
    let mut calls: HashMap<String, Vec<usize>> = HashMap::new();
    // For each turn, the earliest turn that its result needs.
    let mut reach: Vec<usize> = (0..turns.len()).collect();
    for (index, turn) in turns.iter().enumerate() {
        // A purged result does not answer its call; a later one may.
        if let Some(call) = &turn.tool_call_id
            && matches!(turn.content, Content::Kept(_))
            && let Some(asked) = calls.get_mut(call).and_then(Vec::pop)
        {
            reach[index] = asked;
        }
        if turn.role == Role::Assistant {
            for block in blocks(turn)? {
                if block.get("type").and_then(Json::as_str) == Some("tool-use") {
                    let id = block.get("id").and_then(Json::as_str).unwrap_or_default();
                    calls.entry(id.to_owned()).or_default().push(index);
                }
            }
        }
    }
    let mut starts = Vec::new();
    let mut needed = turns.len();
    for index in (0..turns.len()).rev() {
        needed = needed.min(reach[index]);
        let before = index.checked_sub(1).map(|before| turns[before].id);
        let goes_on = before.is_some() && turns[index].continues == before;
        if needed >= index && turns[index].role != Role::Tool && !goes_on {
            starts.push(index);
        }
    }
    if starts.last() != Some(&0) && !turns.is_empty() {
        starts.push(0);
    }
    starts.reverse();
    Ok(starts)
}

fn blocks(turn: &TurnView) -> Result<Vec<Json>, RenderError> {
    match &turn.content {
        Content::Kept(tine_core::Body::Text(_)) | Content::Purged(_) => Ok(Vec::new()),
        Content::Kept(body) => {
            body.blocks().map_err(|error| RenderError::Corrupt { turn: turn.id, error })
        }
    }
}

struct Summaries {
    all: Vec<Summary>,
}

struct Summary {
    turn: usize,
    block: usize,
    text: String,
    json: Json,
    /// The indices of the turns that it replaces, sorted.
    covers: Vec<usize>,
}

impl Summaries {
    fn read(path: &PathPage) -> Result<Self, RenderError> {
        let mut all = Vec::new();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, turn) in path.turns.iter().enumerate() {
            let whole = turn.origin.part_of.map(|whole| whole.to_string());
            for name in [Some(turn.id.to_string()), Some(turn.hash.to_string()), whole] {
                places.entry(name.unwrap_or_default()).or_default().push(index);
            }
            for (block, json) in blocks(turn)?.into_iter().enumerate() {
                let is_summary = json.get("type").and_then(Json::as_str) == Some("summary");
                let Some(text) = summary_text(&json).filter(|_| is_summary) else { continue };
                let covers = covered_turns(&json, index, &places);
                all.push(Summary { turn: index, block, text: text.to_owned(), covers, json });
            }
        }
        Ok(Summaries { all })
    }

    /// Returns the cut before a turn, with the summaries that replace it.
    fn cut(&self, start: usize) -> PathCut {
        let mut cut = PathCut { start, ..PathCut::none() };
        let mut covered_turns: Vec<usize> = Vec::new();
        let is_relevant = |it: &&Summary| it.covers.first().is_some_and(|first| *first < start);
        // A later summary that replaces the turn of an earlier one replaces that summary too.
        let replaced = |turn: usize| {
            let mut later = self.all.iter().filter(|it| it.turn > turn).filter(is_relevant);
            later.any(|it| it.covers.binary_search(&turn).is_ok())
        };
        for it in self.all.iter().filter(is_relevant).filter(|it| !replaced(it.turn)) {
            covered_turns.extend(it.covers.iter().copied().filter(|turn| *turn < start));
            cut.summaries.push(MovedSummary {
                turn: it.turn,
                block: it.block,
                text: it.text.clone(),
                json: it.json.clone(),
            });
        }
        covered_turns.sort_unstable();
        covered_turns.dedup();
        cut.covered_turns = covered_turns.len();
        cut
    }
}

/// Returns the turns before a summary that it names, or all of them if it names none.
fn covered_turns(json: &Json, before: usize, places: &HashMap<String, Vec<usize>>) -> Vec<usize> {
    let place = |name: &str| {
        let bare = places.get(name).or_else(|| places.get(&format!("sha256:{name}")));
        bare.into_iter().flatten().copied().filter(|place| *place < before).collect::<Vec<_>>()
    };
    let named: Vec<&str> = ["turns", "turn_ids", "turn_hashes"]
        .iter()
        .filter_map(|member| json.get(member)?.as_array())
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    if let Some(window) = json.get("turn_window") {
        let end = |member| window.get(member).and_then(Json::as_str).map(place).unwrap_or_default();
        let (start, end) = (end("start_turn_hash"), end("end_turn_hash"));
        return match (start.first(), end.last()) {
            (Some(start), Some(end)) => (*start..=*end).collect(),
            _ => Vec::new(),
        };
    }
    if named.is_empty() {
        return (0..before).collect();
    }
    let mut found: Vec<usize> = named.into_iter().flat_map(place).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn tokens(rendering: &Rendering, count: &dyn Fn(&str) -> usize) -> Tokens {
    let mut weight = TokenEstimate { count, tokens: 0, exact: rendering.format == Format::OpenAi };
    match &rendering.rendered {
        Rendered::Text(text) => weight.text(text),
        Rendered::Request(request) => {
            for (_, member) in request.as_object().into_iter().flat_map(|it| it.iter()) {
                match member.as_array() {
                    Some(messages) => messages.iter().for_each(|message| weight.message(message)),
                    None => weight.message(member),
                }
            }
            weight.tokens += PER_REPLY;
        }
    }
    Tokens { count: weight.tokens, exact: weight.exact }
}

struct TokenEstimate<'a> {
    count: &'a dyn Fn(&str) -> usize,
    tokens: u64,
    exact: bool,
}

impl TokenEstimate<'_> {
    fn text(&mut self, text: &str) {
        self.tokens += u64::try_from((self.count)(text)).unwrap_or(u64::MAX);
    }

    fn message(&mut self, message: &Json) {
        self.tokens += PER_MESSAGE;
        self.value(message);
    }

    fn value(&mut self, json: &Json) {
        match json {
            Json::Null => {}
            Json::String(text) => self.text(text),
            Json::Bool(_) | Json::Number(_) => self.text(&json.to_canonical()),
            Json::Array(items) => items.iter().for_each(|item| self.value(item)),
            Json::Object(members) => {
                for (name, member) in members.iter() {
                    self.member(name, member);
                }
            }
        }
    }

    fn member(&mut self, name: &str, member: &Json) {
        match name {
            // Fields that a model does not read.
            "type" | "signature" | "thoughtSignature" | "created_at" | "metadata" | "status" => {}
            // A model reads arguments as JSON.
            "input" | "args" | "parameters" => {
                self.exact = false;
                self.text(&member.to_canonical());
            }
            "tool_calls" => {
                self.exact = false;
                self.tokens += PER_MESSAGE;
                self.value(member);
            }
            "image_url" | "source" | "inlineData" | "fileData" | "input_audio" | "file" => {
                self.exact = false;
                let length = member.to_canonical().len() / BYTES_PER_TOKEN;
                let image = name == "image_url" || is_image(member);
                let large = u64::try_from(length).unwrap_or(u64::MAX).max(PER_IMAGE);
                self.tokens += if image { PER_IMAGE } else { large };
            }
            _ => self.value(member),
        }
    }
}

fn is_image(member: &Json) -> bool {
    let mime = member.get("media_type").or_else(|| member.get("mimeType"));
    mime.and_then(Json::as_str).is_some_and(|mime| mime.starts_with("image/"))
}

//! The end of a path that fits.
//!
//! Invariants: a tail begins at a turn that no earlier turn is needed for (no result whose call
//! was cut, no second part of a split text), at a user's turn wherever one is near enough; the
//! system prompt is always in it; and where a `summary` block on the path stands for turns that
//! were cut, it is put in their place.
//!
//! Lengths are counted on the rendering itself, so that what is added, joined and left out
//! counts. Ever longer tails are tried, twice as many turns each time, and then halves: the work
//! follows the length of the tail, not of the path.

use std::collections::HashMap;

use tine_api::{PathPage, TurnView};
use tine_core::{Json, Role, TurnId};
use tine_store::Content;

use super::notes::{Notes, Place};
use super::script;
use super::{Budget, Format, OpenCalls, Options, RenderError, Rendered, Rendering, Tokens, write};

/// What a message costs besides its text, as documented for chat completions.
const PER_MESSAGE: u64 = 3;

/// What the beginning of the reply costs.
const PER_REPLY: u64 = 3;

/// What an image is taken to cost: one of 1024 × 1024, which is what most are reduced to.
const PER_IMAGE: u64 = 765;

/// Bytes of a sound or a document that are taken to cost one token.
const BYTES_PER_TOKEN: usize = 100;

/// A path without its beginning.
pub(super) struct Cut {
    /// The first turn that is left.
    pub start: usize,
    /// Summaries that are put in the place of what was cut.
    pub summaries: Vec<Moved>,
    /// Turns that those stand for.
    covered: usize,
}

/// A summary that leaves its turn.
pub(super) struct Moved {
    pub turn: usize,
    pub block: usize,
    pub text: String,
    pub json: Json,
}

impl Cut {
    pub(super) fn none() -> Self {
        Cut { start: 0, summaries: Vec::new(), covered: 0 }
    }

    pub(super) fn has_moved(&self, turn: usize, block: usize) -> bool {
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
            why.push_str(&format!("; the first that does is {}", first.id));
        }
        if self.covered > 0 {
            why.push_str(&format!("; a summary stands for {} of them", self.covered));
        }
        notes.left_out(Place::default(), what, why);
        for moved in &self.summaries {
            let at = Place { turn: Some(path.turns[moved.turn].id), block: Some(moved.block) };
            let why = "it stands for turns that were cut, and is written in their place";
            if moved.turn < self.start {
                notes.added(at, "a summary", why);
            } else {
                notes.changed(at, "the place of a summary", why);
            }
        }
    }
}

/// The longest tail that fits.
pub(super) fn fitting(
    path: &PathPage,
    options: &Options<'_>,
    budget: Budget<'_>,
) -> Result<Rendering, RenderError> {
    let summaries = Summaries::read(path)?;
    // Open calls concern only the tail that is chosen, not those that are tried.
    let report = options.open_calls == OpenCalls::Report;
    let open_calls = if report { OpenCalls::Close } else { options.open_calls };
    let tried = Options { open_calls, ..*options };
    let measured = |start: usize| {
        let mut rendering = write(path, &tried, &summaries.cut(start))?;
        rendering.tokens = Some(tokens(&rendering, budget.count));
        Ok(rendering)
    };
    let mut starts = starts(&path.turns)?;
    if starts.is_empty() {
        // The root alone.
        starts.push(0);
    }
    let users = starts.iter().copied().filter(|at| *at == 0 || path.turns[*at].role == Role::User);
    let users: Vec<usize> = users.collect();
    for places in [&users, &starts] {
        if let Some(found) = longest(places, budget.max_tokens, &measured)? {
            if report {
                write(path, options, &summaries.cut(found.turns_cut))?;
            }
            return Ok(found);
        }
    }
    let mut needed = u64::MAX;
    for last in users.last().into_iter().chain(starts.last()) {
        needed = needed.min(length(&measured(*last)?));
    }
    Err(RenderError::TooLong { limit: budget.max_tokens, needed })
}

fn length(rendering: &Rendering) -> u64 {
    rendering.tokens.map_or(0, |tokens| tokens.count)
}

/// The earliest of the places, in order of the path, from which the rest fits.
fn longest(
    places: &[usize],
    limit: u64,
    measured: &dyn Fn(usize) -> Result<Rendering, RenderError>,
) -> Result<Option<Rendering>, RenderError> {
    let at = |back: usize| measured(places[places.len() - back]);
    let mut best: Option<Rendering> = None;
    // Between these lies the answer: `good` places back it fits, `bad` places back it does not.
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

/// Turns at which a path can begin, in order.
fn starts(turns: &[TurnView]) -> Result<Vec<usize>, RenderError> {
    // For each call the turn that made it; a result reaches back to the newest one.
    let mut calls: HashMap<String, Vec<usize>> = HashMap::new();
    // For each turn how far back the results at or behind it reach.
    let mut reach: Vec<usize> = (0..turns.len()).collect();
    for (index, turn) in turns.iter().enumerate() {
        // What is left of an erased result answers nothing: a later one can.
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

/// Every summary on a path.
struct Summaries {
    all: Vec<Summary>,
}

struct Summary {
    turn: usize,
    block: usize,
    text: String,
    json: Json,
    /// The turns that it stands for, sorted.
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
                let Some(text) = script::summary(&json).filter(|_| is_summary) else { continue };
                let covers = covered(&json, index, &places);
                all.push(Summary { turn: index, block, text: text.to_owned(), covers, json });
            }
        }
        Ok(Summaries { all })
    }

    /// The path from a turn on, with what stands for the rest.
    fn cut(&self, start: usize) -> Cut {
        let mut cut = Cut { start, ..Cut::none() };
        let mut covered: Vec<usize> = Vec::new();
        let concerned = |it: &&Summary| it.covers.first().is_some_and(|first| *first < start);
        // A later summary that stands for an earlier one's turn stands for all that it said.
        let replaced = |turn: usize| {
            let mut later = self.all.iter().filter(|it| it.turn > turn).filter(concerned);
            later.any(|it| it.covers.binary_search(&turn).is_ok())
        };
        for it in self.all.iter().filter(concerned).filter(|it| !replaced(it.turn)) {
            covered.extend(it.covers.iter().copied().filter(|turn| *turn < start));
            cut.summaries.push(Moved {
                turn: it.turn,
                block: it.block,
                text: it.text.clone(),
                json: it.json.clone(),
            });
        }
        covered.sort_unstable();
        covered.dedup();
        cut.covered = covered.len();
        cut
    }
}

/// The turns before a summary that it names; all of them, when it names none.
fn covered(json: &Json, before: usize, places: &HashMap<String, Vec<usize>>) -> Vec<usize> {
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

/// How long a rendering is.
fn tokens(rendering: &Rendering, count: &dyn Fn(&str) -> usize) -> Tokens {
    let mut weight = Weight { count, tokens: 0, exact: rendering.format == Format::OpenAi };
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

struct Weight<'a> {
    count: &'a dyn Fn(&str) -> usize,
    tokens: u64,
    exact: bool,
}

impl Weight<'_> {
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
            // Marks, and what no model reads.
            "type" | "signature" | "thoughtSignature" | "created_at" | "metadata" | "status" => {}
            // Arguments and results are read as they are written.
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
                let image = name == "image_url" || says_image(member);
                let large = u64::try_from(length).unwrap_or(u64::MAX).max(PER_IMAGE);
                self.tokens += if image { PER_IMAGE } else { large };
            }
            _ => self.value(member),
        }
    }
}

fn says_image(member: &Json) -> bool {
    let mime = member.get("media_type").or_else(|| member.get("mimeType"));
    mime.and_then(Json::as_str).is_some_and(|mime| mime.starts_with("image/"))
}

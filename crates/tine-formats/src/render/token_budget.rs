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

use tine_api::PathPage;
use tine_core::{Json, Role, TurnId};

use super::notes::{BlockRef, Notes};
use super::path_end::{PathEnd, TurnFacts};
use super::{Budget, Format, OpenCalls, Options, RenderError, Rendered, Rendering, Tokens, write};

/// What a message costs besides its text, as documented for chat completions.
const PER_MESSAGE: u64 = 3;

/// What the beginning of the reply costs.
const PER_REPLY: u64 = 3;

/// What an image is taken to cost: one of 1024 × 1024, which is what most are reduced to.
const PER_IMAGE: u64 = 765;

/// Bytes of a sound or a document that are taken to cost one token.
const BYTES_PER_TOKEN: usize = 100;

/// Which turns of a page are rendered, and what is written in place of the ones before them.
pub(super) struct PathCut {
    /// The index in the page of the first turn that is rendered.
    pub start: usize,
    /// The number of turns of the path before that one.
    pub turns_cut: usize,
    /// Summaries that are written in place of the turns that were cut, in the order of the path.
    pub summaries: Vec<MovedSummary>,
    /// The number of turns that they stand for.
    pub covered: usize,
}

/// A summary that is written before all turns instead of in its own.
pub(super) struct MovedSummary {
    pub turn: TurnId,
    pub block: usize,
    /// Whether its turn was cut too.
    pub turn_is_cut: bool,
    pub text: String,
    pub json: Json,
}

impl PathCut {
    pub(super) fn none() -> Self {
        PathCut { start: 0, turns_cut: 0, summaries: Vec::new(), covered: 0 }
    }

    pub(super) fn has_moved(&self, turn: TurnId, block: usize) -> bool {
        self.summaries.iter().any(|moved| (moved.turn, moved.block) == (turn, block))
    }

    pub(super) fn begins_at(&self, path: &PathPage) -> Option<TurnId> {
        (self.turns_cut > 0).then(|| path.turns.get(self.start).map(|turn| turn.id)).flatten()
    }

    pub(super) fn note(&self, path: &PathPage, notes: &mut Notes) {
        if self.turns_cut == 0 {
            return;
        }
        let count = |turns: usize| match turns {
            1 => "1 turn".to_owned(),
            turns => format!("{turns} turns"),
        };
        let what = format!("the first {}", count(self.turns_cut));
        let mut why = "they do not fit".to_owned();
        if let Some(first) = path.turns.get(self.start) {
            why.push_str(&format!("; the first that fits is {}", first.id));
        }
        if self.covered > 0 {
            why.push_str(&format!("; a summary replaces {} of them", self.covered));
        }
        notes.left_out(BlockRef::default(), what, why);
        for moved in &self.summaries {
            let at = BlockRef { turn: Some(moved.turn), block: Some(moved.block) };
            let why = "it replaces turns that were cut, and is written in their place";
            if moved.turn_is_cut {
                notes.added(at, "a summary", why);
            } else {
                notes.changed(at, "the place of a summary", why);
            }
        }
    }
}

/// Renders the longest tail that fits.
pub(super) fn longest_that_fits(
    end: &mut PathEnd<'_>,
    options: &Options<'_>,
    budget: Budget<'_>,
) -> Result<Rendering, RenderError> {
    end.read_to_newest_summary()?;
    // Open calls concern only the tail that is chosen, not those that are tried.
    let report = options.open_calls == OpenCalls::Report;
    let open_calls = if report { OpenCalls::Close } else { options.open_calls };
    let mut tails = Tails { end, options: Options { open_calls, ..*options }, budget };
    for starts in [Starts::WithUser, Starts::Any] {
        if let Some((kept, found)) = tails.longest(starts)? {
            if report {
                let cut = tails.end.cut(kept)?;
                write(&tails.end.page, options, &cut)?;
            }
            return Ok(found);
        }
    }
    let mut needed = u64::MAX;
    for starts in [Starts::WithUser, Starts::Any] {
        let (_, kept) = tails.start(1, starts)?;
        needed = needed.min(length(&tails.measured(kept)?));
    }
    Err(RenderError::TooLong { limit: budget.max_tokens, needed })
}

fn length(rendering: &Rendering) -> u64 {
    rendering.tokens.map_or(0, |tokens| tokens.count)
}

/// Where a tail may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Starts {
    /// At a user's turn, or with the whole path.
    WithUser,
    /// At any turn that needs no earlier one.
    Any,
}

/// The tails of a path, each identified by the number of its turns.
struct Tails<'a, 'p> {
    end: &'a mut PathEnd<'p>,
    options: Options<'a>,
    budget: Budget<'a>,
}

impl Tails<'_, '_> {
    /// Returns the longest tail that fits.
    fn longest(&mut self, starts: Starts) -> Result<Option<(usize, Rendering)>, RenderError> {
        let mut best = None;
        // The answer lies between these: the tail of the `good`-th start fits, that of the
        // `bad`-th does not.
        let (mut good, mut bad) = (0, usize::MAX);
        let mut step = 1;
        while bad - good > 1 {
            let wanted = if bad < usize::MAX { good + (bad - good) / 2 } else { good + step };
            let (nth, kept) = self.start(wanted, starts)?;
            if nth == good {
                break;
            }
            let rendering = self.measured(kept)?;
            if length(&rendering) <= self.budget.max_tokens {
                best = Some((kept, rendering));
                good = nth;
                step *= 2;
            } else {
                bad = nth;
            }
        }
        Ok(best)
    }

    fn measured(&mut self, kept: usize) -> Result<Rendering, RenderError> {
        let cut = self.end.cut(kept)?;
        let mut rendering = write(&self.end.page, &self.options, &cut)?;
        rendering.tokens = Some(tokens(&rendering, self.budget.count));
        Ok(rendering)
    }

    /// Returns the `nth` start, counted from the tip, or the first of the path if it has fewer,
    /// and the number of turns from there on. Reads as much of the path as that takes.
    fn start(&mut self, nth: usize, wanted: Starts) -> Result<(usize, usize), RenderError> {
        loop {
            let whole = self.end.is_whole();
            let facts = self.end.facts();
            let total = facts.len();
            if let Some(mut starts) = starts(facts, whole) {
                let is_users = |kept: usize| facts[total - kept].role == Role::User;
                if wanted == Starts::WithUser {
                    starts.retain(|kept| whole && *kept == total || is_users(*kept));
                }
                if whole || starts.len() >= nth {
                    let nth = nth.min(starts.len());
                    return Ok((nth, starts[nth - 1]));
                }
            }
            self.end.read_more()?;
        }
    }
}

/// Returns the tails that need no earlier turn, by the number of their turns, shortest first.
/// `None` if that depends on turns that are not read yet.
fn starts(turns: &[TurnFacts], whole: bool) -> Option<Vec<usize>> {
    // For each call the turns that made it; a result answers the newest that has none yet.
    let mut calls: HashMap<&str, Vec<usize>> = HashMap::new();
    // For each turn the earliest that it needs.
    let mut needs: Vec<usize> = (0..turns.len()).collect();
    for (index, turn) in turns.iter().enumerate() {
        if let Some(call) = &turn.answers {
            match calls.get_mut(call.as_str()).and_then(Vec::pop) {
                Some(asked) => needs[index] = asked,
                None if whole => {}
                None => return None,
            }
        }
        for call in &turn.calls {
            calls.entry(call).or_default().push(index);
        }
    }
    let mut starts = Vec::new();
    let mut needed = turns.len();
    for index in (usize::from(!whole)..turns.len()).rev() {
        needed = needed.min(needs[index]);
        let before = index.checked_sub(1).map(|before| turns[before].id);
        let continues = before.is_some() && turns[index].continues == before;
        if needed >= index && turns[index].role != Role::Tool && !continues {
            starts.push(turns.len() - index);
        }
    }
    if whole && starts.last() != Some(&turns.len()) {
        starts.push(turns.len());
    }
    Some(starts)
}

/// How long a rendering is.
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

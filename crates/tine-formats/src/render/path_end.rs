//! A path that is read from its tip towards the root.
//!
//! Invariants:
//!
//! - Turns are held with their content only as far back as they may be rendered. Of those before
//!   them only [`TurnFacts`] stay in memory.
//! - Reading stops at the newest summary if that stands for everything before it, and otherwise at
//!   the root: a summary may be anywhere on the path, and only its content shows that it is one.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use tine_api::{Call, Operations, PathPage, PathQuery, Selection, TurnView};
use tine_core::{Json, Reference, Role, TurnHash, TurnId};
use tine_store::Content;

use super::token_budget::{MovedSummary, PathCut};
use super::{Budget, RenderError, turn_parts, whole_path};

/// The turns in the first page. Each further one has twice as many, up to [`LONGEST_PAGE`].
const FIRST_PAGE: usize = 64;
const LONGEST_PAGE: usize = 1024;

/// Bytes of content that are held for each token that may be rendered.
const HELD_BYTES_PER_TOKEN: u64 = 8;

/// What the rules for cutting a path need to know of a turn.
pub(super) struct TurnFacts {
    pub id: TurnId,
    hash: TurnHash,
    part_of: Option<TurnId>,
    pub role: Role,
    pub continues: Option<TurnId>,
    /// The call whose result it is. What is left of an erased result answers nothing.
    pub answers: Option<String>,
    /// The calls that it makes.
    pub calls: Vec<String>,
    summaries: Vec<SummaryBlock>,
}

struct SummaryBlock {
    block: usize,
    text: String,
    json: Json,
}

impl TurnFacts {
    fn of(turn: &TurnView) -> Result<Self, RenderError> {
        let blocks = match &turn.content {
            Content::Kept(tine_core::Body::Text(_)) | Content::Purged(_) => Vec::new(),
            Content::Kept(body) => {
                body.blocks().map_err(|error| RenderError::Corrupt { turn: turn.id, error })?
            }
        };
        let (mut calls, mut summaries) = (Vec::new(), Vec::new());
        for (block, json) in blocks.into_iter().enumerate() {
            match json.get("type").and_then(Json::as_str) {
                Some("tool-use") if turn.role == Role::Assistant => {
                    let id = json.get("id").and_then(Json::as_str).unwrap_or_default();
                    calls.push(id.to_owned());
                }
                Some("summary") => {
                    if let Some(text) = turn_parts::summary_text(&json).map(str::to_owned) {
                        summaries.push(SummaryBlock { block, text, json });
                    }
                }
                _ => {}
            }
        }
        let kept = matches!(turn.content, Content::Kept(_));
        Ok(TurnFacts {
            id: turn.id,
            hash: turn.hash,
            part_of: turn.origin.part_of,
            role: turn.role,
            continues: turn.continues,
            answers: turn.tool_call_id.clone().filter(|_| kept),
            calls,
            summaries,
        })
    }
}

/// The end of a path, as far as it was read.
pub(super) struct PathEnd<'a> {
    /// The turns that are held with their content: the last of those read.
    pub page: Cow<'a, PathPage>,
    /// Every turn read, in the order of the path.
    facts: VecDeque<TurnFacts>,
    /// Where the path is read from; `None` if it was in memory.
    rest: Option<Rest<'a>>,
    /// What follows from the facts; found again when more is read.
    summaries: Option<Summaries>,
}

impl<'a> PathEnd<'a> {
    /// Takes a path that is in memory.
    pub(super) fn whole(path: &'a PathPage) -> Result<Self, RenderError> {
        let facts = path.turns.iter().map(TurnFacts::of).collect::<Result<_, _>>()?;
        Ok(PathEnd { page: Cow::Borrowed(path), facts, rest: None, summaries: None })
    }

    /// Reads the last turns of a path.
    pub(super) fn read(
        engine: &'a dyn Operations,
        call: &'a Call,
        query: PathQuery,
        budget: Budget<'_>,
    ) -> Result<Self, RenderError> {
        let left = match query.selection {
            Selection::Whole => usize::MAX,
            Selection::Last(turns) => turns,
        };
        let room = budget.max_tokens.saturating_mul(HELD_BYTES_PER_TOKEN);
        let page_turns = FIRST_PAGE;
        let mut rest = Rest { engine, call, query, left, page_turns, room, above: 0, more: true };
        let mut page = rest.page()?;
        let turns = std::mem::take(&mut page.turns);
        let mut end = PathEnd {
            page: Cow::Owned(page),
            facts: VecDeque::new(),
            rest: Some(rest),
            summaries: None,
        };
        end.add(turns)?;
        Ok(end)
    }

    /// Returns whether every turn of the path was read.
    pub(super) fn is_whole(&self) -> bool {
        self.rest.as_ref().is_none_or(|rest| !rest.more)
    }

    /// Returns what is known of the turns that were read, in the order of the path.
    pub(super) fn facts(&mut self) -> &[TurnFacts] {
        self.facts.make_contiguous()
    }

    /// Reads on to the newest summary, and to the root if that names the turns that it stands for.
    pub(super) fn read_to_newest_summary(&mut self) -> Result<(), RenderError> {
        let is_found = |end: &Self| {
            let newest = end.facts.iter().rev().find(|turn| !turn.summaries.is_empty());
            newest.is_some_and(|turn| turn.summaries.iter().all(|it| !names_turns(&it.json)))
        };
        while !self.is_whole() && !is_found(self) {
            self.read_more()?;
        }
        Ok(())
    }

    /// Reads the page before the turns that were read.
    pub(super) fn read_more(&mut self) -> Result<(), RenderError> {
        match &mut self.rest {
            Some(rest) => {
                let page = rest.page()?;
                self.add(page.turns)
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, mut turns: Vec<TurnView>) -> Result<(), RenderError> {
        let all_held = self.page.turns.len() == self.facts.len();
        for turn in turns.iter().rev() {
            self.facts.push_front(TurnFacts::of(turn)?);
        }
        self.summaries = None;
        if all_held && self.rest.as_mut().is_some_and(|rest| rest.makes_room_for(&turns)) {
            let page = self.page.to_mut();
            turns.append(&mut page.turns);
            page.turns = turns;
        }
        Ok(())
    }

    /// Returns the cut that leaves so many turns of the path, and holds those.
    pub(super) fn cut(&mut self, kept: usize) -> Result<PathCut, RenderError> {
        if self.page.turns.len() < kept
            && let Some(rest) = &self.rest
        {
            let query = PathQuery {
                to: self.page.to.map(Reference::from),
                selection: Selection::Last(kept),
                ..rest.query.clone()
            };
            self.page = Cow::Owned(whole_path(rest.engine, rest.call, query)?);
        }
        let start = self.page.turns.len().saturating_sub(kept);
        let summaries = match self.summaries.take() {
            Some(summaries) => summaries,
            None => Summaries::find(self)?,
        };
        let cut = summaries.cut(start, summaries.turns.saturating_sub(kept));
        self.summaries = Some(summaries);
        Ok(cut)
    }
}

/// The part of a path that is not read yet.
struct Rest<'a> {
    engine: &'a dyn Operations,
    call: &'a Call,
    /// The path that is left, if all of it is selected.
    query: PathQuery,
    /// The turns that are left, at most.
    left: usize,
    /// The turns of the next page.
    page_turns: usize,
    /// The bytes of content that may still be held.
    room: u64,
    /// The turns that are left, if none is hidden or split.
    above: usize,
    /// Whether any are left.
    more: bool,
}

impl Rest<'_> {
    /// Reads the last turns that are left.
    fn page(&mut self) -> Result<PathPage, RenderError> {
        let turns = self.page_turns.min(self.left);
        let query = PathQuery { selection: Selection::Last(turns), ..self.query.clone() };
        let page = whole_path(self.engine, self.call, query)?;
        self.left -= page.turns.len().min(self.left);
        self.page_turns = (turns * 2).min(LONGEST_PAGE);
        let first = page.turns.first();
        self.more = match first.and_then(|turn| turn.parent) {
            Some(parent) => {
                self.query.to = Some(parent.into());
                self.above = first.map_or(0, |turn| usize::try_from(turn.depth - 1).unwrap_or(0));
                self.left > 0
            }
            None => false,
        };
        Ok(page)
    }

    /// Returns whether these turns can be held beside the others.
    fn makes_room_for(&mut self, turns: &[TurnView]) -> bool {
        let had_room = self.room > 0;
        let bytes = turns.iter().map(|turn| match &turn.content {
            Content::Kept(body) => u64::try_from(body.stored_len()).unwrap_or(u64::MAX),
            Content::Purged(_) => 0,
        });
        self.room = bytes.fold(self.room, u64::saturating_sub);
        had_room
    }

    /// Counts the turns that are left, without reading them all.
    fn count(&self) -> Result<usize, RenderError> {
        if !self.more {
            return Ok(0);
        }
        let reaches_root = |turns: usize| -> Result<bool, RenderError> {
            let selection = Selection::Last(turns);
            let query = PathQuery { selection, limit: Some(1), ..self.query.clone() };
            let page = self.engine.path(self.call, query)?;
            Ok(page.turns.first().is_none_or(|turn| turn.parent.is_none()))
        };
        let (mut few, mut enough) = (0, self.above.max(1));
        while !reaches_root(enough)? {
            (few, enough) = (enough, enough.saturating_mul(2));
        }
        // The first guess is nearly always right.
        let mut tried = enough - 1;
        while enough - few > 1 {
            match reaches_root(tried)? {
                true => enough = tried,
                false => few = tried,
            }
            tried = few + (enough - few) / 2;
        }
        Ok(enough.min(self.left))
    }
}

/// The summaries on a path, as far as it was read.
struct Summaries {
    /// The number of turns on the path, those included that were not read.
    turns: usize,
    all: Vec<Summary>,
}

struct Summary {
    id: TurnId,
    /// The number of turns before its turn.
    turn: usize,
    block: usize,
    text: String,
    json: Json,
    /// The turns that it stands for, in order.
    covers: Vec<usize>,
}

impl Summaries {
    fn find(end: &PathEnd<'_>) -> Result<Self, RenderError> {
        let unread = end.rest.as_ref().map_or(Ok(0), Rest::count)?;
        let mut all = Vec::new();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        let blocks = || end.facts.iter().flat_map(|turn| &turn.summaries);
        let named = blocks().any(|it| names_turns(&it.json));
        for (turn, facts) in (unread..).zip(&end.facts) {
            if named {
                let whole = facts.part_of.map(|whole| whole.to_string());
                for name in [Some(facts.id.to_string()), Some(facts.hash.to_string()), whole] {
                    places.entry(name.unwrap_or_default()).or_default().push(turn);
                }
            }
            for SummaryBlock { block, text, json } in &facts.summaries {
                let covers = covered(json, turn, &places);
                let (text, json) = (text.clone(), json.clone());
                all.push(Summary { id: facts.id, turn, block: *block, text, json, covers });
            }
        }
        Ok(Summaries { turns: unread + end.facts.len(), all })
    }

    /// Returns the cut that begins at a turn of the page, with what stands for the turns before.
    fn cut(&self, start: usize, turns_cut: usize) -> PathCut {
        let mut cut = PathCut { start, turns_cut, ..PathCut::none() };
        let mut covered: Vec<usize> = Vec::new();
        let concerned = |it: &&Summary| it.covers.first().is_some_and(|first| *first < turns_cut);
        // A later summary that stands for the turn of an earlier one replaces it.
        let replaced = |turn: usize| {
            let mut later = self.all.iter().filter(|it| it.turn > turn).filter(concerned);
            later.any(|it| it.covers.binary_search(&turn).is_ok())
        };
        for it in self.all.iter().filter(concerned).filter(|it| !replaced(it.turn)) {
            covered.extend(it.covers.iter().copied().filter(|turn| *turn < turns_cut));
            cut.summaries.push(MovedSummary {
                turn: it.id,
                block: it.block,
                turn_is_cut: it.turn < turns_cut,
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

/// Returns whether a summary says which turns it stands for.
fn names_turns(json: &Json) -> bool {
    json.get("turn_window").is_some() || named_turns(json).next().is_some()
}

fn named_turns(json: &Json) -> impl Iterator<Item = &str> {
    let lists = ["turns", "turn_ids", "turn_hashes"].into_iter();
    let lists = lists.filter_map(|member| json.get(member)?.as_array());
    lists.flatten().filter_map(Json::as_str)
}

/// Returns the turns before a summary that it names, or all of them if it names none.
fn covered(json: &Json, before: usize, places: &HashMap<String, Vec<usize>>) -> Vec<usize> {
    let place = |name: &str| {
        let bare = places.get(name).or_else(|| places.get(&format!("sha256:{name}")));
        bare.into_iter().flatten().copied().filter(|place| *place < before).collect::<Vec<_>>()
    };
    if let Some(window) = json.get("turn_window") {
        let end = |member| window.get(member).and_then(Json::as_str).map(place).unwrap_or_default();
        let (start, end) = (end("start_turn_hash"), end("end_turn_hash"));
        return match (start.first(), end.last()) {
            (Some(start), Some(end)) => (*start..=*end).collect(),
            _ => Vec::new(),
        };
    }
    if !names_turns(json) {
        return (0..before).collect();
    }
    let mut found: Vec<usize> = named_turns(json).flat_map(place).collect();
    found.sort_unstable();
    found.dedup();
    found
}

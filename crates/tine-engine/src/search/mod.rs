//! Finding turns by what they say.
//!
//! 1. The index is brought forward to where the feed ended when the search began, so that nothing
//!    that was acknowledged before is missed, whoever wrote it.
//! 2. The store names candidates, best first.
//! 3. Each is looked up in a state of the store that is at least as new: only turns that are
//!    shown, pass the filters and say it now are hits.
//!
//! Nothing here is written to the records, and appending knows nothing of it.

mod follow;
mod query;
mod snippet;

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use tine_core::{BranchId, Digest, Name, Timestamp, TurnId, search_text};
use tine_store::{
    Branch, Content, Conversation, ConversationKey, Ranked, Read, SearchCandidate, SearchFilter,
    StoreError, TextQuery, Turn, TurnLoc, Visibility,
};

use crate::ops::conversation::bad_cursor;
use crate::ops::metadata::shown_title;
use crate::tree::resolve;
use crate::tree::shown::{State, Tree};
use crate::{Call, Engine, Error, Result, SearchHit, SearchPage, SearchQuery, SearchWindow};

/// Hits in a page when nobody says how many.
const HITS: usize = 20;

/// Branches that a hit lists.
const BRANCHES: usize = 50;

/// Times that a search begins again when the index is lost under it.
const ATTEMPTS: usize = 5;

impl Engine {
    /// Turns of the project that say what is looked for, best first, one page of them.
    ///
    /// ```
    /// # use tine_core::{Message, Role};
    /// # use tine_engine::{Append, Call, Engine, NewConversation, SearchQuery};
    /// # let engine = Engine::new(tine_store::MemoryStore::new());
    /// # let call = Call::by("somebody");
    /// # let trip = engine.create_conversation(&call, NewConversation::named("trip")?)?.id;
    /// let said = Message::text(Role::User, "What's the best time to visit Tōkyō (東京都)?");
    /// engine.append(&call, Append::to(trip, vec![said]))?;
    /// for words in ["tokyo", "\"best time\" vis*", "京都", "osaka OR tokyo -winter"] {
    ///     assert_eq!(engine.search(&call, SearchQuery::of(words))?.hits.len(), 1);
    /// }
    /// # Ok::<(), tine_engine::Error>(())
    /// ```
    pub fn search(&self, call: &Call, request: SearchQuery) -> Result<SearchPage> {
        let limit = self.page_limit(Some(request.limit.unwrap_or(HITS)))?;
        let query = query::parse(&request.words, self.limits())?;
        let cursor = request.cursor.as_deref().map(|text| Cursor::read(text, &request));
        let cursor = cursor.transpose()?;
        let Some(end) = self.read(|records| {
            Within::new(records, call, &request)?;
            Ok(records.feed_end()?)
        })?
        else {
            return Ok(SearchPage::default());
        };
        for _ in 0..ATTEMPTS {
            self.follow(Some(end))?;
            let filter = self.read(|records| filter(records, call, &request))?;
            if let Some(ranked) = self.store().search(&query, &filter, end.at)? {
                let ranked = RefCell::new(Some(ranked));
                return self.read(|records| {
                    let ranked = ranked.take().unwrap_or_default();
                    let search = Search { records, call, request: &request, query: &query };
                    search.page(ranked, cursor.as_ref(), limit)
                });
            }
        }
        let why = "the search index was lost again and again".to_owned();
        Err(Error::Store(StoreError::Stopped { why }))
    }
}

/// The conversation and branch that a search is confined to.
struct Within {
    conversation: Option<Conversation>,
    branch: Option<Branch>,
}

impl Within {
    fn new(records: &dyn Read, call: &Call, request: &SearchQuery) -> Result<Self> {
        let mut conversation = match &request.conversation {
            Some(id) => Some(resolve::conversation(records, call, id)?),
            None => None,
        };
        let Some(name) = &request.branch else {
            return Ok(Within { conversation, branch: None });
        };
        if conversation.is_none()
            && let Ok(id) = name.parse::<BranchId>()
            && let Some(found) = records.branch_by_id(&call.project, &id)?
        {
            conversation = Some(resolve::conversation_of(records, found.conversation)?);
        }
        let Some(within) = &conversation else {
            return Err(Error::invalid(
                "a branch has its name within a conversation; name that too, or give the branch's id",
            ));
        };
        let branch = resolve::branch(records, call, within.key, name)?;
        Ok(Within { conversation, branch: Some(branch) })
    }
}

fn filter(records: &dyn Read, call: &Call, request: &SearchQuery) -> Result<SearchFilter> {
    let within = Within::new(records, call, request)?;
    Ok(SearchFilter {
        project: call.project.clone(),
        conversation: within.conversation.map(|found| found.key),
        role: request.role,
        from: request.from,
        to: request.to,
        tags: request.tags.iter().cloned().collect(),
    })
}

/// A search over one state of the store.
struct Search<'s> {
    records: &'s dyn Read,
    call: &'s Call,
    request: &'s SearchQuery,
    query: &'s TextQuery,
}

/// A conversation in which something was found.
struct Place<'s> {
    conversation: Conversation,
    tree: Tree<'s>,
    branches: Vec<Branch>,
}

impl<'s> Search<'s> {
    fn page(&self, ranked: Ranked, cursor: Option<&Cursor>, limit: usize) -> Result<SearchPage> {
        let within = Within::new(self.records, self.call, self.request)?;
        let tags: BTreeSet<String> = self.request.tags.iter().cloned().collect();
        let ranked = match cursor {
            Some(cursor) => ranked.behind(cursor.candidate(self.records, self.call)?),
            None => ranked,
        };
        let mut places: HashMap<ConversationKey, Option<Place<'s>>> = HashMap::new();
        let mut page = SearchPage::default();
        let mut last = None;
        for candidate in ranked {
            let place = match places.entry(candidate.conversation) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.place(candidate.conversation, &within)?),
            };
            let Some(place) = place else { continue };
            if place.tree.state(candidate.loc)? != State::Live {
                continue;
            }
            if let Some(branch) = &within.branch
                && !place.tree.on_line(Some(candidate.loc), branch.tip)?
            {
                continue;
            }
            let turn = place.tree.turn(candidate.loc)?;
            if !tags.is_subset(&turn.metadata.tags) {
                continue;
            }
            let Some(hit) = self.hit(place, turn, candidate)? else { continue };
            if page.hits.len() == limit {
                page.next = last.map(|last: Cursor| last.to_text(self.request));
                break;
            }
            let score = candidate.score;
            last = Some(Cursor { score, at: hit.created_at, turn: hit.turn });
            page.hits.push(hit);
        }
        Ok(page)
    }

    /// A conversation whose turns may be shown.
    fn place(&self, key: ConversationKey, within: &Within) -> Result<Option<Place<'s>>> {
        let conversation = resolve::conversation_of(self.records, key)?;
        let named = within.conversation.as_ref().is_some_and(|found| found.key == key);
        let shown = match conversation.visibility {
            Visibility::Shown => true,
            Visibility::Archived => named || self.request.archived,
            Visibility::Undone | Visibility::ProjectLog => false,
        };
        if !shown {
            return Ok(None);
        }
        let mut branches = self.records.branches(key)?;
        branches.sort_by_key(|branch| branch.name != Name::main());
        Ok(Some(Place { conversation, tree: Tree::new(self.records, key), branches }))
    }

    fn hit(
        &self,
        place: &Place<'_>,
        turn: Turn,
        candidate: SearchCandidate,
    ) -> Result<Option<SearchHit>> {
        let Content::Kept(body) = &turn.content else { return Ok(None) };
        let pieces = search_text::pieces(body, &turn.metadata);
        let Some(snippet) = snippet::snippet(self.query, &pieces) else { return Ok(None) };
        let mut branches = Vec::new();
        let mut branch_count = 0;
        for branch in &place.branches {
            if place.tree.on_line(Some(turn.loc), branch.tip)? {
                branch_count += 1;
                if branches.len() < BRANCHES {
                    branches.push(branch.name.clone());
                }
            }
        }
        let auto = turn.metadata.title.is_none() && turn.metadata.auto_title.is_some();
        let has_children = auto && !place.tree.shown_children(Some(turn.loc))?.is_empty();
        let window = SearchWindow { turn_id: turn.id, branch: branches.first().cloned() };
        Ok(Some(SearchHit {
            conversation: place.conversation.id.clone(),
            conversation_title: place.conversation.title.clone(),
            archived: place.conversation.visibility == Visibility::Archived,
            turn: turn.id,
            hash: turn.hash,
            role: turn.role,
            created_at: turn.created_at,
            depth: turn.depth,
            title: shown_title(&turn.metadata, has_children),
            tags: turn.metadata.tags.into_iter().collect(),
            branches,
            branch_count,
            snippet: snippet.text,
            highlights: snippet.highlights,
            score: candidate.score as f64 / 100.0,
            window,
        }))
    }
}

/// The last hit of a page.
struct Cursor {
    score: i64,
    at: Timestamp,
    turn: TurnId,
}

impl Cursor {
    fn to_text(&self, request: &SearchQuery) -> String {
        let (score, at) = (self.score, self.at.as_millis());
        format!("{}.{score}.{at}.{}", digest(request), self.turn)
    }

    fn read(text: &str, request: &SearchQuery) -> Result<Self> {
        let mut parts = text.splitn(4, '.');
        let mut next = || parts.next().ok_or_else(|| bad_cursor(text));
        let (of, score, at, turn) = (next()?, next()?, next()?, next()?);
        if of != digest(request) {
            return Err(Error::invalid(
                "the cursor belongs to another search; repeat the words and filters of its page",
            ));
        }
        Ok(Cursor {
            score: score.parse().map_err(|_| bad_cursor(text))?,
            at: Timestamp::from_millis(at.parse().map_err(|_| bad_cursor(text))?),
            turn: turn.parse().map_err(|_| bad_cursor(text))?,
        })
    }

    fn candidate(&self, records: &dyn Read, call: &Call) -> Result<SearchCandidate> {
        let found = records.find_turn(&call.project, &self.turn)?;
        let (conversation, loc): (ConversationKey, TurnLoc) =
            found.ok_or_else(|| bad_cursor(&self.turn.to_string()))?;
        Ok(SearchCandidate { loc, conversation, score: self.score, at: self.at })
    }
}

/// What tells one search from another.
fn digest(request: &SearchQuery) -> String {
    let SearchQuery { words, conversation, branch, role, from, to, tags, archived, .. } = request;
    let all =
        format!("{words:?}{conversation:?}{branch:?}{role:?}{from:?}{to:?}{tags:?}{archived}");
    Digest::of(all.as_bytes()).to_hex()[..8].to_owned()
}

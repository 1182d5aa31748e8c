//! Finding turns by what they say.
//!
//! 1. The index is updated to the end of the feed at the time of the search, so that every write
//!    acknowledged before is found, whichever process made it.
//! 2. The store names candidates, best first.
//! 3. Each is looked up in a state of the store that is at least as new: only turns that are
//!    shown, pass the filters and say it now are hits.
//!
//! Nothing here is written to the records, and appending knows nothing of it.

mod index_update;
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
use crate::tree::shown::{Tree, TurnState};
use crate::tree::{overview, resolve};
use crate::{Call, Engine, Error, Result, SearchHit, SearchPage, SearchQuery, SearchWindow};

/// Default number of hits in a page.
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
    /// # let call = Call::by("alice");
    /// # let trip = engine.create_conversation(&call, NewConversation::named("trip")?)?.id;
    /// let question = Message::text(Role::User, "What's the best time to visit Tōkyō (東京都)?");
    /// engine.append(&call, Append::to(trip, vec![question]))?;
    /// for words in ["tokyo", "\"best time\" vis*", "京都", "osaka OR tokyo -winter"] {
    ///     assert_eq!(engine.search(&call, SearchQuery::of(words))?.hits.len(), 1);
    /// }
    /// # Ok::<(), tine_engine::Error>(())
    /// ```
    pub fn search(&self, call: &Call, request: SearchQuery) -> Result<SearchPage> {
        let limit = self.page_limit(Some(request.limit.unwrap_or(HITS)))?;
        let query = query::parse(&request.words, self.limits())?;
        let cursor = request.cursor.as_deref().map(|text| SearchCursor::read(text, &request));
        let cursor = cursor.transpose()?;
        let Some(end) = self.read(|records| {
            SearchScope::new(records, call, &request)?;
            Ok(records.feed_end()?)
        })?
        else {
            return Ok(SearchPage::default());
        };
        for _ in 0..ATTEMPTS {
            self.update_index(Some(end))?;
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
struct SearchScope {
    conversation: Option<Conversation>,
    branch: Option<Branch>,
}

impl SearchScope {
    fn new(records: &dyn Read, call: &Call, request: &SearchQuery) -> Result<Self> {
        let mut conversation = match &request.conversation {
            Some(id) => Some(resolve::conversation(records, call, id)?),
            None => None,
        };
        let Some(name) = &request.branch else {
            return Ok(SearchScope { conversation, branch: None });
        };
        if conversation.is_none()
            && let Ok(id) = name.parse::<BranchId>()
            && let Some(found) = records.branch_by_id(&call.project, &id)?
        {
            conversation = Some(resolve::conversation_of(records, found.conversation)?);
        }
        let Some(scope) = &conversation else {
            return Err(Error::invalid(
                "branch names are unique only within a conversation; name the conversation too, or give the branch's id",
            ));
        };
        let branch = resolve::branch(records, call, scope.key, name)?;
        Ok(SearchScope { conversation, branch: Some(branch) })
    }
}

fn filter(records: &dyn Read, call: &Call, request: &SearchQuery) -> Result<SearchFilter> {
    let scope = SearchScope::new(records, call, request)?;
    Ok(SearchFilter {
        project: call.project.clone(),
        conversation: scope.conversation.map(|found| found.key),
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

/// A conversation with hits.
struct HitConversation<'s> {
    conversation: Conversation,
    label: Option<String>,
    tree: Tree<'s>,
    branches: Vec<Branch>,
}

impl<'s> Search<'s> {
    fn page(
        &self,
        ranked: Ranked,
        cursor: Option<&SearchCursor>,
        limit: usize,
    ) -> Result<SearchPage> {
        let scope = SearchScope::new(self.records, self.call, self.request)?;
        let tags: BTreeSet<String> = self.request.tags.iter().cloned().collect();
        let ranked = match cursor {
            Some(cursor) => ranked.after(cursor.candidate(self.records, self.call)?),
            None => ranked,
        };
        let mut conversations: HashMap<ConversationKey, Option<HitConversation<'s>>> =
            HashMap::new();
        let mut page = SearchPage::default();
        let mut last = None;
        for candidate in ranked {
            let found = match conversations.entry(candidate.conversation) {
                Entry::Occupied(cached) => cached.into_mut(),
                Entry::Vacant(new) => {
                    new.insert(self.hit_conversation(candidate.conversation, &scope)?)
                }
            };
            let Some(found) = found else { continue };
            if found.tree.state(candidate.loc)? != TurnState::Live {
                continue;
            }
            if let Some(branch) = &scope.branch
                && !found.tree.on_shown_path(Some(candidate.loc), branch.tip)?
            {
                continue;
            }
            let turn = found.tree.turn(candidate.loc)?;
            if !tags.is_subset(&turn.metadata.tags) {
                continue;
            }
            let Some(hit) = self.hit(found, turn, candidate)? else { continue };
            if page.hits.len() == limit {
                page.next = last.map(|last: SearchCursor| last.to_text(self.request));
                break;
            }
            let score = candidate.score;
            last = Some(SearchCursor { score, at: hit.created_at, turn: hit.turn });
            page.hits.push(hit);
        }
        Ok(page)
    }

    /// Returns a conversation whose turns may be shown.
    fn hit_conversation(
        &self,
        key: ConversationKey,
        scope: &SearchScope,
    ) -> Result<Option<HitConversation<'s>>> {
        let conversation = resolve::conversation_of(self.records, key)?;
        let named = scope.conversation.as_ref().is_some_and(|found| found.key == key);
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
        let label = overview::label(self.records, &conversation)?;
        let tree = Tree::new(self.records, key);
        Ok(Some(HitConversation { conversation, label, tree, branches }))
    }

    fn hit(
        &self,
        found: &HitConversation<'_>,
        turn: Turn,
        candidate: SearchCandidate,
    ) -> Result<Option<SearchHit>> {
        let Content::Kept(body) = &turn.content else { return Ok(None) };
        let pieces = search_text::pieces(body, &turn.metadata);
        let Some(snippet) = snippet::snippet(self.query, &pieces) else { return Ok(None) };
        let mut branches = Vec::new();
        let mut branch_count = 0;
        for branch in &found.branches {
            if found.tree.on_shown_path(Some(turn.loc), branch.tip)? {
                branch_count += 1;
                if branches.len() < BRANCHES {
                    branches.push(branch.name.clone());
                }
            }
        }
        let auto = turn.metadata.title.is_none() && turn.metadata.auto_title.is_some();
        let has_children = auto && !found.tree.shown_children(Some(turn.loc))?.is_empty();
        let window = SearchWindow { turn_id: turn.id, branch: branches.first().cloned() };
        Ok(Some(SearchHit {
            conversation: found.conversation.id.clone(),
            conversation_title: found.label.clone(),
            archived: found.conversation.visibility == Visibility::Archived,
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
struct SearchCursor {
    score: i64,
    at: Timestamp,
    turn: TurnId,
}

impl SearchCursor {
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
                "the cursor belongs to another search; use the query and filters of the earlier page",
            ));
        }
        Ok(SearchCursor {
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

/// Returns a digest that identifies a search.
fn digest(request: &SearchQuery) -> String {
    let SearchQuery { words, conversation, branch, role, from, to, tags, archived, .. } = request;
    let all =
        format!("{words:?}{conversation:?}{branch:?}{role:?}{from:?}{to:?}{tags:?}{archived}");
    Digest::of(all.as_bytes()).to_hex()[..8].to_owned()
}

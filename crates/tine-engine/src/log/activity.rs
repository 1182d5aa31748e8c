//! Conversations, most recently active first.
//!
//! There is no index for that: every append would have to move an entry in it. Each page looks once
//! at every conversation of the project, which costs a few short look-ups each, and reads whole only
//! the rows that it shows.

use std::collections::{HashMap, HashSet};

use tine_core::{ConversationId, Json};
use tine_store::{Conversation, ConversationKey, Read, Visibility};

use crate::ops::conversation::bad_cursor;
use crate::tree::{overview, views};
use crate::{Call, ConversationView, Engine, Listing, Overview, Page, RecentQuery, Result};

/// Conversations that are looked up at once.
const BATCH: usize = 512;

/// The most levels of sub-agents of sub-agents.
const LEVELS: usize = 32;

/// The position of a conversation in the listing: when it was last active, and its key.
type ActivityPosition = (i64, i64);

impl Engine {
    /// Lists conversations of the project with an overview of each, most recently active first
    /// ([`ConversationView::active_at`]).
    pub fn recent_conversations(
        &self,
        call: &Call,
        query: &RecentQuery,
        page: Page,
    ) -> Result<Listing<ConversationView>> {
        self.recent_conversations_where(call, query, page, &|_| true)
    }

    /// Lists conversations whose metadata matches a predicate, most recently active first.
    pub fn recent_conversations_where(
        &self,
        call: &Call,
        query: &RecentQuery,
        page: Page,
        matches: &dyn Fn(&Json) -> bool,
    ) -> Result<Listing<ConversationView>> {
        let limit = self.page_limit(page.limit)?;
        let before = page.cursor.as_deref().map(position).transpose()?;
        let terms = lowercase_words(query.words.as_deref());
        self.read(|records| {
            let mut found: Vec<(ActivityPosition, ConversationId)> = Vec::new();
            let mut links = SubagentLinks::default();
            let mut after = None;
            loop {
                let batch = records.conversations(&call.project, after, BATCH)?;
                let Some(last) = batch.last() else { break };
                after = Some(last.key);
                for conversation in &batch {
                    links.add_started(conversation);
                    if !is_wanted(conversation, query) || !matches(&conversation.metadata) {
                        continue;
                    }
                    let active = overview::active_at(records, conversation)?;
                    if query.since.is_some_and(|since| active < since)
                        || query.until.is_some_and(|until| active >= until)
                        || !contains_words(records, conversation, &terms)?
                    {
                        continue;
                    }
                    links.listed.insert(conversation.id.clone());
                    let position = (active.as_millis(), conversation.key.0);
                    found.push((position, conversation.id.clone()));
                }
            }
            let subagents = links.count(found.iter().map(|(_, id)| id));
            if query.top_level {
                found.retain(|(_, id)| links.parent(id).is_none());
            }
            found.retain(|(position, _)| before.is_none_or(|before| *position < before));
            found.sort_unstable_by_key(|(position, _)| std::cmp::Reverse(*position));
            let next = found.get(limit).and(found.get(limit - 1));
            let next = next.map(|((active, key), _)| format!("{active}.{key}"));
            found.truncate(limit);
            let mut items = Vec::with_capacity(found.len());
            for ((_, key), id) in found {
                let conversation = records.conversation_by_key(ConversationKey(key))?;
                let conversation =
                    tine_store::required(conversation, || format!("conversation {key}"))?;
                let mut overview = read_overview(records, &conversation)?;
                overview.started_by = links.parent(&id).cloned();
                overview.subagents = subagents.get(&id).copied().unwrap_or_default();
                let view = views::conversation(records, &conversation)?;
                items.push(ConversationView { overview: Some(overview), ..view });
            }
            Ok(Listing { items, next })
        })
    }
}

/// Returns what a listing shows of a conversation, without its sub-agents.
pub(crate) fn read_overview(records: &dyn Read, conversation: &Conversation) -> Result<Overview> {
    Ok(Overview {
        label: overview::label(records, conversation)?,
        turns: overview::turns(records, conversation)?,
        program: overview::program(&conversation.metadata).map(str::to_owned),
        folder: overview::folder(&conversation.metadata).map(str::to_owned),
        started_by: None,
        subagents: 0,
    })
}

/// Which listed conversation started which: by the metadata of the one that did, or because an id
/// continues another one after a slash.
#[derive(Default)]
struct SubagentLinks {
    listed: HashSet<ConversationId>,
    started: HashMap<ConversationId, ConversationId>,
}

impl SubagentLinks {
    fn add_started(&mut self, by: &Conversation) {
        for id in overview::started(&by.metadata) {
            if id != by.id {
                self.started.insert(id, by.id.clone());
            }
        }
    }

    /// Returns the listed conversation that started this one. Metadata may be wrong: conversations
    /// that seem to start each other have no parent.
    fn parent(&self, id: &ConversationId) -> Option<&ConversationId> {
        let parent = self.direct_parent(id)?;
        let above = std::iter::successors(Some(parent), |id| self.direct_parent(id));
        (above.take(LEVELS + 1).count() <= LEVELS).then_some(parent)
    }

    fn direct_parent(&self, id: &ConversationId) -> Option<&ConversationId> {
        let recorded = self.started.get(id).and_then(|parent| self.listed.get(parent));
        let by_id = || {
            let (parent, _) = id.as_str().rsplit_once('/')?;
            self.listed.get(&ConversationId::from_stored(parent))
        };
        recorded.or_else(by_id)
    }

    fn count<'i>(
        &self,
        ids: impl Iterator<Item = &'i ConversationId>,
    ) -> HashMap<ConversationId, u64> {
        let mut counts = HashMap::new();
        for parent in ids.filter_map(|id| self.parent(id)) {
            *counts.entry(parent.clone()).or_default() += 1;
        }
        counts
    }
}

fn position(cursor: &str) -> Result<ActivityPosition> {
    let parts = cursor.split_once('.');
    let parts = parts.and_then(|(active, key)| Some((active.parse().ok()?, key.parse().ok()?)));
    parts.ok_or_else(|| bad_cursor(cursor))
}

fn lowercase_words(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect()
}

/// Returns whether a conversation is wanted, as far as its own record tells.
fn is_wanted(conversation: &Conversation, query: &RecentQuery) -> bool {
    let shown = match conversation.visibility {
        Visibility::Shown => true,
        Visibility::Archived => query.include_archived,
        Visibility::Undone | Visibility::ProjectLog => false,
    };
    let metadata = &conversation.metadata;
    let program = query.program.as_deref();
    shown
        && has_tag(conversation, query.tag.as_deref())
        && program.is_none_or(|program| overview::program(metadata) == Some(program))
        && is_in_folder(overview::folder(metadata), query.folder.as_deref())
}

fn has_tag(conversation: &Conversation, tag: Option<&str>) -> bool {
    let Some(tag) = tag else { return true };
    let tags = conversation.metadata.get("tags").and_then(Json::as_array).unwrap_or_default();
    tags.iter().any(|other| other.as_str() == Some(tag))
}

pub(crate) fn is_in_folder(folder: Option<&str>, wanted: Option<&str>) -> bool {
    const SEPARATORS: [char; 2] = ['/', '\\'];
    let Some(wanted) = wanted else { return true };
    let Some(folder) = folder.map(|it| it.trim_end_matches(SEPARATORS)) else { return false };
    if !wanted.contains(SEPARATORS) {
        return folder.rsplit(SEPARATORS).next() == Some(wanted);
    }
    let wanted = wanted.trim_end_matches(SEPARATORS);
    folder.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATORS))
}

fn contains_words(
    records: &dyn Read,
    conversation: &Conversation,
    terms: &[String],
) -> Result<bool> {
    let missing = |text: &str, terms: &[&String]| -> bool {
        let text = text.to_lowercase();
        terms.iter().any(|term| !text.contains(term.as_str()))
    };
    let folder = overview::folder(&conversation.metadata).unwrap_or_default();
    let title = conversation.title.as_deref().unwrap_or_default();
    let known = format!("{}\n{folder}\n{title}", conversation.id).to_lowercase();
    let rest: Vec<&String> = terms.iter().filter(|term| !known.contains(term.as_str())).collect();
    if rest.is_empty() || !title.trim().is_empty() {
        return Ok(rest.is_empty());
    }
    // Only now is the label worth its look-ups.
    let label = overview::label(records, conversation)?;
    Ok(label.is_some_and(|label| !missing(&label, &rest)))
}

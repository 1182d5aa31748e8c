//! Conversations, most recently active first.
//!
//! There is no index for that: every append would have to move an entry in it. Each page looks once
//! at every conversation of the project, which costs two short look-ups each, and reads whole only
//! the rows that it shows.

use tine_core::Json;
use tine_store::{Conversation, ConversationKey, Visibility};

use crate::ops::conversation::bad_cursor;
use crate::tree::views;
use crate::{Call, ConversationView, Engine, Listing, Page, RecentQuery, Result};
use tine_api::active_at;

/// Conversations that are looked up at once.
const BATCH: usize = 512;

/// The position of a conversation in the listing: when it was last active, and its key.
type ActivityPosition = (i64, i64);

impl Engine {
    /// Lists the conversations of the project, most recently active first
    /// ([`ConversationView::active_at`]).
    pub fn recent_conversations(
        &self,
        call: &Call,
        query: &RecentQuery,
        page: Page,
    ) -> Result<Listing<ConversationView>> {
        let limit = self.page_limit(page.limit)?;
        let before = page.cursor.as_deref().map(position).transpose()?;
        let terms = lowercase_words(query.words.as_deref());
        self.read(|records| {
            let mut found: Vec<ActivityPosition> = Vec::new();
            let mut after = None;
            loop {
                let batch = records.conversations(&call.project, after, BATCH)?;
                let Some(last) = batch.last() else { break };
                after = Some(last.key);
                for conversation in batch.iter().filter(|it| is_wanted(it, query, &terms)) {
                    let changed = records.changed_at(conversation.key)?;
                    let created = conversation.created_at;
                    let changed = changed.unwrap_or(created);
                    let active = active_at(&conversation.metadata, created, changed);
                    found.push((active.as_millis(), conversation.key.0));
                }
            }
            found.retain(|position| before.is_none_or(|before| *position < before));
            found.sort_unstable_by(|a, b| b.cmp(a));
            let next = found.get(limit).and(found.get(limit - 1));
            let next = next.map(|(active, key)| format!("{active}.{key}"));
            found.truncate(limit);
            let mut items = Vec::with_capacity(found.len());
            for (_, key) in found {
                let conversation = records.conversation_by_key(ConversationKey(key))?;
                let conversation =
                    tine_store::required(conversation, || format!("conversation {key}"))?;
                items.push(views::conversation(records, &conversation)?);
            }
            Ok(Listing { items, next })
        })
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

fn is_wanted(conversation: &Conversation, query: &RecentQuery, terms: &[String]) -> bool {
    let shown = match conversation.visibility {
        Visibility::Shown => true,
        Visibility::Archived => query.include_archived,
        Visibility::Undone | Visibility::ProjectLog => false,
    };
    let as_wanted = query.metadata.as_ref().is_none_or(|wanted| wanted.0(&conversation.metadata));
    shown
        && as_wanted
        && has_tag(conversation, query.tag.as_deref())
        && contains_words(conversation, terms)
}

fn has_tag(conversation: &Conversation, tag: Option<&str>) -> bool {
    let Some(tag) = tag else { return true };
    let tags = conversation.metadata.get("tags").and_then(Json::as_array).unwrap_or_default();
    tags.iter().any(|other| other.as_str() == Some(tag))
}

fn contains_words(conversation: &Conversation, terms: &[String]) -> bool {
    if terms.is_empty() {
        return true;
    }
    let title = conversation.title.as_deref().unwrap_or_default().to_lowercase();
    let id = conversation.id.as_str().to_lowercase();
    terms.iter().all(|term| title.contains(term) || id.contains(term))
}

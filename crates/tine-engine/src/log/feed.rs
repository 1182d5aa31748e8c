//! The change feed: every operation of the store, in the order in which they were committed.
//!
//! A follower keeps the position of the last entry that it has seen and asks for the entries after
//! it. No operation is ever committed before a position that was handed out, so none is missed,
//! whichever process wrote it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tine_core::{ConversationId, ProjectId};
use tine_store::{ConversationKey, FeedPosition};

use crate::log::history::view;
use crate::tree::resolve;
use crate::{Engine, FeedEntry, FeedFilter, Result};

/// Operations read at once while looking for those that are wanted.
const OPERATIONS_PER_READ: usize = 512;

impl Engine {
    /// Returns the position of the newest entry.
    pub fn feed_end(&self) -> Result<FeedPosition> {
        self.read(|records| {
            Ok(records.feed_end()?.map_or_else(FeedPosition::default, |last| last.at))
        })
    }

    /// Returns up to `limit` entries after a position, and the position up to which the feed was
    /// scanned: the filter may have skipped some.
    pub fn feed(
        &self,
        after: FeedPosition,
        filter: &FeedFilter,
        limit: usize,
    ) -> Result<(Vec<FeedEntry>, FeedPosition)> {
        self.read(|records| {
            let mut names: HashMap<ConversationKey, (ProjectId, ConversationId)> = HashMap::new();
            let (mut found, mut at) = (Vec::new(), after);
            while found.len() < limit {
                let batch = records.feed(at, OPERATIONS_PER_READ)?;
                if batch.is_empty() {
                    break;
                }
                for (position, operation) in batch {
                    if found.len() == limit {
                        break;
                    }
                    at = position;
                    let key = operation.conversation;
                    let (project, conversation) = match names.entry(key) {
                        Entry::Occupied(cached) => cached.into_mut(),
                        Entry::Vacant(unknown) => {
                            let owner = resolve::conversation_of(records, key)?;
                            unknown.insert((owner.project, owner.id))
                        }
                    };
                    let wanted = filter.project.as_ref().is_none_or(|it| it == &*project)
                        && filter.conversation.as_ref().is_none_or(|it| it == &*conversation);
                    if wanted {
                        found.push(FeedEntry {
                            position,
                            project: project.clone(),
                            operation: view(conversation, operation),
                        });
                    }
                }
            }
            Ok((found, at))
        })
    }
}

//! The names that lie on a conversation's turns: branches that end there, and bookmarks.

use std::collections::HashMap;

use tine_core::{ConversationId, TurnId};

use crate::failure::Result;
use crate::session::Session;

/// Names by turn.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    branches: HashMap<TurnId, Vec<String>>,
    bookmarks: HashMap<TurnId, Vec<String>>,
}

impl Labels {
    /// All of a conversation.
    pub(crate) fn of(session: &Session, conversation: &ConversationId) -> Result<Self> {
        let mut labels = Labels::default();
        for branch in session.engine.branches(&session.call, conversation)? {
            if let Some(tip) = branch.tip {
                labels.branches.entry(tip).or_default().push(branch.name.to_string());
            }
        }
        let bookmarks =
            session.pages(None, |page| session.engine.bookmarks(&session.call, page))?;
        for bookmark in bookmarks.items {
            if bookmark.conversation == *conversation {
                let names = labels.bookmarks.entry(bookmark.turn).or_default();
                names.push(bookmark.name.to_string());
            }
        }
        Ok(labels)
    }

    /// Branches that end on a turn.
    pub(crate) fn branches(&self, turn: &TurnId) -> &[String] {
        self.branches.get(turn).map_or(&[], Vec::as_slice)
    }

    /// Bookmarks on a turn.
    pub(crate) fn bookmarks(&self, turn: &TurnId) -> &[String] {
        self.bookmarks.get(turn).map_or(&[], Vec::as_slice)
    }
}

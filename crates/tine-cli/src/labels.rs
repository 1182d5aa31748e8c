//! Labels of a conversation's turns: branches that end there, bookmarks and commits.

use std::collections::HashMap;

use tine_core::{ConversationId, TurnHash, TurnId};
use tine_engine::{CommitQuery, CommitView, TurnView};

use crate::command_error::Result;
use crate::session::CliSession;

/// Labels by turn.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    branches: HashMap<TurnId, Vec<String>>,
    bookmarks: HashMap<TurnId, Vec<String>>,
    commits: HashMap<CommitEnd, Vec<CommitView>>,
}

/// The turn that a commit ends with: its own last turn or, if it has none, the last one before it.
#[derive(Debug, PartialEq, Eq, Hash)]
enum CommitEnd {
    Own(TurnHash),
    Before(TurnId),
}

impl Labels {
    /// Loads the branches and bookmarks of a conversation.
    pub(crate) fn of(session: &CliSession, conversation: &ConversationId) -> Result<Self> {
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

    /// Loads branches, bookmarks and commits of a conversation.
    pub(crate) fn with_commits(
        session: &CliSession,
        conversation: &ConversationId,
    ) -> Result<Self> {
        let mut labels = Labels::of(session, conversation)?;
        let query = CommitQuery { conversation: Some(conversation.clone()), branch: None };
        let versions = session.engine.versioning();
        let ask = |page| versions.commits(&session.call, query.clone(), page);
        // The listing is newest first; labels are oldest first.
        for it in session.pages(None, ask)?.items.into_iter().rev() {
            let own = it.commit.window.as_ref().map(|window| CommitEnd::Own(window.end));
            if let Some(end) = own.or_else(|| it.anchor.map(CommitEnd::Before)) {
                labels.commits.entry(end).or_default().push(it);
            }
        }
        Ok(labels)
    }

    /// Returns the branches that end on a turn.
    pub(crate) fn branches(&self, turn: &TurnId) -> &[String] {
        self.branches.get(turn).map_or(&[], Vec::as_slice)
    }

    /// Returns the bookmarks on a turn.
    pub(crate) fn bookmarks(&self, turn: &TurnId) -> &[String] {
        self.bookmarks.get(turn).map_or(&[], Vec::as_slice)
    }

    /// Returns the commits that end with a turn.
    pub(crate) fn commits(&self, turn: &TurnView) -> impl Iterator<Item = &CommitView> {
        let ends = [CommitEnd::Own(turn.hash), CommitEnd::Before(turn.id)];
        ends.into_iter().filter_map(|end| self.commits.get(&end)).flatten()
    }
}

//! Every conversation of a store, also of one with damaged records: what cannot be read is named
//! and passed over.

use tine_core::ProjectId;
use tine_store::{Conversation, ConversationKey, DamagedRecord, Read, StoreError};

use crate::{Error, Result};

/// Conversations looked at in one read.
const PER_READ: usize = 100;

/// Handles that are tried one by one before the rest is given up as unreadable.
const UNREADABLE_IN_A_ROW: i64 = 1_000;

/// Some conversations of a project, in order of creation.
#[derive(Default)]
pub(crate) struct ConversationPage {
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) problems: Vec<DamagedRecord>,
    /// Where the next page starts; `None` after the last one.
    pub(crate) last: Option<ConversationKey>,
}

/// Returns the conversations of a project after the given one.
pub(crate) fn page(
    records: &dyn Read,
    project: &ProjectId,
    after: Option<ConversationKey>,
) -> Result<ConversationPage> {
    match records.conversations(project, after, PER_READ) {
        Ok(conversations) => {
            let last = conversations.last().map(|last| last.key);
            Ok(ConversationPage { conversations, problems: Vec::new(), last })
        }
        Err(error) => {
            damage(error.into())?;
            one_by_one(records, project, after)
        }
    }
}

/// Skips to the next readable conversation.
fn one_by_one(
    records: &dyn Read,
    project: &ProjectId,
    after: Option<ConversationKey>,
) -> Result<ConversationPage> {
    let mut page = ConversationPage::default();
    let first = after.map_or(1, |key| key.0 + 1);
    for no in first..first + UNREADABLE_IN_A_ROW {
        let key = ConversationKey(no);
        match records.conversation_by_key(key) {
            Ok(Some(found)) => {
                if found.project == *project {
                    page.conversations.push(found);
                }
                page.last = Some(key);
                break;
            }
            Ok(None) => {}
            Err(error) => page.problems.push(damage(error.into())?),
        }
    }
    Ok(page)
}

/// Returns what a failure says about a damaged record; other failures are passed on.
pub(crate) fn damage(error: Error) -> Result<DamagedRecord> {
    match error {
        Error::Store(StoreError::Corrupt { record, why }) => Ok(DamagedRecord { record, why }),
        Error::Store(StoreError::DamagedFile { path, why }) => {
            Ok(DamagedRecord { record: path.display().to_string(), why })
        }
        other => Err(other),
    }
}

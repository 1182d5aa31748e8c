//! Reading the operation log: entries with a short summary each.

use tine_core::ConversationId;
use tine_core::json;
use tine_store::{Detail, Family, Operation, Visibility, required};

use crate::log::change::{ConversationField, LoggedChange, OperationDetail};
use crate::ops::conversation::{bad_cursor, visibility_json};
use crate::{Call, Engine, Error, Listing, OperationView, Page, Result};

impl Engine {
    /// Returns the log of a conversation, newest first.
    pub fn operations(
        &self,
        call: &Call,
        conversation: &ConversationId,
        page: Page,
    ) -> Result<Listing<OperationView>> {
        let limit = self.page_limit(page.limit)?;
        let before = match &page.cursor {
            Some(cursor) => cursor.parse().map_err(|_| bad_cursor(cursor))?,
            None => u64::MAX,
        };
        self.read(|records| {
            let found = records.conversation(&call.project, conversation)?;
            let found = found.ok_or_else(|| Error::not_found("conversation", conversation))?;
            let last = records.last_operation(found.key)?.map_or(0, |last| last.seq);
            let to = last.min(before.saturating_sub(1));
            let from = to.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX) - 1).max(1);
            let mut items = Vec::new();
            records.operations(found.key, from, to, &mut |operation| {
                items.push(view(&found.id, operation));
                Ok(true)
            })?;
            items.reverse();
            let next = (from > 1 && !items.is_empty()).then(|| from.to_string());
            Ok(Listing { items, next })
        })
    }
}

/// Parses the detail of an entry, unless it was erased.
pub(crate) fn detail(operation: &Operation) -> Result<OperationDetail> {
    let Detail::Kept(text) = &operation.detail else {
        return Err(Error::Unsupported(format!(
            "the detail of operation {} was purged; it can be neither undone nor redone",
            operation.seq
        )));
    };
    let parsed = json::parse(text.as_bytes(), json::MAX_DEPTH)
        .ok()
        .and_then(|json| OperationDetail::from_json(&json));
    Ok(required(parsed, || format!("detail of operation {}", operation.seq))?)
}

pub(crate) fn view(conversation: &ConversationId, operation: Operation) -> OperationView {
    let summary = summary(&operation);
    OperationView {
        conversation: conversation.clone(),
        seq: operation.seq,
        kind: operation.kind,
        actor: operation.actor,
        at: operation.at,
        summary,
        detail: match operation.detail {
            Detail::Kept(text) => Some(text),
            Detail::Purged(_) => None,
        },
        hash: operation.hash,
        undone: operation.undone,
    }
}

/// Summarizes an operation.
fn summary(operation: &Operation) -> String {
    let Ok(detail) = detail(operation) else {
        return "(purged)".to_owned();
    };
    let mut parts = Vec::new();
    let mut observed = 0;
    for change in &detail.changes {
        parts.push(match change {
            LoggedChange::Created { count: 1, .. } => "1 new turn".to_owned(),
            LoggedChange::Created { count, .. } => format!("{count} new turns"),
            LoggedChange::Hidden { cascade: true, .. } => {
                "a turn and all below it hidden".to_owned()
            }
            LoggedChange::Hidden { .. } => "a turn hidden".to_owned(),
            LoggedChange::Split { .. } => "a turn shown as two".to_owned(),
            LoggedChange::Branch { before: None, after: Some(after), .. } => {
                format!("new branch {}", after.name)
            }
            LoggedChange::Branch { before: Some(before), after: None, .. } => {
                format!("branch {} removed", before.name)
            }
            LoggedChange::Branch { before: Some(before), after: Some(after), .. }
                if before.name != after.name =>
            {
                format!("branch {} → {}", before.name, after.name)
            }
            LoggedChange::Branch { after, .. } => match after {
                Some(after) => format!("branch {} moved", after.name),
                None => continue,
            },
            LoggedChange::Bookmark { name, after: None, .. } => format!("bookmark {name} removed"),
            LoggedChange::Bookmark { name, .. } => format!("bookmark {name} set"),
            LoggedChange::Metadata { key, .. } => format!("{} of a turn", key.as_str()),
            LoggedChange::Observed { .. } => {
                observed += 1;
                continue;
            }
            LoggedChange::Record { key, after, .. } => match (key.family(), after) {
                (Family::Relationship, Some(_)) => "a relationship".to_owned(),
                (Family::Relationship, None) => "a relationship removed".to_owned(),
                (Family::Schema, _) => "a schema".to_owned(),
                (Family::CommitListing, _) => "a commit".to_owned(),
                (Family::CommitSignature, _) => "a signature".to_owned(),
                (Family::CommitHead, _) => continue,
                _ => "an entity changed".to_owned(),
            },
            LoggedChange::Conversation { before, .. }
                if *before == visibility_json(Visibility::Undone) =>
            {
                "new conversation".to_owned()
            }
            LoggedChange::Conversation { field: ConversationField::Visibility, after, .. } => {
                format!("conversation {}", after.as_str().unwrap_or("changed"))
            }
            LoggedChange::Conversation { field, .. } => {
                format!("{} of the conversation", field.as_str())
            }
        });
    }
    match observed {
        0 => {}
        1 => parts.push("1 observation".to_owned()),
        more => parts.push(format!("{more} observations")),
    }
    if let Some(target) = detail.target_operation() {
        parts.push(format!("operation {target}"));
    }
    if let Some(turns) = detail.facts.get("purged_turns").and_then(json::Json::as_u64) {
        parts.push(format!("{turns} turns erased"));
    }
    parts.join(", ")
}

//! Showing one turn as two.
//!
//! The turn is kept as it is; its halves are turns of their own beside it, and a record says
//! that they stand in its place.

use serde::{Deserialize, Serialize};
use tine_core::json::object;
use tine_core::text::split_at_scalar;
use tine_core::{Body, Message, Metadata, ProjectId, Role, TurnId};
use tine_store::{Content, Read, Split, Turn, TurnOrigin};

use crate::log::change::{LoggedChange, text};
use crate::log::mutation::{Mutation, Receipt};
use crate::ops::append::{make_turn, refuse_purged};
use crate::tree::resolve;
use crate::tree::views::ViewOrId;
use crate::{Call, Engine, Error, Result, SplitDone, SplitTurn, TurnView};

impl Engine {
    /// Shows a turn of text alone as two whose texts join to its own.
    pub fn split(&self, call: &Call, request: SplitTurn) -> Result<SplitDone> {
        let payload = |request: &SplitTurn| {
            let offset = u64::try_from(request.offset).unwrap_or(u64::MAX);
            object([
                ("conversation_id", request.turn.conversation.as_ref().map(text).into()),
                ("turn", request.turn.turn.as_str().into()),
                ("offset", offset.into()),
            ])
        };
        let (receipt, _) = self.mutate(call, "split", request, payload, split)?;
        Ok(SplitDone {
            whole: receipt.whole,
            left: self.load_turn(call, receipt.left)?,
            right: self.load_turn(call, receipt.right)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct SplitReceipt {
    whole: TurnId,
    left: ViewOrId<TurnView>,
    right: ViewOrId<TurnView>,
}

impl Receipt for SplitReceipt {
    fn load_views(&mut self, records: &dyn Read, project: &ProjectId) -> Result<()> {
        self.left.load_views(records, project)?;
        self.right.load_views(records, project)
    }
}

fn split(mutation: &mut Mutation<'_>, request: &SplitTurn) -> Result<SplitReceipt> {
    let place = resolve::place(mutation.reader(), mutation.call, &request.turn)?;
    let loc = place.require_turn_for("split")?;
    refuse_purged(&place.conversation)?;
    mutation.open(place.conversation)?;
    let tree = mutation.tree();
    let whole = tree.turn(loc)?;
    let content = splittable_text(&whole)?;
    let (left, right) = split_at_scalar(&content, request.offset)?;
    let parent = match tree.raw_parent(loc)? {
        Some(parent) => Some(tree.turn(parent)?),
        None => None,
    };
    let beside = tree.raw_children(parent.as_ref().map(|parent| parent.loc))?;
    mutation.depends_on(whole.operation);

    let half = |text: &str, metadata: Metadata| Message {
        role: whole.role,
        body: Body::Text(text.to_owned()),
        tool_call_id: None,
        created_at: Some(whole.created_at),
        status: whole.status,
        metadata,
    };
    let first = Metadata { auto_title: None, ..whole.metadata.clone() };
    let second = Metadata { title: None, ..whole.metadata.clone() };
    let origin = || TurnOrigin { part_of: Some(whole.id), ..TurnOrigin::default() };
    let left = make_turn(mutation, parent.as_ref(), &beside, &half(left, first), origin())?;
    let right = make_turn(mutation, Some(&left), &[], &half(right, second), origin())?;
    let halves = [left, right];
    if let Some(created) = LoggedChange::created(&halves) {
        mutation.changed(created);
    }
    let [left, right] = halves;
    mutation.records.insert_split(&Split {
        conversation: mutation.key(),
        whole: whole.loc,
        left: left.loc,
        right: right.loc,
        operation: mutation.seq(),
    })?;
    mutation.changed(LoggedChange::Split { whole: whole.id, left: left.id, right: right.id });
    follow(mutation, &whole, &right)?;
    Ok(SplitReceipt {
        whole: whole.id,
        left: mutation.viewed_turn(left.loc)?,
        right: mutation.viewed_turn(right.loc)?,
    })
}

fn splittable_text(turn: &Turn) -> Result<String> {
    if !matches!(turn.role, Role::User | Role::Assistant) {
        let role = turn.role.as_str();
        return Err(Error::Unsupported(format!(
            "a {role} turn cannot be split; only user and assistant turns can"
        )));
    }
    let Content::Kept(body) = &turn.content else {
        return Err(Error::Unsupported("the turn was purged and cannot be split".to_owned()));
    };
    body.text_only().ok_or_else(|| {
        Error::Unsupported(
            "only a turn that is plain text can be split; this one has other blocks".to_owned(),
        )
    })
}

/// Tips and bookmarks on the whole go to its second half.
fn follow(mutation: &mut Mutation<'_>, whole: &Turn, right: &Turn) -> Result<()> {
    let key = mutation.key();
    for branch in mutation.reader().branches(key)? {
        if branch.tip == Some(whole.loc) {
            mutation.move_branch(&branch, Some(right.loc))?;
        }
    }
    for bookmark in mutation.reader().bookmarks_in(key)? {
        if bookmark.turn == whole.loc {
            let moved = tine_store::Bookmark { turn: right.loc, ..bookmark.clone() };
            mutation.change_bookmark(Some(&bookmark), Some(&moved))?;
        }
    }
    Ok(())
}

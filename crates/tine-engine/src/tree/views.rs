//! From records to answers.

use tine_core::json::{Json, object};
use tine_core::{ConversationId, ProjectId, TurnHash, TurnId};
use tine_store::{Bookmark, Branch, Conversation, Read, Turn, TurnLoc, Visibility, required};

use crate::log::canonical_writer::ObjectWriter;
use crate::log::change::{optional, parsed, text};
use crate::log::mutation::Receipt;
use crate::tree::resolve::conversation_of;
use crate::tree::shown::{Tree, TurnState};
use crate::{BookmarkView, BranchView, ConversationView, Presence, Result, TurnView};

pub(crate) fn conversation(records: &dyn Read, found: &Conversation) -> Result<ConversationView> {
    Ok(ConversationView {
        project: found.project.clone(),
        id: found.id.clone(),
        root_hash: found.root_hash,
        root: found.root.clone(),
        title: found.title.clone(),
        metadata: found.metadata.clone(),
        created_at: found.created_at,
        derived_from: found.derived_from.clone(),
        archived: found.visibility == Visibility::Archived,
        changed_at: records.changed_at(found.key)?.unwrap_or(found.created_at),
    })
}

/// Returns a turn with its parents looked up.
pub(crate) fn turn(tree: &Tree<'_>, id: &ConversationId, turn: Turn) -> Result<TurnView> {
    let raw_parent = match tree.raw_parent(turn.loc)? {
        Some(loc) => Some(tree.turn(loc)?),
        None => None,
    };
    let parent = match tree.shown_parent(turn.loc)? {
        Some(loc) if Some(loc) == raw_parent.as_ref().map(|parent| parent.loc) => {
            raw_parent.as_ref().map(|parent| parent.id)
        }
        Some(loc) => Some(tree.turn(loc)?.id),
        None => None,
    };
    let presence = match tree.state(turn.loc)? {
        TurnState::Live => Presence::Live,
        TurnState::Split(_) => Presence::Split,
        TurnState::Bridged(_) | TurnState::Gone(_) => Presence::Deleted,
    };
    let continues = match presence {
        Presence::Live => continued(tree, &turn)?,
        Presence::Deleted | Presence::Split => None,
    };
    let parent_hash = raw_parent.map(|parent| parent.hash);
    Ok(TurnView { continues, ..turn_with(id, turn, parent_hash, parent, presence) })
}

/// Returns the half that a live turn continues.
pub(crate) fn continued(tree: &Tree<'_>, turn: &Turn) -> Result<Option<TurnId>> {
    // Only a half can; all others are spared the look-up.
    if turn.origin.part_of.is_none() {
        return Ok(None);
    }
    Ok(match tree.continued(turn.loc)? {
        Some(before) => Some(tree.turn(before)?.id),
        None => None,
    })
}

/// Returns the view of a turn whose parents are known, and which continues no other half.
pub(crate) fn turn_with(
    conversation: &ConversationId,
    turn: Turn,
    parent_hash: Option<TurnHash>,
    parent: Option<TurnId>,
    presence: Presence,
) -> TurnView {
    TurnView {
        conversation: conversation.clone(),
        id: turn.id,
        hash: turn.hash,
        parent_hash,
        parent,
        depth: turn.depth,
        role: turn.role,
        content: turn.content,
        tool_call_id: turn.tool_call_id,
        created_at: turn.created_at,
        status: turn.status,
        metadata: turn.metadata,
        origin: turn.origin,
        continues: None,
        presence,
        outcome: None,
    }
}

pub(crate) fn turn_at(tree: &Tree<'_>, id: &ConversationId, loc: TurnLoc) -> Result<TurnView> {
    turn(tree, id, tree.turn(loc)?)
}

/// Returns a turn by its id, wherever it stands now.
pub(crate) fn turn_by_id(records: &dyn Read, project: &ProjectId, id: &TurnId) -> Result<TurnView> {
    let found = records.find_turn(project, id)?;
    let (key, loc) = required(found, || format!("turn {id}"))?;
    let owner = conversation_of(records, key)?;
    turn_at(&Tree::new(records, key), &owner.id, loc)
}

pub(crate) fn branch(
    records: &dyn Read,
    conversation: &ConversationId,
    found: &Branch,
) -> Result<BranchView> {
    let tip = match found.tip {
        Some(loc) => {
            let turn = records.turn(loc)?;
            Some(required(turn, || format!("tip of branch {}", found.name))?)
        }
        None => None,
    };
    let (id, hash) = tip.map(|turn| (turn.id, turn.hash)).unzip();
    Ok(branch_with(conversation.clone(), found, id, hash))
}

/// Returns a branch whose tip is known already.
pub(crate) fn branch_with(
    conversation: ConversationId,
    found: &Branch,
    tip: Option<TurnId>,
    tip_hash: Option<TurnHash>,
) -> BranchView {
    BranchView {
        conversation,
        id: found.id,
        name: found.name.clone(),
        tip,
        tip_hash,
        forked_from: found.forked_from,
        created_at: found.created_at,
        version: found.version,
    }
}

pub(crate) fn bookmark(records: &dyn Read, found: &Bookmark) -> Result<BookmarkView> {
    let owner = conversation_of(records, found.conversation)?;
    let turn = records.turn(found.turn)?;
    let turn = required(turn, || format!("turn of bookmark {}", found.name))?;
    Ok(BookmarkView {
        name: found.name.clone(),
        conversation: owner.id,
        turn: turn.id,
        turn_hash: turn.hash,
        created_at: found.created_at,
    })
}

/// Writes the canonical form of a branch, as receipts hold it.
pub(crate) fn write_branch(branch: &BranchView, out: &mut String) {
    let mut object = ObjectWriter::begin(out);
    object.unescaped("branch_id", Some(branch.id));
    object.text("conversation_id", Some(branch.conversation.as_str()));
    object.unescaped("created_at", Some(branch.created_at));
    object.unescaped("forked_from", branch.forked_from);
    object.text("name", Some(branch.name.as_str()));
    object.unescaped("tip", branch.tip);
    object.unescaped("tip_hash", branch.tip_hash);
    object.literal("version", branch.version);
    object.end();
}

impl Receipt for BranchView {
    fn to_canonical(&self) -> String {
        let mut out = String::new();
        write_branch(self, &mut out);
        out
    }

    fn from_json(json: &Json) -> Option<Self> {
        Some(BranchView {
            conversation: ConversationId::from_stored(json.get("conversation_id")?.as_str()?),
            id: parsed(json, "branch_id")?,
            name: tine_core::Name::from_stored(json.get("name")?.as_str()?),
            tip: optional(json, "tip")?,
            tip_hash: optional(json, "tip_hash")?,
            forked_from: optional(json, "forked_from")?,
            created_at: parsed(json, "created_at")?,
            version: json.get("version")?.as_u64()?,
        })
    }
}

impl Receipt for BookmarkView {
    fn to_json(&self) -> Json {
        object([
            ("name", text(&self.name)),
            ("conversation_id", text(&self.conversation)),
            ("turn_id", text(&self.turn)),
            ("turn_hash", text(&self.turn_hash)),
            ("created_at", text(&self.created_at)),
        ])
    }

    fn from_json(json: &Json) -> Option<Self> {
        Some(BookmarkView {
            name: tine_core::Name::from_stored(json.get("name")?.as_str()?),
            conversation: ConversationId::from_stored(json.get("conversation_id")?.as_str()?),
            turn: parsed(json, "turn_id")?,
            turn_hash: parsed(json, "turn_hash")?,
            created_at: parsed(json, "created_at")?,
        })
    }
}

/// A record in an answer: its view as the call left it or, in a replay, its id.
///
/// The view is read in the call's own transaction: a later read would show changes by other calls.
pub(crate) enum ViewOrId<V: HasId> {
    View(Box<V>),
    Id(V::Id),
}

/// A view with an id by which it can be loaded again.
pub(crate) trait HasId {
    type Id: Receipt;
    fn id(&self) -> &Self::Id;
}

impl HasId for TurnView {
    type Id = TurnId;

    fn id(&self) -> &TurnId {
        &self.id
    }
}

impl HasId for ConversationView {
    type Id = ConversationId;

    fn id(&self) -> &ConversationId {
        &self.id
    }
}

impl<V: HasId> ViewOrId<V> {
    pub(crate) fn view(view: V) -> Self {
        ViewOrId::View(Box::new(view))
    }

    pub(crate) fn id(&self) -> &V::Id {
        match self {
            ViewOrId::View(view) => view.id(),
            ViewOrId::Id(id) => id,
        }
    }
}

impl ViewOrId<TurnView> {
    /// Loads the view if only the id is known, even in a conversation whose creation was undone: a
    /// replay repeats the first answer.
    pub(crate) fn load_views(&mut self, records: &dyn Read, project: &ProjectId) -> Result<()> {
        if let ViewOrId::Id(id) = self {
            *self = ViewOrId::view(turn_by_id(records, project, id)?);
        }
        Ok(())
    }
}

impl<V: HasId> Receipt for ViewOrId<V> {
    fn to_json(&self) -> Json {
        self.id().to_json()
    }

    fn from_json(json: &Json) -> Option<Self> {
        V::Id::from_json(json).map(ViewOrId::Id)
    }
}

impl Receipt for TurnId {
    fn to_json(&self) -> Json {
        text(self)
    }

    fn from_json(json: &Json) -> Option<Self> {
        json.as_str()?.parse().ok()
    }
}

impl Receipt for ConversationId {
    fn to_json(&self) -> Json {
        text(self)
    }

    fn from_json(json: &Json) -> Option<Self> {
        Some(ConversationId::from_stored(json.as_str()?))
    }
}

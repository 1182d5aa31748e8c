//! From records to answers.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tine_core::{ConversationId, ProjectId, TurnHash, TurnId};
use tine_store::{Bookmark, Branch, Conversation, Read, Turn, TurnLoc, Visibility, required};

use crate::log::mutation::Receipt;
use crate::tree::overview;
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
        active_at: overview::active_at(records, found)?,
        overview: None,
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

/// A record in an answer: its view as the call left it or, in a replay, its id.
///
/// The view is read in the call's own transaction: a later read would show changes by other calls.
pub(crate) enum ViewOrId<V: HasId> {
    View(Box<V>),
    Id(V::Id),
}

/// A view with an id by which it can be loaded again.
pub(crate) trait HasId {
    type Id: Serialize + DeserializeOwned;
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

/// Stored as the id.
impl<V: HasId> Serialize for ViewOrId<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.id().serialize(serializer)
    }
}

impl<'de, V: HasId> Deserialize<'de> for ViewOrId<V> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> std::result::Result<Self, D::Error> {
        V::Id::deserialize(input).map(ViewOrId::Id)
    }
}

impl<V: HasId> Receipt for ViewOrId<V> {}

/// An outcome as receipts hold it: whether something was created.
pub(crate) mod created {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::Outcome;

    pub(crate) fn serialize<S: Serializer>(
        outcome: &Outcome,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*outcome == Outcome::Created)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Outcome, D::Error> {
        bool::deserialize(input).map(Outcome::from_created)
    }
}

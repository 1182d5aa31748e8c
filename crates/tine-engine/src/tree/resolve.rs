//! Resolves references to records.
//!
//! A turn reference is tried as id, hash, branch, bookmark and hash prefix, in this order.

use tine_core::reference::{SHORTEST_PREFIX, digest_range};
use tine_core::{BranchId, ConversationId, Name, Reference};
use tine_store::{Branch, Conversation, ConversationKey, Read, TurnLoc, required};

use crate::Candidate;
use crate::log::mutation::PROJECT_LOG;
use crate::tree::shown::{Tree, TurnState};
use crate::{Call, Error, Result, TurnRef};

/// A turn of a conversation, or its root (`None`).
#[derive(Clone, Debug)]
pub(crate) struct TreePosition {
    pub conversation: Conversation,
    pub turn: Option<TurnLoc>,
}

impl TreePosition {
    /// Returns the turn; refuses the root, which cannot be changed.
    pub(crate) fn require_turn_for(&self, verb: &'static str) -> Result<TurnLoc> {
        self.turn.ok_or(Error::Root(verb))
    }

    /// Returns the turn; refuses the root.
    pub(crate) fn require_turn(&self) -> Result<TurnLoc> {
        self.turn.ok_or(Error::NotATurn)
    }
}

/// How many candidates of an ambiguous reference are listed.
const CANDIDATES: usize = 10;

/// Conversations looked through when a hash is given without one.
const CONVERSATIONS_PER_READ: usize = 1_000;

/// Returns the conversation of that id, unless its making was undone.
pub(crate) fn conversation(
    records: &dyn Read,
    call: &Call,
    id: &ConversationId,
) -> Result<Conversation> {
    match records.conversation(&call.project, id)? {
        Some(found) if found.visibility.is_there() => Ok(found),
        _ => Err(Error::not_found("conversation", id)),
    }
}

/// Returns a conversation, or the log of what was done outside of all of them.
pub(crate) fn conversation_or_log(
    records: &dyn Read,
    call: &Call,
    id: &ConversationId,
) -> Result<Conversation> {
    match id.as_str() {
        PROJECT_LOG => records
            .conversation(&call.project, id)?
            .ok_or_else(|| Error::not_found("conversation", id)),
        _ => conversation(records, call, id),
    }
}

pub(crate) fn conversation_of(records: &dyn Read, key: ConversationKey) -> Result<Conversation> {
    Ok(required(records.conversation_by_key(key)?, || format!("conversation {}", key.0))?)
}

/// Returns a branch of the conversation, by name or id.
pub(crate) fn find_branch(
    records: &dyn Read,
    call: &Call,
    conversation: ConversationKey,
    name: &str,
) -> Result<Option<Branch>> {
    if let Ok(id) = name.parse::<BranchId>() {
        let found = records.branch_by_id(&call.project, &id)?;
        return Ok(found.filter(|branch| branch.conversation == conversation));
    }
    Ok(records.branch(conversation, &Name::from_stored(name))?)
}

pub(crate) fn branch(
    records: &dyn Read,
    call: &Call,
    conversation: ConversationKey,
    name: &str,
) -> Result<Branch> {
    find_branch(records, call, conversation, name)?.ok_or_else(|| Error::not_found("branch", name))
}

/// Resolves a reference to a live turn or the root.
pub(crate) fn place(records: &dyn Read, call: &Call, turn: &TurnRef) -> Result<TreePosition> {
    let found = find(records, call, turn)?;
    live(records, found)
}

/// Resolves a reference to a turn, shown or not. A split turn resolves to its last half.
pub(crate) fn find(records: &dyn Read, call: &Call, wanted: &TurnRef) -> Result<TreePosition> {
    let within = match &wanted.conversation {
        Some(id) => Some(conversation(records, call, id)?),
        None => None,
    };
    let reference = &wanted.turn;
    let base = base(records, call, within, reference)?;
    let tree = Tree::new(records, base.conversation.key);
    let mut turn = match base.turn {
        Some(loc) => Some(tree.last_half(loc)?),
        None => None,
    };
    for _ in 0..reference.back() {
        let Some(loc) = turn else {
            let name = reference.as_str().to_owned();
            let advice = "; it goes back past the root";
            return Err(Error::NotFound { what: "turn", name, advice });
        };
        turn = tree.shown_parent(loc)?;
    }
    Ok(TreePosition { turn, ..base })
}

/// Returns the very turn that a reference names, also when it is split.
pub(crate) fn named(records: &dyn Read, call: &Call, wanted: &TurnRef) -> Result<Option<TurnLoc>> {
    if wanted.turn.back() > 0 {
        return Ok(None);
    }
    let within = match &wanted.conversation {
        Some(id) => Some(conversation(records, call, id)?),
        None => None,
    };
    Ok(base(records, call, within, &wanted.turn)?.turn)
}

/// Refuses a place that is not shown.
pub(crate) fn live(records: &dyn Read, found: TreePosition) -> Result<TreePosition> {
    let Some(loc) = found.turn else {
        return Ok(found);
    };
    let tree = Tree::new(records, found.conversation.key);
    match tree.state(loc)? {
        TurnState::Live => Ok(found),
        TurnState::Split(_) => Ok(TreePosition { turn: Some(tree.last_half(loc)?), ..found }),
        TurnState::Bridged(operation) | TurnState::Gone(operation) => {
            Err(Error::DeletedTurn { turn: tree.turn(loc)?.id, operation })
        }
    }
}

fn base(
    records: &dyn Read,
    call: &Call,
    within: Option<Conversation>,
    reference: &Reference,
) -> Result<TreePosition> {
    let name = reference.base();
    if reference.is_root() {
        let conversation = within.ok_or_else(|| {
            Error::invalid("`root` is ambiguous without a conversation; name the conversation")
        })?;
        return Ok(TreePosition { conversation, turn: None });
    }
    if let Some(found) = by_id(records, call, within.as_ref(), reference)? {
        return Ok(found);
    }
    if let Some(hash) = reference.turn_hash() {
        let hex = hash.0.to_hex();
        return by_hash(records, call, within, &hex, reference)?.ok_or_else(|| unknown(name));
    }
    if let Some(conversation) = &within
        && let Some(branch) = find_branch(records, call, conversation.key, name)?
    {
        return Ok(TreePosition { conversation: conversation.clone(), turn: branch.tip });
    }
    if within.is_none()
        && let Some(found) = by_branch_anywhere(records, call, name)?
    {
        return Ok(found);
    }
    if let Some(bookmark) = records.bookmark(&call.project, &Name::from_stored(name))? {
        let owner = conversation_of(records, bookmark.conversation)?;
        if within.as_ref().is_none_or(|within| within.key == owner.key) {
            return Ok(TreePosition { conversation: owner, turn: Some(bookmark.turn) });
        }
    }
    if let Some(prefix) = reference.hash_prefix() {
        return by_hash(records, call, within, &prefix, reference)?.ok_or_else(|| unknown(name));
    }
    Err(unknown(name))
}

fn unknown(name: &str) -> Error {
    let short = name.len() < SHORTEST_PREFIX && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let advice = match short {
        true => "; a hash prefix has at least 8 digits",
        false => "",
    };
    Error::NotFound { what: "turn, branch or bookmark", name: name.to_owned(), advice }
}

fn by_id(
    records: &dyn Read,
    call: &Call,
    within: Option<&Conversation>,
    reference: &Reference,
) -> Result<Option<TreePosition>> {
    if let Some(id) = reference.turn_id()
        && let Some((key, loc)) = records.find_turn(&call.project, &id)?
    {
        let owner = conversation_of(records, key)?;
        if within.is_some_and(|within| within.key != key) {
            let why = format!("the turn {id} lies in another conversation, `{}`", owner.id);
            return Err(Error::Invalid(why));
        }
        if !owner.visibility.is_there() {
            return Ok(None);
        }
        return Ok(Some(TreePosition { conversation: owner, turn: Some(loc) }));
    }
    let Ok(id) = reference.base().parse::<BranchId>() else {
        return Ok(None);
    };
    let Some(branch) = records.branch_by_id(&call.project, &id)? else {
        return Ok(None);
    };
    let owner = conversation_of(records, branch.conversation)?;
    Ok(Some(TreePosition { conversation: owner, turn: branch.tip }))
}

/// Runs a search over the conversation of the call, or over all of the project.
fn in_conversations(
    records: &dyn Read,
    call: &Call,
    within: Option<Conversation>,
    search: &mut dyn FnMut(&Conversation) -> Result<()>,
) -> Result<()> {
    if let Some(conversation) = within {
        return search(&conversation);
    }
    let mut after = None;
    loop {
        let page = records.conversations(&call.project, after, CONVERSATIONS_PER_READ)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.key);
        for conversation in page.iter().filter(|found| found.visibility.is_there()) {
            search(conversation)?;
        }
    }
}

fn by_hash(
    records: &dyn Read,
    call: &Call,
    within: Option<Conversation>,
    hex: &str,
    reference: &Reference,
) -> Result<Option<TreePosition>> {
    let Some((low, high)) = digest_range(hex) else {
        return Ok(None);
    };
    let mut found = Vec::new();
    in_conversations(records, call, within, &mut |conversation| {
        for loc in records.find_hashes(conversation.key, &low, &high, CANDIDATES)? {
            found.push(TreePosition { conversation: conversation.clone(), turn: Some(loc) });
        }
        Ok(())
    })?;
    // Halves share nothing with their whole, but a deleted turn must not make a prefix of a live
    // one ambiguous.
    if found.len() > 1 {
        let shown: Vec<TreePosition> =
            found.iter().filter(|place| live(records, (*place).clone()).is_ok()).cloned().collect();
        if !shown.is_empty() {
            found = shown;
        }
    }
    only(records, found, reference.as_str(), "give more digits, or name the conversation")
}

fn by_branch_anywhere(records: &dyn Read, call: &Call, name: &str) -> Result<Option<TreePosition>> {
    let name = Name::from_stored(name);
    let mut found = Vec::new();
    in_conversations(records, call, None, &mut |conversation| {
        if let Some(branch) = records.branch(conversation.key, &name)? {
            found.push(TreePosition { conversation: conversation.clone(), turn: branch.tip });
        }
        Ok(())
    })?;
    only(records, found, name.as_str(), "name the conversation")
}

fn only(
    records: &dyn Read,
    mut found: Vec<TreePosition>,
    name: &str,
    advice: &'static str,
) -> Result<Option<TreePosition>> {
    if found.len() <= 1 {
        return Ok(found.pop());
    }
    let candidates = found.iter().take(CANDIDATES).map(|place| {
        let turn = match place.turn {
            Some(loc) => records.turn(loc)?,
            None => None,
        };
        Ok(Candidate {
            conversation: place.conversation.id.clone(),
            turn: turn.as_ref().map(|turn| turn.id),
            hash: turn.as_ref().map(|turn| turn.hash),
            commit: None,
        })
    });
    let candidates: Vec<Candidate> = candidates.collect::<Result<_>>()?;
    // More digits do not tell equal hashes apart.
    let first = &candidates[0];
    let equal = |it: &Candidate| it.hash.is_some() && it.hash == first.hash;
    let advice = if candidates.iter().all(equal) { "name the conversation" } else { advice };
    Err(Error::Ambiguous { name: name.to_owned(), candidates, advice })
}

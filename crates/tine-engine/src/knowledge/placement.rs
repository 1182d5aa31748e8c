//! Where a turn of a host that tracks no branches goes.
//!
//! A store is placed on the *current line*, the path of the branch that it names:
//!
//! - a version of its slot that says the same and lies on the line is that turn again;
//! - otherwise a version whose parent lies on the line gets a sibling: an edit, or the return to
//!   an earlier one;
//! - otherwise the turn follows the tip.
//!
//! A parent or a history that the caller gives wins over all of these.

use std::collections::BTreeSet;

use tine_core::facts::Slot;
use tine_core::{Message, Name, Reference, Role, TurnId};
use tine_store::{Branch, IndexKey, IndexQuery, Turn, TurnLoc, TurnOrigin};

use super::reader::entity_of;
use crate::StoreTurn;
use crate::log::mutation::Mutation;
use crate::ops::append::{equal_child, make_chain, same_message, target_branch};
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::{Error, Outcome, Result, TurnRef};

/// Messages of a slot's versions that are looked at, from the newest on.
pub(super) const VERSIONS_TRIED: usize = 1_000;

/// Answers under one turn id that are read at once, from the last one on.
const PARTS_READ: usize = 4;

/// The current line: where it ends, and the branch that follows.
pub(super) struct BranchLine {
    tip: Option<TurnLoc>,
    branch: Option<Branch>,
    name: Name,
}

impl BranchLine {
    /// Finds the line of a branch. A branch that does not exist yet starts at the tip of `main`.
    pub(super) fn find(mutation: &Mutation<'_>, wanted: Option<&str>) -> Result<BranchLine> {
        let (branch, name) = target_branch(mutation, wanted)?;
        let tip = match &branch {
            Some(branch) => branch.tip,
            None => match mutation.reader().branch(mutation.key(), &Name::main())? {
                Some(main) => main.tip,
                None => {
                    return Err(Error::NotFound {
                        what: "branch",
                        name: Name::main().to_string(),
                        advice: "; name an existing branch",
                    });
                }
            },
        };
        Ok(BranchLine { tip, branch, name })
    }

    fn holds(&self, tree: &Tree<'_>, turn: Option<TurnLoc>) -> Result<bool> {
        tree.on_shown_path(turn, self.tip)
    }

    /// Returns whether a version is shown on the line, as one or as its halves.
    fn holds_version(&self, tree: &Tree<'_>, version: &Turn) -> Result<bool> {
        Ok(self.holds(tree, Some(tree.last_half(version.loc)?))? && tree.is_shown(version.loc)?)
    }

    /// Returns whether a version is shown below a turn of the line.
    fn holds_parent(&self, tree: &Tree<'_>, version: &Turn) -> Result<bool> {
        Ok(self.holds(tree, parent_of(tree, version)?)? && tree.is_shown(version.loc)?)
    }

    /// Moves the branch to a turn, making it if it is new.
    pub(super) fn follow(
        self,
        mutation: &mut Mutation<'_>,
        turn: TurnLoc,
        tip_stays: bool,
    ) -> Result<Branch> {
        match self.branch {
            Some(branch) if tip_stays || branch.tip == Some(turn) => Ok(branch),
            Some(branch) => mutation.move_branch(&branch, Some(turn)),
            None => {
                let branch = Branch {
                    conversation: mutation.key(),
                    id: mutation.new_branch_id(),
                    name: self.name,
                    tip: if tip_stays { self.tip } else { Some(turn) },
                    forked_from: None,
                    created_at: mutation.now,
                    version: 1,
                };
                mutation.put_branch(None, &branch)?;
                Ok(branch)
            }
        }
    }
}

/// Returns the slots of a host's turn.
fn slots_of(mutation: &Mutation<'_>, turn_id: &str) -> Result<Vec<Slot>> {
    let query = IndexQuery::slots_of_turn(&mutation.conversation().id, turn_id);
    let found = mutation.reader().index_keys(&mutation.call.project, &query, VERSIONS_TRIED)?;
    found.iter().map(|key| slot_of_key(mutation, key)).collect()
}

fn slot_of_key(mutation: &Mutation<'_>, key: &IndexKey) -> Result<Slot> {
    let entity = entity_of(key)?;
    let record = mutation.knowledge().entity(entity)?.and_then(|record| record.slot);
    Ok(tine_store::required(record, || format!("entity {entity}"))?.1)
}

/// Returns the turns that are versions of a slot, shown or not, newest first.
fn versions(mutation: &Mutation<'_>, slot: &Slot) -> Result<Vec<Turn>> {
    let knowledge = mutation.knowledge();
    let Some(id) = knowledge.slot_entity(&mutation.conversation().id, slot)? else {
        return Ok(Vec::new());
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for one in knowledge.last_observations(id, VERSIONS_TRIED)? {
        let Some(turn) = one.turn.filter(|turn| seen.insert(*turn)) else {
            continue;
        };
        found.extend(own_turn(mutation, &turn)?);
    }
    Ok(found)
}

/// Returns a turn of the open conversation.
fn own_turn(mutation: &Mutation<'_>, id: &TurnId) -> Result<Option<Turn>> {
    match mutation.reader().find_turn(&mutation.call.project, id)? {
        Some((key, loc)) if key == mutation.key() => Ok(mutation.reader().turn(loc)?),
        _ => Ok(None),
    }
}

/// Returns whether all of a version is shown, and says just this.
fn says(tree: &Tree<'_>, version: &Turn, message: &Message) -> Result<bool> {
    Ok(same_message(version, message) && tree.is_whole(version.loc)?)
}

/// Returns which slot a message belongs to, and its versions. Only an assistant has several parts
/// under one turn id.
pub(super) fn slot(
    mutation: &Mutation<'_>,
    request: &StoreTurn,
    line: &BranchLine,
) -> Result<(Slot, Vec<Turn>)> {
    let message = &request.message;
    if let Some(given) = &request.turn_id
        && let Some(slot) = slot_of_turn(mutation, given, message)?
    {
        let versions = versions(mutation, &slot)?;
        return Ok((slot, versions));
    }
    let turn_id = match (&request.turn_id, &mutation.call.idempotency_key) {
        (Some(turn_id), _) => turn_id.clone(),
        (None, Some(key)) => key.clone(),
        (None, None) => mutation.new_turn_id().to_string(),
    };
    let tool_call_id = message.tool_call_id.clone();
    let slot = Slot { turn_id, role: message.role, tool_call_id, part: 0 };
    let slot = match message.role {
        Role::Assistant => return answer(mutation, slot, message, line),
        _ => slot,
    };
    let versions = versions(mutation, &slot)?;
    Ok((slot, versions))
}

/// Returns the slot of the turn that has this very id, as answers give it. Hosts' own ids come
/// first, and may be UUIDs as well.
fn slot_of_turn(mutation: &Mutation<'_>, given: &str, message: &Message) -> Result<Option<Slot>> {
    let Ok(id) = given.parse::<TurnId>() else {
        return Ok(None);
    };
    if !slots_of(mutation, given)?.is_empty() {
        return Ok(None);
    }
    let Some(mut turn) = own_turn(mutation, &id)? else {
        return Ok(None);
    };
    while let Some(whole) = turn.origin.part_of {
        let found = own_turn(mutation, &whole)?;
        turn = tine_store::required(found, || format!("turn {whole}"))?;
    }
    let Some(slot) = turn.origin.slot else {
        return Err(Error::Invalid(format!(
            "the turn {id} was not stored with a `turn_id`, so it has no versions under one; \
             edit that turn, or give a new `turn_id`"
        )));
    };
    if slot.role != message.role || slot.tool_call_id != message.tool_call_id {
        let of = |role: Role, call: &Option<String>| match call {
            Some(call) => format!("{} (tool call `{call}`)", role.as_str()),
            None => role.as_str().to_owned(),
        };
        return Err(Error::Invalid(format!(
            "the turn {id} was stored as `{}` of {}, and this is a message of {}; \
             give `{}` as `turn_id` to store it beside that turn, or a new one",
            slot.turn_id,
            of(slot.role, &slot.tool_call_id),
            of(message.role, &message.tool_call_id),
            slot.turn_id,
        )));
    }
    Ok(Some(slot))
}

/// Returns which of the answers under one turn id a message is.
fn answer(
    mutation: &Mutation<'_>,
    first: Slot,
    message: &Message,
    line: &BranchLine,
) -> Result<(Slot, Vec<Turn>)> {
    let tree = mutation.tree();
    let last = last_answer(mutation, &tree, &first.turn_id, line)?;
    let Some((last, versions_of_last, depth)) = last else {
        let versions = versions(mutation, &first)?;
        return Ok((first, versions));
    };
    let tip = line.tip.map(|tip| tree.turn(tip)).transpose()?;
    let result = tip.filter(|tip| tip.role == Role::Tool && tip.depth > depth);
    // A host that sends an earlier answer again means that one; so does one that returns to what it
    // had said instead. After tool results, those can only be of a later turn.
    let later = |result: &Turn| {
        result.origin.slot.as_ref().is_some_and(|slot| slot.turn_id != last.turn_id)
    };
    if result.as_ref().is_none_or(later) {
        let beside_too = result.is_none();
        let mut beside = None;
        for part in (0..=last.part).rev() {
            let slot = Slot { part, ..last.clone() };
            let versions = match part == last.part {
                true => versions_of_last.clone(),
                false => versions(mutation, &slot)?,
            };
            for version in &versions {
                if !says(&tree, version, message)? {
                    continue;
                }
                if line.holds_version(&tree, version)? {
                    return Ok((slot, versions));
                }
                if beside_too && beside.is_none() && line.holds_parent(&tree, version)? {
                    beside = Some((slot.clone(), versions.clone()));
                }
            }
        }
        if let Some(found) = beside {
            return Ok(found);
        }
    }
    if result.is_none() {
        return Ok((last, versions_of_last));
    }
    let next = Slot { part: last.part + 1, ..last };
    let versions = versions(mutation, &next)?;
    Ok((next, versions))
}

/// Returns the last answer of a turn id that lies on the line, with its versions and how deep it
/// lies. Parts count along a line, so it is the one with the highest part.
fn last_answer(
    mutation: &Mutation<'_>,
    tree: &Tree<'_>,
    turn_id: &str,
    line: &BranchLine,
) -> Result<Option<(Slot, Vec<Turn>, u32)>> {
    let query = IndexQuery::answers_of_turn(&mutation.conversation().id, turn_id);
    let mut query = query.backwards();
    loop {
        let found = mutation.reader().index_keys(&mutation.call.project, &query, PARTS_READ)?;
        for key in &found {
            let slot = slot_of_key(mutation, key)?;
            let versions = versions(mutation, &slot)?;
            for version in &versions {
                if line.holds_version(tree, version)? {
                    let depth = version.depth;
                    return Ok(Some((slot, versions, depth)));
                }
            }
        }
        match found.last() {
            Some(last) if found.len() == PARTS_READ => query = query.after(last),
            _ => return Ok(None),
        }
    }
}

/// Returns what a version follows.
fn parent_of(tree: &Tree<'_>, version: &Turn) -> Result<Option<TurnLoc>> {
    tree.shown_parent(tree.first_half(version.loc)?)
}

pub(super) struct PlacedTurn {
    /// What is shown: the version, or its last half.
    pub turn: Turn,
    /// The slot's version.
    pub version: Turn,
    pub outcome: Outcome,
    pub tip_stays: bool,
    pub superseded: Option<TurnId>,
}

impl PlacedTurn {
    /// Returns an existing version. A branch whose line holds it does not move.
    fn again(tree: &Tree<'_>, line: &BranchLine, version: Turn) -> Result<PlacedTurn> {
        Ok(PlacedTurn {
            turn: tree.turn(tree.last_half(version.loc)?)?,
            tip_stays: line.holds_version(tree, &version)?,
            version,
            outcome: Outcome::Reused,
            superseded: None,
        })
    }
}

pub(super) fn place(
    mutation: &mut Mutation<'_>,
    request: &StoreTurn,
    line: &BranchLine,
    slot: &Slot,
    versions: &[Turn],
) -> Result<PlacedTurn> {
    let message = &request.message;
    let parent = match (&request.parent, &request.parent_message, request.history.is_empty()) {
        (Some(parent), ..) => Some(explicit_parent(mutation, parent)?),
        (None, Some(parent), _) => Some(parent_message(mutation, line, slot, parent)?),
        (None, None, false) => Some(after_history(mutation, request)?),
        (None, None, true) => None,
    };
    let tree = mutation.tree();
    let mut again = None;
    // Whom it stands beside: under the parent that was given, or under any on the line.
    let mut beside: Option<&Turn> = None;
    for version in versions {
        let same = says(&tree, version, message)?;
        if same && parent.is_none() && line.holds_version(&tree, version)? {
            (again, beside) = (Some(version), None);
            break;
        }
        if again.is_some() || (beside.is_some() && !same) {
            continue;
        }
        let here = match (parent, beside) {
            (Some(parent), _) => {
                parent_of(&tree, version)? == parent && tree.is_shown(version.loc)?
            }
            (None, Some(beside)) => parent_of(&tree, version)? == parent_of(&tree, beside)?,
            (None, None) => line.holds_parent(&tree, version)?,
        };
        if here {
            beside = beside.or(Some(version));
            again = again.or(Some(version).filter(|_| same));
        }
    }
    let parent = match (parent, beside) {
        (Some(parent), _) => parent,
        (None, Some(beside)) => parent_of(&tree, beside)?,
        (None, None) => line.tip,
    };
    let again = again.map(|version| PlacedTurn::again(&tree, line, version.clone())).transpose()?;
    let replaced = beside.map(|version| (version.id, version.operation));
    let dependencies = tree.dependencies();
    mutation.depends_on_all(dependencies);
    if let Some(again) = again {
        mutation.depends_on(again.version.operation);
        return Ok(again);
    }
    mutation.depends_on_all(replaced.map(|(_, operation)| operation));
    let replaced = replaced.map(|(id, _)| id);
    let origin =
        |_| TurnOrigin { edited_from: replaced, slot: Some(slot.clone()), ..TurnOrigin::default() };
    let made = make_chain(mutation, parent, std::slice::from_ref(message), origin)?.turns.pop();
    let turn = made.expect("a chain of one message has one turn");
    Ok(PlacedTurn {
        version: turn.clone(),
        turn,
        outcome: Outcome::Created,
        tip_stays: false,
        superseded: replaced,
    })
}

fn explicit_parent(mutation: &Mutation<'_>, parent: &Reference) -> Result<Option<TurnLoc>> {
    let id = mutation.conversation().id.clone();
    let wanted = TurnRef::within(id, parent.clone());
    Ok(resolve::place(mutation.reader(), mutation.call, &wanted)?.turn)
}

/// Returns a turn, or the version of a host's message that lies on the line, else its newest. Of
/// several messages under one turn id, the one that was said last; nothing follows itself.
fn parent_message(
    mutation: &Mutation<'_>,
    line: &BranchLine,
    own: &Slot,
    given: &str,
) -> Result<Option<TurnLoc>> {
    let tree = mutation.tree();
    let mut newest: Option<Turn> = None;
    let mut on_shown_path: Option<Turn> = None;
    for slot in slots_of(mutation, given)? {
        for version in versions(mutation, &slot)?.into_iter().filter(|_| slot != *own) {
            if !tree.is_shown(version.loc)? {
                continue;
            }
            if line.holds_version(&tree, &version)?
                && on_shown_path.as_ref().is_none_or(|other| other.depth < version.depth)
            {
                on_shown_path = Some(version.clone());
            }
            if newest.as_ref().is_none_or(|other| other.id < version.id) {
                newest = Some(version);
            }
        }
    }
    if let Some(turn) = on_shown_path.or(newest) {
        return tree.nearest_live(tree.last_half(turn.loc)?);
    }
    let reference = Reference::parse(given)?;
    explicit_parent(mutation, &reference)
}

/// Returns the end of a history that was given whole, as an append places it.
fn after_history(mutation: &mut Mutation<'_>, request: &StoreTurn) -> Result<Option<TurnLoc>> {
    let tree = mutation.tree();
    let mut end = None;
    let mut rest = request.history.as_slice();
    while let Some((message, remaining)) = rest.split_first() {
        let Some(found) = equal_child(&tree, end, message)? else {
            break;
        };
        end = Some(found.loc);
        rest = remaining;
    }
    let dependencies = tree.dependencies();
    mutation.depends_on_all(dependencies);
    let made = make_chain(mutation, end, rest, |_| TurnOrigin::default())?;
    Ok(made.turns.last().map(|turn| turn.loc).or(end))
}

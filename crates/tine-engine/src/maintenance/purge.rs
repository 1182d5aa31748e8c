//! Permanent erasure: content is removed from every table, log entry and free page.
//!
//! Hashes and skeleton stay, so that the chain is still verifiable around what is gone; the digest
//! of the content stays, so that it is recognised and not restored.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::json::{Json, Object, object};
use tine_core::{ConversationId, Digest, SourceId, TurnId};
use tine_store::{Content, Conversation, Detail, Read, Turn, TurnLoc};

use crate::commits::commit_maintenance;
use crate::knowledge::{KnowledgeReader, erase};
use crate::log::change::{ConversationField, LoggedChange, text, texts};
use crate::log::history::detail;
use crate::log::mutation::Mutation;
use crate::maintenance::sweep;
use crate::ops::append::digest_of;
use crate::tree::resolve;
use crate::tree::shown::Tree;
use crate::{Call, Engine, Error, Holder, Purge, PurgeTarget, Purged, Result};

/// Other holders of the same text that are listed.
const HOLDERS: usize = 1_000;

/// The kind of an operation that erases.
pub(crate) const KIND: &str = "purge";

impl Engine {
    /// Erases what a turn, or a whole conversation, says. Asks twice: the first call, without
    /// `confirm`, returns what would be erased and the confirmation code. Cannot be undone.
    pub fn purge(&self, call: &Call, request: Purge) -> Result<Purged> {
        if request.confirm.is_none() {
            let plan = self.read(|records| PurgePlan::new(records, call, &request.target))?;
            return Ok(plan.answer(Some(plan.confirmation_code())));
        }
        let payload = |request: &Purge| object([("confirm", request.confirm.clone().into())]);
        let (purged, _) = self.mutate(call, KIND, request, payload, erase)?;
        // Also for a repeated call: the first one may have been cut off before this.
        self.unindex(&call.project, &purged.turns)?;
        if !self.sweep(&call.project)? {
            self.store().scrub().map_err(Error::NotSwept)?;
        }
        Ok(purged)
    }
}

impl Engine {
    /// Counts the turns of a conversation that are not erased.
    pub(crate) fn count_unerased(
        &self,
        call: &Call,
        id: &ConversationId,
        turns: &[TurnId],
    ) -> Result<u64> {
        self.read(|records| {
            let Some(found) = records.conversation(&call.project, id)? else { return Ok(0) };
            let unerased = unerased_turns(records, &found, turns)?;
            Ok(u64::try_from(unerased.len()).unwrap_or(u64::MAX))
        })
    }

    /// Erases these turns of a conversation because another store has, with all that hold part of
    /// their text. Nothing is done where they are erased already, or are not here.
    pub(crate) fn erase_turns(
        &self,
        call: &Call,
        id: &ConversationId,
        turns: &[TurnId],
    ) -> Result<()> {
        if self.count_unerased(call, id, turns)? == 0 {
            return Ok(());
        }
        let request = (id.clone(), turns.to_vec());
        let payload = |(id, turns): &(ConversationId, Vec<TurnId>)| {
            object([("conversation_id", text(id)), ("turns", texts(turns))])
        };
        self.mutate(call, KIND, request, payload, |mutation, request| {
            let found = resolve::conversation(mutation.reader(), mutation.call, &request.0)?;
            let unerased = unerased_turns(mutation.reader(), &found, &request.1)?;
            let plan = PurgePlan::of_named(mutation.reader(), mutation.call, found, &unerased)?;
            carry_out(mutation, &plan)
        })?;
        self.sweep(&call.project)?;
        Ok(())
    }
}

/// Those of the turns that are in a conversation and not erased.
fn unerased_turns(
    records: &dyn Read,
    conversation: &Conversation,
    turns: &[TurnId],
) -> Result<Vec<TurnLoc>> {
    let mut unerased = Vec::new();
    for id in turns {
        if let Some((key, loc)) = records.find_turn(&conversation.project, id)?
            && key == conversation.key
            && records.turn(loc)?.is_some_and(|turn| matches!(turn.content, Content::Kept(_)))
        {
            unerased.push(loc);
        }
    }
    Ok(unerased)
}

fn erase(mutation: &mut Mutation<'_>, request: &Purge) -> Result<Purged> {
    let plan = PurgePlan::new(mutation.reader(), mutation.call, &request.target)?;
    let word = request.confirm.as_deref().unwrap_or_default();
    if word != plan.confirmation_code() {
        return Err(Error::invalid(format!(
            "`{word}` does not confirm this purge; call without a confirmation to get the right one"
        )));
    }
    carry_out(mutation, &plan)
}

fn carry_out(mutation: &mut Mutation<'_>, plan: &PurgePlan) -> Result<Purged> {
    match &plan.conversation {
        Some(conversation) => mutation.open(conversation.clone())?,
        None => mutation.open_project_log()?,
    }
    for turn in &plan.turns {
        mutation.records.purge_turn(turn.loc, &digest_of(turn))?;
    }
    for seq in &plan.operations {
        mutation.records.purge_operation(mutation.key(), *seq)?;
    }
    plan.erasure.erase(mutation.records, &mutation.call.project, mutation.now)?;
    if let Some(conversation) = plan.conversation.as_ref().filter(|_| plan.whole) {
        let gone = Conversation {
            root: None,
            title: None,
            metadata: Json::Object(Object::new()),
            ..conversation.clone()
        };
        mutation.records.update_conversation(&gone)?;
        commit_maintenance::erase_messages(
            mutation.records,
            &mutation.call.project,
            &conversation.id,
        )?;
    }
    let id = mutation.conversation().id.clone();
    let (project, seq) = (&mutation.call.project, mutation.seq());
    sweep::note(mutation.records, project, &id, seq)?;
    let ids: Vec<Json> = plan.turns.iter().map(|turn| text(&turn.id)).collect();
    mutation.fact("purged_turns", u64::try_from(ids.len()).unwrap_or(u64::MAX));
    mutation.fact("turn_ids", ids);
    if !plan.erasure.sources.is_empty() {
        mutation.fact("purged_sources", texts(&plan.erasure.sources));
    }
    Ok(plan.answer(None))
}

struct PurgePlan {
    /// Whose log it enters; the project's own without one.
    conversation: Option<Conversation>,
    whole: bool,
    turns: Vec<Turn>,
    operations: Vec<u64>,
    holders: Vec<Holder>,
    erasure: erase::ErasurePlan,
}

impl PurgePlan {
    fn new(records: &dyn Read, call: &Call, target: &PurgeTarget) -> Result<Self> {
        let (conversation, turns, whole) = match target {
            PurgeTarget::Turn(turn) => {
                let place = resolve::find(records, call, turn)?;
                let loc = place.turn.ok_or(Error::Root("purged alone"))?;
                let tree = Tree::new(records, place.conversation.key);
                let turns = sharing_text(&tree, loc)?;
                (place.conversation, turns, false)
            }
            PurgeTarget::Conversation(id) => {
                let conversation = resolve::conversation(records, call, id)?;
                let mut turns = Vec::new();
                for extent in records.segments(conversation.key)? {
                    records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                        turns.push(turn);
                        Ok(true)
                    })?;
                }
                (conversation, turns, true)
            }
            PurgeTarget::Source(id) => return PurgePlan::of_source(records, call, *id),
        };
        let plan = PurgePlan::of_turns(records, call, conversation, turns, whole)?;
        plan.refuse_done(&KnowledgeReader::new(records, &call.project))?;
        Ok(plan)
    }

    fn of_turns(
        records: &dyn Read,
        call: &Call,
        conversation: Conversation,
        turns: Vec<Turn>,
        whole: bool,
    ) -> Result<Self> {
        let (operations, logged_sources) =
            repeating_operations(records, &conversation, &turns, whole)?;
        let holders = other_holders(records, &turns)?;
        let knowledge = KnowledgeReader::new(records, &call.project);
        let ids = turns.iter().map(|turn| turn.id).collect();
        let mut erasure = erase::ErasurePlan::of_turns(&knowledge, ids, &logged_sources)?;
        if whole {
            erasure.add_conversation(&knowledge, &conversation.id)?;
        }
        let conversation = Some(conversation);
        Ok(PurgePlan { conversation, whole, turns, operations, holders, erasure })
    }

    /// Turns, and all that hold part of their text.
    fn of_named(
        records: &dyn Read,
        call: &Call,
        conversation: Conversation,
        named: &[TurnLoc],
    ) -> Result<Self> {
        let tree = Tree::new(records, conversation.key);
        let mut turns: BTreeMap<TurnLoc, Turn> = BTreeMap::new();
        for loc in named {
            if !turns.contains_key(loc) {
                turns.extend(sharing_text(&tree, *loc)?.into_iter().map(|turn| (turn.loc, turn)));
            }
        }
        PurgePlan::of_turns(records, call, conversation, turns.into_values().collect(), false)
    }

    /// A turn that a source is the envelope of goes with it.
    fn of_source(records: &dyn Read, call: &Call, id: SourceId) -> Result<Self> {
        let knowledge = KnowledgeReader::new(records, &call.project);
        let turn = match knowledge.require_source(id)?.turn {
            Some(turn) => records.find_turn(&call.project, &turn)?,
            None => None,
        };
        let mut plan = match turn {
            Some((key, loc)) => {
                let turns = sharing_text(&Tree::new(records, key), loc)?;
                let conversation = resolve::conversation_of(records, key)?;
                PurgePlan::of_turns(records, call, conversation, turns, false)?
            }
            None => PurgePlan {
                conversation: None,
                whole: false,
                turns: Vec::new(),
                operations: Vec::new(),
                holders: Vec::new(),
                erasure: erase::ErasurePlan::default(),
            },
        };
        plan.erasure.add_source(&knowledge, id)?;
        plan.refuse_done(&knowledge)?;
        Ok(plan)
    }

    fn refuse_done(&self, knowledge: &KnowledgeReader<'_>) -> Result<()> {
        let purged = |turn: &Turn| matches!(turn.content, Content::Purged(_));
        let rooted = self.conversation.as_ref().is_some_and(|it| it.root.is_some());
        if self.turns.iter().all(purged)
            && !(self.whole && rooted)
            && self.erasure.is_done(knowledge)?
        {
            return Err(Error::invalid("it is already purged"));
        }
        Ok(())
    }

    /// Returns a code that identifies what would be erased.
    fn confirmation_code(&self) -> String {
        let ids = self.turns.iter().map(|turn| text(&turn.id)).collect();
        let what = object([
            ("conversation_id", self.conversation.as_ref().map(|it| text(&it.id)).into()),
            ("turns", Json::Array(ids)),
            ("sources", texts(&self.erasure.sources)),
            ("whole", self.whole.into()),
        ]);
        Digest::of(what.to_canonical().as_bytes()).to_hex()[..8].to_owned()
    }

    fn answer(&self, confirm: Option<String>) -> Purged {
        Purged {
            turns: self.turns.iter().map(|turn| turn.id).collect(),
            other_holders: self.holders.clone(),
            operations: u64::try_from(self.operations.len()).unwrap_or(u64::MAX),
            sources: self.erasure.sources.iter().copied().collect(),
            observations: u64::try_from(self.erasure.observations.len()).unwrap_or(u64::MAX),
            confirm,
        }
    }
}

/// Returns the turn and all that hold part or whole of its text because of a split, undone or not.
fn sharing_text(tree: &Tree<'_>, loc: TurnLoc) -> Result<Vec<Turn>> {
    let mut top = tree.turn(loc)?;
    'up: while let Some(whole) = top.origin.part_of {
        // The whole is a sibling of its first part, which is the parent of the next.
        let mut beside = top.loc;
        loop {
            let parent = tree.raw_parent(beside)?;
            for sibling in tree.raw_children(parent)? {
                let turn = tree.turn(sibling)?;
                if turn.id == whole {
                    top = turn;
                    continue 'up;
                }
            }
            match parent {
                Some(parent) if tree.turn(parent)?.origin.part_of.is_some() => beside = parent,
                _ => break 'up,
            }
        }
    }
    // Every part lies beside it or below another part; one may be met before what it is a half of.
    let beside = tree.raw_children(tree.raw_parent(top.loc)?)?;
    let mut sharing = BTreeSet::from([top.id]);
    let mut found = vec![top];
    loop {
        let before = found.len();
        let mut pending = beside.clone();
        while let Some(loc) = pending.pop() {
            let turn = tree.turn(loc)?;
            let part = turn.origin.part_of.is_some_and(|whole| sharing.contains(&whole));
            if part {
                pending.extend(tree.raw_children(Some(loc))?);
            }
            if part && sharing.insert(turn.id) {
                found.push(turn);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found.sort_by_key(|turn| turn.loc);
    Ok(found)
}

/// Returns the entries of the log whose detail repeats erased content, and the sources that any
/// entry mentions.
fn repeating_operations(
    records: &dyn Read,
    conversation: &Conversation,
    turns: &[Turn],
    whole: bool,
) -> Result<(Vec<u64>, BTreeSet<SourceId>)> {
    let ids: BTreeSet<_> = turns.iter().map(|turn| turn.id).collect();
    let mut repeating = Vec::new();
    let mut sources = BTreeSet::new();
    records.operations(conversation.key, 1, u64::MAX, &mut |operation| {
        if let Detail::Kept(_) = &operation.detail
            && let Ok(entry) = detail(&operation)
        {
            sources.extend(entry.ids_in_fact::<SourceId>("source_id"));
            let repeats = entry.changes.iter().any(|change| match change {
                LoggedChange::Metadata { turn, .. } => ids.contains(turn),
                LoggedChange::Conversation { field, .. } => {
                    whole && *field != ConversationField::Visibility
                }
                _ => false,
            });
            if repeats {
                repeating.push(operation.seq);
            }
        }
        Ok(true)
    })?;
    Ok((repeating, sources))
}

fn other_holders(records: &dyn Read, turns: &[Turn]) -> Result<Vec<Holder>> {
    let own: BTreeSet<TurnLoc> = turns.iter().map(|turn| turn.loc).collect();
    let mut seen = BTreeSet::new();
    let mut holders = Vec::new();
    for turn in turns.iter().filter(|turn| matches!(turn.content, Content::Kept(_))) {
        for (key, loc) in records.same_content(turn.loc, HOLDERS)? {
            if own.contains(&loc) || !seen.insert(loc) || holders.len() >= HOLDERS {
                continue;
            }
            let owner = resolve::conversation_of(records, key)?;
            if let Some(other) = records.turn(loc)? {
                holders.push(Holder { conversation: owner.id, turn: other.id });
            }
        }
    }
    Ok(holders)
}

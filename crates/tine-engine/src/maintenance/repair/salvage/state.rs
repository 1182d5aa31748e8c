//! How a conversation is shown: by its log where possible, else as it is stored.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tine_core::{BranchId, Limits, Name, TurnId};
use tine_store::{Bookmark, Branch, Read, TurnLoc};

use super::{AS_LOGGED, Deletions, SalvagedConversation, SplitMap};
use crate::Result;
use crate::log::change::ConversationField;
use crate::maintenance::conversation_pages::damage;
use crate::maintenance::expected::{ExpectedBranch, ExpectedState};
use crate::ops::conversation::visibility_from;
use crate::ops::undo::field_value;

impl SalvagedConversation {
    /// Deletions, splits and undone flags: by the log where possible, else as they are stored.
    pub(super) fn marks(&mut self, records: &dyn Read, expected: &ExpectedState) -> Result<()> {
        let last = self.operations.len() as u64;
        let (mut hidden, mut splits) = self.stored_marks(records)?;
        // What an operation did that is lost cannot be taken back, so it does not hold either.
        let stored = hidden.len() + splits.len();
        hidden.retain(|(operation, _, _)| *operation <= last);
        splits.retain(|_, (operation, _, _)| *operation <= last);
        if hidden.len() + splits.len() < stored {
            let why = "the operations that made them are lost; the turns are shown again";
            self.leave_out("deletions and splits", why);
        }
        if expected.complete {
            let here = |turn: &TurnId| self.ids.contains_key(turn);
            let logged: BTreeSet<_> =
                expected.hidden.iter().filter(|(_, root, _)| here(root)).copied().collect();
            let cut: BTreeMap<_, _> = expected
                .splits
                .iter()
                .filter(|(whole, (_, left, right))| here(whole) && here(left) && here(right))
                .map(|(whole, split)| (*whole, *split))
                .collect();
            if (&logged, &cut) != (&hidden, &splits) {
                self.leave_out("deletions and splits", AS_LOGGED);
            }
            (hidden, splits) = (logged, cut);
            let wrong = self.operations.iter_mut();
            let wrong = wrong.filter(|it| it.undone != expected.undone.contains(&it.seq));
            let wrong = wrong.map(|it| it.undone = !it.undone).count();
            if wrong > 0 {
                self.leave_out(format!("whether {wrong} operations are undone"), AS_LOGGED);
            }
        }
        (self.hidden, self.splits) = (hidden, splits);
        Ok(())
    }

    fn stored_marks(&mut self, records: &dyn Read) -> Result<(Deletions, SplitMap)> {
        let key = self.conversation.key;
        let id = |loc: &TurnLoc| self.places.get(loc).map(|(id, _, _)| *id);
        let (mut hidden, mut splits) = (BTreeSet::new(), BTreeMap::new());
        let mut problems = Vec::new();
        match records.hidden(key) {
            Ok(runs) => hidden.extend(
                runs.iter().filter_map(|run| Some((run.operation, id(&run.root)?, run.by))),
            ),
            Err(error) => problems.push(damage(error.into())?),
        }
        match records.splits(key) {
            Ok(found) => splits.extend(found.iter().filter_map(|split| {
                let (left, right) = (id(&split.left)?, id(&split.right)?);
                Some((id(&split.whole)?, (split.operation, left, right)))
            })),
            Err(error) => problems.push(damage(error.into())?),
        }
        for found in problems {
            self.leave_out(found.record, found.why);
        }
        Ok((hidden, splits))
    }

    /// Titles, metadata and visibility, as the log left them.
    pub(super) fn fields(&mut self, expected: &ExpectedState) {
        for (field, value) in &expected.fields {
            if field_value(&self.conversation, *field) == *value {
                continue;
            }
            let conversation = &mut self.conversation;
            match field {
                ConversationField::Title => {
                    conversation.title = value.as_str().map(str::to_owned);
                }
                ConversationField::Metadata => conversation.metadata = value.clone(),
                ConversationField::Visibility => {
                    conversation.visibility = visibility_from(value).unwrap_or_default();
                }
            }
            self.leave_out(field.as_str(), AS_LOGGED);
        }
        for ((id, key), value) in &expected.metadata {
            let turns = self.segments.iter_mut().flat_map(|(_, turns)| turns);
            let Some(turn) = turns.into_iter().find(|turn| turn.id == *id) else {
                continue;
            };
            if turn.metadata.get(*key) != *value
                && turn.metadata.set(*key, value.clone(), &Limits::default()).is_ok()
            {
                self.leave_out(format!("{} of turn {id}", key.as_str()), AS_LOGGED);
            }
        }
    }

    /// Branches; where they end is settled when the tree is there.
    pub(super) fn branches(
        &mut self,
        records: &dyn Read,
        expected: &ExpectedState,
        log_is_whole: bool,
    ) -> Result<()> {
        let key = self.conversation.key;
        let stored = match records.branches(key) {
            Ok(stored) => stored,
            Err(error) => {
                let found = damage(error.into())?;
                self.leave_out(format!("branches: {}", found.record), found.why);
                Vec::new()
            }
        };
        let mut branches: BTreeMap<BranchId, Branch> =
            stored.into_iter().map(|branch| (branch.id, branch)).collect();
        for (id, tip) in &expected.branches {
            let image = match tip {
                ExpectedBranch::Exact(image) => Some(image),
                ExpectedBranch::Removed => None,
                ExpectedBranch::Unknown => {
                    if !branches.contains_key(id) {
                        self.leave_out(format!("branch {id}"), "it is missing");
                    }
                    continue;
                }
            };
            let logged = image.map(|image| Branch {
                conversation: key,
                id: *id,
                name: image.name.clone(),
                tip: image.tip.and_then(|tip| self.ids.get(&tip).copied()),
                forked_from: image.forked_from,
                created_at: image.created_at,
                version: image.version,
            });
            // A tip that is not kept has a place in the stored record, from which to go up.
            let lost_tip =
                image.and_then(|image| image.tip).is_some_and(|tip| !self.ids.contains_key(&tip));
            let present = branches.get(id);
            if present == logged.as_ref() || (lost_tip && present.is_some()) {
                continue;
            }
            let name = image.map_or_else(|| id.to_string(), |image| image.name.to_string());
            self.leave_out(format!("branch {name}"), AS_LOGGED);
            match logged {
                Some(logged) => branches.insert(*id, logged),
                None => branches.remove(id),
            };
        }
        if log_is_whole && expected.complete {
            let strange = branches.keys().copied().filter(|id| !expected.branches.contains_key(id));
            for id in strange.collect::<Vec<_>>() {
                branches.remove(&id);
                self.leave_out(format!("branch {id}"), "it is not in the log");
            }
        }
        let mut names: HashSet<Name> = HashSet::new();
        for branch in branches.into_values() {
            if names.insert(branch.name.clone()) {
                self.branches.push(branch);
            } else {
                self.leave_out(format!("branch {}", branch.id), "another branch has its name");
            }
        }
        Ok(())
    }

    /// Bookmarks. One that the log has and the store has not may have been moved elsewhere.
    pub(super) fn bookmarks(&mut self, records: &dyn Read, expected: &ExpectedState) -> Result<()> {
        let mut stored = match records.bookmarks_in(self.conversation.key) {
            Ok(stored) => stored,
            Err(error) => {
                let found = damage(error.into())?;
                self.leave_out(format!("bookmarks: {}", found.record), found.why);
                Vec::new()
            }
        };
        let mut names: BTreeSet<Name> = stored.iter().map(|it| it.name.clone()).collect();
        for bookmark in &mut stored {
            if let Some(name) = self.logged_name(bookmark, expected, &names) {
                self.leave_out(format!("bookmark {}", bookmark.name), AS_LOGGED);
                names.insert(name.clone());
                bookmark.name = name;
            }
            let Some(Some(image)) = expected.bookmarks.get(&bookmark.name) else {
                continue;
            };
            let turn = self.ids.get(&image.turn).copied().unwrap_or(bookmark.turn);
            if image.conversation == self.conversation.id
                && (turn, image.created_at) != (bookmark.turn, bookmark.created_at)
            {
                (bookmark.turn, bookmark.created_at) = (turn, image.created_at);
                self.leave_out(format!("bookmark {}", bookmark.name), AS_LOGGED);
            }
        }
        self.bookmarks = stored;
        Ok(())
    }

    /// Returns the logged name of a bookmark whose stored name is not in the log, unless the stored
    /// name is the logged one with a number, which an import adds.
    fn logged_name(
        &self,
        bookmark: &Bookmark,
        expected: &ExpectedState,
        taken: &BTreeSet<Name>,
    ) -> Option<Name> {
        if expected.bookmarks.contains_key(&bookmark.name) {
            return None;
        }
        let (turn, _, _) = *self.places.get(&bookmark.turn)?;
        let logged = expected.bookmarks.iter().find(|(name, image)| {
            let free = !taken.contains(*name);
            free && image.as_ref().is_some_and(|image| {
                image.conversation == self.conversation.id
                    && (image.turn, image.created_at) == (turn, bookmark.created_at)
            })
        });
        let name = logged.map(|(name, _)| name)?;
        (!bookmark.name.is_numbered(name, &Limits::default())).then(|| name.clone())
    }
}

//! Checks that the records of how a conversation is shown match its log.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::TurnId;
use tine_store::{Branch, HiddenBy, TurnLoc};

use super::Checker;
use crate::Result;
use crate::log::change::{BranchImage, ConversationField};
use crate::maintenance::expected::{ExpectedBranch, ExpectedState};
use crate::ops::undo::field_value;
use crate::tree::shown::Tree;

const NOT_AS_LOGGED: &str = "it is not as the log left it";

impl Checker<'_> {
    pub(super) fn state(&mut self, expected: &ExpectedState) -> Result<()> {
        self.conversation_fields(expected);
        self.branches(expected)?;
        self.bookmarks(expected)?;
        self.metadata(expected)?;
        if expected.complete {
            self.hidden(expected)?;
            self.split_records(expected)?;
        }
        Ok(())
    }

    fn conversation_fields(&mut self, expected: &ExpectedState) {
        let conversation = self.conversation;
        if expected.created_at.is_some_and(|at| at != conversation.created_at) {
            self.problem("time of creation", NOT_AS_LOGGED);
        }
        for (field, value) in &expected.fields {
            if field_value(conversation, *field) != *value {
                let name = match field {
                    ConversationField::Title => "title",
                    ConversationField::Metadata => "metadata",
                    ConversationField::Visibility => "visibility",
                };
                self.problem(name, NOT_AS_LOGGED);
            }
        }
    }

    fn id_of(&self, loc: TurnLoc) -> Result<Option<TurnId>> {
        Ok(self.records.turn(loc)?.map(|turn| turn.id))
    }

    fn branches(&mut self, expected: &ExpectedState) -> Result<()> {
        let present = self.records.branches(self.conversation.key)?;
        for branch in &present {
            let same = match expected.branches.get(&branch.id) {
                Some(ExpectedBranch::Exact(image)) => self.is_as(branch, image)?,
                Some(ExpectedBranch::Unknown) => true,
                Some(ExpectedBranch::Removed) => false,
                None => !expected.complete,
            };
            if !same {
                self.problem(format!("branch {}", branch.name), NOT_AS_LOGGED);
            }
        }
        for (id, tip) in &expected.branches {
            if *tip != ExpectedBranch::Removed && !present.iter().any(|branch| branch.id == *id) {
                self.problem(format!("branch {id}"), "it is missing");
            }
        }
        Ok(())
    }

    fn is_as(&self, branch: &Branch, image: &BranchImage) -> Result<bool> {
        let tip = match branch.tip {
            Some(tip) => self.id_of(tip)?,
            None => None,
        };
        Ok(branch.name == image.name
            && tip == image.tip
            && branch.forked_from == image.forked_from
            && branch.created_at == image.created_at
            && branch.version == image.version)
    }

    /// A bookmark may have been moved away by another conversation's operation, which its own
    /// log tells; one that is here must be as this log left it.
    fn bookmarks(&mut self, expected: &ExpectedState) -> Result<()> {
        for bookmark in self.records.bookmarks_in(self.conversation.key)? {
            if let Some(Some(image)) = expected.bookmarks.get(&bookmark.name)
                && image.conversation == self.conversation.id
                && (self.id_of(bookmark.turn)? != Some(image.turn)
                    || bookmark.created_at != image.created_at)
            {
                self.problem(format!("bookmark {}", bookmark.name), NOT_AS_LOGGED);
            }
        }
        Ok(())
    }

    fn metadata(&mut self, expected: &ExpectedState) -> Result<()> {
        for ((id, key), value) in &expected.metadata {
            let found = self.records.find_turn(&self.conversation.project, id)?;
            let turn = found.map(|(_, loc)| self.records.turn(loc)).transpose()?.flatten();
            if turn.is_some_and(|turn| turn.metadata.get(*key) != *value) {
                self.problem(format!("{} of turn {id}", key.as_str()), NOT_AS_LOGGED);
            }
        }
        Ok(())
    }

    /// Hidden runs: the right turns under the right operations, each with all that lies below.
    fn hidden(&mut self, expected: &ExpectedState) -> Result<()> {
        type Runs = BTreeSet<(i64, u32, u32)>;
        let mut present: BTreeMap<(u64, TurnLoc, HiddenBy), Runs> = BTreeMap::new();
        for run in self.records.hidden(self.conversation.key)? {
            let runs = present.entry((run.operation, run.root, run.by)).or_default();
            runs.insert((run.segment.0, run.from, run.to));
        }
        let mut named = BTreeSet::new();
        let tree = Tree::new(self.records, self.conversation.key);
        for ((operation, root, by), runs) in present {
            let all = tree.runs(root, by != HiddenBy::Reparent)?;
            let all: Runs = all.iter().map(|run| (run.segment.0, run.from, run.to)).collect();
            if runs != all {
                let record = format!("turns hidden by operation {operation}");
                self.problem(record, "they are not those that it hid");
            }
            match self.id_of(root)? {
                Some(id) => {
                    named.insert((operation, id, by));
                }
                None => self.problem(
                    format!("turns hidden by operation {operation}"),
                    "the turn that was named is missing",
                ),
            }
        }
        for (operation, id, _) in named.symmetric_difference(&expected.hidden) {
            self.problem(format!("turn {id}, hidden by operation {operation}"), NOT_AS_LOGGED);
        }
        Ok(())
    }

    fn split_records(&mut self, expected: &ExpectedState) -> Result<()> {
        let mut present = BTreeSet::new();
        for split in self.records.splits(self.conversation.key)? {
            let (whole, left) = (self.id_of(split.whole)?, self.id_of(split.left)?);
            present.insert((whole, split.operation, left, self.id_of(split.right)?));
        }
        let logged = expected.splits.iter().map(|(whole, (operation, left, right))| {
            (Some(*whole), *operation, Some(*left), Some(*right))
        });
        for (_, operation, _, _) in present.symmetric_difference(&logged.collect()) {
            self.problem(format!("split by operation {operation}"), NOT_AS_LOGGED);
        }
        Ok(())
    }
}

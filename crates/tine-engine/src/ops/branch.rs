//! Branches: listing, renaming and removing them.

use tine_core::json::object;
use tine_core::{BranchId, ConversationId, Name};
use tine_store::Branch;

use crate::log::change::text;
use crate::log::mutation::Mutation;
use crate::tree::resolve;
use crate::tree::views;
use crate::{BranchView, Call, Engine, Error, Result};

impl Engine {
    /// Branches of a conversation in order of name.
    pub fn branches(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<BranchView>> {
        self.read(|records| {
            let found = resolve::conversation(records, call, conversation)?;
            let branches = records.branches(found.key)?;
            branches.iter().map(|branch| views::branch(records, &found.id, branch)).collect()
        })
    }

    /// Returns one branch, by name or id.
    pub fn branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<BranchView> {
        self.read(|records| {
            let found = resolve::conversation(records, call, conversation)?;
            let branch = resolve::branch(records, call, found.key, branch)?;
            views::branch(records, &found.id, &branch)
        })
    }

    /// Returns the branch of that id, in whichever conversation of the project it is.
    pub fn branch_by_id(&self, call: &Call, id: BranchId) -> Result<BranchView> {
        self.read(|records| {
            if let Some(branch) = records.branch_by_id(&call.project, &id)? {
                let owner = resolve::conversation_of(records, branch.conversation)?;
                if owner.visibility.is_there() {
                    return views::branch(records, &owner.id, &branch);
                }
            }
            Err(Error::not_found("branch", id))
        })
    }

    /// Gives a branch another name; its id stays.
    pub fn rename_branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
        name: Name,
    ) -> Result<BranchView> {
        let payload = |(conversation, branch, name): &(ConversationId, String, Name)| {
            object([
                ("conversation_id", text(conversation)),
                ("branch", branch.as_str().into()),
                ("name", text(name)),
            ])
        };
        let request = (conversation.clone(), branch.to_owned(), name);
        let (view, _) = self.mutate(call, "rename_branch", request, payload, rename)?;
        Ok(view)
    }

    /// Removes a branch and returns it. Its turns stay; those that no other branch leads to become
    /// tails.
    pub fn delete_branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
    ) -> Result<BranchView> {
        let payload = |(conversation, branch): &(ConversationId, String)| {
            object([("conversation_id", text(conversation)), ("branch", branch.as_str().into())])
        };
        let request = (conversation.clone(), branch.to_owned());
        let (gone, _) = self.mutate(
            call,
            "delete_branch",
            request,
            payload,
            |mutation, (conversation, branch)| {
                let call = mutation.call;
                let found = resolve::conversation(mutation.reader(), call, conversation)?;
                mutation.open(found)?;
                let old = resolve::branch(mutation.reader(), call, mutation.key(), branch)?;
                mutation.check_seen(Some(&old), &old.name)?;
                let gone = mutation.branch_view(&old)?;
                mutation.delete_branch(&old)?;
                Ok(gone)
            },
        )?;
        Ok(gone)
    }
}

fn rename(
    mutation: &mut Mutation<'_>,
    (conversation, branch, name): &(ConversationId, String, Name),
) -> Result<BranchView> {
    let call = mutation.call;
    let found = resolve::conversation(mutation.reader(), call, conversation)?;
    mutation.open(found)?;
    let key = mutation.key();
    let old = resolve::branch(mutation.reader(), call, key, branch)?;
    mutation.check_seen(Some(&old), &old.name)?;
    let taken = mutation.reader().branch(key, name)?;
    if taken.is_some_and(|taken| taken.id != old.id) {
        let advice = "; choose another name";
        return Err(Error::Exists { what: "branch", name: name.to_string(), advice });
    }
    if *name == old.name {
        return mutation.branch_view(&old);
    }
    let renamed = Branch { name: name.clone(), version: old.version + 1, ..old.clone() };
    mutation.put_branch(Some(&old), &renamed)?;
    mutation.branch_view(&renamed)
}

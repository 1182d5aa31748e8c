//! One call of the engine, kept so that it can be made again in another process.

use std::fmt::Write as _;

use tine_core::{ConversationId, Name, TurnId};
use tine_engine::{
    Append, Call, Delete, Edit, Engine, Error, Fork, MetadataPatch, MoveBranch, NewConversation,
    Purge, Result, SplitTurn, TurnRef,
};
use tine_store::PackOptions;

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Request {
    /// [`Engine::create_conversation`]
    Create(NewConversation),
    /// [`Engine::append`]
    Append(Append),
    /// [`Engine::fork`]
    Fork(Fork),
    /// [`Engine::edit`]
    Edit(Edit),
    /// [`Engine::split`]
    Split(SplitTurn),
    /// [`Engine::delete`]
    Delete(Delete),
    /// [`Engine::undo`]
    Undo(ConversationId),
    /// [`Engine::redo`]
    Redo(ConversationId),
    /// [`Engine::set_bookmark`]
    Bookmark(Name, TurnRef),
    /// [`Engine::delete_bookmark`]
    Unbookmark(Name),
    /// [`Engine::patch_metadata`]
    Metadata(TurnRef, MetadataPatch),
    /// [`Engine::revert`]
    Revert(MoveBranch),
    /// [`Engine::purge`], confirmed.
    Purge(Purge),
    /// [`tine_store::Store::pack`]: nobody may see a difference.
    Pack(PackOptions),
}

/// What came back, as far as the caller could rely on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// One line with everything that was promised: ids, hashes, tips, numbers.
    pub line: String,
    /// Turns that the answer names.
    pub turns: Vec<TurnId>,
    /// Branches that the answer names.
    pub branch: Option<Name>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Acknowledged.
    Done(Answer),
    /// Refused by the rules: nothing may have changed.
    Refused(String),
    /// The disk is full: nothing may have changed.
    Full,
    /// An erasure is stored, but its traces could not be swept up.
    Unswept,
    /// The store failed: the call may or may not have taken effect.
    Failed(String),
}

impl Request {
    /// Makes the call.
    pub fn run(&self, engine: &Engine, call: &Call) -> Ended {
        match self.answer(engine, call) {
            Ok(answer) => Ended::Done(answer),
            Err(Error::Store(tine_store::StoreError::DiskFull)) => Ended::Full,
            Err(Error::NotSwept(_)) => Ended::Unswept,
            Err(Error::Store(error)) => Ended::Failed(error.to_string()),
            Err(error) => Ended::Refused(format!("{}: {error}", error.kind().code())),
        }
    }

    fn answer(&self, engine: &Engine, call: &Call) -> Result<Answer> {
        let mut answer = Answer::default();
        match self.clone() {
            Request::Create(new) => {
                let made = engine.create_conversation(call, new)?;
                answer.say(format_args!("{} {}", made.id, made.root_hash));
            }
            Request::Append(append) => {
                let done = engine.append(call, append)?;
                for (turn, _) in &done.turns {
                    answer.turn(turn.id, &turn.hash);
                }
                answer.branch(&done.branch);
            }
            Request::Fork(fork) => answer.branch(&engine.fork(call, fork)?),
            Request::Edit(edit) => {
                let done = engine.edit(call, edit)?;
                answer.turn(done.turn.id, &done.turn.hash);
                if let Some(branch) = &done.branch {
                    answer.branch(branch);
                }
            }
            Request::Split(split) => {
                let done = engine.split(call, split)?;
                answer.turn(done.left.id, &done.left.hash);
                answer.turn(done.right.id, &done.right.hash);
            }
            Request::Delete(delete) => {
                let done = engine.delete(call, delete)?;
                answer.say(format_args!("{} {}", done.turn, done.turns));
            }
            Request::Undo(conversation) => {
                let done = engine.undo(call, &conversation, None)?;
                answer.say(format_args!("undone {} by {}", done.target, done.seq));
            }
            Request::Redo(conversation) => {
                let done = engine.redo(call, &conversation, None)?;
                answer.say(format_args!("redone {} by {}", done.target, done.seq));
            }
            Request::Bookmark(name, turn) => {
                let done = engine.set_bookmark(call, name, turn)?;
                answer.say(format_args!("{} {}", done.name, done.turn));
            }
            Request::Unbookmark(name) => {
                engine.delete_bookmark(call, &name)?;
            }
            Request::Metadata(turn, patch) => {
                let done = engine.patch_metadata(call, turn, patch)?;
                answer.turn(done.id, &done.hash);
            }
            Request::Revert(revert) => answer.branch(&engine.revert(call, revert)?),
            Request::Purge(purge) => {
                let done = engine.purge(call, purge)?;
                answer.say(format_args!("purged {} {}", done.turns.len(), done.operations));
            }
            // How much there was to pack is the store's own affair.
            Request::Pack(options) => {
                engine.store().pack(options)?;
            }
        }
        Ok(answer)
    }
}

impl Answer {
    fn say(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = write!(self.line, "{what} ");
    }

    fn turn(&mut self, id: TurnId, hash: &tine_core::TurnHash) {
        self.turns.push(id);
        self.say(format_args!("{id} {hash}"));
    }

    fn branch(&mut self, branch: &tine_engine::BranchView) {
        let tip = branch.tip.map_or_else(|| "root".to_owned(), |tip| tip.to_string());
        self.branch = Some(branch.name.clone());
        self.say(format_args!("{} {tip} {}", branch.name, branch.version));
    }
}

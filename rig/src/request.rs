//! One call of the engine, kept so that it can be made again in another process.

use std::fmt::Write as _;

use tine_core::{ConversationId, Name, TurnId};
use tine_engine::{
    Append, Call, Delete, Edit, Engine, Error, Fork, MetadataPatch, MoveBranch, NewConversation,
    NewSource, Purge, Result, SplitTurn, StoreFacts, StoreTurn, TurnRef,
};
use tine_store::PackOptions;

/// A request to the engine.
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
    /// [`Engine::store_turn`]
    StoreTurn(Box<StoreTurn>),
    /// [`Engine::store_facts`]
    StoreFacts(StoreFacts),
    /// [`Engine::store_source`]
    StoreSource(NewSource),
    /// [`Engine::purge`], confirmed.
    Purge(Purge),
    /// [`tine_store::Store::pack`], which must not be observable.
    Pack(PackOptions),
}

/// An answer, as far as a caller relies on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestAnswer {
    /// The ids, hashes, tips and numbers of the answer, in one line.
    pub line: String,
    /// Turns in the answer.
    pub turns: Vec<TurnId>,
    /// Branches in the answer.
    pub branch: Option<Name>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// It was acknowledged.
    Done(RequestAnswer),
    /// It was rejected by the rules: nothing may have changed.
    Refused(String),
    /// The disk is full: nothing may have changed.
    Full,
    /// A purge was stored, but its traces could not be removed.
    Unswept,
    /// The store failed: the call may have taken effect.
    Failed(String),
}

impl Request {
    /// Makes the call.
    pub fn run(&self, engine: &Engine, call: &Call) -> RequestEnd {
        self.run_in_full(engine, call).0
    }

    /// Makes the call and returns the whole answer. Unlike [`RequestAnswer::line`], this differs between a
    /// first call and its repetition.
    pub fn run_in_full(&self, engine: &Engine, call: &Call) -> (RequestEnd, String) {
        let mut full = String::new();
        let ended = match self.answer(engine, call, &mut full) {
            Ok(answer) => RequestEnd::Done(answer),
            Err(Error::Store(tine_store::StoreError::DiskFull)) => RequestEnd::Full,
            Err(Error::NotSwept(_)) => RequestEnd::Unswept,
            Err(Error::Store(error)) => RequestEnd::Failed(error.to_string()),
            Err(error) => RequestEnd::Refused(format!("{}: {error}", error.kind().code())),
        };
        (ended, full)
    }

    fn answer(&self, engine: &Engine, call: &Call, full: &mut String) -> Result<RequestAnswer> {
        let mut answer = RequestAnswer::default();
        match self.clone() {
            Request::Create(new) => {
                let made = engine.create_conversation(call, new)?;
                *full = format!("{made:?}");
                answer.say(format_args!("{} {}", made.id, made.root_hash));
            }
            Request::Append(append) => {
                let done = engine.append(call, append)?;
                *full = format!("{done:?}");
                for turn in &done.turns {
                    answer.turn(turn.id, &turn.hash);
                }
                answer.branch(&done.branch);
            }
            Request::Fork(fork) => {
                let done = engine.fork(call, fork)?;
                *full = format!("{done:?}");
                answer.branch(&done);
            }
            Request::Edit(edit) => {
                let done = engine.edit(call, edit)?;
                *full = format!("{done:?}");
                answer.turn(done.turn.id, &done.turn.hash);
                if let Some(branch) = &done.branch {
                    answer.branch(branch);
                }
            }
            Request::Split(split) => {
                let done = engine.split(call, split)?;
                *full = format!("{done:?}");
                answer.turn(done.left.id, &done.left.hash);
                answer.turn(done.right.id, &done.right.hash);
            }
            Request::Delete(delete) => {
                let done = engine.delete(call, delete)?;
                *full = format!("{done:?}");
                answer.say(format_args!("{} {}", done.turn, done.turns));
            }
            Request::Undo(conversation) => {
                let done = engine.undo(call, &conversation, None)?;
                *full = format!("{done:?}");
                answer.say(format_args!("undone {} by {}", done.target, done.seq));
            }
            Request::Redo(conversation) => {
                let done = engine.redo(call, &conversation, None)?;
                *full = format!("{done:?}");
                answer.say(format_args!("redone {} by {}", done.target, done.seq));
            }
            Request::Bookmark(name, turn) => {
                let done = engine.set_bookmark(call, name, turn)?;
                *full = format!("{done:?}");
                answer.say(format_args!("{} {}", done.name, done.turn));
            }
            Request::Unbookmark(name) => {
                *full = format!("{:?}", engine.delete_bookmark(call, &name)?);
            }
            Request::Metadata(turn, patch) => {
                let done = engine.patch_metadata(call, turn, patch)?;
                *full = format!("{done:?}");
                answer.turn(done.id, &done.hash);
            }
            Request::Revert(revert) => {
                let done = engine.revert(call, revert)?;
                *full = format!("{done:?}");
                answer.branch(&done);
            }
            Request::StoreTurn(turn) => {
                let done = engine.store_turn(call, *turn)?;
                *full = format!("{done:?}");
                answer.turn(done.turn.id, &done.turn.hash);
                answer.branch(&done.branch);
                answer.say(format_args!("{}", done.observation));
            }
            Request::StoreFacts(facts) => {
                let done = engine.store_facts(call, facts)?;
                *full = format!("{done:?}");
                for fact in &done.entities {
                    answer.say(format_args!("{}", fact.observation));
                }
            }
            Request::StoreSource(source) => {
                let done = engine.store_source(call, source)?;
                *full = format!("{done:?}");
                answer.say(format_args!("{} {}", done.source.id, done.source.content_hash));
            }
            Request::Purge(purge) => {
                let done = engine.purge(call, purge)?;
                *full = format!("{done:?}");
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

impl RequestAnswer {
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

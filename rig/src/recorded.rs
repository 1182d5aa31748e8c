//! A transaction that writes down what is changed in it, so that the changes can be made again
//! in another transaction: the tool of the seeded defects.
//!
//! The list of changes is here since it says more than the store's own.

use tine_core::{BranchId, Digest, Metadata, Name, ProjectId, SourceId};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, Hidden, Operation, Project, Read, Record,
    RecordKey, Result, SegmentNo, Split, Turn, TurnLoc, Write,
};

/// A change that can be repeated.
type ReplayedChange = Box<dyn Fn(&mut dyn Write) -> Result<()> + Send>;

/// The record that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeTarget {
    /// A project or a conversation, without which there is no log.
    Ground,
    Tip,
    Log,
    Other,
}

/// A recorded change.
pub(crate) struct RecordedChange {
    pub about: ChangeTarget,
    pub again: ReplayedChange,
}

/// A transaction that records each change.
pub(crate) struct Recorder<'r> {
    pub inner: &'r mut dyn Write,
    pub changes: Vec<RecordedChange>,
}

impl Recorder<'_> {
    fn note(
        &mut self,
        about: ChangeTarget,
        again: impl Fn(&mut dyn Write) -> Result<()> + Send + 'static,
    ) {
        self.changes.push(RecordedChange { about, again: Box::new(again) });
    }
}

/// Delegates reading to the inner transaction.
macro_rules! reads {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Read for Recorder<'_> {
            $(fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                self.inner.$name($($argument),*)
            })*
        }
    };
}

tine_store::for_each_read!(reads);

/// Implements every method of `Write` with its target and a closure that repeats it. A missing method
/// does not compile.
macro_rules! for_each_write {
    ($make:ident) => {
        $make! {
            Ground insert_project(project: &Project) -> () = (&project);
            Ground insert_conversation(conversation: &Conversation) -> ConversationKey = (&conversation);
            Other update_conversation(conversation: &Conversation) -> () = (&conversation);
            Other insert_segment(conversation: ConversationKey, parent: Option<TurnLoc>, base_depth: u32) -> SegmentNo = (conversation, parent, base_depth);
            Other insert_turn(conversation: ConversationKey, turn: &Turn) -> () = (conversation, &turn);
            Other set_metadata(loc: TurnLoc, metadata: &Metadata) -> () = (loc, &metadata);
            Other purge_turn(loc: TurnLoc, digest: &Digest) -> () = (loc, &digest);
            Other insert_split(split: &Split) -> () = (&split);
            Other delete_split(conversation: ConversationKey, whole: TurnLoc) -> () = (conversation, whole);
            Other insert_hidden(hidden: &Hidden) -> () = (&hidden);
            Other delete_hidden(conversation: ConversationKey, operation: u64) -> () = (conversation, operation);
            Tip put_branch(branch: &Branch) -> () = (&branch);
            Tip delete_branch(conversation: ConversationKey, id: &BranchId) -> () = (conversation, &id);
            Other put_bookmark(bookmark: &Bookmark) -> () = (&bookmark);
            Other delete_bookmark(project: &ProjectId, name: &Name) -> () = (&project, &name);
            Log insert_operation(operation: &Operation) -> () = (&operation);
            Other set_undone(conversation: ConversationKey, seq: u64, undone: bool) -> () = (conversation, seq, undone);
            Other purge_operation(conversation: ConversationKey, seq: u64) -> () = (conversation, seq);
            Other insert_record(project: &ProjectId, record: &Record) -> () = (&project, &record);
            Other put_record(project: &ProjectId, record: &Record) -> () = (&project, &record);
            Other delete_record(project: &ProjectId, key: &RecordKey) -> () = (&project, &key);
            Other insert_piece(project: &ProjectId, source: &SourceId, nth: u32, bytes: &[u8]) -> () = (&project, &source, nth, &bytes);
            Other delete_pieces(project: &ProjectId, source: &SourceId) -> () = (&project, &source);
        }
    };
}

/// Delegates a change and records it.
macro_rules! writes {
    ($($about:ident $name:ident($($argument:ident: $type:ty),*) -> $answer:ty = ($($pass:expr),*);)*) => {
        impl Write for Recorder<'_> {
            $(fn $name(&mut self, $($argument: $type),*) -> Result<$answer> {
                let answer = self.inner.$name($($argument),*)?;
                $(let $argument = $argument.to_owned();)*
                self.note(ChangeTarget::$about, move |records| records.$name($($pass),*).map(|_| ()));
                Ok(answer)
            })*
        }
    };
}

for_each_write!(writes);

//! A transaction that writes down what is changed in it, so that the changes can be made again
//! in another transaction: the tool of the seeded defects.
//!
//! The two lists of what a transaction can do are here, for every wrapper around one.

use tine_core::{BranchId, ConversationId, Digest, Metadata, Name, ProjectId, SourceId, TurnId};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, Entry, EntryKind, FeedPosition, Hidden,
    IndexMark, KeyRange, Operation, Project, Read, Result, Segment, SegmentExtent, SegmentNo,
    Split, Totals, Turn, TurnLoc, Write,
};

/// A change that can be made again.
type Again = Box<dyn Fn(&mut dyn Write) -> Result<()> + Send>;

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Tip,
    Log,
    Other,
}

/// One change.
pub(crate) struct Recorded {
    pub about: About,
    pub again: Again,
}

/// A transaction with a note of each change.
pub(crate) struct Recorder<'r> {
    pub inner: &'r mut dyn Write,
    pub changes: Vec<Recorded>,
}

impl Recorder<'_> {
    fn note(
        &mut self,
        about: About,
        again: impl Fn(&mut dyn Write) -> Result<()> + Send + 'static,
    ) {
        self.changes.push(Recorded { about, again: Box::new(again) });
    }
}

/// Every way to read, for a macro that makes each of them.
macro_rules! for_each_read {
    ($make:ident) => {
        $make! {
            projects() -> Vec<Project>;
            project(id: &ProjectId) -> Option<Project>;
            conversation(project: &ProjectId, id: &ConversationId) -> Option<Conversation>;
            conversation_by_key(key: ConversationKey) -> Option<Conversation>;
            conversations(project: &ProjectId, after: Option<ConversationKey>, limit: usize) -> Vec<Conversation>;
            derivatives(project: &ProjectId, of: &ConversationId) -> Vec<Conversation>;
            segment(no: SegmentNo) -> Segment;
            segments(conversation: ConversationKey) -> Vec<SegmentExtent>;
            forks(conversation: ConversationKey, parent: Option<TurnLoc>) -> Vec<Segment>;
            forks_from(conversation: ConversationKey, at: TurnLoc) -> Vec<Segment>;
            last_index(segment: SegmentNo) -> u32;
            turn(loc: TurnLoc) -> Option<Turn>;
            turns(segment: SegmentNo, from: u32, to: u32, visit: &mut dyn FnMut(Turn) -> Result<bool>) -> ();
            find_turn(project: &ProjectId, id: &TurnId) -> Option<(ConversationKey, TurnLoc)>;
            find_hashes(conversation: ConversationKey, low: &Digest, high: &Digest, limit: usize) -> Vec<TurnLoc>;
            same_content(loc: TurnLoc, limit: usize) -> Vec<(ConversationKey, TurnLoc)>;
            splits(conversation: ConversationKey) -> Vec<Split>;
            hidden_in(conversation: ConversationKey, segment: SegmentNo) -> Vec<Hidden>;
            hidden(conversation: ConversationKey) -> Vec<Hidden>;
            branch(conversation: ConversationKey, name: &Name) -> Option<Branch>;
            branch_by_id(project: &ProjectId, id: &BranchId) -> Option<Branch>;
            branches(conversation: ConversationKey) -> Vec<Branch>;
            bookmark(project: &ProjectId, name: &Name) -> Option<Bookmark>;
            bookmarks(project: &ProjectId, after: Option<&Name>, limit: usize) -> Vec<Bookmark>;
            bookmarks_in(conversation: ConversationKey) -> Vec<Bookmark>;
            last_operation(conversation: ConversationKey) -> Option<Operation>;
            operation(conversation: ConversationKey, seq: u64) -> Option<Operation>;
            operations(conversation: ConversationKey, from: u64, to: u64, visit: &mut dyn FnMut(Operation) -> Result<bool>) -> ();
            feed(after: FeedPosition, limit: usize) -> Vec<(FeedPosition, Operation)>;
            feed_end() -> Option<IndexMark>;
            made_by(at: FeedPosition) -> Vec<(TurnLoc, u32)>;
            idempotent(project: &ProjectId, key: &str) -> Option<Operation>;
            entry(project: &ProjectId, kind: EntryKind, key: &[u8]) -> Option<String>;
            entries(project: &ProjectId, kind: EntryKind, range: &KeyRange, limit: usize) -> Vec<Entry>;
            piece(project: &ProjectId, source: &SourceId, nth: u32) -> Option<Vec<u8>>;
            totals() -> Totals;
        }
    };
}
pub(crate) use for_each_read;

/// Hands reading on to the transaction below.
macro_rules! reads {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Read for Recorder<'_> {
            $(fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                self.inner.$name($($argument),*)
            })*
        }
    };
}

for_each_read!(reads);

/// Every way to change something, with what it is about and how its arguments are given again.
macro_rules! for_each_write {
    ($make:ident) => {
        $make! {
            Other insert_project(project: &Project) -> () = (&project);
            Other insert_conversation(conversation: &Conversation) -> ConversationKey = (&conversation);
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
            Log insert_operation(operation: &Operation) -> FeedPosition = (&operation);
            Other set_undone(conversation: ConversationKey, seq: u64, undone: bool) -> () = (conversation, seq, undone);
            Other purge_operation(conversation: ConversationKey, seq: u64) -> () = (conversation, seq);
            Other put_entry(project: &ProjectId, kind: EntryKind, key: &[u8], text: &str) -> () = (&project, kind, &key, &text);
            Other delete_entry(project: &ProjectId, kind: EntryKind, key: &[u8]) -> () = (&project, kind, &key);
            Other insert_piece(project: &ProjectId, source: &SourceId, nth: u32, bytes: &[u8]) -> () = (&project, &source, nth, &bytes);
            Other delete_pieces(project: &ProjectId, source: &SourceId) -> () = (&project, &source);
        }
    };
}
pub(crate) use for_each_write;

/// Hands a change on, and notes how it is made again.
macro_rules! writes {
    ($($about:ident $name:ident($($argument:ident: $type:ty),*) -> $answer:ty = ($($pass:expr),*);)*) => {
        impl Write for Recorder<'_> {
            $(fn $name(&mut self, $($argument: $type),*) -> Result<$answer> {
                let answer = self.inner.$name($($argument),*)?;
                $(let $argument = $argument.to_owned();)*
                self.note(About::$about, move |records| records.$name($($pass),*).map(|_| ()));
                Ok(answer)
            })*
        }
    };
}

for_each_write!(writes);

//! Every operation behind one trait, so that a surface can work over an engine in its own
//! process or over one elsewhere without knowing which.
//!
//! Invariants:
//!
//! - An operation has the name, the arguments, the answer and the refusals of the [`Engine`]'s
//!   own method. Whoever implements the trait elsewhere relays; no rule is written twice.
//! - The trait is object-safe: surfaces take `&dyn Operations`.
//!
//! Deliberately absent: what streams (bundles, the change feed), and what only whoever holds the
//! store itself can do (packing, backing up).

use tine_core::facts::Schema;
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, Name, ProjectId, SourceId, Timestamp,
};

use crate::answers::*;
use crate::commits::*;
use crate::knowledge::*;
use crate::requests::*;
use crate::{Engine, Result};

/// Declares a trait, and hands each of its methods on to the engine's own.
macro_rules! operations {
    ($(#[$about:meta])* trait $trait:ident; $(
        $(#[$doc:meta])*
        fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;
    )*) => {
        $(#[$about])*
        pub trait $trait: Send + Sync {
            $($(#[$doc])* fn $name(&self $(, $argument: $type)*) -> $answer;)*
        }

        impl $trait for Engine {
            $(fn $name(&self $(, $argument: $type)*) -> $answer {
                Engine::$name(self $(, $argument)*)
            })*
        }
    };
}

operations! {
    /// What can be done with conversations, here or elsewhere.
    trait Operations;

    /// Makes a project, or finds it; answers whether it is new.
    fn create_project(&self, id: &ProjectId) -> Result<(ProjectView, bool)>;
    /// All projects, in order of id.
    fn projects(&self) -> Result<Vec<ProjectView>>;
    /// One project.
    fn project(&self, id: &ProjectId) -> Result<ProjectView>;

    /// Begins a conversation.
    fn create_conversation(&self, call: &Call, request: NewConversation) -> Result<ConversationView>;
    /// Takes a conversation over under another root.
    fn derive(&self, call: &Call, request: Derive) -> Result<Derived>;
    /// One conversation.
    fn conversation(&self, call: &Call, id: &ConversationId) -> Result<ConversationView>;
    /// Conversations of the project in the order in which they were made.
    fn conversations(
        &self,
        call: &Call,
        include_archived: bool,
        page: Page
    ) -> Result<Listing<ConversationView>>;
    /// Changes title, metadata or visibility.
    fn patch_conversation(
        &self,
        call: &Call,
        id: &ConversationId,
        patch: ConversationPatch
    ) -> Result<ConversationView>;

    /// Appends messages.
    fn append(&self, call: &Call, request: Append) -> Result<Appended>;
    /// One turn, shown or not.
    fn turn(&self, call: &Call, turn: TurnRef) -> Result<TurnView>;
    /// The turns that follow a turn.
    fn children(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>>;
    /// The turns that follow a turn's parent, itself among them.
    fn siblings(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>>;
    /// What a turn was edited from, and what was edited from it.
    fn versions(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>>;
    /// The path from the root to a turn, one page of it.
    fn path(&self, call: &Call, query: PathQuery) -> Result<PathPage>;
    /// The turns before and behind a turn on one line.
    fn window(&self, call: &Call, query: WindowQuery) -> Result<Window>;
    /// The tree without its content, one page of it.
    fn topology(&self, call: &Call, query: TopologyQuery) -> Result<TopologyPage>;
    /// Turns that say what is looked for, best first, one page of them.
    fn search(&self, call: &Call, request: SearchQuery) -> Result<SearchPage>;
    /// Lines that no branch leads to.
    fn tails(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<Tail>>;

    /// All branches of a conversation, in order of name.
    fn branches(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<BranchView>>;
    /// One branch, by name or id.
    fn branch(&self, call: &Call, conversation: &ConversationId, branch: &str) -> Result<BranchView>;
    /// Gives a branch another name; its id stays.
    fn rename_branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str,
        name: Name
    ) -> Result<BranchView>;
    /// Removes a branch, and tells what it was; its turns stay.
    fn delete_branch(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str
    ) -> Result<BranchView>;
    /// Makes a branch at a turn, or before it.
    fn fork(&self, call: &Call, request: Fork) -> Result<BranchView>;
    /// Moves a branch back; what that leaves behind is kept.
    fn revert(&self, call: &Call, request: MoveBranch) -> Result<BranchView>;
    /// Moves a branch forward again.
    fn restore(&self, call: &Call, request: MoveBranch) -> Result<BranchView>;

    /// Makes another version of a turn; the old one stays.
    fn edit(&self, call: &Call, request: Edit) -> Result<Edited>;
    /// Shows a turn as two.
    fn split(&self, call: &Call, request: SplitTurn) -> Result<SplitDone>;
    /// Deletes a turn, or says what that would do.
    fn delete(&self, call: &Call, request: Delete) -> Result<Deleted>;
    /// Changes a turn's metadata.
    fn patch_metadata(&self, call: &Call, turn: TurnRef, patch: MetadataPatch) -> Result<TurnView>;

    /// Puts a bookmark on a turn.
    fn set_bookmark(&self, call: &Call, name: Name, turn: TurnRef) -> Result<BookmarkView>;
    /// Removes a bookmark, and tells what it was; its turn stays.
    fn delete_bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView>;
    /// One bookmark.
    fn bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView>;
    /// All bookmarks of the project, in order of name.
    fn bookmarks(&self, call: &Call, page: Page) -> Result<Listing<BookmarkView>>;

    /// Undoes an operation; without a number, the newest that holds.
    fn undo(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>
    ) -> Result<Undone>;
    /// Does an undone operation again; without a number, the one undone last.
    fn redo(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>
    ) -> Result<Undone>;
    /// The log of a conversation, newest first.
    fn operations(
        &self,
        call: &Call,
        conversation: &ConversationId,
        page: Page
    ) -> Result<Listing<OperationView>>;
    /// Erases what a turn or a conversation says, or says what that would do.
    fn purge(&self, call: &Call, request: Purge) -> Result<Purged>;

    /// Totals of the store, and of a conversation if one is named.
    fn stats(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<Stats>;
    /// Tokens and cost of a conversation, or of all of the project.
    fn usage(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<UsageTotals>;
    /// Recomputes every hash of the store.
    fn verify(&self) -> Result<Verified>;
}

operations! {
    /// What can be done with what was learned, and for hosts that track no branches.
    trait Knowledge;

    /// Stores a turn of a host that tracks no branches.
    fn store_turn(&self, call: &Call, request: StoreTurn) -> Result<StoredTurn>;
    /// Keeps bytes; the envelope of a turn is also placed as a turn.
    fn store_source(&self, call: &Call, request: NewSource) -> Result<StoredSource>;
    /// One source without its bytes.
    fn source(&self, call: &Call, id: SourceId) -> Result<SourceView>;
    /// Sources in the order in which they came.
    fn sources(&self, call: &Call, page: Page) -> Result<Listing<SourceView>>;
    /// One piece of a source's bytes, from 0; `None` behind the last.
    fn source_piece(&self, call: &Call, id: SourceId, nth: u32) -> Result<Option<Vec<u8>>>;
    /// Stores facts that the caller structured, and how they hang together.
    fn store_facts(&self, call: &Call, request: StoreFacts) -> Result<StoredFacts>;

    /// One run, with everything that was kept of it.
    fn interpretation(&self, call: &Call, id: InterpretationId) -> Result<InterpretationView>;
    /// Runs of a source, or those that wait or work, or all.
    fn interpretations(
        &self,
        call: &Call,
        query: RunQuery,
        page: Page
    ) -> Result<Listing<InterpretationView>>;
    /// What waits and what works, and who could be asked.
    fn interpretation_queue(&self, call: &Call) -> Result<QueueStatus>;
    /// Queues runs over sources that are here already.
    fn reinterpret(&self, call: &Call, request: Reinterpret) -> Result<Vec<InterpretationView>>;
    /// Tries a failed run again.
    fn retry_interpretation(
        &self,
        call: &Call,
        id: InterpretationId
    ) -> Result<InterpretationView>;
    /// Waits until a run has ended.
    fn await_interpretation(
        &self,
        call: &Call,
        id: InterpretationId
    ) -> Result<InterpretationView>;
    /// How two runs differ in what they found.
    fn compare_interpretations(&self, call: &Call, pair: RunPair) -> Result<RunComparison>;
    /// A prompt by its hash.
    fn prompt(&self, call: &Call, hash: Digest) -> Result<String>;

    /// An entity and what holds of it.
    fn entity(&self, call: &Call, id: EntityId, as_of: AsOf) -> Result<EntityView>;
    /// Entities in the order in which they were first seen, type by type.
    fn entities(
        &self,
        call: &Call,
        query: EntityQuery,
        page: Page
    ) -> Result<Listing<EntityView>>;
    /// The messages that a host stored under its id of a turn; none where it stored none.
    fn slots(
        &self,
        call: &Call,
        conversation: &ConversationId,
        turn_id: &str
    ) -> Result<Vec<EntityView>>;
    /// Everything that was ever observed of an entity, in the order in which it came.
    fn observations(
        &self,
        call: &Call,
        id: EntityId,
        page: Page
    ) -> Result<Listing<ObservationView>>;
    /// For each field, or for one, the way from its value back to the bytes.
    fn field_provenance(
        &self,
        call: &Call,
        id: EntityId,
        field: Option<&str>
    ) -> Result<Vec<FieldProvenance>>;
    /// What has a date, in order, from one time to another.
    fn timeline(
        &self,
        call: &Call,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        page: Page
    ) -> Result<Listing<TimelineEntry>>;
    /// Says what is right of an entity.
    fn correct(&self, call: &Call, request: Correct) -> Result<ObservationView>;
    /// Makes two entities one.
    fn merge_entities(&self, call: &Call, request: Merge) -> Result<EntityView>;
    /// Makes one entity two.
    fn separate_entity(&self, call: &Call, request: Separate) -> Result<EntityView>;
    /// Hides an entity from listings, or shows it again.
    fn set_entity_deleted(&self, call: &Call, id: EntityId, deleted: bool) -> Result<EntityView>;

    /// Relates two things, or finds that they are.
    fn create_relationship(
        &self,
        call: &Call,
        request: NewRelationship
    ) -> Result<(RelationshipView, Outcome)>;
    /// Removes a relationship.
    fn delete_relationship(&self, call: &Call, request: NewRelationship) -> Result<()>;
    /// Relationships of one thing, or all.
    fn relationships(
        &self,
        call: &Call,
        query: RelationshipQuery,
        page: Page
    ) -> Result<Listing<RelationshipView>>;

    /// Registers a schema as the next version of its type.
    fn register_schema(&self, call: &Call, request: NewSchema) -> Result<Schema>;
    /// A schema: the newest of a type, or one version.
    fn schema(&self, call: &Call, entity_type: &str, version: Option<u32>) -> Result<Schema>;
    /// The newest schema of every type, in order of type.
    fn schemas(&self, call: &Call) -> Result<Vec<Schema>>;
}

operations! {
    /// What turns are about, and commits: here or elsewhere.
    trait Versions;

    /// What a turn is about.
    fn rings(&self, call: &Call, turn: TurnRef) -> Result<TurnRings>;
    /// Seals a stretch of turns.
    fn commit(&self, call: &Call, request: NewCommit) -> Result<CommitView>;
    /// One commit, by its hash or a prefix of it.
    fn commit_by_hash(&self, call: &Call, hash: &str) -> Result<CommitView>;
    /// Commits, the newest first.
    fn commits(&self, call: &Call, query: CommitQuery, page: Page) -> Result<Listing<CommitView>>;
    /// Keeps the signature of a commit.
    fn sign_commit(
        &self,
        call: &Call,
        commit: &str,
        public_key: &str,
        signature: &str
    ) -> Result<CommitView>;
    /// Compares two turns, branches, commits or stretches of turns.
    fn diff(&self, call: &Call, query: DiffQuery) -> Result<Diff>;
    /// Merges a branch into another.
    fn merge(&self, call: &Call, request: MergeBranches) -> Result<Merged>;
    /// Decides conflicts of a branch.
    fn resolve_conflicts(&self, call: &Call, request: ResolveConflicts) -> Result<CommitView>;
    /// Says a turn again elsewhere.
    fn inject(&self, call: &Call, request: Inject) -> Result<Injected>;
    /// Where a field or a piece of text comes from.
    fn blame(&self, call: &Call, query: BlameQuery) -> Result<Vec<Blamed>>;
    /// The first turn on a path for which something holds.
    fn bisect(&self, call: &Call, query: BisectQuery) -> Result<Bisected>;
    /// How far each commit of a branch has moved.
    fn drift(
        &self,
        call: &Call,
        conversation: &ConversationId,
        branch: &str
    ) -> Result<Vec<Drift>>;
}

//! The operations as traits, so that a surface works over an engine in its own process or over a
//! server without knowing which.
//!
//! Invariants:
//!
//! - An operation has the same name, arguments, answer and refusals everywhere. An implementation
//!   other than the engine relays; no rule is written twice.
//! - The traits are object-safe: surfaces take `&dyn Operations`.
//!
//! Streams (bundles, the change feed) and maintenance of the store itself (packing, backup) are
//! deliberately absent.

use tine_core::facts::Schema;
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, Name, ProjectId, SourceId, Timestamp,
};

use crate::*;

/// Hands the list of all operations to a macro, which declares or implements the traits.
#[macro_export]
macro_rules! for_each_operation {
    ($each:ident) => {
        $each! {
            /// Operations on conversations.
            trait Operations;

            /// Creates a project or finds it; returns whether it is new.
            fn create_project(&self, id: &ProjectId) -> Result<(ProjectView, bool)>;
            /// Lists all projects, in order of id.
            fn projects(&self) -> Result<Vec<ProjectView>>;
            /// Returns one project.
            fn project(&self, id: &ProjectId) -> Result<ProjectView>;

            /// Creates a conversation.
            fn create_conversation(&self, call: &Call, request: NewConversation) -> Result<ConversationView>;
            /// Derives a conversation with another root.
            fn derive(&self, call: &Call, request: Derive) -> Result<Derived>;
            /// Returns one conversation.
            fn conversation(&self, call: &Call, id: &ConversationId) -> Result<ConversationView>;
            /// Lists the conversations of the project in order of creation.
            fn conversations(
                &self,
                call: &Call,
                include_archived: bool,
                page: Page
            ) -> Result<Listing<ConversationView>>;
            /// Lists conversations with an overview, most recently active first.
            fn recent_conversations(
                &self,
                call: &Call,
                query: &RecentQuery,
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
            /// Returns one turn, shown or not.
            fn turn(&self, call: &Call, turn: TurnRef) -> Result<TurnView>;
            /// Lists the children of a turn.
            fn children(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>>;
            /// Lists the siblings of a turn, itself included.
            fn siblings(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>>;
            /// Lists the versions of a turn: what it was edited from, and what was edited from it.
            fn versions(&self, call: &Call, turn: TurnRef) -> Result<Vec<TurnView>>;
            /// Reads a page of the path from the root to a turn.
            fn path(&self, call: &Call, query: PathQuery) -> Result<PathPage>;
            /// Reads the turns around a turn on one line.
            fn window(&self, call: &Call, query: WindowQuery) -> Result<Window>;
            /// Reads a page of the tree without its content.
            fn topology(&self, call: &Call, query: TopologyQuery) -> Result<TopologyPage>;
            /// Searches turns, best matches first.
            fn search(&self, call: &Call, request: SearchQuery) -> Result<SearchPage>;
            /// Lists lines that no branch leads to.
            fn tails(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<Tail>>;

            /// Lists the branches of a conversation, in order of name.
            fn branches(&self, call: &Call, conversation: &ConversationId) -> Result<Vec<BranchView>>;
            /// Returns one branch, by name or id.
            fn branch(&self, call: &Call, conversation: &ConversationId, branch: &str) -> Result<BranchView>;
            /// Renames a branch; its id stays.
            fn rename_branch(
                &self,
                call: &Call,
                conversation: &ConversationId,
                branch: &str,
                name: Name
            ) -> Result<BranchView>;
            /// Deletes a branch and returns it; its turns stay.
            fn delete_branch(
                &self,
                call: &Call,
                conversation: &ConversationId,
                branch: &str
            ) -> Result<BranchView>;
            /// Creates a branch at a turn, or before it.
            fn fork(&self, call: &Call, request: Fork) -> Result<BranchView>;
            /// Moves a branch back; the turns after it are kept as a tail.
            fn revert(&self, call: &Call, request: MoveBranch) -> Result<BranchView>;
            /// Moves a branch forward again.
            fn restore(&self, call: &Call, request: MoveBranch) -> Result<BranchView>;

            /// Creates another version of a turn; the old one stays.
            fn edit(&self, call: &Call, request: Edit) -> Result<Edited>;
            /// Shows a turn as two.
            fn split(&self, call: &Call, request: SplitTurn) -> Result<SplitDone>;
            /// Deletes a turn, or reports what that would do.
            fn delete(&self, call: &Call, request: Delete) -> Result<Deleted>;
            /// Changes a turn's metadata.
            fn patch_metadata(&self, call: &Call, turn: TurnRef, patch: MetadataPatch) -> Result<TurnView>;

            /// Sets a bookmark on a turn.
            fn set_bookmark(&self, call: &Call, name: Name, turn: TurnRef) -> Result<BookmarkView>;
            /// Deletes a bookmark and returns it; its turn stays.
            fn delete_bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView>;
            /// Returns one bookmark.
            fn bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView>;
            /// Lists the bookmarks of the project, in order of name.
            fn bookmarks(&self, call: &Call, page: Page) -> Result<Listing<BookmarkView>>;

            /// Undoes an operation; by default the newest that is in effect.
            fn undo(
                &self,
                call: &Call,
                conversation: &ConversationId,
                operation: Option<u64>
            ) -> Result<Undone>;
            /// Redoes an undone operation; by default the one undone last.
            fn redo(
                &self,
                call: &Call,
                conversation: &ConversationId,
                operation: Option<u64>
            ) -> Result<Undone>;
            /// Lists the log of a conversation, newest first.
            fn operations(
                &self,
                call: &Call,
                conversation: &ConversationId,
                page: Page
            ) -> Result<Listing<OperationView>>;
            /// Purges the content of a turn, a conversation or a source, or reports what that would do.
            fn purge(&self, call: &Call, request: Purge) -> Result<Purged>;

            /// Returns totals of the store, and of a conversation if one is named.
            fn stats(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<Stats>;
            /// Returns tokens and cost of a conversation, or of the whole project.
            fn usage(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<UsageTotals>;
            /// Reports tokens and cost of the project, grouped.
            fn usage_report(&self, call: &Call, query: &UsageQuery) -> Result<UsageReport>;
            /// Recomputes every hash of the store.
            fn verify(&self) -> Result<Verified>;
        }
        $each! {
            /// Operations on knowledge, and for hosts that track no branches.
            trait Knowledge;

            /// Stores a turn of a host that tracks no branches.
            fn store_turn(&self, call: &Call, request: StoreTurn) -> Result<StoredTurn>;
            /// Stores bytes as a source; the envelope of a turn is also placed as a turn.
            fn store_source(&self, call: &Call, request: NewSource) -> Result<StoredSource>;
            /// Returns one source without its bytes.
            fn source(&self, call: &Call, id: SourceId) -> Result<SourceView>;
            /// Lists sources in the order in which they were stored.
            fn sources(&self, call: &Call, page: Page) -> Result<Listing<SourceView>>;
            /// Returns one piece of a source's bytes, from 0; `None` after the last.
            fn source_piece(&self, call: &Call, id: SourceId, nth: u32) -> Result<Option<Vec<u8>>>;
            /// Stores facts that the caller extracted, with their relationships.
            fn store_facts(&self, call: &Call, request: StoreFacts) -> Result<StoredFacts>;

            /// Returns one run with its request and response.
            fn interpretation(&self, call: &Call, id: InterpretationId) -> Result<InterpretationView>;
            /// Lists runs: of a source, the open ones, or all.
            fn interpretations(
                &self,
                call: &Call,
                query: RunQuery,
                page: Page
            ) -> Result<Listing<InterpretationView>>;
            /// Returns the state of the queue and the available interpreters.
            fn interpretation_queue(&self, call: &Call) -> Result<QueueStatus>;
            /// Queues runs over stored sources.
            fn reinterpret(&self, call: &Call, request: Reinterpret) -> Result<Vec<InterpretationView>>;
            /// Retries a failed run.
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
            /// Compares the findings of two runs.
            fn compare_interpretations(&self, call: &Call, pair: RunPair) -> Result<RunComparison>;
            /// Returns a prompt by its hash.
            fn prompt(&self, call: &Call, hash: Digest) -> Result<String>;

            /// Returns an entity with its current fields.
            fn entity(&self, call: &Call, id: EntityId, as_of: AsOf) -> Result<EntityView>;
            /// Lists entities by type, in the order in which they were first seen.
            fn entities(
                &self,
                call: &Call,
                query: EntityQuery,
                page: Page
            ) -> Result<Listing<EntityView>>;
            /// Lists the messages that a host stored under one of its turn ids.
            fn slots(
                &self,
                call: &Call,
                conversation: &ConversationId,
                turn_id: &str
            ) -> Result<Vec<EntityView>>;
            /// Lists all observations of an entity, in the order in which they were stored.
            fn observations(
                &self,
                call: &Call,
                id: EntityId,
                page: Page
            ) -> Result<Listing<ObservationView>>;
            /// Traces each field, or one of them, back to the bytes it comes from.
            fn field_provenance(
                &self,
                call: &Call,
                id: EntityId,
                field: Option<&str>
            ) -> Result<Vec<FieldProvenance>>;
            /// Lists dated facts between two times, in order.
            fn timeline(
                &self,
                call: &Call,
                from: Option<Timestamp>,
                to: Option<Timestamp>,
                page: Page
            ) -> Result<Listing<TimelineEntry>>;
            /// Corrects fields of an entity.
            fn correct(&self, call: &Call, request: Correct) -> Result<ObservationView>;
            /// Merges two entities.
            fn merge_entities(&self, call: &Call, request: Merge) -> Result<EntityView>;
            /// Separates an entity into two.
            fn separate_entity(&self, call: &Call, request: Separate) -> Result<EntityView>;
            /// Hides an entity from listings, or shows it again.
            fn set_entity_deleted(&self, call: &Call, id: EntityId, deleted: bool) -> Result<EntityView>;

            /// Creates a relationship, or finds it.
            fn create_relationship(
                &self,
                call: &Call,
                request: NewRelationship
            ) -> Result<RelationshipView>;
            /// Deletes a relationship.
            fn delete_relationship(&self, call: &Call, request: NewRelationship) -> Result<()>;
            /// Lists relationships of one record, or all.
            fn relationships(
                &self,
                call: &Call,
                query: RelationshipQuery,
                page: Page
            ) -> Result<Listing<RelationshipView>>;

            /// Registers a schema as the next version of its type.
            fn register_schema(&self, call: &Call, request: NewSchema) -> Result<Schema>;
            /// Returns a schema: the newest of a type, or one version.
            fn schema(&self, call: &Call, entity_type: &str, version: Option<u32>) -> Result<Schema>;
            /// Lists the newest schema of every type, in order of type.
            fn schemas(&self, call: &Call) -> Result<Vec<Schema>>;
        }
        $each! {
            /// Operations on commits and on what turns are about.
            trait Versions;

            /// Returns what a turn is about.
            fn rings(&self, call: &Call, turn: TurnRef) -> Result<TurnRings>;
            /// Seals a range of turns.
            fn commit(&self, call: &Call, request: NewCommit) -> Result<CommitView>;
            /// Returns one commit, by its hash or a prefix of it.
            fn commit_by_hash(&self, call: &Call, hash: &str) -> Result<CommitView>;
            /// Lists commits, newest first.
            fn commits(&self, call: &Call, query: CommitQuery, page: Page) -> Result<Listing<CommitView>>;
            /// Stores the signature of a commit.
            fn sign_commit(
                &self,
                call: &Call,
                commit: &str,
                public_key: &str,
                signature: &str
            ) -> Result<CommitView>;
            /// Compares two turns, branches, commits or ranges of turns.
            fn diff(&self, call: &Call, query: DiffQuery) -> Result<Diff>;
            /// Merges a branch into another.
            fn merge(&self, call: &Call, request: MergeBranches) -> Result<Merged>;
            /// Resolves conflicts of a branch.
            fn resolve_conflicts(&self, call: &Call, request: ResolveConflicts) -> Result<CommitView>;
            /// Copies a turn to another place.
            fn inject(&self, call: &Call, request: Inject) -> Result<Injected>;
            /// Finds where a field or a piece of text comes from.
            fn blame(&self, call: &Call, query: BlameQuery) -> Result<Vec<Blamed>>;
            /// Finds the first turn on a path that satisfies a condition.
            fn bisect(&self, call: &Call, query: BisectQuery) -> Result<Bisected>;
            /// Measures how far each commit of a branch has moved.
            fn drift(
                &self,
                call: &Call,
                conversation: &ConversationId,
                branch: &str
            ) -> Result<Vec<Drift>>;
        }
    };
}

/// Declares a trait.
macro_rules! declare {
    ($(#[$about:meta])* trait $trait:ident; $(
        $(#[$doc:meta])*
        fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;
    )*) => {
        $(#[$about])*
        pub trait $trait: Send + Sync {
            $($(#[$doc])* fn $name(&self $(, $argument: $type)*) -> $answer;)*
        }
    };
}

for_each_operation!(declare);

//! Macros for stores and transactions that wrap others.

/// Forwards every method except `read` and `write` to the store in a field.
#[macro_export]
macro_rules! forward_store {
    ($inner:tt) => {
        fn check(&self) -> $crate::Result<$crate::StoreCheck> {
            self.$inner.check()
        }

        fn pack(&self, options: $crate::PackOptions) -> $crate::Result<$crate::Packed> {
            self.$inner.pack(options)
        }

        fn scrub(&self) -> $crate::Result<()> {
            self.$inner.scrub()
        }

        fn backup(&self, to: &std::path::Path) -> $crate::Result<()> {
            self.$inner.backup(to)
        }

        fn index_state(&self) -> $crate::Result<$crate::IndexState> {
            self.$inner.index_state()
        }

        fn index(
            &self,
            body: &mut dyn FnMut(&mut dyn $crate::Index) -> $crate::Result<()>,
        ) -> $crate::Result<()> {
            self.$inner.index(body)
        }

        fn unindex(&self, turns: &[$crate::TurnLoc]) -> $crate::Result<()> {
            self.$inner.unindex(turns)
        }

        fn search(
            &self,
            query: &$crate::TextQuery,
            filter: &$crate::SearchFilter,
            through: $crate::FeedPosition,
        ) -> $crate::Result<Option<$crate::Ranked>> {
            self.$inner.search(query, filter, through)
        }
    };
}

/// Passes the signatures of all required methods of [`Read`](crate::Read) to a macro, as
/// `name(argument: type, …) -> result;`.
#[macro_export]
macro_rules! for_each_read {
    ($make:ident) => {
        $make! {
            projects() -> Vec<$crate::Project>;
            project(id: &$crate::tine_core::ProjectId) -> Option<$crate::Project>;
            conversation(project: &$crate::tine_core::ProjectId, id: &$crate::tine_core::ConversationId) -> Option<$crate::Conversation>;
            conversation_by_key(key: $crate::ConversationKey) -> Option<$crate::Conversation>;
            conversations(project: &$crate::tine_core::ProjectId, after: Option<$crate::ConversationKey>, limit: usize) -> Vec<$crate::Conversation>;
            derivatives(project: &$crate::tine_core::ProjectId, of: &$crate::tine_core::ConversationId) -> Vec<$crate::Conversation>;
            segment(no: $crate::SegmentNo) -> $crate::Segment;
            segments(conversation: $crate::ConversationKey) -> Vec<$crate::SegmentExtent>;
            forks(conversation: $crate::ConversationKey, parent: Option<$crate::TurnLoc>) -> Vec<$crate::Segment>;
            forks_from(conversation: $crate::ConversationKey, at: $crate::TurnLoc) -> Vec<$crate::Segment>;
            last_index(segment: $crate::SegmentNo) -> u32;
            turn(loc: $crate::TurnLoc) -> Option<$crate::Turn>;
            turns(segment: $crate::SegmentNo, from: u32, to: u32, visit: &mut dyn FnMut($crate::Turn) -> $crate::Result<bool>) -> ();
            find_turn(project: &$crate::tine_core::ProjectId, id: &$crate::tine_core::TurnId) -> Option<($crate::ConversationKey, $crate::TurnLoc)>;
            find_hashes(conversation: $crate::ConversationKey, low: &$crate::tine_core::Digest, high: &$crate::tine_core::Digest, limit: usize) -> Vec<$crate::TurnLoc>;
            same_content(loc: $crate::TurnLoc, limit: usize) -> Vec<($crate::ConversationKey, $crate::TurnLoc)>;
            splits(conversation: $crate::ConversationKey) -> Vec<$crate::Split>;
            hidden_in(conversation: $crate::ConversationKey, segment: $crate::SegmentNo) -> Vec<$crate::Hidden>;
            hidden(conversation: $crate::ConversationKey) -> Vec<$crate::Hidden>;
            branch(conversation: $crate::ConversationKey, name: &$crate::tine_core::Name) -> Option<$crate::Branch>;
            branch_by_id(project: &$crate::tine_core::ProjectId, id: &$crate::tine_core::BranchId) -> Option<$crate::Branch>;
            branches(conversation: $crate::ConversationKey) -> Vec<$crate::Branch>;
            bookmark(project: &$crate::tine_core::ProjectId, name: &$crate::tine_core::Name) -> Option<$crate::Bookmark>;
            bookmarks(project: &$crate::tine_core::ProjectId, after: Option<&$crate::tine_core::Name>, limit: usize) -> Vec<$crate::Bookmark>;
            bookmarks_in(conversation: $crate::ConversationKey) -> Vec<$crate::Bookmark>;
            last_operation(conversation: $crate::ConversationKey) -> Option<$crate::Operation>;
            operation(conversation: $crate::ConversationKey, seq: u64) -> Option<$crate::Operation>;
            operations(conversation: $crate::ConversationKey, from: u64, to: u64, visit: &mut dyn FnMut($crate::Operation) -> $crate::Result<bool>) -> ();
            feed(after: $crate::FeedPosition, limit: usize) -> Vec<($crate::FeedPosition, $crate::Operation)>;
            feed_end() -> Option<$crate::IndexMark>;
            made_by(at: $crate::FeedPosition) -> Vec<($crate::TurnLoc, u32)>;
            idempotent(project: &$crate::tine_core::ProjectId, key: &str) -> Option<$crate::Operation>;
            record(project: &$crate::tine_core::ProjectId, key: &$crate::RecordKey) -> Option<$crate::Record>;
            records(project: &$crate::tine_core::ProjectId, query: &$crate::RecordQuery, limit: usize) -> Vec<$crate::Record>;
            index_keys(project: &$crate::tine_core::ProjectId, query: &$crate::IndexQuery, limit: usize) -> Vec<$crate::IndexKey>;
            piece(project: &$crate::tine_core::ProjectId, source: &$crate::tine_core::SourceId, nth: u32) -> Option<Vec<u8>>;
            totals() -> $crate::Totals;
        }
    };
}

/// Passes the signatures of all methods of [`Write`](crate::Write) to a macro, in the same form.
#[macro_export]
macro_rules! for_each_write {
    ($make:ident) => {
        $make! {
            insert_project(project: &$crate::Project) -> ();
            insert_conversation(conversation: &$crate::Conversation) -> $crate::ConversationKey;
            update_conversation(conversation: &$crate::Conversation) -> ();
            insert_segment(conversation: $crate::ConversationKey, parent: Option<$crate::TurnLoc>, base_depth: u32) -> $crate::SegmentNo;
            insert_turn(conversation: $crate::ConversationKey, turn: &$crate::Turn) -> ();
            set_metadata(loc: $crate::TurnLoc, metadata: &$crate::tine_core::Metadata) -> ();
            purge_turn(loc: $crate::TurnLoc, digest: &$crate::tine_core::Digest) -> ();
            insert_split(split: &$crate::Split) -> ();
            delete_split(conversation: $crate::ConversationKey, whole: $crate::TurnLoc) -> ();
            insert_hidden(hidden: &$crate::Hidden) -> ();
            delete_hidden(conversation: $crate::ConversationKey, operation: u64) -> ();
            put_branch(branch: &$crate::Branch) -> ();
            delete_branch(conversation: $crate::ConversationKey, id: &$crate::tine_core::BranchId) -> ();
            put_bookmark(bookmark: &$crate::Bookmark) -> ();
            delete_bookmark(project: &$crate::tine_core::ProjectId, name: &$crate::tine_core::Name) -> ();
            insert_operation(operation: &$crate::Operation) -> ();
            set_undone(conversation: $crate::ConversationKey, seq: u64, undone: bool) -> ();
            purge_operation(conversation: $crate::ConversationKey, seq: u64) -> ();
            insert_record(project: &$crate::tine_core::ProjectId, record: &$crate::Record) -> ();
            put_record(project: &$crate::tine_core::ProjectId, record: &$crate::Record) -> ();
            delete_record(project: &$crate::tine_core::ProjectId, key: &$crate::RecordKey) -> ();
            insert_piece(project: &$crate::tine_core::ProjectId, source: &$crate::tine_core::SourceId, nth: u32, bytes: &[u8]) -> ();
            delete_pieces(project: &$crate::tine_core::ProjectId, source: &$crate::tine_core::SourceId) -> ();
        }
    };
}

//! The writing half of a transaction.

use tine_core::{Body, BranchId, Digest, Metadata, Name, ProjectId, SourceId};
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, Detail, Hidden, Operation, Project,
    Record, RecordKey, Result, Segment, SegmentNo, Split, StoreError, Turn, TurnLoc, Write,
    required,
};

use super::{CommitWitness, PostgresTxn};
use crate::connection::values;
use crate::rows::{self, BodyKind, SHARED_BODY_BYTES, project_of};

/// The columns of a turn that depend on its body.
pub(crate) struct TurnColumns {
    pub form: i16,
    pub body: Option<Vec<u8>>,
    /// The digest of the shared body, if the body is stored as one.
    pub shared: Option<Vec<u8>>,
    /// The shared body.
    pub large: Option<Vec<u8>>,
}

impl TurnColumns {
    pub(crate) fn of(turn: &Turn) -> TurnColumns {
        let (kind, bytes) = match &turn.content {
            Content::Kept(Body::Text(text)) => (BodyKind::Text, text.as_bytes()),
            Content::Kept(Body::Blocks(blocks)) => (BodyKind::Blocks, blocks.as_bytes()),
            Content::Purged(digest) => (BodyKind::Purged, &digest.0[..]),
        };
        let form = rows::encode_form(turn.role, kind, turn.status);
        if bytes.len() < SHARED_BODY_BYTES {
            return TurnColumns { form, body: Some(bytes.to_vec()), shared: None, large: None };
        }
        let digest = Digest::of(bytes).0.to_vec();
        TurnColumns { form, body: None, shared: Some(digest), large: Some(bytes.to_vec()) }
    }
}

/// Returns the columns of a detail: the bytes, and whether they are a digest.
pub(crate) fn detail_columns(detail: &Detail) -> (Vec<u8>, bool) {
    match detail {
        Detail::Kept(text) => (text.as_bytes().to_vec(), false),
        Detail::Purged(digest) => (digest.0.to_vec(), true),
    }
}

impl PostgresTxn<'_> {
    fn mark_changed(&self, conversation: ConversationKey) {
        self.effects.borrow_mut().changed.insert(conversation);
    }

    fn mark_turn_changed(&self, loc: TurnLoc) -> Result<()> {
        let sql = "SELECT conversation FROM segment WHERE project = $1 AND no = $2";
        let (segment, _) = rows::loc_columns(Some(loc));
        let row = self.query_opt(sql, values![project_of(segment), segment])?;
        let row = required(row, || format!("segment {segment}"))?;
        self.mark_changed(ConversationKey(row.get(0)));
        Ok(())
    }
}

impl Write for PostgresTxn<'_> {
    fn insert_project(&mut self, project: &Project) -> Result<()> {
        let row = self.query_opt("SELECT coalesce(max(no), 0) + 1 FROM project", vec![])?;
        let no: i32 = required(row, || "numbers of projects".to_owned())?.get(0);
        if no > rows::LAST_PROJECT {
            let why = "one database holds at most 16,777,215 projects; use another one";
            return Err(StoreError::Unsupported(why));
        }
        self.write(
            "INSERT INTO project (id, no, created_at) VALUES ($1, $2, $3)",
            values![project.id.as_str().to_owned(), no, project.created_at.as_millis()],
        )?;
        self.write("INSERT INTO counter (project, blocks) VALUES ($1, 0)", values![no])?;
        self.effects.borrow_mut().projects.insert(project.id.clone(), no);
        Ok(())
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<ConversationKey> {
        let project = self.required_project(&conversation.project)?;
        let no = self.next_block(project)?;
        let sql = "INSERT INTO conversation (project, no, id, root_hash, system_prompt, config, \
                   title, metadata, created_at, derived_from, derived_turn, visibility) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let bytes = |text: &String| text.as_bytes().to_vec();
        let root = conversation.root.as_ref();
        let from = conversation.derived_from.as_ref();
        self.write(
            sql,
            values![
                project,
                no,
                conversation.id.as_str().to_owned(),
                conversation.root_hash.0.0.to_vec(),
                root.and_then(|root| root.system_prompt.as_ref()).map(bytes),
                root.map(|root| root.config.to_canonical().into_bytes()),
                conversation.title.as_ref().map(bytes),
                conversation.metadata.to_canonical().into_bytes(),
                conversation.created_at.as_millis(),
                from.map(|from| from.conversation.as_str().to_owned()),
                from.and_then(|from| from.turn).map(|turn| turn.as_bytes().to_vec()),
                i16::from(conversation.visibility.code()),
            ],
        )?;
        let key = ConversationKey(no);
        self.mark_changed(key);
        Ok(key)
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<()> {
        let key = conversation.key;
        let bytes = |text: &String| text.as_bytes().to_vec();
        let root = conversation.root.as_ref();
        let sql = "UPDATE conversation SET system_prompt = $3, config = $4, title = $5, \
                   metadata = $6, visibility = $7 WHERE project = $1 AND no = $2";
        self.mark_changed(key);
        self.update(
            "conversation",
            sql,
            values![
                project_of(key.0),
                key.0,
                root.and_then(|root| root.system_prompt.as_ref()).map(bytes),
                root.map(|root| root.config.to_canonical().into_bytes()),
                conversation.title.as_ref().map(bytes),
                conversation.metadata.to_canonical().into_bytes(),
                i16::from(conversation.visibility.code()),
            ],
        )
    }

    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo> {
        let project = project_of(conversation.0);
        let cached = self.effects.borrow().last_segments.get(&conversation).copied();
        let last = match cached {
            Some(last) => Some(last),
            None => {
                let sql = "SELECT no FROM segment WHERE project = $1 AND conversation = $2 \
                           ORDER BY no DESC LIMIT 1";
                self.query_opt(sql, values![project, conversation.0])?.map(|row| row.get(0))
            }
        };
        let no = match last.map(|last| last + 1) {
            None => conversation.0,
            Some(next) if rows::starts_block(next) => self.next_block(project)?,
            Some(next) => next,
        };
        self.effects.borrow_mut().last_segments.insert(conversation, no);
        let (segment, index) = rows::loc_columns(parent);
        self.mark_changed(conversation);
        self.write(
            "INSERT INTO segment (project, no, conversation, parent_segment, parent_index, \
             base_depth) VALUES ($1, $2, $3, $4, $5, $6)",
            values![project, no, conversation.0, segment, index, rows::to_i32(base_depth)],
        )?;
        let no = SegmentNo(no);
        self.prefetch.note_segment(Segment { no, conversation, parent, base_depth });
        Ok(no)
    }

    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()> {
        let project = project_of(conversation.0);
        let TurnColumns { form, body, shared, large } = TurnColumns::of(turn);
        if let (Some(digest), Some(large)) = (&shared, large) {
            self.count_bytes(large.len());
            self.write(
                "INSERT INTO body (project, digest, body) VALUES ($1, $2, $3) \
                 ON CONFLICT DO NOTHING",
                values![project, digest.clone(), large],
            )?;
        }
        self.count_bytes(body.as_ref().map_or(0, Vec::len));
        let (segment, index) = rows::loc_columns(Some(turn.loc));
        let sql = "INSERT INTO turn (project, segment, index, conversation, id, hash, operation, \
                   depth, created_at, form, body, shared, tool_call_id, metadata, origin) VALUES \
                   ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
        self.write(
            sql,
            values![
                project,
                segment,
                index,
                conversation.0,
                turn.id.as_bytes().to_vec(),
                turn.hash.0.0.to_vec(),
                rows::to_i64(turn.operation),
                rows::to_i32(turn.depth),
                turn.created_at.as_millis(),
                form,
                body,
                shared,
                turn.tool_call_id.as_ref().map(|id| id.as_bytes().to_vec()),
                rows::encode_metadata(&turn.metadata),
                turn.origin.to_bytes(),
            ],
        )?;
        self.mark_changed(conversation);
        self.prefetch.note_turn(conversation, turn.loc);
        rows::add_to_runs(&mut self.effects.borrow_mut().runs, turn.loc);
        Ok(())
    }

    fn set_metadata(&mut self, loc: TurnLoc, metadata: &Metadata) -> Result<()> {
        self.mark_turn_changed(loc)?;
        self.prefetch.forget_turn(loc);
        let (segment, index) = rows::loc_columns(Some(loc));
        let sql =
            "UPDATE turn SET metadata = $4 WHERE project = $1 AND segment = $2 AND index = $3";
        let metadata = rows::encode_metadata(metadata);
        self.update("turn", sql, values![project_of(segment), segment, index, metadata])
    }

    fn purge_turn(&mut self, loc: TurnLoc, digest: &Digest) -> Result<()> {
        self.mark_turn_changed(loc)?;
        self.prefetch.forget_turn(loc);
        let (segment, index) = rows::loc_columns(Some(loc));
        let project = project_of(segment);
        let sql = "SELECT shared FROM turn WHERE project = $1 AND segment = $2 AND index = $3";
        let row = self.query_opt(sql, values![project, segment, index])?;
        let shared: Option<Vec<u8>> =
            row.ok_or_else(|| StoreError::Contract(format!("no turn at {loc:?}")))?.get(0);
        self.write(
            "UPDATE turn SET body = $4, shared = NULL, metadata = NULL, \
             form = form & ~$5::int2 | $6::int2 \
             WHERE project = $1 AND segment = $2 AND index = $3",
            values![
                project,
                segment,
                index,
                digest.0.to_vec(),
                rows::BODY_KIND_MASK,
                rows::PURGED_BITS
            ],
        )?;
        if let Some(shared) = shared {
            self.write(
                "DELETE FROM body WHERE project = $1 AND digest = $2 AND NOT EXISTS \
                 (SELECT FROM turn WHERE turn.project = $1 AND turn.shared = $2)",
                values![project, shared],
            )?;
        }
        Ok(())
    }

    fn insert_split(&mut self, split: &Split) -> Result<()> {
        let sql = "INSERT INTO split (project, conversation, whole_segment, whole_index, \
                   left_segment, left_index, right_segment, right_index, operation) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let [whole, left, right] =
            [split.whole, split.left, split.right].map(|loc| rows::loc_columns(Some(loc)));
        self.mark_changed(split.conversation);
        self.write(
            sql,
            values![
                project_of(split.conversation.0),
                split.conversation.0,
                whole.0,
                whole.1,
                left.0,
                left.1,
                right.0,
                right.1,
                rows::to_i64(split.operation),
            ],
        )
    }

    fn delete_split(&mut self, conversation: ConversationKey, whole: TurnLoc) -> Result<()> {
        let sql = "DELETE FROM split WHERE project = $1 AND conversation = $2 \
                   AND whole_segment = $3 AND whole_index = $4";
        let (segment, index) = rows::loc_columns(Some(whole));
        self.mark_changed(conversation);
        let project = project_of(conversation.0);
        self.update("split", sql, values![project, conversation.0, segment, index])
    }

    fn insert_hidden(&mut self, hidden: &Hidden) -> Result<()> {
        let sql = "INSERT INTO hidden (project, conversation, segment, first, last, operation, \
                   hidden_by, root_segment, root_index) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let root = rows::loc_columns(Some(hidden.root));
        self.mark_changed(hidden.conversation);
        self.write(
            sql,
            values![
                project_of(hidden.conversation.0),
                hidden.conversation.0,
                hidden.segment.0,
                rows::to_i32(hidden.from),
                rows::to_i32(hidden.to),
                rows::to_i64(hidden.operation),
                i16::from(hidden.by.code()),
                root.0,
                root.1,
            ],
        )
    }

    fn delete_hidden(&mut self, conversation: ConversationKey, operation: u64) -> Result<()> {
        self.mark_changed(conversation);
        self.write(
            "DELETE FROM hidden WHERE project = $1 AND conversation = $2 AND operation = $3",
            values![project_of(conversation.0), conversation.0, rows::to_i64(operation)],
        )
    }

    fn put_branch(&mut self, branch: &Branch) -> Result<()> {
        let sql = "INSERT INTO branch (project, conversation, id, name, tip_segment, tip_index, \
                   forked_from, created_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                   ON CONFLICT (project, conversation, id) DO UPDATE SET name = $4, \
                   tip_segment = $5, tip_index = $6, version = $9";
        let (segment, index) = rows::loc_columns(branch.tip);
        self.mark_changed(branch.conversation);
        self.write(
            sql,
            values![
                project_of(branch.conversation.0),
                branch.conversation.0,
                branch.id.as_bytes().to_vec(),
                branch.name.as_str().to_owned(),
                segment,
                index,
                branch.forked_from.map(|turn| turn.as_bytes().to_vec()),
                branch.created_at.as_millis(),
                rows::to_i64(branch.version),
            ],
        )
    }

    fn delete_branch(&mut self, conversation: ConversationKey, id: &BranchId) -> Result<()> {
        let sql = "DELETE FROM branch WHERE project = $1 AND conversation = $2 AND id = $3";
        self.mark_changed(conversation);
        let (project, id) = (project_of(conversation.0), id.as_bytes().to_vec());
        self.update("branch", sql, values![project, conversation.0, id])
    }

    fn put_bookmark(&mut self, bookmark: &Bookmark) -> Result<()> {
        let project = self.required_project(&bookmark.project)?;
        let sql = "INSERT INTO bookmark (project, name, conversation, segment, index, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project, name) DO UPDATE \
                   SET conversation = $3, segment = $4, index = $5, created_at = $6";
        let (segment, index) = rows::loc_columns(Some(bookmark.turn));
        let (name, at) = (bookmark.name.as_str().to_owned(), bookmark.created_at.as_millis());
        self.write(sql, values![project, name, bookmark.conversation.0, segment, index, at])
    }

    fn delete_bookmark(&mut self, project: &ProjectId, name: &Name) -> Result<()> {
        let project = self.required_project(project)?;
        let sql = "DELETE FROM bookmark WHERE project = $1 AND name = $2";
        self.update("bookmark", sql, values![project, name.as_str().to_owned()])
    }

    fn insert_operation(&mut self, operation: &Operation) -> Result<()> {
        let key = operation.conversation;
        let project = project_of(key.0);
        let (runs, nth) = {
            let mut effects = self.effects.borrow_mut();
            effects.witness.get_or_insert(CommitWitness {
                conversation: key,
                seq: operation.seq,
                hash: operation.hash,
            });
            effects.changed.insert(key);
            effects.operations += 1;
            (std::mem::take(&mut effects.runs), effects.operations)
        };
        let sql = "INSERT INTO operation (project, conversation, seq, kind, actor, at, detail, \
                   purged, hash, undone, key, fingerprint, answer, turns) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let (detail, purged) = detail_columns(&operation.detail);
        let first = operation.idempotency.as_ref();
        self.count_bytes(detail.len());
        self.write(
            sql,
            values![
                project,
                key.0,
                rows::to_i64(operation.seq),
                operation.kind.clone(),
                operation.actor.clone(),
                operation.at.as_millis(),
                detail,
                purged,
                operation.hash.0.0.to_vec(),
                operation.undone,
                first.map(|first| first.key.clone()),
                first.map(|first| first.fingerprint.0.to_vec()),
                first.map(|first| first.answer.clone().into_bytes()),
                rows::encode_runs(&runs),
            ],
        )?;
        self.write(
            "INSERT INTO unfed (project, conversation, seq, nth) VALUES ($1, $2, $3, $4)",
            values![project, key.0, rows::to_i64(operation.seq), nth],
        )
    }

    fn set_undone(&mut self, conversation: ConversationKey, seq: u64, undone: bool) -> Result<()> {
        let sql = "UPDATE operation SET undone = $4 \
                   WHERE project = $1 AND conversation = $2 AND seq = $3";
        self.mark_changed(conversation);
        let (project, seq) = (project_of(conversation.0), rows::to_i64(seq));
        self.update("operation", sql, values![project, conversation.0, seq, undone])
    }

    fn purge_operation(&mut self, conversation: ConversationKey, seq: u64) -> Result<()> {
        let sql = "UPDATE operation SET detail = sha256(detail), purged = true \
                   WHERE project = $1 AND conversation = $2 AND seq = $3 AND NOT purged";
        self.mark_changed(conversation);
        let (project, seq) = (project_of(conversation.0), rows::to_i64(seq));
        self.write(sql, values![project, conversation.0, seq])
    }

    fn insert_record(&mut self, project: &ProjectId, record: &Record) -> Result<()> {
        let sql = "INSERT INTO record (project, family, key, text) VALUES ($1, $2, $3, $4)";
        self.write_record(project, sql, |_, _| Ok(None), record)
    }

    fn put_record(&mut self, project: &ProjectId, record: &Record) -> Result<()> {
        let sql = "INSERT INTO record (project, family, key, text) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (project, family, key) DO UPDATE SET text = $4";
        let key = record.key();
        let before = |txn: &Self, project| match key.family().is_indexed() {
            true => txn.record_in(project, key),
            false => Ok(None),
        };
        self.write_record(project, sql, before, record)
    }

    fn delete_record(&mut self, project: &ProjectId, key: &RecordKey) -> Result<()> {
        let project = self.required_project(project)?;
        let before = match key.family().is_indexed() {
            true => self.record_in(project, key)?,
            false => None,
        };
        let sql = "DELETE FROM record WHERE project = $1 AND family = $2 AND key = $3";
        let family = i16::from(key.family().code());
        self.update("record", sql, values![project, family, key.to_bytes()])?;
        self.change_index(project, before.as_ref(), None)
    }

    fn insert_piece(
        &mut self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
        bytes: &[u8],
    ) -> Result<()> {
        let project = self.required_project(project)?;
        let sql = "INSERT INTO piece (project, source, nth, bytes) VALUES ($1, $2, $3, $4)";
        self.count_bytes(bytes.len());
        let source = source.as_bytes().to_vec();
        self.write(sql, values![project, source, rows::to_i32(nth), bytes.to_vec()])
    }

    fn delete_pieces(&mut self, project: &ProjectId, source: &SourceId) -> Result<()> {
        let project = self.required_project(project)?;
        let sql = "DELETE FROM piece WHERE project = $1 AND source = $2";
        self.write(sql, values![project, source.as_bytes().to_vec()])
    }
}

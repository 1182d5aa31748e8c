//! The writing half of a transaction.

use rusqlite::params;
use tine_core::{BranchId, Digest, Metadata, Name, ProjectId, SourceId};

use super::super::chunk_codec::RawTurn;
use super::super::operation_codec;
use super::super::pending_index::LookupEntry;
use super::super::pending_rows;
use super::super::rows::{self, BodyEncoding, TipMove};
use super::SqliteTxn;
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, Detail, Hidden, Operation, Project,
    Record, RecordKey, Result, SegmentNo, Split, StoreError, Turn, TurnLoc, Write,
};

impl Write for SqliteTxn<'_> {
    fn insert_project(&mut self, project: &Project) -> Result<()> {
        let sql = "INSERT INTO project (id, created_at) VALUES (?1, ?2)";
        self.execute(sql, params![project.id.as_str(), project.created_at.as_millis()])?;
        Ok(())
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<ConversationKey> {
        let project = self.required_project_no(&conversation.project)?;
        let derived = conversation.derived_from.as_ref();
        let root = conversation.root.as_ref();
        let sql = "INSERT INTO conversation (project, id, root_hash, system_prompt, config, title, \
                   metadata, created_at, derived_from, derived_turn, visibility) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.execute(
            sql,
            params![
                project,
                conversation.id.as_str(),
                conversation.root_hash.0.0,
                root.and_then(|root| root.system_prompt.as_deref()),
                root.map(|root| root.config.to_canonical()),
                conversation.title,
                conversation.metadata.to_canonical(),
                conversation.created_at.as_millis(),
                derived.map(|from| from.conversation.as_str()),
                derived.and_then(|from| from.turn).map(|turn| *turn.as_bytes()),
                conversation.visibility.code(),
            ],
        )?;
        Ok(ConversationKey(self.connection.last_insert_rowid()))
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<()> {
        let root = conversation.root.as_ref();
        let sql = "UPDATE conversation SET title = ?2, metadata = ?3, visibility = ?4, \
                   system_prompt = ?5, config = ?6 WHERE no = ?1";
        self.update_one(
            "conversation",
            sql,
            params![
                conversation.key.0,
                conversation.title,
                conversation.metadata.to_canonical(),
                conversation.visibility.code(),
                root.and_then(|root| root.system_prompt.as_deref()),
                root.map(|root| root.config.to_canonical()),
            ],
        )
    }

    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo> {
        let sql = "INSERT INTO segment (conversation, parent, base_depth) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![conversation.0, rows::root_or_place(parent), base_depth])?;
        Ok(SegmentNo(self.connection.last_insert_rowid()))
    }

    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()> {
        let place = rows::place(turn.loc);
        let (body_form, body) = match &turn.content {
            Content::Kept(body) => self.store_body(place, body)?,
            Content::Purged(digest) => (BodyEncoding::Purged, digest.0.to_vec().into()),
        };
        let metadata = (!turn.metadata.is_empty()).then(|| turn.metadata.to_json().to_canonical());
        let raw = RawTurn {
            place,
            id: *turn.id.as_bytes(),
            hash: turn.hash.0.0,
            operation: rows::to_i64(turn.operation),
            depth: i64::from(turn.depth),
            form: rows::encode_form(turn.role, body_form, turn.status),
            created_at: turn.created_at.as_millis(),
            body,
            tool_call_id: turn.tool_call_id.clone(),
            metadata,
            origin: turn.origin.to_bytes(),
        };
        let row_no = self.insert_new_turn(&raw)?;
        let (conversation, prefix) = (conversation.0, rows::prefix(&turn.hash.0));
        self.pending_index.add(LookupEntry::Turn {
            conversation,
            id: raw.id,
            prefix,
            place,
            row_no,
        });
        Ok(())
    }

    fn set_metadata(&mut self, loc: TurnLoc, metadata: &Metadata) -> Result<()> {
        let place = rows::place(loc);
        self.ensure_turn_row(place)?;
        let text = (!metadata.is_empty()).then(|| metadata.to_json().to_canonical());
        let sql = "UPDATE turn SET metadata = ?2 WHERE place = ?1";
        self.update_one("metadata", sql, params![place, text])
    }

    fn purge_turn(&mut self, loc: TurnLoc, digest: &Digest) -> Result<()> {
        let place = rows::place(loc);
        self.ensure_turn_row(place)?;
        let form: i64 = self
            .query_opt("SELECT form FROM turn WHERE place = ?1", [place], |row| row.get(0))?
            .ok_or_else(|| StoreError::Contract(format!("no turn at place {place}")))?;
        let form = rows::with_body_encoding(form, BodyEncoding::Purged);
        let sql = "UPDATE turn SET form = ?2, body = ?3, metadata = NULL WHERE place = ?1";
        self.update_one("purge", sql, params![place, form, digest.0])?;
        self.execute("DELETE FROM shared_body_holder WHERE place = ?1", [place])?;
        let sql = "DELETE FROM shared_body WHERE NOT EXISTS \
                   (SELECT 1 FROM shared_body_holder WHERE shared_body_holder.body = no)";
        self.execute(sql, [])?;
        Ok(())
    }

    fn insert_split(&mut self, split: &Split) -> Result<()> {
        let sql = "INSERT INTO split (conversation, whole, left_half, right_half, operation) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let places = [split.whole, split.left, split.right].map(rows::place);
        let operation = rows::to_i64(split.operation);
        let conversation = split.conversation.0;
        self.execute(sql, [conversation, places[0], places[1], places[2], operation])?;
        Ok(())
    }

    fn delete_split(&mut self, conversation: ConversationKey, whole: TurnLoc) -> Result<()> {
        let sql = "DELETE FROM split WHERE conversation = ?1 AND whole = ?2";
        self.update_one("split", sql, [conversation.0, rows::place(whole)])
    }

    fn insert_hidden(&mut self, hidden: &Hidden) -> Result<()> {
        let sql = "INSERT INTO hidden (conversation, segment, first, last, operation, hidden_by, \
                   root) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.execute(
            sql,
            params![
                hidden.conversation.0,
                hidden.segment.0,
                hidden.from,
                hidden.to,
                rows::to_i64(hidden.operation),
                hidden.by.code(),
                rows::place(hidden.root),
            ],
        )?;
        Ok(())
    }

    fn delete_hidden(&mut self, conversation: ConversationKey, operation: u64) -> Result<()> {
        let sql = "DELETE FROM hidden WHERE conversation = ?1 AND operation = ?2";
        self.execute(sql, [conversation.0, rows::to_i64(operation)])?;
        Ok(())
    }

    fn put_branch(&mut self, branch: &Branch) -> Result<()> {
        let conversation = branch.conversation.0;
        let to = TipMove {
            branch: *branch.id.as_bytes(),
            tip: rows::root_or_place(branch.tip),
            version: rows::to_i64(branch.version),
        };
        // Usually only the tip moves, and the operation that follows lists the move.
        if self.has_branch(branch)? {
            self.pending_index.add_move(conversation, to);
            return Ok(());
        }
        if self.pending_index.last_move(conversation, to.branch)?.is_some() {
            self.pending_index.add_move(conversation, to);
        }
        *self.cached_branch.borrow_mut() = None;
        let sql = "DELETE FROM branch WHERE conversation = ?1 AND id = ?2";
        self.execute(sql, params![branch.conversation.0, branch.id.as_bytes()])?;
        let sql = "INSERT INTO branch (conversation, name, id, tip, forked_from, created_at, \
                   version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.execute(
            sql,
            params![
                branch.conversation.0,
                branch.name.as_str(),
                branch.id.as_bytes(),
                rows::root_or_place(branch.tip),
                branch.forked_from.map(|turn| *turn.as_bytes()),
                branch.created_at.as_millis(),
                rows::to_i64(branch.version),
            ],
        )?;
        Ok(())
    }

    fn delete_branch(&mut self, conversation: ConversationKey, id: &BranchId) -> Result<()> {
        let sql = "DELETE FROM branch WHERE conversation = ?1 AND id = ?2";
        *self.cached_branch.borrow_mut() = None;
        self.update_one("branch", sql, params![conversation.0, id.as_bytes()])
    }

    fn put_bookmark(&mut self, bookmark: &Bookmark) -> Result<()> {
        let project = self.required_project_no(&bookmark.project)?;
        let sql = "INSERT OR REPLACE INTO bookmark (project, name, conversation, place, created_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(
            sql,
            params![
                project,
                bookmark.name.as_str(),
                bookmark.conversation.0,
                rows::place(bookmark.turn),
                bookmark.created_at.as_millis(),
            ],
        )?;
        Ok(())
    }

    fn delete_bookmark(&mut self, project: &ProjectId, name: &Name) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "DELETE FROM bookmark WHERE project = ?1 AND name = ?2";
        self.update_one("bookmark", sql, params![project, name.as_str()])
    }

    fn insert_operation(&mut self, operation: &Operation) -> Result<()> {
        let sql = "INSERT INTO fresh (conversation, seq, kind, actor, at, detail, hash, undone, \
                   key, fingerprint, answer, turns, moves, no) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let idempotency = operation.idempotency.as_ref();
        let no = self.pending_index.next_operation();
        let moves = self.pending_index.take_moves(operation.conversation.0);
        self.execute(
            sql,
            params![
                operation.conversation.0,
                rows::to_i64(operation.seq),
                operation.kind,
                operation.actor,
                operation.at.as_millis(),
                rows::encode_detail(&operation.detail),
                operation.hash.0.0,
                i64::from(operation.undone),
                idempotency.map(|first| first.key.as_str()),
                idempotency.map(|first| first.fingerprint.0),
                idempotency.map(|first| operation_codec::encode(&first.answer)),
                rows::encode_runs(&self.pending_index.take_runs()),
                rows::encode_moves(&moves),
                pending_rows::operation_row_no(no),
            ],
        )?;
        let (conversation, seq) = (operation.conversation.0, rows::to_i64(operation.seq));
        self.pending_index.add(LookupEntry::Operation { conversation, seq, no });
        for to in moves {
            self.pending_index.add(LookupEntry::TipMove { conversation, no, to });
        }
        if let Some(first) = idempotency {
            let project = self.project_of(conversation)?;
            self.pending_index.add(LookupEntry::Key {
                project,
                prefix: rows::key_prefix(&first.key),
                no,
            });
        }
        Ok(())
    }

    fn set_undone(&mut self, conversation: ConversationKey, seq: u64, undone: bool) -> Result<()> {
        let no = self.operation_no(conversation, seq)?;
        let (sql, no) = match self.is_pending_operation(no) {
            true => {
                ("UPDATE fresh SET undone = ?2 WHERE no = ?1", pending_rows::operation_row_no(no))
            }
            false => ("UPDATE operation SET undone = ?2 WHERE no = ?1", no),
        };
        self.update_one("operation", sql, [no, i64::from(undone)])
    }

    fn purge_operation(&mut self, conversation: ConversationKey, seq: u64) -> Result<()> {
        let no = self.operation_no(conversation, seq)?;
        let operation =
            tine_store::required(self.operation_at(no)?, || format!("operation {seq}"))?;
        let (sql, no) = match self.is_pending_operation(no) {
            true => {
                ("UPDATE fresh SET detail = ?2 WHERE no = ?1", pending_rows::operation_row_no(no))
            }
            false => ("UPDATE operation SET detail = ?2 WHERE no = ?1", no),
        };
        let purged = Detail::Purged(operation.detail.digest());
        self.update_one("operation", sql, params![no, rows::encode_detail(&purged)])
    }

    fn insert_record(&mut self, project: &ProjectId, record: &Record) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "INSERT INTO record (project, family, key, text) VALUES (?1, ?2, ?3, ?4)";
        let (key, text) = (record.key(), record.text());
        self.execute(sql, params![project, key.family().code(), key.to_bytes(), text])?;
        self.change_index(project, None, Some(record))
    }

    fn put_record(&mut self, project: &ProjectId, record: &Record) -> Result<()> {
        let project = self.required_project_no(project)?;
        let (key, text) = (record.key(), record.text());
        let family = key.family();
        let before = match family.is_indexed() {
            true => self.record_in(project, key)?,
            false => None,
        };
        let sql = "INSERT INTO record (project, family, key, text) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (project, family, key) DO UPDATE SET text = excluded.text";
        self.execute(sql, params![project, family.code(), key.to_bytes(), text])?;
        self.change_index(project, before.as_ref(), Some(record))
    }

    fn delete_record(&mut self, project: &ProjectId, key: &RecordKey) -> Result<()> {
        let project = self.required_project_no(project)?;
        let before = self.record_in(project, key)?;
        let sql = "DELETE FROM record WHERE project = ?1 AND family = ?2 AND key = ?3";
        let values = params![project, key.family().code(), key.to_bytes()];
        self.update_one("a record", sql, values)?;
        self.change_index(project, before.as_ref(), None)
    }

    fn insert_piece(
        &mut self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
        bytes: &[u8],
    ) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "INSERT INTO piece (project, source, nth, bytes) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![project, source.as_bytes(), nth, bytes])?;
        Ok(())
    }

    fn delete_pieces(&mut self, project: &ProjectId, source: &SourceId) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "DELETE FROM piece WHERE project = ?1 AND source = ?2";
        self.execute(sql, params![project, source.as_bytes()])?;
        Ok(())
    }
}

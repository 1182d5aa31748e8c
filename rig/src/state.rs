//! The state of a project as text: two stores are equal if their texts are.
//!
//! Turns are named by id instead of by a store's handles, so that the memory store can be compared
//! with the embedded store. It contains every record of the project, also hidden and undone ones:
//! content byte by byte, tips, the log with its hashes and keys.

use std::collections::HashMap;
use std::fmt::Write as _;

use tine_core::{Digest, ProjectId, TurnId};
use tine_store::{
    Content, Conversation, Detail, Family, Operation, Read, RecordKey, RecordQuery, Result, Store,
    StoreError, Turn, TurnLoc,
};

/// Rows per page of a listing.
const PAGE: usize = 1_000;

/// Returns the state of a project; empty if the project does not exist.
pub fn text(store: &dyn Store, project: &ProjectId) -> Result<String> {
    let mut text = String::new();
    store.read(&mut |records| {
        text.clear();
        if records.project(project)?.is_none() {
            return Ok(());
        }
        line(&mut text, format_args!("project {project}"));
        let mut after = None;
        loop {
            let page = records.conversations(project, after, PAGE)?;
            for conversation in &page {
                Page { records, conversation, names: HashMap::new(), text: &mut text }.write()?;
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.key),
                _ => break,
            }
        }
        families(records, project, &mut text)
    })?;
    Ok(text)
}

/// Writes every record of every family, and the bytes of every source.
fn families(records: &dyn Read, project: &ProjectId, text: &mut String) -> Result<()> {
    // Whether files are still to be scrubbed after an erasure is no part of what a store says.
    for family in Family::all().filter(|family| *family != Family::PendingErasure) {
        let mut query = RecordQuery::all(family);
        loop {
            let page = records.records(project, &query, PAGE)?;
            for record in &page {
                line(text, format_args!("{} {}", record.key(), record.text()));
                if let RecordKey::Source(source) = record.key() {
                    let first = records.piece(project, source, 0)?;
                    let digest = first.map(|bytes| Digest::of(&bytes));
                    line(text, format_args!(" bytes {digest:?}"));
                }
            }
            match page.last() {
                Some(last) => query = query.after(last.key()),
                None => break,
            }
        }
    }
    Ok(())
}

/// Returns the digest of a state.
pub fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// Returns the first line in which two states differ.
pub fn first_difference(expected: &str, found: &str) -> String {
    let (mut left, mut right) = (expected.lines(), found.lines());
    for number in 1_usize.. {
        let (expected, found) = (left.next(), right.next());
        if expected != found {
            return format!(
                "line {number}: expected `{}`, found `{}`",
                shortened(expected),
                shortened(found)
            );
        }
        if expected.is_none() {
            break;
        }
    }
    "no difference".to_owned()
}

fn shortened(line: Option<&str>) -> String {
    line.map_or_else(|| "nothing".to_owned(), |line| line.chars().take(160).collect())
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(what);
    text.push('\n');
}

/// A conversation that is being written.
struct Page<'p> {
    records: &'p dyn Read,
    conversation: &'p Conversation,
    names: HashMap<TurnLoc, TurnId>,
    text: &'p mut String,
}

impl Page<'_> {
    fn write(&mut self) -> Result<()> {
        let key = self.conversation.key;
        self.head();
        for extent in self.records.segments(key)? {
            let parent = self.name(extent.segment.parent)?;
            let mut turns = Vec::new();
            self.records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                turns.push(turn);
                Ok(true)
            })?;
            line(self.text, format_args!(" segment under {parent}"));
            for turn in &turns {
                self.names.insert(turn.loc, turn.id);
                self.turn(turn);
            }
        }
        self.shown()?;
        for branch in self.records.branches(key)? {
            let tip = self.name(branch.tip)?;
            let (id, name, from) = (branch.id, &branch.name, option(&branch.forked_from));
            let (at, version) = (branch.created_at.as_millis(), branch.version);
            line(self.text, format_args!(" branch {name} {id} {tip} {from} {at} {version}"));
        }
        for bookmark in self.records.bookmarks_in(key)? {
            let turn = self.name(Some(bookmark.turn))?;
            let at = bookmark.created_at.as_millis();
            line(self.text, format_args!(" bookmark {} {turn} {at}", bookmark.name));
        }
        let mut operations = Vec::new();
        self.records.operations(key, 1, u64::MAX, &mut |operation| {
            operations.push(operation);
            Ok(true)
        })?;
        for operation in &operations {
            self.operation(operation)?;
        }
        Ok(())
    }

    fn head(&mut self) {
        let Conversation { id, root_hash, root, title, metadata, derived_from, visibility, .. } =
            self.conversation;
        let root = root.as_ref().map(|root| {
            (root.system_prompt.clone().unwrap_or_default(), root.config.to_canonical())
        });
        let at = self.conversation.created_at.as_millis();
        let metadata = metadata.to_canonical();
        line(
            self.text,
            format_args!(
                "conversation {id} {root_hash} {root:?} {title:?} {metadata} {at} \
                 {derived_from:?} {visibility:?}"
            ),
        );
    }

    fn turn(&mut self, turn: &Turn) {
        let Turn { id, hash, depth, tool_call_id, operation, origin, .. } = turn;
        let (role, status) = (turn.role.as_str(), turn.status.as_str());
        let at = turn.created_at.as_millis();
        let metadata = turn.metadata.to_json().to_canonical();
        let call = tool_call_id.as_deref().unwrap_or("-");
        let (edited, derived, part) =
            (option(&origin.edited_from), option(&origin.derived_from), option(&origin.part_of));
        line(
            self.text,
            format_args!(
                "  turn {id} {hash} {depth} {role} {call} {at} {status} {metadata} {operation} \
                 {edited} {derived} {part}"
            ),
        );
        self.text.push_str("   says ");
        match &turn.content {
            Content::Kept(body) => body.write_blocks(self.text),
            Content::Purged(digest) => line(self.text, format_args!("nothing ({digest})")),
        }
        self.text.push('\n');
    }

    /// Writes splits and hidden runs.
    fn shown(&mut self) -> Result<()> {
        let key = self.conversation.key;
        for split in self.records.splits(key)? {
            let whole = self.name(Some(split.whole))?;
            let (left, right) = (self.name(Some(split.left))?, self.name(Some(split.right))?);
            line(self.text, format_args!(" split {whole} {left} {right} {}", split.operation));
        }
        let mut hidden = Vec::new();
        for run in self.records.hidden(key)? {
            let from = self.name(Some(TurnLoc { segment: run.segment, index: run.from }))?;
            let to = self.name(Some(TurnLoc { segment: run.segment, index: run.to }))?;
            let root = self.name(Some(run.root))?;
            hidden.push(format!(" hidden {from} {to} {} {:?} {root}", run.operation, run.by));
        }
        // Stores list runs in different orders.
        hidden.sort();
        for run in hidden {
            line(self.text, format_args!("{run}"));
        }
        Ok(())
    }

    fn operation(&mut self, operation: &Operation) -> Result<()> {
        let Operation { seq, kind, actor, hash, undone, .. } = operation;
        let at = operation.at.as_millis();
        let detail = match &operation.detail {
            Detail::Kept(text) => text.clone(),
            Detail::Purged(digest) => digest.to_string(),
        };
        line(
            self.text,
            format_args!(" operation {seq} {kind} {actor} {at} {hash} {undone} {detail}"),
        );
        if let Some(known) = &operation.idempotency {
            line(
                self.text,
                format_args!("  key {} {} {}", known.key, known.fingerprint, known.answer),
            );
            // The way by which a repeated call is recognised.
            let found = self.records.idempotent(&self.conversation.project, &known.key)?;
            if found.map(|found| found.hash) != Some(*hash) {
                line(self.text, format_args!("  key {} leads elsewhere", known.key));
            }
        }
        Ok(())
    }

    fn name(&self, loc: Option<TurnLoc>) -> Result<String> {
        let Some(loc) = loc else {
            return Ok("root".to_owned());
        };
        if let Some(id) = self.names.get(&loc) {
            return Ok(id.to_string());
        }
        let turn = self.records.turn(loc)?.ok_or_else(|| StoreError::Corrupt {
            record: format!("turn {loc:?}"),
            why: "another record points at it, and it is not there".to_owned(),
        })?;
        Ok(turn.id.to_string())
    }
}

fn option(id: &Option<TurnId>) -> String {
    id.map_or_else(|| "-".to_owned(), |id| id.to_string())
}

//! A strict in-memory store, for tests and experiments.
//!
//! Every write is checked against the contract: immutable records are not replaced, segments grow
//! only at their end, and every reference has a target. A violation is a [`StoreError::Contract`], so
//! that a defect in the engine shows up here rather than as a damaged file. A write works on a copy
//! of the whole state, which is slow and obviously atomic.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tine_core::{BranchId, ConversationId, Digest, Metadata, Name, ProjectId, SourceId, TurnId};

use crate::families::{
    Family, IndexKey, IndexQuery, KEY_BYTES, KeyRange, Record, RecordIndex, RecordKey, RecordQuery,
    index_changes,
};
use crate::records::{
    Bookmark, Branch, Content, Conversation, ConversationKey, Detail, FeedPosition, Hidden,
    Operation, PIECE_BYTES, Project, SEGMENT_TURNS, Segment, SegmentExtent, SegmentNo, Split,
    Totals, Turn, TurnLoc,
};
use crate::search::IndexMark;
use crate::traits::{Job, PackOptions, Packed, Read, Store, StoreCheck, Verdict, Write};
use crate::{Result, StoreError};

/// An in-memory store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        // A panicking job leaves the state unchanged: it worked on a copy.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        body(&*self.lock())
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let mut state = self.lock();
        let mut copy = state.clone();
        if job(&mut copy)? == Verdict::Commit {
            copy.check_invariants()?;
            *state = copy;
        }
        Ok(())
    }

    fn check(&self) -> Result<StoreCheck> {
        Ok(StoreCheck::default())
    }

    fn pack(&self, _: PackOptions) -> Result<Packed> {
        Ok(Packed::default())
    }

    fn scrub(&self) -> Result<()> {
        Ok(())
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let why = "a store in memory cannot be backed up to a folder; export it".to_owned();
        Err(StoreError::NotAStore { path: to.to_owned(), why })
    }
}

#[derive(Clone, Debug, Default)]
struct MemoryState {
    projects: BTreeMap<ProjectId, Project>,
    conversations: BTreeMap<ConversationKey, Conversation>,
    segments: BTreeMap<SegmentNo, Segment>,
    turns: BTreeMap<TurnLoc, Turn>,
    turn_ids: BTreeSet<(TurnId, TurnLoc)>,
    hashes: BTreeSet<(ConversationKey, Digest, TurnLoc)>,
    splits: BTreeMap<(ConversationKey, TurnLoc), Split>,
    hidden: BTreeSet<Hidden>,
    branches: BTreeMap<(ConversationKey, Name), Branch>,
    bookmarks: BTreeMap<(ProjectId, Name), Bookmark>,
    operations: Vec<Operation>,
    records: BTreeMap<(ProjectId, Family, Vec<u8>), String>,
    index: BTreeMap<(ProjectId, RecordIndex, Vec<u8>), ()>,
    pieces: BTreeMap<(ProjectId, SourceId, u32), Vec<u8>>,
}

fn violation<T>(what: impl Into<String>) -> Result<T> {
    Err(StoreError::Contract(what.into()))
}

/// Returns the keys of one project and one family or index in a range, in its direction.
fn in_range<'m, K: Copy + Ord, V>(
    map: &'m BTreeMap<(ProjectId, K, Vec<u8>), V>,
    project: &ProjectId,
    of: K,
    range: &KeyRange,
    limit: usize,
) -> Vec<(&'m [u8], &'m V)> {
    let from = (project.clone(), of, range.from.clone());
    let found = |(key, value): (&'m (ProjectId, K, Vec<u8>), &'m V)| (key.2.as_slice(), value);
    if let Some(to) = range.to.as_ref().filter(|_| range.backwards) {
        let to = (project.clone(), of, to.clone().max(range.from.clone()));
        return map.range(from..to).rev().take(limit).map(found).collect();
    }
    let in_bounds = |key: &[u8]| range.to.as_deref().is_none_or(|to| key < to);
    let all = map
        .range(from..)
        .take_while(|((owner, kind, key), _)| owner == project && *kind == of && in_bounds(key))
        .map(found);
    if range.backwards {
        let all: Vec<_> = all.collect();
        return all.into_iter().rev().take(limit).collect();
    }
    all.take(limit).collect()
}

impl MemoryState {
    fn conversation_of(&self, loc: TurnLoc) -> Option<ConversationKey> {
        self.segments.get(&loc.segment).map(|segment| segment.conversation)
    }

    fn require_turn(&self, conversation: ConversationKey, loc: TurnLoc) -> Result<()> {
        let there = self.turns.contains_key(&loc);
        if !there || self.conversation_of(loc) != Some(conversation) {
            return violation(format!("no turn at {loc:?} in conversation {conversation:?}"));
        }
        Ok(())
    }

    fn change_index(
        &mut self,
        project: &ProjectId,
        before: Option<&Record>,
        after: Option<&Record>,
    ) -> Result<()> {
        let changes = index_changes(before, after);
        let map_key = |key: &IndexKey| (project.clone(), key.index(), key.to_bytes());
        for key in &changes.removed {
            if self.index.remove(&map_key(key)).is_none() {
                return violation(format!("{key} is not there"));
            }
        }
        for key in &changes.added {
            if key.to_bytes().len() > KEY_BYTES || self.index.insert(map_key(key), ()).is_some() {
                return violation(format!("{key} is too long or there already"));
            }
        }
        Ok(())
    }

    fn position(&self, conversation: ConversationKey, seq: u64) -> Option<usize> {
        self.operations
            .iter()
            .position(|operation| operation.conversation == conversation && operation.seq == seq)
    }

    /// Checks the invariants that must hold at the end of a transaction.
    fn check_invariants(&self) -> Result<()> {
        for segment in self.segments.values() {
            if !self.turns.contains_key(&TurnLoc { segment: segment.no, index: 0 }) {
                return violation(format!("segment {:?} is empty", segment.no));
            }
        }
        for branch in self.branches.values() {
            if let Some(tip) = branch.tip {
                self.require_turn(branch.conversation, tip)?;
            }
        }
        for hidden in &self.hidden {
            if self.position(hidden.conversation, hidden.operation).is_none() {
                return violation(format!("{hidden:?} names no operation"));
            }
        }
        Ok(())
    }
}

impl Read for MemoryState {
    fn projects(&self) -> Result<Vec<Project>> {
        Ok(self.projects.values().cloned().collect())
    }

    fn project(&self, id: &ProjectId) -> Result<Option<Project>> {
        Ok(self.projects.get(id).cloned())
    }

    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>> {
        let mut all = self.conversations.values();
        Ok(all.find(|found| found.project == *project && found.id == *id).cloned())
    }

    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>> {
        Ok(self.conversations.get(&key).cloned())
    }

    fn conversations(
        &self,
        project: &ProjectId,
        after: Option<ConversationKey>,
        limit: usize,
    ) -> Result<Vec<Conversation>> {
        let all = self.conversations.values().filter(|found| found.project == *project);
        let later = all.filter(|found| after.is_none_or(|after| found.key > after));
        Ok(later.take(limit).cloned().collect())
    }

    fn derivatives(&self, project: &ProjectId, of: &ConversationId) -> Result<Vec<Conversation>> {
        let all = self.conversations.values().filter(|found| found.project == *project);
        let derived = all.filter(|found| {
            found.derived_from.as_ref().is_some_and(|from| from.conversation == *of)
        });
        Ok(derived.cloned().collect())
    }

    fn segment(&self, no: SegmentNo) -> Result<Segment> {
        crate::required(self.segments.get(&no).copied(), || format!("segment {}", no.0))
    }

    fn segments(&self, conversation: ConversationKey) -> Result<Vec<SegmentExtent>> {
        let own = self.segments.values().filter(|segment| segment.conversation == conversation);
        own.map(|segment| {
            let turns = self.last_index(segment.no)? + 1;
            Ok(SegmentExtent { segment: *segment, turns })
        })
        .collect()
    }

    fn forks(
        &self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
    ) -> Result<Vec<Segment>> {
        let own = self.segments.values().filter(|segment| segment.conversation == conversation);
        Ok(own.filter(|segment| segment.parent == parent).copied().collect())
    }

    fn forks_from(&self, conversation: ConversationKey, at: TurnLoc) -> Result<Vec<Segment>> {
        let own = self.segments.values().filter(|segment| segment.conversation == conversation);
        let later = own.filter(|segment| {
            segment.parent.is_some_and(|parent| parent.segment == at.segment && parent >= at)
        });
        Ok(later.copied().collect())
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        let first = TurnLoc { segment, index: 0 };
        let last = TurnLoc { segment, index: SEGMENT_TURNS };
        let found = self.turns.range(first..last).next_back().map(|(loc, _)| loc.index);
        crate::required(found, || format!("first turn of segment {}", segment.0))
    }

    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        Ok(self.turns.get(&loc).cloned())
    }

    fn turns(
        &self,
        segment: SegmentNo,
        from: u32,
        to: u32,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()> {
        if from > to {
            return Ok(());
        }
        let range = TurnLoc { segment, index: from }..=TurnLoc { segment, index: to };
        for turn in self.turns.range(range).map(|(_, turn)| turn) {
            if !visit(turn.clone())? {
                break;
            }
        }
        Ok(())
    }

    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>> {
        let none = TurnLoc { segment: SegmentNo(i64::MIN), index: 0 };
        for (_, loc) in self.turn_ids.range((*id, none)..).take_while(|(known, _)| known == id) {
            let key = crate::required(self.conversation_of(*loc), || format!("turn {id}"))?;
            if self.conversations.get(&key).is_some_and(|found| found.project == *project) {
                return Ok(Some((key, *loc)));
            }
        }
        Ok(None)
    }

    fn find_hashes(
        &self,
        conversation: ConversationKey,
        low: &Digest,
        high: &Digest,
        limit: usize,
    ) -> Result<Vec<TurnLoc>> {
        let none = TurnLoc { segment: SegmentNo(i64::MIN), index: 0 };
        let all = self.hashes.range((conversation, *low, none)..);
        let fits = all.take_while(|(key, hash, _)| *key == conversation && hash <= high);
        Ok(fits.take(limit).map(|(_, _, loc)| *loc).collect())
    }

    fn same_content(&self, loc: TurnLoc, limit: usize) -> Result<Vec<(ConversationKey, TurnLoc)>> {
        let Some(this) = self.turns.get(&loc) else {
            return Ok(Vec::new());
        };
        let equal = |turn: &&Turn| turn.loc != loc && turn.content == this.content;
        let others = self.turns.values().filter(equal).take(limit);
        Ok(others.filter_map(|turn| Some((self.conversation_of(turn.loc)?, turn.loc))).collect())
    }

    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>> {
        let own = self.splits.values().filter(|split| split.conversation == conversation);
        Ok(own.copied().collect())
    }

    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>> {
        let own = self.hidden.iter().filter(|hidden| hidden.conversation == conversation);
        Ok(own.filter(|hidden| hidden.segment == segment).copied().collect())
    }

    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>> {
        let mut own: Vec<Hidden> = self
            .hidden
            .iter()
            .filter(|hidden| hidden.conversation == conversation)
            .copied()
            .collect();
        own.sort_by_key(|hidden| (hidden.segment, hidden.from, hidden.operation));
        Ok(own)
    }

    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>> {
        Ok(self.branches.get(&(conversation, name.clone())).cloned())
    }

    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>> {
        let found = self.branches.values().find(|branch| {
            let owner = self.conversations.get(&branch.conversation);
            branch.id == *id && owner.is_some_and(|owner| owner.project == *project)
        });
        Ok(found.cloned())
    }

    fn branches(&self, conversation: ConversationKey) -> Result<Vec<Branch>> {
        let own = self.branches.values().filter(|branch| branch.conversation == conversation);
        Ok(own.cloned().collect())
    }

    fn bookmark(&self, project: &ProjectId, name: &Name) -> Result<Option<Bookmark>> {
        Ok(self.bookmarks.get(&(project.clone(), name.clone())).cloned())
    }

    fn bookmarks(
        &self,
        project: &ProjectId,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<Bookmark>> {
        let own = self.bookmarks.values().filter(|bookmark| bookmark.project == *project);
        let later = own.filter(|bookmark| after.is_none_or(|after| bookmark.name > *after));
        Ok(later.take(limit).cloned().collect())
    }

    fn bookmarks_in(&self, conversation: ConversationKey) -> Result<Vec<Bookmark>> {
        let mut own: Vec<Bookmark> = self
            .bookmarks
            .values()
            .filter(|bookmark| bookmark.conversation == conversation)
            .cloned()
            .collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(own)
    }

    fn last_operation(&self, conversation: ConversationKey) -> Result<Option<Operation>> {
        let mut newest_first = self.operations.iter().rev();
        Ok(newest_first.find(|operation| operation.conversation == conversation).cloned())
    }

    fn operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<Operation>> {
        Ok(self.position(conversation, seq).map(|position| self.operations[position].clone()))
    }

    fn operations(
        &self,
        conversation: ConversationKey,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(Operation) -> Result<bool>,
    ) -> Result<()> {
        let own = self.operations.iter().filter(|found| found.conversation == conversation);
        for operation in own.filter(|found| (from..=to).contains(&found.seq)) {
            if !visit(operation.clone())? {
                break;
            }
        }
        Ok(())
    }

    fn feed(&self, after: FeedPosition, limit: usize) -> Result<Vec<(FeedPosition, Operation)>> {
        let numbered = (1..).map(FeedPosition).zip(self.operations.iter().cloned());
        Ok(numbered.filter(|(position, _)| *position > after).take(limit).collect())
    }

    fn feed_end(&self) -> Result<Option<IndexMark>> {
        let at = FeedPosition(u64::try_from(self.operations.len()).unwrap_or(u64::MAX));
        Ok(self.operations.last().map(|last| IndexMark { at, hash: last.hash }))
    }

    fn made_by(&self, at: FeedPosition) -> Result<Vec<(TurnLoc, u32)>> {
        let place = usize::try_from(at.0).unwrap_or(usize::MAX).wrapping_sub(1);
        let Some(operation) = self.operations.get(place) else {
            return Ok(Vec::new());
        };
        let own = self.turns.values().filter(|turn| {
            turn.operation == operation.seq
                && self.conversation_of(turn.loc) == Some(operation.conversation)
        });
        Ok(own.map(|turn| (turn.loc, 1)).collect())
    }

    fn idempotent(&self, project: &ProjectId, key: &str) -> Result<Option<Operation>> {
        let found = self.operations.iter().find(|operation| {
            let owner = self.conversations.get(&operation.conversation);
            owner.is_some_and(|owner| owner.project == *project)
                && operation.idempotency.as_ref().is_some_and(|first| first.key == key)
        });
        Ok(found.cloned())
    }

    fn record(&self, project: &ProjectId, key: &RecordKey) -> Result<Option<Record>> {
        let text = self.records.get(&(project.clone(), key.family(), key.to_bytes()));
        Ok(text.map(|text| Record::verbatim(key.clone(), text.as_str())))
    }

    fn records(
        &self,
        project: &ProjectId,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let found = in_range(&self.records, project, query.of, &query.range, limit);
        let record = |(key, text): (&[u8], &String)| {
            Record::verbatim(RecordKey::from_bytes(query.of, key), text.as_str())
        };
        Ok(found.into_iter().map(record).collect())
    }

    fn index_keys(
        &self,
        project: &ProjectId,
        query: &IndexQuery,
        limit: usize,
    ) -> Result<Vec<IndexKey>> {
        let found = in_range(&self.index, project, query.of, &query.range, limit);
        Ok(found.into_iter().map(|(key, ())| IndexKey::from_bytes(query.of, key)).collect())
    }

    fn piece(&self, project: &ProjectId, source: &SourceId, nth: u32) -> Result<Option<Vec<u8>>> {
        Ok(self.pieces.get(&(project.clone(), *source, nth)).cloned())
    }

    fn totals(&self) -> Result<Totals> {
        let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
        Ok(Totals {
            projects: count(self.projects.len()),
            conversations: count(self.conversations.len()),
            turns: count(self.turns.len()),
            branches: count(self.branches.len()),
            bookmarks: count(self.bookmarks.len()),
            operations: count(self.operations.len()),
            disk_bytes: 0,
        })
    }
}

impl Write for MemoryState {
    fn insert_project(&mut self, project: &Project) -> Result<()> {
        match self.projects.insert(project.id.clone(), project.clone()) {
            None => Ok(()),
            Some(_) => violation(format!("project {} is there already", project.id)),
        }
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<ConversationKey> {
        if !self.projects.contains_key(&conversation.project) {
            return violation(format!("project {} is not there", conversation.project));
        }
        if self.conversation(&conversation.project, &conversation.id)?.is_some() {
            return violation(format!("conversation {} is there already", conversation.id));
        }
        let last = self.conversations.last_key_value().map_or(0, |(key, _)| key.0);
        let key = ConversationKey(last + 1);
        self.conversations.insert(key, Conversation { key, ..conversation.clone() });
        Ok(key)
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<()> {
        let Some(old) = self.conversations.get_mut(&conversation.key) else {
            return violation(format!("conversation {} is not there", conversation.id));
        };
        let fixed = |record: &Conversation| {
            (
                record.project.clone(),
                record.id.clone(),
                record.root_hash,
                record.created_at,
                record.derived_from.clone(),
            )
        };
        let root_kept = conversation.root == old.root || conversation.root.is_none();
        if fixed(old) != fixed(conversation) || !root_kept {
            return violation(format!(
                "conversation {}: an immutable field changed",
                conversation.id
            ));
        }
        *old = conversation.clone();
        Ok(())
    }

    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo> {
        let expected = match parent {
            None => 1,
            Some(parent) => {
                self.require_turn(conversation, parent)?;
                self.turns[&parent].depth + 1
            }
        };
        if base_depth != expected {
            return violation(format!("a segment of depth {base_depth} under depth {expected}"));
        }
        let last = self.segments.last_key_value().map_or(0, |(no, _)| no.0);
        let no = SegmentNo(last + 1);
        self.segments.insert(no, Segment { no, conversation, parent, base_depth });
        Ok(no)
    }

    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()> {
        let segment = self.segment(turn.loc.segment)?;
        let first = TurnLoc { segment: segment.no, index: 0 };
        let next = match self.turns.contains_key(&first) {
            true => self.last_index(segment.no)? + 1,
            false => 0,
        };
        if segment.conversation != conversation || turn.loc.index != next {
            return violation(format!("turn {} does not end its segment", turn.id));
        }
        if turn.loc.index >= SEGMENT_TURNS || turn.depth != segment.base_depth + turn.loc.index {
            return violation(format!("turn {} has a wrong place or depth", turn.id));
        }
        let Some(owner) = self.conversations.get(&conversation) else {
            return violation(format!("turn {} has no conversation", turn.id));
        };
        if self.find_turn(&owner.project, &turn.id)?.is_some() {
            return violation(format!("turn {} is there already", turn.id));
        }
        self.turn_ids.insert((turn.id, turn.loc));
        let twins = self.find_hashes(conversation, &turn.hash.0, &turn.hash.0, 1)?;
        if !twins.is_empty() {
            return violation(format!("hash {} is there already", turn.hash));
        }
        self.hashes.insert((conversation, turn.hash.0, turn.loc));
        self.turns.insert(turn.loc, turn.clone());
        Ok(())
    }

    fn set_metadata(&mut self, loc: TurnLoc, metadata: &Metadata) -> Result<()> {
        match self.turns.get_mut(&loc) {
            Some(turn) => turn.metadata = metadata.clone(),
            None => return violation(format!("no turn at {loc:?}")),
        }
        Ok(())
    }

    fn purge_turn(&mut self, loc: TurnLoc, digest: &Digest) -> Result<()> {
        match self.turns.get_mut(&loc) {
            Some(turn) => {
                turn.content = Content::Purged(*digest);
                turn.metadata = Metadata::default();
            }
            None => return violation(format!("no turn at {loc:?}")),
        }
        Ok(())
    }

    fn insert_split(&mut self, split: &Split) -> Result<()> {
        for loc in [split.whole, split.left, split.right] {
            self.require_turn(split.conversation, loc)?;
        }
        match self.splits.insert((split.conversation, split.whole), *split) {
            None => Ok(()),
            Some(_) => violation(format!("{:?} is split already", split.whole)),
        }
    }

    fn delete_split(&mut self, conversation: ConversationKey, whole: TurnLoc) -> Result<()> {
        match self.splits.remove(&(conversation, whole)) {
            Some(_) => Ok(()),
            None => violation(format!("{whole:?} is not split")),
        }
    }

    fn insert_hidden(&mut self, hidden: &Hidden) -> Result<()> {
        for index in [hidden.from, hidden.to] {
            self.require_turn(hidden.conversation, TurnLoc { segment: hidden.segment, index })?;
        }
        if hidden.from > hidden.to || !self.hidden.insert(*hidden) {
            return violation(format!("{hidden:?} is empty or there already"));
        }
        Ok(())
    }

    fn delete_hidden(&mut self, conversation: ConversationKey, operation: u64) -> Result<()> {
        self.hidden
            .retain(|hidden| hidden.conversation != conversation || hidden.operation != operation);
        Ok(())
    }

    fn put_branch(&mut self, branch: &Branch) -> Result<()> {
        let older = self
            .branches
            .iter()
            .find(|(_, known)| known.id == branch.id && known.conversation == branch.conversation);
        if let Some((key, known)) = older {
            let fixed = |record: &Branch| (record.forked_from, record.created_at);
            if fixed(known) != fixed(branch) {
                return violation(format!("branch {}: an immutable field changed", branch.name));
            }
            let key = key.clone();
            self.branches.remove(&key);
        }
        let key = (branch.conversation, branch.name.clone());
        match self.branches.insert(key, branch.clone()) {
            None => Ok(()),
            Some(_) => violation(format!("two branches of the name {}", branch.name)),
        }
    }

    fn delete_branch(&mut self, conversation: ConversationKey, id: &BranchId) -> Result<()> {
        let before = self.branches.len();
        self.branches.retain(|_, branch| branch.conversation != conversation || branch.id != *id);
        match before - self.branches.len() {
            1 => Ok(()),
            _ => violation(format!("branch {id} is not there")),
        }
    }

    fn put_bookmark(&mut self, bookmark: &Bookmark) -> Result<()> {
        self.require_turn(bookmark.conversation, bookmark.turn)?;
        let key = (bookmark.project.clone(), bookmark.name.clone());
        self.bookmarks.insert(key, bookmark.clone());
        Ok(())
    }

    fn delete_bookmark(&mut self, project: &ProjectId, name: &Name) -> Result<()> {
        match self.bookmarks.remove(&(project.clone(), name.clone())) {
            Some(_) => Ok(()),
            None => violation(format!("bookmark {name} is not there")),
        }
    }

    fn insert_operation(&mut self, operation: &Operation) -> Result<()> {
        let last = self.last_operation(operation.conversation)?.map_or(0, |last| last.seq);
        if operation.seq != last + 1 {
            return violation(format!("operation {} follows {last}", operation.seq));
        }
        if let Some(first) = &operation.idempotency {
            let Some(owner) = self.conversations.get(&operation.conversation) else {
                return violation("an operation without a conversation");
            };
            if self.idempotent(&owner.project, &first.key)?.is_some() {
                return violation(format!("the key {} was used before", first.key));
            }
        }
        self.operations.push(operation.clone());
        Ok(())
    }

    fn set_undone(&mut self, conversation: ConversationKey, seq: u64, undone: bool) -> Result<()> {
        match self.position(conversation, seq) {
            Some(position) => self.operations[position].undone = undone,
            None => return violation(format!("operation {seq} is not there")),
        }
        Ok(())
    }

    fn purge_operation(&mut self, conversation: ConversationKey, seq: u64) -> Result<()> {
        match self.position(conversation, seq) {
            Some(position) => {
                let operation = &mut self.operations[position];
                operation.detail = Detail::Purged(operation.detail.digest());
            }
            None => return violation(format!("operation {seq} is not there")),
        }
        Ok(())
    }

    fn insert_record(&mut self, project: &ProjectId, record: &Record) -> Result<()> {
        if self.record(project, record.key())?.is_some() {
            return violation(format!("{} exists already", record.key()));
        }
        self.put_record(project, record)
    }

    fn put_record(&mut self, project: &ProjectId, record: &Record) -> Result<()> {
        if !self.projects.contains_key(project) {
            return violation(format!("a record of project {project}, which is not there"));
        }
        let key = record.key().to_bytes();
        if key.is_empty() || key.len() > KEY_BYTES {
            return violation(format!("a key of {} bytes", key.len()));
        }
        let before = self.record(project, record.key())?;
        self.change_index(project, before.as_ref(), Some(record))?;
        self.records
            .insert((project.clone(), record.key().family(), key), record.text().to_owned());
        Ok(())
    }

    fn delete_record(&mut self, project: &ProjectId, key: &RecordKey) -> Result<()> {
        let Some(before) = self.record(project, key)? else {
            return violation(format!("no {key} to remove"));
        };
        self.change_index(project, Some(&before), None)?;
        self.records.remove(&(project.clone(), key.family(), key.to_bytes()));
        Ok(())
    }

    fn insert_piece(
        &mut self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
        bytes: &[u8],
    ) -> Result<()> {
        let place = |nth| (project.clone(), *source, nth);
        if nth > 0 && self.pieces.get(&place(nth - 1)).is_none_or(|it| it.len() != PIECE_BYTES) {
            return violation(format!("piece {nth} of {source} does not follow a whole one"));
        }
        if bytes.len() > PIECE_BYTES || self.pieces.contains_key(&place(nth)) {
            return violation(format!("piece {nth} of {source} is too long or there already"));
        }
        self.pieces.insert(place(nth), bytes.to_vec());
        Ok(())
    }

    fn delete_pieces(&mut self, project: &ProjectId, source: &SourceId) -> Result<()> {
        self.pieces.retain(|(of, id, _), _| of != project || id != source);
        Ok(())
    }
}

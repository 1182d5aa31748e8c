//! The same small world over each store, and a few words to talk about it in.
//!
//! Trees are written as `a(b(c) d)`: each turn by what it says, its children in brackets.

use std::sync::Arc;

use tine_core::{ConversationId, ErrorKind, Limits, Message, Reference, Role, Timestamp, TurnId};
use tine_engine::{
    Append, Appended, BundleRecord, Call, Engine, Error, FixedEntropy, Fork, ForkPoint,
    ManualClock, NewConversation, PathQuery, TopologyQuery, TopologyRow, TurnRef,
};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};
use tine_testkit::stores::TempFolder;

pub struct World {
    pub engine: Engine,
    pub call: Call,
    pub folder: Option<TempFolder>,
}

/// Runs a test once over each store.
pub fn for_each_store(test: impl Fn(&World)) {
    test(&World::over(Arc::new(MemoryStore::new()), None));
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("an empty folder becomes a store");
    test(&World::over(Arc::new(store), Some(folder)));
}

pub fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub fn bot(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

pub fn reference(text: &str) -> Reference {
    Reference::parse(text).expect("a sound reference")
}

pub fn start() -> Timestamp {
    "2024-01-15T10:30:00Z".parse().expect("a sound time")
}

impl World {
    pub fn over(store: Arc<dyn Store>, folder: Option<TempFolder>) -> Self {
        World { folder, ..World::seeded(store, 1) }
    }

    pub fn seeded(store: Arc<dyn Store>, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(start(), 1));
        let entropy = Arc::new(FixedEntropy::new(seed));
        let engine = Engine::with(store, clock, entropy, Limits::default());
        World { engine, call: Call::by("tester"), folder: None }
    }

    /// A conversation with this id and nothing in it.
    pub fn talk(&self, id: &str) -> ConversationId {
        let new = NewConversation::named(id).expect("a sound id");
        self.engine.create_conversation(&self.call, new).expect("a new conversation").id
    }

    pub fn append(&self, request: Append) -> Appended {
        self.engine.append(&self.call, request).expect("an append that is accepted")
    }

    /// Says these texts in turn, person first, at the tip of `main`.
    pub fn say(&self, talk: &ConversationId, texts: &[&str]) -> Vec<TurnId> {
        ids(&self.append(Append::to(talk.clone(), spoken(texts))))
    }

    /// Says one thing below a turn, on a branch of that name.
    pub fn say_under(
        &self,
        talk: &ConversationId,
        parent: TurnId,
        branch: &str,
        message: Message,
    ) -> TurnId {
        let request = Append::to(talk.clone(), vec![message]).under(parent.into(), branch);
        ids(&self.append(request))[0]
    }

    pub fn fork_at(&self, talk: &ConversationId, turn: TurnId, name: &str) {
        self.fork(talk, ForkPoint::At(turn.into()), name);
    }

    pub fn fork(&self, talk: &ConversationId, point: ForkPoint, name: &str) {
        let name = tine_core::Name::new(name, &Limits::default()).ok();
        let fork = Fork { conversation: Some(talk.clone()), point, name };
        self.engine.fork(&self.call, fork).expect("a fork that is accepted");
    }

    pub fn turn(&self, turn: TurnId) -> TurnRef {
        TurnRef::of(turn)
    }

    /// What the path to a reference says.
    pub fn path(&self, talk: &ConversationId, to: &str) -> String {
        let query = PathQuery::of(talk.clone()).to(reference(to));
        let page = self.engine.path(&self.call, query).expect("a path that can be read");
        let said = page.turns.iter().map(|turn| match &turn.content {
            tine_store::Content::Kept(body) => body.preview(80),
            tine_store::Content::Purged(_) => "?".to_owned(),
        });
        said.collect::<Vec<_>>().join(" ")
    }

    pub fn rows(&self, talk: &ConversationId) -> Vec<TopologyRow> {
        let query = TopologyQuery::of(talk.clone());
        self.engine.topology(&self.call, query).expect("a tree that can be read").rows
    }

    /// The tree as shown.
    pub fn tree(&self, talk: &ConversationId) -> String {
        let rows = self.rows(talk);
        let first = rows.iter().filter(|row| row.parent.is_none());
        first.map(|row| drawn(&rows, row)).collect::<Vec<_>>().join(" ")
    }

    /// Every record of every conversation.
    pub fn export(&self) -> Vec<BundleRecord> {
        let mut records = vec![];
        let page = tine_engine::Page::default();
        let all = self.engine.conversations(&self.call, true, page).expect("a listing");
        for conversation in all.items {
            let mut keep = |record| {
                records.push(record);
                Ok(())
            };
            self.engine.export(&self.call, &conversation.id, &mut keep).expect("an export");
        }
        records
    }

    /// The call must be refused with this kind, and leave every record as it was.
    pub fn refused<T: std::fmt::Debug>(
        &self,
        kind: ErrorKind,
        work: impl FnOnce(&Engine, &Call) -> Result<T, Error>,
    ) -> Error {
        let before = self.export();
        let error = work(&self.engine, &self.call).expect_err("this must be refused");
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(self.export(), before, "refused, and changed something: {error}");
        error
    }

    pub fn verified(&self) {
        let found = self.engine.verify().expect("a check that runs");
        assert_eq!(found.problems, vec![]);
    }
}

pub fn ids(appended: &Appended) -> Vec<TurnId> {
    appended.turns.iter().map(|turn| turn.id).collect()
}

pub fn spoken(texts: &[&str]) -> Vec<Message> {
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    texts.iter().zip(roles).map(|(text, role)| Message::text(role, *text)).collect()
}

fn drawn(rows: &[TopologyRow], row: &TopologyRow) -> String {
    let below = row.children.iter().filter_map(|id| rows.iter().find(|row| row.id == *id));
    let below: Vec<String> = below.map(|child| drawn(rows, child)).collect();
    if below.is_empty() {
        return row.preview.clone();
    }
    format!("{}({})", row.preview, below.join(" "))
}

//! Conversations with a past, made by the engine in either store.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tine_core::json::{self, Json, object};
use tine_core::{ConversationId, Limits, Message, Name, Reference, Role, Status, TurnId};
use tine_engine::{
    Append, Call, ConversationPatch, Delete, DeleteMode, Derive, Edit, Engine, FixedEntropy, Fork,
    ForkPoint, Imported, ManualClock, MetadataPatch, MoveBranch, NewConversation, Purge,
    PurgeTarget, SplitTurn, TurnRef,
};
use tine_formats::bundle::{BundleError, read_bundle, read_bundle_in_place, write_bundle};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};

use super::sample::AWKWARD;

pub fn call() -> Call {
    Call::by("Ana")
}

pub fn id(text: &str) -> ConversationId {
    ConversationId::new(text, &Limits::default()).unwrap()
}

pub fn name(text: &str) -> Name {
    Name::new(text, &Limits::default()).unwrap()
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

/// An engine whose ids and times are the same in every run with the same seed.
pub fn engine(store: Arc<dyn Store>, seed: u64) -> Engine {
    let start = "2024-01-15T10:30:00Z".parse().unwrap();
    let clock = Arc::new(ManualClock::new(start, 250));
    Engine::with(store, clock, Arc::new(FixedEntropy::new(seed)), Limits::default())
}

pub fn memory(seed: u64) -> Engine {
    engine(Arc::new(MemoryStore::new()), seed)
}

/// A folder that is removed with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tine-formats-{}-{count}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    pub fn embedded(&self, seed: u64) -> Engine {
        engine(Arc::new(SqliteStore::open(&self.0).unwrap()), seed)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn export(engine: &Engine, conversations: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let ids: Vec<ConversationId> = conversations.iter().copied().map(id).collect();
    write_bundle(engine, &call(), &ids, &mut out).unwrap();
    out
}

/// Imports as from a pipe.
pub fn import(engine: &Engine, bundle: &[u8]) -> Result<Imported, BundleError> {
    let mut input = bundle;
    read_bundle(engine, None, &mut input)
}

/// Imports as from a file.
pub fn import_file(engine: &Engine, bundle: &[u8]) -> Result<Imported, BundleError> {
    read_bundle_in_place(engine, None, &mut Cursor::new(bundle))
}

pub fn say(engine: &Engine, conversation: &str, texts: &[&str]) -> Vec<TurnId> {
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    let messages = texts.iter().zip(roles).map(|(text, role)| Message::text(role, *text)).collect();
    let done = engine.append(&call(), Append::to(id(conversation), messages)).unwrap();
    done.turns.iter().map(|turn| turn.id).collect()
}

pub fn create(engine: &Engine, conversation: &str) {
    let config = json::parse(br#"{"n":18446744073709551615,"t":1.0}"#, 8).unwrap();
    let request = NewConversation {
        id: Some(id(conversation)),
        system_prompt: Some("You plan trips.\n\u{1}🌏".to_owned()),
        config,
        title: Some("桜".to_owned()),
        metadata: object([("team", "a".into())]),
    };
    engine.create_conversation(&call(), request).unwrap();
}

pub fn purge(engine: &Engine, target: PurgeTarget) {
    let ask = Purge { target: target.clone(), confirm: None };
    let asked = engine.purge(&call(), ask).unwrap();
    engine.purge(&call(), Purge { target, confirm: asked.confirm }).unwrap();
}

/// `trip`, with every operation there is, and three conversations that hang on it.
pub fn everything(engine: &Engine) -> Vec<&'static str> {
    let call = call();
    let here = |turn: TurnId| TurnRef::within(id("trip"), turn);
    create(engine, "trip");
    let first = say(engine, "trip", &["When to visit Tokyo?", "Late March 🌸", "And Kyoto?"]);

    // Blocks, a tool, a stream that broke off, a key, metadata of every sort.
    let mut awkward = Message::text(Role::Assistant, "x");
    let blocks = json::parse(AWKWARD.as_bytes(), 64).unwrap();
    awkward.body =
        tine_core::Body::from_content(blocks, Role::Assistant, &Limits::default()).unwrap();
    awkward.status = Status::Partial;
    let look = object([
        ("type", "tool-use".into()),
        ("id", "call 1".into()),
        ("name", "look".into()),
        ("parameters", object([("where", "京都".into())])),
    ]);
    let mut look_up = awkward.clone();
    look_up.body =
        tine_core::Body::from_content(vec![look].into(), Role::Assistant, &Limits::default())
            .unwrap();
    look_up.status = Status::Complete;
    let tool = Message::tool("call 1", "");
    let request = Append::to(id("trip"), vec![look_up, tool, awkward]);
    let keyed = call.clone().with_key("conversation-trip-1-1705314600000");
    engine.append(&keyed, request.clone()).unwrap();
    engine.append(&keyed, request).unwrap();
    let patch = MetadataPatch {
        title: Some(Some("Tokyo".to_owned())),
        auto_title: Some(Some("tokyo trip".to_owned())),
        add_tags: vec!["b".to_owned(), "a".to_owned()],
        custom_data: Some(Json::from(vec![Json::from(u64::MAX)])),
        source_info: Some(object([("model", "echo".into())])),
        ..MetadataPatch::default()
    };
    engine.patch_metadata(&call, here(first[1]), patch).unwrap();

    // Branches: a fork, an edit, a revert, a restore, a rename, a removal.
    let fork = |point, label: &str| {
        let request = Fork { conversation: Some(id("trip")), point, name: Some(name(label)) };
        engine.fork(&call, request).unwrap()
    };
    fork(ForkPoint::At(first[1].into()), "alt");
    fork(ForkPoint::Before(first[0].into()), "empty");
    fork(ForkPoint::At(reference("main")), "short-lived");
    engine.delete_branch(&call, &id("trip"), "short-lived").unwrap();
    let body = tine_core::Body::Text("And Osaka? Or Nara?".to_owned());
    let edit = Edit { turn: here(first[2]), body, branch: Some("alt".to_owned()), reuse: true };
    let osaka = engine.edit(&call, edit).unwrap().turn.id;
    let back = |to: Option<Reference>| MoveBranch {
        conversation: id("trip"),
        branch: "main".to_owned(),
        to,
        expected_tip: None,
    };
    engine.revert(&call, back(Some(first[2].into()))).unwrap();
    engine.restore(&call, back(None)).unwrap();
    engine.revert(&call, back(Some(reference("main~1")))).unwrap();
    engine.rename_branch(&call, &id("trip"), "alt", name("西")).unwrap();

    // Splits, deletions of both sorts, bookmarks, undo.
    engine.set_bookmark(&call, name("best"), here(first[1])).unwrap();
    engine.set_bookmark(&call, name("asked"), here(osaka)).unwrap();
    engine.split(&call, SplitTurn { turn: here(osaka), offset: 10 }).unwrap();
    let more = Append::to(id("trip"), vec![Message::text(Role::Assistant, "Nara.")]);
    let below = more.under(reference("西"), "西");
    let nara = engine.append(&call, below).unwrap().turns[0].id;
    let delete = |turn, mode| Delete { turn: here(turn), mode, force: false, dry_run: false };
    let lost = engine
        .append(
            &call,
            Append::to(
                id("trip"),
                vec![Message::text(Role::User, "No"), Message::text(Role::Assistant, "!")],
            )
            .under(nara.into(), "lost"),
        )
        .unwrap();
    engine.delete(&call, delete(lost.turns[0].id, DeleteMode::Cascade)).unwrap();
    engine.delete(&call, delete(nara, DeleteMode::Reparent)).unwrap();
    let undone = say(engine, "trip", &["Never mind."]);
    engine.undo(&call, &id("trip"), None).unwrap();
    say(engine, "trip", &["One."]);
    engine.undo(&call, &id("trip"), None).unwrap();
    engine.redo(&call, &id("trip"), None).unwrap();
    assert_eq!(undone.len(), 1);

    // Erasure of a turn that another one follows.
    let secret = say(engine, "trip", &["my number is 555", "Noted."]);
    purge(engine, PurgeTarget::Turn(here(secret[0])));

    // Another root, an archived conversation, an erased one.
    let derive = Derive {
        conversation: id("trip"),
        id: Some(id("trip-2")),
        system_prompt: Some("Be brief.".to_owned()),
        config: None,
        at: Some(first[1].into()),
    };
    engine.derive(&call, derive).unwrap();
    let patch = ConversationPatch { archived: Some(true), ..ConversationPatch::default() };
    engine.patch_conversation(&call, &id("trip-2"), patch).unwrap();
    create(engine, "erased");
    say(engine, "erased", &["secret", "indeed"]);
    purge(engine, PurgeTarget::Conversation(id("erased")));
    engine.create_conversation(&call, NewConversation::named("empty").unwrap()).unwrap();
    vec!["trip", "trip-2", "erased", "empty"]
}

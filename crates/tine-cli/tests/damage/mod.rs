//! Damaged stores: reports and recovery.

mod access;
mod files;
pub mod flips;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tine_core::json::{self, Json};
use tine_core::{
    Body, ConversationId, Limits, Message, Name, ProjectId, Reference, Role, Timestamp,
};
use tine_engine::{
    Append, Call, ConversationPatch, Delete, DeleteMode, Derive, Edit, Engine, FixedEntropy, Fork,
    ForkPoint, LeftOut, ManualClock, MetadataPatch, MoveBranch, NewConversation, Page, Purge,
    PurgeTarget, Repaired, SplitTurn, TurnRef,
};
use tine_formats::bundle::write_bundle;
use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{OpenMode, PackOptions, StoreError};

/// Bytes in a page of a store's database.
pub const PAGE: usize = 16_384;

/// A temporary folder where syncs cost nothing, if there is such a place.
pub fn in_memory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// An engine over a store that is there; the clock and the ids are the same in every run.
pub fn engine(folder: &Path, mode: OpenMode) -> Result<Engine, StoreError> {
    let store = SqliteStore::open_with(folder, OpenOptions { mode, vfs: None })?;
    let start: Timestamp = "2024-01-15T10:30:00Z".parse().unwrap();
    let clock = Arc::new(ManualClock::new(start, 1_000));
    Ok(Engine::with(Arc::new(store), clock, Arc::new(FixedEntropy::new(1)), Limits::default()))
}

pub fn call(project: &str) -> Call {
    Call::by("tester").in_project(ProjectId::new(project, &Limits::default()).unwrap())
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text, &Limits::default()).unwrap()
}

fn parse(text: &str) -> Json {
    json::parse(text.as_bytes(), json::MAX_DEPTH).unwrap()
}

/// A conversation in which everything has been done once.
fn eventful(engine: &Engine, call: &Call, id: &str) {
    let request = NewConversation {
        id: Some(ConversationId::new(id, &Limits::default()).unwrap()),
        system_prompt: Some(format!("You talk about {id}. Be brief.")),
        config: parse(r#"{"model":"m-1","temperature":0.5}"#),
        title: Some(format!("About {id}")),
        metadata: parse(r#"{"team":["a","b"]}"#),
    };
    let conversation = engine.create_conversation(call, request).unwrap().id;
    let within = |turn: &str| TurnRef::within(conversation.clone(), reference(turn));
    let say = |texts: &[&str]| -> Vec<Message> {
        let roles = [Role::User, Role::Assistant];
        texts
            .iter()
            .enumerate()
            .map(|(at, text)| Message::text(roles[at % 2], format!("{text} ({id})")))
            .collect()
    };
    let append = |messages| Append::to(conversation.clone(), messages);
    let key = format!("key-{id}");
    engine
        .append(&call.clone().with_key(key), append(say(&["Where to?", "To Kyoto, in March."])))
        .unwrap();
    let long = "a long answer, word by word; ".repeat(400);
    engine.append(call, append(say(&["Tell me everything.", &long]))).unwrap();
    let blocks = parse(r#"[{"type":"text","text":"two"},{"type":"data","of":[1,2.5,null]}]"#);
    let mut rich = Message::text(Role::User, "");
    rich.body = Body::from_content(blocks, Role::User, &Limits::default()).unwrap();
    engine.append(call, append(vec![rich, Message::tool("call-1", "found 3")])).unwrap();
    let fork = Fork {
        conversation: Some(conversation.clone()),
        point: ForkPoint::At(reference("main~3")),
        name: Some(name("other")),
    };
    engine.fork(call, fork).unwrap();
    let mut on_other = append(say(&["And in May?", "Green, and warm."]));
    on_other.branch = Some("other".to_owned());
    engine.append(call, on_other).unwrap();
    let patch = MetadataPatch {
        title: Some(Some("An answer".to_owned())),
        add_tags: vec!["kept".to_owned(), "spring".to_owned()],
        ..MetadataPatch::default()
    };
    engine.patch_metadata(call, within("main~4"), patch).unwrap();
    engine.set_bookmark(call, name(&format!("mark-{id}")), within("other~1")).unwrap();
    let body = Body::Text(format!("And in June? ({id})"));
    let edit = Edit { turn: within("other~1"), body, branch: None, reuse: true };
    engine.edit(call, edit).unwrap();
    engine.split(call, SplitTurn { turn: within("other"), offset: 6 }).unwrap();
    let delete =
        |turn: &str, mode| Delete { turn: within(turn), mode, force: true, dry_run: false };
    engine.append(call, append(say(&["One.", "Two.", "Three."]))).unwrap();
    engine.delete(call, delete("main~1", DeleteMode::Reparent)).unwrap();
    engine.append(call, append(say(&["Four.", "Five."]))).unwrap();
    engine.delete(call, delete("main", DeleteMode::Cascade)).unwrap();
    engine.append(call, append(say(&["Six."]))).unwrap();
    engine.undo(call, &conversation, None).unwrap();
    let back = MoveBranch {
        conversation: conversation.clone(),
        branch: "main".to_owned(),
        to: Some(reference("main~1")),
        expected_tip: None,
    };
    engine.revert(call, back).unwrap();
    engine.append(call, append(say(&["Seven.", "Eight."]))).unwrap();
    let patch = ConversationPatch {
        metadata: Some(parse(r#"{"team":["c"]}"#)),
        ..ConversationPatch::default()
    };
    engine.patch_conversation(call, &conversation, patch).unwrap();
}

/// A plain conversation of some length.
fn plain(engine: &Engine, call: &Call, id: &str, turns: usize) {
    let conversation =
        engine.create_conversation(call, NewConversation::named(id).unwrap()).unwrap().id;
    for at in 0..turns {
        let role = [Role::User, Role::Assistant][at % 2];
        let text =
            format!("turn {at} of {id}: {}", "some words of ordinary length ".repeat(at % 9));
        let append = Append::to(conversation.clone(), vec![Message::text(role, text)]);
        engine.append(call, append).unwrap();
    }
}

/// A closed store with several conversations in two projects.
pub fn sample(folder: &Path) {
    let engine = engine(folder, OpenMode::Create).unwrap();
    let (here, there) = (call("default"), call("research"));
    eventful(&engine, &here, "trip");
    plain(&engine, &here, "diary", 60);
    eventful(&engine, &there, "study");
    for at in 0..8 {
        plain(&engine, &here, &format!("note-{at}"), 6);
    }
    plain(&engine, &there, "essay", 30);
    let derive = Derive {
        conversation: ConversationId::new("trip", &Limits::default()).unwrap(),
        id: Some(ConversationId::new("trip-2", &Limits::default()).unwrap()),
        system_prompt: Some("Be verbose.".to_owned()),
        config: None,
        at: Some(reference("main")),
    };
    engine.derive(&here, derive).unwrap();
    let diary = ConversationId::new("diary", &Limits::default()).unwrap();
    let target = || PurgeTarget::Turn(TurnRef::within(diary.clone(), reference("main~20")));
    let asked = engine.purge(&here, Purge { target: target(), confirm: None }).unwrap();
    engine.purge(&here, Purge { target: target(), confirm: asked.confirm }).unwrap();
    // Some turns are packed, some are in their places, and some are not there yet.
    let packed = engine.store().pack(PackOptions { keep_recent: 16, shortest_run: 4 }).unwrap();
    assert!(packed.turns > 0);
    plain(&engine, &here, "late", 40);
    eventful(&engine, &there, "later");
}

/// Every conversation that is listed, as a bundle of its own.
pub fn exports(engine: &Engine) -> Result<BTreeMap<String, Vec<u8>>, Box<dyn std::error::Error>> {
    let mut found = BTreeMap::new();
    for project in ["default", "research", "recovered-1", "recovered-2"] {
        let call = call(project);
        for listed in engine.conversations(&call, true, Page::default())?.items {
            let mut bundle = Vec::new();
            write_bundle(engine, &call, std::slice::from_ref(&listed.id), &mut bundle)?;
            found.insert(format!("{project}/{}", listed.id), bundle);
        }
    }
    Ok(found)
}

/// Repairs a store into a new folder, as the command does.
pub fn repair(from: &Path, to: &Path) -> (Engine, Repaired, Vec<LeftOut>) {
    let scratch = to.with_extension("scratch");
    let salvaged = tine_sqlite::salvage(from, &scratch).unwrap();
    let damaged = SqliteStore::open(&scratch).unwrap();
    let engine = engine(to, OpenMode::Create).unwrap();
    let mut left_out = Vec::new();
    let done = engine
        .repair(&call("default"), &damaged, &salvaged.lost, &mut |record| {
            left_out.push(record);
            Ok(())
        })
        .unwrap();
    drop(damaged);
    fs::remove_dir_all(scratch).unwrap();
    (engine, done, left_out)
}

/// Copies a closed store.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

//! Export and import: a whole tree out of one store and into another.

use std::sync::Arc;

use tine_core::{Body, ErrorKind, Limits, Name, ProjectId, TurnHash};
use tine_engine::{BundleRecord, Call, MetadataPatch, SplitTurn};
use tine_store::{Content, MemoryStore, Turn};

use crate::world::{World, bot, for_each_store, user};

/// A tree with a bit of everything.
fn rich(world: &World) -> tine_core::ConversationId {
    let talk = world.talk("talk");
    let said = world.say(&talk, &["a", "bc", "d"]);
    let side = world.say_under(&talk, said[1], "side", user("e"));
    world.say_under(&talk, side, "side", bot("f"));
    let name = Name::new("here", &Limits::default()).expect("a sound name");
    world.engine.set_bookmark(&world.call, name, world.turn(side)).expect("a bookmark");
    let split = SplitTurn { turn: world.turn(said[1]), offset: 1 };
    world.engine.split(&world.call, split).expect("a split");
    let patch = MetadataPatch { add_tags: vec!["x".to_owned()], ..Default::default() };
    world.engine.patch_metadata(&world.call, world.turn(said[0]), patch).expect("a tag");
    world.say(&talk, &["gone"]);
    world.engine.undo(&world.call, &talk, None).expect("an undo");
    crate::delete::cascade(world, said[2]);
    talk
}

fn import(world: &World, records: Vec<BundleRecord>) -> tine_engine::Result<tine_engine::Imported> {
    world.engine.import(None, &mut records.into_iter().map(Ok))
}

#[test]
fn an_export_imports_into_either_store_and_comes_out_equal() {
    for_each_store(|world| {
        let talk = rich(world);
        let records = world.export();
        for_each_store(|fresh| {
            let imported = import(fresh, records.clone()).expect("an import");
            assert_eq!(imported.conversations, 1);
            assert_eq!(fresh.export(), records);
            assert_eq!(fresh.tree(&talk), world.tree(&talk));
            assert_eq!(fresh.path(&talk, "here"), world.path(&talk, "here"));
            fresh.verified();
        });
    });
}

#[test]
fn work_can_continue_after_an_import_undo_included() {
    for_each_store(|world| {
        let talk = rich(world);
        let fresh = World::over(Arc::new(MemoryStore::new()), None);
        import(&fresh, world.export()).expect("an import");
        for engine in [&world.engine, &fresh.engine] {
            engine.undo(&world.call, &talk, None).expect("an undo");
            engine.redo(&world.call, &talk, None).expect("a redo");
        }
        fresh.say(&talk, &["more"]);
        world.say(&talk, &["more"]);
        assert_eq!(fresh.tree(&talk), world.tree(&talk));
        fresh.verified();
    });
}

#[test]
fn importing_the_same_bundle_again_changes_nothing() {
    for_each_store(|world| {
        rich(world);
        let records = world.export();
        let imported = import(world, records.clone()).expect("an import");
        assert_eq!((imported.unchanged, imported.conversations, imported.turns), (1, 0, 0));
        assert_eq!(world.export(), records);
    });
}

#[test]
fn a_longer_bundle_of_the_same_conversation_extends_it() {
    for_each_store(|world| {
        let talk = rich(world);
        let fresh = World::over(Arc::new(MemoryStore::new()), None);
        import(&fresh, world.export()).expect("an import");
        world.say(&talk, &["more", "and more"]);
        let imported = import(&fresh, world.export()).expect("an import");
        assert_eq!((imported.extended, imported.turns), (1, 2));
        assert_eq!(fresh.export(), world.export());
    });
}

#[test]
fn an_altered_turn_is_refused_and_nothing_is_imported() {
    for_each_store(|world| {
        rich(world);
        let mut records = world.export();
        let turn = records.iter_mut().find_map(|record| match record {
            BundleRecord::Turn { turn, .. } => Some(&mut turn.content),
            _ => None,
        });
        *turn.expect("a turn") = Content::Kept(Body::Text("something else".to_owned()));
        let fresh = World::over(Arc::new(MemoryStore::new()), None);
        let error = import(&fresh, records).expect_err("the hash does not fit");
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error}");
        assert_eq!(fresh.export(), vec![]);
    });
}

#[test]
fn a_cut_or_altered_log_is_refused() {
    for_each_store(|world| {
        rich(world);
        let records = world.export();
        let without = |n: usize| {
            let mut left = records.clone();
            let at = left
                .iter()
                .position(
                    |record| matches!(record, BundleRecord::Operation(it) if it.seq == n as u64),
                )
                .expect("an entry of the log");
            left.remove(at);
            left
        };
        let fresh = World::over(Arc::new(MemoryStore::new()), None);
        let error = import(&fresh, without(3)).expect_err("the chain is broken");
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error}");
        let mut altered = records.clone();
        for record in &mut altered {
            if let BundleRecord::Operation(operation) = record
                && operation.seq == 2
            {
                operation.actor = "another actor".to_owned();
            }
        }
        let error = import(&fresh, altered).expect_err("the hash does not fit");
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error}");
        assert_eq!(fresh.export(), vec![]);
    });
}

#[test]
fn a_bundle_can_be_imported_into_another_project() {
    for_each_store(|world| {
        let talk = rich(world);
        let other = ProjectId::new("other", &Limits::default()).expect("a sound id");
        let mut records = world.export().into_iter().map(Ok);
        let call = Call::by("tester").in_project(other.clone());
        let fresh = World::over(Arc::new(MemoryStore::new()), None);
        fresh.engine.import(Some(&other), &mut records).expect("an import");
        assert!(fresh.engine.conversation(&call, &talk).is_ok());
        assert!(fresh.engine.conversation(&fresh.call, &talk).is_err());
    });
}

#[test]
fn a_diverged_conversation_is_not_overwritten_and_the_import_reports_a_conflict() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        let start = world.export();
        world.say(&talk, &["b"]);
        for same_beginning in [true, false] {
            let other = World::seeded(Arc::new(MemoryStore::new()), 2);
            if same_beginning {
                import(&other, start.clone()).expect("an import");
            } else {
                other.talk("talk");
                other.say(&talk, &["a"]);
            }
            other.say(&talk, &["something else"]);
            let before = other.export();
            let answer = import(&other, world.export());
            assert!(answer.is_err(), "two histories of one conversation: {answer:?}");
            assert_eq!(other.export(), before);
        }
    });
}

#[test]
fn hashes_can_be_recomputed_from_an_export_alone() {
    for_each_store(|world| {
        rich(world);
        let mut hashes: std::collections::HashMap<_, TurnHash> = Default::default();
        for record in world.export() {
            let BundleRecord::Turn { parent, turn } = record else { continue };
            let Turn { id, hash, role, content, tool_call_id, created_at, .. } = turn;
            let Content::Kept(body) = content else { panic!("nothing was erased") };
            let above = parent.map(|parent| hashes[&parent]);
            let call = tool_call_id.as_deref();
            let again = tine_core::hash::turn_hash(above.as_ref(), role, &body, call, created_at);
            assert_eq!(hash, again);
            hashes.insert(id, hash);
        }
        assert!(hashes.len() >= 8);
    });
}

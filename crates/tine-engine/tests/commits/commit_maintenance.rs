//! Commits and the rest of the engine: deleting, erasing, checking, carrying over.

use std::sync::Arc;

use tine_core::sign::PrivateKey;
use tine_core::{Commit, Digest, ErrorKind, Json};
use tine_engine::{
    BundleRecord, CommitQuery, Delete, DeleteMode, NewCommit, Page, Purge, PurgeTarget, TurnRef,
};
use tine_store::{Family, MemoryStore, Record, RecordKey, RecordQuery, Store};

use crate::world::{World, for_each_store, user};

fn commits(world: &World) -> Vec<(Digest, String)> {
    let of_commits = |record| match record {
        BundleRecord::Record(record) => match record.key() {
            RecordKey::Commit(hash) => Some((hash.0, record.text().to_owned())),
            _ => None,
        },
        _ => None,
    };
    world.export().into_iter().filter_map(of_commits).collect()
}

#[test]
fn a_turn_that_a_commit_covers_is_deleted_by_force_alone() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["one", "two", "three"]);
        let made = world.commit(&talk, "main", "all of it");
        let delete = |force| Delete {
            turn: TurnRef::of(said[1]),
            mode: DeleteMode::Reparent,
            force,
            dry_run: false,
        };
        let error =
            world.refused(ErrorKind::Protected, |engine, call| engine.delete(call, delete(false)));
        let listed = error.details().references;
        assert_eq!(listed.len(), 1, "{error}");
        assert_eq!((listed[0].what.as_str(), &listed[0].name), ("commit", &made.hash.to_string()));
        world.engine.delete(&world.call, delete(true)).expect("a deletion by force");
        world.say(&talk, &["four"]);
        world.commit(&talk, "main", "after a tombstone");
        world.verified();
    });
}

#[test]
fn an_erasure_removes_the_facets_of_every_commit_that_covers_the_turn() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["My sister Marie Curie lives in Zanzibar."]);
        let trip = world.trip(said[0], &[("city", "Zanzibar".into())]);
        let first = world.commit(&talk, "main", "first");
        world.say(&talk, &["Something else."]);
        let second = world.commit(&talk, "main", "second");
        let knows =
            |world: &World, word: &str| commits(world).iter().any(|(_, it)| it.contains(word));
        assert!(knows(world, "Zanzibar"));
        assert!(second.commit.facets.as_ref().expect("facets").state.facts.contains_key(&trip));
        let purge = |confirm| Purge { target: PurgeTarget::Turn(TurnRef::of(said[0])), confirm };
        let asked = world.engine.purge(&world.call, purge(None)).expect("a question");
        world.engine.purge(&world.call, purge(asked.confirm)).expect("an erasure");
        assert!(!knows(world, "Zanzibar") && !knows(world, "Curie"));
        let left = world.engine.commit_by_hash(&world.call, &first.hash.to_string());
        let left = left.expect("the skeleton").commit;
        assert_eq!((left.facets, left.message.as_str()), (None, "first"));
        world.verified();
        // Further commits are made on top of what is left.
        world.say(&talk, &["And so on."]);
        assert_eq!(world.commit(&talk, "main", "third").commit.parents, vec![second.hash]);
        world.verified();
    });
}

#[test]
fn commits_travel_with_their_conversation_and_are_checked_on_arrival() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["Plan a trip to Tokyo."]);
        world.trip(said[0], &[("city", "Tokyo".into())]);
        let made = world.commit(&talk, "main", "first");
        world.say_under(&talk, said[0], "side", user("Or Kyoto."));
        world.merge(&talk, "side", "main");
        let key = PrivateKey::from_random([7; 32]);
        let hash = made.hash.to_string();
        let signed = world.engine.sign_commit(&world.call, &hash, &key.public(), &key.sign(&hash));
        assert!(signed.expect("a signature").signature.expect("it is there").valid);
        let records = world.export();
        let other = World::over(Arc::new(MemoryStore::new()), None);
        let mut all = records.iter().cloned().map(Ok);
        other.engine.import(None, &mut all).expect("an import");
        assert_eq!(other.export(), records);
        other.verified();
        let query = CommitQuery { conversation: Some(talk.clone()), branch: Some("main".into()) };
        let listed = other.engine.commits(&other.call, query, Page::default()).expect("commits");
        assert_eq!(listed.items.len(), 3);
        // Every commit is what its hash says, and a changed one is refused.
        for (key, text) in commits(world) {
            assert_eq!(Digest::of(text.as_bytes()), key);
        }
        let tampered = records.into_iter().map(|record| match record {
            BundleRecord::Record(record) if record.key().family() == Family::Commit => {
                let text = record.text().replace("\"message\":\"first\"", "\"message\":\"worse\"");
                BundleRecord::Record(Record::verbatim(record.key().clone(), text))
            }
            other => other,
        });
        let third = World::over(Arc::new(MemoryStore::new()), None);
        let refused = third.engine.import(None, &mut tampered.map(Ok));
        let error = refused.expect_err("a damaged bundle").to_string();
        assert!(error.contains("its hash does not match"), "{error}");
        // What was undone in the meantime is undone there as well.
        world.say(&talk, &["More."]);
        world.commit(&talk, "main", "to be undone");
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let newer = world.export();
        other.engine.import(None, &mut newer.iter().cloned().map(Ok)).expect("an update");
        assert_eq!(other.export(), newer);
    });
}

#[test]
fn a_signature_that_does_not_fit_is_refused() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        world.say(&talk, &["one"]);
        let made = world.commit(&talk, "main", "first");
        let (mine, other) = (PrivateKey::from_random([1; 32]), PrivateKey::from_random([2; 32]));
        let hash = made.hash.to_string();
        let sign = |key: &str, value: &str| {
            world.engine.sign_commit(&world.call, &hash, key, value).map_err(|error| error.kind())
        };
        assert_eq!(sign(&mine.public(), &other.sign(&hash)), Err(ErrorKind::Invalid));
        assert_eq!(sign("none", "at all"), Err(ErrorKind::Invalid));
        assert!(sign(&mine.public(), &mine.sign(&hash)).is_ok());
        assert!(sign(&mine.public(), &mine.sign(&hash)).is_ok(), "the same again changes nothing");
        assert_eq!(sign(&other.public(), &other.sign(&hash)), Err(ErrorKind::Conflict));
        world.verified();
    });
}

/// Every byte of every record of commits and rings, flipped one at a time, is found and named.
#[test]
fn a_flipped_byte_in_a_commit_is_found_and_named() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let world = World::over(Arc::clone(&store), None);
    let talk = world.talk("trip");
    let said = world.say(&talk, &["Plan a trip to Tokyo."]);
    world.trip(said[0], &[("city", "Tokyo".into())]);
    world.commit(&talk, "main", "first");
    let project = world.call.project.clone();
    let families = [Family::Commit, Family::CommitListing, Family::CommitHead, Family::Rings];
    let mut flips = 0;
    for family in families {
        let mut found = Vec::new();
        let all = RecordQuery::all(family);
        store
            .read(&mut |records| {
                found = records.records(&project, &all, 10)?;
                Ok(())
            })
            .expect("records");
        assert!(!found.is_empty(), "{family:?}");
        for record in found {
            for at in (0..record.text().len()).step_by(7) {
                let mut bytes = record.text().as_bytes().to_vec();
                bytes[at] ^= 1;
                let Ok(text) = String::from_utf8(bytes) else {
                    continue;
                };
                let put = |text: String| {
                    let project = project.clone();
                    let changed = Record::verbatim(record.key().clone(), text);
                    let job = move |records: &mut dyn tine_store::Write| {
                        records.put_record(&project, &changed)?;
                        Ok(tine_store::Verdict::Commit)
                    };
                    store.write(Box::new(job)).expect("a write");
                };
                put(text.clone());
                let problems = world.engine.verify().expect("a check").problems;
                // JSON that means the same is no damage: listed entries are compared by meaning.
                assert!(!problems.is_empty(), "{family:?} at {at}: {text}");
                put(record.text().to_owned());
                flips += 1;
            }
        }
    }
    assert!(flips > 50, "{flips}");
    world.verified();
}

#[test]
fn a_commit_says_the_same_in_its_json() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["Plan a trip to Tokyo.", "Let's go with Kyoto."]);
        world.trip(said[0], &[("city", "Tokyo".into()), ("nights", 3_u64.into())]);
        world.trip(said[1], &[("city", "Kyoto".into()), ("nights", Json::Null)]);
        let request = NewCommit { author: Some("Ada".into()), ..NewCommit::of(talk, "both") };
        let made = world.engine.commit(&world.call, request).expect("a commit").commit;
        assert_eq!(Commit::from_json(&made.to_json()), Some(made.clone()));
        assert_eq!(made.author, "Ada");
    });
}

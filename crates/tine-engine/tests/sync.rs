//! Two stores that take over from each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tine_core::{ConversationId, Json, Limits, Name, TurnId};
use tine_engine::{
    Append, Call, Delete, DeleteMode, DeltaScope, End, Error, MetadataPatch, NewCommit,
    NewRelationship, Page, Pulled, Purge, PurgeTarget, RelationshipQuery, Renamed, SplitTurn,
    TurnRef, carry,
};
use tine_store::{Job, MemoryStore, Read, Store, StoreError};

use crate::world::{World, bot, for_each_store, spoken, user};

pub(crate) fn another(seed: u64) -> World {
    World::seeded(Arc::new(MemoryStore::new()), seed)
}

pub(crate) fn pull(to: &World, from: &World, talk: &ConversationId) -> Pulled {
    let ends = [from, to].map(|side| side.engine.log_end(&to.call, talk).expect("a look"));
    let done = carry(&from.engine, &to.engine, &to.call, talk, ends.into()).expect("a pull");
    let problems = to.engine.verify().expect("a check").problems;
    assert!(problems.is_empty(), "{problems:?}");
    done
}

/// Both ways.
pub(crate) fn sync(here: &World, there: &World, talk: &ConversationId) {
    pull(here, there, talk);
    pull(there, here, talk);
}

#[test]
fn missing_records_are_transferred_and_both_sides_hold_the_same() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let said = here.say(&talk, &["a", "b", "c"]);
        assert!(pull(&there, here, &talk).new);
        assert_eq!(there.export(), here.export());
        assert_eq!(pull(&there, here, &talk), Pulled::default(), "again there is nothing");

        // Every kind of change after the shared part, also to records made before.
        here.say_under(&talk, said[0], "other", bot("x"));
        let tags = MetadataPatch { add_tags: vec!["good".into()], ..MetadataPatch::default() };
        here.engine.patch_metadata(&here.call, TurnRef::of(said[1]), tags).unwrap();
        let split = SplitTurn { turn: TurnRef::of(here.say(&talk, &["two words"])[0]), offset: 3 };
        here.engine.split(&here.call, split).unwrap();
        let turn = TurnRef::of(said[2]);
        let mode = DeleteMode::Reparent;
        here.engine
            .delete(&here.call, Delete { turn, mode, force: false, dry_run: false })
            .unwrap();
        here.engine.undo(&here.call, &talk, None).unwrap();
        let name = Name::from_stored("mark");
        here.engine.set_bookmark(&here.call, name, TurnRef::of(said[0])).unwrap();
        let done = pull(&there, here, &talk);
        assert_eq!((done.new, done.diverged), (false, false));
        assert_eq!(there.export(), here.export());

        // An undo of something that was shared long before.
        here.engine.undo(&here.call, &talk, None).unwrap();
        here.engine.redo(&here.call, &talk, None).unwrap();
        here.engine.undo(&here.call, &talk, None).unwrap();
        pull(&there, here, &talk);
        assert_eq!(there.export(), here.export());
        assert_eq!(pull(here, &there, &talk), Pulled::default());
    });
}

#[test]
fn an_undo_that_is_undone_travels() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        here.say(&talk, &["a"]);
        let undo = here.engine.undo(&here.call, &talk, None).unwrap().seq;
        pull(&there, here, &talk);
        here.engine.undo(&here.call, &talk, Some(undo)).unwrap();
        pull(&there, here, &talk);
        assert_eq!(there.path(&talk, "main"), "a");
        assert_eq!(there.export(), here.export());
        // There and back again within one sync is as it was.
        let undo = here.engine.undo(&here.call, &talk, None).unwrap().seq;
        here.engine.undo(&here.call, &talk, Some(undo)).unwrap();
        pull(&there, here, &talk);
        assert_eq!(there.export(), here.export());
    });
}

#[test]
fn an_erasure_travels() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let said = here.say(&talk, &["a", "secret", "c"]);
        pull(&there, here, &talk);
        let target = PurgeTarget::Turn(TurnRef::of(said[1]));
        let asked = Purge { target: target.clone(), confirm: None };
        let confirm = here.engine.purge(&here.call, asked).unwrap().confirm;
        here.engine.purge(&here.call, Purge { target, confirm }).unwrap();
        // Not without a word: what is there is kept, and nothing comes.
        let before = there.export();
        let ends = [here, &there].map(|side| side.engine.log_end(&here.call, &talk).unwrap());
        let (from, into) = (&here.engine, &there.engine);
        let refused = tine_engine::pull(from, into, &there.call, &talk, ends.into(), false);
        assert!(matches!(refused, Err(Error::WouldErase { turns: 1, .. })), "{refused:?}");
        assert_eq!(there.export(), before);
        pull(&there, here, &talk);
        assert_eq!(there.export(), here.export());
        assert_eq!(there.path(&talk, "main"), "a ? c");
    });
}

#[test]
fn only_new_records_are_transferred() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let texts: Vec<String> =
            (0..2_000).map(|nth| format!("turn {nth} {}", "x".repeat(200))).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        here.append(Append::to(talk.clone(), spoken(&texts)));
        let whole = pull(&there, here, &talk).bytes;
        here.say(&talk, &["new", "newer"]);
        let part = pull(&there, here, &talk);
        assert_eq!(part.turns, 2);
        assert!(part.bytes * 100 < whole, "{} of {whole}", part.bytes);
    });
}

#[test]
fn two_branches_of_one_name_end_as_two_branches() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        here.say(&talk, &["a", "b"]);
        pull(&there, here, &talk);
        here.say(&talk, &["here"]);
        there.say(&talk, &["there"]);
        sync(here, &there, &talk);
        assert_eq!(
            (here.path(&talk, "main"), here.path(&talk, "main-1")),
            ("a b here".into(), "a b there".into())
        );
        assert_eq!(
            (there.path(&talk, "main"), there.path(&talk, "main-1")),
            ("a b there".into(), "a b here".into())
        );
        // The turns are the same ones.
        let ids = |world: &World| {
            let mut ids: Vec<_> =
                world.rows(&talk).into_iter().map(|row| (row.id, row.hash)).collect();
            ids.sort();
            ids
        };
        assert_eq!(ids(here), ids(&there));

        let (before_here, before_there) = (here.export(), there.export());
        sync(here, &there, &talk);
        assert_eq!((here.export(), there.export()), (before_here, before_there), "again nothing");

        here.say(&talk, &["more"]);
        sync(here, &there, &talk);
        assert_eq!(there.path(&talk, "main-1"), "a b here more", "the branch of last time goes on");
        assert_eq!(there.path(&talk, "main"), "a b there");
        assert_eq!(here.engine.branches(&here.call, &talk).unwrap().len(), 2);
    });
}

#[test]
fn the_longest_name_of_a_branch_has_room_for_a_number() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let limits = Limits::default();
        // The last letter takes two bytes, and is not cut in half.
        let long = format!("{}\u{e9}", "x".repeat(limits.name_bytes - 2));
        let root = here.say(&talk, &["a"])[0];
        here.say_under(&talk, root, &long, bot("b"));
        pull(&there, here, &talk);
        for (side, said) in [(here, "here"), (&there, "there")] {
            let append = Append::to(talk.clone(), vec![user(said)]);
            side.append(Append { branch: Some(long.clone()), ..append });
        }
        sync(here, &there, &talk);
        let names: Vec<Name> = here
            .engine
            .branches(&here.call, &talk)
            .unwrap()
            .into_iter()
            .map(|it| it.name)
            .collect();
        let numbered = format!("{}-1", "x".repeat(limits.name_bytes - 2));
        assert!(names.contains(&Name::new(numbered.clone(), &limits).unwrap()), "{names:?}");
        assert_eq!(here.path(&talk, &numbered), "a b there");
        there.append(Append {
            branch: Some(long.clone()),
            ..Append::to(talk.clone(), vec![bot("more")])
        });
        sync(here, &there, &talk);
        assert_eq!(here.path(&talk, &numbered), "a b there more");
    });
}

#[test]
fn bookmarks_of_one_name_are_both_kept() {
    for_each_store(|here| {
        let there = another(7);
        let (mine, theirs) = (here.talk("mine"), there.talk("theirs"));
        let name = Name::from_stored("mark");
        for (side, talk) in [(here, &mine), (&there, &theirs)] {
            let turn = TurnRef::of(side.say(talk, &["a", "b"])[1]);
            side.engine.set_bookmark(&side.call, name.clone(), turn).unwrap();
        }
        let both = || {
            let done = pull(here, &there, &theirs).renamed;
            let back = pull(&there, here, &mine).renamed;
            // Further on each side keeps its names, whichever way a conversation travels.
            pull(&there, here, &theirs);
            pull(here, &there, &mine);
            (done, back)
        };
        let renamed = Renamed { from: name.clone(), to: Name::from_stored("mark-1") };
        assert_eq!(both(), (vec![renamed.clone()], vec![renamed]));
        let marks = |side: &World| {
            let found = side.engine.bookmarks(&side.call, Page::default()).unwrap().items;
            let one = |it: tine_engine::BookmarkView| format!("{} {}", it.name, it.conversation);
            found.into_iter().map(one).collect::<Vec<_>>()
        };
        let (ours, others) = (["mark mine", "mark-1 theirs"], ["mark theirs", "mark-1 mine"]);
        assert_eq!(
            (marks(here), marks(&there)),
            (ours.map(Into::into).into(), others.map(Into::into).into())
        );
        for side in [here, &there] {
            for talk in [&mine, &theirs] {
                side.say(talk, &["c"]);
                assert_eq!(both(), (vec![], vec![]));
                assert_eq!(
                    (marks(here), marks(&there)),
                    (ours.map(Into::into).into(), others.map(Into::into).into())
                );
            }
        }
        // One that is removed is removed under either name.
        here.engine.delete_bookmark(&here.call, &Name::from_stored("mark-1")).unwrap();
        both();
        assert_eq!(marks(&there), ["mark-1 mine"]);
    });
}

#[test]
fn a_bookmark_that_is_moved_to_another_conversation_moves_on_the_other_side() {
    for_each_store(|here| {
        let there = another(7);
        let (one, two) = (here.talk("one"), here.talk("two"));
        let (first, second) = (here.say(&one, &["a"])[0], here.say(&two, &["b"])[0]);
        let name = Name::from_stored("mark");
        here.engine.set_bookmark(&here.call, name.clone(), TurnRef::of(first)).unwrap();
        pull(&there, here, &one);
        pull(&there, here, &two);
        here.engine.set_bookmark(&here.call, name.clone(), TurnRef::of(second)).unwrap();
        assert_eq!(pull(&there, here, &two).renamed, []);
        assert_eq!(there.engine.bookmark(&there.call, &name).unwrap().turn, second);
        assert_eq!(there.export(), here.export());
    });
}

/// Two conversations with a bookmark of one name each: one from here, one from there.
fn marked(here: &World, there: &World) -> [(ConversationId, Vec<TurnId>); 2] {
    let made = [(here, "mine"), (there, "theirs")].map(|(side, id)| {
        let talk = side.talk(id);
        let said = side.say(&talk, &["a", "b", "c"]);
        mark(side, "mark", said[1]);
        (talk, said)
    });
    pull(here, there, &made[1].0);
    pull(there, here, &made[0].0);
    made
}

fn mark(side: &World, name: &str, turn: TurnId) {
    let (name, turn) = (Name::from_stored(name), TurnRef::of(turn));
    side.engine.set_bookmark(&side.call, name, turn).expect("a bookmark");
}

fn is_marked(side: &World, name: &str) -> Option<TurnId> {
    Some(side.engine.bookmark(&side.call, &Name::from_stored(name)).ok()?.turn)
}

#[test]
fn a_numbered_name_makes_room_for_the_conversations_own() {
    for_each_store(|here| {
        let there = another(7);
        let [(mine, said), (_, theirs)] = marked(here, &there);
        assert_eq!(is_marked(&there, "mark-1"), Some(said[1]));
        mark(here, "mark-1", said[2]);
        let to = |from: &str, to: &str| {
            vec![Renamed { from: Name::from_stored(from), to: Name::from_stored(to) }]
        };
        assert_eq!(pull(&there, here, &mine).renamed, to("mark-1", "mark-2"));
        assert_eq!(is_marked(&there, "mark-1"), Some(said[2]));
        assert_eq!(is_marked(&there, "mark-2"), Some(said[1]));
        assert_eq!(is_marked(&there, "mark"), Some(theirs[1]));
        // Nor is it the name of a branch, or one that the log tells of.
        here.engine.delete_bookmark(&here.call, &Name::from_stored("mark-1")).unwrap();
        here.fork_at(&mine, said[0], "mark-2");
        assert_eq!(pull(&there, here, &mine).renamed, to("mark-2", "mark-3"));
        assert_eq!(is_marked(&there, "mark-3"), Some(said[1]));
        here.say(&mine, &["d"]);
        assert_eq!(pull(&there, here, &mine).renamed, []);
        assert_eq!(is_marked(&there, "mark-3"), Some(said[1]));
    });
}

#[test]
fn a_bookmark_that_follows_a_turn_keeps_its_name() {
    for_each_store(|here| {
        let there = another(7);
        let [(mine, said), (theirs, _)] = marked(here, &there);
        // Its own name is free by now.
        there.engine.delete_bookmark(&there.call, &Name::from_stored("mark")).unwrap();
        let (turn, mode) = (TurnRef::of(said[1]), DeleteMode::Reparent);
        here.engine
            .delete(&here.call, Delete { turn, mode, force: false, dry_run: false })
            .unwrap();
        assert_eq!(pull(&there, here, &mine).renamed, []);
        assert_eq!(is_marked(&there, "mark-1"), Some(said[0]));
        assert_eq!(is_marked(&there, "mark"), None);
        sync(here, &there, &theirs);
        sync(here, &there, &mine);
        assert_eq!(is_marked(here, "mark"), Some(said[0]));
    });
}

#[test]
fn a_key_in_use_for_another_call_does_not_block_a_sync() {
    for_each_store(|here| {
        let there = another(7);
        let (mine, theirs) = (here.talk("mine"), there.talk("theirs"));
        let append = |side: &World, talk: &ConversationId, said: &str| {
            let call = Call { idempotency_key: Some("key".into()), ..side.call.clone() };
            side.engine.append(&call, Append::to(talk.clone(), vec![user(said)])).unwrap()
        };
        let first = append(here, &mine, "a");
        append(&there, &theirs, "b");
        let done = pull(here, &there, &theirs);
        assert_eq!((done.turns, done.keys), (1, 1));
        assert_eq!(here.path(&theirs, "main"), "b");
        let again = append(here, &mine, "a");
        assert!(again.replayed, "the key means what it meant here");
        assert_eq!(again.turns[0].id, first.turns[0].id);
        there.say(&theirs, &["c"]);
        assert_eq!(pull(here, &there, &theirs).keys, 0);
        here.say(&theirs, &["d"]);
        pull(&there, here, &theirs);
        assert!(append(&there, &theirs, "b").replayed, "and there what it meant there");
    });
}

#[test]
fn turns_below_a_half_are_transferred_whenever_it_was_split() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        here.say(&talk, &["a"]);
        pull(&there, here, &talk);
        here.say(&talk, &["here"]);
        let whole = there.say(&talk, &["two words"])[0];
        sync(here, &there, &talk);
        // Nothing is below the halves yet, so that they stay where they are.
        let split = SplitTurn { turn: TurnRef::of(whole), offset: 3 };
        there.engine.split(&there.call, split).unwrap();
        sync(here, &there, &talk);
        there.say(&talk, &["below"]);
        let done = pull(here, &there, &talk);
        assert_eq!((done.turns, done.withheld), (3, 0));
        assert_eq!(here.tree(&talk), "a(here two words two(words(below)))");
        // Further on only what is new comes.
        there.say(&talk, &["more"]);
        let done = pull(here, &there, &talk);
        assert_eq!((done.turns, done.withheld), (1, 0));
        pull(&there, here, &talk);
        let before = (here.export(), there.export());
        sync(here, &there, &talk);
        assert!(before == (here.export(), there.export()));
    });
}

#[test]
fn turns_above_the_new_ones_count_towards_the_limit() {
    for_each_store(|here| {
        let talk = here.talk("talk");
        let whole = here.say(&talk, &["a", &"x".repeat(3_000)])[1];
        let split = SplitTurn { turn: TurnRef::of(whole), offset: 3 };
        here.engine.split(&here.call, split).unwrap();
        let since = here.engine.log_end(&here.call, &talk).unwrap();
        here.say(&talk, &[&"y".repeat(3_000)]);
        let within =
            |limit| here.engine.delta_within(&here.call, &talk, since, DeltaScope::Turns, limit);
        assert_eq!(within(10_000).unwrap().turns(), 3);
        let refused = within(6_000);
        assert!(matches!(refused, Err(Error::LongDelta { limit: 6_000 })), "{refused:?}");
    });
}

#[test]
fn deletions_of_one_side_are_not_undone_by_the_other() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let said = here.say(&talk, &["a", "b"]);
        pull(&there, here, &talk);
        there.say(&talk, &["there"]);
        let turn = TurnRef::of(said[1]);
        let mode = DeleteMode::Cascade;
        here.engine
            .delete(&here.call, Delete { turn, mode, force: false, dry_run: false })
            .unwrap();
        sync(here, &there, &talk);
        assert_eq!(here.tree(&talk), "a", "what was said below it stays where it is not deleted");
        assert_eq!(there.tree(&talk), "a(b(there))");
        // Also what was deleted alone, before the other side has seen it.
        let alone = there.say_under(&talk, said[0], "other", bot("alone"));
        let (turn, mode) = (TurnRef::of(alone), DeleteMode::Reparent);
        let delete = Delete { turn, mode, force: false, dry_run: false };
        there.engine.delete(&there.call, delete).unwrap();
        pull(here, &there, &talk);
        assert!(
            here.engine.turn(&here.call, TurnRef::of(alone)).is_err(),
            "it is not imported again"
        );
    });
}

#[test]
fn the_same_conversation_made_twice_meets_turn_by_turn() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        there.talk("talk");
        let mut first = user("a");
        first.created_at = Some(crate::world::start());
        for world in [here, &there] {
            world.append(Append::to(talk.clone(), vec![first.clone()]));
        }
        here.say(&talk, &["here"]);
        there.say(&talk, &["there"]);
        sync(here, &there, &talk);
        assert_eq!(here.tree(&talk), "a(here there)");
        assert_eq!(there.tree(&talk), "a(there here)");
    });
}

#[test]
fn a_conversation_without_news_is_not_transferred_again() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        there.talk("talk");
        // Said on both sides at the same times: the same turns, in logs that have nothing in common.
        let mut said = spoken(&["a", "b", "c"]);
        for one in &mut said {
            one.created_at = Some(crate::world::start());
        }
        for world in [here, &there] {
            world.append(Append::to(talk.clone(), said.clone()));
        }
        let before = (here.export(), there.export());
        let first = pull(here, &there, &talk);
        assert_eq!((first.turns, first.operations), (0, 0));
        assert!(first.bytes > 1_000, "it had to be looked through");
        assert_eq!(pull(here, &there, &talk), Pulled::default());
        pull(&there, here, &talk);
        assert_eq!(pull(&there, here, &talk), Pulled::default());
        assert!(before == (here.export(), there.export()), "no entry of any log tells of it");

        // A turn that was deleted here is not offered again either, until it is restored.
        let gone = here.rows(&talk)[1].id;
        let (turn, mode) = (TurnRef::of(gone), DeleteMode::Cascade);
        let delete = Delete { turn, mode, force: false, dry_run: false };
        here.engine.delete(&here.call, delete).unwrap();
        there.say(&talk, &["d"]);
        assert_eq!(pull(here, &there, &talk).withheld, 1);
        assert_eq!(pull(here, &there, &talk), Pulled::default());
        here.engine.undo(&here.call, &talk, None).unwrap();
        assert_eq!(pull(here, &there, &talk).turns, 1);
        assert_eq!(here.path(&talk, "main"), "a b c d");
    });
}

#[test]
fn undoing_a_commit_undoes_it_on_the_other_side() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        here.say(&talk, &["Where in Japan?", "Tokyo."]);
        here.engine.commit(&here.call, NewCommit::of(talk.clone(), "Where to")).unwrap();
        pull(&there, here, &talk);
        here.engine.undo(&here.call, &talk, None).unwrap();
        pull(&there, here, &talk);
        assert_eq!(there.export(), here.export());
        here.engine.redo(&here.call, &talk, None).unwrap();
        here.say(&talk, &["Rather Kyoto."]);
        here.engine.commit(&here.call, NewCommit::of(talk.clone(), "Kyoto")).unwrap();
        pull(&there, here, &talk);
        assert_eq!(there.export(), here.export());
    });
}

#[test]
fn a_relationship_that_is_removed_is_removed_on_the_other_side() {
    for_each_store(|here| {
        let there = another(7);
        let talk = here.talk("talk");
        let said = here.say(&talk, &["a", "b"]);
        let [source, target] = [said[0], said[1]].map(|turn| End::Turn(turn.into()));
        let relation = "REFERS_TO".to_owned();
        let edge = NewRelationship { relation, source, target, metadata: Json::Null };
        let known = |side: &World| {
            let query = RelationshipQuery::default();
            side.engine.relationships(&side.call, query, Page::default()).unwrap().items.len()
        };
        let all = || {
            pull(&there, here, &talk);
            pull(&there, here, &ConversationId::from_stored("~project"));
        };
        here.engine.create_relationship(&here.call, edge.clone()).unwrap();
        all();
        assert_eq!((known(here), known(&there)), (1, 1));
        here.engine.delete_relationship(&here.call, edge).unwrap();
        all();
        assert_eq!((known(here), known(&there)), (0, 0));
    });
}

/// A store that stops before it sweeps its free pages, for as long as a flag is set.
struct Interrupted {
    inner: MemoryStore,
    ends: AtomicBool,
    swept: AtomicU32,
}

type Done<T = ()> = tine_store::Result<T>;

impl Store for Interrupted {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Done) -> Done {
        self.inner.read(body)
    }

    fn write(&self, job: Job) -> Done {
        self.inner.write(job)
    }

    fn scrub(&self) -> Done {
        if self.ends.load(Ordering::SeqCst) {
            return Err(StoreError::DiskFull);
        }
        self.swept.fetch_add(1, Ordering::SeqCst);
        self.inner.scrub()
    }

    fn check(&self) -> Done<tine_store::StoreCheck> {
        self.inner.check()
    }

    fn pack(&self, options: tine_store::PackOptions) -> Done<tine_store::Packed> {
        self.inner.pack(options)
    }

    fn backup(&self, to: &std::path::Path) -> Done {
        self.inner.backup(to)
    }

    fn index_state(&self) -> Done<tine_store::IndexState> {
        self.inner.index_state()
    }

    fn index(&self, body: &mut dyn FnMut(&mut dyn tine_store::Index) -> Done) -> Done {
        self.inner.index(body)
    }

    fn unindex(&self, turns: &[tine_store::TurnLoc]) -> Done {
        self.inner.unindex(turns)
    }

    fn search(
        &self,
        query: &tine_store::TextQuery,
        filter: &tine_store::SearchFilter,
        through: tine_store::FeedPosition,
    ) -> Done<Option<tine_store::Ranked>> {
        self.inner.search(query, filter, through)
    }
}

#[test]
fn an_erasure_that_was_cut_off_before_its_sweep_is_swept_later() {
    let here = another(1);
    let (inner, ends, swept) = (MemoryStore::new(), AtomicBool::new(false), AtomicU32::new(0));
    let store = Arc::new(Interrupted { inner, ends, swept });
    let there = World::seeded(store.clone(), 7);
    let talk = here.talk("talk");
    let said = here.say(&talk, &["a", "secret"]);
    pull(&there, &here, &talk);
    let target = PurgeTarget::Turn(TurnRef::of(said[1]));
    let asked = Purge { target: target.clone(), confirm: None };
    let confirm = here.engine.purge(&here.call, asked).unwrap().confirm;
    here.engine.purge(&here.call, Purge { target, confirm }).unwrap();
    assert!(!there.engine.sweep(&there.call.project).unwrap(), "there is nothing to sweep");
    store.ends.store(true, Ordering::SeqCst);
    let ends = [&here, &there].map(|side| side.engine.log_end(&here.call, &talk).unwrap());
    let cut = carry(&here.engine, &there.engine, &there.call, &talk, ends.into());
    assert!(matches!(cut, Err(Error::NotSwept(_))), "{cut:?}");
    store.ends.store(false, Ordering::SeqCst);
    // The next sync has nothing to transfer.
    assert_eq!(pull(&there, &here, &talk), Pulled::default());
    assert!(there.engine.sweep(&there.call.project).unwrap(), "and yet it is known");
    assert_eq!(store.swept.load(Ordering::SeqCst), 1);
    assert!(!there.engine.sweep(&there.call.project).unwrap(), "once is enough");
}

#[test]
fn an_erasure_here_that_was_cut_off_before_its_sweep_is_swept_later() {
    let (inner, ends, swept) = (MemoryStore::new(), AtomicBool::new(false), AtomicU32::new(0));
    let store = Arc::new(Interrupted { inner, ends, swept });
    let here = World::seeded(store.clone(), 7);
    let talk = here.talk("talk");
    let said = here.say(&talk, &["a", "secret"]);
    let target = PurgeTarget::Turn(TurnRef::of(said[1]));
    let asked = Purge { target: target.clone(), confirm: None };
    let confirm = here.engine.purge(&here.call, asked).unwrap().confirm;
    store.ends.store(true, Ordering::SeqCst);
    let cut = here.engine.purge(&here.call, Purge { target, confirm });
    assert!(matches!(cut, Err(Error::NotSwept(_))), "{cut:?}");
    store.ends.store(false, Ordering::SeqCst);
    assert!(here.engine.sweep(&here.call.project).unwrap(), "it is known");
    assert_eq!(store.swept.load(Ordering::SeqCst), 1);
    crate::purge::purge(&here, PurgeTarget::Turn(TurnRef::of(said[0])));
    assert_eq!(store.swept.load(Ordering::SeqCst), 2, "once for each");
    assert!(!here.engine.sweep(&here.call.project).unwrap(), "and then there is nothing left");
}

//! Making commits.

use tine_core::{ErrorKind, hash};
use tine_engine::{CommitQuery, NewCommit, Page, WindowRef};

use crate::world::{World, for_each_store, reference, user};

fn windowed(talk: &tine_core::ConversationId, start: &str, end: &str) -> NewCommit {
    let window = WindowRef { start: reference(start), end: reference(end) };
    NewCommit { window: Some(window), ..NewCommit::of(talk.clone(), "a range") }
}

#[test]
fn the_hash_covers_everything_but_itself() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        world.say(&talk, &["What's the best time to visit Tokyo?", "Late March."]);
        let made = world.commit(&talk, "main", "Research complete");
        let text = made.commit.to_json().to_canonical();
        assert_eq!(made.hash.0, hash::Digest::of(text.as_bytes()));
        assert_eq!(made.commit.turns, 2);
        assert!(made.commit.parents.is_empty());
        let facets = made.commit.facets.as_ref().expect("facets");
        assert!(facets.keywords.contains_key("tokyo"), "{:?}", facets.keywords.keys());
        assert!(facets.topics.contains_key("travel"));
        assert_eq!(made.heads.len(), 1);
        world.verified();
    });
}

#[test]
fn without_a_window_a_commit_takes_what_no_commit_covers() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["one", "two"]);
        let first = world.commit(&talk, "main", "first");
        let more = world.say(&talk, &["three", "four", "five"]);
        let second = world.commit(&talk, "main", "second");
        let hash = |id| world.engine.turn(&world.call, world.turn(id)).expect("a turn").hash;
        let window = second.commit.window.expect("a window");
        assert_eq!(window.start, hash(more[0]));
        assert_eq!(window.end, hash(more[2]));
        assert_eq!(second.commit.turns, 3);
        assert_eq!(second.commit.parents, vec![first.hash]);
        assert_eq!(first.commit.window.expect("a window").end, hash(said[1]));
        let nothing = NewCommit::of(talk.clone(), "third");
        let error = world.refused(ErrorKind::Invalid, |engine, call| engine.commit(call, nothing));
        assert!(error.to_string().contains("nothing to commit"), "{error}");
        let empty = NewCommit::of(talk.clone(), "  ");
        world.refused(ErrorKind::Invalid, |engine, call| engine.commit(call, empty));
        world.verified();
    });
}

#[test]
fn the_first_commit_of_a_branch_builds_on_the_last_before_the_fork() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["one", "two", "three"]);
        let early = world.commit(&talk, "main", "early");
        world.fork_at(&talk, said[1], "before");
        world.fork_at(&talk, said[2], "earlier");
        let later = world.say(&talk, &["four"]);
        let late = world.commit(&talk, "main", "late");
        world.say_under(&talk, said[2], "earlier", user("other"));
        world.say_under(&talk, said[1], "before", user("another"));
        assert_eq!(world.commit(&talk, "earlier", "first here").commit.parents, vec![early.hash]);
        // The commit reaches beyond the fork, so that it is not before it.
        assert_eq!(world.commit(&talk, "before", "first here").commit.parents, vec![]);
        world.fork_at(&talk, later[0], "last");
        world.say_under(&talk, later[0], "last", user("more"));
        assert_eq!(world.commit(&talk, "last", "first here").commit.parents, vec![late.hash]);
        world.verified();
    });
}

#[test]
fn a_window_that_is_no_stretch_of_one_path_is_refused() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["one", "two", "three"]);
        let side = world.say_under(&talk, said[0], "side", user("other"));
        let name = |id: tine_core::TurnId| id.to_string();
        let refuse = |request: NewCommit| {
            world
                .refused(ErrorKind::Invalid, |engine, call| engine.commit(call, request))
                .to_string()
        };
        let reversed = refuse(windowed(&talk, &name(said[2]), &name(said[0])));
        assert!(reversed.contains("after its end"), "{reversed}");
        let broken = refuse(windowed(&talk, &name(said[1]), &name(side)));
        assert!(broken.contains("not on the path to its end"), "{broken}");
        refuse(windowed(&talk, "root", &name(side)));
        let elsewhere = windowed(&talk, &name(side), &name(side)).on("main");
        refuse(elsewhere);
        // Without a branch the one that holds the window is meant.
        let made = world.engine.commit(&world.call, windowed(&talk, &name(side), &name(side)));
        assert_eq!(made.expect("a commit").commit.branch.as_str(), "side");
        world.verified();
    });
}

#[test]
fn a_commit_can_be_undone_and_redone_and_protects_its_turns_from_undo() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        world.say(&talk, &["one", "two"]);
        let made = world.commit(&talk, "main", "first");
        let listed = |world: &World| {
            let query = CommitQuery { conversation: Some(talk.clone()), branch: None };
            let page = world.engine.commits(&world.call, query, Page::default());
            page.expect("commits").items.len()
        };
        assert_eq!(listed(world), 1);
        // The append cannot go while the commit stands.
        let error = world.engine.undo(&world.call, &talk, Some(2)).expect_err("depended on");
        assert_eq!(error.kind(), ErrorKind::Protected, "{error}");
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(listed(world), 0);
        let gone = world.engine.commit_by_hash(&world.call, &made.hash.to_string());
        assert_eq!(gone.expect_err("it is gone").kind(), ErrorKind::NotFound);
        world.engine.redo(&world.call, &talk, None).expect("a redo");
        assert_eq!(listed(world), 1);
        world.verified();
    });
}

#[test]
fn a_repeated_key_makes_one_commit() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        world.say(&talk, &["one"]);
        let call = world.call.clone().with_key("k");
        let request = || NewCommit::of(talk.clone(), "first");
        let first = world.engine.commit(&call, request()).expect("a commit");
        let again = world.engine.commit(&call, request());
        assert_eq!(again.expect("the same").hash, first.hash);
        // The first answer is given again also when its work has been undone.
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let again = world.engine.commit(&call, request()).expect("the first answer");
        assert_eq!((again.hash, again.undone, first.undone), (first.hash, true, false));
    });
}

//! Importing whole trees in one transaction.

use tine_core::{ConversationId, ErrorKind, Json, Name, Timestamp};
use tine_engine::{
    Delete, DeleteMode, Graft, GraftLine, GraftTurn, Grafted, NewConversation, Purge, PurgeTarget,
    SplitTurn,
};

use crate::world::{World, bot, for_each_store, start, user};

/// A tree from rows of (place of the parent, what is said) and lines (tip, branch).
fn tree(rows: &[(Option<usize>, &str)], lines: &[(usize, Option<&str>)]) -> Graft {
    let turn = |(index, (parent, text)): (usize, &(Option<usize>, &str))| {
        let mut message = if text.starts_with('?') { user(text) } else { bot(text) };
        let millis = i64::try_from(index).expect("few rows");
        message.created_at = Some(Timestamp::from_millis(start().as_millis() + 1_000 * millis));
        let (below, identity, part_of) = (None, None, None);
        GraftTurn { parent: *parent, below, message, timeless: false, identity, part_of }
    };
    let line = |(tip, branch): &(usize, Option<&str>)| GraftLine {
        tip: Some(*tip),
        branch: branch.map(Name::from_stored),
    };
    Graft {
        conversation: NewConversation::named("talk").expect("a sound id"),
        turns: rows.iter().enumerate().map(turn).collect(),
        lines: lines.iter().map(line).collect(),
        rewinds: true,
        merged: None,
    }
}

fn import(world: &World, graft: Graft) -> Grafted {
    world.engine.graft(&world.call, graft).expect("a tree that is accepted")
}

fn talk() -> ConversationId {
    NewConversation::named("talk").expect("a sound id").id.expect("an id")
}

const FORKED: &[(Option<usize>, &str)] =
    &[(None, "?a"), (Some(0), "b"), (Some(1), "?c"), (Some(0), "x"), (Some(3), "?y")];

#[test]
fn a_tree_is_imported_with_its_branches_and_tails_and_again_adds_nothing() {
    for_each_store(|world| {
        let graft = tree(FORKED, &[(2, None), (4, Some("main"))]);
        let done = import(world, graft.clone());
        assert_eq!((done.created, done.made), (true, 5));
        assert_eq!(world.tree(&talk()), "?a(b(?c) x(?y))");
        assert_eq!(world.path(&talk(), "main"), "?a x ?y");
        assert_eq!(world.engine.tails(&world.call, &talk()).expect("tails").len(), 1);

        let before = world.export();
        let again = import(world, graft);
        assert_eq!((again.created, again.made, &again.turns), (false, 0, &done.turns));
        assert_eq!(world.export(), before, "not even an entry in the log");
        let verified = world.engine.verify().expect("a check");
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    });
}

#[test]
fn a_longer_version_adds_what_is_new_and_moves_its_branch() {
    for_each_store(|world| {
        import(world, tree(&FORKED[..2], &[(1, Some("main"))]));
        let done = import(world, tree(FORKED, &[(4, Some("other")), (2, Some("main"))]));
        assert_eq!(done.made, 3);
        assert_eq!(done.branches, [Name::from_stored("other")]);
        assert_eq!(world.path(&talk(), "main"), "?a b ?c");
        assert_eq!(world.path(&talk(), "other"), "?a x ?y");
    });
}

#[test]
fn a_branch_that_was_continued_here_is_not_moved() {
    for_each_store(|world| {
        import(world, tree(&FORKED[..2], &[(1, Some("main"))]));
        world.say(&talk(), &["mine"]);
        let longer = tree(&FORKED[..3], &[(2, Some("main"))]);
        import(world, longer.clone());
        assert_eq!(world.path(&talk(), "main"), "?a b mine");
        assert_eq!(world.path(&talk(), "main-1"), "?a b ?c");
        let rows = [FORKED[0], FORKED[1], FORKED[2], (Some(2), "d")];
        import(world, tree(&rows, &[(3, Some("main"))]));
        assert_eq!(world.path(&talk(), "main-1"), "?a b ?c d", "the branch of last time goes on");
        assert_eq!(world.tree(&talk()), "?a(b(mine ?c(d)))");
    });
}

#[test]
fn deleted_undone_and_purged_turns_stay_so() {
    for_each_store(|world| {
        let done = import(world, tree(&FORKED[..3], &[(2, Some("main"))]));
        let turn = world.turn(done.turns[1].expect("a turn"));
        let delete = Delete { turn, mode: DeleteMode::Cascade, force: false, dry_run: false };
        world.engine.delete(&world.call, delete).expect("a deletion");
        let again = import(world, tree(FORKED, &[(2, Some("main")), (4, Some("other"))]));
        assert_eq!((again.made, again.withheld), (2, 2));
        assert_eq!(world.tree(&talk()), "?a(x(?y))");

        let target = PurgeTarget::Conversation(talk());
        let asked = Purge { target: target.clone(), confirm: None };
        let word = world.engine.purge(&world.call, asked).expect("a question").confirm;
        world.engine.purge(&world.call, Purge { target, confirm: word }).expect("an erasure");
        let graft = tree(FORKED, &[(2, Some("main"))]);
        assert!(import(world, graft).refused);
    });
}

#[test]
fn a_turn_deleted_alone_or_split_goes_on_where_its_children_are_shown() {
    for_each_store(|world| {
        let done = import(world, tree(&FORKED[..2], &[(1, Some("main"))]));
        let first = world.turn(done.turns[0].expect("a turn"));
        world.engine.split(&world.call, SplitTurn { turn: first, offset: 1 }).expect("a split");
        let second = world.turn(done.turns[1].expect("a turn"));
        let delete =
            Delete { turn: second, mode: DeleteMode::Reparent, force: false, dry_run: false };
        world.engine.delete(&world.call, delete).expect("a deletion");
        let graft = tree(FORKED, &[(2, Some("main")), (4, Some("other"))]);
        assert_eq!(import(world, graft.clone()).made, 3);
        assert_eq!(world.tree(&talk()), "?(a(?c x(?y)))");
        assert_eq!(import(world, graft).made, 0);
    });
}

#[test]
fn equal_siblings_are_one_and_their_children_meet() {
    for_each_store(|world| {
        let mut graft = tree(
            &[(None, "?a"), (Some(0), "b"), (Some(0), "b"), (Some(1), "?c"), (Some(2), "?d")],
            &[(3, None), (4, Some("main"))],
        );
        graft.turns[2].message.created_at = graft.turns[1].message.created_at;
        assert_eq!(import(world, graft.clone()).made, 4);
        assert_eq!(world.tree(&talk()), "?a(b(?c ?d))");
        assert_eq!(import(world, graft).made, 0);
    });
}

#[test]
fn messages_without_a_time_are_matched_by_what_they_say() {
    for_each_store(|world| {
        let untimed = |count: usize| {
            let tip = count - 1;
            let mut graft = tree(&FORKED[..count], &[(tip, Some("main"))]);
            graft.turns.iter_mut().for_each(|turn| turn.message.created_at = None);
            graft
        };
        import(world, untimed(2));
        assert_eq!(import(world, untimed(3)).made, 1);
        assert_eq!(world.path(&talk(), "main"), "?a b ?c");

        let mut copied = tree(FORKED, &[(2, Some("main")), (4, Some("other"))]);
        copied.turns.iter_mut().for_each(|turn| turn.timeless = true);
        assert_eq!(import(world, copied).made, 2, "also when a copy has another time");
    });
}

#[test]
fn title_and_metadata_are_set_without_overriding_a_person() {
    for_each_store(|world| {
        let mut graft = tree(&FORKED[..1], &[(0, Some("main"))]);
        graft.conversation.metadata = tine_core::json::object([("a", 1.into()), ("b", 1.into())]);
        import(world, graft.clone());
        graft.conversation.metadata = tine_core::json::object([("b", 2.into())]);
        graft.conversation.title = Some("Trip".to_owned());
        import(world, graft.clone());
        graft.conversation.title = Some("Another".to_owned());
        import(world, graft);
        let found = world.engine.conversation(&world.call, &talk()).expect("the conversation");
        assert_eq!(found.title.as_deref(), Some("Trip"));
        assert_eq!(found.metadata.get("a").and_then(Json::as_u64), Some(1));
        assert_eq!(found.metadata.get("b").and_then(Json::as_u64), Some(2));
    });
}

#[test]
fn a_malformed_tree_is_refused_as_a_whole() {
    for_each_store(|world| {
        let mut cyclic = tree(FORKED, &[(4, Some("main"))]);
        cyclic.turns[1].parent = Some(4);
        world.refused(ErrorKind::Invalid, |engine, call| engine.graft(call, cyclic));
        let beyond = tree(FORKED, &[(9, Some("main"))]);
        world.refused(ErrorKind::Invalid, |engine, call| engine.graft(call, beyond));
        let mut empty = tree(FORKED, &[(4, Some("main"))]);
        empty.turns[4].message = user("");
        world.refused(ErrorKind::Invalid, |engine, call| engine.graft(call, empty));
        assert!(world.export().is_empty());
    });
}

#[test]
fn turns_keep_the_ids_and_hashes_that_they_have_elsewhere() {
    for_each_store(|world| {
        import(world, tree(&FORKED[..3], &[(2, Some("main"))]));
        let said = world.rows(&talk());
        let there = World::seeded(std::sync::Arc::new(tine_store::MemoryStore::new()), 2);
        let mut graft = tree(&FORKED[..3], &[(2, Some("main"))]);
        for (turn, row) in graft.turns.iter_mut().zip(&said) {
            turn.identity = Some((row.id, row.hash));
        }
        import(&there, graft.clone());
        let ids = |world: &World| -> Vec<_> {
            world.rows(&talk()).into_iter().map(|row| (row.id, row.hash)).collect()
        };
        assert_eq!(ids(world), ids(&there));
        assert_eq!(import(&there, graft.clone()).made, 0);

        graft.conversation = NewConversation::named("altered").expect("a sound id");
        graft.turns[0].message = user("something else");
        there.refused(ErrorKind::Conflict, |engine, call| engine.graft(call, graft.clone()));
        let fresh = World::seeded(std::sync::Arc::new(tine_store::MemoryStore::new()), 3);
        fresh.refused(ErrorKind::Invalid, |engine, call| engine.graft(call, graft));
    });
}

//! Paths: whole, last N, a window, pages.

use tine_core::{ConversationId, Role};
use tine_engine::{
    Append, BranchTurnsQuery, PathPage, PathQuery, Selection, TurnRef, TurnView, WindowQuery,
};

use crate::world::{World, bot, for_each_store, reference, spoken, user};

fn letters(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("t{n}")).collect()
}

fn long(world: &World, talk: &ConversationId, n: usize) -> Vec<tine_core::TurnId> {
    let texts = letters(n);
    world.say(talk, &texts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn read(world: &World, query: PathQuery) -> (Vec<String>, Option<String>) {
    let page = world.engine.path(&world.call, query).expect("a path");
    (texts(&page), page.next)
}

fn texts(page: &PathPage) -> Vec<String> {
    let text = |turn: &TurnView| match &turn.content {
        tine_store::Content::Kept(body) => body.preview(80),
        tine_store::Content::Purged(_) => "?".to_owned(),
    };
    page.turns.iter().map(text).collect()
}

#[test]
fn a_path_is_all_turns_from_the_root_in_order() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = long(world, &talk, 9);
        let page = world.engine.path(&world.call, PathQuery::of(talk.clone())).expect("a path");
        assert_eq!(page.turns.iter().map(|turn| turn.id).collect::<Vec<_>>(), said);
        assert_eq!((page.to, page.next), (Some(said[8]), None));
        let query = PathQuery::of(talk).to(reference("main~3"));
        assert_eq!(read(world, query).0, letters(6));
    });
}

#[test]
fn the_last_n_of_a_path() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        long(world, &talk, 5);
        let last = |n| PathQuery { selection: Selection::Last(n), ..PathQuery::of(talk.clone()) };
        assert_eq!(read(world, last(2)).0, letters(5)[3..]);
        assert_eq!(read(world, last(99)).0, letters(5));
    });
}

#[test]
fn pages_of_a_path_fit_together_while_the_branch_moves_and_others_write() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = long(world, &talk, 10);
        let mut cursor = None;
        let mut seen = vec![];
        for round in 0.. {
            let query = PathQuery { cursor, limit: Some(3), ..PathQuery::of(talk.clone()) };
            let (turns, next) = read(world, query);
            seen.extend(turns);
            cursor = next;
            if cursor.is_none() {
                break;
            }
            // Between the pages: more at the tip, a fork in the middle, and the branch elsewhere.
            world.say(&talk, &[&format!("new{round}")]);
            world.say_under(&talk, said[4], &format!("side{round}"), user("fork"));
            world.append(Append::to(talk.clone(), spoken(&["t0", "elsewhere"])).from_root());
        }
        assert_eq!(seen, letters(10));
    });
}

#[test]
fn pages_of_the_last_n_fit_together_too() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        long(world, &talk, 10);
        let mut cursor = None;
        let mut seen = vec![];
        loop {
            let query = PathQuery {
                selection: Selection::Last(7),
                cursor,
                limit: Some(3),
                ..PathQuery::of(talk.clone())
            };
            let (turns, next) = read(world, query);
            seen.extend(turns);
            cursor = next;
            world.say(&talk, &["more"]);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, letters(10)[3..]);
    });
}

#[test]
fn a_path_longer_than_a_page_comes_in_pages_of_the_limit() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        long(world, &talk, 2_500);
        let (first, next) = read(world, PathQuery::of(talk.clone()));
        assert_eq!(first.len(), 1_000);
        let query = PathQuery { cursor: next, ..PathQuery::of(talk.clone()) };
        let (second, next) = read(world, query);
        let query = PathQuery { cursor: next, ..PathQuery::of(talk.clone()) };
        let (third, next) = read(world, query);
        assert_eq!([first, second, third].concat(), letters(2_500));
        assert_eq!(next, None);
    });
}

#[test]
fn a_path_crosses_forks_splits_and_tombstones() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "bc", "d", "e"]);
        let side = world.say_under(&talk, said[2], "side", bot("x"));
        world.say_under(&talk, side, "side", user("y"));
        let split = tine_engine::SplitTurn { turn: world.turn(said[1]), offset: 1 };
        world.engine.split(&world.call, split).expect("a split");
        let delete = tine_engine::Delete {
            turn: world.turn(said[2]),
            mode: tine_engine::DeleteMode::Reparent,
            force: false,
            dry_run: false,
        };
        world.engine.delete(&world.call, delete).expect("a delete");
        assert_eq!(world.path(&talk, "main"), "a b c e");
        assert_eq!(world.path(&talk, "side"), "a b c x y");
        for limit in 1..6 {
            let mut cursor = None;
            let mut seen = vec![];
            loop {
                let query = PathQuery {
                    cursor,
                    limit: Some(limit),
                    ..PathQuery::of(talk.clone()).to(reference("side"))
                };
                let (turns, next) = read(world, query);
                seen.extend(turns);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, ["a", "b", "c", "x", "y"], "pages of {limit}");
        }
    });
}

#[test]
fn a_window_shows_the_turns_around_one() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = long(world, &talk, 10);
        let side = world.say_under(&talk, said[5], "side", bot("x"));
        let window = |turn, branch: Option<&str>| {
            let query = WindowQuery {
                turn: TurnRef::of(turn),
                branch: branch.map(str::to_owned),
                before: 2,
                after: 2,
            };
            world.engine.window(&world.call, query).expect("a window")
        };
        let ids = |window: &tine_engine::Window| -> Vec<_> {
            window.turns.iter().map(|turn| turn.id).collect()
        };
        let middle = window(said[5], None);
        assert_eq!(ids(&middle), said[3..8]);
        assert_eq!((middle.focus, middle.more_before, middle.more_after), (2, true, true));
        let aside = window(said[5], Some("side"));
        assert_eq!(ids(&aside), [said[3], said[4], said[5], side]);
        assert!(!aside.more_after);
        let first = window(said[0], None);
        assert_eq!((ids(&first), first.focus), (said[..3].to_vec(), 0));
        assert!(!first.more_before);
    });
}

#[test]
fn a_cursor_of_something_else_is_refused() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        for cursor in ["", "nonsense", "🌸", "0.0.0"] {
            world.refused(tine_core::ErrorKind::Invalid, |engine, call| {
                let cursor = Some(cursor.to_owned());
                engine.path(call, PathQuery { cursor, ..PathQuery::of(talk.clone()) })
            });
        }
    });
}

#[test]
fn pages_of_one_role_are_full_and_fit_together() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let messages = (0..20).map(|n| match n % 5 {
            0 => user(&format!("u{n}")),
            _ => bot(&format!("b{n}")),
        });
        world.append(Append::to(talk.clone(), messages.collect()));
        let mut query = BranchTurnsQuery {
            conversation: talk.clone(),
            branch: "main".to_owned(),
            role: Some(Role::User),
            cursor: None,
            limit: Some(3),
        };
        let mut pages = Vec::new();
        loop {
            let (branch, page) =
                world.engine.branch_turns(&world.call, query.clone()).expect("a page");
            assert_eq!(branch.name.as_str(), "main");
            pages.push(texts(&page));
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(pages, [vec!["u0", "u5", "u10"], vec!["u15"]]);
        let two = BranchTurnsQuery { limit: Some(2), cursor: None, ..query };
        let (_, page) = world.engine.branch_turns(&world.call, two.clone()).expect("a page");
        let two = BranchTurnsQuery { cursor: page.next, ..two };
        let (_, page) = world.engine.branch_turns(&world.call, two).expect("a page");
        assert_eq!((page.turns.len(), page.next), (2, None));
    });
}

//! The tree without its content.

use tine_core::ErrorKind;
use tine_engine::{Append, TopologyQuery};

use crate::world::{bot, for_each_store, ids, spoken, user};

#[test]
fn topology_tells_parents_children_levels_and_descendants() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.say_under(&talk, said[0], "side", bot("d"));
        let rows = world.rows(&talk);
        let listed: Vec<_> = rows
            .iter()
            .map(|row| (row.preview.as_str(), row.level, row.descendants, row.children.len()))
            .collect();
        assert_eq!(listed, [("a", 1, 3, 2), ("b", 2, 1, 1), ("c", 3, 0, 0), ("d", 2, 0, 0)]);
        let tips: Vec<_> = rows
            .iter()
            .map(|row| row.branches.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(","))
            .collect();
        assert_eq!(tips, ["", "", "main", "side"]);
    });
}

#[test]
fn a_preview_is_one_line_of_80_characters() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let text = format!("first\n\n  second\t{}", "漢".repeat(200));
        world.append(Append::to(talk.clone(), vec![user(&text)]));
        let preview = &world.rows(&talk)[0].preview;
        assert_eq!(preview.chars().count(), 80);
        assert!(preview.starts_with("first second 漢"), "{preview}");
    });
}

#[test]
fn topology_comes_in_pages_that_fit_together_and_under_a_turn() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c", "d", "e"]);
        for n in 0..5 {
            world.say_under(&talk, said[1], "side", user(&format!("s{n}")));
        }
        let whole = world.rows(&talk);
        let mut paged = vec![];
        let mut cursor = None;
        loop {
            let query = TopologyQuery { cursor, limit: Some(3), ..TopologyQuery::of(talk.clone()) };
            let page = world.engine.topology(&world.call, query).expect("a page");
            assert_eq!(page.total, 10);
            paged.extend(page.rows);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(paged, whole);
        let query =
            TopologyQuery { under: Some(said[2].into()), ..TopologyQuery::of(talk.clone()) };
        let part = world.engine.topology(&world.call, query).expect("a part");
        let ids: Vec<_> = part.rows.iter().map(|row| row.id).collect();
        assert_eq!((ids, part.first), (said[2..].to_vec(), vec![said[2]]));
    });
}

#[test]
fn order_among_siblings_is_the_order_of_creation_for_any_number_of_them() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let made: Vec<_> = (0..25)
            .map(|n| {
                let request = Append::to(talk.clone(), vec![user(&n.to_string())]).from_root();
                ids(&world.append(request))[0]
            })
            .collect();
        assert_eq!(world.rows(&talk).iter().map(|row| row.id).collect::<Vec<_>>(), made);
    });
}

#[test]
fn stats_count_what_is_there() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let side = world.say_under(&talk, said[0], "side", bot("d"));
        crate::delete::cascade(world, side);
        let stats = world.engine.stats(&world.call, Some(&talk)).expect("stats");
        let of = stats.conversation.expect("one conversation was asked for");
        assert_eq!((of.turns, of.deleted, of.leaves, of.longest_path), (3, 1, 1, 3));
        assert_eq!((of.branches, of.tails, of.forks), (2, 0, 0));
        assert_eq!((stats.store.turns, stats.store.conversations), (4, 1));
    });
}

#[test]
fn a_page_over_the_limit_is_too_large() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.append(Append::to(talk.clone(), spoken(&["a"])));
        world.refused(ErrorKind::TooLarge, |engine, call| {
            let query = TopologyQuery { limit: Some(1_001), ..TopologyQuery::of(talk.clone()) };
            engine.topology(call, query)
        });
    });
}

//! Conversations: creation, derivation, archive.

use tine_core::{ErrorKind, Json};
use tine_engine::{Append, ConversationPatch, Derive, NewConversation, Page};

use crate::world::{for_each_store, spoken};

fn derive(talk: &tine_core::ConversationId, prompt: &str) -> Derive {
    Derive {
        conversation: talk.clone(),
        id: None,
        system_prompt: Some(prompt.to_owned()),
        config: None,
        at: None,
    }
}

#[test]
fn a_conversation_id_is_unique_in_its_project() {
    for_each_store(|world| {
        world.talk("talk");
        world.refused(ErrorKind::Conflict, |engine, call| {
            engine.create_conversation(call, NewConversation::named("talk").expect("a sound id"))
        });
    });
}

#[test]
fn a_conversation_without_an_id_gets_one() {
    for_each_store(|world| {
        let make = || {
            let new = NewConversation::default();
            world.engine.create_conversation(&world.call, new).expect("a conversation").id
        };
        assert_ne!(make(), make());
    });
}

#[test]
fn an_existing_derivative_with_an_equal_root_is_selected() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let first = world.engine.derive(&world.call, derive(&talk, "new")).expect("one");
        assert!(first.created);
        let id = first.conversation.id;
        assert_eq!(first.conversation.derived_from.expect("an origin").conversation, talk);
        let again = world.engine.derive(&world.call, derive(&talk, "new")).expect("it");
        assert_eq!((again.created, again.conversation.id), (false, id.clone()));
        let other = world.engine.derive(&world.call, derive(&talk, "other")).expect("two");
        assert_ne!(other.conversation.id, id);
    });
}

#[test]
fn derive_at_a_turn_appends_its_path_again_with_new_ids() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let request = Derive { at: Some(said[1].into()), ..derive(&talk, "new") };
        let derived = world.engine.derive(&world.call, request.clone()).expect("a derivative");
        assert_eq!(derived.turns, 2);
        let id = derived.conversation.id;
        assert_eq!(world.path(&id, "main"), "a b");
        let rows = world.rows(&id);
        assert!(rows.iter().all(|row| !said.contains(&row.id)));
        let origin = world.engine.turn(&world.call, world.turn(rows[1].id)).expect("a turn").origin;
        assert_eq!(origin.derived_from, Some(said[1]));
        let again = world.engine.derive(&world.call, request).expect("the derivative");
        assert_eq!((again.created, again.turns), (false, 0));
        assert_eq!(world.path(&talk, "main"), "a b c");
        world.verified();
    });
}

#[test]
fn the_root_is_part_of_every_path() {
    for_each_store(|world| {
        let new = NewConversation {
            system_prompt: Some("be brief".to_owned()),
            ..NewConversation::named("talk").expect("a sound id")
        };
        let talk = world.engine.create_conversation(&world.call, new).expect("one").id;
        let path = world.engine.path(&world.call, tine_engine::PathQuery::of(talk));
        let root = path.expect("a path").root.expect("a root");
        assert_eq!(root.system_prompt.as_deref(), Some("be brief"));
    });
}

#[test]
fn an_archived_conversation_is_hidden_from_listings_and_works_all_the_same() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let other = world.talk("other");
        let patch = ConversationPatch { archived: Some(true), ..Default::default() };
        world.engine.patch_conversation(&world.call, &talk, patch).expect("a change");
        let listed = |archived| -> Vec<_> {
            let page = Page::default();
            let all = world.engine.conversations(&world.call, archived, page).expect("a listing");
            all.items.into_iter().map(|view| view.id).collect()
        };
        assert_eq!(listed(false), std::slice::from_ref(&other));
        assert_eq!(listed(true), [talk.clone(), other]);
        world.append(Append::to(talk.clone(), spoken(&["a"])));
        assert_eq!(world.tree(&talk), "a");
    });
}

#[test]
fn a_title_is_stable_once_set() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let title = |text: &str, force| ConversationPatch {
            title: Some(Some(text.to_owned())),
            force,
            ..Default::default()
        };
        let set = |patch| world.engine.patch_conversation(&world.call, &talk, patch);
        set(title("one", false)).expect("a first title");
        world.refused(ErrorKind::Conflict, |engine, call| {
            engine.patch_conversation(call, &talk, title("two", false))
        });
        assert_eq!(set(title("two", true)).expect("forced").title.as_deref(), Some("two"));
    });
}

#[test]
fn conversations_are_listed_in_pages_in_the_order_they_were_made() {
    for_each_store(|world| {
        let made: Vec<_> = (0..7).map(|n| world.talk(&format!("talk {}", 9 - n))).collect();
        let mut seen = vec![];
        let mut cursor = None;
        loop {
            let page = Page { cursor, limit: Some(3) };
            let page = world.engine.conversations(&world.call, false, page).expect("a page");
            assert!(page.items.len() <= 3);
            seen.extend(page.items.into_iter().map(|view| view.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, made);
    });
}

#[test]
fn metadata_of_a_conversation_is_an_object() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let patch = ConversationPatch { metadata: Some(Json::from("text")), ..Default::default() };
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.patch_conversation(call, &talk, patch)
        });
    });
}

#[test]
fn derive_onto_a_derivative_that_holds_the_path_leaves_main_where_it_is() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let at = |turn: usize| Derive { at: Some(said[turn].into()), ..derive(&talk, "new") };
        let take = |turn: usize| world.engine.derive(&world.call, at(turn)).expect("a derivative");
        let id = take(1).conversation.id;
        world.say(&id, &["x"]);
        assert_eq!(world.path(&id, "main"), "a b x");
        for held in [0, 1] {
            let again = take(held);
            assert_eq!((again.created, again.turns), (false, 0));
            assert_eq!(world.path(&id, "main"), "a b x", "what was said there since stays in view");
        }
        let further = take(2);
        assert_eq!((further.created, further.turns), (false, 1));
        assert_eq!(world.tree(&id), "a(b(x c))");
        assert_eq!(world.path(&id, "main"), "a b c", "to the end of what was taken over");
        world.verified();
    });
}

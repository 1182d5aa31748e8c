//! Titles, machine titles, tags, custom data.

use tine_core::{ErrorKind, TurnId};
use tine_engine::{MetadataPatch, TurnRef};

use crate::world::{World, bot, for_each_store};

fn patched(world: &World, turn: TurnId, patch: MetadataPatch) -> tine_core::Metadata {
    let view = world.engine.patch_metadata(&world.call, world.turn(turn), patch);
    view.expect("a change that is accepted").metadata
}

fn title(text: &str) -> MetadataPatch {
    MetadataPatch { title: Some(Some(text.to_owned())), ..Default::default() }
}

fn shown(world: &World, talk: &tine_core::ConversationId, turn: TurnId) -> Option<String> {
    world.rows(talk).into_iter().find(|row| row.id == turn).and_then(|row| row.title)
}

#[test]
fn a_turns_title_is_stable_once_set_unless_forced() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        patched(world, said[0], title("one"));
        world.refused(ErrorKind::Conflict, |engine, call| {
            engine.patch_metadata(call, TurnRef::of(said[0]), title("two"))
        });
        patched(world, said[0], MetadataPatch { force: true, ..title("two") });
        assert_eq!(shown(world, &talk, said[0]).as_deref(), Some("two"));
    });
}

#[test]
fn a_machine_title_shows_only_while_there_is_no_title_and_no_live_child() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let guess = |text: &str| MetadataPatch {
            auto_title: Some(Some(text.to_owned())),
            ..Default::default()
        };
        patched(world, said[0], guess("first"));
        patched(world, said[0], guess("guess"));
        assert_eq!(shown(world, &talk, said[0]).as_deref(), Some("guess"));
        let child = world.say_under(&talk, said[0], "main", bot("b"));
        assert_eq!(shown(world, &talk, said[0]), None);
        crate::delete::cascade(world, child);
        assert_eq!(shown(world, &talk, said[0]).as_deref(), Some("guess"));
        let metadata = patched(world, said[0], title("chosen"));
        assert_eq!(metadata.auto_title.as_deref(), Some("guess"), "always stored");
        assert_eq!(shown(world, &talk, said[0]).as_deref(), Some("chosen"));
    });
}

#[test]
fn tags_are_added_removed_and_replaced() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let add = MetadataPatch { add_tags: words(&["b", "a", "b"]), ..Default::default() };
        assert_eq!(patched(world, said[0], add).tags, ["a".to_owned(), "b".to_owned()].into());
        let remove = MetadataPatch { remove_tags: words(&["a", "z"]), ..Default::default() };
        assert_eq!(patched(world, said[0], remove).tags, ["b".to_owned()].into());
        let replace = MetadataPatch { tags: Some(words(&["c"])), ..Default::default() };
        assert_eq!(patched(world, said[0], replace).tags, ["c".to_owned()].into());
        assert_eq!(world.rows(&talk)[0].tags, ["c"]);
    });
}

#[test]
fn metadata_is_outside_the_hash() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let before = world.rows(&talk)[0].hash;
        patched(world, said[0], title("one"));
        let data = MetadataPatch { custom_data: Some(5.into()), ..Default::default() };
        assert_eq!(patched(world, said[0], data).custom_data, Some(5.into()));
        assert_eq!(world.rows(&talk)[0].hash, before);
        world.verified();
    });
}

#[test]
fn each_key_of_metadata_is_undone_by_itself() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        patched(world, said[0], title("one"));
        let add = MetadataPatch { add_tags: vec!["x".to_owned()], ..Default::default() };
        patched(world, said[0], add);
        world.engine.undo(&world.call, &talk, Some(3)).expect("the tag does not depend on it");
        let turn = world.engine.turn(&world.call, world.turn(said[0])).expect("a turn");
        assert_eq!((turn.metadata.title, turn.metadata.tags.len()), (None, 1));
        patched(world, said[0], title("two"));
        patched(world, said[0], MetadataPatch { force: true, ..title("three") });
        let first = world.engine.operations(&world.call, &talk, Default::default()).expect("a log");
        let second = first.items[1].seq;
        world.refused(ErrorKind::Protected, |engine, call| engine.undo(call, &talk, Some(second)));
    });
}

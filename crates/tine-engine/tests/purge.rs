//! Purge: erasure for real.

use tine_core::{ConversationId, ErrorKind, Message, TurnId};
use tine_engine::{Append, Holder, MetadataPatch, Purge, PurgeTarget, Purged, SplitTurn};
use tine_store::Content;

use crate::world::{World, bot, for_each_store, ids, user};

const NEEDLE: &str = "xyzzy-needle-in-the-haystack";

pub(crate) fn purge(world: &World, target: PurgeTarget) -> Purged {
    let ask = Purge { target: target.clone(), confirm: None };
    let asked = world.engine.purge(&world.call, ask).expect("a question");
    assert!(asked.confirm.is_some());
    let sure = Purge { target, confirm: asked.confirm };
    world.engine.purge(&world.call, sure).expect("an erasure")
}

fn purge_turn(world: &World, turn: TurnId) -> Purged {
    purge(world, PurgeTarget::Turn(world.turn(turn)))
}

/// Neither the records nor any file of the store holds the word.
pub(crate) fn gone(world: &World, word: &str) {
    let exported = format!("{:?}", world.export());
    assert!(!exported.contains(word), "the export still holds it");
    let Some(folder) = &world.folder else { return };
    for entry in std::fs::read_dir(folder.path()).expect("the store's folder") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a readable file");
        let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!found, "{} still holds it", path.display());
    }
}

#[test]
fn purge_asks_twice_and_the_first_call_changes_nothing() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let before = world.export();
        let target = PurgeTarget::Turn(world.turn(said[0]));
        let ask = Purge { target: target.clone(), confirm: None };
        let asked = world.engine.purge(&world.call, ask).expect("a question");
        assert_eq!(asked.turns, [said[0]]);
        assert_eq!(world.export(), before);
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.purge(call, Purge { target, confirm: Some("yes".to_owned()) })
        });
        let other = PurgeTarget::Turn(world.turn(said[1]));
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.purge(call, Purge { target: other, confirm: asked.confirm })
        });
    });
}

#[test]
fn content_leaves_every_record_and_every_byte_on_disk() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let secret = format!("my secret is {NEEDLE}, please forget it");
        let mut message = user(&secret);
        message.metadata.title = Some(format!("about {NEEDLE}"));
        message.metadata.tags = [NEEDLE.to_owned()].into();
        let said = ids(&world.append(Append::to(talk.clone(), vec![message, bot("b")])));
        let title = MetadataPatch {
            title: Some(Some(format!("still {NEEDLE}"))),
            force: true,
            ..Default::default()
        };
        world.engine.patch_metadata(&world.call, world.turn(said[0]), title).expect("a change");
        let split = SplitTurn { turn: world.turn(said[0]), offset: 20 };
        world.engine.split(&world.call, split).expect("a split");
        let erased = purge_turn(world, said[0]);
        assert_eq!(erased.turns.len(), 3, "the whole and both halves");
        gone(world, NEEDLE);
        gone(world, &NEEDLE[..12]);
        let found = world.engine.verify().expect("a check");
        assert_eq!((found.problems, found.purged_turns), (vec![], 3));
        assert_eq!(world.path(&talk, "main"), "? ? b");
    });
}

#[test]
fn large_bodies_are_erased_too() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let text = format!("{} {NEEDLE} {}", "x".repeat(300_000), "y".repeat(300_000));
        let said = ids(&world.append(Append::to(talk, vec![user(&text)])));
        purge_turn(world, said[0]);
        gone(world, NEEDLE);
        world.verified();
    });
}

#[test]
fn hashes_and_skeleton_stay() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let before = world.rows(&talk);
        purge_turn(world, said[1]);
        let after = world.rows(&talk);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(
                (before.id, before.hash, before.parent),
                (after.id, after.hash, after.parent)
            );
        }
        assert_eq!(after.iter().map(|row| row.purged).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(after[1].preview, "");
        world.say(&talk, &["d"]);
        world.verified();
    });
}

#[test]
fn a_purge_cannot_be_undone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        purge_turn(world, said[0]);
        let before = world.export();
        assert!(world.engine.undo(&world.call, &talk, None).is_err());
        assert_eq!(world.export(), before);
    });
}

#[test]
fn a_deleted_turn_can_be_purged() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", NEEDLE]);
        crate::delete::cascade(world, said[1]);
        purge_turn(world, said[1]);
        gone(world, NEEDLE);
        world.verified();
    });
}

#[test]
fn a_body_shared_with_other_turns_stays_with_them_and_they_are_listed() {
    for_each_store(|world| {
        let text = format!("{NEEDLE} {}", "z".repeat(100_000));
        let (one, two) = (world.talk("one"), world.talk("two"));
        let first = ids(&world.append(Append::to(one, vec![user(&text)])))[0];
        let second = ids(&world.append(Append::to(two.clone(), vec![user(&text)])))[0];
        let erased = purge_turn(world, first);
        assert_eq!(erased.other_holders, [Holder { conversation: two, turn: second }]);
        let kept = world.engine.turn(&world.call, world.turn(second)).expect("a turn");
        assert!(matches!(kept.content, Content::Kept(_)));
        world.verified();
        purge_turn(world, second);
        gone(world, NEEDLE);
    });
}

#[test]
fn an_import_does_not_restore_an_erased_turn() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &[NEEDLE, "b"]);
        let before = world.export();
        purge_turn(world, said[0]);
        let mut records = before.into_iter().map(Ok);
        let _either = world.engine.import(None, &mut records);
        gone(world, NEEDLE);
        world.verified();
    });
}

#[test]
fn a_whole_conversation_can_be_purged() {
    for_each_store(|world| {
        let new = tine_engine::NewConversation {
            system_prompt: Some(format!("prompt {NEEDLE}")),
            title: Some(format!("title {NEEDLE}")),
            metadata: tine_core::json::object([("k", NEEDLE.into())]),
            ..tine_engine::NewConversation::named("talk").expect("a sound id")
        };
        let talk = world.engine.create_conversation(&world.call, new).expect("one").id;
        let other = world.talk("other");
        world.say(&other, &["stays"]);
        world.append(Append::to(talk.clone(), vec![user(NEEDLE), Message::tool("c", NEEDLE)]));
        let request = Append::to(talk.clone(), vec![bot("keyed")]);
        world.engine.append(&world.call.clone().with_key("k"), request).expect("an append");
        let erased = purge(world, PurgeTarget::Conversation(talk.clone()));
        assert_eq!(erased.turns.len(), 3);
        gone(world, NEEDLE);
        assert_eq!(world.tree(&other), "stays");
        world.verified();
        root_is_gone(world, &talk);
    });
}

fn root_is_gone(world: &World, talk: &ConversationId) {
    let view = world.engine.conversation(&world.call, talk).expect("the skeleton stays");
    assert_eq!((view.root, view.title), (None, None));
}

//! How a turn is named.

use tine_core::{ErrorKind, Limits, Message, Name, Timestamp};
use tine_engine::{Append, Error, PathQuery, TurnRef};

use crate::world::{World, for_each_store, reference, user};

fn found(world: &World, talk: &tine_core::ConversationId, text: &str) -> tine_core::TurnId {
    let turn = TurnRef::within(talk.clone(), reference(text));
    world.engine.turn(&world.call, turn).expect("a turn of that name").id
}

#[test]
fn a_turn_is_named_by_id_hash_prefix_branch_bookmark_or_steps_back() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let name = Name::new("here", &Limits::default()).expect("a sound name");
        world.engine.set_bookmark(&world.call, name, world.turn(said[2])).expect("a bookmark");
        let hash = world.rows(&talk)[2].hash;
        let hex = hash.0.to_hex();
        let names = [
            said[2].to_string(),
            hash.to_string(),
            hex.clone(),
            hex.to_uppercase(),
            hex[..8].to_owned(),
            format!("sha256:{}", &hex[..8]),
            "main".to_owned(),
            "here".to_owned(),
        ];
        for name in names {
            assert_eq!(found(world, &talk, &name), said[2], "{name}");
            assert_eq!(found(world, &talk, &format!("{name}~1")), said[1], "{name}~1");
        }
        let branch = world.engine.branch(&world.call, &talk, "main").expect("a branch").id;
        assert_eq!(found(world, &talk, &branch.to_string()), said[2]);
        assert_eq!(found(world, &talk, "main~2"), said[0]);
    });
}

#[test]
fn a_hash_that_several_conversations_hold_is_ambiguous_without_one() {
    for_each_store(|world| {
        let message = Message { created_at: Some(Timestamp::from_millis(0)), ..user("same") };
        let (one, two) = (world.talk("one"), world.talk("two"));
        let first = world.append(Append::to(one.clone(), vec![message.clone()])).turns.remove(0);
        let second = world.append(Append::to(two, vec![message])).turns.remove(0);
        assert_eq!(first.hash, second.hash);
        let error = world.refused(ErrorKind::Ambiguous, |engine, call| {
            engine.turn(call, TurnRef::of(first.hash))
        });
        let Error::Ambiguous { candidates, .. } = error else { panic!("{error}") };
        assert_eq!(candidates.len(), 2);
        assert_eq!(found(world, &one, &first.hash.to_string()), first.id);
    });
}

#[test]
fn a_prefix_that_several_turns_share_is_ambiguous() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let (one, two) = colliding();
        let messages = [one, two].map(|at| Message { created_at: Some(at), ..user("x") });
        let mut hashes = vec![];
        for message in messages {
            let request = Append { reuse: false, ..Append::to(talk.clone(), vec![message]) };
            hashes.push(world.append(request.from_root()).turns[0].hash.0.to_hex());
        }
        assert_eq!(hashes[0][..8], hashes[1][..8]);
        let error = world.refused(ErrorKind::Ambiguous, |engine, call| {
            engine.turn(call, TurnRef::within(talk.clone(), reference(&hashes[0][..8])))
        });
        let Error::Ambiguous { candidates, .. } = error else { panic!("{error}") };
        assert_eq!(candidates.len(), 2);
        found(world, &talk, &hashes[0]);
    });
}

/// Two times at which the first turn "x" has hashes with the same first eight digits: found by
/// trying, and cheap enough to try again.
fn colliding() -> (Timestamp, Timestamp) {
    let body = tine_core::Body::Text("x".to_owned());
    let mut seen = std::collections::HashMap::new();
    for ms in 0.. {
        let at = Timestamp::from_millis(ms);
        let hash = tine_core::hash::turn_hash(None, tine_core::Role::User, &body, None, at);
        let prefix = u32::from_be_bytes([hash.0.0[0], hash.0.0[1], hash.0.0[2], hash.0.0[3]]);
        if let Some(earlier) = seen.insert(prefix, at) {
            return (earlier, at);
        }
    }
    unreachable!("32 bits collide sooner or later")
}

#[test]
fn unknown_names_are_not_found_and_malformed_ones_invalid() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        for name in ["missing", "00000000", "01890a5d-ac96-774b-bcce-b302099a8057", "main~7"] {
            world.refused(ErrorKind::NotFound, |engine, call| {
                engine.path(call, PathQuery::of(talk.clone()).to(reference(name)))
            });
        }
        for text in ["", "~1", "main~x"] {
            assert!(tine_core::Reference::parse(text).is_err(), "{text}");
        }
    });
}

#[test]
fn names_that_could_be_mistaken_are_refused() {
    let limits = Limits::default();
    for name in ["root", "deadbeef", "a~1", "sha256:deadbeef", "", "0123456789abcdef"] {
        assert!(Name::new(name, &limits).is_err(), "{name}");
    }
    for name in ["roots", "deadbee", "beefy-branch", "main-1"] {
        assert!(Name::new(name, &limits).is_ok(), "{name}");
    }
}

#[test]
fn a_deleted_turn_is_not_found_and_the_error_says_how_to_get_it_back() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        crate::delete::cascade(world, said[1]);
        let error = world.refused(ErrorKind::NotFound, |engine, call| {
            engine.path(call, PathQuery::of(talk.clone()).to(said[1]))
        });
        let Error::DeletedTurn { turn, operation } = error else { panic!("{error}") };
        assert_eq!((turn, operation), (said[1], 3));
    });
}

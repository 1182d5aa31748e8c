//! Append by longest common prefix.

use tine_core::{ErrorKind, Limits, Message, Role, Status, Timestamp};
use tine_engine::{Append, Outcome, TurnView};
use tine_store::Content;

use crate::world::{World, bot, for_each_store, ids, spoken, user};

fn outcomes(world: &World, request: Append) -> Vec<Outcome> {
    world.append(request).turns.into_iter().filter_map(|turn| turn.outcome).collect()
}

#[test]
fn append_walks_down_while_a_live_child_equals_the_next_message() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let again = Append::to(talk.clone(), spoken(&["a", "b", "x", "y"])).from_root();
        let answer = world.append(again);
        assert_eq!(ids(&answer)[..2], said[..2]);
        assert_eq!(world.tree(&talk), "a(b(c x(y)))");
        let outcomes: Vec<Outcome> = answer.turns.iter().filter_map(|turn| turn.outcome).collect();
        assert_eq!(outcomes[..2], [Outcome::Reused; 2]);
        assert_eq!(outcomes[2..], [Outcome::Created; 2]);
    });
}

#[test]
fn equality_is_exact_role_content_and_tool_call() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        let differ = [
            bot("a"),
            user("a "),
            user(" a"),
            user("A"),
            user("e\u{301}"),
            user("é"),
            Message::tool("call-1", "a"),
            Message::tool("call-2", "a"),
        ];
        for message in differ {
            let request = Append::to(talk.clone(), vec![message.clone()]).from_root();
            assert_eq!(outcomes(world, request.clone()), [Outcome::Created], "{message:?}");
            assert_eq!(outcomes(world, request), [Outcome::Reused], "{message:?}");
        }
    });
}

#[test]
fn a_string_and_one_text_block_are_the_same_message() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["hello"]);
        let json = br#"{"role":"user","content":[{"text":"hello","type":"text"}]}"#;
        let limits = Limits::default();
        let json = tine_core::json::parse(json, limits.json_depth).expect("sound JSON");
        let message = Message::from_json(json, &limits).expect("a sound message");
        let request = Append::to(talk.clone(), vec![message]).from_root();
        assert_eq!(outcomes(world, request), [Outcome::Reused]);
    });
}

#[test]
fn among_equal_siblings_the_first_is_taken() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let first = world.say(&talk, &["a"])[0];
        let distinct = Append { reuse: false, ..Append::to(talk.clone(), vec![user("a")]) };
        let second = ids(&world.append(distinct.from_root()))[0];
        assert_ne!(first, second);
        let request = Append::to(talk.clone(), vec![user("a")]).from_root();
        assert_eq!(ids(&world.append(request)), [first]);
    });
}

#[test]
fn reuse_false_makes_distinct_siblings_for_n_samples_of_one_prompt() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let prompt = world.say(&talk, &["question"])[0];
        for branch in ["one", "two", "three"] {
            let request = Append::to(talk.clone(), vec![bot("answer")]);
            let request = Append { reuse: false, ..request.under(prompt.into(), branch) };
            assert_eq!(outcomes(world, request), [Outcome::Created]);
        }
        assert_eq!(world.tree(&talk), "question(answer answer answer)");
    });
}

#[test]
fn a_deleted_child_is_not_matched() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        crate::delete::cascade(world, said[1]);
        let request = Append::to(talk.clone(), spoken(&["a", "b"])).from_root();
        assert_eq!(outcomes(world, request), [Outcome::Reused, Outcome::Created]);
        assert_eq!(world.tree(&talk), "a(b)");
    });
}

#[test]
fn a_reused_turn_ignores_the_sent_time_and_metadata() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let first = world.append(Append::to(talk.clone(), vec![user("a")])).turns.remove(0);
        let mut again = user("a");
        again.created_at = Some(Timestamp::from_millis(5));
        again.metadata.title = Some("another".to_owned());
        again.status = Status::Partial;
        let request = Append::to(talk.clone(), vec![again]).from_root();
        let turn = world.append(request).turns.remove(0);
        assert_eq!(turn, TurnView { outcome: Some(Outcome::Reused), ..first });
    });
}

#[test]
fn one_append_is_one_operation_with_one_time() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let answer = world.append(Append::to(talk.clone(), spoken(&["a", "b", "c"])));
        let times: Vec<Timestamp> = answer.turns.iter().map(|turn| turn.created_at).collect();
        assert_eq!(times, [times[0]; 3]);
        let log = world.engine.operations(&world.call, &talk, Default::default()).expect("a log");
        assert_eq!(log.items.len(), 2, "create and append");
        assert_eq!(log.items[0].actor, "tester");
    });
}

#[test]
fn a_message_may_bring_its_own_time_and_order_is_not_enforced() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let at = |ms| Some(Timestamp::from_millis(ms));
        let messages = vec![
            Message { created_at: at(2_000), ..user("later") },
            Message { created_at: at(1_000), ..bot("earlier") },
        ];
        let answer = world.append(Append::to(talk, messages));
        let times = answer.turns.iter().map(|turn| turn.created_at.as_millis());
        assert_eq!(times.collect::<Vec<_>>(), [2_000, 1_000]);
    });
}

#[test]
fn an_invalid_message_refuses_the_whole_call_and_says_which() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let messages = vec![user("fine"), Message { role: Role::Tool, ..user("no call") }];
        let error = world.refused(ErrorKind::Invalid, |engine, call| {
            engine.append(call, Append::to(talk.clone(), messages))
        });
        assert!(error.to_string().contains("message 1"), "{error}");
        assert_eq!(world.tree(&talk), "");
    });
}

#[test]
fn unknown_blocks_are_kept_value_for_value() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let limits = Limits::default();
        let content = br#"{"role":"user","content":[{"type":"hologram","z":1e2,"big":12345678901234567890,"a":[null,{"k":"\u00e9"}]}]}"#;
        let json = tine_core::json::parse(content, limits.json_depth).expect("sound JSON");
        let message = Message::from_json(json, &limits).expect("a sound message");
        let turn = world.append(Append::to(talk, vec![message])).turns.remove(0);
        let Content::Kept(body) = turn.content else { panic!("nothing was erased") };
        let kept =
            r#"[{"a":[null,{"k":"é"}],"big":12345678901234567890,"type":"hologram","z":100}]"#;
        assert_eq!(body.to_blocks_string(), kept);
    });
}

#[test]
fn a_partial_turn_stays_partial() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let broken = Message { status: Status::Partial, ..bot("half of an ans") };
        world.append(Append::to(talk.clone(), vec![user("question"), broken]));
        assert_eq!(world.rows(&talk)[1].status, Status::Partial);
    });
}

#[test]
fn appending_what_is_there_already_records_no_operation() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a", "b"]);
        let before = world.export();
        world.append(Append::to(talk, spoken(&["a", "b"])).from_root());
        assert_eq!(world.export(), before);
    });
}

#[test]
fn a_promised_id_becomes_the_turn_also_beside_an_equal_one() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let asked = world.say(&talk, &["question"])[0];
        let promised = [(); 2].map(|()| world.engine.promise_turn_id());
        for id in promised {
            let answer = Append::to(talk.clone(), vec![bot("answer")]).under(asked.into(), "main");
            let done = world.engine.append_as(&world.call, id, answer).expect("a kept promise");
            assert_eq!(ids(&done), [id]);
            assert_eq!(done.turns[0].outcome, Some(Outcome::Created));
            assert_eq!(done.branch.tip, Some(id));
        }
        assert_eq!(world.tree(&talk), "question(answer answer)");
        let again = Append::to(talk.clone(), vec![bot("more")]);
        let refused = world.engine.append_as(&world.call, promised[0], again.clone());
        assert_eq!(refused.expect_err("the id is taken").kind(), ErrorKind::Conflict);
        let two = Append { messages: spoken(&["x", "y"]), ..again };
        let refused = world.engine.append_as(&world.call, world.engine.promise_turn_id(), two);
        assert_eq!(refused.expect_err("two messages").kind(), ErrorKind::Invalid);
        assert!(world.engine.verify().expect("a sound store").problems.is_empty());
    });
}

#[test]
fn a_branch_is_found_by_its_id_alone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        let main = world.engine.branch(&world.call, &talk, "main").expect("main");
        assert_eq!(world.engine.branch_by_id(&world.call, main.id).expect("main"), main);
        let unknown = said[0].to_string().parse().expect("a sound id");
        let refused = world.engine.branch_by_id(&world.call, unknown);
        assert_eq!(refused.expect_err("a turn is no branch").kind(), ErrorKind::NotFound);
    });
}
